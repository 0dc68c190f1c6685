# SPDX-License-Identifier: Apache-2.0
"""Strings in models, tensors and programs."""
import onnx_writer as onnx
from harness import FAILED, MISMATCH, UNSUPPORTED, CliTest, main, npy

MODEL = r"""graph @f(%x: string[N]) {
  %w = const @w : string[]
  %p = const @p : string[2]
  %j = string_concat(%x, %w) : string[N]
  %c = string_concat(%p, %w) : string[2]
  %m = regex_full_match(%x) {pattern="[a-z]+"} : bool[N]
  return %j, %c, %m
}
constants {
  @w = ["!"] : string[]
  @p = ["é\n", ""] : string[2]
}
"""
PARTS = """graph @f(%x: string[2]) {
  %p, %n = string_split(%x) {delimiter=","} : string[2,?], i64[2]
  return %p, %n
}
"""
NUMBERS = """graph @f(%x: string[2]) {
  %y = cast(%x) {to=f32} : f32[2]
  return %y
}
"""


def wide(width, *texts):
    """Elements of NumPy's type '<U'."""
    return b"".join(text.ljust(width, "\0").encode("utf-32-le") for text in texts)


def texts_tensor(name, dims, *texts):
    return b"".join(onnx.number(1, dim) for dim in dims) + onnx.number(2, onnx.STRING) \
        + b"".join(onnx.chunk(6, text) for text in texts) + onnx.chunk(8, name)


class Strings(CliTest):
    def setUp(self):
        super().setUp()
        self.write("m.kiln", MODEL)
        self.write("x.npy", npy("<U3", (2,), wide(3, "abc", "ä1")))

    def test_numpy_of_characters_and_bytes(self):
        out = self.kiln("run", "m.kiln", "-i", "x=x.npy", "-o", "out")
        self.assertIn('j: string[2]\n       0  "abc!"\n       1  "ä1!"\n', out)
        self.assertIn(r'c: string[2]' + '\n' + r'       0  "é\n!"', out)
        self.write("b.npy", npy("|S4", (2,), b"abc\0" + "ä1".encode() + b"\0"))
        self.assertEqual(self.kiln("run", "m.kiln", "-i", "x=b.npy"), out)

    def test_numpy_round_trip(self):
        self.kiln("run", "m.kiln", "-i", "x=x.npy", "--dump-values", "out", "--pipeline", "none")
        data = next(path for path in (self.dir / "out").rglob("*-j.npy")).read_bytes()
        self.assertIn(b"'descr': '<U4'", data)
        self.assertTrue(data.endswith(wide(4, "abc!", "ä1!")))

    def test_damaged_numpy(self):
        self.write("bad.npy", npy("|S1", (1,), b"\xff"))
        self.fails(FAILED, "expected UTF-8, found other bytes in element 0", "run", "m.kiln", "-i", "x=bad.npy")
        self.write("bad.npy", npy("<U1", (1,), b"\0\xd8\0\0"))
        self.fails(FAILED, "expected characters, found 0xd800", "run", "m.kiln", "-i", "x=bad.npy")
        self.write("bad.npy", npy("<U2", (2,), wide(2, "a")))
        self.fails(FAILED, "expected 2 strings of 8 bytes, found 8 bytes", "run", "m.kiln", "-i", "x=bad.npy")

    def test_tensor_of_onnx(self):
        self.write("x.pb", texts_tensor("x", [2], "abc", "ä1"))
        self.assertEqual(self.kiln("run", "m.kiln", "-i", "x=x.pb"), self.kiln("run", "m.kiln", "-i", "x=x.npy"))

    def test_expected_strings(self):
        self.kiln("run", "m.kiln", "-i", "x=x.npy", "-o", "out")
        for backend in ("cpu", "ref"):
            for pipeline in ("default", "none"):
                self.kiln("run", "m.kiln", "-i", "x=x.npy", "--expect", "out", "--backend", backend, "--pipeline", pipeline)
        self.write("y.npy", npy("<U3", (2,), wide(3, "abc", "b")))
        message = self.kiln_err("run", "m.kiln", "-i", "x=y.npy", "--expect", "out", status=MISMATCH)
        self.assertIn('1 of 2 strings differ, the first is element 1: expected "ä1!", found "b!"', message)

    def test_random_words(self):
        one = self.kiln("run", "m.kiln", "--shape", "x=2", "--random", "1")
        self.assertEqual(one, self.kiln("run", "m.kiln", "--shape", "x=2", "--random", "1"))
        self.assertNotEqual(one, self.kiln("run", "m.kiln", "--shape", "x=2", "--random", "2"))
        self.kiln("run", "m.kiln", "--shape", "x=2", "--random", "1", "--poison")
        self.kiln("compare", "m.kiln", "--shape", "x=2", "--pipeline", "none", "--pipeline", "default")

    def test_programs(self):
        plain = self.kiln("run", "m.kiln", "-i", "x=x.npy")
        self.kiln("compile", "m.kiln", "-o", "open.kiln-program")
        self.assertEqual(self.kiln("run", "open.kiln-program", "-i", "x=x.npy"), plain)
        self.kiln("compile", "m.kiln", "--shape", "x=2", "-o", "m.kiln-program")
        self.assertEqual(self.kiln("run", "m.kiln-program", "-i", "x=x.npy"), plain)
        self.kiln("compile", "m.kiln", "--shape", "x=2", "-o", "again.kiln-program")
        self.assertEqual((self.dir / "m.kiln-program").read_bytes(), (self.dir / "again.kiln-program").read_bytes())

    def test_optimized_text_and_onnx(self):
        plain = self.kiln("run", "m.kiln", "-i", "x=x.npy")
        for stage in ("graph", "ir"):
            self.kiln("opt", "m.kiln", "--shape", "x=2", "--stage", stage, "-o", "o.kiln")
            self.assertEqual(self.kiln("run", "o.kiln", "-i", "x=x.npy"), plain)
        text = self.kiln("opt", "m.kiln")
        self.assertIn('["é\\n!", "!"] : string[2]', text)  # folded
        self.kiln("opt", "m.kiln", "--pipeline", "none", "--emit", "onnx", "-o", "m.onnx")
        self.assertEqual(self.kiln("run", "m.onnx", "-i", "x=x.npy"), plain)

    def test_json(self):
        document = self.json("run", "m.kiln", "-i", "x=x.npy", "--json")
        self.assertEqual(document["outputs"][0]["first"], ["abc!", "ä1!"])

    def test_zero_bytes(self):
        """A zero byte does not end a string."""
        self.write("x.pb", texts_tensor("x", [2], "a\0b", "\0"))
        self.write("x.npy", npy("<U3", (2,), wide(3, "a\0b", "c")))
        self.write("b.npy", npy("|S3", (2,), b"a\0bc\0\0"))
        document = self.json("run", "m.kiln", "-i", "x=x.pb", "--json", "-o", "out")
        self.assertEqual(document["outputs"][0]["first"], ["a\0b!", "\0!"])
        self.assertIn(b"a\0b!", (self.dir / "out/output_0.pb").read_bytes())
        for name in ("x.npy", "b.npy"):
            document = self.json("run", "m.kiln", "-i", f"x={name}", "--json", "--npy", "-o", "out")
            self.assertEqual(document["outputs"][0]["first"], ["a\0b!", "c!"])
            self.assertTrue((self.dir / "out/output_0.npy").read_bytes().endswith(wide(4, "a\0b!", "c!")))
        self.write("i.kiln", "graph @f(%x: string[2]) {\n  %y = identity(%x) : string[2]\n  return %y\n}\n")
        self.fails(UNSUPPORTED, "NumPy has no strings that end with a zero byte, as element 1 does", "run", "i.kiln", "-i",
                   "x=x.pb", "--npy", "-o", "out")

    def test_parts(self):
        self.write("p.kiln", PARTS)
        self.write("x.npy", npy("<U5", (2,), wide(5, "a,b,c", "")))
        out = self.kiln("run", "p.kiln", "-i", "x=x.npy")
        self.assertIn('p: string[2,3]\n       0  "a"\n       1  "b"\n       2  "c"\n       3  ""\n       4  ""\n  and 1 more', out)

    def test_strings_that_are_no_numbers(self):
        self.write("n.kiln", NUMBERS)
        self.write("x.npy", npy("<U4", (2,), wide(4, "1e3", "-inf")))
        self.assertIn("y: f32[2]", self.kiln("run", "n.kiln", "-i", "x=x.npy"))
        self.write("x.npy", npy("<U4", (2,), wide(4, "1e3", "one")))
        self.fails(FAILED, "y (cast): a string is not a number", "run", "n.kiln", "-i", "x=x.npy")


if __name__ == "__main__":
    main()
