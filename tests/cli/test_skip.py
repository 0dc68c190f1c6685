# SPDX-License-Identifier: Apache-2.0
"""Every pass of the default pipeline can be left out: the model still compiles, and computes what it should.

The digits model is run without each pass, and one of the models beside the source tree, in turn."""
import json
import re

from harness import DIGITS, SHARED, CliTest, main


def passes_of(text):
    return sorted(set(re.findall(r"pass: ([\w-]+)", text)))


class Skip(CliTest):
    def run_without(self, name, case):
        """Compiles through both levels, and runs what came out on the first data set."""
        data = case / "test_data_set_0"
        model = next(path for path in sorted(case.glob("*.onnx")))
        out = self.dir / "without.kiln"
        skip = ("--skip", name) if name else ()
        self.kiln("opt", model, "--stage", "ir", *skip, "-o", out)
        inputs = re.findall(r'(?m)^  input @(?:"([^"]+)"|([\w.]+)) :', out.read_text(encoding="utf-8"))
        given = []
        for i, names in enumerate(inputs):
            given += ["-i", f"{names[0] or names[1]}={data / f'input_{i}.pb'}"]
        tolerance = json.loads((case / "data.json").read_text()) if (case / "data.json").exists() else {}
        bounds = [word for key in tolerance for word in (f"--{key}", str(tolerance[key]))]
        self.kiln("run", out, "--pipeline", "none", *given, "--expect", data, *bounds, "--quiet")

    def test_every_pass_can_be_left_out(self):
        names = passes_of(self.kiln("opt", "--print-pipeline"))
        self.assertGreater(len(names), 10)
        cases = sorted(path.parent for path in SHARED.glob("models/*/model.onnx"))
        for i, name in enumerate(["", *names]):
            with self.subTest(skipped=name):
                self.run_without(name, DIGITS)
            if cases:
                with self.subTest(skipped=name, model=cases[i % len(cases)].name):
                    self.run_without(name, cases[i % len(cases)])


if __name__ == "__main__":
    main()
