# SPDX-License-Identifier: Apache-2.0
"""kiln-bench-model (which KILN names here) beside busy processes."""
import json
import unittest

from harness import MODEL, USAGE, CliTest, main


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


if __name__ == "__main__":
    unittest.main()
