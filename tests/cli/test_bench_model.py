# SPDX-License-Identifier: Apache-2.0
"""kiln-bench-model (which KILN names here) beside busy processes, and over the extents of open dims."""
import json
import unittest

from harness import FAILED, MODEL, OPEN, USAGE, CliTest, main


class Load(CliTest):
    def test_compares_with_one_thread(self):
        printed = self.kiln("--load", "1", "--load-pin", "--rounds", "1", "--min-time", "0.05", "--threads", "2",
                            "--json", "load.json", MODEL)
        self.assertIn("1 busy processes on one processor, 1 rounds of 0.05 s", printed)
        written = json.loads((self.dir / "load.json").read_text(encoding="utf-8"))
        self.assertEqual(written["context"]["load"], 1)
        self.assertTrue(written["context"]["load_pinned"])
        self.assertEqual([entry["threads"] for entry in written["benchmarks"]], [1, 2])
        for entry in written["benchmarks"]:
            self.assertGreater(entry["runs_per_second"], 0)
            self.assertGreater(entry["p99_ms"], 0)

    def test_limits(self):
        for option, value in (("--load", "257"), ("--load", "-1"), ("--rounds", "0")):
            self.assertIn(f"{option}: expected", self.kiln_err(option, value, MODEL, status=USAGE))


class Layers(CliTest):
    def layers(self, model):
        """(kernel, microseconds, share) of each row; the head is the line before."""
        lines = self.kiln("--layers", "--threads", "1", "--min-time", "0.01", model).splitlines()
        head = next(i for i, line in enumerate(lines) if "GFLOP/s" in line)
        rows = [line.split() for line in lines[head + 1:] if len(line.split()) >= 6 and "in all instructions" not in line]
        return [(row[5], float(row[0]), float(row[1])) for row in rows]

    def test_every_instruction(self):
        rows = self.layers(MODEL)
        self.assertGreater(len(rows), 3)
        self.assertAlmostEqual(sum(share for _, _, share in rows), 100, delta=1)

    def test_inside_a_loop(self):
        model = self.write("loop.kiln", """graph @f(%x: f32[64,64]) {
  %n = const @n : i64[]
  %y = loop(%n, _, %x) body(%i: i64[], %go: bool[], %v: f32[64,64]) {
    %m = matmul(%v, %v) : f32[64,64]
    %s = tanh(%m) : f32[64,64]
    return %go, %s
  } : f32[64,64]
  return %y
}
constants {
  @n = [50] : i64[]
}
""")
        rows = self.layers(model)
        body = [row for row in rows if row[0].startswith("cpu:") and row[0] != "cpu:loop"]
        self.assertGreater(sum(share for _, _, share in body), 50)
        self.assertTrue(all(us > 0.1 for _, us, _ in body), rows)

    def test_branches_must_be_the_same(self):
        model = self.write("coin.kiln", """graph @f(%x: f32[8]) {
  %r = random_uniform() {low=0.0, high=1.0, shape=[1]} : f32[1]
  %h = const @h : f32[1]
  %c = less(%r, %h) : bool[1]
  %y = if(%c) then {
    %a = sin(%x) : f32[8]
    return %a
  } else {
    %b = exp(%x) : f32[8]
    %d = tanh(%b) : f32[8]
    return %d
  } : f32[8]
  return %y
}
constants {
  @h = [0.5] : f32[1]
}
""")
        self.assertRegex(self.kiln_err("--layers", "--threads", "1", "--min-time", "0.01", model, status=FAILED),
                         r"--layers: expected the same \d+ instructions in each run, found \d+: another branch was taken")


class Sweep(CliTest):
    def test_first_and_later_runs(self):
        model = self.write("open.kiln", OPEN)
        printed = self.kiln("--sweep", "N=1..9:4", "--min-time", "0.001", "--threads", "1", "--json", "sweep.json", model)
        self.assertRegex(printed, r"(?m)^open\.kiln: prepared in [\d.]+ ms$")
        rows = [line.split() for line in printed.splitlines() if line.startswith("open.kiln ")]
        self.assertEqual([row[1] for row in rows], ["1", "5", "9"])
        written = json.loads((self.dir / "sweep.json").read_text(encoding="utf-8"))
        self.assertEqual(written["context"]["sweep"], "N=1..9:4")
        self.assertEqual([entry["name"] for entry in written["benchmarks"]], [f"open.kiln/N:{extent}" for extent in (1, 5, 9)])
        for entry, extent in zip(written["benchmarks"], (1, 5, 9)):
            self.assertEqual((entry["extent"], entry["threads"]), (extent, 1))
            self.assertGreaterEqual(entry["iterations"], 5)
            self.assertGreater(entry["first_run_ms"], 0)
            self.assertAlmostEqual(entry["first_ratio"], entry["first_run_ms"] / entry["real_time"])
        whole = json.loads(self.kiln("--sweep", "N=2..3", "--min-time", "0.001", "--json", "-", model))
        self.assertEqual(len(whole["benchmarks"]), 2)

    def test_shapes(self):
        model = self.write("pair.kiln", "graph @f(%x: f32[N,M]) {\n  %y = exp(%x) : f32[N,M]\n  return %y\n}\n")
        printed = self.kiln("--shape", "x=4x8", "--min-time", "0.001", model)
        self.assertRegex(printed, r"(?m)^pair\.kiln ")
        self.kiln("--shape", "x=?x1..8", "--sweep", "M=7..8", "--shape-hint", "N=3", "--min-time", "0.001", model)
        self.assertIn("input x: dim M: expected 1..8, found 9",
                      self.kiln_err("--shape", "M=1..8", "--sweep", "M=8..9", "--min-time", "0.001", model, status=FAILED))
        self.assertIn("input x: its shape is open: give --shape or --sweep", self.kiln_err(model, status=FAILED))
        self.assertIn("--sweep: the model has no open dim Q", self.kiln_err("--sweep", "Q=1..2", model, status=FAILED))
        self.assertIn("--shape: expected one of the inputs x or of the open dims N, M, found q", self.kiln_err("--shape", "q=3", model, status=FAILED))

    def test_ranges(self):
        for text in ("N", "N=1", "N=1..", "=1..2", "N=3..2", "N=0..2", "N=1..2:0", "N=1..2:x"):
            self.assertIn(f"--sweep: expected DIM=1..512 or DIM=1..512:8, found {text}",
                          self.kiln_err("--sweep", text, MODEL, status=USAGE))
        self.assertIn("--sweep: expected no --load", self.kiln_err("--sweep", "N=1..2", "--load", "1", MODEL, status=USAGE))


if __name__ == "__main__":
    unittest.main()
