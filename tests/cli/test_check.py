# SPDX-License-Identifier: Apache-2.0
"""kiln check: everything that a model asks for and the backend lacks."""
import unittest

import onnx_writer as onnx
from harness import ADD, FAILED, MODEL, OK, UNSUPPORTED, CliTest, main

ODD = onnx.model(
    [onnx.node("Frobnicate", ["x"], ["a"], "first"),
     onnx.node("Relu", ["a"], ["b"], "fine"),
     onnx.node("Frobnicate", ["b"], ["c"], "second", domain="com.example"),
     onnx.node("StringReverse", ["s"], ["t"], "third")],
    [onnx.value("x", onnx.FLOAT, [2, 3]), onnx.value("s", onnx.STRING, [2])],
    [onnx.value("c", onnx.FLOAT, [2, 3]), onnx.value("t", onnx.STRING, [2])], opset=14, domains=["com.example"])


class Check(CliTest):
    def test_supported(self):
        for option in ((), ("--backend", "ref"), ("--backend", "cpu")):
            self.assertRegex(self.kiln("check", MODEL, *option), r"^\S+digits\.onnx: \d+ nodes, 0 not supported\n$")
        self.assertEqual(self.kiln("check", MODEL, "--quiet"), "")

    def test_all_of_them_at_once(self):
        path = self.write("odd.onnx", ODD)
        lines = self.kiln("check", path, status=UNSUPPORTED).splitlines()
        self.assertEqual(len(lines), 4, lines)
        self.assertRegex(lines[0], r"^Frobnicate \(opset 14, f32\) at first: .+")
        self.assertRegex(lines[1], r"^com\.example:Frobnicate \(opset 1, \w+\) at second: .+")
        self.assertRegex(lines[2], r"^StringReverse \(opset 14, string\) at third: .+")
        self.assertRegex(lines[3], r"odd\.onnx: 4 nodes, 3 not supported$")
        self.assertEqual(len(self.kiln("check", path, "-q", status=UNSUPPORTED).splitlines()), 3)

    def test_json(self):
        path = self.write("odd.onnx", ODD)
        unsupported = self.json("check", path, "--json", status=UNSUPPORTED)["unsupported"]
        self.assertEqual([entry["node"] for entry in unsupported], ["first", "second", "third"])
        self.assertEqual([entry["opset"] for entry in unsupported], [14, 1, 14])
        self.assertEqual([entry["op"] for entry in unsupported], ["Frobnicate", "com.example:Frobnicate", "StringReverse"])
        self.assertEqual(unsupported[0]["dtype"], "f32")
        self.assertTrue(all(entry["reason"] for entry in unsupported))
        self.assertEqual(self.json("check", MODEL, "--json")["unsupported"], [])

    def test_what_folding_computes_is_supported(self):
        """NonZero of a constant, or of what shapes decide, is folded; of an input it defines a dim. As in a run."""
        for source in ("%m = const @m : i64[2,2]", "%m = shape(%x) : i64[2]", "%m = cast(%x) {to=i64}"):
            path = self.write("m.kiln", f"""graph @f(%x: f32[2,2]) {{
  {source}
  %n = non_zero(%m)
  %c = cast(%n) {{to=f32}}
  %s = reduce_sum(%c)
  %y = add(%x, %s) : f32[2,2]
  return %y
}}
constants {{ @m = [0, 1, 2, 0] : i64[2,2] }}
""")
            text = self.kiln("check", path)
            self.assertIn("0 not supported", text)
            self.assertEqual(self.start("run", path, "--random", "1").returncode, OK)

    def test_a_line_stays_a_line(self):
        """Names come from the model: control characters must reach neither scripts nor terminals."""
        path = self.write("odd.onnx", onnx.model([onnx.node("A\nB\x1b[31m", ["x"], ["y"], "n\to\n")],
                                                 [onnx.value("x", onnx.FLOAT, [2])], [onnx.value("y", onnx.FLOAT, [2])]))
        lines = self.kiln("check", path, status=UNSUPPORTED).splitlines()
        self.assertEqual(lines[0], r"A\nB\x1b[31m (opset 13, f32) at n\to\n: not known, and no plug-in has it "
                                   "(--load-plugin)")
        self.assertEqual(len(lines), 2)

    def test_text_of_both_levels(self):
        path = self.write("add.kiln", ADD)
        self.assertEqual(self.kiln("check", path), f"{path}: 1 nodes, 0 not supported\n")
        ir = self.write("ir.kiln", self.kiln("opt", path, "--stage", "ir"))
        self.assertEqual(self.kiln("check", ir), f"{ir}: 1 instructions, 0 not supported\n")

    def test_many_branches(self):
        """Each `if` decides on the result of the one before it; all that was computed so far is looked at once."""
        lines = [f"  %c{i} = greater(%s{i}, %zero) : bool[]\n"
                 f"  %s{i + 1} = if(%c{i}) then {{\n    %t{i} = neg(%s{i}) : f32[]\n    return %t{i}\n  }} else {{\n"
                 f"    %e{i} = abs(%s{i}) : f32[]\n    return %e{i}\n  }} : f32[]\n" for i in range(12000)]
        path = self.write("branches.kiln", "graph @f(%s0: f32[]) {\n  %zero = const @zero : f32[]\n" + "".join(lines) +
                          "  return %s12000\n}\nconstants { @zero = [0] : f32[] }\n")
        self.assertEqual(self.start("check", path, "--quiet", timeout=20).returncode, OK)

    def test_no_model(self):
        self.fails(FAILED, "no.onnx: cannot be read: No such file or directory", "check", "no.onnx")
        self.write("cut.onnx", MODEL.read_bytes()[:5000])
        self.fails(FAILED, ("cut.onnx: byte ", "claims"), "check", "cut.onnx")
        self.fails(FAILED, "cut.onnx: byte ", "check", "cut.onnx", "--json")

    def test_opsets_of_tomorrow(self):
        """Operators of an opset that did not exist when Kiln was written are refused, but for who accepts them."""
        path = self.write("new.onnx", onnx.model([onnx.node("Relu", ["x"], ["y"], "r")], [onnx.value("x", onnx.FLOAT, [2])],
                                                 [onnx.value("y", onnx.FLOAT, [2])], opset=99))
        result = self.start("check", path)
        self.assertEqual(result.returncode, UNSUPPORTED)
        self.assertIn(b"Relu (opset 99, f32) at r: opset 99 is newer than those that are known for it: 1 to 28\n",
                      result.stdout)
        result = self.start("check", path, "--accept-newer-opsets")
        self.assertEqual(result.returncode, OK)
        self.assertIn(b"new.onnx: 1 nodes, 0 not supported\n", result.stdout)
        self.assertIn("new.onnx: opset 99 is newer than 28, the newest that is known", result.stderr)
        self.fails(UNSUPPORTED, "opset 99 is newer", "run", path, "--random", "1")
        self.kiln("run", path, "--random", "1", "--accept-newer-opsets")


if __name__ == "__main__":
    main()
