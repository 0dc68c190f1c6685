# SPDX-License-Identifier: Apache-2.0
"""Mixtures of experts of com.microsoft, for check_contrib.py: 4 experts of 32 by 32 numbers."""
import numpy as np
from contrib_case import FLOAT, Case, Draw

EXPERTS, OUTER, INNER = 4, 32, 32


def mixture(label, rows=(5,), fused=False, bias=True, dims=None, rtol=1e-4, scores=None, **attributes):
    """@scores: rows of the router, if not those of x."""
    draw, wide = Draw(), 2 * INNER if fused else INNER
    n = scores or int(np.prod(rows))
    operands = [("x", draw.floats(*rows, OUTER)), ("router", draw.floats(n, EXPERTS)), ("w1!", draw.floats(EXPERTS, wide, OUTER)),
                ("b1!", draw.floats(EXPERTS, wide)) if bias else None, ("w2!", draw.floats(EXPERTS, OUTER, INNER)),
                ("b2!", draw.floats(EXPERTS, OUTER)) if bias else None]
    return Case(label, "MoE", operands, dims=dims, rtol=rtol, atol=1e-3, **attributes)


def of_older_files(label, outer, inner, fused):
    """The dims of weights stand the other way around; the numbers are in the same order."""
    draw, wide = Draw(), 2 * inner if fused else inner
    operands = [("x", draw.floats(5, outer)), ("router", draw.floats(5, EXPERTS)), ("w1!", draw.floats(EXPERTS, outer, wide)), None,
                ("w2!", draw.floats(EXPERTS, inner, outer))]
    more = dict(activation_type="swiglu", swiglu_fusion=1) if fused else {}
    return Case(label, "MoE", operands, k=2, atol=1e-3, **more)


def with_third_layer(label, activation):
    """Joins the gate and the layer that it gates into one matrix, as the form with one layer has them."""
    draw = Draw()
    x, router = ("x", draw.floats(5, OUTER)), ("router", draw.floats(5, EXPERTS))
    w1, w3, w2 = (draw.floats(EXPERTS, INNER, OUTER), draw.floats(EXPERTS, INNER, OUTER), draw.floats(EXPERTS, OUTER, INNER))
    case = Case(label, "MoE", [x, router, ("w1!", w1), None, ("w2!", w2), None, ("w3!", w3)], k=2, activation_type=activation, atol=1e-3)
    both = np.stack([w1, w3], 2).reshape(EXPERTS, 2 * INNER, OUTER)
    other = Case(label, "MoE", [x, router, ("w!", both), None, ("w2!", w2)], k=2, activation_type="swiglu", swiglu_fusion=1)
    case.expected = case.run(other.model, other.feeds)
    return case


def quantized(label, bits, block=0, zeros=False, fused=False, weights=False, outer=OUTER, inner=INNER, **attributes):
    """Weights are inputs: ONNX Runtime rounds the rows to 8 bits where they are constants."""
    draw, wide = Draw(), 2 * inner if fused else inner

    def scales(rows, columns):
        return draw.positive(EXPERTS, rows, -(-columns // block)) if block else draw.positive(EXPERTS, rows)

    def points(rows, columns):
        shape = (EXPERTS, rows, -(-(-(-columns // block)) * bits // 8)) if block else (EXPERTS, rows * bits // 8)
        return draw.ints(0, 256, shape) if zeros else None
    operands = [("x", draw.floats(5, outer)), ("router", draw.floats(5, EXPERTS)),
                ("w1", draw.ints(0, 256, (EXPERTS, wide, outer * bits // 8))), ("s1", scales(wide, outer)), ("b1", draw.floats(EXPERTS, wide)),
                ("w2", draw.ints(0, 256, (EXPERTS, outer, inner * bits // 8))), ("s2", scales(outer, inner)), ("b2", draw.floats(EXPERTS, outer)),
                None, None, None]
    operands += [("z1", points(wide, outer)), ("z2", points(outer, inner))] if zeros else [None, None]
    operands += [None, ("weights", draw.positive(5, EXPERTS)) if weights else None]
    if block:
        attributes["block_size"] = block
    return Case(label, "QMoE", operands, types={"y": FLOAT}, expert_weight_bits=bits, k=2, rtol=2e-3, atol=1e-2, **attributes)


def cases():
    for activation in "relu", "gelu", "silu", "identity":
        yield mixture(activation, k=2, activation_type=activation)
    yield mixture("normalized", k=3, activation_type="silu", normalize_routing_weights=1)
    swiglu = dict(fused=True, activation_type="swiglu", swiglu_fusion=1)
    yield mixture("swiglu", k=2, **swiglu)
    yield mixture("swiglu with limits", k=2, activation_alpha=1.702, activation_beta=1.0, swiglu_limit=1.5, **swiglu)
    yield mixture("rows of samples, open", rows=(2, 3), bias=False, k=1, dims={"x": ["b", "s", OUTER], "router": ["n", EXPERTS]})
    yield with_third_layer("a third layer, swiglu", "swiglu")
    yield with_third_layer("a third layer, silu", "silu")
    yield of_older_files("dims of older files", 32, 24, False)
    yield of_older_files("dims of older files, swiglu", 32, 32, True)
    yield mixture("no rows", rows=(0,), k=2, dims={"x": ["n", OUTER], "router": ["n", EXPERTS]})
    yield mixture("other rows of the router", rows=(1, 3), k=2, fails="reshape", dims={"x": ["b", "s", OUTER], "router": ["n", EXPERTS]},
                  scores=1)
    for bits in 2, 4, 8:
        for zeros in False, True:
            yield quantized(f"{bits} bits, a short last block, zero points: {zeros}", bits, 16, zeros, outer=48, inner=40, activation_type="silu")
    for bits in 4, 8:
        yield quantized(f"{bits} bits", bits, activation_type="silu")
        yield quantized(f"{bits} bits, zero points", bits, zeros=True, activation_type="silu")
        yield quantized(f"{bits} bits, blocks", bits, 16, activation_type="silu", normalize_routing_weights=1)
        yield quantized(f"{bits} bits, blocks, zero points, swiglu", bits, 16, True, True, activation_type="swiglu", swiglu_fusion=1)
    yield quantized("weights of the router", 4, activation_type="relu", weights=True)
