# SPDX-License-Identifier: Apache-2.0
"""Tensors in files, through kiln run: .pb, .npy, .png, .pgm, .ppm, whole and broken."""
import struct
import unittest
import zlib

import onnx_writer as onnx
from harness import FAILED, RELU, UNSUPPORTED, USAGE, CliTest, floats, main, npy, picture_model


def png(width, height, color, rows, depth=8):
    """A PNG without filters; color 0 is grey, 2 is RGB, 4 is grey with alpha, 6 is RGB with alpha."""
    def part(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    raw = b"".join(b"\0" + row for row in rows)
    return (b"\x89PNG\r\n\x1a\n" + part(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, 0)) +
            part(b"IDAT", zlib.compress(raw)) + part(b"IEND", b""))


class Reader(CliTest):
    """Runs a model that returns its (non-negative) input."""

    def read(self, shape, file, *options):
        model = self.write("picture.kiln", picture_model(shape))
        self.kiln("run", model, "-i", f"image={file}", "-o", "out", *options)
        data = (self.dir / "out/output_0.pb").read_bytes()
        n = 1
        for dim in shape.split(","):
            n *= int(dim)
        start = data.index(b"\x4a", data.index(b"out") + 3)  # field 9, raw_data, stands last
        payload = data[len(data) - 4 * n:]
        self.assertLess(start, len(data) - 4 * n + 1)
        return struct.unpack(f"<{n}f", payload)

    def near(self, found, expected):
        self.assertEqual(len(found), len(expected))
        for a, b in zip(found, expected):
            self.assertAlmostEqual(a, b, places=5)


class NumPy(Reader):
    def test_versions(self):
        for version in (1, 2):
            self.write("x.npy", npy("<f4", (2, 3), floats(1, 2, 3, 4, 5, 6), version=version))
            self.near(self.read("2,3", "x.npy"), [1, 2, 3, 4, 5, 6])

    def test_fortran_order(self):
        self.write("x.npy", npy("<f4", (2, 3), floats(1, 4, 2, 5, 3, 6), fortran=True))
        self.near(self.read("2,3", "x.npy"), [1, 2, 3, 4, 5, 6])
        self.write("x.npy", npy("<f4", (2, 1, 2, 2), floats(0, 4, 2, 6, 1, 5, 3, 7), fortran=True))
        self.near(self.read("2,1,2,2", "x.npy"), range(8))
        self.write("x.npy", npy("<f4", (4,), floats(1, 2, 3, 4), fortran=True))
        self.near(self.read("4", "x.npy"), [1, 2, 3, 4])

    def test_rank_zero_and_one(self):
        model = self.write("s.kiln", "graph @s(%x: f32[]) {\n  %y = relu(%x) : f32[]\n  return %y\n}\n")
        self.write("x.npy", npy("<f4", (), floats(3)))
        self.assertIn("y: f32[] min 3 max 3 mean 3", self.kiln("run", model, "-i", "x=x.npy"))
        self.write("x.npy", npy("<f4", (4,), floats(1, 2, 3, 4)))
        self.near(self.read("4", "x.npy"), [1, 2, 3, 4])

    def test_element_types(self):
        for descr, dtype, size in (("<f4", "f32", 4), ("<f8", "f64", 8), ("<f2", "f16", 2), ("|i1", "i8", 1), ("<i2", "i16", 2),
                                   ("<i4", "i32", 4), ("<i8", "i64", 8), ("|u1", "u8", 1), ("<u2", "u16", 2), ("<u4", "u32", 4),
                                   ("<u8", "u64", 8), ("|b1", "bool", 1)):
            model = self.write("same.kiln", f"graph @same(%x: {dtype}[3]) {{\n  %y = identity(%x) : {dtype}[3]\n  return %y\n}}\n")
            self.write("x.npy", npy(descr, (3,), bytes(3 * size)))
            self.assertIn(f"y: {dtype}[3] min 0 max 0 mean 0", self.kiln("run", model, "-i", "x=x.npy"))

    def test_broken(self):
        good = npy("<f4", (2, 3), floats(*range(6)))
        model = self.write("relu.kiln", RELU)
        for content, message in (
                (b"", "expected a NumPy file of version 1 or 2"),
                (b"hello, I am no array", "expected a NumPy file of version 1 or 2"),
                (good[:9], "expected a NumPy file of version 1 or 2"),
                (good[:20], "the header is cut off"),
                (good[:-1], "x.npy: "),
                (good + b"\0", "x.npy: "),
                (good.replace(b"\x01\x00", b"\x09\x00", 1), "expected a NumPy file of version 1 or 2"),
                (npy(">f4", (2, 3), bytes(24)), "expected little-endian numbers"),
                (npy("<c8", (2, 3), bytes(48)), "expected little-endian numbers"),
                (npy("<f4", (1,) * 9, bytes(4)), "a shape of at most 8 dims"),
                (npy("<f4", (1 << 62, 1 << 62), b""), "expected a static shape of less than 2^63 bytes"),
                (npy("<f4", (1 << 62, 1 << 62), b"", fortran=True), "expected a static shape of less than 2^63 bytes"),
                (npy("<f4", (-2, 3), bytes(24)), "x.npy: "),
                (good.replace(b"(2, 3)", b"(2,\xe0\xd3)"), "found {'descr': '<f4'")):
            self.write("x.npy", content)
            self.fails(FAILED, ("x.npy: ", message), "run", model, "-i", "x=x.npy")


class Protobuf(Reader):
    def test_raw_and_typed_fields(self):
        self.write("x.pb", onnx.float_tensor("x", (2, 3), [1, 2, 3, 4, 5, 6]))
        self.near(self.read("2,3", "x.pb"), [1, 2, 3, 4, 5, 6])
        typed = onnx.number(1, 2) + onnx.number(1, 3) + onnx.number(2, onnx.FLOAT) + onnx.chunk(4, floats(1, 2, 3, 4, 5, 6))
        self.write("x.pb", typed)
        self.near(self.read("2,3", "x.pb"), [1, 2, 3, 4, 5, 6])

    def test_broken(self):
        model = self.write("relu.kiln", RELU)
        good = onnx.float_tensor("x", (2, 3), [1, 2, 3, 4, 5, 6])
        for content in (b"hello", b"\xff" * 64, good[:-1], good[:5], onnx.float_tensor("x", (2, 3), [1, 2, 3]),
                        onnx.tensor("x", onnx.FLOAT, (-2, 3), bytes(24)),
                        onnx.tensor("x", onnx.FLOAT, (1 << 40, 1 << 40), bytes(24))):
            self.write("x.pb", content)
            result = self.start("run", model, "-i", "x=x.pb")
            self.assertEqual(result.returncode, FAILED, (content, result.stderr))
            self.assertTrue(result.stderr.startswith("kiln run: x.pb: "), result.stderr)
            self.assertNotIn("x.pb: x.pb", result.stderr)
        self.write("x.pb", onnx.tensor("x", 99, (2, 3), bytes(24)))
        self.fails(UNSUPPORTED, ("x.pb: ", "element type 99"), "run", model, "-i", "x=x.pb")


class Pictures(Reader):
    def test_grey_png(self):
        self.write("p.png", png(3, 2, 0, [bytes([0, 51, 255]), bytes([102, 153, 204])]))
        self.near(self.read("1,1,2,3", "p.png"), [0, 0.2, 1, 0.4, 0.6, 0.8])

    def test_ranks(self):
        self.write("p.png", png(3, 2, 0, [bytes([0, 51, 255]), bytes([102, 153, 204])]))
        for shape in ("1,2,3", "2,3", "1,2,3,1"):
            self.near(self.read(shape, "p.png"), [0, 0.2, 1, 0.4, 0.6, 0.8])
        model = self.write("m.kiln", picture_model("6"))
        self.fails(FAILED, ("p.png: expected an input that takes a picture", "found f32[6]"), "run", model, "-i", "image=p.png")
        model = self.write("m.kiln", picture_model("1,2,2,3"))
        self.near(self.read("1,3,2,3", "p.png"), [0, 0.2, 1, 0.4, 0.6, 0.8] * 3)

    def test_rgb_png(self):
        self.write("p.png", png(2, 1, 2, [bytes([255, 0, 51, 0, 102, 255])]))
        self.near(self.read("1,3,1,2", "p.png"), [1, 0, 0, 0.4, 0.2, 1])
        self.write("q.png", png(1, 2, 2, [bytes([255, 0, 51]), bytes([0, 102, 255])]))
        self.near(self.read("1,2,1,3", "q.png"), [1, 0, 0.2, 0, 0.4, 1])  # channels behind the columns
        grey = [0.299 + 0.114 * 0.2, 0.587 * 0.4 + 0.114]
        self.near(self.read("1,1,1,2", "p.png"), grey)

    def test_sixteen_bits_and_alpha(self):
        self.write("p.png", png(2, 1, 0, [struct.pack(">HH", 0x8080, 0xFFFF)], depth=16))
        self.near(self.read("1,1,1,2", "p.png"), [0x80 / 255, 1])
        self.write("p.png", png(2, 1, 4, [bytes([255, 255, 255, 0])]))
        self.near(self.read("1,1,1,2", "p.png"), [1, 0])

    def test_pnm(self):
        for name, content in (("p.pgm", b"P5\n# made by hand\n3 2\n255\n" + bytes([0, 51, 255, 102, 153, 204])),
                              ("p.pgm", b"P2 3 2 5\n0 1 5\n2 3 4\n")):
            self.write(name, content)
            self.near(self.read("1,1,2,3", name), [0, 0.2, 1, 0.4, 0.6, 0.8])
        for content in (b"P6 2 1 255\n" + bytes([255, 0, 51, 0, 102, 255]), b"P3 2 1 5\n5 0 1  0 2 5\n"):
            self.write("p.ppm", content)
            self.near(self.read("1,3,1,2", "p.ppm"), [1, 0, 0, 0.4, 0.2, 1])

    def test_scale_mean_std(self):
        self.write("p.ppm", b"P6 1 1 255\n" + bytes([255, 51, 102]))
        self.near(self.read("1,3,1,1", "p.ppm", "--image-scale", "255"), [255, 51, 102])
        self.near(self.read("1,3,1,1", "p.ppm", "--image-mean", "0.5,0.1,0.2", "--image-std", "0.5,0.1,2"), [1, 1, 0.1])
        self.near(self.read("1,3,1,1", "p.ppm", "--image-mean", "0.1"), [0.9, 0.1, 0.3])

    def test_numbers_per_channel(self):
        self.write("p.png", png(3, 2, 0, [bytes(3), bytes(3)]))
        model = self.write("m.kiln", picture_model("1,1,2,3"))
        for option, what in (("--image-mean", "mean"), ("--image-std", "std")):
            self.fails(USAGE, f"p.png: {what}: expected one number or one per channel (1), found 3",
                       "run", model, "-i", "image=p.png", option, "1,2,3")

    def test_values_of_options(self):
        model = self.write("m.kiln", picture_model("1,3,1,1"))
        for option, value, message in (
                ("--image-scale", "x", "x"), ("--image-scale", "nan", "--image-scale: expected a number, found nan"),
                ("--image-mean", "a,b", "--image-mean: expected numbers with commas, found a,b"),
                ("--image-mean", "", "--image-mean: expected numbers with commas, found "),
                ("--image-mean", "1,2,3,4,5", "--image-mean: expected at most 4 numbers, found 1,2,3,4,5"),
                ("--image-std", "1,0,1", "--image-std: expected non-zero numbers with commas, found 1,0,1")):
            self.fails(USAGE, message, "run", model, option, value)

    def test_wrong_size(self):
        self.write("p.png", png(3, 2, 0, [bytes(3), bytes(3)]))
        model = self.write("m.kiln", picture_model("1,1,28,28"))
        self.fails(FAILED, "p.png: input image: expected f32[1,1,28,28], found f32[1,1,2,3]", "run", model, "-i", "image=p.png")
        model = self.write("m.kiln", picture_model("1,5,2,3,1"))
        self.fails(FAILED, "p.png: expected an input that takes a picture (rank 2 to 4, 1 or 3 channels), found f32[1,5,2,3,1]",
                   "run", model, "-i", "image=p.png")

    def test_open_shape(self):
        model = self.write("m.kiln", picture_model("1,3,H,W"))
        self.write("p.ppm", b"P6 2 1 255\n" + bytes(6))
        self.assertIn("out: f32[1,3,1,2] ", self.kiln("run", model, "-i", "image=p.ppm"))

    def test_broken(self):
        good = png(3, 2, 0, [bytes(3), bytes(3)])
        model = self.write("m.kiln", picture_model("1,1,2,3"))
        for content in (b"", b"GIF89a", good[:8], good[:40], good[:-20], good.replace(b"IDAT", b"IDAX")):
            self.write("p.png", content)
            self.fails(FAILED, "p.png: not a readable PNG: ", "run", model, "-i", "image=p.png")
        for content, message in ((b"", "expected a PGM or PPM picture with at most 255 levels"),
                                 (b"P5", "expected a PGM or PPM picture"), (b"P4 1 1\n0", "expected a PGM or PPM picture"),
                                 (b"P5 3 2 65535\n" + bytes(12), "expected a PGM or PPM picture with at most 255 levels"),
                                 (b"P5 3 2 0\n" + bytes(6), "expected a PGM or PPM picture"),
                                 (b"P5 3 2 255\n" + bytes(5), "the pixels are cut off"),
                                 (b"P2 3 2 255\n1 2 3 4 5", "the pixels are cut off"),
                                 (b"P5 0 2 255\n", "expected 1 to 32768 pixels a side, found 0x2"),
                                 (b"P5 99999 2 255\n", "expected 1 to 32768 pixels a side"),
                                 (b"P5 99999999999999999999 2 255\n", "p.pgm: ")):
            self.write("p.pgm", content)
            self.fails(FAILED, ("p.pgm: ", message), "run", model, "-i", "image=p.pgm")

    def test_memory_is_asked_for_what_the_file_may_hold(self):
        model = self.write("m.kiln", picture_model("1,3,32000,32000"))
        self.write("p.png", png(32000, 32000, 2, [bytes(9)]))
        self.fails(FAILED, "p.png: the pixels are cut off", "run", model, "-i", "image=p.png")
        self.write("p.ppm", b"P6 32000 32000 255\n" + bytes(9))
        self.fails(FAILED, "p.ppm: the pixels are cut off", "run", model, "-i", "image=p.ppm")


if __name__ == "__main__":
    main()
