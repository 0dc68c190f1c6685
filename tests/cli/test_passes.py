# SPDX-License-Identifier: Apache-2.0
"""kiln passes and kiln ops: listings straight from the tables."""
import re
import unittest

from harness import SOURCE, USAGE, CliTest, main


class Passes(CliTest):
    def test_every_row_of_the_table(self):
        table = (SOURCE / "passes/passes.def").read_text(encoding="utf-8")
        rows = [("ir" if kind == "IR" else "graph", name)
                for kind, name in re.findall(r'^(GRAPH|RULES|IR)\(\w+, "([\w-]+)"', table, re.M)]
        text = self.kiln("passes")
        self.assertGreater(len(rows), 10)
        for level, name in rows:
            self.assertRegex(text, rf"(?m)^{level} +(?:[EZUL] |QT|QS) {name} +\w")
        self.assertEqual([(entry["level"], entry["name"]) for entry in self.json("passes", "--json")["passes"]],
                         rows)

    def test_json(self):
        for entry in self.json("passes", "--json")["passes"]:
            self.keys(entry, "name", "level", "numerics", "summary", "options")
            self.assertIn(entry["numerics"], ("E", "Z", "U", "QT", "QS", "L"))
        fold, = [entry for entry in self.json("passes", "--json")["passes"] if entry["name"] == "constant-fold"]
        self.assertEqual(fold["options"]["evaluate"], "run")
        self.assertIsInstance(fold["options"]["max-bytes"], int)

    def test_options_and_defaults(self):
        self.assertRegex(self.kiln("passes"), r"(?m)^    evaluate +run \(run\|compile\)$")
        self.assertNotRegex(self.kiln("passes", "--quiet"), r"(?m)^    evaluate")

    def test_rules(self):
        text = self.kiln("passes", "--rules", "fold-batchnorm")
        self.assertRegex(text, r"(?m)^(?:[EZUL] |QT|QS) batchnorm-into-conv +\(")
        rules = self.json("passes", "--rules", "fold-batchnorm", "--json")["rules"]
        self.assertIn("batchnorm-into-conv", [rule["name"] for rule in rules])
        for rule in rules:
            self.keys(rule, "name", "numerics", "pattern", "flags")
        self.assertEqual(self.kiln("passes", "--rules", "dce"), "dce is written in C, without rules.\n")
        self.assertEqual(self.json("passes", "--rules", "dce", "--json")["rules"], [])
        self.fails(USAGE, ("--rules: expected a pass, found cze (did you mean 'cse'?)", "`kiln passes` lists them."), "passes",
                   "--rules", "cze")


class Ops(CliTest):
    def test_every_row_of_the_table(self):
        tables = (SOURCE / "include/kiln/graph/ops").glob("*.def")
        table = "".join(path.read_text(encoding="utf-8") for path in tables)
        rows = re.findall(r"^(?:CORE_)?OP\((\w+)", table, re.M) + re.findall(r'^OP_AS\(\w+, "([\w.]+)"', table, re.M)
        self.assertGreater(len(rows), 150)
        names = [entry["name"] for entry in self.json("ops", "--json")["ops"]]
        for row in rows:
            self.assertIn(row, names)
        self.assertEqual(len(self.kiln("ops").splitlines()), len(names))

    def test_kernels(self):
        for backend in ("cpu", "ref"):
            ops = {entry["name"]: entry for entry in self.json("ops", "--json", "--backend", backend)["ops"]}
            self.keys(ops["conv"], "name", "onnx", "since", "kernel")
            self.assertTrue(ops["conv"]["kernel"])
            self.assertEqual(ops["conv"]["onnx"], "Conv")
            self.assertFalse(ops["unknown"]["kernel"])
            self.assertRegex(self.kiln("ops", "--backend", backend), r"(?m)^conv +Conv +f32")

    def test_speed(self):
        slow = self.json("ops", "--speed", "--json")["slow"]
        self.keys(slow[0], "instruction", "dtype", "reason")
        self.assertTrue(all(entry["reason"] for entry in slow))
        self.assertNotIn(("top_k", "f32"), [(entry["instruction"], entry["dtype"]) for entry in slow])
        text = self.kiln("ops", "--speed")
        self.assertEqual(len(text.splitlines()), len(slow))
        self.assertRegex(text, r"(?m)^einsum +f32 +the pass expand-einsum")


if __name__ == "__main__":
    main()
