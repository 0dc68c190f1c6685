/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges of quantized types: the arithmetic is that of the reference kernels, and every question
 * about ranges is answered as trying all stored values would. */
#include "passes/query/quant_range.h"

#include "ir/instr.h"
#include "tests/unit/ref_case.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

/* Scales and zero points that are exact and inexact, powers of two, far apart, at the ends of the
 * range; those of the ranges [1,3], [0,4] and [2,4], which clamp to [2,3] together. */
static const struct {
    float scale;
    int32_t zero_point;
} parameters[] = {
    { 1, 0 },          { 0.5f, 3 },       { 0.1f, -5 },        { 0.05f, -128 },
    { 0.3f, 127 },     { 0.025f, 100 },   { 0.2f, -5 },        { 1e-3f, 0 },
    { 12.5f, -17 },    { 2.f / 255, 0 },  { 2.f / 255, -128 }, { 4.f / 255, -128 },
    { 1.f / 3, -100 }, { 0.4999999f, 1 }, { 0.99f, 0 },        { 1.f / 127, 0 },
};

static const KilnDType bytes[] = { KILN_DTYPE_i8, KILN_DTYPE_u8 };

enum {
    N_PARAMETERS = sizeof parameters / sizeof parameters[0],
    VALUES_OF_A_BYTE = 256,
};

typedef struct {
    KilnType type;
    KilnQuant quant;
    float scale;
    int32_t zero_point;
} Quantized;

/* Number @i of all combinations of element type and parameters. */
static void
quantized(Quantized *out, size_t i)
{
    KilnDType dtype = bytes[i % 2];
    out->scale = parameters[i / 2].scale;
    out->zero_point = parameters[i / 2].zero_point + (dtype == KILN_DTYPE_u8 ? 128 : 0);
    out->quant = (KilnQuant){ -1, 1, &out->scale, &out->zero_point };
    out->type = kiln_type_make(dtype, 1, (int64_t[]){ VALUES_OF_A_BYTE });
    out->type.quant = &out->quant;
}

static RefCase *
rescale_case(const Quantized *to, const Quantized *from)
{
    double all[VALUES_OF_A_BYTE];
    KilnGrid grid = kiln_quant_grid(&from->type, 0);
    for (int i = 0; i < VALUES_OF_A_BYTE; i++)
        all[i] = (double)(grid.lowest + i);
    RefCase *c = case_new(KILN_INSTR_rescale_quantized);
    case_out(c, to->type.dtype, DIMS(VALUES_OF_A_BYTE));
    case_in(c, from->type.dtype, DIMS(VALUES_OF_A_BYTE), all);
    c->buffers[0].type = to->type;
    c->buffers[1].type = from->type;
    return c;
}

#define FOR_EACH_PAIR(a, b)                                                                        \
    for (size_t i_##a = 0; i_##a < 2 * N_PARAMETERS; i_##a++)                                      \
        for (size_t i_##b = 0; quantized(&a, i_##a), i_##b < 2 * N_PARAMETERS; i_##b++)            \
            if (quantized(&b, i_##b), true)

Test(quant_range, rescales_as_the_kernel_does)
{
    Quantized a, b;
    FOR_EACH_PAIR(a, b)
    {
        g_autoptr(RefCase) c = rescale_case(&b, &a);
        KilnGrid from = kiln_quant_grid(&a.type, 0), to = kiln_quant_grid(&b.type, 0);
        double expected[VALUES_OF_A_BYTE];
        for (int i = 0; i < VALUES_OF_A_BYTE; i++)
            expected[i] = (double)kiln_grid_rescale(&from, &to, from.lowest + i);
        case_gives(c, expected, 0);
    }
}

Test(quant_range, quantizes_as_the_kernel_does)
{
    const double odd[] = { NAN, INFINITY, -INFINITY, FLT_MAX, -FLT_MAX, 0x1p-149, -0.0, 1e30 };
    for (size_t i = 0; i < 2 * N_PARAMETERS; i++) {
        Quantized q;
        quantized(&q, i);
        KilnGrid grid = kiln_quant_grid(&q.type, 0);
        double x[600], expected[600];
        for (int k = 0; k < 600; k++) { /* quarters of steps over more than the range */
            x[k] = k < 8 ? odd[k] : (double)((float)((k - 304) * 0.5) * q.scale);
            expected[k] = (double)kiln_grid_quantize(&grid, (float)x[k]);
        }
        g_autoptr(RefCase) c = case_new(KILN_INSTR_quantize_linear);
        case_out(c, q.type.dtype, DIMS(600));
        case_in(c, KILN_DTYPE_f32, DIMS(600), x);
        case_in(c, KILN_DTYPE_f32, SCALAR, VALUES((double)q.scale));
        case_in(c, q.type.dtype, SCALAR, VALUES(q.zero_point));
        case_gives(c, expected, 0);
    }
}

Test(quant_range, quantize_undoes_dequantize)
{
    for (size_t i = 0; i < 2 * N_PARAMETERS; i++) {
        Quantized q;
        quantized(&q, i);
        KilnGrid grid = kiln_quant_grid(&q.type, 0);
        cr_assert(kiln_quant_survives_f32(&q.type));
        for (int64_t x = grid.lowest; x <= grid.highest; x++)
            cr_assert_eq(kiln_grid_quantize(&grid, kiln_grid_dequantize(&grid, x)), x);
    }
    /* 16 bits, and scales at the ends of what is regular. */
    const float scales[] = { FLT_MIN, 0x1.fffffep-126f, 0.1f, 1e32f, FLT_MAX / 0x1p21f };
    for (size_t i = 0; i < G_N_ELEMENTS(scales); i++) {
        KilnQuant quant = { -1, 1, &scales[i], (int32_t[]){ -32768 } };
        KilnType type = kiln_type_make(KILN_DTYPE_i16, 0, NULL);
        type.quant = &quant;
        KilnGrid grid = kiln_quant_grid(&type, 0);
        cr_assert(kiln_quant_survives_f32(&type));
        for (int64_t x = grid.lowest; x <= grid.highest; x++)
            cr_assert_eq(kiln_grid_quantize(&grid, kiln_grid_dequantize(&grid, x)), x);
    }
    KilnQuant overflows = { -1, 1, (float[]){ FLT_MAX / 2 }, (int32_t[]){ 0 } };
    KilnType type = kiln_type_make(KILN_DTYPE_i8, 0, NULL);
    type.quant = &overflows;
    cr_expect_not(kiln_quant_survives_f32(&type));
}

/* --- ranges --- */

/* The stored number that @stored would become without an end of the range. */
static double
unclamped(const KilnGrid *from, const KilnGrid *to, int64_t stored)
{
    float steps = (float)(stored - from->zero_point) * (from->scale / to->scale);
    return rint((double)steps) + to->zero_point;
}

Test(quant_range, holds_is_that_nothing_saturates)
{
    Quantized a, b;
    int held = 0;
    FOR_EACH_PAIR(a, b)
    {
        KilnGrid from = kiln_quant_grid(&a.type, 0), to = kiln_quant_grid(&b.type, 0);
        bool all = true;
        for (int64_t x = from.lowest; x <= from.highest; x++)
            all &= unclamped(&from, &to, x) == (double)kiln_grid_rescale(&from, &to, x);
        cr_expect_eq(kiln_quant_holds(&b.type, &a.type), all, "%zu in %zu", i_a, i_b);
        held += all;
    }
    cr_expect_gt(held, 40);
    cr_expect_lt(held, 1000);
}

Test(quant_range, what_is_clamped_on_the_way_is_clamped_at_the_end)
{
    Quantized wide, narrow;
    int found = 0;
    FOR_EACH_PAIR(wide, narrow)
    {
        if (!kiln_quant_clamps(&narrow.type, &wide.type))
            continue;
        found++;
        KilnGrid from = kiln_quant_grid(&wide.type, 0), to = kiln_quant_grid(&narrow.type, 0);
        bool fits = kiln_quant_steps_fit(&wide.type, &narrow.type);
        /* Reals in quarters of the finer steps, from far below the range to far above. */
        for (int64_t k = -6000; k <= 6000; k++) {
            float x = (float)k * MIN(from.scale, to.scale) / 4;
            int64_t by_way = kiln_grid_rescale(&from, &to, kiln_grid_quantize(&from, x));
            int64_t direct = kiln_grid_quantize(&to, x);
            int64_t allowed = fits ? 1 : (int64_t)(0.5 * (double)(from.scale / to.scale) + 1);
            cr_assert_leq(llabs(by_way - direct), allowed, "%zu then %zu: %g", i_wide, i_narrow,
                          (double)x);
        }
    }
    cr_expect_gt(found, 40);
}

Test(quant_range, detours_are_tried_one_by_one)
{
    Quantized a, b, c;
    int close = 0;
    FOR_EACH_PAIR(a, b)
    {
        for (size_t i = 0; i < 2 * N_PARAMETERS; i++) {
            quantized(&c, i);
            KilnGrid first = kiln_quant_grid(&a.type, 0), middle = kiln_quant_grid(&b.type, 0);
            KilnGrid last = kiln_quant_grid(&c.type, 0);
            int64_t worst = 0;
            for (int64_t x = first.lowest; x <= first.highest; x++) {
                int64_t y = kiln_grid_rescale(&first, &middle, x);
                worst = MAX(worst, llabs(kiln_grid_rescale(&middle, &last, y) -
                                         kiln_grid_rescale(&first, &last, x)));
            }
            cr_expect_eq(kiln_quant_detour_is_within(&a.type, &b.type, &c.type, 1), worst <= 1);
            close += worst <= 1;
            if (kiln_quant_holds(&b.type, &a.type) && kiln_quant_steps_fit(&b.type, &c.type))
                cr_expect_leq(worst, 1, "%zu, %zu, %zu", i_a, i_b, i);
        }
    }
    cr_expect_gt(close, 1000);
}

/* Ranges of pytorch/glow#5729: what goes through all three is clamped to [2,3]. */
Test(quant_range, three_ranges_clamp_to_what_they_share)
{
    Quantized one_three, zero_four, two_four;
    quantized(&one_three, 0), quantized(&zero_four, 0), quantized(&two_four, 0);
    one_three.scale = two_four.scale = 0x1p-7f, zero_four.scale = 0x1p-6f;
    one_three.zero_point = -256, zero_four.zero_point = -128, two_four.zero_point = -384;
    KilnGrid ends = kiln_quant_grid(&one_three.type, 0);
    cr_expect_eq(kiln_grid_real(&ends, -128), 1);
    cr_expect_eq(kiln_grid_real(&ends, 127), 3 - 0x1p-7);
    cr_expect(kiln_quant_holds(&zero_four.type, &one_three.type));
    cr_expect_not(kiln_quant_holds(&one_three.type, &zero_four.type));
    cr_expect(kiln_quant_detour_is_within(&one_three.type, &zero_four.type, &two_four.type, 1));
    cr_expect_not(kiln_quant_detour_is_within(&zero_four.type, &one_three.type, &two_four.type, 1));
    cr_expect_not(kiln_quant_detour_is_within(&one_three.type, &two_four.type, &zero_four.type, 1));
    cr_expect(kiln_quant_clamps(&one_three.type, &zero_four.type));
    cr_expect_not(kiln_quant_clamps(&zero_four.type, &one_three.type));
}

/* --- what is looked at --- */

static bool
is_regular(KilnDType dtype, float scale, int32_t zero_point)
{
    KilnQuant quant = { -1, 1, &scale, &zero_point };
    KilnType type = kiln_type_make(dtype, 0, NULL);
    type.quant = &quant;
    return kiln_quant_is_regular(&type);
}

Test(quant_range, only_regular_types_are_looked_at)
{
    cr_expect(is_regular(KILN_DTYPE_i8, 0.5f, 0));
    cr_expect(is_regular(KILN_DTYPE_u16, FLT_MIN, 65535));
    cr_expect(is_regular(KILN_DTYPE_i8, 0.5f, -300));
    cr_expect_not(is_regular(KILN_DTYPE_i32, 0.5f, 0));
    cr_expect_not(is_regular(KILN_DTYPE_f32, 0.5f, 0));
    cr_expect_not(is_regular(KILN_DTYPE_i8, 0, 0));
    cr_expect_not(is_regular(KILN_DTYPE_i8, -1, 0));
    cr_expect_not(is_regular(KILN_DTYPE_i8, NAN, 0));
    cr_expect_not(is_regular(KILN_DTYPE_i8, INFINITY, 0));
    cr_expect_not(is_regular(KILN_DTYPE_i8, FLT_MIN / 2, 0));
    cr_expect_not(is_regular(KILN_DTYPE_i8, 1, INT32_MIN));
    KilnType plain = kiln_type_make(KILN_DTYPE_i8, 0, NULL);
    cr_expect_not(kiln_quant_is_regular(&plain));
    cr_expect_eq(kiln_quant_common(&plain, &plain), 0);
}

Test(quant_range, grids_go_together_by_axis)
{
    const float scales[] = { 0.5f, 0.25f };
    const int32_t zero_points[] = { 0, 3 };
    KilnQuant rows = { 0, 2, scales, zero_points }, columns = { 1, 2, scales, zero_points };
    KilnQuant all = { -1, 1, scales, zero_points };
    KilnType by_row = kiln_type_make(KILN_DTYPE_i8, 2, (int64_t[]){ 2, 2 });
    KilnType by_column = by_row, uniform = by_row;
    by_row.quant = &rows, by_column.quant = &columns, uniform.quant = &all;
    cr_expect_eq(kiln_quant_common(&uniform, &uniform), 1);
    cr_expect_eq(kiln_quant_common(&uniform, &by_row), 2);
    cr_expect_eq(kiln_quant_common(&by_row, &uniform), 2);
    cr_expect_eq(kiln_quant_common(&by_row, &by_row), 2);
    cr_expect_eq(kiln_quant_common(&by_row, &by_column), 0);
    cr_expect(kiln_quant_is_uniform(&uniform));
    cr_expect_not(kiln_quant_is_uniform(&by_row));
    /* Index 1 has half the range of index 0. */
    cr_expect_not(kiln_quant_holds(&by_row, &uniform));
    cr_expect(kiln_quant_clamps(&by_row, &by_row));
    cr_expect(kiln_quant_holds(&by_row, &by_row));
    cr_expect_not(kiln_quant_detour_is_within(&uniform, &by_row, &uniform, 1));
    cr_expect(kiln_quant_detour_is_within(&by_row, &by_row, &uniform, 1));
    cr_expect_not(kiln_quant_detour_is_within(&by_row, &by_column, &by_row, 1));
    KilnGrid second = kiln_quant_grid(&by_row, 1);
    cr_expect_eq(kiln_grid_real(&second, 7), 1);
}
