# SPDX-License-Identifier: Apache-2.0
"""Models in 16-bit floats are as near to the exact result as their output can be: passes that merge constants round none of
them to 16 bits. The exact result is that of the same numbers in f64."""
import math
import re
import struct
import unittest

from harness import CliTest, main

# Written once: TYPE is f16 and, for the exact result, f64. Constants are f16 in both.
NORMALIZE = """  %n = batch_normalization(%c, %s, %h, %m, %v) : TYPE[{0}]
  %s = f16[{1}] uniform 0.5, 2
  %h = f16[{1}] normal 1
  %m = f16[{1}] normal 1
  %v = f16[{1}] uniform 0.5, 2
"""
MODELS = {
    "conv": ("1,16,16,16", """  %w = f16[32,16,3,3] normal 0.1
  %b = f16[32] normal 0.5
  %c = conv(%x, %w, %b) : TYPE[1,32,14,14]
""" + NORMALIZE.format("1,32,14,14", 32)),
    "conv_transpose": ("1,16,16,16", """  %w = f16[16,16,2,2] normal 0.1
  %c = conv_transpose(%x, %w) {group=2, strides=[2,2]} : TYPE[1,32,32,32]
""" + NORMALIZE.format("1,32,32,32", 32)),
    "matmul": ("128,64", """  %w = f16[64,96] normal 0.1
  %c = matmul(%x, %w) : TYPE[128,96]
""" + NORMALIZE.format("128,96", 96)),
    "gemm": ("128,64", """  %w = f16[96,64] normal 0.1
  %b = f16[96] normal 0.5
  %c = gemm(%x, %w, %b) {transB=true} : TYPE[128,96]
""" + NORMALIZE.format("128,96", 96)),
    "arithmetic": ("1,16,16,16", """  %w = f16[32,16,3,3] normal 0.1
  %k = f16[32,1,1] uniform 0.5, 2
  %a = f16[32,1,1] normal 1
  %d = f16[32,1,1] uniform 0.5, 2
  %c = conv(%x, %w) : TYPE[1,32,14,14]
  %t = mul(%c, %k) : TYPE[1,32,14,14]
  %u = add(%t, %a) : TYPE[1,32,14,14]
  %n = div(%u, %d) : TYPE[1,32,14,14]
"""),
    "arithmetic_behind_norm": ("1,32,16,16", """  %c = relu(%x) : TYPE[1,32,16,16]
""" + NORMALIZE.format("1,32,16,16", 32).replace("%n =", "%t =") + """  %k = f16[32,1,1] uniform 0.5, 2
  %a = f16[32,1,1] normal 1
  %u = mul(%t, %k) : TYPE[1,32,16,16]
  %n = add(%u, %a) : TYPE[1,32,16,16]
"""),
    "bias": ("1,16,16,16", """  %w = f16[32,16,3,3] normal 0.01
  %b = f16[32] normal 0.1
  %a = f16[1,32,1,1] normal 0.1
  %c = conv(%x, %w, %b) : TYPE[1,32,14,14]
  %n = add(%c, %a) : TYPE[1,32,14,14]
"""),
    "layer_norm": ("64,96", """  %s = f16[96] uniform 0.5, 2
  %b = f16[96] normal 1
  %k = f16[96] uniform 0.5, 2
  %a = f16[96] normal 1
  %c = layer_normalization(%x, %s, %b) : TYPE[64,96]
  %t = mul(%c, %k) : TYPE[64,96]
  %n = add(%t, %a) : TYPE[64,96]
"""),
}


def model(shape, body, dtype):
    """The text of the model in f16 or f64: its input is f16, its output of @dtype."""
    constants, nodes, literals = [], [], []
    for line in body.splitlines():
        literal = re.fullmatch(r"  %(\w+) = f16\[([\d,]+)\] (\w+) (.*)", line)
        if not literal:
            nodes.append(line.replace("TYPE", dtype).replace("%x", "%x0"))
            continue
        name, dims, kind, numbers = literal.groups()
        numbers = "low={}, high={}".format(*numbers.split(", ")) if kind == "uniform" else f"std={numbers}"
        literals.append(f"  @{name} = random_{kind}(seed={len(literals) + 1}, {numbers}) : f16[{dims}]")
        stored = name if dtype == "f16" else f"{name}_16"
        constants.append(f"  %{stored} = const @{name} : f16[{dims}]")
        if dtype != "f16":
            constants.append(f"  %{name} = cast(%{stored}) {{to={dtype}}} : {dtype}[{dims}]")
    constants.append(f"  %x0 = cast(%x) {{to={dtype}}} : {dtype}[{shape}]" if dtype != "f16" else
                     f"  %x0 = identity(%x) : f16[{shape}]")
    return "\n".join([f"graph @f(%x: f16[{shape}]) {{", *constants, *nodes, "  return %n", "}", "constants {", *literals, "}", ""])


def half(number):
    return struct.unpack("<e", struct.pack("<e", number))[0]


def distance(numbers, exact):
    """Root of the mean square of what @numbers are away from @exact."""
    return math.sqrt(sum((a - b) ** 2 for a, b in zip(numbers, exact)) / len(exact))


class Halves(CliTest):
    def result(self, file, *options):
        self.kiln("run", file, "--random", "1", "--quiet", "--npy", "-o", "out", *options)
        data = (self.dir / "out/output_0.npy").read_bytes()
        header = data[10:10 + struct.unpack("<H", data[8:10])[0]].decode()
        letter = {"<f2": "e", "<f8": "d"}[re.search(r"'descr': '([^']*)'", header).group(1)]
        payload = data[10 + len(header):]
        return struct.unpack(f"<{len(payload) // struct.calcsize(letter)}{letter}", payload)

    def test_nothing_is_rounded_but_the_output(self):
        for name, (shape, body) in MODELS.items():
            wide = self.write(f"{name}_f64.kiln", model(shape, body, "f64"))
            narrow = self.write(f"{name}.kiln", model(shape, body, "f16"))
            exact = self.result(wide, "--pipeline", "none", "--backend", "ref")
            least = distance([half(number) for number in exact], exact)
            for options in (), ("--pipeline", "own"), ("--pipeline", "glow"), ("--prefer", "memory"):
                found = distance(self.result(narrow, *options), exact)
                self.assertLessEqual(found, 1.05 * least, (name, options))

    def test_memory(self):
        """Weights of a convolution that take a scale up are f32 then; they stay in 16 bits where memory is preferred."""
        shape, body = MODELS["conv"]
        file = self.write("conv.kiln", model(shape, body, "f16"))
        stored = lambda *options: re.findall(r"(?m)^  @w\w* = .*: (\w+)\[32,16,3,3\]$", self.kiln("opt", file, *options))
        self.assertEqual(stored(), ["f32"])
        self.assertEqual(stored("--prefer", "memory"), ["f16"])


if __name__ == "__main__":
    main()
