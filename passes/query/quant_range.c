/* SPDX-License-Identifier: Apache-2.0 */
#include "passes/query/quant_range.h"

#include <float.h>
#include <math.h>

enum {
    MAX_TRIALS = 1 << 20,
    MAX_ZERO_POINT = 1 << 20,
};

static bool
stored_range(KilnDType dtype, int64_t *lowest, int64_t *highest)
{
    switch (dtype) {
    case KILN_DTYPE_i8:
        *lowest = INT8_MIN, *highest = INT8_MAX;
        return true;
    case KILN_DTYPE_u8:
        *lowest = 0, *highest = UINT8_MAX;
        return true;
    case KILN_DTYPE_i16:
        *lowest = INT16_MIN, *highest = INT16_MAX;
        return true;
    case KILN_DTYPE_u16:
        *lowest = 0, *highest = UINT16_MAX;
        return true;
    default:
        return false;
    }
}

bool
kiln_quant_is_regular(const KilnType *type)
{
    int64_t lowest, highest;
    if (!type->quant || !type->quant->n || !stored_range(type->dtype, &lowest, &highest))
        return false;
    for (uint32_t i = 0; i < type->quant->n; i++) {
        float scale = type->quant->scales[i];
        int32_t zero_point = type->quant->zero_points[i];
        if (!(scale >= FLT_MIN && scale <= FLT_MAX) || zero_point < -MAX_ZERO_POINT ||
            zero_point > MAX_ZERO_POINT)
            return false;
    }
    return true;
}

bool
kiln_quant_is_per_axis(const KilnType *type)
{
    return type->quant && type->quant->axis >= 0;
}

bool
kiln_quant_is_uniform(const KilnType *type)
{
    return kiln_quant_is_regular(type) && type->quant->axis < 0;
}

KilnGrid
kiln_quant_grid(const KilnType *type, uint32_t i)
{
    const KilnQuant *quant = type->quant;
    uint32_t at = quant->axis < 0 ? 0 : i;
    KilnGrid grid = { .dtype = type->dtype,
                      .scale = quant->scales[at],
                      .zero_point = quant->zero_points[at] };
    if (!stored_range(type->dtype, &grid.lowest, &grid.highest))
        g_assert_not_reached(); /* a regular type has one */
    return grid;
}

uint32_t
kiln_quant_common(const KilnType *a, const KilnType *b)
{
    if (!kiln_quant_is_regular(a) || !kiln_quant_is_regular(b))
        return 0;
    if (a->quant->axis < 0 || b->quant->axis < 0)
        return MAX(a->quant->n, b->quant->n);
    return a->quant->axis == b->quant->axis && a->quant->n == b->quant->n ? a->quant->n : 0;
}

bool
kiln_quant_same(const KilnType *a, const KilnType *b)
{
    return a->dtype == b->dtype && kiln_quant_equal(a->quant, b->quant);
}

KilnType
kiln_quant_stored_as(const KilnType *type, const KilnType *stored)
{
    KilnType same = *type;
    same.dtype = stored->dtype;
    same.quant = stored->quant;
    return same;
}

void
kiln_quant_real_range(const KilnType *type, double *low, double *high)
{
    *low = INFINITY, *high = -INFINITY;
    for (uint32_t i = 0; i < type->quant->n; i++) {
        KilnGrid grid = kiln_quant_grid(type, i);
        *low = MIN(*low, kiln_grid_real(&grid, grid.lowest));
        *high = MAX(*high, kiln_grid_real(&grid, grid.highest));
    }
}

void
kiln_quant_steps(const KilnType *type, double *coarsest, double *finest)
{
    *coarsest = 0, *finest = INFINITY;
    for (uint32_t i = 0; i < type->quant->n; i++) {
        *coarsest = MAX(*coarsest, (double)type->quant->scales[i]);
        *finest = MIN(*finest, (double)type->quant->scales[i]);
    }
}

/* Half a step beyond the ends is rounded to them; 1 % of it is left to the roundings of f32. */
bool
kiln_quant_holds_reals(const KilnType *type, double low, double high)
{
    for (uint32_t i = 0; i < type->quant->n; i++) {
        KilnGrid grid = kiln_quant_grid(type, i);
        double margin = 0.49 * (double)grid.scale;
        if (!(low >= kiln_grid_real(&grid, grid.lowest) - margin) ||
            !(high <= kiln_grid_real(&grid, grid.highest) + margin))
            return false;
    }
    return true;
}

/* --- arithmetic --- */

double
kiln_grid_real(const KilnGrid *grid, int64_t stored)
{
    return (double)grid->scale * (double)(stored - grid->zero_point);
}

/* Rounded and stored; NaN stands for 0. */
static int64_t
store(const KilnGrid *grid, float steps)
{
    double stored = (isnan(steps) ? 0 : rint((double)steps)) + grid->zero_point;
    return (int64_t)CLAMP(stored, (double)grid->lowest, (double)grid->highest);
}

int64_t
kiln_grid_quantize(const KilnGrid *grid, float x)
{
    return store(grid, x / grid->scale);
}

float
kiln_grid_dequantize(const KilnGrid *grid, int64_t stored)
{
    return (float)(stored - grid->zero_point) * grid->scale;
}

int64_t
kiln_grid_rescale(const KilnGrid *from, const KilnGrid *to, int64_t stored)
{
    float factor = from->scale / to->scale;
    return store(to, (float)(stored - from->zero_point) * factor);
}

/* --- types --- */

/* True where @stored of @from is clamped when it is rescaled to @to. */
static bool
saturates(const KilnGrid *from, const KilnGrid *to, int64_t stored)
{
    float steps = (float)(stored - from->zero_point) * (from->scale / to->scale);
    double unclamped = rint((double)steps) + to->zero_point;
    return unclamped < (double)to->lowest || unclamped > (double)to->highest;
}

bool
kiln_quant_holds(const KilnType *to, const KilnType *from)
{
    uint32_t n = kiln_quant_common(to, from);
    for (uint32_t i = 0; i < n; i++) {
        KilnGrid source = kiln_quant_grid(from, i), target = kiln_quant_grid(to, i);
        if (saturates(&source, &target, source.lowest) ||
            saturates(&source, &target, source.highest))
            return false;
    }
    return n > 0;
}

bool
kiln_quant_clamps(const KilnType *narrow, const KilnType *wide)
{
    uint32_t n = kiln_quant_common(narrow, wide);
    for (uint32_t i = 0; i < n; i++) {
        KilnGrid source = kiln_quant_grid(wide, i), target = kiln_quant_grid(narrow, i);
        if (kiln_grid_rescale(&source, &target, source.lowest) != target.lowest ||
            kiln_grid_rescale(&source, &target, source.highest) != target.highest)
            return false;
    }
    return n > 0;
}

/* A detour ends on a stored number K with |K - v| <= 1/2 + r/2 for a real of v steps and steps of
 * the middle that are r wide; without it v is rounded, which stays within 1 of K while
 * |K - v| < 3/2. Where r is 2 exactly K itself is no further than 1 from v. */
bool
kiln_quant_steps_fit(const KilnType *middle, const KilnType *last)
{
    uint32_t n = kiln_quant_common(middle, last);
    for (uint32_t i = 0; i < n; i++) {
        KilnGrid detour = kiln_quant_grid(middle, i), target = kiln_quant_grid(last, i);
        double ratio = (double)detour.scale / (double)target.scale;
        if (ratio != 2 && !(ratio <= 1.9)) /* the rest is for the roundings of f32 */
            return false;
    }
    return n > 0;
}

static bool
detour_is_within(const KilnGrid *first, const KilnGrid *middle, const KilnGrid *last, int64_t steps)
{
    for (int64_t x = first->lowest; x <= first->highest; x++) {
        int64_t by_way = kiln_grid_rescale(middle, last, kiln_grid_rescale(first, middle, x));
        int64_t apart = by_way - kiln_grid_rescale(first, last, x);
        if (apart < -steps || apart > steps)
            return false;
    }
    return true;
}

bool
kiln_quant_detour_is_within(const KilnType *first, const KilnType *middle, const KilnType *last,
                            int64_t steps)
{
    uint32_t to_middle = kiln_quant_common(first, middle), n = kiln_quant_common(first, last);
    if (!to_middle || !n || !kiln_quant_common(middle, last))
        return false;
    n = MAX(n, to_middle);
    int64_t trials = n * (INT64_C(1) << (8 * kiln_dtype_size(first->dtype)));
    for (uint32_t i = 0; i < n && trials <= MAX_TRIALS; i++) {
        KilnGrid a = kiln_quant_grid(first, i), b = kiln_quant_grid(middle, i);
        KilnGrid c = kiln_quant_grid(last, i);
        if (!detour_is_within(&a, &b, &c, steps))
            return false;
    }
    return trials <= MAX_TRIALS;
}

static bool
rescale_is_exact(const KilnGrid *from, const KilnGrid *to)
{
    for (int64_t x = from->lowest; x <= from->highest; x++) {
        float real = kiln_grid_dequantize(to, kiln_grid_rescale(from, to, x));
        if (real != kiln_grid_dequantize(from, x))
            return false;
    }
    return true;
}

bool
kiln_quant_rescale_is_exact(const KilnType *from, const KilnType *to)
{
    uint32_t n = kiln_quant_common(from, to);
    int64_t trials = n ? n * (INT64_C(1) << (8 * kiln_dtype_size(from->dtype))) : 0;
    for (uint32_t i = 0; i < n && trials <= MAX_TRIALS; i++) {
        KilnGrid a = kiln_quant_grid(from, i), b = kiln_quant_grid(to, i);
        if (!rescale_is_exact(&a, &b))
            return false;
    }
    return n > 0 && trials <= MAX_TRIALS;
}

/* The product of steps, less than 2^21 of them, and the scale must not overflow; its rounding, and
 * that of the quotient, are then far below half a step. */
bool
kiln_quant_survives_f32(const KilnType *type)
{
    if (!kiln_quant_is_regular(type))
        return false;
    for (uint32_t i = 0; i < type->quant->n; i++) {
        if (!(type->quant->scales[i] <= FLT_MAX / 0x1p21f))
            return false;
    }
    return true;
}
