/* SPDX-License-Identifier: Apache-2.0 */
/* Peak bytes of a function: of live buffers with the scratch of a target's kernels, and of a heap
 * that follows alloc and dealloc. */
#ifndef KILN_TESTS_UNIT_IR_PEAKS_H
#define KILN_TESTS_UNIT_IR_PEAKS_H

#include "graph/base/alloc.h"
#include "ir/plan.h"

typedef struct {
    int64_t live, heap;
} Peaks;

/* Returns the most bytes allocated at once in the order of the instructions. */
static inline int64_t
heap_peak(const KilnIRFunction *function)
{
    int64_t now = 0, most = 0;
    kiln_foreach_instr (instr, function) {
        const KilnBuffer *buffer = kiln_instr_operand(instr, 0);
        int64_t size = buffer ? (int64_t)kiln_align_up((size_t)kiln_type_bytes(&buffer->type)) : 0;
        if (instr->kind == KILN_INSTR_alloc)
            now += size;
        else if (instr->kind == KILN_INSTR_dealloc)
            now -= size;
        most = MAX(most, now);
    }
    return most;
}

static inline Peaks
peaks_of(const KilnIRFunction *function, const KilnTarget *target)
{
    g_autoptr(KilnMemoryPlan) plan = kiln_liveness(function, target, 1);
    return (Peaks){ plan->lb_live, heap_peak(function) };
}

#endif
