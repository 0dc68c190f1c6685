#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles every case of ONNX's backend suite that passes to a program file, and verifies that in place of the model. Cases
whose shapes depend on values of the inputs cannot be saved: they are counted.

    check_programs.py KILN [ARGUMENTS OF KILN compile…]
"""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

from check_passing import DEBIAN as CORPUS, HERE

OPEN = "cannot be saved: "
# A file takes dims of 0 only where that was said.
SHAPES = {"simple/test_sequence_model8": ["--shape", "X=0..100"]}


def compile_case(kiln, arguments, name, target):
    """Makes the folder of the case; False where its shapes are open."""
    command = [kiln, "compile", *arguments, *SHAPES.get(name, []), str(CORPUS / name / "model.onnx"),
               "-o", str(target / "model.kiln-program")]
    target.mkdir(parents=True)
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0 and OPEN in result.stderr:
        shutil.rmtree(target)
        return False
    if result.returncode != 0:
        sys.exit(f"{name}: exit status {result.returncode}: {result.stderr}")
    for entry in (CORPUS / name).iterdir():
        if entry.name != "model.onnx":
            (target / entry.name).symlink_to(entry)
    return True


def main():
    kiln, *arguments = sys.argv[1:]
    if not CORPUS.is_dir():
        print(f"SKIP: {CORPUS} is not there (apt install libonnx-testdata)")
        return 77
    names = (HERE / "passing.txt").read_text(encoding="utf-8").split()
    with tempfile.TemporaryDirectory(prefix="kiln-programs-") as folder:
        compiled = sum(compile_case(kiln, arguments, name, pathlib.Path(folder) / name.replace("/", "-")) for name in names)
        result = subprocess.run([kiln, "verify", "--json", folder], capture_output=True, text=True, check=False)
        report = json.loads(result.stdout)
    for case in report["cases"]:
        if case["status"] != "pass":
            print(f"{case['name']}: {case['status']}: {case['reason']}")
    print(f"{report['passed']} of {compiled} programs pass; {len(names) - compiled} cases have open shapes")
    return 0 if report["passed"] == compiled > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
