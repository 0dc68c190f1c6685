/* SPDX-License-Identifier: Apache-2.0 */
/* max_pool and average_pool in f32, one to three spatial dims.
 *
 * A row of the result is made in two steps: the rows that its windows cover are folded into one
 * row, with room for the padding at its ends, and that row is folded window by window. Windows
 * without an element give -inf (max) or 0 (average). Operands: result, data. */
#include "backends/cpu/elementwise.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/reduce.h"

#include <math.h>
#include <string.h>

enum {
    SLACK = 16, /* windows beyond the last one that KilnCpuWindows may read */
};

/* Dims that are missing stand in front, with extent 1. */
typedef struct {
    int64_t in[3], out[3], kernel[3], stride[3], dilation[3], pad[3], pad_end[3];
    int64_t planes;
    bool average, count_padding;
} Pool;

/* The four lists that both instructions have. */
typedef struct {
    KilnInts dilations, kernel_shape, pads, strides;
} Lists;

static Pool
pool_of(const KilnInstr *instr)
{
    const KilnType *out = cpu_type(instr, 0), *in = cpu_type(instr, 1);
    Pool p = { .planes = in->dims[0] * in->dims[1], .average = instr->kind != KILN_INSTR_max_pool };
    Lists l;
    if (p.average) {
        const KilnInstrAttrs_average_pool *a = kiln_instr_attrs(instr, average_pool);
        l = (Lists){ a->dilations, a->kernel_shape, a->pads, a->strides };
        p.count_padding = a->count_include_pad;
    } else {
        const KilnInstrAttrs_max_pool *a = kiln_instr_attrs(instr, max_pool);
        l = (Lists){ a->dilations, a->kernel_shape, a->pads, a->strides };
    }
    const int spatial = in->rank - 2;
    for (int d = 0; d < 3; d++) {
        const int from = d - (3 - spatial);
        const uint32_t i = (uint32_t)from;
        p.in[d] = from < 0 ? 1 : in->dims[from + 2];
        p.out[d] = from < 0 ? 1 : out->dims[from + 2];
        p.kernel[d] = from < 0 ? 1 : kiln_ints_at(l.kernel_shape, i, 1);
        p.stride[d] = from < 0 ? 1 : kiln_ints_at(l.strides, i, 1);
        p.dilation[d] = from < 0 ? 1 : kiln_ints_at(l.dilations, i, 1);
        p.pad[d] = from < 0 ? 0 : kiln_ints_at(l.pads, i, 0);
        p.pad_end[d] = from < 0 ? 0 : kiln_ints_at(l.pads, i + (uint32_t)spatial, 0);
    }
    return p;
}

/* How many of the taps of window @at of dim @d lie inside, or where padding counts in it too. What
   lies behind the padding (windows that hang over, by ceil_mode) never counts. */
static int64_t
count_taps(const Pool *p, int d, int64_t at)
{
    int64_t count = 0;
    for (int64_t k = 0; k < p->kernel[d]; k++) {
        const int64_t i = at * p->stride[d] - p->pad[d] + k * p->dilation[d];
        count += p->count_padding ? i < p->in[d] + p->pad_end[d] : i >= 0 && i < p->in[d];
    }
    return count;
}

/* Floats of a folded row: what all windows and those that are read beside them reach. */
static int64_t
row_floats(const Pool *p)
{
    const int64_t reach = (p->out[2] + SLACK) * p->stride[2] + p->kernel[2] * p->dilation[2];
    const int64_t row = MAX(reach, p->pad[2] + p->in[2]);
    return (row + 15) / 16 * 16;
}

typedef struct {
    Pool p;
    const KilnCpuReducers *reducers;
    KilnCpuBinaryRow fold;
    const float *in;
    float *out;
    float *counts;       /* per window of a row */
    float *rows;         /* one per thread */
    int64_t row, bundle; /* floats of a row; rows of the result of a task */
} Run;

/* Folds the rows under windows (z, y) of @plane into @row; what is left and right of it stays. */
static void
fold_rows(const Run *r, const float *plane, const int64_t at[2], float *row)
{
    const Pool *p = &r->p;
    bool first = true;
    for (int64_t k = 0; k < p->kernel[0] * p->kernel[1]; k++) {
        const int64_t z = at[0] * p->stride[0] - p->pad[0] + k / p->kernel[1] * p->dilation[0];
        const int64_t y = at[1] * p->stride[1] - p->pad[1] + k % p->kernel[1] * p->dilation[1];
        if (z < 0 || z >= p->in[0] || y < 0 || y >= p->in[1])
            continue;
        const float *x = plane + (z * p->in[1] + y) * p->in[2];
        if (first)
            memcpy(row, x, (size_t)p->in[2] * sizeof *x);
        else
            r->fold(row, row, x, p->in[2]);
        first = false;
    }
    for (int64_t i = 0; first && i < p->in[2]; i++)
        row[i] = p->average ? 0 : -INFINITY;
}

static void
run_task(const void *data, int64_t task, int thread)
{
    const Run *r = data;
    const Pool *p = &r->p;
    const int64_t per_plane = p->out[0] * p->out[1];
    const int64_t end = MIN((task + 1) * r->bundle, p->planes * per_plane);
    float *row = r->rows + thread * r->row;
    for (int64_t i = 0; i < r->row; i++)
        row[i] = p->average ? 0 : -INFINITY;
    for (int64_t i = task * r->bundle; i < end; i++) {
        const int64_t at[2] = { i % per_plane / p->out[1], i % p->out[1] };
        const float *plane = r->in + i / per_plane * p->in[0] * p->in[1] * p->in[2];
        fold_rows(r, plane, at, row + p->pad[2]);
        KilnCpuWindows w = { .out = r->out + i * p->out[2],
                             .x = row,
                             .n = p->out[2],
                             .stride = p->stride[2],
                             .taps = p->kernel[2],
                             .dilation = p->dilation[2] };
        if (p->average) {
            w.counts = r->counts;
            w.count = (float)MAX(1, count_taps(p, 0, at[0]) * count_taps(p, 1, at[1]));
            r->reducers->average_windows(&w);
        } else {
            r->reducers->max_windows(&w);
        }
    }
}

bool
kiln_cpu_pool_supports(const KilnInstr *instr)
{
    const int rank = cpu_type(instr, 1)->rank;
    if (rank < 3 || rank > 5 || !cpu_all_plain(instr, KILN_DTYPE_f32) || cpu_type(instr, 2))
        return false;
    Pool p = pool_of(instr);
    return p.kernel[0] > 0 && p.kernel[1] > 0 && p.kernel[2] > 0 && p.pad[2] >= 0;
}

size_t
kiln_cpu_pool_scratch(const KilnInstr *instr, int threads)
{
    Pool p = pool_of(instr);
    const int64_t counts = (p.out[2] + 15) / 16 * 16;
    return (size_t)(row_floats(&p) * threads + counts) * sizeof(float);
}

const char *
kiln_cpu_pool(const KilnKernelArgs *args)
{
    Run r = { .p = pool_of(args->instr),
              .reducers = kiln_cpu_reducers(KILN_CPU_ISA_AUTO),
              .in = args->data[1],
              .out = args->data[0],
              .counts = args->scratch };
    const Pool *p = &r.p;
    const int64_t rows = p->planes * p->out[0] * p->out[1];
    const KilnCpuBinary fold = p->average ? KILN_CPU_BINARY_add : KILN_CPU_BINARY_max;
    r.fold = kiln_cpu_rows(KILN_CPU_ISA_AUTO)->binary[fold][KILN_CPU_NONE_FIXED];
    r.row = row_floats(p);
    r.rows = r.counts + (p->out[2] + 15) / 16 * 16;
    for (int64_t q = 0; q < p->out[2]; q++)
        r.counts[q] = (float)MAX(1, count_taps(p, 2, q));
    const int64_t reads = p->in[2] * p->kernel[0] * p->kernel[1];
    r.bundle = MAX(1, 16384 / MAX(1, reads));
    kiln_cpu_parallel((rows + r.bundle - 1) / r.bundle, args->threads, run_task, &r);
    return NULL;
}
