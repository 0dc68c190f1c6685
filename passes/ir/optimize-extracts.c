/* SPDX-License-Identifier: Apache-2.0 */
/* optimize-extracts: a slice is read where it lies in its operand.
 *
 *     slice @out %a, @in %x {starts=[0,2,0]}        %a = view %x {offset=16} : f32[1,3,8]
 *     exp @out %b, @in %a                      =>   exp @out %b, @in %a
 *     dealloc %a
 *
 * Where the result is no one piece - the dims before the axis that is cut have extents, or it takes
 * every other row - it is read in rows, if every kernel that works on it says that it can:
 *
 *     %a = view %x {offset=16, rows=4, pitch=40} : f32[4,3,8]
 *
 * Neither side may be written while the other one is read: the operand is complete, and the
 * result is written by nothing else unless the operand dies here. Weights are not looked into:
 * kernels pack them by what they are.
 *
 * requires nothing, preserves nothing; class E. The operand lives as long as the result then: the
 * copy stays where more would live at once than did before the pass, and where a call would see an
 * address that is not aligned as those of allocs are. */
#include "graph/base/alloc.h"
#include "passes/pass.h"
#include "passes/query_ir/lives.h"
#include "passes/query_ir/strided_use.h"

static const char rule[] = "slice-as-view";

static KilnSize
start_of(const KilnInstrAttrs_slice *attrs, int d)
{
    return kiln_size_open(kiln_ints_at(attrs->starts, (uint32_t)d, 0),
                          kiln_ints_open(attrs->starts, (uint32_t)d));
}

/* Where the result lies in the operand, as far as that is a region: runs of elements side by side,
 * one after the other at one distance. */
static bool
find_part(const KilnInstr *slice, KilnRegion *out)
{
    const KilnInstrAttrs_slice *attrs = kiln_instr_attrs(slice, slice);
    const KilnType *to = &slice->operands[0].buffer->type, *from = &slice->operands[1].buffer->type;
    KilnSize stride = kiln_size_make((int64_t)kiln_dtype_size(from->dtype)), run = stride;
    KilnSize first = kiln_size_make(0), rows = kiln_size_make(1), pitch = first;
    bool regular = true;
    for (int d = to->rank - 1; d >= 0; d--) {
        KilnSize n = kiln_type_size(to, d);
        int64_t by = kiln_ints_at(attrs->steps, (uint32_t)d, 1);
        KilnSize step = kiln_size_mul(stride, kiln_size_make(MAX(by, 0)));
        first = kiln_size_add(first, kiln_size_mul(start_of(attrs, d), stride));
        stride = kiln_size_mul(stride, kiln_type_size(from, d));
        if (kiln_size_is(n, 1))
            continue;
        bool alone = kiln_size_is(rows, 1);
        if (alone && kiln_size_equal(step, run)) {
            run = kiln_size_mul(run, n);
        } else if (alone && by > 0 && kiln_size_at_most(run, step)) {
            rows = n;
            pitch = step;
        } else if (!alone && kiln_size_equal(step, kiln_size_mul(rows, pitch))) {
            rows = kiln_size_mul(rows, n);
        } else {
            regular = false;
        }
    }
    *out = kiln_region_of_sizes(first, rows, run, pitch);
    return regular && !out->lost;
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
         KilnRegion *out_part)
{
    KilnBuffer *result = slice->operands[0].buffer, *operand = slice->operands[1].buffer;
    const KilnBuffer *origin = kiln_buffer_origin(operand);
    const KilnFacts *to = kiln_lives_facts(lives, kiln_buffer_origin(result));
    const KilnFacts *from = kiln_lives_facts(lives, origin);
    int64_t step = lives->places[slice->id].step;
    PASS_GUARD(has_elements, kiln_type_bytes(&result->type) > 0);
    KilnRegion place = kiln_buffer_region(operand);
    PASS_GUARD(in_rows, find_part(slice, out_part) && kiln_region_part(&place, out_part, &place) &&
                            !place.lost);
    PASS_GUARD(plain_layout, !result->type.layout && !operand->type.layout);
    PASS_GUARD(result_local, result->kind == KILN_BUFFER_ALLOC);
    PASS_GUARD(result_born_here, is_born_at(lives, result, slice));
    PASS_GUARD(operand_no_weight, origin->kind != KILN_BUFFER_WEIGHT);
    PASS_GUARD(operand_complete, from->last_write < step);
    PASS_GUARD(result_complete,
               to->n_writes == 1 || (origin->kind == KILN_BUFFER_ALLOC && from->last == step));
    PASS_GUARD(aligned_for_calls,
               !to->called || kiln_size_is_multiple(kiln_region_offset(&place), KILN_ALIGNMENT));
    PASS_GUARD(takes_rows, kiln_strided_taken(kiln_pass_target(context), result, &place, slice));
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
    PASS_GUARD(peak_kept, kiln_lives_fits(lives));
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
view_slice(KilnLives *lives, KilnPassContext *context, KilnInstr *slice, const KilnRegion *part)
{
    KilnBuffer *result = slice->operands[0].buffer, *operand = slice->operands[1].buffer;
    kiln_pass_note(context, rule, "%s", kiln_instr_label(slice));
    KilnBuffer *view =
        kiln_ir_view_part(slice->function, result->name, operand, part, &result->type, slice);
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
        KilnRegion part;
        if (!may_view(lives, context, slice, &part))
            continue;
        if (!keeps_peak(lives, context, slice)) {
            slices->pdata[n_waiting++] = slice;
            continue;
        }
        view_slice(lives, context, slice, &part);
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

IR_PASS(optimize_extracts);

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
