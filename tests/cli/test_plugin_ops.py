# SPDX-License-Identifier: Apache-2.0
"""Operators of plug-ins: import, shapes, folding, runs, programs, export, and every way in which one cannot be had."""
import os
import pathlib
import struct
import unittest

import onnx_writer as onnx
from harness import FAILED, UNSUPPORTED, USAGE, CliTest, floats, main, npy

PLUGINS = pathlib.Path(os.environ.get("KILN_PLUGIN_DIR", "/nonexistent"))
EXAMPLE, RIVAL, OPERATORS, WRONG, PASSES = (PLUGINS / f"plugin-{name}.so" for name in
                                            ("example", "rival", "operators", "wrong_op_version", "good"))
BACKENDS = (("--backend", "cpu"), ("--backend", "ref"), ("--pipeline", "none"), ("--threads", "1"), ("--pipeline", "own"))


def float_attribute(name, real):
    return onnx.chunk(1, name) + onnx.varint(2 << 3 | 5) + struct.pack("<f", real) + onnx.number(20, 1)


def text_attribute(name, text):
    return onnx.chunk(1, name) + onnx.chunk(4, text) + onnx.number(20, 3)


def floats_attribute(name, reals):
    return onnx.chunk(1, name) + b"".join(onnx.varint(7 << 3 | 5) + struct.pack("<f", real) for real in reals) + onnx.number(20, 6)


def texts_attribute(name, texts):
    return onnx.chunk(1, name) + b"".join(onnx.chunk(9, text) for text in texts) + onnx.number(20, 8)


def tensor_attribute(name, tensor):
    return onnx.chunk(1, name) + onnx.chunk(5, tensor) + onnx.number(20, 4)


def softsign2(x, y, *attributes):
    return onnx.node("Softsign2", [x], [y], f"node_{y}", "com.example", attributes)


def test_node(op, inputs, outputs, *attributes):
    return onnx.node(op, inputs, outputs, f"node_{outputs[0]}", "test.ops", attributes)


def raw_data(tensor):
    """The raw_data of a TensorProto."""
    at = 0

    def varint():
        nonlocal at
        number = shift = 0
        while True:
            byte = tensor[at]
            at += 1
            number |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return number

    while at < len(tensor):
        key = varint()
        if key & 7 == 0:
            varint()
            continue
        length = varint()
        if key >> 3 == 9:
            return tensor[at:at + length]
        at += length
    return b""


TABLE = tensor_attribute("table", onnx.float_tensor("", [2], [1, 2]))


@unittest.skipUnless(EXAMPLE.exists(), f"{EXAMPLE} is not built")
class PluginOps(CliTest):
    def model(self, nodes, outputs, dims=("N", 4), initializers=(), name="model.onnx", dtype=onnx.FLOAT):
        return self.write(name, onnx.model(nodes, [onnx.value("x", dtype, list(dims))], outputs, initializers,
                                           domains=["com.example", "test.ops"]))

    def example(self, *attributes):
        return self.model([softsign2("x", "a", *attributes), onnx.node("PairSum", ["a"], ["b"], "pair", "com.example"),
                           onnx.node("Relu", ["b"], ["y"])], [onnx.value("y", onnx.FLOAT, ["N", "M"])])

    def values(self, model, values, dims, *options, plugins=(EXAMPLE, OPERATORS)):
        """The floats of output 0 for the input x."""
        x = self.write("x.npy", npy("<f4", dims, floats(*values)))
        load = [word for plugin in plugins for word in ("--load-plugin", plugin)]
        self.kiln("run", model, "-i", f"x={x}", "-o", "out", "--quiet", *load, *options)
        raw = raw_data((self.dir / "out/output_0.pb").read_bytes())
        return list(struct.unpack(f"<{len(raw) // 4}f", raw))

    def test_runs_on_every_backend_and_for_every_shape(self):
        model = self.example(float_attribute("alpha", 3))
        for options in BACKENDS:
            with self.subTest(options=options):
                self.assertEqual(self.values(model, [1, -3, 3, 9], [1, 4], *options), [0, 1.25])
                self.assertEqual(self.values(model, [1, -3, 3, 9, 0, 1, 1, 1], [2, 4], *options), [0, 1.25, 0.25, 0.5])

    def test_a_default_counts_where_the_node_states_nothing(self):
        self.assertEqual(self.values(self.example(), [1, 0, 3, 0], [1, 4]), [0.5, 0.75])

    def test_shapes_are_expressions(self):
        text = self.kiln("opt", self.model([softsign2("x", "a"), onnx.node("PairSum", ["a"], ["y"], "", "com.example")],
                                           [onnx.value("y", onnx.FLOAT, ["N", "M"])], dims=["N", "K"]),
                         "--pipeline", "none", "--load-plugin", EXAMPLE)
        self.assertIn('%a = plugin_op(%x) {domain="com.example", op_type="Softsign2"} : f32[N,K]', text)
        self.assertIn("f32[N,floor(K/2)]", text)

    def test_texts_read_back_and_check(self):
        model = self.model([test_node("Mix", ["x"], ["y"], TABLE, float_attribute("scale", 0.1), onnx.ints_attribute("offsets", [-1, 5]),
                                      texts_attribute("names", ["a b", ""]), text_attribute("mode", "plain"))],
                           [onnx.value("y", onnx.FLOAT, ["N", 4])])
        text = self.kiln("opt", model, "--load-plugin", OPERATORS, "--check")
        path = self.write("again.kiln", text)
        self.assertEqual(self.kiln("opt", path, "--load-plugin", OPERATORS, "--pipeline", "none"), text)
        for stage in ("graph", "ir"):
            self.kiln("opt", path, "--stage", stage, "--load-plugin", OPERATORS, "--check")

    def test_every_kind_of_attribute_and_inputs_that_are_left_out(self):
        one = onnx.float_tensor("one", [1], [10])
        model = self.model([test_node("Mix", ["x", "", "one", "x"], ["y", "n"], TABLE, float_attribute("scale", 2), onnx.int_attribute("shift", 100),
                                      floats_attribute("weights", [0.5, 0.25]), onnx.ints_attribute("offsets", [1000, 2000]),
                                      texts_attribute("names", ["a", "b"]))],
                           [onnx.value("y", onnx.FLOAT, ["N", 4]), onnx.value("n", onnx.INT64, [1])], initializers=[one])
        for options in BACKENDS:
            with self.subTest(options=options):
                self.assertEqual(self.values(model, [0, 1, 2, 3], [1, 4], *options),
                                 [3123.75 + 4 * i for i in range(4)])
                self.assertIn("302", self.kiln("run", model, "-i", f"x={self.dir / 'x.npy'}", "--load-plugin", OPERATORS, *options))

    def test_pure_operators_fold_and_merge_and_die(self):
        constant = onnx.float_tensor("c", [1, 4], [1, 1, 3, 3])
        model = self.model([softsign2("c", "k"), softsign2("x", "a"), softsign2("x", "b"), softsign2("x", "dead"),
                            onnx.node("Add", ["a", "b"], ["s"]), onnx.node("Add", ["s", "k"], ["y"])],
                           [onnx.value("y", onnx.FLOAT, ["N", 4])], initializers=[constant])
        text = self.kiln("opt", model, "--load-plugin", EXAMPLE, "--check")
        self.assertEqual(text.count("plugin_op("), 1)
        self.assertEqual(self.values(model, [1, 1, 0, 0], [1, 4]), [1.5, 1.5, 0.75, 0.75])

    def test_effects_stay(self):
        constant = onnx.float_tensor("c", [1, 4], [1, 1, 3, 3])
        model = self.model([test_node("Count", ["c"], ["k"]), test_node("Count", ["x"], ["a"]), test_node("Count", ["x"], ["b"]),
                            test_node("Count", ["x"], ["dead"]), onnx.node("Add", ["a", "b"], ["s"]), onnx.node("Add", ["s", "k"], ["y"])],
                           [onnx.value("y", onnx.FLOAT, ["N", 4])], initializers=[constant])
        for stage, name in (("graph", "plugin_effect("), ("ir", "plugin_op @out")):
            self.assertEqual(self.kiln("opt", model, "--stage", stage, "--load-plugin", OPERATORS).count(name), 4)
        # 0 + 1 + 2 runs were before the three that count.
        self.assertEqual(self.values(model, [1, 1, 0, 0], [1, 4]), [6, 6, 6, 6])

    def test_inside_of_branches(self):
        then = onnx.graph_attribute("then_branch", [softsign2("x", "t")], [onnx.value("t", onnx.FLOAT, ["N", 4])])
        other = onnx.graph_attribute("else_branch", [test_node("Mix", ["x"], ["e"], TABLE)], [onnx.value("e", onnx.FLOAT, ["N", 4])])
        sums = [onnx.node("ReduceMax", ["x"], ["m"], attributes=[onnx.int_attribute("keepdims", 0)]),
                onnx.node("Greater", ["m", "zero"], ["positive"]), onnx.node("If", ["positive"], ["y"], attributes=[then, other])]
        model = self.model(sums, [onnx.value("y", onnx.FLOAT, ["N", 4])], initializers=[onnx.float_tensor("zero", [], [0])])
        for options in BACKENDS:
            with self.subTest(options=options):
                self.assertEqual(self.values(model, [1, 1, 1, -1], [1, 4], *options), [0.5, 0.5, 0.5, -0.5])
                self.assertEqual(self.values(model, [-1, -1, -1, -1], [1, 4], *options), [9, 9, 9, 9])

    def test_inside_of_loops(self):
        loop = self.write("loop.kiln", """graph @loop(%n: i64[], %x: f32[N]) {
  %last, %all = loop(%n, _, %x) body(%i: i64[], %go: bool[], %carried: f32[N]) {
    %h = plugin_op(%carried) {domain="test.ops", op_type="Half"} : f32[N]
    %c = plugin_effect(%h) {domain="test.ops", op_type="Count"} : f32[N]
    return %go, %c, %h
  } : f32[N], f32[?,N]
  return %last, %all
}
""")
        self.write("n.npy", npy("<i8", [], struct.pack("<q", 3)))
        for options in BACKENDS:
            with self.subTest(options=options):
                # 8 → 4 + 0 → 2 + 1 → 1.5 + 2
                self.assertEqual(self.values(loop, [8, 8], [2], "-i", f"n={self.dir / 'n.npy'}", *options), [3.5, 3.5])
        self.kiln("opt", loop, "--check", "--load-plugin", OPERATORS)

    def test_effects_of_branches_stay_there(self):
        path = self.write("branch.kiln", """graph @branch(%c: bool[], %x: f32[2]) {
  %y = if(%c) then {
    %a = plugin_effect(%x) {domain="test.ops", op_type="Count"} : f32[2]
    return %a
  } else {
    %b = plugin_effect(%x) {domain="test.ops", op_type="Count"} : f32[2]
    %d = plugin_effect(%b) {domain="test.ops", op_type="Count"} : f32[2]
    return %d
  } : f32[2]
  return %y
}
""")
        self.assertEqual(self.kiln("opt", path, "--load-plugin", OPERATORS).count("plugin_effect("), 3)

    def test_what_fails_on_constants_fails_in_the_run(self):
        path = self.write("fails.kiln", """graph @fails() {
  %x = const @x : f32[2]
  %y = plugin_op(%x) {domain="test.ops", op_type="Refuse"} : f32[2]
  return %y
}
constants { @x = [1, 2] : f32[2] }
""")
        self.assertIn("expected other data", self.kiln_err("run", path, "--load-plugin", OPERATORS, status=FAILED))

    def test_between_regions_of_the_vendor(self):
        weight = onnx.float_tensor("w", [8, 8, 1, 1], [(i * 37 % 11 - 5) / 8 for i in range(64)])
        nodes = [onnx.node("Conv", ["x", "w"], ["a"], "first"), test_node("Half", ["a"], ["b"]), onnx.node("Conv", ["b", "w"], ["c"], "second"),
                 onnx.node("QuantizeLinear", ["c", "s"], ["q"]), test_node("Echo", ["q"], ["e"]), onnx.node("DequantizeLinear", ["e", "s"], ["y"])]
        model = self.model(nodes, [onnx.value("y", onnx.FLOAT, ["N", 8, "H", "W"])], dims=["N", 8, 9, 9],
                           initializers=[weight, onnx.float_tensor("s", [], [0.25])])
        for options in ((), ("--pipeline", "own"), ("--pipeline", "offload")):
            self.kiln("opt", model, "--load-plugin", OPERATORS, "--check", *options)
            self.kiln("run", model, "--random", "1", "--shape", "N=2", "--load-plugin", OPERATORS, *options)

    def test_halves(self):
        path = self.write("halves.kiln", """graph @halves(%x: f16[N,4]) {
  %a = exp(%x) : f16[N,4]
  %b = plugin_op(%a) {domain="test.ops", op_type="Echo"} : f16[N,4]
  %c = exp(%b) : f16[N,4]
  return %c
}
""")
        text = self.kiln("opt", path, "--load-plugin", OPERATORS, "--check")
        self.assertIn("plugin_op(", text)
        self.assertIn(": f16[N,4]", next(line for line in text.splitlines() if "plugin_op(" in line))

    def test_strings(self):
        path = self.write("texts.kiln", 'graph @f() {\n  %x = const @x : string[2]\n'
                          '  %y = plugin_effect(%x) {domain="test.ops", op_type="Shout"} : string[2]\n  return %y\n}\n'
                          'constants { @x = ["abc", "x Y"] : string[2] }\n')
        self.fails(FAILED, "Shout of plug-in", "run", path, "--load-plugin", OPERATORS)
        text = pathlib.Path(path).read_text(encoding="utf-8").replace("plugin_effect", "plugin_op")
        path = self.write("texts.kiln", text)
        for options in BACKENDS:
            self.assertIn("X Y", self.kiln("run", path, "--load-plugin", OPERATORS, *options))

    def test_shapes_by_elements(self):
        size = onnx.tensor("size", onnx.INT64, [2], struct.pack("<2q", 3, 2))
        model = self.model([test_node("Blocks", ["x", "size"], ["y"])], [onnx.value("y", onnx.FLOAT, ["A", "B"])], initializers=[size])
        for options in BACKENDS:
            self.assertEqual(self.values(model, [1, 2, 3, 4], [1, 4], *options), [1, 2, 3, 4, 1, 2])

    def test_programs_name_their_operators(self):
        model = self.example()
        self.kiln("compile", model, "-o", "model.kilnx", "--load-plugin", EXAMPLE, "--quiet")
        program = self.dir / "model.kilnx"
        self.assertEqual(self.values(program, [1, 0, 3, 0], [1, 4]), [0.5, 0.75])
        message = self.kiln_err("run", program, "--random", "1", "--shape", "N=2", status=UNSUPPORTED)
        self.assertIn("operator com.example:", message)
        self.assertIn("not known, and no plug-in has it (--load-plugin, kiln_op_load_plugin())", message)

    def test_export_writes_the_nodes_back(self):
        model = self.model([test_node("Mix", ["x", "", "x"], ["a"], TABLE, float_attribute("scale", 2), onnx.int_attribute("shift", 1),
                                      texts_attribute("names", ["n"]), floats_attribute("weights", [0.5]), onnx.ints_attribute("offsets", [3]),
                                      text_attribute("mode", "plain")),
                            softsign2("a", "y", float_attribute("alpha", 0.5))], [onnx.value("y", onnx.FLOAT, ["N", 4])])
        load = ("--load-plugin", EXAMPLE, "--load-plugin", OPERATORS)
        self.kiln("opt", model, "--emit", "onnx", "-o", "out.onnx", *load)
        again = self.dir / "out.onnx"
        first, second = (self.kiln("opt", path, "--pipeline", "none", *load).partition("metadata {") for path in (model, again))
        self.assertEqual(first[0], second[0])
        self.assertIn('opset "com.example" = 1\n', second[2])
        self.assertIn('opset "test.ops" = 1\n', second[2])
        self.assertIn("com.example", self.kiln("info", again, *load))

    def test_lists(self):
        load = ("--load-plugin", EXAMPLE, "--load-plugin", OPERATORS)
        lines = self.kiln("ops", *load).splitlines()
        self.assertIn(f"{'com.example:Softsign2':28} opset 1-     plug-in {EXAMPLE}: x / (alpha + |x|)", lines)
        found = {entry["onnx"]: entry for entry in self.json("ops", "--json", *load)["plugins"]}
        self.assertEqual((found["test.ops:Count"]["pure"], found["test.ops:Mix"]["pure"], found["test.ops:Mix"]["last"]), (False, True, 3))
        self.assertIn("com.example:Softsign2", self.kiln("info", self.example(), *load))
        self.kiln("check", self.example(), *load)
        lines = self.kiln("check", self.example(), status=UNSUPPORTED).splitlines()
        self.assertEqual(lines[0], "com.example:Softsign2 (opset 1, f32) at node_a: not known, and no plug-in has it (--load-plugin)")

    def test_pipeline_files_bring_operators(self):
        pipeline = self.write("p.yaml", f"version: 1\nplugins: [{EXAMPLE}]\ngraph: [cse]\n")
        self.assertEqual(self.values(self.example(), [1, 0, 3, 0], [1, 4], "--pipeline", pipeline, plugins=()), [0.5, 0.75])

    def test_loaded_twice_and_in_two_files(self):
        self.kiln("check", self.example(), "--load-plugin", EXAMPLE, "--load-pass-plugin", EXAMPLE, "--load-plugin", PASSES)
        self.fails(USAGE, f"plug-in {RIVAL}: operator com.example:Softsign2 of opset 1: plug-in {EXAMPLE} has registered it already",
                   "check", self.example(), "--load-plugin", EXAMPLE, "--load-plugin", RIVAL)

    def test_what_cannot_be_loaded(self):
        self.fails(FAILED, f"plug-in {WRONG}: built for version 2 of kiln-op.h, expected 1", "ops", "--load-plugin", WRONG)

    def test_nodes_that_do_not_fit(self):
        prefix = f"test.ops:Mix of plug-in {OPERATORS}: "
        cases = [
            (test_node("Mix", ["x"], ["y"]), prefix + "lacks the attribute 'table'"),
            (test_node("Mix", ["x"], ["y"], TABLE, onnx.int_attribute("size", 1)), prefix + "the operator has no attribute 'size'"),
            (test_node("Mix", ["x"], ["y"], TABLE, onnx.int_attribute("scale", 1)),
             prefix + "attribute 'scale': expected a float, found an integer"),
            (test_node("Mix", ["", "x"], ["y"], TABLE), prefix + "input 0 is required, found none"),
            (test_node("Mix", ["x"], ["y", "b", "c"], TABLE), prefix + "expected 1 to 2 outputs, found 3"),
            (test_node("Mix", ["x"], ["y"], TABLE, text_attribute("mode", "odd")),
             prefix + "attribute 'mode': expected plain, found odd"),
            (test_node("Count", ["x", "x"], ["y"]), "expected 1 inputs, found 2"),
            (test_node("Silent", ["x"], ["y"]), "output 0: its shape function states no type"),
        ]
        for encoded, message in cases:
            with self.subTest(message=message):
                done = self.start("run", self.model([encoded], [onnx.value("y", onnx.FLOAT, ["N", 4])]), "--random", "1",
                                  "--load-plugin", OPERATORS)
                self.assertIn(done.returncode, (FAILED, UNSUPPORTED))
                self.assertIn("node_y", done.stderr)
                self.assertIn(message, done.stderr)

    def test_a_kernel_refuses_data(self):
        model = self.model([test_node("Refuse", ["x"], ["y"])], [onnx.value("y", onnx.FLOAT, ["N", 4])])
        self.assertIn(f"node_y (test.ops:Refuse of plug-in {OPERATORS}): expected other data",
                      self.kiln_err("run", model, "--random", "1", "--shape", "N=2", "--load-plugin", OPERATORS, status=FAILED))

    def test_another_opset(self):
        path = self.write("opset.onnx", onnx.model([test_node("Count", ["x"], ["y"])], [onnx.value("x", onnx.FLOAT, [2])],
                                                   [onnx.value("y", onnx.FLOAT, [2])]) + onnx.chunk(8, onnx.chunk(1, "test.ops") + onnx.number(2, 9)))
        self.assertIn(f"the model imports opset 9: plug-in {OPERATORS} has it from opset 1 on, up to 3",
                      self.kiln("check", path, "--load-plugin", OPERATORS, status=UNSUPPORTED))

    def test_broken_instructions(self):
        func = 'func @f {\n  input @x : f32[2]\n  output @y : f32[2]\n  copy @out @y, @in @x\n%s\n}\n'
        half = 'domain="test.ops", op_type="Half"'
        for line, message in (('  plugin_op @in @x {' + half + '}', "operand 0: expected @out, found @in"),
                              ('  plugin_op _, @in @x {' + half + '}', "operand 0: expected @out, found @in"),
                              ('  plugin_op @out @y, _ {' + half + '}', "expected 1 inputs, found 0"),
                              ('  plugin_op @out @y, @in @x {effect=true, ' + half + '}', "expected plugin_op, found plugin_effect"),
                              ('  plugin_op @out @y, @in @x, @out @y {' + half + '}', "expected @in, found @out")):
            with self.subTest(line=line):
                path = self.write("broken.kiln", func % line)
                self.assertIn(message, self.kiln_err("run", path, "--random", "1", "--load-plugin", OPERATORS, status=FAILED))

    def test_broken_texts(self):
        for columns, message in (('attributes=["float 2 scale"], floats=[1.0]', "entry 0 of 'attributes'"),
                                 ('attributes=["float 1"], floats=[1.0]', "entry 0 of 'attributes'"),
                                 ('attributes=["tensor f32 2 table"], texts=["AA"]', "entry 0 of 'attributes'"),
                                 ("ints=[1]", "entry 0 of 'attributes'")):
            path = self.write("broken.kiln", "graph @f(%x: f32[2]) {\n  %y = plugin_op(%x) {" + columns +
                              ', domain="test.ops", op_type="Mix"} : f32[2]\n  return %y\n}\n')
            with self.subTest(columns=columns):
                self.assertIn(message, self.kiln_err("run", path, "--random", "1", "--load-plugin", OPERATORS, status=FAILED))


if __name__ == "__main__":
    main()
