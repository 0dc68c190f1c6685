# SPDX-License-Identifier: Apache-2.0
"""Stacks of element-wise instructions on real models: where they stand, and that nothing but speed depends on them."""
import json
import re
import unittest

from harness import SHARED, SOURCE, CliTest, main

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
        self.assertEqual([re.sub(r" [%@][^;\s]+", "", steps) for steps in self.stacks("resnet18")],
                         ["add; relu"] * 7 + ["add; relu; global_average_pool"])
        gates = [steps for steps in self.stacks("wavenet_32") if re.fullmatch(r"t0: tanh; t1: sigmoid\(.*\); mul\(t0, t1\)", steps)]
        self.assertEqual(len(gates), 10)

    def test_GLW_I8_what_stays_apart_is_listed_with_its_guard(self):
        """Every pair of which one reads what the other writes or reads, over one space, found anew from the text."""
        rows = (SOURCE / "ir/instrs.def").read_text(encoding="utf-8")
        kinds = set(re.findall(r"INSTR\((\w+),.*(?:\bPAR, |\bRED, )", rows)) - {"arg_max", "arg_min", "global_lp_pool"}
        pairs = 0
        for model in models():
            command = ("opt", model, "--stage", "ir", "--no-offload", "-o", "/dev/null")
            report = self.kiln_err(*command, "--print-changed")
            listed = re.findall(r"(?m)^stack-elementwise: stack: (.*) and (.*) stay apart: \w+", report)
            self.assertEqual(len(listed), len(set(listed)), model)
            text = self.kiln_err(*command, "--print-after=stack-elementwise")
            shapes = dict(re.findall(r"(?m)^  (?:alloc |input |output |weight |view )?(\S+) .*?: \w+(\[[^\]]*\])", text))
            steps = []
            for line in text.splitlines():
                words = re.match(r"  (\w+) @out ", line)
                if not words or words.group(1) not in kinds:
                    continue
                head = line.split(" { ")[0].split(" loc(")[0]
                outs, ins = re.findall(r"@out ([^,\s]+)", head), re.findall(r"@in ([^,\s]+)", head)
                label = re.search(r'loc\("(.*)"\)$', line)
                label = label.group(1) if label else outs[0].strip("%@\"")
                space = shapes[outs[0] if "_pool" not in line and "reduce_" not in line else ins[0]]
                steps.append((label, space, outs, [name for name in ins if shapes[name] == space]))
            for i, (first, space, outs, ins) in enumerate(steps):
                for second, other, _, reads in steps[i + 1:]:
                    if space == other and set(reads) & set(outs + ins):
                        self.assertIn((first, second), listed, model)
                        pairs += 1
        self.assertGreaterEqual(pairs, 16)


class Reductions(CliTest):
    """Own kernels alone: a vendor's convolutions take activations along."""

    def run_model(self, name, *options):
        path = self.dir / f"{name}.kiln"
        self.kiln("opt", SOURCE / "bench/zoo/mobilenet_v3_large.kiln", "--no-offload", "--stage", "ir", "-o", path, *options)
        self.kiln("run", path, "--pipeline", "none", "--no-offload", "--random", "7", "-o", self.dir / name)
        return path.read_text(encoding="utf-8"), (self.dir / name / "output_0.pb").read_bytes()

    def test_GLW_I8_squeeze_averages_what_is_activated(self):
        text, stacked = self.run_model("stacked")
        steps = re.findall(r"(?m)^  stack .*\{ (.*); global_average_pool.* \}$", text)
        self.assertEqual(len(steps), 9)
        self.assertEqual(sum("->" in step for step in steps), 8)  # the last is read by nothing else
        self.assertNotIn("\n  global_average_pool", text)
        self.assertEqual(self.run_model("apart", *SKIP)[1], stacked)


if __name__ == "__main__":
    main()
