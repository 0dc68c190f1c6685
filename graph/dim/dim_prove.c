/* SPDX-License-Identifier: Apache-2.0 */
/* Questions about expressions: bounds by interval arithmetic, order by what atoms lie between. */
#include "graph/dim.h"

#include "graph/dim/dim_defined.h"
#include "graph/dim/dim_priv.h"

enum {
    SPLITS = 6 /* atoms that a proof replaces one after the other */
};

static const KilnDimWide most = (KilnDimWide)1 << 100;

typedef struct {
    KilnDimWide lo, hi;
} Range;

static KilnDimWide
cut(KilnDimWide value)
{
    return CLAMP(value, -most, most);
}

static KilnDimWide
times(KilnDimWide a, KilnDimWide b)
{
    KilnDimWide product;
    if (!__builtin_mul_overflow(a, b, &product))
        return cut(product);
    return (a < 0) == (b < 0) ? most : -most;
}

static Range
multiply(Range a, Range b)
{
    KilnDimWide corners[] = { times(a.lo, b.lo), times(a.lo, b.hi), times(a.hi, b.lo),
                              times(a.hi, b.hi) };
    Range out = { corners[0], corners[0] };
    for (size_t i = 1; i < G_N_ELEMENTS(corners); i++) {
        out.lo = MIN(out.lo, corners[i]);
        out.hi = MAX(out.hi, corners[i]);
    }
    return out;
}

static KilnDimWide
floor_wide(KilnDimWide a, KilnDimWide b)
{
    return a / b - (a % b < 0);
}

/* What is known of names beside the facts. */
typedef struct {
    int64_t most;         /* the upper bound of names for which nobody stated one */
    KilnDimBounds bounds; /* of some names; NULL: of none */
    void *data;
} Names;

static const Names as_stated = { .most = KILN_DIM_MOST };

static Range range_of(const KilnDim *dim, const Names *names);

static Range
range_of_term(const KilnDimTerm *term, const Names *names)
{
    Range range = { term->coefficient, term->coefficient };
    for (uint32_t i = 0; i < term->n; i++)
        range = multiply(range, range_of(term->atoms[i], names));
    return range;
}

static Range
range_of_floor(const KilnDim *dim, const Names *names)
{
    Range a = range_of(dim->u.args[0], names);
    Range b = range_of(dim->u.args[1], names);
    /* The divisor is 1 or more: the nearest one moves a quotient farthest from 0. */
    b.lo = MAX(b.lo, 1);
    b.hi = MAX(b.hi, b.lo);
    return (Range){ floor_wide(a.lo, a.lo < 0 ? b.lo : b.hi),
                    floor_wide(a.hi, a.hi < 0 ? b.hi : b.lo) };
}

static Range
range_of_name(const KilnDim *dim, const Names *names)
{
    const KilnDimFacts *facts = &dim->u.name.facts;
    int64_t lo, hi;
    if (names->bounds && names->bounds(names->data, dim->u.name.text, &lo, &hi))
        return (Range){ lo, hi };
    return (Range){ facts->lo, facts->hi == KILN_DIM_MOST ? names->most : facts->hi };
}

static Range
range_of(const KilnDim *dim, const Names *names)
{
    Range range = { dim->number, dim->number }, a, b;
    switch (dim->op) {
    case KILN_DIM_NUMBER:
        return range;
    case KILN_DIM_NAME:
        return range_of_name(dim, names);
    case KILN_DIM_SUM:
        for (uint32_t i = 0; i < dim->n; i++) {
            Range term = range_of_term(&dim->u.terms[i], names);
            range = (Range){ cut(range.lo + term.lo), cut(range.hi + term.hi) };
        }
        return range;
    case KILN_DIM_FLOOR:
        return range_of_floor(dim, names);
    default:
        a = range_of(dim->u.args[dim->n - 2], names);
        b = range_of(dim->u.args[dim->n - 1], names);
        if (dim->op == KILN_DIM_MIN)
            return (Range){ MIN(a.lo, b.lo), MIN(a.hi, b.hi) };
        if (dim->op == KILN_DIM_MAX)
            return (Range){ MAX(a.lo, b.lo), MAX(a.hi, b.hi) };
        return (Range){ MIN(a.lo, b.lo), MAX(a.hi, b.hi) };
    }
}

void
kiln_dim_wide_range(const KilnDim *dim, KilnDimWide *lo, KilnDimWide *hi)
{
    Range range = range_of(dim, &as_stated);
    *lo = range.lo;
    *hi = range.hi;
}

static void
range_with(const KilnDim *dim, const Names *names, int64_t *lo, int64_t *hi)
{
    Range range = dim ? range_of(dim, names) : (Range){ -most, most };
    *lo = (int64_t)CLAMP(range.lo, INT64_MIN, INT64_MAX);
    *hi = (int64_t)CLAMP(range.hi, INT64_MIN, INT64_MAX);
}

void
kiln_dim_range_within(const KilnDim *dim, int64_t most_of_name, int64_t *lo, int64_t *hi)
{
    const Names names = { .most = most_of_name };
    range_with(dim, &names, lo, hi);
}

void
kiln_dim_range_at(const KilnDim *dim, KilnDimBounds bounds, void *data, int64_t *lo, int64_t *hi)
{
    const Names names = { KILN_DIM_MOST, bounds, data };
    range_with(dim, &names, lo, hi);
}

void
kiln_dim_range(const KilnDim *dim, int64_t *lo, int64_t *hi)
{
    kiln_dim_range_within(dim, KILN_DIM_MOST, lo, hi);
}

/* --- proofs --- */

static KilnDimWide
least(const KilnDimSum *sum)
{
    KilnDimWide lo = sum->constant;
    for (uint32_t i = 0; i < sum->n; i++)
        lo = cut(lo + range_of_term(&sum->terms[i], &as_stated).lo);
    return lo;
}

static bool is_natural(const KilnDimSum *sum, int splits);

/* The sum without its term @at. */
static KilnDimSum
without(const KilnDimSum *sum, uint32_t at)
{
    KilnDimSum rest;
    kiln_dim_sum_start(&rest);
    kiln_dim_sum_add_number(&rest, sum->constant);
    for (uint32_t i = 0; i < sum->n; i++) {
        if (i != at)
            kiln_dim_sum_add_term(&rest, &sum->terms[i], 1);
    }
    return rest;
}

static bool
natural_with(const KilnDimSum *rest, const KilnDim *value, int64_t coefficient, int splits)
{
    KilnDimSum sum = *rest;
    kiln_dim_sum_add(&sum, value, coefficient);
    return is_natural(&sum, splits);
}

/* c·floor(x / k) is at least c·(x - k + 1) / k for c > 0 and c·x / k for c < 0; times k. The sum is
 * whole, so it is natural where k times it is more than -k. */
static bool
natural_by_floor(const KilnDimSum *sum, uint32_t at, int splits)
{
    const KilnDim *atom = sum->terms[at].atoms[0];
    int64_t c = sum->terms[at].coefficient, k, slack;
    if (!kiln_dim_is_number(atom->u.args[1], &k))
        return false;
    KilnDimSum rest = without(sum, at), scaled;
    kiln_dim_sum_start(&scaled);
    scaled.too_big |= __builtin_mul_overflow(rest.constant, k, &scaled.constant);
    for (uint32_t i = 0; i < rest.n; i++)
        kiln_dim_sum_add_term(&scaled, &rest.terms[i], k);
    kiln_dim_sum_add(&scaled, atom->u.args[0], c);
    kiln_dim_sum_add_number(&scaled, k - 1);
    if (c > 0) {
        scaled.too_big |= __builtin_mul_overflow(c, k - 1, &slack);
        kiln_dim_sum_add_number(&scaled, scaled.too_big ? 0 : -slack);
    }
    return is_natural(&scaled, splits);
}

/* A minimum is one of two values, and at most each of them; a maximum, a selection likewise. */
static bool
natural_by_choice(const KilnDimSum *sum, uint32_t at, int splits)
{
    const KilnDim *atom = sum->terms[at].atoms[0];
    const KilnDim *a = atom->u.args[atom->n - 2], *b = atom->u.args[atom->n - 1];
    int64_t c = sum->terms[at].coefficient;
    KilnDimSum rest = without(sum, at);
    bool with_a = natural_with(&rest, a, c, splits), with_b = natural_with(&rest, b, c, splits);
    bool either = atom->op == KILN_DIM_MIN ? c < 0 : atom->op == KILN_DIM_MAX && c > 0;
    return either ? with_a || with_b : with_a && with_b;
}

static bool
is_natural(const KilnDimSum *sum, int splits)
{
    if (sum->too_big)
        return false;
    if (least(sum) >= 0)
        return true;
    for (uint32_t i = 0; splits > 0 && i < sum->n; i++) {
        const KilnDimTerm *term = &sum->terms[i];
        if (term->n != 1 || kiln_dim_arity(term->atoms[0]->op) == 0)
            continue;
        bool proved = term->atoms[0]->op == KILN_DIM_FLOOR ? natural_by_floor(sum, i, splits - 1)
                                                           : natural_by_choice(sum, i, splits - 1);
        if (proved)
            return true;
    }
    return false;
}

bool
kiln_dim_sum_is_natural(const KilnDimSum *sum)
{
    return is_natural(sum, SPLITS);
}

/* Whether b - a is certainly at least @by. */
static bool
exceeds(const KilnDim *b, const KilnDim *a, int64_t by)
{
    KilnDimSum sum;
    kiln_dim_sum_start(&sum);
    kiln_dim_sum_add(&sum, b, 1);
    kiln_dim_sum_add(&sum, a, -1);
    kiln_dim_sum_add_number(&sum, -by);
    return kiln_dim_sum_is_natural(&sum);
}

KilnAnswer
kiln_dim_at_most(KilnDimTable *table, const KilnDim *a, const KilnDim *b)
{
    (void)table;
    if (!a || !b)
        return KILN_ANSWER_UNKNOWN;
    return exceeds(b, a, 0)   ? KILN_ANSWER_YES
           : exceeds(a, b, 1) ? KILN_ANSWER_NO
                              : KILN_ANSWER_UNKNOWN;
}

/* --- multiples --- */

static int64_t divisor_of(const KilnDim *dim);

/* A number that divides the product; 0 where the product is 0 or the number is too big. */
static int64_t
divisor_of_term(const KilnDimTerm *term)
{
    if (term->coefficient == INT64_MIN)
        return 1;
    int64_t divisor = term->coefficient < 0 ? -term->coefficient : term->coefficient;
    for (uint32_t i = 0; i < term->n; i++) {
        int64_t more = divisor_of(term->atoms[i]);
        if (more && __builtin_mul_overflow(divisor, more, &divisor))
            return 1;
    }
    return divisor;
}

/* A number that certainly divides @dim; 0 for 0, which all numbers divide. */
static int64_t
divisor_of(const KilnDim *dim)
{
    int64_t divisor = 0, k;
    switch (dim->op) {
    case KILN_DIM_NUMBER:
        return dim->number == INT64_MIN ? 1 : ABS(dim->number);
    case KILN_DIM_NAME:
        return dim->u.name.facts.divisor;
    case KILN_DIM_SUM:
        divisor = dim->number == INT64_MIN ? 1 : ABS(dim->number);
        for (uint32_t i = 0; i < dim->n; i++)
            divisor = kiln_dim_gcd(divisor, divisor_of_term(&dim->u.terms[i]));
        return divisor;
    case KILN_DIM_FLOOR:
        divisor = divisor_of(dim->u.args[0]);
        if (kiln_dim_is_number(dim->u.args[1], &k) && divisor % k == 0)
            return divisor / k;
        return 1;
    default:
        return kiln_dim_gcd(divisor_of(dim->u.args[dim->n - 2]),
                            divisor_of(dim->u.args[dim->n - 1]));
    }
}

KilnAnswer
kiln_dim_divides(int64_t by, const KilnDim *dim)
{
    if (!dim || by < 1)
        return KILN_ANSWER_UNKNOWN;
    if (divisor_of(dim) % by == 0)
        return KILN_ANSWER_YES;
    bool rest_divides = dim->op == KILN_DIM_NUMBER || dim->op == KILN_DIM_SUM;
    for (uint32_t i = 0; rest_divides && dim->op == KILN_DIM_SUM && i < dim->n; i++)
        rest_divides = divisor_of_term(&dim->u.terms[i]) % by == 0;
    return rest_divides && dim->number % by ? KILN_ANSWER_NO : KILN_ANSWER_UNKNOWN;
}

KilnAnswer
kiln_dim_equal(KilnDimTable *table, const KilnDim *a, const KilnDim *b)
{
    if (!a || !b)
        return KILN_ANSWER_UNKNOWN;
    if (kiln_dim_same(a, b))
        return KILN_ANSWER_YES;
    if (exceeds(a, b, 1) || exceeds(b, a, 1))
        return KILN_ANSWER_NO;
    if (exceeds(a, b, 0) && exceeds(b, a, 0))
        return KILN_ANSWER_YES;
    /* All terms of the difference are multiples of a number, and the constant is not. */
    const KilnDim *difference = kiln_dim_sub(table, a, b);
    int64_t factor = 0;
    for (uint32_t i = 0; difference && difference->op == KILN_DIM_SUM && i < difference->n; i++)
        factor = kiln_dim_gcd(factor, divisor_of_term(&difference->u.terms[i]));
    return factor > 1 && difference->number % factor ? KILN_ANSWER_NO : KILN_ANSWER_UNKNOWN;
}
