# SPDX-License-Identifier: Apache-2.0
"""Gates, streams of branches and rotations by three positions of com.microsoft, for check_contrib.py."""
import numpy as np
from contrib_case import Case, Draw

HALVES = dict(rtol=4e-3, atol=4e-3)


def typed(dtype):
    return HALVES if dtype == "f2" else {}


def gates():
    draw = Draw()
    for dtype in "f4", "f2":
        def floats(*shape):
            return draw.floats(*shape, dtype=dtype)
        x, y, gate = ("x", floats(2, 3, 8)), ("other", floats(2, 3, 8)), ("g", floats(2, 3, 1))
        yield Case(dtype, "GatedAdd", [x, y, gate], dims={"x": ["b", "s", 8], "other": ["b", "s", 8], "g": ["b", "s", 1]}, **typed(dtype))
        for activation in "silu", "swish", "sigmoid":
            for columns in 8, 4:
                yield Case(f"{activation}, {columns} of 8 columns, {dtype}", "GatedRMSNorm", [x, ("w!", floats(columns)), y],
                           activation=activation, epsilon=1e-4, dims={"x": ["b", "s", 8], "other": ["b", "s", 8]}, **typed(dtype))
        yield Case(f"alpha, {dtype}", "ScaledSiLU", [x], alpha=0.7, **typed(dtype))
        yield Case(f"plain, {dtype}", "ScaledSiLU", [x], **typed(dtype))
        yield Case(f"a scale, {dtype}", "ScaledSiLU", [x, ("s", np.float32(1.3))], **typed(dtype))
        heads = [("a", floats(2, 3, 4)), ("b!", draw.floats(4)), ("d!", -draw.positive(4)), ("r", floats(2, 3, 4))]
        yield Case(f"both, {dtype}", "LinearAttentionGate", heads, results=("y", "z"), dims={"a": ["b", "s", 4], "r": ["b", "s", 4]},
                   **typed(dtype))
        yield Case(f"decay alone, {dtype}", "LinearAttentionGate", heads[:3], **typed(dtype))
        key = [(name, floats(2, 3, 2, 8)) for name in ("k", "q")] + [("v", floats(2, 3, 8))]
        scales = [(f"{name}!", floats(2, 8)) for name in "abc"]
        open_dims = {"k": ["b", "s", 2, 8], "q": ["b", "s", 2, 8], "v": ["b", "s", 8]}
        yield Case(f"both, {dtype}", "EngramGate", key + scales, results=("y", "z"), epsilon=1e-4, dims=open_dims, **typed(dtype))
        yield Case(f"one result, {dtype}", "EngramGate", key + scales[:2], **typed(dtype))


def streams():
    """2 by 3 rows of 4 branches of 5 columns."""
    draw = Draw()
    for dtype in "f4", "f2":
        x = draw.floats(2, 3, 4, 5, dtype=dtype)
        for flat in 0, 4:
            streams = ("x", x.reshape(2, 3, 20) if flat else x)
            label, more = f"{'flat' if flat else 'grouped'}, {dtype}", dict(typed(dtype), num_branches=flat)
            dims = {"x": ["b", "s", *streams[1].shape[2:]]}
            for shape in None, (5,), (20,), (4, 5):
                yield Case(f"{label}, a scale of {shape}", "BranchwiseRMSNorm", [streams, ("w!", draw.floats(*shape)) if shape else None],
                           epsilon=1e-4, dims=dims, **more)
            for shape in (4,), (4, 1), (4, 5), (20,):
                if shape != (20,) or flat:
                    yield Case(f"{label}, gates of {shape}", "HyperConnectionPreMix", [streams, ("g", draw.floats(2, 3, *shape))],
                               reduction_scale=0.5, dims={**dims, "g": ["b", "s", *shape]}, **more)
                if shape != (20,):
                    for mix in False, True:
                        yield Case(f"{label}, gates of {shape}, mix: {mix}", "HyperConnectionPostMix",
                                   [streams, ("o", draw.floats(2, 3, 5, dtype=dtype)), ("g", draw.floats(2, 3, *shape)),
                                    ("m", draw.floats(2, 3, 4, 4)) if mix else None], dims=dims, **more)


def rotary(label, shape, sections, columns=None, dims=None, dtype="f4", positions=None, **attributes):
    draw, rows = Draw(), shape[-2]
    if len(shape) == 3:
        attributes.setdefault("num_heads", 2)
    turns = draw.random.uniform(-3, 3, (32, columns or sum(sections)))
    tables = [(name, function(turns).astype(np.float32 if dtype == "f4" else np.float16))
              for name, function in (("cos!", np.cos), ("sin!", np.sin))]
    positions = draw.ints(0, 32, (3, shape[0], rows), np.int64) if positions is None else np.full((3, shape[0], rows), positions)
    return Case(label, "MRotaryEmbedding", [("x", draw.floats(*shape, dtype=dtype)), ("p", positions), *tables], mrope_section=sections,
                dims=dims, **attributes, **typed(dtype))


def rotations():
    for layout in 0, 1:
        for neighbours in 0, 1:
            more = dict(mrope_layout=layout, interleaved=neighbours)
            yield rotary(f"layout {layout}, {neighbours}", (2, 3, 32), [4, 2, 2], **more)
            yield rotary(f"layout {layout}, {neighbours}, part of heads", (2, 3, 32), [2, 1, 1], rotary_embedding_dim=8, **more)
            yield rotary(f"layout {layout}, {neighbours}, heads", (2, 2, 3, 16), [3, 3, 2], **more)
    yield rotary("open", (2, 3, 32), [4, 2, 2], dims={"x": ["b", "s", 32], "p": [3, "b", "s"]})
    yield rotary("one section", (2, 3, 32), [8, 0, 0])
    yield rotary("halves", (2, 3, 32), [4, 2, 2], dtype="f2")
    for position in 32, -1:
        yield rotary(f"position {position} of 32", (2, 3, 32), [4, 2, 2], positions=position, fails="an index is out of range")


def cases():
    yield Case("plain", "SampleOp", [("x", Draw().floats(2, 3))])
    yield from gates()
    yield from streams()
    yield from rotations()
