/* SPDX-License-Identifier: Apache-2.0 */
/* The reference backend's reductions, arg_max and arg_min, running sums, softmax and top_k. */
#include "ref_case.h"

#include "graph/base/random.h"
#include "ir/instr.h"

#include <math.h>
#include <stdint.h>

#define F32 KILN_DTYPE_f32
#define I32 KILN_DTYPE_i32

/* x of [2,3,2], reduced over axes 0 and 2. */
static void
reduce(KilnInstrKind kind, KilnDType dtype, const double *x, const double *expected)
{
    g_autoptr(RefCase) c = case_new(kind);
    CASE_ATTRS(c, reduce_sum)->axes = CASE_INTS(c, 0, 2);
    case_out(c, dtype, DIMS(1, 3, 1));
    case_in(c, dtype, DIMS(2, 3, 2), x);
    case_gives(c, expected, 1e-6);
}

#define REDUCE(id, dtype, x, ...)                                                                  \
    reduce(KILN_INSTR_reduce_##id, KILN_DTYPE_##dtype, x, VALUES(__VA_ARGS__))

Test(ref_reduce, floats)
{
    const double x[] = { 1, -2, 3, 4, NAN, 1, 5, 2, -1, 0, 1, 2 };
    REDUCE(sum, f32, x, 6, 6, NAN);
    REDUCE(mean, f32, x, 1.5, 1.5, NAN);
    REDUCE(prod, f32, x, -20, 0, NAN);
    REDUCE(max, f32, x, 5, 4, NAN);
    REDUCE(min, f32, x, -2, -1, NAN);
    REDUCE(l1, f32, x, 10, 8, NAN);
    REDUCE(l2, f32, x, 5.8309518948453, 5.0990195135928, NAN);
    REDUCE(sum_square, f32, x, 34, 26, NAN);
    REDUCE(log_sum, f32, x, 1.7917594692281, 1.7917594692281, NAN);
    REDUCE(log_sum_exp, f32, x, 5.0667372794915515, 4.331411615436033, NAN);
}

Test(ref_reduce, integers)
{
    const double x[] = { 1, -2, 3, 4, 100, 1, 5, 2, -1, 0, 1, 27 };
    REDUCE(sum, i8, x, 6, 6, -127);
    REDUCE(mean, i32, x, 1, 1, 32);
    REDUCE(prod, i32, x, -20, 0, 2700);
    REDUCE(max, i64, x, 5, 4, 100);
    REDUCE(min, i8, x, -2, -1, 1);
    REDUCE(l1, i32, x, 10, 8, 129);
    REDUCE(l2, i32, x, 5, 5, 103);
    REDUCE(sum_square, i16, x, 34, 26, 10731);
    REDUCE(log_sum, i32, x, 1, 1, 4);
    REDUCE(log_sum_exp, i32, x, 5, 4, 100);
    const double negative[] = { -1, -2, -3, -3, -4, -4, -2, -2, -3, -2, -4, -4 };
    REDUCE(mean, i32, negative, -1, -2, -4);
}

Test(ref_reduce, bools)
{
    const double x[] = { 1, 0, 0, 0, 1, 1, 1, 1, 0, 0, 1, 1 };
    REDUCE(max, bool, x, 1, 0, 1);
    REDUCE(min, bool, x, 0, 0, 1);
}

Test(ref_reduce, large_sums_are_accurate)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_reduce_sum);
    CASE_ATTRS(c, reduce_sum)->axes = CASE_INTS(c, 0);
    case_out(c, F32, SCALAR);
    case_in(c, F32, DIMS(20000), NULL);
    for (int i = 0; i < 20000; i++)
        ((float *)c->data[1])[i] = i == 0 ? 16777216.f : 1.f;
    case_gives(c, VALUES(16777216. + 20000), 0);
}

Test(ref_reduce, far_out_exponents_do_not_overflow)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_reduce_log_sum_exp);
    CASE_ATTRS(c, reduce_log_sum_exp)->axes = CASE_INTS(c, 1);
    case_out(c, F32, DIMS(4));
    case_in(c, F32, DIMS(4, 2),
            VALUES(1000, 1000, -1000, -1000, -INFINITY, -INFINITY, INFINITY, 0));
    case_gives(c, VALUES(1000.6931471805599, -999.30685281944, -INFINITY, INFINITY), 1e-4);
}

Test(ref_reduce, without_axes_every_element_is_a_group)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_reduce_sum_square);
    case_out(c, F32, DIMS(3));
    case_in(c, F32, DIMS(3), VALUES(-1, 2, -3));
    case_gives(c, VALUES(1, 4, 9), 0);
}

static RefCase *
empty(KilnInstrKind kind, KilnDType dtype)
{
    RefCase *c = case_new(kind);
    CASE_ATTRS(c, reduce_sum)->axes = CASE_INTS(c, 1);
    case_out(c, dtype, DIMS(2));
    case_in(c, dtype, DIMS(2, 0), NULL);
    return c;
}

static void
expect_of_nothing(KilnInstrKind kind, KilnDType dtype, double value)
{
    g_autoptr(RefCase) c = empty(kind, dtype);
    case_gives(c, VALUES(value, value), 0);
}

#define OF_NOTHING(id, dtype, value)                                                               \
    expect_of_nothing(KILN_INSTR_reduce_##id, KILN_DTYPE_##dtype, value)

Test(ref_reduce, of_nothing)
{
    OF_NOTHING(sum, f32, 0);
    OF_NOTHING(sum, u8, 0);
    OF_NOTHING(prod, f32, 1);
    OF_NOTHING(prod, i64, 1);
    OF_NOTHING(l1, f16, 0);
    OF_NOTHING(l2, f32, 0);
    OF_NOTHING(sum_square, i32, 0);
    OF_NOTHING(mean, f32, NAN);
    OF_NOTHING(log_sum, f32, -INFINITY);
    OF_NOTHING(log_sum_exp, f32, -INFINITY);
    OF_NOTHING(log_sum, i32, INT32_MIN);
    OF_NOTHING(max, f32, -INFINITY);
    OF_NOTHING(min, bf16, INFINITY);
    OF_NOTHING(max, i8, -128);
    OF_NOTHING(min, i32, INT32_MAX);
    OF_NOTHING(max, i64, -0x1p63);
    OF_NOTHING(max, u16, 0);
    OF_NOTHING(min, u32, UINT32_MAX);
    OF_NOTHING(min, u64, 0x1p64);
    OF_NOTHING(max, bool, 0);
    OF_NOTHING(min, bool, 1);
    g_autoptr(RefCase) mean = empty(KILN_INSTR_reduce_mean, I32);
    cr_expect_str_eq(case_run(mean), "mean of no integers");
}

Test(ref_reduce, all_dims_empty)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_reduce_sum);
    CASE_ATTRS(c, reduce_sum)->axes = CASE_INTS(c, 0);
    case_out(c, F32, DIMS(1, 0));
    case_in(c, F32, DIMS(3, 0), NULL);
    cr_expect_null(case_run(c));
}

/* --- arg_max, arg_min --- */

static void
arg_reduce(KilnInstrKind kind, bool last, const double *x, const double *expected)
{
    g_autoptr(RefCase) c = case_new(kind);
    CASE_ATTRS(c, arg_max)->axis = 1;
    CASE_ATTRS(c, arg_max)->select_last_index = last;
    case_out(c, KILN_DTYPE_i64, DIMS(2, 2));
    case_in(c, F32, DIMS(2, 3, 2), x);
    case_gives(c, expected, 0);
}

Test(ref_reduce, arg_max_and_arg_min)
{
    /* Lines: (1 3 3), (2 2 -1), (NAN 5 NAN), (0 0 0). */
    const double x[] = { 1, 2, 3, 2, 3, -1, NAN, 0, 5, 0, NAN, 0 };
    arg_reduce(KILN_INSTR_arg_max, false, x, VALUES(1, 0, 0, 0));
    arg_reduce(KILN_INSTR_arg_max, true, x, VALUES(2, 1, 2, 2));
    arg_reduce(KILN_INSTR_arg_min, false, x, VALUES(0, 2, 0, 0));
    arg_reduce(KILN_INSTR_arg_min, true, x, VALUES(0, 2, 2, 2));
}

Test(ref_reduce, arg_max_of_integers_and_of_nothing)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_arg_max);
    CASE_ATTRS(c, arg_max)->axis = 0;
    case_out(c, KILN_DTYPE_i64, SCALAR);
    case_in(c, KILN_DTYPE_u64, DIMS(3), VALUES(1, 0x1p63, 5));
    case_gives(c, VALUES(1), 0);
    g_autoptr(RefCase) none = case_new(KILN_INSTR_arg_min);
    CASE_ATTRS(none, arg_min)->axis = 0;
    case_out(none, KILN_DTYPE_i64, DIMS(2));
    case_in(none, F32, DIMS(0, 2), NULL);
    cr_expect_str_eq(case_run(none), "arg_max or arg_min of no elements");
}

/* --- cum_sum --- */

Test(ref_reduce, cum_sum)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_cum_sum);
    KilnInstrAttrs_cum_sum *attrs = CASE_ATTRS(c, cum_sum);
    attrs->axis = 1;
    case_out(c, KILN_DTYPE_i32, DIMS(2, 3));
    case_in(c, KILN_DTYPE_i32, DIMS(2, 3), VALUES(1, 2, 3, 4, 5, 6));
    case_gives(c, VALUES(1, 3, 6, 4, 9, 15), 0);
    attrs->exclusive = true;
    case_gives(c, VALUES(0, 1, 3, 0, 4, 9), 0);
    attrs->reverse = true;
    case_gives(c, VALUES(5, 3, 0, 11, 6, 0), 0);
    attrs->exclusive = false;
    case_gives(c, VALUES(6, 5, 3, 15, 11, 6), 0);
    attrs->axis = 0;
    attrs->reverse = false;
    void *own = c->data[0];
    c->data[0] = c->data[1]; /* in place */
    case_gives(c, VALUES(1, 2, 3, 5, 7, 9), 0);
    c->data[0] = own;
}

/* --- softmax and its like --- */

Test(ref_reduce, softmax)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_softmax);
    CASE_ATTRS(c, softmax)->axis = -1;
    case_out(c, F32, DIMS(2, 2));
    case_in(c, F32, DIMS(2, 2), VALUES(0, 1, 1000, 999));
    case_gives(c, VALUES(0.26894142137, 0.73105857863, 0.73105857863, 0.26894142137), 1e-7);
    CASE_ATTRS(c, softmax)->axis = 0;
    case_gives(c, VALUES(0, 0, 1, 1), 1e-7);
    g_autoptr(RefCase) l = case_new(KILN_INSTR_log_softmax);
    case_out(l, F32, DIMS(1, 3));
    case_in(l, F32, DIMS(1, 3), VALUES(1000, 0, -1000));
    void *own = l->data[0];
    l->data[0] = l->data[1]; /* in place */
    case_gives(l, VALUES(0, -1000, -2000), 1e-7);
    l->data[0] = own;
    g_autoptr(RefCase) lost = case_new(KILN_INSTR_softmax);
    case_out(lost, F32, DIMS(3, 2));
    case_in(lost, F32, DIMS(3, 2), VALUES(NAN, 1, -INFINITY, 1, -INFINITY, -INFINITY));
    case_gives(lost, VALUES(NAN, NAN, 0, 1, NAN, NAN), 0);
}

Test(ref_reduce, hardmax)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_hardmax);
    CASE_ATTRS(c, hardmax)->axis = 0;
    case_out(c, KILN_DTYPE_f16, DIMS(3, 2));
    case_in(c, KILN_DTYPE_f16, DIMS(3, 2), VALUES(1, 5, 3, 5, 3, -1));
    case_gives(c, VALUES(0, 1, 1, 0, 0, 0), 0);
}

/* --- top_k --- */

static RefCase *
top_k(KilnDType dtype, bool largest, const double *x)
{
    RefCase *c = case_new(KILN_INSTR_top_k);
    CASE_ATTRS(c, top_k)->axis = 1;
    CASE_ATTRS(c, top_k)->largest = largest;
    case_out(c, dtype, DIMS(1, 3, 2));
    case_out(c, KILN_DTYPE_i64, DIMS(1, 3, 2));
    case_in(c, dtype, DIMS(1, 5, 2), x);
    return c;
}

Test(ref_reduce, top_k)
{
    /* Lines: (3 1 3 2 3), (5 4 NAN 4 0). */
    const double x[] = { 3, 5, 1, 4, 3, NAN, 2, 4, 3, 0 };
    g_autoptr(RefCase) largest = top_k(F32, true, x);
    case_gives(largest, VALUES(3, NAN, 3, 5, 3, 4), 0);
    case_expect(largest, 1, VALUES(0, 2, 2, 0, 4, 1), 0);
    g_autoptr(RefCase) smallest = top_k(KILN_DTYPE_f64, false, x);
    case_gives(smallest, VALUES(1, 0, 2, 4, 3, 4), 0);
    case_expect(smallest, 1, VALUES(1, 4, 3, 1, 0, 3), 0);
    g_autoptr(RefCase) u = top_k(KILN_DTYPE_u64, true, VALUES(1, 0, 0x1p63, 0, 2, 0, 3, 0, 4, 0));
    case_gives(u, VALUES(0x1p63, 0, 4, 0, 3, 0), 0);
    case_expect(u, 1, VALUES(1, 0, 4, 1, 3, 2), 0);
}

/* True where @a comes before @b: NaN above all numbers, equals by index. */
static bool
is_before(const double *x, bool largest, int a, int b)
{
    bool nan_a = isnan(x[a]), nan_b = isnan(x[b]);
    if (nan_a != nan_b)
        return largest ? nan_a : nan_b;
    if (nan_a || x[a] == x[b])
        return a < b;
    return largest ? x[a] > x[b] : x[a] < x[b];
}

/* Against a sort by insertion, with many equals and every k. */
Test(ref_reduce, top_k_of_random_lines)
{
    uint64_t counter = 0;
    for (int round = 0; round < 400; round++) {
        enum {
            MOST = 24
        };
        double x[MOST], index[MOST], value[MOST];
        int order[MOST], n = 1 + round % MOST, k = (int)(kiln_random_bits(9, counter++) % (n + 1));
        bool largest = round & 1;
        KilnDType dtype = round % 3 ? F32 : KILN_DTYPE_i8;
        for (int i = 0; i < n; i++) {
            x[i] = (double)(kiln_random_bits(9, counter++) % 6);
            if (dtype == F32 && x[i] == 5)
                x[i] = NAN;
            int at = i;
            for (; at > 0 && is_before(x, largest, i, order[at - 1]); at--)
                order[at] = order[at - 1];
            order[at] = i;
        }
        for (int i = 0; i < k; i++) {
            index[i] = order[i];
            value[i] = x[order[i]];
        }
        g_autoptr(RefCase) c = case_new(KILN_INSTR_top_k);
        CASE_ATTRS(c, top_k)->largest = largest;
        CASE_ATTRS(c, top_k)->axis = 0;
        case_out(c, dtype, DIMS(k));
        case_out(c, KILN_DTYPE_i64, DIMS(k));
        case_in(c, dtype, DIMS(n), x);
        case_gives(c, value, 0);
        case_expect(c, 1, index, 0);
    }
}

/* All of a long line, sorted: seconds where each element looks for the next among all others. */
Test(ref_reduce, top_k_of_all)
{
    enum {
        N = 200 * 1000
    };
    g_autofree double *x = g_new(double, N);
    for (int i = 0; i < N; i++)
        x[i] = (double)(kiln_random_bits(3, (uint64_t)i) % 1000);
    g_autoptr(RefCase) c = case_new(KILN_INSTR_top_k);
    CASE_ATTRS(c, top_k)->axis = 0;
    case_out(c, F32, DIMS(N));
    case_out(c, KILN_DTYPE_i64, DIMS(N));
    case_in(c, F32, DIMS(N), x);
    gint64 begin = g_get_monotonic_time();
    cr_assert_null(case_run(c));
    cr_assert_lt((double)(g_get_monotonic_time() - begin) / 1e6, 10);
    for (int i = 1; i < N; i++)
        cr_assert_geq(((float *)c->data[0])[i - 1], ((float *)c->data[0])[i]);
}

Test(ref_reduce, top_k_of_too_few)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_top_k);
    CASE_ATTRS(c, top_k)->axis = 0;
    case_out(c, F32, DIMS(3));
    case_out(c, KILN_DTYPE_i64, DIMS(3));
    case_in(c, F32, DIMS(2), VALUES(1, 2));
    cr_expect_str_eq(case_run(c), "top_k of fewer than k elements");
    g_autoptr(RefCase) none = case_new(KILN_INSTR_top_k);
    CASE_ATTRS(none, top_k)->axis = 0;
    case_out(none, F32, DIMS(0));
    case_out(none, KILN_DTYPE_i64, DIMS(0));
    case_in(none, F32, DIMS(2), VALUES(1, 2));
    cr_expect_null(case_run(none));
}
