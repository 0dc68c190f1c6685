/* SPDX-License-Identifier: Apache-2.0 */
/* optimize-extracts: a slice that is one piece of its operand is read where it lies.
 *
 *     slice @out %a, @in %x {starts=[0,2,0]}        %a = view %x {offset=16} : f32[1,3,8]
 *     exp @out %b, @in %a                      =>   exp @out %b, @in %a
 *     dealloc %a
 *
 * The steps are 1; before the axis that is cut the result's extents are 1, behind it they are
 * whole. Neither side may be written while the other one is read: the operand is complete, and the
 * result is written by nothing else unless the operand dies here. Weights are not looked into:
 * kernels pack them by what they are.
 *
 * requires nothing, preserves nothing; class E. The operand lives as long as the result then: the
 * copy stays where more would live at once than did before the pass, and where a call would see an
 * address that is not aligned as those of allocs are. */
#include "passes/lives.h"
#include "passes/pass.h"

#include "graph/alloc.h"

static const char rule[] = "slice-as-view";

/* Whether the result is one piece of the operand; the first element of it. */
static bool
is_one_piece(const KilnInstr *slice, int64_t *out_first)
{
    const KilnInstrAttrs_slice *attrs = kiln_instr_attrs(slice, slice);
    const KilnType *to = &slice->operands[0].buffer->type, *from = &slice->operands[1].buffer->type;
    int64_t stride = 1, first = 0;
    bool whole = true, one_piece = true;
    for (int d = to->rank - 1; d >= 0; d--) {
        bool steps = to->dims[d] > 1 && kiln_ints_at(attrs->steps, (uint32_t)d, 1) != 1;
        one_piece &= !steps && (whole || to->dims[d] == 1);
        whole &= to->dims[d] == from->dims[d];
        first += kiln_ints_at(attrs->starts, (uint32_t)d, 0) * stride;
        stride *= from->dims[d];
    }
    *out_first = first;
    return one_piece;
}

/* Nothing names @result before @slice writes it, not even a view. What this pass made of it stands
 * where a reader stood. */
static bool
is_born_at(const KilnLives *lives, const KilnBuffer *result, const KilnInstr *slice)
{
    kiln_foreach_buffer_use (use, result) {
        if (use->user != result->def && use->user != slice && use->user->id < lives->n_ids &&
            lives->places[use->user->id].position < lives->places[slice->id].position)
            return false;
    }
    return true;
}

static bool
may_view(const KilnLives *lives, KilnPassContext *context, const KilnInstr *slice,
         int64_t *out_first)
{
    KilnBuffer *result = slice->operands[0].buffer, *operand = slice->operands[1].buffer;
    const KilnBuffer *origin = kiln_buffer_origin(operand);
    const KilnFacts *to = kiln_lives_facts(lives, kiln_buffer_origin(result));
    const KilnFacts *from = kiln_lives_facts(lives, origin);
    int64_t step = lives->places[slice->id].step;
    GUARD(one_piece, is_one_piece(slice, out_first));
    GUARD(has_elements, kiln_type_bytes(&result->type) > 0);
    GUARD(plain_layout, !result->type.layout && !operand->type.layout);
    GUARD(result_local, result->kind == KILN_BUFFER_ALLOC);
    GUARD(result_born_here, is_born_at(lives, result, slice));
    GUARD(operand_no_weight, origin->kind != KILN_BUFFER_WEIGHT);
    GUARD(operand_complete, from->last_write < step);
    GUARD(result_complete,
          to->n_writes == 1 || (origin->kind == KILN_BUFFER_ALLOC && from->last == step));
    int64_t offset = kiln_buffer_origin_offset(operand) +
                     *out_first * (int64_t)kiln_dtype_size(operand->type.dtype);
    GUARD(aligned_for_calls, !to->called || offset % KILN_ALIGNMENT == 0);
    return true;
}

/* The result's bytes go, the operand's stay longer; or, with @sign -1, back again. */
static void
count_bytes(KilnLives *lives, const KilnFacts *to, const KilnFacts *from, int64_t sign)
{
    kiln_lives_add(lives, to->first, to->last, -sign * to->size);
    kiln_lives_add(lives, from->last + 1, to->last, sign * from->size);
}

static bool
fits(const KilnLives *lives, KilnPassContext *context)
{
    GUARD(peak_kept, kiln_lives_fits(lives));
    return true;
}

static bool
keeps_peak(KilnLives *lives, KilnPassContext *context, const KilnInstr *slice)
{
    const KilnFacts *to = kiln_lives_facts(lives, slice->operands[0].buffer);
    const KilnFacts *from = kiln_lives_facts(lives, kiln_buffer_origin(slice->operands[1].buffer));
    count_bytes(lives, to, from, 1);
    if (fits(lives, context))
        return true;
    count_bytes(lives, to, from, -1);
    return false;
}

static void
view_slice(KilnLives *lives, KilnPassContext *context, KilnInstr *slice, int64_t first)
{
    KilnBuffer *result = slice->operands[0].buffer, *operand = slice->operands[1].buffer;
    kiln_pass_note(context, rule, "%s", kiln_instr_label(slice));
    KilnBuffer *view =
        kiln_ir_view(slice->function, result->name, operand, first, &result->type, slice);
    kiln_instr_remove(slice);
    KilnFacts *facts = kiln_lives_facts(lives, result);
    if (--facts->n_writes == 0)
        facts->last_write = -1;
    kiln_lives_replace(lives, result, view, kiln_buffer_origin(operand));
}

/* Whether any of @slices became a view; only those remain that the peak forbids. */
static bool
view_slices(KilnLives *lives, KilnPassContext *context, GPtrArray *slices)
{
    guint n_waiting = 0;
    bool any = false;
    for (guint i = 0; i < slices->len; i++) {
        KilnInstr *slice = g_ptr_array_index(slices, i);
        int64_t first;
        if (!may_view(lives, context, slice, &first))
            continue;
        if (!keeps_peak(lives, context, slice)) {
            slices->pdata[n_waiting++] = slice;
            continue;
        }
        view_slice(lives, context, slice, first);
        any = true;
    }
    g_ptr_array_set_size(slices, (gint)n_waiting);
    return any;
}

/* Views what may be viewed, as far as one look at the lives tells. */
static bool
view_all(KilnIRFunction *function, KilnPassContext *context)
{
    bool changed = false;
    g_autoptr(GPtrArray) slices = g_ptr_array_new();
    kiln_foreach_instr (instr, function) {
        if (instr->kind == KILN_INSTR_slice)
            g_ptr_array_add(slices, instr);
    }
    if (slices->len == 0)
        return false;
    KilnLives *lives = kiln_pass_lives(context, function);
    /* A view that frees bytes may make room for one that came before. */
    while (slices->len > 0 && view_slices(lives, context, slices))
        changed = true;
    return changed;
}

gboolean
kiln_pass_optimize_extracts(KilnIRFunction *function, KilnPassContext *context, bool *changed,
                            GError **error)
{
    (void)error;
    *changed = false;
    /* A slice that is gone touches nothing any more: lives may be shorter than was kept track of.
     */
    while (view_all(function, context))
        *changed = true;
    return TRUE;
}
