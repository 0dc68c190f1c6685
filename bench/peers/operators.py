#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares single operators of Kiln with those of ONNX Runtime: each operator, its element types, a few shapes.

    peers/bin/python bench/peers/operators.py            # all of them
    peers/bin/python bench/peers/operators.py TopK Pad   # those whose names begin so

- Both run on one thread, pinned to one processor, and take turns. The figures are medians of their runs.
- A ratio is the median over the rounds of Kiln's time divided by that of ONNX Runtime in the same round. Kiln is faster if
  it is below 1.
- A dash stands where ONNX Runtime has no kernel for the type.
- `--check` compares the results of both, too.
- `--ratios FILE` puts the ratios into FILE, in place of those of the same probes. scripts/write_support.py writes those of
  bench/peers/operators.json into docs/onnx-support.md.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TYPES = {"f32": np.float32, "f64": np.float64, "f16": np.float16, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
         "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64, "bool": np.bool_}
FEW, INTS, ALL = ("f32",), ("i32", "i64", "u8"), ("f32", "f64", "i32", "i64", "u8")
M = 1 << 20


def values(shape, dtype, seed, low=-3.0, high=3.0):
    """Random elements; integers are never 0, so that they may divide."""
    r = np.random.default_rng(seed)
    if dtype == "bool":
        return r.random(shape) < 0.5
    x = r.uniform(low, high, shape)
    if dtype[0] in "iu":
        x = r.integers(1, 100, shape) * (1 if dtype[0] == "u" else r.choice((-1, 1), shape))
    return x.astype(TYPES[dtype])


class Probe:
    """One operator with live inputs and constants. An input is an array, or a shape that is filled."""

    def __init__(self, operator, name, inputs, constants=(), outputs=1, opset=21, low=-3.0, high=3.0, types=FEW, **attributes):
        self.operator, self.name, self.types, self.outputs, self.opset = operator, f"{operator} {name}", types, outputs, opset
        self.inputs, self.constants, self.attributes, self.range = inputs, constants, attributes, (low, high)

    def arrays(self, dtype):
        return [values(x, dtype, i + 1, *self.range) if isinstance(x, tuple) else x for i, x in enumerate(self.inputs)]

    def model(self, dtype, path):
        arrays = self.arrays(dtype)
        names = [f"x{i}" for i in range(len(arrays))]
        initializers, operands = [], list(names)
        for i, constant in enumerate(self.constants):
            if constant is None:
                operands.append("")
                continue
            array = constant(TYPES[dtype]) if callable(constant) else constant
            initializers.append(numpy_helper.from_array(np.asarray(array), f"c{i}"))
            operands.append(f"c{i}")
        attributes = {key: getattr(TensorProto, dict(f32="FLOAT", f64="DOUBLE", i32="INT32", i8="INT8").get(value, "")) if key == "to"
                      else value for key, value in self.attributes.items()}
        results = [f"y{i}" for i in range(self.outputs)]
        node = helper.make_node(self.operator, operands, results, **attributes)
        graph = helper.make_graph(
            [node], "g", [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in zip(names, arrays)],
            [helper.make_empty_tensor_value_info(n) for n in results], initializers)
        proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=10)
        onnx.save(onnx.shape_inference.infer_shapes(proto), path)
        return arrays


def einsum(equation, *shapes, types=FEW):
    return Probe("Einsum", equation, shapes, equation=equation, types=types)


def i64(*numbers):
    return np.array(numbers, np.int64)


def indices(shape, most, seed=5):
    return np.random.default_rng(seed).integers(0, most, shape).astype(np.int64)


def unique_rows(n, most):
    return np.random.default_rng(6).permutation(most)[:n].astype(np.int64).reshape(n, 1)


def probes():
    yield from einsums()
    yield from selections()
    yield from movements()
    yield from element_wise()
    yield from reductions()
    yield from samplings()
    yield from others()
    yield from narrow()


def einsums():
    yield einsum("bij,bjk->bik", (8, 128, 64), (8, 64, 128))
    yield einsum("ibnd,jbnd->bnij", (128, 2, 12, 64), (128, 2, 12, 64))
    yield einsum("bhwc,hkc->bhwk", (2, 14, 14, 64), (14, 14, 64))
    yield einsum("btd,de->bte", (1, 128, 256), (256, 512))
    yield einsum("bqnd,bknd->bnqk", (1, 128, 12, 64), (1, 128, 12, 64))
    yield einsum("bnqk,bnkd->bqnd", (1, 12, 128, 128), (1, 12, 128, 64))
    yield einsum("bfnd,ndh->bfh", (1, 128, 12, 64), (12, 64, 768))
    yield einsum("ij,jk,kl->il", (64, 64), (64, 64), (64, 64))
    yield einsum("nctv,vw->nctw", (1, 64, 75, 25), (25, 25))
    yield einsum("bchw,cd->bdhw", (1, 64, 56, 56), (64, 64))
    yield einsum("i,j->ij", (1024,), (1024,))
    yield einsum("bij->bji", (16, 256, 256))
    yield einsum("bii->bi", (64, 128, 128))


def selections():
    for k, shape in ((1000, (1, 200000)), (50, (16, 32000)), (5, (1024, 1000)), (1, (1024, 1000)), (4096, (64, 4096))):
        yield Probe("TopK", f"{k} of {shape}", [shape], [i64(k)], 2, types=("f32", "i64"), low=-1e6, high=1e6)
    yield Probe("TopK", "10 of axis 1 (8, 512, 256)", [(8, 512, 256)], [i64(10)], 2, axis=1)
    for axis, shape in ((1, (1024, 1000)), (0, (1024, 1000)), (1, (1, 21, 256, 256))):
        yield Probe("ArgMax", f"axis {axis} of {shape}", [shape], axis=axis, types=("f32", "i64", "u8"))
    yield Probe("ArgMin", "last", [(1024, 1000)], axis=-1, select_last_index=1)
    yield Probe("Hardmax", "last", [(1024, 1000)])


def movements():
    for mode in ("reflect", "edge", "wrap"):
        yield Probe("Pad", f"{mode} planes", [(1, 64, 112, 112)], [i64(0, 0, 3, 3, 0, 0, 3, 3)], mode=mode, types=("f32", "u8"))
        yield Probe("Pad", f"{mode} channels", [(1, 64, 112, 112)], [i64(0, 1, 0, 0, 0, 1, 0, 0)], mode=mode)
    yield Probe("Trilu", "upper", [(1024, 1024)], [np.array(1, np.int64)], upper=1)
    yield Probe("Trilu", "lower", [(12, 256, 256)], upper=0)
    yield Probe("OneHot", "1000 of 1024", [indices((1024,), 1000)], [i64(1000), np.array([0, 1], np.float32)])
    yield Probe("OneHot", "axis 1", [indices((1, 256, 256), 21)], [i64(21), np.array([0, 1], np.float32)], axis=1)
    yield Probe("ReverseSequence", "(64, 32, 256)", [(64, 32, 256), indices((32,), 64)], time_axis=0, batch_axis=1)
    yield Probe("GatherND", "rows", [(4096, 256), indices((2048, 1), 4096)])
    yield Probe("GatherND", "elements", [(1024, 1024), indices((65536, 2), 1024)])
    yield Probe("ScatterND", "rows", [(4096, 256), unique_rows(2048, 4096), (2048, 256)])
    yield Probe("ScatterND", "add rows", [(4096, 256), unique_rows(2048, 4096), (2048, 256)], reduction="add")
    yield Probe("ScatterElements", "axis 1", [(1024, 1024), indices((1024, 1024), 1024), (1024, 1024)], axis=1)
    yield Probe("ScatterElements", "add axis 0", [(1024, 1024), indices((1024, 1024), 1024), (1024, 1024)], axis=0, reduction="add")
    yield Probe("EyeLike", "(1024, 1024)", [(1024, 1024)])


def element_wise():
    n = (M,)
    for name in ("Sin", "Cos", "Tan", "Atan", "Sinh", "Cosh", "Asinh"):
        yield Probe(name, "1M", [n], types=("f32", "f64"), opset=22)
    for name in ("Acos", "Asin", "Atanh"):
        yield Probe(name, "1M", [n], low=-0.99, high=0.99, opset=22)
    yield Probe("Acosh", "1M", [n], low=1, high=9, opset=22)
    for name in ("Add", "Mul", "Div", "Max", "Min"):
        yield Probe(name, "1M", [n, n], types=ALL)
    for name in ("Equal", "Less"):
        yield Probe(name, "1M", [n, n], types=ALL + (("bool",) if name == "Equal" else ()))
    yield Probe("Div", "1M by one", [n], [lambda t: np.array(3, t)], types=INTS)
    yield Probe("Mod", "1M", [n, n], types=INTS)
    yield Probe("Mod", "fmod 1M", [n, n], fmod=1)
    yield Probe("Add", "rows (1024, 1024) + (1024,)", [(1024, 1024), (1024,)], types=ALL)
    for name in ("BitwiseAnd", "BitwiseXor"):
        yield Probe(name, "1M", [n, n], types=INTS)
    yield Probe("BitShift", "1M", [n, n], direction="LEFT", types=("u8", "u32"))
    for name in ("Abs", "Neg", "Sign"):
        yield Probe(name, "1M", [n], types=("f64", "i32", "i64", "i8"))
    yield Probe("BitwiseNot", "1M", [n], types=INTS)
    for name in ("Relu", "Sqrt", "Tanh", "Exp", "Sigmoid", "Floor"):
        yield Probe(name, "1M", [n], types=("f64",))
    yield Probe("Clip", "1M", [n], [lambda t: np.array(3, t), lambda t: np.array(50, t)], types=ALL)
    yield Probe("IsNaN", "1M", [n], types=("f32", "f64"))
    yield Probe("IsInf", "1M", [n], types=("f32", "f64"), opset=20)
    for to in ("f32", "f64", "i32", "i8"):
        yield Probe("Cast", f"1M to {to}", [n], to=to, types=("f64", "i8", "u8", "i64"))


def reductions():
    for name in ("ReduceSum", "ReduceMean", "ReduceMax"):
        for axis in (0, 1):
            yield Probe(name, f"axis {axis} (1024, 1024)", [(1024, 1024)], [i64(axis)], types=("f64", "i32", "i64"))
    for name in ("ReduceProd", "ReduceLogSumExp"):
        for axes, shape in (((1,), (2048, 1024)), ((2, 3), (1, 256, 56, 56)), ((1,), (1, 256, 56, 56)), ((0, 1), (2048, 1024))):
            yield Probe(name, f"{axes} of {shape}", [shape], [i64(*axes)], low=0.9, high=1.1)
    yield Probe("CumSum", "last (1024, 1024)", [(1024, 1024)], [np.array(1, np.int64)], types=("f32", "i32", "i64"))
    yield Probe("CumSum", "axis 0 (1024, 1024)", [(1024, 1024)], [np.array(0, np.int64)])


def regions(n, most, shape, pictures=1):
    """The corners of n regions in pictures of this height and width, and the number of the picture of each region."""
    r = np.random.default_rng(7)
    corners = r.uniform(0, 1, (n, 2)) * (shape[1], shape[0])
    extents = r.uniform(0.05, most, (n, 2)) * (shape[1], shape[0])
    return np.concatenate([corners, corners + extents], 1).astype(np.float32), r.integers(0, pictures, n).astype(np.int64)


def samplings():
    for name, shape, n, most, attributes in (
            ("7x7 ratio 2", (1, 256, 50, 68), 200, 0.3, dict(output_height=7, output_width=7, sampling_ratio=2)),
            ("7x7 adaptive", (1, 256, 50, 68), 200, 0.9, dict(output_height=7, output_width=7, sampling_ratio=0)),
            ("14x14 ratio 2", (1, 256, 100, 136), 50, 0.5, dict(output_height=14, output_width=14, sampling_ratio=2)),
            ("7x7 wide", (1, 64, 200, 272), 100, 0.9, dict(output_height=7, output_width=7, sampling_ratio=2)),
            ("max 7x7 ratio 2", (1, 256, 50, 68), 200, 0.3, dict(output_height=7, output_width=7, sampling_ratio=2, mode="max"))):
        yield Probe("RoiAlign", name, [shape, *regions(n, most, shape[2:])], opset=16, **attributes)
    boxes, pictures = regions(200, 0.5, (50, 68))
    yield Probe("MaxRoiPool", "7x7", [(1, 256, 50, 68), np.concatenate([pictures[:, None].astype(np.float32), boxes], 1)], pooled_shape=[7, 7])


    for name, shape, channels, groups, masked in (("3x3 64 56x56", (1, 64, 56, 56), 64, 1, True), ("3x3 256 14x14", (1, 256, 14, 14), 256, 1, True),
                                                  ("3x3 128 28x28 4 offset groups", (1, 128, 28, 28), 128, 4, False)):
        n, c, *extents = shape
        weights = values((channels, c, 3, 3), "f32", 3, -0.1, 0.1)
        live = [shape, weights, (n, groups * 18, *extents)] + ([values((channels,), "f32", 4), (n, groups * 9, *extents)] if masked else [])
        yield Probe("DeformConv", name, live, pads=[1, 1, 1, 1], offset_group=groups, opset=19)


    for samples, shape in ((1, (1, 32000)), (64, (16, 1000))):
        yield Probe("Multinomial", f"{samples} of {shape}", [shape], sample_size=samples)


def others():
    f32 = np.float32
    yield Probe("MatMul", "256", [(256, 256)], [values((256, 256), "f32", 3)])
    yield Probe("MatMul", "256 live", [(256, 256), (256, 256)], types=("f64", "i32"))
    for mode, size in (("linear", 2), ("cubic", 2), ("cubic", 0.5), ("linear", 0.37)):
        yield Probe("Resize", f"{mode} {size}", [(1, 64, 56, 56)], [None, np.array([1, 1, size, size], f32)], mode=mode, opset=19,
                    **({"antialias": 1} if size < 1 else {}))
    yield Probe("Resize", "linear 2 NHWC", [(1, 56, 56, 64)], [None, np.array([1, 2, 2, 1], f32)], mode="linear", opset=19)
    yield Probe("Resize", "trilinear 2", [(1, 16, 16, 28, 28)], [None, np.array([1, 1, 2, 2, 2], f32)], mode="linear", opset=19)
    yield Probe("MeanVarianceNormalization", "NCHW", [(1, 64, 112, 112)])
    yield Probe("LpNormalization", "last", [(2048, 512)])
    yield Probe("LpNormalization", "axis 1 NCHW", [(1, 256, 56, 56)], axis=1)
    yield Probe("LpPool", "3x3 s2", [(1, 64, 56, 56)], kernel_shape=[3, 3], strides=[2, 2], opset=18)
    yield Probe("MaxPool", "2x2 with indices", [(1, 64, 112, 112)], outputs=2, kernel_shape=[2, 2], strides=[2, 2])
    for name, gates in (("LSTM", 4), ("GRU", 3)):
        weights = [values((1, gates * 128, 64), "f32", 1, -0.1, 0.1), values((1, gates * 128, 128), "f32", 2, -0.1, 0.1),
                   values((1, gates * 256,), "f32", 3, -0.1, 0.1), np.arange(17, 33).astype(np.int32)]
        yield Probe(name, "with lengths", [(32, 16, 64)], weights, hidden_size=128)


def narrow():
    """Shapes with rows that are too short for vectors, and operators that a model has only once."""
    weights = np.full((64, 1, 4, 4), 0.25, np.float32)
    boxes = np.sort(np.random.default_rng(7).uniform(0, 100, (1, 1000, 2, 2)), axis=2).reshape(1, 1000, 4).astype(np.float32)
    yield Probe("BatchNormalization", "(4096, 512)", [(4096, 512)], [np.full(512, x, np.float32) for x in (2, 0.5, 0.1, 1)], opset=15)
    yield Probe("Transpose", "NHWC to NCHW of 3", [(1, 224, 224, 3)], perm=[0, 3, 1, 2], types=("f32", "u8"))
    yield Probe("Transpose", "NCHW to NHWC of 3", [(1, 3, 224, 224)], perm=[0, 2, 3, 1], types=("f32", "u8"))
    yield Probe("SpaceToDepth", "2", [(1, 64, 112, 112)], blocksize=2, opset=13)
    yield Probe("DepthToSpace", "2", [(1, 256, 56, 56)], blocksize=2, opset=13)
    yield Probe("Softmax", "(65536, 10)", [(65536, 10)], axis=-1)
    yield Probe("Softmax", "(12, 197, 197)", [(12, 197, 197)], axis=-1, types=("f64",))
    yield Probe("GatherElements", "axis 1", [(1024, 1024), indices((1024, 1024), 1024)], axis=1)
    yield Probe("GatherElements", "axis 0", [(1024, 1024), indices((1024, 1024), 1024)], axis=0)
    yield Probe("Concat", "columns", [(200000, 1)] * 4, axis=1)
    yield Probe("Split", "columns", [(200000, 4)], [i64(1, 1, 1, 1)], outputs=4, axis=1)
    yield Probe("MaxPool", "3x3 dilated", [(1, 64, 56, 56)], kernel_shape=[3, 3], dilations=[2, 2])
    yield Probe("MaxUnpool", "2x2", [(1, 64, 56, 56), indices((1, 64, 56, 56), 64 * 112 * 112)], kernel_shape=[2, 2], strides=[2, 2], opset=11)
    yield Probe("ConvTranspose", "depthwise 4x4 s2", [(1, 64, 28, 28)], [weights], group=64, strides=[2, 2], pads=[1, 1, 1, 1])
    yield Probe("GridSample", "bilinear", [(1, 32, 64, 64), values((1, 64, 64, 2), "f32", 9, -1, 1)], mode="bilinear", opset=16)
    yield Probe("MatMulInteger", "256 live", [(256, 256), (256, 256)], opset=10, types=("u8",))
    yield Probe("NonMaxSuppression", "1000 boxes", [boxes, values((1, 1, 1000), "f32", 8, 0, 1)],
                [i64(100), np.array([0.5], np.float32), np.array([0.1], np.float32)], opset=11)
    yield Probe("Unique", "sorted 64K", [indices((65536,), 5000)], outputs=4, opset=11)


def peer(path, arrays):
    """The session of ONNX Runtime, or None where it has no kernel."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    except Exception: # its errors share no other class
        return None
    binding = session.io_binding()
    for argument, array in zip(session.get_inputs(), arrays):
        binding.bind_cpu_input(argument.name, array)
    for result in session.get_outputs():
        binding.bind_output(result.name)
    return lambda: session.run_with_iobinding(binding), binding.copy_outputs_to_cpu


def median_time(run, seconds):
    run()
    samples, begin = [], time.perf_counter()
    while len(samples) < 3 or time.perf_counter() - begin < seconds:
        start = time.perf_counter()
        run()
        samples.append(time.perf_counter() - start)
    return statistics.median(samples)


def save_inputs(folder, arrays):
    for i, array in enumerate(arrays):
        (folder / f"input_{i}.pb").write_bytes(numpy_helper.from_array(array).SerializeToString())


def kiln_time(options, path, folder):
    command = [options.kiln / "kiln-bench-model", "--threads", "1", "--min-time", options.seconds, "--inputs", folder, "--json", "-", path]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr.strip()[-300:])
    return json.loads(done.stdout)["benchmarks"][0]["real_time"] / 1e3


def check(options, folder, path, outputs):
    """Raises where a result differs by more than 1e-3 of it and of the largest element."""
    subprocess.run([options.kiln / "kiln", "run", path, *sum((["-i", f"x{i}={p}"] for i, p in enumerate(sorted(folder.glob("input_*.pb")))), []),
                    "-o", folder / "out", "--quiet", "--threads", "1"], check=True, capture_output=True)
    for i, expected in enumerate(outputs):
        tensor = onnx.TensorProto()
        tensor.ParseFromString((folder / f"out/output_{i}.pb").read_bytes())
        found, expected = numpy_helper.to_array(tensor).astype(np.float64), np.asarray(expected).astype(np.float64)
        largest = np.abs(expected[np.isfinite(expected)]).max(initial=0)
        if not np.allclose(found, expected, rtol=1e-3, atol=1e-4 * largest, equal_nan=True):
            raise RuntimeError(f"result {i} differs from that of ONNX Runtime")


def measure(probe, dtype, options, folder):
    path = folder / "model.onnx"
    arrays = probe.model(dtype, path)
    save_inputs(folder, arrays)
    other = peer(str(path), arrays)
    if options.check and other and probe.operator != "Multinomial": # draws differ
        other[0]()
        check(options, folder, path, other[1]())
    rounds = []
    for _ in range(options.rounds):
        theirs = median_time(other[0], options.seconds) if other else None
        rounds.append((kiln_time(options, path, folder), theirs))
    return {"probe": probe.name, "type": dtype, "kiln": statistics.median(k for k, _ in rounds),
            "onnxruntime": statistics.median(o for _, o in rounds) if other else None,
            "ratio": statistics.median(k / o for k, o in rounds) if other else None}


def print_row(result):
    theirs = f"{result['onnxruntime'] * 1e3:10.3f} {result['ratio']:8.2f}" if result["ratio"] else f"{'-':>10} {'-':>8}"
    print(f"{result['probe']:<44} {result['type']:<5} {result['kiln'] * 1e3:10.3f} {theirs}", flush=True)


def processor():
    """The name of the processor, as Linux has it."""
    lines = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "an unknown processor")


def write_ratios(path, results, machine):
    """A line for each probe: its ratios by type."""
    import onnxruntime

    ratios = json.loads(path.read_text(encoding="utf-8"))["ratios"] if path.exists() else {}
    for probe in dict.fromkeys(result["probe"] for result in results):
        found = {result["type"]: round(result["ratio"], 3) for result in results if result["probe"] == probe and result["ratio"]}
        ratios.pop(probe, None)
        if found:
            ratios[probe] = found
    lines = ",\n".join(f"{json.dumps(probe)}: {json.dumps(ratios[probe])}" for probe in sorted(ratios))
    head = json.dumps({"schema_version": 1, "onnxruntime": onnxruntime.__version__, "machine": machine})
    path.write_text(f'{head[:-1]}, "ratios": {{\n{lines}\n}}}}\n', encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("operators", nargs="*", metavar="OPERATOR", help="measure those whose names begin so (default: all)")
    parser.add_argument("--rounds", type=int, default=3, help="give each engine this number of turns (default: 3)")
    parser.add_argument("--seconds", type=float, default=0.1, help="measure for this time in each turn (default: 0.1)")
    parser.add_argument("--kiln", default=ROOT / "build/release/bin", type=pathlib.Path, help="run the executables of this folder")
    parser.add_argument("--check", action="store_true", help="compare the results, too")
    parser.add_argument("--json", type=pathlib.Path, help="write the figures to this file")
    parser.add_argument("--ratios", type=pathlib.Path, help="put the ratios into this file")
    parser.add_argument("--machine", help="how --ratios calls the machine (default: its processor)")
    options = parser.parse_args()
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    results, failed = [], 0
    print(f"{'operator':<44} {'type':<5} {'Kiln ms':>10} {'ORT ms':>10} {'ratio':>8}")
    for probe in probes():
        if options.operators and not probe.operator.startswith(tuple(options.operators)):
            continue
        for dtype in probe.types:
            with tempfile.TemporaryDirectory(prefix="kiln-operators-") as folder:
                try:
                    results.append(measure(probe, dtype, options, pathlib.Path(folder)))
                    print_row(results[-1])
                except (RuntimeError, subprocess.CalledProcessError) as error:
                    print(f"{probe.name} {dtype}: {error}", file=sys.stderr)
                    failed = 1
    if options.ratios:
        write_ratios(options.ratios, results, options.machine or processor())
    if options.json:
        options.json.write_text(json.dumps({"schema_version": 1, "results": results}, indent=1))
    return failed


if __name__ == "__main__":
    sys.exit(main())
