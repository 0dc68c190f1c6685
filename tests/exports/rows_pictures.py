# SPDX-License-Identifier: Apache-2.0
"""Models for pictures: torchvision, timm, segmentation-models-pytorch and ultralytics."""
import os
import pathlib
import shutil

from models import settle_yolo
from rows import Row, torch_rows

BATCH = {"image": {0: "batch"}}
BOTH = ("script", "dynamo")


def picture(size, channels=3):
    import torch
    return {"image": torch.rand(1, channels, size, size, generator=torch.Generator().manual_seed(1))}


class Tensors:
    """Makes a module that returns the tensors of another one's output."""

    @staticmethod
    def around(model):
        import torch

        class Module(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = model

            def forward(self, image):
                out = self.inner(image)
                return tuple(out.values()) if isinstance(out, dict) else out
        return Module()


def vision(name, size=96, **options):
    def make(_):
        from torchvision import models
        model = models.get_model(name, weights=None, **options)
        return Tensors.around(model), picture(size)
    return make


def vision_vit(_):
    from torchvision.models import VisionTransformer
    return VisionTransformer(image_size=64, patch_size=16, num_layers=2, num_heads=4, hidden_dim=64, mlp_dim=128,
                             num_classes=10), picture(64)


def vision_swin(version):
    def make(_):
        from torchvision.models import swin_transformer as swin
        block = swin.SwinTransformerBlockV2 if version == 2 else swin.SwinTransformerBlock
        merging = swin.PatchMergingV2 if version == 2 else swin.PatchMerging
        return swin.SwinTransformer([4, 4], 32, [2, 2], [2, 4], [4, 4], num_classes=10, block=block,
                                    downsample_layer=merging), picture(64)
    return make


def vision_video(name, frames, size):
    def make(_):
        import torch
        from torchvision import models
        return models.get_model(name, weights=None, num_classes=10), {"image": torch.rand(1, 3, frames, size, size)}
    return make


def timm_model(name, size=96, **options):
    def make(_):
        import timm
        return timm.create_model(name, pretrained=False, num_classes=10, **options), picture(size)
    return make


def smp(name, encoder="resnet18", size=64):
    def make(_):
        import segmentation_models_pytorch
        return getattr(segmentation_models_pytorch, name)(encoder_name=encoder, encoder_weights=None, classes=3), \
            picture(size)
    return make


def yolo(name, nms=False, size=None, **options):
    size = size or (96 if name.endswith("cls") else 160)

    def export(path):
        import torch
        from ultralytics import YOLO
        torch.manual_seed(0)
        generator = torch.Generator().manual_seed(1)
        here = os.getcwd()
        os.chdir(pathlib.Path(path).parent)  # it writes beside itself
        try:
            model = YOLO(f"{name}.yaml")
            pixels = torch.rand(1, 3, size, size, generator=generator)
            if nms:
                settle_yolo(model.model, pixels, generator)
            more = {"nms": True, "conf": 0.25, "iou": 0.5, "max_det": 24} if nms else {}
            shutil.move(model.export(format="onnx", imgsz=size, simplify=False, **more, **options), path)
        finally:
            os.chdir(here)
        return {"images": pixels.numpy()}
    return export


ROWS = [
    *torch_rows("torchvision", "resnet18", vision("resnet18"), BATCH),
    *torch_rows("torchvision", "mobilenet_v2", vision("mobilenet_v2"), BATCH, ways=BOTH),
    *torch_rows("torchvision", "mobilenet_v3_small", vision("mobilenet_v3_small"), BATCH),
    *torch_rows("torchvision", "efficientnet_b0", vision("efficientnet_b0"), ways=BOTH),
    *torch_rows("torchvision", "shufflenet", vision("shufflenet_v2_x0_5"), ways=BOTH),
    *torch_rows("torchvision", "squeezenet", vision("squeezenet1_1"), ways=BOTH),
    *torch_rows("torchvision", "densenet121", vision("densenet121", 64), ways=BOTH),
    *torch_rows("torchvision", "googlenet", vision("googlenet", init_weights=False, aux_logits=False), ways=BOTH),
    *torch_rows("torchvision", "mnasnet", vision("mnasnet0_5"), ways=("script",)),
    *torch_rows("torchvision", "regnet", vision("regnet_y_400mf"), ways=("dynamo",)),
    *torch_rows("torchvision", "convnext_tiny", vision("convnext_tiny", 64), ways=BOTH),
    *torch_rows("torchvision", "vit", vision_vit),
    *torch_rows("torchvision", "swin", vision_swin(1), ways=BOTH),
    *torch_rows("torchvision", "swin_v2", vision_swin(2), ways=BOTH),
    *torch_rows("torchvision", "lraspp", vision("lraspp_mobilenet_v3_large", weights_backbone=None), ways=BOTH),
    *torch_rows("torchvision", "deeplabv3", vision("deeplabv3_mobilenet_v3_large", weights_backbone=None), ways=BOTH),
    *torch_rows("torchvision", "r3d_18", vision_video("r3d_18", 4, 32), ways=("dynamo",)),
    *torch_rows("torchvision", "s3d", vision_video("s3d", 16, 64), ways=("script",)),

    *torch_rows("timm", "resnet10t", timm_model("resnet10t"), BATCH, ways=BOTH),
    *torch_rows("timm", "mobilenetv4", timm_model("mobilenetv4_conv_small"), BATCH),
    *torch_rows("timm", "efficientvit", timm_model("efficientvit_b0"), ways=BOTH),
    *torch_rows("timm", "vit_tiny", timm_model("vit_tiny_patch16_224", 64, img_size=64, depth=2)),
    *torch_rows("timm", "mobilevit", timm_model("mobilevit_xxs", 128), ways=BOTH),
    *torch_rows("timm", "convnextv2", timm_model("convnextv2_atto", 64), ways=BOTH),
    *torch_rows("timm", "fastvit", timm_model("fastvit_t8", 64), ways=BOTH),
    *torch_rows("timm", "ghostnet", timm_model("ghostnet_050"), ways=("script",)),
    *torch_rows("timm", "repvgg", timm_model("repvgg_a0", 64), ways=("dynamo",)),
    *torch_rows("timm", "mixer", timm_model("mixer_s32_224", 224), ways=("dynamo",)),
    *torch_rows("timm", "poolformer", timm_model("poolformer_s12", 64), ways=("dynamo",)),
    *torch_rows("timm", "edgenext", timm_model("edgenext_xx_small"), ways=("script", "dynamo")),
    *torch_rows("timm", "maxvit", timm_model("maxvit_rmlp_pico_rw_256", 64, img_size=64), ways=("script", "dynamo")),

    *torch_rows("smp", "unet", smp("Unet"), BATCH),
    *torch_rows("smp", "unetplusplus", smp("UnetPlusPlus", "mobilenet_v2"), ways=BOTH),
    *torch_rows("smp", "fpn", smp("FPN"), ways=BOTH),
    *torch_rows("smp", "pspnet", smp("PSPNet", "mobilenet_v2"), ways=BOTH),
    *torch_rows("smp", "deeplabv3plus", smp("DeepLabV3Plus", "mobilenet_v2"), ways=BOTH),
    *torch_rows("smp", "linknet", smp("Linknet"), ways=("dynamo",)),
    *torch_rows("smp", "manet", smp("MAnet", "mobilenet_v2"), ways=("script",)),
    *torch_rows("smp", "segformer", smp("Segformer", "mit_b0"), ways=BOTH),
    *torch_rows("smp", "upernet", smp("UPerNet"), ways=("dynamo",)),

    Row("ultralytics", "yolov8n", "script", yolo("yolov8n")),
    Row("ultralytics", "yolov8n_dynamic", "script", yolo("yolov8n", dynamic=True)),
    Row("ultralytics", "yolo11n", "script", yolo("yolo11n")),
    Row("ultralytics", "yolo12n", "script", yolo("yolo12n")),
    Row("ultralytics", "yolov10n", "script", yolo("yolov10n"), boxes=True),
    Row("ultralytics", "yolov8n_seg", "script", yolo("yolov8n-seg")),
    Row("ultralytics", "yolo11n_pose", "script", yolo("yolo11n-pose")),
    Row("ultralytics", "yolo11n_obb", "script", yolo("yolo11n-obb")),
    Row("ultralytics", "yolo11n_cls", "script", yolo("yolo11n-cls")),
    Row("ultralytics", "yolov8n_nms", "script", yolo("yolov8n", nms=True), boxes=True),
    Row("ultralytics", "yolo11n_nms", "script", yolo("yolo11n", nms=True), boxes=True),
]
