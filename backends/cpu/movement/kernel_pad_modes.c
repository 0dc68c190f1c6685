/* SPDX-License-Identifier: Apache-2.0 */
/* pad by elements of the data: reflect, edge and wrap, of any element type. The dims behind the
 * last padded one make a unit, so that a row along that dim is a run of units: borders unit by
 * unit, the kept ones between them at once. The other dims say which row of the data a row of the
 * result comes from. Operands: result, data. */
#include "backends/cpu/extents.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/parallel.h"
#include "ir/kernel.h"

#include <string.h>

enum {
    TASK_BYTES = 1 << 15,
};

typedef enum {
    REFLECT,
    EDGE,
    WRAP,
} Mode;

/* Elements [low, low + n) of a dim stay, from @border on in the result. */
typedef struct {
    int64_t low, n, border, extent, stride; /* stride: of the data, in bytes */
} Dim;

typedef struct {
    Mode mode;
    int last; /* the last padded dim */
    Dim dims[KILN_MAX_RANK];
    char *to;
    const char *from;
    int64_t unit, rows, rows_per_task; /* unit: bytes */
} Pad;

static int64_t
floor_mod(int64_t a, int64_t b)
{
    const int64_t rest = a % b;
    return rest < 0 ? rest + b : rest;
}

/* Borders are seldom wider than the data: then there is nothing to divide. */
static int64_t
reflected(int64_t i, int64_t n)
{
    if (i < 0 && -i < n)
        return -i;
    if (i >= n && i < 2 * n - 1)
        return 2 * (n - 1) - i;
    const int64_t period = 2 * (n - 1), phase = period > 0 ? floor_mod(i, period) : 0;
    return phase < n ? phase : period - phase;
}

/* The coordinate in the data of @at in the result. */
static int64_t
source(const Dim *dim, Mode mode, int64_t at)
{
    const int64_t i = at - dim->border, n = dim->n;
    if (i >= 0 && i < n)
        return dim->low + i;
    switch (mode) {
    case EDGE:
        return dim->low + (i < 0 ? 0 : n - 1);
    case WRAP:
        return dim->low + (i >= -n && i < 2 * n ? i + (i < 0 ? n : -n) : floor_mod(i, n));
    default:
        return dim->low + reflected(i, n);
    }
}

static void
copy_units(const Pad *pad, char *to, const char *row, int64_t first, int64_t end)
{
    const Dim *dim = &pad->dims[pad->last];
    for (int64_t at = first; at < end; at++) {
        const char *from = row + source(dim, pad->mode, at) * pad->unit;
        if (pad->unit == 4)
            memcpy(to + at * 4, from, 4);
        else
            memcpy(to + at * pad->unit, from, (size_t)pad->unit);
    }
}

static void
run_task(const void *data, int64_t task, int thread)
{
    (void)thread;
    const Pad *pad = data;
    const Dim *dim = &pad->dims[pad->last];
    const int64_t end = min_of((task + 1) * pad->rows_per_task, pad->rows);
    for (int64_t row = task * pad->rows_per_task; row < end; row++) {
        const char *from = pad->from;
        char *to = pad->to + row * dim->extent * pad->unit;
        int64_t rest = row;
        for (int d = pad->last - 1; d >= 0; d--) {
            const Dim *outer = &pad->dims[d];
            from += source(outer, pad->mode, rest % outer->extent) * outer->stride;
            rest /= outer->extent;
        }
        copy_units(pad, to, from, 0, min_of(dim->border, dim->extent));
        memcpy(to + dim->border * pad->unit, from + dim->low * pad->unit,
               (size_t)(dim->n * pad->unit));
        copy_units(pad, to, from, dim->border + dim->n, dim->extent);
    }
}

const char *
kiln_cpu_pad_modes(const KilnKernelArgs *args)
{
    const KilnInstrAttrs_pad *attrs = kiln_instr_attrs(args->instr, pad);
    const KilnType *out = cpu_type(args->instr, 0), *in = cpu_type(args->instr, 1);
    Pad pad = { .mode = strcmp(attrs->mode, "edge") == 0   ? EDGE
                        : strcmp(attrs->mode, "wrap") == 0 ? WRAP
                                                           : REFLECT,
                .to = args->data[0],
                .from = args->data[1],
                .unit = (int64_t)kiln_dtype_size(out->dtype),
                .rows = 1 };
    int64_t stride = pad.unit;
    for (int d = in->rank - 1; d >= 0; d--) {
        const int64_t begin = kiln_ints_at(attrs->pads, (uint32_t)d, 0);
        const int64_t end = kiln_ints_at(attrs->pads, (uint32_t)(d + in->rank), 0);
        const int64_t low = begin < 0 ? -begin : 0, high = end < 0 ? -end : 0;
        pad.dims[d] = (Dim){ .low = low,
                             .n = in->dims[d] - low - high,
                             .border = begin > 0 ? begin : 0,
                             .extent = out->dims[d],
                             .stride = stride };
        if (pad.dims[d].n <= 0)
            return "there is no element left to pad with";
        stride *= in->dims[d];
        if ((begin != 0 || end != 0) && pad.last < d)
            pad.last = d;
    }
    for (int d = pad.last + 1; d < in->rank; d++)
        pad.unit *= in->dims[d];
    for (int d = 0; d < pad.last; d++)
        pad.rows *= out->dims[d];
    if (in->rank == 0) {
        memcpy(args->data[0], args->data[1], (size_t)pad.unit);
        return NULL;
    }
    const int64_t row = pad.dims[pad.last].extent * pad.unit;
    pad.rows_per_task = units_per_task(TASK_BYTES, row);
    kiln_cpu_parallel(ceil_div(pad.rows, pad.rows_per_task), args->threads, run_task, &pad);
    return NULL;
}
