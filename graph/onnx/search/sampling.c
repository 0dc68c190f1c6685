/* SPDX-License-Identifier: Apache-2.0 */
/* Sampling of com.microsoft: the next word is drawn.
 *
 *     scores = (scores / temperature - presence_penalty * presence_mask)
 *     words  = the fewest whose probabilities add up to top_p, from the most probable one on
 *     word   = one of them, by its probability
 *
 * `custom` takes one more word where the sum is top_p exactly. The others get `filter_value`. */
#include "graph/graph.h"
#include "graph/onnx/contrib/contrib.h"
#include "graph/onnx/convert.h"
#include "graph/onnx/search/search.h"
#include "graph/onnx/steps.h"
#include "graph/op/softmax.h"

enum {
    PRESENCE = 7, /* operands */
    SEED
};

typedef struct {
    KilnOnnxSearch search; /* comes first */
    KilnValue *presence;   /* i32[rows, words]; NULL: none */
    float top_p, temperature, filter, penalty;
    int64_t least, custom;
} Sampling;

/* The least score that is kept: f32[rows, 1]. */
static KilnValue *
least_score(const Sampling *sampling, const KilnOnnxSteps *s, KilnValue *scores)
{
    const KilnAttrs_softmax softmax = { .axis = -1 };
    KilnValue *n = kiln_onnx_step_extents(s, scores, 1);
    KilnValue *sorted = kiln_onnx_step_greatest_of(s, scores, n);
    KilnValue *p = sorted ? kiln_onnx_step1(s, KILN_OP_softmax, &softmax, &sorted[0]) : NULL;
    p = p ? kiln_onnx_step_sums_before(s, p, 1) : NULL;
    KilnValue *kept = sampling->custom
                          ? kiln_onnx_step_opposite(
                                s, kiln_onnx_step_greater_number(s, p, (double)sampling->top_p))
                          : kiln_onnx_step_less_number(s, p, (double)sampling->top_p);
    KilnValue *count = kiln_onnx_step_sum(s, kiln_onnx_step_cast(s, kept, KILN_DTYPE_i64), 1, true);
    count = kiln_onnx_step_at_least(s, count, (double)MAX(sampling->least, 1));
    count = kiln_onnx_step_least(s, count, n);
    return kiln_onnx_step_gather_elements(s, sorted ? &sorted[0] : NULL,
                                          kiln_onnx_step_sub_number(s, count, 1), 1);
}

static KilnValue *
draw_word(const KilnOnnxSearch *search, const KilnOnnxSteps *s, KilnValue *scores)
{
    const Sampling *sampling = (const Sampling *)search;
    if (sampling->temperature > 0 && sampling->temperature != 1)
        scores = kiln_onnx_step_div_number(s, scores, (double)sampling->temperature);
    if (sampling->presence && sampling->penalty != 0) {
        KilnValue *mask = kiln_onnx_step_cast(s, sampling->presence, KILN_DTYPE_f32);
        mask = kiln_onnx_step_mul_number(s, mask, (double)sampling->penalty);
        scores = kiln_onnx_step_sub(s, scores, mask);
    }
    if (sampling->top_p < 1) {
        KilnValue *kept =
            kiln_onnx_step_greater_or_equal(s, scores, least_score(sampling, s, scores));
        KilnValue *filter =
            kiln_onnx_scalar(s->call, "filter", KILN_DTYPE_f32, (double)sampling->filter);
        scores = kiln_onnx_step_where(s, kept, scores, filter);
    }
    return kiln_onnx_step_draw_classes(s, scores, 1, 0, KILN_DTYPE_i32);
}

/* The operands of GreedySearch, then (mask of words that are penalized, seed) */
gboolean
kiln_onnx_convert_sampling(KilnOnnxCall *call, GError **error)
{
    static const KilnOnnxSearchOperands at = { 2, 3, 4, 5, 6 };
    Sampling sampling = { .search = { .pick = draw_word }, .temperature = 1, .filter = -1e20F };
    if (!kiln_onnx_take_float(call, "top_p", &sampling.top_p, error) ||
        !kiln_onnx_take_float(call, "temperature", &sampling.temperature, error) ||
        !kiln_onnx_take_float(call, "filter_value", &sampling.filter, error) ||
        !kiln_onnx_take_float(call, "presence_penalty", &sampling.penalty, error) ||
        !kiln_onnx_take_int(call, "min_tokens_to_keep", &sampling.least, error) ||
        !kiln_onnx_take_flag(call, "custom", &sampling.custom, error) ||
        !kiln_onnx_search_read(&sampling.search, call, &at, 1U << KILN_ONNX_SEARCH_DECODER,
                               error) ||
        !kiln_onnx_require_rank(call, PRESENCE, 2, 2, error) ||
        !kiln_onnx_require_one(call, SEED, error))
        return FALSE;
    sampling.presence = kiln_onnx_operand(call, PRESENCE);
    if (kiln_onnx_result_read(call, 1))
        return kiln_onnx_unsupported(call, error, "filtered logits as a result");
    return kiln_onnx_search_words(&sampling.search, error);
}
