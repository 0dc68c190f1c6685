#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_big.py MEASURE KILN: a model with 1 GiB of external weights, written to a temporary folder.

`kiln check` neither reads nor copies the weights: with a warm page cache it takes less than 0.1 s and
40 MB. `kiln run` holds every weight once, packed or as the file's pages: a layer at a time is there
twice. Time is the best of a few runs, since other work on the machine only adds; memory the worst.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

RUNS = 5
WEIGHTS = 1 << 30
LAYER = WEIGHTS // 16
MAX_SECONDS = 0.1
MAX_BYTES = 40 * 10**6


def warm(path):
    with open(path, "rb", buffering=0) as file:
        while file.read(1 << 24):
            pass


def measured(measure, expected, *command):
    """Seconds and peak bytes of one run, which must print what is expected."""
    done = subprocess.run([measure, *command], stdout=subprocess.PIPE, text=True)
    if done.returncode != 0 or expected not in done.stdout:
        sys.exit(f"{' '.join(command)}: expected exit status 0 and '{expected}', "
                 f"found {done.returncode} and '{done.stdout}'")
    seconds, peak = done.stdout.splitlines()[-1].split()
    return float(seconds), int(peak)


def main():
    measure, kiln = sys.argv[1:]
    with tempfile.TemporaryDirectory(prefix="kiln-big-") as folder:
        make = Path(__file__).with_name("make_big.py")
        subprocess.run([sys.executable, make, folder], check=True)
        weights = os.path.join(folder, "weights.bin")
        if os.stat(weights).st_blocks * 512 < 10**9:
            sys.exit("weights.bin: expected 1 GiB on disk, found a hole")
        warm(weights)
        model = os.path.join(folder, "model.onnx")
        checks = [measured(measure, "16 nodes, 0 not supported", kiln, "check", model)
                  for _ in range(RUNS)]
        _, run_peak = measured(measure, "f32[1,4096]", kiln, "run", model, "--random", "1")
    seconds = min(seconds for seconds, _ in checks)
    peak = max(peak for _, peak in checks)
    print(f"kiln check: {seconds:.4f} s, {peak / 1e6:.1f} MB at most; kiln run: {run_peak / 1e6:.0f} MB")
    if seconds >= MAX_SECONDS or peak >= MAX_BYTES:
        sys.exit(f"kiln check: expected less than {MAX_SECONDS} s and {MAX_BYTES / 1e6:.0f} MB")
    if run_peak >= WEIGHTS + LAYER + MAX_BYTES:
        sys.exit(f"kiln run: expected less than {(WEIGHTS + LAYER + MAX_BYTES) / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
