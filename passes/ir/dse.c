/* SPDX-License-Identifier: Apache-2.0 */
/* dse: instructions whose results nothing reads before they are overwritten or freed go.
 *
 *     relu @out %a, @in %x
 *     exp @out %a, @in %y       =>    exp @out %a, @in %y
 *     dealloc %a                      …
 *
 * requires nothing, preserves nothing; class E. One walk backwards over the one basic block that a
 * function is. A buffer is live where a later instruction reads it before a full write; outputs and
 * mutable weights are live at the end. Only a write that covers its buffer ends what is live above
 * it; a write through a view that covers a part does not. */
#include "ir/plugin.h"
#include "passes/pass.h"

static const char rule[] = "dead-store";

static bool
covers_origin(const KilnBuffer *buffer, const KilnBuffer *origin)
{
    const KilnRegion region = kiln_buffer_region(buffer);
    return kiln_size_at_most(kiln_type_size_bytes(&origin->type),
                             kiln_type_size_bytes(&buffer->type)) &&
           kiln_size_is(kiln_region_offset(&region), 0);
}

static bool
is_dead(const KilnInstr *instr, const bool *live)
{
    bool writes = false;
    for (uint32_t i = 0; i < instr->n_operands; i++) {
        const KilnBufferUse *use = &instr->operands[i];
        if (!use->buffer || use->access == KILN_ACCESS_IN)
            continue;
        writes = true;
        if (live[kiln_buffer_origin(use->buffer)->id])
            return false;
    }
    return writes;
}

static void
update(const KilnInstr *instr, bool *live)
{
    for (uint32_t i = 0; i < instr->n_operands; i++) {
        const KilnBufferUse *use = &instr->operands[i];
        KilnBuffer *origin = use->buffer ? kiln_buffer_origin(use->buffer) : NULL;
        if (origin && use->access == KILN_ACCESS_OUT && covers_origin(use->buffer, origin))
            live[origin->id] = false;
    }
    for (uint32_t i = 0; i < instr->n_operands;
         i++) { /* reads happen before writes: they come last, backwards */
        const KilnBufferUse *use = &instr->operands[i];
        if (use->buffer && use->access != KILN_ACCESS_OUT)
            live[kiln_buffer_origin(use->buffer)->id] = true;
    }
}

IR_PASS(dse);

gboolean
kiln_pass_dse(KilnIRFunction *function, KilnPassContext *context, bool *changed, GError **error)
{
    (void)error;
    *changed = false;
    g_autofree bool *live = g_new0(bool, function->buffers->len + 1);
    for (guint i = 0; i < function->outputs->len; i++)
        live[((KilnBuffer *)g_ptr_array_index(function->outputs, i))->id] = true;
    for (guint i = 0; i < function->weights->len; i++) {
        const KilnBuffer *weight = g_ptr_array_index(function->weights, i);
        live[weight->id] = !weight->is_const;
    }
    kiln_foreach_instr_reverse (instr, function) {
        if (kiln_instr_is_bookkeeping(instr))
            continue;
        if (kiln_instr_has_effect(instr) || !is_dead(instr, live)) {
            update(instr, live);
            continue;
        }
        kiln_pass_note(context, rule, "%s (%s)", kiln_instr_label(instr),
                       kiln_instr_info(instr->kind)->name);
        kiln_instr_remove(instr);
        *changed = true;
    }
    return TRUE;
}
