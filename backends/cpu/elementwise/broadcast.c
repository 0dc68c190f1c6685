/* SPDX-License-Identifier: Apache-2.0 */
/* Merging the dims of broadcast operands and walking through what is left. The result is cut into
 * tasks of about TASK_ELEMENTS: long rows into pieces, short rows bundled. */
#include "backends/cpu/elementwise/broadcast.h"

#include "backends/cpu/extents.h"
#include "backends/cpu/parallel.h"

enum {
    TASK_ELEMENTS = 16384,
};

/* Strides of @in as seen by the dims of @out, which it is aligned with at the right. */
static void
broadcast_strides(const KilnType *out, const KilnCpuOperand *in, int64_t strides[KILN_MAX_RANK])
{
    int64_t step = 1, before = in->rows > 1 ? kiln_type_elements(in->type) : 0;
    for (int d = out->rank - 1; d >= 0; d--) {
        int from = d - (out->rank - in->type->rank);
        int64_t dim = from < 0 ? 1 : in->type->dims[from];
        strides[d] = dim == 1 ? 0 : step;
        step *= dim;
        if (in->rows > 1 && (before /= dim) == in->rows)
            step = in->pitch;
    }
}

int
kiln_cpu_merge_dims(const KilnType *out, const KilnCpuOperand *in, int n_in,
                    int64_t dims[KILN_MAX_RANK], int64_t (*strides)[KILN_MAX_RANK])
{
    int rank = 0;
    for (int i = 0; i < n_in; i++)
        broadcast_strides(out, &in[i], strides[i]);
    for (int d = 0; d < out->rank; d++) {
        if (out->dims[d] == 1)
            continue;
        bool merges = rank > 0;
        for (int i = 0; merges && i < n_in; i++)
            merges = strides[i][rank - 1] == strides[i][d] * out->dims[d];
        if (merges)
            dims[rank - 1] *= out->dims[d];
        else
            dims[rank++] = out->dims[d];
        for (int i = 0; i < n_in; i++)
            strides[i][rank - 1] = strides[i][d];
    }
    if (rank == 0) { /* one element: a row with all operands fixed would do, too */
        dims[rank++] = 1;
        for (int i = 0; i < n_in; i++)
            strides[i][0] = 1;
    }
    return rank;
}

KilnCpuBroadcast
kiln_cpu_broadcast(KilnCpuOperand out, const KilnCpuOperand *in, int n_in)
{
    KilnCpuBroadcast b = { .n_in = n_in };
    KilnCpuOperand all[KILN_CPU_MAX_INPUTS + 1];
    for (int i = 0; i < n_in; i++)
        all[i] = in[i];
    all[n_in] = out;
    b.rank = kiln_cpu_merge_dims(out.type, all, n_in + 1, b.dims, b.strides);
    return b;
}

typedef struct {
    const KilnCpuBroadcast *b;
    KilnCpuRunFn fn;
    const void *data;
    int64_t rows;
    int64_t piece, pieces; /* elements of a piece of a row, pieces of a row */
    int64_t bundle;        /* pieces of a task */
} Walk;

/* Where row @row begins; its number is taken apart from the innermost outer dim on. */
static void
locate(const KilnCpuBroadcast *b, int64_t row, int64_t index[KILN_MAX_RANK], KilnCpuRun *run)
{
    run->at = 0;
    for (int i = 0; i < b->n_in; i++) {
        run->from[i] = 0;
        run->step[i] = b->strides[i][b->rank - 1];
    }
    for (int d = b->rank - 2; d >= 0; d--) {
        index[d] = row % b->dims[d];
        row /= b->dims[d];
        run->at += index[d] * b->strides[b->n_in][d];
        for (int i = 0; i < b->n_in; i++)
            run->from[i] += index[d] * b->strides[i][d];
    }
}

static void
next_row(const KilnCpuBroadcast *b, int64_t index[KILN_MAX_RANK], KilnCpuRun *run)
{
    for (int d = b->rank - 2; d >= 0; d--) {
        index[d]++;
        run->at += b->strides[b->n_in][d];
        for (int i = 0; i < b->n_in; i++)
            run->from[i] += b->strides[i][d];
        if (index[d] < b->dims[d])
            return;
        run->at -= b->dims[d] * b->strides[b->n_in][d];
        for (int i = 0; i < b->n_in; i++)
            run->from[i] -= b->dims[d] * b->strides[i][d];
        index[d] = 0;
    }
}

static void
run_piece(const Walk *w, const KilnCpuRun *row, int64_t piece)
{
    KilnCpuRun run = *row;
    int64_t first = piece * w->piece, left = w->b->dims[w->b->rank - 1] - first;
    run.n = left < w->piece ? left : w->piece;
    run.at += first;
    for (int i = 0; i < w->b->n_in; i++)
        run.from[i] += first * w->b->strides[i][w->b->rank - 1];
    w->fn(w->data, &run);
}

static void
run_task(const void *data, int64_t task, int thread)
{
    (void)thread;
    const Walk *w = data;
    int64_t first = task * w->bundle, end = first + w->bundle, index[KILN_MAX_RANK];
    KilnCpuRun row;
    if (end > w->rows * w->pieces)
        end = w->rows * w->pieces;
    locate(w->b, first / w->pieces, index, &row);
    if (w->pieces == 1) {
        row.n = w->piece;
        for (int64_t i = first; i < end; i++, next_row(w->b, index, &row))
            w->fn(w->data, &row);
    } else {
        run_piece(w, &row, first % w->pieces); /* a piece fills a task */
    }
}

void
kiln_cpu_broadcast_run(const KilnCpuBroadcast *b, int threads, KilnCpuRunFn fn, const void *data)
{
    Walk w = { .b = b, .fn = fn, .data = data, .rows = 1, .pieces = 1, .bundle = 1 };
    int64_t n = b->dims[b->rank - 1];
    for (int d = 0; d < b->rank - 1; d++)
        w.rows *= b->dims[d];
    if (w.rows == 0 || n == 0)
        return;
    w.piece = n < TASK_ELEMENTS ? n : TASK_ELEMENTS;
    w.pieces = ceil_div(n, w.piece);
    if (w.pieces == 1)
        w.bundle = TASK_ELEMENTS / w.piece;
    kiln_cpu_parallel(ceil_div(w.rows * w.pieces, w.bundle), threads, run_task, &w);
}
