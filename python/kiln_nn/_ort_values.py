# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime's classes OrtValue and IOBinding on arrays of NumPy, for kiln_nn.ort."""
from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ._kiln import Tensor
from ._support import numpy_dtype

TYPES = {"f32": "float", "f64": "double", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "u8": "uint8",
         "u16": "uint16", "u32": "uint32", "u64": "uint64", "f16": "float16", "bf16": "bfloat16", "f8e4m3fn": "float8e4m3fn",
         "f8e4m3fnuz": "float8e4m3fnuz", "f8e5m2": "float8e5m2", "f8e5m2fnuz": "float8e5m2fnuz", "i4": "int4",
         "u4": "uint4"}

# Numbers of TensorProto.DataType.
ONNX_TYPES = {1: "f32", 2: "u8", 3: "i8", 4: "u16", 5: "i16", 6: "i32", 7: "i64", 8: "string", 9: "bool", 10: "f16",
              11: "f64", 12: "u32", 13: "u64", 16: "bf16", 17: "f8e4m3fn", 18: "f8e4m3fnuz", 19: "f8e5m2",
              20: "f8e5m2fnuz"}


def _numpy_dtype(element_type: Any) -> np.dtype[Any]:
    """Of a number of ONNX, or of what NumPy takes for a dtype."""
    if not isinstance(element_type, int):
        return np.dtype(element_type)
    if element_type not in ONNX_TYPES:
        raise ValueError(f"element type: expected one of {sorted(ONNX_TYPES)}, found {element_type}")
    return numpy_dtype(ONNX_TYPES[element_type])


def _array_at(address: int, element_type: Any, shape: Sequence[int] | None) -> np.ndarray:
    """The memory at an address, which the caller keeps."""
    dtype = _numpy_dtype(element_type)
    memory = (ctypes.c_char * (dtype.itemsize * math.prod(shape or ()))).from_address(address)
    return np.frombuffer(memoryview(memory), dtype=dtype).reshape(shape or ())


def type_name(dtype: str) -> str:
    """ONNX Runtime's name: "seq(map(string,tensor(float)))" for "sequence(map(string,f32))"."""
    kind, _, inner = dtype.rpartition(")")[0].partition("(")
    if kind == "map":
        key, _, value = inner.partition(",")
        return f"map({TYPES.get(key, key)},{type_name(value)})"
    if kind:
        return f"{'seq' if kind == 'sequence' else kind}({type_name(inner)})"
    element = dtype.partition("[")[0]
    return f"tensor({TYPES.get(element, element)})"


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
    def ortvalue_from_numpy_with_onnx_type(cls, data: np.ndarray, onnx_element_type: int) -> OrtValue:
        """A value on the memory of an array, whose elements are taken for another type of the same size."""
        dtype = _numpy_dtype(onnx_element_type)
        if dtype.itemsize != data.dtype.itemsize:
            raise ValueError(f"ortvalue_from_numpy_with_onnx_type: expected elements of {dtype.itemsize} bytes, "
                             f"found {data.dtype}")
        return cls(data.view(dtype))

    @classmethod
    def from_dlpack(cls, data: Any) -> OrtValue:
        """A value on the memory of a tensor of PyTorch or another package, without a copy."""
        return cls(Tensor(data).numpy())

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

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """The array, for numpy.asarray()."""
        if copy is None:
            return np.asarray(self._array, dtype=dtype)
        return np.array(self._array, dtype=dtype, copy=copy)

    def __dlpack__(self, *, stream: Any = None) -> Any:
        """A capsule on the memory of the value."""
        return Tensor(self._array).__dlpack__(stream=stream)    # NumPy has none for types of ml_dtypes

    def __dlpack_device__(self) -> tuple[int, int]:
        """The processor, by the numbers of DLPack."""
        return (1, 0)

    def update_inplace(self, data: Any) -> None:
        """Copies an array, or the array of another value, into the memory of the value."""
        data = data.numpy() if isinstance(data, OrtValue) else data
        if data.shape != self._array.shape or data.dtype != self._array.dtype:
            raise ValueError(f"update_inplace: expected {self._array.dtype}{list(self._array.shape)}, "
                             f"found {data.dtype}{list(data.shape)}")
        np.copyto(self._array, data)

    def data_ptr(self) -> int:
        """The address of the elements."""
        return int(self._array.ctypes.data)

    def data_type(self) -> str:
        """ONNX Runtime's name, such as "tensor(float)"."""
        return type_name(ONNX_TYPES[self.element_type()]) if self.is_tensor() else "seq"

    def element_type(self) -> int:
        """The number of ONNX for the element type."""
        return next(number for number, name in ONNX_TYPES.items() if _is_of(self._array.dtype, name))

    def is_tensor(self) -> bool:
        """False for lists, which are sequences."""
        return isinstance(self._array, np.ndarray)

    def is_sparse_tensor(self) -> bool:
        """Always False."""
        return False

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

    def __init__(self, session: Any) -> None:
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

    def _run(self, run_options: Any = None) -> None:
        out = {name: array for name, array in self._outputs.items() if array is not None}
        self._results = self._session._run_on_idle(list(self._outputs), self._inputs, out, run_options)

    def get_outputs(self) -> list[OrtValue]:
        """The outputs of the last run, as a list of OrtValue."""
        return [OrtValue(self._results[name]) for name in self._outputs]

    def copy_outputs_to_cpu(self) -> list[Any]:
        """The outputs of the last run, as a list of arrays."""
        return [self._results[name] for name in self._outputs]
