# SPDX-License-Identifier: Apache-2.0
"""Limits for models of strangers: small files that ask for much end soon, with an answer or a message, and models within
the limits are not touched by them."""
import re
import resource
import struct
import subprocess
import time

from harness import ADD, FAILED, KILN, MODEL, OK, SANITIZERS, USAGE, CliTest, main
from onnx_writer import FLOAT, INT64, chunk, float_tensor, graph_attribute, int_attribute, model, node, number, tensor, value

X, Y = value("x", FLOAT, [1]), value("y", FLOAT, ["N"])
MEGABYTE = 1 << 20


def ints(name, numbers, dims=None):
    return tensor(name, INT64, [len(numbers)] if dims is None else dims, struct.pack(f"<{len(numbers)}q", *numbers))


def filled(name, number_):
    """A constant_of_shape of dims @n."""
    return node("ConstantOfShape", ["n"], [name], attributes=[chunk(1, "value") + chunk(5, float_tensor("v", [1], [number_])) + number(20, 4)])


def bomb(nodes, initializers, last="s"):
    """The nodes, and x + what they compute."""
    return model([*nodes, node("Add", ["x", last], ["y"])], [X], [Y], initializers)


def doubling(times):
    return [node("Concat", [f"c{i}", f"c{i}"], [f"c{i + 1}"], attributes=[int_attribute("axis", 0)]) for i in range(times)]


# What takes no storage: the answer, to which x is added.
EQUAL = {
    "concat": (bomb([node("Identity", ["one"], ["c0"]), *doubling(30), node("ReduceSum", ["c30"], ["s"])], [float_tensor("one", [1], [1.0])]),
               2.0**30),
    "exp": (bomb([filled("c", 0.5), node("Exp", ["c"], ["e"]), node("ReduceMean", ["e"], ["s"])], [ints("n", [64, 1024, 1024])]), 1.648721),
    "product": (bomb([filled("c", -1.0), node("ReduceProd", ["c"], ["s"])], [ints("n", [(1 << 34) + 1])]), -1.0),
    "transposed": (bomb([filled("c", 3.0), node("Transpose", ["c"], ["t"]), node("ReduceMax", ["t"], ["s"])], [ints("n", [1 << 17, 1 << 17])]), 3.0),
}
# What would take it: the limit that is named.
ASKS_FOR = {
    "matmul": ("memory", bomb([filled("c", 0.0), node("MatMul", ["c", "c"], ["p"]), node("ReduceSum", ["p"], ["s"])], [ints("n", [20000, 20000])])),
    "range": ("memory", bomb([node("Range", ["a", "b", "c"], ["r"]), node("Cast", ["r"], ["f"], attributes=[int_attribute("to", FLOAT)]),
                              node("CumSum", ["f", "a"], ["u"]), node("ReduceMax", ["u"], ["s"])],
                             [ints("a", [0], []), ints("b", [1 << 33], []), ints("c", [1], [])])),
    "pad": ("memory", bomb([node("Pad", ["w", "n"], ["c"]), node("ReduceSum", ["c"], ["s"])],
                           [ints("n", [1 << 29, 1 << 29]), float_tensor("w", [1], [2.0])])),
    "output": ("memory", model([node("ConstantOfShape", ["n"], ["y"])], [X], [Y], [ints("n", [1 << 31])])),
    "input": ("memory", model([node("Relu", ["x"], ["y"])], [value("x", FLOAT, [100000, 100000])], [Y])),
    "products": ("time", bomb([node("RandomNormal", [], ["c0"], attributes=[chunk(1, "shape") + number(8, 4000) + number(8, 4000) + number(20, 7)]),
                               *(node("MatMul", [f"c{i}", f"c{i}"], [f"c{i + 1}"]) for i in range(200)), node("ReduceSum", ["c200"], ["s"])], [])),
    "einsum": ("memory", bomb([node("RandomNormal", [], ["c"], attributes=[chunk(1, "shape") + number(8, 64) + number(8, 64) + number(20, 7)]),
                               node("Einsum", ["c"] * 3, ["e"], attributes=[chunk(1, "equation") + chunk(4, "ab,cd,ef->abcdef") + number(20, 3)]),
                               node("ReduceSum", ["e"], ["s"])], [])),
    "determinant": ("time", bomb([filled("c", 0.0), node("Det", ["c"], ["s"])], [ints("n", [8000, 8000])])),
    "nodes": ("node", bomb([node("Identity", ["x"], ["c0"]), *(node("Relu", [f"c{i}"], [f"c{i + 1}"]) for i in range(50001))], [], "c50001")),
}
PIPELINE = "version: 1\ngraph: [{pass: dce}]\n"


class Limits(CliTest):
    def limited(self, *arguments):
        """Status, output and errors of a command, which ends soon and takes little memory."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        begin = time.monotonic()
        result = subprocess.run([KILN, *map(str, arguments)], cwd=self.dir, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, check=False)
        took, peak = time.monotonic() - begin, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
        error = result.stderr.decode()
        self.assertIsNone(SANITIZERS.search(error), error)
        self.assertLess(took, 30, arguments) # far from what they ask for; a machine may be busy
        if peak > before * 1024:
            self.assertLess(peak, 1300 * MEGABYTE, arguments)
        return result.returncode, result.stdout.decode(), error

    def test_equal_elements_take_no_storage(self):
        for name, (encoded, expected) in EQUAL.items():
            path = self.write(f"{name}.onnx", encoded)
            for options in ("--untrusted",), ("--memory-limit", "1M"), ("--untrusted", "--backend", "ref"):
                status, out, error = self.limited("opt", path, *options)
                self.assertEqual(status, OK, (name, error))
                found = float(re.search(r"@\w+ = (?:splat\(|\[)([^)\]]+)", out).group(1))
                self.assertAlmostEqual(found / expected, 1, 5, (name, out))

    def test_what_asks_for_too_much_is_refused(self):
        for name, (limit, encoded) in ASKS_FOR.items():
            status, _, error = self.limited("run", self.write(f"{name}.onnx", encoded), "--random", "1", "--untrusted")
            self.assertEqual(status, FAILED, (name, error))
            self.assertRegex(error, rf"^kiln run: {re.escape(str(self.dir))}/{name}\.onnx: (.*: )?{limit} limit: expected at most \d+ \w+, found |"
                                    rf"^kiln run: .*{limit} limit: expected at most \d+ \w+( in all graphs)?, found ", name)

    def test_every_command_that_loads_a_model(self):
        path = self.write("matmul.onnx", ASKS_FOR["matmul"][1])
        nodes = self.write("nodes.onnx", ASKS_FOR["nodes"][1])
        folder = self.dir / "case"
        self.write("case/model.onnx", ASKS_FOR["nodes"][1])
        self.write("case/test_data_set_0/input_0.pb", float_tensor("x", [1], [1.0]))
        self.write("case/test_data_set_0/output_0.pb", float_tensor("y", [1], [1.0]))
        for command in ("run", nodes, "--random", "1"), ("opt", nodes), ("info", nodes), ("check", nodes), ("memory", nodes), ("compare", nodes), \
                ("compile", nodes, "-o", "out.kiln-program"), ("bisect", nodes), ("verify", folder):
            status, out, error = self.limited(*command, "--untrusted")
            self.assertNotEqual(status, OK, command)
            self.assertIn("node limit: expected at most 50000 nodes in all graphs", out + error, command)
        for command in ("run", path, "--random", "1"), ("compile", path, "-o", "out.kiln-program"):
            status, out, error = self.limited(*command, "--untrusted")
            self.assertIn("memory limit: expected at most 1073741824 bytes", error, command)
        self.assertNotIn("out.kiln-program", self.files())

    def test_limits_replace_those_of_the_preset(self):
        nodes = self.write("nodes.onnx", ASKS_FOR["nodes"][1])
        self.kiln("info", nodes, "--untrusted", "--node-limit", "60000")
        self.kiln("info", nodes)
        self.fails(FAILED, "node limit: expected at most 5 nodes in all graphs, found 6 up to", "info", nodes, "--node-limit", "5")
        self.fails(FAILED, "memory limit: expected at most 4096 bytes, found ", "run", MODEL, "--random", "1", "--memory-limit", "4K")
        self.kiln("run", MODEL, "--random", "1", "--memory-limit", "1g")

    def test_nodes_of_branches_count(self):
        branch = [node("Relu", ["x" if i == 0 else f"b{i}"], [f"b{i + 1}"]) for i in range(40)]
        condition = tensor("c", 9, [], b"\1")
        both = [graph_attribute(name, branch, [value("b40", FLOAT, [1])]) for name in ("then_branch", "else_branch")]
        path = self.write("if.onnx", model([node("If", ["c"], ["y"], attributes=both)], [X], [Y], [condition]))
        self.kiln("info", path, "--node-limit", "100")
        self.fails(FAILED, "node limit: expected at most 60 nodes in all graphs, found 61 up to", "info", path, "--node-limit", "60")

    def test_a_model_within_them_is_the_same(self):
        for command in ("run", MODEL, "--random", "1"), ("opt", MODEL), ("compare", MODEL):
            self.assertEqual(self.kiln(*command, "--untrusted"), self.kiln(*command), command)

    def test_time(self):
        status, _, error = self.limited("run", self.write("matmul.onnx", ASKS_FOR["matmul"][1]), "--random", "1", "--time-limit", "0.5",
                                        "--memory-limit", "100G")
        self.assertEqual(status, FAILED)
        self.assertRegex(error, r"time limit: expected at most 0\.5 seconds, found an estimate of [\d.e+]+ for a run, of which p takes ")

    # --- what is refused ---

    def test_texts(self):
        text, other = self.write("add.kiln", ADD), self.write("add.txt", ADD)
        for path in text, other:
            self.fails(FAILED, "expected an ONNX model, found a text, which is not trusted", "info", path, "--untrusted")
        self.kiln("info", text, "--node-limit", "9")

    def test_a_text_from_a_pipe(self):
        result = subprocess.run([KILN, "info", "-", "--untrusted"], input=ADD.encode(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        self.assertEqual(result.returncode, FAILED)
        self.assertIn(b"expected an ONNX model, found a text", result.stderr)
        self.assertEqual(subprocess.run([KILN, "info", "-", "--untrusted"], input=MODEL.read_bytes(), stdout=subprocess.DEVNULL, check=False).returncode, OK)

    def test_compiled_programs(self):
        self.kiln("compile", MODEL, "-o", "digits.kiln-program")
        self.fails(FAILED, "--untrusted: expected an ONNX model, found a compiled program", "run", "digits.kiln-program", "--random", "1", "--untrusted")
        self.kiln("run", "digits.kiln-program", "--random", "1", "--memory-limit", "1G")
        self.fails(FAILED, "memory limit: expected at most 1024 bytes", "run", "digits.kiln-program", "--random", "1", "--memory-limit", "1K")

    def test_external_data(self):
        entries = chunk(13, chunk(1, "location") + chunk(2, "w.bin"))
        weight = number(1, 1) + number(2, FLOAT) + chunk(8, "w") + entries + number(14, 1)
        self.write("w.bin", struct.pack("<f", 2.0))
        path = self.write("external.onnx", model([node("Add", ["x", "w"], ["y"])], [X], [Y], [weight]))
        self.kiln("info", path)
        self.fails(FAILED, "external data 'w.bin': expected a model that names no other file", "info", path, "--untrusted")

    def test_plugins(self):
        self.fails(USAGE, "--untrusted: expected no plug-in, found --load-plugin missing.so", "run", MODEL, "--random", "1", "--untrusted",
                   "--load-pass-plugin", "missing.so")

    def test_pipelines_beside_the_model(self):
        self.write("model/digits.onnx", MODEL.read_bytes())
        beside, below = self.write("model/p.yaml", PIPELINE), self.write("model/deep/p.yaml", PIPELINE)
        elsewhere = self.write("models/p.yaml", PIPELINE)
        link = self.dir / "link.yaml"
        link.symlink_to(beside)
        for pipeline in beside, below, link, "model/p.yaml", "model/../model/p.yaml":
            self.fails(USAGE, "--untrusted: expected a pipeline that did not come with the model, found ", "opt", "model/digits.onnx", "--untrusted",
                       "--pipeline", pipeline)
            self.kiln("opt", "model/digits.onnx", "--pipeline", pipeline)
        for pipeline in elsewhere, "own", "none":
            self.kiln("opt", "model/digits.onnx", "--untrusted", "--pipeline", pipeline)
        self.fails(USAGE, "--untrusted: expected a pipeline that did not come with", "verify", "model", "--untrusted", "--pipeline", below)

    # --- values ---

    def test_values(self):
        for wrong in "0", "-1", "1.5", "many", "5X", "1GB", "9999999999G", "":
            self.fails(USAGE, "--memory-limit: expected a number of bytes above 0 such as 512M or 2G, found ", "info", MODEL, f"--memory-limit={wrong}")
        for wrong in "0", "-1", "soon", "nan", "inf", "":
            self.fails(USAGE, "--time-limit: expected a number of seconds above 0, found ", "info", MODEL, f"--time-limit={wrong}")
        for wrong in "0", "-1":
            self.fails(USAGE, f"--node-limit: expected 1 or more, found {wrong}", "info", MODEL, f"--node-limit={wrong}")
        for right in "100K", "100m", "1G", "1T", "1000000000":
            self.kiln("info", MODEL, "--memory-limit", right, "--time-limit", "7.5", "--node-limit", "1000")


if __name__ == "__main__":
    main()
