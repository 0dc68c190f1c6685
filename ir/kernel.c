/* SPDX-License-Identifier: Apache-2.0 */
#include "ir/kernel.h"

#include "graph/base/alloc.h"
#include "graph/base/number.h"

#include <math.h>

const char *
kiln_isa_name(KilnIsa isa)
{
    static const char *const names[] = {
        [KILN_ISA_ANY] = "portable",
        [KILN_ISA_AVX2] = "AVX2",
        [KILN_ISA_AVX512] = "AVX-512",
    };
    return names[isa];
}

bool
kiln_instr_computes_nothing(const KilnInstr *instr)
{
    bool results = false;
    for (uint32_t i = 0; i < instr->n_operands; i++) {
        const KilnBufferUse *use = &instr->operands[i];
        if (!use->buffer || use->access == KILN_ACCESS_IN)
            continue;
        if (kiln_type_elements(&use->buffer->type) != 0)
            return false;
        results = true;
    }
    return results;
}

bool
kiln_operand_is_const(const KilnInstr *instr, uint32_t i)
{
    KilnBuffer *buffer = kiln_instr_operand(instr, i);
    const KilnBuffer *origin = buffer ? kiln_buffer_origin(buffer) : NULL;
    return origin && origin->is_const && !kiln_buffer_is_strided(buffer);
}

bool
kiln_operand_comes_late(const KilnInstr *instr, uint32_t i)
{
    return kiln_operand_is_const(instr, i) &&
           kiln_buffer_origin(kiln_instr_operand(instr, i))->kind == KILN_BUFFER_INPUT;
}

bool
kiln_buffer_is_finite(KilnBuffer *buffer, GError **error)
{
    const KilnBuffer *origin = kiln_buffer_origin(buffer);
    const KilnTensor *tensor = origin->constant ? origin->constant->tensor : NULL;
    if (!tensor || tensor->kind == KILN_TENSOR_EXTERN)
        return true;
    g_autoptr(GBytes) bytes = kiln_tensor_view(tensor, error);
    for (int64_t i = 0; bytes && i < kiln_type_elements(&tensor->type); i++) {
        if (!isfinite(kiln_element_as_f64(tensor->type.dtype, g_bytes_get_data(bytes, NULL), i)))
            return false;
    }
    return bytes != NULL;
}

bool
kiln_kernel_may_pack(const KilnKernel *kernel, const KilnInstr *instr)
{
    if (kiln_instr_computes_nothing(instr))
        return false;
    for (uint32_t i = 0; i < 32; i++) {
        if ((kernel->packs >> i & 1) && kiln_instr_operand(instr, i) &&
            !kiln_operand_is_const(instr, i))
            return false;
    }
    return kernel->packed_bytes && kernel->pack;
}

gboolean
kiln_throw_not_packed(const KilnInstr *instr, const char *message, GError **error)
{
    return kiln_throw(error, KILN_ERROR_RUN, "%s (%s): weights were not packed: %s",
                      kiln_instr_label(instr), kiln_instr_info(instr->kind)->name, message);
}

bool
kiln_kernel_copies(const KilnKernel *kernel, const KilnInstr *instr, uint32_t i)
{
    const KilnBuffer *buffer = instr->operands[i].buffer;
    if (!buffer || !kiln_buffer_is_strided(buffer))
        return false;
    return !kernel->takes_strided ||
           !kernel->takes_strided(instr, i, kiln_buffer_region(buffer).rows);
}

size_t
kiln_kernel_copied_bytes(const KilnKernel *kernel, const KilnInstr *instr)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < instr->n_operands; i++) {
        if (kiln_kernel_copies(kernel, instr, i))
            bytes += kiln_align_up((size_t)kiln_type_bytes(&instr->operands[i].buffer->type));
    }
    return bytes ? bytes + instr->n_operands * sizeof(void *) : 0;
}

size_t
kiln_kernel_own_scratch(const KilnKernel *kernel, const KilnInstr *instr, uint32_t form,
                        bool fitted, int threads)
{
    size_t bytes = kernel->scratch_bytes ? kernel->scratch_bytes(instr, form, threads) : 0;
    if (fitted && kernel->fitted && kernel->fitted->scratch_bytes)
        bytes = MAX(bytes, kernel->fitted->scratch_bytes(instr, form, threads));
    return bytes;
}

size_t
kiln_kernel_scratch(const KilnKernel *kernel, const KilnInstr *instr, uint32_t form, bool fitted,
                    int threads)
{
    if (kiln_instr_computes_nothing(instr))
        return 0;
    size_t own = kiln_kernel_own_scratch(kernel, instr, form, fitted, threads),
           copies = kiln_kernel_copied_bytes(kernel, instr), all;
    if (!copies)
        return own;
    return __builtin_add_overflow(kiln_align_up(own), copies, &all) ? SIZE_MAX : all;
}
