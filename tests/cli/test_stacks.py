# SPDX-License-Identifier: Apache-2.0
"""Stacks of element-wise instructions on real models: where they stand, and that nothing but speed depends on them."""
import json
import re
import unittest

from harness import SHARED, CliTest, main

SKIP = ("--skip", "stack-elementwise")


def models():
    return sorted((SHARED / "models").glob("*/model.onnx"))


class Stacks(CliTest):
    def setUp(self):
        super().setUp()
        if not models():
            self.skipTest("no models beside the source tree")

    def outputs(self, model, *options):
        folder = self.dir / ("skipped" if options else "stacked")
        self.kiln("opt", model, "--stage", "ir", "-o", self.dir / "ir.kiln", *options)
        self.kiln("run", self.dir / "ir.kiln", "--pipeline", "none", "--random", "7", "-o", folder)
        return {path.name: path.read_bytes() for path in sorted(folder.glob("output_*.pb"))}

    def test_GLW_I8_models_keep_their_bits_and_their_peak(self):
        for model in models():
            stacked = self.outputs(model)
            self.assertTrue(stacked, model)
            self.assertEqual(stacked, self.outputs(model, *SKIP), model)
            live = [json.loads(self.kiln("memory", model, "--json", *options))["lb_live"] for options in ((), SKIP)]
            self.assertLessEqual(*live, model)

    def stacks(self, name):
        text = self.kiln("opt", SHARED / "models" / name / "model.onnx", "--stage", "ir", "-o", "/dev/stdout")
        return re.findall(r"(?m)^  stack .*\{ (.*) \}", text)

    def test_GLW_I8_residual_sums_and_gates(self):
        self.assertEqual([re.sub(r" [%@][^;\s]+", "", steps) for steps in self.stacks("resnet18")], ["add; relu"] * 8)
        gates = [steps for steps in self.stacks("wavenet_32") if re.fullmatch(r"t0: tanh; t1: sigmoid\(.*\); mul\(t0, t1\)", steps)]
        self.assertEqual(len(gates), 10)


if __name__ == "__main__":
    main()
