/* SPDX-License-Identifier: Apache-2.0 */
/* NGramHashMapping of com.microsoft: numbers for the last n words before each place, for n from 2
 * to `max_ngram_size`, by which tables are looked up:
 *
 *   mix = word * multiplier[0] xor the word before it * multiplier[1] xor ...
 *   mix modulo the size of each table, plus its offset
 *
 * Words before the first are those of earlier steps, or `pad_id`. */
#include "graph/graph.h"
#include "graph/onnx/convert.h"
#include "graph/onnx/steps.h"

enum {
    WORDS,
    MULTIPLIERS,
    SIZES,
    PAST,
    OFFSETS,
    END,
    SEGMENTS,
    MAX_GRAM = 64
};

typedef struct {
    KilnOnnxSteps s;
    KilnOnnxCall *call;
    int64_t pad, heads, most;
    KilnValue *all; /* [batch, most - 1 + rows] */
} Grams;

static gboolean
check(const Grams *g, GError **error)
{
    const KilnOnnxCall *call = g->call;
    for (uint32_t i = WORDS; i <= SIZES; i++) {
        if (!kiln_onnx_need(call, i, error))
            return FALSE;
    }
    for (uint32_t i = END; i <= SEGMENTS; i++) {
        if (kiln_onnx_operand(call, i))
            return kiln_onnx_unsupported(call, error, "operand %u, which ends segments", i);
    }
    if (g->most < 2 || g->most > MAX_GRAM || g->heads < 1 || g->heads > INT32_MAX)
        return kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                               "expected max_ngram_size of 2 to %d and n_head_per_ngram of 1 or "
                               "more, found %" G_GINT64_FORMAT " and %" G_GINT64_FORMAT,
                               MAX_GRAM, g->most, g->heads);
    const KilnType *words = &call->operands[WORDS]->type;
    const int64_t results = (g->most - 1) * g->heads;
    return kiln_onnx_require_rank(call, WORDS, 2, 2, error) &&
           kiln_onnx_require_rank(call, MULTIPLIERS, 1, 1, error) &&
           KILN_ONNX_REQUIRE_DIMS(call, SIZES, error, results) &&
           KILN_ONNX_REQUIRE_DIMS(call, OFFSETS, error, results) &&
           KILN_ONNX_REQUIRE_DIMS(call, PAST, error, words->dims[0], g->most - 1);
}

/* The words behind those of earlier steps. */
static KilnValue *
with_past(const Grams *g)
{
    const KilnOnnxSteps *s = &g->s;
    KilnValue *words = g->call->operands[WORDS], *past = kiln_onnx_operand(g->call, PAST);
    const KilnOnnxExtent shape[] = { KILN_ONNX_DIM(words, 0), KILN_ONNX_NUMBER(g->most - 1) };
    if (!past)
        past = kiln_onnx_step_expand(
            s, kiln_onnx_scalar(g->call, "pad", words->type.dtype, (double)g->pad), shape, 2);
    return kiln_onnx_step_concat(s, past, words, 1);
}

/* The products of the words @back places before each. */
static KilnValue *
products(const Grams *g, int64_t back)
{
    const int64_t first = g->most - 1 - back;
    KilnValue *words = kiln_onnx_step_slice(&g->s, g->all, 1, first, back ? -back : INT64_MAX, 1);
    KilnValue *by =
        kiln_onnx_step_slice(&g->s, g->call->operands[MULTIPLIERS], 0, back, back + 1, 1);
    return kiln_onnx_step_mul(&g->s, words, by);
}

/* @mix for the tables of the n-th length: [batch, rows, heads] */
static KilnValue *
hashes(const Grams *g, KilnValue *mix, int64_t n)
{
    static const int64_t last[] = { 2 };
    const int64_t from = n * g->heads, to = from + g->heads;
    KilnValue *sizes = kiln_onnx_step_slice(&g->s, g->call->operands[SIZES], 0, from, to, 1);
    mix = kiln_onnx_step_unsqueeze(&g->s, mix, last, 1);
    return kiln_onnx_step_mod(&g->s, mix, sizes);
}

/* (words, multipliers, sizes of tables, words before them, offsets of tables) */
gboolean
kiln_onnx_convert_ngram_hashes(KilnOnnxCall *call, GError **error)
{
    Grams g = { .s = { call, error }, .call = call };
    int64_t resets = 0;
    if (!kiln_onnx_take_int(call, "pad_id", &g.pad, error) ||
        !kiln_onnx_take_int(call, "n_head_per_ngram", &g.heads, error) ||
        !kiln_onnx_take_int(call, "max_ngram_size", &g.most, error) ||
        !kiln_onnx_take_int(call, "reset_on_eos", &resets, error) || !check(&g, error))
        return FALSE;
    g.all = with_past(&g);
    KilnValue *mix = products(&g, 0), *y = NULL;
    for (int64_t n = 1; n < g.most && mix; n++) {
        mix = kiln_onnx_step_xor(&g.s, mix, products(&g, n));
        KilnValue *part = hashes(&g, mix, n - 1);
        y = y ? kiln_onnx_step_concat(&g.s, y, part, 2) : part;
    }
    if (y && kiln_onnx_operand(call, OFFSETS))
        y = kiln_onnx_step_add(&g.s, y, call->operands[OFFSETS]);
    if (!kiln_onnx_set_result(call, 0, y) || call->n_results < 2)
        return y != NULL;
    return kiln_onnx_set_result(call, 1,
                                kiln_onnx_step_slice(&g.s, g.all, 1, 1 - g.most, INT64_MAX, 1));
}
