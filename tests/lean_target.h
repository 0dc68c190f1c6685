/* SPDX-License-Identifier: Apache-2.0 */
/* A target for tests of passes that ask one. It has no kernels of bf16, no dequantization of u16,
 * and no kernel that the passes can do without. It falls back on the reference for them. */
#ifndef KILN_TESTS_LEAN_TARGET_H
#define KILN_TESTS_LEAN_TARGET_H

#include "backends/ref/ref.h"
#include "ir/target.h"

static inline bool
lean_has_two_operands(const KilnInstr *instr)
{
    return instr->n_operands == 3;
}

static inline bool
lean_lacks(KilnInstrKind kind)
{
    switch (kind) {
    case KILN_INSTR_sum:
    case KILN_INSTR_mean:
    case KILN_INSTR_reduce_l1:
    case KILN_INSTR_reduce_l2:
    case KILN_INSTR_reduce_sum_square:
    case KILN_INSTR_reduce_log_sum:
    case KILN_INSTR_global_average_pool:
    case KILN_INSTR_global_max_pool:
    case KILN_INSTR_hard_swish:
    case KILN_INSTR_depth_to_space:
    case KILN_INSTR_space_to_depth:
    case KILN_INSTR_attention:
    case KILN_INSTR_channel_shuffle:
    case KILN_INSTR_rms_normalization:
    case KILN_INSTR_swish:
    case KILN_INSTR_stack:
        return true;
    default:
        return false;
    }
}

/* True for kernels of quantized types, except conversions and tables. */
static inline bool
lean_computes_quantized(const KilnKernel *kernel)
{
    return kernel->quantized && kernel->instr != KILN_INSTR_quantize_linear &&
           kernel->instr != KILN_INSTR_dequantize_linear &&
           kernel->instr != KILN_INSTR_lookup_table;
}

/** Puts its kernels into @kernels (of KilnKernel), which must live as long as the target. */
static inline KilnTarget
lean_target(GArray *kernels)
{
    const KilnTarget *ref = kiln_ref_target();
    for (uint32_t i = 0; i < ref->n_kernels; i++) {
        KilnKernel kernel = ref->kernels[i];
        if (lean_lacks(kernel.instr) || lean_computes_quantized(&kernel))
            continue;
        if (kernel.instr == KILN_INSTR_max || kernel.instr == KILN_INSTR_min)
            kernel.supports = lean_has_two_operands;
        kernel.dtypes &= ~(1u << KILN_DTYPE_bf16);
        if (kernel.instr == KILN_INSTR_dequantize_linear)
            kernel.dtypes &= ~(1u << KILN_DTYPE_u16);
        g_array_append_val(kernels, kernel);
    }
    KilnTarget lean = *ref;
    lean.name = "lean";
    lean.kernels = (const KilnKernel *)(const void *)kernels->data;
    lean.n_kernels = kernels->len;
    lean.fallback = ref;
    return lean;
}

#endif
