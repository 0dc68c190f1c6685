# SPDX-License-Identifier: Apache-2.0
"""ONNX files that are not as ONNX asks: unsorted nodes are sorted, other faults get one clear message. And files with
operators that an optimizer fused."""
import math
import struct
import xml.dom.minidom

import onnx_writer as onnx
from harness import FAILED, UNSUPPORTED, CliTest, main

X = onnx.value("x", onnx.FLOAT, [2, 3])
Z = onnx.value("z", onnx.FLOAT, [2, 3])


def ints_attribute(name, values):
    body = onnx.chunk(1, name) + b"".join(onnx.number(8, value) for value in values)
    return body + onnx.number(20, 7)


class Unsorted(CliTest):
    def model(self, nodes, **options):
        return self.write("model.onnx", onnx.model(nodes, [X], [Z], **options))

    def outputs(self, model):
        self.kiln("run", model, "--random", "1", "-o", self.dir / "out", "--quiet")
        return (self.dir / "out/output_0.pb").read_bytes()

    def test_nodes_are_sorted_and_a_note_says_so(self):
        chain = [onnx.node("Neg", ["x"], ["a"]), onnx.node("Exp", ["a"], ["b"]), onnx.node("Abs", ["b"], ["z"])]
        expected = self.outputs(self.model(chain))
        self.assertEqual(self.kiln_err("info", "model.onnx"), "")
        for order in ([2, 1, 0], [1, 0, 2], [2, 0, 1]):
            model = self.model([chain[i] for i in order])
            self.assertEqual(self.outputs(model), expected)
            for command in ("info", "check", "memory", "opt"):
                note = self.kiln_err(command, "model.onnx")
                self.assertIn("note: model.onnx: graph 'test': nodes stood before what they read: ", note)
            self.assertEqual(self.kiln_err("info", "model.onnx", "--quiet"), "")

    def test_what_a_branch_captures_comes_first(self):
        then = onnx.graph_attribute("then_branch", [onnx.node("Mul", ["late", "late"], ["t"])],
                                    [onnx.value("t", onnx.FLOAT, [2, 3])])
        # Unsorted inside, too; `u` hides no name of the graph around it.
        otherwise = onnx.graph_attribute("else_branch", [onnx.node("Abs", ["u"], ["e"]), onnx.node("Neg", ["x"], ["u"])],
                                         [onnx.value("e", onnx.FLOAT, [2, 3])])
        nodes = [onnx.node("If", ["yes"], ["z"], attributes=[then, otherwise]), onnx.node("Exp", ["x"], ["late"])]
        initializers = [onnx.tensor("yes", onnx.BOOL, [], b"\1")]
        unsorted = self.outputs(self.model(nodes, initializers=initializers))
        self.assertEqual(self.outputs(self.model(nodes[::-1], initializers=initializers)), unsorted)

    def test_a_cycle_is_an_error(self):
        self.model([onnx.node("Add", ["x", "b"], ["a"], name="first"), onnx.node("Neg", ["a"], ["b"]),
                    onnx.node("Abs", ["b"], ["z"])])
        self.fails(FAILED, "model.onnx: first (Add): reads 'b', which is computed later: the nodes are in a cycle",
                   "info", "model.onnx")

    def test_a_long_chain_from_its_end(self):
        n = 20000
        names = ["x", *(f"v{i}" for i in range(n - 1)), "z"]
        nodes = [onnx.node("Neg", [names[i]], [names[i + 1]]) for i in range(n)]
        self.model(nodes[::-1])
        self.assertIn(f"{n} of {n} were moved", self.kiln_err("info", "model.onnx"))


class Messages(CliTest):
    def test_an_attribute_that_is_an_input_since(self):
        node = onnx.node("ReduceMean", ["x"], ["z"], name="mean", attributes=[ints_attribute("axes", [1])])
        for opset in (11, 13, 17):
            self.write("model.onnx", onnx.model([node], [X], [onnx.value("z", onnx.FLOAT, [2, 1])], opset=opset))
            self.kiln("check", "model.onnx")
        self.write("model.onnx", onnx.model([node], [X], [onnx.value("z", onnx.FLOAT, [2, 1])], opset=18))
        self.fails(FAILED, "mean (ReduceMean): 'axes' is input 1 since opset 18: expected that input, found an "
                   "attribute; the model imports opset 18", "run", "model.onnx", "--random", "1")

    def test_what_is_no_onnx_model(self):
        pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n"
        for content, message in (("hello, world\n", "not an ONNX model: "),
                                 ("", "not an ONNX model: the file has no graph"),
                                 (b"\x89PNG\r\n\x1a\n" * 9, "not an ONNX model: "),
                                 (pointer, "not an ONNX model but a pointer of Git LFS")):
            self.write("model.onnx", content)
            for command in ("info", "run", "check", "opt"):
                self.fails(FAILED, f"model.onnx: {message}", command, "model.onnx")

    def test_names_are_escaped(self):
        name = "a\nb\x1b[31m\u0085"
        nodes = [onnx.node("MatMul", ["x", "x"], ["z"], name=name)]
        self.write("model.onnx", onnx.model(nodes, [X], [Z]))
        for command in ("info", "opt", "check", "memory"):
            result = self.start(command, "model.onnx")
            self.assertEqual(result.returncode, FAILED)
            self.assertIn("a\\nb\\x1b[31m\\x85 (matmul): ", result.stderr)
            self.assertEqual(result.stderr.count("\n"), 1)

    def test_names_in_pictures_are_escaped(self):
        nodes = [onnx.node("Exp", ["x"], ["y\x01\x1b"]), onnx.node("Softmax", ["y\x01\x1b"], ["z"], name="s\x02\x1b")]
        self.write("model.onnx", onnx.model(nodes, [X], [Z]))
        self.kiln("memory", "model.onnx", "--pipeline", "none", "--svg", "plan.svg")
        picture = xml.dom.minidom.parse(str(self.dir / "plan.svg"))
        self.assertIn("\\x1b", picture.toxml())


class Fused(CliTest):
    """Attention of com.microsoft: whatever is added to the scores, a pass makes one operator of it for all shapes."""

    def attention(self, inputs, *attributes):
        """A model of a state x, a mask m, a past p and a bias b, with weights of small whole numbers."""
        weights = onnx.float_tensor("w", [8, 24], [((i * 7) % 5 - 2) / 8 for i in range(8 * 24)])
        kinds = {"x": (onnx.FLOAT, ["B", "S", 8]), "m": (onnx.INT32, ["B", "S"]), "p": (onnx.FLOAT, [2, "B", 2, "P", 4]),
                 "b": (onnx.FLOAT, [1, 2, "S", "S"])}
        node = onnx.node("Attention", inputs, ["z"], domain="com.microsoft",
                         attributes=[onnx.int_attribute("num_heads", 2), *attributes])
        self.used = [name for name in inputs if name in kinds]
        return self.write("model.onnx", onnx.model([node], [onnx.value(name, *kinds[name]) for name in self.used],
                                                   [onnx.value("z", onnx.FLOAT, ["B", "S", 8])], [weights], 17,
                                                   ["com.microsoft"]))

    def check(self, inputs, *attributes):
        model = self.attention(inputs, *attributes)
        self.assertEqual(self.kiln("opt", model, "--no-offload").count("= attention("), 1)
        self.kiln("compile", model, "-o", "program")
        for rows, past in (1, 1), (5, 3):
            shapes = {"x": f"2x{rows}x8", "m": f"2x{rows}", "p": f"2x2x2x{past}x4", "b": f"1x2x{rows}x{rows}"}
            options = [f"--shape={name}={shapes[name]}" for name in self.used]
            options += ["--random", "1", "--quiet", *(["--range", "m=0,2"] if "m" in self.used else [])]
            self.kiln("run", model, *options, "--pipeline", "none", "--backend", "ref", "-o", "expected")
            self.kiln("run", "program", *options, "--expect", "expected", "--rtol", "1e-5", "--atol", "1e-6")

    def test_masks_and_past(self):
        causal = onnx.int_attribute("unidirectional", 1)
        self.check(["x", "w"])
        self.check(["x", "w", "", "m"])
        self.check(["x", "w", "", "m"], causal)
        self.check(["x", "w", "", "m", "", "b"], causal)
        self.check(["x", "w", "", "", "p"], causal)


class Decoder(CliTest):
    """GroupQueryAttention as decoders use it. The mask gives the number of tokens. One program serves the
    prompt, steps with a cache that grows, and a cache that is a longer buffer."""

    def model(self, *attributes):
        numbers = {"axis": [1], "which": 1, "one": [1]}
        weights = [onnx.tensor(name, onnx.INT64, [1] if isinstance(value, list) else [], struct.pack("<q", value[0] if isinstance(value, list)
                                                                                                    else value))
                   for name, value in numbers.items()]
        weights += [onnx.float_tensor(name, [64, 4], [function(i * j / 8) for i in range(64) for j in range(4)])
                    for name, function in (("cos", math.cos), ("sin", math.sin))]
        to_int32 = [onnx.int_attribute("to", onnx.INT32)]
        nodes = [onnx.node("ReduceSum", ["mask", "axis"], ["sum"]), onnx.node("Sub", ["sum", "one"], ["last"]),
                 onnx.node("Cast", ["last"], ["lengths"], attributes=to_int32), onnx.node("Shape", ["mask"], ["shape"]),
                 onnx.node("Gather", ["shape", "which"], ["tokens"]), onnx.node("Cast", ["tokens"], ["total"], attributes=to_int32),
                 onnx.node("GroupQueryAttention", ["x", "", "", "pk", "pv", "lengths", "total", "cos", "sin"], ["z", "k", "v"],
                           domain="com.microsoft", attributes=[onnx.int_attribute("num_heads", 4), onnx.int_attribute("kv_num_heads", 2),
                                                               onnx.int_attribute("do_rotary", 1), *attributes])]
        cache = ["B", 2, "P", 8]
        inputs = [onnx.value("x", onnx.FLOAT, ["B", "S", 64]), onnx.value("mask", onnx.INT64, ["B", "T"]),
                  onnx.value("pk", onnx.FLOAT, cache), onnx.value("pv", onnx.FLOAT, cache)]
        outputs = [onnx.value("z", onnx.FLOAT, ["B", "S", 32]), onnx.value("k", onnx.FLOAT, ["B", 2, "K", 8]),
                   onnx.value("v", onnx.FLOAT, ["B", 2, "K", 8])]
        return self.write("model.onnx", onnx.model(nodes, inputs, outputs, weights, 17, ["com.microsoft"]))

    def check(self, *attributes):
        model = self.model(*attributes)
        text = self.kiln("opt", model, "--no-offload")
        self.assertEqual((text.count("= attention("), text.count("= tensor_scatter(")), (1, 2))
        self.assertIn("k: f32[B,2,P+max(0,-P+T),8]", self.kiln("info", model))
        self.kiln("compile", model, "-o", "program")
        for rows, past, total in (5, 0, 5), (1, 5, 6), (3, 4, 7), (4, 16, 4), (1, 16, 9):
            shapes = {"x": f"2x{rows}x64", "mask": f"2x{total}", "pk": f"2x2x{past}x8", "pv": f"2x2x{past}x8"}
            options = [f"--shape={name}={shape}" for name, shape in shapes.items()]
            options += ["--random", "1", "--quiet", "--range", "mask=1,2"]
            self.kiln("run", model, *options, "--pipeline", "none", "--backend", "ref", "-o", "expected")
            subject = "program" if past else model  # no dim of a program is 0
            self.kiln("run", subject, *options, "--expect", "expected", "--rtol", "1e-4", "--atol", "1e-5")

    def test_prompts_and_steps(self):
        self.check()
        self.check(onnx.int_attribute("local_window_size", 2), onnx.int_attribute("rotary_interleaved", 1))


if __name__ == "__main__":
    main()
