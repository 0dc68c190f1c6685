#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Exports cases of ONNX's backend suite by `kiln opt --emit onnx`; what was written must give the outputs of the case, and
where python3-onnx is installed and knows the opset, pass its checker.

    check_export.py KILN [STEP]     every STEP-th case (default 7)
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

CORPUS = pathlib.Path("/usr/share/libonnx-testdata/data")
try:
    import onnx
    import onnx.checker  # a folder called onnx on the path is a package too, and has no checker
except ImportError:
    onnx = None


def export(kiln, case, target):
    """What is not supported (exit status 1 or 3 with a message) is no failure here: kiln verify skips it as well."""
    target.mkdir(parents=True)
    os.symlink(case / "test_data_set_0", target / "test_data_set_0")
    model = target / "model.onnx"
    command = [kiln, "opt", case / "model.onnx", "--quiet", "--emit", "onnx", "-o", model]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode not in (0, 1, 3):
        sys.exit(f"{case}: exit status {result.returncode}: {result.stderr}")
    return model if model.exists() else None


def checked(model):
    """False where the checker does not know the opset."""
    loaded = onnx.load(str(model))
    if loaded.opset_import[0].version > onnx.defs.onnx_opset_version():
        return False
    onnx.checker.check_model(loaded, full_check=True)
    return True


def main():
    kiln, step = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 7
    if not CORPUS.is_dir():
        print(f"SKIP: {CORPUS} is not there (apt install libonnx-testdata)")
        return 77
    cases = [path.parent for path in sorted(CORPUS.glob("*/*/model.onnx"))][::step]
    with tempfile.TemporaryDirectory() as directory:
        root = pathlib.Path(directory)
        models = [export(kiln, case, root / case.parent.name / case.name) for case in cases]
        models = [model for model in models if model]
        understood = sum(checked(model) for model in models) if onnx else 0
        result = subprocess.run([kiln, "verify", "--json", root], capture_output=True, text=True, check=False)
        verified = json.loads(result.stdout)
    for case in verified["cases"]:
        if case["status"] == "fail":
            print(f"FAIL {case['name']}: {case['reason']}")
    print(f"{len(models)} of {len(cases)} exported, {understood} passed ONNX's checker; run: {verified['passed']} passed, "
          f"{verified['failed']} failed")
    few = len(models) < len(cases) * 3 // 4 or verified["passed"] < len(cases) * 3 // 4
    return 1 if verified["failed"] or few else 0


if __name__ == "__main__":
    sys.exit(main())
