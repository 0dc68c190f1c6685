/* SPDX-License-Identifier: Apache-2.0 */
/* reduce_sum, _mean, _l1, _l2, _sum_square, _max and _min, and the global pools, in f32.
 *
 * Neighbouring dims that are both kept or both reduced are one. Where the innermost is reduced,
 * rows are reduced, else columns. What is reduced to one element is a sequence, in row-major order
 * of the reduced dims, and the order of a sum follows from its length alone, not from where the
 * elements lie: blocks of a fixed length, which have groups, and pieces of several blocks. Where
 * rows have several pieces, these are tasks whose results lie in scratch. Operands: result, data.
 */
#include "backends/cpu/cost.h"
#include "backends/cpu/extents.h"
#include "backends/cpu/isa.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/reduce/cut_dims.h"
#include "backends/cpu/reduce/group_sums.h"
#include "backends/cpu/reduce/pool_windows.h"
#include "backends/cpu/reduce/reduce.h"

#include <string.h>

enum {
    PIECE = KILN_CPU_REDUCE_PIECE, /* floats of a sequence that one task reduces */
    BLOCK = KILN_CPU_REDUCE_BLOCK,
    TASK_FLOATS = 16384,               /* what a task of several rows reads, about */
    COLUMNS = KILN_CPU_REDUCE_COLUMNS, /* of a task */
};

typedef struct {
    KilnInstrKind kind;
    KilnCpuReduction by;
    CutDims cut;
    int64_t length; /* of a sequence */
    int64_t pieces; /* of a row, or of the columns */
    int64_t bundle; /* rows of a task */
    const KilnCpuReducers *reducers;
    const float *in;
    float *out;
    double *partial; /* of each piece of each row, where a row has several */
} Reduce;

static Reduce
reduce_of(const KilnInstr *instr)
{
    Reduce r = { .cut = cut_dims(cpu_type(instr, 1), reduced_dims(instr)),
                 .kind = instr->kind,
                 .by = kiln_cpu_reduction_of(instr->kind),
                 .reducers = kiln_cpu_reducers(KILN_CPU_ISA_AUTO) };
    r.length = r.cut.reduced.count * (r.cut.rows ? r.cut.inner : 1);
    r.pieces = r.cut.rows ? MAX(1, ceil_div(r.length, PIECE)) : ceil_div(r.cut.inner, COLUMNS);
    r.bundle = units_per_task(TASK_FLOATS, r.length);
    return r;
}

static float
finish(const Reduce *r, double result)
{
    return kiln_cpu_reduction_finish(r->kind, result, r->length);
}

/* A walk through dims in row-major order. */
typedef struct {
    int64_t index[KILN_MAX_RANK];
    int64_t offset;
} Cursor;

static Cursor
cursor_at(const Dims *dims, int64_t i)
{
    Cursor cursor = { .offset = 0 };
    for (int d = dims->rank - 1; d >= 0; d--) {
        cursor.index[d] = i % dims->dims[d];
        cursor.offset += cursor.index[d] * dims->strides[d];
        i /= dims->dims[d];
    }
    return cursor;
}

/* @n rows further; no further than to the end of those of the innermost dim. */
static void
walk(Cursor *cursor, const Dims *dims, int64_t n)
{
    for (int d = dims->rank - 1; d >= 0; d--, n = 1) {
        cursor->index[d] += n;
        cursor->offset += n * dims->strides[d];
        if (cursor->index[d] < dims->dims[d])
            return;
        cursor->offset -= dims->dims[d] * dims->strides[d];
        cursor->index[d] = 0;
    }
}

/* --- rows --- */

/* A block that lies in several places: elements @first to @end of @row. Groups are reduced where
 * they lie, or copied together. */
static double
reduce_parts(const Reduce *r, const float *row, int64_t first, int64_t end)
{
    KilnCpuLanes lanes = { .begun = false };
    float group[KILN_CPU_REDUCE_GROUP];
    int64_t skip = first % r->cut.inner, n_copied = 0;
    Cursor cursor = cursor_at(&r->cut.reduced, first / r->cut.inner);
    while (first < end) {
        const float *x = row + cursor.offset + skip;
        int64_t n = MIN(r->cut.inner - skip, end - first);
        const bool whole = n_copied == 0 && (n >= KILN_CPU_REDUCE_GROUP || n == end - first);
        if (whole) {
            n -= n == end - first ? 0 : n % KILN_CPU_REDUCE_GROUP;
            r->reducers->reduce_part[r->by](&lanes, x, n);
        } else {
            n = MIN(n, KILN_CPU_REDUCE_GROUP - n_copied);
            memcpy(group + n_copied, x, (size_t)n * sizeof *x);
            n_copied += n;
        }
        first += n;
        skip += n;
        if (skip == r->cut.inner) {
            walk(&cursor, &r->cut.reduced, 1);
            skip = 0;
        }
        if (n_copied == KILN_CPU_REDUCE_GROUP || (n_copied > 0 && first == end)) {
            r->reducers->reduce_part[r->by](&lanes, group, n_copied);
            n_copied = 0;
        }
    }
    return (double)r->reducers->reduce_value[r->by](&lanes);
}

/* Piece @piece of row @i. */
static double
reduce_piece(const Reduce *r, int64_t i, int64_t piece)
{
    const float *row = r->in + cursor_at(&r->cut.kept, i).offset;
    const int64_t end = MIN((piece + 1) * PIECE, r->length);
    double result = kiln_cpu_reduction_start(r->by);
    for (int64_t at = piece * PIECE; at < end; at += BLOCK) {
        const int64_t n = MIN(BLOCK, end - at);
        const double block = r->cut.reduced.count == 1 ? r->reducers->reduce[r->by](row + at, n)
                                                       : reduce_parts(r, row, at, at + n);
        result = kiln_cpu_reduction_join(r->by, result, block);
    }
    return result;
}

static void
run_rows(const void *data, int64_t task, int thread)
{
    (void)thread;
    const Reduce *r = data;
    const int64_t end = MIN((task + 1) * r->bundle, r->cut.kept.count);
    for (int64_t i = task * r->bundle; i < end; i++)
        r->out[i] = finish(r, reduce_piece(r, i, 0));
}

static void
run_piece(const void *data, int64_t task, int thread)
{
    (void)thread;
    const Reduce *r = data;
    r->partial[task] = reduce_piece(r, task / r->pieces, task % r->pieces);
}

static void
join_pieces(const Reduce *r)
{
    for (int64_t i = 0; i < r->cut.kept.count; i++) {
        double result = kiln_cpu_reduction_start(r->by);
        for (int64_t k = 0; k < r->pieces; k++)
            result = kiln_cpu_reduction_join(r->by, result, r->partial[i * r->pieces + k]);
        r->out[i] = finish(r, result);
    }
}

/* --- columns --- */

typedef struct {
    const Reduce *r;
    const float *x; /* the first element of each */
    int64_t width;
    Cursor cursor; /* at the next row */
} Columns;

/* Where the next rows begin. */
static void
find_rows(Columns *at, KilnCpuColumns *c)
{
    const Dims *reduced = &at->r->cut.reduced;
    const int last = reduced->rank - 1;
    c->stride = last < 0 ? 0 : reduced->strides[last];
    for (int64_t k = 0, n; k < c->n; k += n) {
        const int64_t left = last < 0 ? 1 : reduced->dims[last] - at->cursor.index[last];
        n = MIN(left, c->n - k);
        c->even = n == c->n && !c->last;
        for (int64_t i = 0; i < (c->even ? 1 : n); i++)
            c->rows[k + i] = at->x + at->cursor.offset + i * c->stride;
        walk(&at->cursor, reduced, n);
    }
}

/* Rows @first to @end, which are a block at most. */
static void
reduce_block(Columns *at, int64_t first, int64_t end, float *result)
{
    float lanes[KILN_CPU_REDUCE_GROUP / 4 * COLUMNS];
    KilnCpuColumns c = { .width = at->width, .lanes = lanes };
    for (int64_t row = first; row < end; row += KILN_CPU_REDUCE_GROUP) {
        c.n = MIN(KILN_CPU_REDUCE_GROUP, end - row);
        c.first = row == first;
        c.last = row + KILN_CPU_REDUCE_GROUP >= end;
        find_rows(at, &c);
        at->r->reducers->reduce_columns[at->r->by](result, &c);
    }
}

static void
reduce_piece_of_columns(Columns *at, int64_t first, int64_t end, double *piece)
{
    float result[COLUMNS];
    for (int64_t k = 0; k < at->width; k++)
        piece[k] = kiln_cpu_reduction_start(at->r->by);
    for (int64_t row = first; row < end; row += BLOCK) {
        reduce_block(at, row, MIN(row + BLOCK, end), result);
        kiln_cpu_reduction_join_all(at->r->by, piece, result, at->width);
    }
}

static void
run_columns(const void *data, int64_t task, int thread)
{
    (void)thread;
    const Reduce *r = data;
    const int64_t i = task / r->pieces, first = task % r->pieces * COLUMNS;
    double total[COLUMNS], piece[COLUMNS];
    Columns at = { .r = r,
                   .x = r->in + cursor_at(&r->cut.kept, i).offset + first,
                   .width = MIN(COLUMNS, r->cut.inner - first) };
    reduce_piece_of_columns(&at, 0, MIN(PIECE, r->length), total);
    for (int64_t row = PIECE; row < r->length; row += PIECE) {
        reduce_piece_of_columns(&at, row, MIN(row + PIECE, r->length), piece);
        for (int64_t k = 0; k < at.width; k++)
            total[k] = kiln_cpu_reduction_join(r->by, total[k], piece[k]);
    }
    for (int64_t k = 0; k < at.width; k++)
        r->out[i * r->cut.inner + first + k] = finish(r, total[k]);
}

/* --- the instructions --- */

size_t
kiln_cpu_reduce_scratch(const KilnInstr *instr, uint32_t form, int threads)
{
    (void)form;
    (void)threads;
    Reduce r = reduce_of(instr);
    return r.cut.rows && r.pieces > 1 ? (size_t)(r.cut.kept.count * r.pieces) * sizeof(double) : 0;
}

double
kiln_cpu_reduce_cost(const KilnInstr *instr)
{
    const int64_t rows = kiln_type_elements(cpu_type(instr, 0));
    const int64_t columns = rows ? kiln_type_elements(cpu_type(instr, 1)) / rows : 0;
    double terms[KILN_CPU_TERMS];
    if (instr->kind == KILN_INSTR_global_average_pool ||
        instr->kind == KILN_INSTR_global_max_pool) {
        const KilnCpuPoolShape shape = { .planes = rows, .in = { columns, 1, 1 } };
        kiln_global_pool_terms(&shape, terms);
        return kiln_cpu_cost(KILN_CPU_COST_global_pool, terms);
    }
    kiln_rows_terms(rows, columns, terms);
    return kiln_cpu_cost(KILN_CPU_COST_reduction, terms);
}

/* @n blocks of @block, joined to @result. */
static double
join_equal(KilnCpuReduction by, double result, double block, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        result = kiln_cpu_reduction_join(by, result, block);
    return result;
}

bool
kiln_cpu_reduce_equal(const KilnInstr *instr, const void *element, void *result)
{
    const Reduce r = reduce_of(instr);
    const int64_t n_pieces = r.length / PIECE, rest = r.length % PIECE;
    if (n_pieces > 1 << 24) /* a moment */
        return false;
    float equal[BLOCK], *to = result;
    for (int i = 0; i < BLOCK; i++)
        memcpy(&equal[i], element, sizeof equal[i]);
    const double start = kiln_cpu_reduction_start(r.by);
    const double block = r.reducers->reduce[r.by](equal, BLOCK);
    double last = join_equal(r.by, start, block, rest / BLOCK);
    if (rest % BLOCK)
        last = kiln_cpu_reduction_join(r.by, last, r.reducers->reduce[r.by](equal, rest % BLOCK));
    double all = last;
    if (n_pieces) {
        const double piece = join_equal(r.by, start, block, PIECE / BLOCK);
        all = join_equal(r.by, start, piece, n_pieces);
        all = rest ? kiln_cpu_reduction_join(r.by, all, last) : all;
    }
    *to = finish(&r, all);
    return true;
}

const char *
kiln_cpu_reduce(const KilnKernelArgs *args)
{
    Reduce r = reduce_of(args->instr);
    r.in = args->data[1];
    r.out = args->data[0];
    r.partial = args->scratch;
    if (!r.cut.rows) {
        if (r.cut.inner > 0)
            kiln_cpu_parallel(r.cut.kept.count * r.pieces, args->threads, run_columns, &r);
    } else if (r.pieces == 1) {
        kiln_cpu_parallel(ceil_div(r.cut.kept.count, r.bundle), args->threads, run_rows, &r);
    } else {
        kiln_cpu_parallel(r.cut.kept.count * r.pieces, args->threads, run_piece, &r);
        join_pieces(&r);
    }
    return NULL;
}
