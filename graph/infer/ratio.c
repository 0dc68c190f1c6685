/* SPDX-License-Identifier: Apache-2.0 */
/* Floats that are quotients of dims: `cast`, arithmetic and rounding of shape arithmetic that goes
 * by way of floats.
 *
 * A quotient stands for a float only where the arithmetic of kernels gives that float. So each
 * result must be a number that the type holds, with one exception: of a division of naturals the
 * nearest float is enough. It lies between the same whole numbers as the quotient, so that `floor`
 * and `ceil` are exact. For x / b < n ≤ x / b + 1 the distance to n is (b - r) / b ≥ 1 / b, where r
 * is what is left of x / b. It is rounded to n only where n·b > 2^bits, and x ≤ 2^bits leaves no
 * such n. The same holds of the whole number below.
 *
 * No result is -0: only positive factors and sums of what is not -0 are followed. */
#include "graph/dim/dim_small.h"
#include "graph/infer/common.h"
#include "graph/op/additive.h"
#include "graph/op/math.h"
#include "graph/op/multiplicative.h"

#include <float.h>
#include <math.h>

enum {
    UNDER_MAX = 1 << 30, /* greatest divisor of a quotient */
    CONSTANT_UNDER_MAX = 1 << 12
};

static const KilnRatio unknown = { NULL, 1 };

/* Bits that a float of @dtype counts with; 0 for other types. */
static int
bits_of(KilnDType dtype)
{
    return dtype == KILN_DTYPE_f32 ? FLT_MANT_DIG : dtype == KILN_DTYPE_f64 ? DBL_MANT_DIG : 0;
}

static bool
is_power_of_two(int64_t number)
{
    return (number & (number - 1)) == 0;
}

/* No number of @dim, perhaps with small names only, is farther from 0 than @most. */
static bool
is_within(const KilnDim *dim, int64_t most)
{
    int64_t lo, hi;
    kiln_dim_range(dim, &lo, &hi);
    if (lo >= -most && hi <= most)
        return true;
    kiln_dim_range_small(dim, &lo, &hi);
    if (lo < -most || hi > most)
        return false;
    kiln_dim_table_assume_small(kiln_dim_table_of(dim));
    return true;
}

bool
kiln_ratio_is_exact(KilnRatio ratio, KilnDType dtype)
{
    int64_t most = INT64_C(1) << bits_of(dtype), by = 1;
    if (!ratio.over || !bits_of(dtype) || !is_power_of_two(ratio.under))
        return false;
    /* An even number has a bit more. */
    while (most < INT64_MAX / 4 && by < UNDER_MAX &&
           kiln_dim_divides(2 * by, ratio.over) == KILN_ANSWER_YES) {
        by *= 2;
        most *= 2;
    }
    return is_within(ratio.over, most);
}

/* --- elements --- */

static KilnRatio
ratio_of_number(KilnDimTable *dims, double number)
{
    int64_t under = 1;
    if (!isfinite(number) || fabs(number) >= 0x1p40 || (number == 0 && signbit(number)))
        return unknown;
    for (; number != trunc(number) && under < CONSTANT_UNDER_MAX; under *= 2)
        number *= 2;
    return number == trunc(number) ? (KilnRatio){ kiln_dim_number(dims, (int64_t)number), under }
                                   : unknown;
}

static KilnRatio
ratio_of_constant(const KilnInfer *in, const KilnValue *value, int64_t k)
{
    double numbers[KILN_EXTENTS_MAX];
    int64_t n = 0;
    bool read = kiln_infer_floats(value, numbers, KILN_EXTENTS_MAX, &n) && k < n;
    return read ? ratio_of_number(in->dims, numbers[k]) : unknown;
}

KilnRatio
kiln_infer_ratio(const KilnInfer *in, uint32_t i, int64_t k)
{
    const KilnValue *value = kiln_node_operand(in->node, i);
    if (!value || !in->dims)
        return unknown;
    if (value->known)
        return (KilnRatio){ k < value->known->n ? kiln_dim_number(in->dims, value->known->v[k])
                                                : NULL,
                            1 };
    const KilnExtents *extents = value->extents;
    if (extents && k < extents->n)
        return (KilnRatio){ extents->v[k], extents->under ? extents->under[k] : 1 };
    return kiln_dtype_is_float(value->type.dtype) ? ratio_of_constant(in, value, k) : unknown;
}

/* --- arithmetic --- */

/* @over / @under with a smaller divisor, where that certainly is whole. */
static KilnRatio
reduced(KilnDimTable *dims, const KilnDim *over, int64_t under)
{
    for (int64_t by = under; over && by > 1; by = by % 2 ? 1 : by / 2) {
        if (under % by || kiln_dim_divides(by, over) != KILN_ANSWER_YES)
            continue;
        over = kiln_dim_floor(dims, over, kiln_dim_number(dims, by));
        under /= by;
    }
    return (KilnRatio){ under <= UNDER_MAX ? over : NULL, under };
}

/* Both must be exact. */
static KilnRatio
sum_of(KilnDimTable *dims, KilnRatio a, KilnRatio b, int64_t sign)
{
    int64_t under = MAX(a.under, b.under);
    const KilnDim *left = kiln_dim_scale(dims, a.over, under / a.under);
    const KilnDim *right = kiln_dim_scale(dims, b.over, under / b.under * sign);
    return reduced(dims, kiln_dim_add(dims, left, right), under);
}

static KilnRatio
product_of(KilnDimTable *dims, KilnRatio a, KilnRatio b)
{
    if (!kiln_infer_is_natural(a.over) || !kiln_infer_is_natural(b.over) ||
        a.under > UNDER_MAX / b.under)
        return unknown;
    return reduced(dims, kiln_dim_mul(dims, a.over, b.over), a.under * b.under);
}

/* @by is a number. Where no float holds the quotient, its dividend must be small. */
static KilnRatio
quotient_of(KilnDimTable *dims, KilnRatio a, KilnRatio by, KilnDType dtype)
{
    int64_t divisor, most = INT64_C(1) << bits_of(dtype);
    if (!kiln_infer_is_natural(a.over) || !kiln_dim_is_number(by.over, &divisor) || divisor < 1 ||
        divisor > MIN(most, UNDER_MAX / a.under))
        return unknown;
    KilnRatio out = reduced(dims, kiln_dim_scale(dims, a.over, by.under), a.under * divisor);
    return is_power_of_two(out.under) || is_within(a.over, most) ? out : unknown;
}

static KilnRatio
rounded(KilnDimTable *dims, KilnRatio a, bool up)
{
    if (!kiln_infer_is_natural(a.over))
        return unknown;
    const KilnDim *under = kiln_dim_number(dims, a.under);
    return (KilnRatio){ up ? kiln_dim_ceil(dims, a.over, under)
                           : kiln_dim_floor(dims, a.over, under),
                        1 };
}

static KilnRatio
negated(KilnDimTable *dims, KilnRatio a)
{
    int64_t lo, hi;
    kiln_dim_range(a.over, &lo, &hi);
    return lo > 0 || hi < 0 ? (KilnRatio){ kiln_dim_scale(dims, a.over, -1), a.under } : unknown;
}

bool
kiln_ratio_knows(KilnOp op)
{
    return op == KILN_OP_add || op == KILN_OP_sub || op == KILN_OP_mul || op == KILN_OP_div ||
           op == KILN_OP_neg || op == KILN_OP_floor || op == KILN_OP_ceil || op == KILN_OP_mod;
}

KilnRatio
kiln_ratio_calculate(KilnDimTable *dims, KilnOp op, KilnDType dtype, const KilnRatio v[2])
{
    if (!v[0].over)
        return unknown;
    if (op == KILN_OP_floor || op == KILN_OP_ceil)
        return rounded(dims, v[0], op == KILN_OP_ceil);
    if (!kiln_ratio_is_exact(v[0], dtype) ||
        (op != KILN_OP_neg && !kiln_ratio_is_exact(v[1], dtype)))
        return unknown;
    switch (op) {
    case KILN_OP_add:
        return sum_of(dims, v[0], v[1], 1);
    case KILN_OP_sub:
        return sum_of(dims, v[0], v[1], -1);
    case KILN_OP_mul:
        return product_of(dims, v[0], v[1]);
    case KILN_OP_div:
        return quotient_of(dims, v[0], v[1], dtype);
    case KILN_OP_neg:
        return negated(dims, v[0]);
    default:
        return unknown;
    }
}

KilnRatio
kiln_ratio_cast(KilnDimTable *dims, KilnRatio ratio, KilnDType from, KilnDType to)
{
    if (!ratio.over || ratio.under == 1)
        return ratio;
    if (kiln_dtype_is_float(to))
        return kiln_ratio_is_exact(ratio, from) ? ratio : unknown;
    return to == KILN_DTYPE_bool ? unknown : rounded(dims, ratio, false);
}
