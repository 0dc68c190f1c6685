# SPDX-License-Identifier: Apache-2.0
"""Dims that data decides: what the commands say of them, and that a detector head gives the boxes that it must."""
import struct
import unittest

from harness import FAILED, CliTest, main

PICKED = """graph @picked(%x: f32[3,4]) {
  %n = non_zero(%x) : i64[2,?]
  %i = transpose(%n) {perm=[1,0]} : i64[?,2]
  %y = gather_nd(%x, %i) : f32[?]
  return %y
}
"""
# Boxes of one class in the order of their scores, without those that overlap one before them.
HEAD = """graph @head(%boxes: f32[1,N,4], %scores: f32[1,1,N]) {
  %most = const @most : i64[]
  %overlap = const @overlap : f32[]
  %least = const @least : f32[]
  %axis = const @axis : i64[1]
  %two = const @two : i64[]
  %kept = non_max_suppression(%boxes, %scores, %most, %overlap, %least) : i64[?,3]
  %place = gather(%kept, %two) {axis=1} : i64[?]
  %all = squeeze(%boxes, %axis) : f32[N,4]
  %y = gather(%all, %place) : f32[?,4]
  return %y
}
constants {
  @most = [10] : i64[]
  @overlap = [0.5] : f32[]
  @least = [0.25] : f32[]
  @axis = [0] : i64[1]
  @two = [2] : i64[]
}
"""
# The sum of the input says how many numbers there are.
COUNTED = """graph @counted(%x: i64[2,2]) {
  %zero = const @zero : i64[]
  %one = const @one : i64[]
  %sum = reduce_sum(%x) {keepdims=false} : i64[]
  %y = range(%zero, %sum, %one) : i64[?]
  return %y
}
constants { @zero = [0] : i64[]  @one = [1] : i64[] }
"""
# Elements that are above 1.
SELECTED = """graph @selected(%x: f32[3,4]) {
  %one = const @one : f32[]
  %large = greater(%x, %one) : bool[3,4]
  %line = const @line : i64[1]
  %c = reshape(%large, %line) : bool[12]
  %y = compress(%x, %c) : f32[?]
  return %y
}
constants { @one = [1] : f32[]  @line = [-1] : i64[1] }
"""


class DefineTest(CliTest):
    def floats(self, name, values):
        return self.write(name, struct.pack(f"<{len(values)}f", *values))

    def result(self, model, *arguments, form="f"):
        """The elements of the first output."""
        folder = str(self.dir / "out")
        self.kiln("run", model, *arguments, "--npy", "-o", folder, "--quiet")
        data = (self.dir / "out" / "output_0.npy").read_bytes()
        payload = data[10 + struct.unpack("<H", data[8:10])[0]:]
        return list(struct.unpack(f"<{len(payload) // struct.calcsize(form)}{form}", payload))

    def test_info_names_the_dim_and_its_bound(self):
        lines = self.kiln("info", self.write("m.kiln", PICKED)).splitlines()
        self.assertIn("output       y: f32[n_n]", lines)
        self.assertIn("dim          n_n: 0..12, which data decides", lines)
        lines = self.kiln("info", self.write("h.kiln", HEAD)).splitlines()
        self.assertIn("dim          kept_n: 0..min(10,N), which data decides", lines)

    def test_runs_under_all_pipelines(self):
        model = self.write("m.kiln", PICKED)
        values = [0, 1, 0, 2, 3, 0, 0, 0, 0, 0, 0, 4]
        x = self.floats("x.raw", values)
        for arguments in ((), ("--pipeline", "none"), ("--backend", "ref"), ("--poison",), ("--prefer", "memory"),
                          ("--no-offload",)):
            self.assertEqual(self.result(model, "-i", f"x={x}", *arguments), [1, 2, 3, 4], arguments)
        zeros = self.floats("zeros.raw", [0] * 12)
        self.assertEqual(self.result(model, "-i", f"x={zeros}"), [])

    def test_conditions_that_data_computes(self):
        model = self.write("selected.kiln", SELECTED)
        x = self.floats("x.raw", [0, 2, 0, 3, 1, 0, 0, 0, 0.5, 0, 7, 0])
        for pipeline in "default", "none":
            self.assertEqual(self.result(model, "-i", f"x={x}", "--pipeline", pipeline), [2, 3, 7], pipeline)

    def test_text_of_instructions(self):
        """It is parsed, printed as it was, and runs."""
        model = self.write("m.kiln", PICKED)
        text = self.kiln("opt", model, "--stage", "ir")
        self.assertIn("define @in %n_count {values=[n_n], most=[12]}", text)
        again = self.write("ir.kiln", text)
        self.assertEqual(self.kiln("opt", again), text)
        x = self.floats("x.raw", [0, 1] * 6)
        self.assertEqual(self.result(again, "-i", f"x={x}"), [1] * 6)
        define = '  define @in %n_count {values=[n_n], most=[12]} loc("n")\n'
        early = text.replace(define, "").replace("  dealloc %n_count\n", "")
        early = early.replace("  dealloc %n_room\n", f"  dealloc %n_room\n{define}  dealloc %n_count\n")
        self.assertIn("needs a dim before it is defined",
                      self.kiln_err("opt", self.write("early.kiln", early), status=FAILED))

    def test_checks(self):
        for name, text in (("m.kiln", PICKED), ("h.kiln", HEAD), ("c.kiln", COUNTED)):
            model = self.write(name, text)
            self.kiln("opt", "--check", model)
            if name != "c.kiln":
                self.assertIn("all of them good", self.kiln("bisect", model))

    def test_memory_holds_for_all_counts(self):
        self.assertIn("for all of n_n=0..12", self.kiln("memory", self.write("m.kiln", PICKED)))

    def test_program_files(self):
        model, x = self.write("m.kiln", PICKED), self.floats("x.raw", [0, 5, 6] * 4)
        program = str(self.dir / "m.program")
        self.kiln("compile", model, "-o", program)
        self.assertEqual(self.result(program, "-i", f"x={x}"), [5, 6] * 4)

    def test_detector_head(self):
        """The second box lies on the first one, and the score of the last is too low."""
        boxes = self.floats("boxes.raw", [0, 0, 2, 2, 0, 0, 2, 1.9, 5, 5, 6, 6, 3, 3, 4, 4, 8, 8, 9, 9])
        scores = self.floats("scores.raw", [0.9, 0.8, 0.7, 0.95, 0.2])
        model = self.write("h.kiln", HEAD)
        inputs = ("-i", f"boxes={boxes}", "-i", f"scores={scores}", "--shape", "boxes=1x5x4", "--shape", "scores=1x1x5")
        expected = [3, 3, 4, 4, 0, 0, 2, 2, 5, 5, 6, 6]
        self.assertEqual(self.result(model, *inputs), expected)
        self.assertEqual(self.result(model, *inputs, "--backend", "ref"), expected)

    def test_operands_that_data_computes(self):
        model = self.write("c.kiln", COUNTED)
        for values in ([1, 2, 0, 2], [0, 0, 0, 0], [50, 50, 50, 50], [-3, 0, 0, 1]):
            x = self.write("x.raw", struct.pack("<4q", *values))
            self.assertEqual(self.result(model, "-i", f"x={x}", form="q"), list(range(sum(values))))

    def test_export_needs_no_names(self):
        for name, text in (("m.kiln", PICKED), ("c.kiln", COUNTED)):
            exported = str(self.dir / (name + ".onnx"))
            self.kiln("opt", "--emit", "onnx", "-o", exported, self.write(name, text))
            self.kiln("run", exported, "--random", "1")


if __name__ == "__main__":
    main()
