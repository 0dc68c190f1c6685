#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the models of this folder: well-known architectures in Kiln's text form.

    bench/zoo/generate.py [DIR]

Weights are seeded noise, scaled so that activations keep a standard deviation near 1 through the
whole network, and a model file holds no weight bytes. Layers stand in the form in which exporters
write them: batch normalization behind its convolution, SiLU as sigmoid and mul, GELU in erf form, a
layer norm as its nine operators. A ctest checks that the committed files are what this writes.
"""
import math
import pathlib
import sys


class Model:
    """The text of one graph, line by line; every method appends nodes and returns the name of its result."""

    def __init__(self, name, about, inputs):
        self.name, self.about, self.inputs = name, about, inputs
        self.lines, self.constants, self.results = [], [], []
        self.counts = {}
        self.seed = 0

    def fresh(self, base):
        self.counts[base] = self.counts.get(base, 0) + 1
        return f"{base}.{self.counts[base]}"

    def op(self, op, operands, attributes="", base=None, n_results=1):
        names = [self.fresh(base or op) for _ in range(n_results)]
        attributes = f" {{{attributes}}}" if attributes else ""
        operands = ", ".join("_" if o is None else f"%{o}" for o in operands)
        self.lines.append(f"  {', '.join('%' + n for n in names)} = {op}({operands}){attributes}")
        return names[0] if n_results == 1 else names

    def constant(self, name, payload, type_):
        self.constants.append(f"  @{name} = {payload} : {type_}")
        self.lines.append(f"  %{name} = const @{name} : {type_}")
        return name

    def normal(self, base, shape, std):
        self.seed += 1
        dims = ",".join(map(str, shape))
        return self.constant(self.fresh(base), f"random_normal(seed={self.seed}, std={std:.5g})", f"f32[{dims}]")

    def uniform(self, base, n, low, high):
        self.seed += 1
        return self.constant(self.fresh(base), f"random_uniform(seed={self.seed}, low={low}, high={high})", f"f32[{n}]")

    def integers(self, base, values):
        return self.constant(self.fresh(base), f"[{', '.join(map(str, values))}]", f"i64[{len(values)}]")

    def scalar(self, base, value):
        return self.constant(self.fresh(base), f"[{value!r}]", "f32[]")

    def result(self, value):
        self.results.append(value)

    def text(self):
        arguments = ", ".join(f"%{name}: {type_}" for name, type_ in self.inputs)
        head = "".join(f"# {line}\n" for line in self.about)
        body = "\n".join(self.lines)
        constants = "\n".join(self.constants)
        returned = ", ".join("%" + r for r in self.results)
        return (f"{head}graph @{self.name}({arguments}) {{\n{body}\n  return {returned}\n}}\n\n"
                f"constants {{\n{constants}\n}}\n")

    # --- layers of convolutional networks ---

    def conv(self, x, c_in, c_out, k, stride=1, group=1, pad=None, bias=False, gain=2.0):
        kh, kw = (k, k) if isinstance(k, int) else k
        ph, pw = (kh // 2, kw // 2) if pad is None else (pad, pad)
        fan_in = c_in // group * kh * kw
        w = self.normal("w", (c_out, c_in // group, kh, kw), math.sqrt(gain / fan_in))
        operands = [x, w] + ([self.uniform("b", c_out, -0.1, 0.1)] if bias else [])
        attributes = f"kernel_shape=[{kh},{kw}], pads=[{ph},{pw},{ph},{pw}], strides=[{stride},{stride}]"
        if group > 1:
            attributes += f", group={group}"
        return self.op("conv", operands, attributes)

    def batch_norm(self, x, c):
        scale, bias = self.uniform("gamma", c, 0.8, 1.2), self.uniform("beta", c, -0.2, 0.2)
        mean, var = self.uniform("mean", c, -0.1, 0.1), self.uniform("var", c, 0.8, 1.2)
        return self.op("batch_normalization", [x, scale, bias, mean, var], base="bn")

    def conv_bn(self, x, c_in, c_out, k, stride=1, group=1, pad=None, gain=2.0):
        return self.batch_norm(self.conv(x, c_in, c_out, k, stride, group, pad, gain=gain), c_out)

    def relu(self, x):
        return self.op("relu", [x])

    def silu(self, x):
        return self.op("mul", [x, self.op("sigmoid", [x])])

    def hard_swish(self, x):
        return self.op("hard_swish", [x])

    def max_pool(self, x, k, stride, pad=0):
        return self.op("max_pool", [x], f"kernel_shape=[{k},{k}], pads=[{pad},{pad},{pad},{pad}], strides=[{stride},{stride}]")

    def linear(self, x, n_in, n_out):
        w = self.normal("w", (n_out, n_in), math.sqrt(1 / n_in))
        return self.op("gemm", [x, w, self.uniform("b", n_out, -0.1, 0.1)], "transB=true")

    def classifier(self, x, c, classes=1000):
        x = self.op("global_average_pool", [x], base="pool")
        return self.linear(self.op("flatten", [x]), c, classes)

    def squeeze_excite(self, x, c, reduced, gate, inner):
        s = self.op("global_average_pool", [x], base="pool")
        s = inner(self.conv(s, c, reduced, 1, bias=True))
        return self.op("mul", [x, gate(self.conv(s, reduced, c, 1, bias=True))])

    # --- layers of transformers ---

    def dense(self, x, n_in, n_out, std=None):
        w = self.normal("w", (n_in, n_out), std or math.sqrt(1 / n_in))
        return self.op("add", [self.op("matmul", [x, w]), self.uniform("b", n_out, -0.1, 0.1)])

    def layer_norm(self, x, n):
        two, epsilon = self.scalar("two", 2.0), self.scalar("epsilon", 1e-05)
        mean = self.op("reduce_mean", [x, self.last_axis()], "keepdims=true")
        centred = self.op("sub", [x, mean])
        var = self.op("reduce_mean", [self.op("pow", [centred, two]), self.last_axis()], "keepdims=true")
        y = self.op("div", [centred, self.op("sqrt", [self.op("add", [var, epsilon])])])
        y = self.op("mul", [y, self.uniform("gamma", n, 0.8, 1.2)])
        return self.op("add", [y, self.uniform("beta", n, -0.2, 0.2)])

    def last_axis(self):
        return self.integers("axes", [-1])

    def gelu(self, x):
        t = self.op("erf", [self.op("div", [x, self.scalar("root2", math.sqrt(2))])])
        t = self.op("mul", [x, self.op("add", [t, self.scalar("one", 1.0)])])
        return self.op("mul", [t, self.scalar("half", 0.5)])

    def reshape(self, x, shape):
        return self.op("reshape", [x, self.integers("shape", shape)])

    def heads(self, x, tokens, heads, size, perm):
        return self.op("transpose", [self.reshape(x, [1, tokens, heads, size])], f"perm={perm}")


# --- convolutional networks ---

IMAGE = [("image", "f32[1,3,224,224]")]


def resnet50():
    m = Model("resnet50", ["ResNet-50 (He et al. 2015, stride in the 3x3 of a bottleneck), 224 x 224."], IMAGE)
    x = m.max_pool(m.relu(m.conv_bn("image", 3, 64, 7, 2)), 3, 2, 1)
    c = 64
    for stage, (width, blocks) in enumerate([(64, 3), (128, 4), (256, 6), (512, 3)]):
        for block in range(blocks):
            stride = 2 if stage and not block else 1
            y = m.relu(m.conv_bn(x, c, width, 1))
            y = m.relu(m.conv_bn(y, width, width, 3, stride))
            y = m.conv_bn(y, width, 4 * width, 1, gain=0.5)
            shortcut = x if block else m.conv_bn(x, c, 4 * width, 1, stride, gain=0.5)
            x, c = m.relu(m.op("add", [y, shortcut])), 4 * width
    m.result(m.classifier(x, c))
    return m


def vgg16():
    m = Model("vgg16", ["VGG-16 (Simonyan and Zisserman 2014), 224 x 224."], IMAGE)
    x, c = "image", 3
    for width, convs in [(64, 2), (128, 2), (256, 3), (512, 3), (512, 3)]:
        for _ in range(convs):
            x, c = m.relu(m.conv(x, c, width, 3, bias=True)), width
        x = m.max_pool(x, 2, 2)
    x = m.relu(m.linear(m.op("flatten", [x]), 512 * 7 * 7, 4096))
    m.result(m.linear(m.relu(m.linear(x, 4096, 4096)), 4096, 1000))
    return m


def mobilenet_v3_large():
    m = Model("mobilenet_v3_large", ["MobileNetV3-Large (Howard et al. 2019), 224 x 224."], IMAGE)

    def gate(x):
        return m.op("hard_sigmoid", [x], "alpha=0.16666667")

    x, c = m.hard_swish(m.conv_bn("image", 3, 16, 3, 2)), 16
    # kernel, expanded channels, channels out, squeeze and excite, hard-swish, stride
    for k, wide, out, excite, swish, stride in [
            (3, 16, 16, False, False, 1), (3, 64, 24, False, False, 2), (3, 72, 24, False, False, 1),
            (5, 72, 40, True, False, 2), (5, 120, 40, True, False, 1), (5, 120, 40, True, False, 1),
            (3, 240, 80, False, True, 2), (3, 200, 80, False, True, 1), (3, 184, 80, False, True, 1),
            (3, 184, 80, False, True, 1), (3, 480, 112, True, True, 1), (3, 672, 112, True, True, 1),
            (5, 672, 160, True, True, 2), (5, 960, 160, True, True, 1), (5, 960, 160, True, True, 1)]:
        act = m.hard_swish if swish else m.relu
        y = x if wide == c else act(m.conv_bn(x, c, wide, 1))
        y = act(m.conv_bn(y, wide, wide, k, stride, group=wide))
        if excite:
            y = m.squeeze_excite(y, wide, (wide // 4 + 7) // 8 * 8, gate, m.relu)
        y = m.conv_bn(y, wide, out, 1, gain=1.0)
        x, c = (m.op("add", [y, x]) if stride == 1 and out == c else y), out
    x = m.hard_swish(m.conv_bn(x, c, 960, 1))
    x = m.op("flatten", [m.op("global_average_pool", [x], base="pool")])
    m.result(m.linear(m.hard_swish(m.linear(x, 960, 1280)), 1280, 1000))
    return m


def efficientnet_b0():
    m = Model("efficientnet_b0", ["EfficientNet-B0 (Tan and Le 2019), 224 x 224; SiLU as exporters write it."], IMAGE)

    def gate(x):
        return m.op("sigmoid", [x])

    x, c = m.silu(m.conv_bn("image", 3, 32, 3, 2)), 32
    for ratio, k, out, blocks, stride in [(1, 3, 16, 1, 1), (6, 3, 24, 2, 2), (6, 5, 40, 2, 2), (6, 3, 80, 3, 2),
                                          (6, 5, 112, 3, 1), (6, 5, 192, 4, 2), (6, 3, 320, 1, 1)]:
        for block in range(blocks):
            step, wide = (1 if block else stride), c * ratio
            y = x if ratio == 1 else m.silu(m.conv_bn(x, c, wide, 1))
            y = m.silu(m.conv_bn(y, wide, wide, k, step, group=wide))
            y = m.squeeze_excite(y, wide, max(1, c // 4), gate, m.silu)
            y = m.conv_bn(y, wide, out, 1, gain=1.0)
            x, c = (m.op("add", [y, x]) if step == 1 and out == c else y), out
    m.result(m.classifier(m.silu(m.conv_bn(x, c, 1280, 1)), 1280))
    return m


def inception_v1():
    m = Model("inception_v1", ["Inception v1, GoogLeNet (Szegedy et al. 2014), with its local response",
                               "normalizations, without the auxiliary classifiers; 224 x 224."], IMAGE)

    def conv(x, c_in, c_out, k, stride=1):
        return m.relu(m.conv(x, c_in, c_out, k, stride, bias=True))

    def lrn(x):
        return m.op("lrn", [x], "size=5, alpha=0.0001, beta=0.75, bias=1.0")

    x = lrn(m.max_pool(conv("image", 3, 64, 7, 2), 3, 2, 1))
    x = m.max_pool(lrn(conv(conv(x, 64, 64, 1), 64, 192, 3)), 3, 2, 1)
    c = 192
    for at, (a, b1, b3, c1, c5, pool) in enumerate([
            (64, 96, 128, 16, 32, 32), (128, 128, 192, 32, 96, 64), (192, 96, 208, 16, 48, 64),
            (160, 112, 224, 24, 64, 64), (128, 128, 256, 24, 64, 64), (112, 144, 288, 32, 64, 64),
            (256, 160, 320, 32, 128, 128), (256, 160, 320, 32, 128, 128), (384, 192, 384, 48, 128, 128)]):
        if at in (2, 7):
            x = m.max_pool(x, 3, 2, 1)
        branches = [conv(x, c, a, 1), conv(conv(x, c, b1, 1), b1, b3, 3), conv(conv(x, c, c1, 1), c1, c5, 5),
                    conv(m.max_pool(x, 3, 1, 1), c, pool, 1)]
        x, c = m.op("concat", branches, "axis=1"), a + b3 + c5 + pool
    m.result(m.classifier(x, c))
    return m


def densenet121():
    m = Model("densenet121", ["DenseNet-121 (Huang et al. 2016), 224 x 224: every block's result feeds all later concats."], IMAGE)
    x, c = m.max_pool(m.relu(m.conv_bn("image", 3, 64, 7, 2)), 3, 2, 1), 64
    for stage, layers in enumerate([6, 12, 24, 16]):
        for _ in range(layers):
            y = m.conv(m.relu(m.batch_norm(x, c)), c, 128, 1)
            y = m.conv(m.relu(m.batch_norm(y, 128)), 128, 32, 3, gain=1.0)
            x, c = m.op("concat", [x, y], "axis=1"), c + 32
        if stage < 3:
            x, c = m.conv(m.relu(m.batch_norm(x, c)), c, c // 2, 1), c // 2
            x = m.op("average_pool", [x], "kernel_shape=[2,2], strides=[2,2]")
    m.result(m.classifier(m.relu(m.batch_norm(x, c)), c))
    return m


def unet32():
    m = Model("unet32", ["U-Net (Ronneberger et al. 2015) of base width 32 with batch normalization; 256 x 256."],
              [("image", "f32[1,3,256,256]")])

    def double(x, c_in, c_out):
        x = m.relu(m.conv_bn(x, c_in, c_out, 3))
        return m.relu(m.conv_bn(x, c_out, c_out, 3))

    skips, x, c = [], "image", 3
    for width in (32, 64, 128, 256):
        x, c = double(x, c, width), width
        skips.append((x, c))
        x = m.max_pool(x, 2, 2)
    x, c = double(x, c, 512), 512
    for skip, width in reversed(skips):
        w = m.normal("w", (c, width, 2, 2), math.sqrt(1 / c))
        up = m.op("conv_transpose", [x, w, m.uniform("b", width, -0.1, 0.1)], "kernel_shape=[2,2], strides=[2,2]")
        x, c = double(m.op("concat", [skip, up], "axis=1"), 2 * width, width), width
    m.result(m.op("sigmoid", [m.conv(x, c, 2, 1, bias=True, gain=1.0)]))
    return m


# --- transformers and recurrent networks ---

def bert_mini():
    layers, width, heads, tokens, words = 6, 384, 6, 128, 8000
    m = Model("bert_mini", [f"A BERT-like encoder (Devlin et al. 2018): {layers} layers of width {width}, {heads} heads, {tokens} tokens."],
              [("tokens", f"i64[1,{tokens}] in [0,{words})")])
    x = m.op("gather", [m.normal("words", (words, width), 1.0), "tokens"])
    x = m.layer_norm(m.op("add", [x, m.normal("positions", (1, tokens, width), 0.5)]), width)
    size = width // heads
    for _ in range(layers):
        q = m.heads(m.dense(x, width, width), tokens, heads, size, "[0,2,1,3]")
        k = m.heads(m.dense(x, width, width), tokens, heads, size, "[0,2,3,1]")
        v = m.heads(m.dense(x, width, width), tokens, heads, size, "[0,2,1,3]")
        scores = m.op("div", [m.op("matmul", [q, k]), m.scalar("root", math.sqrt(size))])
        y = m.op("matmul", [m.op("softmax", [scores], "axis=-1"), v])
        y = m.reshape(m.op("transpose", [y], "perm=[0,2,1,3]"), [1, tokens, width])
        x = m.layer_norm(m.op("add", [m.dense(y, width, width), x]), width)
        y = m.dense(m.gelu(m.dense(x, width, 4 * width)), 4 * width, width)
        x = m.layer_norm(m.op("add", [y, x]), width)
    m.result(x)
    return m


def gpt_decode():
    layers, width, heads, past, words = 4, 512, 8, 255, 8000
    size = width // heads
    inputs = [("token", f"i64[1,1] in [0,{words})")]
    for i in range(layers):
        inputs += [(f"past.k{i}", f"f32[1,{heads},{past},{size}]"), (f"past.v{i}", f"f32[1,{heads},{past},{size}]")]
    m = Model("gpt_decode", [f"One decoding step of a GPT-like model: {layers} layers of width {width}, {heads} heads, one token",
                             f"behind {past} whose keys and values come from a cache and go back into it."], inputs)
    x = m.op("gather", [m.normal("words", (words, width), 1.0), "token"])
    x = m.op("add", [x, m.normal("position", (1, 1, width), 0.5)])
    caches = []
    for i in range(layers):
        y = m.layer_norm(x, width)
        q, k, v = m.op("split", [m.dense(y, width, 3 * width), m.integers("sizes", [width] * 3)], "axis=2", n_results=3)
        q, k, v = (m.heads(t, 1, heads, size, "[0,2,1,3]") for t in (q, k, v))
        k = m.op("concat", [f"past.k{i}", k], "axis=2")
        v = m.op("concat", [f"past.v{i}", v], "axis=2")
        caches += [k, v]
        scores = m.op("matmul", [q, m.op("transpose", [k], "perm=[0,1,3,2]")])
        scores = m.op("div", [scores, m.scalar("root", math.sqrt(size))])
        y = m.op("matmul", [m.op("softmax", [scores], "axis=-1"), v])
        y = m.reshape(m.op("transpose", [y], "perm=[0,2,1,3]"), [1, 1, width])
        x = m.op("add", [m.dense(y, width, width), x])
        y = m.dense(m.gelu(m.dense(m.layer_norm(x, width), width, 4 * width)), 4 * width, width)
        x = m.op("add", [y, x])
    m.result(m.op("matmul", [m.layer_norm(x, width), m.normal("w", (width, words), math.sqrt(1 / width))]))
    for cache in caches:
        m.result(cache)
    return m


def lstm_tagger():
    steps, features, hidden, tags = 64, 256, 384, 48
    m = Model("lstm_tagger", [f"A sequence tagger: two LSTM layers of {hidden}, the first in both directions, over {steps} steps."],
              [("x", f"f32[{steps},1,{features}]")])

    def lstm(x, n_in, directions):
        std = 1 / math.sqrt(hidden)
        w = m.normal("w", (directions, 4 * hidden, n_in), std)
        r = m.normal("r", (directions, 4 * hidden, hidden), std)
        b = m.normal("b", (directions, 8 * hidden), 0.1)
        direction = 'direction="bidirectional", ' if directions == 2 else ""
        y, _, _ = m.op("lstm", [x, w, r, b], f"{direction}hidden_size={hidden}", n_results=3)
        return m.reshape(m.op("transpose", [y], "perm=[0,2,1,3]"), [steps, 1, directions * hidden])

    x = lstm(lstm("x", features, 2), 2 * hidden, 1)
    m.result(m.op("softmax", [m.dense(x, hidden, tags)], "axis=-1"))
    return m


ZOO = [resnet50, vgg16, mobilenet_v3_large, efficientnet_b0, inception_v1, densenet121, unet32, bert_mini, gpt_decode,
       lstm_tagger]


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent
    for build in ZOO:
        model = build()
        (folder / f"{model.name}.kiln").write_text(model.text())


if __name__ == "__main__":
    main()
