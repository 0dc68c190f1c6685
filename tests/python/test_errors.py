#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Exceptions: a class for each code, with the parts of the message."""
import pickle
import unittest

from case import ADD, DIGITS, OPEN, kiln_nn, main, np, session_of, text_model

X = np.ones((2, 3), np.float32)
GATHER = """graph @f(%x: f32[3], %i: i64[1]) {
  %y = gather(%x, %i) {axis=0} : f32[1]
  return %y
}
"""


class Errors(unittest.TestCase):
    def test_a_class_for_each_code(self):
        from kiln_nn._errors import CLASSES
        self.assertEqual(len(CLASSES), 15)
        for code, error in CLASSES.items():
            self.assertTrue(issubclass(error, kiln_nn.Error))
            self.assertEqual(error.code, code)
            self.assertIs(getattr(kiln_nn, error.__name__), error)
            self.assertTrue(error.__doc__)

    def test_built_in_classes(self):
        for call, kind in ((lambda: kiln_nn.load("no-such.onnx"), OSError), (lambda: kiln_nn.load(b"?"), ValueError),
                           (lambda: text_model("graph"), ValueError),
                           (lambda: session_of(ADD).run({"x": np.zeros(1), "y": np.zeros(1)}), TypeError)):
            with self.assertRaises(kind) as caught:
                call()
            self.assertIsInstance(caught.exception, kiln_nn.Error)

    def test_parts_of_the_message(self):
        with self.assertRaises(kiln_nn.ParseError) as caught:
            text_model("graph @f(%x: f32[3]) {\n  %y = frob(%x) : f32[3]\n  return %y\n}\n", "some/where.kiln")
        error = caught.exception
        self.assertEqual((error.file, error.line, error.column), ("some/where.kiln", 2, 8))
        self.assertEqual((error.expected, error.found), ("an operator", "'frob'"))
        with self.assertRaises(kiln_nn.ShapeError) as caught:
            session_of(ADD).run({"x": np.zeros((3, 3), np.float32), "y": np.zeros((2, 3), np.float32)})
        error = caught.exception
        self.assertEqual((error.file, error.where), (None, "input x"))
        self.assertEqual((error.expected, error.found), ("f32[2,3]", "f32[3,3]"))
        self.assertEqual(error.message, str(error))

    def test_misspelt_names(self):
        with self.assertRaisesRegex(kiln_nn.UsageError, "did you mean 'image'") as caught:
            kiln_nn.load(DIGITS).compile().session().run({"imag": np.zeros(1)})
        self.assertEqual(caught.exception.found, "'imag'")

    def test_a_node_that_fails(self):
        session = session_of(GATHER)
        with self.assertRaises(kiln_nn.RunError) as caught:
            session.run({"x": np.zeros(3, np.float32), "i": np.array([7])})
        self.assertIn("y", caught.exception.where)
        self.assertEqual(session.run({"x": np.ones(3, np.float32), "i": np.array([1])})["y"], 1)

    def test_limits(self):
        with self.assertRaises(kiln_nn.LimitError):
            kiln_nn.load(DIGITS, node_limit=3)
        with self.assertRaises(kiln_nn.FormatError):
            kiln_nn.load(ADD.encode(), "a.kiln", untrusted=True)
        with self.assertRaises(kiln_nn.LimitError):
            kiln_nn.load(DIGITS).compile(memory_limit=1000)

    def test_wrong_options(self):
        model = text_model(ADD)
        for options in ({"shapes": 3}, {"shapes": {1: 2}}, {"shapes": {"x": ["a", "b", object()]}}, {"ranges": []},
                        {"ranges": {"N": {"lest": 1}}}, {"constants": 4}, {"constants": {"no": None}},
                        {"pipeline": "dcee"}, {"target": "gpu"}, {"threads": -1}):
            with self.subTest(options=options), self.assertRaises(kiln_nn.Error):
                model.compile(**options)
        for options in ({"thread": 1}, {"threads": "1"}, {"pipeline": 4}, {"shapes": {"x": 4}}):
            with self.subTest(options=options), self.assertRaises(TypeError):
                model.compile(**options)
        with self.assertRaises(kiln_nn.ElementTypeError):
            model.compile(constants={"x": np.zeros((2, 3))})
        session = model.compile().session()
        for arguments, options in (((1, 2), {}), ((), {"feed": 1}), (([],), {}), (({},), {"out": 3})):
            with self.subTest(options=options), self.assertRaises(TypeError):
                session.run(*arguments, **options)

    def test_types_have_no_constructor(self):
        for kind in (kiln_nn.Model, kiln_nn.Program, kiln_nn.Session):
            with self.assertRaisesRegex(TypeError, "no constructor"):
                kind()

    def test_errors_are_pickled(self):
        with self.assertRaises(kiln_nn.Error) as caught:
            kiln_nn.load("no-such.onnx")
        copy = pickle.loads(pickle.dumps(caught.exception))
        self.assertEqual((type(copy), str(copy)), (type(caught.exception), str(caught.exception)))

    def test_callbacks_that_raise(self):
        def fails(*arguments):
            raise KeyError("own")
        armed = []
        for options in ({"progress": fails}, {"log": fails}):
            with self.assertRaisesRegex(KeyError, "own"):
                kiln_nn.load(DIGITS).compile(**options)
            if "log" in options:  # a program that is compiled at its first run calls it there
                for call in (lambda program: program.prepare({"x": (2, 3)}), lambda program: program.memory({"x": (2, 3)}),
                             lambda program: program.session().run({"x": X, "y": X})):
                    program = text_model(OPEN).compile(log=lambda line: fails() if armed else None)
                    armed.append(True)
                    with self.assertRaisesRegex(KeyError, "own"):
                        call(program)
                    armed.clear()
        with self.assertRaises(kiln_nn.CancelledError):
            kiln_nn.load(DIGITS).compile(progress=lambda fraction, step: False)

    def test_callbacks(self):
        lines, steps = [], []
        kiln_nn.load(DIGITS).compile(log=lines.append, progress=lambda fraction, step: steps.append(fraction))
        self.assertTrue(lines)
        self.assertEqual(steps, sorted(steps))


if __name__ == "__main__":
    main()
