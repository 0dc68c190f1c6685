#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Exports the rows of rows.py, and compares `kiln run` with onnxruntime, whose optimizations are off. Prints a table.

    check_rows.py [--times BENCH] [--part I/N] [--only TEXT] KILN DIR [FAMILY…]

DIR keeps what was exported: a folder for each row, which `kiln verify` reads. Each row is exported in a process of its
own. At least 97 % of the rows must be accepted, and none may be wrong. With --times, BENCH is kiln-bench-model: it is
compared with onnxruntime as it is by default, both on one thread, and the table has the ratio of the times.

A Python with the packages of requirements.txt is needed, as for check_exports.py. If none has them, the exit status is
77."""
import argparse
import collections
import contextlib
import importlib
import json
import multiprocessing
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import traceback

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import check_exports  # noqa: E402
EXPORT_SECONDS, RUN_SECONDS = 600, 300
LEAST_ROWS, LEAST_ACCEPTED = 120, 0.97
ROUNDS = 3  # of times; the least one counts
PACKAGES = {  # what a family loads
    "torch": ["torch"], "torchvision": ["torch", "torchvision"], "timm": ["torch", "timm"],
    "smp": ["torch", "segmentation_models_pytorch"], "ultralytics": ["torch", "ultralytics"],
    "transformers": ["torch", "transformers"], "diffusers": ["torch", "diffusers"], "flow": ["torch", "torchvision"],
    "skl2onnx": ["skl2onnx"], "onnxmltools": ["skl2onnx", "onnxmltools"],
    "optimizer": ["torch", "transformers", "onnxruntime.transformers.optimizer"],
    "quantizer": ["torch", "transformers", "onnxruntime.quantization"], "float16": ["torch", "transformers"],
    "small": ["torch", "torchvision", "segmentation_models_pytorch", "timm", "ultralytics", "onnxruntime.quantization"],
}
WAYS = {"default": (), "none": ("--pipeline", "none")}


# --- A row's folder ---

def write_tensors(folder, kind, arrays):
    import numpy as np
    from onnx import numpy_helper
    for i, (name, array) in enumerate(arrays.items()):
        encoded = numpy_helper.from_array(np.ascontiguousarray(array) if array.ndim else array, name)
        (folder / f"{kind}_{i}.pb").write_bytes(encoded.SerializeToString())


def read_tensors(folder, kind):
    import onnx
    from onnx import numpy_helper
    found = []
    while (file := pathlib.Path(folder) / f"{kind}_{len(found)}.pb").exists():
        found.append(numpy_helper.to_array(onnx.load_tensor(str(file))))
    return found


def open_session(path, optimized):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    if not optimized:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def export(row_id, folder):
    """Writes the model, its inputs, and what onnxruntime computes without optimizations. Runs in a process of its own."""
    import rows
    import numpy as np
    log = open(folder / "log.txt", "w", encoding="utf-8")
    os.dup2(log.fileno(), 1)
    os.dup2(log.fileno(), 2)
    try:
        given = rows.find_row(row_id).make(str(folder / "model.onnx"))
        session = open_session(folder / "model.onnx", False)
        data = folder / "test_data_set_0"
        data.mkdir(exist_ok=True)
        taken = {value.name: np.asarray(given[value.name]) for value in session.get_inputs()}
        outputs = [value.name for value in session.get_outputs()]
        found = dict(zip(outputs, session.run(None, taken)))
        write_tensors(data, "input", taken)
        write_tensors(data, "output", found)
        (folder / "done.json").write_text(json.dumps({"inputs": list(taken), "outputs": outputs}), encoding="utf-8")
    except BaseException:
        traceback.print_exc()
        log.flush()
        os._exit(1)
    os._exit(0)


def prepare(row, folder):
    """Exports the row, unless its folder has it. Returns what failed, or an empty text."""
    if (folder / "done.json").exists():
        return ""
    if (folder / "failed.txt").exists():
        return (folder / "failed.txt").read_text(encoding="utf-8")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    process = multiprocessing.get_context("fork").Process(target=export, args=(row.id, folder))
    process.start()
    process.join(EXPORT_SECONDS)
    if process.is_alive():
        process.kill()
        process.join()
        message = f"more than {EXPORT_SECONDS} s"
    elif process.exitcode == 0:
        return ""
    else:
        lines = (folder / "log.txt").read_text(encoding="utf-8", errors="replace").strip().splitlines()
        errors = [line for line in lines if re.match(r"[\w.]*(Error|Exception|Fail|NotImplemented)\w*\b", line)]
        message = (errors or lines or [f"exit status {process.exitcode}"])[-1][:300]
    (folder / "failed.txt").write_text(message, encoding="utf-8")
    return message


def warm(families):
    """Loads what the exports need, so that their processes have it from the first. Nothing is downloaded."""
    os.environ.update(HF_HUB_OFFLINE="1", YOLO_OFFLINE="true", YOLO_CONFIG_DIR=tempfile.gettempdir())
    import torch
    torch.set_num_threads(1)
    for family in families:
        for name in PACKAGES.get(family, ()):
            importlib.import_module(name)
    if any("torch" in PACKAGES.get(family, ()) for family in families):
        with tempfile.TemporaryDirectory() as folder, open(os.devnull, "w", encoding="utf-8") as nowhere:
            with contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
                torch.onnx.export(torch.nn.Linear(2, 2), (torch.zeros(1, 2),), f"{folder}/x.onnx", dynamo=True)


# --- Kiln ---

def difference(wanted, found, tolerance):
    """What differs, or an empty text, and the largest difference over the largest element."""
    import numpy as np
    if len(found) != len(wanted):
        return f"expected {len(wanted)} outputs, found {len(found)}", 1
    if not any(a.size for a in wanted):
        return "nothing was compared: there are no elements", 1
    worst = 0.0
    for i, (a, b) in enumerate(zip(wanted, found)):
        if a.shape != b.shape or a.dtype != b.dtype:
            return f"output {i}: expected {a.dtype}{a.shape}, found {b.dtype}{b.shape}", 1
        if a.dtype.kind not in "fV":
            if not np.array_equal(a, b):
                return f"output {i}: {np.count_nonzero(a != b)} of {a.size} elements differ", 1
            continue
        a, b = a.astype(np.float64), b.astype(np.float64)
        certain = np.isfinite(a)
        if not np.array_equal(a[~certain], b[~certain], equal_nan=True):
            return f"output {i}: NaN or infinite elements differ", 1
        if certain.any() and np.abs(a[certain]).max() > 0:
            worst = max(worst, float(np.abs(a - b)[certain].max() / np.abs(a[certain]).max()))
        elif np.any(b[certain]):
            return f"output {i}: expected zeros", 1
    return (f"the largest difference is {worst:.2g} of the largest element" if not worst <= tolerance else ""), worst


def run_kiln(kiln, folder, inputs, way):
    """A list of outputs, or the error message."""
    with tempfile.TemporaryDirectory() as out:
        command = [kiln, "run", str(folder / "model.onnx"), *way, "-o", out, "--quiet"]
        for i, name in enumerate(inputs):
            command += ["-i", f"{name}={folder}/test_data_set_0/input_{i}.pb"]
        try:
            result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=RUN_SECONDS)
        except subprocess.TimeoutExpired:
            return f"more than {RUN_SECONDS} s"
        if result.returncode:
            return result.stderr.strip() or f"exit status {result.returncode}"
        return read_tensors(out, "output")


def compare_row(kiln, row, folder):
    """The state of a row, and what to tell about it."""
    names = json.loads((folder / "done.json").read_text(encoding="utf-8"))
    wanted = read_tensors(folder / "test_data_set_0", "output")
    errors = []
    for way, arguments in WAYS.items():
        found = run_kiln(kiln, folder, names["inputs"], arguments)
        if isinstance(found, str):
            return "refused", f"{way}: {found.splitlines()[0][:400]}"
        if row.boxes:
            text, worst = check_exports.compare(names["outputs"], wanted, found), 0
        else:
            text, worst = difference(wanted, found, row.tolerance)
        if text:
            return "wrong", f"{way}: {text}"
        errors.append(worst)
    return "right", f"{max(errors):.1g}"


# --- Times ---

def time_kiln(bench, folder):
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        subprocess.run([bench, "--threads", "1", "--min-time", "0.3", "--no-verify", f"--inputs={folder}/test_data_set_0",
                        f"--json={file.name}", str(folder / "model.onnx")], capture_output=True, check=False,
                       timeout=RUN_SECONDS)
        found = json.loads(pathlib.Path(file.name).read_text(encoding="utf-8"))["benchmarks"]
    return found[0]["min_ms"] / 1e3 if found else None


def time_theirs(folder):
    """In this process; the session is as it is by default, with one thread."""
    names = json.loads((folder / "done.json").read_text(encoding="utf-8"))["inputs"]
    session = open_session(folder / "model.onnx", True)
    given = dict(zip(names, read_tensors(folder / "test_data_set_0", "input")))
    least, end = None, time.monotonic() + 0.3
    while least is None or time.monotonic() < end:
        begun = time.perf_counter()
        session.run(None, given)
        seconds = time.perf_counter() - begun
        least = seconds if least is None else min(least, seconds)
    return least


def ratio(bench, folder):
    """The time of Kiln over that of onnxruntime, or a text."""
    ours, theirs = [], []
    for _ in range(ROUNDS):
        ours.append(time_kiln(bench, folder))
        theirs.append(time_theirs(folder))
    if None in ours:
        return "not measured"
    return f"{min(ours) / min(theirs):.2f} ({min(ours) * 1e3:.3f} ms against {min(theirs) * 1e3:.3f} ms)"


# --- The table ---

def print_counts(counts):
    """Returns whether the rows are as they should be."""
    ran = counts["right"] + counts["wrong"] + counts["refused"]
    accepted = (ran - counts["refused"]) / max(ran, 1)
    print(f"{ran} rows: {counts['right']} right, {counts['wrong']} wrong, {counts['refused']} refused; {accepted:.1%} "
          f"accepted; {counts['not exported']} more could not be exported")
    return accepted >= LEAST_ACCEPTED and not counts["wrong"]


def check(options):
    import rows
    part, parts = (int(n) for n in options.part.split("/"))
    chosen = [row for row in rows.all_rows(options.families or None) if options.only in row.id][part::parts]
    counts = collections.Counter()
    if any(not (pathlib.Path(options.dir) / row.id / "done.json").exists() for row in chosen):
        warm({row.family for row in chosen})
    for row in chosen:
        folder = pathlib.Path(options.dir).resolve() / row.id
        failed = prepare(row, folder)
        state, text = ("not exported", failed) if failed else compare_row(options.kiln, row, folder)
        counts[state] += 1
        if options.times and state == "right":
            text += f"  {ratio(options.times, folder)}"
        print(f"{row.id:48} {state:8} {text}", flush=True)
    right = print_counts(counts)
    whole = not options.families and not options.only and parts == 1
    return 0 if right and (not whole or sum(counts.values()) - counts["not exported"] >= LEAST_ROWS) else 1


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--times", metavar="BENCH")
    parser.add_argument("--part", default="0/1", metavar="I/N")
    parser.add_argument("--only", default="", metavar="TEXT")
    parser.add_argument("kiln")
    parser.add_argument("dir")
    parser.add_argument("families", nargs="*")
    options = parser.parse_args()
    status = check_exports.run_with_packages(__file__, sys.argv[1:])
    return check(options) if status is None else status


if __name__ == "__main__":
    sys.exit(main())
