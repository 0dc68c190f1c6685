# SPDX-License-Identifier: Apache-2.0
"""Layouts on real models: nothing in the body of a network brings a value into another layout, and layouts change no bit."""
import re
import unittest

from harness import SHARED, CliTest, main

BODIES = "resnet18", "mobilenet_v2", "shufflenet_v2_x1_0", "unet16_256"
MOVES = "transpose", "pack", "unpack"

# Weights of every kind: padded channels, one channel a group, groups, transposed, matrices both ways.
WEIGHTS = """graph @weights(%x: f32[2,20,12,12], %r: f32[6,48]) {
  %w0 = const @w0 : f32[40,20,3,3]
  %c0 = conv(%x, %w0) {pads=[1,1,1,1]} : f32[2,40,12,12]
  %t0 = tanh(%c0) : f32[2,40,12,12]
  %w1 = const @w1 : f32[40,1,3,3]
  %c1 = conv(%t0, %w1) {group=40, pads=[1,1,1,1]} : f32[2,40,12,12]
  %w2 = const @w2 : f32[64,10,1,1]
  %c2 = conv(%c1, %w2) {group=4} : f32[2,64,12,12]
  %s = erf(%c2) : f32[2,64,12,12]
  %w3 = const @w3 : f32[64,32,2,2]
  %c3 = conv_transpose(%s, %w3) {strides=[2,2]} : f32[2,32,24,24]
  %w4 = const @w4 : f32[48,40]
  %m = matmul(%r, %w4) : f32[6,40]
  %e = erf(%m) : f32[6,40]
  %w5 = const @w5 : f32[24,40]
  %b = const @b : f32[24]
  %g = gemm(%e, %w5, %b) {transB=true} : f32[6,24]
  return %c3, %g
}
constants {
  @w0 = random_normal(seed=1, std=0.1) : f32[40,20,3,3]
  @w1 = random_normal(seed=2, std=0.3) : f32[40,1,3,3]
  @w2 = random_normal(seed=3, std=0.3) : f32[64,10,1,1]
  @w3 = random_normal(seed=4, std=0.1) : f32[64,32,2,2]
  @w4 = random_normal(seed=5, std=0.2) : f32[48,40]
  @w5 = random_normal(seed=6, std=0.2) : f32[24,40]
  @b = random_normal(seed=7, std=0.2) : f32[24]
}
"""
ROAD = ("partition-offload{when=always,min-us=0},propagate-layouts,analyse-constness,constant-fold{evaluate=compile},"
        "compile-offload,dce")


class Weights(CliTest):
    def setUp(self):
        super().setUp()
        self.model = self.write("weights.kiln", WEIGHTS)
        self.text = self.kiln("opt", self.model, "--passes", ROAD, "-o", "/dev/stdout")
        if "vendor.executable" not in self.text:
            self.skipTest("built without a vendor library")

    def outputs(self, model, *options):
        folder = self.dir / "outputs"
        self.kiln("run", model, "--random", "3", "-o", folder, *options)
        return [path.read_bytes() for path in sorted(folder.glob("output_*.pb"))]

    def test_CTF_08_packed_weights_are_literals_of_the_text(self):
        packed = dict(re.findall(r"(?m)^  %(w\d)\w* = const @\w+ : f32\[[\d,]+\]:(\w+)$", self.text))
        # Groups of more than one channel are dims that the type does not have: packed where they are bound. Without AVX-512 the
        # library has no products.
        products = ["w4", "w5"] if "\ndeclare @matmul" in self.text else []
        self.assertEqual(sorted(packed), ["w0", "w1", "w3", *products], self.text)
        graph = self.text[:self.text.index("\n}")]
        self.assertNotIn(" = pack(", graph)

    def test_packed_weights_change_no_bit(self):
        # Packs that nothing folded are taken back: the same layouts, and weights packed where they are bound.
        bound = self.outputs(self.model, "--passes", ROAD.replace("constant-fold{evaluate=compile},", ""))
        for threads in "1", "2", "3":
            self.assertTrue(self.outputs(self.model, "--passes", ROAD, "--threads", threads) == bound, threads)
        self.assertTrue(self.outputs(self.write("packed.kiln", self.text), "--passes", "") == bound)
        self.kiln("compile", self.model, "--passes", ROAD, "-o", self.dir / "p.kiln-program")
        self.assertTrue(self.outputs(self.dir / "p.kiln-program") == bound)

    def test_other_layouts_go_inline(self):
        """A text may say anything: what the library wants otherwise runs on own kernels."""
        other = self.write("other.kiln", """graph @other(%x: f32[1,16,6,6]) {
  %p = const @w : f32[16,16,3,3]:dcba
  %y = vendor.graph @r0(%x, %p) body(%a: f32[1,16,6,6], %v: f32[16,16,3,3]:dcba constant=compile) {
    %u = unpack(%v) : f32[16,16,3,3]
    %c = conv(%a, %u) {pads=[1,1,1,1]} : f32[1,16,6,6]
    return %c
  } : f32[1,16,6,6]
  return %y
}
constants { @w = random_normal(seed=1, std=0.1) : f32[16,16,3,3]:dcba }
""")
        log = self.kiln_err("opt", other, "--passes", "compile-offload", "--print-changed", "-o", "/dev/null")
        self.assertIn("expected layout", log)
        self.assertNotIn("vendor.", self.kiln("opt", other, "--passes", "compile-offload"))
        self.assertEqual(len(self.outputs(other, "--passes", "compile-offload")), 1)


class Layouts(CliTest):
    def setUp(self):
        super().setUp()
        self.models = {name: SHARED / "models" / name / "model.onnx" for name in BODIES}
        if not all(path.exists() for path in self.models.values()):
            self.skipTest("no models beside the source tree")
        probe = self.kiln("opt", self.models["resnet18"], "--pipeline", "offload", "--stage", "ir", "-o", "/dev/stdout")
        if "\n  call @" not in probe:
            self.skipTest("built without a vendor library")

    def instructions(self, name, pipeline):
        text = self.kiln("opt", self.models[name], "--pipeline", pipeline, "--stage", "ir", "-o", "/dev/stdout")
        return re.findall(r"(?m)^  (\w+) @out", text)

    def reorders(self, name):
        """Reorders of activations in regions, but for those of the picture in front of the first primitive of all and of the
        result behind the last one."""
        choices = self.kiln("opt", self.models[name], "--pipeline", "offload", "--print-choices", "-o", "/dev/null")
        steps = re.findall(r"(?m)^ *(\w[\w ]*?)(?: \w+\[[^\]]*\])?: (?:jit|brg|simple|ref)\S*", choices)
        return steps[1:].count("reorder") + max(choices.count("reorder of a") - 1, 0)

    def test_no_transposes_or_packs_in_a_body(self):
        for name in BODIES:
            for pipeline in "own", "default", "offload":
                kinds = self.instructions(name, pipeline)
                self.assertTrue(kinds, name)
                found = [kind for kind in kinds if kind in MOVES]
                self.assertEqual(found, [], (name, pipeline))

    def test_no_reorders_in_a_body(self):
        for name in BODIES:
            self.assertEqual(self.reorders(name), 0, name)

    def test_layouts_change_no_bit(self):
        for name in BODIES:
            outputs = []
            for skip in (), ("--skip", "propagate-layouts"):
                folder = self.dir / (name + str(len(skip)))
                self.kiln("opt", self.models[name], "--stage", "ir", "-o", self.dir / "ir.kiln", *skip)
                self.kiln("run", self.dir / "ir.kiln", "--pipeline", "none", "--random", "7", "-o", folder)
                outputs.append((folder / "output_0.pb").read_bytes())
            self.assertTrue(outputs[0] == outputs[1], name)


if __name__ == "__main__":
    main()
