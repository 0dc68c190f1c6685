# SPDX-License-Identifier: Apache-2.0
"""ImageDecoder: file formats, pixel formats, pictures whose size is known only in the run, and damaged pictures."""
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


def bmp(bits, rows, width=3, height=2, palette=b"", masks=(), runs=b""):
    """@rows from the bottom, each padded here to four bytes; or @runs."""
    body = runs or b"".join(row + bytes(-len(row) % 4) for row in rows)
    extra = struct.pack(f"<{len(masks)}I", *masks) + palette
    head = struct.pack("<IiiHHIIiiII", 40, width, height, 1, bits, 3 if masks else {4: 2, 8: 1}[bits] if runs else 0, len(body), 0, 0, len(palette) // 4, 0)
    return struct.pack("<2sIHHI", b"BM", 54 + len(extra) + len(body), 0, 0, 54 + len(extra)) + head + extra + body


def tiff(data=RGB, width=3, height=2, bits=8, kind=2, samples=3, **tags):
    """A picture of parts @data: strips, planes or tiles. @tags by their number: {"t274": [6]}."""
    parts = data if isinstance(data, list) else [data]
    at = [8 + sum(len(p) + len(p) % 2 for p in parts[:i]) for i in range(len(parts) + 1)]
    where, lengths = (324, 325) if "t322" in tags else (273, 279)
    entries = {256: [width], 257: [height], 258: [bits] * samples, 259: [1], 262: [kind], where: at[:-1], 277: [samples],
               278: [height], lengths: [len(p) for p in parts], 284: [1], **{int(k[1:]): v for k, v in tags.items()}}
    long, behind, head, tail = (where, lengths), at[-1] + 2 + 12 * len(entries) + 4, b"", b""
    for tag, values in sorted(entries.items()):
        raw = struct.pack(f"<{len(values)}{'I' if tag in long else 'H'}", *values)
        place = raw.ljust(4, b"\0") if len(raw) <= 4 else struct.pack("<I", behind + len(tail))
        tail += raw + bytes(len(raw) % 2) if len(raw) > 4 else b""
        head += struct.pack("<HHI", tag, 4 if tag in long else 3, len(values)) + place
    body = b"".join(p + bytes(len(p) % 2) for p in parts)
    return struct.pack("<2sHI", b"II", 42, at[-1]) + body + struct.pack("<H", len(entries)) + head + bytes(4) + tail


def jpeg2000(width=64, height=64, tile=64, components=1, cut=(0, 1, 0, 5, 4, 4, 0, 1), tile_cut=b""):
    """The heads of a picture without data. @cut: COD: precincts, order, layers, colors, levels, block, style, wavelet."""
    def part(marker, data):
        return struct.pack(">HH", marker, len(data) + 2) + data
    kind, layers, colors, levels, across, down, precincts = cut[0], cut[1], cut[2], cut[3], cut[4], cut[5], bytes(cut[8:])
    cod = struct.pack(">BBHBBBBBB", kind, 0, layers, colors, levels, across, down, 0, 1) + precincts
    size = struct.pack(">HIIIIIIIIH", 0, width, height, 0, 0, tile, tile, 0, 0, components) + b"\7\1\1" * components
    quality = b"\x40" + b"\x40" * (3 * levels + 1)
    head = b"\xff\x4f" + part(0xFF51, size) + part(0xFF52, cod) + part(0xFF5C, quality)
    return head + struct.pack(">HHHIBB", 0xFF90, 10, 0, 12 + len(tile_cut) + 3, 0, 1) + tile_cut + b"\xff\x93\0\xff\xd9"


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

    def test_bitmaps_of_runs(self):
        palette = b"".join(bytes([i, i, i, 0]) for i in range(16))
        def gray(bits, runs, width=4, height=2):
            return self.decode(bmp(bits, None, width, height, palette, runs=runs), "Grayscale")[1]
        # Runs, pixels of any color, ends of rows, and what no run reaches.
        self.assertEqual(gray(8, b"\4\5\0\0\0\3\1\2\3\0\0\1"), bytes([1, 2, 3, 0, 5, 5, 5, 5]))
        self.assertEqual(gray(4, b"\4\x56\0\0\0\3\x12\x30\0\1"), bytes([1, 2, 3, 0, 5, 6, 5, 6]))
        # A move, and an end before all rows.
        self.assertEqual(gray(8, b"\1\7\0\2\1\1\2\x09\0\1"), bytes([0, 0, 9, 9, 7, 0, 0, 0]))
        self.assertEqual(gray(8, b"\0\1"), bytes(8))
        # Pixels behind the end of a row are left out; the end of the picture may be missing behind the last row.
        self.assertEqual(gray(8, b"\xff\1\0\0\xff\2"), bytes([2] * 4 + [1] * 4))
        self.assertEqual(gray(4, b"\0\6\x12\x34\x56\0\0\0\4\x77\0\1"), bytes([7] * 4 + [1, 2, 3, 4]))
        for runs in (b"\4\1", b"\4\x10\0\1", b"\0\3\1\2", b"\0\2\1", b"\0\2\0\2\1\1\0\1", b"\0\0\0\0\1\1\0\1"):
            self.fails(FAILED, "found one that is damaged", *self.run_on(bmp(8, None, 4, 2, palette, runs=runs)))
        self.assertEqual(self.decode(bmp(8, None, 4, -2, palette, runs=b"\0\1")), ((0, 0, 3), b""))

    def has(self, name):
        return f"no decoder for {name} pictures" not in self.start(*self.run_on({"TIFF": tiff(), "JPEG 2000": JPEG2000}[name])).stderr

    def test_tiff_kinds(self):
        if not self.has("TIFF"):
            self.skipTest("this build reads no TIFF")
        pixels = rows(RGB, 3)
        planes = [RGB[c::3] for c in range(3)]
        alpha = bytes([0, 1, 128, 255, 200, 7])
        with_alpha = b"".join(p + bytes([a]) for p, a in zip(pixels, alpha))
        deep = b"".join(bytes([c, c]) for c in with_alpha)
        for picture in (tiff(planes, t284=[2]), tiff(b"".join(bytes([c, c]) for c in RGB), bits=16),
                        tiff(with_alpha, samples=4, t338=[2]), tiff(with_alpha, samples=4, t338=[0]), tiff(deep, bits=16, samples=4, t338=[2]),
                        tiff(planes + [alpha], samples=4, t284=[2], t338=[2])):
            self.assertEqual(self.decode(picture), ((2, 3, 3), RGB))
        times = b"".join(bytes([(c * a + 127) // 255 for c in p] + [a]) for p, a in zip(pixels, alpha))
        divided = bytes(min(255, t[c] * 255 // t[3]) if t[3] else 0 for t in rows(times, 4) for c in range(3))
        self.assertEqual(self.decode(tiff(times, samples=4, t338=[1])), ((2, 3, 3), divided))
        self.assertEqual(self.decode(tiff(GRAY, kind=1, samples=1), "Grayscale"), ((2, 3, 1), GRAY))
        self.assertEqual(self.decode(tiff(GRAY, kind=0, samples=1), "Grayscale"), ((2, 3, 1), bytes(255 - g for g in GRAY)))
        self.assertEqual(self.decode(tiff(b"\xa0\x40", kind=0, samples=1, bits=1), "Grayscale"), ((2, 3, 1), b"\0\xff\0\xff\0\xff"))
        colors = sorted(set(pixels))
        table = [c[i] * 257 for i in range(3) for c in colors + [b"\0\0\0"] * (16 - len(colors))]
        index = [colors.index(p) for p in pixels]
        packed = bytes([index[0] << 4 | index[1], index[2] << 4, index[3] << 4 | index[4], index[5] << 4])
        self.assertEqual(self.decode(tiff(packed, kind=3, samples=1, bits=4, t320=table)), ((2, 3, 3), RGB))
        tile = [(RGB[i:i + 9].ljust(48, b"\0")) for i in (0, 9)]
        self.assertEqual(self.decode(tiff([(tile[0] + tile[1]).ljust(768, b"\0")], t322=[16], t323=[16])), ((2, 3, 3), RGB))
        for picture in (tiff(with_alpha, kind=5, samples=4), tiff(RGB, kind=8), tiff(RGB, t339=[2, 2, 2])):
            self.fails(FAILED, "found another kind of picture", *self.run_on(picture))

    def test_tiff_orientations(self):
        if not self.has("TIFF"):
            self.skipTest("this build reads no TIFF")
        p = rows(RGB, 3)  # 0 1 2, 3 4 5
        turned = {1: "012 345", 2: "210 543", 3: "543 210", 4: "345 012", 5: "03 14 25", 6: "30 41 52", 7: "52 41 30", 8: "25 14 03"}
        for orientation, text in turned.items():
            lines = text.split()
            expected = b"".join(p[int(i)] for i in text.replace(" ", ""))
            self.assertEqual(self.decode(tiff(t274=[orientation])), ((len(lines), len(lines[0]), 3), expected))

    def test_heads_that_ask_for_much(self):
        """The memory limit holds for pictures, and for what a library takes."""
        many = [b"P6 16000 16000 255\n", bmp(24, rows(BGR, 9), 16000, 16000), bmp(8, None, 16000, 16000, bytes(1024), runs=b"\0\1"),
                png(16000, 16000, 8, 2, [])]
        for picture in many + [tiff(width=16000, height=16000), JPEG.replace(b"\0\7\0\x09\3", b"\x3e\x80\x3e\x80\3")]:
            result = self.start(*self.run_on(picture, "RGB", "--memory-limit", "64M"))
            if "no decoder for" not in result.stderr:
                self.assertEqual(result.returncode, FAILED)
                self.assertIn("memory limit: expected at most 67108864 bytes", result.stderr)
        if not self.has("JPEG 2000"):
            return
        self.fails(FAILED, "memory limit", *self.run_on(jpeg2000(16000, 16000, 16000), "RGB", "--memory-limit", "64M"))
        override = struct.pack(">HHBBHBBBBBB", 0xFF52, 12, 0, 0, 60000, 0, 32, 4, 4, 0, 1)
        for picture in (jpeg2000(2000, 2000, 10), jpeg2000(components=16000), jpeg2000(cut=(0, 65535, 0, 32, 4, 4, 0, 1)),
                        jpeg2000(2000, 2000, 2000, cut=(1, 1, 0, 0, 4, 4, 0, 1, 0)), jpeg2000(2000, 2000, 2000, cut=(0, 1, 0, 5, 0, 0, 0, 1)),
                        jpeg2000(tile_cut=override)):
            self.fails(FAILED, "expected a picture that takes up to 40 bytes a pixel, found one that takes more", *self.run_on(picture))
        self.fails(FAILED, "found one that is damaged", *self.run_on(jpeg2000()[:-6]))

    def test_libraries(self):
        """The libraries of some formats may be missing. The error names the one that is missing."""
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
        """A picture is cut off at each byte, and each byte is changed. The result is pixels, no pixels, or an error."""
        for picture in (png(3, 2, 8, 2, rows(RGB, 9)), bmp(24, rows(BGR, 9)), b"P6 3 2 255\n" + RGB, JPEG, JPEG2000, WEBP, tiff()):
            step = max(1, len(picture) // 12)
            for i in range(1, len(picture), step):
                for damaged in (picture[:i], picture[:i] + bytes([picture[i] ^ 0xFF]) + picture[i + 1:]):
                    result = self.start(*self.run_on(damaged))
                    self.assertIn(result.returncode, (0, FAILED), result.stderr)
        self.fails(FAILED, "image_decoder): expected a whole picture, found one that is damaged", *self.run_on(b"P6 3 2 255\n" + RGB[:-1]))
        self.fails(FAILED, "image_size): expected a picture of at most 2^28 pixels, found more", *self.run_on(b"P6 65536 65536 255\n" + RGB))

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
