/* SPDX-License-Identifier: Apache-2.0 */
/* delete-dead-allocs: buffers that are only allocated and freed go, and views that nothing reads.
 *
 *     %a = alloc : f32[8]
 *     %v = view %a : f32[2,4]     =>     (nothing)
 *     dealloc %a
 *
 * requires nothing, preserves nothing; class E. One walk backwards: views are defined after what
 * they alias, so that a chain of dead views and its buffer go in one run. */
#include "passes/pass.h"

static const char rule[] = "delete-dead";

static KilnInstr *
only_dealloc(const KilnBuffer *buffer)
{
    KilnInstr *dealloc = NULL;
    kiln_foreach_buffer_use (use, buffer) {
        if (use->user->kind == KILN_INSTR_dealloc)
            dealloc = use->user;
        else if (use->user != buffer->def)
            return NULL;
    }
    return dealloc;
}

IR_PASS(delete_dead_allocs);

gboolean
kiln_pass_delete_dead_allocs(KilnIRFunction *function, KilnPassContext *context, bool *changed,
                             GError **error)
{
    (void)error;
    *changed = false;
    kiln_foreach_instr_reverse (instr, function) {
        KilnBuffer *buffer = kiln_instr_operand(instr, 0);
        if (instr->kind == KILN_INSTR_view && buffer->n_uses == 1) {
            kiln_pass_note(context, rule, "view %%%s", buffer->name);
            kiln_instr_remove(instr);
            *changed = true;
            continue;
        }
        /* The dealloc stands behind the alloc: removing it here cannot touch the walk's next step.
         */
        KilnInstr *dealloc = instr->kind == KILN_INSTR_alloc ? only_dealloc(buffer) : NULL;
        if (!dealloc)
            continue;
        kiln_pass_note(context, rule, "alloc %%%s", buffer->name);
        kiln_instr_remove(dealloc);
        kiln_instr_remove(instr);
        *changed = true;
    }
    return TRUE;
}
