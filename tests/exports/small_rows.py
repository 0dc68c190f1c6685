# SPDX-License-Identifier: Apache-2.0
"""The rows whose models are in the folder small: one or two for each family of rows.py. Where a family's own models are too
large, rows of rows_small.py stand for it. write_small.py writes the folder, and test_small.py runs it."""

MOST_BYTES = 200_000        # of a model with its data
MOST_BYTES_OF_ALL = 2_500_000
SMALL = {
    "torch": ["torch-conv_net-script", "torch-lstm-dynamo"],
    "torchvision": ["small-mobilenet-script", "small-vit-dynamo"],
    "timm": ["small-timm_vit-dynamo", "small-timm_convnext-script"],
    "smp": ["small-smp_shallow_unet-dynamo"],
    "ultralytics": ["small-yolov8_few_bins-script"],
    "transformers": ["transformers-bert-script", "transformers-llama_past-dynamo"],
    "diffusers": ["small-dit-dynamo", "small-decoder-script"],
    "genai": ["genai-llama-int4", "genai-qwen2-fp32"],
    "skl2onnx": ["skl2onnx-forest-skl2onnx", "skl2onnx-svc-skl2onnx"],
    "onnxmltools": ["onnxmltools-lightgbm_class-onnxmltools", "onnxmltools-xgboost_number-onnxmltools"],
    "optimizer": ["optimizer-bert-script", "optimizer-gpt2-script"],
    "quantizer": ["small-mobilenet_qdq-static", "quantizer-bert-dynamic"],
    "float16": ["small-resnet-float16", "float16-bert-runtime"],
    "flow": ["flow-state_scan-script", "flow-neighbours_class-script"],
}
