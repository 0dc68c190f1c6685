# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime's class InferenceSession on Kiln: a program that changes one import runs.

    import kiln_nn.ort as onnxruntime
    session = onnxruntime.InferenceSession("model.onnx")
    session.run(None, {"image": picture})

Options that choose a device, an arena or a log have no meaning here and are accepted: Kiln runs on the processor. What
would change results and is not possible raises NotImplementedError."""
from __future__ import annotations

import enum
import json
import os
import threading
import time
import types
from collections.abc import Callable, Sequence
from typing import Any

from . import _errors, _kiln, _support
from ._ort_values import IOBinding, OrtValue, type_name

__version__ = _kiln.version

PROVIDER = "CPUExecutionProvider"

# Programs catch these exceptions as onnxruntime.capi.onnxruntime_pybind11_state.NAME. A wrong argument may be an error of
# shapes, of types or of use.
capi = types.SimpleNamespace(onnxruntime_pybind11_state=types.SimpleNamespace(
    EngineError=_errors.Error, EPFail=_errors.Error, Fail=_errors.Error, InvalidArgument=_errors.Error,
    InvalidGraph=_errors.InvalidError, InvalidProtobuf=_errors.FormatError, NoSuchFile=_errors.FileError,
    NotImplemented=_errors.UnsupportedError, RuntimeException=_errors.Error))


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

    def add_free_dimension_override_by_denotation(self, denotation: str, dim: int) -> None:
        """Kiln reads no denotations: NotImplementedError."""
        raise NotImplementedError("denotations of dims are not read; use add_free_dimension_override_by_name()")

    def add_initializer(self, name: str, ort_value: OrtValue) -> None:
        """Kiln reads initializers from the model alone: NotImplementedError."""
        raise NotImplementedError("initializers come from the model; Model.compile(constants=…) of kiln_nn fixes inputs")

    def register_custom_ops_library(self, path: str) -> None:
        """Libraries for ONNX Runtime do not fit Kiln: NotImplementedError."""
        raise NotImplementedError("libraries of ONNX Runtime cannot be loaded; kiln_nn.load_plugin() loads those of Kiln")

    def add_provider(self, name: str, options: dict[str, str]) -> None:
        """Does nothing: there is one provider."""

    def has_providers(self) -> bool:
        """False: none was chosen."""
        return False


class RunOptions:
    """Kiln reads `terminate`: True ends the runs that have these options, and fails later ones. It ignores all others."""

    def __init__(self) -> None:
        self.log_severity_level = 2
        self.log_verbosity_level = 0
        self.logid = ""
        self.only_execute_path_to_fetches = False
        self.training_mode = False
        self._entries: dict[str, str] = {}
        self._terminate = False
        self._running: list[_kiln.Session] = []
        self._lock = threading.Lock()           # held while sessions are cancelled: none of them is in another run then

    @property
    def terminate(self) -> bool:
        """Whether runs end."""
        return self._terminate

    @terminate.setter
    def terminate(self, value: bool) -> None:
        self._terminate = bool(value)
        if self._terminate and self._running:
            threading.Thread(target=self._cancel, daemon=True).start()

    def _cancel(self) -> None:
        """Cancels until the runs are over. A run that is about to begin does not see one call of cancel()."""
        while self._terminate and self._running:
            with self._lock:
                for session in self._running:
                    session.cancel()
            time.sleep(0.001)

    def _run(self, session: _kiln.Session, feed: dict[str, Any], out: dict[str, Any], names: list[str]) -> dict[str, Any]:
        """A run that `terminate` ends."""
        with self._lock:
            self._running.append(session)       # before terminate is read: then its setter finds the session
        try:
            if self._terminate:
                raise _errors.CancelledError("the run was cancelled: terminate is True")
            return session.run(feed, out=out, outputs=names)
        finally:
            with self._lock:
                self._running.remove(session)

    def add_run_config_entry(self, key: str, value: str) -> None:
        """Sets an entry, which is not read."""
        self._entries[key] = value

    def get_run_config_entry(self, key: str) -> str:
        """The value of an entry."""
        return self._entries[key]


class NodeArg:
    """An input or output: its name, its type such as "tensor(float)", and its shape with names of open dims."""

    def __init__(self, info: _support.TensorInfo) -> None:
        self.name = info.name
        self.type = type_name(info.dtype)
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
        """Writes the times of instructions, summed over runs, to a file of trace events, and returns its name. The name is
        profile_file_prefix and the date. Without enable_profiling, nothing is written and the name is empty."""
        if not self._options.enable_profiling:
            return ""
        events: list[dict[str, Any]] = []
        for thread, session in enumerate(list(self._idle)):
            start = 0.0
            for entry in session.profile():
                duration = entry.ms * 1000
                events.append({"cat": "Node", "ph": "X", "pid": os.getpid(), "tid": thread, "ts": round(start, 3),
                               "dur": round(duration, 3), "name": f"{entry.node}_kernel_time",
                               "args": {"op_name": entry.instruction, "kernel": entry.kernel, "runs": str(entry.runs),
                                        "provider": PROVIDER}})
                start += duration
        now = time.time()
        date = f"{time.strftime('%Y-%m-%d_%H-%M-%S', time.localtime(now))}_{int(now * 1000) % 1000:03d}"
        name = f"{self._options.profile_file_prefix or 'kiln_profile'}_{date}.json"
        with open(f"{name}.part", "w", encoding="utf-8") as file:
            json.dump(events, file, indent=0)
        os.replace(f"{name}.part", name)        # the file is whole from the moment that it has its name
        return name

    def get_tuning_results(self) -> list[Any]:
        """None: kernels are not tuned."""
        return []

    def set_tuning_results(self, results: list[Any], *, error_on_invalid: bool = False) -> None:
        """Does nothing: kernels are not tuned."""

    # --- runs ---

    def _validate_input(self, feed_input_names: Sequence[str]) -> None:
        missing = [arg.name for arg in self._inputs if arg.name not in feed_input_names]
        if missing:
            raise ValueError(f"Required inputs ({missing}) are missing from input feed ({list(feed_input_names)}).")

    def _run_on_idle(
            self, output_names: list[str], input_feed: dict[str, Any], out: dict[str, Any],
            run_options: RunOptions | None
    ) -> dict[str, Any]:
        """Runs on a session that no other thread uses."""
        try:
            session = self._idle.pop()
        except IndexError:
            session = self._program.session(profile=self._options.enable_profiling)
        try:
            if run_options is None:
                return session.run(input_feed, out=out, outputs=output_names)
            return run_options._run(session, input_feed, out, output_names)
        finally:
            self._idle.append(session)

    def run(
            self, output_names: Sequence[str] | None, input_feed: dict[str, Any],
            run_options: RunOptions | None = None
    ) -> list[Any]:
        """The outputs of these names, or all for None, as a list of arrays."""
        self._validate_input(list(input_feed))
        names = list(output_names) if output_names else self._names
        results = self._run_on_idle(names, dict(input_feed), {}, run_options)
        return [results[name] for name in names]

    def run_async(
            self, output_names: Sequence[str] | None, input_feed: dict[str, Any],
            callback: Callable[[list[Any], Any, str], object], user_data: Any, run_options: RunOptions | None = None
    ) -> None:
        """Runs on another thread, and calls callback(results, user_data, error text)."""
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
        iobinding._run(run_options)


def get_available_providers() -> list[str]:
    """The one provider."""
    return [PROVIDER]


def get_all_providers() -> list[str]:
    """The one provider."""
    return [PROVIDER]


def get_device() -> str:
    """Always "CPU"."""
    return "CPU"


def get_version_string() -> str:
    """The version of Kiln."""
    return __version__


def get_build_info() -> str:
    """How Kiln was built."""
    return _kiln.build_info()


def preload_dlls(cuda: bool = True, cudnn: bool = True, msvc: bool = True, directory: str | None = None) -> None:
    """Does nothing: Kiln loads no libraries of devices."""


def disable_telemetry_events() -> None:
    """Does nothing: Kiln sends nothing."""


def enable_telemetry_events() -> None:
    """Does nothing: Kiln sends nothing."""


def set_default_logger_severity(severity: int) -> None:
    """Does nothing: Kiln is silent."""


def set_default_logger_verbosity(verbosity: int) -> None:
    """Does nothing: Kiln is silent."""
