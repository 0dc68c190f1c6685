/* SPDX-License-Identifier: Apache-2.0 */
/* Scores of the next words, and which of them must not come:
 *
 *     penalty        s < 0 ? s * penalty : s / penalty, for words among the tokens
 *     ngram          words that repeat the last n - 1 tokens and the one behind them
 *     masks          words whose flag is 0
 *     min_length     the id of the end, while there are fewer tokens
 *     temperature    s / temperature, if that is positive
 *     timestamps     the rules of timestamps.c
 *
 * They apply in this order. What must not come has the least finite number. */
#include "graph/onnx/search/search.h"

#include "graph/graph.h"
#include "graph/onnx/contrib/contrib.h"

#include <float.h>

static KilnValue *
least(const KilnOnnxSteps *s)
{
    return kiln_onnx_scalar(s->call, "least", KILN_DTYPE_f32, (double)-FLT_MAX);
}

/* Repeated tokens write one number several times. */
static KilnValue *
penalize(const KilnOnnxSearch *search, const KilnOnnxSteps *s, KilnValue *scores, KilnValue *tokens)
{
    KilnValue *of = kiln_onnx_step_gather_elements(s, scores, tokens, 1);
    KilnValue *below = kiln_onnx_step_less_number(s, of, 0);
    KilnValue *new = kiln_onnx_step_where(s, below, kiln_onnx_step_mul(s, of, search->penalty),
                                          kiln_onnx_step_div(s, of, search->penalty));
    return kiln_onnx_step_scatter_elements(s, scores, tokens, new, 1);
}

KilnValue *
kiln_onnx_search_masked(const KilnOnnxSteps *s, KilnValue *scores, KilnValue *allowed)
{
    return kiln_onnx_step_where(s, kiln_onnx_step_cast(s, allowed, KILN_DTYPE_bool), scores,
                                least(s));
}

static KilnValue *
no_early_end(const KilnOnnxSearch *search, const KilnOnnxSteps *s, KilnValue *scores,
             KilnValue *tokens)
{
    const KilnOnnxExtent column[] = { KILN_ONNX_DIM(scores, 0), KILN_ONNX_NUMBER(1) };
    KilnValue *end = kiln_onnx_scalar(s->call, "end", KILN_DTYPE_i64, (double)search->eos);
    KilnValue *at = scores ? kiln_onnx_step_expand(s, end, column, 2) : NULL;
    KilnValue *early =
        kiln_onnx_step_less(s, kiln_onnx_step_extent(s, tokens, 1), search->min_length);
    KilnValue *score =
        kiln_onnx_step_where(s, early, least(s), kiln_onnx_step_gather_elements(s, scores, at, 1));
    return kiln_onnx_step_scatter_elements(s, scores, at, score, 1);
}

KilnValue *
kiln_onnx_search_adjust(const KilnOnnxSearch *search, const KilnOnnxSteps *s, KilnValue *scores,
                        KilnValue *tokens, KilnValue *rows_mask)
{
    if (search->penalty)
        scores = penalize(search, s, scores, kiln_onnx_step_cast(s, tokens, KILN_DTYPE_i64));
    if (search->ngram)
        scores = kiln_onnx_step_block_repeats(s, tokens, scores, search->ngram, (double)-FLT_MAX);
    if (search->vocab_mask)
        scores = kiln_onnx_search_masked(s, scores, search->vocab_mask);
    if (rows_mask)
        scores = kiln_onnx_search_masked(s, scores, rows_mask);
    if (search->min_length)
        scores = no_early_end(search, s, scores, tokens);
    if (search->temperature) {
        KilnValue *positive = kiln_onnx_step_greater_number(s, search->temperature, 0);
        KilnValue *one = kiln_onnx_scalar(s->call, "one", KILN_DTYPE_f32, 1);
        scores = kiln_onnx_step_div(s, scores,
                                    kiln_onnx_step_where(s, positive, search->temperature, one));
    }
    return kiln_onnx_search_stamped(search, s, scores, tokens);
}
