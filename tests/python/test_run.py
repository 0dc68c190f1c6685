#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Models, programs and sessions: facts, runs, outputs in given memory, shapes, constants, carried values."""
import pathlib
import tempfile
import unittest

from case import ADD, DIGITS, OPEN, kiln_nn, main, np, session_of, seven, text_model, unary

CARRY = """graph @f(%h: f32[2], %x: f32[2]) {
  %n = add(%h, %x) : f32[2]
  return %n
}
"""
APPEND = """graph @f(%past: f32[P,2], %x: f32[1,2]) {
  %all = concat(%past, %x) {axis=0} : f32[P+1,2]
  return %all
}
"""
FOLDS = """graph @f(%x: f32[1,4], %w: f32[4,4]) {
  %e = exp(%w) : f32[4,4]
  %y = matmul(%x, %e) : f32[1,4]
  return %y
}
"""


class Facts(unittest.TestCase):
    def test_a_model_says_what_it_takes(self):
        model = kiln_nn.load(DIGITS)
        self.assertEqual(model.inputs, (("image", "f32", (1, 1, 28, 28)),))
        self.assertEqual(model.outputs[0].name, "probabilities")
        self.assertEqual(model.outputs[0].numpy_dtype, np.float32)
        self.assertEqual(model.metadata.opsets, {"": 17})
        self.assertEqual(model.check(), [])

    def test_open_dims_have_names(self):
        model = text_model(OPEN)
        self.assertEqual(model.inputs[0].shape, ("N", 3))
        self.assertEqual(model.compile().inputs[1].shape, ("N", 3))

    def test_bytes_and_paths(self):
        for source in (str(DIGITS), DIGITS, DIGITS.read_bytes(), memoryview(DIGITS.read_bytes())):
            self.assertEqual(kiln_nn.load(source).inputs[0].name, "image")

    def test_unsupported_operators_are_listed(self):
        found = text_model('graph @f(%x: f32[4]) {\n  %y = unknown(%x) {op_type="Frobnicate", opset=1} : f32[4]\n'
                           '  return %y\n}\n').check()
        self.assertEqual([row.op for row in found], ["Frobnicate"])

    def test_memory_and_profile(self):
        program = kiln_nn.load(DIGITS).compile()
        report = program.memory()
        self.assertGreaterEqual(report.arena, report.lb_live)
        session = program.session(profile=True)
        session.run({"image": seven()})
        self.assertTrue(all(entry.runs == 1 for entry in session.profile()))


class Run(unittest.TestCase):
    def test_reads_a_seven(self):
        session = kiln_nn.load(DIGITS).compile().session()
        self.assertEqual(session.run({"image": seven()})["probabilities"].argmax(), 7)

    def test_later_runs_leave_results_alone(self):
        session = session_of(ADD)
        x, y = np.ones((2, 3), np.float32), np.full((2, 3), 2, np.float32)
        first = session.run({"x": x, "y": y})["z"]
        second = session.run({"x": y, "y": y})["z"]
        self.assertTrue((first == 3).all() and (second == 4).all())
        first[:] = 9  # results are the caller's
        self.assertTrue((session.run({"x": x, "y": x})["z"] == 2).all() and (second == 4).all())

    def test_results_outlive_the_session(self):
        session = session_of(ADD)
        result = session.run({"x": np.ones((2, 3), np.float32), "y": np.ones((2, 3), np.float32)})["z"]
        del session
        self.assertTrue((result == 2).all())

    def test_outputs_in_given_memory(self):
        session = session_of(ADD)
        x, out = np.ones((2, 3), np.float32), np.zeros((2, 3), np.float32)
        for times in range(1, 4):
            result = session.run({"x": x * times, "y": x}, out={"z": out})
            self.assertIs(result["z"], out)
            self.assertTrue((out == times + 1).all())
        other = session.run({"x": x, "y": x})["z"]
        self.assertTrue((out == 4).all() and (other == 2).all())

    def test_given_memory_of_open_shapes(self):
        session = session_of(OPEN)
        for n in (1, 5, 2):
            x, out = np.ones((n, 3), np.float32), np.zeros((n, 3), np.float32)
            session.run({"x": x, "y": x}, out={"z": out})
            self.assertTrue((out == 2).all())
        with self.assertRaises(kiln_nn.ShapeError):
            session.run({"x": x, "y": x}, out={"z": np.zeros((3, 2), np.float32).reshape(2, 3)[:1]})
        with self.assertRaisesRegex(kiln_nn.ShapeError, "shape of the result"):
            session_of(unary("relu", dims="N,M")).run({"x": np.ones((2, 3), np.float32)},
                                                      out={"y": np.zeros((3, 2), np.float32)})

    def test_some_outputs(self):
        session = session_of("graph @f(%x: f32[2]) {\n  %a = neg(%x) : f32[2]\n  %b = exp(%x) : f32[2]\n"
                             "  return %a, %b\n}\n")
        x = np.zeros(2, np.float32)
        self.assertEqual(list(session.run({"x": x})), ["a", "b"])
        self.assertEqual(list(session.run({"x": x}, outputs=["b"])), ["b"])

    def test_shapes_and_ranges(self):
        model = text_model(OPEN)
        program = model.compile(shapes={"x": (4, None), "y": [4, 3]})
        self.assertEqual(program.inputs[0].shape, (4, 3))
        program = model.compile(ranges={"N": (1, 8)})
        self.assertGreater(program.memory(shapes={}).weights, -1)
        x = np.ones((9, 3), np.float32)
        with self.assertRaises(kiln_nn.ShapeError):
            program.session().run({"x": x, "y": x})
        self.assertEqual(model.compile(ranges={"N": {"most": 16, "multiple": 4}}).session().run(
            {"x": x[:8], "y": x[:8]})["z"].shape, (8, 3))

    def test_constants(self):
        model = text_model(FOLDS)
        x, w = np.ones((1, 4), np.float32), np.zeros((4, 4), np.float32)
        known = model.compile(constants={"w": w}).session()
        self.assertTrue((known.run({"x": x})["y"] == 4).all())
        with self.assertRaisesRegex(kiln_nn.UsageError, "its value was set when the program was compiled"):
            known.run({"x": x, "w": w})
        program = model.compile(constants={"w": None})
        session = program.session()
        with self.assertRaises(kiln_nn.UsageError):
            session.run({"x": x})
        for _ in range(3):
            self.assertTrue((session.run({"x": x, "w": w})["y"] == 4).all())
        self.assertTrue((session.run({"x": x})["y"] == 4).all())  # it stays
        self.assertEqual(program.fold_runs, 1)
        self.assertTrue((session.run({"x": x, "w": w + np.log(np.float32(2))})["y"] > 7.9).all())

    def test_saved_programs(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "digits.kiln-program")
            program = kiln_nn.load(DIGITS).compile()
            program.save(path)
            expected = program.session().run({"image": seven()})["probabilities"]
            for source in (path, path.read_bytes()):
                found = kiln_nn.load_program(source).session().run({"image": seven()})["probabilities"]
                np.testing.assert_array_equal(found, expected)
        with self.assertRaises(kiln_nn.FormatError):
            kiln_nn.load_program(b"no program")

    def test_seeds(self):
        model = text_model("graph @f() {\n  %y = random_normal() {shape=[8]} : f32[8]\n  return %y\n}\n")
        seeded = [model.compile().session(seed=7).run({})["y"] for _ in range(2)]
        np.testing.assert_array_equal(*seeded)
        session = model.compile().session()
        self.assertTrue((session.run({})["y"] != session.run({})["y"]).any())


class Carry(unittest.TestCase):
    def test_sums(self):
        session = session_of(CARRY)
        session.carry("n", "h")
        x = np.array([1, 2], np.float32)
        with self.assertRaises(kiln_nn.UsageError):
            session.run({"x": x})
        results = [session.run({"h": np.zeros(2, np.float32), "x": x})["n"]]
        results += [session.run({"x": x})["n"] for _ in range(3)]
        self.assertEqual([result[0] for result in results], [1, 2, 3, 4])
        clone = session.clone()
        results[-1][:] = 100
        self.assertEqual(session.run({"x": x})["n"][1], 10)
        self.assertEqual(clone.run({"x": x})["n"][1], 10)
        session.reset()
        with self.assertRaises(kiln_nn.UsageError):
            session.run({"x": x})
        self.assertEqual(session.run({"h": x, "x": x})["n"][0], 2)

    def test_carried_into_given_memory(self):
        session = session_of(CARRY)
        session.carry("n", "h")
        x = np.ones(2, np.float32)
        session.run({"h": x, "x": x}, out={"n": np.zeros(2, np.float32)})
        for sum in (3, 4, 5):  # the array of the run before is gone
            out = np.zeros(2, np.float32)
            self.assertIs(session.run({"x": x}, out={"n": out})["n"], out)
            self.assertEqual(out[0], sum)
            out[:] = 100  # the session has its own

    def test_appends_and_truncates(self):
        session = session_of(APPEND)
        session.carry("all", "past")
        x = np.ones((1, 2), np.float32)
        session.run({"past": np.zeros((3, 2), np.float32), "x": x})
        self.assertEqual(session.run({"x": x})["all"].shape, (5, 2))
        session.truncate("past", 2)
        result = session.run({"x": x})["all"]
        np.testing.assert_array_equal(result, [[0, 0], [0, 0], [1, 1]])

    def test_a_failed_run_keeps_what_was_carried(self):
        session = session_of(CARRY)
        session.carry("n", "h")
        x = np.ones(2, np.float32)
        session.run({"h": x, "x": x})
        for wrong in ({"x": np.zeros(2)}, {"x": x[:1]}, {}):
            with self.assertRaises(kiln_nn.Error):
                session.run(wrong)
        self.assertEqual(session.run({"x": x})["n"][0], 3)

    def test_a_failed_run_forgets_the_first_value(self):
        session = session_of(CARRY)
        session.carry("n", "h")
        with self.assertRaises(kiln_nn.ElementTypeError):
            session.run({"h": np.zeros(2, np.float32), "x": np.zeros(2)})
        with self.assertRaises(kiln_nn.UsageError):
            session.run({"x": np.zeros(2, np.float32)})


if __name__ == "__main__":
    main()
