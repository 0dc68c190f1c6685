# SPDX-License-Identifier: Apache-2.0
"""Beam searches of com.microsoft with an encoder and a decoder, for check_contrib.py: small ones with attention to the tokens
and to the encoder, in the forms in which ONNX Runtime's convert_generation.py and whisper_chain.py write them."""
import numpy as np
from contrib_case import Draw
from contrib_search import HEADS, INT32, LONGEST, PAD, SIZE, WORDS, Nodes, Search, number
from onnx import TensorProto, helper

HIDDEN, FEATURES = HEADS * SIZE, 5
KINDS = {"f4": TensorProto.FLOAT, "f2": TensorProto.FLOAT16}


class Half(Nodes):
    """The encoder or the decoder of @pair. Both hold the weights of the decoder, and compute in @dtype. Their inputs and results
    are of @outside."""

    def __init__(self, pair, dtype="f4", outside=None):
        super().__init__()
        self.pair, self.dtype, self.kind, self.outside = pair, np.dtype(dtype), KINDS[dtype], KINDS[outside or dtype]
        self.inputs, self.outputs = [], []
        self.zero, self.one = self.weight("zero", np.int64(0)), self.weight("one", np.int64(1))

    def given(self, name, *dims, kind=None):
        self.inputs.append(helper.make_tensor_value_info(name, kind or self.outside, dims))
        return name if kind or self.outside == self.kind else self.add("Cast", name, to=self.kind)

    def gives(self, name, value, *dims):
        self.outputs.append(helper.make_tensor_value_info(name, self.outside, dims))
        self.nodes.append(helper.make_node("Cast", [value], [name], to=self.outside))

    def number(self, array):
        return self.weight("w", np.asarray(array).astype(self.dtype))

    def heads(self, x, weight):
        """[rows, heads, n, size]"""
        x = self.add("MatMul", x, self.number(weight))
        return self.add("Transpose", self.add("Reshape", x, self.ints(0, 0, HEADS, SIZE)), perm=[0, 2, 1, 3])

    def attend(self, x, queries, keys, values, bias, out):
        scores = self.add("MatMul", self.heads(x, queries), self.add("Transpose", keys, perm=[0, 1, 3, 2]))
        scores = self.add("Mul", scores, self.number(0.5))
        scores = self.add("Softmax", self.add("Add", scores, bias) if bias else scores, axis=-1)
        y = self.add("Transpose", self.add("MatMul", scores, values), perm=[0, 2, 1, 3])
        return self.add("Add", x, self.add("MatMul", self.add("Reshape", y, self.ints(0, 0, HIDDEN)), self.number(out)))

    def masked(self, mask):
        """[rows, 1, 1, length]"""
        mask = self.add("Unsqueeze", self.add("Cast", mask, to=TensorProto.BOOL), self.ints(1, 2))
        return self.add("Where", mask, self.number(0), self.number(-1e4))

    def decode(self, ids, past, cross, mask):
        """The logits of @ids, and the keys and values of each layer; @past: those of the tokens before, or nothing."""
        pair, n = self.pair, self.extent(ids, 1)
        before = self.extent(past[0], 2) if past else self.zero
        every = self.add("Add", before, n)
        at = self.add("Range", before, every, self.one)
        x = self.add("Add", self.add("Gather", self.number(pair.table), ids), self.add("Gather", self.number(pair.places), at))
        seen = self.add("LessOrEqual", self.add("Range", self.zero, every, self.one), self.add("Unsqueeze", at, self.ints(1)))
        bias, present = self.add("Where", seen, self.number(0), self.number(-1e4)), []
        for layer, (weights, more) in enumerate(zip(pair.own, pair.cross)):
            for i in range(2):
                new = self.heads(x, weights[1 + i])
                present.append(self.add("Concat", past[2 * layer + i], new, axis=2) if past else new)
            x = self.attend(x, weights[0], *present[-2:], bias, weights[3])
            x = self.attend(x, more[0], *cross[2 * layer:2 * layer + 2], mask, more[3])
        logits = self.add("MatMul", x, self.number(pair.table.T))
        logits = self.add("Add", logits, self.number(np.where(np.arange(pair.words) == PAD, pair.never, 0)))
        return self.add("Slice", logits, self.ints(0), self.ints(pair.logits), self.ints(2)), present

    def results(self, logits, present, rows, length):
        self.gives("logits", logits, rows, length, self.pair.logits)
        return [(f"present_{what}_self_{layer}", present[2 * layer + i], rows, HEADS, "all", SIZE)
                for layer in range(self.pair.layers) for i, what in enumerate(("key", "value"))]

    def graph(self, name):
        return helper.make_graph(self.nodes, name, self.inputs, self.outputs, self.weights)


class Pair:
    """An encoder and a decoder.

    - speech: the encoder has numbers as input, and no mask, as that of Whisper.
    - hidden: the decoder has the results of the encoder as input. ONNX Runtime gives it their shape only.
    - again: the decoder has the tokens of the encoder as input.
    - whole: the decoder has all tokens as input.
    - apart: the encoder computes keys and values for the decoder, and runs no decoder.
    - small: all numbers are small, so that those of f16 round little.
    - cut: how many words have logits; all, where it is left out."""

    def __init__(self, draw, layers=1, words=WORDS, speech=False, hidden=False, again=False, whole=False, apart=False, small=False, cut=None):
        size, self.never = (0.4, -60) if small else (1, -1e4)
        self.logits = cut or words
        self.layers, self.words, self.speech, self.hidden, self.again = layers, words, speech, hidden, again
        self.whole, self.apart = whole, apart
        self.table, self.places = size * draw.floats(words, HIDDEN), size * draw.floats(LONGEST, HIDDEN)
        self.own, self.cross = ([[0.5 * size * draw.floats(HIDDEN, HIDDEN) for _ in range(4)] for _ in range(layers)] for _ in range(2))
        self.encoding = draw.floats(FEATURES if speech else words, HIDDEN)

    def encoder(self, *kinds):
        half, mask, n = Half(self, *kinds), None, "n" if self.speech else 1
        if self.speech:
            x = half.add("Transpose", half.given("encoder_input_ids", "b", FEATURES, "s"), perm=[0, 2, 1])
            states = half.add("MatMul", x, half.number(self.encoding))
        else:
            states = half.add("Gather", half.number(self.encoding), half.given("encoder_input_ids", "b", "s", kind=INT32))
            mask = half.masked(half.given("encoder_attention_mask", "b", "s", kind=INT32))
        cross = [half.heads(states, weights[1 + i]) for weights in self.cross for i in range(2)]
        own = []
        if not self.apart:
            ids = half.given("decoder_input_ids", "b", n, kind=INT32)
            own = half.results(*half.decode(ids, [], cross, mask), "b", n)
            half.gives("encoder_hidden_states", states, "b", "s", HIDDEN)
        names = [f"present_{what}_cross_{layer}" for layer in range(self.layers) for what in ("key", "value")]
        for result in own + [(name, value, "b", HEADS, "s", SIZE) for name, value in zip(names, cross)]:
            half.gives(*result)
        return half.graph("encoder")

    def decoder(self, *kinds):
        half, mask = Half(self, *kinds), None
        ids = half.given("input_ids", "r", "n" if self.whole else 1, kind=INT32)
        again = half.given("encoder_input_ids", "r", "s", kind=INT32) if self.again else None
        if not self.speech:
            mask = half.masked(half.given("encoder_attention_mask", "r", "s", kind=INT32))
        if again:
            odd = half.add("Mod", half.add("Unsqueeze", again, half.ints(1, 2)), half.weight("two", np.int32(2)))
            mask = half.add("Add", mask, half.add("Cast", odd, to=half.kind))
        if self.hidden:
            length = half.extent(half.given("encoder_hidden_states", "r", "s", HIDDEN), 1)
            some = half.add("Expand", half.number(0), half.add("Reshape", length, half.ints(1)))
            mask = half.add("Add", mask, some) if mask else some
        past = [[half.given(f"past_{what}_{which}_{layer}", "r", HEADS, length, SIZE) for layer in range(self.layers)
                 for what in ("key", "value")] for which, length in (("self", "p"), ("cross", "s"))]
        if self.whole:
            ids = half.add("Slice", ids, half.ints(-1), half.ints(LONGEST), half.ints(1))
        for result in half.results(*half.decode(ids, *past, mask), "r", 1):
            half.gives(*result)
        return half.graph("decoder")


def search(label, pair, x, *operands, operator=None, results=("y", "z", "u"), kinds=(), **more):
    """A search of texts or of speech. @operands: those behind @x."""
    operator = operator or ("WhisperBeamSearch" if pair.speech else "BeamSearch")
    ids = [operand[1].shape[1] for operand in operands if operand and operand[0] == "d" and pair.speech]
    more = {"decoder_start_token_id": 2, "model_type": 2 if pair.speech else 1, **more}
    return Search(label, operator, [("x", x), *operands], pair.decoder(*kinds), results=results, encoder=pair.encoder(*kinds),
                  length=ids[0] if ids else 1, **more)


def floats(name, value, dtype=np.float32):
    return number(name, value, dtype)


FORMS = ({}, {"hidden": True}, {"again": True, "hidden": True}, {"again": True}, {"whole": True}, {"apart": True}, {"speech": True}, {"speech": True, "hidden": True},
         {"speech": True, "whole": True})


def sources(draw, pair, batch, length=4):
    return draw.floats(batch, FEATURES, length) if pair.speech else draw.ints(0, pair.words, (batch, length), np.int32)


def forms():
    """The forms of the graphs, each with all that any search has."""
    for seed, form in ((seed, form) for seed in range(3) for form in FORMS):
        draw = Draw(seed)
        pair = Pair(draw, layers=1 + seed % 2, words=WORDS if seed else 6, **form)
        text = " ".join([str(seed), *form])
        x = sources(draw, pair, 1 + (seed + 1) % 3)
        masks = ("v", draw.ints(0, 4, pair.words, np.int32)), ("w", draw.ints(0, 3, (len(x), pair.words), np.int32))
        mask = None if pair.speech or seed % 2 else ("a", draw.ints(0, 2, x.shape, np.int32) | (np.arange(4) == 1))
        n, kept = ((1, 1), (3, 2), (4, 4))[(seed + FORMS.index(form)) % 3]
        counts = number("n" if seed % 2 else "n!", n), number("k" if seed % 2 else "k!", kept)
        make = lambda label, *operands, **more: search(
            f"{label}, {kept} of {n}, {text}", pair, x, number("l", 9), operands[0], *counts, *operands[1:],
            dims={"x": ["b", 5, "s"] if pair.speech else ["b", "s"]} if seed == 2 else None, **more)
        none, one = number("m", 0), floats("q", 1)
        yield make("plain", none, one)
        yield make("power", none, floats("q", (0.5, 2, -1)[seed]), early_stopping=1)
        yield make("all", number("m", 6), one, floats("p", 1.6), *masks, mask, no_repeat_ngram_size=1 + seed, early_stopping=seed % 2)


def lengths():
    """The greatest length: one more than the prompt, and longer ones. ONNX Runtime runs a decoder without tokens for the first
    of these, unless the encoder decodes none. The other forms have its results."""
    for form in FORMS:
        pair, apart = (Pair(Draw(5), words=7, **each) for each in (form, {"apart": True}))
        x = sources(Draw(6), pair, 2)
        rest = [number("m", 0), number("n", 3), number("k", 2), floats("q", 1)]
        for longest in 3, 20:
            yield search(f"length {longest} {' '.join(form)}", pair, x, number("l", longest), *rest)
        if not pair.speech:
            plain = search("", apart, x, number("l", 2), *rest)
            yield search(f"length 2 {' '.join(form)}", pair, x, number("l", 2), *rest, expected=plain.run(plain.model, plain.feeds))


def speech():
    """What Whisper's search has beside the others."""
    for seed in range(6):
        draw = Draw(seed)
        pair = Pair(draw, layers=1 + seed % 2, words=WORDS, speech=True, hidden=seed % 3 == 0)
        x = sources(draw, pair, 1 + seed % 2)
        ids = "d", draw.ints(2, WORDS, (len(x), 1 + seed % 3), np.int32)
        base = [number("l", 11), number("m", 0), number("n", 3), number("k", 2), floats("q", 1)]
        empty = [None] * 4
        yield search(f"first tokens {seed}", pair, x, *base, *empty, ids)
        yield search(f"first tokens alone {seed}", pair, x, *base, *empty, ids, decoder_start_token_id=-1)
        yield search(f"of all models {seed}", pair, x, *base, *empty, ids, operator="BeamSearch", early_stopping=1)
        for value in (2.5, 0.5, 0.0)[seed % 3:][:1]:
            yield search(f"temperature {seed}", pair, x, *base, *empty, ids, None, None, None, floats("t", value))
        yield from timestamps(seed, pair, x, base[1:], empty, ids)
        plain = search("", pair, x, *base)
        scores = plain.run(plain.model, plain.feeds)
        no_speech = np.exp(scores[2][0, :, 0, 3].astype(np.float64)).astype(np.float32)
        yield search(f"no speech {seed}", pair, x, *base, results=("y", "z", "u", "", "o"), no_speech_token_id=3,
                     expected=[*scores, no_speech], defined=plain.defined)


def many_words():
    """Timestamps that are too far behind the first one."""
    for seed in range(3):
        draw = Draw(seed)
        pair = Pair(draw, words=70, speech=True, small=True)
        yield search(f"timestamps among many words {seed}", pair, sources(draw, pair, 2), number("l", 12), number("m", 0), number("n", 3),
                     number("k", 2), floats("q", 1), None, None, None, None, None, number("g", 1), beginning_timestamp_token_id=4)


def timestamps(seed, pair, x, rest, empty, ids):
    words = dict(translate_token_id=3, transcribe_token_id=4, start_of_lm_token_id=5, no_timestamps_token_id=6)
    for first in (7, 4) if seed % 2 else (8, 2, 1):
        for kind, name in ((1, "g"), (1, "g!"), (2, "g"))[:3 if seed == first else 1]:
            yield search(f"timestamps from {first}, {kind} {name} {seed}", pair, x, number("l", 20), *rest, *empty, ids, number(name, kind),
                         beginning_timestamp_token_id=first, **(words if seed % 3 else {}))


def halves():
    """Graphs in f16, which ONNX Runtime does not run on processors. It runs those that compute in f16 with inputs and results in
    f32. Scores have the type of the power."""
    for seed, form in enumerate(FORMS):
        draw = Draw(30 + seed)
        pair = Pair(draw, layers=1 + seed % 2, small=True, **form)
        x = sources(draw, pair, 2)
        rest = [number("l", 8), number("m", 0), number("n", 3), number("k", 2), floats("q", 1)]
        plain = search("", pair, x, *rest, kinds=("f2", "f4"))
        expected, kind = plain.run(plain.model, plain.feeds), np.float16 if seed % 2 else np.float32
        rest[-1] = floats("q", 1, kind)
        with np.errstate(over="ignore"):  # -1e9 is infinite in f16
            expected[1:] = (each.astype(kind) for each in expected[1:])
        yield search(f"f16 {' '.join(form)}", pair, x.astype(np.float16) if pair.speech else x, *rest, kinds=("f2",), half=seed % 2,
                     rtol=5e-3, atol=2e-2, expected=expected, defined=plain.defined)


def narrow():
    """vocab_size below the number of logits, as contrib_search.narrow() has it."""
    words = WORDS - 4
    for seed, form in enumerate(FORMS):
        cut, whole = (Pair(Draw(seed), cut=cut, **form) for cut in (words, None))
        draw = Draw(seed + 20)
        x = sources(draw, cut, 2)
        rest = [number("l", 8), number("m", 0), number("n", 3), number("k", 2), floats("q", 1), None, ("v", draw.ints(0, 4, words, np.int32))]
        plain = search("", cut, x, *rest)
        expected = plain.run(plain.model, plain.feeds)
        yield search(f"narrow {' '.join(form)}", whole, x, *rest, vocab_size=words, expected=expected, defined=plain.defined)


def cases():
    yield from forms()
    yield from narrow()
    yield from halves()
    yield from lengths()
    yield from speech()
    yield from many_words()
