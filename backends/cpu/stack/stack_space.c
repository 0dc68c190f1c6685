/* SPDX-License-Identifier: Apache-2.0 */
/* How a stack walks through its operands, and what lies where while it does. */
#include "backends/cpu/elementwise/broadcast.h"
#include "backends/cpu/extents.h"
#include "backends/cpu/movement/strided_operands.h"
#include "backends/cpu/reduce/group_sums.h"
#include "backends/cpu/stack/stack.h"
#include "ir/target.h"

#include <string.h>

enum {
    /* Elements of a tile, at most: values that steps hand to each other stay in the first level of
       cache, and calling a loop costs little beside what it does. A lone loop hands on nothing. */
    TILE = 512,
    SMALL_TILE = 256,
    LONE_TILE = 4096,
    CACHE = 24 * 1024, /* bytes of the first level that a tile may take */
    SHORT_ROW = 32,    /* elements, below which a loop over one row is not worth its call */
    BUNDLED_ROW = 128, /* and below which it is not where bundles cost nothing */
    TASK_ELEMENTS = 16384,
    TASK_FLOPS = 65536,
};

/* --- the space --- */

static bool
is_dense(const KilnCpuStack *stack, const int64_t *strides)
{
    int64_t step = 1;
    for (int d = stack->rank - 1; d >= 0; d--) {
        if (strides[d] != step)
            return false;
        step *= stack->dims[d];
    }
    return true;
}

static bool
stands_still(const int64_t *strides, int rank)
{
    for (int d = 0; d < rank; d++) {
        if (strides[d])
            return false;
    }
    return true;
}

/* Bundles of rows ask for operands that are spread over them: once for all tiles where each row
 * meets the same elements, else tile by tile, which only very short rows are worth. What is written
 * in rows takes them one by one. */
static bool
wants_bundles(const KilnCpuStack *stack)
{
    const int64_t row = stack->dims[stack->rank - 1];
    if (stack->rank == 1 || row >= BUNDLED_ROW)
        return false;
    for (uint32_t i = 0; i < stack->n_operands; i++) {
        const KilnCpuStackOperand *operand = &stack->operands[i];
        if (operand->access == KILN_CPU_STACK_ROWS && operand->writes)
            return false;
        if (row >= SHORT_ROW && operand->access == KILN_CPU_STACK_ROWS &&
            !stands_still(operand->strides, stack->rank - 1))
            return false;
    }
    return true;
}

/* The type of what takes a reduction's result, with the dims that are reduced; how many elements
 * become one. */
static int64_t
keep_dims(const KilnStackStep *step, const KilnType *space, KilnType *type)
{
    const int n = kiln_stack_reduced_dims(step->kind, step->attrs, space->rank);
    int64_t group = 1;
    type->rank = space->rank;
    for (int d = 0; d < space->rank; d++) {
        type->dims[d] = d < space->rank - n ? space->dims[d] : 1;
        group *= d < space->rank - n ? 1 : space->dims[d];
    }
    return group;
}

/* Rows of one element have no dim of their own any more: they get one. */
static void
add_row_of_one(KilnCpuStack *stack, int64_t strides[][KILN_MAX_RANK], uint32_t n)
{
    stack->dims[stack->rank] = 1;
    for (uint32_t i = 0; i < n; i++)
        strides[i][stack->rank] = !stands_still(strides[i], stack->rank);
    stack->rank++;
}

bool
kiln_cpu_stack_set_space(const KilnInstr *instr, KilnCpuStack *out)
{
    KilnType space, kept[KILN_STACK_OPERANDS_MAX];
    KilnCpuOperand operands[KILN_STACK_OPERANDS_MAX];
    int64_t strides[KILN_STACK_OPERANDS_MAX][KILN_MAX_RANK], row = -1;
    kiln_stack_space(instr, &space);
    out->n_operands = instr->n_operands;
    out->n = kiln_type_elements(&space);
    for (uint32_t i = 0; i < instr->n_operands; i++)
        operands[i] = kiln_cpu_operand(instr, i);
    for (uint32_t i = 0; i < instr->n_steps; i++) {
        const KilnStackStep *step = &instr->steps[i];
        if (!kiln_stack_reduces(step->kind))
            continue;
        kept[step->store] = *operands[step->store].type;
        operands[step->store].type = &kept[step->store];
        const int64_t group = keep_dims(step, &space, &kept[step->store]);
        if (row >= 0 && group != row)
            return false;
        row = group;
    }
    out->rank = kiln_cpu_merge_dims(&space, operands, (int)instr->n_operands, out->dims, strides);
    if (row == 1 && out->rank < KILN_MAX_RANK && out->dims[out->rank - 1] != 1)
        add_row_of_one(out, strides, instr->n_operands);
    for (uint32_t i = 0; i < instr->n_operands; i++) {
        KilnCpuStackOperand *operand = &out->operands[i];
        operand->size = (uint8_t)kiln_dtype_size(operands[i].type->dtype);
        operand->writes = instr->operands[i].access != KILN_ACCESS_IN;
        operand->access = kiln_stack_is_reduced(instr, i)       ? KILN_CPU_STACK_REDUCED
                          : is_dense(out, strides[i])           ? KILN_CPU_STACK_DENSE
                          : stands_still(strides[i], out->rank) ? KILN_CPU_STACK_ONE
                                                                : KILN_CPU_STACK_ROWS;
        for (int d = 0; d < out->rank; d++)
            operand->strides[d] = strides[i][d] * operand->size;
    }
    if (row >= 0 && (row < 1 || out->n == 0 || out->dims[out->rank - 1] != row))
        return false;
    out->bundles = wants_bundles(out);
    for (uint32_t i = 0; out->bundles && i < instr->n_operands; i++) {
        if (out->operands[i].access == KILN_CPU_STACK_ROWS)
            out->operands[i].access = KILN_CPU_STACK_SPREAD_IN;
    }
    return true;
}

/* --- slots --- */

typedef struct {
    KilnCpuStack *stack;
    int last_use[KILN_CPU_STACK_FIRST_SCALAR]; /* op; -1: none */
    bool taken[KILN_CPU_STACK_FIRST_SCALAR];   /* per slot */
} Slots;

static bool
is_result(uint8_t place)
{
    return place >= KILN_CPU_STACK_RESULTS && place < KILN_CPU_STACK_SPREAD;
}

static uint8_t
take(Slots *slots)
{
    uint8_t slot = 0;
    while (slots->taken[slot])
        slot++;
    slots->taken[slot] = true;
    if (slot >= slots->stack->n_slots)
        slots->stack->n_slots = slot + 1;
    return slot;
}

/* Frees the operands that op @at reads last: those whose place its result may take, or the others.
 * A loop reads an element before it writes it where both have one size, but may read what is one
 * element for all at any time. */
static void
release(Slots *slots, int at, const uint8_t *sizes, bool in_place)
{
    const KilnCpuStackOp *op = &slots->stack->ops[at];
    for (int k = 0; k < 3; k++) {
        const uint8_t place = op->in[k];
        if (!is_result(place) || slots->last_use[place] != at)
            continue;
        const bool may_share = !(op->fixed >> k & 1) && sizes[place] == sizes[op->out];
        if (may_share == in_place)
            slots->taken[slots->stack->slots[place]] = false;
    }
}

static void
place_results(KilnCpuStack *stack)
{
    Slots slots = { .stack = stack };
    uint8_t sizes[KILN_CPU_STACK_PLACES] = { 0 };
    memset(slots.last_use, -1, sizeof slots.last_use);
    stack->n_slots = 0;
    for (uint32_t i = 0; i < stack->n_operands; i++) {
        sizes[i] = stack->operands[i].size;
        if (stack->operands[i].access == KILN_CPU_STACK_SPREAD_IN)
            stack->slots[KILN_CPU_STACK_SPREAD + i] = take(&slots);
    }
    for (uint32_t i = 0; i < stack->n_ops; i++) {
        const KilnCpuStackOp *op = &stack->ops[i];
        sizes[op->out] = op->size;
        for (int k = 0; k < 3; k++) {
            if (op->in[k] < KILN_CPU_STACK_FIRST_SCALAR)
                slots.last_use[op->in[k]] = (int)i;
        }
    }
    /* What is reduced has a place of its own: all of a block is there before it is. */
    for (uint32_t i = 0; i < stack->n_reductions; i++) {
        const uint8_t from = stack->reductions[i].from;
        if (is_result(from) && slots.last_use[from] < (int)stack->n_ops)
            stack->slots[from] = take(&slots);
        slots.last_use[from] = (int)stack->n_ops;
    }
    for (uint32_t i = 0; i < stack->n_ops; i++) {
        const KilnCpuStackOp *op = &stack->ops[i];
        release(&slots, (int)i, sizes, true);
        if (is_result(op->out) && slots.last_use[op->out] < (int)stack->n_ops)
            stack->slots[op->out] = take(&slots);
        release(&slots, (int)i, sizes, false);
    }
}

/* --- tiles --- */

static void
set_pieces(KilnCpuStack *stack, int64_t most)
{
    const int64_t row = stack->dims[stack->rank - 1], pieces = ceil_div(row, most);
    stack->tile = round_up(ceil_div(row, pieces), KILN_CPU_LINE_FLOATS);
    stack->tiles = ceil_div(row, stack->tile);
}

/* Tiles are what rows are reduced by: blocks of them, which steps fill part by part. Of short rows
 * there are several before the first is reduced, whose last bytes a processor could not read again
 * so soon. */
static void
set_blocks(KilnCpuStack *stack, int64_t most)
{
    const int64_t row = stack->dims[stack->rank - 1];
    stack->rows = MAX(1, MIN(TILE / row, KILN_CPU_STACK_ROWS_MAX));
    stack->tile = MIN(row, KILN_CPU_REDUCE_BLOCK);
    stack->part = MIN(row, most);
    stack->tiles = ceil_div(row, stack->tile);
    stack->pieces = ceil_div(row, KILN_CPU_REDUCE_PIECE);
}

/* As many whole dims as fit, as often as they fit. */
static void
set_bundles(KilnCpuStack *stack, int64_t most)
{
    int first = stack->rank;
    int64_t block = 1;
    while (first > 0 && block * stack->dims[first - 1] <= most)
        block *= stack->dims[--first];
    stack->tile = most / block * block;
    stack->tiles = ceil_div(stack->n, stack->tile);
    for (uint32_t i = 0; i < stack->n_operands; i++)
        stack->operands[i].repeats = stands_still(stack->operands[i].strides, first);
}

void
kiln_cpu_stack_set_tiles(const KilnInstr *instr, KilnCpuStack *out)
{
    place_results(out);
    int64_t bytes = 0, widest = 1;
    for (uint32_t i = 0; i < out->n_operands; i++)
        bytes += out->operands[i].size;
    for (uint32_t i = 0; i < out->n_ops; i++)
        widest = out->ops[i].size > widest ? out->ops[i].size : widest;
    for (uint32_t i = 0; i < out->n_operands; i++)
        widest = out->operands[i].size > widest ? out->operands[i].size : widest;
    bytes += out->n_slots * widest;
    const int64_t most = out->n_ops == 1 && out->n_slots == 0 ? LONE_TILE
                         : bytes * TILE <= CACHE              ? TILE
                                                              : SMALL_TILE;
    if (out->n == 0)
        return;
    if (out->bundles)
        set_bundles(out, most);
    else if (out->n_reductions)
        set_blocks(out, most);
    else
        set_pieces(out, most);
    out->row_bytes = (out->tile * widest + 63) / 64 * 64;
    out->slot = out->row_bytes * (out->rows > 0 ? out->rows : 1);
    const int64_t flops = kiln_instr_cost(instr).flops / out->n;
    const int64_t worth = TASK_FLOPS / (flops > 0 ? flops : 1);
    out->batch = (worth < TASK_ELEMENTS ? worth : TASK_ELEMENTS) /
                 (out->n_reductions && !out->bundles ? out->dims[out->rank - 1] : out->tile);
    out->batch = out->batch > 0 ? out->batch : 1;
}
