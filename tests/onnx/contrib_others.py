# SPDX-License-Identifier: Apache-2.0
"""Other operators of com.microsoft, for check_contrib.py. Where ONNX Runtime lacks a kernel, operators of
ONNX compute the expected results."""
import numpy as np
from contrib_case import FLOAT, INT64, Case, Draw
from onnx import TensorProto, helper, numpy_helper


def plain(case, nodes, weights=()):
    """Sets the expected results of the case: what @nodes compute from its operands."""
    outputs = [helper.make_tensor_value_info(info.name, info.type.tensor_type.elem_type, None) for info in case.model.graph.output]
    initializers = list(case.model.graph.initializer) + [numpy_helper.from_array(array, name) for name, array in weights]
    inputs = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
              for name, array in case.feeds.items()]
    graph = helper.make_graph(nodes, "g", inputs, outputs, initializers)
    model = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21)])
    case.expected = case.run(model, case.feeds)
    return case


def norms():
    draw = Draw()
    for last in 0, 1:
        for activation in 0, 1:
            shape, channels = ((2, 5, 4, 8), (2, 8, 5, 4))[not last], 8
            gamma, beta, bias = (("g!", draw.floats(channels)), ("b!", draw.floats(channels)), ("c!", draw.floats(channels)))
            case = Case(f"channels_last={last}, activation={activation}", "GroupNorm", [("x", draw.floats(*shape)), gamma, beta],
                        channels_last=last, activation=activation, groups=4, epsilon=1e-3)
            yield plain(case, group_norm("x", "y", last, activation))
            for form in shape, (2, channels):
                case = Case(f"channels_last={last}, skip of {len(form)} dims", "SkipGroupNorm",
                            [("x", draw.floats(*shape)), gamma, beta, ("skip", draw.floats(*form)), bias if activation else None],
                            results=("y", "s"), channels_last=last, activation=activation, groups=4, epsilon=1e-3)
                nodes = [helper.make_node("Reshape", ["skip", "row" if len(form) == 2 else "all"], ["k"]),
                         helper.make_node("Add", ["x", "k"], ["t" if activation else "s"])]
                if activation:
                    nodes += [helper.make_node("Reshape", ["c", "vector"], ["d"]), helper.make_node("Add", ["t", "d"], ["s"])]
                row = [1, 1, channels] if last else [channels, 1, 1]
                yield plain(case, nodes + group_norm("s", "y", last, activation),
                            [("row", np.array([2, *row])), ("all", np.array(shape)), ("vector", np.array([1, *row]))])


def group_norm(x, y, last, activation):
    nodes, n = [], x
    if last:
        nodes.append(helper.make_node("Transpose", [x], ["nchw"], perm=[0, 3, 1, 2]))
        n = "nchw"
    nodes.append(helper.make_node("GroupNormalization", [n, "g", "b"], ["n"], num_groups=4, epsilon=1e-3))
    if activation:
        nodes += [helper.make_node("Sigmoid", ["n"], ["gate"]), helper.make_node("Mul", ["n", "gate"], ["m"])]
    out = "m" if activation else "n"
    return nodes + [helper.make_node("Transpose", [out], [y], perm=[0, 2, 3, 1]) if last else helper.make_node("Identity", [out], [y])]


def softmaxes():
    draw = Draw()
    for axis, bias, inner in (3, (1, 1, 4, 5), 0), (3, (2, 1, 1, 5), 1), (-1, (5,), 0):
        case = Case(f"axis {axis}, bias {bias}", "BiasSoftmax", [("x", draw.floats(2, 3, 4, 5)), ("b", draw.floats(*bias))], axis=axis,
                    is_inner_broadcast=inner, dims={"x": ["n", 3, "h", "w"]} if len(bias) == 1 else None)
        yield plain(case, [helper.make_node("Add", ["x", "b"], ["s"]), helper.make_node("Softmax", ["s"], ["y"], axis=axis)])


def convolutions():
    draw = Draw()
    x, w, b, z = (("x", draw.floats(2, 6, 5, 3)), ("w!", draw.floats(4, 3, 3, 3)), ("b!", draw.floats(4)), ("z", draw.floats(2, 4, 3, 4)))
    case = Case("a sum and an activation", "NhwcFusedConv", [x, w, b, z], activation="Relu")
    yield plain(case, [helper.make_node("Transpose", ["x"], ["t"], perm=[0, 3, 1, 2]), helper.make_node("Conv", ["t", "w", "b"], ["c"]),
                       helper.make_node("Transpose", ["c"], ["l"], perm=[0, 2, 3, 1]), helper.make_node("Add", ["l", "z"], ["s"]),
                       helper.make_node("Relu", ["s"], ["y"])])


def small():
    draw = Draw()
    for axis in 0, 2, -1, -4:
        yield Case(f"axis {axis}", "ExpandDims", [("x", draw.floats(2, 3, 4)), ("a!", np.int32(axis))])
    yield Case("places and counts", "Unique", [("x", np.array([2, 1, 1, 3, 4, 3, 2, 9], np.float32))], results=("y", "i", "n"),
               types={"y": FLOAT, "i": INT64, "n": INT64})
    for metric in "euclidean", "sqeuclidean":
        for dtype in "f4", "f8":
            yield Case(f"{metric}, {dtype}", "CDist", [("a", draw.floats(5, 7, dtype=dtype)), ("b", draw.floats(4, 7, dtype=dtype))],
                       metric=metric, dims={"a": ["m", 7], "b": ["k", 7]})
    for n in 1, 2, 3, 4, 7, 12:
        for dtype in "f4", "f8":
            yield Case(f"{n} by {n}, {dtype}", "Inverse", [("x", draw.floats(2, 3, n, n, dtype=dtype) + n * np.eye(n, dtype=dtype))],
                       dims={"x": ["b", 3, n, n]})
    yield Case("one matrix", "Inverse", [("x", draw.floats(3, 3))], rtol=1e-3)
    same = draw.floats(5, 5)
    same[3] = same[1]
    singular = {"zeros": np.zeros((3, 3)), "ones": np.ones((2, 2)), "two rows that are equal": same, "nothing": np.zeros((0, 0)),
                "a zero in the diagonal": np.diag([1, 0, 2]), "a number that is none": np.array([[1, np.nan], [2, 4]])}
    for name, matrix in singular.items():
        for dtype in np.float32, np.float64:
            yield Case(f"{name}, {dtype.__name__}", "Inverse", [("x", matrix.astype(dtype))])
    for name, factor in ("small", 1e-20), ("great", 1e15):
        yield Case(f"{name} numbers", "Inverse", [("x", draw.floats(6, 6) * np.float32(factor))], rtol=1e-3, atol=0)
    yield Case("halves", "Inverse", [("x", (draw.floats(2, 4, 4) + 4 * np.eye(4)).astype(np.float16))], rtol=1e-2, atol=1e-2)
    for mode in "bilinear", "nearest", "bicubic":
        for padding in "zeros", "border", "reflection":
            for corners in 0, 1:
                grid = draw.random.uniform(-1.2, 1.2, (2, 3, 4, 2)).astype(np.float32)
                yield Case(f"{mode}, {padding}, {corners}", "GridSample", [("x", draw.floats(2, 3, 5, 6)), ("g", grid)], mode=mode,
                           padding_mode=padding, align_corners=corners)
    for n in 1, 2, 3:
        ids = draw.ints(0, 3, (2, 9), np.int64)
        yield Case(f"{n} words", "NGramRepeatBlock", [("ids", ids), ("scores", draw.floats(2, 5))], types={"y": FLOAT}, ngram_size=n,
                   dims={"ids": ["b", "length"], "scores": ["b", 5]})
    boxes = np.array([[0.1, 0.2, 0.7, 0.9], [-0.2, 0.1, 0.5, 1.3], [0.8, 0.8, 0.2, 0.1], [0.0, 0.0, 1.0, 1.0]], np.float32)
    for size in (3, 4), (1, 5), (6, 1):
        yield Case(f"{size}", "CropAndResize", [("x", draw.floats(2, 3, 7, 6)), ("boxes", boxes), ("i", np.array([0, 1, 1, 0], np.int32)),
                                                ("n!", np.array(size, np.int32))], extrapolation_value=0.5,
                   dims={"x": ["n", 3, "h", "w"], "boxes": ["r", 4], "i": ["r"]})


def states():
    draw = Draw()
    for rule, decay, rate in ("linear", 0, 0), ("gated", 1, 0), ("delta", 0, 1), ("gated_delta", 1, 1):
        q, k, v = (("q", draw.floats(2, 5, 16)), ("k", draw.floats(2, 5, 8) / 3), ("v", draw.floats(2, 5, 12)))
        yield Case(rule, "LinearAttention", [q, k, v, ("s", draw.floats(2, 2, 4, 6)), ("d", -draw.positive(2, 5, 2)) if decay else None,
                                             ("r", draw.positive(2, 5, 2)) if rate else None],
                   results=("y", "t"), q_num_heads=4, kv_num_heads=2, update_rule=rule)
    for last in 0, 1:
        for dilation in 1, 2:
            n = 3 * dilation
            shapes = ((2, 7, 6), (2, n, 6)) if last else ((2, 6, 7), (2, 6, n))
            yield Case(f"channels_last={last}, dilation={dilation}", "CausalConvWithState",
                       [("x", draw.floats(*shapes[0])), ("w!", draw.floats(6, 1, 4)), ("b!", draw.floats(6)), ("s", draw.floats(*shapes[1]))],
                       results=("y", "t"), activation="silu", channels_last=last, dilation=dilation)
    yield Case("without a state, open", "CausalConvWithState", [("x", draw.floats(2, 6, 7)), ("w!", draw.floats(6, 1, 4))],
               results=("y", "t"), dims={"x": ["b", 6, "l"]})


def cases():
    yield from norms()
    yield from softmaxes()
    yield from convolutions()
    yield from small()
    yield from states()
