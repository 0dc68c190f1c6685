#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The stubs say what the extension has: the same names, and the parameters of each docstring; and all that is public has a
docstring."""
import ast
import importlib
import inspect
import pathlib
import unittest

from case import OPEN, kiln_nn, main, text_model
from kiln_nn import _kiln, passes

try:
    backend = importlib.import_module("kiln_nn.backend")
except ImportError:                             # Debian's onnx has no onnx.backend
    backend = None

STUBS = pathlib.Path(kiln_nn.__file__).with_name("_kiln.pyi")
HIDDEN = {"__buffer__"}  # is of C until Python 3.12


def public(names):
    return {name for name in names if not name.startswith("_")}


def parameters_of(function):
    arguments = function.args
    names = [argument.arg for argument in arguments.posonlyargs + arguments.args if argument.arg not in ("self", "cls")]
    return names + [argument.arg for argument in arguments.kwonlyargs]


def functions_of(thing):
    """@thing, or the public methods of a class, which Kiln has in Python."""
    if inspect.isclass(thing):
        members = {key: getattr(value, "__func__", value) for key, value in vars(thing).items()}
        return [value for key, value in members.items() if inspect.isfunction(value) and is_own(value)
                and (key == "__init__" or not key.startswith("_"))]
    return [thing] if inspect.isfunction(thing) and is_own(thing) else []


def is_own(thing):
    return (thing.__module__ or "kiln_nn").startswith("kiln_nn")


def members_of(node):
    return {item.name: item for item in node.body if isinstance(item, ast.FunctionDef)}


class Stubs(unittest.TestCase):
    def setUp(self):
        tree = ast.parse(STUBS.read_text(encoding="utf-8"))
        self.functions = members_of(tree)
        self.classes = {item.name: item for item in tree.body if isinstance(item, ast.ClassDef)}

    def test_names(self):
        self.assertEqual(set(self.functions) | set(self.classes) | {"version"}, public(dir(_kiln)))
        for name, node in self.classes.items():
            with self.subTest(name=name):
                self.assertEqual(public(members_of(node)), public(dir(getattr(_kiln, name))))

    def test_parameters(self):
        pairs = [(node, getattr(_kiln, name)) for name, node in self.functions.items()]
        for name, node in self.classes.items():
            pairs += [(member, getattr(getattr(_kiln, name), key)) for key, member in members_of(node).items()
                      if not key.startswith("_") and not member.decorator_list]
            new = members_of(node).get("__new__")
            pairs += [(new, getattr(_kiln, name))] if new else []
        for node, found in pairs:
            with self.subTest(name=node.name):
                parameters = [name for name in inspect.signature(found).parameters if name not in ("self", "cls")]
                self.assertEqual(parameters_of(node), parameters)

    def test_docstrings(self):
        for module in (kiln_nn, passes, kiln_nn.ort):
            for name in getattr(module, "__all__", public(dir(module))):
                thing = getattr(module, name)
                if (inspect.isclass(thing) or inspect.isbuiltin(thing) or inspect.isfunction(thing)) and is_own(thing):
                    self.assertTrue(thing.__doc__, f"{module.__name__}.{name}")
        for name in self.classes:
            for key in public(dir(getattr(_kiln, name))):
                self.assertTrue(getattr(getattr(_kiln, name), key).__doc__, f"{name}.{key}")

    def test_annotations(self):
        """What is public and in Python has types, too: the package has py.typed."""
        modules = [kiln_nn, passes, kiln_nn.ort] + ([backend] if backend else [])
        for module in modules:
            things = [getattr(module, name) for name in getattr(module, "__all__", public(dir(module)))]
            for function in {function for thing in things for function in functions_of(thing)}:
                with self.subTest(name=f"{module.__name__}.{function.__qualname__}"):
                    expected = [name for name in inspect.signature(function).parameters if name not in ("self", "cls")]
                    self.assertEqual(sorted(inspect.get_annotations(function)), sorted(expected + ["return"]))

    def test_objects_tell_what_they_are(self):
        model = text_model(OPEN)
        program = model.compile()
        for kind, thing in (("Model", model), ("Program", program), ("Session", program.session())):
            self.assertEqual(repr(thing), f"<kiln_nn.{kind}: x f32[N,3], y f32[N,3] -> z f32[N,3]>")

    def test_all_is_there(self):
        for module in (kiln_nn, passes):
            for name in module.__all__:
                self.assertTrue(hasattr(module, name), name)


if __name__ == "__main__":
    main()
