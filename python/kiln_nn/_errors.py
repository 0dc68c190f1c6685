# SPDX-License-Identifier: Apache-2.0
"""Exceptions, one class for each code of kiln.h. Each is also of the built-in class that fits."""
import re


class Error(Exception):
    """The base of all errors of Kiln. `code` is the code of kiln.h, such as "SHAPE".

    `file`, `line`, `column`, `where` (a node, an input or an output), `expected` and `found` are
    parts of the message, or None where it has no such part."""

    code = None

    _place = re.compile(r"(?P<file>[^:\n]*\.[A-Za-z][\w-]*|[^:\s]*/[^:\n]*)(?::(?P<line>\d+))?(?::(?P<column>\d+))?: ")
    _sides = re.compile(r"(?:(?P<where>[^\n]*): )?expected (?P<expected>.*?), found (?P<found>.*?)(?:; did you mean .*)?$", re.S)

    def _parts(self):
        text = str(self)
        place = self._place.match(text)
        rest = text[place.end():] if place else text
        sides = self._sides.match(rest)
        parts = dict.fromkeys(("file", "line", "column", "where", "expected", "found"))
        parts.update(place.groupdict() if place else {})
        if sides:
            parts.update(sides.groupdict())
        elif ": " in rest:
            parts["where"] = rest.split(": ")[0]
        return parts

    @property
    def message(self):
        """The whole message."""
        return str(self)

    @property
    def file(self):
        """The file that the message names."""
        return self._parts()["file"]

    @property
    def line(self):
        """The line there, as an int."""
        line = self._parts()["line"]
        return int(line) if line else None

    @property
    def column(self):
        """The column there, as an int."""
        column = self._parts()["column"]
        return int(column) if column else None

    @property
    def where(self):
        """The node, input, output or option that the message is about."""
        return self._parts()["where"]

    @property
    def expected(self):
        """What was expected."""
        return self._parts()["expected"]

    @property
    def found(self):
        """What was found instead."""
        return self._parts()["found"]


class FileError(Error, OSError):
    """A file cannot be read or written."""

    code = "IO"


class FormatError(Error, ValueError):
    """A file is malformed."""

    code = "FORMAT"


class ParseError(Error, ValueError):
    """A text does not parse."""

    code = "PARSE"


class InvalidError(Error, ValueError):
    """A graph or function breaks a rule."""

    code = "INVALID"


class ElementTypeError(Error, TypeError):
    """Element types do not fit."""

    code = "TYPE"


class ShapeError(Error, ValueError):
    """Shapes do not fit."""

    code = "SHAPE"


class UnsupportedError(Error, NotImplementedError):
    """An operator, type or form is not supported."""

    code = "UNSUPPORTED"


class UsageError(Error, ValueError):
    """An argument or option is wrong."""

    code = "USAGE"


class PipelineError(Error, ValueError):
    """A pipeline file or text is wrong."""

    code = "PIPELINE"


class PassError(Error, RuntimeError):
    """A pass failed."""

    code = "PASS"


class LimitError(Error, RuntimeError):
    """A cap or budget was hit."""

    code = "LIMIT"


class OutOfMemoryError(Error, MemoryError):
    """Memory could not be had."""

    code = "MEMORY"


class MismatchError(Error, ValueError):
    """Results differ from what was expected."""

    code = "MISMATCH"


class RunError(Error, RuntimeError):
    """An instruction failed while it ran."""

    code = "RUN"


class CancelledError(Error, RuntimeError):
    """The caller cancelled."""

    code = "CANCELLED"


CLASSES = {error.code: error for error in (
    FileError, FormatError, ParseError, InvalidError, ElementTypeError, ShapeError, UnsupportedError, UsageError,
    PipelineError, PassError, LimitError, OutOfMemoryError, MismatchError, RunError, CancelledError)}

for _class in (Error, *CLASSES.values()):
    _class.__module__ = "kiln_nn"
