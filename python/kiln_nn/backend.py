# SPDX-License-Identifier: Apache-2.0
"""The interface of onnx.backend, so that programs and tests of ONNX run on Kiln.

    import kiln_nn.backend
    rep = kiln_nn.backend.prepare(onnx.load("model.onnx"))
    rep.run([picture])
"""
from __future__ import annotations

import contextlib
import os
import unittest
from typing import Any

import onnx
from onnx.backend.base import Backend, BackendRep, namedtupledict

from . import _errors, _kiln


# Of a model: onnx.load()'s result, or a file.
_Source = onnx.ModelProto | str | os.PathLike


class IncompatibleError(_errors.UnsupportedError, unittest.SkipTest):
    """Kiln lacks something for a model. ONNX's runner of tests counts such a case as skipped."""


@contextlib.contextmanager
def _incompatible():
    try:
        yield
    except _errors.UnsupportedError as error:
        raise IncompatibleError(str(error)) from error


class KilnBackendRep(BackendRep):
    """A model that is ready to run."""

    def __init__(self, session: _kiln.Session) -> None:
        self._session = session
        self._inputs = [info.name for info in session.program.inputs]
        self._outputs = [info.name for info in session.program.outputs]

    def run(self, inputs: Any, **kwargs: Any) -> Any:
        """Runs on a list of arrays in order, or on a dict. Returns a named tuple of arrays."""
        if not isinstance(inputs, dict):
            inputs = dict(zip(self._inputs, inputs))
        with _incompatible():
            results = self._session.run(inputs)
        values = tuple(results[name] for name in self._outputs)
        return namedtupledict("Outputs", self._outputs)(*values)


class KilnBackend(Backend):
    """Kiln as a backend of ONNX. Options of Model.compile() go through prepare()."""

    @classmethod
    def is_compatible(cls, model: _Source, device: str = "CPU", **kwargs: Any) -> bool:
        """True where Kiln lacks nothing for the model."""
        return cls.supports_device(device) and not _load(model).check()

    @classmethod
    def prepare(cls, model: _Source, device: str = "CPU", **kwargs: Any) -> KilnBackendRep:
        """Compiles a ModelProto, or the model in a file."""
        if not cls.supports_device(device):
            raise ValueError(f"device: expected CPU, found {device}")
        with _incompatible():
            loaded = _load(model)
            lacks = loaded.check()
            if lacks:
                raise _errors.UnsupportedError("; ".join(f"{row.op} at {row.node}: {row.reason}" for row in lacks))
            return KilnBackendRep(loaded.compile(**kwargs).session())

    @classmethod
    def run_model(cls, model: _Source, inputs: Any, device: str = "CPU", **kwargs: Any) -> Any:
        """Compiles a model and runs it once."""
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(
            cls, node: onnx.NodeProto, inputs: Any, device: str = "CPU", outputs_info: Any = None, **kwargs: Any
    ) -> Any:
        """Runs one node."""
        import numpy as np
        super().run_node(node, inputs, device, outputs_info, **kwargs)
        names = [name for name in node.input if name]
        arrays = [np.asarray(value) for value in inputs]
        declared = [onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
                    for name, array in zip(names, arrays)]
        results = [onnx.helper.make_empty_tensor_value_info(name) for name in node.output if name]
        graph = onnx.helper.make_graph([node], "node", declared, results)
        opset = onnx.helper.make_opsetid("", kwargs.get("opset_version", onnx.defs.onnx_opset_version()))
        model = onnx.helper.make_model(graph, opset_imports=[opset])
        return cls.run_model(onnx.shape_inference.infer_shapes(model), dict(zip(names, arrays)), device)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """True for CPU."""
        return device.split(":")[0] == "CPU"


def _load(model):
    return _kiln.load(model.SerializeToString() if isinstance(model, onnx.ModelProto) else model)


is_compatible = KilnBackend.is_compatible
prepare = KilnBackend.prepare
run = KilnBackend.run_model
run_model = KilnBackend.run_model
run_node = KilnBackend.run_node
supports_device = KilnBackend.supports_device
