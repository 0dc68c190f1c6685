/* SPDX-License-Identifier: Apache-2.0 */
/* The padded, stride-free copy of an image. Which remainders modulo the stride occur repeats with
 * period stride / gcd(stride, dilation) over the taps, so slots need no table. */
#include "backends/cpu/conv/conv_halo.h"

#include "backends/cpu/conv/conv_kernel.h"

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

/* Image coordinate of the first position of slot @slot of dim @d; may lie outside. */
static int64_t
slot_start(const KilnCpuConv *c, int d, int64_t slot)
{
    return slot * c->dilation[d] % c->stride[d] - c->pad[d];
}

/* Smallest q ≥ 0 with q * stride + first ≥ bound, at most limit. */
static int64_t
first_at_least(int64_t bound, int64_t first, int64_t stride, int64_t limit)
{
    int64_t q = bound <= first ? 0 : (bound - first + stride - 1) / stride;
    return q < limit ? q : limit;
}

/* Counts through slots and positions of a dim without dividing. */
typedef struct {
    int64_t slot, q, x;
} Cursor;

static Cursor
cursor_at(const KilnCpuConv *c, const KilnHalo *h, int d, int64_t pos)
{
    Cursor at = { .slot = pos / h->dims[d].length, .q = pos % h->dims[d].length };
    at.x = slot_start(c, d, at.slot) + at.q * c->stride[d];
    return at;
}

/* To the next position; true when the dim is through and starts again. */
static bool
advance(const KilnCpuConv *c, const KilnHalo *h, int d, Cursor *at)
{
    at->x += c->stride[d];
    if (++at->q < h->dims[d].length)
        return false;
    at->q = 0;
    bool wrapped = ++at->slot == h->dims[d].slots;
    if (wrapped)
        at->slot = 0;
    at->x = slot_start(c, d, at->slot);
    return wrapped;
}

enum {
    SPANS = 8
}; /* slots of the innermost dim that are copied in one pass over the image */

/* What the slots from first on take from an image row: positions lo … hi, from coordinate x. */
typedef struct {
    int64_t first, n;
    int64_t lo[SPANS], hi[SPANS], x[SPANS];
} Spans;

static Spans
spans_from(const KilnCpuConv *c, const KilnHalo *h, int64_t first)
{
    int64_t left = h->dims[2].slots - first, length = h->dims[2].length, stride = c->stride[2];
    Spans s = { .first = first, .n = left < SPANS ? left : SPANS };
    for (int64_t i = 0; i < s.n; i++) {
        s.x[i] = slot_start(c, 2, first + i);
        s.lo[i] = first_at_least(0, s.x[i], stride, length);
        s.hi[i] = first_at_least(c->in[2], s.x[i], stride, length);
    }
    return s;
}

static void
copy_spans(const KilnCpuConv *c, const KilnHalo *h, const KilnHaloCopy *copy, const Spans *s)
{
    const KilnConvKernels *kernels = kiln_conv_kernels(c->isa, c->in[2]);
    int64_t rows1 = h->dims[1].slots * h->dims[1].length, length = h->dims[2].length;
    Cursor z = cursor_at(c, h, 0, copy->first / rows1), y = cursor_at(c, h, 1, copy->first % rows1);
    for (int64_t row = copy->first; row < copy->end; row++) {
        bool inside = z.x >= 0 && z.x < c->in[0] && y.x >= 0 && y.x < c->in[1];
        KilnHaloRow r = { .dst = copy->plane + row * h->pitch[1] + s->first * length,
                          .stride = c->stride[2],
                          .length = length };
        const float *src = copy->in + (inside ? (z.x * c->in[1] + y.x) * c->in[2] : 0);
        for (int64_t i = 0; i < s->n; i++, r.dst += length) {
            r.src = src + s->x[i];
            r.lo = inside ? s->lo[i] : 0;
            r.hi = inside ? s->hi[i] : 0;
            kernels->halo_row(&r);
        }
        if (advance(c, h, 1, &y))
            advance(c, h, 0, &z);
    }
}

void
kiln_halo_copy(const KilnCpuConv *c, const KilnHalo *h, const KilnHaloCopy *copy)
{
    for (int64_t slot = 0; slot < h->dims[2].slots; slot += SPANS) {
        Spans spans = spans_from(c, h, slot);
        copy_spans(c, h, copy, &spans);
    }
}
