/* SPDX-License-Identifier: Apache-2.0 */
/* A target for `lower`: it lacks every kernel of its own that the pass can do without, and all of
 * bf16, and falls back on the reference for them. */
#include "tests/golden/golden.h"

#include "backends/ref/ref.h"

static bool
has_two_operands(const KilnInstr *instr)
{
    return instr->n_operands == 3;
}

static bool
is_lacking(KilnInstrKind kind)
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
        return true;
    default:
        return false;
    }
}

KilnTarget
golden_lean_target(GArray *kernels)
{
    const KilnTarget *ref = kiln_ref_target();
    for (uint32_t i = 0; i < ref->n_kernels; i++) {
        KilnKernel kernel = ref->kernels[i];
        if (is_lacking(kernel.instr))
            continue;
        if (kernel.instr == KILN_INSTR_max || kernel.instr == KILN_INSTR_min)
            kernel.supports = has_two_operands;
        kernel.dtypes &= ~(1u << KILN_DTYPE_bf16);
        g_array_append_val(kernels, kernel);
    }
    KilnTarget lean = *ref;
    lean.name = "lean";
    lean.kernels = (const KilnKernel *)kernels->data;
    lean.n_kernels = kernels->len;
    lean.fallback = ref;
    return lean;
}
