/* SPDX-License-Identifier: Apache-2.0 */
/* What runs an instruction: its kernel, or what stands before it.
 *
 * Operands in rows for kernels that only know dense ones: read from copies in scratch, and written
 * from there. Scratch is the kernel's own, then the copies, then an address per operand. */
#include "exec/strided_copies.h"

#include "graph/base/alloc.h"

#include <string.h>

static size_t
own_scratch(const KilnKernelArgs *args)
{
    return kiln_kernel_own_scratch(args->kernel, args->instr, args->form, args->fitted,
                                   args->threads);
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
    char *copy = (char *)args->scratch + kiln_align_up(own_scratch(args));
    void **data = (void **)(void *)(copy + kiln_kernel_copied_bytes(args->kernel, instr) -
                                    instr->n_operands * sizeof(void *));
    KilnKernelArgs inner = *args;
    inner.data = data;
    for (uint32_t i = 0; i < instr->n_operands; i++) {
        const KilnBuffer *buffer = instr->operands[i].buffer;
        data[i] = args->data[i];
        if (!kiln_kernel_copies(args->kernel, instr, i))
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
    return kiln_kernel_copied_bytes(kernel, instr) ? run_on_copies : kernel->run;
}
