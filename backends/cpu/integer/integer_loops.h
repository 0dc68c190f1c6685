/* SPDX-License-Identifier: Apache-2.0 */
/* The template of the loops of integer_kernel.h. One file per instruction set includes it. That
 * file defines ROWS and COLS of a tile, INTEGER_KERNELS, the name of the table, and
 *
 *   VI, LANES              a vector of i32, and how many it has
 *   VI_ZERO, VI_STORE(p, v)
 *   VI_BYTES(p)            LANES groups of four bytes of a panel
 *   VI_SPREAD(p)           four bytes of a row, copied to every group
 *   VI_DOT(sum, u, s)      sum plus the four products of u8 and s8 in each group
 *   VI_SLIDE(p, slide)     groups of LANES pixels of single bytes
 *   SCALE(to, sums, factors, one, steps)
 *                          scales a block of 16 sums with one factor, or one for each
 *   INTERLEAVE(from, to, c, flip)
 *                          interleaves four rows at the 16 columns from c on */
#ifndef KILN_BACKENDS_CPU_INTEGER_INTEGER_LOOPS_H
#define KILN_BACKENDS_CPU_INTEGER_INTEGER_LOOPS_H

#include "backends/cpu/integer/integer_kernel.h"
#include "backends/cpu/simd/unrolled.h"

#include <math.h>

enum {
    VECTORS = COLS / LANES,
    RANGE_LANES = 64,
};

/* @n_rows and @vectors are constants after inlining, so that all sums stay in registers. */
__attribute__((always_inline)) static inline void
tile_of(int n_rows, int vectors, const uint8_t *const *rows, const int8_t *panel, int64_t groups,
        int32_t *out)
{
    VI sum[ROWS][VECTORS];
    UNROLLED
    for (int r = 0; r < n_rows; r++) {
        UNROLLED
        for (int v = 0; v < vectors; v++)
            sum[r][v] = VI_ZERO;
    }
    for (int64_t g = 0; g < groups; g++, panel += COLS * KILN_INTEGER_GROUP) {
        VI column[VECTORS];
        UNROLLED
        for (int v = 0; v < vectors; v++)
            column[v] = VI_BYTES(panel + v * LANES * KILN_INTEGER_GROUP);
        UNROLLED
        for (int r = 0; r < n_rows; r++) {
            const VI row = VI_SPREAD(rows[r] + g * KILN_INTEGER_GROUP);
            UNROLLED
            for (int v = 0; v < vectors; v++)
                sum[r][v] = VI_DOT(sum[r][v], row, column[v]);
        }
    }
    UNROLLED
    for (int r = 0; r < n_rows; r++) {
        UNROLLED
        for (int v = 0; v < vectors; v++)
            VI_STORE(out + r * COLS + v * LANES, sum[r][v]);
    }
}

static void
tile(int n_rows, int64_t n_cols, const uint8_t *const *rows, const int8_t *panel, int64_t groups,
     int32_t *out)
{
    const int64_t vectors = (n_cols + LANES - 1) / LANES;
    if (n_rows == 1)
        tile_of(1, VECTORS, rows, panel, groups, out);
    else if (vectors == 1 && (int)LANES == (int)KILN_INTEGER_BLOCK)
        tile_of(ROWS, 1, rows, panel, groups, out);
    else if (vectors == 2 && (int)LANES == (int)KILN_INTEGER_BLOCK)
        tile_of(ROWS, 2, rows, panel, groups, out);
    else
        tile_of(ROWS, VECTORS, rows, panel, groups, out);
}

/* The constants of a tile of a convolution. */
typedef struct {
    int rows, vectors;
    bool slides;
} Tile;

__attribute__((always_inline)) static inline VI
pixels_at(const uint8_t *p, int v, bool slides, const KilnIntegerSlide *slide)
{
    return slides ? VI_SLIDE(p + v * LANES * slide->stride, slide)
                  : VI_BYTES(p + v * LANES * KILN_INTEGER_GROUP);
}

/* Like tile_of(), but the pixels are the unsigned side. */
__attribute__((always_inline)) static inline void
conv_of(Tile tile, const uint8_t *base, const KilnIntegerTaps *taps, const int8_t *weights,
        int32_t *out, int64_t pitch)
{
    VI sum[ROWS][VECTORS];
    UNROLLED
    for (int r = 0; r < tile.rows; r++) {
        UNROLLED
        for (int v = 0; v < tile.vectors; v++)
            sum[r][v] = VI_ZERO;
    }
    for (int64_t g = 0; g < taps->n; g++) {
        const uint8_t *at = base + taps->at[g];
        VI pixel[VECTORS];
        UNROLLED
        for (int v = 0; v < tile.vectors; v++)
            pixel[v] = pixels_at(at, v, tile.slides, taps->slide);
        UNROLLED
        for (int r = 0; r < tile.rows; r++, weights += KILN_INTEGER_GROUP) {
            const VI row = VI_SPREAD(weights);
            UNROLLED
            for (int v = 0; v < tile.vectors; v++)
                sum[r][v] = VI_DOT(sum[r][v], pixel[v], row);
        }
    }
    UNROLLED
    for (int r = 0; r < tile.rows; r++) {
        UNROLLED
        for (int v = 0; v < tile.vectors; v++)
            VI_STORE(out + r * pitch + v * LANES, sum[r][v]);
    }
}

static void
conv_tile(int64_t n_cols, const uint8_t *base, const KilnIntegerTaps *taps, const int8_t *weights,
          int32_t *out, int64_t pitch)
{
    const int64_t vectors = (n_cols + LANES - 1) / LANES;
    if (vectors == 1)
        conv_of((Tile){ ROWS, 1, false }, base, taps, weights, out, pitch);
    else if (vectors == 2)
        conv_of((Tile){ ROWS, 2, false }, base, taps, weights, out, pitch);
    else
        conv_of((Tile){ ROWS, VECTORS, false }, base, taps, weights, out, pitch);
}

static void
conv_row(int64_t n_cols, const uint8_t *base, const KilnIntegerTaps *taps, const int8_t *weights,
         int32_t *out)
{
    if (taps->slide && n_cols <= LANES)
        conv_of((Tile){ 1, 1, true }, base, taps, weights, out, 0);
    else if (taps->slide)
        conv_of((Tile){ 1, VECTORS, true }, base, taps, weights, out, 0);
    else
        conv_of((Tile){ 1, VECTORS, false }, base, taps, weights, out, 0);
}

static void
interleave(const uint8_t *const from[KILN_INTEGER_GROUP], uint8_t *to, int64_t n, uint8_t bit)
{
    for (int64_t c = 0; c < n; c += 16)
        INTERLEAVE(from, to, c, bit);
}

static void
fix(int32_t *sums, int64_t n, const KilnIntegerFix *f)
{
    const uint32_t row_zero = (uint32_t)f->row_zero, row_sum = (uint32_t)f->row_sum;
    int32_t *restrict to = sums;
    const int32_t *restrict columns = f->sums, *restrict base = f->base, *restrict zeros = f->zeros;
    if (!base) {
        for (int64_t c = 0; c < n; c++)
            to[c] = (int32_t)((uint32_t)to[c] - row_zero * (uint32_t)columns[c]);
        return;
    }
    for (int64_t c = 0; c < n; c++)
        to[c] = (int32_t)((uint32_t)to[c] + (uint32_t)base[c] - row_zero * (uint32_t)columns[c] -
                          row_sum * (uint32_t)zeros[c]);
}

static inline KilnIntegerSteps
steps_of(const KilnIntegerScale *s)
{
    return (KilnIntegerSteps){ .zero = s->zero,
                               .least = (float)((s->is_signed ? INT8_MIN : 0) - s->zero),
                               .most = (float)((s->is_signed ? INT8_MAX : UINT8_MAX) - s->zero) };
}

static void
scale(uint8_t *out, const int32_t *sums, int64_t n, const KilnIntegerScale *s)
{
    const KilnIntegerSteps steps = steps_of(s);
    if (s->one) {
        for (int64_t i = 0; i < n; i += KILN_INTEGER_BLOCK)
            SCALE(out + i, sums + i, s->factors, true, &steps);
    } else {
        for (int64_t i = 0; i < n; i += KILN_INTEGER_BLOCK)
            SCALE(out + i, sums + i, s->factors + i, false, &steps);
    }
}

static void
scale_rows(uint8_t *out, int64_t out_pitch, const int32_t *sums, int64_t pitch, int64_t n_rows,
           int64_t n, const KilnIntegerScale *s)
{
    KilnIntegerSteps steps = steps_of(s);
    for (int64_t r = 0; r < n_rows; r++, out += out_pitch, sums += pitch) {
        const float factor = s->factors[s->one ? 0 : r];
        steps.add = s->adds[r];
        for (int64_t i = 0; i < n; i += KILN_INTEGER_BLOCK)
            SCALE(out + i, sums + i, &factor, true, &steps);
    }
}

static uint32_t
flip(uint8_t *restrict to, const uint8_t *restrict from, int64_t n, uint8_t bit)
{
    uint32_t sum = 0;
    for (int64_t i = 0; i < n; i++) {
        to[i] = from[i] ^ bit;
        sum += to[i];
    }
    return sum;
}

/* Most strides are 1 and 2. */
static void
pick(uint32_t *restrict to, const uint32_t *restrict from, int64_t n, int64_t step)
{
    if (step == 1) {
        for (int64_t i = 0; i < n; i++)
            to[i] = from[i];
    } else if (step == 2) {
        for (int64_t i = 0; i < n; i++)
            to[i] = from[2 * i];
    } else {
        for (int64_t i = 0; i < n; i++)
            to[i] = from[i * step];
    }
}

static void
range(const float *x, int64_t n, float *low, float *high)
{
    float least[RANGE_LANES] = { 0 }, most[RANGE_LANES] = { 0 };
    int32_t odd[RANGE_LANES] = { 0 };
    int64_t i = 0;
    for (; i + RANGE_LANES <= n; i += RANGE_LANES) {
        for (int k = 0; k < RANGE_LANES; k++) {
            least[k] = x[i + k] < least[k] ? x[i + k] : least[k];
            most[k] = x[i + k] > most[k] ? x[i + k] : most[k];
            odd[k] |= x[i + k] != x[i + k];
        }
    }
    for (; i < n; i++) {
        least[0] = x[i] < least[0] ? x[i] : least[0];
        most[0] = x[i] > most[0] ? x[i] : most[0];
        odd[0] |= x[i] != x[i];
    }
    for (int k = 1; k < RANGE_LANES; k++) {
        least[0] = least[k] < least[0] ? least[k] : least[0];
        most[0] = most[k] > most[0] ? most[k] : most[0];
        odd[0] |= odd[k];
    }
    *low = odd[0] ? NAN : least[0];
    *high = odd[0] ? NAN : most[0];
}

const KilnIntegerKernels INTEGER_KERNELS = {
    .rows = ROWS,
    .cols = COLS,
    .tile = tile,
    .conv_tile = conv_tile,
    .conv_row = conv_row,
    .interleave = interleave,
    .fix = fix,
    .scale = scale,
    .scale_rows = scale_rows,
    .flip = flip,
    .pick = pick,
    .range = range,
};

#endif
