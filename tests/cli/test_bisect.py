# SPDX-License-Identifier: Apache-2.0
"""kiln bisect: passes that go wrong on purpose are found, and a folder shows each by itself."""
import json
import os
import pathlib
import subprocess
import unittest

from harness import KILN, MEAN, MODEL, OK, USAGE, CliTest, main

PLUGIN = pathlib.Path(os.environ.get("KILN_PLUGIN_DIR", "/nonexistent")) / "plugin-wrong.so"
GUILTY = 4

LONG = """graph @long(%x: f32[2,3], %y: f32[2,3]) {
  %i = identity(%x) : f32[2,3]
  %a = tanh(%i) : f32[2,3]
  %b = tanh(%x) : f32[2,3]
  %n = neg(%b) : f32[2,3]
  %e = exp(%y) : f32[2,3]
  %s = sub(%a, %e) : f32[2,3]
  %r = mul(%s, %n) : f32[2,3]
  return %r
}
"""
PIPELINE = """version: 1
plugins: ["{}"]
graph:
  - eliminate-noop
  - cse
{}
  - dce
ir:
  - sink-allocs
{}
  - share-buffers
"""


# Means of four bytes lie at ties, and the rescale makes 100 steps of one.
TIES = """graph @f(%x: u8[1,2,4,4] q(0.1,100)) {
  %d = dequantize_linear(%x) : f32[1,2,4,4]
  %a = average_pool(%d) {kernel_shape=[2,2], pads=[1,1,1,1]} : f32[1,2,5,5]
  %q = quantize_linear(%a) : i8[1,2,5,5] q(0.1,0)
  %g = rescale_quantized(%q) : i16[1,2,5,5] q(0.001,0)
  return %g
}
"""


# The last row of a matrix.
LAST = """graph @last(%x: f32[N,3], %y: f32[N,3]) {
  %n = neg(%y) : f32[N,3]
  %a = add(%x, %n) : f32[N,3]
  %shape = shape(%x) {end=1} : i64[1]
  %one = const @one : i64[1]
  %start = sub(%shape, %one) : i64[1]
  %axes = const @axes : i64[1]
  %l = slice(%a, %start, %shape, %axes) : f32[1,3]
  return %l
}

constants {
  @axes = [0] : i64[1]
  @one = [1] : i64[1]
}
"""
# Equal numbers only: there is no code for open dims.
EQUAL = """graph @equal(%x: f32[N,3], %y: f32[M,3]) {
  %n = neg(%x) : f32[N,3]
  %a = add(%n, %y) : f32[select(1=M,N,M),3]
  return %a
}
"""


@unittest.skipUnless(PLUGIN.exists(), f"{PLUGIN} is not built")
class Bisect(CliTest):
    def setUp(self):
        super().setUp()
        self.model = self.write("long.kiln", LONG)

    def bisect(self, graph="", ir="", *options):
        text = PIPELINE.format(PLUGIN, f"  - {graph}" if graph else "", f"  - {ir}" if ir else "")
        pipeline = self.write("p.yaml", text)
        return self.start("bisect", self.model, "--pipeline", pipeline, *options)

    def reproduce(self, folder):
        environment = {name: value for name, value in os.environ.items() if name != "KILN"}
        return subprocess.run([self.dir / folder / "reproduce.sh"], env=environment, cwd="/", capture_output=True, check=False,
                              timeout=60)

    def test_results_that_are_arguments(self):
        path = self.write("through.kiln", "graph @z(%x: f32[2]) {\n  %y = neg(%x) : f32[2]\n  return %x, %y\n}\n")
        self.assertIn("all of them good", self.kiln("bisect", path))

    def test_ties_that_grow_are_no_finding(self):
        path = self.write("ties.kiln", TIES)
        pipeline = self.write("merge.yaml", "version: 1\ngraph: [merge-qdq, dce]\n")
        for seed in "1", "2", "3":
            self.assertIn("all of them good", self.kiln("bisect", path, "--pipeline", pipeline, "--random", seed))
        self.kiln("opt", path, "--pipeline", pipeline, "--check", "-o", self.dir / "out.kiln")

    def expect_guilty(self, result, guilty, why, folder="kiln-bisect"):
        self.assertEqual(result.returncode, GUILTY, result.stderr)
        text = result.stdout.decode()
        self.assertIn(f"guilty: {guilty}\n", text)
        self.assertIn(why, text)
        self.assertIn("reproduce.sh show it", text)
        single = (self.dir / folder / "pipeline.yaml").read_text()
        self.assertEqual(single.count("{pass: "), 1)
        again = self.reproduce(folder)
        self.assertEqual(again.returncode, GUILTY, again.stderr)
        return text

    def test_all_good(self):
        result = self.bisect()
        self.assertEqual((result.returncode, result.stderr), (OK, ""))
        self.assertRegex(result.stdout.decode(), r"^\d+ applications, all of them good \(\d+ tries\)\n$")
        self.assertFalse((self.dir / "kiln-bisect").exists())

    def test_real_model(self):
        self.assertEqual(self.start("bisect", MODEL).returncode, OK)

    def test_a_miscompilation(self):
        text = self.expect_guilty(self.bisect("drop-negations"), "application 6 drop-negations @long", "result r: ")
        self.assertIn("rewrite: drop-negations: drop-negation: n (neg) by a (tanh)", text)
        before = (self.dir / "kiln-bisect/before.kiln").read_text()
        self.assertIn("neg(", before)
        self.assertNotIn("identity", before)  # what the passes before did is in it

    def test_an_invalid_result(self):
        self.expect_guilty(self.bisect("bend-types"), "application 6 bend-types @long", "it left a function that is not valid")

    def test_a_crash(self):
        self.expect_guilty(self.bisect("crash"), "application 6 crash @long", "it crashed: ")

    def test_a_miscompilation_of_the_ir(self):
        text = self.expect_guilty(self.bisect("", "swap-operands", "-o", "there"), "application 7 swap-operands @long", "result r: ",
                                  "there")
        self.assertIn("rewrite: swap-operands: swap: ", text)
        self.assertTrue((self.dir / "there/before.kiln").read_text().startswith("func @long {"))
        self.assertEqual(self.bisect("", "swap-operands", "--stage", "graph").returncode, OK)

    def test_the_script_runs_what_was_run(self):
        given = "--no-offload", "--prefer", "memory", "--threads", "2", "--no-verify", "--mode", "train"
        self.expect_guilty(self.bisect("drop-negations", "", *given), "application 6 drop-negations @long", "result r: ")
        script = (self.dir / "kiln-bisect/reproduce.sh").read_text()
        for option in "--no-offload", "--prefer memory", "--threads 2", "--no-verify", "--mode train":
            self.assertIn(option, script)

    def test_limits_and_skips_act(self):
        self.assertEqual(self.bisect("drop-negations", "", "--skip", "drop-negations").returncode, OK)
        self.assertEqual(self.bisect("drop-negations", "", "--bisect-limit", "5").returncode, OK)
        self.assertEqual(self.bisect("drop-negations", "", "--bisect-limit", "6").returncode, GUILTY)

    def test_json(self):
        result = self.bisect("drop-negations", "", "--json")
        found = json.loads(result.stdout)
        self.keys(found, "schema_version", "applications", "tries", "guilty")
        self.keys(found["guilty"], "application", "pass", "what", "why", "rewrites", "folder", "reproduced")
        self.assertEqual((found["guilty"]["application"], found["guilty"]["pass"]), (6, "drop-negations"))
        self.assertIsNone(json.loads(self.bisect("", "", "--json").stdout)["guilty"])

    # --- open dims ---

    def test_a_fault_that_the_hint_hides(self):
        self.model = self.write("mean.kiln", MEAN)
        text = self.expect_guilty(self.bisect("mean-of-hints"), "application 6 mean-of-hints @mean", "with N=1: result e: ")
        self.assertIn("compared with N=64; N=1; N=3; 0 left out\n", text)
        self.assertIn("%x: f32[N,3]", (self.dir / "kiln-bisect/before.kiln").read_text())
        # With the hint alone it is right.
        for shape in "N=64", "x=64x3":
            self.assertIn("all of them good", self.bisect("mean-of-hints", "", "--shape", shape).stdout.decode())
        self.assertEqual(self.bisect("mean-of-hints", "", "--shape", "N=64..66").returncode, GUILTY)
        self.assertEqual(self.bisect("mean-of-hints", "", "--shape-hint", "N=5").returncode, GUILTY)
        # So does --check find it.
        pipeline = self.dir / "p.yaml"
        self.fails(GUILTY, "it changed what @mean computes with N=1: result e: ", "opt", self.model, "--pipeline", pipeline, "--check")
        self.assertIn("reduce_sum", self.kiln("opt", self.model, "--pipeline", pipeline, "--check", "--shape", "N=64"))

    def test_a_fault_of_the_ir_that_the_hint_hides(self):
        self.model = self.write("last.kiln", LAST)
        pipeline = self.write("freeze.yaml", f'version: 1\nplugins: ["{PLUGIN}"]\ngraph: [dce]\nir: [sink-allocs, freeze-starts]\n')
        result = self.start("bisect", self.model, "--pipeline", pipeline)
        text = self.expect_guilty(result, "application 3 freeze-starts @last", "do not lie inside")
        self.assertIn("rewrite: freeze-starts: freeze: l\n", text)
        self.assertIn("starts=[N-1,0]", (self.dir / "kiln-bisect/before.kiln").read_text())
        self.fails(1, "pass freeze-starts (application 3, @last): its result cannot be run with N=1: ", "opt", self.model, "--pipeline",
                   pipeline, "--check", "--stage", "ir")

    def test_no_code_for_open_dims(self):
        """Then it is made for each shape, as in a session."""
        self.model = self.write("equal.kiln", EQUAL)
        good = self.bisect().stdout.decode()
        self.assertIn("compared with N=64, M=64; N=1, M=1; N=3, M=3; 1 left out\ncompiled for each of these numbers: ", good)
        self.assertIn("all of them good", good)
        # Lowering is not to blame, and passes of the ir are.
        self.model = self.write("equal.kiln", EQUAL.replace("= add", "= sub"))
        self.expect_guilty(self.bisect("", "swap-operands"), "application 7 swap-operands @equal", "with N=64, M=64: result a: ")
        found = json.loads(self.bisect("", "swap-operands", "--json").stdout)
        self.assertEqual((found["numbers"], found["left_out"], found["per_shape"]),
                         (["N=64, M=64", "N=1, M=1", "N=3, M=3"], 1, True))

    def test_usage(self):
        self.fails(USAGE, "--stage: expected graph or ir, found both", "bisect", self.model, "--stage", "both")


if __name__ == "__main__":
    main()
