# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime's class InferenceSession on Kiln: a program that changes one import runs.

    import kiln_nn.ort as onnxruntime
    session = onnxruntime.InferenceSession("model.onnx")
    session.run(None, {"image": picture})

Options that choose a device, an arena or a log have no meaning here and are accepted: Kiln runs on the processor. What
would change results and is not possible raises NotImplementedError."""
from __future__ import annotations

import ctypes
import enum
import math
import os
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import _kiln, _support
from ._support import numpy_dtype

__version__ = _kiln.version

PROVIDER = "CPUExecutionProvider"
TYPES = {"f32": "float", "f64": "double", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "u8": "uint8",
         "u16": "uint16", "u32": "uint32", "u64": "uint64", "f16": "float16", "bf16": "bfloat16", "f8e4m3fn": "float8e4m3fn",
         "f8e4m3fnuz": "float8e4m3fnuz", "f8e5m2": "float8e5m2", "f8e5m2fnuz": "float8e5m2fnuz", "i4": "int4",
         "u4": "uint4"}


# Numbers of TensorProto.DataType.
ONNX_TYPES = {1: "f32", 2: "u8", 3: "i8", 4: "u16", 5: "i16", 6: "i32", 7: "i64", 8: "string", 9: "bool", 10: "f16",
              11: "f64", 12: "u32", 13: "u64", 16: "bf16"}


def _numpy_dtype(element_type: Any) -> np.dtype[Any]:
    """Of a number of ONNX, or of what NumPy takes for a dtype."""
    return numpy_dtype(ONNX_TYPES[element_type]) if isinstance(element_type, int) else np.dtype(element_type)


def _array_at(address: int, element_type: Any, shape: Sequence[int] | None) -> np.ndarray:
    """The memory at an address, which the caller keeps."""
    dtype = _numpy_dtype(element_type)
    memory = (ctypes.c_char * (dtype.itemsize * math.prod(shape or ()))).from_address(address)
    return np.frombuffer(memoryview(memory), dtype=dtype).reshape(shape or ())


class GraphOptimizationLevel(enum.IntEnum):
    """DISABLE_ALL compiles with the pipeline `none`; all others with `default`."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(enum.IntEnum):
    """Kiln runs one instruction after the other in both modes."""

    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class SessionOptions:
    """Kiln reads graph_optimization_level, intra_op_num_threads, enable_profiling, free dimensions, and the entry
    "kiln.pipeline" of add_session_config_entry(). It ignores all others."""

    def __init__(self) -> None:
        self.graph_optimization_level = GraphOptimizationLevel.ORT_ENABLE_ALL
        self.execution_mode = ExecutionMode.ORT_SEQUENTIAL
        self.intra_op_num_threads = 0
        self.inter_op_num_threads = 0
        self.enable_profiling = False
        self.enable_cpu_mem_arena = True
        self.enable_mem_pattern = True
        self.enable_mem_reuse = True
        self.use_deterministic_compute = False
        self.use_per_session_threads = True
        self.log_severity_level = 2
        self.log_verbosity_level = 0
        self.logid = ""
        self.optimized_model_filepath = ""
        self.profile_file_prefix = ""
        self._entries: dict[str, str] = {}
        self._dims: dict[str, int] = {}

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Sets an entry; Kiln reads "kiln.pipeline"."""
        self._entries[key] = value

    def get_session_config_entry(self, key: str) -> str:
        """The value of an entry."""
        return self._entries[key]

    def add_free_dimension_override_by_name(self, name: str, dim: int) -> None:
        """Fixes an open dim of that name."""
        self._dims[name] = dim


class RunOptions:
    """Kiln ignores all options: terminate is Session.cancel() of kiln_nn."""

    def __init__(self) -> None:
        self.log_severity_level = 2
        self.log_verbosity_level = 0
        self.logid = ""
        self.only_execute_path_to_fetches = False
        self.terminate = False
        self._entries: dict[str, str] = {}

    def add_run_config_entry(self, key: str, value: str) -> None:
        """Sets an entry, which is not read."""
        self._entries[key] = value

    def get_run_config_entry(self, key: str) -> str:
        """The value of an entry."""
        return self._entries[key]


def _type(dtype: str) -> str:
    """ONNX Runtime's name: "seq(map(string,tensor(float)))" for "sequence(map(string,f32))"."""
    kind, _, inner = dtype.rpartition(")")[0].partition("(")
    if kind == "map":
        key, _, value = inner.partition(",")
        return f"map({TYPES.get(key, key)},{_type(value)})"
    if kind:
        return f"{'seq' if kind == 'sequence' else kind}({_type(inner)})"
    element = dtype.partition("[")[0]
    return f"tensor({TYPES.get(element, element)})"


class NodeArg:
    """An input or output: its name, its type such as "tensor(float)", and its shape with names of open dims."""

    def __init__(self, info: _support.TensorInfo) -> None:
        self.name = info.name
        self.type = _type(info.dtype)
        self.shape = list(info.shape or ())

    def __repr__(self) -> str:
        return f"NodeArg(name={self.name!r}, type={self.type!r}, shape={self.shape!r})"


class ModelMetadata:
    """What the model's file says about itself."""

    def __init__(self, metadata: _support.Metadata) -> None:
        self.custom_metadata_map = metadata.properties
        self.description = metadata.doc_string
        self.domain = metadata.domain
        self.graph_description = ""
        self.graph_name = metadata.graph_name
        self.producer_name = metadata.producer_name
        self.version = metadata.model_version or 2**63 - 1  # as ONNX Runtime has it where there is none


def _pipeline(options: SessionOptions) -> str:
    if "kiln.pipeline" in options._entries:
        return options._entries["kiln.pipeline"]
    return "none" if options.graph_optimization_level == GraphOptimizationLevel.ORT_DISABLE_ALL else "default"


def _shapes(model: _kiln.Model, dims: dict[str, int]) -> dict[str, Any] | None:
    """Shapes with the dims that are fixed by name."""
    shapes = {}
    for info in model.inputs:
        if info.shape and any(dim in dims for dim in info.shape):
            shapes[info.name] = [dims.get(dim, dim) for dim in info.shape]
    return shapes or None


class InferenceSession:
    """A model that runs. Any number of threads may call run() at once."""

    def __init__(
            self, path_or_bytes: str | os.PathLike[Any] | bytes, sess_options: SessionOptions | None = None,
            providers: Sequence[Any] | None = None, provider_options: Sequence[dict[Any, Any]] | None = None,
            **kwargs: Any
    ) -> None:
        options = sess_options or SessionOptions()
        self._options = options
        self._model = _kiln.load(path_or_bytes)
        self._program = self._model.compile(pipeline=_pipeline(options), threads=options.intra_op_num_threads,
                                            shapes=_shapes(self._model, options._dims))
        self._inputs = [NodeArg(info) for info in self._model.inputs]
        self._outputs = [NodeArg(info) for info in self._model.outputs]
        self._names = [info.name for info in self._model.outputs]
        self._idle: list[_kiln.Session] = []
        self._started = time.monotonic_ns()
        if options.optimized_model_filepath:
            self._program.save(options.optimized_model_filepath)

    # --- facts ---

    def get_session_options(self) -> SessionOptions:
        """The options that it was made with."""
        return self._options

    def get_inputs(self) -> list[NodeArg]:
        """The inputs, as a list of NodeArg."""
        return self._inputs

    def get_outputs(self) -> list[NodeArg]:
        """The outputs, as a list of NodeArg."""
        return self._outputs

    def get_overridable_initializers(self) -> list[NodeArg]:
        """None: initializers that are inputs are inputs."""
        return []

    def get_modelmeta(self) -> ModelMetadata:
        """A ModelMetadata."""
        return ModelMetadata(self._model.metadata)

    def get_providers(self) -> list[str]:
        """The one provider."""
        return [PROVIDER]

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        """The options of the one provider: none."""
        return {PROVIDER: {}}

    def set_providers(
            self, providers: Sequence[Any] | None = None, provider_options: Sequence[dict[Any, Any]] | None = None
    ) -> None:
        """Does nothing: there is one provider."""

    def disable_fallback(self) -> None:
        """Does nothing: there is one provider."""

    def enable_fallback(self) -> None:
        """Does nothing: there is one provider."""

    def get_profiling_start_time_ns(self) -> int:
        """When the session was made, by the monotonic clock."""
        return self._started

    def end_profiling(self) -> str:
        """The times of instructions, as text in lines. ONNX Runtime returns the name of a file."""
        idle = self._idle[-1:] if self._options.enable_profiling else []
        return "\n".join(f"{entry.ms:.3f} ms {entry.instruction} {entry.kernel}"
                         for session in idle for entry in session.profile())

    # --- runs ---

    def _validate_input(self, feed_input_names: Sequence[str]) -> None:
        missing = [arg.name for arg in self._inputs if arg.name not in feed_input_names]
        if missing:
            raise ValueError(f"Required inputs ({missing}) are missing from input feed ({list(feed_input_names)}).")

    def _run_on_idle(self, output_names: list[str], input_feed: dict[str, Any], out: dict[str, Any]) -> dict[str, Any]:
        """Runs on a session that no other thread uses."""
        try:
            session = self._idle.pop()
        except IndexError:
            session = self._program.session(profile=self._options.enable_profiling)
        try:
            return session.run(input_feed, out=out, outputs=output_names)
        finally:
            self._idle.append(session)

    def _run(self, output_names: Sequence[str], input_feed: dict[str, Any]) -> list[Any]:
        results = self._run_on_idle(list(output_names), input_feed, {})
        return [results[name] for name in output_names]

    def run(
            self, output_names: Sequence[str] | None, input_feed: dict[str, Any],
            run_options: RunOptions | None = None
    ) -> list[Any]:
        """The outputs of these names, or all for None, as a list of arrays."""
        self._validate_input(list(input_feed))
        return self._run(list(output_names) if output_names else self._names, dict(input_feed))

    def run_async(
            self, output_names: Sequence[str] | None, input_feed: dict[str, Any],
            callback: Callable[[list[Any], Any, str], object], user_data: Any, run_options: RunOptions | None = None
    ) -> None:
        """Runs on another thread, and calls callback(results, user_data, error text)."""
        import threading

        def work() -> None:
            try:
                results, error = self.run(output_names, input_feed, run_options), ""
            except Exception as problem:
                results, error = [], str(problem)
            callback(results, user_data, error)

        threading.Thread(target=work, daemon=True).start()

    def run_with_ort_values(
            self, output_names: Sequence[str] | None, input_dict_ort_values: dict[str, OrtValue],
            run_options: RunOptions | None = None
    ) -> list[OrtValue]:
        """run() on values with .numpy(); returns a list of OrtValue."""
        feed = {name: value.numpy() for name, value in input_dict_ort_values.items()}
        return [OrtValue(array) for array in self.run(output_names, feed, run_options)]

    def io_binding(self) -> IOBinding:
        """An IOBinding for run_with_iobinding()."""
        return IOBinding(self)

    def run_with_iobinding(self, iobinding: IOBinding, run_options: RunOptions | None = None) -> None:
        """Runs on what is bound."""
        iobinding._run()


def _is_of(dtype: np.dtype[Any], name: str) -> bool:
    try:
        return bool(numpy_dtype(name) == dtype)
    except ImportError:                         # ml_dtypes is absent, and so are its arrays
        return False


class OrtValue:
    """An array in the memory of the processor."""

    def __init__(self, array: Any) -> None:
        self._array = array

    @classmethod
    def ortvalue_from_numpy(
            cls, numpy_obj: np.ndarray, device_type: str = "cpu", device_id: int = 0, vendor_id: int = -1
    ) -> OrtValue:
        """A value on the memory of an array."""
        return cls(numpy_obj)

    @classmethod
    def ortvalue_from_shape_and_type(
            cls, shape: Sequence[int], element_type: Any, device_type: str = "cpu", device_id: int = 0,
            vendor_id: int = -1, memory_info: Any = None
    ) -> OrtValue:
        """A value in new memory."""
        return cls(np.zeros(shape, _numpy_dtype(element_type)))

    def numpy(self) -> Any:
        """The array."""
        return self._array

    def update_inplace(self, data: np.ndarray) -> None:
        """Copies an array into the memory of the value."""
        if data.shape != self._array.shape or data.dtype != self._array.dtype:
            raise ValueError(f"update_inplace: expected {self._array.dtype}{list(self._array.shape)}, "
                             f"found {data.dtype}{list(data.shape)}")
        np.copyto(self._array, data)

    def data_ptr(self) -> int:
        """The address of the elements."""
        return int(self._array.ctypes.data)

    def data_type(self) -> str:
        """ONNX Runtime's name, such as "tensor(float)"."""
        return _type(ONNX_TYPES[self.element_type()]) if self.is_tensor() else "seq"

    def element_type(self) -> int:
        """The number of ONNX for the element type."""
        return next(number for number, name in ONNX_TYPES.items() if _is_of(self._array.dtype, name))

    def is_tensor(self) -> bool:
        """False for lists, which are sequences."""
        return isinstance(self._array, np.ndarray)

    def is_tensor_sequence(self) -> bool:
        """True for lists."""
        return isinstance(self._array, list)

    def has_value(self) -> bool:
        """False for an optional without a value."""
        return self._array is not None

    def tensor_size_in_bytes(self) -> int:
        """The bytes of the elements."""
        return int(self._array.nbytes)

    def shape(self) -> list[int]:
        """The dims as a list."""
        return list(self._array.shape)

    def device_name(self) -> str:
        """Always "cpu"."""
        return "cpu"


class IOBinding:
    """Arrays that a run reads and writes."""

    def __init__(self, session: InferenceSession) -> None:
        self._session = session
        self._inputs: dict[str, Any] = {}
        self._outputs: dict[str, Any] = {}
        self._results: dict[str, Any] = {}

    def bind_cpu_input(self, name: str, arr_on_cpu: np.ndarray) -> None:
        """Binds an array to an input."""
        self._inputs[name] = arr_on_cpu

    def bind_input(
            self, name: str, device_type: str, device_id: int, element_type: Any, shape: Sequence[int], buffer_ptr: int
    ) -> None:
        """Binds the memory at an address to an input."""
        self._inputs[name] = _array_at(buffer_ptr, element_type, shape)

    def bind_ortvalue_input(self, name: str, ortvalue: OrtValue) -> None:
        """Binds a value to an input."""
        self._inputs[name] = ortvalue.numpy()

    def bind_output(
            self, name: str, device_type: str = "cpu", device_id: int = 0, element_type: Any = None,
            shape: Sequence[int] | None = None, buffer_ptr: int | None = None
    ) -> None:
        """Asks for an output in new memory, or in the memory at an address."""
        self._outputs[name] = None if buffer_ptr is None else _array_at(buffer_ptr, element_type, shape)

    def bind_ortvalue_output(self, name: str, ortvalue: OrtValue) -> None:
        """Binds an output to the memory of a value."""
        self._outputs[name] = ortvalue.numpy()

    def clear_binding_inputs(self) -> None:
        """Forgets the inputs."""
        self._inputs = {}

    def clear_binding_outputs(self) -> None:
        """Forgets the outputs."""
        self._outputs = {}

    def synchronize_inputs(self) -> None:
        """Does nothing: inputs are in the memory of the processor."""

    def synchronize_outputs(self) -> None:
        """Does nothing: a run ends when its outputs are written."""

    def _run(self) -> None:
        out = {name: array for name, array in self._outputs.items() if array is not None}
        self._results = self._session._run_on_idle(list(self._outputs), self._inputs, out)

    def get_outputs(self) -> list[OrtValue]:
        """The outputs of the last run, as a list of OrtValue."""
        return [OrtValue(self._results[name]) for name in self._outputs]

    def copy_outputs_to_cpu(self) -> list[Any]:
        """The outputs of the last run, as a list of arrays."""
        return [self._results[name] for name in self._outputs]


def get_available_providers() -> list[str]:
    """The one provider."""
    return [PROVIDER]


def get_all_providers() -> list[str]:
    """The one provider."""
    return [PROVIDER]


def get_device() -> str:
    """Always "CPU"."""
    return "CPU"


def set_default_logger_severity(severity: int) -> None:
    """Does nothing: Kiln is silent."""


def set_default_logger_verbosity(verbosity: int) -> None:
    """Does nothing: Kiln is silent."""
