/* SPDX-License-Identifier: Apache-2.0 */
/* ir-peephole: local simplifications, in one walk forwards.
 *
 *     max_pool @out %y, @in %x, @out %i       =>  max_pool @out %y, @in %x      (nothing reads %i)
 *     transpose @out %y, @in %s               =>  copy @out %y, @in %v          (%s is a splat, %v
 *                                                     a view of it that has the type of %y)
 *     max @out %y, @in %s, @in %x             =>  max @out %y, @in %x, @in %s   (%s is a splat)
 *     %v = view %a : the type of %a           =>  readers of %v read %a
 *     %v = view %a, %w = view %v              =>  %w = view %a
 *     copy @out %a, @in %a (the same bytes)   =>  (nothing)
 *
 * requires nothing, preserves nothing; class E: max is not turned round where the splat is a zero,
 * since which of two zeros wins hangs on the order; class Z where no-signed-zeros allows that. */
#include "passes/pass.h"

#include "graph/base/number.h"

/* --- max_pool without its indices --- */

static bool
only_written_here(const KilnBuffer *buffer, const KilnInstr *writer)
{
    kiln_foreach_buffer_use (use, buffer) {
        if (use->user != writer && use->user->kind != KILN_INSTR_alloc &&
            use->user->kind != KILN_INSTR_dealloc)
            return false;
    }
    return true;
}

static bool
drop_indices(KilnInstr *instr, KilnPassContext *context)
{
    static const char rule[] = "max-pool-indices";
    KilnBuffer *indices = instr->kind == KILN_INSTR_max_pool ? kiln_instr_operand(instr, 2) : NULL;
    if (!indices)
        return false;
    PASS_GUARD(indices_local, indices->kind == KILN_BUFFER_ALLOC);
    PASS_GUARD(indices_unread, only_written_here(indices, instr));
    kiln_instr_set_operand(instr, 2, NULL);
    kiln_pass_note(context, rule, "%s", kiln_instr_label(instr));
    return true;
}

/* --- splats --- */

/* Elements of a view are equal only where each consists of whole elements of the weight. */
static bool
is_splat(KilnBuffer *buffer, uint8_t element[8])
{
    const KilnBuffer *origin = kiln_buffer_origin(buffer);
    return origin->kind == KILN_BUFFER_WEIGHT && origin->is_const &&
           kiln_dtype_size(buffer->type.dtype) % kiln_dtype_size(origin->type.dtype) == 0 &&
           kiln_tensor_is_splat(origin->constant->tensor, 4096, element);
}

static bool
is_zero(KilnDType dtype, const uint8_t element[8])
{
    return kiln_dtype_is_float(dtype) && kiln_element_as_f64(dtype, element, 0) == 0;
}

/* A constant operand stands last, where kernels look for it. */
static bool
swap_max(KilnInstr *instr, KilnPassContext *context)
{
    static const char rule[] = "max-splat-last";
    if (instr->kind != KILN_INSTR_max || instr->n_operands != 3)
        return false;
    KilnBuffer *left = instr->operands[1].buffer, *right = instr->operands[2].buffer;
    uint8_t element[8], other[8];
    PASS_GUARD(left_splat, is_splat(left, element));
    PASS_GUARD(right_varies, !is_splat(right, other));
    PASS_GUARD(not_zero, kiln_pass_allows(context, KILN_FLAG(no_signed_zeros)) ||
                             !is_zero(left->type.dtype, element));
    kiln_instr_set_operand(instr, 1, right);
    kiln_instr_set_operand(instr, 2, left);
    kiln_pass_note(context, rule, "%s", kiln_instr_label(instr));
    return true;
}

/* --- views and copies --- */

static bool
skip_view(KilnInstr *instr, KilnPassContext *context)
{
    static const char rule[] = "view-same";
    if (instr->kind != KILN_INSTR_view)
        return false;
    KilnBuffer *view = instr->operands[0].buffer, *base = instr->operands[1].buffer;
    PASS_GUARD(type_same, kiln_type_equal(&view->type, &base->type) && view->view_offset == 0 &&
                              !view->view_open && kiln_view_part(view).rows == 1);
    PASS_GUARD(view_used, view->n_uses > 1);
    kiln_foreach_buffer_use_safe (use, view) {
        if (use->user == instr)
            continue;
        kiln_instr_set_operand(use->user, use->index, base);
    }
    kiln_pass_note(context, rule, "%%%s", view->name);
    return true;
}

static bool
flatten_view(KilnInstr *instr, KilnPassContext *context)
{
    static const char rule[] = "view-of-view";
    if (instr->kind != KILN_INSTR_view || instr->operands[1].buffer->kind != KILN_BUFFER_VIEW)
        return false;
    KilnBuffer *view = instr->operands[0].buffer, *middle = instr->operands[1].buffer,
               *base = middle->base;
    int64_t unit = (int64_t)kiln_dtype_size(base->type.dtype);
    KilnRegion outer = kiln_view_part(middle), part = kiln_view_part(view);
    PASS_GUARD(whole_elements, unit && kiln_region_part(&outer, &part, &part) && !part.lost &&
                                   kiln_size_is_multiple(kiln_region_offset(&part), unit) &&
                                   kiln_size_is_multiple(kiln_region_pitch(&part), unit));
    view->base = base;
    kiln_view_set_part(view, &part);
    kiln_instr_set_operand(instr, 1, base);
    kiln_pass_note(context, rule, "%%%s", view->name);
    return true;
}

/* @source as @type. */
static KilnBuffer *
view_as(KilnBuffer *source, const KilnType *type, KilnInstr *before, KilnPassContext *context)
{
    if (kiln_type_equal(&source->type, type))
        return source;
    KilnBuffer *view = kiln_ir_view(before->function, source->name, source, 0, type, before);
    flatten_view(view->def, context); /* the walk is past it */
    return view;
}

static bool
copy_splat(KilnInstr *instr, KilnPassContext *context, GError **error)
{
    static const char rule[] = "transpose-splat";
    if (instr->kind != KILN_INSTR_transpose)
        return false;
    KilnBuffer *dest = instr->operands[0].buffer, *source = instr->operands[1].buffer;
    uint8_t element[8];
    PASS_GUARD(source_splat, is_splat(source, element));
    KilnBuffer *operands[] = { dest, view_as(source, &dest->type, instr, context) };
    KilnInstr *copy =
        kiln_instr_new(instr->function, KILN_INSTR_copy, operands, 2, NULL, instr, error);
    if (!copy)
        return false;
    copy->name = instr->name;
    kiln_pass_note(context, rule, "%s", kiln_instr_label(instr));
    kiln_instr_remove(instr);
    return true;
}

static bool
drop_copy(KilnInstr *instr, KilnPassContext *context)
{
    static const char rule[] = "copy-onto-itself";
    if (instr->kind != KILN_INSTR_copy)
        return false;
    KilnBuffer *dest = instr->operands[0].buffer, *source = instr->operands[1].buffer;
    PASS_GUARD(same_bytes, kiln_buffer_coincides(dest, source));
    kiln_pass_note(context, rule, "%s", kiln_instr_label(instr));
    kiln_instr_remove(instr);
    return true;
}

IR_PASS(ir_peephole);

gboolean
kiln_pass_ir_peephole(KilnIRFunction *function, KilnPassContext *context, bool *changed,
                      GError **error)
{
    *changed = false;
    GError *inner = NULL;
    kiln_foreach_instr_safe (instr, function) {
        bool kept = !copy_splat(instr, context, &inner) && !drop_copy(instr, context);
        *changed |= !kept;
        if (kept) {
            *changed |= drop_indices(instr, context);
            *changed |= swap_max(instr, context);
            *changed |= flatten_view(instr, context); /* it may show that the view is no view */
            *changed |= skip_view(instr, context);
        }
        if (inner) {
            g_propagate_error(error, inner);
            return FALSE;
        }
    }
    return TRUE;
}
