#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes DIR/model.onnx with external weights of N bytes (default 1 GiB) in DIR/weights.bin.

The model is a chain of 16 MatMul nodes with square f32 weights, x[1,W] -> y[1,W]; W = 4096 for
1 GiB. It shows that loading a model maps its weights and neither reads nor copies them. The bytes
are written, not a hole in the file; no two rows or layers are alike, so that nothing is merged; and
the weights are scaled so that a run stays finite. Same N, same bytes. Standard library only: the
few protobuf messages needed are encoded here, by the field numbers of onnx.proto.
"""

import argparse
import array
import math
import random
import sys
from pathlib import Path

LAYERS = 16
F32_BYTES = 4
ALIGN = 4096  # external data begins at a page, so that it can be mapped
FLOAT, EXTERNAL = 1, 1  # TensorProto.DataType, TensorProto.DataLocation
BLOCK_FLOATS = 65521  # a prime: repeats of the block never line up with rows


def varint(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field, value):
    return varint(field << 3) + varint(value)


def chunk(field, value):
    """A string, bytes or an encoded message."""
    data = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(data)) + data


def value_info(name, width):
    dims = b"".join(chunk(1, number(1, dim)) for dim in (1, width))
    tensor_type = number(1, FLOAT) + chunk(2, dims)
    return chunk(1, name) + chunk(2, chunk(1, tensor_type))


def external_tensor(name, width, offset):
    entries = {"location": "weights.bin", "offset": str(offset),
               "length": str(width * width * F32_BYTES)}
    body = number(1, width) + number(1, width) + number(2, FLOAT) + chunk(8, name)
    for key, value in entries.items():
        body += chunk(13, chunk(1, key) + chunk(2, value))
    return body + number(14, EXTERNAL)


def matmul(layer, source, target):
    return (chunk(1, source) + chunk(1, f"w{layer}") + chunk(2, target) +
            chunk(3, f"matmul{layer}") + chunk(4, "MatMul"))


def model(width, stride):
    names = ["x"] + [f"h{layer}" for layer in range(1, LAYERS)] + ["y"]
    graph = b"".join(chunk(1, matmul(layer, names[layer], names[layer + 1]))
                     for layer in range(LAYERS))
    graph += chunk(2, "big")
    graph += b"".join(chunk(5, external_tensor(f"w{layer}", width, layer * stride))
                      for layer in range(LAYERS))
    graph += chunk(11, value_info("x", width)) + chunk(12, value_info("y", width))
    opset = chunk(1, "") + number(2, 13)
    return number(1, 7) + chunk(2, "tests/models/make_big.py") + chunk(7, graph) + chunk(8, opset)


def write_weights(path, width, stride):
    """Every layer is the same block of random floats over and over, begun at a place of its own."""
    rng = random.Random(1)
    deviation = 1.0 / math.sqrt(width)
    block = array.array("f", (rng.gauss(0.0, deviation) for _ in range(BLOCK_FLOATS)))
    if sys.byteorder == "big":
        block.byteswap()
    repeated = memoryview((block * 3).tobytes())
    period = len(block) * F32_BYTES
    with open(path, "wb") as file:
        for layer in range(LAYERS):
            begin = layer * 4099 * F32_BYTES % period
            left = width * width * F32_BYTES
            while left > 0:
                size = min(left, 2 * period)
                file.write(repeated[begin:begin + size])
                left -= size
            file.write(bytes((layer + 1) * stride - file.tell()))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dir", type=Path, metavar="DIR", help="made if absent")
    parser.add_argument("--bytes", type=int, default=1 << 30, metavar="N",
                        help="size of weights.bin: the nearest squares below, filled up to pages")
    options = parser.parse_args()
    width = math.isqrt(max(options.bytes, 0) // (LAYERS * F32_BYTES))
    if width < 1:
        parser.error(f"--bytes: expected at least {LAYERS * F32_BYTES}, found {options.bytes}")
    stride = -(-width * width * F32_BYTES // ALIGN) * ALIGN

    options.dir.mkdir(parents=True, exist_ok=True)
    weights, onnx = options.dir / "weights.bin", options.dir / "model.onnx"
    write_weights(weights, width, stride)
    onnx.write_bytes(model(width, stride))
    print(f"{onnx}: {onnx.stat().st_size} bytes, {LAYERS} MatMul of f32[{width},{width}]")
    print(f"{weights}: {weights.stat().st_size} bytes")


if __name__ == "__main__":
    main()
