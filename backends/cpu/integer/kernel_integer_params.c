/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/integer/kernel_integer_params.h"

#include "graph/base/alloc.h"
#include "ir/tail.h"

#include <float.h>

bool
kiln_cpu_is_countable(const KilnInstr *instr)
{
    static const int64_t most = INT64_C(1) << 48;
    bool ok = true;
    for (uint32_t i = 0; i < 3; i++) {
        const KilnType *type = cpu_type(instr, i);
        ok &= kiln_type_elements(type) <= most;
        for (int d = 0; d < type->rank; d++)
            ok &= type->dims[d] <= most; /* beside an extent of 0 */
    }
    return ok;
}

bool
kiln_cpu_scales_bytes(const KilnInstr *instr)
{
    const KilnTail tail = kiln_instr_tail(instr);
    for (uint32_t i = 0; i < 3; i++) {
        const KilnType *type = cpu_type(instr, i);
        if (!kiln_cpu_is_bytes(type) || !type->quant || (i < 2 && type->quant->axis >= 0))
            return false;
    }
    return tail.activation == KILN_N_INSTRS && !tail.residual;
}

size_t
kiln_cpu_params_size(int64_t channels)
{
    return kiln_align_up((size_t)channels * MAX(sizeof(int32_t), sizeof(float)));
}

static int32_t
byte_at(const KilnKernelArgs *args, uint32_t operand, int64_t i)
{
    const void *data = args->data[operand];
    return cpu_type(args->instr, operand)->dtype == KILN_DTYPE_i8 ? ((const int8_t *)data)[i]
                                                                  : ((const uint8_t *)data)[i];
}

KilnIntegerParams
kiln_cpu_zero_params(const KilnKernelArgs *args)
{
    int32_t *zeros = args->scratch;
    const KilnType *type = cpu_type(args->instr, 4);
    const int64_t n = type ? kiln_type_elements(type) : 1;
    for (int64_t i = 0; i < n; i++)
        zeros[i] = type ? byte_at(args, 4, i) : 0;
    return (KilnIntegerParams){ .left_zero = cpu_type(args->instr, 3) ? byte_at(args, 3, 0) : 0,
                                .zeros = zeros,
                                .one_zero = n == 1 };
}

KilnIntegerParams
kiln_cpu_scale_params(const KilnKernelArgs *args)
{
    const KilnType *out = cpu_type(args->instr, 0);
    const KilnQuant *y = out->quant, *x = cpu_type(args->instr, 1)->quant,
                    *w = cpu_type(args->instr, 2)->quant;
    float *factors = args->scratch;
    const int64_t n = w->axis < 0 ? 1 : w->n;
    for (int64_t i = 0; i < n; i++) {
        /* The greatest float makes of sums what infinity does, and no NaN of 0. */
        factors[i] = MIN(x->scales[0] * w->scales[i] / y->scales[0], FLT_MAX);
    }
    return (KilnIntegerParams){ .left_zero = x->zero_points[0],
                                .zeros = w->zero_points,
                                .one_zero = n == 1,
                                .store = { .factors = factors,
                                           .one_factor = n == 1,
                                           .is_signed = out->dtype == KILN_DTYPE_i8,
                                           .zero = y->zero_points[0] } };
}

KilnIntegerArgs
kiln_cpu_integer_args(const KilnKernelArgs *args, const KilnIntegerParams *params,
                      const int32_t *bias, int64_t channels)
{
    return (KilnIntegerArgs){ .left = args->data[1],
                              .right = args->data[2],
                              .packed = args->packed,
                              .bias = bias,
                              .params = *params,
                              .out = args->data[0],
                              .scratch = (char *)args->scratch + kiln_cpu_params_size(channels),
                              .threads = args->threads };
}
