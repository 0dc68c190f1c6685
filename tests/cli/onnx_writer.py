# SPDX-License-Identifier: Apache-2.0
"""Writes ONNX models and TensorProtos for tests: the few protobuf messages that they need, by the field numbers of
onnx.proto. Standard library only."""
import struct

FLOAT, UINT8, INT8, INT32, INT64, STRING, BOOL, DOUBLE = 1, 2, 3, 6, 7, 8, 9, 11


def varint(value):
    value &= (1 << 64) - 1
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


def tensor(name, dtype, dims, raw):
    return b"".join(number(1, dim) for dim in dims) + number(2, dtype) + chunk(8, name) + chunk(9, raw)


def float_tensor(name, dims, values):
    return tensor(name, FLOAT, dims, struct.pack(f"<{len(values)}f", *values))


def value(name, dtype, dims):
    """A ValueInfoProto; a dim is a number or a name."""
    encoded = b"".join(chunk(1, chunk(2, dim) if isinstance(dim, str) else number(1, dim)) for dim in dims)
    return chunk(1, name) + chunk(2, chunk(1, number(1, dtype) + chunk(2, encoded)))


def node(op, inputs, outputs, name="", domain="", attributes=()):
    body = b"".join(chunk(1, text) for text in inputs) + b"".join(chunk(2, text) for text in outputs)
    body += chunk(3, name) + chunk(4, op) + b"".join(chunk(5, attribute) for attribute in attributes)
    return body + (chunk(7, domain) if domain else b"")


def int_attribute(name, integer):
    return chunk(1, name) + number(3, integer) + number(20, 2)


def ints_attribute(name, integers):
    return chunk(1, name) + b"".join(number(8, integer) for integer in integers) + number(20, 7)


def graph_attribute(name, nodes, outputs):
    """A subgraph, for If."""
    body = b"".join(chunk(1, encoded) for encoded in nodes) + chunk(2, name)
    return chunk(1, name) + chunk(6, body + b"".join(chunk(12, encoded) for encoded in outputs)) + number(20, 5)


def model(nodes, inputs, outputs, initializers=(), opset=13, domains=()):
    graph = b"".join(chunk(1, encoded) for encoded in nodes) + chunk(2, "test")
    graph += b"".join(chunk(5, encoded) for encoded in initializers)
    graph += b"".join(chunk(11, encoded) for encoded in inputs) + b"".join(chunk(12, encoded) for encoded in outputs)
    body = number(1, 8) + chunk(7, graph) + chunk(8, chunk(1, "") + number(2, opset))
    return body + b"".join(chunk(8, chunk(1, domain) + number(2, 1)) for domain in domains)
