#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Exports the models of models.py, and compares `kiln run` with onnxruntime, whose optimizations are off. Kiln runs each
model with the default pipeline, without passes, and on the reference kernels. Boxes are compared as a set.

    check_exports.py KILN DIR [NAME…]

DIR keeps the exported models. A Python with the packages of requirements.txt is needed. The first one of these that has them is
taken: the one that KILN_EXPORTS_PYTHON names, that of build/exports-venv, which `scripts/test --full` makes, and the one
that runs this. If none has them, the exit status is 77."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
VERSIONS = dict(re.findall(r"^([\w-]+)==([\w.]+)$", (HERE / "requirements.txt").read_text(encoding="utf-8"), re.M))
VENV = HERE.parents[1] / "build/exports-venv/bin/python"
WAYS = {"default": (), "none": ("--pipeline", "none"), "ref": ("--backend", "ref")}
SLOW_ON_REF = {"ssd300", "retinanet", "fcos", "maskrcnn", "keypointrcnn"}  # some minutes each
GAP = 1e-4        # scores that are nearer to each other may change places
TOLERANCE = 2e-3  # of the largest element of an output
LEAST_BOXES = 8   # of a detector, which keeps up to 24


def found_versions(python):
    """The version of each package of VERSIONS that @python has."""
    code = ("import json, sys\nfrom importlib.metadata import PackageNotFoundError, version\nfound = {}\n"
            "for name in sys.argv[1:]:\n    try:\n        found[name] = version(name).split('+')[0]\n"
            "    except PackageNotFoundError:\n        pass\nprint(json.dumps(found))")
    try:
        result = subprocess.run([python, "-c", code, *VERSIONS], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return {}
    return json.loads(result.stdout)


def is_near(a, b, scale):
    import numpy as np
    return bool(np.all(np.abs(a.astype(np.float64) - b) <= TOLERANCE * scale))


def compare_plain(wanted, found):
    """What differs, or an empty text. If there is nothing to compare, the text says so."""
    import numpy as np
    if not any(a.size for a in wanted):
        return "nothing was compared: there are no elements"
    for i, (a, b) in enumerate(zip(wanted, found)):
        if a.shape != b.shape or a.dtype != b.dtype:
            return f"output {i}: expected {a.dtype}{a.shape}, found {b.dtype}{b.shape}"
        if a.dtype.kind != "f" and not np.array_equal(a, b):
            return f"output {i}: {np.count_nonzero(a != b)} integers of {a.size} differ"
        if a.dtype.kind == "f" and not is_near(a, b, max(1, np.abs(a).max(initial=0))):
            return f"output {i}: the largest difference is {np.abs(a - b).max()}"
    return ""


def rows_of(names, outputs):
    """One row for each box: corners, score, label, and the elements of its other outputs."""
    import numpy as np
    if names == ["output0"]:
        return outputs[0].reshape(-1, outputs[0].shape[-1])
    values = dict(zip(names, outputs))
    first = [values[name].reshape(len(values["boxes"]), -1).astype(np.float32) for name in ("boxes", "scores", "labels")]
    # Two places of a keypoint may be equally good. Its score does not depend on which one is chosen.
    others = [values[name].reshape(len(values["boxes"]), -1) for name in names
              if name not in ("boxes", "scores", "labels", "keypoints")]
    return np.concatenate(first + others, 1)


def compare_boxes(names, wanted, found):
    import numpy as np
    n_boxes = len(wanted[names.index("boxes")]) if "boxes" in names else wanted[0].size // wanted[0].shape[-1]
    if n_boxes < LEAST_BOXES:
        return f"expected at least {LEAST_BOXES} boxes to compare, found {n_boxes}"
    a, b = rows_of(names, wanted), rows_of(names, found)
    if a.shape != b.shape:
        return f"expected {a.shape[0]} boxes, found {b.shape[0]}"
    scores = np.sort(a[:, 4])[::-1]
    # A box with the last score may replace another one with this score. Of boxes with equal scores, any may be kept.
    certain = [row for row in a if row[4] > scores[-1] + GAP and np.count_nonzero(scores == row[4]) == 1]
    if not certain:
        return f"nothing was compared: no score of {len(a)} boxes stands alone above the last one"
    scale = np.maximum(np.abs(a).max(0, initial=0), 1)
    lost = [row for row in certain if not any(is_near(row, other, scale) for other in b)]
    return f"{len(lost)} boxes of {len(a)} are not there, the first with the score {lost[0][4]}" if lost else ""


def compare(names, wanted, found):
    """What differs, or an empty text."""
    if len(found) != len(wanted):
        return f"expected {len(wanted)} outputs, found {len(found)}"
    boxes = "boxes" in names or names == ["output0"]
    return compare_boxes(names, wanted, found) if boxes else compare_plain(wanted, found)


def run_kiln(kiln, path, inputs, way):
    """A list of outputs, or the error message."""
    import numpy as np
    with tempfile.TemporaryDirectory() as folder:
        command = [kiln, "run", str(path), *way, "--npy", "-o", folder, "--quiet"]
        for name, file in inputs.items():
            command += ["-i", f"{name}={file}"]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode:
            return result.stderr.strip() or f"exit status {result.returncode}"
        count = len(list(pathlib.Path(folder).glob("output_*.npy")))
        return [np.load(f"{folder}/output_{i}.npy") for i in range(count)]


def prepare(name, folder):
    """Exports the model, unless DIR has it. Returns its path and the files of its inputs."""
    import numpy as np
    from models import MODELS
    path, done = folder / f"{name}.onnx", folder / f"{name}.json"
    if not done.exists():
        inputs = MODELS[name](str(path))
        for key, array in inputs.items():
            np.save(folder / f"{name}.{key}.npy", array)
        done.write_text(json.dumps(list(inputs)), encoding="utf-8")
    return path, {key: folder / f"{name}.{key}.npy" for key in json.loads(done.read_text(encoding="utf-8"))}


def check(kiln, name, folder):
    """Prints a line for each way, and returns whether all are right."""
    import numpy as np
    import onnxruntime
    path, files = prepare(name, folder)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    wanted = session.run(None, {key: np.load(file) for key, file in files.items()})
    right = True
    for way, arguments in WAYS.items():
        if way == "ref" and name in SLOW_ON_REF:
            continue
        begun = time.monotonic()
        found = run_kiln(kiln, path, files, arguments)
        differs = found if isinstance(found, str) else compare(names, wanted, found)
        print(f"{name} {way}: {differs or 'right'} ({time.monotonic() - begun:.1f} s)", flush=True)
        right &= not differs
    return right


def run_with_packages(script, arguments):
    """The exit status of @script in the first Python that has the packages. None: it is this one."""
    for python in filter(None, (os.environ.get("KILN_EXPORTS_PYTHON"), str(VENV), sys.executable)):
        if found_versions(python) != VERSIONS:
            continue
        if python == sys.executable:
            return None
        environment = {**os.environ, "KILN_EXPORTS_PYTHON": python, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        return subprocess.run([python, "-B", script, *arguments], env=environment, check=False).returncode
    print("SKIP: no Python has the packages (python3 -m venv build/exports-venv && "
          "build/exports-venv/bin/pip install -r tests/exports/requirements.txt)")
    return 77


def main():
    kiln, folder, *chosen = sys.argv[1:]
    status = run_with_packages(__file__, sys.argv[1:])
    if status is not None:
        return status
    sys.path.insert(0, str(HERE))
    from models import MODELS
    pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
    results = [check(kiln, name, pathlib.Path(folder).resolve()) for name in chosen or MODELS]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
