# SPDX-License-Identifier: Apache-2.0
"""What other tools make of exports: ONNX Runtime's optimizer, its quantizers, and the converters to halves."""
import pathlib
import tempfile

import numpy as np
import onnx
from rows import HALF, QUANTIZED, Row, find_row


def converted(base, convert):
    """Exports the row @base, and converts the model."""
    def export(path):
        with tempfile.TemporaryDirectory() as folder:
            given = find_row(base).make(f"{folder}/exported.onnx")
            onnx.save(onnx.load(f"{folder}/exported.onnx"), f"{folder}/base.onnx")  # as one file
            given = {name: np.asarray(value) for name, value in given.items()}
            convert(f"{folder}/base.onnx", str(path), given)
        return given
    return export


# --- ONNX Runtime's optimizer ---

def optimized(kind, heads=4, width=32, halves=False, **options):
    def convert(source, path, given):
        from onnxruntime.transformers.fusion_options import FusionOptions
        from onnxruntime.transformers.optimizer import optimize_model
        fusions = FusionOptions(kind)
        fusions.enable_nhwc_conv = False  # its operator has kernels for other devices only
        model = optimize_model(source, model_type=kind, num_heads=heads, hidden_size=width,
                               optimization_options=fusions, **options)
        if halves:
            model.convert_float_to_float16(keep_io_types=True)
        model.save_model_to_file(path)
    return convert


def by_session(level):
    """What a session writes after its own optimizations."""
    def convert(source, path, given):
        import onnxruntime
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
        options.optimized_model_filepath = path
        options.log_severity_level = 4
        onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    return convert


# --- its quantizers ---

def prepared(source):
    from onnxruntime.quantization.shape_inference import quant_pre_process
    out = str(pathlib.Path(source).with_name("prepared.onnx"))
    try:
        quant_pre_process(source, out, skip_symbolic_shape=True)
        return out
    except Exception:  # of its shape inference; the quantizers then warn only
        return source


def dynamic(**options):
    def convert(source, path, given):
        from onnxruntime.quantization import quantize_dynamic
        quantize_dynamic(prepared(source), path, **options)
    return convert


def static(form, activation="QUInt8", weight="QInt8", **options):
    def convert(source, path, given):
        from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

        class Reader(CalibrationDataReader):
            def __init__(self):
                self.left = [given]

            def get_next(self):
                return self.left.pop() if self.left else None
        quantize_static(prepared(source), path, Reader(), quant_format=QuantFormat[form],
                        activation_type=QuantType[activation], weight_type=QuantType[weight], **options)
    return convert


def four_bits(form, **options):
    def convert(source, path, given):
        from onnxruntime.quantization import QuantFormat
        from onnxruntime.quantization.matmul_nbits_quantizer import DefaultWeightOnlyQuantConfig, MatMulNBitsQuantizer
        config = DefaultWeightOnlyQuantConfig(quant_format=QuantFormat[form], **options)
        quantizer = MatMulNBitsQuantizer(onnx.load(source), algo_config=config)
        quantizer.process()
        onnx.save(quantizer.model.model, path)
    return convert


# --- halves ---

def by_common(**options):
    def convert(source, path, given):
        from onnxconverter_common.float16 import convert_float_to_float16
        onnx.save(convert_float_to_float16(onnx.load(source), keep_io_types=True, **options), path)
    return convert


def by_runtime(**options):
    def convert(source, path, given):
        from onnxruntime.transformers.float16 import convert_float_to_float16
        onnx.save(convert_float_to_float16(onnx.load(source), keep_io_types=True, **options), path)
    return convert


BERT, GPT2, VIT, LLAMA = (f"transformers-{name}-" for name in ("bert", "gpt2", "vit", "llama"))
RESNET, MOBILENET, CONV = "torchvision-resnet18-", "torchvision-mobilenet_v2-", "torch-conv_net-"
UNET, YOLO = "diffusers-unet_condition-script", "ultralytics-yolov8n-script"
PER_CHANNEL = {"per_channel": True}
OPTIMIZED = [
    ("bert", "script", BERT + "script", optimized("bert")),
    ("bert", "dynamo", BERT + "dynamo", optimized("bert")),
    ("bert_only_runtime", "script", BERT + "script", optimized("bert", opt_level=2, only_onnxruntime=True)),
    ("gpt2", "script", GPT2 + "script", optimized("gpt2")),
    ("vit", "script", VIT + "script", optimized("vit")),
    ("bart", "script", "transformers-bart-script", optimized("bart")),
    ("t5", "script", "transformers-t5-script", optimized("t5")),
    ("clip", "script", "transformers-clip-script", optimized("clip")),
    ("unet", "script", UNET, optimized("unet", 0, 0)),
    ("autoencoder", "script", "diffusers-decoder-script", optimized("vae", 0, 0)),
    ("session_basic", "script", RESNET + "script", by_session("ORT_ENABLE_BASIC")),
    ("session_extended", "script", BERT + "script", by_session("ORT_ENABLE_EXTENDED")),
    ("session_extended_vit", "dynamo", VIT + "dynamo", by_session("ORT_ENABLE_EXTENDED")),
    ("session_all", "script", MOBILENET + "script", by_session("ORT_ENABLE_ALL")),
]
HALVES = [
    ("optimizer_bert", "runtime", BERT + "script", optimized("bert", halves=True)),
    ("resnet18", "common", RESNET + "script", by_common()),
    ("resnet18", "runtime", RESNET + "script", by_runtime()),
    ("bert", "common", BERT + "script", by_common(disable_shape_infer=True)),
    ("bert", "runtime", BERT + "script", by_runtime()),
    ("conv_net", "runtime", CONV + "dynamo", by_runtime()),
    ("gpt2", "runtime", GPT2 + "script", by_runtime()),
    ("yolov8n", "runtime", YOLO, by_runtime()),
]
QUANTIZERS = [
    ("resnet18_qdq", "static", RESNET + "script", static("QDQ")),
    ("resnet18_qdq_channels", "static", RESNET + "script", static("QDQ", **PER_CHANNEL)),
    ("resnet18_qoperator", "static", RESNET + "script", static("QOperator")),
    ("resnet18_signed", "static", RESNET + "script", static("QDQ", "QInt8", "QInt8", **PER_CHANNEL)),
    ("resnet18_16_bits", "static", RESNET + "dynamo", static("QDQ", "QUInt16", "QUInt8",
                                                            extra_options={"UseQDQContribOps": True})),
    ("mobilenet_qdq", "static", MOBILENET + "script", static("QDQ", **PER_CHANNEL)),
    ("mobilenet_qoperator", "static", MOBILENET + "script", static("QOperator", **PER_CHANNEL)),
    ("conv_net_qdq", "static", CONV + "dynamo", static("QDQ")),
    ("vit_qdq", "static", VIT + "script", static("QDQ")),
    ("yolov8n_qdq", "static", YOLO, static("QDQ", **PER_CHANNEL)),
    ("bert_qdq", "static", BERT + "script", static("QDQ")),
    ("resnet18", "dynamic", RESNET + "script", dynamic()),
    ("bert", "dynamic", BERT + "script", dynamic()),
    ("bert_channels", "dynamic", BERT + "script", dynamic(**PER_CHANNEL)),
    ("gpt2", "dynamic", GPT2 + "script", dynamic()),
    ("lstm", "dynamic", "torch-lstm-script", dynamic()),
    ("bert_dynamo", "dynamic", BERT + "dynamo", dynamic()),
    ("llama", "4-bits", LLAMA + "dynamo", four_bits("QOperator", block_size=16)),
    ("llama_symmetric", "4-bits", LLAMA + "dynamo", four_bits("QOperator", block_size=32, is_symmetric=True)),
    ("llama_accuracy", "4-bits", LLAMA + "dynamo", four_bits("QOperator", block_size=32, accuracy_level=4)),
    ("llama_qdq", "4-bits", LLAMA + "dynamo-newest", four_bits("QDQ", block_size=16)),
    ("bert_qdq", "4-bits", BERT + "dynamo-newest", four_bits("QDQ", block_size=32, is_symmetric=True)),
]
ROWS = [Row("optimizer", name, way, converted(base, convert)) for name, way, base, convert in OPTIMIZED] + \
       [Row("float16", name, way, converted(base, convert), HALF) for name, way, base, convert in HALVES] + \
       [Row("quantizer", name, way, converted(base, convert), QUANTIZED) for name, way, base, convert in QUANTIZERS]
