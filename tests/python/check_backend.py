#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ONNX's own runner of backend tests, on kiln_nn.backend: each case that `kiln verify` passes must pass here, too.

The list is tests/onnx/passing_newest.txt. Cases of tests/onnx/suspect.txt, whose expected data is wrong, are left out. A Python
with onnx of the right version, numpy and ml_dtypes is needed: see tests/onnx/write_newest.py. Without one, the status is 77."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
SKIPPED = 77
VERSION = re.search(r'^VERSION = "(.*)"$', (SOURCE / "tests/onnx/write_newest.py").read_text(encoding="utf-8"), re.M).group(1)
VENV = SOURCE / "build/onnx-venv/bin/python"
# Cases that the runner cannot give to a backend, with the reason.
LEFT_OUT = {f"test_mod_fmod_0_signed_zero_{dtype}": "the runner reads simple models from files, and the package has none of it"
            for dtype in ("float16", "float32", "float64")}
LEFT_OUT["test_loop16_seq_none"] = "the runner asks a tensor of the sequence for its length, and it is a scalar"


def python_with_onnx():
    look = f"import onnx, numpy, ml_dtypes; assert onnx.__version__ == '{VERSION}'"
    for python in filter(None, (os.environ.get("KILN_ONNX_PYTHON"), VENV, sys.executable)):
        if pathlib.Path(python).exists() and subprocess.run([python, "-B", "-c", look], capture_output=True).returncode == 0:
            return python
    return None


def lines_of(path):
    return [line for line in path.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]


def run_cases():
    import onnx.backend.test
    import kiln_nn.backend
    # The light models get a folder of data beside a copy of the package's.
    os.environ["ONNX_HOME"] = tempfile.mkdtemp()
    test = onnx.backend.test.BackendTest(kiln_nn.backend, __name__)
    suite = unittest.TestSuite()
    for case in test.test_cases.values():
        suite.addTests(unittest.defaultTestLoader.loadTestsFromTestCase(case))
    return unittest.TextTestRunner(verbosity=0, resultclass=Results, stream=open(os.devnull, "w", encoding="utf-8")).run(suite)


def check_functions():
    """Each function of the interface, as a program calls it."""
    import numpy as np
    import onnx
    from onnx.backend.base import Backend, BackendRep
    import kiln_nn
    from kiln_nn import backend
    model = onnx.load(SOURCE / "examples/digits/digits.onnx")
    picture = np.zeros((1, 1, 28, 28), np.float32)
    assert issubclass(backend.KilnBackend, Backend) and backend.is_compatible(model)
    assert backend.supports_device("CPU") and not backend.supports_device("CUDA:0")
    rep = backend.prepare(model, "CPU", pipeline="none")
    assert isinstance(rep, BackendRep)
    for results in (rep.run([picture]), rep.run({"image": picture}), backend.run_model(model, [picture])):
        assert results.probabilities.shape == (1, 10)
    total, = backend.run_node(onnx.helper.make_node("Add", ["a", "b"], ["c"]), [np.float32([1, 2]), np.float32([3, 4])])
    assert total.tolist() == [4, 6]
    strange = onnx.helper.make_node("Frobnicate", ["a"], ["b"], domain="com.example")
    info = onnx.helper.make_tensor_value_info("a", 1, [1]), onnx.helper.make_tensor_value_info("b", 1, [1])
    graph = onnx.helper.make_graph([strange], "strange", info[:1], info[1:])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("com.example", 1)])
    assert not backend.is_compatible(model)
    for call, kind in ((lambda: backend.prepare(model), kiln_nn.UnsupportedError),
                       (lambda: backend.prepare(model, "CUDA"), ValueError)):
        try:
            call()
        except kind:
            continue
        raise AssertionError(f"expected {kind}")


class Results(unittest.TextTestResult):
    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.passed = set()

    def addSuccess(self, test):
        super().addSuccess(test)
        self.passed.add(test.id().rsplit(".", 1)[-1].removesuffix("_cpu"))


def main():
    expected = {line.rsplit("/", 1)[-1] for line in lines_of(SOURCE / "tests/onnx/passing_newest.txt")}
    suspect = {line.split(":")[0] for line in lines_of(SOURCE / "tests/onnx/suspect.txt")}
    check_functions()
    results = run_cases()
    failed = {test.id().rsplit(".", 1)[-1].removesuffix("_cpu"): text.strip().splitlines()[-1]
              for test, text in results.failures + results.errors}
    missing = sorted(expected - results.passed - set(LEFT_OUT))
    for name in missing:
        print(f"{name}: expected a pass as by `kiln verify`, found {failed.get(name, 'a skipped case')}")
    wrong = sorted(name for name in failed if name not in suspect and name not in missing and name not in LEFT_OUT)
    for name in wrong:
        print(f"{name}: {failed[name]}")
    print(f"{len(results.passed)} passed, {len(missing) + len(wrong)} failed, {len(results.skipped)} skipped")
    return bool(missing or wrong)


if __name__ == "__main__":
    if "--inside" in sys.argv:
        sys.exit(main())
    python = python_with_onnx()
    if not python:
        print(f"skipped: no Python with onnx {VERSION}, numpy and ml_dtypes")
        sys.exit(SKIPPED)
    sys.exit(subprocess.run([python, "-B", "-W", "ignore::RuntimeWarning", __file__, "--inside"], check=False).returncode)
