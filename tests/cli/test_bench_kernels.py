# SPDX-License-Identifier: Apache-2.0
"""kiln-bench-kernels (which KILN names here): cases, what is measured of them, what is wrong with them."""
import json
import unittest

from harness import FAILED, OK, SOURCE, USAGE, CliTest, main

ADD = "add @out @y: f32[2,300], @in @a: f32[2,300], @in @b: f32[300] const"
SILU = "stack @out @y: f32[4,33], @in @x: f32[4,33] { t0: sigmoid(@x); mul(@x, t0) -> @y }"


class Kernels(CliTest):
    def measure(self, *arguments, status=OK):
        return json.loads(self.kiln("--min-time", "0.001", "--json", "-", *arguments, status=status))

    def test_cases(self):
        path = self.write("some.cases", f"# two of them\n\n{ADD}  # with a bias\nhand=silu {SILU}\n")
        report = self.measure(path)
        self.assertEqual([entry["name"] for entry in report["benchmarks"]], [ADD, SILU])
        self.assertGreater(report["context"]["fma_peak_gflops"], 0)
        add, silu = report["benchmarks"]
        self.assertEqual((add["label"], add["flops"], add["bytes"]), ("cpu:binary", 600, 4 * 1500))
        self.assertEqual(add["time_unit"], "ms")
        for entry in (add, silu):
            for key in ("real_time", "min_ms", "ref_ms", "limit_ms", "limit_share", "bytes_per_second"):
                self.assertGreater(entry[key], 0, key)
        self.assertNotIn("hand_ratio", add)
        self.assertGreater(silu["hand_ratio"], 0)

    def test_table(self):
        lines = self.kiln("--min-time", "0.001", "--case", ADD, "--case", SILU, "--filter", "sigmoid").splitlines()
        self.assertEqual(lines[1].split(), ["us", "min", "GFLOP/s", "GB/s", "limit%", "/hand", "ref/cpu", "case"])
        self.assertEqual(len(lines), 3)
        self.assertTrue(lines[2].endswith(SILU))

    def test_threads(self):
        entry = self.measure("--threads", "2", "--case", f"hand=silu {SILU}")["benchmarks"][0]
        self.assertEqual(entry["threads"], 2)
        self.assertNotIn("hand_ratio", entry)  # the loop has one

    def refused(self, *arguments, status=USAGE):
        result = self.start(*arguments)
        self.assertEqual(result.returncode, status, result.stderr)
        return result.stderr

    def test_bad_cases(self):
        for line, message in (
            ("add @out @y, @in @a: f32[2], @in @b: f32[2]", "@y: expected a type behind the operand's name"),
            ("neg @out @y: f32[2], @in @a: f32[3]", "f32[3]"),
            ("nod @out @y: f32[2], @in @a: f32[2]", "nod"),
            ("neg @out @y: f32[2], @in @a: f33[2]", "f33"),
        ):
            path = self.write("bad.cases", f"{ADD}\n{line}\n")
            self.assertIn(f"{path}:2: ", self.refused(path))
            self.assertIn(message, self.refused("--case", line))

    def test_bad_loops(self):
        message = self.refused("--case", f"hand=none {SILU}", status=FAILED)
        self.assertIn("hand=none: there is no such loop", message)
        message = self.refused("--case", f"hand=add_relu {SILU}", status=FAILED)
        self.assertIn("hand=add_relu: expected 2 inputs, found 1", message)
        message = self.refused("--case", f"hand=silu {SILU.replace('sigmoid', 'tanh')}", status=FAILED)
        self.assertIn("hand=silu: other bits than those of the kernel", message)

    def test_usage(self):
        self.assertIn("expected a file of cases", self.refused())
        self.assertIn("expected 1 to 1024", self.refused("--threads", "0", "--case", SILU))
        self.assertIn("none.cases", self.refused("none.cases"))


class Shipped(CliTest):
    """Every case that ships is measured, with its loop where it names one."""

    def test_shipped(self):
        files = sorted((SOURCE / "bench/cases").glob("*.cases"))
        report = json.loads(self.kiln("--min-time", "0", "--no-ref", "--json", "-", *files))
        lines = [line for file in files for line in file.read_text().splitlines() if line and line[0] != "#"]
        self.assertEqual(len(report["benchmarks"]), len(lines))
        hands = [entry for entry in report["benchmarks"] if "hand_ratio" in entry]
        self.assertEqual(len(hands), sum(line.startswith("hand=") for line in lines))


if __name__ == "__main__":
    main()
