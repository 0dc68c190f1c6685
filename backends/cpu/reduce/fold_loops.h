/* SPDX-License-Identifier: Apache-2.0 */
/* The loops of fold.h in plain C without branches, so that the compiler can vectorise them. A row
 * has sixteen numbers that are joined in their order at the end, on every instruction set. Each
 * instruction set has a file that includes this once, and defines FOLDS, the name of the table. */
#ifndef KILN_BACKENDS_CPU_REDUCE_FOLD_LOOPS_H
#define KILN_BACKENDS_CPU_REDUCE_FOLD_LOOPS_H

#include "backends/cpu/elementwise/wide_functions.h"
#include "backends/cpu/reduce/fold.h"
#include "backends/cpu/simd/unrolled.h"
#include "graph/kiln-types.h"

enum {
    FOLD_LANES = 16,
    EXTREME_LANES =
        32, /* a comparison and a choice wait for each other: more of them run at once */
};

/* A: what is accumulated; field: where it lies. @start changes nothing. @of is applied to an
 * element. */
#define FOLD(fold, id, T, A, field, start, of, join)                                               \
    static void row_##fold##_##id(const void *data, int64_t n, KilnCpuFolded *folded)              \
    {                                                                                              \
        const T *from = data;                                                                      \
        A lanes[FOLD_LANES];                                                                       \
        int64_t i = 0;                                                                             \
        for (int k = 0; k < FOLD_LANES; k++)                                                       \
            lanes[k] = (A)(start);                                                                 \
        for (; i + FOLD_LANES <= n; i += FOLD_LANES) {                                             \
            for (int k = 0; k < FOLD_LANES; k++) {                                                 \
                const A e = (A)from[i + k], x = (A)(of), a = lanes[k];                             \
                lanes[k] = (A)(join);                                                              \
            }                                                                                      \
        }                                                                                          \
        A a = (A)folded->field;                                                                    \
        for (; i < n; i++) {                                                                       \
            const A e = (A)from[i], x = (A)(of);                                                   \
            a = (A)(join);                                                                         \
        }                                                                                          \
        for (int k = 0; k < FOLD_LANES; k++) {                                                     \
            const A x = lanes[k];                                                                  \
            a = (A)(join);                                                                         \
        }                                                                                          \
        folded->field = a;                                                                         \
    }                                                                                              \
    static void columns_##fold##_##id(const void *data, int64_t n, KilnCpuFolded *folded)          \
    {                                                                                              \
        const T *from = data;                                                                      \
        EACH_BY_ITSELF                                                                             \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const A e = (A)from[i], x = (A)(of), a = (A)folded[i].field;                           \
            folded[i].field = (A)(join);                                                           \
        }                                                                                          \
    }
#define SUMS(id, T, A, field, size)                                                                \
    FOLD(sum, id, T, A, field, 0, e, a + x)                                                        \
    FOLD(sizes, id, T, A, field, 0, size, a + x)                                                   \
    FOLD(squares, id, T, A, field, 0, e *e, a + x)                                                 \
    FOLD(product, id, T, A, field, 1, e, a *x)
#define EXTREMES(id, T, field, least, most)                                                        \
    FOLD(max, id, T, T, field, least, e, a > x ? a : x)                                            \
    FOLD(min, id, T, T, field, most, e, a < x ? a : x)
SUMS(i64, int64_t, uint64_t, u, (int64_t)e < 0 ? 0 - e : e)
EXTREMES(i64, int64_t, s, INT64_MIN, INT64_MAX)
EXTREMES(u64, uint64_t, u, 0, UINT64_MAX)
EXTREMES(i32, int32_t, s, INT32_MIN, INT32_MAX)
SUMS(f64, double, double, f, __builtin_fabs(e))
/* A NaN on either side stays. Two numbers are looked at together: they compare if none is NaN. */
#define EXTREME_F64(fold, before)                                                                  \
    static void row_##fold##_f64(const void *data, int64_t n, KilnCpuFolded *folded)               \
    {                                                                                              \
        enum {                                                                                     \
            N = EXTREME_LANES,                                                                     \
            HALF = N / 2,                                                                          \
        };                                                                                         \
        const double *from = data;                                                                 \
        double lanes[N], a = folded->f;                                                            \
        int64_t odd[HALF] = { 0 }, any = 0, i = 0;                                                 \
        for (int k = 0; k < N; k++)                                                                \
            lanes[k] = a;                                                                          \
        for (; i + N <= n; i += N) {                                                               \
            for (int k = 0; k < HALF; k++) {                                                       \
                const double x = from[i + k], y = from[i + HALF + k];                              \
                const double b = lanes[k], c = lanes[HALF + k];                                    \
                lanes[k] = b before x ? b : x;                                                     \
                lanes[HALF + k] = c before y ? c : y;                                              \
                odd[k] |= __builtin_isunordered(x, y);                                             \
            }                                                                                      \
        }                                                                                          \
        for (; i < n; i++) {                                                                       \
            any |= from[i] != from[i];                                                             \
            a = a before from[i] ? a : from[i];                                                    \
        }                                                                                          \
        UNROLLED                                                                                   \
        for (int half = HALF; half > 0; half /= 2) {                                               \
            UNROLLED                                                                               \
            for (int k = 0; k < half; k++) {                                                       \
                lanes[k] = lanes[k] before lanes[half + k] ? lanes[k] : lanes[half + k];           \
                odd[k] |= half < HALF ? odd[half + k] : 0;                                         \
            }                                                                                      \
        }                                                                                          \
        any |= odd[0];                                                                             \
        a = a before lanes[0] ? a : lanes[0];                                                      \
        folded->f = any || folded->f != folded->f ? __builtin_nan("") : a;                         \
    }                                                                                              \
    static void columns_##fold##_f64(const void *data, int64_t n, KilnCpuFolded *folded)           \
    {                                                                                              \
        const double *from = data;                                                                 \
        EACH_BY_ITSELF                                                                             \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const double x = from[i], a = folded[i].f;                                             \
            folded[i].f = ((a before x) | (a != a)) ? a : x;                                       \
        }                                                                                          \
    }
EXTREME_F64(max, >)
EXTREME_F64(min, <)

static void
exp_row(const float *x, int64_t n, const KilnCpuFolded *most, KilnCpuFolded *folded)
{
    double lanes[FOLD_LANES] = { 0 };
    int64_t i = 0;
    for (; i + FOLD_LANES <= n; i += FOLD_LANES) {
        for (int k = 0; k < FOLD_LANES; k++)
            lanes[k] += wide_exp((double)x[i + k] - most->f);
    }
    for (; i < n; i++)
        folded->f += wide_exp((double)x[i] - most->f);
    for (int k = 0; k < FOLD_LANES; k++)
        folded->f += lanes[k];
}

static void
exp_columns(const float *x, int64_t n, const KilnCpuFolded *most, KilnCpuFolded *folded)
{
    EACH_BY_ITSELF
    for (int64_t i = 0; i < n; i++)
        folded[i].f += wide_exp((double)x[i] - most[i].f);
}

/* An unsigned integer is its own size; its sums are those of its signed image. */
#define LOOPS(kind)                                                                                \
    {                                                                                              \
        [KILN_CPU_FOLD_sum] = { [KILN_DTYPE_f64] = kind##_sum_f64,                                 \
                                [KILN_DTYPE_i64] = kind##_sum_i64,                                 \
                                [KILN_DTYPE_u64] = kind##_sum_i64 },                               \
        [KILN_CPU_FOLD_sizes] = { [KILN_DTYPE_f64] = kind##_sizes_f64,                             \
                                  [KILN_DTYPE_i64] = kind##_sizes_i64,                             \
                                  [KILN_DTYPE_u64] = kind##_sum_i64 },                             \
        [KILN_CPU_FOLD_squares] = { [KILN_DTYPE_f64] = kind##_squares_f64,                         \
                                    [KILN_DTYPE_i64] = kind##_squares_i64,                         \
                                    [KILN_DTYPE_u64] = kind##_squares_i64 },                       \
        [KILN_CPU_FOLD_product] = { [KILN_DTYPE_f64] = kind##_product_f64,                         \
                                    [KILN_DTYPE_i64] = kind##_product_i64,                         \
                                    [KILN_DTYPE_u64] = kind##_product_i64 },                       \
        [KILN_CPU_FOLD_max] = { [KILN_DTYPE_f64] = kind##_max_f64,                                 \
                                [KILN_DTYPE_i64] = kind##_max_i64,                                 \
                                [KILN_DTYPE_u64] = kind##_max_u64,                                 \
                                [KILN_DTYPE_i32] = kind##_max_i32 },                               \
        [KILN_CPU_FOLD_min] = { [KILN_DTYPE_f64] = kind##_min_f64,                                 \
                                [KILN_DTYPE_i64] = kind##_min_i64,                                 \
                                [KILN_DTYPE_u64] = kind##_min_u64,                                 \
                                [KILN_DTYPE_i32] = kind##_min_i32 },                               \
    }
const KilnCpuFoldRows FOLDS = {
    .row = LOOPS(row),
    .columns = LOOPS(columns),
    .exp_row = exp_row,
    .exp_columns = exp_columns,
};

#endif
