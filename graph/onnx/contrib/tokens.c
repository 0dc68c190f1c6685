/* SPDX-License-Identifier: Apache-2.0 */
/* BifurcationDetector of com.microsoft: which of the predicted tokens a decoder takes over, and
 * where its source goes on.
 *
 *   tokens = current tokens, then the predicted ones up to the first that the source does not have
 *   match  = behind the place of the last n tokens in the source, if there is one alone
 *
 * n grows from the least to the greatest number until there is no place, or the source ends. */
#include "graph/graph.h"
#include "graph/onnx/convert.h"
#include "graph/onnx/steps.h"
#include "graph/op/logic.h"

enum {
    SOURCE,
    CURRENT,
    MATCH,
    PREDICTED,
    MAX_GRAM = 64
};

typedef struct {
    KilnOnnxSteps s;
    KilnOnnxCall *call;
    int64_t least, most;
    KilnValue *tokens; /* i64[n] */
    KilnValue *padded; /* with `most` zeros in front */
    KilnValue *match;  /* i64[1]: so far */
    KilnValue *open;   /* bool[1]: larger n are tried */
} Detector;

/* --- tokens --- */

static KilnValue *
flag(const Detector *d, bool value)
{
    const KilnOnnxExtent one[] = { KILN_ONNX_NUMBER(1) };
    KilnValue *scalar = kiln_onnx_scalar(d->call, "flag", KILN_DTYPE_bool, value);
    return kiln_onnx_step_reshape(&d->s, scalar, one, 1);
}

/* Operand MATCH as a list of one. */
static KilnValue *
previous(const Detector *d)
{
    const KilnOnnxExtent one[] = { KILN_ONNX_NUMBER(1) };
    return kiln_onnx_step_reshape(&d->s, d->call->operands[MATCH], one, 1);
}

/* The predicted tokens up to the first that differs from the source behind the last match. */
static KilnValue *
taken_over(const Detector *d)
{
    const KilnOnnxSteps *s = &d->s;
    KilnValue *source = d->call->operands[SOURCE], *predicted = d->call->operands[PREDICTED];
    KilnValue *end = kiln_onnx_step_extents(s, source, 0);
    KilnValue *rest = kiln_onnx_step_between(s, source, previous(d), end);
    KilnValue *same = kiln_onnx_step2(s, KILN_OP_equal, NULL, rest,
                                      kiln_onnx_step_slice(s, predicted, 0, 0, -1, 1));
    same = kiln_onnx_step_concat(s, same, flag(d, false), 0);
    KilnValue *other = kiln_onnx_step1(s, KILN_OP_not, NULL, same);
    KilnValue *n = kiln_onnx_step_arg_max(s, kiln_onnx_step_cast(s, other, KILN_DTYPE_i32), 0);
    return kiln_onnx_step_slice_to(s, predicted, 0, 0, kiln_onnx_step_add_number(s, n, 1));
}

/* --- the match --- */

/* Where the last @n tokens stand in the source, and false behind: bool[places + 1] */
static KilnValue *
places_of(const Detector *d, int64_t n)
{
    const KilnOnnxSteps *s = &d->s;
    KilnValue *all = NULL;
    for (int64_t i = 0; i < n; i++) {
        const int64_t end = i + 1 - n;
        KilnValue *part =
            kiln_onnx_step_slice(s, d->call->operands[SOURCE], 0, i, end ? end : INT64_MAX, 1);
        KilnValue *token = kiln_onnx_step_slice(s, d->padded, 0, i - n, end ? end : INT64_MAX, 1);
        KilnValue *same = kiln_onnx_step2(s, KILN_OP_equal, NULL, part, token);
        all = all ? kiln_onnx_step2(s, KILN_OP_and, NULL, all, same) : same;
    }
    return kiln_onnx_step_concat(s, all, flag(d, false), 0);
}

static KilnValue *
chosen(const Detector *d, KilnValue *where, KilnValue *yes, KilnValue *no)
{
    return kiln_onnx_step3(&d->s, KILN_OP_where, NULL, where, yes, no);
}

static KilnValue *
both(const Detector *d, KilnValue *a, KilnValue *b)
{
    return kiln_onnx_step2(&d->s, KILN_OP_and, NULL, a, b);
}

/* Looks for the last @n tokens, where there are so many. */
static void
try_length(Detector *d, int64_t n)
{
    const KilnOnnxSteps *s = &d->s;
    KilnValue *places = kiln_onnx_step_cast(s, places_of(d, n), KILN_DTYPE_i64);
    KilnValue *count = kiln_onnx_step_sum(s, places, 0, true);
    KilnValue *behind = kiln_onnx_step_arg_max(s, places, 0);
    behind = kiln_onnx_step_add_number(s, behind, (double)n);
    KilnValue *enough = kiln_onnx_step_number(s, KILN_OP_greater_or_equal,
                                              kiln_onnx_step_extents(s, d->tokens, 0), (double)n);
    KilnValue *found = both(d, d->open, enough);
    found = both(d, found, kiln_onnx_step_number(s, KILN_OP_greater, count, 0));
    KilnValue *inside = kiln_onnx_step2(s, KILN_OP_less, NULL, behind,
                                        kiln_onnx_step_extents(s, d->call->operands[SOURCE], 0));
    KilnValue *several = both(d, inside, kiln_onnx_step_number(s, KILN_OP_greater, count, 1));
    KilnValue *none = kiln_onnx_ints(d->call, "none", (int64_t[]){ -1 }, 1);
    d->match = chosen(d, found, chosen(d, several, none, behind), d->match);
    d->open = both(d, found, inside);
}

static gboolean
check(const Detector *d, GError **error)
{
    const KilnOnnxCall *call = d->call;
    for (uint32_t i = SOURCE; i <= MATCH; i++) {
        if (!kiln_onnx_need(call, i, error))
            return FALSE;
    }
    if (d->least < 1 || d->most < d->least)
        return kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                               "expected min_ngram_size of 1 or more and max_ngram_size of at "
                               "least that, found %" G_GINT64_FORMAT " and %" G_GINT64_FORMAT,
                               d->least, d->most);
    if (d->most > MAX_GRAM)
        return kiln_onnx_unsupported(call, error, "max_ngram_size=%" G_GINT64_FORMAT, d->most);
    return kiln_onnx_require_rank(call, SOURCE, 1, 1, error) &&
           kiln_onnx_require_rank(call, CURRENT, 1, 1, error) &&
           kiln_onnx_require_one(call, MATCH, error) &&
           kiln_onnx_require_rank(call, PREDICTED, 1, 1, error);
}

/* (source, current tokens, last match, predicted tokens) */
gboolean
kiln_onnx_convert_bifurcation_detector(KilnOnnxCall *call, GError **error)
{
    Detector d = { .s = { call, error }, .call = call };
    int64_t zeros[MAX_GRAM] = { 0 };
    if (!kiln_onnx_take_int(call, "min_ngram_size", &d.least, error) ||
        !kiln_onnx_take_int(call, "max_ngram_size", &d.most, error) || !check(&d, error))
        return FALSE;
    d.tokens = call->operands[CURRENT];
    if (kiln_onnx_operand(call, PREDICTED))
        d.tokens = kiln_onnx_step_concat(&d.s, d.tokens, taken_over(&d), 0);
    if (!kiln_onnx_set_result(call, 0, d.tokens) || call->n_results < 2)
        return d.tokens != NULL;
    KilnValue *front = kiln_onnx_ints(call, "front", zeros, (uint32_t)d.most);
    d.padded = kiln_onnx_step_concat(&d.s, front, d.tokens, 0);
    d.match = kiln_onnx_ints(call, "none", (int64_t[]){ -1 }, 1);
    d.open = flag(&d, true);
    for (int64_t n = d.least; n <= d.most && d.match; n++)
        try_length(&d, n);
    if (call->operands[MATCH]->type.rank == 0)
        d.match = kiln_onnx_step_reshape(&d.s, d.match, NULL, 0);
    return kiln_onnx_set_result(call, 1, d.match);
}
