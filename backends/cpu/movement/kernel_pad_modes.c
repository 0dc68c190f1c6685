/* SPDX-License-Identifier: Apache-2.0 */
/* pad by elements of the data: reflect, edge and wrap, of any element type. The dims behind the
 * last padded one make a unit, so that a row along that dim is a run of units: borders unit by
 * unit, the kept ones between them at once. The other dims say which row of the data a row of the
 * result comes from. Places of narrow borders are found once for all rows, and a row steps from the
 * one before. Operands: result, data. */
#include "backends/cpu/extents.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/parallel.h"
#include "ir/kernel.h"

#include <string.h>

enum {
    TASK_BYTES = 1 << 15,
    PLACES = 32, /* units of both borders, whose places are found once */
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
    int64_t places[PLACES];            /* in a row of the data, in bytes; if known */
    bool known;
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

/* Where unit @at of a row of the result lies in a row of the data. */
static int64_t
place_of(const Pad *pad, int64_t at)
{
    return source(&pad->dims[pad->last], pad->mode, at) * pad->unit;
}

/* @places: of the units from @first on, or NULL. */
static void
copy_units(const Pad *pad, char *to, const char *row, int64_t first, int64_t end,
           const int64_t *places)
{
    for (int64_t at = first; at < end; at++) {
        const char *from = row + (places ? places[at - first] : place_of(pad, at));
        if (pad->unit == 1)
            to[at] = *from;
        else if (pad->unit == 4)
            memcpy(to + at * 4, from, 4);
        else
            memcpy(to + at * pad->unit, from, (size_t)pad->unit);
    }
}

/* Which row of the result comes next, and what each dim adds to the place of its data. */
typedef struct {
    int64_t at[KILN_MAX_RANK], offsets[KILN_MAX_RANK];
} Row;

static Row
row_at(const Pad *pad, int64_t row)
{
    Row r = { .at = { 0 } };
    for (int d = pad->last - 1; d >= 0; d--) {
        const Dim *dim = &pad->dims[d];
        r.at[d] = row % dim->extent;
        r.offsets[d] = source(dim, pad->mode, r.at[d]) * dim->stride;
        row /= dim->extent;
    }
    return r;
}

static void
step(const Pad *pad, Row *r)
{
    for (int d = pad->last - 1; d >= 0; d--) {
        const Dim *dim = &pad->dims[d];
        const bool again = ++r->at[d] == dim->extent;
        r->at[d] = again ? 0 : r->at[d];
        r->offsets[d] = source(dim, pad->mode, r->at[d]) * dim->stride;
        if (!again)
            return;
    }
}

static void
run_task(const void *data, int64_t task, int thread)
{
    (void)thread;
    const Pad *pad = data;
    const Dim *dim = &pad->dims[pad->last];
    const int64_t first = task * pad->rows_per_task;
    const int64_t end = min_of(first + pad->rows_per_task, pad->rows);
    const int64_t left = min_of(dim->border, dim->extent), behind = dim->border + dim->n;
    const int64_t *places = pad->known ? pad->places : NULL;
    Row at = row_at(pad, first);
    for (int64_t row = first; row < end; row++, step(pad, &at)) {
        const char *from = pad->from;
        char *to = pad->to + row * dim->extent * pad->unit;
        for (int d = 0; d < pad->last; d++)
            from += at.offsets[d];
        copy_units(pad, to, from, 0, left, places);
        memcpy(to + dim->border * pad->unit, from + dim->low * pad->unit,
               (size_t)(dim->n * pad->unit));
        copy_units(pad, to, from, behind, dim->extent, places ? places + left : NULL);
    }
}

/* Notes where the units of both borders lie, if there is room for them. */
static void
find_places(Pad *pad)
{
    const Dim *dim = &pad->dims[pad->last];
    const int64_t left = min_of(dim->border, dim->extent), behind = dim->border + dim->n;
    pad->known = left + dim->extent - behind <= PLACES;
    for (int64_t i = 0; pad->known && i < left; i++)
        pad->places[i] = place_of(pad, i);
    for (int64_t i = behind; pad->known && i < dim->extent; i++)
        pad->places[left + i - behind] = place_of(pad, i);
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
    find_places(&pad);
    const int64_t row = pad.dims[pad.last].extent * pad.unit;
    pad.rows_per_task = units_per_task(TASK_BYTES, row);
    kiln_cpu_parallel(ceil_div(pad.rows, pad.rows_per_task), args->threads, run_task, &pad);
    return NULL;
}
