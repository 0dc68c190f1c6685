# SPDX-License-Identifier: Apache-2.0
"""kiln compile --format object: what it writes is linked with libkiln, several models in one binary, and computes the bits of
the program file of the same model. OFF-12, OFF-13: the artifact is an object, whose calls go by handle."""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

from harness import FAILED, FOLDS_AT_FIRST_RUN, KILN, MODEL, SOURCE, USAGE, CliTest, main

LIBRARY = pathlib.Path(os.environ.get("KILN_LIBRARY_DIR", SOURCE / "build/dev/lib"))

# Runs each linked program beside the program file of the same model: three times, for what a run leaves to the next.
DRIVER = """#include <stdio.h>
#include <string.h>
%(includes)s

/* Open dims are 5. */
static size_t
dims_of(KilnProgram *program, unsigned i, int64_t *dims)
{
    const KilnTensorInfo *info = kiln_program_input(program, i);
    size_t n = 1;
    for (int d = 0; d < info->rank; d++) {
        dims[d] = info->dims[d] < 0 ? 5 : info->dims[d];
        n *= (size_t)dims[d];
    }
    return n;
}

static KilnSession *
open_session(KilnProgram *program, float **inputs, gboolean poison)
{
    KilnSessionOptions options = KILN_SESSION_OPTIONS_INIT;
    options.poison = poison;
    KilnSession *session = kiln_session_new(program, &options, NULL);
    for (unsigned i = 0; session && i < kiln_program_n_inputs(program); i++) {
        int64_t dims[8];
        dims_of(program, i, dims);
        if (!kiln_session_bind_input_shaped(session, i, inputs[i], kiln_program_input(program, i)->rank, dims, NULL))
            return NULL;
    }
    return session;
}

static int
same(KilnProgram *linked, const char *path)
{
    KilnProgram *loaded = kiln_program_load(path, NULL, NULL);
    if (!linked || !loaded || kiln_program_n_inputs(linked) > 4)
        return 0;
    float *inputs[4];
    for (unsigned i = 0; i < kiln_program_n_inputs(linked); i++) {
        int64_t dims[8];
        size_t n = dims_of(linked, i, dims);
        inputs[i] = g_new(float, n);
        for (size_t k = 0; k < n; k++)
            inputs[i][k] = (float)((k + i) * 7919 %% 101) / 101;
    }
    KilnSession *sessions[] = { open_session(linked, inputs, FALSE), open_session(loaded, inputs, FALSE),
                                open_session(linked, inputs, TRUE) };
    for (int run = 0; run < 3; run++) {
        for (int s = 0; s < 3; s++)
            if (!sessions[s] || !kiln_session_run(sessions[s], NULL))
                return 0;
        for (unsigned i = 0; i < kiln_program_n_outputs(linked); i++) {
            KilnTensorInfo info = KILN_TENSOR_INFO_INIT;
            const void *want = kiln_session_output(sessions[1], i, &info, NULL);
            if (memcmp(kiln_session_output(sessions[0], i, NULL, NULL), want, (size_t)info.bytes) != 0 ||
                memcmp(kiln_session_output(sessions[2], i, NULL, NULL), want, (size_t)info.bytes) != 0)
                return 0;
        }
    }
    for (int s = 0; s < 3; s++)
        kiln_session_free(sessions[s]);
    kiln_program_unref(loaded);
    kiln_program_unref(linked);
    return 1;
}

int
main(void)
{
    int failed = 0;
%(checks)s
    return failed;
}
"""

# One program for all shapes, without an entry function.
OPEN_DIMS = """graph @f(%x: f32[T,64]) {
  %w = const @w : f32[64,48]
  %a = matmul(%x, %w) : f32[T,48]
  %y = gelu(%a) : f32[T,48]
  return %y
}
constants { @w = random_normal(seed=1, std=0.1) : f32[64,48] }
"""

# Weights that are packed, read as they are, and written.
STATE = """func @f {
  weight @w : f32[64,48] const
  weight @v : f32[48] const
  weight @state = _ : f32[8,48]
  input @x : f32[8,64]
  output @y : f32[8,48]
  %a = alloc : f32[8,48]
  gemm @out %a, @in @x, @in @w, @in @v loc("a */ in a comment")
  add @out @state, @in @state, @in %a
  mul @out @y, @in @state, @in @v
  dealloc %a
}
constants { @w = random_normal(seed=1, std=1) : f32[64,48]
  @v = random_normal(seed=2, std=1) : f32[48] }
"""
# The functions of loops and branches have calls of their own, which the entry function does not make.
FLOW = """graph @f(%x: f32[4]) {
  %n = const @n : i64[]
  %w = const @w : f32[4]
  %half = const @half : f32[]
  %y, %s = loop(%n, _, %x) body(%i: i64[], %go: bool[], %a: f32[4]) {
    %m = reduce_max(%a) {keepdims=false} : f32[]
    %c = less(%m, %half) : bool[]
    %b = if(%c) then {
      %t = add(%a, %x) : f32[4]
      return %t
    } else {
      %e = mul(%a, %w) : f32[4]
      return %e
    } : f32[4]
    return %go, %b, %m
  } : f32[4], f32[70]
  return %y, %s
}
constants { @n = [70] : i64[] @w = [0.5, 0.25, 0.75, 0.125] : f32[4] @half = [2] : f32[] }
"""
# An index that its table lacks is found at run time.
GATHER = """graph @f(%i: i64[2]) {
  %t = const @t : f32[4]
  %r = relu(%t) : f32[4]
  %y = gather(%r, %i) : f32[2]
  return %y
}
constants { @t = [1, 2, 3, 4] : f32[4] }
"""


class Objects(CliTest):
    def build(self, source, *objects):
        """Compiles a program with the objects and returns its path."""
        flags = subprocess.run(["pkg-config", "--cflags", "--libs", "glib-2.0"], capture_output=True, text=True, check=True)
        binary = self.dir / "binary"
        command = ["cc", "-std=c17", "-Wall", "-Werror", f"-I{SOURCE}/include/kiln", "-o", binary,
                   self.write("main.c", source), *objects, f"-L{LIBRARY}", "-lkiln", f"-Wl,-rpath,{LIBRARY}",
                   *flags.stdout.split()]
        result = subprocess.run(command, cwd=self.dir, capture_output=True, text=True, check=False)
        self.assertEqual(result.returncode, 0, result.stderr)
        return binary

    def object(self, model, name, *options):
        self.kiln("compile", model, "-o", f"{name}.kiln-program", *options)
        self.kiln("compile", "--format", "object", model, "-o", f"{name}.o", *options)

    def test_several_models_in_one_binary(self):
        fold, state = self.write("fold.kiln", FOLDS_AT_FIRST_RUN), self.write("state.kiln", STATE)
        open_dims, flow = self.write("open.kiln", OPEN_DIMS), self.write("flow.kiln", FLOW)
        subjects = {"digits": (MODEL,), "own": (MODEL, "--pipeline", "own"), "vendor": (MODEL, "--pipeline", "offload"),
                    "fold": (fold,), "state": (state,), "open": (open_dims,), "flow": (flow,)}
        for name, (model, *options) in subjects.items():
            self.object(model, name, *options)
        checks = "".join(f'    failed |= !same({name}_load(NULL), "{name}.kiln-program") && printf("{name}\\n");\n'
                         for name in subjects)
        includes = "\n".join(f'#include "{name}.h"' for name in subjects)
        binary = self.build(DRIVER % {"includes": includes, "checks": checks}, *[f"{name}.o" for name in subjects])
        result = subprocess.run([binary], cwd=self.dir, capture_output=True, text=True, check=False)
        self.assertEqual((result.returncode, result.stdout), (0, ""), result.stderr)
        sections = subprocess.run(["readelf", "-SW", "digits.o"], cwd=self.dir, capture_output=True, text=True, check=True)
        self.assertRegex(sections.stdout, r"\.kiln\.weights +PROGBITS .* A +0 +0 4096")

    def test_example(self):
        shutil.copytree(SOURCE / "examples/linked", self.dir / "linked")
        self.object(MODEL, "digits")
        self.object("linked/surest.kiln", "surest")
        binary = self.build((self.dir / "linked/linked.c").read_text(), "digits.o", "surest.o")
        shown = subprocess.run([binary], capture_output=True, text=True, check=True).stdout.splitlines()
        self.assertEqual([bool(re.fullmatch(r"  \d  \d\.\d{6}(  <)?", line)) for line in shown], [True] * 10)
        scores = [float(line.split()[1]) for line in shown]
        self.assertEqual([line.endswith("<") for line in shown], [score == max(scores) for score in scores])

    def test_source(self):
        self.kiln("compile", "--format", "c", MODEL, "-o", "./digits.c", "--name", "reader")
        self.assertEqual(self.files(), ["digits.c", "digits.h", "reader.kiln-program"])
        source = (self.dir / "digits.c").read_text()
        self.assertIn("frame->arena + ", source)
        self.assertNotIn('kiln_call_run("', source)
        subprocess.run(["cc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-c", "digits.c"], cwd=self.dir, check=True)
        self.assertIn("KilnProgram *reader_load(GError **error);", (self.dir / "digits.h").read_text())

    def test_messages_of_runs(self):
        self.object(self.write("gather.kiln", GATHER), "gather", "--pipeline", "none")
        binary = self.build("""#include "gather.h"
#include <stdio.h>

int
main(void)
{
    static const int64_t indices[] = { 1, 9 };
    GError *error = NULL;
    KilnProgram *program = gather_load(NULL);
    KilnSession *session = kiln_session_new(program, NULL, NULL);
    kiln_session_bind_input(session, 0, indices, GATHER_INPUT_0_BYTES, NULL);
    if (!kiln_session_run(session, &error))
        puts(error->message);
    return 0;
}
""", "gather.o")
        shown = subprocess.run([binary], capture_output=True, text=True, check=True).stdout
        self.assertIn("y (gather): ", shown)

    def test_names(self):
        self.kiln("compile", "--format", "object", MODEL, "-o", "2-digits.v1.o")
        self.assertIn("KilnProgram *_2_digits_load(", (self.dir / "2-digits.v1.h").read_text())
        self.fails(USAGE, "--name: expected an identifier of C, found a-b", "compile", MODEL, "-o", "x.o", "--name", "a-b")
        self.fails(USAGE, "-o: expected a name that ends in .o, found x.h", "compile", MODEL, "-o", "x.h", "--format", "object")
        self.fails(USAGE, "-o: expected a name that ends in .c, found x", "compile", MODEL, "-o", "x", "--format", "c")
        self.fails(USAGE, "--format: expected program, object or c, found elf", "compile", MODEL, "-o", "x", "--format", "elf")

    def compile_with(self, compiler):
        return subprocess.run([KILN, "compile", "--format", "object", MODEL, "-o", "x.o"], cwd=self.dir, capture_output=True,
                              env=dict(os.environ, CC=compiler), text=True, check=False)

    def test_headers_of_others_stay(self):
        header = self.write("model.h", "#define MINE\n")
        for form, file in ("object", "model.o"), ("c", "model.c"):
            self.fails(FAILED, "model.h: expected no file, or one that kiln compile wrote, found another", "compile", MODEL,
                       "--format", form, "-o", file)
            self.assertEqual(self.files(), ["model.h"])
        os.unlink(header)
        for _ in range(2):
            self.kiln("compile", MODEL, "--format", "object", "-o", "model.o")

    def test_compilers_with_arguments(self):
        """CC is a command line: words of its own, and quoted ones."""
        self.assertEqual(self.compile_with("cc -O0 -DX='a b'").returncode, 0)
        self.assertTrue((self.dir / "x.o").exists())
        result = self.compile_with("cc 'open")
        self.assertEqual(result.returncode, USAGE)
        self.assertIn("CC=cc 'open: ", result.stderr)

    def test_what_is_interrupted_leaves_no_folder(self):
        """As by the terminal's interrupt key, which the compiler gets too."""
        (self.dir / "tmp").mkdir()
        started = self.dir / "started"
        # One process: a shell that is interrupted while it forks is late by as long as its child sleeps.
        compiler = self.write("cc.py", f"import pathlib, signal, time\nsignal.signal(signal.SIGINT, signal.SIG_DFL)\n"
                              f"pathlib.Path({str(started)!r}).touch()\ntime.sleep(60)\n")
        environment = dict(os.environ, TMPDIR=str(self.dir / "tmp"), CC=f"{sys.executable} -S {compiler}")
        with subprocess.Popen([KILN, "compile", "--format", "object", MODEL, "-o", "x.o"], cwd=self.dir, env=environment,
                              stderr=subprocess.DEVNULL, start_new_session=True) as process:
            for _ in range(3000):
                if started.exists() or process.poll() is not None:
                    break
                time.sleep(0.01)
            self.assertEqual(len(list((self.dir / "tmp").iterdir())), 1)
            os.killpg(process.pid, signal.SIGINT)
            self.assertEqual(process.wait(60), -signal.SIGINT)
        self.assertEqual(self.files(), ["cc.py", "started"])
        self.assertEqual(list((self.dir / "tmp").iterdir()), [])

    def test_nothing_half_is_written(self):
        result = self.compile_with("false")
        self.assertEqual(result.returncode, FAILED)
        self.assertIn("false: the C compiler failed", result.stderr)
        result = self.compile_with("/no/compiler")
        self.assertEqual(result.returncode, FAILED)
        self.assertIn("/no/compiler: the C compiler cannot be run", result.stderr)
        self.fails(FAILED, "cannot be written", "compile", "--format", "object", MODEL, "-o", "no/x.o")
        self.assertEqual(self.files(), [])


if __name__ == "__main__":
    main()
