/* SPDX-License-Identifier: Apache-2.0 */
/* The reference backend's pooling. */
#include "graph/base/number.h"
#include "ir/instr.h"
#include "ref_case.h"

#include <math.h>

#define F32 KILN_DTYPE_f32
#define I64 KILN_DTYPE_i64

static const double counting[] = { 1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13,
                                   14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25 };

/* A pool of [1,1,5,5] with the same kernel, stride and pads in both dims. */
static RefCase *
pool(KilnInstrKind kind, int64_t kernel, int64_t stride, int64_t pad, int64_t out)
{
    RefCase *c = case_new(kind);
    /* All pools begin with the same fields. */
    KilnInstrAttrs_max_pool *attrs = CASE_ATTRS(c, max_pool);
    attrs->kernel_shape = CASE_INTS(c, kernel, kernel);
    attrs->strides = CASE_INTS(c, stride, stride);
    attrs->dilations = CASE_INTS(c, 1, 1);
    attrs->pads = CASE_INTS(c, pad, pad, pad, pad);
    case_out(c, F32, DIMS(1, 1, out, out));
    case_in(c, F32, DIMS(1, 1, 5, 5), counting);
    return c;
}

Test(ref_pool, max_pool_with_padding)
{
    g_autoptr(RefCase) c = pool(KILN_INSTR_max_pool, 5, 1, 2, 5);
    case_gives(c,
               VALUES(13, 14, 15, 15, 15, 18, 19, 20, 20, 20, 23, 24, 25, 25, 25, 23, 24, 25, 25,
                      25, 23, 24, 25, 25, 25),
               0);
}

Test(ref_pool, max_pool_padding_never_wins)
{
    g_autoptr(RefCase) c = pool(KILN_INSTR_max_pool, 3, 3, 1, 2);
    for (int i = 0; i < 25; i++)
        ((float *)c->data[1])[i] = -100.f - (float)i;
    case_gives(c, VALUES(-100, -102, -110, -112), 0);
}

Test(ref_pool, max_pool_indices_in_both_orders)
{
    for (int order = 0; order < 2; order++) {
        g_autoptr(RefCase) c = case_new(KILN_INSTR_max_pool);
        KilnInstrAttrs_max_pool *attrs = CASE_ATTRS(c, max_pool);
        attrs->kernel_shape = CASE_INTS(c, 2, 2);
        attrs->strides = CASE_INTS(c, 2, 2);
        attrs->pads = CASE_INTS(c, 0, 0, 0, 0);
        attrs->storage_order = order;
        case_out(c, F32, DIMS(1, 2, 1, 2));
        case_in(c, F32, DIMS(1, 2, 2, 4), VALUES(9, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 9, 7, 8));
        case_out(c, I64, DIMS(1, 2, 1, 2));
        case_gives(c, VALUES(9, 8, 9, 8), 0);
        case_expect(c, 2, order ? VALUES(0, 7, 8 + 3, 8 + 7) : VALUES(0, 7, 8 + 5, 8 + 7), 0);
    }
}

Test(ref_pool, max_pool_keeps_nan_and_takes_the_first_of_equals)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_max_pool);
    CASE_ATTRS(c, max_pool)->kernel_shape = CASE_INTS(c, 3);
    CASE_ATTRS(c, max_pool)->strides = CASE_INTS(c, 3);
    CASE_ATTRS(c, max_pool)->pads = CASE_INTS(c, 0, 0);
    case_out(c, F32, DIMS(1, 1, 3));
    case_in(c, F32, DIMS(1, 1, 9), VALUES(INFINITY, NAN, 2, 5, 7, 7, NAN, NAN, 1));
    case_out(c, I64, DIMS(1, 1, 3));
    case_gives(c, VALUES(NAN, 7, NAN), 0);
    case_expect(c, 2, VALUES(1, 4, 6), 0);
}

/* The last window begins in the padding: ceil_mode may leave it without a single element. */
Test(ref_pool, a_window_without_elements)
{
    const KilnDType dtypes[] = { KILN_DTYPE_f32, KILN_DTYPE_f16, KILN_DTYPE_i8, KILN_DTYPE_u8 };
    const double least[] = { -INFINITY, -INFINITY, -128, 0 };
    for (int i = 0; i < 4; i++) {
        g_autoptr(RefCase) c = case_new(KILN_INSTR_max_pool);
        CASE_ATTRS(c, max_pool)->kernel_shape = CASE_INTS(c, 1);
        CASE_ATTRS(c, max_pool)->strides = CASE_INTS(c, 2);
        CASE_ATTRS(c, max_pool)->pads = CASE_INTS(c, 0, 2);
        case_out(c, dtypes[i], DIMS(1, 1, 2));
        case_in(c, dtypes[i], DIMS(1, 1, 1), VALUES(-3));
        case_out(c, I64, DIMS(1, 1, 2));
        case_gives(c, VALUES(dtypes[i] == KILN_DTYPE_u8 ? 0 : -3, least[i]), 0);
        case_expect(c, 2, VALUES(0, -1), 0);
    }
}

Test(ref_pool, max_pool_dilated_in_three_dims)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_max_pool);
    KilnInstrAttrs_max_pool *attrs = CASE_ATTRS(c, max_pool);
    attrs->kernel_shape = CASE_INTS(c, 2, 1, 2);
    attrs->dilations = CASE_INTS(c, 1, 1, 2);
    attrs->strides = CASE_INTS(c, 1, 1, 1);
    case_out(c, KILN_DTYPE_u8, DIMS(1, 1, 1, 2, 1));
    case_in(c, KILN_DTYPE_u8, DIMS(1, 1, 2, 2, 3),
            VALUES(1, 99, 3, 4, 99, 6, 7, 99, 250, 10, 99, 12));
    case_gives(c, VALUES(250, 12), 0);
}

Test(ref_pool, average_pool_with_and_without_padding)
{
    for (int count = 0; count < 2; count++) {
        g_autoptr(RefCase) c = pool(KILN_INSTR_average_pool, 3, 2, 1, 3);
        CASE_ATTRS(c, average_pool)->count_include_pad = count;
        double corner = count ? 16. / 9 : 4, edge = count ? 33. / 9 : 5.5;
        cr_assert_null(case_run(c));
        double found = kiln_element_as_f64(F32, c->data[0], 0);
        cr_expect_float_eq(found, corner, 1e-6, "%g", found);
        found = kiln_element_as_f64(F32, c->data[0], 1);
        cr_expect_float_eq(found, edge, 1e-6, "%g", found);
        cr_expect_eq(kiln_element_as_f64(F32, c->data[0], 4), 13);
    }
}

/* ceil_mode: [1, 2, 3, 4] padded by one on both sides is six cells; windows of three at 0, 3 fit,
 * with stride 2 the one at 4 hangs over by one cell, which nobody counts. */
Test(ref_pool, average_pool_does_not_count_what_hangs_over)
{
    for (int count = 0; count < 2; count++) {
        g_autoptr(RefCase) c = case_new(KILN_INSTR_average_pool);
        KilnInstrAttrs_average_pool *attrs = CASE_ATTRS(c, average_pool);
        attrs->kernel_shape = CASE_INTS(c, 3);
        attrs->strides = CASE_INTS(c, 2);
        attrs->pads = CASE_INTS(c, 1, 1);
        attrs->ceil_mode = true;
        attrs->count_include_pad = count;
        case_out(c, F32, DIMS(1, 1, 3));
        case_in(c, F32, DIMS(1, 1, 4), VALUES(1, 2, 3, 4));
        case_gives(c, count ? VALUES(1, 3, 2) : VALUES(1.5, 3, 4), 1e-7);
    }
}

Test(ref_pool, lp_pool)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_lp_pool);
    CASE_ATTRS(c, lp_pool)->kernel_shape = CASE_INTS(c, 2);
    CASE_ATTRS(c, lp_pool)->strides = CASE_INTS(c, 2);
    CASE_ATTRS(c, lp_pool)->pads = CASE_INTS(c, 1, 1);
    case_out(c, F32, DIMS(1, 1, 3));
    case_in(c, F32, DIMS(1, 1, 4), VALUES(-7, -3, 4, 2));
    case_gives(c, VALUES(7, 5, 2), 1e-6);
    CASE_ATTRS(c, lp_pool)->p = 1;
    case_gives(c, VALUES(7, 7, 2), 1e-6);
}

Test(ref_pool, max_unpool)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_max_unpool);
    case_out(c, F32, DIMS(1, 1, 3, 3));
    case_in(c, F32, DIMS(1, 1, 2, 2), VALUES(1, 2, 3, 4));
    case_in(c, I64, DIMS(1, 1, 2, 2), VALUES(8, 0, 4, 2));
    case_gives(c, VALUES(2, 0, 4, 0, 3, 0, 0, 0, 1), 0);
    ((int64_t *)c->data[2])[3] = 9;
    cr_expect_not_null(case_run(c));
    ((int64_t *)c->data[2])[3] = INT64_MIN;
    cr_expect_not_null(case_run(c));
}

/* Regions end with the element that their last numbers round to. */
Test(ref_pool, max_roi_pool)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_max_roi_pool);
    CASE_ATTRS(c, max_roi_pool)->spatial_scale = 0.5f;
    CASE_ATTRS(c, max_roi_pool)->pooled_shape = kiln_ints_make(c->arena, (int64_t[]){ 1, 2 }, 2);
    case_out(c, F32, DIMS(3, 1, 1, 2));
    case_in(c, F32, DIMS(1, 1, 2, 4), VALUES(1, 2, 3, 4, 8, 7, 6, -5));
    case_in(c, F32, DIMS(3, 5),
            VALUES(0, 0, 0, 6, 2, /* columns 0 … 3, rows 0 … 1 */
                   0, 3, 0, 3, 0, /* 1.5 rounds to 2; two bins share the element */
                   0, 6, 2, 10, 2));
    case_gives(c, VALUES(8, 6, 3, 3, -5, 0), 0);
    ((float *)c->data[2])[0] = 1;
    cr_expect_str_eq(case_run(c), "index out of range");
}

Test(ref_pool, global_pools)
{
    static const struct {
        KilnInstrKind kind;
        double expected[2];
    } rows[] = {
        { KILN_INSTR_global_average_pool, { 1, NAN } },
        { KILN_INSTR_global_max_pool, { 4, NAN } },
        { KILN_INSTR_global_lp_pool, { 5.4772255750516612, NAN } },
    };
    for (int i = 0; i < 3; i++) {
        g_autoptr(RefCase) c = case_new(rows[i].kind);
        case_out(c, F32, DIMS(1, 2, 1, 1));
        case_in(c, F32, DIMS(1, 2, 2, 2), VALUES(1, -3, 2, 4, INFINITY, NAN, 2, 3));
        case_gives(c, rows[i].expected, 1e-6);
    }
}

Test(ref_pool, global_pools_of_nothing)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_global_max_pool);
    case_out(c, F32, DIMS(1, 1, 1));
    case_in(c, F32, DIMS(1, 1, 0), NULL);
    case_gives(c, VALUES(-INFINITY), 0);
}
