/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers in the place of names. */
#include "graph/dim.h"

#include "graph/dim/dim_priv.h"

typedef struct {
    KilnDimLookup lookup;
    void *data;
    const KilnDim *whole; /* for messages */
    GError **error;
} Evaluation;

static bool
throw_value(const Evaluation *evaluation, const char *what)
{
    g_autofree char *text = kiln_dim_to_string(evaluation->whole);
    return kiln_throw(evaluation->error, KILN_ERROR_SHAPE, "%s: %s", text, what);
}

static bool evaluate(const Evaluation *evaluation, const KilnDim *dim, KilnDimWide *out);

static bool
evaluate_name(const Evaluation *evaluation, const KilnDim *dim, KilnDimWide *out)
{
    int64_t number;
    if (!evaluation->lookup(evaluation->data, dim->u.name.text, &number)) {
        g_autofree char *text = kiln_dim_to_string(evaluation->whole);
        return kiln_throw(evaluation->error, KILN_ERROR_SHAPE,
                          "%s: expected a number for %s, found none", text, dim->u.name.text);
    }
    *out = number;
    return true;
}

static bool
evaluate_sum(const Evaluation *evaluation, const KilnDim *dim, KilnDimWide *out)
{
    KilnDimWide sum = dim->number;
    for (uint32_t i = 0; i < dim->n; i++) {
        const KilnDimTerm *term = &dim->u.terms[i];
        KilnDimWide product = term->coefficient, value;
        for (uint32_t k = 0; k < term->n; k++) {
            if (!evaluate(evaluation, term->atoms[k], &value))
                return false;
            if (__builtin_mul_overflow(product, value, &product))
                return throw_value(evaluation, "a number exceeds 127 bits");
        }
        if (__builtin_add_overflow(sum, product, &sum))
            return throw_value(evaluation, "a number exceeds 127 bits");
    }
    *out = sum;
    return true;
}

static bool
evaluate_atom(const Evaluation *evaluation, const KilnDim *dim, KilnDimWide *out)
{
    KilnDimWide v[4];
    for (uint32_t i = 0; i < dim->n; i++) {
        if (!evaluate(evaluation, dim->u.args[i], &v[i]))
            return false;
    }
    switch (dim->op) {
    case KILN_DIM_FLOOR:
        if (v[1] < 1)
            return throw_value(evaluation, "a divisor is less than 1");
        *out = v[0] / v[1] - (v[0] % v[1] < 0);
        return true;
    case KILN_DIM_MIN:
        *out = MIN(v[0], v[1]);
        return true;
    case KILN_DIM_MAX:
        *out = MAX(v[0], v[1]);
        return true;
    default:
        *out = v[0] == v[1] ? v[2] : v[3];
        return true;
    }
}

static bool
evaluate(const Evaluation *evaluation, const KilnDim *dim, KilnDimWide *out)
{
    switch (dim->op) {
    case KILN_DIM_NUMBER:
        *out = dim->number;
        return true;
    case KILN_DIM_NAME:
        return evaluate_name(evaluation, dim, out);
    case KILN_DIM_SUM:
        return evaluate_sum(evaluation, dim, out);
    default:
        return evaluate_atom(evaluation, dim, out);
    }
}

gboolean
kiln_dim_evaluate(const KilnDim *dim, KilnDimLookup lookup, void *data, int64_t *out,
                  GError **error)
{
    Evaluation evaluation = { lookup, data, dim, error };
    KilnDimWide value;
    if (!evaluate(&evaluation, dim, &value))
        return FALSE;
    if (value < INT64_MIN || value > INT64_MAX)
        return throw_value(&evaluation, "the number exceeds 64 bits");
    *out = (int64_t)value;
    return TRUE;
}

/* --- hints --- */

static int64_t
hint_of_name(const KilnDim *name)
{
    const KilnDimFacts *facts = &name->u.name.facts;
    int64_t guess = name->u.name.guess ? name->u.name.guess : KILN_DIM_HINT;
    int64_t hint = facts->hint > 0              ? facts->hint
                   : facts->hi == KILN_DIM_MOST ? guess
                                                : facts->lo + (facts->hi - facts->lo) / 2;
    hint = CLAMP(hint, facts->lo, facts->hi);
    return hint - hint % facts->divisor; /* the lower bound is a multiple, too */
}

static KilnDimWide
hint_of(const KilnDim *dim)
{
    KilnDimWide sum = dim->number, product, divisor;
    switch (dim->op) {
    case KILN_DIM_NUMBER:
        return sum;
    case KILN_DIM_NAME:
        return hint_of_name(dim);
    case KILN_DIM_SUM:
        for (uint32_t i = 0; i < dim->n; i++) {
            product = dim->u.terms[i].coefficient;
            for (uint32_t k = 0; k < dim->u.terms[i].n; k++)
                product = CLAMP(product, INT64_MIN, INT64_MAX) * hint_of(dim->u.terms[i].atoms[k]);
            sum += CLAMP(product, INT64_MIN, INT64_MAX);
        }
        return CLAMP(sum, INT64_MIN, INT64_MAX);
    case KILN_DIM_FLOOR:
        divisor = MAX(hint_of(dim->u.args[1]), 1);
        sum = hint_of(dim->u.args[0]);
        return sum / divisor - (sum % divisor < 0);
    case KILN_DIM_MIN:
        return MIN(hint_of(dim->u.args[0]), hint_of(dim->u.args[1]));
    case KILN_DIM_MAX:
        return MAX(hint_of(dim->u.args[0]), hint_of(dim->u.args[1]));
    default:
        return hint_of(dim->u.args[0]) == hint_of(dim->u.args[1]) ? hint_of(dim->u.args[2])
                                                                  : hint_of(dim->u.args[3]);
    }
}

int64_t
kiln_dim_hint(const KilnDim *dim)
{
    return dim ? (int64_t)hint_of(dim) : KILN_DIM_HINT;
}
