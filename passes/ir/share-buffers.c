/* SPDX-License-Identifier: Apache-2.0 */
/* share-buffers: an instruction that may work in place writes over an operand which dies there.
 *
 *     %b = alloc : f32[8]
 *     relu @out %b, @in %a            relu @out %a, @in %a
 *     dealloc %a                =>    exp @out %c, @in %a
 *     exp @out %c, @in %b             dealloc %a
 *     dealloc %b
 *
 * and, where the result is an output of the function, the operand's producer writes into that
 * output from the start:
 *
 *     conv @out %a, …                 conv @out @y, …
 *     relu @out @y, @in %a      =>    relu @out @y, @in @y
 *     dealloc %a
 *
 * requires nothing, preserves nothing; class E: instrs.def says which operands a kernel reads
 * before it writes the same element. A copy is such an instruction too: sharing makes it a copy
 * onto itself, which ir-peephole removes. Inputs and weights are observable and never written over.
 */
#include "passes/pass.h"

typedef struct {
    KilnIRFunction *function;
    KilnPassContext *context;
    int64_t *first,
        *last; /* by buffer id, of origins: numbers of the instructions that touch them; -1: none */
    int64_t *position; /* by instruction id */
} Sharing;

static void
number_uses(Sharing *sharing)
{
    int64_t number = 0;
    kiln_foreach_instr (instr, sharing->function) {
        sharing->position[instr->id] = number++;
        for (uint32_t i = 0; i < instr->n_operands && !kiln_instr_is_bookkeeping(instr); i++) {
            KilnBuffer *buffer = instr->operands[i].buffer;
            if (!buffer)
                continue;
            uint32_t id = kiln_buffer_origin(buffer)->id;
            if (sharing->first[id] < 0)
                sharing->first[id] = number - 1;
            sharing->last[id] = number - 1;
        }
    }
}

static bool
is_whole(const KilnBuffer *buffer, const KilnBuffer *origin)
{
    return kiln_buffer_origin_offset(buffer) == 0 &&
           kiln_type_bytes(&buffer->type) == kiln_type_bytes(&origin->type);
}

/* Every operand that lies in the source's buffer must be one that the instruction may overwrite. */
static bool
all_may_alias(const KilnInstr *instr, const KilnBuffer *origin)
{
    for (uint32_t i = 1; i < instr->n_operands; i++) {
        KilnBuffer *other = instr->operands[i].buffer;
        if (other && kiln_buffer_origin(other) == origin && !kiln_instr_may_alias(instr, i))
            return false;
    }
    return true;
}

static bool
may_share(const Sharing *sharing, const KilnInstr *instr, uint32_t k)
{
    static const char rule[] = "share";
    KilnPassContext *context = sharing->context;
    KilnBuffer *dest = instr->operands[0].buffer, *source = instr->operands[k].buffer;
    if (!dest || !source || !kiln_instr_may_alias(instr, k))
        return false;
    const KilnBuffer *to = kiln_buffer_origin(dest), *from = kiln_buffer_origin(source);
    int64_t here = sharing->position[instr->id];
    if (to == from)
        return false;
    GUARD(source_not_observable, from->kind == KILN_BUFFER_ALLOC);
    GUARD(dest_not_weight, to->kind == KILN_BUFFER_ALLOC || to->kind == KILN_BUFFER_OUTPUT);
    GUARD(source_dies_here, sharing->last[from->id] == here);
    GUARD(dest_born_here, sharing->first[to->id] == here);
    GUARD(dest_whole, is_whole(dest, to));
    GUARD(source_whole, is_whole(source, from));
    GUARD(operands_may_alias, all_may_alias(instr, from));
    return true;
}

/* @type over all of @buffer: the buffer itself, or a view of it made before @before. */
static KilnBuffer *
as_type(Sharing *sharing, KilnBuffer *buffer, const KilnBuffer *like, KilnInstr *before)
{
    if (kiln_type_equal(&buffer->type, &like->type))
        return buffer;
    return kiln_ir_view(sharing->function, like->name, buffer, 0, &like->type, before);
}

/* All instructions that name @old name @new instead; its alloc and dealloc go. */
static void
replace_buffer(KilnBuffer *old, KilnBuffer *new)
{
    KilnInstr *alloc = old->def, *dealloc = NULL;
    kiln_foreach_buffer_use_safe (use, old) {
        if (use->user->kind == KILN_INSTR_dealloc)
            dealloc = use->user;
        else if (use->user != alloc)
            kiln_instr_set_operand(use->user, use->index, new);
    }
    if (dealloc)
        kiln_instr_remove(dealloc);
    if (alloc)
        kiln_instr_remove(alloc);
}

static KilnInstr *
find_dealloc(const KilnBuffer *buffer)
{
    kiln_foreach_buffer_use (use, buffer) {
        if (use->user->kind == KILN_INSTR_dealloc)
            return use->user;
    }
    return NULL;
}

static void
share(Sharing *sharing, KilnInstr *instr, uint32_t k)
{
    KilnBuffer *to = kiln_buffer_origin(instr->operands[0].buffer);
    KilnBuffer *from = kiln_buffer_origin(instr->operands[k].buffer);
    kiln_pass_note(sharing->context, "share", "%s (%s): %s in the place of %s",
                   kiln_instr_label(instr), kiln_instr_info(instr->kind)->name, to->name,
                   from->name);
    if (to->kind == KILN_BUFFER_OUTPUT) {
        sharing->first[to->id] = sharing->first[from->id];
        replace_buffer(from, as_type(sharing, to, from, from->def));
        return;
    }
    /* The buffer that stays lives on until the other would have died. */
    sharing->last[from->id] = sharing->last[to->id];
    KilnInstr *early = find_dealloc(from), *late = find_dealloc(to);
    if (early && late)
        kiln_instr_move(early, late);
    /* Names of the buffer that goes may stand before the alloc of the one that stays. */
    if (sharing->position[from->def->id] > sharing->position[to->def->id]) {
        kiln_instr_move(from->def, to->def);
        sharing->position[from->def->id] = sharing->position[to->def->id];
    }
    replace_buffer(to, as_type(sharing, from, to, to->def));
}

gboolean
kiln_pass_share_buffers(KilnIRFunction *function, KilnPassContext *context, bool *changed,
                        GError **error)
{
    (void)error;
    *changed = false;
    guint n = function->buffers->len;
    g_autofree int64_t *first = g_new(int64_t, n + 1), *last = g_new(int64_t, n + 1);
    g_autofree int64_t *position = g_new0(int64_t, function->next_id + 1);
    for (guint i = 0; i <= n; i++)
        first[i] = last[i] = -1;
    Sharing sharing = { function, context, first, last, position };
    number_uses(&sharing);
    uint32_t known_ids = function->next_id;
    /* Sharing removes deallocs behind the instruction, never the instruction: no look ahead. */
    kiln_foreach_instr (instr, function) {
        if (instr->id >= known_ids || kiln_instr_is_bookkeeping(instr) ||
            instr->kind == KILN_INSTR_call)
            continue;
        for (uint32_t k = 1; k < instr->n_operands; k++) {
            if (!may_share(&sharing, instr, k))
                continue;
            share(&sharing, instr, k);
            *changed = true;
            break;
        }
    }
    return TRUE;
}
