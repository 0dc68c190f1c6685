# SPDX-License-Identifier: Apache-2.0
"""What exporters decompose is raised again, in networks as they come from PyTorch."""
import collections
import re
import unittest

from harness import SHARED, CliTest, main

# Softmax comes before attention, which contains one; layer before root-mean-square normalization.
RAISING = ("fold-softmax,raise-log-softmax,raise-gelu,raise-instance-norm,raise-layer-norm,raise-rms-norm,raise-attention,raise-silu,raise-hard-swish,"
           "raise-leaky-relu,fold-channel-shuffle,raise-space-to-depth,fold-layernorm-arithmetic,simplify-recurrent")


class Raising(CliTest):
    def raised_text(self, name):
        """The model after the default pipeline and the passes above, whose numbers are verified."""
        folder = SHARED / "models" / name
        if not (folder / "model.onnx").exists():
            self.skipTest(f"{folder} is not there")
        optimized = self.dir / "optimized.kiln"
        self.kiln("opt", folder / "model.onnx", "--no-offload", "--stage", "graph", "-o", optimized)
        text = self.kiln("opt", optimized, "--stage", "graph", "--passes", RAISING)
        self.kiln("verify", folder, "--passes", RAISING)
        return text

    def raised(self, name):
        """How often each operator stands in it."""
        return collections.Counter(re.findall(r"(?m)^  %.* = (\w+)\(", self.raised_text(name)))

    def test_bert(self):
        ops = self.raised("bert_small")
        self.assertEqual((ops["layer_normalization"], ops["gelu"], ops["attention"]), (9, 4, 4))
        for left in ("softmax", "erf", "reduce_mean", "sqrt", "div", "pow", "sub"):
            self.assertEqual(ops[left], 0, left)

    def test_shufflenet(self):
        ops = self.raised("shufflenet_v2_x1_0")
        self.assertEqual((ops["channel_shuffle"], ops["transpose"]), (16, 0))

    def test_lstm(self):
        text = self.raised_text("lstm2_256")
        self.assertEqual(len(re.findall(r"(?m)^  %[^,]* = lstm\(%[^,]*, %[^,]*, %[^,]*, %[^,]*\)", text)), 2)


if __name__ == "__main__":
    main()
