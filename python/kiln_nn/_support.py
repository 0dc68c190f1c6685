# SPDX-License-Identifier: Apache-2.0
"""What the extension calls: facts as named tuples, arrays that NumPy makes, and restoring from pickles."""
import difflib
import os
import pickle
import threading
import typing

import numpy as np

from . import _errors

NUMPY_NAMES = {"f32": "float32", "f64": "float64", "f16": "float16", "i8": "int8", "i16": "int16", "i32": "int32",
               "i64": "int64", "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64", "bool": "bool",
               "string": "object"}
ML_NAMES = {"bf16": "bfloat16", "f8e4m3fn": "float8_e4m3fn", "f8e4m3fnuz": "float8_e4m3fnuz", "f8e5m2": "float8_e5m2",
            "f8e5m2fnuz": "float8_e5m2fnuz", "f8e8m0": "float8_e8m0fnu", "f6e2m3": "float6_e2m3fn",
            "f6e3m2": "float6_e3m2fn", "f4e2m1": "float4_e2m1fn", "i4": "int4", "u4": "uint4", "i2": "int2",
            "u2": "uint2"}


# --- facts ---

class TensorInfo(typing.NamedTuple):
    """An input or output. A dim is an int, a name or expression, or None where nothing is known. `shape` is None where
    the rank is not known. `dtype` of a sequence, optional or map is its whole type, such as "sequence(f32[N,3])"."""

    name: str
    dtype: str
    shape: typing.Optional[tuple]

    @property
    def numpy_dtype(self) -> np.dtype:
        """The dtype of NumPy or ml_dtypes. ImportError where ml_dtypes is needed and absent."""
        return numpy_dtype(self.dtype)


class Metadata(typing.NamedTuple):
    """What a model's file says about itself. A missing text is "", a missing number 0."""

    graph_name: str
    producer_name: str
    producer_version: str
    domain: str
    doc_string: str
    ir_version: int
    model_version: int
    opsets: dict
    properties: dict


class MemoryReport(typing.NamedTuple):
    """Memory of a run in bytes; -1 before shapes are known. `sum`: activations without sharing; `lb_node` and
    `lb_live`: lower bounds; `arena`: what a session allocates; `weights`: what the program holds."""

    sum: int
    lb_node: int
    lb_live: int
    arena: int
    weights: int
    proven_optimal: bool
    plan_ms: float


class ProfileEntry(typing.NamedTuple):
    """The time of one instruction, summed over runs."""

    instruction: str
    node: str
    kernel: str
    flops: int
    bytes: int
    runs: int
    ms: float
    live_bytes: int


class Unsupported(typing.NamedTuple):
    """A thing that a model needs and a target lacks."""

    op: str
    opset: int
    dtype: str
    node: str
    reason: str


for _class in (TensorInfo, Metadata, MemoryReport, ProfileEntry, Unsupported):
    _class.__module__ = "kiln_nn"


def error_class(code):
    return _errors.CLASSES[code]


def main_thread():
    return threading.main_thread().ident


def absolute(path):
    return os.path.abspath(path)


def described(kind, thing):
    """What repr() prints: `<kiln_nn.Program: image f32[1,3,H,W] -> logits f32[1,1000]>`."""
    return f"<kiln_nn.{kind}: {_listed(thing.inputs)} -> {_listed(thing.outputs)}>"


def _listed(infos, most=4):
    texts = [f"{info.name} {info.dtype}{'' if '(' in info.dtype else _dims(info.shape)}" for info in infos[:most]]
    return ", ".join(texts + ([f"{len(infos) - most} more"] if len(infos) > most else [])) or "nothing"


def _dims(shape):
    return "[*]" if shape is None else f"[{','.join('?' if dim is None else str(dim) for dim in shape)}]"


def unknown_name(kind, given, program):
    """The message for a name in @given that no input or output has."""
    names = [info.name for info in (program.inputs if kind == "input" else program.outputs)]
    unknown = next((name for name in given if name not in names), None)
    if unknown is None:
        return f"{kind}s: expected each name once, found {list(given)}"
    close = difflib.get_close_matches(str(unknown), names, 1)
    hint = f"; did you mean '{close[0]}'?" if close else ""
    return f"{kind} {unknown}: expected one of {', '.join(names) or 'none'}, found '{unknown}'{hint}"


def missing_input(name, given, program):
    """The message for an input without a value: its name may be misspelt."""
    known = [info.name for info in program.inputs]
    if given and any(key not in known for key in given):
        return unknown_name("input", given, program)
    return f"input {name}: expected a value, found none"


def range_row(value):
    """(least, most, multiple, hint) of a pair, or of a dict."""
    if isinstance(value, dict):
        unknown = set(value) - {"least", "most", "multiple", "hint"}
        if unknown:
            raise _errors.UsageError(f"ranges: expected least, most, multiple or hint, found '{unknown.pop()}'")
        return tuple(value.get(key) or 0 for key in ("least", "most", "multiple", "hint"))
    least, most = value
    return least or 0, most or 0, 0, 0


# --- arrays ---

def ml_dtype(name):
    """The dtype of ml_dtypes; None where the package, or the type in it, is absent."""
    try:
        import ml_dtypes
    except ImportError:
        return None
    found = getattr(ml_dtypes, name, None)
    return np.dtype(found) if found else None


def numpy_dtype(dtype: str) -> np.dtype:
    """The dtype of NumPy or ml_dtypes for Kiln's name of an element type."""
    if dtype in NUMPY_NAMES:
        return np.dtype(NUMPY_NAMES[dtype])
    if dtype not in ML_NAMES:
        raise ValueError(f"expected an element type of tensors, found {dtype}")
    found = ml_dtype(ML_NAMES[dtype])
    if found is None:
        raise ImportError(f"the element type {dtype} needs the package ml_dtypes")
    return found


def to_numpy(tensor, ml_name):
    array = np.asarray(memoryview(tensor))
    if ml_name is None:
        return array
    dtype = ml_dtype(ml_name)
    if dtype is None:
        raise ImportError(f"the element type {tensor.dtype} needs the package ml_dtypes")
    return array.view(dtype)


def to_numpy_or_tensor(tensor, ml_name):
    dtype = ml_dtype(ml_name)
    return tensor if dtype is None else np.asarray(memoryview(tensor)).view(dtype)


def to_array(tensor, ml_name, dtype, copy):
    array = to_numpy(tensor, ml_name)
    if dtype is not None and array.dtype != dtype:
        if copy is False:
            raise ValueError("a copy is needed for another dtype")
        return array.astype(dtype)
    return array.copy() if copy else array


def array_of_numbers(value, dtype):
    return np.asarray(value, dtype=numpy_dtype(dtype))


def array_of_item(data, dtype, shape):
    """An array with memory of its own, or a Tensor where ml_dtypes is needed and absent."""
    found = np.dtype(NUMPY_NAMES[dtype]) if dtype in NUMPY_NAMES else ml_dtype(ML_NAMES[dtype])
    if found is not None:
        return np.frombuffer(bytearray(data), dtype=found).reshape(shape)
    from . import _kiln
    size = len(data) // max(int(np.prod(shape)), 1)
    return _kiln.Tensor(np.frombuffer(bytearray(data), dtype=f"u{size or 1}").reshape(shape), dtype)


def dict_of(pair):
    keys, values = pair
    return dict(zip(keys.tolist(), values.tolist()))


def array_of_bytes(data, dtype, shape):
    return np.frombuffer(data, dtype=numpy_dtype(dtype)).reshape(shape)


def texts_of(value):
    """(shape, list of str or bytes) of an array of strings."""
    array = value if isinstance(value, np.ndarray) else np.asarray(value, dtype=object)
    return array.shape, array.ravel().tolist()


def array_of_texts(items, shape):
    array = np.empty(len(items), dtype=object)
    array[:] = items
    return array.reshape(shape)


# --- pickles ---

NOT_PICKLED = ("progress", "log")
PLUGINS = {}        # paths of plug-ins with operators, in the order in which they were loaded


def note_plugin(path):
    PLUGINS[absolute(path)] = None


def reduced(function, arguments, protocol):
    """What a model or program pickles as: the call that restores it, behind the plug-ins that it may need. From protocol 5 on,
    the bytes of a file may travel beside the pickle, without a copy (PEP 574)."""
    function = globals()[function]
    source, *rest = arguments
    if is_buffer(source):
        arguments = (pickle.PickleBuffer(source) if protocol >= 5 else bytes(source), *rest)
    return (restore_with_plugins, (tuple(PLUGINS), function, arguments)) if PLUGINS else (function, arguments)


def is_buffer(thing):
    try:
        memoryview(thing)
    except TypeError:
        return False
    return True


def restore_with_plugins(plugins, function, arguments):
    from . import _kiln
    for path in plugins:
        _kiln.load_plugin(path)
    return function(*arguments)


def absolute_pipeline(source):
    """@source with an absolute path where it is a file: names of shipped pipelines have neither dots nor slashes."""
    if not isinstance(source, (str, os.PathLike)):
        return source
    text = os.fsdecode(source)
    return absolute(text) if ("." in text or os.sep in text) and os.path.isfile(text) else text


def compile_origin(model, options):
    """What a program pickles as: its model and the options. Functions that are called back stay behind."""
    origin = {key: value for key, value in (options or {}).items() if key not in NOT_PICKLED}
    if "pipeline" in origin:
        origin["pipeline"] = absolute_pipeline(origin["pipeline"])
    return model, origin


def restore_model(source, name, options):
    from . import _kiln
    return _kiln.load(source, name, **options)


def restore_program(source, options=None):
    from . import _kiln
    return _kiln.load_program(source) if options is None else source.compile(**options)


def restore_session(program, options):
    return program.session(**options)


def restore_pipeline(steps):
    from . import _kiln
    source = steps[0][1] if steps and steps[0][0] == "open" else None
    pipeline = _kiln.Pipeline(source)
    for method, argument in steps[1 if source is not None else 0:]:
        getattr(pipeline, method)(*(argument if method == "register" else (argument,)))
    return pipeline


# --- many runs ---

def map_runs(program, inputs, threads, outputs):
    from . import _map
    return _map.map_runs(program, inputs, threads, outputs)
