# SPDX-License-Identifier: Apache-2.0
"""Operators of ai.onnx.ml with maps, for check_contrib.py: those that ONNX Runtime takes from Python, floats."""
import numpy as np
from contrib_case import Case, Draw
from onnx import TensorProto, helper

FLOAT, INT64, STRING = TensorProto.FLOAT, TensorProto.INT64, TensorProto.STRING


def map_type(key, value):
    return helper.make_map_type_proto(key, helper.make_tensor_type_proto(value, []))


class MlCase:
    """An operator from @x to y. Values that are no tensors are lists and dictionaries."""
    rtol, atol, steps, defined, expected, fails = 1e-6, 0, 0, {}, None, None

    def __init__(self, label, operator, x, x_type, y_type, **attributes):
        self.label, self.feeds = f"{operator} {label}", {"x": x}
        node = helper.make_node(operator, ["x"], ["y"], name="n", domain="ai.onnx.ml", **attributes)
        graph = helper.make_graph([node], "g", [helper.make_value_info("x", x_type)], [helper.make_value_info("y", y_type)])
        self.model = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 1)])

    run = staticmethod(Case.run)


def zip_maps():
    draw = Draw()
    for shape in (3, 4), (1, 4), (4,):
        given = helper.make_tensor_type_proto(FLOAT, shape)
        for key, labels in (INT64, {"classlabels_int64s": [7, -1, 0, 3]}), (STRING, {"classlabels_strings": ["a", "", "ä", "no"]}):
            kind = helper.make_sequence_type_proto(map_type(key, FLOAT))
            yield MlCase(f"{shape} {next(iter(labels))}", "ZipMap", draw.floats(*shape), given, kind, **labels)


def cast_maps():
    numbers = {3: np.float32(0.5), 0: np.float32(-2.7), 5: np.float32(1e6), 6: np.float32(3e38), 9: np.float32("-inf")}
    for cast_to, kind in ("TO_FLOAT", FLOAT), ("TO_STRING", STRING), ("TO_INT64", INT64):
        if cast_to == "TO_INT64":  # ONNX leaves open what becomes of numbers that are too great
            numbers = {key: number for key, number in numbers.items() if abs(number) < 1e9}
        for form in {"map_form": "DENSE"}, {"map_form": "SPARSE", "max_map": 10}, {"map_form": "SPARSE", "max_map": 4}:
            yield MlCase(f"{cast_to} {form}", "CastMap", numbers, map_type(INT64, FLOAT),
                         helper.make_tensor_type_proto(kind, None), cast_to=cast_to, **form)


def vectorizers():
    words, numbers = {"string_vocabulary": ["b", "x", "a"]}, {"int64_vocabulary": [9, 4, 1]}
    out = helper.make_tensor_type_proto(FLOAT, None)
    yield MlCase("of strings", "DictVectorizer", {"a": np.float32(3), "b": np.float32(4)}, map_type(STRING, FLOAT), out, **words)
    yield MlCase("of numbers", "DictVectorizer", {1: np.float32(3), 9: np.float32(4)}, map_type(INT64, FLOAT), out, **numbers)


def cases():
    for family in zip_maps, cast_maps, vectorizers:
        yield from family()
