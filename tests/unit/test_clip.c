/* SPDX-License-Identifier: Apache-2.0 */
/* Two clips in a row and the one that stands for them, on every combination of bounds. */
#include "graph/kiln-types.h"
#include "passes/query/clip.h"

#include <criterion/criterion.h>
#include <math.h>

/* As the kernels do it: where x is equal to a bound, x stays. */
static double
apply(double x, KilnInterval interval)
{
    x = x >= interval.low || isnan(x) ? x : interval.low;
    return x <= interval.high || isnan(x) ? x : interval.high;
}

static bool
same(double a, double b)
{
    return (isnan(a) && isnan(b)) || (a == b && signbit(a) == signbit(b));
}

static const double bounds[] = { -INFINITY, -2, -1, -0.0, 0.0, 1, 2, INFINITY };
static const double numbers[] = { NAN, -INFINITY, -3, -2,  -1.5, -1, -0.5,    -0.0,
                                  0,   0.5,       1,  1.5, 2,    3,  INFINITY };

static bool
stands_for_both(KilnInterval first, KilnInterval second, KilnInterval one)
{
    bool equal = true;
    for (size_t i = 0; i < G_N_ELEMENTS(numbers); i++)
        equal &= same(apply(apply(numbers[i], first), second), apply(numbers[i], one));
    return equal;
}

Test(clip, chain)
{
    enum {
        N = G_N_ELEMENTS(bounds)
    };
    unsigned merged = 0;
    for (int i = 0; i < N * N * N * N; i++) {
        KilnInterval first = { bounds[i % N], bounds[i / N % N] };
        KilnInterval second = { bounds[i / (N * N) % N], bounds[i / (N * N * N)] }, one;
        if (!kiln_clip_chain(first, second, &one))
            continue;
        merged++;
        cr_assert(stands_for_both(first, second, one), "[%g,%g] and then [%g,%g] are not [%g,%g]",
                  first.low, first.high, second.low, second.high, one.low, one.high);
    }
    cr_assert(merged > N * N * N * N / 2);
}

Test(clip, relu)
{
    cr_assert(kiln_clip_is_relu((KilnInterval){ 0, INFINITY }, KILN_DTYPE_f32));
    cr_assert(kiln_clip_is_relu((KilnInterval){ 0, INFINITY }, KILN_DTYPE_i8));
    cr_assert_not(kiln_clip_is_relu((KilnInterval){ -0.0, INFINITY }, KILN_DTYPE_f32));
    cr_assert_not(kiln_clip_is_relu((KilnInterval){ 0, 6 }, KILN_DTYPE_f32));
    cr_assert_not(kiln_clip_is_relu((KilnInterval){ 0, INFINITY }, KILN_DTYPE_u8));
}
