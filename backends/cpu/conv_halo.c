/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The padded, stride-free copy of an image. Which remainders modulo the stride occur repeats with
 * period stride / gcd(stride, dilation) over the taps, so slots need no table.
 */
#include "backends/cpu/conv_halo.h"

#include <string.h>

static int64_t
period_of(int64_t stride, int64_t dilation)
{
    int64_t a = stride, b = dilation % stride;
    while (b != 0) {
        int64_t r = a % b;
        a = b;
        b = r;
    }
    return stride / a;
}

static int64_t
slots_of(const KilnCpuConv *c, int d)
{
    int64_t period = period_of(c->stride[d], c->dilation[d]);
    return c->kernel[d] < period ? c->kernel[d] : period;
}

static bool
is_direct(const KilnCpuConv *c)
{
    for (int d = 0; d < 3; d++) {
        bool fits = c->pad[d] == 0 && (c->stride[d] == 1 || c->out[d] == 1) &&
                    c->out[d] + (c->kernel[d] - 1) * c->dilation[d] <= c->in[d];
        if (!fits)
            return false;
    }
    return true;
}

KilnHalo
kiln_halo_of(const KilnCpuConv *c)
{
    KilnHalo h = { .direct = is_direct(c) };
    int64_t extents[3], rows;
    bool too_big = false;
    for (int d = 0; d < 3; d++) {
        int64_t reach, last = c->kernel[d] > 0 ? c->kernel[d] - 1 : 0;
        too_big |= __builtin_mul_overflow(last, c->dilation[d], &reach);
        h.dims[d].slots = h.direct ? 1 : slots_of(c, d);
        h.dims[d].length = h.direct ? c->in[d] : c->out[d] + reach / c->stride[d];
        too_big |= __builtin_mul_overflow(h.dims[d].slots, h.dims[d].length, &extents[d]);
    }
    h.pitch[1] = extents[2];
    too_big |= __builtin_mul_overflow(extents[1], extents[2], &h.pitch[0]);
    too_big |= __builtin_mul_overflow(extents[0], h.pitch[0], &h.plane);
    too_big |= __builtin_mul_overflow(extents[0], extents[1], &rows);
    if (too_big)
        h.plane = INT64_MAX;
    return h;
}

int64_t
kiln_halo_tap(const KilnCpuConv *c, const KilnHalo *h, const int64_t t[3])
{
    int64_t at = 0;
    for (int d = 0; d < 3; d++) {
        int64_t reach = t[d] * c->dilation[d];
        int64_t pos = reach;
        if (!h->direct)
            pos = t[d] % period_of(c->stride[d], c->dilation[d]) * h->dims[d].length +
                  reach / c->stride[d];
        at += d == 2 ? pos : pos * h->pitch[d];
    }
    return at;
}

/* Image coordinate of row @pos (slot and position) of dim @d; may lie outside. */
static int64_t
coordinate(const KilnCpuConv *c, const KilnHalo *h, int d, int64_t pos)
{
    int64_t slot = pos / h->dims[d].length, q = pos % h->dims[d].length;
    return q * c->stride[d] + slot * c->dilation[d] % c->stride[d] - c->pad[d];
}

/* Smallest q ≥ 0 with q * stride + first ≥ bound, at most limit. */
static int64_t
first_at_least(int64_t bound, int64_t first, int64_t stride, int64_t limit)
{
    int64_t q = bound <= first ? 0 : (bound - first + stride - 1) / stride;
    return q < limit ? q : limit;
}

static void
copy_row(const KilnCpuConv *c, const KilnHalo *h, const float *restrict in, float *restrict dst)
{
    int64_t stride = c->stride[2], length = h->dims[2].length;
    for (int64_t slot = 0; slot < h->dims[2].slots; slot++, dst += length) {
        int64_t x = coordinate(c, h, 2, slot * length);
        int64_t lo = first_at_least(0, x, stride, length);
        int64_t hi = first_at_least(c->in[2], x, stride, length);
        memset(dst, 0, (size_t)(4 * lo));
        if (hi > lo && stride == 1) {
            memcpy(dst + lo, in + lo + x, (size_t)(4 * (hi - lo)));
        } else {
            for (int64_t q = lo; q < hi; q++)
                dst[q] = in[q * stride + x];
        }
        memset(dst + hi, 0, (size_t)(4 * (length - hi)));
    }
}

void
kiln_halo_copy(const KilnCpuConv *c, const KilnHalo *h, const float *in, float *plane,
               const int64_t range[2])
{
    int64_t rows1 = h->dims[1].slots * h->dims[1].length;
    for (int64_t row = range[0]; row < range[1]; row++) {
        int64_t z = coordinate(c, h, 0, row / rows1), y = coordinate(c, h, 1, row % rows1);
        float *dst = plane + row * h->pitch[1];
        if (z >= 0 && z < c->in[0] && y >= 0 && y < c->in[1])
            copy_row(c, h, in + (z * c->in[1] + y) * c->in[2], dst);
        else
            memset(dst, 0, (size_t)(4 * h->pitch[1]));
    }
}
