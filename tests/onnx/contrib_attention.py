# SPDX-License-Identifier: Apache-2.0
"""Attention of com.microsoft, for check_contrib.py."""
import numpy as np
from contrib_case import FLOAT, HALF, Case, Draw

HALVES = dict(rtol=4e-3, atol=4e-3)


def angles(draw, pairs, dtype):
    turns = draw.random.uniform(-3, 3, (64, pairs))
    return [(name, function(turns).astype(np.float32 if dtype == "f4" else np.float16))
            for name, function in (("cos!", np.cos), ("sin!", np.sin))]


def group_query(label, batch=1, rows=3, past=0, buffer=0, heads=4, kv=2, size=16, lengths=None, total=None, packed=False,
                pairs=0, dtype="f4", positions=None, bias=None, sink=False, valid=None, column=False, shown=0, dims=None,
                constant="", **attributes):
    """@past tokens before the step, in a buffer of rows; @lengths: the last token of each sample."""
    draw, total = Draw(), total or past + rows
    lengths = np.array(lengths or [total - 1] * batch, np.int32)
    width = (heads + 2 * kv if packed else heads) * size
    operands = [("q", draw.floats(batch, rows, width, dtype=dtype)), None, None, None, None]
    if not packed:
        operands[1:3] = [(name, draw.floats(batch, rows, kv * size, dtype=dtype)) for name in "kv"]
    if buffer:
        operands[3:] = [(name, draw.floats(batch, kv, buffer, size, dtype=dtype)) for name in ("pk", "pv")]
    operands += [("lengths" + constant, lengths.reshape(batch, 1) if column else lengths),
                 ("total" + constant, np.array([total] if column else total, np.int32))]
    operands += angles(draw, pairs, dtype) if pairs else [None, None]
    operands += [("positions", np.array(positions, np.int64)) if positions else None,
                 ("bias", draw.floats(*bias, dtype=dtype)) if bias else None,
                 ("sink", draw.floats(heads, dtype=dtype)) if sink else None, None, None, None, None,
                 ("valid", np.array(valid, np.int32)) if valid else None]
    behind = lengths.astype(np.int64) + 1
    before = behind - (np.array(valid) if valid else np.minimum(rows, behind))
    rows_defined = (before[:, None] + np.arange(rows) < behind[:, None])[:, :, None]
    cached = np.arange(max(buffer, total) if buffer else rows) < behind[:, None]
    defined = {0: rows_defined, 1: cached[:, None, :, None], 2: cached[:, None, :, None], 3: rows_defined[:, None]}
    results = ("y", "keys", "values", "shown")[:4 if shown else 3]
    if pairs:
        attributes["do_rotary"] = 1
    if shown:
        attributes["qk_output"] = shown
    return Case(label, "GroupQueryAttention", operands, results, {name: FLOAT if dtype == "f4" else HALF for name in results}, dims,
                defined=defined, num_heads=heads, kv_num_heads=kv, **attributes, **(HALVES if dtype == "f2" else {}))


def group_query_cases():
    g = group_query
    two = dict(batch=2, rows=4, buffer=12, lengths=[3, 1], total=4)
    three = dict(batch=3, rows=1, lengths=[9, 4, 0], total=10)
    fixed, grown = dict(past=5, buffer=12), dict(past=5, buffer=5)
    yield g("prompt")
    yield g("prompt of padded samples", batch=2, rows=4, lengths=[3, 1], total=4)
    yield g("prompt into a buffer", batch=3, rows=4, buffer=12, lengths=[3, 1, 0], total=4)
    yield g("packed", packed=True)
    yield g("a cache that grows", **grown)
    yield g("a buffer", **fixed)
    yield g("a buffer and known lengths", constant="!", **fixed)
    yield g("a step of samples, buffer", buffer=12, **three)
    yield g("a step of samples, growing", buffer=9, **three)
    yield g("lengths as a column", buffer=12, column=True, **three)
    for neighbours in 0, 1:
        turn = dict(pairs=8, rotary_interleaved=neighbours)
        yield g(f"rotary {neighbours}", **turn, **fixed)
        yield g(f"rotary {neighbours}, part of heads", packed=True, size=32, **turn, **fixed)
        yield g(f"rotary {neighbours}, samples", buffer=12, **turn, **three)
    yield g("rotary, prompt", pairs=8, **two)
    yield g("rotary, prompt, positions", pairs=8, positions=[[3, 1, 2, 9], [5, 6, 7, 8]], **two)
    yield g("rotary, step, positions", pairs=8, buffer=12, positions=[[3], [5], [1]], **three)
    yield g("rotary, chunk, positions", pairs=8, positions=[[3, 9, 5]], **fixed)
    yield g("window", local_window_size=3, **fixed)
    yield g("window, prompt", rows=7, local_window_size=3)
    yield g("cap", softcap=2.0, scale=0.7, **fixed)
    yield g("smooth", smooth_softmax=1, **fixed)
    yield g("sink", sink=True, **fixed)
    yield g("sink, window, cap", sink=True, local_window_size=4, softcap=3.0, smooth_softmax=1, **fixed)
    yield g("bias", bias=(1, 4, 3, 8), softcap=2.0, **grown)
    yield g("bias of all heads", bias=(1, 1, 3, 8), **grown)
    yield g("bias, buffer", bias=(1, 4, 3, 8), **fixed)
    yield g("both ways", batch=2, rows=4, lengths=[3, 1], total=4, causal=0)
    yield g("both ways, buffer", causal=0, **fixed)
    for shown in 1, 2:
        yield g(f"scores {shown}", shown=shown, softcap=2.0, local_window_size=3, **fixed)
        yield g(f"scores {shown}, growing", shown=shown, sink=True, **grown)
    chunk = dict(rows=4, buffer=16, total=16, pairs=8)
    yield g("padded chunks", batch=3, lengths=[8, 4, 2], valid=[3, 4, 1], **chunk)
    yield g("padded chunks, positions", batch=2, lengths=[8, 4], valid=[3, 4], positions=[[3, 1, 2, 9], [5, 6, 7, 8]], **chunk)
    yield g("a head of keys for each", kv=4, **fixed)
    yield g("one head of keys", kv=1, **fixed)
    yield g("halves", dtype="f2", pairs=8, packed=True, **fixed)
    yield g("halves, sink", dtype="f2", sink=True, local_window_size=3, **fixed)
    dims = {"q": ["b", "s", 64], "k": ["b", "s", 32], "v": ["b", "s", 32], "pk": ["b", 2, "p", 16], "pv": ["b", 2, "p", 16],
            "lengths": ["b"]}
    yield g("open", dims=dims, **grown)
    yield g("open, buffer", dims=dims, pairs=8, **fixed)


def rotary(label, shape, positions, pairs, dims=None, dtype="f4", **attributes):
    draw = Draw()
    tolerance = HALVES if dtype == "f2" else {}
    operands = [("x", draw.floats(*shape, dtype=dtype)), ("positions", np.array(positions, np.int64)), *angles(draw, pairs, dtype)]
    return Case(label, "RotaryEmbedding", operands, dims=dims, **attributes, **tolerance)


def rotary_cases():
    each = [[3, 4, 9], [0, 1, 2]]
    yield rotary("flat", (2, 3, 16), each, 4)
    yield rotary("from one position on", (2, 3, 16), [5], 4)
    yield rotary("neighbours", (2, 3, 16), [5], 4, interleaved=1)
    yield rotary("part of heads", (2, 3, 16), each, 2, num_heads=2, rotary_embedding_dim=4)
    yield rotary("heads", (2, 2, 3, 8), each, 4)
    yield rotary("part of heads that are a dim", (2, 2, 3, 8), each, 2, num_heads=2, rotary_embedding_dim=4, interleaved=1)
    yield rotary("packed", (2, 3, 16), each, 4, is_packed_batching=1)
    yield rotary("halves", (2, 3, 16), each, 4, dtype="f2")
    yield rotary("open", (2, 3, 16), each, 4, {"x": ["b", "s", 16], "positions": ["b", "s"]})
    yield rotary("open, one position", (2, 2, 3, 8), [4], 4, {"x": ["b", 2, "s", 8]})


def cases():
    yield from group_query_cases()
    yield from rotary_cases()
