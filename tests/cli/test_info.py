# SPDX-License-Identifier: Apache-2.0
"""kiln info: what a model is."""
import unittest

import onnx_writer as onnx
from harness import ADD, FAILED, MODEL, OPEN, CliTest, main


def described():
    """A model whose file says all that an ONNX file can say."""
    body = onnx.model([onnx.node("Relu", ["x"], ["y"]), onnx.node("Thing", ["y"], ["z"], domain="com.example"),
                       onnx.node("Relu", ["z"], ["w"])],
                      [onnx.value("x", onnx.FLOAT, ["N", 3])], [onnx.value("w", onnx.FLOAT, ["N", 3])],
                      domains=["com.example"])
    facts = onnx.chunk(2, "trainer") + onnx.chunk(3, "2.5") + onnx.chunk(4, "org.example") + onnx.number(5, 7)
    return body + facts + onnx.chunk(6, "two\nlines \x1b[31m") + onnx.chunk(14, onnx.chunk(1, "labels") + onnx.chunk(2, "cat,dog"))


class Info(CliTest):
    def test_what_the_file_says(self):
        path = self.write("m.onnx", described())
        self.assertEqual(self.kiln("info", path).splitlines(), [
            "graph        test",
            "producer     trainer 2.5",
            "domain       org.example",
            "version      7",
            "ir version   8",
            "opset        ai.onnx 13",
            "opset        com.example 1",
            "doc          two\\nlines \\x1b[31m",
            "property     labels = cat,dog",
            "input        x: f32[N,3]",
            "output       w: f32[?,3]",
            "nodes        3",
            "constants    0 bytes",
            "work         0.000192 million operations",
            "           2 relu",
            "           1 com.example:Thing"])

    def test_json(self):
        document = self.json("info", "--json", self.write("m.onnx", described()))
        self.assertEqual(document["properties"], [{"key": "labels", "value": "cat,dog"}])
        self.assertEqual(document["opsets"], [{"domain": "", "version": 13}, {"domain": "com.example", "version": 1}])
        self.assertEqual((document["producer_name"], document["producer_version"], document["domain"]), ("trainer", "2.5", "org.example"))
        self.assertEqual((document["doc_string"], document["model_version"], document["ir_version"]), ("two\nlines \x1b[31m", 7, 8))
        self.assertEqual(document["inputs"], [{"name": "x", "type": "f32[N,3]", "dtype": "f32", "shape": ["N", 3]}])
        self.assertEqual(document["outputs"][0]["shape"], [None, 3])
        self.assertEqual(document["ops"], [{"op": "relu", "n": 2}, {"op": "com.example:Thing", "n": 1}])
        self.assertEqual(document["level"], "graph")

    def test_a_text_that_says_nothing(self):
        lines = self.kiln("info", self.write("open.kiln", OPEN), "--quiet").splitlines()
        self.assertEqual(lines, ["graph        open", "input        x: f32[N,3]", "input        y: f32[N,3]", "output       z: f32[N,3]",
                                 "nodes        1", "constants    0 bytes", "work         0.000192 million operations"])

    def test_subgraphs_count(self):
        text = self.write("if.kiln", "graph @f(%c: bool[], %x: f32[2]) {\n  %y = if(%c) then {\n    %a = relu(%x)\n    return %a\n"
                                     "  } else {\n    return %x\n  } : f32[2]\n  return %y\n}\n")
        self.assertEqual(self.json("info", "--json", text)["ops"], [{"op": "if", "n": 1}, {"op": "relu", "n": 1}])

    def test_text_onnx_and_programs_keep_what_the_model_said(self):
        said = ("producer_name", "producer_version", "doc_string", "opsets", "properties", "ir_version")
        model = self.json("info", "--json", MODEL)
        self.assertGreater(model["flops"], 1e6)
        for command in (("opt", MODEL, "-o", "a.kiln"), ("opt", MODEL, "--stage", "ir", "-o", "a.kiln"),
                        ("compile", MODEL, "-o", "a.kiln-program")):
            self.kiln(*command)
            kept = self.json("info", "--json", command[-1])
            self.assertEqual({key: kept[key] for key in said}, {key: model[key] for key in said})
            self.assertEqual((kept["inputs"], kept["outputs"]), (model["inputs"], model["outputs"]))
        path = self.write("add.kiln", ADD + 'metadata {\n  domain = "org.example"\n  property "k" = "v"\n}\n')
        self.kiln("opt", path, "--emit", "onnx", "-o", "add.onnx")
        written = self.json("info", "--json", "add.onnx")
        self.assertEqual((written["producer_name"], written["domain"], written["properties"]),
                         ("kiln", "org.example", [{"key": "k", "value": "v"}]))

    def test_errors(self):
        self.fails(FAILED, "no-such.onnx", "info", "no-such.onnx")
        self.fails(FAILED, "byte ", "info", self.write("m.onnx", described()[:-3]))


if __name__ == "__main__":
    main()
