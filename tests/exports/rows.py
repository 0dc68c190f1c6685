# SPDX-License-Identifier: Apache-2.0
"""Rows of the table of exports. A row makes a model with random weights from a seed, in one way of one exporter."""
import dataclasses
import importlib
import typing

FAMILIES = {  # the module that has the rows of a family
    "torch": "rows_torch", "torchvision": "rows_pictures", "timm": "rows_pictures", "smp": "rows_pictures",
    "ultralytics": "rows_pictures", "transformers": "rows_language", "diffusers": "rows_language",
    "genai": "rows_language", "skl2onnx": "rows_tables", "onnxmltools": "rows_tables",
    "optimizer": "rows_converted", "quantizer": "rows_converted", "float16": "rows_converted", "small": "rows_small", "flow": "rows_flow",
}
# A way of PyTorch's exporters: whether the one of torch.export, and the opset; None is the default.
WAYS = {"script": (False, None), "script-newest": (False, 20), "dynamo": (True, None), "dynamo-newest": (True, 23)}

REAL = 1e-3      # the largest difference over the largest element of an output
HALF = 1e-2      # of halves
QUANTIZED = 3e-2 # of sums of 8-bit products: an element may round to the next step


@dataclasses.dataclass
class Row:
    """@make writes the model to a path, and returns its inputs by name."""
    family: str
    name: str
    way: str
    make: typing.Callable
    tolerance: float = REAL
    boxes: bool = False

    @property
    def id(self):
        return f"{self.family}-{self.name}-{self.way}"


def rows_of_family(family):
    return [row for row in importlib.import_module(FAMILIES[family]).ROWS if row.family == family]


def all_rows(families=None):
    return [row for family in families or FAMILIES for row in rows_of_family(family)]


def find_row(row_id):
    return next(row for row in rows_of_family(row_id.split("-")[0]) if row.id == row_id)


# --- PyTorch ---

def shake(model):
    """Weights that are all alike, as a new norm has, get values of their own. Else a lost term would not show."""
    import torch
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for weight in model.parameters():
            if weight.is_floating_point() and weight.numel() > 1 and bool((weight == weight.reshape(-1)[0]).all()):
                weight.add_(0.1 * torch.randn(weight.shape, generator=generator))
        for name, buffer in model.named_buffers():
            if name.endswith("running_mean"):
                buffer.normal_(0, 0.1, generator=generator)
            if name.endswith("running_var"):
                buffer.uniform_(0.5, 1.5, generator=generator)
    return model


def export_torch(path, model, inputs, way, dynamic=None):
    """Exports @model, whose inputs are named. @dynamic: input to {dim: name}."""
    import torch
    torch.backends.mha.set_fastpath_enabled(False)  # its operators have no ONNX form
    dynamo, opset = WAYS[way]
    options = {} if opset is None else {"opset_version": opset}
    if dynamic and dynamo:
        options["dynamic_shapes"] = tuple(dynamic.get(name, {}) for name in inputs)
    elif dynamic:
        options["dynamic_axes"] = dynamic
    with torch.no_grad():
        torch.onnx.export(model, tuple(inputs.values()), str(path), dynamo=dynamo, input_names=list(inputs), **options)
    return {name: value.numpy() for name, value in inputs.items()}


def torch_rows(family, name, make, dynamic=None, ways=tuple(WAYS), **options):
    """A row for each of @ways. @make returns a module and its inputs by name."""
    def maker(way):
        def export(path):
            import torch
            torch.manual_seed(0)
            model, inputs = make(way)
            return export_torch(path, shake(model.eval()), inputs, way, dynamic)
        return export
    return [Row(family, name, way, maker(way), **options) for way in ways]
