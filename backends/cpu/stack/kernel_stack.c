/* SPDX-License-Identifier: Apache-2.0 */
/* stack: the loops that stack_compile.c chose, over one tile after the other, each of which
 * reductions are made when it is done. Operands: results, then what the steps read. */
#include "backends/cpu/elementwise/elementwise.h"
#include "backends/cpu/elementwise/typed.h"
#include "backends/cpu/extents.h"
#include "backends/cpu/isa.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/reduce/group_sums.h"
#include "backends/cpu/reduce/reduce.h"
#include "backends/cpu/stack/stack.h"
#include "ir/stack.h"

#include <math.h>
#include <string.h>

typedef struct {
    const KilnCpuStack *stack;
    void *const *data;
    char *scratch;
    int64_t tiles; /* of all rows */
    const KilnCpuReducers *reducers;
    double *partial; /* of each piece of each row for each reduction, where rows have several */
} Run;

/* --- loops --- */

#define FILL(T)                                                                                    \
    do {                                                                                           \
        const T x = *(const T *)from;                                                              \
        for (int64_t i = 0; i < n; i++)                                                            \
            ((T *)to)[i] = x;                                                                      \
    } while (0)

static void
fill(void *to, const void *from, int64_t n, size_t size)
{
    if (size == 1)
        memset(to, *(const uint8_t *)from, (size_t)n);
    else if (size == 2)
        FILL(uint16_t);
    else if (size == 4)
        FILL(uint32_t);
    else
        FILL(uint64_t);
}

/* A bound that is NaN makes every element NaN, as the instruction does. */
static void
clip(const KilnCpuStackOp *op, float *out, void *const *at, int64_t n)
{
    const KilnCpuParams bounds = { *(const float *)at[op->in[1]], *(const float *)at[op->in[2]] };
    op->row.unary(out, at[op->in[0]], n, &bounds);
    for (int64_t i = 0; (isnan(bounds.a) || isnan(bounds.b)) && i < n; i++)
        out[i] = NAN;
}

static void
run_op(const KilnCpuStackOp *op, void *const *at, int64_t n)
{
    void *out = at[op->out];
    const void *a = at[op->in[0]], *b = at[op->in[1]], *c = at[op->in[2]];
    n = op->once ? 1 : n;
    switch (op->kind) {
    case KILN_CPU_STACK_UNARY:
        op->row.unary(out, a, n, &op->params);
        break;
    case KILN_CPU_STACK_CLIP:
        clip(op, out, at, n);
        break;
    case KILN_CPU_STACK_BINARY:
        op->row.binary(out, a, b, n);
        break;
    case KILN_CPU_STACK_COMPARE:
        op->row.compare(out, a, b, n);
        break;
    case KILN_CPU_STACK_SELECT:
        op->row.select(out, a, b, c, n);
        break;
    case KILN_CPU_STACK_FUSED:
        op->row.fused(out, (const float *const[]){ a, b, c }, n, &op->params);
        break;
    case KILN_CPU_STACK_CAST:
        op->row.cast(out, a, n);
        break;
    case KILN_CPU_STACK_QUANT:
        op->row.quant(out, a, n, op->params.a, op->zeros[0]);
        break;
    case KILN_CPU_STACK_RESCALE:
        op->row.rescale(out, a, n, op->params.a, op->zeros[0], op->zeros[1]);
        break;
    case KILN_CPU_STACK_PAIR:
        op->row.pair(out, a, b, n, kiln_cpu_stack_fixed(op));
        break;
    case KILN_CPU_STACK_CHOICE:
        op->row.choice(out, a, b, c, n,
                       (KilnCpuSteps){ !(op->fixed & 1), !(op->fixed & 2), !(op->fixed & 4) });
        break;
    case KILN_CPU_STACK_COPY:
        memmove(out, a, (size_t)n * op->size);
        break;
    case KILN_CPU_STACK_FILL:
        fill(out, a, n, op->size);
        break;
    }
}

static void
run_ops(const KilnCpuStack *stack, void *const *at, int64_t n)
{
    for (uint32_t i = 0; i < stack->n_ops; i++)
        run_op(&stack->ops[i], at, n);
}

/* --- tiles --- */

/* Everything but operands that move. */
static void
set_places(const Run *run, int thread, void **at)
{
    const KilnCpuStack *stack = run->stack;
    char *scratch = run->scratch + thread * stack->n_slots * stack->slot;
    for (uint32_t i = 0; i < stack->n_operands; i++)
        at[i] = run->data[i];
    for (int p = KILN_CPU_STACK_RESULTS; p < KILN_CPU_STACK_FIRST_SCALAR; p++)
        at[p] = scratch + stack->slots[p] * stack->slot;
    for (uint32_t i = 0; i < stack->n_scalars; i++)
        at[KILN_CPU_STACK_FIRST_SCALAR + i] = (void *)&stack->scalars[i];
}

/* A walk over the rows of some operands. */
typedef struct {
    const KilnCpuStack *stack;
    const KilnCpuStackOperand *operands;
    uint32_t n;
    int64_t index[KILN_MAX_RANK];      /* of the row, in the dims around the rows */
    char *at[KILN_STACK_OPERANDS_MAX]; /* where it begins, per operand */
} Walk;

static void
walk_from(Walk *walk, void *const *data, int64_t row)
{
    for (uint32_t i = 0; i < walk->n; i++)
        walk->at[i] = data[i];
    for (int d = walk->stack->rank - 2; d >= 0; d--) {
        walk->index[d] = row % walk->stack->dims[d];
        row /= walk->stack->dims[d];
        for (uint32_t i = 0; i < walk->n; i++)
            walk->at[i] += walk->index[d] * walk->operands[i].strides[d];
    }
}

static void
walk_on(Walk *walk)
{
    for (int d = walk->stack->rank - 2; d >= 0; d--) {
        const int64_t dim = walk->stack->dims[d];
        const bool within = ++walk->index[d] < dim;
        for (uint32_t i = 0; i < walk->n; i++)
            walk->at[i] += (within ? 1 : 1 - dim) * walk->operands[i].strides[d];
        if (within)
            return;
        walk->index[d] = 0;
    }
}

static void
run_rows(const Run *run, int64_t first, int64_t end, void **at)
{
    const KilnCpuStack *stack = run->stack;
    const int64_t length = stack->dims[stack->rank - 1];
    int64_t piece = first % stack->tiles;
    Walk walk = { .stack = stack, .operands = stack->operands, .n = stack->n_operands };
    walk_from(&walk, run->data, first / stack->tiles);
    for (int64_t t = first; t < end; t++) {
        const int64_t skip = piece * stack->tile, left = length - skip;
        for (uint32_t i = 0; i < stack->n_operands; i++)
            at[i] = walk.at[i] + skip * stack->operands[i].strides[stack->rank - 1];
        run_ops(stack, at, left < stack->tile ? left : stack->tile);
        if (++piece == stack->tiles) {
            piece = 0;
            walk_on(&walk);
        }
    }
}

static double
reduce_row(const Run *run, const KilnCpuStackReduction *reduction, const float *x, int64_t n)
{
    return kiln_cpu_reduction_join(reduction->by, kiln_cpu_reduction_start(reduction->by),
                                   run->reducers->reduce[reduction->by](x, n));
}

static void
finish_row(const Run *run, const KilnCpuStackReduction *reduction, int64_t row, double result)
{
    const int64_t length = run->stack->dims[run->stack->rank - 1];
    ((float *)run->data[reduction->out])[row] =
        kiln_cpu_reduction_finish(reduction->kind, result, length);
}

/* The rows of a tile, from @row on. */
static void
reduce_bundle(const Run *run, void *const *at, int64_t row, int64_t n)
{
    const KilnCpuStack *stack = run->stack;
    const int64_t length = stack->dims[stack->rank - 1];
    for (uint32_t i = 0; i < stack->n_reductions; i++) {
        const KilnCpuStackReduction *reduction = &stack->reductions[i];
        const float *x = at[reduction->from];
        for (int64_t k = 0; k < n; k++)
            finish_row(run, reduction, row + k, reduce_row(run, reduction, x + k * length, length));
    }
}

/* @n elements of the space from @element on, both whole rows, of an operand that does not have all
 * of them. */
static void
spread(const Run *run, uint32_t i, int64_t element, int64_t n, char *to)
{
    const KilnCpuStack *stack = run->stack;
    const KilnCpuStackOperand *operand = &stack->operands[i];
    const int64_t length = stack->dims[stack->rank - 1];
    Walk walk = { .stack = stack, .operands = operand, .n = 1 };
    walk_from(&walk, &run->data[i], element / length);
    for (; n > 0; n -= length, to += length * operand->size) {
        if (operand->strides[stack->rank - 1])
            memcpy(to, walk.at[0], (size_t)(length * operand->size));
        else
            fill(to, walk.at[0], length, operand->size);
        walk_on(&walk);
    }
}

static void
run_bundles(const Run *run, int64_t first, int64_t end, void **at)
{
    const KilnCpuStack *stack = run->stack;
    const int64_t length = stack->dims[stack->rank - 1];
    for (int64_t t = first; t < end; t++) {
        const int64_t element = t * stack->tile, left = stack->n - element;
        const int64_t n = left < stack->tile ? left : stack->tile;
        for (uint32_t i = 0; i < stack->n_operands; i++) {
            const KilnCpuStackOperand *operand = &stack->operands[i];
            if (operand->access == KILN_CPU_STACK_DENSE)
                at[i] = (char *)run->data[i] + element * operand->size;
            else if (operand->access == KILN_CPU_STACK_SPREAD_IN &&
                     (t == first || !operand->repeats))
                spread(run, i, element, n, at[KILN_CPU_STACK_SPREAD + i]);
        }
        run_ops(stack, at, n);
        if (stack->n_reductions)
            reduce_bundle(run, at, element / length, n / length);
    }
}

/* --- rows that are reduced --- */

/* The operands @skip elements behind the beginning of the row. Inlined with a @skip of 0, this
 * becomes a copy of several addresses at once, for which processors wait where walk_on has just
 * written them one by one. */
static __attribute__((noinline)) void
set_operands(const Walk *walk, int64_t skip, void **at)
{
    for (uint32_t i = 0; i < walk->n; i++)
        at[i] = walk->at[i] + skip * walk->operands[i].strides[walk->stack->rank - 1];
}

/* @n elements of a row, from element @first on. */
static void
fill_block(const KilnCpuStack *stack, const Walk *walk, int64_t first, int64_t n, void **at)
{
    void *from[KILN_STACK_OPERANDS_MAX];
    set_operands(walk, first, at);
    for (uint32_t i = 0; i < stack->n_reductions; i++)
        from[i] = at[stack->reductions[i].from];
    for (int64_t k = 0; k < n; k += stack->part) {
        set_operands(walk, first + k, at);
        for (uint32_t i = 0; i < stack->n_reductions; i++) {
            if (stack->reductions[i].from >= KILN_CPU_STACK_RESULTS)
                at[stack->reductions[i].from] = (float *)from[i] + k;
        }
        run_ops(stack, at, MIN(stack->part, n - k));
    }
    for (uint32_t i = 0; i < stack->n_reductions; i++)
        at[stack->reductions[i].from] = from[i];
}

/* Elements @first to @end of a row, by blocks. */
static void
reduce_blocks(const Run *run, const Walk *walk, int64_t first, int64_t end, void **at,
              double *result)
{
    const KilnCpuStack *stack = run->stack;
    for (uint32_t i = 0; i < stack->n_reductions; i++)
        result[i] = kiln_cpu_reduction_start(stack->reductions[i].by);
    for (int64_t skip = first; skip < end; skip += stack->tile) {
        const int64_t n = end - skip < stack->tile ? end - skip : stack->tile;
        fill_block(stack, walk, skip, n, at);
        for (uint32_t i = 0; i < stack->n_reductions; i++) {
            const KilnCpuStackReduction *reduction = &stack->reductions[i];
            result[i] = kiln_cpu_reduction_join(
                reduction->by, result[i],
                run->reducers->reduce[reduction->by](at[reduction->from], n));
        }
    }
}

static void
shift_results(const KilnCpuStack *stack, int64_t rows, void **at)
{
    for (uint32_t i = 0; i < stack->n_ops; i++) {
        const uint8_t out = stack->ops[i].out;
        if (out >= KILN_CPU_STACK_RESULTS)
            at[out] = (char *)at[out] + rows * stack->row_bytes;
    }
}

/* Short rows, @n of them from @row on: KilnCpuStack.rows at most. */
static void
reduce_rows(const Run *run, Walk *walk, int64_t row, int64_t n, void **at)
{
    const KilnCpuStack *stack = run->stack;
    const int64_t length = stack->dims[stack->rank - 1];
    const float *from[KILN_CPU_STACK_ROWS_MAX][KILN_STACK_OPERANDS_MAX];
    for (int64_t k = 0; k < n; k++) {
        set_operands(walk, 0, at);
        run_ops(stack, at, length);
        for (uint32_t i = 0; i < stack->n_reductions; i++)
            from[k][i] = at[stack->reductions[i].from];
        shift_results(stack, k + 1 < n ? 1 : 1 - n, at);
        walk_on(walk);
    }
    for (int64_t k = 0; k < n; k++) {
        for (uint32_t i = 0; i < stack->n_reductions; i++) {
            const KilnCpuStackReduction *reduction = &stack->reductions[i];
            finish_row(run, reduction, row + k, reduce_row(run, reduction, from[k][i], length));
        }
    }
}

/* Some rows, or a piece of one. */
static void
run_reductions(const void *data, int64_t task, int thread)
{
    const Run *run = data;
    const KilnCpuStack *stack = run->stack;
    const int64_t length = stack->dims[stack->rank - 1], rows = stack->n / length;
    void *at[KILN_CPU_STACK_PLACES];
    Walk walk = { .stack = stack, .operands = stack->operands, .n = stack->n_operands };
    double result[KILN_STACK_OPERANDS_MAX];
    set_places(run, thread, at);
    if (stack->pieces > 1) {
        const int64_t first = task % stack->pieces * KILN_CPU_REDUCE_PIECE;
        walk_from(&walk, run->data, task / stack->pieces);
        reduce_blocks(run, &walk, first, MIN(first + KILN_CPU_REDUCE_PIECE, length), at, result);
        memcpy(run->partial + task * stack->n_reductions, result,
               stack->n_reductions * sizeof *result);
        return;
    }
    int64_t row = task * stack->batch;
    const int64_t end = MIN(row + stack->batch, rows);
    walk_from(&walk, run->data, row);
    for (; stack->rows > 1 && row < end; row += stack->rows)
        reduce_rows(run, &walk, row, MIN(stack->rows, end - row), at);
    for (; row < end; row++) {
        reduce_blocks(run, &walk, 0, length, at, result);
        for (uint32_t i = 0; i < stack->n_reductions; i++)
            finish_row(run, &stack->reductions[i], row, result[i]);
        walk_on(&walk);
    }
}

static void
join_pieces(const Run *run, int64_t rows)
{
    const KilnCpuStack *stack = run->stack;
    for (uint32_t i = 0; i < stack->n_reductions; i++) {
        const KilnCpuStackReduction *reduction = &stack->reductions[i];
        for (int64_t row = 0; row < rows; row++) {
            double result = kiln_cpu_reduction_start(reduction->by);
            for (int64_t k = 0; k < stack->pieces; k++)
                result = kiln_cpu_reduction_join(
                    reduction->by, result,
                    run->partial[(row * stack->pieces + k) * stack->n_reductions + i]);
            finish_row(run, reduction, row, result);
        }
    }
}

static void
run_task(const void *data, int64_t task, int thread)
{
    const Run *run = data;
    const int64_t first = task * run->stack->batch, end = first + run->stack->batch;
    void *at[KILN_CPU_STACK_PLACES];
    set_places(run, thread, at);
    (run->stack->bundles ? run_bundles : run_rows)(run, first, end < run->tiles ? end : run->tiles,
                                                   at);
}

/* --- the kernel --- */

bool
kiln_cpu_stack_supports(const KilnInstr *instr)
{
    KilnCpuStack stack;
    for (uint32_t i = 0; i < instr->n_operands; i++) {
        if (cpu_type(instr, i)->layout)
            return false;
    }
    return kiln_cpu_stack_compile(instr, &stack);
}

/* What reductions come to, in front of the results of steps. */
static size_t
partial_bytes(const KilnCpuStack *stack)
{
    if (stack->pieces <= 1)
        return 0;
    const int64_t rows = stack->n / stack->dims[stack->rank - 1];
    return ((size_t)(rows * stack->pieces) * stack->n_reductions * sizeof(double) + 63) / 64 * 64;
}

size_t
kiln_cpu_stack_scratch(const KilnInstr *instr, uint32_t form, int threads)
{
    (void)form;
    KilnCpuStack stack;
    kiln_cpu_stack_compile(instr, &stack);
    return partial_bytes(&stack) + (size_t)(stack.n_slots * stack.slot) * (size_t)threads;
}

size_t
kiln_cpu_stack_prepared(const KilnInstr *instr)
{
    (void)instr;
    return sizeof(KilnCpuStack);
}

void
kiln_cpu_stack_prepare(const KilnInstr *instr, void *prepared)
{
    kiln_cpu_stack_compile(instr, prepared);
}

const char *
kiln_cpu_stack(const KilnKernelArgs *args)
{
    const KilnCpuStack *stack = args->prepared;
    if (stack->n == 0)
        return NULL;
    const int64_t all = stack->n / stack->dims[stack->rank - 1], rows = stack->bundles ? 1 : all;
    const Run run = { .stack = stack,
                      .data = args->data,
                      .scratch = (char *)args->scratch + partial_bytes(stack),
                      .tiles = rows * stack->tiles,
                      .reducers = kiln_cpu_reducers(KILN_CPU_ISA_AUTO),
                      .partial = args->scratch };
    if (stack->bundles || !stack->n_reductions) {
        kiln_cpu_parallel(ceil_div(run.tiles, stack->batch), args->threads, run_task, &run);
        return NULL;
    }
    const int64_t tasks = stack->pieces > 1 ? rows * stack->pieces : ceil_div(rows, stack->batch);
    kiln_cpu_parallel(tasks, args->threads, run_reductions, &run);
    if (stack->pieces > 1)
        join_pieces(&run, rows);
    return NULL;
}
