#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Session.run() with a dense input and `out` takes at most 5 us more than the call in C: medians of runs of the model `mlp`
beside the source tree, interleaved, the least difference of five rounds.

    check_overhead.py KILN_PYTHON_CALLS"""
import statistics
import subprocess
import sys
import time

from case import SHARED, kiln_nn, np, skip_all

MODEL = SHARED / "models/mlp/model.onnx"
RUNS, ROUNDS, LIMIT_US = 5000, 5, 5.0


def median_of_python():
    session = kiln_nn.load(MODEL).compile(threads=1).session()
    entry, result = session.program.inputs[0], session.program.outputs[0]
    feeds = {entry.name: np.zeros(entry.shape, np.float32)}
    out = {result.name: np.zeros(result.shape, np.float32)}
    times = []
    for _ in range(RUNS):
        start = time.perf_counter_ns()
        session.run(feeds, out=out)
        times.append(time.perf_counter_ns() - start)
    return statistics.median(times) / 1e3


def main(calls):
    if not MODEL.exists():
        skip_all(f"{MODEL} is absent")
    rounds = []
    for _ in range(ROUNDS):
        in_c = float(subprocess.run([calls, MODEL, str(RUNS)], capture_output=True, text=True, check=True).stdout)
        in_python = median_of_python()
        print(f"C {in_c:.2f} us, Python {in_python:.2f} us, {in_python - in_c:.2f} us more")
        rounds.append(in_python - in_c)
    if min(rounds) > LIMIT_US:
        print(f"expected at most {LIMIT_US} us more than in C, found {min(rounds):.2f}")
    return min(rounds) > LIMIT_US


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
