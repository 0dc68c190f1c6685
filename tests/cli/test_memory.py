# SPDX-License-Identifier: Apache-2.0
"""kiln memory: the plan, its bounds, and that both agree with the text that `kiln opt --stage ir` prints."""
import json
import re
import unittest
import xml.etree.ElementTree

from harness import ADD, FAILED, MODEL, OPEN, SHARED, USAGE, CliTest, main

KEYS = ("sum", "lb_node", "lb_live", "arena", "efficiency", "proven_optimal", "plan_ms", "scratch", "peak", "buffers")
BUFFER_KEYS = ("name", "kind", "def", "last_use", "size", "offset", "def_instr", "last_instr")
SIZES = {"f32": 4, "f64": 8, "f16": 2, "bf16": 2, "i8": 1, "i16": 2, "i32": 4, "i64": 8, "u8": 1, "u16": 2, "u32": 4, "u64": 8,
         "bool": 1}
NAME = r'"[^"]*"|[\w.]+'
BOOKKEEPING = ("dealloc", "weight", "input", "output", "arena")
WRITTEN = re.compile(rf"@(?:out|inout) [%@]({NAME})")
LOCATION = re.compile(r' loc\("(.*)"\)$')

LAYERS = """graph @layers(%x: f32[N,8]) {
  %w = const @w : f32[8,64]
  %zero = const @zero : i64[]
  %v = const @v : f32[64,8]
  %a = matmul(%x, %w) : f32[N,64]
  %b = softmax(%a) {axis=1} : f32[N,64]
  %c = cum_sum(%b, %zero) : f32[N,64]
  %y = matmul(%c, %v) : f32[N,8]
  return %y
}
constants { @zero = [0] : i64[]  @w = random_normal(seed=1, std=1) : f32[8,64]  @v = random_normal(seed=2, std=1) : f32[64,8] }
"""


def aligned(size):
    return (size + 63) // 64 * 64


def bytes_of(kind):
    dtype, dims = re.match(r"(\w+)\[([\d,]*)\]", kind).groups()
    size = SIZES[dtype]
    for dim in dims.split(",") if dims else []:
        size *= int(dim)
    return size


def label_of(line):
    """The ONNX node that an instruction came from, else the first buffer that it writes."""
    location = LOCATION.search(line)
    return location.group(1) if location else WRITTEN.search(line).group(1).strip('"')


def lives_of(text):
    """name → [first step, last step, size, offset, first instruction, last one] of each alloc, from the text of one
    function alone."""
    lives, origin, step = {}, {}, 0
    for line in text.splitlines():
        if line == "}":  # what follows are declarations, with bodies of their own, and constants
            break
        words = line.split()
        if not words or words[0] in BOOKKEEPING or not line.startswith("  "):
            continue
        match = re.match(rf"  %({NAME}) = alloc at (\d+) : (\S+)", line)
        if match:
            name = match.group(1).strip('"')
            origin[name] = name
            lives[name] = [None, None, aligned(bytes_of(match.group(3))), int(match.group(2)), None, None]
            continue
        match = re.match(rf"  %({NAME}) = view ([%@])({NAME})", line)
        if match:
            source = match.group(3).strip('"')
            origin[match.group(1).strip('"')] = origin.get(source) if match.group(2) == "%" else None
            continue
        for name in re.findall(rf"%({NAME})", line):
            buffer = origin.get(name.strip('"'))
            if buffer:
                life = lives[buffer]
                if life[0] is None:
                    life[0], life[4] = step, label_of(line)
                life[1], life[5] = step, label_of(line)
        step += 1
    return lives


class Plan(CliTest):
    def check(self, *arguments):
        document = self.json("memory", *arguments, "--json")
        self.keys(document, *KEYS)
        buffers = document["buffers"]
        for buffer in buffers:
            self.keys(buffer, *BUFFER_KEYS)
            self.assertEqual(buffer["offset"] % 64, 0)
            self.assertEqual(buffer["size"] % 64, 0)
            self.assertLessEqual(buffer["def"], buffer["last_use"])
            self.assertLessEqual(buffer["offset"] + buffer["size"], document["arena"])
        for i, one in enumerate(buffers):
            for other in buffers[:i]:
                apart = one["last_use"] < other["def"] or other["last_use"] < one["def"]
                apart |= one["offset"] + one["size"] <= other["offset"] or other["offset"] + other["size"] <= one["offset"]
                self.assertTrue(apart, (one, other))
        self.assertEqual(document["sum"], sum(buffer["size"] for buffer in buffers))
        steps = max((buffer["last_use"] for buffer in buffers), default=-1) + 1
        live = [sum(b["size"] for b in buffers if b["def"] <= step <= b["last_use"]) for step in range(steps)]
        self.assertEqual(document["lb_live"], max(live, default=0))
        peak = document["peak"]
        self.assertEqual(peak["step"], live.index(document["lb_live"]) if live else 0)
        self.assertEqual(peak["buffers"], [b["name"] for b in buffers if b["size"] and b["def"] <= peak["step"] <= b["last_use"]])
        self.assertLessEqual(set(peak["waiting"]), set(peak["buffers"]))
        if document["lb_live"] > document["lb_node"]:
            self.assertTrue(peak["waiting"], "what makes lb_live exceed lb_node is named")
        self.assertEqual(document["scratch"], max((b["size"] for b in buffers if b["kind"] == "scratch"), default=0))
        self.assertLessEqual(document["lb_node"], document["lb_live"])
        self.assertLessEqual(document["lb_live"], document["arena"])
        self.assertLessEqual(document["arena"], max(document["sum"], 0))
        if document["arena"] == document["lb_live"]:
            self.assertTrue(document["proven_optimal"])
        self.assertAlmostEqual(document["efficiency"], document["lb_live"] / document["arena"] if document["arena"] else 1)
        return document

    def check_against_text(self, document, text):
        lives = lives_of(text)
        planned = {b["name"]: [b["def"], b["last_use"], b["size"], b["offset"], b["def_instr"], b["last_instr"]]
                   for b in document["buffers"] if b["kind"] == "buffer"}
        self.assertEqual(planned, lives)
        self.assertIn(f"  arena {document['arena']}\n", text)

    def test_digits(self):
        document = self.check(MODEL)
        self.assertGreater(document["arena"], 0)
        self.check_against_text(document, self.kiln("opt", MODEL, "--stage", "ir", "-o", "/dev/stdout"))

    def test_every_pipeline_and_backend(self):
        for options in (("--pipeline", "none"), ("--pipeline", "debug"), ("--pipeline", "own"), ("--pipeline", "offload"), ("--backend", "ref"),
                        ("--threads", "1"), ("--skip", "share-buffers"), ("--bisect-limit", "5"), ("--stop-after", "3"), ("--only", "dce")):
            document = self.check(MODEL, *options)
            self.check_against_text(document, self.kiln("opt", MODEL, "--stage", "ir", "-o", "/dev/stdout", *options))

    def test_views_in_rows(self):
        """A batch whose channels are joined and split: views in rows lengthen the life of what they lie in, as the text says."""
        text = """graph @f(%x: f32[4,8,16,16]) {
  %a = relu(%x) : f32[4,8,16,16]
  %b = exp(%x) : f32[4,8,16,16]
  %c = concat(%a, %b, %a) {axis=1} : f32[4,24,16,16]
  %m = max_pool(%c) {kernel_shape=[2,2], strides=[2,2]} : f32[4,24,8,8]
  %s, %t = split(%m) {axis=1, num_outputs=2} : f32[4,12,8,8], f32[4,12,8,8]
  %u = max_pool(%t) {kernel_shape=[2,2], strides=[2,2]} : f32[4,12,4,4]
  %v = max_pool(%s) {kernel_shape=[2,2], strides=[2,2]} : f32[4,12,4,4]
  %y = add(%u, %v) : f32[4,12,4,4]
  return %y
}
"""
        (self.dir / "rows.kiln").write_text(text, encoding="utf-8")
        printed = self.kiln("opt", "rows.kiln", "--stage", "ir", "-o", "/dev/stdout")
        self.assertGreaterEqual(printed.count("rows=4, pitch="), 3, printed)
        self.assertNotIn("  concat", printed)
        self.assertNotIn("  slice", printed)
        self.check_against_text(self.check("rows.kiln"), printed)
        self.kiln("run", "rows.kiln", "--random", "1", "--poison", "--quiet")
        self.kiln("opt", "rows.kiln", "--check", "-o", "/dev/null")
        self.kiln("opt", "rows.kiln", "--stage", "ir", "-o", "ir.kiln")
        self.assertEqual(self.kiln("opt", "ir.kiln", "--pipeline", "none", "--stage", "ir", "-o", "/dev/stdout"), printed)

    def test_default_needs_less_than_none(self):
        self.assertLess(self.check(MODEL)["arena"], self.check(MODEL, "--pipeline", "none")["sum"])

    def test_plan_of_printed_text_is_the_same(self):
        self.kiln("opt", MODEL, "--stage", "ir", "-o", "ir.kiln")
        first, second = self.check(MODEL), self.check("ir.kiln", "--pipeline", "none")
        for key in ("sum", "lb_node", "lb_live", "arena", "buffers"):
            self.assertEqual(first[key], second[key], key)

    def test_nothing_to_plan(self):
        document = self.check(self.write("add.kiln", ADD))
        self.assertEqual((document["arena"], document["buffers"], document["proven_optimal"]), (0, [], True))

    def test_open_shapes(self):
        model = self.write("open.kiln", OPEN)
        self.check(model, "--shape", "x=4x3", "--shape", "y=4x3")
        self.check(model, "--shape", "N=4")
        self.check(model)

    def test_sizes_as_expressions(self):
        model = self.write("layers.kiln", LAYERS)
        document = self.check(model)
        self.assertEqual(document["open"], {"at": {"N": 64}, "at_most": False})
        expressions = {b["bytes"] for b in document["buffers"] if b["kind"] == "buffer"}
        self.assertEqual(expressions, {"256*N"})
        self.assertTrue(all(b["size"] == 256 * 64 for b in document["buffers"] if b["kind"] == "buffer"))
        text = self.kiln("memory", model)
        self.assertRegex(text, r"(?m)^arena +\d+ bytes for N=64; optimal: equal to lb_live$")
        self.assertRegex(text, r"(?m)^ +\d+ +16384 +\d+ +\d+  \w+ = 256\*N$")
        self.assertRegex(self.kiln("memory", model, "--shape-hint", "N=9"), r"(?m)^arena +\d+ bytes for N=9;")
        closed = self.check(model, "--shape", "x=64x8")
        self.assertNotIn("open", closed)
        for key in ("sum", "lb_node", "lb_live"):
            self.assertEqual(document[key], closed[key])

    def test_the_most_within_bounds(self):
        model = self.write("layers.kiln", LAYERS)
        document = self.check(model, "--shape", "x=4..96%4x8")
        self.assertEqual(document["open"], {"at": {"N": 96}, "at_most": True})
        text = self.kiln("memory", model, "--shape", "x=4..96%4x8")
        self.assertRegex(text, rf"(?m)^arena +{document['arena']} bytes at most, for all of N=4\.\.96%4; optimal: equal to lb_live$")
        self.assertRegex(text, r"(?m)^proved +each buffer has a place of the most bytes that its expression can be$")
        self.assertRegex(text, r"(?m)^asked +kernels want no more scratch memory at any of the 24 shapes$")
        self.assertRegex(text, r"(?m)^live +\d*\*?N[+*\d]* bytes at the peak, with scratch memory as here$")
        many = self.kiln("memory", model, "--shape", "x=1..1000000x8")
        self.assertRegex(many, r"(?m)^asked +kernels want no more scratch memory at \d+ shapes$")
        for rows in (4, 48, 96):
            self.assertLessEqual(self.check(model, "--shape", f"x={rows}x8")["arena"], document["arena"])
        self.kiln("memory", model, "--shape", "N=1..96", "--limit", document["arena"])
        self.fails_beside_output("expected an arena of at most 100 bytes", "memory", model, "--shape", "N=1..96", "--limit", "100")
        self.fails(USAGE, "--limit: expected numbers or upper bounds for all open dims: give --shape", "memory", model, "--limit", "100")

    def test_bounds_from_0(self):
        model = self.write("layers.kiln", LAYERS)
        text = self.kiln("memory", model, "--shape", "x=0..96x8")
        self.assertRegex(text, r"(?m)^arena +\d+ bytes at most, for all of N=0\.\.96;")
        for rows in ("0x8", "96x8"):
            self.kiln("run", model, "--shape", "N=0..96", "--shape", f"x={rows}", "--random", "1", "--quiet")
        self.assertIn("f32[N", self.kiln("info", model, "--shape", "N=0..96"))

    def test_sizes_that_shrink(self):
        """The most bytes of an expression need not be those of the upper bounds."""
        model = self.write("rest.kiln", """graph @rest(%x: f32[64], %y: f32[N]) {
  %s = shape(%y) : i64[1]
  %end = const @end : i64[1]
  %r = slice(%x, %s, %end) : f32[64-N]
  %e = exp(%r) : f32[64-N]
  %z = softmax(%e) {axis=0} : f32[64-N]
  return %z
}
constants { @end = [64] : i64[1] }
""")
        buffers = self.check(model, "--shape", "N=20..40", "--pipeline", "none")["buffers"]
        self.assertEqual([(b["bytes"], b["size"]) for b in buffers if b["kind"] == "buffer"], [("-4*N+256", 192)] * 2)

    def fails_beside_output(self, message, *arguments):
        self.assertIn(message, self.kiln_err(*arguments, status=FAILED))

    def test_models_that_are_compiled_for_each_shape(self):
        model = self.write("values.kiln", "graph @f(%x: f32[N], %s: i64[1]) {\n  %y = reshape(%x, %s) : f32[?]\n  %z = exp(%y) : f32[?]\n"
                                          "  return %z\n}\n")
        self.fails(FAILED, "input x: its shape is open: give --shape x=", "memory", model)

    def test_models(self):
        if not (SHARED / "models").is_dir():
            self.skipTest("no models beside the source tree")
        for path in sorted((SHARED / "models").glob("*/model.onnx")):
            document = self.check(path)
            self.assertEqual(document["arena"], document["lb_live"], path)
            self.assertLessEqual(document["plan_ms"], 50, path)
            self.kiln("opt", path, "--stage", "ir", "-o", "ir.kiln")
            self.check_against_text(document, (self.dir / "ir.kiln").read_text(encoding="utf-8"))

    def test_text(self):
        text = self.kiln("memory", MODEL)
        for word in ("arena", "lb_live", "lb_node", "sum", "efficiency"):
            self.assertRegex(text, rf"(?m)^{word} ")
        self.assertEqual(len(self.kiln("memory", MODEL, "--quiet").splitlines()), 7)
        document = self.json("memory", MODEL, "--json")
        self.assertEqual(len(text.splitlines()), 9 + len(document["buffers"]))
        self.assertRegex(text, rf"(?m)^peak +step {document['peak']['step']}, {re.escape(document['peak']['instr'])} \(")

    def test_who_waits_at_the_peak(self):
        model = self.write("waits.kiln", """func @f {
  input @x : f32[64]
  output @y : f32[64]
  %a = alloc : f32[64]
  exp @out %a, @in @x
  %b = alloc : f32[64]
  relu @out %b, @in @x
  %c = alloc : f32[64]
  neg @out %c, @in %b
  dealloc %b
  add @out @y, @in %a, @in %c
  dealloc %a
  dealloc %c
}
""")
        document = self.check(model, "--pipeline", "none")
        self.assertEqual((document["lb_node"], document["lb_live"]), (512, 768))
        self.assertEqual((document["peak"]["instr"], document["peak"]["waiting"]), ("c", ["a"]))
        self.assertIn("also live: a\n", self.kiln("memory", model, "--pipeline", "none"))

    def test_inputs_and_outputs(self):
        document = self.check(MODEL, "--io")
        steps = max(b["last_use"] for b in document["buffers"])
        kinds = {b["kind"]: b for b in document["buffers"]}
        self.assertEqual(kinds["input"]["def"], 0)
        self.assertEqual(kinds["output"]["last_use"], steps)
        self.assertGreaterEqual(document["lb_live"], self.check(MODEL)["lb_live"])
        self.assertEqual({b["kind"] for b in self.check(MODEL)["buffers"]} & {"input", "output"}, set())


class Limit(CliTest):
    def excess(self, limit, *arguments):
        result = self.start("memory", MODEL, "--limit", limit, "--json", *arguments)
        self.assertEqual(result.returncode, FAILED)
        self.assertIn(f"expected an arena of at most {limit} bytes, the plan needs", result.stderr)
        document = json.loads(result.stdout)
        self.assertEqual((document["limit"]["bytes"], document["limit"]["fits"]), (limit, False))
        sizes = {b["name"]: b["size"] for b in document["buffers"]}
        return document, [sizes[name] for name in document["limit"]["do_not_fit"]]

    def test_met(self):
        arena = self.json("memory", MODEL, "--json")["arena"]
        document = self.json("memory", MODEL, "--json", "--limit", arena)
        self.assertEqual(document["limit"], {"bytes": arena, "fits": True, "proven": True, "do_not_fit": []})
        self.assertNotIn("limit", self.json("memory", MODEL, "--json"))
        self.excess(0)

    def test_what_does_not_fit(self):
        whole = self.json("memory", MODEL, "--json")["arena"]
        for limit in (64, whole // 3 // 64 * 64, whole - 64):
            document, sizes = self.excess(limit)
            self.assertTrue(document["limit"]["proven"])
            self.assertGreater(sum(sizes), limit)
            self.assertLessEqual(sum(sizes) - min(sizes), limit, "none could be left out")
            self.assertLessEqual(set(document["limit"]["do_not_fit"]), set(document["peak"]["buffers"]))

    def test_message(self):
        document = self.json("memory", MODEL, "--json")
        result = self.start("memory", MODEL, "--limit", document["arena"] - 64)
        self.assertEqual(result.returncode, FAILED)
        self.assertIn(f"most lives at {document['peak']['instr']} (", result.stderr)
        self.assertIn("together do not fit:", result.stderr)
        self.assertIn(b"lb_live", result.stdout, "the plan is shown all the same")
        self.fails(USAGE, "--limit: expected a number of bytes, found -1", "memory", MODEL, "--limit=-1")


class Files(CliTest):
    def test_csv(self):
        self.kiln("memory", MODEL, "--csv", "plan.csv")
        rows = (self.dir / "plan.csv").read_text().splitlines()
        buffers = self.json("memory", MODEL, "--json")["buffers"]
        self.assertEqual(rows[0], "id,lower,upper,size")
        self.assertEqual(rows[1:], [f"{i},{b['def']},{b['last_use'] + 1},{b['size']}" for i, b in enumerate(buffers)])

    def test_svg(self):
        self.kiln("memory", MODEL, "--svg", "plan.svg")
        root = xml.etree.ElementTree.parse(self.dir / "plan.svg").getroot()
        self.assertTrue(root.tag.endswith("svg"))
        titles = [element.text for element in root.iter() if element.tag.endswith("title")]
        buffers = self.json("memory", MODEL, "--json")["buffers"]
        self.assertEqual(titles, [f"{b['name']}: {b['size']} bytes at {b['offset']}, steps {b['def']} to {b['last_use']}"
                                  for b in buffers if b["size"]])

    def test_names_are_escaped(self):
        model = self.write("odd.kiln", 'graph @odd(%x: f32[4]) {\n  %"<&>" = exp(%x) : f32[4]\n  %y = matmul(%"<&>", %"<&>") : f32[]\n'
                                       '  return %y\n}\n')
        self.kiln("memory", model, "--svg", "plan.svg", "--pipeline", "none")
        text = (self.dir / "plan.svg").read_text()
        self.assertIn("&lt;&amp;&gt;", text)
        xml.etree.ElementTree.fromstring(text)

    def test_unwritable(self):
        for option in ("--svg", "--csv"):
            self.fails(FAILED, "/nonexistent/f: cannot be written: No such file or directory", "memory", MODEL, option,
                       "/nonexistent/f")
            self.fails(FAILED, f"{self.dir}: cannot be written: Is a directory", "memory", MODEL, option, self.dir)
        self.assertEqual(self.files(), [])

    def test_no_model(self):
        self.fails(FAILED, "no.onnx: cannot be read: No such file or directory", "memory", "no.onnx")


if __name__ == "__main__":
    main()
