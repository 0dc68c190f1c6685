#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kiln from Python, by GObject introspection.

    gi_python.py DIGITS.onnx      GI_TYPELIB_PATH and LD_LIBRARY_PATH name folders of a build"""
import array
import pathlib
import sys
import tempfile
import unittest

try:
    import gi
    gi.require_version("Kiln", "0.2")
    from gi.repository import GLib, Kiln
except (ImportError, ValueError) as reason:
    print(f"skipped: {reason} (apt install python3-gi gobject-introspection)")
    sys.exit(77)

DIGITS = sys.argv.pop(1)


def floats(dims, values):
    return Kiln.Item.new_from_bytes("f32", dims, GLib.Bytes.new(array.array("f", values).tobytes()))


def values_of(item):
    return array.array("f", item.get_bytes().get_data()).tolist()


class Introspection(unittest.TestCase):
    def text(self, text):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "model.kiln")
            path.write_text(text, encoding="utf-8")
            return Kiln.Runner.new(Kiln.Program.new_for_model(Kiln.Model.new_from_path(str(path)), None, 1))

    def test_digits(self):
        model = Kiln.Model.new_from_path(DIGITS)
        self.assertEqual((model.get_input_names(), model.get_output_names()), (["image"], ["probabilities"]))
        results = []
        for pipeline in (None, Kiln.Pipeline.new_from_name("none"), Kiln.Pipeline.new_from_text("dce,cse")):
            runner = Kiln.Runner.new(Kiln.Program.new_for_model(model, pipeline, 2))
            scores, = runner.call([floats([1, 1, 28, 28], [i % 7 / 7 for i in range(784)])])
            self.assertEqual((scores.get_dtype(), list(scores.get_dims())), ("f32", [1, 10]))
            results.append(values_of(scores))
            self.assertAlmostEqual(sum(results[-1]), 1, places=5)
        for other in results[1:]:
            for a, b in zip(results[0], other):
                self.assertAlmostEqual(a, b, places=5)

    def test_saved_programs_and_owners(self):
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/digits.kiln-program"
            self.assertTrue(Kiln.Program.new_for_model(Kiln.Model.new_from_path(DIGITS), None, 0).write(path))
            runner = Kiln.Runner.new(Kiln.Program.new_from_path(path))
        first, = runner.call([floats([1, 1, 28, 28], [0] * 784)])
        for _ in range(3):  # what is bound goes with each call
            again, = runner.call([floats([1, 1, 28, 28], [0] * 784)])
            self.assertEqual(values_of(again), values_of(first))
        data = first.get_bytes()
        del runner, first
        self.assertEqual(data.get_size(), 40)

    def test_items(self):
        runner = self.text("graph @f(%s: sequence(f32[?])) {\n  %e = sequence_erase(%s) : sequence(f32[?])\n  return %e\n}\n")
        result, = runner.call([Kiln.Item.new_from_items([floats([1], [1]), floats([2], [2, 3])])])
        self.assertEqual(result.get_dtype(), "sequence")
        self.assertEqual([values_of(item) for item in result.get_items()], [[1]])

    def test_errors(self):
        def refused(code, call, *args):
            with self.assertRaises(GLib.Error) as caught:
                call(*args)
            self.assertEqual((caught.exception.domain, caught.exception.code), ("kiln-error-quark", code), caught.exception.message)
        io, type_, shape, usage, pipeline = 0, 4, 5, 7, 8
        refused(io, Kiln.Model.new_from_path, "/no/such/model.onnx")
        refused(pipeline, Kiln.Pipeline.new_from_text, "no-such-pass")
        refused(usage, Kiln.Item.new_from_bytes, "string", [1], GLib.Bytes.new(b"12345678"))
        refused(usage, Kiln.Item.new_from_bytes, "f33", [1], GLib.Bytes.new(b"1234"))
        refused(shape, Kiln.Item.new_from_bytes, "f32", [2], GLib.Bytes.new(b"1234"))
        refused(shape, Kiln.Item.new_from_bytes, "f32", [-1], GLib.Bytes.new(b""))
        refused(shape, Kiln.Item.new_from_bytes, "f32", [1 << 62, 4, 1], GLib.Bytes.new(b""))
        runner = Kiln.Runner.new(Kiln.Program.new_for_model(Kiln.Model.new_from_path(DIGITS), None, 1))
        refused(usage, runner.call, [])
        refused(shape, runner.call, [floats([1, 1, 28, 27], [0] * 756)])
        refused(type_, runner.call, [Kiln.Item.new_from_bytes("u8", [1, 1, 28, 28], GLib.Bytes.new(bytes(784)))])
        refused(type_, runner.call, [Kiln.Item.new_from_items([floats([1], [1])])])


if __name__ == "__main__":
    unittest.main()
