# SPDX-License-Identifier: Apache-2.0
"""What `kiln opt` prints at either level parses back to the same text and bytes, and runs to the same bits as the model."""
import pathlib
import unittest

from harness import MODEL, SHARED, CliTest, main


class Checks(CliTest):
    def outputs(self, model, name, *options):
        self.kiln("run", model, "--random", "7", "-o", name, *options)
        return {path.name: path.read_bytes() for path in (self.dir / name).iterdir()}

    def check_files(self, model):
        expected = self.outputs(model, "model")
        self.assertTrue(expected)
        for stage in ("graph", "ir"):
            for folder in ("a", "b"):
                (self.dir / folder).mkdir(exist_ok=True)
            first, second = self.dir / "a/text.kiln", self.dir / "b/text.kiln"
            self.kiln("opt", model, "--stage", stage, "-o", first)
            self.kiln("opt", first, "--pipeline", "none", "-o", second)
            self.assertEqual(first.read_text(), second.read_text())
            data = [pathlib.Path(f"{path}.bin") for path in (first, second)]
            self.assertEqual(data[0].exists(), data[1].exists())
            if data[0].exists():
                self.assertEqual(data[0].read_bytes(), data[1].read_bytes())
            self.assertEqual(self.outputs(first, "text"), expected, (model, stage))
            # Without passes the graph level does not choose algorithms again, which have bits of their own.
            unchosen = expected
            if stage == "graph":
                self.kiln("opt", model, "--stage", "ir", "--skip", "choose-algorithms", "-o", "direct.kiln")
                unchosen = self.outputs(self.dir / "direct.kiln", "direct", "--pipeline", "none")
            self.assertEqual(self.outputs(first, "text", "--pipeline", "none"), unchosen, (model, stage))

    def check_standard_output(self, model):
        """A text in a file elsewhere holds the constants; one whose place is not known points into the model's file."""
        expected = self.outputs(model, "model")
        self.write("beside/model.onnx", model.read_bytes())
        (self.dir / "elsewhere").mkdir()
        for stage in ("graph", "ir"):
            beside = self.write("beside/text.kiln", self.kiln("opt", self.dir / "beside/model.onnx", "--stage", stage))
            elsewhere = self.dir / "elsewhere/text.kiln"
            with open(elsewhere, "wb") as out:
                self.start("opt", model, "--stage", stage, stdout=out)
            self.assertNotIn("file(", elsewhere.read_text())
            for path in (beside, elsewhere):
                self.assertEqual(self.kiln("opt", path, "--pipeline", "none"), pathlib.Path(path).read_text())
                self.assertEqual(self.outputs(path, "text"), expected)


class Digits(Checks):
    def test_digits(self):
        self.check_files(MODEL)
        self.check_standard_output(MODEL)

    def test_relative_paths(self):
        self.write("model.onnx", MODEL.read_bytes())
        text = self.kiln("opt", "model.onnx", "--pipeline", "none")
        expected = self.outputs("model.onnx", "model")
        self.write("text.kiln", text)
        self.assertEqual(self.outputs("text.kiln", "text"), expected)


class Models(Checks):
    """A test for each model beside the source tree."""


def add_models():
    paths = sorted((SHARED / "models").glob("*/model.onnx"))
    if not paths:
        Models.test_none = lambda self: self.skipTest("no models beside the source tree")
    for path in paths:
        def test(self, path=path):
            self.check_files(path)
            if path.stat().st_size < 1 << 23:
                self.check_standard_output(path)
        setattr(Models, f"test_{path.parent.name}", test)


add_models()

if __name__ == "__main__":
    main()
