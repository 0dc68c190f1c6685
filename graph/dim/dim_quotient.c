/* SPDX-License-Identifier: Apache-2.0 */
/* Quotients of expressions: exact ones by division of polynomials, rounded ones as atoms.
 *
 * A rounded quotient by a number k keeps its canonical form: multiples of k leave the dividend,
 * what divides both sides is divided out, and a quotient of a quotient is one quotient. */
#include "graph/dim.h"

#include "graph/dim/dim_priv.h"

static int64_t
floor_of(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

/* --- exact --- */

/* @a / @b as terms; false where an atom or the coefficient of @b is no factor. */
static bool
term_divide(const KilnDimTerm *a, const KilnDimTerm *b, KilnDimTerm *out)
{
    bool overflows = a->coefficient == INT64_MIN && b->coefficient == -1;
    if (overflows || a->coefficient % b->coefficient)
        return false;
    *out = (KilnDimTerm){ .coefficient = a->coefficient / b->coefficient };
    uint32_t k = 0;
    for (uint32_t i = 0; i < a->n; i++) {
        if (k < b->n && a->atoms[i] == b->atoms[k])
            k++;
        else
            out->atoms[out->n++] = a->atoms[i];
    }
    return k == b->n;
}

/* The first term in the order of sums; the constant, where there is no other. */
static KilnDimTerm
leading(const KilnDimSum *sum)
{
    return sum->n ? sum->terms[0] : (KilnDimTerm){ .coefficient = sum->constant };
}

static bool
is_zero(const KilnDimSum *sum)
{
    return !sum->n && !sum->constant;
}

/* Takes @divisor out of @rest as often as its leading term is a factor of that of @rest. */
static void
divide_sums(KilnDimSum *rest, const KilnDimSum *divisor, KilnDimSum *quotient)
{
    KilnDimTerm lead = leading(divisor), factor, product;
    kiln_dim_sum_start(quotient);
    while (!is_zero(rest) && !rest->too_big && !quotient->too_big) {
        KilnDimTerm first = leading(rest);
        if (!term_divide(&first, &lead, &factor))
            return;
        kiln_dim_sum_add_term(quotient, &factor, 1);
        KilnDimTerm constant = { .coefficient = divisor->constant };
        if (kiln_dim_term_multiply(&factor, &constant, &product))
            kiln_dim_sum_add_term(rest, &product, -1);
        else
            rest->too_big = true;
        for (uint32_t i = 0; i < divisor->n && !rest->too_big; i++) {
            if (kiln_dim_term_multiply(&factor, &divisor->terms[i], &product))
                kiln_dim_sum_add_term(rest, &product, -1);
            else
                rest->too_big = true;
        }
    }
}

const KilnDim *
kiln_dim_divide(KilnDimTable *table, const KilnDim *a, const KilnDim *b)
{
    if (!a || !b || (b->op == KILN_DIM_NUMBER && !b->number))
        return NULL;
    KilnDimSum rest, divisor, quotient;
    kiln_dim_sum_start(&rest);
    kiln_dim_sum_start(&divisor);
    kiln_dim_sum_add(&rest, a, 1);
    kiln_dim_sum_add(&divisor, b, 1);
    divide_sums(&rest, &divisor, &quotient);
    return is_zero(&rest) && !rest.too_big ? kiln_dim_of_sum(table, &quotient) : NULL;
}

/* --- rounded, by a number --- */

/* What is common to the coefficients of @sum and @k. */
static int64_t
common_factor(const KilnDimSum *sum, int64_t k)
{
    int64_t factor = k;
    for (uint32_t i = 0; i < sum->n; i++)
        factor = kiln_dim_gcd(sum->terms[i].coefficient, factor);
    return factor;
}

/* floor((floor(x / j) + c) / k) = floor((x + c·j) / (j·k)): the dividend and j; NULL for others. */
static const KilnDim *
nested_dividend(KilnDimTable *table, const KilnDimSum *sum, int64_t *j)
{
    const KilnDimTerm *only = &sum->terms[0];
    if (sum->n != 1 || only->coefficient != 1 || only->n != 1 ||
        only->atoms[0]->op != KILN_DIM_FLOOR || !kiln_dim_is_number(only->atoms[0]->u.args[1], j))
        return NULL;
    const KilnDim *more = kiln_dim_scale(table, kiln_dim_number(table, sum->constant), *j);
    return kiln_dim_add(table, only->atoms[0]->u.args[0], more);
}

static const KilnDim *
floor_by_number(KilnDimTable *table, const KilnDim *a, int64_t k)
{
    KilnDimSum sum, whole, rest;
    kiln_dim_sum_start(&sum);
    kiln_dim_sum_add(&sum, a, 1);
    kiln_dim_sum_start(&whole);
    kiln_dim_sum_start(&rest);
    for (uint32_t i = 0; i < sum.n; i++) {
        KilnDimTerm term = sum.terms[i];
        int64_t times = floor_of(term.coefficient, k), left = term.coefficient - times * k;
        term.coefficient = 1;
        kiln_dim_sum_add_term(&whole, &term, times);
        kiln_dim_sum_add_term(&rest, &term, left);
    }
    kiln_dim_sum_add_number(&whole, floor_of(sum.constant, k));
    kiln_dim_sum_add_number(&rest, sum.constant - floor_of(sum.constant, k) * k);
    int64_t factor = common_factor(&rest, k), j;
    for (uint32_t i = 0; i < rest.n; i++)
        rest.terms[i].coefficient /= factor;
    rest.constant /= factor; /* both are 0 or more */
    k /= factor;
    const KilnDim *quotient = kiln_dim_of_sum(table, &whole), *left = kiln_dim_of_sum(table, &rest);
    if (!quotient || !left)
        return NULL;
    KilnDimWide lo, hi;
    kiln_dim_wide_range(left, &lo, &hi);
    if (lo >= 0 && hi < k)
        return quotient;
    const KilnDim *inner = nested_dividend(table, &rest, &j);
    int64_t product;
    if (inner && !__builtin_mul_overflow(j, k, &product))
        return kiln_dim_add(table, quotient, floor_by_number(table, inner, product));
    const KilnDim *args[] = { left, kiln_dim_number(table, k) };
    return kiln_dim_add(table, quotient, kiln_dim_atom(table, KILN_DIM_FLOOR, args));
}

/* --- rounded, by an expression --- */

const KilnDim *
kiln_dim_floor(KilnDimTable *table, const KilnDim *a, const KilnDim *b)
{
    int64_t lo, hi, k;
    if (!a || !b)
        return NULL;
    kiln_dim_range(b, &lo, &hi);
    if (lo < 1)
        return NULL;
    if (kiln_dim_is_number(b, &k))
        return floor_by_number(table, a, k);
    KilnDimSum rest, divisor, quotient;
    kiln_dim_sum_start(&rest);
    kiln_dim_sum_start(&divisor);
    kiln_dim_sum_add(&rest, a, 1);
    kiln_dim_sum_add(&divisor, b, 1);
    divide_sums(&rest, &divisor, &quotient);
    const KilnDim *whole = kiln_dim_of_sum(table, &quotient), *left = kiln_dim_of_sum(table, &rest);
    if (!whole || !left)
        return NULL;
    KilnDimSum room; /* divisor - rest - 1 */
    kiln_dim_sum_start(&room);
    kiln_dim_sum_add(&room, b, 1);
    kiln_dim_sum_add(&room, left, -1);
    kiln_dim_sum_add_number(&room, -1);
    if (kiln_dim_sum_is_natural(&rest) && kiln_dim_sum_is_natural(&room))
        return whole;
    const KilnDim *args[] = { left, b };
    return kiln_dim_add(table, whole, kiln_dim_atom(table, KILN_DIM_FLOOR, args));
}

const KilnDim *
kiln_dim_ceil(KilnDimTable *table, const KilnDim *a, const KilnDim *b)
{
    return kiln_dim_scale(table, kiln_dim_floor(table, kiln_dim_scale(table, a, -1), b), -1);
}

const KilnDim *
kiln_dim_remainder(KilnDimTable *table, const KilnDim *a, const KilnDim *b)
{
    return kiln_dim_sub(table, a, kiln_dim_mul(table, b, kiln_dim_floor(table, a, b)));
}
