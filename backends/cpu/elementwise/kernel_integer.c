/* SPDX-License-Identifier: Apache-2.0 */
/* add, sub and mul of i32 and i64, which wrap, their comparisons, and the logic of bools, with
 * numpy broadcasting. Operands: result, then the two that are combined; of not the one. */
#include "backends/cpu/elementwise/broadcast.h"
#include "backends/cpu/elementwise/typed.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/movement/strided_operands.h"
#include "ir/kernel.h"

KilnCpuPairRow
kiln_cpu_integer_row(KilnInstrKind kind, KilnDType dtype)
{
    const KilnCpuTypedRows *rows = kiln_cpu_typed(KILN_CPU_ISA_AUTO);
    const bool wide = dtype == KILN_DTYPE_i64, logic = dtype == KILN_DTYPE_bool;
    if (!wide && !logic && dtype != KILN_DTYPE_i32)
        return NULL;
    switch (kind) {
#define OP(id)                                                                                     \
    case KILN_INSTR_##id:                                                                          \
        return logic ? NULL : rows->integer[KILN_CPU_INTEGER_##id][wide];
        KILN_CPU_INTEGER_OPS(OP)
#undef OP
#define OP(id)                                                                                     \
    case KILN_INSTR_##id:                                                                          \
        return logic ? rows->logic[KILN_CPU_LOGIC_##id] : NULL;
        KILN_CPU_LOGIC_OPS(OP)
#undef OP
    default:
        return NULL;
    }
}

typedef struct {
    KilnCpuPairRow row;
    KilnCpuFixed fixed;
    size_t size, result_size; /* of an element */
    char *out;
    const char *a, *b;
} Pair;

static void
run_row(const void *data, const KilnCpuRun *run)
{
    const Pair *p = data;
    p->row(p->out + (size_t)run->at * p->result_size, p->a + (size_t)run->from[0] * p->size,
           p->b + (size_t)run->from[1] * p->size, run->n, p->fixed);
}

bool
kiln_cpu_integer_supports(const KilnInstr *instr)
{
    const KilnType *first = cpu_type(instr, 1);
    for (uint32_t i = 0; i < instr->n_operands; i++) {
        const KilnType *type = cpu_type(instr, i);
        if (type->layout || (i > 0 && type->dtype != first->dtype))
            return false;
    }
    return true;
}

const char *
kiln_cpu_integer(const KilnKernelArgs *args)
{
    const uint32_t second = args->instr->kind == KILN_INSTR_not ? 1 : 2;
    const KilnCpuOperand in[] = { kiln_cpu_operand(args->instr, 1),
                                  kiln_cpu_operand(args->instr, second) };
    KilnCpuBroadcast b = kiln_cpu_broadcast(kiln_cpu_operand(args->instr, 0), in, 2);
    const KilnDType dtype = cpu_type(args->instr, 1)->dtype;
    Pair p = { .row = kiln_cpu_integer_row(args->instr->kind, dtype),
               .fixed = kiln_cpu_fixed_operand(&b),
               .size = kiln_dtype_size(dtype),
               .result_size = kiln_dtype_size(cpu_type(args->instr, 0)->dtype),
               .out = args->data[0],
               .a = args->data[1],
               .b = args->data[second] };
    kiln_cpu_broadcast_run(&b, args->threads, run_row, &p);
    return NULL;
}
