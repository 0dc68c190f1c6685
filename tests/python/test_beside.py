#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Beside others in one process: PyGObject, whose GLib is another copy or the same, and PyTorch, which has its own OpenMP."""
import importlib
import sys
import threading
import unittest

from case import ADD, DIGITS, SKIPPED, kiln_nn, main, np, session_of, seven


def module(name):
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def read_digit():
    session = kiln_nn.load(DIGITS).compile(threads=2).session()
    return session.run({"image": seven()})["probabilities"].argmax()


@unittest.skipUnless(module("gi"), "PyGObject is absent")
class PyGObject(unittest.TestCase):
    def test_main_loop(self):
        from gi.repository import GLib
        loop, digits = GLib.MainLoop(), []

        def work():
            digits.append(read_digit())
            return len(digits) < 5 or loop.quit()

        GLib.idle_add(work)
        GLib.timeout_add_seconds(120, loop.quit)
        loop.run()
        self.assertEqual(digits, [7] * 5)
        with self.assertRaises(GLib.Error):
            GLib.KeyFile().load_from_file("no-such-file", GLib.KeyFileFlags.NONE)
        with self.assertRaises(kiln_nn.FileError):
            kiln_nn.load("no-such.onnx")


@unittest.skipUnless(module("torch"), "PyTorch is absent")
class PyTorch(unittest.TestCase):
    def test_tensors_in_and_out(self):
        import torch
        session = session_of(ADD)
        x, out = torch.arange(6, dtype=torch.float32).reshape(2, 3), torch.zeros(2, 3)
        result = session.run({"x": x, "y": x}, out={"z": out})
        self.assertIs(result["z"], out)
        self.assertTrue(torch.equal(out, 2 * x))
        self.assertTrue(torch.equal(torch.from_numpy(session.run({"x": x, "y": x})["z"]), 2 * x))
        self.assertTrue(torch.equal(torch.from_dlpack(kiln_nn.Tensor(x)), x))
        halves = session_of("graph @f(%x: bf16[N]) {\n  %y = neg(%x) : bf16[N]\n  return %y\n}\n")
        y = halves.run({"x": torch.ones(3, dtype=torch.bfloat16)})["y"]
        self.assertTrue(torch.equal(torch.from_dlpack(kiln_nn.Tensor(y)), -torch.ones(3, dtype=torch.bfloat16)))
        np.testing.assert_array_equal(session.run({"x": x.T.contiguous().T, "y": x})["z"], 2 * x.numpy())

    def test_both_compute(self):
        import torch
        failures = []

        def work():
            for _ in range(20):
                a = torch.rand(256, 256)
                if not torch.allclose(a @ torch.eye(256), a, atol=1e-5):
                    failures.append("torch")

        thread = threading.Thread(target=work)
        thread.start()
        digits = [read_digit() for _ in range(5)]
        thread.join()
        self.assertEqual((digits, failures), ([7] * 5, []))


if __name__ == "__main__":
    if not module("gi") and not module("torch"):
        print("skipped: neither PyGObject nor PyTorch is there")
        sys.exit(SKIPPED)
    main()
