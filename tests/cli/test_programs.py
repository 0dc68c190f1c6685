# SPDX-License-Identifier: Apache-2.0
"""kiln compile, and every command on what it wrote. `Models` compares the bits of all models beside the source tree."""
import os
import subprocess
import unittest

from harness import FAILED, FOLDS_AT_FIRST_RUN, KILN, MODEL, OPEN, SHARED, UNSUPPORTED, USAGE, CliTest, main


LAYER = """graph @f(%x: f32[T,64]) {
  %w = const @w : f32[64,48]
  %a = matmul(%x, %w) : f32[T,48]
  %y = gelu(%a) : f32[T,48]
  return %y
}
constants { @w = random_normal(seed=1, std=0.1) : f32[64,48] }
"""


class Compiled(CliTest):
    def compile(self, model=MODEL, name="model.kiln-program", *options):
        path = self.dir / name
        self.kiln("compile", model, "-o", path, *options)
        return path

    def outputs(self, subject, *options):
        self.kiln("run", subject, "--random", "7", "-o", self.dir / "out", "--quiet", *options)
        files = sorted((self.dir / "out").iterdir())
        found = [file.read_bytes() for file in files]
        for file in files:
            file.unlink()
        return found


class Programs(Compiled):
    def test_run(self):
        for pipeline in "own", "default", "offload", "none":
            options = "--pipeline", pipeline
            program = self.compile(MODEL, f"{pipeline}.kiln-program", *options)
            self.assertEqual(self.outputs(program), self.outputs(MODEL, *options))
            self.assertEqual(self.outputs(program, "--poison"), self.outputs(program))

    def test_memory_and_text(self):
        program = self.compile(MODEL, "p", "--threads", "1")
        of_model = self.json("memory", "--json", "--threads", "1", MODEL)
        of_program = self.json("memory", "--json", program)
        del of_model["plan_ms"], of_program["plan_ms"]
        self.assertEqual(of_program, of_model)
        text = self.kiln("opt", program)
        self.assertIn("func @", text)
        self.assertRegex(text, r"(?m)^  @\S+ = extern : f32\[")
        self.assertEqual(self.kiln("opt", "--stage", "ir", program), text)
        # What is packed cannot be run from its text.
        self.fails(UNSUPPORTED, "the values are extern", "run", self.write("t.kiln", text))
        # Where nothing is packed, the text points into the file and gives the same bits.
        plain = self.compile(MODEL, "plain", "--backend", "ref")
        text = self.write("plain.kiln", self.kiln("opt", plain))
        self.assertEqual(self.outputs(text, "--backend", "ref", "--pipeline", "none"), self.outputs(plain))
        self.fails(USAGE, "--io: expected a model", "memory", "--io", program)
        self.fails(USAGE, "--stage graph: expected a model at the graph level", "opt", "--stage", "graph", program)

    def test_choices(self):
        program = self.compile(MODEL, "offload", "--pipeline", "offload")
        of_model = self.kiln("opt", MODEL, "--pipeline", "offload", "--print-choices")
        self.assertEqual(self.kiln("opt", program, "--print-choices"), of_model)

    def test_verify(self):
        self.kiln("run", MODEL, "--random", "3", "-o", self.dir / "case/test_data_set_0", "--save-inputs",
                  self.dir / "case/test_data_set_0", "--quiet")
        self.compile(MODEL, "case/model.kiln-program")
        self.assertEqual(self.kiln("verify", self.dir / "case").splitlines(), ["PASS case", "1 passed, 0 failed, 0 skipped"])

    def test_settled_options(self):
        program = self.compile(MODEL, "p", "--threads", "1")
        for option in ["--pipeline=none"], ["--passes=dce"], ["--backend=ref"], ["--no-offload"], ["--mode=infer"], \
                ["--const", "run:x"], ["--shape", "x=1"], ["--prefer=speed"], ["--no-verify"]:
            name = option[0].split("=")[0]
            self.fails(USAGE, f"{name}: expected a model, found {program}, which is compiled already", "run", program, *option)
        self.fails(USAGE, "--only: expected a model", "opt", program, "--only=dce")
        self.fails(USAGE, "--stats: expected a model", "opt", program, "--stats")
        self.fails(USAGE, "threads: expected 0 to 1, as compiled, found 2", "run", program, "--threads=2", "--random", "1")
        for command in "check", "compare", "bisect", "compile":
            more = ["-o", "x"] if command == "compile" else []
            self.fails(FAILED, f"{program}: expected a model, found a compiled program", command, program, *more)

    def test_refusals(self):
        self.fails(USAGE, "expected -o F, found none", "compile", MODEL)
        model = self.write("open.kiln", OPEN)
        ranks = self.write("ranks.kiln", "graph @f(%x: f32[*]) {\n  %y = relu(%x) : f32[*]\n  return %y\n}\n")
        self.fails(UNSUPPORTED, "found one that is compiled for each shape", "compile", ranks, "-o", self.dir / "p")
        self.assertEqual(self.files(), ["open.kiln", "ranks.kiln"])
        self.compile(model, "p", "--shape", "x=2x3", "--shape", "y=2x3")
        self.fails(FAILED, "cannot be written", "compile", MODEL, "-o", self.dir / "no/folder")
        self.assertEqual(self.files(), ["open.kiln", "p", "ranks.kiln"])

    def test_open_dims(self):
        model = self.write("open.kiln", LAYER)
        program = self.compile(model, "p")
        for rows in 1, 5, 70:
            shape = "--shape", f"x={rows}x64"
            self.assertEqual(self.outputs(program, *shape), self.outputs(model, *shape))
        self.assertIn("x: f32[T,64]", self.kiln("info", program))
        of_model, of_program = (self.json("memory", "--json", subject) for subject in (model, program))
        del of_model["plan_ms"], of_program["plan_ms"]
        self.assertEqual(of_program, of_model)
        self.assertIn("dims T=", self.kiln("opt", program))
        # The text is a model with open dims, too.
        plain = self.compile(model, "plain", "--backend", "ref")
        text = self.write("t.kiln", self.kiln("opt", plain))
        for rows in 1, 5:
            shape = "--shape", f"x={rows}x64"
            self.assertEqual(self.outputs(text, "--backend", "ref", "--pipeline", "none", *shape), self.outputs(plain, *shape))

    def test_shapes_of_open_programs(self):
        program = self.compile(self.write("open.kiln", LAYER), "p", "--shape", "T=1..64%8")
        self.fails(USAGE, "its shape is open: give --shape x=", "run", program, "--random", "1")
        self.fails(FAILED, "dim T: expected a multiple of 8 in 8..64, found 12", "run", program, "--random", "1", "--shape", "x=12x64")
        self.fails(FAILED, "expected f32[T,64], found", "run", program, "--random", "1", "--shape", "x=8x65")
        self.fails(USAGE, "expected one of the inputs x or of the open dims T, found z", "run", program, "--random", "1", "--shape", "z=8")
        self.fails(USAGE, "dims of inputs take numbers alone", "run", program, "--random", "1", "--shape", "x=1..8x64")
        self.assertIn("proved", self.kiln("memory", program))
        self.assertEqual(self.outputs(program, "--shape", "x=8x64"), self.outputs(program, "--shape", "x=8x64", "--threads", "1"))

    def test_damage(self):
        program = self.compile(MODEL, "p")
        whole = program.read_bytes()
        for at in 40, len(whole) // 2, len(whole) - 5000:
            damaged = bytearray(whole)
            damaged[at] ^= 1
            self.fails(FAILED, "the file is damaged", "run", self.write("damaged", bytes(damaged)))
        for size in 9, 500, len(whole) // 2, len(whole) - 1:
            self.fails(FAILED, "cut short", "run", self.write("cut", whole[:size]))

    @unittest.skipIf("KILN_CPU_ISA" in os.environ, "the instruction set is given")
    def test_another_processor(self):
        program = self.compile(MODEL, "p")
        environment = dict(os.environ, KILN_CPU_ISA="portable")
        result = subprocess.run([KILN, "run", program], env=environment, capture_output=True, text=True, check=False)
        if "AVX" not in subprocess.run([KILN, "--version"], capture_output=True, text=True, check=True).stdout:
            self.skipTest("no instruction set to be without")
        self.assertEqual(result.returncode, UNSUPPORTED)
        self.assertIn("expected a program for a processor with portable kernels, found one for AVX", result.stderr)

    def test_constants_of_the_first_run(self):
        model = self.write("fold.kiln", FOLDS_AT_FIRST_RUN)
        program = self.compile(model, "p")
        self.assertEqual(self.json("run", "--json", "--random", "1", program)["fold_runs"], 1)
        self.assertEqual(self.outputs(program), self.outputs(model))


class Models(Compiled):
    def test_all(self):
        models = sorted(SHARED.glob("models/*/model.onnx"))
        if not models:
            self.skipTest("no models beside the source tree")
        for model in models:
            for pipeline in "own", "default":
                with self.subTest(model=model.parent.name, pipeline=pipeline):
                    program = self.compile(model, "p", "--pipeline", pipeline)
                    self.assertEqual(self.outputs(program), self.outputs(model, "--pipeline", pipeline))


if __name__ == "__main__":
    main()
