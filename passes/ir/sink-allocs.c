/* SPDX-License-Identifier: Apache-2.0 */
/* sink-allocs: each buffer is allocated, and each view made, right before its first use.
 *
 *     %a = alloc : f32[8]             relu @out %b, @in %x
 *     relu @out %b, @in %x      =>    %a = alloc : f32[8]
 *     exp @out %a, @in %b             exp @out %a, @in %b
 *
 * requires nothing, preserves nothing; class E. Walking backwards moves a view before the alloc
 * that it keeps up: the alloc then sinks to the view. What stands in front of one instruction keeps
 * its order, so that a second run changes nothing. */
#include "passes/pass.h"

static const char rule[] = "sink";

static bool
defines(const KilnInstr *instr)
{
    return instr->kind == KILN_INSTR_alloc || instr->kind == KILN_INSTR_view;
}

/* True where @def stands in the run of definitions right before @use. */
static bool
in_place(const KilnInstr *def, const KilnInstr *use)
{
    const KilnInstr *at = def->next;
    while (at && at != use && defines(at))
        at = at->next;
    return at == use;
}

gboolean
kiln_pass_sink_allocs(KilnIRFunction *function, KilnPassContext *context, bool *changed,
                      GError **error)
{
    (void)error;
    *changed = false;
    /* By buffer id: the first instruction behind its definition that names it. Filled from the
     * back, so that the uses of a definition are complete when the walk meets it, those by views
     * that just sank included. */
    g_autofree KilnInstr **first = g_new0(KilnInstr *, function->buffers->len + 1);
    kiln_foreach_instr_reverse (instr, function) {
        KilnBuffer *defined = defines(instr) ? instr->operands[0].buffer : NULL;
        KilnInstr *use = defined ? first[defined->id] : NULL;
        if (use && !in_place(instr, use)) {
            kiln_instr_move(instr, use);
            kiln_pass_note(context, rule, "%%%s to %s", defined->name, kiln_instr_label(use));
            *changed = true;
        }
        for (uint32_t i = defined ? 1 : 0; i < instr->n_operands; i++) {
            KilnBuffer *buffer = instr->operands[i].buffer;
            if (buffer)
                first[buffer->id] = instr;
        }
    }
    return TRUE;
}
