# SPDX-License-Identifier: Apache-2.0
"""The models of models.py, whose data decides shapes."""
from models import MODELS
from rows import Row

BOXES = {"ssdlite", "ssd300", "fasterrcnn", "retinanet", "fcos", "maskrcnn", "keypointrcnn", "yolov8n", "yolo11n"}
ROWS = [Row("flow", name, "script", make, boxes=name in BOXES) for name, make in MODELS.items()]
