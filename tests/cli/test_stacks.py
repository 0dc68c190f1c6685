# SPDX-License-Identifier: Apache-2.0
"""Tails and stacks of element-wise instructions on real models: where they stand, and that nothing but speed depends on them."""
import json
import re
import unittest

from harness import SHARED, SOURCE, CliTest, main

FUSIONS = "fuse-tails", "fuse-norm", "stack-elementwise"


def models():
    return sorted((SHARED / "models").glob("*/model.onnx"))


class Stacks(CliTest):
    def setUp(self):
        super().setUp()
        if not models():
            self.skipTest("no models beside the source tree")

    def outputs(self, model, *options):
        folder = self.dir / ("skipped" + options[1] if options else "all")
        self.kiln("opt", model, "--stage", "ir", "-o", self.dir / "ir.kiln", *options)
        self.kiln("run", self.dir / "ir.kiln", "--pipeline", "none", "--random", "7", "-o", folder)
        return {path.name: path.read_bytes() for path in sorted(folder.glob("output_*.pb"))}

    def test_GLW_I8_models_keep_their_bits_and_their_peak(self):
        for model in models():
            fused = self.outputs(model)
            self.assertTrue(fused, model)
            for fusion in FUSIONS:
                skip = "--skip", fusion
                self.assertEqual(fused, self.outputs(model, *skip), (model, fusion))
                live = [json.loads(self.kiln("memory", model, "--json", *options))["lb_live"] for options in ((), skip)]
                self.assertLessEqual(*live, (model, fusion))

    def instructions(self, name, kind):
        text = self.kiln("opt", SHARED / "models" / name / "model.onnx", "--no-offload", "--stage", "ir", "-o",
                         "/dev/stdout")
        return re.findall(rf"(?m)^  {kind} .*", text)

    def test_sums_in_front_of_normalizations(self):
        # Products take what they can; the rest is the normalizations', in the place of a term that dies there.
        norms = self.instructions("bert_small", "layer_normalization")
        fused = [line for line in norms if "_, _, @in " in line]
        self.assertEqual((len(norms), len(fused)), (9, 5), norms)
        self.assertTrue(all(re.search(r"@out ([^,]+),.*@in \1,", line) for line in fused), fused)
        self.assertEqual(self.instructions("bert_small", "add"), [])

    def test_GLW_I8_residual_sums_and_gates(self):
        convolutions = self.instructions("resnet18", "conv")
        self.assertEqual(len([line for line in convolutions if 'activation="relu"' in line]), 17)
        sums = [line for line in convolutions if line.count("@in ") == 4]
        self.assertEqual(len(sums), 8)
        # In the place of what is added, which dies there.
        self.assertTrue(all(re.search(r"@out ([^,]+),.*@in \1 ", line) for line in sums), sums)
        for kind in "relu", "add", "stack":
            self.assertEqual(self.instructions("resnet18", kind), [])
        gates = [line for line in self.instructions("wavenet_32", "stack")
                 if re.search(r"\{ t0: tanh; t1: sigmoid\(.*\); mul\(t0, t1\)", line)]
        self.assertEqual(len(gates), 10)

    def test_GLW_I8_what_stays_apart_is_listed_with_its_guard(self):
        """Every pair of which one reads what the other writes or reads, over one space, found anew from the text."""
        rows = (SOURCE / "include/kiln/ir/instrs.def").read_text(encoding="utf-8")
        kinds = set(re.findall(r"INSTR\((\w+),.*(?:\bPAR, |\bRED, )", rows)) - {"arg_max", "arg_min", "global_lp_pool"}
        pairs = 0
        for model in models():
            # Without tails, which take what most stacks would be made of.
            command = ("opt", model, "--stage", "ir", "--no-offload", "--skip", "fuse-tails", "-o", "/dev/null")
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
    """Convolutions that leave their activations: a vendor's, and own ones with a tail, take them along."""

    def run_model(self, name, *options):
        path = self.dir / f"{name}.kiln"
        self.kiln("opt", SOURCE / "bench/zoo/mobilenet_v3_large.kiln", "--no-offload", "--skip", "fuse-tails", "--stage", "ir",
                  "-o", path, *options)
        self.kiln("run", path, "--pipeline", "none", "--no-offload", "--random", "7", "-o", self.dir / name)
        return path.read_text(encoding="utf-8"), (self.dir / name / "output_0.pb").read_bytes()

    def test_GLW_I8_squeeze_averages_what_is_activated(self):
        text, stacked = self.run_model("stacked")
        steps = re.findall(r"(?m)^  stack .*\{ (.*); global_average_pool.* \}$", text)
        self.assertEqual(len(steps), 9)
        self.assertEqual(sum("->" in step for step in steps), 8)  # the last is read by nothing else
        self.assertNotIn("\n  global_average_pool", text)
        self.assertEqual(self.run_model("apart", "--skip", "stack-elementwise")[1], stacked)


class Normalizations(CliTest):
    """Batch normalizations in front of their convolutions, of which none can take them."""

    def instructions(self, kind, *options):
        text = self.kiln("opt", SOURCE / "bench/zoo/densenet121.kiln", "--stage", "ir", "-o", "/dev/stdout", *options)
        return re.findall(rf"(?m)^  {kind} .*", text)

    def test_GLW_I8_normalizations_go_with_their_activations(self):
        stacks = [line for line in self.instructions("stack") if re.search(r"\{ mul @\S+; add @\S+; relu", line)]
        self.assertEqual(len(stacks), 62)
        self.assertEqual(self.instructions("batch_normalization"), [])

    def test_without_offload_statistics_may_be_inputs(self):
        """The bits are those of a normalization whose statistics are not known."""
        self.assertEqual(len(self.instructions("batch_normalization", "--no-offload")), 62)


if __name__ == "__main__":
    main()
