/* SPDX-License-Identifier: Apache-2.0 */
/* The loops of region.h over the vector vocabulary. Each instruction set has a file that includes
 * this once, and defines REGION_LOOPS, the name of the table. */
#ifndef KILN_BACKENDS_CPU_SAMPLE_REGION_LOOPS_H
#define KILN_BACKENDS_CPU_SAMPLE_REGION_LOOPS_H

#include "backends/cpu/sample/region.h"
#include "backends/cpu/simd/partial.h"

#include <math.h>
#include <string.h>

enum {
    ROWS = 4, /* rows of bins at a time */
};

/* True where no lane is an infinity or NaN. @x is a sum of such numbers times 0. */
static inline bool
is_zero(V x)
{
    float lanes[VW];
    bool zero = true;
    V_STORE(lanes, x);
    for (int i = 0; i < VW; i++)
        zero &= lanes[i] == 0;
    return zero;
}

/* --- rows into strips --- */

static void
sum_rows(const KilnCpuRegion *r, int64_t p, const float *from)
{
    const KilnCpuRegionRow *begin = r->rows + r->row_begin[p], *end = r->rows + r->row_begin[p + 1];
    float *strip = r->strip + p * r->width;
    for (int64_t x = r->x_begin; x < r->x_end; x += VW) {
        V sum = V_SET1(0.0f);
        for (const KilnCpuRegionRow *row = begin; row < end; row++)
            sum = V_FMA(V_SET1(row->high), load_up_to(from + row->row * r->width + x, r->x_end - x),
                        sum);
        store_up_to(strip + x, r->x_end - x, sum);
    }
}

/* Returns the sum of what it read times 0. */
static inline V
join_rows(const KilnCpuRegion *r, int64_t p, const float *from, bool even)
{
    const KilnCpuRegionRow *begin = r->rows + r->row_begin[p], *end = r->rows + r->row_begin[p + 1];
    float *strip = r->strip + p * r->width;
    const V zero = V_SET1(0.0f);
    V seen = zero;
    for (int64_t x = r->x_begin; x < r->x_end; x += VW) {
        V best = V_SET1(-INFINITY);
        for (const KilnCpuRegionRow *row = begin; row < end; row++) {
            const V here = load_up_to(from + row->row * r->width + x, r->x_end - x);
            if (!even)
                best = V_MAX(best, V_MUL(V_SET1(row->low), here));
            best = V_MAX(best, even ? here : V_MUL(V_SET1(row->high), here));
            seen = V_FMA(here, zero, seen);
        }
        store_up_to(strip + x, r->x_end - x, best);
    }
    return seen;
}

/* --- columns into bins --- */

/* The columns of VW lanes from @lane on. */
static void
find_columns(const KilnCpuRegion *r, int64_t lane, int64_t *begin, int64_t *end)
{
    *begin = r->n_columns;
    *end = 0;
    for (int64_t i = lane; i < lane + VW; i++) {
        *begin = r->column_begin[i] < *begin ? r->column_begin[i] : *begin;
        *end = r->column_end[i] > *end ? r->column_end[i] : *end;
    }
}

/* Returns the sum of what it stored times 0. */
static V
sum_columns(const KilnCpuRegion *r, int64_t p, int64_t rows, int64_t lane, float *to)
{
    int64_t begin, end;
    V sums[ROWS], seen = V_SET1(0.0f);
    const float *strips[ROWS];
    find_columns(r, lane, &begin, &end);
    for (int i = 0; i < ROWS; i++) {
        sums[i] = V_SET1(0.0f);
        strips[i] = r->strip + (p + (i < rows ? i : 0)) * r->width;
    }
    for (int64_t k = begin; k < end; k++) {
        const V weight = V_LOAD(r->weights_x + k * r->lanes + lane);
        const int64_t at = r->columns[k];
        for (int i = 0; i < ROWS; i++)
            sums[i] = V_FMA(V_SET1(strips[i][at]), weight, sums[i]);
    }
    for (int64_t i = 0; i < rows; i++) {
        const V mean = V_MUL(sums[i], V_SET1(r->scale));
        seen = V_FMA(mean, V_SET1(0.0f), seen);
        store_up_to(to + (p + i) * r->bins_x + lane, r->bins_x - lane, mean);
    }
    return seen;
}

/* The weights of column @k for a number as @x is. */
static inline const float *
weights_for(const KilnCpuRegion *r, int64_t k, float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return r->weights_x + ((int64_t)(bits >> 31) * r->n_columns + k) * r->lanes;
}

static void
join_columns(const KilnCpuRegion *r, int64_t p, int64_t rows, int64_t lane, float *to)
{
    int64_t begin, end;
    V best[ROWS];
    const float *strips[ROWS];
    find_columns(r, lane, &begin, &end);
    for (int i = 0; i < ROWS; i++) {
        best[i] = V_SET1(-INFINITY);
        strips[i] = r->strip + (p + (i < rows ? i : 0)) * r->width;
    }
    for (int64_t k = begin; k < end; k++) {
        const V bias = V_LOAD(r->bias_x + k * r->lanes + lane);
        const int64_t at = r->columns[k];
        for (int i = 0; i < ROWS; i++) {
            const V weight = V_LOAD(weights_for(r, k, strips[i][at]) + lane);
            best[i] = V_MAX(best[i], V_FMA(V_SET1(strips[i][at]), weight, bias));
        }
    }
    for (int64_t i = 0; i < rows; i++) {
        const V floor = r->floor_y[p + i] == 0 ? V_SET1(0.0f) : V_LOAD(r->floor_x + lane);
        store_up_to(to + (p + i) * r->bins_x + lane, r->bins_x - lane, V_MAX(best[i], floor));
    }
}

/* --- planes --- */

static bool
mean_plane(const KilnCpuRegion *r, const float *from, float *to)
{
    V seen = V_SET1(0.0f);
    for (int64_t p = 0; p < r->bins_y; p++)
        sum_rows(r, p, from);
    for (int64_t lane = 0; lane < r->bins_x; lane += VW) {
        for (int64_t p = 0; p < r->bins_y; p += ROWS) {
            const int64_t rows = r->bins_y - p < ROWS ? r->bins_y - p : ROWS;
            seen = V_ADD(seen, sum_columns(r, p, rows, lane, to));
        }
    }
    return is_zero(seen);
}

/* Rows of bins that read nothing are 0. */
static void
clear_empty(const KilnCpuRegion *r, float *to)
{
    for (int64_t p = 0; p < r->bins_y; p++) {
        for (int64_t q = 0; q < r->bins_x && r->row_begin[p] == r->row_begin[p + 1]; q++)
            to[p * r->bins_x + q] = 0;
    }
}

static bool
max_plane(const KilnCpuRegion *r, const float *from, float *to)
{
    V seen = V_SET1(0.0f);
    for (int64_t p = 0; p < r->bins_y; p++)
        seen = V_ADD(seen, r->even ? join_rows(r, p, from, true) : join_rows(r, p, from, false));
    for (int64_t lane = 0; lane < r->bins_x; lane += VW) {
        for (int64_t p = 0; p < r->bins_y; p += ROWS)
            join_columns(r, p, r->bins_y - p < ROWS ? r->bins_y - p : ROWS, lane, to);
    }
    clear_empty(r, to);
    return is_zero(seen);
}

static bool
plane(const KilnCpuRegion *region, const float *from, float *to)
{
    return region->max ? max_plane(region, from, to) : mean_plane(region, from, to);
}

const KilnCpuRegionLoops REGION_LOOPS = { .plane = plane };

#endif
