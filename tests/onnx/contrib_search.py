# SPDX-License-Identifier: Apache-2.0
"""Searches of com.microsoft, for check_contrib.py: small decoders with attention, whose scores depend on positions, masks
and all tokens before."""
import numpy as np
import onnx
from contrib_case import DOMAINS, Case, Draw
from onnx import TensorProto, helper, numpy_helper

FLOAT, HALF, INT32 = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.INT32
HEADS, SIZE, WORDS, LONGEST = 2, 4, 11, 40
PAD, END = 0, 1
BATCH = "xwad"  # operands with a row for each sample


class Nodes:
    """Nodes and weights of a graph."""

    def __init__(self):
        self.nodes, self.weights = [], []

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


class Decoder(Nodes):
    """(input_ids, position_ids, attention_mask, past_0, …) to (logits, present_0, …). @cut: how many words have logits.
    @size: of the weights. Logits grow with it, and scores round as logits do."""

    def __init__(self, draw, layers=1, words=WORDS, less=0, cut=None, size=1):
        super().__init__()
        self.layers, self.words, self.draw, self.size, hidden = layers, words, draw, np.float32(size), HEADS * SIZE
        table = self.weight("table", self.size * draw.floats(words, hidden))
        x = self.add("Add", self.add("Gather", table, "input_ids"), self.add("Gather", self.weight("places", self.size * draw.floats(LONGEST, hidden)), "position_ids"))
        bias = self.bias()
        for layer in range(layers):
            x = self.attend(x, bias, layer, hidden)
        logits = self.add("MatMul", x, self.add("Transpose", table, perm=[1, 0]))
        never = (np.where(np.arange(words) == PAD, -1e4, 0) - less).astype(np.float32)
        logits, self.words = self.add("Add", logits, self.weight("never", never)), cut or words
        cut = (self.ints(0), self.ints(self.words), self.ints(2))
        self.nodes.append(helper.make_node("Slice", [logits, *cut], ["logits"]))

    def bias(self):
        """[rows, 1, tokens, all tokens]: a great negative number for tokens that are masked, and those that come later."""
        zero, one = self.weight("zero", np.int64(0)), self.weight("one", np.int64(1))
        n, every = self.extent("input_ids", 1), self.extent("attention_mask", 1)
        at = self.add("Add", self.add("Range", zero, n, one), self.add("Sub", every, n))
        seen = self.add("LessOrEqual", self.add("Range", zero, every, one), self.add("Unsqueeze", at, self.ints(1)))
        mask = self.add("Unsqueeze", self.add("Cast", "attention_mask", to=TensorProto.BOOL), self.ints(1, 2))
        return self.add("Where", self.add("And", mask, seen), self.weight("no", np.float32(0)), self.weight("far", np.float32(-1e4)))

    def attend(self, x, bias, layer, hidden):
        product = self.add("MatMul", x, self.weight("in", self.size * self.draw.floats(hidden, 3 * hidden)))
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
        return self.add("Add", x, self.add("MatMul", y, self.weight("out", self.size * self.draw.floats(hidden, hidden))))

    def graph(self, name="decoder"):
        inputs = [helper.make_tensor_value_info(one, INT32, ["rows", length]) for one, length in
                  (("input_ids", "n"), ("position_ids", "n"), ("attention_mask", "all"))]
        past = lambda what, length: [helper.make_tensor_value_info(f"{what}_{i}", FLOAT, [2, "rows", HEADS, length, SIZE])
                                     for i in range(self.layers)]
        logits = helper.make_tensor_value_info("logits", FLOAT, ["rows", "n", self.words])
        return helper.make_graph(self.nodes, name, inputs + past("past", "before"), [logits, *past("present", "all")], self.weights)


def half_graph(graph, outside):
    """@graph, computed in f16. Its inputs and results are of type @outside."""
    for tensor in graph.initializer:
        if tensor.data_type == FLOAT:
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float16), tensor.name))
    first, last, inside = [], [], [node for node in graph.node]
    for info, casts in [(info, first) for info in graph.input] + [(info, last) for info in graph.output]:
        if info.type.tensor_type.elem_type != FLOAT:
            continue
        info.type.tensor_type.elem_type = outside
        if outside == HALF:
            continue
        other = f"{info.name}_half"
        for names in (names for node in inside for names in (node.input, node.output)):
            names[:] = [other if name == info.name else name for name in names]
        casts.append(helper.make_node("Cast", [info.name if casts is first else other], [other if casts is first else info.name],
                                      to=HALF if casts is first else FLOAT))
    nodes = [*first, *inside, *last]
    made = onnx.GraphProto()
    made.CopyFrom(graph)
    del made.node[:]
    made.node.extend(nodes)
    return made


class Search(Case):
    """A search with @decoder. @length: the tokens of the prompt of a beam search, if they are not those of operand 0.
    @half: scores that are results are f16."""

    def __init__(self, label, operator, operands, decoder, results=("y",), dims=None, length=None, half=False, **attributes):
        power = [operand[1] for operand in operands[5:6] if operand and operator.endswith("BeamSearch")]
        self.rules = dict(length=length or operands[0][1].shape[1], power=float(power[0][0]) if power else 1,
                          early=attributes.get("early_stopping", 0))
        super().__init__(label, operator, operands, results, types={"y": INT32, **{name: HALF if half else FLOAT for name in results[1:]}}, dims=dims, decoder=decoder.graph() if isinstance(decoder, Decoder) else decoder,
                         pad_token_id=PAD, eos_token_id=END, **attributes)

    def run(self, model, feeds):
        """What ONNX Runtime computes. It leaves undefined what follows where all sequences have ended; the decoder never gives
        PAD. Whether a beam search is over depends on other samples there (of its batch), so each sample is searched alone."""
        node = model.graph.node[0]
        if not node.op_type.endswith("BeamSearch"):
            results, length = Case.run(model, feeds), feeds["x"].shape[1]
            ended = np.all(results[0][:, length:] == PAD, axis=0)
            self.defined[0] = np.arange(results[0].shape[1]) <= length + (np.argmax(ended) if ended.any() else ended.size)
            return results
        alone = onnx.ModelProto()
        alone.CopyFrom(model)
        for info in alone.graph.input:
            for dim in info.type.tensor_type.shape.dim[:1] if info.name in BATCH else ():
                dim.dim_value = 1
        parts = [Case.run(alone, {name: array[i:i + 1] if name in BATCH else array for name, array in feeds.items()})
                 for i in range(len(feeds["x"]))]
        names = [name for name in node.output if name]
        if "u" in names:
            self.specify(names.index("u"), [part[names.index("u")][:, 0] for part in parts])
        return [np.concatenate(part, axis=1 if name == "u" else 0) for name, *part in zip(names, *parts)]

    def specify(self, i, scores):
        """The steps of each sample of which result @i has @scores, [steps, beams, words], before the sample is done."""
        self.defined[i] = np.zeros((len(scores[0]), len(scores), 1, 1), bool)
        for sample, each in enumerate(scores):
            self.defined[i][:steps_of(each, **self.rules), sample] = True


def steps_of(scores, length, power, early):
    """How many steps a sample takes until it is done. @length: the tokens of the prompt."""
    beams, words = scores.shape[1:]
    ended = []
    for step, row in enumerate(scores.reshape(len(scores), -1)):
        best, divisor, going = np.argsort(-row, kind="stable")[:2 * beams], (length + step) ** power, 0
        for rank, at in enumerate(best):
            if at % words != END:
                going += 1
            elif rank < beams:
                ended = sorted([*ended, row[at] / divisor])[-beams:]
            if going == beams:
                break
        if len(ended) == beams and (early or ended[0] >= row[best[0]] / divisor):
            return step + 1
    return len(scores)


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


def narrow():
    """vocab_size, below the number of logits: those of other words do not count. ONNX Runtime's kernels for processors take
    the logits for rows of vocab_size numbers, so a decoder that gives no others has what is expected. All words have one, too."""
    words = WORDS - 3
    kinds = (("GreedySearch", {}), ("Sampling", dict(top_p=1e-6, min_tokens_to_keep=1)), ("BeamSearch", {}))
    for seed, (operator, more) in ((seed, kind) for seed in range(4) for kind in kinds):
        batch, length = ((1, 1), (1, 4), (3, 4), (3, 1))[seed]
        draw = Draw(seed)
        prompt = "x", draw.ints(2, words, (batch, length), np.int32)
        masks = ("v", draw.ints(0, 4, words, np.int32)), ("w", draw.ints(0, 3, (batch, words), np.int32))
        rest = [number("n", 3), number("k", 2), number("q", 1, np.float32)] if operator == "BeamSearch" else []
        results = ("y", "z", "u") if rest else ("y",)
        for label, operands in (("plain", ()), ("masks", (number("p", 1.4, np.float32), *masks))):
            operands = [prompt, number("l", 10), number("m", 6), *rest, *operands]
            cut = Search("", operator, operands, Decoder(Draw(seed), cut=words), results=results, **more)
            expected = cut.run(cut.model, cut.feeds)
            yield Search(f"narrow {label} {seed}", operator, operands, Decoder(Draw(seed)), results=results, vocab_size=words,
                         expected=expected, defined=cut.defined, **more)
        yield Search(f"number of words {seed}", operator, [prompt, number("l", 9), number("m", 0), *rest], Decoder(Draw(seed)),
                     results=results, vocab_size=WORDS, **more)


def halves():
    """Decoders in f16. ONNX Runtime runs those that compute in f16 with inputs and results in f32."""
    for seed, operator in ((seed, operator) for seed in range(3) for operator in ("GreedySearch", "BeamSearch")):
        prompt = "x", Draw(seed).ints(2, WORDS, (2, 3), np.int32)
        rest = [number("m", 0), number("n", 3), number("k", 2), number("q", 1, np.float32)] if operator == "BeamSearch" else []
        results = ("y", "z", "u") if rest else ("y",)
        plain, half = (Search(f"f16 {seed}", operator, [prompt, number("l", 8), *rest], half_graph(
            Decoder(Draw(seed), layers=1 + seed % 2, size=0.4).graph(), outside), results=results, rtol=5e-3, atol=2e-2)
            for outside in (FLOAT, HALF))
        half.expected, half.defined = plain.run(plain.model, plain.feeds), plain.defined
        yield half


def beams():
    draw = Draw(1)
    for seed in range(6):
        decoder = Decoder(draw, layers=1 + seed % 2, words=WORDS if seed % 3 else 6, size=0.5)
        prompt = draw.ints(2, decoder.words, (1 + seed % 3, 3), np.int32)
        masks = ("v", draw.ints(0, 4, decoder.words, np.int32)), ("w", draw.ints(0, 3, (len(prompt), decoder.words), np.int32))
        prompt[:1, :seed % 3] = PAD
        longest, penalty = number("l", 10), number("p", 1.6, np.float32)
        for n, kept in (1, 1), (3, 2), (4, 4):
            counts = number("n" if seed % 2 else "n!", n), number("k" if seed % 2 else "k!", kept)
            make = lambda label, *operands, **more: Search(
                f"{label}, {kept} of {n}, {seed}", "BeamSearch", [("x", prompt), longest, operands[0], *counts, *operands[1:]], decoder,
                results=("y", "z", "u"), dims={"x": ["b", "s"]} if seed % 4 == 3 else None, **more)
            none, one = number("m", 0), number("q", 1, np.float32)  # ONNX Runtime requires them
            yield make("plain", none, one)
            yield make("power", none, number("q", (0.5, 2, 0, -1)[seed % 4], np.float32))
            yield make("early", none, one, early_stopping=1)
            yield make("all", number("m", 7), one, penalty, *masks, no_repeat_ngram_size=1 + seed % 4, early_stopping=seed % 2)
            if n != 3:
                continue
            yield make("words once", none, one, no_repeat_ngram_size=1)
            mask = "a", (prompt > 2).astype(np.int32) | (np.arange(3) == 2)
            yield make("attention", none, one, None, None, None, mask)
            other = Decoder(Draw(seed), layers=decoder.layers, words=decoder.words, size=0.5)
            yield make("other first", none, one, init_decoder=other.graph("first"))
            yield make("unread", none, one, None, None, None, None, ("d", prompt), number("g", 1))


def cases():
    yield from greedy()
    yield from samples()
    yield from narrow()
    yield from halves()
    yield from beams()
