# SPDX-License-Identifier: Apache-2.0
"""Random operators: operators, runs and processes draw different numbers; a seed makes them repeat."""
import math
import struct
import unittest

import onnx_writer as onnx
from harness import USAGE, CliTest, main

# The two branches draw, too; the condition is known at run only.
MODEL = """graph @f(%x: f32[64], %c: bool[]) {
  %a = random_normal() {shape=[64]} : f32[64]
  %b = random_normal() {shape=[64]} : f32[64]
  %u = random_uniform() {shape=[64]} : f32[64]
  %s = random_uniform() {shape=[64], seed=9} : f32[64]
  %n = add(%a, %x)
  %m = add(%b, %x)
  %i = if(%c) then {
    %t = random_normal() {shape=[64]} : f32[64]
    return %t
  } else {
    %e = random_normal() {shape=[64]} : f32[64]
    return %e
  } : f32[64]
  return %n, %m, %u, %s, %i
}
"""
PLAIN = """graph @f(%x: f32[64]) {
  %a = random_normal() {shape=[64]} : f32[64]
  %b = random_uniform() {shape=[64]} : f32[64]
  %c = exp(%a)
  %d = mul(%b, %x)
  %y = add(%c, %d)
  return %y
}
"""


class Random(CliTest):
    def setUp(self):
        super().setUp()
        self.write("m.kiln", MODEL)

    def draw(self, *options, file="m.kiln"):
        """The bytes of all outputs."""
        self.kiln("run", file, "--random", "1", "--npy", "-o", "drawn", *options)
        return [path.read_bytes() for path in sorted((self.dir / "drawn").iterdir())]

    def test_operators_and_runs_differ(self):
        first, second = self.draw(), self.draw()
        self.assertEqual(len(set(first)), 5)
        self.assertEqual([a == b for a, b in zip(first, second)], [False, False, False, True, False])

    def test_a_seed_repeats(self):
        want = self.draw("--seed", "7")
        self.assertEqual(len(set(want)), 5)
        for options in (["--threads", "1"], ["--threads", "2"], ["--pipeline", "none"], ["--backend", "ref"],
                        ["--pipeline", "own"], ["--poison"], ["--runs", "3"]):
            with self.subTest(options):
                self.assertEqual(self.draw("--seed", "7", *options), want)
        other = self.draw("--seed", "8")
        self.assertEqual([a == b for a, b in zip(want, other)], [False, False, False, True, False])

    def test_commands_with_a_seed_by_default(self):
        want = self.draw("--seed", "0")
        self.kiln("opt", "m.kiln", "--check", "-o", "o.kiln")
        self.assertEqual(self.draw("--seed", "0", file="o.kiln"), want)
        self.kiln("compare", "m.kiln", "--pipeline", "none", "--pipeline", "default")
        self.kiln("compare", "m.kiln", "--backend", "ref", "--backend", "cpu", "--seed", "5")
        self.write("plain.kiln", PLAIN)
        self.assertIn("all of them good", self.kiln("bisect", "plain.kiln"))

    def test_programs_draw_as_their_model(self):
        self.write("m.kiln", PLAIN)
        self.kiln("compile", "m.kiln", "-o", "m.kprog")
        self.assertEqual(self.draw("--seed", "3", file="m.kprog"), self.draw("--seed", "3"))
        self.assertNotEqual(self.draw(file="m.kprog"), self.draw(file="m.kprog"))

    def test_stored_values_are_those_of_the_run(self):
        self.kiln("run", "m.kiln", "--random", "1", "--dump-values", "a", "--npy", "-o", "out")
        stored = {p.name.split("-", 1)[1]: p.read_bytes() for p in (self.dir / "a").iterdir()}
        for i, name in enumerate("nmusi"):
            self.assertEqual((self.dir / f"out/output_{i}.npy").read_bytes(), stored[f"{name}.npy"])

    def test_models_in_onnx(self):
        x = onnx.value("x", onnx.FLOAT, [64])
        shape = [onnx.ints_attribute("shape", [64])]
        nodes = [onnx.node("Sigmoid", ["x"], ["h"], "half"),
                 onnx.node("RandomNormal", [], ["a"], "first", attributes=shape),
                 onnx.node("RandomNormal", [], ["b"], "second", attributes=shape),
                 onnx.node("RandomUniformLike", ["x"], ["c"], "third"),
                 onnx.node("RandomNormalLike", ["x"], ["d"], "fourth"),
                 onnx.node("Bernoulli", ["h"], ["e"], "fifth"),
                 onnx.node("Bernoulli", ["h"], ["f"], "sixth")]
        outputs = [onnx.value(name, onnx.FLOAT, [64]) for name in "abcdef"]
        self.write("m.onnx", onnx.model(nodes, [x], outputs, opset=15))
        first, second = self.draw(file="m.onnx"), self.draw(file="m.onnx")
        self.assertEqual(len(set(first)), 6)
        self.assertFalse(set(first) & set(second))
        want = self.draw("--seed", "1", file="m.onnx")
        self.assertEqual(self.draw("--seed", "1", "--pipeline", "none", file="m.onnx"), want)
        self.kiln("opt", "m.onnx", "--emit", "onnx", "-o", "again.onnx")
        self.assertEqual(self.draw("--seed", "1", file="again.onnx"), want)

    def test_multinomial(self):
        """Each class is drawn about as often as its probability says. A class with probability 0 is never drawn."""
        chances = [0.5, 0.2, 0.0, 0.3]
        logits = [math.log(p) if p else -1000.0 for p in chances]
        attributes = [onnx.int_attribute("sample_size", 4000), onnx.int_attribute("dtype", onnx.INT64)]
        self.write("m.onnx", onnx.model([onnx.node("Multinomial", ["x"], ["y"], attributes=attributes)],
                                        [onnx.value("x", onnx.FLOAT, [2, 4])], [onnx.value("y", onnx.INT64, [2, 4000])], opset=7))
        self.write("x.pb", onnx.float_tensor("x", [2, 4], logits + [5 + x for x in logits]))
        drawn = []
        for seed in ("1", "1", "2"):
            self.kiln("run", "m.onnx", "-i", "x=x.pb", "--npy", "-o", "drawn", "--quiet", "--seed", seed)
            drawn.append(struct.unpack("<8000q", (self.dir / "drawn/output_0.npy").read_bytes()[-64000:]))
        self.assertEqual(drawn[0], drawn[1])
        self.assertNotEqual(drawn[0], drawn[2])
        for row in (drawn[0][:4000], drawn[0][4000:], drawn[2][:4000]):
            for i, chance in enumerate(chances):
                self.assertLess(abs(row.count(i) / 4000 - chance), 0.04 if chance else 1e-9)
        self.assertNotEqual(drawn[0][:4000], drawn[0][4000:])

    def test_multinomial_of_many_classes(self):
        """Classes are searched in blocks, of which the last is not full."""
        classes, samples = 150, 6000
        likely = {0: 0.1, 12: 0.2, 13: 0.1, 25: 0.1, 77: 0.2, 143: 0.1, 149: 0.2}
        logits = [math.log(likely[i]) if i in likely else -1000.0 for i in range(classes)]
        attributes = [onnx.int_attribute("sample_size", samples), onnx.int_attribute("dtype", onnx.INT64)]
        self.write("m.onnx", onnx.model([onnx.node("Multinomial", ["x"], ["y"], attributes=attributes)],
                                        [onnx.value("x", onnx.FLOAT, [2, classes])], [onnx.value("y", onnx.INT64, [2, samples])], opset=7))
        self.write("x.pb", onnx.float_tensor("x", [2, classes], logits + logits[::-1]))
        self.kiln("run", "m.onnx", "-i", "x=x.pb", "--npy", "-o", "drawn", "--quiet", "--seed", "3")
        drawn = struct.unpack(f"<{2 * samples}q", (self.dir / "drawn/output_0.npy").read_bytes()[-16 * samples:])
        for row in (drawn[:samples], [classes - 1 - i for i in drawn[samples:]]):
            self.assertEqual(set(row), set(likely))
            for i, chance in likely.items():
                self.assertLess(abs(row.count(i) / samples - chance), 0.04)

    def test_bad_seeds(self):
        for seed in ("-1", "x", "18446744073709551616"):
            self.fails(USAGE, f"--seed: expected a seed of 0 to 2^64-1, found {seed}", "run", "m.kiln", f"--seed={seed}")


if __name__ == "__main__":
    main()
