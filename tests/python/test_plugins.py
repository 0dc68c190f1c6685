#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plug-ins in C, which link to nothing of Kiln: operators and passes, in this process and in others."""
import ctypes
import multiprocessing
import os
import pathlib
import pickle
import subprocess
import sys
import tempfile
import unittest

from case import SOURCE, kiln_nn, main, np, text_model

PLUGINS = pathlib.Path(os.environ.get("KILN_PLUGIN_DIR", "/nonexistent"))
LIBKILN = os.environ.get("KILN_LIBRARY", "/nonexistent")
EXAMPLE, PASSES, WRONG, MISSING = (PLUGINS / f"plugin-{name}.so" for name in
                                   ("example", "good", "wrong_op_version", "missing_function"))
MODEL = SOURCE / "examples/plugin-op/model.kiln"
TANH = "graph @f(%x: f32[3]) {\n  %a = tanh(%x) : f32[3]\n  %y = identity(%a) : f32[3]\n  return %y\n}\n"
X = np.array([[1, -2, 3, 4, -5, 6]], np.float32)
# In a process of its own, the other copy comes first.
TWO_COPIES = """
import ctypes, sys
ctypes.CDLL(sys.argv[1], ctypes.RTLD_GLOBAL)
import kiln_nn
try:
    kiln_nn.load_plugin(sys.argv[2])
except kiln_nn.PipelineError as error:
    print(error)
"""


def run_example(program):
    return program.session().run({"x": X})


def expected():
    y = X / (2 + np.abs(X))
    return y[:, ::2] + y[:, 1::2]


def is_global(name):
    return hasattr(ctypes.CDLL(None), name)


class Operators(unittest.TestCase):
    def setUp(self):
        kiln_nn.load_plugin(EXAMPLE)

    def test_a_model_uses_them(self):
        program = kiln_nn.load(MODEL).compile()
        kiln_nn.load_plugin(str(EXAMPLE))               # again: nothing changes
        found, = run_example(program).values()
        np.testing.assert_allclose(found, expected(), rtol=1e-6)

    def test_the_model_was_not_known_before(self):
        code = f"import kiln_nn\ntry:\n    kiln_nn.load({str(MODEL)!r}).compile()\nexcept kiln_nn.Error as error:\n    print(error)"
        found = subprocess.run([sys.executable, "-B", "-c", code], capture_output=True, text=True, check=True)
        self.assertIn("no plug-in has it", found.stdout)

    def test_pickles_load_them(self):
        model = kiln_nn.load(MODEL)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "example.kiln-program")
            model.compile().save(path)
            programs = (model.compile(), kiln_nn.load_program(path))
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                for results in pool.map(run_example, programs):
                    np.testing.assert_allclose(*results.values(), expected(), rtol=1e-6)

    def test_other_libraries_stay_hidden(self):
        """Other packages bring their own libpng: those of Kiln must not stand in their way."""
        self.assertTrue(is_global("kiln_throw"))
        for name in ("png_create_read_struct", "fy_document_build_from_string", "kiln_lower", "PyInit__kiln"):
            self.assertFalse(is_global(name), name)

    def test_files_that_are_refused(self):
        for path, text in ((PLUGINS / "nothing.so", "there is no such file"), (WRONG, "built for version"),
                           (MISSING, "undefined symbol: kiln_function_that_is_nowhere"), (PASSES, "it has no symbol kiln_op_plugin")):
            with self.assertRaisesRegex(kiln_nn.PipelineError, text):
                kiln_nn.load_plugin(path)
        with self.assertRaises(TypeError):
            kiln_nn.load_plugin(None)

    def test_another_copy_of_kiln_is_not_called(self):
        found = subprocess.run([sys.executable, "-B", "-c", TWO_COPIES, LIBKILN, EXAMPLE], capture_output=True, text=True)
        self.assertEqual(found.returncode, 0, found.stderr)
        self.assertIn("this process has another copy of Kiln", found.stdout)


class Passes(unittest.TestCase):
    def check(self, pipeline):
        program = text_model(TANH).compile(pipeline=pipeline)
        for program in (program, pickle.loads(pickle.dumps(program))):
            x = np.array([1, 2, -3], np.float32)
            np.testing.assert_allclose(program.session().run({"x": x})["y"], x / (1 + np.abs(x)), rtol=1e-6)

    def test_in_a_pipeline_and_in_its_pickle(self):
        before = os.getcwd()
        os.chdir(PLUGINS)
        try:
            pipeline = kiln_nn.Pipeline().load_plugin(PASSES.name).add("drop-identities")
        finally:
            os.chdir(before)
        for pipeline in (pipeline, pickle.loads(pickle.dumps(pipeline))):
            lines = []
            text_model(TANH).compile(pipeline=pipeline, log=lines.append)
            self.assertIn("drop", "\n".join(lines))

    def test_in_a_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "soften.yaml"
            path.write_text(f"version: 1\nflags: [finite-math]\nplugins: ['{PASSES}']\ngraph: [soften, drop-identities]\n",
                            encoding="utf-8")
            self.check(kiln_nn.Pipeline(path))
            before = os.getcwd()
            os.chdir(folder)
            try:
                program = text_model(TANH).compile(pipeline=path.name)
            finally:
                os.chdir(before)
            pickle.loads(pickle.dumps(program))


if __name__ == "__main__":
    main()
