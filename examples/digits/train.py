#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains the digit reader and writes digits.onnx, its test case and a picture of each digit.

What it renders: digits 0 to 9 of the font families in render.py, one white digit on a black
ground in 28x28 8-bit grey, with random thickness, size, slant, rotation, position, contrast, blur
and noise. It trains on the families of TRAIN, measures on the families of HELD_OUT, of which it has
seen no file, and exits non-zero below 98 % there. Everything is seeded: the same packages on the
same kind of processor give the same bytes (the rounding of matrix products is the processor's).

Debian 12: apt-get install python3-venv fonts-dejavu fonts-liberation fonts-freefont-ttf \\
    fonts-roboto-unhinted fonts-urw-base35 fonts-lato fonts-linuxlibertine fonts-quicksand \\
    fonts-comfortaa fonts-jetbrains-mono fonts-noto-core fonts-open-sans fonts-cantarell \\
    fonts-crosextra-caladea fonts-sil-gentium fonts-comic-neue fonts-paratype
PyPI: python3 -m venv /tmp/digits-venv && /tmp/digits-venv/bin/pip install torch numpy pillow onnx
Run: /tmp/digits-venv/bin/python examples/digits/train.py      (a few minutes on two cores)
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from PIL import Image
from torch import nn

import render

HERE = Path(__file__).resolve().parent
NAMES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
REQUIRED_ACCURACY = 0.98
MAX_FILE_BYTES = 500_000
OPSET = 17  # before 14, onnx.reference takes a BatchNormalization with momentum to be in training
BN_EPSILON = 1e-5
DROPOUT = 0.25
# (name, channels in, channels out, whether a 2x2 max-pool follows)
BLOCKS = (("1", 1, 16, True), ("2", 16, 32, False), ("3", 32, 32, True), ("4", 32, 48, True))
FEATURES = 48 * 3 * 3
HIDDEN = 64


class Net(nn.Module):
    """conv-bn-relu blocks, then two layers; forward gives logits (the file ends with Softmax)."""

    def __init__(self):
        super().__init__()
        for name, cin, cout, _ in BLOCKS:
            setattr(self, "conv" + name, nn.Conv2d(cin, cout, 3, padding=1, bias=False))
            setattr(self, "bn" + name, nn.BatchNorm2d(cout, eps=BN_EPSILON))
        self.fc1 = nn.Linear(FEATURES, HIDDEN)
        self.fc2 = nn.Linear(HIDDEN, 10)
        self.dropout = nn.Dropout(DROPOUT)

    def forward(self, x):
        for name, _, _, pooled in BLOCKS:
            x = torch.relu(getattr(self, "bn" + name)(getattr(self, "conv" + name)(x)))
            if pooled:
                x = nn.functional.max_pool2d(x, 2)
        x = torch.relu(self.fc1(self.dropout(x.flatten(1))))
        return self.fc2(self.dropout(x))


def as_input(pictures):
    """u8 pictures to the f32 in [0, 1] that the model takes."""
    return torch.from_numpy(pictures.astype(np.float32) / np.float32(255.0))


def train(net, pictures, digits, epochs):
    inputs, targets = as_input(pictures), torch.from_numpy(digits)
    batch = 128
    steps = -(-len(inputs) // batch)
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3, weight_decay=1e-2)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, total_steps=epochs * steps)
    loss_of = nn.CrossEntropyLoss(label_smoothing=0.02)
    for epoch in range(epochs):
        start, total = time.monotonic(), 0.0
        net.train()
        for chosen in torch.randperm(len(inputs)).split(batch):
            optimizer.zero_grad()
            loss = loss_of(net(inputs[chosen]), targets[chosen])
            loss.backward()
            optimizer.step()
            schedule.step()
            total += loss.item() * len(chosen)
        seconds = time.monotonic() - start
        print(f"epoch {epoch + 1}/{epochs}: loss {total / len(inputs):.4f}, {seconds:.1f} s",
              flush=True)


def answers(net, pictures):
    net.eval()
    with torch.no_grad():
        parts = [net(part).argmax(1) for part in as_input(pictures).split(1000)]
    return torch.cat(parts).numpy()


def report_held_out(found, digits, sources):
    """Prints the score per family and the commonest confusions; returns the accuracy over all."""
    right = found == digits
    for name in render.HELD_OUT:
        of_family = sources == name
        print(f"  {name:12} {100 * right[of_family].mean():6.2f} %  of {of_family.sum()}")
    wrong, counts = np.unique(np.stack([digits[~right], found[~right]]), axis=1, return_counts=True)
    for i in np.argsort(-counts, kind="stable")[:5]:
        print(f"  read {wrong[0, i]} as {wrong[1, i]}: {counts[i]} times")
    return right.mean()


def nodes_of_graph(weights):
    """The graph as in training form: BatchNormalization and Dropout are left in on purpose, so that
    an optimizer has them to fold. `weights` gains the initializers that PyTorch has no name for."""
    nodes = []

    def add(op, name, inputs, output=None, **attributes):
        output = output or name + ".out"
        nodes.append(helper.make_node(op, inputs, [output], name=name, **attributes))
        return output

    x = "image"
    for name, _, _, pooled in BLOCKS:
        conv, bn = "conv" + name, "bn" + name
        x = add("Conv", conv, [x, conv + ".weight"], kernel_shape=[3, 3], pads=[1, 1, 1, 1],
                strides=[1, 1])
        parameters = ("weight", "bias", "running_mean", "running_var")
        x = add("BatchNormalization", bn, [x] + [f"{bn}.{p}" for p in parameters],
                epsilon=BN_EPSILON, momentum=0.9)
        x = add("Relu", "relu" + name, [x])
        if pooled:
            x = add("MaxPool", "pool" + name, [x], kernel_shape=[2, 2], strides=[2, 2])
    weights["dropout.ratio"] = np.array(DROPOUT, np.float32)
    x = add("Flatten", "flatten", [x], axis=1)
    x = add("Dropout", "dropout1", [x, "dropout.ratio"])
    x = add("Gemm", "fc1", [x, "fc1.weight", "fc1.bias"], transB=1)
    x = add("Relu", "relu5", [x])
    x = add("Dropout", "dropout2", [x, "dropout.ratio"])
    x = add("Gemm", "fc2", [x, "fc2.weight", "fc2.bias"], transB=1)
    add("Softmax", "softmax", [x], output="probabilities", axis=1)
    return nodes


def export(net, path):
    weights = {name: value.detach().numpy() for name, value in net.state_dict().items()
               if not name.endswith("num_batches_tracked")}
    nodes = nodes_of_graph(weights)
    graph = helper.make_graph(
        nodes,
        "digits",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 1, 28, 28])],
        [helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, [1, 10])],
        initializer=[numpy_helper.from_array(value, name) for name, value in weights.items()],
        doc_string="Reads a digit: white on black, f32 in [0, 1], 28x28.",
    )
    model = helper.make_model(graph, producer_name="examples/digits/train.py", ir_version=8,
                              opset_imports=[helper.make_opsetid("", OPSET)])
    onnx.checker.check_model(model, full_check=True)
    path.write_bytes(model.SerializeToString())
    return model


def write_pictures(out):
    """One picture per digit, each of another held-out family: {digit: (name, u8 array)}."""
    rng = np.random.default_rng(3)
    pictures = {}
    for digit, (family, files) in enumerate(render.font_files(render.HELD_OUT).items()):
        values = render.picture(files[rng.integers(len(files))], digit, rng)
        Image.fromarray(values).save(out / f"{NAMES[digit]}.png")
        pictures[digit] = (family, values)
    return pictures


def write_test_case(net, values, out):
    """The ONNX backend-test layout; the expected output is computed in float64."""
    image = as_input(values.reshape(1, 1, render.SIDE, render.SIDE))
    net64 = Net().double()
    net64.load_state_dict(net.state_dict())
    net64.eval()
    with torch.no_grad():
        expected = torch.softmax(net64(image.double()), 1).float().numpy()
    folder = out / "test_data_set_0"
    folder.mkdir(exist_ok=True)
    for file, name, array in (("input_0.pb", "image", image.numpy()),
                              ("output_0.pb", "probabilities", expected)):
        (folder / file).write_bytes(numpy_helper.from_array(array, name).SerializeToString())
    (out / "data.json").write_text(json.dumps({"rtol": 1e-3, "atol": 1e-5}) + "\n")
    link = out / "model.onnx"
    if not link.is_symlink():
        link.symlink_to("digits.onnx")
    return image.numpy(), expected


def check_export(model, pictures, case):
    """The file, evaluated without PyTorch, must read every picture and give the test's output."""
    evaluator = ReferenceEvaluator(model)
    for digit, (family, values) in pictures.items():
        image = as_input(values.reshape(1, 1, render.SIDE, render.SIDE)).numpy()
        probabilities = evaluator.run(None, {"image": image})[0][0]
        print(f"  {NAMES[digit]}.png ({family}): {probabilities.argmax()}"
              f" with probability {probabilities.max():.4f}")
        if probabilities.argmax() != digit:
            raise SystemExit(f"{NAMES[digit]}.png: not read as {digit}")
        if digit == 7 and probabilities[7] < 0.95:
            raise SystemExit(f"seven.png: expected >= 0.95, found {probabilities[7]:.4f}")
    image, expected = case
    found = evaluator.run(None, {"image": image})[0]
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-5)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=HERE, help="folder to write to")
    parser.add_argument("--train", type=int, default=30000, help="pictures to train on")
    parser.add_argument("--test", type=int, default=10000, help="pictures of held-out fonts")
    parser.add_argument("--epochs", type=int, default=12)
    options = parser.parse_args()
    torch.manual_seed(1)
    torch.set_num_threads(2)
    torch.use_deterministic_algorithms(True)
    options.out.mkdir(parents=True, exist_ok=True)

    start = time.monotonic()
    pictures, digits, _ = render.dataset(render.TRAIN, options.train, seed=1)
    held_out, held_out_digits, sources = render.dataset(render.HELD_OUT, options.test, seed=2)
    print(f"rendered {len(pictures)} + {len(held_out)} in {time.monotonic() - start:.1f} s")

    net = Net()
    train(net, pictures, digits, options.epochs)
    print(f"accuracy on the training pictures: {(answers(net, pictures) == digits).mean():.4%}")
    accuracy = report_held_out(answers(net, held_out), held_out_digits, sources)
    print(f"accuracy on held-out fonts: {accuracy:.4%} of {len(held_out)}")
    if accuracy < REQUIRED_ACCURACY:
        raise SystemExit(f"accuracy on held-out fonts: expected >= {REQUIRED_ACCURACY:.0%}, "
                         f"found {accuracy:.4%}")

    path = options.out / "digits.onnx"
    model = export(net, path)
    (options.out / "labels.txt").write_text("".join(f"{digit}\n" for digit in range(10)))
    shown = write_pictures(options.out)
    check_export(model, shown, write_test_case(net, shown[7][1], options.out))
    size, parameters = path.stat().st_size, sum(p.numel() for p in net.parameters())
    print(f"{path.name}: {size} bytes, {parameters} parameters")
    if size > MAX_FILE_BYTES:
        raise SystemExit(f"{path.name}: expected <= {MAX_FILE_BYTES} bytes, found {size}")


if __name__ == "__main__":
    main()
