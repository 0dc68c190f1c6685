/* SPDX-License-Identifier: Apache-2.0 */
/* share-buffers: an instruction that may work in place writes over an operand which dies there.
 *
 *     %b = alloc : f32[8]
 *     relu @out %b, @in %a            relu @out %a, @in %a
 *     dealloc %a                =>    exp @out %c, @in %a
 *     exp @out %c, @in %b             dealloc %a
 *     dealloc %b
 *
 * where the result is an output of the function, the operand's producer writes into that output
 * from the start:
 *
 *     conv @out %a, …                 conv @out @y, …
 *     relu @out @y, @in %a      =>    relu @out @y, @in @y
 *     dealloc %a
 *
 * and where the operand is a part of a bigger buffer, the result lies in that part:
 *
 *     %v = view %a {offset=8} : f32[4]         %v = view %a {offset=8} : f32[4]
 *     %b = alloc : f32[4]                =>    sigmoid @out %v, @in %v
 *     sigmoid @out %b, @in %v
 *
 * requires nothing, preserves nothing; class E: instrs.def says which operands a kernel reads
 * before it writes the same element. A copy is such an instruction too: sharing makes it a copy
 * onto itself, which ir-peephole removes. Inputs and weights are observable and never written over.
 * A bigger buffer lives on with the result: it does so only where no more lives at once than did
 * before the pass. */
#include "graph/base/alloc.h"
#include "ir/define.h"
#include "passes/pass.h"
#include "passes/query_ir/lives.h"

static const char rule[] = "share";

enum {
    LOOK_MAX = 256 /* uses of a buffer that are looked at for each result in a part of it */
};

typedef struct {
    KilnPassContext *context;
    KilnLives *lives;
    const KilnDefines *defines; /* NULL: data decides no dim */
    bool waits;                 /* the peak forbade something: what is shared later may make room */
} Sharing;

/* --- what may share --- */

/* Every other operand that meets the source's bytes must be one that result @out may overwrite. */
static bool
all_may_alias(const KilnInstr *instr, uint32_t out, KilnBuffer *source)
{
    for (uint32_t i = 0; i < instr->n_operands; i++) {
        KilnBuffer *other = instr->operands[i].buffer;
        if (i == out || !other || !kiln_buffer_meets(other, source))
            continue;
        if (!kiln_instr_may_share(instr, out, i) || !kiln_buffer_coincides(other, source))
            return false;
    }
    return true;
}

/* Whether no instruction behind @step touches what @source names, through @buffer or views of it;
 * @left counts uses down, and none left is no. */
static bool
dies_at(const Sharing *sharing, KilnBuffer *buffer, KilnBuffer *source, int64_t step, int *left)
{
    kiln_foreach_buffer_use (use, buffer) {
        const KilnInstr *user = use->user;
        if ((*left)-- <= 0)
            return false;
        if (user->kind == KILN_INSTR_view && use->index == 1) {
            if (!dies_at(sharing, user->operands[0].buffer, source, step, left))
                return false;
        } else if (!kiln_instr_is_bookkeeping(user) &&
                   sharing->lives->places[user->id].step > step &&
                   kiln_buffer_meets(buffer, source)) {
            return false;
        }
    }
    return true;
}

/* What holds of whole operands and of parts. */
static bool
may_share(const Sharing *sharing, const KilnInstr *instr, uint32_t out, uint32_t k)
{
    KilnPassContext *context = sharing->context;
    if (!kiln_instr_may_share(instr, out, k))
        return false;
    KilnBuffer *dest = instr->operands[out].buffer, *source = instr->operands[k].buffer;
    const KilnBuffer *to = kiln_buffer_origin(dest), *from = kiln_buffer_origin(source);
    if (to == from)
        return false;
    PASS_GUARD(source_not_observable, from->kind == KILN_BUFFER_ALLOC);
    PASS_GUARD(dest_not_weight, to->kind == KILN_BUFFER_ALLOC || to->kind == KILN_BUFFER_OUTPUT);
    PASS_GUARD(dest_born_here, kiln_lives_facts(sharing->lives, to)->first ==
                                   sharing->lives->places[instr->id].step);
    PASS_GUARD(dest_whole, kiln_buffer_is_whole(dest));
    PASS_GUARD(operands_may_alias, all_may_alias(instr, out, source));
    return true;
}

static bool
may_share_whole(const Sharing *sharing, const KilnInstr *instr, uint32_t out, uint32_t k)
{
    KilnPassContext *context = sharing->context;
    KilnBuffer *source = instr->operands[k].buffer;
    const KilnBuffer *from = kiln_buffer_origin(source);
    const KilnBuffer *to = kiln_buffer_origin(instr->operands[out].buffer);
    PASS_GUARD(source_whole, kiln_buffer_is_whole(source));
    PASS_GUARD(output_sized_in_time, to->kind != KILN_BUFFER_OUTPUT ||
                                         kiln_defines_in_time(sharing->defines, instr, from));
    PASS_GUARD(source_dies_here, kiln_lives_facts(sharing->lives, from)->last ==
                                     sharing->lives->places[instr->id].step);
    return true;
}

static bool
may_share_part(const Sharing *sharing, const KilnInstr *instr, uint32_t out, uint32_t k)
{
    KilnPassContext *context = sharing->context;
    KilnBuffer *source = instr->operands[k].buffer;
    const KilnBuffer *to = kiln_buffer_origin(instr->operands[out].buffer);
    KilnBuffer *from = kiln_buffer_origin(source);
    const KilnFacts *facts = kiln_lives_facts(sharing->lives, to);
    const KilnRegion part = kiln_buffer_region(source);
    KilnSize offset = kiln_region_offset(&part);
    int left = LOOK_MAX;
    if (kiln_buffer_is_whole(source)) /* what keeps it from being shared whole does so here */
        return false;
    PASS_GUARD(part_for_local, to->kind == KILN_BUFFER_ALLOC);
    PASS_GUARD(part_dense, !kiln_buffer_is_strided(source));
    PASS_GUARD(part_dies_here,
               dies_at(sharing, from, source, sharing->lives->places[instr->id].step, &left));
    PASS_GUARD(aligned_for_calls, !facts->called || kiln_size_is_multiple(offset, KILN_ALIGNMENT));
    PASS_GUARD(whole_elements, !part.lost && kiln_size_is_multiple(offset, (int64_t)kiln_dtype_size(
                                                                               from->type.dtype)));
    return true;
}

static bool
fits(const Sharing *sharing)
{
    KilnPassContext *context = sharing->context;
    PASS_GUARD(peak_kept, kiln_lives_fits(sharing->lives));
    return true;
}

/* The part's buffer lives as long as the result, whose bytes go. */
static bool
keeps_peak(Sharing *sharing, const KilnBuffer *to, const KilnBuffer *from)
{
    KilnLives *lives = sharing->lives;
    const KilnFacts *gone = kiln_lives_facts(lives, to), *stays = kiln_lives_facts(lives, from);
    kiln_lives_add(lives, gone->first, gone->last, -gone->size);
    kiln_lives_add(lives, stays->last + 1, gone->last, stays->size);
    if (fits(sharing))
        return true;
    kiln_lives_add(lives, gone->first, gone->last, gone->size);
    kiln_lives_add(lives, stays->last + 1, gone->last, -stays->size);
    sharing->waits = true;
    return false;
}

/* --- sharing --- */

/* @like's type in the dense @part of @buffer: the buffer itself, or a view of it made before
 * @before. */
static KilnBuffer *
as_type(KilnBuffer *buffer, const KilnRegion *part, const KilnBuffer *like, KilnInstr *before)
{
    if (kiln_size_is(kiln_region_offset(part), 0) && kiln_type_equal(&buffer->type, &like->type))
        return buffer;
    return kiln_ir_view_part(buffer->function, like->name, buffer, part, &like->type, before);
}

/* The operand's producer writes into output @to from the start. */
static void
share_output(Sharing *sharing, KilnBuffer *to, KilnBuffer *from)
{
    const KilnFacts *gone = kiln_lives_facts(sharing->lives, from);
    const KilnRegion whole = kiln_buffer_region(from);
    kiln_lives_add(sharing->lives, gone->first, gone->last, -gone->size);
    kiln_lives_replace(sharing->lives, from, as_type(to, &whole, from, from->def), to);
}

/* The buffer that stays lives on until the other one would have died. */
static void
share_local(Sharing *sharing, KilnBuffer *to, KilnBuffer *from, const KilnRegion *part)
{
    KilnStanding *places = sharing->lives->places;
    /* Names of the buffer that goes may stand before the alloc of the one that stays. */
    if (places[from->def->id].position > places[to->def->id].position) {
        kiln_instr_move(from->def, to->def);
        places[from->def->id].position = places[to->def->id].position;
    }
    kiln_lives_replace(sharing->lives, to, as_type(from, part, to, to->def), from);
}

static void
share(Sharing *sharing, KilnInstr *instr, uint32_t out, uint32_t k)
{
    KilnBuffer *to = kiln_buffer_origin(instr->operands[out].buffer);
    KilnBuffer *from = kiln_buffer_origin(instr->operands[k].buffer);
    const KilnRegion part = kiln_buffer_region(instr->operands[k].buffer);
    kiln_pass_note(sharing->context, rule, "%s (%s): %s in the place of %s",
                   kiln_instr_label(instr), kiln_instr_info(instr->kind)->name, to->name,
                   instr->operands[k].buffer->name);
    if (to->kind == KILN_BUFFER_OUTPUT)
        share_output(sharing, to, from);
    else
        share_local(sharing, to, from, &part);
}

/* Result @out, if it is one: over a whole operand where it can, else over a part of a buffer. */
static bool
share_result(Sharing *sharing, KilnInstr *instr, uint32_t out)
{
    if (instr->operands[out].access != KILN_ACCESS_OUT)
        return false;
    uint32_t n = MIN(instr->n_operands, (uint32_t)KILN_SHARE_OPERANDS);
    for (uint32_t k = 0; k < n; k++) {
        if (!may_share(sharing, instr, out, k) || !may_share_whole(sharing, instr, out, k))
            continue;
        const KilnBuffer *to = kiln_buffer_origin(instr->operands[out].buffer);
        const KilnFacts *gone = kiln_lives_facts(sharing->lives, to);
        /* Both live here and are of one size: no step has more than before. */
        if (to->kind == KILN_BUFFER_ALLOC)
            kiln_lives_add(sharing->lives, gone->first, gone->first, -gone->size);
        share(sharing, instr, out, k);
        return true;
    }
    for (uint32_t k = 0; k < n; k++) {
        if (!may_share(sharing, instr, out, k) || !may_share_part(sharing, instr, out, k))
            continue;
        const KilnBuffer *to = kiln_buffer_origin(instr->operands[out].buffer);
        if (!keeps_peak(sharing, to, kiln_buffer_origin(instr->operands[k].buffer)))
            continue;
        share(sharing, instr, out, k);
        return true;
    }
    return false;
}

/* Shares what may be shared, as far as one look at the lives tells. */
static bool
share_all(KilnIRFunction *function, KilnPassContext *context)
{
    KilnLives *lives = kiln_pass_lives(context, function);
    g_autoptr(KilnDefines) defines = kiln_defines_new(function);
    Sharing sharing = { context, lives, defines, false };
    bool changed = false, any;
    do {
        any = sharing.waits = false;
        /* Sharing removes deallocs behind the instruction, never the instruction: no look ahead. */
        kiln_foreach_instr (instr, function) {
            if (instr->id >= lives->n_ids || kiln_instr_is_bookkeeping(instr) ||
                instr->kind == KILN_INSTR_call)
                continue;
            for (uint32_t i = 0; i < instr->n_operands; i++)
                any |= share_result(&sharing, instr, i);
        }
        changed |= any;
    } while (any && sharing.waits);
    return changed;
}

IR_PASS(share_buffers);

gboolean
kiln_pass_share_buffers(KilnIRFunction *function, KilnPassContext *context, bool *changed,
                        GError **error)
{
    (void)error;
    *changed = false;
    /* The peak may be lower than the one that forbade something. */
    while (share_all(function, context))
        *changed = true;
    return TRUE;
}
