/* SPDX-License-Identifier: Apache-2.0 */
/* Element-wise instructions of several f32 operands with numpy broadcasting: arithmetic,
 * comparisons, the variadic max, min, sum and mean. Operands: result, then what is combined. */
#include "backends/cpu/elementwise/broadcast.h"
#include "backends/cpu/elementwise/elementwise.h"
#include "backends/cpu/elementwise/elementwise_find.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/movement/strided_operands.h"

int
kiln_cpu_find_binary(KilnInstrKind kind)
{
    switch (kind) {
#define UNARY(id)
#define BINARY(id)                                                                                 \
    case KILN_INSTR_##id:                                                                          \
        return KILN_CPU_BINARY_##id;
#define COMPARE(id)
#include "backends/cpu/elementwise/elementwise.def"
    case KILN_INSTR_mean:
    case KILN_INSTR_sum:
        return KILN_CPU_BINARY_add;
    default:
        return -1;
    }
}

int
kiln_cpu_find_compare(KilnInstrKind kind)
{
    switch (kind) {
#define UNARY(id)
#define BINARY(id)
#define COMPARE(id)                                                                                \
    case KILN_INSTR_##id:                                                                          \
        return KILN_CPU_COMPARE_##id;
#include "backends/cpu/elementwise/elementwise.def"
    default:
        return -1;
    }
}

typedef struct {
    KilnCpuBinaryRow binary;
    KilnCpuCompareRow compare;
    void *out;
    const float *a, *b;
} Binary;

static void
run_binary(const void *data, const KilnCpuRun *run)
{
    const Binary *e = data;
    e->binary((float *)e->out + run->at, e->a + run->from[0], e->b + run->from[1], run->n);
}

static void
run_compare(const void *data, const KilnCpuRun *run)
{
    const Binary *e = data;
    e->compare((uint8_t *)e->out + run->at, e->a + run->from[0], e->b + run->from[1], run->n);
}

/* Rows with both operands fixed: where further operands make the result larger than these two. */
static void
run_repeated(const void *data, const KilnCpuRun *run)
{
    const Binary *e = data;
    float *out = (float *)e->out + run->at;
    e->binary(out, e->a + run->from[0], e->b + run->from[1], 1);
    for (int64_t i = 1; i < run->n; i++)
        out[i] = out[0];
}

static bool
is_plain(const KilnInstr *instr, uint32_t i, KilnDType dtype)
{
    const KilnType *type = cpu_type(instr, i);
    return type && type->dtype == dtype && !type->layout;
}

/* True where all operands but the result are plain f32, and the result is plain. */
static bool
takes_f32(const KilnInstr *instr, KilnDType result)
{
    for (uint32_t i = 1; i < instr->n_operands; i++) {
        if (!is_plain(instr, i, KILN_DTYPE_f32))
            return false;
    }
    return is_plain(instr, 0, result);
}

bool
kiln_cpu_binary_supports(const KilnInstr *instr)
{
    return kiln_cpu_find_binary(instr->kind) >= 0 && takes_f32(instr, KILN_DTYPE_f32);
}

bool
kiln_cpu_compare_supports(const KilnInstr *instr)
{
    return kiln_cpu_find_compare(instr->kind) >= 0 && takes_f32(instr, KILN_DTYPE_bool);
}

/* The result from operands @first and @second, which may be the result itself. */
static void
combine(const KilnKernelArgs *args, KilnCpuBinary op, uint32_t first, uint32_t second)
{
    const KilnInstr *instr = args->instr;
    const KilnCpuOperand in[] = { kiln_cpu_operand(instr, first), kiln_cpu_operand(instr, second) };
    KilnCpuBroadcast b = kiln_cpu_broadcast(kiln_cpu_operand(instr, 0), in, 2);
    Binary e = { .binary = kiln_cpu_rows(KILN_CPU_ISA_AUTO)->binary[op][kiln_cpu_fixed_operand(&b)],
                 .out = args->data[0],
                 .a = args->data[first],
                 .b = args->data[second] };
    bool repeated = kiln_cpu_is_fixed(&b, 0) && kiln_cpu_is_fixed(&b, 1);
    kiln_cpu_broadcast_run(&b, args->threads, repeated ? run_repeated : run_binary, &e);
}

const char *
kiln_cpu_binary(const KilnKernelArgs *args)
{
    combine(args, (KilnCpuBinary)kiln_cpu_find_binary(args->instr->kind), 1, 2);
    return NULL;
}

const char *
kiln_cpu_compare(const KilnKernelArgs *args)
{
    const KilnInstr *instr = args->instr;
    const KilnCpuOperand in[] = { kiln_cpu_operand(instr, 1), kiln_cpu_operand(instr, 2) };
    KilnCpuBroadcast b = kiln_cpu_broadcast(kiln_cpu_operand(instr, 0), in, 2);
    const KilnCpuRows *rows = kiln_cpu_rows(KILN_CPU_ISA_AUTO);
    const int op = kiln_cpu_find_compare(instr->kind);
    Binary e = { .compare = rows->compare[op][kiln_cpu_fixed_operand(&b)],
                 .out = args->data[0],
                 .a = args->data[1],
                 .b = args->data[2] };
    kiln_cpu_broadcast_run(&b, args->threads, run_compare, &e);
    return NULL;
}

/* Operands are taken from the left, each step rounded; of one they are a copy. From the third on
 * they cannot lie where the result does. */
const char *
kiln_cpu_variadic(const KilnKernelArgs *args)
{
    const KilnInstr *instr = args->instr;
    const KilnCpuBinary op = (KilnCpuBinary)kiln_cpu_find_binary(instr->kind);
    if (instr->n_operands == 2)
        return kiln_cpu_copy(args);
    combine(args, op, 1, 2);
    for (uint32_t i = 3; i < instr->n_operands; i++)
        combine(args, op, 0, i);
    if (instr->kind != KILN_INSTR_mean)
        return NULL;
    const KilnType one = kiln_type_scalar(KILN_DTYPE_f32);
    const KilnCpuOperand out = kiln_cpu_operand(instr, 0);
    const float count = (float)(instr->n_operands - 1);
    const KilnCpuBinaryRow *div = kiln_cpu_rows(KILN_CPU_ISA_AUTO)->binary[KILN_CPU_BINARY_div];
    KilnCpuBroadcast b =
        kiln_cpu_broadcast(out, (const KilnCpuOperand[]){ out, { &one, 1, 0 } }, 2);
    Binary e = {
        .binary = div[KILN_CPU_SECOND_FIXED], .out = args->data[0], .a = args->data[0], .b = &count
    };
    kiln_cpu_broadcast_run(&b, args->threads, run_binary, &e);
    return NULL;
}
