/* SPDX-License-Identifier: Apache-2.0 */
/* GreedySearch of com.microsoft: the word of the greatest score comes next. Other searches that
 * pick one word in each step run likewise.
 *
 *     scores = first decoder(prompt)
 *     tokens = prompt, word
 *     loop (max_length - length - 1 times, while some row has not ended) {
 *         scores = decoder(last token, past)
 *         tokens = tokens, word }
 *
 * A row ends with the id of the end, in place of which it gets the id of padding, as behind it. */
#include "graph/graph.h"
#include "graph/node.h"
#include "graph/onnx/convert.h"
#include "graph/onnx/flow/loops.h"
#include "graph/onnx/search/search.h"
#include "graph/onnx/steps.h"

enum {
    TOKENS,
    DONE,
    PAST /* the first of them */
};

/* Puts the word that is picked by @scores behind the tokens of @state. @done: the rows that have
 * ended, bool[rows, 1]; NULL: none. Returns those that have ended then. */
static KilnValue *
add_word(const KilnOnnxSearch *search, const KilnOnnxSteps *s, KilnValue *scores, KilnValue *done,
         KilnOnnxSearchState *state)
{
    KilnValue *word = search->pick(search, s, scores);
    KilnValue *ends = kiln_onnx_step_equal_number(s, word, (double)search->eos);
    if (done)
        ends = kiln_onnx_step_either(s, done, ends);
    KilnValue *pad = kiln_onnx_scalar(s->call, "pad", KILN_DTYPE_i32, (double)search->pad);
    word = kiln_onnx_step_where(s, ends, pad, word);
    state->tokens = kiln_onnx_step_concat(s, state->tokens, word, 1);
    return ends;
}

/* What the loop carries; @types are those of the body. */
static void
carry(const KilnOnnxSearch *search, const KilnOnnxSearchState *state, KilnValue *done,
      KilnValue **carried)
{
    carried[TOKENS] = state->tokens;
    carried[DONE] = done;
    for (uint32_t i = 0; i < search->n_past; i++)
        carried[PAST + i] = state->past[i];
}

/* The body of the loop. */
static KilnValue *
search_on(const KilnOnnxSearch *search, const KilnOnnxLoop *loop, KilnValue **next, GError **error)
{
    KilnOnnxCall call = loop->call;
    const KilnOnnxSteps s = { &call, error };
    KilnOnnxSearchState state = { 0 };
    const KilnOnnxSearchState before = { .tokens = loop->inside[TOKENS],
                                         .past = loop->inside + PAST };
    KilnValue *scores = kiln_onnx_search_step(search, &s, &before, &state);
    state.tokens = before.tokens;
    scores = scores ? kiln_onnx_search_adjust(search, &s, scores, state.tokens, NULL) : NULL;
    if (!scores)
        return NULL;
    KilnValue *done = add_word(search, &s, scores, loop->inside[DONE], &state);
    carry(search, &state, done, next);
    return kiln_onnx_search_goes_on(&s, done);
}

gboolean
kiln_onnx_search_words(KilnOnnxSearch *search, GError **error)
{
    const KilnOnnxSteps s = { search->call, error };
    KilnOnnxSearchState state = { 0 };
    KilnValue *scores = kiln_onnx_search_begin(search, &s, &state);
    if (scores)
        scores = kiln_onnx_search_adjust(search, &s, scores, state.tokens, search->prefix_mask);
    if (!scores)
        return FALSE;
    KilnValue *done = add_word(search, &s, scores, NULL, &state);
    const uint32_t n = PAST + search->n_past;
    g_autofree KilnValue **start = g_new0(KilnValue *, n);
    g_autofree KilnValue **next = g_new0(KilnValue *, n);
    g_autofree KilnType *types = g_new0(KilnType, n);
    carry(search, &state, done, start);
    for (uint32_t i = 0; i < n; i++) {
        if (!start[i])
            return FALSE;
        types[i] =
            kiln_onnx_loop_type(start[i], i >= PAST     ? kiln_onnx_search_growing(search, i - PAST)
                                          : i == TOKENS ? 1
                                                        : -1);
    }
    KilnOnnxLoop loop = { .trips = kiln_onnx_search_trips(search, &s),
                          .condition = kiln_onnx_search_goes_on(&s, done),
                          .start = start,
                          .types = types,
                          .n = n };
    if (!loop.trips || !loop.condition || !kiln_onnx_loop_begin(&loop, search->call, error))
        return FALSE;
    KilnValue *again = search_on(search, &loop, next, error);
    KilnValue *results = again ? kiln_onnx_loop_end(&loop, again, next, error) : NULL;
    return kiln_onnx_set_result(
        search->call, 0, results ? kiln_onnx_search_padded(search, &s, &results[TOKENS]) : NULL);
}

static KilnValue *
best_word(const KilnOnnxSearch *search, const KilnOnnxSteps *s, KilnValue *scores)
{
    (void)search;
    return kiln_onnx_step_cast(s, kiln_onnx_step_arg_max(s, scores, 1), KILN_DTYPE_i32);
}

/* (prompt, greatest length, least length, penalty, masks of words, of first words, of the prompt)
 */
gboolean
kiln_onnx_convert_greedy_search(KilnOnnxCall *call, GError **error)
{
    static const KilnOnnxSearchOperands at = { 2, 3, 4, 5, 6 };
    KilnOnnxSearch search = { .pick = best_word };
    return kiln_onnx_search_read(&search, call, &at, 1U << KILN_ONNX_SEARCH_DECODER, error) &&
           kiln_onnx_search_words(&search, error);
}
