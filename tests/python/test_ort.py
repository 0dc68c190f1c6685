#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""kiln_nn.InferenceSession and kiln_nn.ort: a program for ONNX Runtime runs after a change of its import. Where ONNX Runtime is
installed, signatures and results are compared with it."""
import inspect
import os
import tempfile
import threading
import unittest

from case import DIGITS, OPEN, kiln_nn, main, np, seven
from kiln_nn import ort

try:
    import onnxruntime
except ImportError:
    onnxruntime = None

# What has no meaning on one processor without providers.
LEFT_OUT = {"create_ortvalue_from_shape_and_type", "get_input_epdevices", "get_input_memory_infos", "get_output_memory_infos",
            "get_provider_graph_assignment_info", "get_tuning_results", "release_captured_graph", "run_with_ortvaluevector",
            "set_ep_dynamic_options", "set_tuning_results"}


class Class(unittest.TestCase):
    def test_a_program(self):
        options = ort.SessionOptions()
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
        options.intra_op_num_threads = 1
        session = ort.InferenceSession(str(DIGITS), options, providers=["CPUExecutionProvider"])
        entry, = session.get_inputs()
        self.assertEqual((entry.name, entry.type, entry.shape), ("image", "tensor(float)", [1, 1, 28, 28]))
        self.assertEqual(session.get_outputs()[0].name, "probabilities")
        probabilities, = session.run(None, {entry.name: seven()})
        self.assertEqual(probabilities.argmax(), 7)
        self.assertEqual(session.run(["probabilities"], {"image": seven()}, ort.RunOptions())[0].shape, (1, 10))
        self.assertEqual(session.get_providers(), ["CPUExecutionProvider"])
        self.assertEqual(session.get_modelmeta().graph_name, "digits")

    def test_errors(self):
        session = kiln_nn.InferenceSession(DIGITS.read_bytes())
        with self.assertRaisesRegex(ValueError, "missing from input feed"):
            session.run(None, {})
        with self.assertRaises(ValueError):
            session.run(None, {"image": seven(), "more": seven()})
        with self.assertRaises(ValueError):
            session.run(["no"], {"image": seven()})

    def test_threads_share_a_session(self):
        session = kiln_nn.InferenceSession(DIGITS)
        digits = []
        threads = [threading.Thread(target=lambda: digits.extend(
            int(session.run(None, {"image": picture})[0].argmax()) for _ in range(10))) for _ in range(4)]
        picture = seven()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(digits, [7] * 40)

    def test_async_and_binding(self):
        session = kiln_nn.InferenceSession(DIGITS)
        done, found = threading.Event(), []

        def back(results, data, error):
            found.extend((results, data, error))
            done.set()

        session.run_async(None, {"image": seven()}, back, 5)
        self.assertTrue(done.wait(60))
        self.assertEqual((found[0][0].argmax(), found[1], found[2]), (7, 5, ""))
        binding, out = session.io_binding(), np.zeros((1, 10), np.float32)
        binding.bind_cpu_input("image", seven())
        binding.bind_ortvalue_output("probabilities", ort.OrtValue.ortvalue_from_numpy(out))
        session.run_with_iobinding(binding)
        self.assertEqual(out.argmax(), 7)
        self.assertIs(binding.copy_outputs_to_cpu()[0], out)
        value = ort.OrtValue.ortvalue_from_numpy(seven())
        self.assertEqual(session.run_with_ort_values(None, {"image": value})[0].shape(), [1, 10])

    def test_memory_at_addresses(self):
        session = kiln_nn.InferenceSession(DIGITS)
        binding, picture, out = session.io_binding(), seven(), np.zeros((1, 10), np.float32)
        binding.bind_input("image", "cpu", 0, np.float32, picture.shape, picture.ctypes.data)
        binding.bind_output("probabilities", "cpu", 0, 1, out.shape, out.ctypes.data)
        binding.synchronize_inputs()
        session.run_with_iobinding(binding)
        binding.synchronize_outputs()
        self.assertEqual(out.argmax(), 7)
        with self.assertRaises(kiln_nn.ElementTypeError):
            binding.bind_input("image", "cpu", 0, np.float64, (1, 1, 28, 14), picture.ctypes.data)
            session.run_with_iobinding(binding)
        self.assertEqual(session.run(None, {"image": picture})[0].argmax(), 7)

    def test_values(self):
        for library in filter(None, (ort, onnxruntime)):
            value = library.OrtValue.ortvalue_from_shape_and_type([2, 3], np.float32)
            value.update_inplace(np.full((2, 3), 5, np.float32))
            self.assertTrue((value.numpy() == 5).all())
            self.assertEqual((value.data_type(), value.element_type(), list(value.shape()), value.device_name()),
                             ("tensor(float)", 1, [2, 3], "cpu"))
            self.assertEqual((value.is_tensor(), value.is_tensor_sequence(), value.has_value(), value.tensor_size_in_bytes()),
                             (True, False, True, 24))
            self.assertEqual(library.OrtValue.ortvalue_from_numpy(np.ones(2, np.int64)).element_type(), 7)
            self.assertNotEqual(value.data_ptr(), 0)
        with self.assertRaises(ValueError):
            ort.OrtValue(np.ones(2)).update_inplace(np.ones(3))

    def test_options(self):
        options = ort.SessionOptions()
        options.add_free_dimension_override_by_name("N", 4)
        options.enable_profiling = True
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        session = ort.InferenceSession(self.open_model(), options)
        x = np.ones((4, 3), np.float32)
        self.assertTrue((session.run(None, {"x": x, "y": x})[0] == 2).all())
        self.assertIn(" ms ", session.end_profiling())
        with self.assertRaises(ValueError):
            session.run(None, {"x": x[:2], "y": x[:2]})
        options.add_session_config_entry("kiln.pipeline", "no-such")
        with self.assertRaises(kiln_nn.PipelineError):
            ort.InferenceSession(str(DIGITS), options)

    def open_model(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = os.path.join(folder.name, "open.kiln")
        with open(path, "w", encoding="utf-8") as file:
            file.write(OPEN)
        return path


@unittest.skipIf(onnxruntime is None, "onnxruntime is absent")
class Compared(unittest.TestCase):
    def test_signatures(self):
        theirs = onnxruntime.InferenceSession
        for name in ["__init__"] + [name for name in dir(theirs) if not name.startswith("_")]:
            if name in LEFT_OUT:
                continue
            with self.subTest(name=name):
                self.assertEqual(list(inspect.signature(getattr(kiln_nn.InferenceSession, name)).parameters),
                                 list(inspect.signature(getattr(theirs, name)).parameters))

    def test_results_and_facts(self):
        theirs, ours = onnxruntime.InferenceSession(str(DIGITS)), ort.InferenceSession(str(DIGITS))
        for mine, other in zip(ours.get_inputs() + ours.get_outputs(), theirs.get_inputs() + theirs.get_outputs()):
            self.assertEqual((mine.name, mine.type, mine.shape), (other.name, other.type, other.shape))
        np.testing.assert_allclose(ours.run(None, {"image": seven()})[0], theirs.run(None, {"image": seven()})[0],
                                   rtol=1e-4, atol=1e-6)
        for fact in ("custom_metadata_map", "description", "domain", "graph_name", "producer_name", "version"):
            self.assertEqual(getattr(ours.get_modelmeta(), fact), getattr(theirs.get_modelmeta(), fact))


if __name__ == "__main__":
    main()
