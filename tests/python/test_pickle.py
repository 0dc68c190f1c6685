#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pickles and processes: models, programs, sessions and pipelines in others, by spawn and by fork."""
import gc
import mmap
import multiprocessing
import os
import pathlib
import pickle
import sys
import tempfile
import unittest

from case import ADD, DIGITS, kiln_nn, main, np, seven, text_model
from kiln_nn import passes


def copy_of(thing):
    return pickle.loads(pickle.dumps(thing))


def read_digit(program):
    return int(program.session().run({"image": seven()})["probabilities"].argmax()), os.getpid()


@passes.graph_pass("make-sub")
def make_sub(function):
    for node in function.nodes:
        if node.op == "add":
            new = function.build("sub", node.operands, before=node)
            node.results[0].replace(new.results[0])
            node.remove()


class Pickles(unittest.TestCase):
    def test_models_by_path_and_by_bytes(self):
        by_path = kiln_nn.load(DIGITS)
        self.assertLess(len(pickle.dumps(by_path)), 1000)
        by_bytes = kiln_nn.load(DIGITS.read_bytes())
        self.assertGreater(len(pickle.dumps(by_bytes)), 200000)
        for model in (by_path, by_bytes, text_model(ADD)):
            self.assertEqual(copy_of(model).inputs, model.inputs)

    def test_bytes_beside_the_pickle(self):
        content = DIGITS.read_bytes()
        for thing, restored in ((kiln_nn.load(content), lambda copy: copy.compile()),
                                (kiln_nn.load(content).compile(), lambda copy: copy)):
            beside = []
            pickled = pickle.dumps(thing, protocol=5, buffer_callback=beside.append)
            self.assertLess(len(pickled), 2000)
            self.assertEqual([memoryview(part).nbytes for part in beside], [len(content)])
            for parts in (beside, [memoryview(content)]):
                copy = pickle.loads(pickled, buffers=parts)
                self.assertEqual(read_digit(restored(copy))[0], 7)
                self.assertEqual(read_digit(restored(copy_of(copy)))[0], 7)
            for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
                copy = pickle.loads(pickle.dumps(thing, protocol=protocol))
                self.assertEqual(read_digit(restored(copy))[0], 7)

    def test_files_that_are_mapped(self):
        with open(DIGITS, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
            model = kiln_nn.load(mapped)
            self.assertRaises(BufferError, mapped.close)    # the model is in it
            self.assertEqual(read_digit(copy_of(model).compile())[0], 7)
            self.assertEqual(read_digit(model.compile())[0], 7)
            del model
            gc.collect()
        memory = bytearray(DIGITS.read_bytes())
        model = kiln_nn.load(memory)
        memory[:] = bytes(len(memory))                      # not the model's
        self.assertEqual(read_digit(copy_of(model).compile())[0], 7)

    def test_paths_are_absolute(self):
        before = os.getcwd()
        os.chdir(DIGITS.parent)
        try:
            pickled = pickle.dumps(kiln_nn.load(DIGITS.name))
        finally:
            os.chdir(before)
        self.assertEqual(pickle.loads(pickled).inputs[0].name, "image")

    def test_programs_keep_their_options(self):
        program = text_model(ADD).compile(constants={"y": np.ones((2, 3), np.float32)}, log=lambda line: None)
        result = copy_of(program).session().run({"x": np.ones((2, 3), np.float32)})["z"]
        self.assertTrue((result == 2).all())

    def test_loaded_programs(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "digits.kiln-program")
            kiln_nn.load(DIGITS).compile().save(path)
            for source in (path, pathlib.Path(path).read_bytes()):
                self.assertEqual(read_digit(copy_of(kiln_nn.load_program(source)))[0], 7)

    def test_sessions_without_carried_state(self):
        session = text_model("graph @f(%h: f32[2], %x: f32[2]) {\n  %n = add(%h, %x) : f32[2]\n  return %n\n}\n"
                             ).compile().session(threads=1)
        session.carry("n", "h")
        x = np.ones(2, np.float32)
        session.run({"h": x, "x": x})
        with self.assertRaises(kiln_nn.UsageError):
            copy_of(session).run({"x": x})
        self.assertEqual(copy_of(session).run({"x": x, "h": x})["n"][0], 2)

    def test_pipelines(self):
        for pipeline in (kiln_nn.Pipeline(), kiln_nn.Pipeline("default"), kiln_nn.Pipeline("dce,cse"),
                         passes.pipeline(make_sub, "dce")):
            self.assertEqual(str(copy_of(pipeline)), str(pipeline))
        program = copy_of(text_model(ADD).compile(pipeline=passes.pipeline(make_sub, "dce")))
        x = np.ones((2, 3), np.float32)
        self.assertTrue((program.session().run({"x": x, "y": x})["z"] == 0).all())


class Processes(unittest.TestCase):
    def check(self, method):
        program = kiln_nn.load(DIGITS).compile()
        self.assertEqual(read_digit(program)[0], 7)  # the pool of threads is there before a fork
        with multiprocessing.get_context(method).Pool(2) as pool:
            found = pool.map(read_digit, [program] * 4)
        self.assertTrue(all(digit == 7 and process != os.getpid() for digit, process in found))

    def test_spawn(self):
        self.check("spawn")

    def test_fork(self):
        self.check("fork")

    def test_a_child_of_fork_uses_what_is_there(self):
        session = kiln_nn.load(DIGITS).compile(threads=2).session()
        session.run({"image": seven()})
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            good = session.run({"image": seven()})["probabilities"].argmax() == 7
            os._exit(0 if good else 1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)


if __name__ == "__main__":
    main()
