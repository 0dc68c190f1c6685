# SPDX-License-Identifier: Apache-2.0
"""Searches of com.microsoft, for check_contrib.py: small decoders with attention, whose scores depend on positions, masks
and all tokens before."""
import numpy as np
import onnx
from contrib_case import DOMAINS, Case, Draw
from onnx import TensorProto, helper, numpy_helper

FLOAT, INT32 = TensorProto.FLOAT, TensorProto.INT32
HEADS, SIZE, WORDS, LONGEST = 2, 4, 11, 40
PAD, END = 0, 1


class Decoder:
    """(input_ids, position_ids, attention_mask, past_0, …) to (logits, present_0, …)."""

    def __init__(self, draw, layers=1, words=WORDS, less=0):
        self.nodes, self.weights, self.layers, self.words = [], [], layers, words
        self.draw, hidden = draw, HEADS * SIZE
        table = self.weight("table", draw.floats(words, hidden))
        x = self.add("Add", self.add("Gather", table, "input_ids"), self.add("Gather", self.weight("places", draw.floats(LONGEST, hidden)), "position_ids"))
        bias = self.bias()
        for layer in range(layers):
            x = self.attend(x, bias, layer, hidden)
        logits = self.add("MatMul", x, self.add("Transpose", table, perm=[1, 0]))
        never = (np.where(np.arange(words) == PAD, -1e4, 0) - less).astype(np.float32)
        self.nodes.append(helper.make_node("Add", [logits, self.weight("never", never)], ["logits"]))

    def weight(self, name, array):
        self.weights.append(numpy_helper.from_array(np.asarray(array), f"{name}_{len(self.weights)}"))
        return self.weights[-1].name

    def add(self, kind, *operands, **attributes):
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(operands), [name], name=f"n{len(self.nodes)}", **attributes))
        return name

    def ints(self, *values):
        return self.weight("ints", np.array(values, np.int64))

    def extent(self, of, dim):
        return self.add("Gather", self.add("Shape", of), self.weight("dim", np.int64(dim)))

    def bias(self):
        """[rows, 1, tokens, all tokens]: a great negative number for tokens that are masked, and those that come later."""
        zero, one = self.weight("zero", np.int64(0)), self.weight("one", np.int64(1))
        n, every = self.extent("input_ids", 1), self.extent("attention_mask", 1)
        at = self.add("Add", self.add("Range", zero, n, one), self.add("Sub", every, n))
        seen = self.add("LessOrEqual", self.add("Range", zero, every, one), self.add("Unsqueeze", at, self.ints(1)))
        mask = self.add("Unsqueeze", self.add("Cast", "attention_mask", to=TensorProto.BOOL), self.ints(1, 2))
        return self.add("Where", self.add("And", mask, seen), self.weight("no", np.float32(0)), self.weight("far", np.float32(-1e4)))

    def attend(self, x, bias, layer, hidden):
        product = self.add("MatMul", x, self.weight("in", self.draw.floats(hidden, 3 * hidden)))
        parts = [f"part{layer}_{i}" for i in range(3)]
        self.nodes.append(helper.make_node("Split", [product], parts, axis=-1))
        heads = self.ints(0, 0, HEADS, SIZE)
        query, *both = (self.add("Transpose", self.add("Reshape", part, heads), perm=[0, 2, 1, 3]) for part in parts)
        both = [self.add("Concat", self.add("Gather", f"past_{layer}", self.weight("which", np.int64(i)), axis=0), part, axis=2)
                for i, part in enumerate(both)]
        present = [self.add("Unsqueeze", part, self.ints(0)) for part in both]
        self.nodes.append(helper.make_node("Concat", present, [f"present_{layer}"], axis=0))
        scores = self.add("MatMul", query, self.add("Transpose", both[0], perm=[0, 1, 3, 2]))
        scores = self.add("Softmax", self.add("Add", self.add("Mul", scores, self.weight("scale", np.float32(0.5))), bias), axis=-1)
        y = self.add("Transpose", self.add("MatMul", scores, both[1]), perm=[0, 2, 1, 3])
        y = self.add("Reshape", y, self.ints(0, 0, hidden))
        return self.add("Add", x, self.add("MatMul", y, self.weight("out", self.draw.floats(hidden, hidden))))

    def graph(self, name="decoder"):
        inputs = [helper.make_tensor_value_info(one, INT32, ["rows", length]) for one, length in
                  (("input_ids", "n"), ("position_ids", "n"), ("attention_mask", "all"))]
        past = lambda what, length: [helper.make_tensor_value_info(f"{what}_{i}", FLOAT, [2, "rows", HEADS, length, SIZE])
                                     for i in range(self.layers)]
        logits = helper.make_tensor_value_info("logits", FLOAT, ["rows", "n", self.words])
        return helper.make_graph(self.nodes, name, inputs + past("past", "before"), [logits, *past("present", "all")], self.weights)


class Search(Case):
    """A search with @decoder."""

    def __init__(self, label, operator, operands, decoder, results=("y",), dims=None, **attributes):
        super().__init__(label, operator, operands, results, types={"y": INT32, "z": FLOAT}, dims=dims, decoder=decoder.graph(),
                         pad_token_id=PAD, eos_token_id=END, **attributes)

    def run(self, model, feeds):
        """What ONNX Runtime computes. It leaves undefined what follows where all sequences have ended; the decoder never gives
        PAD. Whether a beam search is over depends on other samples there (of its batch), so each sample is searched alone."""
        if model.graph.node[0].op_type != "BeamSearch":
            results, length = Case.run(model, feeds), feeds["x"].shape[1]
            ended = np.all(results[0][:, length:] == PAD, axis=0)
            self.defined[0] = np.arange(results[0].shape[1]) <= length + (np.argmax(ended) if ended.any() else ended.size)
            return results
        alone = onnx.ModelProto()
        alone.CopyFrom(model)
        for info in alone.graph.input:
            for dim in info.type.tensor_type.shape.dim[:1] if info.name in "xw" else ():
                dim.dim_value = 1
        parts = [Case.run(alone, {name: array[i:i + 1] if name in "xw" else array for name, array in feeds.items()})
                 for i in range(len(feeds["x"]))]
        return [np.concatenate(part) for part in zip(*parts)]


def number(name, value, dtype=np.int32):
    return name, np.array([value], dtype)


def greedy():
    for seed in range(4):
        draw = Draw(seed)
        decoder = Decoder(draw, layers=1 + seed % 2)
        prompt = ("x", draw.ints(2, WORDS, (3, 4), np.int32))
        padded = prompt[1].copy()
        padded[1, :2], padded[2, :1] = 0, 0
        longest, least = number("l", 12), number("m", 9)
        yield Search(f"plain {seed}", "GreedySearch", [prompt, longest], decoder, dims={"x": ["b", "s"]})
        yield Search(f"constant length {seed}", "GreedySearch", [("x", padded), number("l!", 9)], decoder)
        yield Search(f"penalty {seed}", "GreedySearch", [("x", padded), longest, None, number("p", 1.7, np.float32)], decoder)
        yield Search(f"least length {seed}", "GreedySearch", [prompt, longest, least], decoder)
        for n in 1, 2, 3, 5:
            yield Search(f"{n}-grams {seed}", "GreedySearch", [("x", padded[:, :2 + seed % 3]), number("l", 9)], decoder, no_repeat_ngram_size=n,
                         dims={"x": ["b", "s"]} if seed % 2 else None)
        masks = ("v", draw.ints(0, 4, WORDS, np.int32)), ("w", draw.ints(0, 3, (3, WORDS), np.int32))
        yield Search(f"masks {seed}", "GreedySearch", [prompt, longest, None, None, *masks], decoder)
        yield Search(f"attention {seed}", "GreedySearch", [prompt, longest, None, None, None, None, ("a", (padded > 0).astype(np.int32))], decoder)
        other = Decoder(draw, layers=1 + seed % 2)
        yield Search(f"other first {seed}", "GreedySearch", [prompt, longest], decoder, init_decoder=other.graph("first"))
        yield Search(f"number of words {seed}", "GreedySearch", [prompt, longest], decoder, vocab_size=WORDS)
    draw = Draw(7)
    for seed in range(5):
        decoder = Decoder(draw, words=5)
        yield Search(f"early end {seed}", "GreedySearch", [("x", draw.ints(2, 5, (2, 3), np.int32)), number("l", 20)], decoder)
        yield Search(f"early end of one {seed}", "GreedySearch", [("x", draw.ints(2, 5, (1, 3), np.int32)), number("l", 20)], decoder)


def samples():
    """Where one word is left, it is drawn. ONNX Runtime subtracts all presence penalties from the first word, so a decoder with
    lesser scores gives what is expected of them."""
    for seed in range(4):
        draw, again = Draw(seed), Draw(seed)
        present = draw.ints(0, 2, WORDS, np.int32)
        decoder, lesser = Decoder(draw), Decoder(again, less=3.5 * again.ints(0, 2, WORDS, np.int32))
        one = dict(top_p=1e-6, min_tokens_to_keep=1, custom=seed % 2)
        prompt, longest, least = ("x", draw.ints(2, WORDS, (2, 3), np.int32)), number("l", 9), number("n", 8)
        yield Search(f"plain {seed}", "Sampling", [prompt, longest], decoder, temperature=(1.0, 0.5)[seed // 2], **one)
        plain = Search("", "Sampling", [prompt, longest, least], lesser, **one)
        mask = "m", np.stack([present] * 2)
        yield Search(f"presence {seed}", "Sampling", [prompt, longest, least, None, None, None, None, mask, number("s", 7)], decoder,
                     presence_penalty=3.5, expected=plain.run(plain.model, plain.feeds), defined=plain.defined, **one)


def beams():
    draw = Draw(1)
    for seed in range(6):
        decoder = Decoder(draw, layers=1 + seed % 2, words=WORDS if seed % 3 else 6)
        prompt = draw.ints(2, decoder.words, (1 + seed % 3, 3), np.int32)
        masks = ("v", draw.ints(0, 4, decoder.words, np.int32)), ("w", draw.ints(0, 3, (len(prompt), decoder.words), np.int32))
        prompt[:1, :seed % 3] = PAD
        longest, penalty = number("l", 10), number("p", 1.6, np.float32)
        for n, kept in (1, 1), (3, 2), (4, 4):
            counts = number("n" if seed % 2 else "n!", n), number("k" if seed % 2 else "k!", kept)
            make = lambda label, *operands, **more: Search(
                f"{label}, {kept} of {n}, {seed}", "BeamSearch", [("x", prompt), longest, operands[0], *counts, *operands[1:]], decoder,
                results=("y", "z"), dims={"x": ["b", "s"]} if seed % 4 == 3 else None, **more)
            none, one = number("m", 0), number("q", 1, np.float32)  # ONNX Runtime requires them
            yield make("plain", none, one)
            yield make("power", none, number("q", (0.5, 2, 0, -1)[seed % 4], np.float32))
            yield make("early", none, one, early_stopping=1)
            yield make("all", number("m", 7), one, penalty, *masks, no_repeat_ngram_size=(0, 2, 3, 4)[seed % 4], early_stopping=seed % 2)


def cases():
    yield from greedy()
    yield from samples()
    yield from beams()
