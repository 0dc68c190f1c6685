# SPDX-License-Identifier: Apache-2.0
"""NaN in is NaN out: the models beside the source tree, and the naive forms of softmax that passes raise."""
import math
import shutil
import struct
import unittest

from harness import SHARED, CliTest, main

NAN = math.nan
SOFTMAX = """graph @f(%x: f32[2,4,8]) {
  %a1 = const @a1 : i64[1]
  %e = exp(%x)
  %s = reduce_sum(%e, %a1)
  %y = div(%e, %s)
  return %y
}
constants { @a1 = [1] : i64[1] }
"""
LOG_SOFTMAX = """graph @f(%x: f32[2,4,8]) {
  %e = softmax(%x) {axis=1}
  %y = log(%e)
  return %y
}
"""
CONV = """graph @f(%x: f32[1,2,6,6], %w: f32[3,2,3,3]) {
  %c = conv(%x, %w) {pads=[1,1,1,1]}
  return %c
}
"""


class NotFinite(CliTest):
    def nans(self, *args):
        """Of each output, which of its floats are NaN."""
        folder = self.dir / "out"
        shutil.rmtree(folder, ignore_errors=True)
        self.kiln("run", *args, "-q", "-o", folder, "--npy")
        found = []
        for path in sorted(folder.glob("output_*.npy")):
            data = path.read_bytes()
            begin = 10 + struct.unpack_from("<H", data, 8)[0]
            found.append([x != x for (x,) in struct.iter_unpack("<f", data[begin:])])
        return found

    def given(self, name, floats):
        path = self.dir / f"{len(list(self.dir.iterdir()))}.raw"
        path.write_bytes(struct.pack(f"<{len(floats)}f", *floats))
        return ["-i", f"{name}={path}"]

    @unittest.skipUnless((SHARED / "models").is_dir(), "no models beside the source tree")
    def test_models_of_nan_give_nan(self):
        for model in sorted((SHARED / "models").glob("*/model.onnx")):
            inputs = [i for i in self.json("info", model, "--json")["inputs"] if i["dtype"] == "f32"]
            if not inputs or any(not isinstance(d, int) for i in inputs for d in i["shape"]):
                continue
            given = []
            for entry in inputs:
                given += self.given(entry["name"], [NAN] * math.prod(entry["shape"]))
            for way in ([], ["--no-offload"], ["--pipeline", "offload"]):
                with self.subTest(model=model.parent.name, way=way):
                    for nans in self.nans(model, *given, "--random", "1", *way):
                        self.assertTrue(all(nans), f"{nans.count(False)} of {len(nans)} are numbers")

    def check_as_ref(self, text, inputs):
        model = self.write("model.kiln", text)
        given = []
        for name, floats in inputs.items():
            given += self.given(name, floats)
        expected = self.nans(model, *given, "--pipeline", "none", "--backend", "ref")
        for way in ([], ["--no-offload"], ["--pipeline", "none"], ["--const", "compile:w"]):
            if way[:1] != ["--const"] or "w" in inputs:
                self.assertEqual(self.nans(model, *given, *way), expected, way)
        self.assertTrue(any(expected[0]) and not all(expected[0]))

    def test_raised_softmax_keeps_nan(self):
        x = [i % 7 - 3.0 for i in range(64)]
        x[10] = x[41] = NAN
        for text in (SOFTMAX, LOG_SOFTMAX):
            self.check_as_ref(text, {"x": x})

    def test_infinite_weights_do_not_meet_padding(self):
        x = [i % 5 + 1.0 for i in range(72)]
        w = [0.25] * 54
        w[0], w[26], w[45] = math.inf, NAN, -math.inf
        self.check_as_ref(CONV, {"x": x, "w": w})


if __name__ == "__main__":
    main()
