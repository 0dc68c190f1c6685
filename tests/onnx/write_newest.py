#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the backend suite of PyPI's package onnx into folders that `kiln verify` reads: DIR/SUITE/CASE/model.onnx with
test_data_set_0/input_0.pb and so on. The package makes the node cases while it is imported, and stores the others.

    write_newest.py DIR

A Python that has onnx of the version VERSION is needed: that of KILN_ONNX_PYTHON, that of build/onnx-venv, which
`scripts/test --full` makes, or the one that runs this. If none has it, the exit status is 77."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import warnings

VERSION = "1.23.2"
RTOL, ATOL = 1e-3, 1e-7  # of a case without a data.json
VENV = pathlib.Path(__file__).resolve().parents[2] / "build/onnx-venv/bin/python"


def write_value(path, value, info):
    """One input or output. Sequences, optionals and maps have messages of their own."""
    from onnx import TensorProto, numpy_helper
    writers = {"sequence_type": numpy_helper.from_list, "optional_type": numpy_helper.from_optional,
               "map_type": numpy_helper.from_dict}
    write = writers.get(info.type.WhichOneof("value"), numpy_helper.from_array)
    message = value if isinstance(value, TensorProto) else write(value, info.name)
    path.write_bytes(message.SerializeToString(deterministic=True))


def write_tolerance(folder, case):
    if (case.rtol, case.atol) != (RTOL, ATOL):
        (folder / "data.json").write_text(json.dumps({"rtol": case.rtol, "atol": case.atol}), encoding="utf-8")


def write_made(folder, case):
    """A case whose model and data were made in memory."""
    (folder / "model.onnx").write_bytes(case.model.SerializeToString(deterministic=True))
    for number, (inputs, outputs) in enumerate(case.data_sets):
        data = folder / f"test_data_set_{number}"
        data.mkdir()
        for kind, values, infos in (("input", inputs, case.model.graph.input), ("output", outputs, case.model.graph.output)):
            for i, (value, info) in enumerate(zip(values, infos)):
                write_value(data / f"{kind}_{i}.pb", value, info)


def write_light(folder, case, stored):
    """A network without weights of its own. Its input counts up from 0 to 1, as the package's runner has it."""
    import numpy
    import onnx
    name = f"light_{case.model_name}"
    shutil.copyfile(stored / f"{name}.onnx", folder / "model.onnx")
    data = folder / "test_data_set_0"
    data.mkdir()
    graph = onnx.load(stored / f"{name}.onnx").graph
    weights = {weight.name for weight in graph.initializer}
    for i, info in enumerate(info for info in graph.input if info.name not in weights):
        shape = [dim.dim_value or 1 for dim in info.type.tensor_type.shape.dim]
        size = int(numpy.prod(shape))
        write_value(data / f"input_{i}.pb", (numpy.arange(size).reshape(shape) / size).astype(numpy.float32), info)
    for i in range(len(graph.output)):
        shutil.copyfile(stored / f"{name}_output_{i}.pb", data / f"output_{i}.pb")


def write_stored(folder, case):
    """A case whose files lie in the package."""
    shutil.copytree(case.model_dir, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("data.json"))


def collect():
    """All cases of the package."""
    from onnx.backend.test.case import model
    from onnx.backend.test.loader import load_model_tests
    cases = [*load_model_tests(kind="node"), *model.collect_testcases()]
    for kind in ("pytorch-operator", "pytorch-converted"):
        cases += load_model_tests(kind=kind)
    return cases


def write(target):
    """Writes all cases below @target, and returns their number."""
    from onnx.backend.test import loader
    warnings.simplefilter("ignore")  # the package computes overflows on purpose
    stored = pathlib.Path(loader.DATA_DIR) / "light"
    cases = collect()
    for case in cases:
        folder = target / ("light" if case.kind == "real" else case.kind) / case.name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        write_tolerance(folder, case)
        if case.kind == "real":
            write_light(folder, case, stored)
        elif case.model_dir:
            write_stored(folder, case)
        else:
            write_made(folder, case)
    return len(cases)


def found_version(python):
    """The version of onnx that @python has; an empty text if it has none."""
    try:
        result = subprocess.run([python, "-c", "import onnx; print(onnx.__version__)"], capture_output=True, text=True,
                                check=False)
    except OSError:
        return ""
    return result.stdout.strip()


def main():
    target = pathlib.Path(sys.argv[1])
    stamp = target / "version.txt"
    if stamp.exists() and stamp.read_text(encoding="utf-8").split() == [VERSION]:
        return 0
    for python in filter(None, (os.environ.get("KILN_ONNX_PYTHON"), str(VENV), sys.executable)):
        if found_version(python) != VERSION:
            continue
        if python != sys.executable:
            environment = {**os.environ, "KILN_ONNX_PYTHON": ""}
            return subprocess.run([python, "-B", __file__, str(target)], env=environment, check=False).returncode
        print(f"{write(target)} cases")
        stamp.write_text(f"{VERSION}\n", encoding="utf-8")
        return 0
    print(f"SKIP: no Python with onnx {VERSION} is there (python3 -m venv build/onnx-venv && "
          f"build/onnx-venv/bin/pip install onnx=={VERSION})")
    return 77


if __name__ == "__main__":
    sys.exit(main())
