# SPDX-License-Identifier: Apache-2.0
"""Models of one operator of com.microsoft, for check_contrib.py."""
import numpy as np
from onnx import TensorProto, helper, numpy_helper

DOMAINS = (("", 17), ("com.microsoft", 1), ("com.microsoft.nchwc", 1))
DTYPES = {"f4": np.float32, "f2": np.float16, "f8": np.float64}


class Case:
    """An operator, its operands and what may differ.

    - operands: pairs of a name and an array; None is an operand that is absent. A name with "!" is a constant.
    - results: names, "" for one that is not wanted; types: their element types if they are not those of operand 0.
    - dims: name of an operand to dims of the model's input, of which some are names.
    - unspecified: number of a result to a function that gives the mask of the elements that the operator defines.
    - steps: quantized results may differ by so many.
    - expected: results, if ONNX Runtime has no kernel.
    - fails: part of the message with which a run of Kiln ends; ONNX Runtime's ends with an error, too."""

    def __init__(self, label, operator, operands, results=("y",), types=None, dims=None, domain="com.microsoft", rtol=1e-4,
                 atol=1e-5, defined=None, steps=0, expected=None, fails=None, **attributes):
        self.label, self.rtol, self.atol, self.steps = f"{operator} {label}", rtol, atol, steps
        self.defined, self.expected, self.fails = defined or {}, expected, fails
        names = ["" if operand is None else operand[0].rstrip("!") for operand in operands]
        while not names[-1]:
            names.pop()
        present = [operand for operand in operands if operand is not None]
        self.feeds = {name: np.asarray(array) for name, array in present if not name.endswith("!")}
        weights = [numpy_helper.from_array(np.asarray(array), name[:-1]) for name, array in present if name.endswith("!")]
        first = helper.np_dtype_to_tensor_dtype(np.asarray(present[0][1]).dtype)
        node = helper.make_node(operator, names, list(results), name="n", domain=domain, **attributes)
        shapes = {name: (dims or {}).get(name, array.shape) for name, array in self.feeds.items()}
        inputs = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), shapes[name])
                  for name, array in self.feeds.items()]
        kinds = {name: (types or {}).get(name, first) for name in results if name}
        outputs = [helper.make_tensor_value_info(name, kind, None) for name, kind in kinds.items()]
        graph = helper.make_graph([node], "g", inputs, outputs, weights)
        self.model = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid(*one) for one in DOMAINS])

    @staticmethod
    def run(model, feeds):
        """What ONNX Runtime computes, without optimizing the model."""
        import onnxruntime
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.log_severity_level, options.intra_op_num_threads = 4, 1
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return session.run(None, feeds)


class Draw:
    """Random arrays by their shape."""

    def __init__(self, seed=0):
        self.random = np.random.default_rng(seed)

    def floats(self, *shape, dtype="f4"):
        return self.random.standard_normal(shape).astype(DTYPES[dtype])

    def positive(self, *shape):
        return self.random.uniform(0.01, 0.1, shape).astype(np.float32)

    def ints(self, low, high, shape, dtype=np.uint8):
        return self.random.integers(low, high, shape).astype(dtype)


FLOAT, HALF, UINT8, INT8, INT32, INT64 = (getattr(TensorProto, name) for name in ("FLOAT", "FLOAT16", "UINT8", "INT8", "INT32", "INT64"))
