# SPDX-License-Identifier: Apache-2.0
"""Layouts on real models: nothing in the body of a network brings a value into another layout, and layouts change no bit."""
import re
import unittest

from harness import SHARED, CliTest, main

BODIES = "resnet18", "mobilenet_v2", "shufflenet_v2_x1_0", "unet16_256"
MOVES = "transpose", "pack", "unpack"
# Branches of downsampling units lie beside the open region and run on own kernels, which read and give plain values: one
# unpack in front of each, one reorder where the region joins it.
BESIDE = {"shufflenet_v2_x1_0": 2}


class Layouts(CliTest):
    def setUp(self):
        super().setUp()
        self.models = {name: SHARED / "models" / name / "model.onnx" for name in BODIES}
        if not all(path.exists() for path in self.models.values()):
            self.skipTest("no models beside the source tree")
        probe = self.kiln("opt", self.models["resnet18"], "--pipeline", "offload", "--stage", "ir", "-o", "/dev/stdout")
        if "\n  call @" not in probe:
            self.skipTest("built without a vendor library")

    def instructions(self, name):
        text = self.kiln("opt", self.models[name], "--pipeline", "offload", "--stage", "ir", "-o", "/dev/stdout")
        return re.findall(r"(?m)^  (\w+) @out", text)

    def reorders(self, name):
        """Reorders of activations in regions, but for that of the picture in front of the first primitive of all."""
        choices = self.kiln("opt", self.models[name], "--pipeline", "offload", "--print-choices", "-o", "/dev/null")
        steps = re.findall(r"(?m)^ *(\w[\w ]*?)(?: \w+\[[^\]]*\])?: (?:jit|brg|simple|ref)\S*", choices)
        return steps[1:].count("reorder") + choices.count("reorder of a")

    def test_no_transposes_or_packs_in_a_body(self):
        for name in BODIES:
            kinds = self.instructions(name)
            self.assertTrue(kinds, name)
            found = [kind for kind in kinds if kind in MOVES]
            self.assertLessEqual(len(found), BESIDE.get(name, 0), (name, found))

    def test_no_reorders_in_a_body(self):
        for name in BODIES:
            self.assertLessEqual(self.reorders(name), BESIDE.get(name, 0), name)

    def test_layouts_change_no_bit(self):
        for name in BODIES:
            outputs = []
            for skip in (), ("--skip", "propagate-layouts"):
                folder = self.dir / (name + str(len(skip)))
                self.kiln("opt", self.models[name], "--pipeline", "offload", "--stage", "ir", "-o", self.dir / "ir.kiln", *skip)
                self.kiln("run", self.dir / "ir.kiln", "--pipeline", "none", "--random", "7", "-o", folder)
                outputs.append((folder / "output_0.pb").read_bytes())
            self.assertEqual(*outputs, name)


if __name__ == "__main__":
    main()
