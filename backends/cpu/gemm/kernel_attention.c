/* SPDX-License-Identifier: Apache-2.0 */
/* Scaled dot-product attention in f32: softmax(scale × Q Kᵀ + mask) V, a block of queries at a
 * time. The scores of a block are all that is ever stored of them: a product, softmax in place,
 * another product, each on the one thread that the block runs on. How queries are cut into blocks
 * follows from the shapes. Operands: result, queries, keys, values, mask. */
#include "backends/cpu/extents.h"
#include "backends/cpu/gemm/gemm.h"
#include "backends/cpu/isa.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/reduce/reduce.h"
#include "backends/cpu/reduce/softmax_loops.h"

enum {
    BLOCK_SCORES = 256 * 1024, /* floats of a block, about */
    BLOCK_ROWS_MIN = 64,       /* keys and values are packed anew for each block */
    BLOCK_ROWS_MAX = 256,
    TASKS = 8, /* enough for a team of up to 8 */
    FEW_ROWS =
        4, /* of a block: keys and values are read once for each, where packing takes longer */
};

/* Strides of the dims in front of the matrices, in floats; 0 is a broadcast. */
typedef struct {
    int64_t q[KILN_MAX_RANK], k[KILN_MAX_RANK], v[KILN_MAX_RANK], mask[KILN_MAX_RANK];
} Batch;

typedef struct {
    const KilnCpuReducers *reducers;
    int64_t queries, keys, depth, width; /* m, s, d, e of [m,d] · [s,d]ᵀ and [m,s] · [s,e] */
    int64_t rows, blocks;                /* of queries: per block, per batch item */
    int64_t items;
    int rank;
    int64_t dims[KILN_MAX_RANK];
    Batch batch;
    bool masked;
    int64_t mask_row, mask_col;
    float scale;
    float *out;
    const float *q, *k, *v, *mask;
    char *scratch;
    size_t scores_bytes, task_bytes;
} Attention;

/* --- the problem --- */

static int64_t
dim(const KilnType *type, int from_end)
{
    return type->rank >= from_end ? type->dims[type->rank - from_end] : 1;
}

/* As dims of the result's rank see operand @i, whose last two dims are a matrix. Its matrices may
 * lie in rows with gaps between them. */
static void
batch_strides(const KilnInstr *instr, uint32_t i, int rank, int64_t *strides)
{
    const KilnBuffer *buffer = kiln_instr_operand(instr, i);
    const KilnType *type = &buffer->type;
    int64_t step = dim(type, 1) * dim(type, 2);
    if (kiln_buffer_is_strided(buffer))
        step = kiln_buffer_region(buffer).pitch / (int64_t)sizeof(float);
    for (int d = rank - 1; d >= 0; d--) {
        int64_t extent = dim(type, rank - d + 2);
        strides[d] = extent == 1 ? 0 : step;
        step *= extent;
    }
}

/* @rows queries at a time. */
static KilnCpuGemm
scores_problem(const Attention *a, int64_t rows)
{
    KilnCpuGemm g = kiln_cpu_gemm_dense(rows, a->keys, a->depth);
    g.b_row = 1;
    g.b_col = a->depth;
    g.alpha = a->scale;
    g.bias_row = a->mask_row;
    g.bias_col = a->mask_col;
    return g;
}

static KilnCpuGemm
values_problem(const Attention *a, int64_t rows)
{
    return kiln_cpu_gemm_dense(rows, a->width, a->keys);
}

static size_t
aligned(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

/* Scratch of one thread: scores of a block, then what the products need. The last block may be
 * smaller, for which other sizes may be asked. */
static void
measure(Attention *a)
{
    const int64_t last = a->queries - (a->blocks - 1) * a->rows;
    size_t products = 0;
    a->scores_bytes = aligned((size_t)(a->rows * a->keys) * sizeof(float));
    for (int i = 0; i < 2; i++) {
        KilnCpuGemm scores = scores_problem(a, i ? last : a->rows);
        KilnCpuGemm values = values_problem(a, i ? last : a->rows);
        products = MAX(products, (size_t)kiln_cpu_gemm_scratch_size(&scores, 1));
        products = MAX(products, (size_t)kiln_cpu_gemm_scratch_size(&values, 1));
    }
    a->task_bytes = a->scores_bytes + aligned(products);
}

static Attention
attention_of(const KilnInstr *instr)
{
    const KilnType *out = cpu_type(instr, 0), *q = cpu_type(instr, 1), *k = cpu_type(instr, 2);
    const KilnType *v = cpu_type(instr, 3), *mask = cpu_type(instr, 4);
    Attention a = { .queries = dim(q, 2),
                    .keys = dim(k, 2),
                    .depth = dim(q, 1),
                    .width = dim(v, 1),
                    .items = 1,
                    .rank = out->rank - 2,
                    .masked = mask != NULL,
                    .scale = kiln_instr_attrs(instr, attention)->scale };
    for (int d = 0; d < a.rank; d++) {
        a.dims[d] = out->dims[d];
        a.items *= out->dims[d];
    }
    batch_strides(instr, 1, a.rank, a.batch.q);
    batch_strides(instr, 2, a.rank, a.batch.k);
    batch_strides(instr, 3, a.rank, a.batch.v);
    if (mask) {
        batch_strides(instr, 4, a.rank, a.batch.mask);
        a.mask_col = dim(mask, 1) == 1 ? 0 : 1;
        a.mask_row = dim(mask, 2) == 1 ? 0 : dim(mask, 1);
    }
    int64_t fit = BLOCK_SCORES / MAX(a.keys, 1), share = a.queries * a.items / TASKS;
    a.rows = CLAMP(MIN(fit, share), BLOCK_ROWS_MIN, BLOCK_ROWS_MAX);
    a.rows = MAX(MIN(a.rows, a.queries), 1);
    a.blocks = MAX(ceil_div(a.queries, a.rows), 1);
    measure(&a);
    return a;
}

/* --- running --- */

static int64_t
offset(const Attention *a, const int64_t *strides, int64_t item)
{
    int64_t at = 0;
    for (int d = a->rank - 1; d >= 0; d--) {
        at += item % a->dims[d] * strides[d];
        item /= a->dims[d];
    }
    return at;
}

/* One query: the same steps, on keys and values as they lie. */
static void
run_query(const Attention *a, int64_t item, int64_t query, float *scores)
{
    const float *mask = a->masked ? a->mask + offset(a, a->batch.mask, item) : NULL;
    a->reducers->row_dots(scores, a->q + offset(a, a->batch.q, item) + query * a->depth,
                          a->k + offset(a, a->batch.k, item), a->keys, a->depth);
    for (int64_t j = 0; j < a->keys; j++)
        scores[j] = scores[j] * a->scale + (mask ? mask[query * a->mask_row + j * a->mask_col] : 0);
    kiln_cpu_softmax_rows(a->reducers, scores, scores, 1, a->keys);
    a->reducers->row_sums(a->out + (item * a->queries + query) * a->width, scores,
                          a->v + offset(a, a->batch.v, item), a->keys, a->width);
}

static void
run_block(const void *data, int64_t task, int thread)
{
    const Attention *a = data;
    const int64_t item = task / a->blocks, first = task % a->blocks * a->rows;
    const int64_t rows = MIN(a->rows, a->queries - first);
    char *scratch = a->scratch + (size_t)thread * a->task_bytes;
    float *scores = (float *)(void *)scratch, *work = (float *)(void *)(scratch + a->scores_bytes);
    if (rows <= FEW_ROWS) {
        for (int64_t r = 0; r < rows; r++)
            run_query(a, item, first + r, scores);
        return;
    }
    KilnCpuGemm product = scores_problem(a, rows), weighted = values_problem(a, rows);
    KilnCpuGemmArgs scoring = { .a = a->q + offset(a, a->batch.q, item) + first * a->depth,
                                .b = a->k + offset(a, a->batch.k, item),
                                .out = scores,
                                .scratch = work,
                                .threads = 1 };
    if (a->masked)
        scoring.bias = a->mask + offset(a, a->batch.mask, item) + first * a->mask_row;
    kiln_cpu_gemm_run(&product, &scoring);
    kiln_cpu_softmax_rows(a->reducers, scores, scores, rows, a->keys);
    KilnCpuGemmArgs weighting = { .a = scores,
                                  .b = a->v + offset(a, a->batch.v, item),
                                  .out = a->out + (item * a->queries + first) * a->width,
                                  .scratch = work,
                                  .threads = 1 };
    kiln_cpu_gemm_run(&weighted, &weighting);
}

size_t
kiln_cpu_attention_scratch(const KilnInstr *instr, uint32_t form, int threads)
{
    (void)form;
    return attention_of(instr).task_bytes * (size_t)MAX(threads, 1);
}

const char *
kiln_cpu_attention(const KilnKernelArgs *args)
{
    Attention a = attention_of(args->instr);
    if (kiln_type_elements(cpu_type(args->instr, 0)) == 0)
        return NULL;
    a.reducers = kiln_cpu_reducers(KILN_CPU_ISA_AUTO);
    a.out = args->data[0];
    a.q = args->data[1];
    a.k = args->data[2];
    a.v = args->data[3];
    a.mask = a.masked ? args->data[4] : NULL;
    a.scratch = args->scratch;
    kiln_cpu_parallel(a.items * a.blocks, args->threads, run_block, &a);
    return NULL;
}
