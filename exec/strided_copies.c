/* SPDX-License-Identifier: Apache-2.0 */
/* What runs an instruction: its kernel, or what stands before it.
 *
 * Strided operands for kernels that only know dense ones: read from copies in scratch, and written
 * from there. Scratch is the kernel's own, then the copies, then an address per operand. */
#include "ir/target.h"

#include "graph/base/alloc.h"

#include <string.h>

static bool
is_copied(const KilnKernel *kernel, const KilnInstr *instr, uint32_t i)
{
    const KilnBuffer *buffer = instr->operands[i].buffer;
    if (!buffer || !kiln_buffer_is_strided(buffer))
        return false;
    return !kernel->takes_strided ||
           !kernel->takes_strided(instr, i, kiln_buffer_region(buffer).rows);
}

static size_t
bytes_of_copies(const KilnKernel *kernel, const KilnInstr *instr)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < instr->n_operands; i++) {
        if (is_copied(kernel, instr, i))
            bytes += kiln_align_up((size_t)kiln_type_bytes(&instr->operands[i].buffer->type));
    }
    return bytes ? bytes + instr->n_operands * sizeof(void *) : 0;
}

static size_t
own_scratch(const KilnKernel *kernel, const KilnInstr *instr, int threads)
{
    return kernel->scratch_bytes ? kernel->scratch_bytes(instr, threads) : 0;
}

size_t
kiln_kernel_scratch(const KilnKernel *kernel, const KilnInstr *instr, int threads)
{
    if (kiln_instr_computes_nothing(instr))
        return 0;
    size_t own = own_scratch(kernel, instr, threads), copies = bytes_of_copies(kernel, instr), all;
    if (!copies)
        return own;
    return __builtin_add_overflow(kiln_align_up(own), copies, &all) ? SIZE_MAX : all;
}

/* Between the region at @rows and its dense copy. */
static void
copy_rows(const KilnBuffer *buffer, char *rows, char *dense, bool gather)
{
    const KilnRegion region = kiln_buffer_region(buffer);
    for (int64_t r = 0; r < region.rows; r++, rows += region.pitch, dense += region.run)
        memcpy(gather ? dense : rows, gather ? rows : dense, (size_t)region.run);
}

static const char *
run_on_copies(const KilnKernelArgs *args)
{
    const KilnInstr *instr = args->instr;
    char *copy =
        (char *)args->scratch + kiln_align_up(own_scratch(args->kernel, instr, args->threads));
    void **data = (void **)(void *)(copy + bytes_of_copies(args->kernel, instr) -
                                    instr->n_operands * sizeof(void *));
    KilnKernelArgs inner = *args;
    inner.data = data;
    for (uint32_t i = 0; i < instr->n_operands; i++) {
        const KilnBuffer *buffer = instr->operands[i].buffer;
        data[i] = args->data[i];
        if (!is_copied(args->kernel, instr, i))
            continue;
        if (instr->operands[i].access != KILN_ACCESS_OUT)
            copy_rows(buffer, args->data[i], copy, true);
        data[i] = copy;
        copy += kiln_align_up((size_t)kiln_type_bytes(&buffer->type));
    }
    const char *reason = args->kernel->run(&inner);
    for (uint32_t i = 0; i < instr->n_operands && !reason; i++) {
        if (instr->operands[i].access != KILN_ACCESS_IN && data[i] != args->data[i])
            copy_rows(instr->operands[i].buffer, args->data[i], data[i], false);
    }
    return reason;
}

static const char *
run_nothing(const KilnKernelArgs *args)
{
    (void)args;
    return NULL;
}

KilnKernelFn
kiln_kernel_entry(const KilnKernel *kernel, const KilnInstr *instr)
{
    if (kiln_instr_computes_nothing(instr))
        return run_nothing;
    return bytes_of_copies(kernel, instr) ? run_on_copies : kernel->run;
}

bool
kiln_target_takes_strided(const KilnTarget *target, const KilnInstr *instr, uint32_t i,
                          int64_t rows)
{
    const KilnKernel *kernel =
        target && instr->kind != KILN_INSTR_call ? kiln_target_find(target, instr) : NULL;
    return kernel && kernel->takes_strided && kernel->takes_strided(instr, i, rows);
}
