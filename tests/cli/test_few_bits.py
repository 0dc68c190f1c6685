# SPDX-License-Identifier: Apache-2.0
"""Numbers of 8 bits and fewer: weights that lie packed in files, and arrays of ml_dtypes."""
import struct

from harness import CliTest, floats, main, npy

ROWS, COLUMNS, BLOCK = 256, 96, 32
# A product with a weight of 4 bits, which has a scale for each block of rows.
PRODUCT = f"""graph @f(%x: f32[2,{ROWS}]) {{
  %w = const @w : i4[{ROWS},{COLUMNS}]
  %s = const @s : f32[{ROWS // BLOCK},{COLUMNS}]
  %d = dequantize_linear(%w, %s) {{axis=0, block_size={BLOCK}}} : f32[{ROWS},{COLUMNS}]
  %y = matmul(%x, %d) : f32[2,{COLUMNS}]
  return %y
}}
constants {{
  @w = file("w.bin", 3, {ROWS * COLUMNS // 2}) : i4[{ROWS},{COLUMNS}]
  @s = file("s.bin", 0, {ROWS // BLOCK * COLUMNS * 4}) : f32[{ROWS // BLOCK},{COLUMNS}]
}}
"""
# The same weight, moved and read in parts.
MOVED = f"""graph @f(%x: f32[{COLUMNS},4]) {{
  %w = const @w : i4[{ROWS},{COLUMNS}]
  %b = const @b : i64[1]
  %e = const @e : i64[1]
  %a = const @a : i64[1]
  %p = slice(%w, %b, %e, %a) : i4[4,{COLUMNS}]
  %t = transpose(%p) : i4[{COLUMNS},4]
  %c = cast(%t) : f32[{COLUMNS},4]
  %y = add(%c, %x) : f32[{COLUMNS},4]
  return %y, %w
}}
constants {{
  @w = file("w.bin", 3, {ROWS * COLUMNS // 2}) : i4[{ROWS},{COLUMNS}]
  @a = [0] : i64[1]
  @b = [8] : i64[1]
  @e = [12] : i64[1]
}}
"""


def nibbles(packed):
    for byte in packed:
        for code in (byte & 15, byte >> 4):
            yield code - 16 if code > 7 else code


class PackedWeights(CliTest):
    def setUp(self):
        super().setUp()
        packed = bytes((37 * i + i // 7) & 255 for i in range(ROWS * COLUMNS // 2))
        self.weights = list(nibbles(packed))
        self.scales = [(1 + i % 5) / 8 for i in range(ROWS // BLOCK * COLUMNS)]
        self.x = [(i % 7 - 3) / 4 for i in range(2 * ROWS)]
        self.write("w.bin", b"abc" + packed)
        self.write("s.bin", floats(*self.scales))
        self.write("x.npy", npy("<f4", (2, ROWS), floats(*self.x)))

    def expected(self):
        for row in range(2):
            for c in range(COLUMNS):
                yield sum(self.x[row * ROWS + r] * self.weights[r * COLUMNS + c] * self.scales[r // BLOCK * COLUMNS + c]
                          for r in range(ROWS))

    def test_products(self):
        """Every sum is exact, so that all ways have the same bits."""
        self.write("want/output_0.npy", npy("<f4", (2, COLUMNS), floats(*self.expected())))
        model = self.write("product.kiln", PRODUCT)
        for options in ((), ("--backend", "ref"), ("--pipeline", "none"), ("--prefer", "memory"), ("--threads", "1")):
            self.kiln("run", model, "-i", "x=x.npy", "--expect", "want", "--rtol", "0", "--atol", "0", *options)
        self.kiln("opt", model, "-o", "again.kiln", "--pipeline", "none")
        again = (self.dir / "again.kiln").read_text(encoding="utf-8")
        self.assertRegex(again, rf'@w = file\("again.kiln.bin", \d+, {ROWS * COLUMNS // 2}\) : i4\[{ROWS},{COLUMNS}\]')
        self.kiln("run", "again.kiln", "-i", "x=x.npy", "--expect", "want", "--rtol", "0", "--atol", "0")

    def test_programs(self):
        """Half a byte an element in the file."""
        self.write("want/output_0.npy", npy("<f4", (2, COLUMNS), floats(*self.expected())))
        self.kiln("compile", self.write("product.kiln", PRODUCT), "-o", "product.kiln-program", "--no-offload")
        self.kiln("run", "product.kiln-program", "-i", "x=x.npy", "--expect", "want", "--rtol", "0", "--atol", "0")
        self.kiln("compile", "product.kiln", "-o", "none.kiln-program", "--pipeline", "none")
        self.kiln("run", "none.kiln-program", "-i", "x=x.npy", "--expect", "want", "--rtol", "0", "--atol", "0")
        size = (self.dir / "none.kiln-program").stat().st_size
        self.assertLess(size, ROWS * COLUMNS)

    def test_export(self):
        self.write("want/output_0.npy", npy("<f4", (2, COLUMNS), floats(*self.expected())))
        self.kiln("opt", self.write("product.kiln", PRODUCT), "--pipeline", "none", "--emit", "onnx", "-o", "product.onnx")
        self.assertLess((self.dir / "product.onnx").stat().st_size, ROWS * COLUMNS)
        self.kiln("run", "product.onnx", "-i", "x=x.npy", "--expect", "want", "--rtol", "0", "--atol", "0")

    def test_packed_products(self):
        """They are exported as operators of ONNX itself, for any size of blocks. Weights of two products are written once."""
        for bits, block, depth, zeros in ((2, 4, 10, True), (2, 12, 30, False), (4, 4, 11, True), (4, 12, 32, False),
                                          (4, 32, 20, True), (8, 3, 7, True), (8, 16, 32, False)):
            columns, blocks = 5, -(-depth // block)
            row = -(-blocks * bits // 8)
            points = f"u8[{columns},{row}]"
            weights = f"u8[{columns},{blocks},{block * bits // 8}]"
            literals = [(13 * i + i // 3) & 255 for i in range(columns * blocks * block * bits // 8)]
            attrs = f"{{K={depth}, N={columns}, bits={bits}, block_size={block}}}"
            model = self.write("packed.kiln", f"""graph @f(%x: f32[3,{depth}], %c: f32[{columns}]) {{
  %w = const @w : {weights}
  %s = const @s : f32[{columns},{blocks}]
  {f"%z = const @z : {points}" if zeros else ""}
  %a = matmul_nbits(%x, %w, %s, {"%z" if zeros else "_"}, %c) {attrs} : f32[3,{columns}]
  %b = matmul_nbits(%x, %w, %s{", %z" if zeros else ""}) {attrs} : f32[3,{columns}]
  return %a, %b
}}
constants {{
  @w = {literals} : {weights}
  @s = {[2.0 ** (i % 3 - 1) for i in range(columns * blocks)]} : f32[{columns},{blocks}]
  {f"@z = {[(37 * i + 5) & 255 for i in range(columns * row)]} : {points}" if zeros else ""}
}}
""")
            self.write("x.npy", npy("<f4", (3, depth), floats(*((i % 7 - 3) / 4 for i in range(3 * depth)))))
            self.write("c.npy", npy("<f4", (columns,), floats(*range(columns))))
            inputs = ("-i", "x=x.npy", "-i", "c=c.npy")
            self.kiln("run", model, *inputs, "--backend", "ref", "--pipeline", "none", "-o", f"want{bits}x{block}")
            self.kiln("opt", model, "--pipeline", "none", "--emit", "onnx", "-o", "packed.onnx")
            text = self.kiln("opt", "packed.onnx", "--pipeline", "none")
            self.assertNotIn("matmul_nbits", text)
            self.assertEqual(text.count("= dequantize_linear("), 1, text)
            for options in ((), ("--backend", "ref", "--pipeline", "none")):
                self.kiln("run", "packed.onnx", *inputs, "--expect", f"want{bits}x{block}", "--rtol", "0", "--atol", "0", *options)

    def test_movement(self):
        zeros = bytes(4 * COLUMNS * 4)
        self.write("x.npy", npy("<f4", (COLUMNS, 4), zeros))
        part = [self.weights[(8 + r) * COLUMNS + c] for c in range(COLUMNS) for r in range(4)]
        self.write("want/output_0.npy", npy("<f4", (COLUMNS, 4), floats(*part)))
        self.write("want/output_1.npy", npy("int4", (ROWS, COLUMNS), bytes(w & 15 for w in self.weights)))
        model = self.write("moved.kiln", MOVED)
        for options in ((), ("--backend", "ref"), ("--pipeline", "none"), ("--passes", "fold-slices-into-constants,dce")):
            self.kiln("run", model, "-i", "x=x.npy", "--expect", "want", "--rtol", "0", "--atol", "0", *options)


class Arrays(CliTest):
    def test_names_of_ml_dtypes(self):
        """An element is the low bits of a byte."""
        for descr, dtype, codes, values in (
                ("float8_e4m3fn", "f8e4m3fn", b"\x7e\x38\x81", (448, 1, -2 ** -9)),
                ("float8_e4m3fnuz", "f8e4m3fnuz", b"\x7f\x40\x81", (240, 1, -2 ** -10)),
                ("float8_e5m2", "f8e5m2", b"\x7b\x3c\x81", (57344, 1, -2 ** -16)),
                ("float8_e5m2fnuz", "f8e5m2fnuz", b"\x7f\x40\x81", (57344, 1, -2 ** -17)),
                ("float8_e8m0fnu", "f8e8m0", b"\x7f\x80\x00", (1, 2, 2 ** -127)),
                ("float6_e2m3fn", "f6e2m3", b"\x1f\x08\x21", (7.5, 1, -0.125)),
                ("float6_e3m2fn", "f6e3m2", b"\x1f\x0c\x21", (28, 1, -0.0625)),
                ("float4_e2m1fn", "f4e2m1", b"\x07\x02\x09", (6, 1, -0.5)),
                ("int4", "i4", b"\x07\x08\xff", (7, -8, -1)), ("uint4", "u4", b"\x0f\x01\xf8", (15, 1, 8)),
                ("int2", "i2", b"\x01\x02\x03", (1, -2, -1)), ("uint2", "u2", b"\x03\x00\xfd", (3, 0, 1)),
                ("bfloat16", "bf16", b"\x80\x3f\x00\xc0\x00\x00", (1, -2, 0))):
            model = self.write("same.kiln", f"graph @same(%x: {dtype}[3]) {{\n  %y = cast(%x) : f32[3]\n  return %y, %x\n}}\n")
            self.write("x.npy", npy(descr, (3,), codes))
            self.kiln("run", model, "-i", "x=x.npy", "-o", "out", "--npy")
            self.assertEqual((self.dir / "out/output_0.npy").read_bytes()[-12:], struct.pack("<3f", *values), descr)
            same = (self.dir / "out/output_1.npy").read_bytes()
            self.assertIn(f"'descr': '{descr}'".encode(), same)
            self.assertEqual(same[-len(codes):], codes)


if __name__ == "__main__":
    main()
