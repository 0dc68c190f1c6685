# SPDX-License-Identifier: Apache-2.0
"""Inputs and outputs that are sequences, optionals and maps: files, summaries, JSON, comparison, dumps."""
import struct

import onnx_writer as onnx
from harness import FAILED, MISMATCH, USAGE, CliTest, main, npy

PASSED = """graph @f(%s: sequence(f32[?]), %o: optional(i64[2]), %m: map(string,f32), %n: map(i64,i64), %x: f32[2]) {
  %t = sequence_insert(%s, %x) : sequence(f32[?])
  %h = optional_has_element(%o) : bool[]
  %z = zip_map(%x) {classlabels_strings=["no","yes"]} : sequence(map(string,f32))
  %e = sequence_empty() {dtype=f32} : sequence(f32[-])
  return %t, %o, %m, %n, %h, %z, %e
}
"""
POSITIONS = """graph @f(%s: sequence(f32[2]), %i: i64[], %k: i64[], %x: f32[2], %j: i64[]) {
  %a = sequence_at(%s, %i) : f32[2]
  %t = sequence_construct(%x, %x, %x) : sequence(f32[2])
  %b = sequence_erase(%t, %k) : sequence(f32[2])
  %c = sequence_insert(%s, %x, %j) : sequence(f32[2])
  return %a, %b, %c
}
"""
SUMMARY = """t: sequence(f32[2]) of 3
  item 0: f32[2] min 1 max 2 mean 1.5
  item 1: f32[2] min 3 max 4 mean 3.5
  item 2: f32[2] min 5 max 6 mean 5.5
o: optional(i64[2]) min 7 max 8 mean 7.5
m: map(string,f32) {a: 0.1, b: 0.7}
n: map(i64,i64) {-1: 10, 2: 20}
h: bool[] min 1 max 1 mean 1
z: sequence(map(string,f32)) of 1
  item 0: map(string,f32) {no: 5, yes: 6}
e: sequence(f32[-]) of 0
"""


def floats_tensor(*values):
    return onnx.float_tensor("", [len(values)], values)


def scalar(dtype, code, value):
    return onnx.tensor("", dtype, [], struct.pack(f"<{code}", value))


def sequence(*tensors):
    return onnx.chunk(1, "s") + onnx.number(2, 1) + b"".join(onnx.chunk(3, tensor) for tensor in tensors)


def optional(tensor=None):
    return onnx.number(2, 1) + onnx.chunk(3, tensor) if tensor else onnx.number(2, 0)


def text_map(entries):
    keys = b"".join(onnx.chunk(4, key) for key in entries)
    values = sequence(*(scalar(onnx.FLOAT, "f", value) for value in entries.values()))
    return onnx.number(2, onnx.STRING) + keys + onnx.chunk(5, values)


def number_map(entries):
    keys = b"".join(onnx.number(3, key) for key in entries)
    values = sequence(*(scalar(onnx.INT64, "q", value) for value in entries.values()))
    return onnx.number(2, onnx.INT64) + keys + onnx.chunk(5, values)


class Items(CliTest):
    inputs = ("-i", "s=s.pb", "-i", "o=o.pb", "-i", "m=m.pb", "-i", "n=n.pb", "-i", "x=x.npy")

    def setUp(self):
        super().setUp()
        self.write("m.kiln", PASSED)
        self.write("s.pb", sequence(floats_tensor(1, 2), floats_tensor(3, 4)))
        self.write("o.pb", optional(onnx.tensor("", onnx.INT64, [2], struct.pack("<2q", 7, 8))))
        self.write("m.pb", text_map({"a": 0.1, "b": 0.7}))
        self.write("n.pb", number_map({-1: 10, 2: 20}))
        self.write("x.npy", npy("<f4", (2,), struct.pack("<2f", 5, 6)))

    def test_summary(self):
        for pipeline in ("default", "none"):
            self.assertEqual(self.kiln("run", "m.kiln", *self.inputs, "--pipeline", pipeline), SUMMARY)

    def test_long_ones_are_cut(self):
        self.write("s.pb", sequence(*(floats_tensor(i) for i in range(9))))
        self.write("m.pb", text_map({f"k{i}": i for i in range(10)}))
        out = self.kiln("run", "m.kiln", *self.inputs)
        self.assertIn("t: sequence(f32[?]) of 10\n", out)
        self.assertIn("  item 7: f32[1] min 7 max 7 mean 7\n  and 2 more\n", out)
        self.assertIn("k6: 6, k7: 7, and 2 more}", out)

    def test_json(self):
        outputs = {output["name"]: output for output in self.json("run", "m.kiln", *self.inputs, "--json")["outputs"]}
        self.assertEqual(outputs["t"]["type"], "sequence(f32[2])")
        self.assertEqual([item["max"] for item in outputs["t"]["value"]], [2, 4, 6])
        self.assertEqual(outputs["o"]["value"]["mean"], 7.5)
        self.assertAlmostEqual(outputs["m"]["value"]["b"], 0.7, 6)
        self.assertEqual(outputs["n"]["value"], {"-1": 10, "2": 20})
        self.assertEqual(outputs["z"]["value"], [{"no": 5, "yes": 6}])
        self.assertEqual(outputs["e"], {"name": "e", "type": "sequence(f32[-])", "value": []})
        self.write("o.pb", optional())
        outputs = {output["name"]: output for output in self.json("run", "m.kiln", *self.inputs, "--json")["outputs"]}
        self.assertIsNone(outputs["o"]["value"])
        self.assertEqual(outputs["o"]["type"], "optional(i64[2])")

    def test_empty_optional(self):
        self.write("o.pb", optional())
        out = self.kiln("run", "m.kiln", *self.inputs, "-o", "out")
        self.assertIn("o: optional(i64[2]) empty\n", out)
        self.assertIn("h: bool[] min 0", out)
        self.kiln("run", "m.kiln", *self.inputs, "--expect", "out")
        self.write("o.pb", optional(onnx.tensor("", onnx.INT64, [2], bytes(16))))
        message = self.kiln_err("run", "m.kiln", *self.inputs, "--expect", "out", status=MISMATCH)
        self.assertIn("output o against out/output_1.pb: expected an empty optional, found a filled one", message)

    def test_files_round_trip(self):
        self.kiln("run", "m.kiln", *self.inputs, "-o", "out", "--save-inputs", "in")
        again = [part for i, name in enumerate("somn") for part in ("-i", f"{name}=in/input_{i}.pb")]
        self.kiln("run", "m.kiln", *again, "-i", "x=x.npy", "--expect", "out")
        self.kiln("run", "m.kiln", *self.inputs, "-o", "arrays", "--npy")
        self.assertEqual([name for name in self.files() if name.startswith("arrays/")],
                         [f"arrays/output_{i}.{'npy' if i == 4 else 'pb'}" for i in range(7)])

    def test_expect_names_the_item(self):
        self.kiln("run", "m.kiln", *self.inputs, "-o", "out")
        cases = (
            ("s.pb", sequence(floats_tensor(1, 2), floats_tensor(3, 5)),
             "output t against out/output_0.pb: item 1: 1 of 2 elements differ, the first is element 1: expected 4, found 5"),
            ("s.pb", sequence(floats_tensor(1, 2)), "output t against out/output_0.pb: expected 3 items, found 2"),
            ("s.pb", sequence(floats_tensor(1), floats_tensor(3, 4)), "item 0: expected f32[2], found f32[1]"),
            ("m.pb", text_map({"a": 0.1, "b": 0.8}), "output m against out/output_2.pb: values of the map: 1 of 2 elements differ"),
            ("m.pb", text_map({"a": 0.1, "c": 0.7}), 'expected a value of key "b", found none'),
            ("m.pb", text_map({"a": 0.1}), "expected 2 keys, found 1"),
        )
        for name, content, message in cases:
            kept = (self.dir / name).read_bytes()
            self.write(name, content)
            self.assertIn(message, self.kiln_err("run", "m.kiln", *self.inputs, "--expect", "out", status=MISMATCH))
            self.write(name, kept)

    def test_maps_have_no_order(self):
        self.kiln("run", "m.kiln", *self.inputs, "-o", "out")
        self.write("m.pb", text_map({"b": 0.7, "a": 0.1}))
        self.write("n.pb", number_map({2: 20, -1: 10}))
        self.kiln("run", "m.kiln", *self.inputs, "--expect", "out")

    def test_wrong_files(self):
        self.fails(USAGE, "x.npy: expected a .pb file of sequence(f32[?])", "run", "m.kiln", "-i", "s=x.npy", "--random", "1")
        self.fails(FAILED, ("n.pb: byte ", "expected a message"), "run", "m.kiln", "-i", "s=n.pb", "--random", "1")
        self.write("bad.pb", sequence(scalar(onnx.INT64, "q", 1)))
        self.fails(FAILED, "input s: item 0: expected f32[?], found i64[]", "run", "m.kiln", "-i", "s=bad.pb", "--random", "1")
        self.write("bad.pb", (self.dir / "s.pb").read_bytes()[:-1])
        self.fails(FAILED, "bad.pb: byte ", "run", "m.kiln", "-i", "s=bad.pb", "--random", "1")
        self.fails(USAGE, "--range s=0,1: expected an input that is a tensor, found a sequence",
                   "run", "m.kiln", "--random", "1", "--range", "s=0,1")

    def test_random(self):
        one = self.kiln("run", "m.kiln", "--random", "1", "-o", "out")
        self.assertEqual(one, self.kiln("run", "m.kiln", "--random", "1", "--expect", "out"))
        self.assertNotEqual(one, self.kiln("run", "m.kiln", "--random", "2"))
        self.assertRegex(one, r"t: sequence\(f32\[(\d|\?)\]\) of [34]\n")
        self.assertRegex(one, r"m: map\(string,f32\) \{a: \S+, b: ")
        self.assertIn("h: bool[] min 1", one)

    def test_random_positions_are_there(self):
        self.write("p.kiln", POSITIONS)
        for seed in range(8):
            self.kiln("run", "p.kiln", "--random", str(seed))

    def test_dump_and_compare(self):
        self.kiln("run", "m.kiln", *self.inputs, "--dump-values", "a")
        names = [name.split("-", 1)[1] for name in self.files() if name.startswith("a/")]
        for part in ("t.length", "t%5B2%5D", "z%5B0%5D.keys", "output%20m.values", "output%20o%5B0%5D"):
            self.assertIn(f"{part}.npy", names)
        self.write("s.pb", sequence(floats_tensor(1, 2), floats_tensor(3, 5)))
        self.kiln("run", "m.kiln", *self.inputs, "--dump-values", "b")
        self.assertIn("first: t[1]: f32[2]\n  1 of 2 elements differ", self.kiln("compare", "a", "b", status=MISMATCH))
        self.kiln("compare", "m.kiln", *self.inputs)
        self.kiln("compare", "m.kiln", "--random", "3", "--all")

    def test_items_are_no_constants(self):
        for name, found in ("s", "sequence(f32[?])"), ("o", "optional(i64[2])"), ("m", "map(string,f32)"):
            for when in "compile", "run":
                self.assertIn(f"--const: {name}: expected a tensor, found {found}",
                              self.kiln_err("run", "m.kiln", "--random", "1", "--const", f"{when}:{name}", status=USAGE))

    def test_verify(self):
        (self.dir / "case/test_data_set_0").mkdir(parents=True)
        element = onnx.chunk(1, onnx.number(1, onnx.FLOAT) + onnx.chunk(2, onnx.chunk(1, onnx.number(1, 2))))
        typed = onnx.chunk(1, "y") + onnx.chunk(2, onnx.chunk(4, onnx.chunk(1, element)))
        self.write("case/model.onnx", onnx.model([onnx.node("SequenceConstruct", ["a", "b"], ["y"])],
                                                 [onnx.value("a", onnx.FLOAT, [2]), onnx.value("b", onnx.FLOAT, [2])], [typed]))
        self.write("case/test_data_set_0/input_0.pb", floats_tensor(1, 2))
        self.write("case/test_data_set_0/input_1.pb", floats_tensor(3, 4))
        self.write("case/test_data_set_0/output_0.pb", sequence(floats_tensor(1, 2), floats_tensor(3, 4)))
        self.assertIn("PASS case\n", self.kiln("verify", "case"))
        self.write("case/test_data_set_0/output_0.pb", sequence(floats_tensor(1, 2), floats_tensor(3, 5)))
        self.assertIn("FAIL case: output y: item 1: 1 of 2 elements differ", self.kiln("verify", "case", status=FAILED))


if __name__ == "__main__":
    main()
