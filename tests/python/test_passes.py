#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""kiln_nn.passes: pipelines, and passes that are Python functions."""
import unittest

from case import ADD, kiln_nn, main, np, text_model
from kiln_nn import passes

MODEL = """graph @f(%x: f32[2,3]) {
  %w = const @w : f32[3]
  %a = add(%x, %w) : f32[2,3]
  %t = transpose(%a) {perm=[1,0]} : f32[3,2]
  return %t
}
constants { @w = [1,2,3] : f32[3] }
"""
X = np.arange(6, dtype=np.float32).reshape(2, 3)


def compiled(function, text=MODEL, **options):
    mark = passes.graph_pass("my-pass")(function)
    return text_model(text).compile(pipeline=passes.pipeline(mark, "dce"), **options)


class Pipelines(unittest.TestCase):
    def test_sources(self):
        self.assertIn("cse", str(kiln_nn.Pipeline("default")))
        self.assertEqual(str(kiln_nn.Pipeline("dce")), str(kiln_nn.Pipeline().add("dce")))
        self.assertEqual(str(kiln_nn.Pipeline("dce,cse")), str(kiln_nn.Pipeline().add("dce").add("cse")))
        with self.assertRaisesRegex(kiln_nn.PipelineError, "frob"):
            kiln_nn.Pipeline().add("frob")
        with self.assertRaises(kiln_nn.PipelineError):
            kiln_nn.Pipeline().load_plugin("no-such.so")

    def test_used_pipelines_do_not_change(self):
        pipeline = kiln_nn.Pipeline("dce,cse")
        text_model(ADD).compile(pipeline=pipeline)
        with self.assertRaisesRegex(kiln_nn.UsageError, "cannot change"):
            pipeline.add("dce")


class Passes(unittest.TestCase):
    def test_reads(self):
        seen = {}

        def look(function):
            seen["name"], seen["text"] = function.name, str(function)
            seen["ops"] = [node.op for node in function.nodes]
            add, transpose = function.nodes[1], function.nodes[2]
            seen["attrs"], seen["line"], seen["label"] = transpose.attrs, str(transpose), add.name
            seen["weights"] = add.operands[1].constant
            seen["argument"] = function.arguments[0]
            seen["facts"] = [(value.name, value.dtype, value.shape, value.node) for value in function.arguments]
            seen["same"] = add.operands[0] == function.arguments[0] and hash(add) == hash(function.nodes[1])
            seen["readers"] = add.results[0].readers == [transpose] and add != transpose

        compiled(look)
        self.assertEqual(seen["ops"], ["const", "add", "transpose", "return"])
        self.assertEqual((seen["name"], seen["attrs"], seen["label"]), ("f", {"perm": [1, 0]}, "a"))
        self.assertIn("transpose(%a)", seen["line"])
        self.assertIn("graph @f", seen["text"])
        np.testing.assert_array_equal(seen["weights"], [1, 2, 3])
        self.assertEqual(seen["facts"], [("x", "f32", (2, 3), None)])
        self.assertTrue(seen["same"] and seen["readers"])
        with self.assertRaisesRegex(kiln_nn.UsageError, "a pass that is over"):
            seen["argument"].name

    def test_changes(self):
        lines = []

        def to_sub(function):
            for node in function.nodes:
                if node.op != "add":
                    continue
                two = function.constant(np.full(3, 2, np.float32), before=node)
                doubled = function.build("mul", [node.operands[1], two], before=node).results[0]
                new = function.build("sub", [node.operands[0], doubled], before=node, name="mine")
                function.note("to-sub", node.name)
                node.results[0].replace(new.results[0])
                node.remove()

        result = compiled(to_sub, log=lines.append).session().run({"x": X})["t"]
        np.testing.assert_array_equal(result, (X - [2, 4, 6]).T)
        self.assertTrue(any("to-sub" in line for line in lines))

    def test_attributes_and_operands(self):
        def swap(function):
            transpose = function.nodes[2]
            same = function.build("transpose", [transpose.operands[0]], {"perm": [1, 0]}, transpose).results[0]
            transpose.results[0].replace(same)
            function.nodes[1].set_operand(1, function.arguments[0])

        np.testing.assert_array_equal(compiled(swap).session().run({"x": X})["t"], 2 * X.T)

    def test_mistakes(self):
        def wrong(call):
            def change(function):
                call(function, function.nodes[1])
            return change
        for call, words in ((lambda f, node: node.remove(), "a node without readers"),
                            (lambda f, node: f.build("frob", []), "an operator to build, found 'frob'"),
                            (lambda f, node: f.build("add", [1, 2]), "a Value of this function"),
                            (lambda f, node: f.build("add", node.operands, {"perm": 1}), "an attribute of it"),
                            (lambda f, node: f.build("add", node.operands, 3), "expected a dict"),
                            (lambda f, node: f.build("add", node.operands, None, 3), "a Node of this function"),
                            (lambda f, node: node.set_operand(5, None), "expected operand 0 to 1, found 5"),
                            (lambda f, node: node.results[0].replace(node.operands[1]), "a value of its type")):
            with self.subTest(words=words), self.assertRaisesRegex(kiln_nn.UsageError if "type" not in words else
                                                                   kiln_nn.ElementTypeError, words):
                compiled(wrong(call))

    def test_removed_nodes(self):
        def remove(function):
            node = function.build("neg", [function.arguments[0]], before=function.nodes[0])
            result = node.results[0]
            node.remove()
            for call in (lambda: node.op, node.remove, lambda: result.name):
                try:
                    call()
                except kiln_nn.UsageError:
                    continue
                raise AssertionError("expected an error")
        compiled(remove)

    def test_exceptions_end_compiling(self):
        def fails(function):
            raise LookupError("mine")
        with self.assertRaisesRegex(LookupError, "mine"):
            compiled(fails)

    def test_a_broken_graph_is_refused(self):
        def order(function):
            function.nodes[1].set_operand(0, function.build("neg", [function.arguments[0]]).results[0])
        with self.assertRaises(kiln_nn.Error):
            compiled(order)

    def test_not_callable(self):
        with self.assertRaises(TypeError):
            kiln_nn.Pipeline().register(3, "id")
        with self.assertRaisesRegex(kiln_nn.PipelineError, "there are two passes 'cse'"):
            kiln_nn.Pipeline().register(print, "cse")


if __name__ == "__main__":
    main()
