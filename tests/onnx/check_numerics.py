#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs `kiln opt --check` on every model of ONNX's backend suite and on the models beside the source tree: each pass of
the default graph pipeline keeps to its numerics class on seeded random inputs.

    check_numerics.py KILN [SHARED_DIR]

What random inputs cannot run (texts, axes that must fit, operators without kernel) is verified and counted apart. So is a
model with open dims that takes no drawn numbers: lengths that must add up to one of them."""
import pathlib
import subprocess
import sys

CORPUS = pathlib.Path("/usr/share/libonnx-testdata/data")
SUITES = ("node", "simple", "pytorch-operator", "pytorch-converted")
COMPARED_MIN = 800
NO_NUMBERS = "cannot be checked: expected numbers of open dims that it takes"


def main():
    kiln = sys.argv[1]
    if not CORPUS.is_dir():
        print(f"SKIP: {CORPUS} is not there (apt install libonnx-testdata)")
        return 77
    models = [model for suite in SUITES for model in sorted((CORPUS / suite).glob("*/model.onnx"))]
    if len(sys.argv) > 2:
        models += sorted((pathlib.Path(sys.argv[2]) / "models").glob("*/model.onnx"))
    failed = compared = 0
    for model in models:
        command = [kiln, "opt", "--check", "--stage", "graph", "-o", "/dev/null", str(model)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        refused = NO_NUMBERS in done.stderr
        compared += "not compared" not in done.stderr and not refused
        if done.returncode and not refused:
            print(f"FAIL {model.parent.name}: exit status {done.returncode}: {done.stderr.strip()}")
            failed += 1
    print(f"{len(models)} models, {failed} failed; {compared} compared")
    return 1 if failed or compared < COMPARED_MIN else 0


if __name__ == "__main__":
    sys.exit(main())
