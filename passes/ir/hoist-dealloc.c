/* SPDX-License-Identifier: Apache-2.0 */
/* hoist-dealloc: each buffer is freed right after its last use, through views too.
 *
 *     relu @out %b, @in %a            relu @out %b, @in %a
 *     exp @out %c, @in %b       =>    dealloc %a
 *     dealloc %a                      exp @out %c, @in %b
 *
 * requires nothing, preserves nothing; class E. Deallocs behind one instruction stand in the order
 * of their allocs, so that a second run changes nothing. Never raises the peak: lives only get
 * shorter. */
#include "passes/pass.h"

static const char rule[] = "hoist";

enum {
    FURTHER = 8 /* deallocs that are asked for ahead */
};

/* By buffer id: the last instruction that works with the buffer or a view of it, or makes a view of
 * it. Adds the deallocs to @deallocs as they stand. */
static KilnInstr **
find_last_uses(const KilnIRFunction *function, GPtrArray *deallocs)
{
    KilnInstr **last = g_new0(KilnInstr *, function->buffers->len + 1);
    kiln_foreach_instr (instr, function) {
        if (instr->kind == KILN_INSTR_dealloc) {
            g_ptr_array_add(deallocs, instr);
            continue;
        }
        for (uint32_t i = 0; i < instr->n_operands; i++) {
            KilnBuffer *buffer = instr->operands[i].buffer;
            if (buffer)
                last[kiln_buffer_origin(buffer)->id] = instr;
        }
    }
    return last;
}

/* True where only other deallocs, in the order of ids, stand between the last use and @dealloc. */
static bool
in_place(const KilnInstr *dealloc, const KilnInstr *last)
{
    uint32_t id = dealloc->operands[0].buffer->id;
    const KilnInstr *at = dealloc->previous;
    while (at && at != last && at->kind == KILN_INSTR_dealloc && at->operands[0].buffer->id < id)
        at = at->previous;
    return at == last;
}

/* A dealloc may move far: asks for where those behind @i will stand. */
static void
prefetch(const GPtrArray *deallocs, guint i, KilnInstr *const *last)
{
    if (i + 2 * FURTHER >= deallocs->len)
        return;
    const KilnInstr *far = g_ptr_array_index(deallocs, i + 2 * FURTHER);
    const KilnInstr *near = g_ptr_array_index(deallocs, i + FURTHER);
    __builtin_prefetch(last[far->operands[0].buffer->id]);
    __builtin_prefetch(last[near->operands[0].buffer->id]->next);
}

gboolean
kiln_pass_hoist_dealloc(KilnIRFunction *function, KilnPassContext *context, bool *changed,
                        GError **error)
{
    (void)error;
    *changed = false;
    g_autoptr(GPtrArray) deallocs = g_ptr_array_new();
    g_autofree KilnInstr **last = find_last_uses(function, deallocs);
    for (guint i = 0; i < deallocs->len; i++) {
        KilnInstr *instr = g_ptr_array_index(deallocs, i);
        prefetch(deallocs, i, last);
        const KilnBuffer *buffer = instr->operands[0].buffer;
        KilnInstr *use = last[buffer->id];
        if (in_place(instr, use))
            continue;
        KilnInstr *before = use->next;
        while (before && before != instr && before->kind == KILN_INSTR_dealloc &&
               before->operands[0].buffer->id < buffer->id)
            before = before->next;
        if (before == instr)
            continue;
        kiln_instr_move(instr, before);
        kiln_pass_note(context, rule, "%%%s behind %s", buffer->name, kiln_instr_label(use));
        *changed = true;
    }
    return TRUE;
}
