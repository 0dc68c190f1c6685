/* SPDX-License-Identifier: Apache-2.0 */
/* Dims as expressions: the canonical form, what can be proved, text, and values. */
#include "graph/dim.h"

#include <criterion/criterion.h>
#include <string.h>

typedef struct {
    KilnDimTable *table;
    const KilnDim *n, *m, *p;
} Fixture;

static Fixture
fixture(void)
{
    Fixture f = { .table = kiln_dim_table_new() };
    f.n = kiln_dim_name(f.table, "N");
    f.m = kiln_dim_name(f.table, "M");
    f.p = kiln_dim_name(f.table, "P");
    return f;
}

static const KilnDim *
number(const Fixture *f, int64_t value)
{
    return kiln_dim_number(f->table, value);
}

static void
expect_text(const KilnDim *dim, const char *expected)
{
    g_autofree char *text = kiln_dim_to_string(dim);
    cr_expect_str_eq(text, expected);
}

Test(dim, equal_sums_are_one_object)
{
    Fixture f = fixture();
    KilnDimTable *t = f.table;
    const KilnDim *twice = kiln_dim_add(t, f.n, f.n);
    cr_expect_eq(twice, kiln_dim_mul(t, number(&f, 2), f.n));
    expect_text(twice, "2*N");
    const KilnDim *square = kiln_dim_mul(t, kiln_dim_add(t, f.n, f.m), kiln_dim_sub(t, f.n, f.m));
    expect_text(square, "-M*M+N*N");
    cr_expect_eq(square, kiln_dim_sub(t, kiln_dim_mul(t, f.n, f.n), kiln_dim_mul(t, f.m, f.m)));
    cr_expect_eq(kiln_dim_sub(t, kiln_dim_add(t, f.n, f.m), f.m), f.n);
    cr_expect_eq(kiln_dim_sub(t, f.n, f.n), number(&f, 0));
    expect_text(kiln_dim_add(t, kiln_dim_scale(t, f.n, -3), number(&f, -7)), "-3*N-7");
    cr_expect_null(kiln_dim_scale(t, number(&f, INT64_MAX), 2));
    cr_expect_null(kiln_dim_add(t, NULL, f.n));
    kiln_dim_table_unref(t);
}

Test(dim, quotients)
{
    Fixture f = fixture();
    KilnDimTable *t = f.table;
    const KilnDim *half = kiln_dim_floor(t, f.n, number(&f, 2));
    expect_text(half, "floor(N/2)");
    cr_expect_eq(kiln_dim_floor(t, kiln_dim_scale(t, f.n, 6), number(&f, 12)), half);
    expect_text(kiln_dim_floor(t, kiln_dim_scale(t, f.n, 3), number(&f, 2)), "N+floor(N/2)");
    expect_text(kiln_dim_floor(t, half, number(&f, 3)), "floor(N/6)");
    expect_text(kiln_dim_ceil(t, f.n, number(&f, 2)), "N-floor(N/2)");
    cr_expect_eq(kiln_dim_ceil(t, kiln_dim_scale(t, f.n, 4), number(&f, 2)),
                 kiln_dim_scale(t, f.n, 2));
    expect_text(kiln_dim_remainder(t, f.n, number(&f, 8)), "N-8*floor(N/8)");
    /* By expressions: what divides is divided out. */
    const KilnDim *product = kiln_dim_mul(t, kiln_dim_scale(t, f.n, 64), f.m);
    cr_expect_eq(kiln_dim_divide(t, product, kiln_dim_scale(t, f.m, 8)), kiln_dim_scale(t, f.n, 8));
    const KilnDim *sum = kiln_dim_add(t, f.m, f.p);
    cr_expect_eq(kiln_dim_divide(t, kiln_dim_mul(t, sum, f.n), sum), f.n);
    cr_expect_null(kiln_dim_divide(t, f.n, sum));
    expect_text(kiln_dim_floor(t, f.n, f.m), "floor(N/M)");
    cr_expect_null(kiln_dim_floor(t, f.n, number(&f, 0)));
    cr_expect_null(kiln_dim_floor(t, f.n, kiln_dim_sub(t, f.m, f.p)));
    kiln_dim_table_unref(t);
}

Test(dim, choices)
{
    Fixture f = fixture();
    KilnDimTable *t = f.table;
    const KilnDim *one = number(&f, 1);
    cr_expect_eq(kiln_dim_max(t, f.n, number(&f, 0)), f.n);
    cr_expect_eq(kiln_dim_min(t, f.n, kiln_dim_add(t, f.n, f.m)), f.n);
    expect_text(kiln_dim_min(t, f.n, f.m), "min(M,N)");
    cr_expect_eq(kiln_dim_min(t, f.n, f.m), kiln_dim_min(t, f.m, f.n));
    cr_expect_eq(kiln_dim_broadcast(t, f.n, f.n), f.n);
    cr_expect_eq(kiln_dim_broadcast(t, f.n, one), f.n);
    cr_expect_eq(kiln_dim_broadcast(t, f.n, number(&f, 7)), number(&f, 7));
    const KilnDim *both = kiln_dim_broadcast(t, f.n, f.m);
    expect_text(both, "select(1=M,N,M)");
    cr_expect_eq(kiln_dim_broadcast(t, both, f.m), both);
    cr_expect_eq(kiln_dim_broadcast(t, kiln_dim_broadcast(t, f.p, f.m), f.n),
                 kiln_dim_broadcast(t, both, f.p));
    cr_expect_eq(kiln_dim_broadcast(t, f.n, kiln_dim_add(t, f.m, f.p)), kiln_dim_add(t, f.m, f.p));
    /* A part of an extent is 1, or all of it. */
    cr_expect_eq(kiln_dim_broadcast(t, kiln_dim_min(t, f.n, number(&f, 128)), f.n), f.n);
    cr_expect_eq(kiln_dim_broadcast(t, f.n, kiln_dim_min(t, f.n, f.m)), f.n);
    /* It may be 0, which is no extent of N = 1. */
    const KilnDim *half = kiln_dim_floor(t, f.n, number(&f, 2));
    expect_text(kiln_dim_broadcast(t, half, f.n), "select(1=N,floor(N/2),N)");
    kiln_dim_table_unref(t);
}

Test(dim, questions)
{
    Fixture f = fixture();
    KilnDimTable *t = f.table;
    const KilnDim *half = kiln_dim_floor(t, f.n, number(&f, 2));
    cr_expect_eq(kiln_dim_at_most(t, half, f.n), KILN_ANSWER_YES);
    cr_expect_eq(kiln_dim_at_most(t, f.n, half), KILN_ANSWER_NO);
    cr_expect_eq(kiln_dim_at_most(t, f.n, f.m), KILN_ANSWER_UNKNOWN);
    cr_expect_eq(kiln_dim_at_most(t, kiln_dim_min(t, f.n, f.m), f.n), KILN_ANSWER_YES);
    cr_expect_eq(kiln_dim_equal(t, f.n, number(&f, 0)), KILN_ANSWER_NO);
    cr_expect_eq(kiln_dim_equal(t, f.n, kiln_dim_add(t, f.n, number(&f, 1))), KILN_ANSWER_NO);
    cr_expect_eq(kiln_dim_equal(t, f.n, f.m), KILN_ANSWER_UNKNOWN);
    const KilnDim *odd = kiln_dim_add(t, kiln_dim_scale(t, f.n, 2), number(&f, 1));
    cr_expect_eq(kiln_dim_equal(t, odd, kiln_dim_scale(t, f.m, 2)), KILN_ANSWER_NO);
    cr_expect_eq(kiln_dim_divides(2, odd), KILN_ANSWER_NO);
    cr_expect_eq(kiln_dim_divides(4, kiln_dim_scale(t, f.m, 8)), KILN_ANSWER_YES);
    cr_expect_eq(kiln_dim_divides(4, f.m), KILN_ANSWER_UNKNOWN);
    KilnDimFacts facts = { .lo = 3, .hi = 70, .divisor = 8, .hint = 33 };
    cr_expect(kiln_dim_state(t, "M", &facts, NULL));
    cr_expect(kiln_dim_facts(f.m, &facts) && facts.lo == 8 && facts.hi == 64);
    cr_expect_eq(kiln_dim_divides(4, f.m), KILN_ANSWER_YES);
    cr_expect_eq(kiln_dim_divides(4, kiln_dim_floor(t, f.m, number(&f, 2))), KILN_ANSWER_YES);
    cr_expect_eq(kiln_dim_at_most(t, f.m, number(&f, 64)), KILN_ANSWER_YES);
    cr_expect_eq(kiln_dim_hint(f.m), 32);
    facts = (KilnDimFacts){ .lo = 9, .hi = 15, .divisor = 8 };
    g_autoptr(GError) error = NULL;
    cr_expect(!kiln_dim_state(t, "M", &facts, &error));
    cr_expect_str_eq(error->message, "M: expected a multiple of 8 from 9 to 15, found none");
    kiln_dim_table_unref(t);
}

/* --- random expressions: every claim is compared with numbers --- */

enum {
    NAMES = 3,
    BINDINGS = 24
};

typedef struct {
    const KilnDim *dim;
    int64_t v[BINDINGS]; /* by direct arithmetic */
    bool valid;
} Pair;

static const char *const names[NAMES] = { "N", "M", "P" };

static bool
look_up(void *data, const char *name, int64_t *out)
{
    const int64_t *values = data;
    for (int i = 0; i < NAMES; i++) {
        if (g_str_equal(name, names[i]))
            *out = values[i];
    }
    return true;
}

static int64_t
floor_of(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

static int64_t
combined(int op, int64_t a, int64_t b, int64_t k)
{
    switch (op) {
    case 0:
        return a + b;
    case 1:
        return a - b;
    case 2:
        return a * b;
    case 3:
        return floor_of(a, k);
    case 4:
        return -floor_of(-a, k);
    case 5:
        return MIN(a, b);
    case 6:
        return MAX(a, b);
    case 7:
        return a == k ? b : a;
    default:
        return a - k * floor_of(a, k);
    }
}

static const KilnDim *
combined_dim(KilnDimTable *t, int op, const KilnDim *a, const KilnDim *b, int64_t k)
{
    const KilnDim *by = kiln_dim_number(t, k);
    switch (op) {
    case 0:
        return kiln_dim_add(t, a, b);
    case 1:
        return kiln_dim_sub(t, a, b);
    case 2:
        return kiln_dim_mul(t, a, b);
    case 3:
        return kiln_dim_floor(t, a, by);
    case 4:
        return kiln_dim_ceil(t, a, by);
    case 5:
        return kiln_dim_min(t, a, b);
    case 6:
        return kiln_dim_max(t, a, b);
    case 7:
        return kiln_dim_select(t, a, by, b, a);
    default:
        return kiln_dim_remainder(t, a, by);
    }
}

static unsigned
pick(uint64_t *state, unsigned n)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(*state >> 33) % n;
}

static void
check_pair(KilnDimTable *t, const Pair *a, const Pair *b)
{
    KilnAnswer equal = kiln_dim_equal(t, a->dim, b->dim);
    KilnAnswer at_most = kiln_dim_at_most(t, a->dim, b->dim);
    int64_t lo, hi;
    kiln_dim_range(a->dim, &lo, &hi);
    for (int i = 0; i < BINDINGS; i++) {
        cr_assert(a->v[i] >= lo && a->v[i] <= hi);
        cr_assert(equal != KILN_ANSWER_YES || a->v[i] == b->v[i]);
        cr_assert(equal != KILN_ANSWER_NO || a->v[i] != b->v[i]);
        cr_assert(at_most != KILN_ANSWER_YES || a->v[i] <= b->v[i]);
        cr_assert(at_most != KILN_ANSWER_NO || a->v[i] > b->v[i]);
        for (int64_t k = 2; k < 9; k++) {
            KilnAnswer divides = kiln_dim_divides(k, a->dim);
            cr_assert(divides != KILN_ANSWER_YES || a->v[i] % k == 0);
            cr_assert(divides != KILN_ANSWER_NO || a->v[i] % k != 0);
        }
    }
}

/* N becomes 3, all others what they are in another table. */
static const KilnDim *
replace_n(void *table, const KilnDim *name)
{
    KilnDimFacts facts;
    const char *text = kiln_dim_as_name(name);
    if (strcmp(text, "N") == 0)
        return kiln_dim_number(table, 3);
    cr_assert(kiln_dim_facts(name, &facts) && kiln_dim_state(table, text, &facts, NULL));
    return kiln_dim_name(table, text);
}

static void
check_replaced(const Pair *pair, int64_t values[BINDINGS][NAMES])
{
    KilnDimTable *table = kiln_dim_table_new();
    const KilnDim *dim = kiln_dim_replace(table, pair->dim, replace_n, table);
    for (int i = 0; i < BINDINGS && dim; i++) {
        int64_t numbers[NAMES], expected, found;
        memcpy(numbers, values[i], sizeof numbers);
        numbers[0] = 3;
        cr_assert(kiln_dim_evaluate(pair->dim, look_up, numbers, &expected, NULL));
        cr_assert(kiln_dim_evaluate(dim, look_up, numbers, &found, NULL));
        cr_assert_eq(found, expected);
        cr_assert_eq(kiln_dim_table_of(dim), table);
    }
    kiln_dim_table_unref(table);
}

static void
random_expressions(uint64_t seed)
{
    Fixture f = fixture();
    int64_t values[BINDINGS][NAMES];
    Pair pairs[12] = { { f.n, { 0 }, true }, { f.m, { 0 }, true }, { f.p, { 0 }, true } };
    KilnDimFacts facts = { .lo = 4, .hi = 40, .divisor = 4 };
    uint64_t state = seed * 7919 + 1;
    cr_assert(kiln_dim_state(f.table, "P", &facts, NULL));
    for (int i = 0; i < BINDINGS; i++) {
        for (int k = 0; k < NAMES; k++)
            pairs[k].v[i] = values[i][k] = k == 2 ? 4 + 4 * (int64_t)pick(&state, 10)
                                                  : 1 + (int64_t)pick(&state, i < 6 ? 3 : 50);
    }
    for (size_t at = NAMES; at < G_N_ELEMENTS(pairs); at++) {
        const Pair *a = &pairs[pick(&state, (unsigned)at)], *b = &pairs[pick(&state, (unsigned)at)];
        int op = (int)pick(&state, 9);
        int64_t k = 1 + pick(&state, 9);
        pairs[at] = *a;
        const KilnDim *dim = combined_dim(f.table, op, a->dim, b->dim, k);
        if (!dim) /* too big */
            continue;
        pairs[at].dim = dim;
        for (int i = 0; i < BINDINGS; i++) {
            int64_t found;
            pairs[at].v[i] = combined(op, a->v[i], b->v[i], k);
            cr_assert(kiln_dim_evaluate(dim, look_up, values[i], &found, NULL));
            cr_assert_eq(found, pairs[at].v[i]);
        }
        for (size_t other = 0; other < at; other++)
            check_pair(f.table, &pairs[at], &pairs[other]);
        check_replaced(&pairs[at], values);
    }
    kiln_dim_table_unref(f.table);
}

Test(dim, claims_hold_for_numbers)
{
    for (uint64_t seed = 0; seed < 400; seed++)
        random_expressions(seed);
}

Test(dim, values_that_are_too_big)
{
    Fixture f = fixture();
    KilnDimTable *t = f.table;
    const KilnDim *dim = kiln_dim_mul(t, kiln_dim_mul(t, f.n, f.m), f.p);
    int64_t values[NAMES] = { INT64_C(1) << 40, INT64_C(1) << 30, 2 }, found;
    g_autoptr(GError) error = NULL;
    cr_expect(!kiln_dim_evaluate(dim, look_up, values, &found, &error));
    cr_expect_str_eq(error->message, "M*N*P: the number exceeds 64 bits");
    kiln_dim_table_unref(t);
}
