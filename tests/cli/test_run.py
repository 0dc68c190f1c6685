# SPDX-License-Identifier: Apache-2.0
"""kiln run: results, where they go, and everything that can be wrong with a call."""
import json
import os
import pty
import struct
import subprocess
import unittest

import onnx_writer as onnx
from harness import (ADD, DIGITS, FAILED, KILN, MISMATCH, MODEL, OK, OPEN, RELU, SHARED, UNSUPPORTED, USAGE, CliTest, floats,
                     main, npy)


def relu_model(**arguments):
    return onnx.model([onnx.node("Relu", ["x"], ["y"], "relu")], [onnx.value("x", onnx.FLOAT, [2, 3])],
                      [onnx.value("y", onnx.FLOAT, [2, 3])], **arguments)


FOLDED = """graph @compiletime_fold(%w1: f32[2,3] constant=compile) {
  %f1 = transpose(%w1) {perm=[1,0]} : f32[3,2]
  return %f1
}
graph @runtime_fold(%w2: f32[4,2] constant=run) {
  %f2 = transpose(%w2) {perm=[1,0]} : f32[2,4]
  return %f2
}
graph @g(%x: f32[1,3], %f1: f32[3,2], %f2: f32[2,4]) {
  %a = matmul(%x, %f1) : f32[1,2]
  %y = matmul(%a, %f2) : f32[1,4]
  return %y
}
fold(%x: f32[1,3], %w1: f32[2,3] constant=compile, %w2: f32[4,2] constant=run) {
  %f1 = compile @compiletime_fold(%w1)
  %f2 = run @runtime_fold(%w2)
}
"""
UNFOLDED = """graph @g(%x: f32[1,3], %w1: f32[2,3], %w2: f32[4,2]) {
  %f1 = transpose(%w1) {perm=[1,0]} : f32[3,2]
  %f2 = transpose(%w2) {perm=[1,0]} : f32[2,4]
  %a = matmul(%x, %f1) : f32[1,2]
  %y = matmul(%a, %f2) : f32[1,4]
  return %y
}
"""


# What reads indices: the graph's inputs, the node, its result.
INDEXED = {
    "gather": ("%x: f32[5,4], %i: i64[64]", "gather(%x, %i) {axis=1}", "f32[5,64]"),
    "gather_elements": ("%x: f32[5,4], %i: i64[5,64]", "gather_elements(%x, %i) {axis=1}", "f32[5,64]"),
    "scatter_elements": ("%x: f32[5,4], %i: i64[1,4], %u: f32[1,4]", "scatter_elements(%x, %i, %u)", "f32[5,4]"),
    "gather_nd": ("%x: f32[5,3], %i: i64[64,2]", "gather_nd(%x, %i)", "f32[64]"),
    "scatter_nd": ("%x: f32[5,3], %i: i64[64,2], %u: f32[64]", "scatter_nd(%x, %i, %u)", "f32[5,3]"),
}


class RandomIndices(CliTest):
    def test_lie_within_what_they_index(self):
        """At both levels, for every operator that fails where one does not."""
        for name, (inputs, node, result) in INDEXED.items():
            self.write("graph.kiln", f"graph @f({inputs}) {{\n  %y = {node} : {result}\n  return %y\n}}\n")
            self.kiln("opt", "graph.kiln", "--pipeline", "none", "--stage", "ir", "-o", "ir.kiln")
            for model in ("graph.kiln", "ir.kiln"):
                for seed in "123":
                    with self.subTest(name=name, model=model, seed=seed):
                        self.kiln("run", model, "--random", seed)


class Constants(CliTest):
    def run_folded(self, *options):
        document = self.json("run", "folded.kiln", "--random", "1", "--json", *options)
        self.assertEqual(document["outputs"], self.want)
        return document["fold_runs"]

    def setUp(self):
        super().setUp()
        self.write("folded.kiln", FOLDED)
        self.write("plain.kiln", UNFOLDED)
        self.want = self.json("run", "plain.kiln", "--random", "1", "--json")["outputs"]

    def test_folds_once(self):
        self.assertEqual(self.run_folded(), 1)
        self.assertEqual(self.run_folded("--runs", "1000", "--threads", "8"), 1)
        self.fails(USAGE, "--runs: expected 1 or more, found 0", "run", "folded.kiln", "--random", "1", "--runs", "0")

    def test_second_level(self):
        self.write("folded.kiln", self.kiln("opt", "folded.kiln", "--stage", "ir"))
        self.assertEqual(self.run_folded(), 1)

    def test_values_of_both_levels_of_calls(self):
        text = self.kiln("compare", "folded.kiln", "--pipeline", "none", "--pipeline", "default", "--random", "1")
        self.assertIn(" 0 differ ", text)
        self.kiln("run", "folded.kiln", "--random", "1", "--dump-values", "values")
        self.assertIn("values/0000-a.npy", self.files())

    def test_marked_by_options(self):
        for mark in ("compile:w1", "run:w2"):
            document = self.json("run", "plain.kiln", "--random", "1", "--const", mark, "--json")
            self.assertEqual(document["outputs"], self.want)

    def test_every_way_gives_the_same_bits(self):
        """Without offload, where a convolution of literal weights may not be another algorithm."""
        count = 64 * 64 * 9
        weights = floats(*((i * 7919 % 2003 / 2003 - 0.5) / 8 for i in range(count)))
        self.write("w.bin", weights)
        self.write("w.npy", npy("<f4", (64, 64, 3, 3), weights))
        conv = "  %y = conv(%x, %w) {pads=[1,1,1,1]} : f32[1,64,28,28]\n  return %y\n}\n"
        self.write("literal.kiln", "graph @g(%x: f32[1,64,28,28]) {\n  %w = const @w : f32[64,64,3,3]\n" + conv +
                   f'constants {{ @w = file("w.bin", 0, {4 * count}) : f32[64,64,3,3] }}\n')
        self.write("given.kiln", "graph @g(%x: f32[1,64,28,28], %w: f32[64,64,3,3]) {\n" + conv)
        for backend in ("cpu", "ref"):
            common = ("--random", "1", "--backend", backend, "--no-offload", "-o", "out")
            self.kiln("run", "literal.kiln", *common)
            want = (self.dir / "out/output_0.pb").read_bytes()
            for given in ((), ("--const", "compile:w"), ("--const", "run:w")):
                self.kiln("run", "given.kiln", "-i", "w=w.npy", *given, *common)
                self.assertEqual((self.dir / "out/output_0.pb").read_bytes(), want, (backend, given))

    def test_output_that_is_folded_or_an_input_keeps_its_name(self):
        self.write("same.kiln", "graph @g(%x: f32[2], %w: f32[2]) {\n  %y = neg(%w) : f32[2]\n  return %x, %y\n}\n")
        for given in ((), ("--const", "run:w"), ("--const", "compile:w")):
            document = self.json("run", "same.kiln", "--random", "1", "--json", *given)
            self.assertEqual([output["name"] for output in document["outputs"]], ["x", "y"])

    def test_cache_dir(self):
        self.assertEqual(self.run_folded("--cache-dir", "cache"), 1)
        names = self.files()
        self.assertEqual(len([name for name in names if name.endswith(".kiln-fold")]), 2)
        self.assertEqual(self.run_folded("--cache-dir", "cache"), 0)
        self.assertEqual(self.files(), names)
        self.write("file", b"")
        self.fails(FAILED, "file/below: cannot be made", "run", "folded.kiln", "--random", "1", "--cache-dir", "file/below")


class OtherTools(CliTest):
    """What users of other runtimes' tools come with: raw bytes, ranges, NumPy arrays as expected outputs."""

    def setUp(self):
        super().setUp()
        self.write("relu.kiln", RELU)
        self.write("open.kiln", OPEN)

    def test_raw_bytes(self):
        for name in ("x.raw", "x.bin"):
            self.write(name, floats(-1, 2, -3, 4, -5, 6.5))
            output = self.json("run", "relu.kiln", "-i", f"x={name}", "--json")["outputs"][0]
            self.assertEqual((output["min"], output["max"], output["mean"]), (0, 6.5, 12.5 / 6))
        self.write("short.raw", floats(1, 2))
        self.fails(FAILED, "short.raw: expected 24 bytes of f32[2,3], found 8", "run", "relu.kiln", "-i", "x=short.raw")
        self.fails(FAILED, "none.raw: cannot be read", "run", "relu.kiln", "-i", "x=none.raw")
        self.fails(USAGE, ("x.raw: a file without a header", "give --shape"), "run", "open.kiln", "-i", "x=x.raw", "-i", "y=x.raw")
        self.kiln("run", "open.kiln", "-i", "x=x.raw", "-i", "y=x.raw", "--shape", "x=2x3", "--shape", "y=2x3")

    def test_concat_converts_between_storage_types(self):
        """Equal parameters, other element type: what is negative saturates at 0 of u8."""
        self.write("concat.kiln", "graph @f(%x: i8[4] q(0.25,0)) {\n  %c = concat(%x, %x) {axis=0} : u8[8] q(0.25,0)\n"
                   "  return %c\n}\n")
        self.write("x.raw", struct.pack("4b", -1, 5, -128, 127))
        for options in (("--pipeline", "none", "--backend", "ref"), ("--no-offload",), ()):
            self.kiln("run", "concat.kiln", "-i", "x=x.raw", "--save-inputs", "in", "--npy", "-o", "out", *options)
            with open(self.dir / "out/output_0.npy", "rb") as file:
                self.assertEqual(file.read()[-8:], bytes([0, 5, 0, 127] * 2), options)

    def test_ranges(self):
        self.write("two.kiln", "graph @g(%x: f32[1000], %i: i64[1000]) {\n  %y = relu(%x)\n  %j = neg(%i)\n  return %y, %j\n}\n")

        def extremes(*ranges):
            options = [option for text in ranges for option in ("--range", text)]
            outputs = self.json("run", "two.kiln", "--random", "1", "--json", *options)["outputs"]
            return [(output["min"], output["max"]) for output in outputs]
        plain = extremes()
        y, j = extremes("2,3")
        self.assertTrue(2 <= y[0] < 2.1 and 2.9 < y[1] < 3 and j == plain[1], (y, j))
        y, j = extremes("i=-2.5,1", "2,3", "x=7,8", "2,3")
        self.assertTrue(7 <= y[0] < 7.1 and 7.9 < y[1] < 8, y)
        self.assertEqual(j, (0, 2))
        self.assertEqual(extremes("x=5,6"), extremes("x=5,6"))
        for wrong in ("", "1", "1,", "2,1", "1,1", "0,inf", "nan,1", "a,b", "x=", "1,2,3"):
            self.fails(USAGE, f"--range: expected LOW,HIGH or NAME=LOW,HIGH with LOW below HIGH, found {wrong}",
                       "run", "two.kiln", "--random", "1", "--range", wrong)
        self.fails(USAGE, "--range q=0,1: expected NAME=LOW,HIGH with one of the inputs x, i",
                   "run", "two.kiln", "--random", "1", "--range", "q=0,1")
        self.fails(USAGE, "--range: expected one that has integers, found i=0.2,0.8",
                   "run", "two.kiln", "--random", "1", "--range", "i=0.2,0.8")
        self.fails(USAGE, "--range: expected --random SEED beside it", "run", "two.kiln", "--range", "0,1")

    def test_numpy_out_and_expected(self):
        self.kiln("run", "relu.kiln", "--random", "1", "-o", "a", "--save-inputs", "a", "--npy")
        self.assertEqual([name for name in self.files() if name.startswith("a/")], ["a/input_0.npy", "a/output_0.npy"])
        self.kiln("run", "relu.kiln", "-i", "x=a/input_0.npy", "--expect", "a")
        result = self.start("run", "relu.kiln", "--random", "2", "--expect", "a")
        self.assertEqual(result.returncode, MISMATCH)
        self.assertIn("output y against a/output_0.npy: ", result.stderr)
        self.assertIn("b/output_0.pb: cannot be read", self.start("run", "relu.kiln", "--random", "2", "--expect", "b").stderr)

    def test_profile(self):
        text = self.kiln_err("run", MODEL, "--random", "1", "--runs", "3", "--profile", "--no-offload")
        lines = text.splitlines()
        self.assertEqual(lines[0].split(), ["ms", "%", "GFLOP/s", "GB/s", "instruction", "kernel", "node"])
        end = lines.index("")
        entries, kinds = [line.split() for line in lines[1:end]], [line.split() for line in lines[end + 1:-1]]
        times = [float(entry[0]) for entry in entries]
        self.assertEqual(times, sorted(times, reverse=True))
        self.assertIn("conv3", [entry[-1] for entry in entries])
        self.assertEqual(sum(int(kind[-1]) for kind in kinds), len(entries))
        self.assertRegex(lines[-1], rf"^ +[\d.]+ ms in {len(entries)} instructions, of [\d.]+ ms of a run$")
        self.assertNotIn("dims", self.json("run", MODEL, "--random", "1", "--profile", "--json"))
        quiet = self.kiln_err("run", MODEL, "--random", "1", "--profile", "--no-offload", "--quiet").splitlines()
        self.assertEqual(len(quiet), len(kinds) + 2)
        document = self.json("run", MODEL, "--random", "1", "--profile", "--no-offload", "--json")
        self.assertEqual(len(document["profile"]), len(entries))
        self.keys(document["profile"][0], "instruction", "node", "kernel", "ms", "flops", "bytes", "live_bytes")
        self.assertNotIn("profile", self.json("run", MODEL, "--random", "1", "--json"))


class Models(CliTest):
    def test_missing(self):
        for name in ("missing.onnx", "missing.kiln", "folder/missing.onnx"):
            self.fails(FAILED, f"{name}: cannot be read: No such file or directory", "run", name)

    def test_folder(self):
        self.fails(FAILED, f"{self.dir}: cannot be read: Is a directory", "run", self.dir)

    def test_empty(self):
        self.write("empty.onnx", b"")
        self.fails(FAILED, "empty.onnx: not an ONNX model: the file has no graph", "run", "empty.onnx")
        self.write("empty.kiln", b"")
        self.fails(FAILED, "empty.kiln: expected a graph or func block, found none", "run", "empty.kiln")

    def test_truncated(self):
        whole = MODEL.read_bytes()
        for size in (1, 10, 100, 1000, 50000, len(whole) - 1):
            self.write("cut.onnx", whole[:size])
            self.fails(FAILED, "cut.onnx: ", "run", "cut.onnx", "--random", "1")
        self.write("cut.onnx", whole[:1000])
        self.fails(FAILED, "cut.onnx: byte 28: field 7 claims 229230 bytes, only 968 are left", "run", "cut.onnx")

    def test_what_training_mode_lacks(self):
        """As docs/pipelines.md says."""
        self.write("state.kiln", "graph @f(%x: f32[4,3], %w: f32[3,2] variable) {\n  %y = matmul(%x, %w)\n  return %y\n}\n")
        self.fails(UNSUPPORTED, "argument w: state kept between runs is not supported",
                   "run", "state.kiln", "--mode", "train", "--random", "1")
        self.write("drop.kiln", "graph @f(%x: f32[64]) {\n  %r = const @r : f32[]\n  %t = const @t : bool[]\n"
                   "  %a, %m = dropout(%x, %r, %t) : f32[64], bool[64]\n  return %a\n}\n"
                   "constants {\n  @r = [0.5] : f32[]\n  @t = [true] : bool[]\n}\n")
        self.fails(UNSUPPORTED, "a (dropout): expected inference, found training_mode with ratio 0.5",
                   "run", "drop.kiln", "--mode", "train", "--random", "1")

    def test_garbage(self):
        self.write("noise.onnx", b"hello, this is no model")
        self.fails(FAILED, "noise.onnx: not an ONNX model: byte ", "run", "noise.onnx")
        self.write("noise.kiln", "hello, this is no model")
        self.fails(FAILED, "noise.kiln:1:1: ", "run", "noise.kiln")
        self.write("open.kiln", "graph @x(%a: f32[2]) {\n")
        self.fails(FAILED, "open.kiln:2:1: expected the block of line 1 to be closed, found the end", "run", "open.kiln")
        self.write("zeros.onnx", bytes(4096))
        self.fails(FAILED, "zeros.onnx: not an ONNX model: byte ", "run", "zeros.onnx")

    def test_unknown_operator_is_unsupported(self):
        self.write("odd.onnx", onnx.model([onnx.node("Frobnicate", ["x"], ["y"], "the_node")],
                                          [onnx.value("x", onnx.FLOAT, [2, 3])], [onnx.value("y", onnx.FLOAT, [2, 3])]))
        self.fails(UNSUPPORTED, ("Frobnicate", "the_node"), "run", "odd.onnx", "--random", "1")

    def test_model_that_breaks_a_rule(self):
        self.write("bad.onnx", onnx.model([onnx.node("Add", ["x"], ["y"], "the_node")], [onnx.value("x", onnx.FLOAT, [2])],
                                          [onnx.value("y", onnx.FLOAT, [2])]))
        self.fails(FAILED, ("bad.onnx: ", "the_node"), "run", "bad.onnx", "--random", "1")
        self.write("loose.onnx", onnx.model([onnx.node("Relu", ["nowhere"], ["y"], "the_node")],
                                            [onnx.value("x", onnx.FLOAT, [2])], [onnx.value("y", onnx.FLOAT, [2])]))
        self.fails(FAILED, ("loose.onnx: ", "nowhere"), "run", "loose.onnx", "--random", "1")

    def test_model_of_a_pipe(self):
        for content in (ADD.encode(), relu_model()):
            read, write = os.pipe()
            os.write(write, content)
            os.close(write)
            result = self.start("run", f"/dev/fd/{read}", "--random", "1", pass_fds=[read])
            os.close(read)
            self.assertEqual(result.returncode, OK, result.stderr)

    def test_pipelines_that_are_not_there(self):
        self.write("add.kiln", ADD)
        self.fails(FAILED, "nosuch: expected a file or one of ", "run", "add.kiln", "--pipeline", "nosuch")
        self.fails(FAILED, "no.yaml: cannot be read: No such file or directory", "run", "add.kiln", "--pipeline", "no.yaml")
        self.fails(USAGE, "--passes:1:5: there is no pass 'nosuch'", "run", "add.kiln", "--passes", "dce,nosuch")


class Inputs(CliTest):
    def setUp(self):
        super().setUp()
        self.model = self.write("add.kiln", ADD)

    def test_missing_input(self):
        self.write("x.npy", npy("<f4", (2, 3), floats(*range(6))))
        self.fails(USAGE, "input x: expected -i x=FILE or --random SEED", "run", self.model)
        self.fails(USAGE, "input y: expected -i y=FILE or --random SEED", "run", self.model, "-i", "x=x.npy")

    def test_wrong_name(self):
        for text in ("q=x.npy", "x", "=x.npy", "X=x.npy"):
            self.fails(USAGE, f"-i {text}: expected NAME=FILE with one of the inputs x, y", "run", self.model, "-i", text)

    def test_an_index_that_is_known_is_out_of_range(self):
        """Found while compiling, unless nothing is read with it; data decides when the program runs."""
        gather = """graph @f(%x: f32[N,2]) {{
  %i = const @i : i64[2]
  %y = gather(%x, %i) : f32[2,2]
  return %y
}}
constants {{ @i = [{}] : i64[2] }}
"""
        for indices, found in (("1, 3", 3), ("-4, 0", -4)):
            path = self.write("gather.kiln", gather.format(indices))
            for command in (("opt",), ("compile", "-o", "program"), ("run", "--random", "1")):
                self.fails(FAILED, f"gather.kiln: y (gather): expected indices in [-3, 3), found {found}", *command, path,
                           "--shape", "x=3x2")
        path = self.write("gather.kiln", gather.format("-3, 2"))
        self.kiln("run", path, "--random", "1", "--shape", "x=3x2")
        path = self.write("empty.kiln", gather.format("7, 7").replace("[N,2]", "[N,0]").replace("[2,2]", "[2,0]"))
        self.kiln("run", path, "--random", "1", "--shape", "x=3x0")

    def test_same_input_twice(self):
        self.fails(USAGE, "-i x: expected one file, found 2", "run", self.model, "-i", "x=a.npy", "-i", "x=b.npy")

    def test_missing_file(self):
        for ending in ("pb", "npy", "png", "pgm", "ppm"):
            self.fails(FAILED, f"no.{ending}: cannot be read: No such file or directory", "run", self.model, "--random", "1",
                       "-i", f"x=no.{ending}")

    def test_wrong_ending(self):
        self.fails(USAGE, "x.csv: expected a .pb, .npy, .raw, .bin, .png, .pgm or .ppm file", "run", self.model, "-i", "x=x.csv")

    def test_wrong_shape(self):
        self.write("x.npy", npy("<f4", (3, 2), floats(*range(6))))
        self.fails(FAILED, "x.npy: input x: expected f32[2,3], found f32[3,2]", "run", self.model, "-i", "x=x.npy")
        self.write("x.npy", npy("<f4", (6,), floats(*range(6))))
        self.fails(FAILED, "x.npy: input x: expected f32[2,3], found f32[6]", "run", self.model, "-i", "x=x.npy")
        self.write("x.pb", onnx.float_tensor("x", (2, 3, 1), range(6)))
        self.fails(FAILED, "x.pb: input x: expected f32[2,3], found f32[2,3,1]", "run", self.model, "-i", "x=x.pb")

    def test_wrong_dtype(self):
        self.write("x.npy", npy("<f8", (2, 3), bytes(48)))
        self.fails(FAILED, "x.npy: input x: expected f32, found f64[2,3]", "run", self.model, "-i", "x=x.npy")
        self.write("x.pb", onnx.tensor("x", onnx.INT64, (2, 3), bytes(48)))
        self.fails(FAILED, "x.pb: input x: expected f32, found i64[2,3]", "run", self.model, "-i", "x=x.pb")

    def test_files_reach_the_model(self):
        self.write("x.npy", npy("<f4", (2, 3), floats(1, 2, 3, 4, 5, 6)))
        self.write("y.pb", onnx.float_tensor("whatever", (2, 3), [10, 20, 30, 40, 50, 60]))
        self.kiln("run", self.model, "-i", "x=x.npy", "-i", "y=y.pb", "-o", "out")
        self.assertIn(floats(11, 22, 33, 44, 55, 66), (self.dir / "out/output_0.pb").read_bytes())

    def test_random_fills_what_is_not_given(self):
        self.write("x.npy", npy("<f4", (2, 3), floats(*[1000] * 6)))
        self.assertRegex(self.kiln("run", self.model, "-i", "x=x.npy", "--random", "3"), r"z: f32\[2,3\] min (99\d|100\d)")

    def test_seeds(self):
        outputs = {seed: self.kiln("run", self.model, "--random", seed) for seed in ("0", "1", "18446744073709551615")}
        self.assertEqual(len(set(outputs.values())), 3)
        self.assertEqual(self.kiln("run", self.model, "--random", "1"), outputs["1"])
        for seed in ("x", "-1", "1.5", "18446744073709551616", ""):
            self.fails(USAGE, f"--random: expected a seed of 0 to 2^64-1, found {seed}", "run", self.model, "--random", seed)

    def test_open_shapes(self):
        model = self.write("open.kiln", OPEN)
        self.fails(USAGE, "input x: its shape is open: give --shape x=", "run", model, "--random", "1")
        self.assertIn("z: f32[4,3] ", self.kiln("run", model, "--random", "1", "--shape", "x=4x3", "--shape", "y=4x3"))
        self.fails(FAILED, ("input x: expected f32[N,3], found f32[4,4]", "open.kiln"), "run", model, "--random", "1",
                   "--shape", "x=4x4", "--shape", "y=4x3")
        self.fails(FAILED, "dim N: expected one number, found 4 and 5", "run", model, "--random", "1", "--shape", "x=4x3",
                   "--shape", "y=5x3")
        for rows in (1, 5):
            self.write("x.npy", npy("<f4", (rows, 3), floats(*range(3 * rows))))
            text = self.kiln("run", model, "-i", "x=x.npy", "-i", "y=x.npy")
            self.assertIn(f"z: f32[{rows},3] min 0 max {2 * (3 * rows - 1)}", text)
        self.write("flat.npy", npy("<f4", (3,), floats(1, 2, 3)))
        self.fails(FAILED, "flat.npy: input x: expected f32[N,3], found f32[3]", "run", model, "-i", "x=flat.npy", "-i",
                   "y=flat.npy")

    def test_ranges_of_dims(self):
        model = self.write("open.kiln", OPEN)
        for rows in (1, 4, 5, 8, 9):
            self.write(f"x{rows}.npy", npy("<f4", (rows, 3), floats(*range(3 * rows))))
        inputs = {rows: ("-i", f"x=x{rows}.npy", "-i", f"y=x{rows}.npy") for rows in (1, 4, 5, 8, 9)}
        for shape in ("x=1..8%4x3", "x=B:4..8%4x3", "N=1..8%4"):
            for rows in (4, 8):
                self.assertIn(f"z: f32[{rows},3] ", self.kiln("run", model, *inputs[rows], "--shape", shape))
            name = "B" if "B" in shape else "N"
            for rows in (1, 5, 9):
                self.fails(FAILED, f"input x: dim {name}: expected a multiple of 4 in 4..8, found {rows}", "run", model, *inputs[rows],
                           "--shape", shape)
        self.fails(FAILED, "input x: dim N: expected 1..4, found 5", "run", model, "--random", "1", "--shape", "x=5x3", "--shape", "y=5x3",
                   "--shape", "N=1..4", "--shape-hint", "N=2")
        # A text keeps them.
        self.kiln("opt", model, "--shape", "N=1..8%4", "--shape-hint", "N=8", "-o", "ranged.kiln")
        self.assertIn("\ndims {\n  N: least=4, most=8, multiple=4, hint=8\n}\n", (self.dir / "ranged.kiln").read_text(encoding="utf-8"))
        self.kiln("run", "ranged.kiln", *inputs[8])
        self.fails(FAILED, "input x: dim N: expected a multiple of 4 in 4..8, found 5", "run", "ranged.kiln", *inputs[5])
        # Hints change no result and allow all numbers.
        expected = self.kiln("run", model, *inputs[9])
        self.assertEqual(self.kiln("run", model, *inputs[9], "--shape-hint", "N=3"), expected)

    def test_profiles_name_the_numbers_of_open_dims(self):
        model = self.write("pair.kiln", "graph @f(%x: f32[N,M], %y: f32[M,3]) {\n  %z = matmul(%x, %y) : f32[N,3]\n  return %z\n}\n")
        for n in 2, 40:
            run = "run", model, "--random", "1", "--shape", f"x={n}x5", "--shape", "M=5"
            self.assertRegex(self.kiln_err(*run, "--profile"), rf" ms in 1 instructions, of [\d.]+ ms of a run with N={n}, M=5\n$")
            document = self.json(*run, "--profile", "--json")
            self.assertEqual(document["dims"], {"N": n, "M": 5})
            self.assertEqual([entry["flops"] for entry in document["profile"]], [2 * n * 5 * 3])
            self.kiln(*run, "--trace", "trace.json")
            events = json.loads((self.dir / "trace.json").read_text())["traceEvents"]
            around = next(event for event in events if event.get("cat") == "dims")
            self.assertEqual((around["name"], around["args"]), (f"N={n}, M=5", {"N": n, "M": 5}))
            inside = next(event for event in events if event.get("args", {}).get("kernel"))
            self.assertEqual(inside["args"]["flops"], 2 * n * 5 * 3)
            self.assertGreaterEqual(inside["ts"] + 1e-3, around["ts"])

    def test_some_dims_of_an_input(self):
        model = self.write("pair.kiln", "graph @f(%x: f32[N,M], %y: f32[M,3]) {\n  %z = matmul(%x, %y) : f32[N,3]\n  return %z\n}\n")
        self.write("x.npy", npy("<f4", (2, 4), floats(*range(8))))
        self.assertIn("z: f32[2,3] ", self.kiln("run", model, "-i", "x=x.npy", "--random", "1", "--shape", "x=?x4"))
        self.fails(FAILED, "x.npy: input x: expected f32[N,5], found f32[2,4]", "run", model, "-i", "x=x.npy", "--random", "1",
                   "--shape", "x=?x5")
        self.assertIn("z: f32[7,3] ", self.kiln("run", model, "--random", "1", "--shape", "x=Sx5", "--shape", "S=7"))
        self.assertIn("z: f32[7,3] ", self.kiln("run", model, "--random", "1", "--shape", "N=7", "--shape", "M=5"))
        # Dims of one name are equal.
        self.write("y.npy", npy("<f4", (4, 3), floats(*range(12))))
        self.fails(FAILED, "input x: dim S: expected one number, found 2 and 4", "run", model, "-i", "x=x.npy", "-i", "y=y.npy", "--shape",
                   "x=SxS", "--shape", "y=Sx3")

    def test_statements_that_contradict(self):
        model = self.write("pair.kiln", "graph @f(%x: f32[N,8], %y: f32[N,8]) {\n  %z = add(%x, %y) : f32[N,8]\n  return %z\n}\n")
        self.fails(FAILED, "input y: dim N: expected 1..4, found 5", "run", model, "--random", "1", "--shape", "x=Nx8", "--shape", "N=1..4",
                   "--shape", "y=5x8")
        for status, message, shapes in (
                (FAILED, "--shape: input x: dim 1: expected 8, as the model says, found a name or a range", ("x=4x1..8",)),
                (FAILED, "input x: expected f32[N,8], found f32[1..4,8,8]", ("x=1..4x8x8",)),
                (FAILED, "input x: expected f32[N,8], found f32[4]", ("x=4",)),
                (FAILED, "input x: expected f32[N,8], found f32[4,7]", ("x=4x7",)),
                (USAGE, "--shape: dim N: expected one name, found A and B", ("x=Ax8", "y=Bx8")),
                (USAGE, "--shape: dim N: expected one range, found 1..4 and 5..8", ("x=1..4x8", "y=5..8x8")),
                (USAGE, "--shape: dim N: expected one range, found a multiple of 3 in 3..4 and a multiple of 4 in 1..11",
                 ("x=3..4%3x8", "y=1..11%4x8")),
                (USAGE, "--shape: dim N: expected bounds of 0 to 2147483647 in order, found 9..8", ("N=9..8",)),
                (USAGE, "--shape: dim N: expected a multiple of 16 in 9..15, which no number is", ("N=9..15%16",)),
                (USAGE, "--shape: expected one of the inputs x, y or of the open dims N, found q", ("q=1..4",)),
                (USAGE, "--shape: expected a number of 1 or more or a range for the dim N, found 4x8", ("N=4x8",)),
                (USAGE, "--shape: expected a number of 1 or more or a range for the dim N, found 0", ("N=0",))):
            options = [word for shape in shapes for word in ("--shape", shape)]
            for command in ("run", "memory", "opt", "info"):
                self.fails(status, message, command, model, *options)
        for message, hints in (("--shape-hint: expected an open dim (N), found Q", ("Q=3",)),
                               ("--shape-hint: dim N: expected one hint, found 3 and 4", ("N=3", "N=4")),
                               ("--shape-hint: expected DIM=N with N of 1 or more, found N=0", ("N=0",)),
                               ("--shape-hint: expected DIM=N with N of 1 or more, found N", ("N",))):
            self.fails(USAGE, message, "info", model, *[word for hint in hints for word in ("--shape-hint", hint)])
        self.fails(USAGE, "--shape-hint: dim N: expected a hint in 1..8, found 9", "info", model, "--shape", "N=1..8", "--shape-hint", "N=9")
        text = self.write("ir.kiln", self.kiln("opt", self.write("add.kiln", ADD), "--stage", "ir"))
        self.fails(FAILED, "--shape: input x: dim 0: expected 2, as the model says", "info", "add.kiln", "--shape", "x=Nx3")
        self.fails(USAGE, "--shape: expected one of the inputs x, y, found q", "info", "add.kiln", "--shape", "q=1")
        self.assertIn("input        x: f32[2,3]", self.kiln("info", text, "--shape", "x=2x3"))
        for command in "opt", "memory", "bisect":
            self.fails(USAGE, f"--shape: expected a model at the graph level, found {text} at the ir level", command, text,
                       "--shape", "x=2x3")
        self.fails(USAGE, "the model is at the ir level, its shapes are fixed", "run", text, "--random", "1", "--shape", "x=Nx3")

    def test_named_dims_of_onnx(self):
        self.write("named.onnx", onnx.model([onnx.node("Relu", ["x"], ["y"])], [onnx.value("x", onnx.FLOAT, ["batch", 3])],
                                            [onnx.value("y", onnx.FLOAT, ["batch", 3])]))
        self.assertIn("y: f32[7,3] ", self.kiln("run", "named.onnx", "--random", "1", "--shape", "x=7x3"))

    def test_no_elements(self):
        model = self.write("open.kiln", OPEN)
        self.assertEqual(self.kiln("run", model, "--random", "1", "--shape", "x=0x3", "--shape", "y=0x3"), "z: f32[0,3]\n")


class Outputs(CliTest):
    def test_digits_answer_seven(self):
        text = self.kiln("run", MODEL, "-i", f"image={DIGITS / 'seven.png'}", "--labels", DIGITS / "labels.txt")
        lines = text.splitlines()
        self.assertTrue(lines[0].startswith("probabilities: f32[1,10] min "), text)
        self.assertRegex(lines[1], r"^ +7  0\.98\d* +7$")
        self.assertEqual(len(lines), 6)

    def test_labels(self):
        self.write("labels.txt", "nought\r\none\r\ntwo\r\n")
        text = self.kiln("run", MODEL, "-i", f"image={DIGITS / 'zero.png'}", "--labels", "labels.txt")
        self.assertRegex(text.splitlines()[1], r"^ +0  0\.9\d* +nought$")
        self.fails(FAILED, "no.txt: cannot be read: No such file or directory", "run", MODEL, "--random", "1", "--labels",
                   "no.txt")

    def test_labels_do_not_command_a_terminal(self):
        self.write("labels.txt", "\x1b[2Jnought\none\ntwo\n")
        text = self.kiln("run", MODEL, "-i", f"image={DIGITS / 'zero.png'}", "--labels", "labels.txt")
        self.assertIn(r"\x1b[2jnought", text.lower())

    def test_json(self):
        document = self.json("run", MODEL, "-i", f"image={DIGITS / 'seven.png'}", "--labels", DIGITS / "labels.txt", "--json")
        self.keys(document, "outputs", "fold_runs", "run_ms")
        output, = document["outputs"]
        self.keys(output, "name", "type", "min", "max", "mean", "nan", "top")
        self.assertEqual((output["name"], output["type"], output["nan"]), ("probabilities", "f32[1,10]", 0))
        self.assertEqual([entry["index"] for entry in output["top"]][0], 7)
        self.assertEqual(output["top"][0]["label"], "7")
        self.assertEqual(output["top"][0]["value"], output["max"])
        self.assertEqual(len(output["top"]), 5)

    def test_json_of_what_is_no_number(self):
        self.write("relu.kiln", RELU)
        self.write("x.npy", npy("<f4", (2, 3), floats(float("nan"), float("inf"), 1, -1, 2, 3)))
        output, = self.json("run", "relu.kiln", "-i", "x=x.npy", "--json")["outputs"]
        self.assertIsNone(output["max"])
        self.assertIsNone(output["mean"])
        self.assertEqual(output["nan"], 1)
        self.assertIn("NaN 1", self.kiln("run", "relu.kiln", "-i", "x=x.npy"))

    def test_files_read_back(self):
        self.kiln("run", MODEL, "-i", f"image={DIGITS / 'seven.png'}", "-o", "a/b")
        self.assertEqual(self.files(), ["a/b/output_0.pb"])
        self.kiln("run", MODEL, "-i", f"image={DIGITS / 'seven.png'}", "--expect", "a/b", "--rtol", "0", "--atol", "0")

    def test_unwritable_folder(self):
        model = self.write("add.kiln", ADD)
        self.fails(FAILED, "add.kiln: cannot be made: ", "run", model, "--random", "1", "-o", model)
        self.fails(FAILED, "/proc/kiln: cannot be made: ", "run", model, "--random", "1", "-o", "/proc/kiln")
        (self.dir / "out/output_0.pb").mkdir(parents=True)
        self.fails(FAILED, "out/output_0.pb: cannot be written: Is a directory", "run", model, "--random", "1", "-o", "out")
        self.assertEqual(self.files(), ["add.kiln"])

    def test_all_outputs_or_none(self):
        model = self.write("two.kiln", "graph @two(%x: f32[2]) {\n  %a = relu(%x) : f32[2]\n  %b = neg(%x) : f32[2]\n"
                                       "  return %a, %b\n}\n")
        (self.dir / "out/output_1.pb").mkdir(parents=True)
        self.fails(FAILED, "out/output_1.pb: cannot be written: Is a directory", "run", model, "--random", "1", "-o", "out")
        self.assertEqual(self.files(), ["two.kiln"])

    def test_output_that_fails_at_run_time_leaves_nothing(self):
        model = self.write("g.kiln", "graph @g(%x: f32[2,3], %i: i64[1]) {\n  %y = gather(%x, %i) : f32[1,3]\n  return %y\n}\n")
        self.write("x.npy", npy("<f4", (2, 3), bytes(24)))
        self.write("i.npy", npy("<i8", (1,), struct.pack("<q", 7)))
        self.fails(FAILED, "gather", "run", model, "-i", "x=x.npy", "-i", "i=i.npy", "-o", "out", "--trace", "t.json")
        self.assertEqual(self.files(), ["g.kiln", "i.npy", "x.npy"])


class Expectations(CliTest):
    def setUp(self):
        super().setUp()
        self.model = self.write("add.kiln", ADD)
        self.write("x.npy", npy("<f4", (2, 3), floats(1, 2, 3, 4, 5, 6)))
        self.call = ("run", self.model, "-i", "x=x.npy", "-i", "y=x.npy")

    def expect(self, dims, values, *arguments, status=OK):
        self.write("want/output_0.pb", onnx.float_tensor("z", dims, values))
        result = self.start(*self.call, "--expect", "want", *arguments)
        self.assertEqual(result.returncode, status, result.stderr)
        return result.stderr

    def test_equal(self):
        self.assertEqual(self.expect((2, 3), [2, 4, 6, 8, 10, 12]), "")

    def test_tolerance(self):
        near = [2, 4, 6, 8, 10, 12.006]
        self.expect((2, 3), near)
        message = self.expect((2, 3), near, "--rtol", "1e-4", status=MISMATCH)
        self.assertIn("output z against want/output_0.pb: 1 of 6 elements differ, the first is element 5: "
                      "expected 12.006, found 12", message)
        self.expect((2, 3), near, "--rtol", "0", "--atol", "0.01")
        for option in ("--rtol", "--atol"):
            for value in ("-1", "nan"):
                self.fails(USAGE, f"{option}: expected 0 or more, found {value}", *self.call, option, value)

    def test_shape(self):
        self.assertIn("expected f32[3,2], found f32[2,3]", self.expect((3, 2), [2, 4, 6, 8, 10, 12], status=MISMATCH))

    def test_missing(self):
        result = self.start(*self.call, "--expect", "nowhere")
        self.assertEqual(result.returncode, FAILED)
        self.assertIn("nowhere/output_0.pb: cannot be read: No such file or directory", result.stderr)

    def test_json_comes_with_the_mismatch(self):
        self.write("want/output_0.pb", onnx.float_tensor("z", (2, 3), [0] * 6))
        result = self.start(*self.call, "--expect", "want", "--json")
        self.assertEqual(result.returncode, MISMATCH)
        self.assertEqual(json.loads(result.stdout)["outputs"][0]["max"], 12)


class Bits(CliTest):
    def test_threads_change_nothing(self):
        for threads in ("1", "2", "4"):
            self.kiln("run", MODEL, "--random", "1", "--threads", threads, "-o", threads)
        one, *others = [(self.dir / threads / "output_0.pb").read_bytes() for threads in ("1", "2", "4")]
        for other in others:
            self.assertEqual(one, other)


class Progress(CliTest):
    def test_terminal_shows_progress_that_is_gone_at_the_end(self):
        """On a terminal long work rewrites one line and clears it; a pipe sees none of it."""
        if not (SHARED / "models").is_dir():
            self.skipTest("no models beside the source tree")
        model = SHARED / "models/mobilenet_v2/model.onnx"
        leader, follower = pty.openpty()
        with subprocess.Popen([KILN, "opt", str(model), "--check", "--passes", "fold-batchnorm,cse,dce", "-o", "/dev/null"],
                              stderr=follower, stdout=subprocess.PIPE, cwd=self.dir) as process:
            process.communicate(timeout=600)
            os.close(follower)
            shown = b""
            while True:
                try:
                    data = os.read(leader, 65536)
                except OSError:
                    break
                if not data:
                    break
                shown += data
        os.close(leader)
        self.assertEqual(process.returncode, OK)
        self.assertIn(b" % ", shown)
        self.assertTrue(shown.endswith(b"\r\x1b[K"), shown)


if __name__ == "__main__":
    main()
