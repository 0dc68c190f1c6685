#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The stubs say what the extension has: the same names, and the parameters of each docstring; and all that is public has a
docstring."""
import ast
import inspect
import pathlib
import unittest

from case import kiln_nn, main
from kiln_nn import _kiln, passes

STUBS = pathlib.Path(kiln_nn.__file__).with_name("_kiln.pyi")
HIDDEN = {"__buffer__"}  # is of C until Python 3.12


def public(names):
    return {name for name in names if not name.startswith("_")}


def parameters_of(function):
    arguments = function.args
    names = [argument.arg for argument in arguments.posonlyargs + arguments.args if argument.arg not in ("self", "cls")]
    return names + [argument.arg for argument in arguments.kwonlyargs]


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
                if inspect.isclass(thing) or inspect.isbuiltin(thing) or inspect.isfunction(thing):
                    self.assertTrue(thing.__doc__, f"{module.__name__}.{name}")
        for name in self.classes:
            for key in public(dir(getattr(_kiln, name))):
                self.assertTrue(getattr(getattr(_kiln, name), key).__doc__, f"{name}.{key}")

    def test_all_is_there(self):
        for module in (kiln_nn, passes):
            for name in module.__all__:
                self.assertTrue(hasattr(module, name), name)


if __name__ == "__main__":
    main()
