# SPDX-License-Identifier: Apache-2.0
"""Distances of tokens, predicted tokens, slices, weights in blobs, routers and pools of com.microsoft, for check_contrib.py."""
import numpy as np
from contrib_case import FLOAT, INT32, INT64, Case, Draw
from onnx import TensorProto

UINT32 = TensorProto.UINT32


def distances():
    """ONNX Runtime has no kernel for processors: its formulas."""
    draw = Draw()
    for both in 0, 1:
        for buckets, farthest in (32, 128), (8, 20):
            for rows, keys in (7, 7), (60, 60), (150, 150):
                table = draw.floats(3, buckets)
                at = np.arange(keys) - np.arange(rows)[:, None]
                n = buckets // 2 if both else buckets
                distance, exact = np.abs(at) if both else np.maximum(-at, 0), n // 2
                far = np.log(np.maximum(distance, 1).astype(np.float32) / np.float32(exact)) / np.log(np.float32(farthest / exact))
                far = np.minimum(exact + (far * np.float32(n - exact)).astype(np.int64), n - 1)
                bucket = np.where(distance < exact, distance, far) + (at > 0) * n * both
                lengths = ("q", np.array([rows], np.int64)), ("k", np.array([keys], np.int64))
                yield Case(f"{buckets} buckets, {rows} rows, both ways: {both}", "RelativePositionBias",
                           [("t!", table.reshape(buckets, 3)), *lengths], types={"y": FLOAT}, expected=[table[:, bucket][None]],
                           max_distance=farthest, is_bidirectional=both)
    q, bias, positions = draw.floats(2, 5, 12), draw.floats(12), draw.floats(1, 3, 5, 5)
    weights, more, a = draw.floats(4, 8), draw.floats(8), draw.floats(1, 3, 1, 1)
    heads = (q + bias).reshape(2, 5, 3, 4).transpose(0, 2, 1, 3)
    gates = 1 / (1 + np.exp(-(heads @ weights + more).reshape(2, 3, 5, 2, 4).sum(-1)))
    expected = (gates[..., :1] * (gates[..., 1:] * a - 1) + 2) * positions
    yield Case("plain", "GatedRelativePositionBias", [("q", q), ("b!", bias), ("p", positions), ("w!", weights), ("c!", more), ("a!", a)],
               num_heads=3, expected=[expected.astype(np.float32)], dims={"q": ["b", "s", 12], "p": [1, 3, "s", "s"]})


def predictions():
    draw = Draw()
    both = {"y": INT64, "z": INT64}
    for case in range(40):
        source = draw.ints(0, 3 if case % 2 else 9, int(draw.random.integers(1, 12)), np.int64)
        before = int(draw.random.integers(0, len(source) + 1))
        rest = source[before:]
        same = int(draw.random.integers(0, len(rest) + 1))
        predicted = np.concatenate([rest[:same], draw.ints(0, 9, len(rest) + 1 - same, np.int64)])
        current = draw.ints(0, 3, int(draw.random.integers(0, 5)), np.int64)
        operands = [("source", source), ("current", current), ("match", np.array([before], np.int64)), ("predicted", predicted)]
        dims = {"source": ["n"], "current": ["c"], "predicted": ["p"]}
        least = 1 + case % 3
        yield Case(f"{case}", "BifurcationDetector", operands[:3] if case % 5 == 0 else operands, results=("y", "z"), types=both,
                   dims=dims if case % 4 == 0 else None, min_ngram_size=least, max_ngram_size=least + case % 4)


def hashes():
    draw = Draw()
    for dtype, kind in (np.int64, INT64), (np.int32, INT32):
        for most, heads in (2, 1), (4, 3):
            n = (most - 1) * heads
            words, by = ("w", draw.ints(0, 50000, (2, 7), dtype)), ("m!", draw.ints(1, 1 << 30, most, dtype) | 1)
            sizes, past = ("s!", draw.ints(3, 999, n, dtype)), ("p", draw.ints(0, 50000, (2, most - 1), dtype))
            offsets = ("o!", draw.ints(0, 9999, n, dtype))
            for label, more in ("plain", [None, None]), ("past", [past, None]), ("offsets", [None, offsets]), ("both", [past, offsets]):
                yield Case(f"{label}, {most} by {heads}, {np.dtype(dtype).name}", "NGramHashMapping", [words, by, sizes, *more],
                           results=("y", "z"), types={"y": kind, "z": kind}, pad_id=5, n_head_per_ngram=heads, max_ngram_size=most,
                           dims={"w": ["b", "s"], "p": ["b", most - 1]})


def slices():
    draw = Draw()
    for dim, size, step in (-1, 3, 1), (1, 2, 2), (0, 2, 1), (-2, 4, 3):
        yield Case(f"dim {dim}, {size} by {step}", "UnfoldTensor", [("x", draw.floats(2, 4, 7))], dim=dim, size=size, step=step,
                   dims={"x": ["b", 4, 7]} if dim else None)
    yield Case("defaults", "UnfoldTensor", [("x", draw.ints(0, 9, (3, 5), np.int64))], size=2)


def products():
    draw = Draw()
    yield Case("plain", "MatMulInteger16", [("a", draw.ints(-3000, 3000, (2, 5, 6), np.int16)), ("b", draw.ints(-3000, 3000, (6, 4), np.int16))],
               types={"y": INT32}, dims={"a": ["b", "n", 6]})
    for kind in 0, 1:
        for k in 32, 64, 70:
            blob = b""
            for _ in range(3 * -(-k // 32)):
                zero = bytes([int(draw.random.integers(0, 16))]) if kind else b""
                blob += draw.positive(1).tobytes() + zero + draw.ints(0, 256, 16).tobytes()
            yield Case(f"kind {kind}, {k} rows", "MatMulFpQ4", [("a", draw.floats(2, 4, k)), ("b!", np.frombuffer(blob, np.uint8)),
                                                               ("s!", np.array([k, 3], np.int64))], blk_quant_type=kind,
                       dims={"a": ["b", "n", k]})


def routers():
    draw = Draw()
    for dtype in "f4", "f2":
        x, bias = ("x", draw.floats(2, 3, 8, dtype=dtype)), ("b!", draw.floats(8))
        tolerance = dict(rtol=2e-3, atol=2e-3) if dtype == "f2" else {}
        yield Case(f"one group, {dtype}", "MoEGroupRouter", [x, bias], top_k=2, **tolerance)
        for sums, k in (1, 2), (2, 3), (9, 4), (2, 5):
            yield Case(f"2 of 4 groups by {sums}, {k} experts, {dtype}", "MoEGroupRouter", [x, bias], top_k=k, n_group=4, topk_group=2,
                       group_topk=sums, router_sentinel=-50.0, dims={"x": ["b", "s", 8]}, **tolerance)
        yield Case(f"all scores, {dtype}", "MoEGroupRouter", [x, bias], results=("", "y", "z"), top_k=2, types={"y": FLOAT, "z": FLOAT},
                   **tolerance)


def pools():
    draw = Draw()
    for shape, window in ((9,), dict(kernel_shape=[3])), ((9,), dict(kernel_shape=[4], strides=[2], pads=[1, 2])), \
            ((5, 6), dict(kernel_shape=[2, 3], strides=[1, 2], pads=[1, 0, 0, 1])), ((3, 4, 5), dict(kernel_shape=[2, 2, 2], pads=[1] * 6)):
        for first in 0, 1:
            mask = draw.ints(0, 4, (1, 1, *shape), np.int32)
            mask[(0,) * mask.ndim] = first
            yield Case(f"{shape}, first {first}", "MaxpoolWithMask", [("x", draw.floats(2, 3, *shape)), ("m", mask)],
                       dims={"x": ["b", "c", *shape]}, **window)
    for strides in 1, 2:
        yield Case(f"strides of {strides}", "ConvTransposeWithDynamicPads",
                   [("x", draw.floats(1, 2, 5, 6)), ("w!", draw.floats(2, 3, 3, 3)), ("p!", np.array([1, 0, 1, 2], np.int64)),
                    ("b!", draw.floats(3)) if strides == 1 else None], strides=[strides] * 2, kernel_shape=[3, 3],
                   dims={"x": ["b", 2, "h", "w"]})


def tokenizers():
    draw = Draw()
    texts = ["Hello World", "I love  computer science !", "", " a ", "é, ab ccc", "abab,,ab b", "x\ny", "ab;cd é"]
    for mark, least in (0, 1), (1, 1), (0, 2), (1, 3):
        more = {"mark": mark, "mincharnum": least, "pad_value": "#"}
        for separators in [" "], [" ", ",|;"], [",", "a+", " "], ["b*"], ["^.", " "], ["ab", "b"], ["\\b", "x"], ["[^a-z]+"], [" .*"]:
            yield Case(f"{separators} {mark} {least}", "Tokenizer", [("x", np.array(texts, object))], separators=separators, dims={"x": ["n"]},
                       **more)
        for pattern in "[a-z]+", "a|ab", "a*", ".+", "ab|bccc|a", "^.", "\\w+", "(?i)h.*l", "[a-z]+$":
            yield Case(f"{pattern} {mark} {least}", "Tokenizer", [("x", np.array([texts, texts[::-1]], object))], tokenexp=pattern, **more)
        if least == 1:
            yield Case(f"characters {mark}", "Tokenizer", [("x", np.array(texts, object))], separators=[""], **more)
            yield Case(f"a point {mark}", "Tokenizer", [("x", np.array([texts], object))], tokenexp=".", **more)
        yield Case(f"nothing left {mark} {least}", "Tokenizer", [("x", np.array(["", "  "], object))], separators=[" "], **more)
    for seed in range(20):
        words = np.array(["".join("ab ,"[i] for i in draw.ints(0, 4, int(draw.random.integers(0, 12)))) for _ in range(4)], object)
        pattern = ("a+b|b", "(ab)+|a", "b*a", "a.b|,")[seed % 4]
        more = {"mark": seed % 2, "mincharnum": 1 + seed % 3, "pad_value": ""}
        yield Case(f"random {seed}", "Tokenizer", [("x", words)], tokenexp=pattern, **more)
        yield Case(f"random separators {seed}", "Tokenizer", [("x", words)], separators=[pattern, " "], **more)


def numbers():
    draw = Draw()
    values = np.concatenate([draw.ints(-2 ** 31, 2 ** 31, 40, np.int64), [0, 1, -1]])
    for dtype in np.int32, np.uint32, np.int64, np.uint64, np.float32, np.float64:
        wide = (values * (1 if np.dtype(dtype).itemsize == 4 else 2 ** 31 + 7)).astype(dtype)
        for positive, kind in (1, UINT32), (0, INT32):
            yield Case(f"{np.dtype(dtype).name} {positive}", "MurmurHash3", [("x", wide)], types={"y": kind}, positive=positive,
                       seed=(0, 42, 2 ** 32 - 1)[positive + int(dtype == np.int64)], dims={"x": ["n"]})


def cases():
    yield from distances()
    yield from predictions()
    yield from tokenizers()
    yield from numbers()
    yield from hashes()
    yield from slices()
    yield from products()
    yield from routers()
    yield from pools()
