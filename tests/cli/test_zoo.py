# SPDX-License-Identifier: Apache-2.0
"""The models of bench/zoo: the committed texts are what their generator writes, all of them compile, and the small ones give the
same results optimized and node by node on the reference kernels."""
import pathlib
import subprocess
import sys
import unittest

from harness import SOURCE, CliTest, main

ZOO = SOURCE / "bench/zoo"
MODELS = sorted(ZOO.glob("*.kiln"))


class Zoo(CliTest):
    def test_generator(self):
        subprocess.run([sys.executable, "-B", ZOO / "generate.py", self.dir], check=True)
        written = {path.name: path.read_text() for path in self.dir.glob("*.kiln")}
        self.assertEqual(written, {path.name: path.read_text() for path in MODELS})
        self.assertGreaterEqual(len(written), 8)

    def test_plans(self):
        for model in MODELS:
            with self.subTest(model.name):
                plan = self.json("memory", model, "--json")
                self.assertTrue(plan["proven_optimal"])

    def test_results(self):
        self.kiln("run", ZOO / "lstm_tagger.kiln", "--random", "1", "--save-inputs", "case/test_data_set_0",
                  "-o", "case/test_data_set_0", "--backend", "ref", "--pipeline", "none")
        self.kiln("opt", ZOO / "lstm_tagger.kiln", "--pipeline", "none", "--emit", "onnx", "-o", "case/model.onnx")
        self.assertIn("1 passed, 0 failed", self.kiln("verify", "case", "--rtol", "1e-3", "--atol", "1e-5"))


if __name__ == "__main__":
    main()
