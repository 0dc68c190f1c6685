#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One measurement of one peer in a process of its own; prints a line of JSON. Called by compare.py.

    worker.py ENGINE MODEL.onnx INPUTS_DIR THREADS SECONDS [OUTPUTS_DIR]

INPUTS_DIR holds input_N.pb; with OUTPUTS_DIR the results are written there as output_N.pb. Memory is
counted from behind the interpreter and its libraries, so that a peer is not charged for Python; the inputs
count, as they do in Kiln's process.
"""
import json
import pathlib
import statistics
import sys
import time

import numpy as np
import onnx
from onnx import numpy_helper


def load_pb(path):
    tensor = onnx.TensorProto()
    tensor.ParseFromString(path.read_bytes())
    return numpy_helper.to_array(tensor).copy()


def status_bytes(key):
    for line in pathlib.Path("/proc/self/status").read_text().splitlines():
        if line.startswith(key + ":"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"/proc/self/status has no {key}")


def onnxruntime_runner(model, threads, inputs):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.log_severity_level = 3
    start = time.perf_counter()
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    load = time.perf_counter() - start
    # Bound once: what Python does with arguments is no part of a run.
    binding = session.io_binding()
    for argument, array in zip(session.get_inputs(), inputs):
        binding.bind_cpu_input(argument.name, array)
    for result in session.get_outputs():
        binding.bind_output(result.name)
    return load, lambda: session.run_with_iobinding(binding), binding.copy_outputs_to_cpu


def openvino_runner(model, threads, inputs):
    import openvino

    core = openvino.Core()
    start = time.perf_counter()
    compiled = core.compile_model(model, "CPU", {
        "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": threads})
    load = time.perf_counter() - start
    request = compiled.create_infer_request()
    for i, array in enumerate(inputs):
        request.set_input_tensor(i, openvino.Tensor(array, shared_memory=True))
    return load, request.infer, lambda: [request.get_output_tensor(i).data for i in range(len(compiled.outputs))]


RUNNERS = {"onnxruntime": onnxruntime_runner, "openvino": openvino_runner}


def main():
    engine, model, inputs_dir, threads, seconds = sys.argv[1:6]
    n_inputs = len(list(pathlib.Path(inputs_dir).glob("input_*.pb")))
    inputs = [load_pb(pathlib.Path(inputs_dir) / f"input_{i}.pb") for i in range(n_inputs)]
    before = status_bytes("VmRSS") - sum(array.nbytes for array in inputs)
    load, run, outputs = RUNNERS[engine](model, int(threads), inputs)
    run()
    samples, begin = [], time.perf_counter()
    while len(samples) < 5 or time.perf_counter() - begin < float(seconds):
        start = time.perf_counter()
        run()
        samples.append(time.perf_counter() - start)
    if len(sys.argv) > 6:
        for i, array in enumerate(outputs()):
            tensor = numpy_helper.from_array(np.asarray(array))
            (pathlib.Path(sys.argv[6]) / f"output_{i}.pb").write_bytes(tensor.SerializeToString())
    print(json.dumps({"latency": statistics.median(samples), "load": load, "memory": status_bytes("VmHWM") - before}))


if __name__ == "__main__":
    main()
