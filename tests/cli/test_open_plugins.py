# SPDX-License-Identifier: Apache-2.0
"""Passes of a plug-in on programs with open dims: what they may ask, and what they do, at both levels."""
import os
import pathlib
import unittest

from harness import MISMATCH, CliTest, main

PLUGINS = pathlib.Path(os.environ.get("KILN_PLUGIN_DIR", "/nonexistent"))
OPEN, GOOD, WRONG = (PLUGINS / f"plugin-{name}.so" for name in ("open", "good", "wrong"))

SUMS = """graph @sums(%x: f32[N,3], %y: f32[M,3], %z: f32[N,3]) {
  %c = concat(%x, %y) {axis=0} : f32[N+M,3]
  %n = neg(%z) : f32[N,3]
  %a = add(%x, %n) : f32[N,3]
  %i = identity(%a) : f32[N,3]
  %t = tanh(%i) : f32[N,3]
  %s = add(%z, %t) : f32[N,3]
  %m = neg(%y) : f32[M,3]
  %r = add(%y, %m) : f32[M,3]
  return %c, %s, %r
}

dims {
  N: least=2, most=64, multiple=2, hint=24
}
"""
ROWS = """graph @rows(%x: f32[N,3], %y: f32[1,3]) {
  %n = neg(%y) : f32[1,3]
  %a = add(%x, %n) : f32[N,3]
  return %a
}
"""


@unittest.skipUnless(OPEN.exists(), f"{OPEN} is not built")
class OpenPlugins(CliTest):
    def setUp(self):
        super().setUp()
        self.model = self.write("sums.kiln", SUMS)

    def opt(self, passes, *options):
        return self.start("opt", self.model, "--load-pass-plugin", OPEN, "--load-pass-plugin", GOOD, "--passes", passes, "--check",
                          *options)

    def test_what_a_graph_pass_asks(self):
        told = self.opt("tell-dims", "--print-changed").stderr
        self.assertIn("c dim 0 = M+N in 3..16777280, likely 88, a multiple of 1\n", told)
        self.assertIn("a dim 0 = N in 2..64, likely 24, a multiple of 2\n", told)
        self.assertIn("m dim 0 = M in 1..16777216, likely 64, a multiple of 1\n", told)

    def test_what_a_graph_pass_does(self):
        done = self.opt("subtract-equals,drop-identities,dce")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        text = done.stdout.decode()
        self.assertEqual((text.count("= sub("), text.count("= add("), text.count("identity(")), (2, 1, 0))
        # A dim that is broadcast is not equal to one that may be 1.
        self.model = self.write("rows.kiln", ROWS)
        self.assertNotIn("= sub(", self.opt("subtract-equals").stdout.decode())

    def test_what_an_ir_pass_asks(self):
        told = self.opt("tell-sizes", "--print-changed", "--stage", "ir").stderr
        self.assertRegex(told, r"t: \d+ bytes here, 12\*N always\n")
        self.assertRegex(told, r"m: \d+ bytes here, 12\*M always\n")

    def test_what_an_ir_pass_does(self):
        done = self.opt("sort-sums", "--stage", "ir")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("add @out @s, @in %t, @in @z\n", done.stdout.decode())
        # A program with the pass runs with several shapes, and computes what it did.
        for n, m in ((2, 1), (24, 5), (64, 3)):
            shapes = "--shape", f"N={n}", "--shape", f"M={m}"
            run = "run", self.model, "--random", "1", *shapes
            self.assertEqual(self.kiln(*run, "--load-pass-plugin", OPEN, "--passes", "subtract-equals,sort-sums"),
                             self.kiln(*run, "--pipeline", "none"))

    def test_a_wrong_pass_is_caught(self):
        done = self.start("opt", self.model, "--load-pass-plugin", WRONG, "--passes", "drop-negations", "--check")
        self.assertEqual(done.returncode, MISMATCH)
        self.assertIn("it changed what @sums computes with N=24, M=64: ", done.stderr)


if __name__ == "__main__":
    main()
