# SPDX-License-Identifier: Apache-2.0
"""Regions of the vendor in branches, loops and scans: they compute what the reference does, in the same bits for any number
of threads, out of a file, and for every number of an open dim."""
import re

from harness import CliTest, main, npy

# A loop of pictures whose body has two convolutions, and a branch in it; one weight is around the loop.
PICTURES = """graph @pictures(%steps: i64[], %x: f32[1,16,9,9]) {
  %v = const @v : f32[16,16,3,3]
  %zero = const @zero : f32[]
  %mask = sigmoid(%x) : f32[1,16,9,9]
  %y, %all = loop(%steps, _, %x) body(%i: i64[], %go: bool[], %a: f32[1,16,9,9]) {
    %w = const @w : f32[16,16,3,3]
    %b = const @b : f32[16]
    %c = conv(%a, %w, %b) {pads=[1,1,1,1]} : f32[1,16,9,9]
    %r = relu(%c) : f32[1,16,9,9]
    %d = conv(%r, %v) {pads=[1,1,1,1]} : f32[1,16,9,9]
    %e = mul(%d, %mask) : f32[1,16,9,9]
    %sum = reduce_sum(%e) {keepdims=false} : f32[]
    %high = greater(%sum, %zero) : bool[]
    %f = if(%high) then {
      %p = max_pool(%e) {kernel_shape=[3,3], pads=[1,1,1,1]} : f32[1,16,9,9]
      return %p
    } else {
      %q = conv(%e, %v) {pads=[1,1,1,1]} : f32[1,16,9,9]
      return %q
    } : f32[1,16,9,9]
    return %go, %f, %sum
  } : f32[1,16,9,9], f32[?]
  return %y, %all
}
constants {
  @v = random_normal(seed=1, std=0.1) : f32[16,16,3,3]
  @w = random_normal(seed=2, std=0.1) : f32[16,16,3,3]
  @b = random_normal(seed=3, std=0.1) : f32[16]
  @zero = splat(0) : f32[]
}
"""
# A loop of fixed shapes: two convolutions are one region, which has a workspace.
LOOP = """graph @loop(%steps: i64[], %x: f32[1,16,9,9]) {
  %w = const @w : f32[16,16,3,3]
  %y = loop(%steps, _, %x) body(%i: i64[], %go: bool[], %a: f32[1,16,9,9]) {
    %c = conv(%a, %w) {pads=[1,1,1,1]} : f32[1,16,9,9]
    %r = relu(%c) : f32[1,16,9,9]
    %d = conv(%r, %w) {pads=[1,1,1,1]} : f32[1,16,9,9]
    return %go, %d
  } : f32[1,16,9,9]
  return %y
}
constants { @w = random_normal(seed=2, std=0.1) : f32[16,16,3,3] }
"""
# The same convolution in front of a loop and in it.
BOTH = """graph @both(%steps: i64[], %x: f32[1,16,9,9]) {
  %w = const @w : f32[16,16,3,3]
  %first = conv(%x, %w) {pads=[1,1,1,1]} : f32[1,16,9,9]
  %y = loop(%steps, _, %first) body(%i: i64[], %go: bool[], %a: f32[1,16,9,9]) {
    %c = conv(%a, %w) {pads=[1,1,1,1]} : f32[1,16,9,9]
    return %go, %c
  } : f32[1,16,9,9]
  return %y
}
constants { @w = random_normal(seed=2, std=0.1) : f32[16,16,3,3] }
"""
# Products in a scan, whose rows are as many as the input says.
ROWS = """graph @rows(%h: f32[N,32], %x: f32[6,N,32]) {
  %w = const @w : f32[32,32]
  %last, %all = scan(%h, %x) {num_scan_inputs=1} body(%state: f32[N,32], %row: f32[N,32]) {
    %m = matmul(%state, %w) : f32[N,32]
    %s = add(%m, %row) : f32[N,32]
    %t = tanh(%s) : f32[N,32]
    %n = softmax(%t) : f32[N,32]
    return %n, %s
  } : f32[N,32], f32[6,N,32]
  return %last, %all
}
constants { @w = random_normal(seed=1, std=0.1) : f32[32,32] }
"""
ROAD = """version: 1
graph:
  - include: own
  - {pass: partition-offload, options: {when: always, min-us: 0}}
  - {pass: merge-offload, options: {when: always}}
  - pass: propagate-layouts
  - pass: analyse-constness
  - {pass: constant-fold, options: {evaluate: compile, functions: three}}
  - {pass: compile-offload, options: {min-us: 0}}
  - {pass: dce, dce: none}
ir:
  - include: own
"""


class Inside(CliTest):
    def setUp(self):
        super().setUp()
        self.road = self.write("road.yaml", ROAD)
        self.pictures = self.write("pictures.kiln", PICTURES)
        self.rows = self.write("rows.kiln", ROWS)
        self.steps = self.write("steps.npy", npy("<i8", (), (5).to_bytes(8, "little")))
        if "onednn:" not in self.kiln("opt", self.pictures, "--print-choices", "-o", "/dev/null", "--pipeline", self.road):
            self.skipTest("built without a vendor library")

    def outputs(self, model, *options):
        folder = self.dir / "outputs"
        self.kiln("run", model, "--random", "3", "-o", folder, *options)
        return [path.read_bytes() for path in sorted(folder.glob("output_*.pb"))]

    def compare(self, model, *options):
        """The vendor with the reference, one thread with more, and a program with its file."""
        expected, road = self.dir / "expected", ("--pipeline", self.road)
        self.kiln("run", model, "--random", "3", "--backend", "ref", "--passes", "", "-o", expected, *options)
        self.kiln("run", model, "--random", "3", "--expect", expected, "--rtol", "1e-4", "--atol", "1e-5", *road, *options)
        one = self.outputs(model, *road, "--threads", "1", *options)
        for more in ("--threads", "2"), ("--threads", "3", "--runs", "3"), ("--poison",):
            self.assertTrue(self.outputs(model, *road, *more, *options) == one, more)
        program = self.dir / "saved.kiln-program"
        self.kiln("compile", model, *road, "-o", program)
        self.kiln("run", program, "--random", "3", "--expect", expected, "--rtol", "1e-4", "--atol", "1e-5", *options)
        if "--shape" not in options:  # else the file has a program for all shapes, and `one` is of a program for one
            self.assertTrue(self.outputs(program, "--runs", "2", *options) == one)
        self.kiln("opt", model, "--check", *road, "-o", "/dev/null")

    def functions_that_call(self, model):
        text = self.kiln("opt", model, "--stage", "ir", "--pipeline", self.road)
        return [name for name, body in re.findall(r"(?ms)^func @([\w.]+) \{\n(.*?)^\}", text) if re.search(r"(?m)^  call @", body)]

    def test_loops_of_pictures_with_branches(self):
        called = self.functions_that_call(self.pictures)
        self.assertGreaterEqual(len(called), 3, called)
        self.assertNotIn("pictures", called)
        self.compare(self.pictures, "-i", f"steps={self.steps}")

    def test_regions_of_a_loop_and_of_the_graph_around_it(self):
        model = self.write("both.kiln", BOTH)
        self.assertEqual(len(self.functions_that_call(model)), 2)
        self.compare(model, "-i", f"steps={self.steps}")

    def test_scans_of_open_rows(self):
        self.assertEqual(len(self.functions_that_call(self.rows)), 1)
        for n in 1, 3, 8:
            with self.subTest(n=n):
                self.compare(self.rows, "--shape", f"h={n}x32", "--shape", f"x=6x{n}x32")

    def test_weights_are_packed_once(self):
        """Packs of literals are folded: no call in the body reorders a weight of the picture."""
        text = self.kiln("opt", self.pictures, "--stage", "ir", "--pipeline", self.road)
        self.assertNotRegex(text, r"(?m)^  pack\b.*@[vw]\b")
        self.assertRegex(text, r"(?m)^  weight @\S+ : f32\[16,16,3,3\]:\S+ const")

    def test_the_profile_counts_iterations(self):
        profile = self.json("run", self.pictures, "--random", "3", "-i", f"steps={self.steps}", "--pipeline", self.road,
                            "--profile", "--json")["profile"]
        calls = [entry["calls"] for entry in profile if entry["kernel"].startswith("onednn:")]
        self.assertIn(5, calls)
        self.assertEqual([entry["calls"] for entry in profile if entry["instruction"] == "loop"], [1])

    def test_memory_of_a_loop_has_the_workspaces_of_its_regions(self):
        model = self.write("loop.kiln", LOOP)
        text = self.kiln("opt", model, "--stage", "ir", "--pipeline", self.road)
        arenas = [int(arena) for arena in re.findall(r"(?m)^  arena (\d+)", text)]
        self.assertEqual(len(arenas), 2)
        self.assertGreater(arenas[0], 0)
        report = self.json("memory", model, "--json", "--pipeline", self.road)
        self.assertEqual([report["arena"]], arenas[1:])
        self.assertGreaterEqual(report["arena"], arenas[0])

    def test_models_without_regions_are_exported(self):
        exported = self.dir / "exported.onnx"
        self.kiln("opt", self.pictures, "--emit", "onnx", "--pipeline", self.road, "-o", exported)
        self.compare(exported, "-i", f"steps={self.steps}")


if __name__ == "__main__":
    main()
