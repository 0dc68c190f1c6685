/* SPDX-License-Identifier: Apache-2.0 */
/* reduce_sum, _mean, _l1, _l2, _sum_square, _max and _min, and the global pools, in f32.
 *
 * Neighbouring dims that are both kept or both reduced are one. Where the innermost is reduced,
 * rows are folded, else columns. Long rows are cut into pieces of a fixed length, whose results lie
 * in scratch: the order of a sum follows from the shape alone. Operands: result, data. */
#include "backends/cpu/fold.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/parallel.h"

enum {
    PIECE = KILN_CPU_FOLD_PIECE, /* floats of a row that one task folds */
    TASK_FLOATS = 16384,         /* what a task of several rows reads, about */
    COLUMNS = 256,               /* of a task */
};

typedef struct {
    int rank;
    int64_t dims[KILN_MAX_RANK], strides[KILN_MAX_RANK];
    int64_t count;
} Dims;

typedef struct {
    KilnInstrKind kind;
    KilnCpuFold fold;
    Dims kept, reduced;
    bool rows; /* the innermost dim is reduced; else it is the last of kept */
    int64_t inner;
    int64_t pieces; /* of a row, or of the columns */
    int64_t bundle; /* rows of a task */
    const KilnCpuReducers *reducers;
    const float *in;
    float *out;
    double *partial; /* of each piece of each row, where a row has several */
} Reduce;

static void
add_dim(Dims *dims, int64_t extent, int64_t stride)
{
    dims->dims[dims->rank] = extent;
    dims->strides[dims->rank] = stride;
    dims->rank++;
    dims->count *= extent;
}

/* @reduced has a bit per dim. Dims of extent 1 are left out. */
static void
cut_dims(const KilnType *type, uint32_t reduced, Reduce *r)
{
    int64_t step = 1, extent[KILN_MAX_RANK], stride[KILN_MAX_RANK];
    bool is_reduced[KILN_MAX_RANK];
    int n = 0; /* merged dims, the innermost first */
    for (int d = type->rank - 1; d >= 0; d--) {
        bool red = reduced >> d & 1;
        if (n > 0 && type->dims[d] == 1)
            continue;
        if (n > 0 && (is_reduced[n - 1] == red || extent[n - 1] == 1)) {
            extent[n - 1] *= type->dims[d];
            is_reduced[n - 1] = red;
        } else {
            extent[n] = type->dims[d];
            stride[n] = step;
            is_reduced[n++] = red;
        }
        step *= type->dims[d];
    }
    r->rows = n == 0 || is_reduced[0];
    r->inner = n == 0 ? 1 : extent[0];
    r->kept.count = r->reduced.count = 1;
    for (int d = n - 1; d > 0; d--)
        add_dim(is_reduced[d] ? &r->reduced : &r->kept, extent[d], stride[d]);
}

static uint32_t
reduced_dims(const KilnInstr *instr)
{
    if (instr->kind == KILN_INSTR_global_average_pool || instr->kind == KILN_INSTR_global_max_pool)
        return ~3u;
    /* The attributes of all reductions are the axes alone. */
    const KilnInts axes = kiln_instr_attrs(instr, reduce_sum)->axes;
    uint32_t bits = 0;
    for (uint32_t i = 0; i < axes.n; i++)
        bits |= 1u << (axes.v[i] < 0 ? axes.v[i] + cpu_type(instr, 1)->rank : axes.v[i]);
    return bits;
}

static Reduce
reduce_of(const KilnInstr *instr)
{
    Reduce r = { .kind = instr->kind,
                 .fold = kiln_cpu_fold_of(instr->kind),
                 .reducers = kiln_cpu_reducers(KILN_CPU_ISA_AUTO) };
    cut_dims(cpu_type(instr, 1), reduced_dims(instr), &r);
    const int64_t piece = r.rows ? PIECE : COLUMNS;
    r.pieces = MAX(1, (r.inner + piece - 1) / piece);
    r.bundle = MAX(1, TASK_FLOATS / MAX(1, r.inner * r.reduced.count));
    return r;
}

static float
finish(const Reduce *r, double folded)
{
    return kiln_cpu_fold_finish(r->kind, folded, r->reduced.count * (r->rows ? r->inner : 1));
}

/* Offset of element @i, counted through all dims in row-major order. */
static int64_t
offset_of(const Dims *dims, int64_t i)
{
    int64_t offset = 0;
    for (int d = dims->rank - 1; d >= 0; d--) {
        offset += i % dims->dims[d] * dims->strides[d];
        i /= dims->dims[d];
    }
    return offset;
}

/* --- rows --- */

static double
fold_rows(const Reduce *r, int64_t base, int64_t first, int64_t n)
{
    double folded = kiln_cpu_fold_start(r->fold);
    for (int64_t k = 0; k < r->reduced.count; k++) {
        const float *x = r->in + base + offset_of(&r->reduced, k) + first;
        for (int64_t i = 0; i < n; i += KILN_CPU_FOLD_BLOCK)
            folded = kiln_cpu_fold_join(
                r->fold, folded,
                r->reducers->fold[r->fold](x + i, MIN(KILN_CPU_FOLD_BLOCK, n - i)));
    }
    return folded;
}

static void
run_rows(const void *data, int64_t task, int thread)
{
    (void)thread;
    const Reduce *r = data;
    const int64_t end = MIN((task + 1) * r->bundle, r->kept.count);
    for (int64_t i = task * r->bundle; i < end; i++)
        r->out[i] = finish(r, fold_rows(r, offset_of(&r->kept, i), 0, r->inner));
}

static void
run_piece(const void *data, int64_t task, int thread)
{
    (void)thread;
    const Reduce *r = data;
    const int64_t first = task % r->pieces * PIECE;
    r->partial[task] =
        fold_rows(r, offset_of(&r->kept, task / r->pieces), first, MIN(PIECE, r->inner - first));
}

static void
join_pieces(const Reduce *r)
{
    for (int64_t i = 0; i < r->kept.count; i++) {
        double folded = kiln_cpu_fold_start(r->fold);
        for (int64_t k = 0; k < r->pieces; k++)
            folded = kiln_cpu_fold_join(r->fold, folded, r->partial[i * r->pieces + k]);
        r->out[i] = finish(r, folded);
    }
}

/* --- columns --- */

/* All but the innermost of the reduced dims are walked, that one is the rows of the columns. */
static void
run_columns(const void *data, int64_t task, int thread)
{
    (void)thread;
    const Reduce *r = data;
    const int64_t i = task / r->pieces, first = task % r->pieces * COLUMNS;
    const int last = r->reduced.rank - 1;
    const int64_t rows = last < 0 ? 1 : r->reduced.dims[last];
    KilnCpuColumns c = { .rows = rows,
                         .stride = last < 0 ? 0 : r->reduced.strides[last],
                         .width = MIN(COLUMNS, r->inner - first) };
    double acc[COLUMNS];
    for (int64_t k = 0; k < c.width; k++)
        acc[k] = kiln_cpu_fold_start(r->fold);
    for (int64_t k = 0; k < r->reduced.count; k += rows) {
        c.x = r->in + offset_of(&r->kept, i) + offset_of(&r->reduced, k) + first;
        r->reducers->fold_columns[r->fold](acc, &c);
    }
    for (int64_t k = 0; k < c.width; k++)
        r->out[i * r->inner + first + k] = finish(r, acc[k]);
}

/* --- the instructions --- */

bool
kiln_cpu_reduce_supports(const KilnInstr *instr)
{
    return cpu_all_plain(instr, KILN_DTYPE_f32);
}

size_t
kiln_cpu_reduce_scratch(const KilnInstr *instr, int threads)
{
    (void)threads;
    Reduce r = reduce_of(instr);
    return r.rows && r.pieces > 1 ? (size_t)(r.kept.count * r.pieces) * sizeof(double) : 0;
}

const char *
kiln_cpu_reduce(const KilnKernelArgs *args)
{
    Reduce r = reduce_of(args->instr);
    r.in = args->data[1];
    r.out = args->data[0];
    r.partial = args->scratch;
    if (!r.rows) {
        if (r.inner > 0)
            kiln_cpu_parallel(r.kept.count * r.pieces, args->threads, run_columns, &r);
    } else if (r.pieces == 1) {
        kiln_cpu_parallel((r.kept.count + r.bundle - 1) / r.bundle, args->threads, run_rows, &r);
    } else {
        kiln_cpu_parallel(r.kept.count * r.pieces, args->threads, run_piece, &r);
        join_pieces(&r);
    }
    return NULL;
}
