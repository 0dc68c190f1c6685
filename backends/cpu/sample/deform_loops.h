/* SPDX-License-Identifier: Apache-2.0 */
/* The loops of deform.h over the vector vocabulary. Each instruction set has a file that includes
 * this once, and defines DEFORM_LOOPS, the name of the table. */
#ifndef KILN_BACKENDS_CPU_SAMPLE_DEFORM_LOOPS_H
#define KILN_BACKENDS_CPU_SAMPLE_DEFORM_LOOPS_H

#include "backends/cpu/sample/deform.h"
#include "backends/cpu/simd/partial.h"
#include "backends/cpu/simd/unrolled.h"

#include <math.h>
#include <stddef.h>

enum {
    BLOCK = KILN_CPU_DEFORM_BLOCK,
};

/* The two neighbours of places along one dim: elements, and weights, which are 0 outside. */
typedef struct {
    int32_t at[2][BLOCK];
    float weights[2][BLOCK];
} Side;

/* Kernel element @shift of windows that begin at @base. The offset moves the window, and the kernel
 * element is counted from there in whole numbers: a sum in f32 of all three rounds otherwise. Far
 * outside one place is like another. No branches: the compiler makes vectors of it. */
static void
fill_side(const float *base, const float *offsets, int32_t shift, int64_t n, int64_t extent,
          Side *side)
{
    const float most = KILN_CPU_DEFORM_FAR;
    const int32_t last = (int32_t)extent - 1;
    for (int64_t i = 0; i < n; i++) {
        const float wanted = base[i] + offsets[i];
        const float low = wanted > -most ? wanted : -most;
        const float at = low < most ? low : most;
        const float first = floorf(at), behind = at - first;
        const int32_t one = (int32_t)first + shift, other = one + 1;
        side->weights[0][i] = one < 0 || one > last ? 0 : 1 - behind;
        side->weights[1][i] = other < 0 || other > last ? 0 : behind;
        side->at[0][i] = one < 0 ? 0 : one > last ? last : one;
        side->at[1][i] = other < 0 ? 0 : other > last ? last : other;
    }
}

static void
join_sides(const Side *y, const Side *x, const float *mask, int64_t width, int64_t n,
           KilnCpuPlaces *places)
{
    for (int k = 0; k < 4; k++) {
        const int32_t *rows = y->at[k / 2], *columns = x->at[k % 2];
        const float *high = y->weights[k / 2], *wide = x->weights[k % 2];
        for (int64_t i = 0; i < n; i++) {
            places->at[k][i] = rows[i] * (int32_t)width + columns[i];
            places->weights[k][i] = high[i] * wide[i];
        }
        for (int64_t i = 0; mask && i < n; i++)
            places->weights[k][i] *= mask[i];
    }
}

/* --- channels --- */

/* The corners of a place that weigh something. */
typedef struct {
    int n;
    const float *from[4];
    float weights[4];
} Corners;

static inline Corners
corners_of(const KilnCpuDeform *d, const KilnCpuPlaces *places, int64_t i)
{
    Corners corners = { .n = 0 };
    for (int k = 0; k < 4; k++) {
        if (places->weights[k][i] == 0)
            continue;
        corners.from[corners.n] = d->data + places->at[k][i] * d->channels;
        corners.weights[corners.n++] = places->weights[k][i];
    }
    return corners;
}

/* Channels @first … @end - 1. */
static inline void
sample(const Corners *corners, int64_t first, int64_t end, float *to)
{
    if (corners->n == 4) {
        const V w0 = V_SET1(corners->weights[0]), w1 = V_SET1(corners->weights[1]);
        const V w2 = V_SET1(corners->weights[2]), w3 = V_SET1(corners->weights[3]);
        for (int64_t c = first; c < end; c += VW) {
            V sum = V_MUL(w0, load_up_to(corners->from[0] + c, end - c));
            sum = V_FMA(w1, load_up_to(corners->from[1] + c, end - c), sum);
            sum = V_FMA(w2, load_up_to(corners->from[2] + c, end - c), sum);
            sum = V_FMA(w3, load_up_to(corners->from[3] + c, end - c), sum);
            store_up_to(to + (c - first), end - c, sum);
        }
        return;
    }
    for (int64_t c = first; c < end; c += VW) {
        V sum = V_SET1(0.0f);
        for (int k = 0; k < corners->n; k++)
            sum =
                V_FMA(V_SET1(corners->weights[k]), load_up_to(corners->from[k] + c, end - c), sum);
        store_up_to(to + (c - first), end - c, sum);
    }
}

/* Channels of an offset group may belong to several groups, which have columns of their own. */
static void
sample_channels(const KilnCpuDeform *d, const Corners *corners, int64_t offset_group, int64_t i,
                int64_t tap, float *columns)
{
    const int64_t taps = d->kernel[0] * d->kernel[1], share = d->channels / d->groups;
    const int64_t n = d->channels / d->offset_groups, end = (offset_group + 1) * n;
    for (int64_t c = offset_group * n, next; c < end; c = next) {
        const int64_t group = c / share, behind = (group + 1) * share;
        next = behind < end ? behind : end;
        float *to = columns + ((group * BLOCK + i) * taps + tap) * share + (c - group * share);
        sample(corners, c, next, to);
    }
}

static void
columns(const KilnCpuDeform *d, int64_t first, int64_t n, float *columns)
{
    const int64_t taps = d->kernel[0] * d->kernel[1];
    float y[BLOCK], x[BLOCK];
    KilnCpuPlaces places;
    Side rows, across;
    for (int64_t i = 0; i < n; i++) {
        y[i] = (float)((first + i) / d->out_width * d->stride[0] - d->pad[0]);
        x[i] = (float)((first + i) % d->out_width * d->stride[1] - d->pad[1]);
    }
    for (int64_t k = 0; k < d->offset_groups * taps; k++) {
        const int64_t tap = k % taps;
        const float *offsets = d->offsets + k * 2 * d->positions + first;
        const float *mask = d->mask ? d->mask + k * d->positions + first : NULL;
        fill_side(y, offsets, (int32_t)(tap / d->kernel[1] * d->dilation[0]), n, d->height, &rows);
        fill_side(x, offsets + d->positions, (int32_t)(tap % d->kernel[1] * d->dilation[1]), n,
                  d->width, &across);
        join_sides(&rows, &across, mask, d->width, n, &places);
        for (int64_t i = 0; i < n; i++) {
            const Corners corners = corners_of(d, &places, i);
            sample_channels(d, &corners, k / taps, i, tap, columns);
        }
    }
}

/* --- turning --- */

/* Interleaves the first half of the vectors with the second, again and again: then lane i of vector
 * k is lane k of vector i. */
static inline void
turn_tile(V x[VW])
{
    V y[VW];
    for (int left = VW; left > 1; left /= 2) {
        UNROLLED
        for (int i = 0; i < VW / 2; i++) {
            y[2 * i] = V_ZIP_LOW(x[i], x[i + VW / 2]);
            y[2 * i + 1] = V_ZIP_HIGH(x[i], x[i + VW / 2]);
        }
        UNROLLED
        for (int i = 0; i < VW; i++)
            x[i] = y[i];
    }
}

static void
turn(const float *from, int64_t rows, int64_t columns, int64_t begin, int64_t end, float *to)
{
    V x[VW];
    for (int64_t i = begin; i < end; i += VW) {
        for (int64_t k = 0; k < columns; k += VW) {
            UNROLLED
            for (int r = 0; r < VW; r++)
                x[r] = i + r < end ? load_up_to(from + (i + r) * columns + k, columns - k)
                                   : V_SET1(0.0f);
            turn_tile(x);
            for (int c = 0; c < VW && k + c < columns; c++)
                store_up_to(to + (k + c) * rows + i, end - i, x[c]);
        }
    }
}

const KilnCpuDeformLoops DEFORM_LOOPS = { .columns = columns, .turn = turn };

#endif
