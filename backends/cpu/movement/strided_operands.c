/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/movement/strided_operands.h"

#include "backends/cpu/kernel.h"
#include "ir/stack.h"

enum {
    SHORT_RUN = 16, /* elements: loops over shorter ones cost more than a copy */
};

/* A row is all of the dims behind some, and long enough. */
static bool
is_dims(const KilnType *type, int64_t rows)
{
    int64_t before = 1;
    for (int d = 0; d < type->rank && before < rows; d++)
        before *= type->dims[d];
    return before == rows && kiln_type_elements(type) / rows >= SHORT_RUN;
}

/* The kernels of stored integers (integer_conv.h, kernel_pool_bytes.c) read and write images that
 * follow each other. */
static bool
is_images(const KilnInstr *instr, const KilnType *type, int64_t rows)
{
    return rows == type->dims[0] && !cpu_type(instr, 1)->quant;
}

static bool
stack_takes(const KilnInstr *stack, uint32_t i, int64_t rows)
{
    for (uint32_t k = 0; k < stack->n_steps; k++) {
        if (kiln_stack_reduces(stack->steps[k].kind))
            return false;
    }
    return is_dims(cpu_type(stack, i), rows);
}

/* The rows of one side are whole rows, or parts of rows, of the other. */
static bool
copy_takes(const KilnInstr *copy, uint32_t i, int64_t rows)
{
    int64_t other = kiln_buffer_region(copy->operands[1 - i].buffer).rows;
    return rows % other == 0 || other % rows == 0;
}

/* Each row is a matrix of keys, values or queries. */
static bool
attention_takes(const KilnType *type, uint32_t i, int64_t rows)
{
    int64_t matrices = 1;
    for (int d = 0; d < type->rank - 2; d++)
        matrices *= type->dims[d];
    return i >= 1 && i <= 3 && rows == matrices;
}

bool
kiln_cpu_takes_strided(const KilnInstr *instr, uint32_t i, int64_t rows)
{
    const KilnType *type = cpu_type(instr, i);
    if (type->layout)
        return false;
    switch (instr->kind) {
    case KILN_INSTR_conv:
        return (i < 2 || i == 4) && is_images(instr, type, rows);
    case KILN_INSTR_attention:
        return attention_takes(type, i, rows);
    case KILN_INSTR_average_pool:
    case KILN_INSTR_conv_transpose:
    case KILN_INSTR_max_pool:
        return i < 2 && is_images(instr, type, rows);
    case KILN_INSTR_copy:
        return copy_takes(instr, i, rows);
    case KILN_INSTR_concat:
    case KILN_INSTR_expand:
    case KILN_INSTR_slice:
    case KILN_INSTR_transpose:
        return is_dims(type, rows);
    case KILN_INSTR_stack:
        return stack_takes(instr, i, rows);
        /* What walks by broadcast.h. */
#define VARIANT(id)
#define UNARY(id) case KILN_INSTR_##id:
#define BINARY(id) case KILN_INSTR_##id:
#define COMPARE(id) case KILN_INSTR_##id:
#include "backends/cpu/elementwise/elementwise.def"
    case KILN_INSTR_and:
    case KILN_INSTR_mean:
    case KILN_INSTR_not:
    case KILN_INSTR_or:
    case KILN_INSTR_pow:
    case KILN_INSTR_sum:
    case KILN_INSTR_where:
    case KILN_INSTR_xor:
        return is_dims(type, rows);
    default:
        return false;
    }
}

KilnCpuOperand
kiln_cpu_operand(const KilnInstr *instr, uint32_t i)
{
    const KilnBuffer *buffer = instr->operands[i].buffer;
    KilnCpuOperand operand = { &buffer->type, 1, 0 };
    if (buffer->kind != KILN_BUFFER_VIEW)
        return operand;
    const KilnRegion region = kiln_buffer_region(buffer);
    if (region.rows == 1 || !kiln_cpu_takes_strided(instr, i, region.rows))
        return operand;
    operand.rows = region.rows;
    operand.pitch = region.pitch / (int64_t)kiln_dtype_size(buffer->type.dtype);
    return operand;
}

void
kiln_cpu_strides(const KilnInstr *instr, uint32_t i, int64_t *strides)
{
    const KilnCpuOperand operand = kiln_cpu_operand(instr, i);
    const KilnType *type = operand.type;
    int64_t step = 1, before = kiln_type_elements(type);
    for (int d = type->rank - 1; d >= 0; d--) {
        strides[d] = step;
        step *= type->dims[d];
        before = type->dims[d] ? before / type->dims[d] : 0;
        if (operand.rows > 1 && before == operand.rows)
            step = operand.pitch;
    }
}

int64_t
kiln_cpu_pitch(const KilnInstr *instr, uint32_t i, int64_t n)
{
    const KilnCpuOperand operand = kiln_cpu_operand(instr, i);
    if (operand.rows > 1)
        return operand.pitch;
    return n > 0 ? kiln_type_elements(operand.type) / n : 0;
}
