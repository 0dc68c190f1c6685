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

/* By instruction id; the end of the function has the id behind all. */
typedef struct {
    KilnIRFunction *function;
    /* Ascends along the list; a definition has that of its anchor. */
    uint32_t *position;
    /* Of a definition: the instruction that it stands in front of, with nothing but definitions
     * between; NULL: the end. */
    KilnInstr **anchor;
    /* Of an anchor: the first of the definitions in front of it. */
    KilnInstr **head;
    /* By buffer id: the first instruction behind its definition that names it. Filled from the
     * back, so that the uses of a definition are complete when the walk meets it, those by views
     * that just sank included. */
    KilnInstr **first;
} Sinking;

static bool
defines(const KilnInstr *instr)
{
    return instr->kind == KILN_INSTR_alloc || instr->kind == KILN_INSTR_view;
}

/* @def stands in front of @anchor from now on, before the other definitions there. */
static void
settle(Sinking *sinking, KilnInstr *def, KilnInstr *anchor)
{
    uint32_t id = anchor ? anchor->id : sinking->function->next_id;
    sinking->anchor[def->id] = anchor;
    sinking->position[def->id] = sinking->position[id];
    sinking->head[id] = def;
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

/* @here: the first instruction behind @def that is no definition. True where it moved. */
static bool
sink(Sinking *sinking, KilnInstr *def, KilnInstr *here, KilnPassContext *context)
{
    KilnInstr *use = sinking->first[def->operands[0].buffer->id];
    KilnInstr *anchor = !use ? here : defines(use) ? sinking->anchor[use->id] : use;
    bool moves = anchor != here;
    if (moves) {
        KilnInstr *head = sinking->head[anchor ? anchor->id : sinking->function->next_id];
        kiln_instr_move(def, head ? head : anchor);
        kiln_pass_note(context, rule, "%%%s to %s", def->operands[0].buffer->name,
                       kiln_instr_label(use));
    }
    settle(sinking, def, anchor);
    return moves;
}

IR_PASS(sink_allocs);

gboolean
kiln_pass_sink_allocs(KilnIRFunction *function, KilnPassContext *context, bool *changed,
                      GError **error)
{
    (void)error;
    *changed = false;
    uint32_t n_ids = function->next_id + 1, n = 0;
    g_autofree uint32_t *position = g_new0(uint32_t, n_ids);
    g_autofree KilnInstr **anchor = g_new0(KilnInstr *, n_ids);
    g_autofree KilnInstr **head = g_new0(KilnInstr *, n_ids);
    g_autofree KilnInstr **first = g_new0(KilnInstr *, function->buffers->len + 1);
    Sinking sinking = { function, position, anchor, head, first };
    kiln_foreach_instr (instr, function)
        position[instr->id] = n++;
    position[function->next_id] = n;
    KilnInstr *here = NULL;
    kiln_foreach_instr_reverse (instr, function) {
        if (defines(instr))
            *changed |= sink(&sinking, instr, here, context);
        else
            here = instr;
        note_uses(&sinking, instr);
    }
    return TRUE;
}
