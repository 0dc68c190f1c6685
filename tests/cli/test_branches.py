# SPDX-License-Identifier: Apache-2.0
"""Models with an `If` that the shapes decide, as PyTorch writes `x.squeeze(1)`: the branch that is not taken does not
fit, and what follows has the rank of the one that is."""
import struct

from harness import UNSUPPORTED, CliTest, main
from onnx_writer import BOOL, FLOAT, INT64, chunk, graph_attribute, int_attribute, model, node, tensor, value


def integers(name, dims, *numbers):
    return tensor(name, INT64, dims, struct.pack(f"<{len(numbers)}q", *numbers))


def untyped(name):
    return chunk(1, name)


def branch(name, op, inputs):
    """t = op(inputs)."""
    return graph_attribute(name, [node(op, inputs, ["t"], f"the_{op}")], [untyped("t")])


def squeeze_if(condition, result):
    """The other branch is an `If` itself, of a value of the branch."""
    inner = node("If", ["always"], ["t"], "inner", attributes=[branch("then_branch", "Abs", ["n"]),
                                                                branch("else_branch", "Squeeze", ["n", "axis"])])
    other = graph_attribute("else_branch", [node("Neg", ["x"], ["n"]), inner], [untyped("t")])
    return node("If", [condition], [result], "outer",
                attributes=[branch("then_branch", "Squeeze", ["x", "axis"]), other])


def squeeze_model(dims, compare="Equal"):
    """y = relu of x without its dim 1, where that is 1; else of |x|."""
    nodes = [node("Shape", ["x"], ["s"]), node("Gather", ["s", "one"], ["d"]), node(compare, ["d", "one"], ["c"]),
             squeeze_if("c", "r"), node("Shape", ["r"], ["rs"]), node("Reshape", ["r", "rs"], ["q"]),
             node("Relu", ["q"], ["y"])]
    return model(nodes, [value("x", FLOAT, dims)], [untyped("y")],
                 [integers("one", [], 1), integers("axis", [1], 1), tensor("always", BOOL, [], b"\1")])


class Branches(CliTest):
    def shapes_of(self, text):
        return [line.split()[1] for line in text.splitlines() if line.startswith("y:")]

    def test_open_shapes_decide_at_the_run(self):
        path = self.write("open.onnx", squeeze_model(["a", "b", "c"]))
        for shape, expected in (("2x3x4", "f32[2,3,4]"), ("2x1x4", "f32[2,4]"), ("1x1x1", "f32[1,1]")):
            for options in ((), ("--passes", "empty"), ("--backend", "ref"), ("--no-offload",)):
                with self.subTest(shape=shape, options=options):
                    out = self.kiln("run", path, "--random", "1", "--shape", f"x={shape}", *options)
                    self.assertEqual(self.shapes_of(out), [expected])

    def test_known_shapes_decide_at_the_import(self):
        for dims, expected in (([2, 3, 4], "f32[2,3,4]"), ([2, 1, 4], "f32[2,4]")):
            path = self.write("known.onnx", squeeze_model(dims))
            self.assertEqual(self.shapes_of(self.kiln("run", path, "--random", "1")), [expected])
            self.assertNotIn("if(", self.kiln("opt", path, "--passes", "empty"))
            self.assertIn("0 not supported", self.kiln("check", path))

    def test_what_shapes_decide_is_supported(self):
        path = self.write("open.onnx", squeeze_model(["a", "b", "c"]))
        self.assertIn("0 not supported", self.kiln("check", path))

    def test_programs_and_texts_are_of_the_branch_taken(self):
        path = self.write("open.onnx", squeeze_model(["a", "b", "c"]))
        program = self.dir / "open.kiln-program"
        self.kiln("compile", path, "-o", program, "--shape", "x=2x3x4")
        self.assertEqual(self.shapes_of(self.kiln("run", program, "--random", "1")), ["f32[2,3,4]"])
        text = self.kiln("opt", path, "--passes", "empty")
        self.assertIn("if(", text)
        out = self.kiln("run", self.write("open.kiln", text), "--random", "1", "--shape", "x=2x1x4")
        self.assertEqual(self.shapes_of(out), ["f32[2,4]"])

    def test_the_branch_taken_has_to_fit(self):
        message = ["outer (", "): then_branch: the_Squeeze (squeeze): operand 0: expected dim 1 to be 1, found f32[2,3,4]"]
        path = self.write("known.onnx", squeeze_model([2, 3, 4], "Greater"))
        self.fails(1, message, "run", path, "--random", "1")
        path = self.write("open.onnx", squeeze_model(["a", "b", "c"], "Greater"))
        self.fails(1, message, "run", path, "--random", "1", "--shape", "x=2x3x4")

    def test_values_of_inputs_decide_at_the_run(self):
        """That a branch cannot run is found where it is taken: the model loads, is checked and printed."""
        path = self.write("value.onnx", model([squeeze_if("c", "y")],
                                              [value("x", FLOAT, [2, 3, 4]), value("c", BOOL, [])], [untyped("y")],
                                              [integers("axis", [1], 1), tensor("always", BOOL, [], b"\1")]))
        self.assertIn("0 not supported", self.kiln("check", path))
        text = self.kiln("opt", path, "--passes", "empty")
        self.assertIn('unknown() {reason="the_Squeeze (squeeze): operand 0: expected dim 1', text)
        self.assertEqual(self.kiln("opt", self.write("value.kiln", text), "--passes", "empty"), text)
        for flag, name in ((b"\0", "no.pb"), (b"\1", "yes.pb")):
            self.write(name, tensor("c", BOOL, [], flag))
        out = self.kiln("run", path, "--random", "1", "-i", f"c={self.dir / 'no.pb'}")
        self.assertEqual(self.shapes_of(out), ["f32[2,3,4]"])
        self.fails(1, ["outer (if): then_branch: the_Squeeze (squeeze): operand 0: expected dim 1 to be 1"],
                   "run", path, "--random", "1", "-i", f"c={self.dir / 'yes.pb'}")

    def test_values_on_the_way_decide_at_the_run(self):
        """Branches of different ranks, by the data itself."""
        branches = [branch("then_branch", "Neg", ["x"]), branch("else_branch", "Squeeze", ["x", "axis"])]
        nodes = [node("ReduceSum", ["x"], ["s"], attributes=[int_attribute("keepdims", 0)]),
                 node("Greater", ["s", "zero"], ["c"]), node("If", ["c"], ["r"], attributes=branches),
                 node("Relu", ["r"], ["y"])]
        path = self.write("data.onnx", model(nodes, [value("x", FLOAT, [2, 1])], [untyped("y")],
                                             [integers("axis", [1], 1), tensor("zero", FLOAT, [], bytes(4))]))
        self.assertIn("0 not supported", self.kiln("check", path))
        for numbers, expected in (((1, 2), "f32[2,1]"), ((1, -2), "f32[2]")):
            self.write("x.pb", tensor("x", FLOAT, [2, 1], struct.pack("<2f", *numbers)))
            out = self.kiln("run", path, "-i", f"x={self.dir / 'x.pb'}")
            self.assertEqual(self.shapes_of(out), [expected])


if __name__ == "__main__":
    main()
