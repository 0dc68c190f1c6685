/* SPDX-License-Identifier: Apache-2.0 */
/* make-weights-const: a weight that no instruction writes, not even through a view, is constant. It
 * may lie in read-only memory and be shared by all sessions. State that has no value yet has no
 * bytes to share.
 *
 *     weight @w : f32[8]            weight @w : f32[8] const
 *     add …, @in @w           =>    add …, @in @w
 *
 * requires nothing, preserves everything; class E. */
#include "passes/pass.h"

static const char rule[] = "make-const";

static bool *
find_written(const KilnIRFunction *function)
{
    bool *written = g_new0(bool, function->buffers->len + 1);
    kiln_foreach_instr (instr, function) {
        for (uint32_t i = 0; i < instr->n_operands && !kiln_instr_is_bookkeeping(instr); i++) {
            const KilnBufferUse *use = &instr->operands[i];
            if (use->buffer && use->access != KILN_ACCESS_IN)
                written[kiln_buffer_origin(use->buffer)->id] = true;
        }
    }
    return written;
}

static bool
make_const(KilnBuffer *weight, bool written, KilnPassContext *context)
{
    if (weight->is_const)
        return false;
    PASS_GUARD(never_written, !written);
    PASS_GUARD(has_value, weight->constant);
    kiln_ir_make_const(weight);
    kiln_pass_note(context, rule, "@%s", weight->name);
    return true;
}

IR_PASS(make_weights_const);

gboolean
kiln_pass_make_weights_const(KilnIRFunction *function, KilnPassContext *context, bool *changed,
                             GError **error)
{
    (void)error;
    *changed = false;
    g_autofree bool *written = find_written(function);
    for (guint i = 0; i < function->weights->len; i++) {
        KilnBuffer *weight = g_ptr_array_index(function->weights, i);
        *changed |= make_const(weight, written[weight->id], context);
    }
    return TRUE;
}
