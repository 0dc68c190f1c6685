#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the folder small: the models of small_rows.py with their inputs, and with the outputs of onnxruntime, whose
optimizations are off. `kiln verify tests/exports/small` reads it, without the exporters' packages.

    write_small.py [ROW…]

Weights and inputs are random, from seeds. Texts for people, which name files of the machine that exports, are left out. A
Python with the packages of requirements.txt is needed, as for check_exports.py; else the exit status is 77."""
import argparse
import json
import pathlib
import shutil
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import check_exports  # noqa: E402
import check_rows  # noqa: E402
import rows  # noqa: E402
from small_rows import MOST_BYTES, SMALL  # noqa: E402


def without_texts(model):
    """The model without what people read: it computes the same."""
    model.ClearField("doc_string")
    del model.metadata_props[:]
    messages = [model.graph, *model.functions]
    while messages:
        message = messages.pop()
        for field in ("doc_string", "metadata_props"):
            if field in message.DESCRIPTOR.fields_by_name:
                message.ClearField(field)
        for field in ("node", "input", "output", "value_info", "initializer", "attribute"):
            if field in message.DESCRIPTOR.fields_by_name:
                found = getattr(message, field)
                messages += [x for x in found if not isinstance(x, str)]
        if message.DESCRIPTOR.name == "AttributeProto":
            messages += [message.g, *message.graphs] if message.HasField("g") else message.graphs
    return model


def tolerance(row, folder):
    """Relative, and as a part of the largest element of an output. Halves and quantized models have that of rows.py. Others
    are so small that roundings stay far below the least elements that matter. Integers are compared as they are."""
    import numpy as np
    outputs = [np.abs(a.astype(np.float64)) for a in check_rows.read_tensors(folder / "test_data_set_0", "output")
               if a.dtype.kind in "fV"]
    largest = [a[np.isfinite(a)].max(initial=0) for a in outputs]
    relative, of_largest = (1e-4, 1e-5) if row.tolerance == rows.REAL else (row.tolerance, row.tolerance)
    return {"rtol": relative, "atol": float(f"{of_largest * min(largest, default=0):.3g}")}


def write(row, target):
    """Returns what failed, or an empty text."""
    import onnx
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch) / "row"
        failed = check_rows.prepare(row, folder)
        if failed:
            return failed
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
        model = without_texts(onnx.load(folder / "model.onnx"))  # with the bytes of other files
        (target / "model.onnx").write_bytes(model.SerializeToString(deterministic=True))
        shutil.copytree(folder / "test_data_set_0", target / "test_data_set_0")
        (target / "data.json").write_text(json.dumps(tolerance(row, folder)) + "\n", encoding="utf-8")
    size = sum(file.stat().st_size for file in target.rglob("*") if file.is_file())
    print(f"{row.id:40} {size:8} bytes", flush=True)
    return "" if size <= MOST_BYTES else f"expected at most {MOST_BYTES} bytes, found {size}"


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("rows", nargs="*", metavar="ROW")
    options = parser.parse_args()
    status = check_exports.run_with_packages(__file__, sys.argv[1:])
    if status is not None:
        return status
    names = options.rows or [name for family in SMALL.values() for name in family]
    chosen = [rows.find_row(name) for name in names]
    check_rows.warm({row.family for row in chosen})
    status = 0
    for row in chosen:
        failed = write(row, HERE / "small" / row.id)
        if failed:
            print(f"{row.id}: {failed}", file=sys.stderr)
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
