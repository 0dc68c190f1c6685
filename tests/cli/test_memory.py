# SPDX-License-Identifier: Apache-2.0
"""kiln memory: the plan, its bounds, and that both agree with the text that `kiln opt --stage ir` prints."""
import re
import unittest
import xml.etree.ElementTree

from harness import ADD, FAILED, MODEL, OPEN, SHARED, USAGE, CliTest, main

KEYS = ("sum", "lb_node", "lb_live", "arena", "efficiency", "proven_optimal", "plan_ms", "buffers")
BUFFER_KEYS = ("name", "def", "last_use", "size", "offset", "def_instr", "last_instr")
SIZES = {"f32": 4, "f64": 8, "f16": 2, "bf16": 2, "i8": 1, "i16": 2, "i32": 4, "i64": 8, "u8": 1, "u16": 2, "u32": 4, "u64": 8,
         "bool": 1}
NAME = r'"[^"]*"|[\w.]+'
BOOKKEEPING = ("dealloc", "weight", "input", "output", "arena")


def aligned(size):
    return (size + 63) // 64 * 64


def bytes_of(kind):
    dtype, dims = re.match(r"(\w+)\[([\d,]*)\]", kind).groups()
    size = SIZES[dtype]
    for dim in dims.split(",") if dims else []:
        size *= int(dim)
    return size


def lives_of(text):
    """name → [first step, last step, size, offset] of each alloc, from the text of one function alone."""
    lives, origin, step = {}, {}, 0
    for line in text.splitlines():
        words = line.split()
        if not words or words[0] in BOOKKEEPING or not line.startswith("  "):
            continue
        match = re.match(rf"  %({NAME}) = alloc at (\d+) : (\S+)", line)
        if match:
            name = match.group(1).strip('"')
            origin[name] = name
            lives[name] = [None, None, aligned(bytes_of(match.group(3))), int(match.group(2))]
            continue
        match = re.match(rf"  %({NAME}) = view ([%@])({NAME})", line)
        if match:
            source = match.group(3).strip('"')
            origin[match.group(1).strip('"')] = origin.get(source) if match.group(2) == "%" else None
            continue
        for name in re.findall(rf"%({NAME})", line):
            buffer = origin.get(name.strip('"'))
            if buffer:
                lives[buffer][0] = step if lives[buffer][0] is None else lives[buffer][0]
                lives[buffer][1] = step
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
        self.assertLessEqual(document["lb_node"], document["lb_live"])
        self.assertLessEqual(document["lb_live"], document["arena"])
        self.assertLessEqual(document["arena"], max(document["sum"], 0))
        if document["arena"] == document["lb_live"]:
            self.assertTrue(document["proven_optimal"])
        self.assertAlmostEqual(document["efficiency"], document["lb_live"] / document["arena"] if document["arena"] else 1)
        return document

    def check_against_text(self, document, text):
        lives = lives_of(text)
        planned = {b["name"]: [b["def"], b["last_use"], b["size"], b["offset"]] for b in document["buffers"]
                   if not b["name"].startswith("scratch of ")}
        self.assertEqual(planned, lives)
        self.assertIn(f"  arena {document['arena']}\n", text)

    def test_digits(self):
        document = self.check(MODEL)
        self.assertGreater(document["arena"], 0)
        self.check_against_text(document, self.kiln("opt", MODEL, "--stage", "ir", "-o", "/dev/stdout"))

    def test_every_pipeline_and_backend(self):
        for options in (("--pipeline", "none"), ("--pipeline", "debug"), ("--backend", "ref"), ("--threads", "1"),
                        ("--skip", "share-buffers"), ("--bisect-limit", "5"), ("--stop-after", "3"), ("--only", "dce")):
            document = self.check(MODEL, *options)
            self.check_against_text(document, self.kiln("opt", MODEL, "--stage", "ir", "-o", "/dev/stdout", *options))

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
        self.fails(USAGE, "input x: its shape is open: give --shape x=", "memory", model)
        self.check(model, "--shape", "x=4x3", "--shape", "y=4x3")

    def test_models(self):
        if not (SHARED / "models").is_dir():
            self.skipTest("no models beside the source tree")
        for path in sorted((SHARED / "models").glob("*/model.onnx")):
            document = self.check(path)
            self.assertLessEqual(document["arena"], 1.05 * document["lb_live"], path)
            self.kiln("opt", path, "--stage", "ir", "-o", "ir.kiln")
            self.check_against_text(document, (self.dir / "ir.kiln").read_text(encoding="utf-8"))

    def test_text(self):
        text = self.kiln("memory", MODEL)
        for word in ("arena", "lb_live", "lb_node", "sum", "efficiency"):
            self.assertRegex(text, rf"(?m)^{word} ")
        self.assertEqual(len(self.kiln("memory", MODEL, "--quiet").splitlines()), 5)
        document = self.json("memory", MODEL, "--json")
        self.assertEqual(len(text.splitlines()), 7 + len(document["buffers"]))


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
