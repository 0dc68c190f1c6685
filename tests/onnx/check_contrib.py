#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares operators of com.microsoft, and those of ai.onnx.ml with maps, with ONNX Runtime's kernels for processors. Each case runs with the default pipeline
and with the reference kernels.

    check_contrib.py KILN [PREFIX]

PREFIX chooses cases. A Python that can import onnx and onnxruntime is needed. The first one of these that can is taken: the
one that KILN_ONNX_PYTHON names, those of build/onnx-venv and build/exports-venv, which `scripts/test --full` makes, and the
one that runs this. If none can, the exit status is 77."""
import importlib
import os
import pathlib
import subprocess
import sys
import tempfile

BUILD = pathlib.Path(__file__).resolve().parents[2] / "build"
PACKAGES = ("onnx", "onnxruntime")
FAMILIES = ("contrib_attention", "contrib_nchwc", "contrib_quantized", "contrib_others", "contrib_moe", "contrib_gates",
            "contrib_tokens", "contrib_items", "contrib_search", "contrib_pairs", "contrib_graphics")
WAYS = ((), ("--pipeline", "none", "--backend", "ref"))


def encoded(value, name):
    """The message of a dictionary or an array."""
    from onnx import MapProto, TensorProto, numpy_helper
    if not isinstance(value, dict):
        return numpy_helper.from_array(value, name).SerializeToString()
    texts = isinstance(next(iter(value)), str)
    message = MapProto(name=name, key_type=TensorProto.STRING if texts else TensorProto.INT64,
                       values=numpy_helper.from_list(list(value.values())))
    (message.string_keys if texts else message.keys).extend(key.encode() if texts else key for key in value)
    return message.SerializeToString()


def decoded(data, kind):
    """The value of type @kind in the message @data."""
    from onnx import MapProto, SequenceProto, TensorProto, numpy_helper
    if kind.HasField("sequence_type"):
        return numpy_helper.to_list(SequenceProto.FromString(data))
    if kind.HasField("map_type"):
        return numpy_helper.to_dict(MapProto.FromString(data))
    return numpy_helper.to_array(TensorProto.FromString(data))


def results_of(kiln, case, folder, way):
    model, out = folder / "model.onnx", folder / "out"
    model.write_bytes(case.model.SerializeToString())
    command = [kiln, "run", str(model), "--quiet", "-o", str(out), *way]
    for name, array in case.feeds.items():
        (folder / f"{name}.pb").write_bytes(encoded(array, name))
        command += ["-i", f"{name}={folder / name}.pb"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.strip())
    return [decoded((out / f"output_{i}.pb").read_bytes(), info.type) for i, info in enumerate(case.model.graph.output)]


def difference(case, i, found, expected):
    """What is wrong with result @i, or None."""
    import numpy as np
    if isinstance(expected, list):
        lengths = len(found) != len(expected) and f"expected {len(expected)} items, found {len(found)}"
        return lengths or next(filter(None, (difference(case, i, *pair) for pair in zip(found, expected))), None)
    if isinstance(expected, dict):
        found = {key.decode() if isinstance(key, bytes) else key: value for key, value in found.items()}
        if found.keys() != expected.keys():
            return f"expected keys {list(expected)}, found {list(found)}"
        return difference(case, i, np.array([found[key] for key in expected], np.float32), np.array(list(expected.values()), np.float32))
    if expected.dtype.kind in "OU":
        texts = [[text.decode() if isinstance(text, bytes) else text for text in array.ravel()] for array in (found, expected)]
        same = found.shape == expected.shape and texts[0] == texts[1]
        return None if same else f"expected {expected.shape} {texts[1]}, found {found.shape} {texts[0]}"
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


def why_not(python):
    """Why @python cannot run the cases, or an empty text. A folder that is called onnx can be imported, but is empty."""
    code = f"import {', '.join(PACKAGES)}; onnx.TensorProto, onnxruntime.InferenceSession"
    try:
        result = subprocess.run([python, "-B", "-c", code], capture_output=True, text=True, check=False)
    except OSError as error:
        return error.strerror
    return result.stderr.strip().splitlines()[-1] if result.returncode else ""


def find_python():
    """A Python that can run the cases, or None. Also the reasons why others cannot."""
    named = os.environ.get("KILN_ONNX_PYTHON")
    venvs = [str(BUILD / venv / "bin/python") for venv in ("onnx-venv", "exports-venv")]
    others = [] if named == "" else [named, *filter(os.path.exists, venvs)]  # empty: this Python was chosen
    reasons = []
    for python in filter(None, (*others, sys.executable)):
        reason = why_not(python)
        if not reason:
            return python, reasons
        reasons.append(f"{python}: {reason}")
    return None, reasons


def main():
    python, reasons = find_python()
    if not python:
        print(f"SKIP: no Python can import {' and '.join(PACKAGES)}: {'; '.join(reasons)}")
        return 77
    if python != sys.executable:
        environment = {**os.environ, "KILN_ONNX_PYTHON": ""}
        return subprocess.run([python, "-B", *sys.argv], env=environment, check=False).returncode
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
