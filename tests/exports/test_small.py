# SPDX-License-Identifier: Apache-2.0
"""The models of the folder small give the outputs of onnxruntime: with the default pipeline, without passes, and on the
reference kernels. Each family of rows.py has one."""
import json
import pathlib
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "cli")]
from harness import CliTest, main  # noqa: E402
from rows import FAMILIES  # noqa: E402
from small_rows import MOST_BYTES, MOST_BYTES_OF_ALL, SMALL  # noqa: E402

WAYS = ((), ("--pipeline", "none"), ("--backend", "ref"))


class Small(CliTest):
    def test_each_model_gives_its_outputs(self):
        names = sorted(name for family in SMALL.values() for name in family)
        for way in WAYS:
            with self.subTest(way):
                cases = json.loads(self.kiln("verify", "--json", *way, str(HERE / "small")))["cases"]
                self.assertEqual([(case["name"], case["status"], case["reason"]) for case in cases],
                                 [(name, "pass", "") for name in names])

    def test_each_family_has_a_model(self):
        """Rows of rows_small.py stand for families whose own models are too large."""
        self.assertEqual(sorted(SMALL), sorted(family for family in FAMILIES if family != "small"))
        for family, names in SMALL.items():
            self.assertIn(len(names), (1, 2), family)

    def test_models_are_small(self):
        sizes = [sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) for folder in (HERE / "small").iterdir()]
        self.assertLessEqual(max(sizes), MOST_BYTES)
        self.assertLessEqual(sum(sizes), MOST_BYTES_OF_ALL)

    def test_expected_outputs_say_something(self):
        """No tolerance is as large as the largest element, and each case has inputs and outputs."""
        for folder in (HERE / "small").iterdir():
            tolerance = json.loads((folder / "data.json").read_text(encoding="utf-8"))
            self.assertLessEqual(tolerance["rtol"], 3e-2, folder.name)
            for kind in ("input", "output"):
                self.assertTrue((folder / f"test_data_set_0/{kind}_0.pb").exists(), folder.name)


if __name__ == "__main__":
    main()
