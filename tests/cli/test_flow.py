# SPDX-License-Identifier: Apache-2.0
"""Branches, loops and scans that a run decides: the cases of tests/onnx/flow, which tests/onnx/write_flow.py writes."""
import struct

from harness import SOURCE, CliTest, main, npy

CASES = SOURCE / "tests/onnx/flow"
WAYS = ((), ("--pipeline", "none"), ("--passes", "empty"), ("--backend", "ref"), ("--no-offload",), ("--threads", "1"),
        ("--threads", "2"), ("--prefer", "memory"), ("--poison",))
NESTED = """graph @f(%n: i64[], %x: f32[2], %w: f32[2]) {
  %y = loop(%n, _, %x) body(%i: i64[], %c: bool[], %v: f32[2]) {
    %e = exp(%v) : f32[2]
    %a = loop(%n, _, %e) body(%j: i64[], %d: bool[], %t: f32[2]) {
      %p = sub(%t, %w) : f32[2]
      return %d, %p
    } : f32[2]
    %q = sin(%a) : f32[2]
    return %c, %q
  } : f32[2]
  return %y
}
"""


class Flow(CliTest):
    def models(self):
        """Each model with its names of inputs and its sets of data."""
        paths = sorted(CASES.glob("*/model.onnx"))
        self.assertGreater(len(paths), 10)
        for path in paths:
            names = [value["name"] for value in self.json("info", path, "--json")["inputs"]]
            yield path, names, sorted(path.parent.glob("test_data_set_*"))

    def run_set(self, path, names, data, *options):
        inputs = [option for i, name in enumerate(names) for option in ("-i", f"{name}={data / f'input_{i}.pb'}")]
        return self.kiln("run", path, *inputs, "--expect", data, *options)

    def test_cases_have_their_outputs_in_every_way(self):
        for options in WAYS:
            with self.subTest(options=options):
                out = self.kiln("verify", CASES, *options)
                self.assertRegex(out, r"\b[1-9]\d* passed, 0 failed, 0 skipped")

    def test_cases_run_again(self):
        for path, names, sets in self.models():
            for data in sets:
                with self.subTest(case=path.parent.name, data=data.name):
                    self.run_set(path, names, data, "--runs", "3")

    def test_programs_run_from_files(self):
        for path, names, sets in self.models():
            program = self.dir / f"{path.parent.name}.kiln-program"
            if path.parent.name == "scan_of_nothing":
                continue
            with self.subTest(case=path.parent.name):
                self.kiln("compile", path, "-o", program)
                for data in sets:
                    self.run_set(program, names, data)

    def test_searches_of_no_samples(self):
        for case, shapes, tokens in (("ends", ("x=0x3",), "0,3,6"), ("scores", ("x=0x3",), "0,3,6"), ("texts", ("x=0x3",), "0,2,8"),
                                     ("speech", ("x=0x2x3", "d=0x2"), "0,3,9")):
            for options in WAYS:
                with self.subTest(case=case, options=options):
                    out = self.kiln("run", CASES / f"search_{case}/model.onnx", *(f"--shape={shape}" for shape in shapes), "--random", "1", *options)
                    self.assertIn(f"y: i32[{tokens}]", out)

    def test_texts_and_exported_models_run(self):
        for path, names, sets in self.models():
            for suffix in ("kiln", "onnx"):
                other = self.dir / f"{path.parent.name}.{suffix}"
                if (path.parent.name, suffix) == ("loop_ranks", "onnx"):
                    continue  # below
                with self.subTest(case=path.parent.name, form=suffix):
                    self.kiln("opt", path, "--passes", "empty", "-o", other, "--emit", "text" if suffix == "kiln" else suffix)
                    for data in sets:
                        self.run_set(other, names, data)

    def test_ranks_without_end_are_not_exported(self):
        """Each iteration adds a dim. The branch that refuses a rank above 6 has no operator in ONNX."""
        self.fails(3, "refused (unknown): no operator of ONNX", "opt", CASES / "loop_ranks/model.onnx", "--passes", "empty",
                   "-o", self.dir / "out.onnx", "--emit", "onnx")

    def test_ranks_end_a_run_where_they_are_too_big(self):
        self.write("n.npy", npy("<i8", (), struct.pack("<q", 7)))
        self.fails(1, "a carried value: expected a rank of 6 at most where it changes, found 7 or more",
                   "run", CASES / "loop_ranks/model.onnx", "-i", "n=n.npy", "--random", "1")

    def test_names_of_dims_stay(self):
        """A text that has names already gets the same ones."""
        texts = [self.dir / "once.kiln", self.dir / "twice.kiln"]
        for path, _, _ in self.models():
            with self.subTest(case=path.parent.name):
                for source, text in zip((path, texts[0]), texts):
                    self.kiln("opt", source, "--passes", "empty", "-o", text)
                self.assertEqual(*(text.read_text() for text in texts))

    def test_passes_keep_results(self):
        for path, _, _ in self.models():
            with self.subTest(case=path.parent.name):
                self.kiln("opt", path, "--check", "-o", self.dir / "out.kiln")

    def test_operators_are_supported(self):
        for path, _, _ in self.models():
            with self.subTest(case=path.parent.name):
                self.assertIn("0 not supported", self.kiln("check", path))

    def dump(self, iteration):
        """The names of the values that are dumped. The model has a loop in a loop; both run 12 times."""
        folder = self.dir / f"values-{iteration}"
        options = ("--iteration", iteration) if iteration else ()
        self.kiln("run", "nested.kiln", "-i", "n=n.npy", "--random", "1", "--dump-values", folder, *options)
        return [path.name.split("-", 1)[1] for path in sorted(folder.iterdir())]

    def test_values_of_iterations(self):
        self.write("nested.kiln", NESTED)
        self.write("n.npy", npy("<i8", (), struct.pack("<q", 12)))
        last = ["y.npy", "output%20y.npy"]
        self.assertEqual(self.dump(""), 12 * (["e.npy"] + 12 * ["p.npy"] + ["a.npy", "q.npy"]) + last)
        self.assertEqual(self.dump("11"), ["e.npy"] + 12 * ["p.npy"] + ["a.npy", "q.npy"] + last)
        self.assertEqual(self.dump("3,0"), ["e.npy", "p.npy", "a.npy", "q.npy"] + last)
        whole, one = self.dir / "values-", self.dir / "values-3,0"
        first = 3 * 15  # values of an iteration of the outer loop
        for i, name in enumerate(("e", "p")):
            self.assertEqual((one / f"{i:04}-{name}.npy").read_bytes(), (whole / f"{first + i:04}-{name}.npy").read_bytes())
        self.assertIn("6 agree, 0 differ", self.kiln("compare", one, one))

    def test_wrong_iterations(self):
        self.write("nested.kiln", NESTED)
        self.write("n.npy", npy("<i8", (), struct.pack("<q", 12)))
        command = ("run", "nested.kiln", "-i", "n=n.npy", "--random", "1", "--iteration")
        for number in ("12", "0,12", "0,0,0"):
            self.fails(1, f"--iteration {number}: no loop of the optimized graph has this iteration", *command, number,
                       "--dump-values", f"none-{number}")
        for text in ("x", "-1", "1,", ",1", "1.5", "99999999999999999999"):
            self.fails(2, f"--iteration: expected numbers from 0 on, such as 3 or 3,0, found '{text}'", *command, text,
                       "--dump-values", "none")
        self.fails(2, "--iteration 1: expected --dump-values, whose values it chooses", *command, "1")

    def test_time_limits_end_loops(self):
        """Without the limit this loop never ends."""
        path = self.write("endless.kiln", """graph @g(%x: i64[]) {
  %y = loop(_, _, %x) body(%i: i64[], %go: bool[], %a: i64[]) {
    %b = add(%a, %i) : i64[]
    return %go, %b
  } : i64[]
  return %y
}
""")
        self.fails(1, "time limit", "run", path, "--random", "1", "--time-limit", "0.2")


if __name__ == "__main__":
    main()
