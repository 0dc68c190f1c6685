# SPDX-License-Identifier: Apache-2.0
"""Operators of com.microsoft that ONNX Runtime computes on graphics cards alone, for check_contrib.py: their formulas."""
import numpy as np
from contrib_case import FLOAT, INT32, Case, Draw
from onnx import TensorProto

BOOL, UINT32 = TensorProto.BOOL, TensorProto.UINT32


def swiglu(gate, up, alpha=1, beta=0, limit=0):
    if limit > 0:
        gate, up = np.minimum(gate, limit), np.clip(up, -limit, limit)
    return (gate / (1 + np.exp(-alpha * gate)) * (up + beta)).astype(gate.dtype)


def gates():
    draw = Draw()
    for more in {}, {"alpha": 1.7, "beta": 1.0, "limit": 0.8}, {"limit": -1.0}:
        named = {name if name == "limit" else f"activation_{name}": value for name, value in more.items()}
        gate, up = draw.floats(2, 3, 4), draw.floats(2, 3, 4)
        y = swiglu(gate, up, **more)
        yield Case(f"{more}", "SwiGLU", [("g", gate), ("u", up)], expected=[y], dims={"g": ["b", 3, 4], "u": ["b", 3, 4]}, **named)
        yield Case(f"in one {more}", "SwiGLU", [("g", np.concatenate([gate, up], -1))], expected=[y], **named)
        halves = gate.astype(np.float16), up.astype(np.float16)
        yield Case(f"halves {more}", "SwiGLU", [("g", halves[0]), ("u", halves[1])], expected=[y.astype(np.float16)], rtol=5e-3, atol=5e-3,
                   round_activation=1, **named)
        x, w = draw.floats(2, 5), draw.floats(5, 9)
        product = x @ w
        yield Case(f"{more}", "RouterGateUpProj", [("x", x), ("w!", w)], results=("y", "z"), types={"y": FLOAT, "z": FLOAT}, router_size=3,
                   expected=[product[:, :3], swiglu(product[:, 3:6], product[:, 6:], **more)], dims={"x": ["b", 5]}, **named)
    x, w, bias = draw.floats(2, 3, 4), draw.floats(4, 5), draw.floats(5)
    for label, y, operands in ("plain", x @ w, []), ("bias", x @ w + bias, [("b!", bias)]):
        expected = 0.5 * y * (1 + np.tanh(np.sqrt(2 / np.pi) * (y + 0.044715 * y ** 3)))
        yield Case(label, "GemmFastGelu", [("x", x), ("w!", w), *operands], expected=[expected.astype(np.float32)], dims={"x": ["b", "n", 4]})
    y = x @ w
    for activation, expected in ("Relu", np.maximum(y, 0)), ("LeakyRelu", np.where(y < 0, np.float32(0.2) * y, y)), ("Tanh", np.tanh(y)):
        yield Case(activation, "FusedMatMulActivation", [("x", x), ("w!", w)], expected=[expected], activation=activation, activation_alpha=0.2)
    data, more = draw.floats(2, 3, 5), draw.floats(2, 3, 5)
    for label, operands, expected in ("plain", [], data + bias), ("residual", [("r", more)], data + bias + more):
        yield Case(label, "BiasDropout", [("x", data), ("b!", bias), *operands], results=("y", "z"), types={"y": FLOAT, "z": BOOL},
                   expected=[expected, np.ones(data.shape, bool)])


def numbers():
    draw = Draw()
    a, b = draw.floats(2, 3, 2), draw.floats(2, 3, 2)
    x, y = a[..., 0] + 1j * a[..., 1], b[..., 0] + 1j * b[..., 1]
    for name, product in ("ComplexMul", x * y), ("ComplexMulConj", x * np.conj(y)):
        yield Case("plain", name, [("a", a), ("b", b)], expected=[np.stack([product.real, product.imag], -1).astype(np.float32)],
                   dims={"a": ["n", 3, 2], "b": ["n", 3, 2]})
    for n in 8, 14:
        signal = draw.floats(2, 3, n)
        spectrum = np.fft.rfft(signal)
        parts = np.stack([spectrum.real, spectrum.imag], -1).astype(np.float32)
        yield Case(f"{n}", "Rfft", [("x", signal)], expected=[parts], atol=1e-4, dims={"x": ["b", 3, n]})
        yield Case(f"{n}", "Irfft", [("x", parts)], expected=[signal], atol=1e-4, signal_ndim=1)
    for label, values in ("finite", [1, 2]), ("inf", [1, -np.inf]), ("nan", [np.nan, 2]):
        operands = [("x", np.array(values, np.float32)), ("z", draw.floats(2, 3))]
        for only in "", "isinf_only", "isnan_only":
            bad = (np.isinf(values).any() and only != "isnan_only") or (np.isnan(values).any() and only != "isinf_only")
            yield Case(f"{label} {only}", "IsAllFinite", operands, types={"y": BOOL}, expected=[np.array(not bad)], **({only: 1} if only else {}))
    for dtype, wide, kind in (np.int8, np.int32, INT32), (np.uint8, np.uint32, UINT32):
        low = -128 if dtype == np.int8 else 0
        values = draw.ints(low, low + 256, (3, 40), dtype)
        yield Case(f"{dtype.__name__}", "ReduceSumInteger", [("x", values)], types={"y": kind}, axes=[1], keepdims=0,
                   expected=[values.astype(wide).sum(1, dtype=wide)])
        other, zero = draw.ints(low, low + 256, (40,), dtype), draw.ints(low, low + 9, (), dtype)
        yield Case(f"{dtype.__name__}", "MulInteger", [("a", values), None, ("b", other), ("z!", zero)], types={"y": INT32},
                   expected=[values.astype(np.int32) * (other.astype(np.int32) - int(zero))])


def rows():
    draw = Draw()
    table, at = draw.floats(6, 4), draw.ints(0, 6, (2, 3), np.int64)
    yield Case("plain", "TorchEmbedding", [("w!", table), ("x", at)], types={"y": FLOAT}, expected=[table[at]], dims={"x": ["b", "n"]})
    lengths, tokens = (3, 1), draw.floats(4, 5)
    places = [b * 3 + i for b, length in enumerate(lengths) for i in range(length)]
    offsets = np.array(places + [i for i in range(6) if i not in places], np.int32).reshape(2, 3)
    expected = np.zeros((6, 5), np.float32)
    expected[places] = tokens
    yield Case("plain", "RestorePadding", [("x", tokens), ("o", offsets)], expected=[expected.reshape(2, 3, 5)],
               dims={"x": ["t", 5], "o": ["b", "s"]})


def cases():
    yield from gates()
    yield from numbers()
    yield from rows()
