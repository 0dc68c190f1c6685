# SPDX-License-Identifier: Apache-2.0
"""bench/peers/compare.py: what it asks Kiln's executables for, its ratios and its table. The peers, and the packages that
they come in, need not be here: their figures are made up."""
import contextlib
import importlib.util
import io
import pathlib
import sys
import types
import unittest

from harness import KILN, MODEL, SOURCE, CliTest, main

PEERS = SOURCE / "bench/peers"


def load_script():
    """compare.py as a module; what worker.py imports is empty."""
    for name in ("numpy", "onnx"):
        sys.modules.setdefault(name, types.ModuleType(name))
    sys.modules["onnx"].numpy_helper = None
    sys.path.insert(0, str(PEERS))
    spec = importlib.util.spec_from_file_location("compare", PEERS / "compare.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return script


def figures(latency, load, memory, program=None):
    made = {"latency": latency, "load": load, "memory": memory}
    return made if program is None else made | {"program": program}


ROUNDS = [{"kiln": figures(0.002, 0.1, 50e6, 0.004), "kiln_memory": figures(0.003, 0.05, 30e6), "ort": figures(0.004, 0.08, 100e6, 0.08)},
          {"kiln": figures(0.001, 0.1, 50e6, 0.004), "kiln_memory": figures(0.002, 0.05, 30e6), "ort": figures(0.004, 0.08, 100e6, 0.08)},
          {"kiln": figures(0.004, 0.1, 50e6, 0.004), "kiln_memory": figures(0.004, 0.05, 30e6), "ort": figures(0.004, 0.08, 100e6, 0.08)}]


class Peers(CliTest):
    @classmethod
    def setUpClass(cls):
        cls.script = load_script()

    def test_ratios_are_medians_over_rounds(self):
        result = self.script.summarise("m", 1, ROUNDS, ["ort"])
        self.assertEqual(result["latency"], {"kiln": 0.002, "kiln_memory": 0.003, "ort": 0.004})
        self.assertEqual(result["latency_ratio"], {"ort": 2})
        self.assertAlmostEqual(result["latency_ratio_kiln_memory"]["ort"], 4 / 3)
        self.assertAlmostEqual(result["memory_ratio_kiln_memory"]["ort"], 10 / 3)
        self.assertAlmostEqual(result["program_ratio"]["ort"], 20)
        self.assertNotIn("program_ratio_kiln_memory", result)

    def test_a_model_has_two_lines(self):
        result = self.script.summarise("m", 2, ROUNDS, ["ort"])
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            self.script.print_head(["ort"])
            self.script.print_rows(result, ["ort"])
            self.script.print_means([result], ["ort"])
        head, speed, memory, *means = out.getvalue().splitlines()
        self.assertEqual(head.split(), "model th ms /ort load ms /ort MB /ort program ms /ort".split())
        self.assertEqual(speed.split(), "m 2 2.000 2.00 100.000 0.80 50.000 2.00 4.000 20.00".split())
        self.assertEqual(memory.split(), "--prefer memory 2 3.000 1.33 50.000 1.60 30.000 3.33".split())
        self.assertEqual(len(means), 7)
        self.assertTrue(any("load of a saved program: ort over Kiln" in line and "20.000" in line for line in means))

    def test_kiln_is_measured_on_both_lines_and_from_a_program(self):
        bin_ = pathlib.Path(KILN).parent
        if not (bin_ / "kiln-bench-model").exists():
            self.skipTest("kiln-bench-model is not built")
        case = self.script.Case(MODEL, bin_, self.dir)
        found = self.script.measure_round(case, types.SimpleNamespace(engines=[], seconds=0), 1)
        self.assertEqual(set(found), {"kiln", "kiln_memory"})
        self.assertEqual(set(found["kiln"]), {"latency", "load", "memory", "program"})
        self.assertTrue(all(value > 0 for line in found.values() for value in line.values()))
        self.assertTrue(list(case.folder.glob("*.kiln-program")))


if __name__ == "__main__":
    main()
