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

typedef struct {
    /* By buffer id: the first instruction behind its definition that names it. Filled from the
     * back, so that the uses of a definition are complete when the walk meets it, those by views
     * that just sank included. */
    KilnInstr **first;
    /* By instruction id: ascends along the list; a definition has that of what it stands in front
     * of. */
    uint32_t *position;
} Sinking;

static bool
defines(const KilnInstr *instr)
{
    return instr->kind == KILN_INSTR_alloc || instr->kind == KILN_INSTR_view;
}

/* The first of the run of definitions right before @use, or @use. */
static KilnInstr *
head_of_run(KilnInstr *use)
{
    while (use->previous && defines(use->previous))
        use = use->previous;
    return use;
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

/* A view that sank may stand behind other uses of what it shows. */
static void
note_uses(Sinking *sinking, KilnInstr *instr)
{
    for (uint32_t i = defines(instr) ? 1 : 0; i < instr->n_operands; i++) {
        const KilnBuffer *buffer = instr->operands[i].buffer;
        KilnInstr **first = buffer ? &sinking->first[buffer->id] : NULL;
        if (first && (!*first || sinking->position[instr->id] <= sinking->position[(*first)->id]))
            *first = instr;
    }
}

gboolean
kiln_pass_sink_allocs(KilnIRFunction *function, KilnPassContext *context, bool *changed,
                      GError **error)
{
    (void)error;
    *changed = false;
    g_autofree KilnInstr **first = g_new0(KilnInstr *, function->buffers->len + 1);
    g_autofree uint32_t *position = g_new0(uint32_t, function->next_id + 1);
    Sinking sinking = { first, position };
    uint32_t n = 0;
    kiln_foreach_instr (instr, function)
        position[instr->id] = n++;
    kiln_foreach_instr_reverse (instr, function) {
        KilnBuffer *defined = defines(instr) ? instr->operands[0].buffer : NULL;
        KilnInstr *use = defined ? first[defined->id] : NULL;
        if (use && !in_place(instr, use)) {
            kiln_instr_move(instr, head_of_run(use));
            kiln_pass_note(context, rule, "%%%s to %s", defined->name, kiln_instr_label(use));
            *changed = true;
        }
        if (use)
            position[instr->id] = position[use->id];
        note_uses(&sinking, instr);
    }
    return TRUE;
}
