# SPDX-License-Identifier: Apache-2.0
"""OFF-06: what the vendor refuses goes to own kernels, and nothing else; on machines without AVX-512 it refuses nothing of what it
is given."""
import os
import re
from unittest import mock

from harness import SHARED, SOURCE, CliTest, main

# In one region what no pass leaves to the library: an lrn, and a transposed convolution of two groups, which has weights.
REFUSED = """graph @refused(%x: f32[1,32,14,14]) {
  %k = const @k : f32[64,32,3,3]
  %g = const @g : f32[64,16,2,2]
  %p = const @p : f32[64,64,1,1]
  %q = const @q : f32[32,64,1,1]
  %y, %z = vendor.graph @r0(%x, %k, %g, %p, %q) body(%a: f32[1,32,14,14], %kk: f32[64,32,3,3] constant=compile, %gg: f32[64,16,2,2] constant=compile, %pp: f32[64,64,1,1] constant=compile, %qq: f32[32,64,1,1] constant=compile) {
    %c = conv(%a, %kk) {pads=[1,1,1,1]} : f32[1,64,14,14]
    %l = lrn(%c) {size=5, alpha=0.5} : f32[1,64,14,14]
    %d = conv(%l, %pp) : f32[1,64,14,14]
    %r = relu(%d) : f32[1,64,14,14]
    %t = conv_transpose(%r, %gg) {strides=[2,2], group=2} : f32[1,32,28,28]
    %u = tanh(%t) : f32[1,32,28,28]
    %s = max_pool(%r) {kernel_shape=[2,2], strides=[2,2]} : f32[1,64,7,7]
    %e = conv(%s, %qq) : f32[1,32,7,7]
    %m = max_pool(%u) {kernel_shape=[4,4], strides=[4,4]} : f32[1,32,7,7]
    %f = add(%m, %e) : f32[1,32,7,7]
    %v = max_pool(%f) {kernel_shape=[3,3], pads=[1,1,1,1]} : f32[1,32,7,7]
    return %v, %l
  } : f32[1,32,7,7], f32[1,64,14,14]
  return %y, %z
}
constants {
  @k = random_normal(seed=1, std=0.1) : f32[64,32,3,3]
  @g = random_normal(seed=2, std=0.1) : f32[64,16,2,2]
  @p = random_normal(seed=3, std=0.1) : f32[64,64,1,1]
  @q = random_normal(seed=4, std=0.1) : f32[32,64,1,1]
}
"""
# The library has no difference of which what is subtracted from broadcasts; it has the other one.
DIFFERENCES = """graph @f(%x: f32[1,32,14,14], %b: f32[1,64,1,1]) {
  %k = const @k : f32[64,32,3,3]
  %c = conv(%x, %k) {pads=[1,1,1,1]} : f32[1,64,14,14]
  %s = sub(%b, %c) : f32[1,64,14,14]
  %d = sub(%c, %b) : f32[1,64,14,14]
  return %s, %d
}
constants { @k = random_normal(seed=1, std=0.1) : f32[64,32,3,3] }
"""
ROAD = "propagate-layouts,analyse-constness,constant-fold{evaluate=compile},compile-offload{min-us=0},dce"
WHOLE = "mobilenet_v2", "shufflenet_v2_x1_0", "squeezenet1_1", "unet16_256", "bert_small"


class Refused(CliTest):
    def notes(self, model, *options):
        log = self.kiln_err("opt", model, "--print-changed", "-o", "/dev/null", *options)
        return re.findall(r"(?m)^compile-offload: (\w+): (.*)$", log)

    def setUp(self):
        super().setUp()
        self.model = self.write("refused.kiln", REFUSED)
        self.road = self.notes(self.model, "--passes", ROAD)
        if not self.road:
            self.skipTest("built without a vendor library")

    def test_OFF_06_nothing_else_goes_inline(self):
        self.assertEqual([kind for kind, _ in self.road], ["custom", "split", "compile", "compile"])
        self.assertRegex(self.road[0][1], r"^@r0: @c0 for l \(lrn\): \w+ does not take it$")
        self.assertRegex(self.road[1][1], r"^@r0: t \(conv_transpose\): \w+ does not take it$")
        text = self.kiln("opt", self.model, "--passes", ROAD)
        graph = text[:text.index("\n}")]
        self.assertEqual(re.findall(r"(?m) = (?!const)([\w.]+)[ (]", graph),
                         ["vendor.executable", "conv_transpose", "vendor.executable"])

    def test_what_is_like_a_refused_operator_is_not_asked_for(self):
        """Two of the same types are left out at once, a third of others is refused by itself."""
        more = self.write("more.kiln", REFUSED.replace("    %d = conv(%l, %pp)", """    %n = lrn(%l) {size=5, alpha=0.5} : f32[1,64,14,14]
    %o = lrn(%n) {size=3, alpha=0.5} : f32[1,64,14,14]
    %d = conv(%o, %pp)"""))
        notes = [text for kind, text in self.notes(more, "--passes", ROAD) if kind == "custom"]
        self.assertRegex(notes[0], r"^@r0: @c0 for l \(lrn\): \w+ does not take it$")
        self.assertEqual(notes[1], "@r0: @c1 for n")
        self.assertRegex(notes[2], r"^@r0: @c2 for o \(lrn\): \w+ does not take it$")
        self.assertEqual(len(notes), 3)

    def test_what_is_subtracted_from_does_not_broadcast(self):
        """So that no region has to do without it again."""
        model = self.write("differences.kiln", DIFFERENCES)
        road = "partition-offload{when=always,min-us=0}"
        graph = self.kiln("opt", model, "--passes", road)
        body = graph[graph.index("vendor.graph"):graph.index("\n  }")]
        self.assertEqual(re.findall(r"= (\w+)\(", body), ["conv", "sub"])
        self.assertRegex(graph, r"(?m)^  %s = sub\(")
        self.assertEqual({kind for kind, _ in self.notes(model, "--passes", road + ",compile-offload{min-us=0}")}, {"compile"})

    def test_OFF_06_it_computes_what_the_reference_does(self):
        expected = self.dir / "expected"
        self.kiln("run", self.model, "--random", "3", "--backend", "ref", "--passes", "", "-o", expected)
        bits = []
        for threads in "1", "2", "3":
            self.kiln("run", self.model, "--random", "3", "--passes", ROAD, "--threads", threads, "--expect", expected,
                      "--rtol", "1e-4", "--atol", "1e-5", "-o", self.dir / "outputs")
            bits.append([path.read_bytes() for path in sorted((self.dir / "outputs").glob("output_*.pb"))])
        self.assertTrue(bits[0] == bits[1] == bits[2])
        self.kiln("compile", self.model, "--passes", ROAD, "-o", self.dir / "r.kiln-program")
        self.kiln("run", self.dir / "r.kiln-program", "--random", "3", "--expect", expected, "--rtol", "1e-4", "--atol", "1e-5")

    def test_avx2_refuses_nothing(self):
        models = [SHARED / "models" / name / "model.onnx" for name in WHOLE]
        if not models[0].exists():
            self.skipTest("no models beside the source tree")
        with mock.patch.dict(os.environ, ONEDNN_MAX_CPU_ISA="AVX2", KILN_CPU_ISA="avx2"):
            for model in [*models, SOURCE / "bench/zoo/efficientnet_b0.kiln"]:
                refused = [(kind, text) for kind, text in self.notes(model) if kind != "compile"]
                self.assertEqual(refused, [], model)


if __name__ == "__main__":
    main()
