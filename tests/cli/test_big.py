# SPDX-License-Identifier: Apache-2.0
"""A model with 1 GiB of external weights: kiln check neither reads nor copies them."""
import os
import pathlib
import subprocess
import sys
import time
import unittest

from harness import KILN, SOURCE, CliTest, main

FOLDER = pathlib.Path(os.environ["KILN_BIG_DIR"])
SECONDS, MEGABYTES = 0.1, 40


class Big(CliTest):
    @classmethod
    def setUpClass(cls):
        # Written once: making it takes longer than the test.
        if not (FOLDER / "model.onnx").exists():
            subprocess.run([sys.executable, SOURCE / "tests/models/make_big.py", FOLDER], check=True, stdout=subprocess.DEVNULL)

    def measure(self):
        """Seconds and peak MB of one kiln check."""
        start = time.monotonic()
        process = subprocess.Popen([KILN, "check", FOLDER / "model.onnx"], stdout=subprocess.PIPE)
        output = process.stdout.read()
        process.stdout.close()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        self.assertEqual(process.returncode, 0)
        self.assertIn(b"16 nodes, 0 not supported", output)
        return time.monotonic() - start, usage.ru_maxrss / 1024

    def test_check_is_fast_and_small(self):
        self.assertGreaterEqual((FOLDER / "weights.bin").stat().st_size, 1 << 30)
        measured = [self.measure() for _ in range(5)]
        print(f"{min(seconds for seconds, _ in measured):.4f} s, {max(size for _, size in measured):.1f} MB")
        self.assertLess(min(seconds for seconds, _ in measured), SECONDS)
        self.assertLess(max(size for _, size in measured), MEGABYTES)

    def test_graph_is_printed_without_reading_weights(self):
        """Constants are named by file, offset and size, however big."""
        text = self.kiln("opt", FOLDER / "model.onnx", "--pipeline", "none")
        self.assertEqual(text.count("file("), 16)
        self.assertLess(len(text), 10000)


if __name__ == "__main__":
    main()
