# SPDX-License-Identifier: Apache-2.0
"""Operators of com.microsoft on integers and on weights of few bits, for check_contrib.py."""
import ml_dtypes
import numpy as np
from contrib_case import FLOAT, HALF, INT8, INT32, UINT8, Case, Draw

KINDS = (("u8", np.uint8, UINT8), ("i8", np.int8, INT8))


def qlinear(kind, dtype):
    """The operands: for each input integers, a scale and a zero point, and then scale and zero point of the result."""
    draw = Draw()
    low = 0 if dtype is np.uint8 else -128

    def group(name, *shape):
        return [(name, draw.ints(low, low + 256, shape, dtype)), (f"{name}s!", np.float32(0.02)), (f"{name}z!", dtype(low + 120))]
    out = [("ys!", np.float32(0.03)), ("yz!", dtype(low + 130))]
    four = (2, 3, 6, 5)

    def case(operator, label, operands, **more):
        return Case(f"{label}, {kind}", operator, operands, steps=1, **more)
    yield case("QLinearAdd", "plain", group("a", *four) + group("b", *four) + out)
    yield case("QLinearAdd", "broadcast", group("a", *four) + group("b", 5) + out)
    yield case("QLinearMul", "plain", group("a", *four) + group("b", 3, 1, 1) + out)
    yield case("QLinearMul", "open", group("a", *four) + group("b", 3, 1, 1) + out, dims={"a": ["n", 3, "h", "w"]})
    yield case("QLinearSigmoid", "plain", group("a", *four) + out)
    yield case("QLinearLeakyRelu", "plain", group("a", *four) + out, alpha=0.2)
    yield case("QLinearSoftmax", "last axis", group("a", *four) + [("ys!", np.float32(1 / 256)), ("yz!", dtype(low))], axis=-1, opset=13)
    yield case("QLinearSoftmax", "axis 1", group("a", *four) + [("ys!", np.float32(1 / 256)), ("yz!", dtype(low))], axis=1, opset=13)
    for last in 0, 1:
        yield case("QLinearGlobalAveragePool", f"channels_last={last}", group("a", *four) + out, channels_last=last)
        yield case("QLinearAveragePool", f"channels_last={last}", group("a", *four) + out, channels_last=last, kernel_shape=[3, 2],
                   strides=[2, 1], pads=[1, 0, 1, 1])
        yield case("QLinearAveragePool", f"channels_last={last}, with pads", group("a", *four) + out, channels_last=last,
                   kernel_shape=[3, 2], pads=[1, 0, 1, 1], count_include_pad=1)
        yield case("QLinearAveragePool", f"channels_last={last}, ceiling", group("a", *four) + out, channels_last=last,
                   kernel_shape=[3, 2], ceil_mode=1, strides=[2, 2])
    yield case("QLinearConcat", "plain", out + group("a", *four) + group("b", 2, 4, 6, 5), axis=1,
               types={"y": UINT8 if kind == "u8" else INT8})
    yield case("QLinearWhere", "plain", [("c", draw.ints(0, 2, (6, 5), np.bool_))] + group("a", *four) + group("b", *four) + out,
               types={"y": UINT8 if kind == "u8" else INT8})
    weights = [("w!", draw.ints(-100, 100, (4, 3, 3, 3), np.int8)), ("ws!", draw.positive(4)), ("wz!", np.zeros(4, np.int8))]
    for last in 0, 1:
        x = group("a", 2, 6, 5, 3) if last else group("a", 2, 3, 6, 5)
        yield case("QLinearConv", f"channels_last={last}", x + weights + out + [("b!", draw.ints(-99, 99, 4, np.int32))],
                   channels_last=last)
    if kind == "u8":
        yield case("QEmbedLayerNormalization", "plain", embedding(draw, dtype, True), results=("y", "m"), types={"y": FLOAT, "m": INT32})
        yield case("QEmbedLayerNormalization", "without segments", embedding(draw, dtype, False), results=("y", "m"),
                   types={"y": FLOAT, "m": INT32})
    matrix = draw.ints(-100, 100, (6, 4), np.int8)
    for each in False, True:
        b = [("w!", matrix), ("ws!", draw.positive(4) if each else np.float32(0.03)), ("wz!", np.zeros(4, np.int8) if each else np.int8(0))]
        bias = [("c!", draw.ints(-99, 99, 4, np.int32))]
        yield case("QGemm", f"each column: {each}", group("a", 5, 6) + b + bias + out, alpha=1.0)
        yield case("QGemm", f"each column: {each}, floats", group("a", 5, 6) + b + bias, types={"y": FLOAT})
    yield case("NhwcMaxPool", "plain", [("a", draw.ints(low, low + 256, (2, 6, 5, 3), dtype))], kernel_shape=[2, 3], strides=[2, 1],
               pads=[0, 1, 1, 0])


def embedding(draw, dtype, segments):
    tables = [("words!", (9, 8)), ("positions!", (7, 8)), ("segments!", (2, 8)), ("gamma!", (8,)), ("beta!", (8,))]
    ids = [("ids", draw.ints(0, 9, (2, 5), np.int32)), ("segment_ids", draw.ints(0, 2, (2, 5), np.int32))]
    table = [(name, draw.ints(0, 255, shape, dtype)) for name, shape in tables]
    scales = [(f"{name[:-1]}s!", np.float32(draw.positive(1)[0])) for name, _ in tables]
    zeros = [(f"{name[:-1]}z!", dtype(120)) for name, _ in tables]
    if not segments:
        ids[1] = table[2] = scales[2] = zeros[2] = None
    return ids + table + [("mask", draw.ints(0, 2, (2, 5), np.int32))] + scales + zeros


def qdq():
    draw = Draw()
    for dtype in np.uint8, np.int8, np.uint16, np.int16:
        zero = ("z!", dtype(7))
        yield Case(np.dtype(dtype).name, "QuantizeLinear", [("x", draw.floats(2, 3, 4)), ("s!", np.float32(0.01)), zero],
                   types={"y": Draw_type(dtype)})
        yield Case(np.dtype(dtype).name, "DequantizeLinear", [("x", draw.ints(0, 99, (2, 3, 4), dtype)), ("s!", np.float32(0.01)), zero],
                   types={"y": FLOAT})
    yield Case("each channel", "DequantizeLinear", [("x", draw.ints(0, 99, (2, 3, 4), np.int16)), ("s!", draw.positive(3)),
                                                     ("z!", draw.ints(0, 9, 3, np.int16))], types={"y": FLOAT}, axis=1)


def Draw_type(dtype):
    from onnx import helper
    return helper.np_dtype_to_tensor_dtype(np.dtype(dtype))


def gathers():
    draw = Draw()
    indices = ("i", np.array([[1, 7, 0], [-1, 3, 3]], np.int64))
    for bits in 2, 4, 8:
        for zeros in False, True:
            data = ("data!", draw.ints(0, 256, (9, 64 * bits // 8)))
            scales, zero = ("s!", draw.floats(9, 4)), ("z!", draw.ints(0, 256, (9, 4 * bits // 8)))
            yield Case(f"{bits} bits, zero points: {zeros}", "GatherBlockQuantized", [data, indices, scales, zero if zeros else None],
                       types={"y": FLOAT}, bits=bits, block_size=16, quantize_axis=1)
    data, scales = ("data!", draw.ints(0, 256, (9, 3, 24))), ("s!", draw.floats(9, 3, 3).astype(np.float16))
    yield Case("halves, a last block that is short", "GatherBlockQuantized", [data, indices, scales], types={"y": HALF}, bits=4,
               block_size=16, quantize_axis=2, gather_axis=0, dims={"i": ["n", 3]}, rtol=2e-3)
    for kind, axis in (ml_dtypes.uint4, 1), (ml_dtypes.int4, 2), (ml_dtypes.int4, 0):
        shape = [9, 40, 6]
        shape[axis] = -(-shape[axis] // 16)
        low = 0 if kind == ml_dtypes.uint4 else -8
        yield Case(f"{kind.__name__}, blocks along {axis}", "GatherBlockQuantized",
                   [("data!", draw.ints(low, low + 16, (9, 40, 6), np.int8).astype(kind)), indices, ("s!", draw.floats(*shape)),
                    ("z!", draw.ints(low, low + 16, shape, np.int8).astype(kind)) if axis else None],
                   types={"y": FLOAT}, block_size=16, quantize_axis=axis, gather_axis=0)


def products():
    draw = Draw()
    for kind in 0, 1:
        for n, k in (5, 64), (3, 24):
            yield Case(f"table {kind}, {n} by {k}", "MatMulBnb4",
                       [("a", draw.floats(2, 3, k)), ("b!", draw.ints(0, 256, (n * k + 1) // 2)), ("m!", draw.floats(-(-n * k // 16)))],
                       K=k, N=n, block_size=16, quant_type=kind, dims={"a": ["b", "s", k]})
    for bits in 2, 4, 8:
        for zeros in False, True:
            yield Case(f"{bits} bits, zero points: {zeros}", "MatMulNBits",
                       [("a", draw.floats(2, 3, 40)), ("b!", draw.ints(0, 256, (7, 3, 16 * bits // 8))), ("s!", draw.floats(7, 3)),
                        ("z!", draw.ints(0, 256, (7, -(-3 * bits // 8)))) if zeros else None],
                       K=40, N=7, bits=bits, block_size=16, rtol=1e-3, atol=1e-3)


    groups = {"of each place": draw.ints(0, 3, 40, np.int32), "and of places behind": draw.ints(0, 3, 48, np.int32)}
    for kind, group in groups.items():
        for zeros in False, True:
            yield Case(f"groups {kind}, zero points: {zeros}", "MatMulNBits",
                       [("a", draw.floats(2, 3, 40)), ("b!", draw.ints(0, 256, (7, 3, 8))), ("s!", draw.floats(7, 3)),
                        ("z!", draw.floats(7, 3)) if zeros else None, ("g", group)], K=40, N=7, bits=4, block_size=16, rtol=1e-3, atol=1e-3)
    for group in 3, -1:
        yield Case(f"group {group} of 3", "MatMulNBits",
                   [("a", draw.floats(2, 3, 40)), ("b!", draw.ints(0, 256, (7, 3, 8))), ("s!", draw.floats(7, 3)), None,
                    ("g", np.full(40, group, np.int32))], K=40, N=7, bits=4, block_size=16, fails="an index is out of range")
    for zeros in (), (1,):
        for columns in (), (4,):
            places = np.full(columns, 3, np.int8)
            yield Case(f"zero points of {zeros} and {columns}", "MatMulIntegerToFloat",
                       [("a", draw.ints(0, 256, (5, 6))), ("b!", draw.ints(-99, 99, (6, 4), np.int8)), ("as", np.full(zeros, 0.1, np.float32)),
                        ("bs", np.full(columns, 0.2, np.float32)), ("az", np.full(zeros, 7, np.uint8)), ("bz", places), ("c", draw.floats(4))],
                       types={"y": FLOAT}, dims={"a": ["n", 6]})
            yield Case(f"zero points of {columns}, {len(zeros)}", "DynamicQuantizeMatMul",
                       [("a", draw.floats(5, 6)), ("b!", draw.ints(-99, 99, (6, 4), np.int8)), ("bs", np.full(columns, 0.2, np.float32)),
                        ("bz", places), ("c", draw.floats(4)) if zeros else None], dims={"a": ["n", 6]}, atol=1e-2)


def recurrent():
    draw = Draw()
    for direction, n in ("forward", 1), ("bidirectional", 2):
        weights = [("w!", draw.ints(-127, 127, (n, 6, 32), np.int8)), ("r!", draw.ints(-127, 127, (n, 8, 32), np.int8))]
        for each in False, True:
            shape = (n, 32) if each else (n,)
            scales = [("ws!", draw.positive(*shape) / 10), ("wz!", np.zeros(shape, np.int8)), ("rs!", draw.positive(*shape) / 10),
                      ("rz!", np.zeros(shape, np.int8))]
            yield Case(f"{direction}, each column: {each}", "DynamicQuantizeLSTM",
                       [("x", draw.floats(5, 2, 6)), *weights, ("b!", draw.floats(n, 64)), None, None, None, None, *scales],
                       results=("y", "h", "c"), hidden_size=8, direction=direction, atol=0.02, rtol=0.02)


def cases():
    for kind, dtype, _ in KINDS:
        yield from qlinear(kind, dtype)
    yield from qdq()
    yield from gathers()
    yield from products()
    yield from recurrent()
