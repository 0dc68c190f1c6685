# SPDX-License-Identifier: Apache-2.0
"""com.microsoft.nchwc, for check_contrib.py. ONNX Runtime's optimizer rewrites small networks for this machine. Filters in
blocks of 8 and of 16 are ordered here."""
import pathlib
import tempfile

import numpy as np
import onnx
from contrib_case import Case, Draw
from onnx import TensorProto, helper, numpy_helper


def scaled(draw, *shape):
    """A filter whose output channels have different scales, as in trained networks."""
    scales = 10 ** draw.random.uniform(-2, 0, (shape[0],) + (1,) * (len(shape) - 1))
    return draw.floats(*shape) * scales.astype(np.float32)


def network(nodes, weights, shape):
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
                              [numpy_helper.from_array(array, name) for name, array in weights.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft.nchwc", 1)],
                             ir_version=10)


def optimized(model):
    """@model as ONNX Runtime writes it."""
    import onnxruntime
    with tempfile.TemporaryDirectory() as folder:
        options = onnxruntime.SessionOptions()
        options.optimized_model_filepath = str(pathlib.Path(folder) / "optimized.onnx")
        options.log_severity_level = 4
        onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return onnx.load(options.optimized_model_filepath)


def of_model(label, model, plain, x, dims=None):
    case = Case(label, "nchwc", [("x", x)])
    if dims:
        for dim, name in zip(model.graph.input[0].type.tensor_type.shape.dim, dims):
            if isinstance(name, str):
                dim.dim_param = name
    case.model, case.expected = model, case.run(plain, {"x": x})
    case.atol = 2e-5 * max(1, np.abs(case.expected[0]).max())
    return case


def conv(name, x, weights, draw, channels, inputs, kernel=3, group=1, bias=True, **attributes):
    weights[f"{name}w"] = scaled(draw, channels, inputs // group, *([kernel] * 2))
    weights[f"{name}b"] = draw.floats(channels)
    pads = attributes.pop("pads", [kernel // 2] * 4)
    return helper.make_node("Conv", [x, f"{name}w"] + [f"{name}b"] * bias, [name], group=group, pads=pads, **attributes)


def networks():
    """Pairs of a label and a function that makes nodes, weights and the shape of the input."""
    draw, w = Draw(3), {}
    yield "activations and a sum", [
        conv("a", "x", w, draw, 32, 3, strides=[2, 2]), helper.make_node("Relu", ["a"], ["b"]),
        conv("c", "b", w, draw, 32, 32), helper.make_node("Add", ["c", "b"], ["d"]), helper.make_node("Relu", ["d"], ["e"]),
        conv("f", "e", w, draw, 20, 32, 1), helper.make_node("LeakyRelu", ["f"], ["g"], alpha=0.3),
        conv("h", "g", w, draw, 16, 20, bias=False), helper.make_node("Sigmoid", ["h"], ["y"])], w, [1, 3, 18, 18]
    w = {}
    yield "groups and pools", [
        conv("a", "x", w, draw, 64, 16), helper.make_node("MaxPool", ["a"], ["b"], kernel_shape=[3, 3], strides=[2, 2]),
        conv("c", "b", w, draw, 64, 64, group=64, dilations=[2, 2]),
        helper.make_node("AveragePool", ["c"], ["d"], kernel_shape=[2, 2], pads=[1, 1, 0, 0], count_include_pad=1),
        conv("e", "d", w, draw, 64, 64, group=2), helper.make_node("GlobalAveragePool", ["e"], ["f"]),
        conv("g", "f", w, draw, 48, 64, 1), helper.make_node("Tanh", ["g"], ["y"])], w, [2, 16, 13, 13]
    w = {}
    yield "rows of parts", [
        conv("a", "x", w, draw, 32, 3), conv("b", "x", w, draw, 64, 3), helper.make_node("Concat", ["a", "b"], ["c"], axis=1),
        conv("d", "c", w, draw, 32, 96, 1), helper.make_node("GlobalMaxPool", ["d"], ["y"])], w, [1, 3, 9, 9]
    for mode, more in ("nearest", {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}), ("linear", {}):
        w = {"scales": np.array([1, 1, 2, 3], np.float32)}
        yield f"upsampled, {mode}", [
            conv("a", "x", w, draw, 32, 3), helper.make_node("Resize", ["a", "", "scales"], ["b"], mode=mode, **more),
            conv("c", "b", w, draw, 32, 32)] + [helper.make_node("Relu", ["c"], ["y"])], w, [1, 3, 9, 9]


def in_blocks(w, block, both):
    """The filter @w in blocks of output channels, and of input channels if @both. 0 fills up the last ones."""
    out, inputs = (-(-n // block) * block for n in w.shape[:2])
    padded = np.zeros((out, inputs if both else w.shape[1], *w.shape[2:]), w.dtype)
    padded[:w.shape[0], :w.shape[1]] = w
    if not both:
        return padded.reshape(out // block, block, *padded.shape[1:]).transpose(0, 2, 3, 4, 1).reshape(padded.shape)
    blocks = padded.reshape(out // block, block, inputs // block, block, *w.shape[2:])
    return blocks.transpose(0, 2, 4, 5, 3, 1).reshape(padded.shape)


def ordered(block, channels, inputs, group=1, dims=None):
    """One convolution between both reorders."""
    draw = Draw(block + channels)
    w = scaled(draw, channels, inputs // group, 3, 3)
    both = inputs >= block if group == 1 else inputs != group
    x, padded = draw.floats(1, inputs, 8, 8), -(-channels // block) * block
    bias = np.concatenate([draw.floats(channels), np.zeros(padded - channels, np.float32)])
    plain = network([helper.make_node("Conv", ["x", "w", "b"], ["c"], group=group), helper.make_node("Relu", ["c"], ["y"])],
                    {"w": w, "b": bias[:channels]}, x.shape)
    nodes = [helper.make_node("ReorderInput", ["x"], ["i"], domain="com.microsoft.nchwc")] if both or group > 1 else []
    nodes += [helper.make_node("Conv", ["i" if nodes else "x", "w", "b"], ["c"], domain="com.microsoft.nchwc", group=group,
                               activation="Relu"),
              helper.make_node("ReorderOutput", ["c"], ["y"], domain="com.microsoft.nchwc", channels=channels)]
    model = network(nodes, {"w": in_blocks(w, block, both), "b": bias}, x.shape)
    return of_model(f"blocks of {block}, {channels} from {inputs} in {group}", model, plain, x, dims)


def cases():
    for label, nodes, weights, shape in networks():
        plain, x = network(nodes, weights, shape), Draw(1).floats(*shape)
        yield of_model(label, optimized(plain), plain, x)
        yield of_model(f"{label}, open", optimized(network(nodes, weights, ["n", *shape[1:2], "h", "w"])), plain, x)
    for block in 8, 16:
        yield ordered(block, 32, 3)
        yield ordered(block, 32, 32)
        yield ordered(block, 24, 32)
        yield ordered(block, 28, 20)
        yield ordered(block, 64, 64, 64)
        yield ordered(block, 64, 64, 2, ["n", 64, "h", "w"])
