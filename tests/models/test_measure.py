# SPDX-License-Identifier: Apache-2.0
"""test_measure.py MEASURE: figures are printed of what ran to its end, and of nothing else."""
import os
import re
import signal
import subprocess
import sys
import tempfile
import unittest

MEASURE = sys.argv.pop(1)


class Measure(unittest.TestCase):
    def measure(self, *words):
        done = subprocess.run([MEASURE, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
        return done.returncode, done.stdout, done.stderr

    def test_a_command(self):
        for dashes in [], ["--"]:
            status, out, err = self.measure(*dashes, "sh", "-c", "sleep 0.2; echo said; exit 3")
            self.assertEqual((status, err), (3, ""))
            match = re.fullmatch(r"said\n(\d+\.\d{6}) (\d+)\n", out)
            self.assertTrue(match, out)
            self.assertGreaterEqual(float(match[1]), 0.2)
            self.assertGreater(int(match[2]), 1 << 16)  # a shell has pages

    def test_help(self):
        for word in "--help", "-h":
            status, out, err = self.measure(word)
            self.assertEqual((status, err), (0, ""))
            self.assertTrue(out.startswith("usage: kiln-measure "), out)
            self.assertNotRegex(out, r"\d\.\d")

    def test_wrong_usage(self):
        for words, what in ([], "expected a command"), (["--"], "expected a command"), (["--fast", "true"],
                                                                                        "unknown option --fast"):
            status, out, err = self.measure(*words)
            self.assertEqual((status, out), (2, ""))
            self.assertTrue(err.startswith(f"kiln-measure: {what}\nusage: "), err)

    def test_commands_that_cannot_run(self):
        with tempfile.NamedTemporaryFile() as file:
            os.chmod(file.name, 0o644)
            for command, status, why in (file.name, 126, "Permission denied"), (file.name + ".none", 127, "No such file"):
                found, out, err = self.measure(command)
                self.assertEqual((found, out), (status, ""))
                self.assertIn(f"kiln-measure: cannot run {command}: {why}", err)

    def test_a_signal(self):
        status, out, err = self.measure("sh", "-c", "kill -TERM $$")
        self.assertEqual((status, out), (128 + signal.SIGTERM, ""))
        self.assertIn(f"signal {int(signal.SIGTERM)} ended sh", err)


if __name__ == "__main__":
    unittest.main()
