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
    yield g("rotary, more positions than rows", pairs=8, positions=[[3, 9, 5, 7]], **fixed)
    yield g("rotary, behind the table", pairs=8, positions=[[3, 64, 5]], fails="an index is out of range", **fixed)
    yield g("rotary, before the table", pairs=8, positions=[[3, -1, 5]], fails="an index is out of range", **fixed)
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


def sparse(label, batch=1, rows=1, past=0, lengths=None, layouts=2, pairs=0, packed=False, dtype="f4", dims=None, **attributes):
    """4 heads of queries and 2 of keys of 16 elements, a buffer of 64 rows, blocks of 16."""
    draw = Draw(5)
    total = past + rows
    lengths = np.array(lengths or [total] * batch, np.int32)
    seen = np.tril(draw.ints(0, 2, (layouts, 4, 4), np.int32)) | np.eye(4, dtype=np.int32)
    starts = np.concatenate([np.zeros((layouts, 1), np.int32), seen.sum(2).cumsum(1)], 1).astype(np.int32)
    columns = np.full((layouts, starts.max()), -1, np.int32)
    for i in range(layouts):
        columns[i, :starts[i, -1]] = np.nonzero(seen[i])[1]
    operands = [("q", draw.floats(batch, rows, 128 if packed else 64, dtype=dtype)), None, None]
    if not packed:
        operands[1:] = [(name, draw.floats(batch, rows, 32, dtype=dtype)) for name in "kv"]
    operands += [(name, draw.floats(batch, 2, 64, 16, dtype=dtype)) for name in ("pk", "pv")]
    operands += [("starts!", starts), ("columns!", columns), ("total", np.array([total], np.int32)), ("lengths", lengths)]
    operands += angles(draw, pairs, dtype) if pairs else []
    if pairs:
        attributes["do_rotary"] = 1
    cached = (np.arange(64) < lengths[:, None])[:, None, :, None]
    before = lengths - np.minimum(rows, lengths)
    rows_defined = (before[:, None] + np.arange(rows) < lengths[:, None])[:, :, None]
    results = ("y", "keys", "values")
    case = Case(label, "SparseAttention", operands, results, {name: FLOAT if dtype == "f4" else HALF for name in results}, dims,
                defined={0: rows_defined, 1: cached, 2: cached}, num_heads=4, kv_num_heads=2, sparse_block_size=16,
                **attributes, **(HALVES if dtype == "f2" else {}))
    return in_place(case)


def in_place(case):
    """Sets the expected results. The kernel of ONNX Runtime needs the cache and the result in one buffer."""
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(case.model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    shared = {"pk": "keys", "pv": "values"}
    arrays = {name: array.copy() for name, array in case.feeds.items()}  # a value may lie in its array
    values = {name: onnxruntime.OrtValue.ortvalue_from_numpy(array) for name, array in arrays.items()}
    for name, value in values.items():
        binding.bind_ortvalue_input(name, value)
        if name in shared:
            binding.bind_ortvalue_output(shared[name], value)
    binding.bind_output("y")
    session.run_with_iobinding(binding)
    y = next(value.numpy() for value in binding.get_outputs() if len(value.shape()) == 3)
    case.expected = [y] + [values[name].numpy().copy() for name in shared]
    return case


def sparse_cases():
    yield sparse("prompt", rows=40)
    yield sparse("prompts of samples", batch=2, rows=40, pairs=8)
    yield sparse("one layout", rows=40, layouts=1, packed=True, scale=0.3)
    yield sparse("a layout for each head", rows=50, layouts=4, pairs=8, rotary_interleaved=1)
    yield sparse("a step", past=37, pairs=8)
    yield sparse("a step of samples, open", batch=2, past=50, pairs=8, packed=True,
                 dims={"q": ["b", "s", 128], "pk": ["b", 2, "p", 16], "pv": ["b", 2, "p", 16], "lengths": ["b"]})
    yield sparse("halves", past=37, dtype="f2")


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
    yield rotary("open, one position in a list of any length", (2, 3, 16), [5], 4, {"x": ["b", "s", 16], "positions": ["n"]})
    yield rotary("open hidden size", (2, 3, 16), each, 4, {"x": ["b", "s", "h"]})
    yield rotary("open size of heads", (2, 2, 3, 8), each, 4, {"x": ["b", "h", "s", "d"]})
    yield rotary("a scalar", (2, 3, 16), 5, 4)
    yield rotary("heads that are stated", (2, 3, 16), each, 4, num_heads=2)
    outside = dict(fails="an index is out of range")
    yield rotary("behind the table", (2, 3, 16), [[3, 4, 64], [0, 1, 2]], 4, **outside)
    yield rotary("one position, behind the table", (2, 3, 16), [62], 4, **outside)
    yield rotary("before the table", (2, 3, 16), [[3, -1, 2], [0, 1, 2]], 4, **outside)
    yield rotary("one position, before the table", (2, 3, 16), [-1], 4, **outside)
    open_places = {"x": ["b", "s", 16], "positions": ["c", "d"]}
    yield rotary("fewer positions than rows", (2, 3, 16), [[1]], 4, open_places, fails="reshape")
    yield rotary("several positions in a list", (2, 3, 16), [5, 6, 7], 4, {"x": ["b", "s", 16], "positions": ["n"]}, fails="reshape")


def heads(label, operator, operands, results=("y",), plain=None, dims=None, **attributes):
    """@plain: if ONNX Runtime lacks this form, the names and arrays of the operands of a form that it has."""
    attributes = {"num_heads": 2, **attributes}
    case = Case(label, operator, operands, results, dims=dims, **attributes)
    if plain:
        other = Case(label, operator, plain, results, **attributes)
        case.expected = case.run(other.model, other.feeds)
    return case


def projected_cases():
    """MultiHeadAttention: batches of 2, 3 rows, 5 keys, 2 heads of 4."""
    draw = Draw()
    q, k, v = (("q", draw.floats(2, 3, 8)), ("k", draw.floats(2, 5, 8)), ("v", draw.floats(2, 5, 8)))
    bias, wide = ("bias", draw.floats(24)), ("v", draw.floats(2, 5, 16))
    pasts = [("pk", draw.floats(2, 2, 6, 4)), ("pv", draw.floats(2, 2, 6, 4))]
    three = ("y", "keys", "values")
    def multi(label, *operands, **more):
        return heads(label, "MultiHeadAttention", operands, **more)
    def mask(*values):
        return ("mask", np.array(values, np.int32))
    yield multi("plain", q, k, v, bias)
    yield multi("wide values", q, k, wide)
    shown = ("y", "", "", "scores")
    yield multi("scores", q, k, v, None, mask([1, 1, 0, 1, 0], [0, 1, 1, 1, 1]), ("b", draw.floats(1, 2, 3, 5)), results=shown)
    yield multi("a mask of ends", q, k, v, None, mask(3, 2))
    yield multi("a mask of ends and sums", q, k, v, None, mask(3, 5, 0, 5, 10, 0, 3, 6))
    yield multi("a mask of keys", q, k, v, None, mask([1, 1, 0, 1, 0], [0, 1, 1, 1, 1]), mask_filter_value=-50.0)
    yield multi("a mask of rows", q, k, v, None, ("mask", draw.ints(0, 2, (2, 3, 5), np.int32)))
    yield multi("bias of scores", q, k, v, bias, None, ("b", draw.floats(1, 2, 3, 5)))
    yield multi("past", q, k, v, bias, None, None, *pasts, results=three)
    yield multi("past, one way", q, ("k", draw.floats(2, 3, 8)), ("v", draw.floats(2, 3, 8)), None, None, None, *pasts,
                results=three, unidirectional=1)
    for rows, keys, past in (3, 5, 0), (5, 3, 0), (1, 5, 0), (1, 3, 4), (3, 5, 4), (5, 3, 4):
        causal = [("q", draw.floats(2, rows, 8)), ("k", draw.floats(2, keys, 8)), ("v", draw.floats(2, keys, 8)), None, None, None]
        causal += [(name, draw.floats(2, 2, past, 4)) for name in ("pk", "pv")] if past else []
        dims = {"q": ["b", "s", 8], "k": ["b", "t", 8], "v": ["b", "t", 8], "pk": ["b", 2, "p", 4], "pv": ["b", 2, "p", 4]}
        for form in None, dims:
            yield multi(f"one way, {rows} rows, {keys} keys, {past} before, {'open' if form else 'known'}", *causal, results=three,
                        unidirectional=1, dims=form)
    final = [("k", draw.floats(2, 2, 5, 4)), ("v", draw.floats(2, 2, 5, 4))]
    yield multi("keys with heads, one way, results", q, *final, results=three, unidirectional=1)
    yield multi("keys with heads", q, *final)
    yield multi("keys with heads, bias", q, *final, bias)
    packed = draw.floats(2, 3, 2, 3, 4)
    flat = [(name, packed[:, :, :, i].reshape(2, 3, 8)) for i, name in enumerate("qkv")]
    yield multi("packed", ("q", packed), plain=flat)
    yield multi("packed, results", ("q", packed), plain=flat, results=three)
    pairs = draw.floats(2, 5, 2, 2, 4)
    yield multi("packed keys and values", q, ("k", pairs),
                plain=[q] + [(name, pairs[:, :, :, i].reshape(2, 5, 8)) for i, name in enumerate("kv")])
    row = [(name, draw.floats(2, 1, 8)) for name in "qkv"]
    length, beams = ("n", np.array([3], np.int32)), ("beams", np.array([[[0, 1, 0, 1, 0, 0], [1, 0, 0, 1, 0, 0]]], np.int32))
    yield multi("a buffer", *row, None, None, None, *pasts, length, results=three)
    for way in 0, 1:
        some = [(name, draw.floats(2, 2, 8)) for name in "qkv"]
        yield multi(f"several rows into a buffer, one way: {way}", *some, None, None, None, *pasts, length, results=three,
                    unidirectional=way, dims={name: ["b", "s", 8] for name in "qkv"})
    yield multi("a buffer of beams", *row, None, None, None, *pasts, length, beams, results=three)
    yield multi("open", q, k, v, bias, None, None, *pasts, results=three,
                dims={"q": ["b", "s", 8], "k": ["b", "t", 8], "v": ["b", "t", 8], "pk": ["b", 2, "p", 4], "pv": ["b", 2, "p", 4]})
    def decoder(label, *operands, **more):
        return heads(label, "DecoderMaskedMultiHeadAttention", operands, **more)
    shared = dict(results=three, past_present_share_buffer=1)
    yield decoder("a buffer", *row, None, None, *pasts, length, **shared)
    yield decoder("a buffer, bias", *row, None, None, *pasts, length, None, None, bias, **shared)
    yield decoder("a buffer, mask", *row, mask([1, 0, 1, 1], [0, 1, 1, 1]), None, *pasts, length, **shared)
    yield decoder("a buffer, bias of scores", *row, None, ("b", draw.floats(1, 2, 1, 4)), *pasts, length, **shared)
    yield decoder("a buffer, scores", *row, None, None, *pasts, length, results=("y", "keys", "values", "scores"), output_qk=1,
                  past_present_share_buffer=1)
    yield decoder("a buffer of beams", *row, None, None, *pasts, length, ("w", np.array([2], np.int32)), beams, **shared)
    yield decoder("a buffer, open", *row, None, None, *pasts, length, **shared,
                  dims={"q": ["b", 1, 8], "k": ["b", 1, 8], "v": ["b", 1, 8], "pk": ["b", 2, "p", 4], "pv": ["b", 2, "p", 4]})
    yield decoder("keys with heads", row[0], *final)
    yield decoder("keys with heads, mask", row[0], *final, mask([1, 1, 0, 1, 0], [0, 1, 1, 1, 1]))
    yield decoder("scores", row[0], *final, mask([1, 1, 0, 1, 0], [0, 1, 1, 1, 1]), results=shown, output_qk=1)


def merged_cases():
    draw = Draw()
    x, w, bias = ("x", draw.floats(2, 3, 6)), ("w!", draw.floats(6, 24)), ("bias!", draw.floats(24))
    ends = ("mask", np.array([3, 2], np.int32))
    past = ("past", draw.floats(2, 2, 2, 7, 4))
    both = ("y", "present")
    yield heads("plain", "Attention", [x, w, bias])
    yield heads("ends", "Attention", [x, w, bias, ends])
    yield heads("ends and starts", "Attention", [x, w, bias, ("mask", np.array([3, 2, 0, 1], np.int32))])
    yield heads("ends and sums", "Attention", [x, w, bias, ("mask", np.array([3, 2, 0, 1, 3, 0, 3, 6], np.int32))])
    for numbers in [3, 2], [3, 2, 0, 1], [3, 2, 0, 1, 3, 0, 3, 6]:
        yield heads(f"a mask of {len(numbers)} numbers, open", "Attention", [x, w, bias, ("mask", np.array(numbers, np.int32))],
                    dims={"x": ["b", "s", 6], "mask": ["n"]})
    yield heads("fewer ends than samples", "Attention", [x, w, bias, ("mask", np.array([3], np.int32))], fails="reshape",
                dims={"x": ["b", "s", 6], "mask": ["n"]})
    yield heads("wide values", "Attention", [x, ("w!", draw.floats(6, 32)), ("bias!", draw.floats(32))], qkv_hidden_sizes=[8, 8, 16])
    yield heads("without a bias", "Attention", [x, w], num_heads=4)
    yield heads("a mask of one column", "Attention", [x, w, bias, ("mask", np.array([[0], [1]], np.int32))])
    for shape in (0, 3, 6), (2, 0, 6):
        for way in 0, 1:
            yield heads(f"nothing {shape}, one way: {way}", "Attention", [("x", draw.floats(*shape)), w, bias], both, unidirectional=way,
                        dims={"x": ["b", "s", 6]})
    yield heads("past, one way", "Attention", [x, w, bias, None, past], both, unidirectional=1)
    for kind in np.uint8, np.int8:
        x, w = ("x", draw.ints(0, 255, (2, 3, 6))), ("w!", draw.ints(0, 255, (6, 24)).astype(kind))
        zeros = ("xz", np.uint8(100)), ("wz", kind(17))
        scales = ("xs", np.float32(0.02)), ("ws", np.float32(0.01))
        floats = dict(types={"y": FLOAT, "present": FLOAT})
        def of_integers(label, *operands, results=("y",), **more):
            case = Case(f"{label}, {kind.__name__}", "QAttention", operands, results, num_heads=2, **floats, **more)
            return case
        yield of_integers("plain", x, w, bias, *scales)
        yield of_integers("zero points", x, w, bias, *scales, None, *zeros)
        yield of_integers("mask, one way", x, w, bias, *scales, ends, *zeros, unidirectional=1)
        yield of_integers("past", x, w, bias, *scales, None, *zeros, past, results=both)
        each = ("ws", draw.positive(24)), ("wz", draw.ints(0, 9, 24).astype(kind))
        yield of_integers("a scale for each column", x, w, bias, scales[0], each[0], None, zeros[0], each[1],
                          dims={"x": ["b", "s", 6]})


def cases():
    yield from group_query_cases()
    yield from sparse_cases()
    yield from rotary_cases()
    yield from projected_cases()
    yield from merged_cases()
