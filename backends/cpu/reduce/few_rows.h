/* SPDX-License-Identifier: Apache-2.0 */
/* Products of one row with a matrix whose rows are read once and not packed: what attention of few
 * queries asks for. One file per instruction set includes this. */
#ifndef KILN_BACKENDS_CPU_REDUCE_FEW_ROWS_H
#define KILN_BACKENDS_CPU_REDUCE_FEW_ROWS_H

#include <stdint.h>

/* Lane 2i gets a[i] + a[i + VW / 2], and lane 2i + 1 the same of b. */
static inline V
fold_halves(V a, V b)
{
    return V_ADD(V_ZIP_LOW(a, b), V_ZIP_HIGH(a, b));
}

/* Lane i gets the sum of sums[i]. */
static inline V
sum_each(V sums[VW])
{
    for (int half = VW / 2; half > 0; half /= 2) {
        for (int i = 0; i < half; i++)
            sums[i] = fold_halves(sums[i], sums[i + half]);
    }
    return sums[0];
}

/* Of rows behind the last one it is the last one that counts, and nothing is stored. */
static void
row_dots(float *out, const float *x, const float *rows, int64_t n, int64_t depth)
{
    for (int64_t first = 0; first < n; first += VW) {
        const float *row[VW];
        V sums[VW];
        for (int64_t r = 0; r < VW; r++) {
            row[r] = rows + (first + r < n ? first + r : n - 1) * depth;
            sums[r] = V_SET1(0.0f);
        }
        for (int64_t i = 0; i < depth; i += VW) {
            MASK mask = V_MASK(depth - i);
            V part = V_LOAD_SOME(x + i, mask);
            for (int r = 0; r < VW; r++)
                sums[r] = V_FMA(part, V_LOAD_SOME(row[r] + i, mask), sums[r]);
        }
        V_STORE_SOME(out + first, V_MASK(n - first), sum_each(sums));
    }
}

enum {
    FEW_ROWS_VECTORS = 4 /* of a row at a time */
};

/* Some vectors of the result, of which @width floats count. Rows are added in two sums. */
static inline void
add_rows(float *out, const float *x, const float *rows, int64_t n, int64_t pitch, int64_t width)
{
    V even[FEW_ROWS_VECTORS], odd[FEW_ROWS_VECTORS];
    MASK mask[FEW_ROWS_VECTORS];
    for (int v = 0; v < FEW_ROWS_VECTORS; v++) {
        even[v] = odd[v] = V_SET1(0.0f);
        mask[v] = V_MASK(width - v * VW);
    }
    for (int64_t j = 0; j < n; j += 2) {
        V share = V_SET1(x[j]), next = V_SET1(j + 1 < n ? x[j + 1] : 0.0f);
        const float *row = rows + j * pitch, *behind = j + 1 < n ? row + pitch : row;
        for (int v = 0; v < FEW_ROWS_VECTORS; v++) {
            if (v * VW >= width)
                break;
            even[v] = V_FMA(share, V_LOAD_SOME(row + v * VW, mask[v]), even[v]);
            if (j + 1 < n)
                odd[v] = V_FMA(next, V_LOAD_SOME(behind + v * VW, mask[v]), odd[v]);
        }
    }
    for (int v = 0; v < FEW_ROWS_VECTORS && v * VW < width; v++)
        V_STORE_SOME(out + v * VW, mask[v], V_ADD(even[v], odd[v]));
}

static void
row_sums(float *out, const float *x, const float *rows, int64_t n, int64_t width)
{
    for (int64_t i = 0; i < width; i += FEW_ROWS_VECTORS * VW) {
        int64_t some = width - i < FEW_ROWS_VECTORS * VW ? width - i : FEW_ROWS_VECTORS * VW;
        add_rows(out + i, x, rows + i, n, width, some);
    }
}

#endif
