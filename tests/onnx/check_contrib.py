#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares operators of com.microsoft with ONNX Runtime's kernels for processors. Each case runs with the default pipeline
and with the reference kernels.

    check_contrib.py KILN [PREFIX]

PREFIX chooses cases. A Python that has onnx and onnxruntime is needed: that of KILN_ONNX_PYTHON, or the one that runs this.
If it has none, the exit status is 77."""
import importlib
import os
import pathlib
import subprocess
import sys
import tempfile

FAMILIES = ("contrib_attention", "contrib_nchwc", "contrib_quantized", "contrib_others", "contrib_moe")
WAYS = ((), ("--pipeline", "none", "--backend", "ref"))


def results_of(kiln, case, folder, way):
    from onnx import TensorProto, numpy_helper
    model, out = folder / "model.onnx", folder / "out"
    model.write_bytes(case.model.SerializeToString())
    command = [kiln, "run", str(model), "--quiet", "-o", str(out), *way]
    for name, array in case.feeds.items():
        (folder / f"{name}.pb").write_bytes(numpy_helper.from_array(array, name).SerializeToString())
        command += ["-i", f"{name}={folder / name}.pb"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.strip())
    found = [TensorProto.FromString((out / f"output_{i}.pb").read_bytes()) for i in range(len(case.model.graph.output))]
    return [numpy_helper.to_array(tensor) for tensor in found]


def difference(case, i, found, expected):
    """What is wrong with result @i, or None."""
    import numpy as np
    if (found.shape, found.dtype) != (expected.shape, expected.dtype):
        return f"expected {expected.dtype}{list(expected.shape)}, found {found.dtype}{list(found.shape)}"
    a, b = found.astype(np.float64), expected.astype(np.float64)
    with np.errstate(invalid="ignore"):
        error = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0, np.abs(a - b))
    allowed = case.steps if expected.dtype.kind in "iu" else case.atol + case.rtol * np.abs(b)
    wrong = ~((error <= allowed) | (error == 0))
    if i in case.defined:
        wrong &= np.broadcast_to(case.defined[i], wrong.shape)
    return f"{wrong.sum()} of {wrong.size} elements differ, by {error[wrong].max():g}" if wrong.any() else None


def refused(kiln, case):
    """The messages of @case, a run of which must fail."""
    messages = []
    try:
        case.run(case.model, case.feeds)
        messages.append("ONNX Runtime: expected an error, found none")
    except Exception:  # it has several kinds
        pass
    for way in WAYS:
        with tempfile.TemporaryDirectory() as folder:
            try:
                results_of(kiln, case, pathlib.Path(folder), way)
                messages.append(f"{' '.join(way)}: expected an error, found none")
            except RuntimeError as error:
                if case.fails not in str(error):
                    messages.append(f"{' '.join(way)}: expected '{case.fails}', found {error}")
    return messages


def check(kiln, case):
    """The messages of @case."""
    if case.fails:
        return refused(kiln, case)
    messages = []
    try:
        expected = case.expected or case.run(case.model, case.feeds)
    except Exception as error:  # ONNX Runtime has several
        return [f"ONNX Runtime: {error}"]
    for way in WAYS:
        with tempfile.TemporaryDirectory() as folder:
            try:
                found = results_of(kiln, case, pathlib.Path(folder), way)
            except RuntimeError as error:
                messages.append(f"{' '.join(way)}: {error}")
                continue
        for i, pair in enumerate(zip(found, expected)):
            text = difference(case, i, *pair)
            messages += [f"{' '.join(way)}: result {i}: {text}"] if text else []
    return messages


def main():
    python = os.environ.get("KILN_ONNX_PYTHON")
    if python and os.path.realpath(python) != os.path.realpath(sys.executable):
        os.environ.pop("KILN_ONNX_PYTHON")
        return subprocess.run([python, "-B", *sys.argv], check=False).returncode
    try:
        importlib.import_module("onnx")
        importlib.import_module("onnxruntime")
    except ImportError:
        print("SKIP: this Python lacks onnx or onnxruntime")
        return 77
    sys.path.insert(0, str(pathlib.Path(__file__).parent))
    cases = [case for family in FAMILIES for case in importlib.import_module(family).cases()]
    if len(sys.argv) > 2:
        cases = [case for case in cases if case.label.startswith(sys.argv[2])]
    failed = 0
    for case in cases:
        messages = check(sys.argv[1], case)
        failed += bool(messages)
        for message in messages:
            print(f"FAIL {case.label}: {message}")
    print(f"{len(cases)} cases, {failed} failed")
    return 1 if failed or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
