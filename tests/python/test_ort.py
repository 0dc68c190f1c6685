#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""kiln_nn.InferenceSession and kiln_nn.ort: a program for ONNX Runtime runs after a change of its import. Where ONNX Runtime is
installed, signatures and results are compared with it."""
import inspect
import json
import os
import pickle
import tempfile
import threading
import time
import unittest

from case import DIGITS, OPEN, kiln_nn, main, np, seven
from kiln_nn import ort

try:
    import onnxruntime
except ImportError:
    onnxruntime = None

# What has no meaning on one processor without providers.
LEFT_OUT = {"create_ortvalue_from_shape_and_type", "get_input_epdevices", "get_input_memory_infos", "get_output_memory_infos",
            "get_provider_graph_assignment_info", "release_captured_graph", "run_with_ortvaluevector", "set_ep_dynamic_options"}
# Members of the other classes that are for devices, for sparse tensors, or for what has no counterpart.
OTHERS = {"add_active_adapter", "add_external_initializers", "add_external_initializers_from_files_in_memory",
          "add_provider_for_devices", "as_sparse_tensor", "clear_ep_context_data_read_func", "execution_order",
          "get_outputs_as_ortvaluevector", "ort_value_from_sparse_tensor", "set_ep_context_data_read_func",
          "set_load_cancellation_flag", "set_provider_selection_policy", "set_provider_selection_policy_delegate"}
# Loops for minutes.
ENDLESS = """graph @endless(%x: f32[1], %n: i64[]) {
  %y = loop(%n, _, %x) body(%i: i64[], %go: bool[], %at: f32[1]) {
    %next = sin(%at) : f32[1]
    return %go, %next
  } : f32[1]
  return %y
}
"""


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

    def test_pickle(self):
        session = kiln_nn.InferenceSession(DIGITS)
        session.run(None, {"image": seven()})
        self.assertEqual(pickle.loads(pickle.dumps(session)).run(None, {"image": seven()})[0].argmax(), 7)

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
            self.assertTrue((np.asarray(value) == 5).all())
            taken = library.OrtValue.from_dlpack(value)
            value.update_inplace(library.OrtValue.ortvalue_from_numpy(np.ones((2, 3), np.float32)))
            self.assertTrue((taken.numpy() == 1).all())
            self.assertFalse(value.is_sparse_tensor())
            halves = library.OrtValue.ortvalue_from_numpy_with_onnx_type(np.array([0x3c00], np.uint16), 10)
            self.assertEqual((halves.data_type(), halves.element_type()), ("tensor(float16)", 10))
        value = ort.OrtValue(np.ones(2))
        self.assertFalse(np.shares_memory(np.array(value, copy=True), value.numpy()))
        self.assertTrue(np.shares_memory(np.asarray(value), value.numpy()))
        with self.assertRaises(ValueError):
            ort.OrtValue(np.ones(2)).update_inplace(np.ones(3))
        with self.assertRaisesRegex(ValueError, "expected elements of 2 bytes, found float32"):
            ort.OrtValue.ortvalue_from_numpy_with_onnx_type(np.ones(2, np.float32), 10)
        with self.assertRaisesRegex(ValueError, "found 22"):
            ort.OrtValue.ortvalue_from_shape_and_type([2], 22)

    def test_values_of_small_floats(self):
        try:
            import ml_dtypes
        except ImportError:
            self.skipTest("ml_dtypes is absent")
        value = ort.OrtValue(np.array([1, 2], ml_dtypes.bfloat16))
        self.assertEqual((value.data_type(), value.element_type()), ("tensor(bfloat16)", 16))
        taken = ort.OrtValue.from_dlpack(value)
        self.assertTrue(np.shares_memory(taken.numpy(), value.numpy()))
        self.assertEqual(taken.numpy().tolist(), [1, 2])

    def test_options(self):
        options = ort.SessionOptions()
        options.add_free_dimension_override_by_name("N", 4)
        options.enable_profiling = True
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        session = ort.InferenceSession(self.open_model(), options)
        x = np.ones((4, 3), np.float32)
        self.assertTrue((session.run(None, {"x": x, "y": x})[0] == 2).all())
        self.assertEqual(ort.InferenceSession(self.open_model()).end_profiling(), "")
        with self.assertRaises(ValueError):
            session.run(None, {"x": x[:2], "y": x[:2]})
        options.add_session_config_entry("kiln.pipeline", "no-such")
        with self.assertRaises(kiln_nn.PipelineError):
            ort.InferenceSession(str(DIGITS), options)

        for unable in (lambda: options.add_initializer("w", ort.OrtValue(x)), lambda: options.register_custom_ops_library("x.so"),
                       lambda: options.add_free_dimension_override_by_denotation("BATCH", 1)):
            self.assertRaises(NotImplementedError, unable)

    def test_profile(self):
        options = ort.SessionOptions()
        options.enable_profiling = True
        with tempfile.TemporaryDirectory() as folder:
            options.profile_file_prefix = os.path.join(folder, "times")
            session = ort.InferenceSession(DIGITS, options)
            for _ in range(2):
                session.run(None, {"image": seven()})
            name = session.end_profiling()
            self.assertEqual([os.path.join(folder, file) for file in os.listdir(folder)], [name])
            with open(name, encoding="utf-8") as file:
                events = json.load(file)
        self.assertIn("softmax", [event["args"]["op_name"] for event in events])
        self.assertTrue(all(event["dur"] >= 0 and event["args"]["runs"] == "2" for event in events))
        self.assertTrue(all(a["ts"] <= b["ts"] for a, b in zip(events, events[1:])))

    def test_terminate(self):
        session, options = ort.InferenceSession(ENDLESS.encode()), ort.RunOptions()
        timer = threading.Timer(0.1, setattr, (options, "terminate", True))
        timer.start()
        start = time.monotonic()
        feed = {"x": np.ones(1, np.float32), "n": np.array(2**40)}
        with self.assertRaises(ort.capi.onnxruntime_pybind11_state.Fail):
            session.run(None, feed, options)
        with self.assertRaises(kiln_nn.CancelledError):
            session.run(None, feed, options)
        self.assertLess(time.monotonic() - start, 30)
        timer.join()
        options.terminate = False
        digits = ort.InferenceSession(DIGITS)
        self.assertEqual(digits.run(None, {"image": seven()}, options)[0].argmax(), 7)

    def test_exceptions(self):
        state = ort.capi.onnxruntime_pybind11_state
        with self.assertRaises(state.NoSuchFile):
            ort.InferenceSession("no-such.onnx")
        with self.assertRaises(state.InvalidProtobuf):
            ort.InferenceSession(b"\xff\xff")
        with self.assertRaises(state.InvalidArgument):
            ort.InferenceSession(DIGITS).run(None, {"image": seven()[0]})

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

    def test_names(self):
        """What the classes of ONNX Runtime have for one processor, and the names of its exceptions."""
        for name in ("OrtValue", "IOBinding", "RunOptions", "SessionOptions"):
            theirs, ours = getattr(onnxruntime, name), getattr(ort, name)
            ours = ours() if name.endswith("Options") else ours
            found = {name for name in dir(theirs) if not name.startswith("_")} - set(dir(ours))
            self.assertEqual(found - OTHERS, set(), name)
        for name in vars(ort.capi.onnxruntime_pybind11_state):
            self.assertTrue(hasattr(onnxruntime.capi.onnxruntime_pybind11_state, name), name)

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
