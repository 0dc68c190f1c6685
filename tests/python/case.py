# SPDX-License-Identifier: Apache-2.0
"""What the tests of the Python package share. The environment says where the package is (PYTHONPATH)."""
import os
import pathlib
import sys
import unittest

SKIPPED = 77
SOURCE = pathlib.Path(os.environ.get("KILN_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
SHARED = pathlib.Path(os.environ.get("KILN_SHARED_DIR") or "/nonexistent")
DIGITS = SOURCE / "examples/digits/digits.onnx"
SEVEN = SOURCE / "examples/digits/seven.png"


def skip_all(reason):
    print(f"skipped: {reason}")
    sys.exit(SKIPPED)


try:
    import numpy as np
    import kiln_nn
except ImportError as problem:
    skip_all(problem)


def text_model(text, name="case.kiln"):
    return kiln_nn.load(text.encode(), name=name)


def session_of(text, **options):
    return text_model(text).compile(**options).session()


def unary(op, dtype="f32", dims="N"):
    return f"graph @f(%x: {dtype}[{dims}]) {{\n  %y = {op}(%x) : {dtype}[{dims}]\n  return %y\n}}\n"


ADD = """graph @add(%x: f32[2,3], %y: f32[2,3]) {
  %z = add(%x, %y) : f32[2,3]
  return %z
}
"""
OPEN = """graph @open(%x: f32[N,3], %y: f32[N,3]) {
  %z = add(%x, %y) : f32[N,3]
  return %z
}
"""


def seven():
    return digit(SEVEN)


def digit(path):
    """The picture of a digit as an array, decoded from its PNG by hand: 8 bits of gray, one image chunk."""
    import struct
    import zlib
    data, at, packed = pathlib.Path(path).read_bytes(), 8, b""
    while at < len(data):
        size, = struct.unpack(">I", data[at:at + 4])
        if data[at + 4:at + 8] == b"IDAT":
            packed += data[at + 8:at + 8 + size]
        at += size + 12
    rows, width = zlib.decompress(packed), 28
    picture = np.zeros((28, width), np.int32)
    for y in range(28):
        kind, row = rows[y * (width + 1)], rows[y * (width + 1) + 1:(y + 1) * (width + 1)]
        for x in range(width):
            left = picture[y, x - 1] if x else 0
            up = picture[y - 1, x] if y else 0
            corner = picture[y - 1, x - 1] if x and y else 0
            guess = int(left) + int(up) - int(corner)
            paeth = min((left, up, corner), key=lambda side: abs(guess - int(side)))
            add = (0, left, up, (int(left) + int(up)) // 2, paeth)[kind]
            picture[y, x] = (row[x] + int(add)) % 256
    return (picture / 255).astype(np.float32).reshape(1, 1, 28, 28)


def main():
    unittest.main(verbosity=2)
