/* SPDX-License-Identifier: Apache-2.0 */
/* The reference backend on blocked layouts: an instruction gives what it gives on plain ones, laid
 * out anew; padding of results is 0. */
#include "ir/instr.h"
#include "ref_case.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define F32 KILN_DTYPE_f32

/* Gives the last operand a layout; its buffer grows to hold the padding. */
static void
case_layout(RefCase *c, const char *layout)
{
    uint32_t i = c->instr.n_operands - 1;
    c->buffers[i].type.layout = layout;
    size_t size = (size_t)kiln_type_bytes(&c->buffers[i].type);
    c->data[i] = realloc(c->data[i], size);
    memset(c->data[i], 0xa5, size);
}

static void
expect_floats(const void *data, const double *expected, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        cr_expect_eq((double)((const float *)data)[i], expected[i],
                     "element %d: expected %g, found %g", (int)i, expected[i],
                     (double)((const float *)data)[i]);
}

/* [1,3,2] in aBc2b: two blocks of two channels, the last channel of the second being padding. */
static const double blocked[] = { 1, 3, 2, 4, 5, 77, 6, 77 };

static void
blocked_in(RefCase *c)
{
    case_in(c, F32, DIMS(1, 3, 2), NULL);
    case_layout(c, "aBc2b");
    for (int i = 0; i < 8; i++)
        ((float *)c->data[c->instr.n_operands - 1])[i] = (float)blocked[i];
}

Test(ref_blocked, results_keep_a_padding_of_zero)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_exp);
    case_out(c, F32, DIMS(1, 3, 2));
    case_layout(c, "aBc2b");
    blocked_in(c);
    cr_expect_str_eq(case_kernel(c)->name, "ref:blocked_unary");
    cr_assert_null(case_run(c));
    const float *y = c->data[0];
    for (int i = 0; i < 8; i++) {
        float expected = blocked[i] == 77 ? 0 : (float)exp(blocked[i]);
        cr_expect_eq(y[i], expected, "element %d: %g", i, (double)y[i]);
    }
}

Test(ref_blocked, layouts_of_operands_may_differ)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_sub);
    case_out(c, F32, DIMS(1, 3, 2));
    case_in(c, F32, DIMS(3, 1), VALUES(10, 20, 30)); /* the key operand is plain */
    blocked_in(c);
    cr_assert_null(case_run(c));
    expect_floats(c->data[0], VALUES(9, 8, 17, 16, 25, 24), 6);
}

Test(ref_blocked, in_place)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_neg);
    case_out(c, F32, DIMS(1, 3, 2));
    case_layout(c, "aBc2b");
    blocked_in(c);
    void *own = c->data[0];
    c->data[0] = c->data[1];
    cr_assert_null(case_run(c));
    expect_floats(c->data[0], VALUES(-1, -3, -2, -4, -5, 0, -6, 0), 8);
    c->data[0] = own;
}

Test(ref_blocked, reductions_do_not_see_padding)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_reduce_sum);
    CASE_ATTRS(c, reduce_sum)->axes = CASE_INTS(c, 1);
    case_out(c, F32, DIMS(1, 1, 2));
    blocked_in(c);
    cr_assert_null(case_run(c));
    expect_floats(c->data[0], VALUES(9, 12), 2);
}

Test(ref_blocked, kernels_with_scratch_and_tests_of_their_own)
{
    g_autoptr(RefCase) conv = case_new(KILN_INSTR_conv);
    CASE_ATTRS(conv, conv)->dilations = CASE_INTS(conv, 1);
    CASE_ATTRS(conv, conv)->pads = CASE_INTS(conv, 0, 0);
    CASE_ATTRS(conv, conv)->strides = CASE_INTS(conv, 1);
    case_out(conv, F32, DIMS(1, 1, 2));
    blocked_in(conv);
    case_in(conv, F32, DIMS(1, 3, 1), VALUES(1, 10, 100));
    cr_assert_null(case_run(conv));
    expect_floats(conv->data[0], VALUES(531, 642), 2);
    g_autoptr(RefCase) cast = case_new(KILN_INSTR_cast);
    case_out(cast, KILN_DTYPE_i32, DIMS(1, 3, 2));
    case_layout(cast, "aBc2b");
    blocked_in(cast);
    cr_assert_null(case_run(cast));
    cr_expect_eq(((int32_t *)cast->data[0])[4], 5);
    cr_expect_eq(((int32_t *)cast->data[0])[5], 0);
}

Test(ref_blocked, absent_operands_and_errors)
{
    g_autoptr(RefCase) clip = case_new(KILN_INSTR_clip);
    case_out(clip, F32, DIMS(1, 3, 2));
    blocked_in(clip);
    case_absent(clip);
    case_in(clip, F32, SCALAR, VALUES(4));
    cr_assert_null(case_run(clip));
    expect_floats(clip->data[0], VALUES(1, 2, 3, 4, 4, 4), 6);
    g_autoptr(RefCase) top = case_new(KILN_INSTR_top_k);
    case_out(top, F32, DIMS(1, 3, 3));
    case_out(top, KILN_DTYPE_i64, DIMS(1, 3, 3));
    blocked_in(top);
    cr_expect_str_eq(case_run(top), "top_k of fewer than k elements");
}

Test(ref_blocked, tags_that_do_not_fit_are_refused)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_exp);
    case_out(c, F32, DIMS(3));
    case_in(c, F32, DIMS(3), VALUES(1, 2, 3));
    c->buffers[1].type.layout = "aBc2b";
    cr_expect_null(case_kernel(c));
}
