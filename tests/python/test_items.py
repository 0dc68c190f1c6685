#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sequences are lists, optionals are values or None, and maps are dicts."""
import gc
import unittest

from case import kiln_nn, main, np, session_of, text_model
from kiln_nn import ort

SPLIT = """graph @split(%x: f32[2,3]) {
  %columns = split_to_sequence(%x) {axis=1} : sequence(f32[2,1])
  %scores = zip_map(%x) {classlabels_strings=["cat","dog","owl"]} : sequence(map(string,f32))
  return %columns, %scores
}
"""
JOIN = """graph @join(%s: sequence(f32[2])) {
  %y = concat_from_sequence(%s) {axis=0} : f32[?]
  return %y
}
"""
X = np.arange(6, dtype=np.float32).reshape(2, 3)


def same(type):
    return f"graph @same(%x: {type}) {{\n  %y = identity(%x) : {type}\n  return %y\n}}\n"


def through(type, value):
    return session_of(same(type)).run({"x": value})["y"]


class Results(unittest.TestCase):
    def test_lists_and_dicts(self):
        session = session_of(SPLIT)
        results = session.run({"x": X})
        session.run({"x": X + 1})
        del session
        gc.collect()
        self.assertEqual(results["scores"], [{"cat": 0.0, "dog": 1.0, "owl": 2.0}, {"cat": 3.0, "dog": 4.0, "owl": 5.0}])
        for i, column in enumerate(results["columns"]):
            np.testing.assert_array_equal(column, X[:, i:i + 1])
            column[:] = 0                       # it is the caller's

    def test_facts(self):
        model = text_model(SPLIT)
        self.assertEqual([info.dtype for info in model.outputs], ["sequence(f32[2,1])", "sequence(map(string,f32))"])
        self.assertEqual([ort.NodeArg(info).type for info in model.outputs],
                         ["seq(tensor(float))", "seq(map(string,tensor(float)))"])
        self.assertEqual(ort.NodeArg(text_model(same("optional(sequence(i64[2]))")).inputs[0]).type, "optional(seq(tensor(int64)))")
        self.assertEqual(repr(model), "<kiln_nn.Model: x f32[2,3] -> columns sequence(f32[2,1]), scores sequence(map(string,f32))>")
        with self.assertRaises(ValueError):
            model.outputs[0].numpy_dtype

    def test_no_memory_of_the_caller(self):
        with self.assertRaisesRegex(kiln_nn.UsageError, r"results of type sequence\(f32\[2,1\]\) are new objects"):
            session_of(SPLIT).run({"x": X}, out={"columns": np.zeros((2, 1), np.float32)})


class Inputs(unittest.TestCase):
    def test_sequences(self):
        session = session_of(JOIN)
        two = np.array([1, 2], np.float32)
        for given in ([two, two + 2], (two, [3, 4]), np.array([[1, 2], [3, 4]], np.float32)):
            np.testing.assert_array_equal(session.run({"s": given})["y"], [1, 2, 3, 4])
        np.testing.assert_array_equal(session.run({"s": [two]})["y"], two)     # another length
        self.assertEqual(through("sequence(f32[?])", []), [])

    def test_all_kinds(self):
        self.assertIsNone(through("optional(f32[2])", None))
        np.testing.assert_array_equal(through("optional(f32[2])", [1, 2]), [1, 2])
        self.assertEqual(len(through("optional(sequence(f32[2]))", [[1, 2]] * 3)), 3)
        words = through("sequence(string[2])", [["a", "b"], np.array(["ä", ""], object)])
        self.assertEqual([word.tolist() for word in words], [["a", "b"], ["ä", ""]])
        self.assertEqual(through("sequence(map(i64,f32))", [{1: 0.5, 2: 2}, {}]), [{1: 0.5, 2: 2.0}, {}])
        for dtype in ("f16", "i8", "bool", "f64"):
            value = np.array([1, 0], kiln_nn.numpy_dtype(dtype))
            found, = through(f"sequence({dtype}[2])", [value])
            self.assertEqual((found.dtype, found.tolist()), (value.dtype, value.tolist()))

    def test_types_without_numpy(self):
        halves = kiln_nn.Tensor(np.array([1, 2], np.uint16), "bf16")
        found, = through("sequence(bf16[2])", [halves])
        self.assertEqual(np.asarray(memoryview(kiln_nn.Tensor(found))).tolist(), [1, 2])

    def test_errors(self):
        session = session_of(JOIN)
        two = np.array([1, 2], np.float32)
        for given, error, text in (
                (5, kiln_nn.ElementTypeError, r"input s: expected a list for sequence\(f32\[2\]\), found int"),
                ("ab", kiln_nn.ElementTypeError, "found str"),
                ({"a": two}, kiln_nn.ElementTypeError, "found dict"),
                (None, kiln_nn.ElementTypeError, "found NoneType"),
                ([two, two.astype(np.float64)], kiln_nn.ElementTypeError, "input s: expected f32, found f64"),
                ([two, np.ones(3, np.float32)], kiln_nn.ShapeError, "input s")):
            with self.assertRaisesRegex(error, text):
                session.run({"s": given})
        with self.assertRaisesRegex(kiln_nn.UsageError, "input s: expected a value, found none"):
            session.run({})
        with self.assertRaisesRegex(kiln_nn.ElementTypeError, "expected a dict"):
            through("sequence(map(string,f32))", [[1]])
        with self.assertRaises((kiln_nn.Error, ValueError, TypeError)):
            through("sequence(map(i64,f32))", [{"a": 1}])
        self.assertEqual(session.run({"s": [two]})["y"].tolist(), [1, 2])      # it runs again

    def test_what_items_cannot_be(self):
        with self.assertRaisesRegex(kiln_nn.UnsupportedError, "input x: sequences, optionals and maps are not carried"):
            session_of(same("sequence(f32[2])")).carry("y", "x")
        with self.assertRaisesRegex(kiln_nn.ElementTypeError, "s: expected sequence, found f32"):
            text_model(JOIN).compile(constants={"s": [np.ones(2, np.float32)]})


if __name__ == "__main__":
    main()
