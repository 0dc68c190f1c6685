# SPDX-License-Identifier: Apache-2.0
"""Anchors along rows and LSTM: left to the vendor they compute what the reference does, in the same bits for any number of
threads; what the library lacks stays with own kernels."""
import os
import re
import unittest

from harness import SHARED, CliTest, main

ROWS = """graph @rows(%x: f32[3,37,50], %t: f32[9,2,20], %h: f32[1,2,24], %c: f32[1,2,24]) {
  %s = softmax(%x) : f32[3,37,50]
  %l = log_softmax(%x) {axis=-1} : f32[3,37,50]
  %g = const @g : f32[50]
  %b = const @b : f32[50]
  %n = layer_normalization(%x, %g, %b) : f32[3,37,50]
  %o = layer_normalization(%x, %g) {epsilon=0.01} : f32[3,37,50]
  %last = const @last : i64[1]
  %both = const @both : i64[2]
  %m = reduce_mean(%x, %last) : f32[3,37,1]
  %u = reduce_sum(%x, %both) {keepdims=false} : f32[3]
  %v = reduce_max(%x, %last) {keepdims=false} : f32[3,37]
  %i = reduce_min(%x, %last) : f32[3,37,1]
  %w = const @w : f32[1,96,20]
  %r = const @r : f32[1,96,24]
  %z = const @z : f32[1,192]
  %y, %yh, %yc = lstm(%t, %w, %r, %z, _, %h, %c) {hidden_size=24} : f32[9,1,2,24], f32[1,2,24], f32[1,2,24]
  %q = lstm(%t, %w, %r) {hidden_size=24} : f32[9,1,2,24]
  %p, %ph, %pc = lstm(%t, %w, %r, %z) {activations=["Sigmoid","Tanh","Tanh"], hidden_size=24} : f32[9,1,2,24], f32[1,2,24], f32[1,2,24]
  return %s, %l, %n, %o, %m, %u, %v, %i, %y, %yh, %yc, %q, %pc
}
constants {
  @g = random_normal(seed=1, std=0.5) : f32[50]
  @b = random_normal(seed=2, std=0.5) : f32[50]
  @last = [2] : i64[1]
  @both = [1, 2] : i64[2]
  @w = random_normal(seed=3, std=0.3) : f32[1,96,20]
  @r = random_normal(seed=4, std=0.3) : f32[1,96,24]
  @z = random_normal(seed=5, std=0.3) : f32[1,192]
}
"""
LSTM = """graph @other(%t: f32[9,2,20], %n: i32[2], %k: f32[1,72]) {
  %w = const @w : f32[1,96,20]
  %r = const @r : f32[1,96,24]
  %z = const @z : f32[1,192]
  %y = lstm(%t, %w, %r, %z$MORE) {$ATTRShidden_size=24} : f32[9,1,2,24]
  return %y
}
constants {
  @w = random_normal(seed=3, std=0.3) : f32[1,96,20]
  @r = random_normal(seed=4, std=0.3) : f32[1,96,24]
  @z = random_normal(seed=5, std=0.3) : f32[1,192]
}
"""
LACKED = (
    ("", 'direction="reverse", '),
    ("", "clip=0.5, "),
    ("", "input_forget=true, "),
    ("", 'activations=["Sigmoid","Tanh","Relu"], '),
    (", %n", ""),
    (", _, _, _, %k", ""),
)
# A depthwise convolution of channels that are single numbers, channels last because of what stands between it and the next one.
RESIDUAL = """graph @f(%x: f32[1,24,1,1], %g: f32[20,20,1,1]) {
  %w = const @w : f32[24,1,1,1]
  %v = const @v : f32[32,24,1,1]
  %sizes = const @sizes : i64[2]
  %c = conv(%x, %w) {group=24} : f32[1,24,1,1]
  %r = relu(%c) : f32[1,24,1,1]
  %a = add(%x, %r) : f32[1,24,1,1]
  %p, %q = split(%a, %sizes) {axis=1} : f32[1,4,1,1], f32[1,20,1,1]
  %d = conv(%q, %g) : f32[1,20,1,1]
  %e = concat(%p, %d) {axis=1} : f32[1,24,1,1]
  %y = conv(%e, %v) : f32[1,32,1,1]
  return %y
}

constants {
  @w = random_uniform(seed=1, low=-0.5, high=0.5) : f32[24,1,1,1]
  @v = random_uniform(seed=2, low=-0.5, high=0.5) : f32[32,24,1,1]
  @sizes = [4, 20] : i64[2]
}
"""
ROAD = "partition-offload{when=always,min-us=0},compile-offload,dce"
FORCED = """version: 1
graph:
  - include: own
  - {pass: partition-offload, options: {when: always, min-us: 0}}
  - pass: compile-offload
  - pass: dce
ir:
  - include: own
"""


class Anchors(CliTest):
    def setUp(self):
        super().setUp()
        self.rows = self.write("rows.kiln", ROWS)
        if "softmax: jit" not in self.choices(self.rows, "--passes", ROAD):
            self.skipTest("built without a vendor library")

    def choices(self, model, *options):
        return self.kiln("opt", model, "--print-choices", "-o", "/dev/null", *options)

    def outputs(self, model, *options):
        folder = self.dir / "outputs"
        self.kiln("run", model, "--random", "3", "-o", folder, *options)
        return [path.read_bytes() for path in sorted(folder.glob("output_*.pb"))]

    def compare(self, model, *options):
        """The vendor with the reference, and one thread with more."""
        expected = self.dir / "expected"
        self.kiln("run", model, "--random", "3", "--backend", "ref", "--passes", "", "-o", expected)
        self.kiln("run", model, "--random", "3", "--expect", expected, "--rtol", "1e-4", "--atol", "1e-5", *options)
        one = self.outputs(model, "--threads", "1", *options)
        for threads in "2", "3", "4":
            self.assertTrue(self.outputs(model, "--threads", threads, *options) == one, threads)

    def test_softmax_norms_reductions_and_lstm_agree_with_the_reference(self):
        found = re.findall(r"(?m)^(\w+)(?: f32\[[\d,]+\])?: (?:jit|simple|brgemm)", self.choices(self.rows, "--passes", ROAD))
        wanted = ["layer_normalization"] * 2 + ["reduce_max", "reduce_mean", "reduce_min", "reduce_sum", "softmax"]
        self.assertEqual(sorted(set(found) - {"lstm"}), sorted(set(wanted)))
        self.compare(self.rows, "--passes", ROAD)

    def test_an_lstm_that_the_library_lacks_stays(self):
        for more, attributes in LACKED:
            model = self.write("lstm.kiln", LSTM.replace("$MORE", more).replace("$ATTRS", attributes))
            self.assertNotIn("vendor.", self.kiln("opt", model, "--passes", ROAD), (more, attributes))

    def test_residuals_behind_activations_of_channels_that_are_single_numbers(self):
        road = "partition-offload{when=always,min-us=0},merge-offload{when=always},compile-offload,dce"
        self.compare(self.write("residual.kiln", RESIDUAL), "--passes", road)

    def test_programs_keep_packed_gates(self):
        self.kiln("compile", self.rows, "--passes", ROAD, "-o", self.dir / "rows.kiln-program")
        self.assertTrue(self.outputs(self.dir / "rows.kiln-program") == self.outputs(self.rows, "--passes", ROAD))

    def test_avx2_has_the_same_bits_for_any_number_of_threads(self):
        before = os.environ.get("ONEDNN_MAX_CPU_ISA")
        os.environ["ONEDNN_MAX_CPU_ISA"] = "AVX2"
        try:
            self.compare(self.rows, "--passes", ROAD)
        finally:
            if before is None:
                del os.environ["ONEDNN_MAX_CPU_ISA"]
            else:
                os.environ["ONEDNN_MAX_CPU_ISA"] = before

    def test_models_run_by_the_vendor(self):
        forced = self.write("forced.yaml", FORCED)
        for name, operator in ("bert_small", "layer_normalization"), ("lstm2_256", "lstm"):
            model = SHARED / "models" / name / "model.onnx"
            if not model.exists():
                self.skipTest("no models beside the source tree")
            chosen = self.choices(model, "--pipeline", forced)
            if operator != "lstm" or "brgemm" in chosen:
                self.assertRegex(chosen, rf"(?m)^{operator}\b.*: (?:simple|brgemm)")
            self.compare(model, "--pipeline", forced)


if __name__ == "__main__":
    main()
