# SPDX-License-Identifier: Apache-2.0
"""ImageDecoder: formats, pixel formats, pictures whose size the data decide, and damaged ones."""
import base64
import struct
import unittest
import zlib

import onnx_writer as onnx
from harness import FAILED, CliTest, main

# 9 by 7 pixels of red 200, green 100 and blue 50.
JPEG = base64.b64decode(
    "/9j/2wBDAAIBAQEBAQIBAQECAgICAgQDAgICAgUEBAMEBgUGBgYFBgYGBwkIBgcJBwYGCAsICQoKCgoKBggLDAsKDAkKCgr/2wBDAQICAgICAgUDAwUKBwYHCgoKCgoK"
    "CgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgr/wAARCAAHAAkDASIAAhEBAxEB/8QAFQABAQAAAAAAAAAAAAAAAAAAAAX/xAAUEAEA"
    "AAAAAAAAAAAAAAAAAAAA/8QAFAEBAAAAAAAAAAAAAAAAAAAACP/EABQRAQAAAAAAAAAAAAAAAAAAAAD/2gAMAwEAAhEDEQA/AJ4Armw//9k=")
JPEG2000 = base64.b64decode(
    "/0//UQAvAAAAAAAJAAAABwAAAAAAAAAAAAAACQAAAAcAAAAAAAAAAAADBwEBBwEBBwEB/1IADAAAAAEAAAQEAAH/XAAEQED/ZAAlAAFDcmVhdGVkIGJ5IE9wZW5KUEVHIHZl"
    "cnNpb24gMi41LjD/kAAKAAAAAABIAAH/k8+0SBQAXK/5s3gAAYSEYgSMJCX/f8PnGBFQVKONSUAAAYSEv8+0TBFQVK/5s3gAAYSEvq6gAABhIR//2Q==")
WEBP = base64.b64decode("UklGRh4AAABXRUJQVlA4TBEAAAAvCIABAAdQsiJXpv+BiOh/AAA=")
# 3 by 2 pixels.
RGB = bytes([255, 0, 0, 0, 255, 0, 0, 0, 255, 10, 20, 30, 200, 100, 50, 255, 255, 255])
GRAY = bytes((19595 * r + 38470 * g + 7471 * b + 0x8000) >> 16 for r, g, b in zip(RGB[::3], RGB[1::3], RGB[2::3]))
BGR = bytes(c for i in range(0, 18, 3) for c in RGB[i:i + 3][::-1])


def png(width, height, depth, kind, rows, palette=b""):
    def part(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
    packed = zlib.compress(b"".join(b"\0" + row for row in rows))
    return (b"\x89PNG\r\n\x1a\n" + part(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, kind, 0, 0, 0)) +
            (part(b"PLTE", palette) if palette else b"") + part(b"IDAT", packed) + part(b"IEND", b""))


def bmp(bits, rows, width=3, height=2, palette=b"", masks=()):
    """@rows from the bottom, each padded here to four bytes."""
    body = b"".join(row + bytes(-len(row) % 4) for row in rows)
    extra = struct.pack(f"<{len(masks)}I", *masks) + palette
    head = struct.pack("<IiiHHIIiiII", 40, width, height, 1, bits, 3 if masks else 0, len(body), 0, 0, len(palette) // 4, 0)
    return struct.pack("<2sIHHI", b"BM", 54 + len(extra) + len(body), 0, 0, 54 + len(extra)) + head + extra + body


def tiff(data=RGB, width=3, height=2):
    entries = [(256, 3, 1, width), (257, 3, 1, height), (258, 3, 3, 8 + 2 + 10 * 12 + 4), (259, 3, 1, 1), (262, 3, 1, 2),
               (273, 4, 1, 8 + 2 + 10 * 12 + 4 + 6), (277, 3, 1, 3), (278, 3, 1, height), (279, 4, 1, len(data)), (284, 3, 1, 1)]
    return (struct.pack("<2sHI", b"II", 42, 8) + struct.pack("<H", len(entries)) + b"".join(struct.pack("<HHII", *e) for e in entries) +
            struct.pack("<I", 0) + struct.pack("<HHH", 8, 8, 8) + data)


def model(pixel_format="RGB", length="n"):
    attribute = onnx.chunk(1, "pixel_format") + onnx.chunk(4, pixel_format) + onnx.number(20, 3)
    return onnx.model([onnx.node("ImageDecoder", ["x"], ["y"], attributes=[attribute])], [onnx.value("x", onnx.UINT8, [length])],
                      [onnx.value("y", onnx.UINT8, ["h", "w", "c"])], opset=20)


def rows(data, n):
    return [data[i:i + n] for i in range(0, len(data), n)]


class Pictures(CliTest):
    def setUp(self):
        super().setUp()
        for name in ("RGB", "BGR", "Grayscale"):
            self.write(f"{name}.onnx", model(name))

    def run_on(self, picture, pixel_format="RGB", *options):
        self.write("x.pb", onnx.tensor("x", onnx.UINT8, [len(picture)], picture))
        return ("run", f"{pixel_format}.onnx", "-i", "x=x.pb", "-o", "out", "--npy", "--quiet", *options)

    def decode(self, picture, pixel_format="RGB", *options):
        """The shape and the bytes of the result."""
        self.kiln(*self.run_on(picture, pixel_format, *options))
        data = (self.dir / "out/output_0.npy").read_bytes()
        end = 10 + int.from_bytes(data[8:10], "little")
        shape = data[:end].split(b"(")[1].split(b")")[0]
        return tuple(int(n) for n in shape.split(b",") if n.strip()), data[end:]

    def test_pixel_formats(self):
        picture = b"P6 3 2 255\n" + RGB
        self.assertEqual(self.decode(picture), ((2, 3, 3), RGB))
        self.assertEqual(self.decode(picture, "BGR"), ((2, 3, 3), BGR))
        self.assertEqual(self.decode(picture, "Grayscale"), ((2, 3, 1), GRAY))
        for options in (["--backend", "ref"], ["--pipeline", "none"], ["--runs", "3"], ["--poison"]):
            self.assertEqual(self.decode(picture, "BGR", *options), ((2, 3, 3), BGR))

    def test_png(self):
        line = rows(RGB, 9)
        alpha = [b"".join(row[i:i + 3] + bytes([7]) for i in (0, 3, 6)) for row in line]
        deep = [b"".join(bytes([c, 99]) for c in row) for row in line]
        colors = sorted(set(rows(RGB, 3)))
        indices = [bytes(colors.index(p) for p in rows(row, 3)) for row in line]
        for picture in (png(3, 2, 8, 2, line), png(3, 2, 8, 6, alpha), png(3, 2, 16, 2, deep),
                        png(3, 2, 8, 3, indices, b"".join(colors))):
            self.assertEqual(self.decode(picture), ((2, 3, 3), RGB))
        gray = b"".join(bytes([g]) * 3 for g in GRAY)
        self.assertEqual(self.decode(png(3, 2, 8, 0, rows(GRAY, 3))), ((2, 3, 3), gray))
        self.assertEqual(self.decode(png(3, 1, 1, 0, [b"\xa0"]), "Grayscale"), ((1, 3, 1), b"\xff\0\xff"))

    def test_portable_maps(self):
        numbers = " ".join(map(str, RGB)).encode()
        self.assertEqual(self.decode(b"P3\n# a comment\n3 2\n255\n" + numbers), ((2, 3, 3), RGB))
        self.assertEqual(self.decode(b"P6 3 2 65535\n" + b"".join(bytes([c, c]) for c in RGB)), ((2, 3, 3), RGB))
        self.assertEqual(self.decode(b"P2 3 1 4 0 2 4", "Grayscale"), ((1, 3, 1), b"\0\x80\xff"))
        self.assertEqual(self.decode(b"P5 3 1 255\n\1\2\3", "Grayscale"), ((1, 3, 1), b"\1\2\3"))
        self.assertEqual(self.decode(b"P1 3 2 010 1 0 1", "Grayscale"), ((2, 3, 1), b"\xff\0\xff\0\xff\0"))
        self.assertEqual(self.decode(b"P4 9 1\n\x40\x80", "Grayscale"), ((1, 9, 1), b"\xff\0" + b"\xff" * 6 + b"\0"))

    def test_bitmaps(self):
        up = rows(BGR, 9)[::-1]
        four = [b"".join(p + b"\0" for p in rows(row, 3)) for row in up]
        masked = [b"".join(bytes([0, p[2], p[1], p[0]]) for p in rows(row, 3)) for row in up]
        for picture in (bmp(24, up), bmp(24, up[::-1], height=-2), bmp(32, four), bmp(32, masked, masks=(0xFF00, 0xFF0000, 0xFF000000))):
            self.assertEqual(self.decode(picture), ((2, 3, 3), RGB))
        palette = b"\3\2\1\0\x1e\x14\x0a\0"
        both = bytes([1, 2, 3, 10, 20, 30])
        self.assertEqual(self.decode(bmp(8, [b"\0\1"], 2, 1, palette)), ((1, 2, 3), both))
        self.assertEqual(self.decode(bmp(4, [b"\x01"], 2, 1, palette)), ((1, 2, 3), both))
        self.assertEqual(self.decode(bmp(1, [b"\x40"], 2, 1, palette)), ((1, 2, 3), both))
        self.assertEqual(self.decode(bmp(16, [struct.pack("<HH", 0x7C00, 0x03FF)], 2, 1)), ((1, 2, 3), bytes([255, 0, 0, 0, 255, 255])))

    def test_libraries(self):
        """Formats whose libraries may be missing: then the error names them."""
        for name, picture, expected in (("JPEG", JPEG, ((7, 9, 3), bytes([200, 100, 50]) * 63)),
                                        ("JPEG 2000", JPEG2000, ((7, 9, 3), bytes([200, 100, 50]) * 63)),
                                        ("WebP", WEBP, ((7, 9, 3), bytes([200, 100, 50]) * 63)), ("TIFF", tiff(), ((2, 3, 3), RGB))):
            result = self.start(*self.run_on(picture))
            if result.returncode:
                self.assertIn(f"this build of Kiln has no decoder for {name} pictures", result.stderr)
                continue
            shape, pixels = self.decode(picture)
            self.assertEqual(shape, expected[0])
            self.assertLessEqual(max(abs(a - b) for a, b in zip(pixels, expected[1])), 2)

    def test_what_is_no_picture_has_no_pixels(self):
        for data in (b"?", b"P6 3", b"P9 3 2 255\n", b"P6 0 2 255\n" + RGB, b"BM" + bytes(60), b"\x89PNG\r\n\x1a\n"):
            self.assertEqual(self.decode(data), ((0, 0, 3), b""))

    def test_damage(self):
        """Cut off anywhere, and with each byte changed, a picture gives pixels, none, or an error."""
        for picture in (png(3, 2, 8, 2, rows(RGB, 9)), bmp(24, rows(BGR, 9)), b"P6 3 2 255\n" + RGB, JPEG, JPEG2000, WEBP, tiff()):
            step = max(1, len(picture) // 12)
            for i in range(1, len(picture), step):
                for damaged in (picture[:i], picture[:i] + bytes([picture[i] ^ 0xFF]) + picture[i + 1:]):
                    result = self.start(*self.run_on(damaged))
                    self.assertIn(result.returncode, (0, FAILED), result.stderr)
        self.fails(FAILED, "the picture is damaged, or of a kind that is not supported", *self.run_on(b"P6 3 2 255\n" + RGB[:-1]))
        self.fails(FAILED, "the picture has more than 2^28 pixels", *self.run_on(b"P6 65536 65536 255\n" + RGB))

    def test_programs_are_for_all_pictures(self):
        for length in ("n", 29):
            self.write("m.onnx", model("RGB", length))
            self.kiln("compile", "m.onnx", "-o", "m.kiln-program")
            for picture in (b"P6 3 2 255\n" + RGB, b"P6 6 1 255\n" + RGB):
                self.assertEqual(len(picture), 29)
                self.write("x.pb", onnx.tensor("x", onnx.UINT8, [29], picture))
                self.kiln("run", "m.kiln-program", "-i", "x=x.pb", "-o", "out", "--npy", "--quiet")
                self.assertEqual((self.dir / "out/output_0.npy").read_bytes()[-18:], RGB)

    def test_what_follows_is_shaped_by_the_picture(self):
        self.write("mean.kiln", """graph @mean(%x: u8[n]) {
  %size = image_size(%x) : i64[2]
  %y = image_decoder(%x, %size) : u8[?,?,3]
  %f = cast(%y) {to=f32}
  %t = transpose(%f) {perm=[2,0,1]}
  %axes = const @axes : i64[2]
  %m = reduce_mean(%t, %axes) {keepdims=false} : f32[3]
  return %m
}
constants { @axes = [1,2] : i64[2] }
""")
        for picture in (b"P6 3 2 255\n" + RGB, b"P6 1 1 255\n\1\2\3"):
            self.write("x.pb", onnx.tensor("x", onnx.UINT8, [len(picture)], picture))
            self.kiln("run", "mean.kiln", "-i", "x=x.pb", "-o", "out", "--npy", "--quiet")
            data = (self.dir / "out/output_0.npy").read_bytes()[-12:]
            pixels = picture.split(b"255\n", 1)[1]
            for c, found in enumerate(struct.unpack("<3f", data)):
                self.assertAlmostEqual(found, sum(pixels[c::3]) / len(pixels[c::3]), places=3)


if __name__ == "__main__":
    main()
