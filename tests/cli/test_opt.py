# SPDX-License-Identifier: Apache-2.0
"""kiln opt: forms, files, and the options that act on passes."""
import json
import re
import unittest

import onnx_writer as onnx
from harness import ADD, FAILED, MODEL, OK, OPEN, USAGE, CliTest, main

# Work for eliminate-noop, cse, dce and constant-fold.
MESSY = """graph @messy(%x: f32[2,3]) {
  %same = identity(%x) : f32[2,3]
  %a = exp(%same) : f32[2,3]
  %b = exp(%x) : f32[2,3]
  %unused = neg(%x) : f32[2,3]
  %c = add(%a, %b) : f32[2,3]
  return %c
}
"""
TIDY = """graph @messy(%x: f32[2,3]) {
  %a = exp(%x) : f32[2,3]
  %c = add(%a, %a) : f32[2,3]
  return %c
}
"""
JOINED = """graph @joined(%x: f32[2,N,8], %z: f32[2,M,8]) {
  %a = relu(%x) : f32[2,N,8]
  %b = relu(%z) : f32[2,M,8]
  %y = concat(%a, %b) {axis=1} : f32[2,M+N,8]
  return %y
}
"""
# The view has all elements only if N is a multiple of 4.
ROWS = """func @rows {
  dims N=60
  require "y": 4*floor(N/4) = N
  arena 0
  input @x : f32[N]
  output @y : f32[floor(N/4),4]
  %v = view @x : f32[floor(N/4),4]
  neg @out @y, @in %v
}
"""
# It takes 8 rows, which N must have.
POOL = """graph @pool(%x: f32[N,3,H]) {
  %p = max_pool(%x) {kernel_shape=[5]} : f32[N,3,H-4]
  return %p
}
"""
SEVEN = """graph @seven(%x: f32[N,3]) {
  %s = const @s : i64[2]
  %z = reshape(%x, %s) : f32[7,9]
  return %z
}

constants {
  @s = [7, 9] : i64[2]
}
"""
PICK = """graph @pick(%t: f32[N,3], %i: i64[5]) {
  %r = gather(%t, %i) {axis=0} : f32[5,3]
  return %r
}
"""
BOUNDED = """graph @bounded(%x: f32[N,3]) {
  %zero = const @zero : i64[1]
  %eight = const @eight : i64[1]
  %y = slice(%x, %zero, %eight, %zero) : f32[8,3]
  %r = relu(%y) : f32[8,3]
  %q = relu(%r) : f32[8,3]
  return %q as r
}

constants {
  @zero = [0] : i64[1]
  @eight = [8] : i64[1]
}

dims {
  N: least=8, most=2048, multiple=8
}
"""


class Forms(CliTest):
    def setUp(self):
        super().setUp()
        self.model = self.write("add.kiln", ADD)

    def test_text_of_both_levels(self):
        self.assertEqual(self.kiln("opt", self.model), ADD)
        self.assertEqual(self.kiln("opt", self.model, "--stage", "graph", "--emit", "text"), ADD)
        text = self.kiln("opt", self.model, "--stage", "ir")
        self.assertTrue(text.startswith("func @add {\n"), text)
        self.assertEqual(self.kiln("opt", self.write("ir.kiln", text)), text)

    def test_dot(self):
        text = self.kiln("opt", self.model, "--emit", "dot")
        self.assertTrue(text.startswith("digraph "), text)
        self.assertTrue(text.endswith("}\n"), text)

    def test_json(self):
        graph = self.json("opt", self.model, "--emit", "json")
        self.assertEqual([node["op"] for node in graph["functions"][0]["nodes"]], ["add"])
        self.assertEqual(self.json("opt", self.model, "--json"), graph)
        ir = self.json("opt", self.model, "--stage", "ir", "--emit", "json")
        self.keys(ir["functions"][0], "name", "arena", "weights", "inputs", "outputs", "instrs")

    def test_onnx(self):
        self.kiln("opt", self.model, "--emit", "onnx", "-o", "add.onnx")
        written = self.kiln("opt", "add.onnx")
        self.assertEqual(written[:written.index("\nmetadata {")], ADD)
        self.assertEqual(self.start("opt", self.model, "--emit=onnx").stdout, (self.dir / "add.onnx").read_bytes())
        self.kiln("opt", MODEL, "--emit", "onnx", "-o", "digits.onnx")
        for model, out in ((MODEL, "a"), ("digits.onnx", "b")):
            self.kiln("run", model, "--random", "1", "-o", out)
        self.assertEqual((self.dir / "a/output_0.pb").read_bytes(), (self.dir / "b/output_0.pb").read_bytes())
        # What a vendor computes is written as the operators that it computes.
        self.kiln("opt", MODEL, "--emit", "onnx", "--pipeline", "offload", "-o", "offload.onnx")
        self.kiln("run", "offload.onnx", "--random", "1", "-o", "c")
        self.assertEqual((self.dir / "a/output_0.pb").read_bytes(), (self.dir / "c/output_0.pb").read_bytes())

    def test_what_does_not_go_together(self):
        for form in ("dot", "onnx"):
            self.fails(USAGE, f"--emit {form}: expected the graph stage, found the ir stage", "opt", self.model, "--stage", "ir",
                       "--emit", form, "-o", "f")
        self.write("ir.kiln", self.kiln("opt", self.model, "--stage", "ir"))
        self.fails(USAGE, "--stage graph: expected a model at the graph level, found ir.kiln at the ir level", "opt", "ir.kiln",
                   "--stage", "graph")
        self.fails(USAGE, "--stage: expected graph or ir, found x", "opt", self.model, "--stage", "x")
        self.fails(USAGE, "--emit: expected text, onnx, dot or json, found x", "opt", self.model, "--emit", "x")
        self.assertNotIn("f", self.files())

    def test_open_shapes(self):
        model = self.write("open.kiln", OPEN)
        self.assertEqual(self.kiln("opt", model), OPEN)
        ir = self.kiln("opt", model, "--stage", "ir")
        self.assertIn("input @x : f32[N,3]", ir)
        again = self.write("again.kiln", ir)
        self.assertEqual(self.kiln("opt", again, "--stage", "ir", "--pipeline", "none"), ir)
        self.assertIn("input @x : f32[4,3]", self.kiln("opt", model, "--stage", "ir", "--shape", "x=4x3", "--shape", "y=4x3"))
        self.assertIn("graph @open(%x: f32[4,3], ", self.kiln("opt", model, "--shape", "x=4x3"))

    def test_json_of_open_functions(self):
        model = self.write("joined.kiln", JOINED)
        function = self.json("opt", model, "--stage", "ir", "--emit", "json", "--pipeline", "own")["functions"][0]
        self.assertEqual(set(function["dims"]), {"N", "M"})
        views = [instr for instr in function["instrs"] if instr["op"] == "view"]
        self.assertEqual([(view["element_offset"], view["rows"], view["pitch"]) for view in views],
                         [(0, 2, "8*M+8*N"), ("8*N", 2, "8*M+8*N")])

    def test_conditions_of_open_functions(self):
        model = self.write("rows.kiln", ROWS)
        self.assertEqual(self.kiln("opt", model, "--stage", "ir", "--pipeline", "none"), ROWS)
        for line, bad, message in (("  dims N=60\n", "", "3:3: expected dims before what they require"),
                                   ("N=60", "N=60\n  dims M=3", "3:8: expected dims once, found 'M'"),
                                   ("N=60", "N=x", "2:10: expected an integer"),
                                   ('"y":', '"y"', "3:15: expected ':', found '4'"),
                                   ('"y"', "y", "3:11: expected the name of a value, found 'y'")):
            self.fails(FAILED, message, "opt", self.write("bad.kiln", ROWS.replace(line, bad)))

    def test_named_dims_of_onnx(self):
        self.write("named.onnx", onnx.model([onnx.node("Relu", ["x"], ["y"])], [onnx.value("x", onnx.FLOAT, ["batch", 3])],
                                            [onnx.value("y", onnx.FLOAT, ["batch", 3])]))
        self.assertIn("%x: f32[batch,3]", self.kiln("opt", "named.onnx"))
        self.assertIn("%x: f32[5,3]", self.kiln("opt", "named.onnx", "--shape", "x=5x3"))


class Files(CliTest):
    def test_constants_beside(self):
        for stage in ("graph", "ir"):
            self.kiln("opt", MODEL, "--stage", stage, "-o", f"{stage}.kiln")
            self.assertIn(f'file("{stage}.kiln.bin", ', (self.dir / f"{stage}.kiln").read_text())
        self.assertEqual(self.files(), ["graph.kiln", "graph.kiln.bin", "ir.kiln", "ir.kiln.bin"])
        self.kiln("run", MODEL, "--random", "1", "-o", "m")
        for stage in ("graph", "ir"):
            self.kiln("run", f"{stage}.kiln", "--random", "1", "-o", stage)
            self.assertEqual((self.dir / "m/output_0.pb").read_bytes(), (self.dir / f"{stage}/output_0.pb").read_bytes())

    def test_no_constants_no_file(self):
        self.kiln("opt", self.write("add.kiln", ADD), "-o", "out.kiln")
        self.assertEqual(self.files(), ["add.kiln", "out.kiln"])
        self.assertEqual((self.dir / "out.kiln").read_text(), ADD)

    def test_over_another_text_and_its_constants(self):
        self.kiln("opt", MODEL, "--pipeline", "none", "-o", "m.kiln")
        self.kiln("run", "m.kiln", "--random", "1", "-o", "before")
        self.kiln("opt", "m.kiln", "--pipeline", "none", "-o", "n.kiln")
        self.fails(USAGE, "output m.kiln: expected another file than the model", "opt", "m.kiln", "-o", "m.kiln")
        self.kiln("opt", "n.kiln", "--pipeline", "none", "-o", "m.kiln")
        self.kiln("run", "m.kiln", "--random", "1", "-o", "after")
        self.assertEqual((self.dir / "before/output_0.pb").read_bytes(), (self.dir / "after/output_0.pb").read_bytes())

    def test_devices_are_written_to(self):
        self.kiln("opt", MODEL, "-o", "/dev/null")
        self.assertEqual(self.kiln("opt", self.write("add.kiln", ADD), "-o", "/dev/stdout"), ADD)

    def test_dash_is_standard_output(self):
        self.assertEqual(self.kiln("opt", MODEL, "-o", "-"), self.kiln("opt", MODEL))
        self.assertEqual(self.files(), [])

    def test_unwritable_leaves_nothing(self):
        (self.dir / "folder").mkdir()
        (self.dir / "other.bin").mkdir()
        for path, why in (("/nonexistent/f", "No such file or directory"), ("folder", "Is a directory")):
            self.fails(FAILED, f"{path}: cannot be written: {why}", "opt", self.write("add.kiln", ADD), "-o", path)
            self.fails(FAILED, f"cannot be written: {why}", "opt", MODEL, "-o", path)
        self.fails(FAILED, "other.bin: cannot be written: Is a directory", "opt", MODEL, "-o", "other")
        self.assertEqual(self.files(), ["add.kiln"])

    def test_what_was_there_stays_after_an_error(self):
        path = self.write("keep.kiln", "precious")
        self.write("bad.kiln", "graph @x(")
        self.fails(FAILED, "bad.kiln:", "opt", "bad.kiln", "-o", path)
        self.fails(FAILED, "no.onnx: cannot be read", "opt", "no.onnx", "-o", path)
        self.fails(USAGE, "--skip: expected a pass", "opt", MODEL, "--skip", "x", "-o", path)
        self.assertEqual((self.dir / "keep.kiln").read_text(), "precious")
        self.assertEqual(self.files(), ["bad.kiln", "keep.kiln"])

    def test_same_bytes_every_time(self):
        texts = {self.kiln("opt", MODEL, "--stage", "ir") for _ in range(3)}
        self.assertEqual(len(texts), 1)


class Errors(CliTest):
    def test_models(self):
        self.fails(FAILED, "no.onnx: cannot be read: No such file or directory", "opt", "no.onnx")
        self.write("cut.onnx", MODEL.read_bytes()[:5000])
        self.fails(FAILED, "cut.onnx: byte ", "opt", "cut.onnx")
        for text, place in (("graph @x(%a: f32[2]) {\n  %b = nosuch(%a) : f32[2]\n  return %b\n}\n", "2:8"),
                            ("graph @x(%a: f32[2]) {\n  %b = relu(%q) : f32[2]\n  return %b\n}\n", "2:13"),
                            ("graph @x(%a: f99[2]) {\n  return %a\n}\n", "1:14")):
            self.write("bad.kiln", text)
            self.fails(FAILED, f"bad.kiln:{place}: ", "opt", "bad.kiln")

    def test_names_of_passes(self):
        for option in ("--skip", "--only", "--print-after"):
            self.fails(USAGE, (f"{option}: expected a pass, found dec (did you mean 'dce'?)", "`kiln passes` lists them."), "opt",
                       MODEL, option, "dec")
            self.fails(USAGE, f"{option}: expected a pass, found dec (did you mean 'dce'?)", "opt", MODEL, f"{option}=cse,dec")
            for empty in ("", "cse,", "cse,,dce"):
                self.fails(USAGE, f"{option}: expected a pass, found an empty name", "opt", MODEL, f"{option}={empty}")
        self.fails(USAGE, "--skip: expected a pass, found all", "opt", MODEL, "--skip", "all")

    def test_numbers(self):
        for option in ("--stop-after", "--bisect-limit"):
            self.fails(USAGE, f"{option}: expected 0 or more, found -1", "opt", MODEL, f"{option}=-1")
            self.fails(USAGE, option, "opt", MODEL, option, "x")
            self.fails(USAGE, option, "opt", MODEL, option, "9999999999999999999999")


class Passes(CliTest):
    def setUp(self):
        super().setUp()
        self.model = self.write("messy.kiln", MESSY)

    def test_default_tidies(self):
        self.assertEqual(self.kiln("opt", self.model), TIDY)

    def test_none_changes_nothing(self):
        self.assertEqual(self.kiln("opt", self.model, "--pipeline", "none"), MESSY)

    def test_skip_and_only(self):
        self.assertNotIn("identity", self.kiln("opt", self.model, "--only", "eliminate-noop", "--only", "dce"))
        self.assertIn("%b = exp", self.kiln("opt", self.model, "--skip", "cse"))
        self.assertIn("%b = exp", self.kiln("opt", self.model, "--only", "eliminate-noop"))
        self.assertIn("%unused", self.kiln("opt", self.model, "--skip", "dce"))
        self.assertIn("%b = exp", self.kiln("opt", self.model, "--skip=dce,cse"))
        self.assertEqual(self.kiln("opt", self.model, "--skip=dce,cse", "--skip=lower"),
                         self.kiln("opt", self.model, "--skip", "lower", "--skip", "cse", "--skip", "dce"))
        self.assertEqual(self.kiln("opt", self.model, "--only=eliminate-noop,dce"),
                         self.kiln("opt", self.model, "--only", "eliminate-noop", "--only", "dce"))
        self.assertNotIn("%b = exp", self.kiln("opt", self.model, "--skip", "dedup-constants", "--skip", "lower"))

    def test_stop_after_counts_entries(self):
        passes = ("--passes", "eliminate-noop,cse,dce")
        texts = [self.kiln("opt", self.model, *passes, "--stop-after", str(n)) for n in range(4)]
        self.assertEqual(texts[0], MESSY)
        self.assertNotIn("identity", texts[1])
        self.assertIn("%b = exp", texts[1])
        self.assertIn("add(%a, %a)", texts[2])
        self.assertIn("%b = exp", texts[2])  # dead, until dce
        self.assertEqual(texts[3], TIDY)
        self.assertEqual(self.kiln("opt", self.model, *passes, "--stop-after", "100"), TIDY)

    def test_bisect_limit_counts_applications(self):
        """Each step changes what the dump of that application shows, DCE before an entry included."""
        self.kiln("opt", self.model, "--dump-dir", "dump")
        dumps = sorted((self.dir / "dump").iterdir())
        self.assertGreater(len(dumps), 10)
        for n in (0, 1, 2, 3, 5, len(dumps)):
            text = self.kiln("opt", self.model, "--bisect-limit", n)
            expected = MESSY if n == 0 else dumps[n - 1].read_text().split("\n", 1)[1]
            self.assertEqual(text, expected, n)

    def test_limits_count_on_into_the_ir(self):
        report = self.json("opt", self.model, "--stage", "ir", "--stats", "--json")
        applications = sum(entry["runs"] for entry in report["passes"])
        whole = self.kiln("opt", self.model, "--stage", "ir")
        self.assertEqual(self.kiln("opt", self.model, "--stage", "ir", "--bisect-limit", applications), whole)
        self.assertEqual(self.kiln("opt", self.model, "--stage", "ir", "--bisect-limit", "0", "--pipeline", "default"),
                         self.kiln("opt", self.model, "--stage", "ir", "--pipeline", "none"))

    def test_print_after(self):
        text = self.kiln_err("opt", self.model, "--passes", "eliminate-noop,cse", "--print-after", "cse")
        self.assertRegex(text, r"^# after \d+ cse @messy\ngraph @messy\(")
        self.assertEqual(text.count("# after "), 1)
        text = self.kiln_err("opt", self.model, "--passes", "eliminate-noop,cse", "--print-after", "all")
        self.assertEqual(re.findall(r"# after \d+ (\S+)", text), ["dce", "eliminate-noop", "dce", "cse"])
        self.assertEqual(self.kiln("opt", self.model, "--print-after", "all"), TIDY)

    def test_print_changed(self):
        text = self.kiln_err("opt", self.model, "--print-changed")
        self.assertNotIn("(unchanged)", text)
        self.assertIn("eliminate-noop", text)
        self.assertEqual(self.kiln_err("opt", self.write("add.kiln", ADD), "--print-changed"), "")

    def test_dumps_parse_back(self):
        self.kiln("opt", self.model, "--stage", "ir", "--dump-dir", "a/dump")
        for path in sorted((self.dir / "a/dump").iterdir()):
            self.assertRegex(path.name, r"^\d{4}-[a-z-]+-messy\.kiln$")
            body = path.read_text().split("\n", 1)[1]
            text = self.kiln("opt", path, "--pipeline", "none")
            self.assertEqual(re.sub(r"  arena \d+\n| at \d+", "", text), body, path)  # the plan is made at the end
        self.fails(FAILED, "/proc/x: cannot be made: ", "opt", self.model, "--dump-dir", "/proc/x")

    def test_choices(self):
        model = self.write("convs.kiln", """graph @convs(%x: f32[1,64,28,28]) {
  %w = const @w : f32[64,64,3,3]
  %a = conv(%x, %w) {pads=[1,1,1,1]} : f32[1,64,28,28]
  %b = conv(%a, %w) {pads=[1,1,1,1], strides=[2,2]} : f32[1,64,14,14]
  return %b
}
constants { @w = random_normal(seed=1, std=0.05) : f32[64,64,3,3] }
""")
        chosen = lambda *options: [line.split()[0] for line in
                                   self.kiln("opt", model, "--print-choices", *options).splitlines()[1:]]
        own = "--pipeline", "own"
        self.assertEqual(chosen(*own), ["winograd", "direct"])
        self.assertEqual(chosen("--prefer", "memory"), ["direct", "direct"])
        self.assertEqual(chosen(*own, "--skip", "choose-algorithms"), ["direct", "direct"])
        self.assertEqual(chosen("--backend", "ref"), ["direct", "direct"])
        self.assertEqual(chosen("--no-offload"), ["direct", "direct"])
        self.assertEqual(chosen("--no-offload", "--passes", "choose-algorithms{winograd=always}"), ["winograd", "direct"])
        self.kiln("run", model, "--random", "1", "--backend", "ref", "-o", "out")
        self.kiln("run", model, "--random", "1", "--expect", "out", "--rtol", "1e-3", "--atol", "1e-5")

    def test_what_is_offloaded(self):
        """Nothing where own kernels are asked for or memory is preferred, and nothing of a type that the vendor lacks."""
        model = self.write("half.kiln", """graph @half(%x: f16[1,64,56,56], %y: f32[1,64,56,56]) {
  %v = const @v : f16[64,64,1,1]
  %a = conv(%x, %v) : f16[1,64,56,56]
  %w = const @w : f32[64,64,1,1]
  %b = conv(%y, %w) : f32[1,64,56,56]
  return %a, %b
}
constants {
  @v = random_normal(seed=1, std=0.05) : f16[64,64,1,1]
  @w = random_normal(seed=1, std=0.05) : f32[64,64,1,1]
}
""")
        calls = lambda *options: re.findall(r"(?m)^  call @.*", self.kiln("opt", model, "--stage", "ir", *options))
        for pipeline in "default", "offload", "fp16", "lossy":
            for option in ("--no-offload",), ("--prefer", "memory"), ("--backend", "ref"):
                self.assertEqual(calls("--pipeline", pipeline, *option), [], (pipeline, option))
        for pipeline in "own", "glow", "fold", "none":
            self.assertEqual(calls("--pipeline", pipeline), [], pipeline)
        # Nothing weighed, be it what `default` does or what a model of halves is given.
        every = ("partition-offload{when=always}", "propagate-layouts", "compile-offload", "dce")
        forced = calls("--pipeline", "offload")
        self.assertLessEqual(len(forced), 1)
        self.assertEqual(len(calls("--passes", ",".join(every))), len(forced))
        for call in forced:
            self.assertIn("@y", call)
            self.assertNotIn("@x", call)
        # Cut short, what was to be compiled runs on own kernels.
        self.kiln("run", model, "--random", "1", "--backend", "ref", "--quiet", "-o", "out")
        for passes in every, every[:2], every[:1]:
            self.kiln("run", model, "--random", "1", "--quiet", "--passes", ",".join(passes), "--expect", "out", "--rtol", "1e-3",
                      "--atol", "1e-3")

    def test_stats(self):
        text = self.kiln_err("opt", self.model, "--stats")
        self.assertRegex(text, r"(?m)^level +pass +runs +changed +before +after +delta +ms$")
        self.assertRegex(text, r"(?m)^graph  eliminate-noop +\d+ +1 +\d+ +\d+ +-\d+ +\d+\.\d+$")
        self.assertIn("fired", text)
        short = self.kiln_err("opt", self.model, "--time-passes")
        self.assertNotIn("fired", short)
        self.assertRegex(short, r"(?m)^\d+ applications, \d+\.\d+ ms$")

    def test_stats_as_json(self):
        for options in (("--stats",), ("--time-passes",), ("--stats", "--time-passes")):
            passes = self.json("opt", self.model, "--json", *options)["passes"]
            for entry in passes:
                self.keys(entry, "name", "level", "runs", "changed", "ms", "rules", "nodes_before", "nodes_after", "delta")
                self.assertIn(entry["level"], ("graph", "ir"))
        by_name = {entry["name"]: entry for entry in passes}
        self.assertEqual(by_name["eliminate-noop"]["changed"], 1)
        self.assertLess(by_name["dce"]["delta"], 0)
        self.assertEqual(sum(entry["delta"] for entry in passes), passes[-1]["nodes_after"] - passes[0]["nodes_before"])

    def test_stats_of_cost(self):
        """Two of the same node cost twice what one costs; constants are counted in bytes."""
        model = self.write("c.kiln", """graph @c(%x: f32[4,8]) {
  %w = const @w : f32[8,16]
  %a = matmul(%x, %w) : f32[4,16]
  %b = matmul(%x, %w) : f32[4,16]
  %c = sub(%a, %b) : f32[4,16]
  return %c
}
constants {
  @w = iota : f32[8,16]
  @unread = [1, 2, 3, 4] : f32[4]
}
""")
        entries = self.json("opt", model, "--passes", "dce,cse,dce", "--stats", "--json")["passes"]
        dce, cse = entries
        product = 2 * 4 * 8 * 16
        self.assertEqual((dce["flops_before"], dce["flops_after"]), (2 * product + 64, product + 64))
        self.assertEqual((dce["flops_delta"], cse["flops_delta"]), (-product, 0))  # cse leaves what dies
        self.assertEqual((dce["constant_bytes_before"], dce["constant_bytes_delta"]), (16, -16))
        self.assertNotIn("flops_before", self.json("opt", model, "--time-passes", "--json")["passes"][0])
        text = self.kiln_err("opt", model, "--passes", "dce,cse,dce", "--stats")
        self.assertRegex(text, r"(?m)^ +-0.001024 MFLOP$")
        self.assertRegex(text, r"(?m)^0.002112 MFLOP and 16 bytes of constants before, 0.001088 and 0 after$")

    def test_stats_beside_a_file(self):
        document = json.loads(self.kiln("opt", self.model, "--json", "--stats", "-o", "out.kiln"))
        self.keys(document, "schema_version", "passes")
        self.assertEqual((self.dir / "out.kiln").read_text(), TIDY)

    def test_check(self):
        self.assertEqual(self.kiln("opt", self.model, "--check"), TIDY)
        self.assertTrue(self.kiln("opt", MODEL, "--stage", "ir", "--check").startswith("func @"))
        self.assertEqual(self.kiln("opt", self.model, "--check", "--backend", "ref"), TIDY)

    def test_check_within_bounds(self):
        """A model is run at a number that its dims may have."""
        model = self.write("b.kiln", BOUNDED)
        done = self.start("opt", model, "--check")
        self.assertEqual((done.returncode, done.stderr), (OK, ""))
        self.assertNotIn("%q", done.stdout.decode())

    def test_check_of_open_dims(self):
        """Numbers that a function refuses are drawn anew and told; where it refuses all, there is no check."""
        self.assertEqual(self.kiln_err("opt", self.write("open.kiln", OPEN), "--check"), "")
        self.write("pool.kiln", POOL)
        for stage in "graph", "ir":
            told = self.kiln_err("opt", "pool.kiln", "--check", "--stage", stage).splitlines()
            self.assertIn("check: @pool is compared with N=64, H=64; N=1, H=8; N=3, H=5; left out: 3, the last N=1, H=4: "
                          "p (max_pool): spatial dim 0: expected 5 elements or more with padding, found 4", told)
            self.assertEqual(len(told), 1 if stage == "graph" else 2)
        self.write("never.kiln", SEVEN)
        self.fails(FAILED, "pass dce (application 1, @seven): what @seven computes cannot be checked: expected numbers of open dims that it "
                   "takes, found none in ", "opt", "never.kiln", "--check")
        self.assertIn("graph @seven", self.kiln("opt", "never.kiln"))
        self.assertEqual(self.kiln_err("opt", "never.kiln", "--check", "--shape", "N=21"), "")

    def test_check_of_indices(self):
        """Random indices fit the numbers of open dims."""
        self.write("pick.kiln", PICK)
        self.assertEqual(self.kiln_err("opt", "pick.kiln", "--check", "--stage", "ir"), "")

    def test_modes(self):
        model = self.write("d.kiln", "graph @d(%x: f32[4]) {\n  %y = dropout(%x) : f32[4]\n  return %y\n}\n")
        self.assertNotIn("dropout", self.kiln("opt", model, "--mode", "infer"))
        self.assertEqual(self.start("opt", model, "--mode", "train").returncode, OK)


if __name__ == "__main__":
    main()
