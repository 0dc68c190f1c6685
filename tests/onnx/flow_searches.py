# SPDX-License-Identifier: Apache-2.0
"""Searches of com.microsoft, for write_flow.py. The tokens before choose a row of a table: their sum and that of the encoder,
modulo the rows. The row has the scores of the next words. So numpy finds the sequences without a neural network."""
import numpy as np

HEAD = '<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]>\n'
WORDS, ROWS, PAD, END, START = 5, 7, 0, 1, 2
TABLE = np.stack([np.random.default_rng(row).permutation(25)[:WORDS] / 4 - 3 for row in range(ROWS)]).astype(np.float32)  # no ties
TABLE[:, PAD], TABLE[:, END] = -40, TABLE[:, END] - 1
# The scores of the tokens that are summed in "sums", i64[r] or i64[r, n]
CHOOSE = f"""table = Constant <value = float[{ROWS},{WORDS}] {{{", ".join(f"{x:g}" for x in TABLE.ravel())}}}> ()
             rows = Constant <value = int64 {{{ROWS}}}> ()
             row = Mod (sums, rows)"""
DECODE = """one = Constant <value = int64[1] {1}> ()
             t2 = Cast <to = 1> (input_ids)
             t3 = Unsqueeze (t2, one)
             three = Constant <value = int64[1] {3}> ()
             t = Unsqueeze (t3, three)
             all = Constant <value = int64[3] {1,2,3}> ()
             present_key_self_0 = Concat <axis = 2> (past_key_self_0, t)
             present_value_self_0 = Neg (present_key_self_0)
             own = ReduceSum <keepdims = 0> (present_key_self_0, all)
             other = ReduceSum <keepdims = 0> (past_key_cross_0, all)
             sum = Add (own, other)
             sums = Cast <to = 7> (sum)"""
PAIR = """decoder = d (int32[r,1] input_ids, MASK float[r,1,p,1] past_key_self_0, float[r,1,p,1] past_value_self_0,
                        float[r,1,s,1] past_key_cross_0, float[r,1,s,1] past_value_cross_0)
             => (float[r,1,5] logits, float[r,1,q,1] present_key_self_0, float[r,1,q,1] present_value_self_0) {
             DECODE
             CHOOSE
             scores = Gather (table, row)
             logits = Unsqueeze (scores, one) }"""


def log_softmax(row):
    row = row.astype(np.float64)
    return row - np.log(np.exp(row).sum())


def search(first, prompt, longest, beams, kept, power=1.0, least=0, early=False):
    """The best sequences of one sample, their scores, and those of all words in all steps. @first: the sum of the encoder."""
    going, ended, steps = [(0.0, list(prompt))], [], []
    while len(going[0][1]) < longest:
        scores = np.full((beams, WORDS), -1e9)
        for i, (total, tokens) in enumerate(going):
            scores[i] = total + log_softmax(TABLE[(sum(tokens) + first) % ROWS])
            scores[i, END] = -np.inf if len(tokens) < least else scores[i, END]
        if len(going) < beams:  # the first step: all beams are the same
            scores[1:] = -1e9 + scores[0]
        steps.append(scores)
        order = sorted(range(scores.size), key=lambda at: -scores.flat[at])[:2 * beams]
        before, length, going = going * (beams if len(going) < beams else 1), len(going[0][1]), []
        for rank, at in enumerate(order):
            tokens, word = before[at // WORDS][1], at % WORDS
            if word != END:
                going.append((scores.flat[at], tokens + [word]))
            elif rank < beams:
                ended = sorted(ended + [(scores.flat[at] / length ** power, tokens)], reverse=True)[:beams]
            if len(going) == beams:
                break
        if len(ended) == beams and (early or ended[-1][0] >= scores.flat[order[0]] / length ** power):
            break
    else:
        ended = sorted(ended + [(total / longest ** power, tokens) for total, tokens in going], reverse=True)[:beams]
    best = ended[:kept]
    return ([tokens + [PAD] * (longest - len(tokens)) for _, tokens in best], [score for score, _ in best], steps)


def stacked(samples, longest):
    """The results of all samples. Scores are zeros in steps that a sample does not take, of @longest."""
    y, z, steps = zip(*samples)
    u = np.zeros((longest, len(y), *steps[0][0].shape), np.float32)
    for sample, each in enumerate(steps):
        u[:len(each), sample] = np.maximum(each, np.finfo(np.float32).min)
    return np.array(y, np.int32), np.array(z, np.float32), u


def i32(*values):
    return np.array(values, np.int32)


def f32(*values):
    return np.array(values, np.float32)


def texts(x, m, q):
    """g (int32[b,s] x, int32[1] m, float[1] q) => (int32[b,c,t] y, float[b,c] z) {
         l = Constant <value = int32[1] {8}> ()
         n = Constant <value = int32[1] {3}> ()
         k = Constant <value = int32[1] {2}> ()
         y, z = com.microsoft.BeamSearch <model_type = 1, eos_token_id = 1, pad_token_id = 0, decoder_start_token_id = 2,
           encoder = e (int32[b,s] encoder_input_ids, int32[b,s] encoder_attention_mask, int32[b,1] decoder_input_ids)
             => (float[b,1,5] logits, float[b,s,1] encoder_hidden_states, float[b,1,1,1] present_key_self_0,
                 float[b,1,1,1] present_value_self_0, float[b,1,s,1] present_key_cross_0, float[b,1,s,1] present_value_cross_0) {
             masked = Mul (encoder_input_ids, encoder_attention_mask)
             states = Cast <to = 1> (masked)
             two = Constant <value = int64[1] {2}> ()
             encoder_hidden_states = Unsqueeze (states, two)
             ends = Constant <value = int64[2] {1,3}> ()
             present_key_cross_0 = Unsqueeze (states, ends)
             present_value_cross_0 = Neg (present_key_cross_0)
             x0 = Cast <to = 1> (decoder_input_ids)
             present_key_self_0 = Unsqueeze (x0, ends)
             present_value_self_0 = Neg (present_key_self_0)
             one = Constant <value = int64[1] {1}> ()
             other = ReduceSum (states, one)
             both = Add (x0, other)
             sums = Cast <to = 7> (both)
             CHOOSE
             logits = Gather (table, row) },
           PAIR> (x, l, m, n, k, q)
       }"""
    samples = []
    for row in x:
        padding = int(np.argmax(row != PAD)) if row.any() else len(row)
        samples.append(search(int(row[padding:].sum()), [START], 8, 3, 2, float(q[0]), m[0]))
    return stacked(samples, 7)[:2]


def apart(x, q):
    """g (int32[b,s] x, float[1] q) => (int32[b,c,t] y, float[b,c] z, float[v,b,w,5] u) {
         l = Constant <value = int32[1] {6}> ()
         n = Constant <value = int32[1] {3}> ()
         k = Constant <value = int32[1] {3}> ()
         y, z, u = com.microsoft.BeamSearch <model_type = 1, eos_token_id = 1, pad_token_id = 0, decoder_start_token_id = 2,
           encoder = e (int32[b,s] encoder_input_ids, int32[b,s] encoder_attention_mask)
             => (float[b,1,s,1] present_key_cross_0, float[b,1,s,1] present_value_cross_0) {
             masked = Mul (encoder_input_ids, encoder_attention_mask)
             states = Cast <to = 1> (masked)
             ends = Constant <value = int64[2] {1,3}> ()
             present_key_cross_0 = Unsqueeze (states, ends)
             present_value_cross_0 = Neg (present_key_cross_0) },
           PAIR> (x, l, l, n, k, q)
       }"""
    return stacked([search(int(row.sum()), [START], 6, 3, 3, float(q[0]), 6) for row in x], 5)


def ends(x, q):
    return stacked([search(int(row.sum()), [START], 6, 3, 3, float(q[0]), early=True) for row in x], 5)


ends.__doc__ = apart.__doc__.replace("(x, l, l, n", "(x, l, , n").replace("<model", "<early_stopping = 1, model")


def speech(x, m, q, d):
    """g (float[b,2,s] x, int32[1] m, float[1] q, int32[b,i] d) => (int32[b,c,t] y, float[b,c] z) {
         l = Constant <value = int32[1] {9}> ()
         n = Constant <value = int32[1] {3}> ()
         k = Constant <value = int32[1] {3}> ()
         y, z = com.microsoft.WhisperBeamSearch <eos_token_id = 1, pad_token_id = 0, early_stopping = 1,
           encoder = e (float[b,2,s] encoder_input_ids, int32[b,i] decoder_input_ids)
             => (float[b,i,5] logits, float[b,s,1] encoder_hidden_states, float[b,1,i,1] present_key_self_0,
                 float[b,1,i,1] present_value_self_0, float[b,1,s,1] present_key_cross_0, float[b,1,s,1] present_value_cross_0) {
             one = Constant <value = int64[1] {1}> ()
             states = ReduceSum <keepdims = 0> (encoder_input_ids, one)
             two = Constant <value = int64[1] {2}> ()
             encoder_hidden_states = Unsqueeze (states, two)
             ends = Constant <value = int64[2] {1,3}> ()
             present_key_cross_0 = Unsqueeze (states, ends)
             present_value_cross_0 = Neg (present_key_cross_0)
             x0 = Cast <to = 1> (decoder_input_ids)
             present_key_self_0 = Unsqueeze (x0, ends)
             present_value_self_0 = Neg (present_key_self_0)
             other = ReduceSum (states, one)
             axis = Constant <value = int64 {1}> ()
             own = CumSum (x0, axis)
             both = Add (own, other)
             sums = Cast <to = 7> (both)
             CHOOSE
             logits = Gather (table, row) },
           PAIR> (x, l, m, n, k, q, , , , , d)
       }"""
    return stacked([search(int(each.sum()), list(ids), 9, 3, 3, float(q[0]), m[0], True) for each, ids in zip(x, d.tolist())], 7)[:2]


def texts_of(function):
    mask = "" if function is speech else "int32[r,s] encoder_attention_mask,"
    return (function.__doc__.replace("PAIR", PAIR.replace("MASK", mask)).replace("DECODE", DECODE).replace("CHOOSE", CHOOSE))


SOUND = np.array([[[1, 0, 2], [0, 3, 1]], [[0, 4, 0], [1, 1, 0]]], np.float32)
# name: function, sets
NOT_DEFINED = {"search_ends"}  # onnxruntime leaves scores undefined
CASES = {
    "search_texts": (texts, (i32([0, 3, 4], [2, 3, 3]), i32(0), f32(1)), (i32([4, 0, 2, 0], [0, 0, 2, 4], [3, 3, 3, 3]), i32(4), f32(0.5)),
                     (i32([0, 0]), i32(8), f32(2))),
    "search_scores": (apart, (i32([3, 4], [2, 3]), f32(1)), (i32([4, 4, 4]), f32(0))),
    "search_ends": (ends, (i32([3, 4], [4, 5], [3, 3]), f32(1)), (i32([4, 4, 3]), f32(3))),
    "search_speech": (speech, (SOUND, i32(0), f32(0), i32([2, 3], [4, 2])), (SOUND[:1], i32(3), f32(1), i32([2]))),
}
