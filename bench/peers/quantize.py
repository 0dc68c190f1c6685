#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes quantized models from float models with ONNX Runtime's quantizer, for compare.py --tolerance.

    peers/bin/python bench/peers/quantize.py --to FOLDER model.onnx…

Weights become i8 with a scale for each output channel, or with one scale (`--per-tensor`). Activations become u8 between
QuantizeLinear and DequantizeLinear. With `--dynamic`, each run quantizes the activations. Ranges are those of the inputs of
`test_data_set_0` beside the model, or of random inputs. The models are for timing, not for accuracy. A file is named after
the model, or after its folder if the model is `model.onnx`.
"""
import argparse
import pathlib
import sys
import tempfile

import numpy as np
import onnxruntime
from onnxruntime import quantization
from onnxruntime.quantization import shape_inference

import worker

RANDOM_RUNS = 2


class Reader(quantization.CalibrationDataReader):
    """The inputs of one run, or of some random ones."""

    def __init__(self, model, data):
        arguments = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"]).get_inputs()
        stored = [worker.load_pb(path) for path in sorted(data.glob("input_*.pb"))]
        runs = [stored] if stored else [self.random_run(arguments, seed) for seed in range(RANDOM_RUNS)]
        self.runs = iter([dict(zip([a.name for a in arguments], run)) for run in runs])

    @staticmethod
    def random_run(arguments, seed):
        generator = np.random.default_rng(seed)
        return [generator.standard_normal([d if isinstance(d, int) else 1 for d in a.shape]).astype(np.float32)
                if a.type == "tensor(float)" else np.zeros([d if isinstance(d, int) else 1 for d in a.shape], np.int64)
                for a in arguments]

    def get_next(self):
        return next(self.runs, None)


def quantize(model, to, options):
    if options.dynamic:
        quantization.quantize_dynamic(model, to, per_channel=not options.per_tensor)
        return
    with tempfile.TemporaryDirectory() as folder:
        folded = pathlib.Path(folder) / "model.onnx"
        shape_inference.quant_pre_process(str(model), str(folded), skip_symbolic_shape=True)
        quantization.quantize_static(
            folded, to, Reader(folded, model.parent / "test_data_set_0"), quant_format=quantization.QuantFormat.QDQ,
            activation_type=quantization.QuantType.QUInt8, weight_type=quantization.QuantType.QInt8,
            per_channel=not options.per_tensor)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("models", nargs="+", type=pathlib.Path, metavar="MODEL", help="an .onnx file")
    parser.add_argument("--to", type=pathlib.Path, required=True, metavar="FOLDER", help="write the models to this folder")
    parser.add_argument("--per-tensor", action="store_true", help="use one scale for all output channels of weights")
    parser.add_argument("--dynamic", action="store_true", help="quantize activations in each run")
    options = parser.parse_args()
    options.to.mkdir(parents=True, exist_ok=True)
    failed = 0
    for model in options.models:
        name = model.resolve().parent.name if model.name == "model.onnx" else model.stem
        try:
            quantize(model, options.to / f"{name}.onnx", options)
        except Exception as error:  # whatever the quantizer raises is of this model alone
            print(f"{model}: {error}", file=sys.stderr)
            failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main())
