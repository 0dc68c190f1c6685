# SPDX-License-Identifier: Apache-2.0
"""Kiln: loads a neural network from an ONNX file, optimizes it and runs it on the processor.

    import kiln_nn

    session = kiln_nn.load("model.onnx").compile().session()
    results = session.run({"image": picture})     # {output: array}

A model is loaded, a program is a compiled model, and a session is the memory of runs. Arrays of NumPy are read and
written without copies. kiln_nn.passes builds pipelines, kiln_nn.backend is the interface of onnx.backend, and
InferenceSession has the signatures of ONNX Runtime's class."""
from . import passes
from ._errors import (CancelledError, ElementTypeError, Error, FileError, FormatError, InvalidError, LimitError,
                      MismatchError, OutOfMemoryError, ParseError, PassError, PipelineError, RunError, ShapeError,
                      UnsupportedError, UsageError)
from ._kiln import Model, Pipeline, Program, Session, Tensor, build_info, load, load_plugin, load_program
from ._kiln import version as __version__
from ._support import MemoryReport, Metadata, ProfileEntry, TensorInfo, Unsupported, numpy_dtype
from .ort import InferenceSession, RunOptions, SessionOptions

__all__ = [
    "CancelledError", "ElementTypeError", "Error", "FileError", "FormatError", "InferenceSession", "InvalidError",
    "LimitError", "MemoryReport", "Metadata", "MismatchError", "Model", "OutOfMemoryError", "ParseError", "PassError",
    "Pipeline", "PipelineError", "ProfileEntry", "Program", "RunError", "RunOptions", "Session", "SessionOptions",
    "ShapeError", "Tensor", "TensorInfo", "Unsupported", "UnsupportedError", "UsageError", "build_info", "load",
    "load_plugin", "load_program", "numpy_dtype", "passes",
]
