# SPDX-License-Identifier: Apache-2.0
"""Narrow models, for families whose own models are larger."""
import pathlib
import tempfile

import yaml
from rows import HALF, QUANTIZED, Row, torch_rows
from rows_converted import by_runtime, converted, static
from rows_pictures import yolo
from rows_pictures import picture

BOTH = ("script", "dynamo")


def mobilenet(_):
    from torchvision.models.mobilenetv3 import InvertedResidualConfig, MobileNetV3
    layers = [InvertedResidualConfig(16, 3, 16, 16, True, "RE", 2, 1, 1.0),
              InvertedResidualConfig(16, 3, 32, 16, False, "RE", 1, 1, 1.0),
              InvertedResidualConfig(16, 5, 32, 24, True, "HS", 2, 1, 1.0)]
    return MobileNetV3(layers, last_channel=32, num_classes=10), picture(48)


def resnet(_):
    import torch
    from torchvision.models.resnet import BasicBlock, ResNet

    class Narrow(ResNet):
        def _make_layer(self, block, planes, blocks, stride=1, dilate=False):
            return super()._make_layer(block, planes // 8, blocks, stride, dilate)
    model = Narrow(BasicBlock, [1, 1, 1, 1], num_classes=10)
    model.fc = torch.nn.Linear(64, 10)
    model.layer4 = torch.nn.Sequential(torch.nn.Conv2d(32, 64, 1))
    return model, picture(48)


def vit(_):
    from torchvision.models import VisionTransformer
    return VisionTransformer(image_size=32, patch_size=8, num_layers=2, num_heads=4, hidden_dim=32, mlp_dim=64,
                             num_classes=10), picture(32)


def swin(_):
    from torchvision.models import swin_transformer
    return swin_transformer.SwinTransformer([4, 4], 16, [2, 2], [2, 2], [4, 4], num_classes=10), picture(32)


def timm_vit(_):
    from timm.models.vision_transformer import VisionTransformer
    return VisionTransformer(img_size=32, patch_size=8, embed_dim=32, depth=2, num_heads=4, num_classes=10,
                             qk_norm=True, init_values=0.1), picture(32)


def timm_convnext(_):
    from timm.models.convnext import ConvNeXt
    return ConvNeXt(depths=(1, 1, 1, 1), dims=(8, 8, 16, 32), num_classes=10, use_grn=True), picture(48)


def unet(_):
    import segmentation_models_pytorch
    return segmentation_models_pytorch.Unet("mobilenet_v2", encoder_depth=3, encoder_weights=None,
                                            decoder_channels=(16, 8, 8), classes=3), picture(32)


def fpn(_):
    import segmentation_models_pytorch
    return segmentation_models_pytorch.FPN("mobilenet_v2", encoder_depth=3, encoder_weights=None,
                                           decoder_pyramid_channels=16, decoder_segmentation_channels=32, classes=3,
                                           upsampling=2), picture(32)


def shallow_unet(_):
    import segmentation_models_pytorch
    return segmentation_models_pytorch.Unet("mobilenet_v2", encoder_depth=2, encoder_weights=None,
                                            decoder_channels=(8, 8), classes=3), picture(32)


def dit(_):
    from rows_language import DIT, diffuser, dit_inputs
    return diffuser("DiTTransformer2DModel", {**DIT, "num_layers": 1}, dit_inputs)(_)


def decoder(_):
    from rows_language import AUTOENCODER, autoencoder
    return autoencoder("decoder", {**AUTOENCODER, "block_out_channels": (8, 16), "norm_num_groups": 4})(_)


def yolo_small(name, width, bins=16, **options):
    """The model of a configuration whose layers are as narrow as can be. A side of a box has @bins numbers."""
    def export(path):
        import ultralytics
        source = next(pathlib.Path(ultralytics.__file__).parent.rglob(f"{name}.yaml"))
        settings = yaml.safe_load(source.read_text(encoding="utf-8"))
        settings.update({"scale": "n", "scales": {"n": [0.33, width, 64]}, "nc": 4, "reg_max": bins})
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / f"{name}.yaml"
            file.write_text(yaml.safe_dump(settings), encoding="utf-8")
            return yolo(str(file)[:-5], size=64, **options)(path)
    return export


ROWS = [
    *torch_rows("small", "resnet", resnet, {"image": {0: "batch"}}, ways=BOTH),
    *torch_rows("small", "mobilenet", mobilenet, ways=BOTH),
    *torch_rows("small", "vit", vit, {"image": {0: "batch"}}, ways=BOTH),
    *torch_rows("small", "swin", swin, ways=BOTH),
    *torch_rows("small", "timm_vit", timm_vit, ways=BOTH),
    *torch_rows("small", "timm_convnext", timm_convnext, ways=BOTH),
    *torch_rows("small", "smp_unet", unet, ways=("script",)),
    *torch_rows("small", "smp_fpn", fpn, ways=("dynamo",)),
    *torch_rows("small", "smp_shallow_unet", shallow_unet, ways=("dynamo",)),
    *torch_rows("small", "dit", dit, ways=("dynamo",)),
    *torch_rows("small", "decoder", decoder, ways=("script",)),
    Row("small", "yolov8", "script", yolo_small("yolov8", 0.05)),
    Row("small", "yolov8_few_bins", "script", yolo_small("yolov8", 0.03, bins=4)),
    Row("small", "resnet_qdq", "static", converted("small-resnet-script", static("QDQ", per_channel=True)), QUANTIZED),
    Row("small", "mobilenet_qdq", "static", converted("small-mobilenet-script", static("QDQ")), QUANTIZED),
    Row("small", "mobilenet_qoperator", "static", converted("small-mobilenet-script", static("QOperator")), QUANTIZED),
    Row("small", "resnet", "float16", converted("small-resnet-dynamo", by_runtime()), HALF),
]
