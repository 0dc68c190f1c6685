/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels on blocked layouts: the instruction is copied with plain types, blocked operands with
 * their bytes, all in scratch; the plain kernel runs on the copies and results are laid out anew.
 */
#include "backends/ref/movement/blocked.h"

#include "graph/base/alloc.h"

size_t
kiln_ref_instr_bytes(const KilnInstr *instr)
{
    const size_t per_operand = sizeof(KilnBufferUse) + sizeof(KilnBuffer) + sizeof(void *);
    return kiln_align_up(sizeof(RefCopy) + instr->n_operands * per_operand);
}

RefCopy *
kiln_ref_instr_copy(const KilnInstr *instr, void *memory)
{
    RefCopy *copy = memory;
    const uint32_t n = instr->n_operands;
    copy->instr = *instr;
    copy->buffers = (KilnBuffer *)(copy + 1);
    copy->uses = (KilnBufferUse *)(copy->buffers + n);
    copy->data = (void **)(copy->uses + n);
    copy->instr.operands = copy->uses;
    for (uint32_t i = 0; i < n; i++) {
        copy->uses[i] = instr->operands[i];
        if (!instr->operands[i].buffer)
            continue;
        copy->buffers[i] = *instr->operands[i].buffer;
        copy->uses[i].buffer = &copy->buffers[i];
    }
    return copy;
}

static RefCopy *
make_plain(const KilnInstr *instr, void *memory)
{
    RefCopy *plain = kiln_ref_instr_copy(instr, memory);
    for (uint32_t i = 0; i < instr->n_operands; i++) {
        if (plain->uses[i].buffer)
            plain->buffers[i].type.layout = NULL;
    }
    return plain;
}

static bool
is_blocked(const KilnInstr *instr, uint32_t i)
{
    const KilnBuffer *buffer = instr->operands[i].buffer;
    return buffer && buffer->type.layout;
}

bool
kiln_ref_is_plain(const KilnInstr *instr)
{
    for (uint32_t i = 0; i < instr->n_operands; i++) {
        if (is_blocked(instr, i))
            return false;
    }
    return true;
}

bool
kiln_ref_blocked_supports(const KilnTarget *ref, const KilnInstr *instr)
{
    for (uint32_t i = 0; i < instr->n_operands; i++) {
        if (is_blocked(instr, i) && kiln_type_bytes(&instr->operands[i].buffer->type) < 0)
            return false;
    }
    if (kiln_ref_is_plain(instr))
        return false;
    g_autofree void *memory = g_malloc(kiln_ref_instr_bytes(instr));
    return kiln_target_find(ref, &make_plain(instr, memory)->instr) != NULL;
}

size_t
kiln_ref_blocked_scratch(const KilnTarget *ref, const KilnInstr *instr, int threads)
{
    g_autofree void *memory = g_malloc(kiln_ref_instr_bytes(instr));
    const RefCopy *plain = make_plain(instr, memory);
    const KilnKernel *kernel = kiln_target_find(ref, &plain->instr);
    size_t bytes = kiln_ref_instr_bytes(instr);
    for (uint32_t i = 0; i < instr->n_operands; i++) {
        if (is_blocked(instr, i))
            bytes += kiln_align_up((size_t)kiln_type_bytes(&plain->buffers[i].type));
    }
    return bytes + (kernel->scratch_bytes ? kernel->scratch_bytes(&plain->instr, 0, threads) : 0);
}

/* Copies what the plain kernel reads into scratch; returns the first free byte there. */
static char *
unpack_operands(const KilnKernelArgs *args, RefCopy *plain, char *free)
{
    for (uint32_t i = 0; i < args->instr->n_operands; i++) {
        plain->data[i] = args->data[i];
        if (!is_blocked(args->instr, i))
            continue;
        const KilnType *type = &plain->buffers[i].type;
        plain->data[i] = free;
        free += kiln_align_up((size_t)kiln_type_bytes(type));
        if (plain->uses[i].access != KILN_ACCESS_OUT)
            kiln_ref_relayout_data(type, plain->data[i], ref_type(args, i), args->data[i]);
    }
    return free;
}

const char *
kiln_ref_blocked(const KilnTarget *ref, const KilnKernelArgs *args)
{
    const KilnInstr *instr = args->instr;
    RefCopy *plain = make_plain(instr, args->scratch);
    char *free = unpack_operands(args, plain, (char *)args->scratch + kiln_ref_instr_bytes(instr));
    const KilnKernelArgs plain_args = {
        .instr = &plain->instr, .data = plain->data, .scratch = free, .threads = args->threads
    };
    const KilnKernel *kernel = kiln_target_find(ref, &plain->instr);
    const char *error = kernel->run(&plain_args);
    for (uint32_t i = 0; i < instr->n_operands && !error; i++) {
        if (is_blocked(instr, i) && instr->operands[i].access != KILN_ACCESS_IN)
            kiln_ref_relayout_data(ref_type(args, i), args->data[i], &plain->buffers[i].type,
                                   plain->data[i]);
    }
    return error;
}
