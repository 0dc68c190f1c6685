/* SPDX-License-Identifier: Apache-2.0 */
/* Element-wise instructions of one f32 operand, and clip: attributes as parameters of the loops of
 * elementwise.h. Operands: result, data; of clip also the two bounds. */
#include "backends/cpu/elementwise/broadcast.h"
#include "backends/cpu/elementwise/elementwise.h"
#include "backends/cpu/elementwise/elementwise_find.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/movement/strided_operands.h"

#include <math.h>
#include <string.h>

typedef struct {
    KilnCpuUnaryRow row;
    KilnCpuParams params;
    float *out;
    const float *in;
} Unary;

static void
run_row(const void *data, const KilnCpuRun *run)
{
    const Unary *u = data;
    u->row(u->out + run->at, u->in + run->from[0], run->n, &u->params);
}

static void
run_nan(const void *data, const KilnCpuRun *run)
{
    const Unary *u = data;
    for (int64_t i = 0; i < run->n; i++)
        u->out[run->at + i] = NAN;
}

static void
run(const KilnKernelArgs *args, Unary *u, KilnCpuRunFn fn)
{
    const KilnCpuOperand in = kiln_cpu_operand(args->instr, 1);
    KilnCpuBroadcast b = kiln_cpu_broadcast(kiln_cpu_operand(args->instr, 0), &in, 1);
    u->out = args->data[0];
    u->in = args->data[1];
    kiln_cpu_broadcast_run(&b, args->threads, fn, u);
}

KilnCpuParams
kiln_cpu_unary_params(KilnInstrKind kind, const void *attrs)
{
#define ATTRS(id) ((const KilnInstrAttrs_##id *)attrs)
    switch (kind) {
    case KILN_INSTR_celu:
        return (KilnCpuParams){ ATTRS(celu)->alpha, 0 };
    case KILN_INSTR_elu:
        return (KilnCpuParams){ ATTRS(elu)->alpha, 0 };
    case KILN_INSTR_hard_sigmoid:
        return (KilnCpuParams){ ATTRS(hard_sigmoid)->alpha, ATTRS(hard_sigmoid)->beta };
    case KILN_INSTR_leaky_relu:
        return (KilnCpuParams){ ATTRS(leaky_relu)->alpha, 0 };
    case KILN_INSTR_selu:
        return (KilnCpuParams){ ATTRS(selu)->alpha, ATTRS(selu)->gamma };
    case KILN_INSTR_shrink:
        return (KilnCpuParams){ ATTRS(shrink)->bias, ATTRS(shrink)->lambd };
    case KILN_INSTR_swish:
        return (KilnCpuParams){ ATTRS(swish)->alpha, 0 };
    case KILN_INSTR_thresholded_relu:
        return (KilnCpuParams){ ATTRS(thresholded_relu)->alpha, 0 };
    default:
        return (KilnCpuParams){ 0, 0 };
    }
#undef ATTRS
}

int
kiln_cpu_find_unary(KilnInstrKind kind, const void *attrs)
{
    if (kind == KILN_INSTR_celu && !(((const KilnInstrAttrs_celu *)attrs)->alpha > 0))
        return -1;
    if (kind == KILN_INSTR_gelu &&
        strcmp(((const KilnInstrAttrs_gelu *)attrs)->approximate, "tanh") == 0)
        return KILN_CPU_UNARY_gelu_tanh;
    switch (kind) {
#define UNARY(id)                                                                                  \
    case KILN_INSTR_##id:                                                                          \
        return KILN_CPU_UNARY_##id;
#define VARIANT(id)
#define BINARY(id)
#define COMPARE(id)
#include "backends/cpu/elementwise/elementwise.def"
    default:
        return -1;
    }
}

bool
kiln_cpu_unary_supports(const KilnInstr *instr)
{
    return kiln_cpu_find_unary(instr->kind, instr->attrs) >= 0 &&
           cpu_all_plain(instr, KILN_DTYPE_f32);
}

const char *
kiln_cpu_unary(const KilnKernelArgs *args)
{
    const KilnInstr *instr = args->instr;
    const int op = kiln_cpu_find_unary(instr->kind, instr->attrs);
    if (op < 0) /* kiln_cpu_unary_supports() refused it */
        return "the backend has no function for this operator";
    Unary u = { .row = kiln_cpu_rows(KILN_CPU_ISA_AUTO)->unary[op],
                .params = kiln_cpu_unary_params(instr->kind, instr->attrs) };
    run(args, &u, run_row);
    return NULL;
}

/* min(max(x, low), high); a bound that is NaN makes every element NaN. */
const char *
kiln_cpu_clip(const KilnKernelArgs *args)
{
    KilnCpuParams bounds = { -INFINITY, INFINITY };
    if (cpu_type(args->instr, 2))
        bounds.a = *(const float *)args->data[2];
    if (cpu_type(args->instr, 3))
        bounds.b = *(const float *)args->data[3];
    Unary u = { .row = kiln_cpu_rows(KILN_CPU_ISA_AUTO)->unary[KILN_CPU_UNARY_clip],
                .params = bounds };
    run(args, &u, isnan(bounds.a) || isnan(bounds.b) ? run_nan : run_row);
    return NULL;
}
