/* SPDX-License-Identifier: Apache-2.0 */
/* Makes one instruction of two: looks for its kernel, and removes the buffer between them. */
#include "passes/query_ir/lives.h"

bool
kiln_fuse_has_kernel(const KilnPassContext *context, const KilnInstr *fused, const KilnInstr *first,
                     const KilnInstr *second)
{
    const KilnTarget *target = kiln_pass_target(context);
    const KilnKernel *kernel = target ? kiln_target_find(target, fused) : NULL;
    const KilnKernel *of_first = target ? kiln_target_find(target, first) : NULL;
    const KilnKernel *of_second = target ? kiln_target_find(target, second) : NULL;
    if (!kernel || !of_first || !of_second)
        return !target;
    int depth = kiln_target_depth(target, kernel);
    return depth <= kiln_target_depth(target, of_first) &&
           depth <= kiln_target_depth(target, of_second);
}

/* An alloc that no instruction reads or writes any more, with its views. */
static void
remove_alloc(const KilnBuffer *buffer)
{
    kiln_foreach_buffer_use_safe (use, buffer) {
        if (use->user->kind == KILN_INSTR_dealloc)
            kiln_instr_remove(use->user);
        else if (use->user != buffer->def)
            remove_alloc(use->user->operands[0].buffer);
    }
    kiln_instr_remove(buffer->def);
}

void
kiln_fuse_finish(KilnLives *lives, KilnInstr *first, KilnInstr *second)
{
    const KilnBuffer *between = kiln_buffer_origin(first->operands[0].buffer);
    KilnFacts *facts = kiln_lives_facts(lives, kiln_buffer_origin(second->operands[0].buffer));
    facts->first = lives->places[first->id].step;
    if (facts->n_writes == 1)
        facts->last_write = facts->first;
    kiln_instr_remove(first);
    kiln_instr_remove(second);
    remove_alloc(between);
}
