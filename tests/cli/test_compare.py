# SPDX-License-Identifier: Apache-2.0
"""kiln compare: the first value that two pipelines, two backends or two folders of values do not agree on."""
import json
import os
import pathlib
import shutil
import struct
import unittest

from harness import ADD, FAILED, MEAN, MISMATCH, MODEL, OK, OPEN, USAGE, CliTest, floats, main, npy

PLUGIN = pathlib.Path(os.environ.get("KILN_PLUGIN_DIR", "/nonexistent")) / "plugin-wrong.so"

CHAIN = """graph @chain(%x: f32[2,3]) {
  %a = tanh(%x) : f32[2,3]
  %n = neg(%a) : f32[2,3]
  %e = exp(%n) : f32[2,3]
  %t = transpose(%e) {perm=[1,0]} : f32[3,2]
  return %t
}
"""


class Compare(CliTest):
    def compare(self, status, *arguments):
        result = self.start("compare", *arguments)
        self.assertEqual(result.returncode, status, result.stderr)
        return result.stdout.decode()

    def document(self, status, *arguments):
        return json.loads(self.compare(status, *arguments, "--json"))

    def wrong(self, level="graph", name="drop-negations"):
        return self.write("wrong.yaml", f'version: 1\nplugins: ["{PLUGIN}"]\n{level}:\n  - {name}\n')

    def test_default_agrees_with_the_model(self):
        text = self.compare(OK, MODEL)
        self.assertIn("A: none on cpu\nB: default on cpu\n", text)
        self.assertRegex(text, r"\d+ values in both: (\d+) agree, 0 differ")
        self.assertNotIn("first:", text)
        # Regions hide what they have in them.
        found = self.document(OK, MODEL, "--no-offload")
        self.assertGreater(found["agree"], 10)
        self.assertGreater(found["only_a"], 0)
        self.assertEqual((found["only_b"], found["diverging"]), (0, []))

    def test_backends(self):
        text = self.compare(OK, MODEL, "--backend", "ref", "--backend", "cpu")
        self.assertIn("A: default on ref\nB: default on cpu\n", text)
        self.assertIn("A: none on ref\nB: none on cpu\n",
                      self.compare(OK, MODEL, "--pipeline", "none", "--backend", "ref", "--backend", "cpu"))

    def test_sides(self):
        for options, labels in (((), ("none", "default")), (("--pipeline", "fold"), ("none", "fold")),
                                (("--pipeline", "fold", "--pipeline", "glow"), ("fold", "glow")),
                                (("--passes", "cse,dce"), ("none", "cse,dce")),
                                (("--pipeline", "fold", "--passes", "dce"), ("fold", "dce"))):
            found = self.document(OK, MODEL, *options)
            self.assertEqual((found["a"], found["b"]), tuple(f"{label} on cpu" for label in labels))

    def test_no_tolerance_at_all(self):
        found = self.document(MISMATCH, MODEL, "--passes", "fold-batchnorm", "--rtol", "0", "--atol", "0")
        first = found["diverging"][0]
        self.assertEqual((first["name"], first["op_a"], first["op_b"]), ("bn1.out", "batch_normalization", "conv"))
        self.assertGreater(first["max_abs"], 0)
        self.assertGreater(first["max_ulp"], 1)
        self.assertEqual(abs(first["a"] - first["b"]), first["max_abs"])
        self.assertEqual(found["diverging"][-1]["name"], "output probabilities")
        self.assertGreater(self.compare(MISMATCH, MODEL, "--atol", "0", "--rtol", "0", "--all").count("the worst is ["), 5)
        self.compare(OK, MODEL, "--atol", "0.001")

    @unittest.skipUnless(PLUGIN.exists(), f"{PLUGIN} is not built")
    def test_a_wrong_pass(self):
        model = self.write("chain.kiln", CHAIN)
        text = self.compare(MISMATCH, model, "--pipeline", self.wrong())
        self.assertIn("first: e (exp in A, exp in B): f32[2,3]\n", text)
        self.assertIn("allowed: equal bits\n", text)
        found = self.document(MISMATCH, model, "--pipeline", "none", "--pipeline", self.wrong(), "--random", "7")
        self.assertEqual([row["name"] for row in found["diverging"]], ["e", "t", "output t"])
        self.assertEqual((found["agree"], found["only_a"], found["diverging"][0]["differ"]), (1, 1, 6))

    def test_given_inputs(self):
        model = self.write("chain.kiln", CHAIN)
        data = struct.pack("<6f", *range(6))
        header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }".ljust(117) + b"\n"
        (self.dir / "x.npy").write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data)
        self.compare(OK, model, "-i", "x=x.npy")
        self.compare(USAGE, model, "-i", "y=x.npy")

    def test_open_shapes(self):
        model = self.write("open.kiln", OPEN)
        result = self.start("compare", model)
        self.assertEqual(result.returncode, USAGE)
        self.assertIn("input x: its shape is open: give --shape x=", result.stderr)
        self.compare(OK, model, "--shape", "x=2x3", "--shape", "y=2x3")

    def test_values_of_open_programs(self):
        """A pass that takes the hint for the truth: the program is open, and so is its graph."""
        model = self.write("mean.kiln", MEAN)
        (self.dir / "x.npy").write_bytes(npy("<f4", (5, 3), floats(*range(15))))
        found = self.document(MISMATCH, model, "--pipeline", self.wrong(name="mean-of-hints"), "-i", "x=x.npy")
        self.assertEqual(found["diverging"][0]["name"], "m")
        # With numbers it is compiled for them: the hint is what they are.
        self.compare(OK, model, "--pipeline", self.wrong(name="mean-of-hints"), "-i", "x=x.npy", "--shape", "x=5x3")
        self.compare(OK, model, "-i", "x=x.npy")
        for folder, options in (("a", ()), ("b", ("--shape", "x=5x3"))):
            self.kiln("run", model, "-i", "x=x.npy", "--pipeline", "none", "--dump-values", folder, *options)
        self.assertIn("0 differ (0 only in A, 0 only in B, 0 with another type)", self.compare(OK, "a", "b"))

    def test_folders(self):
        for folder, seed in (("a", "1"), ("b", "1"), ("c", "2")):
            self.kiln("run", MODEL, "--no-offload", "--random", seed, "--dump-values", folder)
        names = sorted(path.name for path in (self.dir / "a").iterdir())
        self.assertEqual(names[0], "0000-bn1.out.npy")
        self.assertIn("output%20probabilities.npy", names[-1])
        self.assertIn("17 agree, 0 differ", self.compare(OK, "a", "b"))
        self.assertIn("first: bn1.out: f32[1,16,28,28]\n", self.compare(MISMATCH, "a", "c"))
        self.compare(OK, "a", "c", "--atol", "1000")
        # Numbers in front count for the order only; what one side lacks is counted.
        (self.dir / "b/0003-bn2.out.npy").rename(self.dir / "b/bn2.out.npy")
        (self.dir / "b/0004-relu2.out.npy").unlink()
        shutil.copy(self.dir / "c/0005-bn3.out.npy", self.dir / "b/0005-bn3.out.npy")
        found = self.document(MISMATCH, "a", "b")
        self.assertEqual((found["agree"], found["only_a"], found["only_b"]), (15, 1, 0))
        self.assertEqual([row["name"] for row in found["diverging"]], ["bn3.out"])

    def test_a_loop_has_values_of_one_name(self):
        """Values are compared iteration by iteration. One side may have more iterations."""
        for folder, numbers in (("a", (1, 2, 3)), ("b", (1, 2, 3)), ("c", (1, 5, 3, 4))):
            for i, number in enumerate(numbers):
                self.write(f"{folder}/{i:04}-v.npy", npy("<f4", (1,), floats(number)))
        self.assertIn("3 agree, 0 differ", self.compare(OK, "a", "b"))
        found = self.document(MISMATCH, "a", "c")
        self.assertEqual((found["agree"], len(found["diverging"]), found["only_a"], found["only_b"]), (2, 1, 0, 1))

    def test_names_longer_than_those_of_files(self):
        """Exporters join the names of what they fuse."""
        for stem in "v" * 198 + "/", "v" * 199 + "/", "a/" * 150, "ü" * 120 + "/":
            model = self.write("long.kiln", "graph @{0}(%x: f32[2]) {{\n  %\"{1}1\" = relu(%x) : f32[2]\n"
                               "  %\"{1}2\" = exp(%\"{1}1\") : f32[2]\n  return %\"{1}2\"\n}}\n".format("g" * 300, stem))
            for seed in "1", "2":
                self.kiln("run", model, "--random", seed, "--pipeline", "none", "--dump-values", f"{seed}{len(stem)}")
            result = self.json("compare", f"1{len(stem)}", f"2{len(stem)}", "--json", status=MISMATCH)
            self.assertEqual((result["agree"] + len(result["diverging"]), result["only_a"], result["only_b"]), (3, 0, 0), result)
        self.kiln("opt", model, "--dump-dir", "dump", "-o", "/dev/null")
        self.assertTrue(list((self.dir / "dump").iterdir()))

    def test_values_of_any_type(self):
        model = self.write("types.kiln", "graph @t(%x: f32[3]) {\n  %\"a/b\" = cast(%x) {to=bf16} : bf16[3]\n"
                           "  %c = cast(%\"a/b\") {to=i64} : i64[3]\n  return %c\n}\n")
        self.kiln("run", model, "--random", "1", "--pipeline", "none", "--dump-values", "t")
        self.assertEqual(sorted(path.name for path in (self.dir / "t").iterdir()),
                         ["0000-a%2Fb.npy", "0001-c.npy", "0002-output%20c.npy"])
        self.assertIn("3 agree", self.compare(OK, "t", "t"))

    def test_errors(self):
        (self.dir / "empty").mkdir()
        (self.dir / "full").mkdir()
        self.write("full/a.txt", "")
        self.fails(USAGE, "expected one or two operands", "compare")
        self.fails(USAGE, "expected a second folder", "compare", "empty")
        self.fails(FAILED, "nothing to compare: empty and full have no value", "compare", "empty", "full")
        self.fails(FAILED, "nosuch", "compare", "empty", "nosuch")
        self.fails(FAILED, "full: expected an empty folder, found a.txt", "run", MODEL, "--random", "1", "--dump-values", "full")
        self.fails(USAGE, "--rtol: expected 0 or more, found -2", "compare", MODEL, "--rtol=-2")
        self.fails(USAGE, "--atol: expected 0 or more, found nan", "compare", MODEL, "--atol=nan")
        self.fails(USAGE, "expected two pipelines and two backends at most, found 3 and 0", "compare", MODEL, "--pipeline", "none",
                   "--pipeline", "none", "--passes", "dce")
        self.fails(USAGE, "nosuch", "compare", MODEL, "--backend", "ref", "--backend", "nosuch")
        ir = self.write("ir.kiln", self.kiln("opt", self.write("add.kiln", ADD), "--stage", "ir"))
        self.fails(USAGE, "expected a model at the graph level", "compare", ir)


if __name__ == "__main__":
    main()
