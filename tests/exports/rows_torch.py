# SPDX-License-Identifier: Apache-2.0
"""Modules of PyTorch itself."""
import torch
from rows import torch_rows
from torch import nn
from torch.nn import functional as F


class Called(nn.Module):
    """A module around a function, with layers that the function may use."""

    def __init__(self, function, **layers):
        super().__init__()
        self.function = function
        self.layers = nn.ModuleDict(layers)

    def forward(self, *inputs):
        return self.function(self.layers, *inputs)


def plain(function, layers, *shapes):
    def make(_):
        made = layers()
        return Called(function, **made), {f"x{i}": torch.randn(shape) for i, shape in enumerate(shapes)}
    return make


def conv_net(_):
    model = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.Hardswish(), nn.MaxPool2d(2),
                          nn.Conv2d(16, 32, 3, groups=2), nn.GroupNorm(4, 32), nn.SiLU(),
                          nn.ConvTranspose2d(32, 8, 4, 2, 1), nn.InstanceNorm2d(8, affine=True), nn.PReLU(),
                          nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(32, 10), nn.LogSoftmax(1))
    return model, {"x": torch.randn(2, 3, 20, 20)}


def recurrent(layer):
    def make(_):
        return Called(lambda layers, x: layers["r"](x)[0], r=layer(12, 16, num_layers=2, bidirectional=True,
                                                                   batch_first=True)), {"x": torch.randn(2, 7, 12)}
    return make


def encoder(_):
    layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, norm_first=True, activation="gelu")
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), {"x": torch.randn(2, 9, 32)}


def decoder(_):
    layer = nn.TransformerDecoderLayer(32, 4, 64, batch_first=True)
    return nn.TransformerDecoder(layer, 2), {"x": torch.randn(2, 5, 32), "memory": torch.randn(2, 7, 32)}


def attend(_, q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def index_work(_, x):
    y = x[:, 1::2].flip(0)
    return torch.where(y > 0, y.cumsum(1), y.roll(1, 1)), torch.topk(x, 3, 1)[0], torch.argsort(x, 1)[:, :2]


def reductions(_, x):
    return (x.std(1), x.var(0, unbiased=False), torch.logsumexp(x, 1), x.norm(dim=1), x.prod(1), x.amax(0),
            torch.einsum("bij,bkj->bik", x, x), x.argmax(2))


def resize(_, x):
    return (F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False),
            F.interpolate(x, size=(9, 11), mode="bicubic", align_corners=True),
            F.interpolate(x, scale_factor=1.5, mode="nearest"), F.pixel_shuffle(x, 2))


def sample(_, x, grid):
    return F.grid_sample(x, torch.tanh(grid), align_corners=False), F.pad(x, (1, 2, 1, 0), mode="reflect")


def scatter(_, x, y):
    places = torch.tensor([[0, 2, 1, 0], [1, 1, 3, 2]])
    return x.scatter(1, places, y), x.scatter_add(1, places, y), x.gather(1, places), x.index_select(1, places[0])


def words(_):
    model = Called(lambda layers, x: layers["norm"](layers["words"](x)).mean(1), words=nn.Embedding(30, 16),
                   norm=nn.LayerNorm(16))
    return model, {"x": torch.randint(0, 30, (3, 8))}


def activations(_, x):
    return (F.mish(x) + F.elu(x) + F.selu(x) + F.softplus(x), F.hardsigmoid(x) * F.celu(x), F.gelu(x), F.softsign(x),
            F.gelu(x, approximate="tanh"), F.glu(x, 1), F.leaky_relu(x), F.relu6(x), F.threshold(x, 0.1, -1))


def three_dims(_):
    model = nn.Sequential(nn.Conv3d(2, 6, 3, padding=1), nn.BatchNorm3d(6), nn.ReLU(), nn.MaxPool3d(2),
                          nn.Conv3d(6, 4, (1, 3, 3), stride=(1, 2, 2)), nn.AvgPool3d((2, 1, 1)))
    return model, {"x": torch.randn(1, 2, 8, 12, 12)}


def one_dim(_):
    model = nn.Sequential(nn.Conv1d(4, 8, 5, padding=4, dilation=2), nn.BatchNorm1d(8), nn.GELU(), nn.AvgPool1d(2),
                          nn.ConvTranspose1d(8, 4, 3, stride=2), nn.MaxPool1d(3, stride=2, padding=1))
    return model, {"x": torch.randn(2, 4, 24)}


BATCH = {"x": {0: "batch"}}
DYNAMO = ("dynamo", "dynamo-newest")
ROWS = [
    *torch_rows("torch", "conv_net", conv_net, BATCH),
    *torch_rows("torch", "lstm", recurrent(nn.LSTM), ways=("script", "dynamo")),
    *torch_rows("torch", "gru", recurrent(nn.GRU), ways=("script", "dynamo")),
    *torch_rows("torch", "encoder", encoder, BATCH),
    *torch_rows("torch", "decoder", decoder, ways=DYNAMO),
    *torch_rows("torch", "attention", plain(attend, dict, (2, 4, 6, 8), (2, 4, 6, 8), (2, 4, 6, 8))),
    *torch_rows("torch", "index_work", plain(index_work, dict, (4, 8)), ways=("script", "dynamo")),
    *torch_rows("torch", "reductions", plain(reductions, dict, (3, 4, 5)), ways=("script", "dynamo")),
    *torch_rows("torch", "resize", plain(resize, dict, (1, 4, 6, 7))),
    *torch_rows("torch", "sample", plain(sample, dict, (1, 3, 6, 7), (1, 5, 4, 2)), ways=("script", "dynamo")),
    *torch_rows("torch", "scatter", plain(scatter, dict, (2, 5), (2, 4)), ways=("script", "dynamo")),
    *torch_rows("torch", "words", words, {"x": {0: "batch", 1: "words"}}),
    *torch_rows("torch", "activations", plain(activations, dict, (2, 6)), ways=("script", "dynamo")),
    *torch_rows("torch", "three_dims", three_dims, ways=("script", "dynamo")),
    *torch_rows("torch", "one_dim", one_dim, ways=("script", "dynamo")),
]
