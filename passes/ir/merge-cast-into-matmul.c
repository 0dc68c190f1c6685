/* SPDX-License-Identifier: Apache-2.0 */
/* merge-cast-into-matmul: products read a weight as it is stored, in 16 bits.
 *
 *     weight @w : bf16[64,32] const             weight @w : bf16[64,32] const
 *     %a = alloc : f32[64,32]
 *     cast @out %a, @in @w                =>
 *     matmul @out @y, @in @x, @in %a            matmul @out @y, @in @x, @in @w
 *     dealloc %a
 *
 * for matmul and gemm. Few rows wait for the weights to come from memory: half the bytes, and none
 * written before. Kernels pack the weight, so that more rows widen it once and not in every run.
 *
 * requires nothing, preserves nothing; class E: a number of 16 bits is the same as an f32, whoever
 * makes one of it. All that reads the cast must read it so: else it would be made all the same.
 * Behind make-weights-const. */
#include "passes/pass.h"

static const char rule[] = "merge-cast";

enum {
    RIGHT = 2, /* the operand that may be stored otherwise */
};

static bool
is_stored(const KilnType *type)
{
    bool narrow = type->dtype == KILN_DTYPE_bf16 || type->dtype == KILN_DTYPE_f16;
    return narrow && !type->layout && !type->quant;
}

static bool
may_read(KilnPassContext *context, const KilnBufferUse *use)
{
    const KilnInstr *user = use->user;
    bool product = user->kind == KILN_INSTR_matmul || user->kind == KILN_INSTR_gemm;
    PASS_GUARD(right_of_product, product && use->index == RIGHT);
    return true;
}

static bool
may_merge(KilnPassContext *context, const KilnInstr *cast)
{
    const KilnBuffer *wide = cast->operands[0].buffer;
    const KilnBuffer *weight = cast->operands[1].buffer;
    if (!is_stored(&weight->type) || wide->type.dtype != KILN_DTYPE_f32)
        return false;
    PASS_GUARD(constant, weight->is_const);
    PASS_GUARD(own_buffer, wide->kind == KILN_BUFFER_ALLOC);
    kiln_foreach_buffer_use (use, wide) {
        if (use->user != cast && !kiln_instr_is_bookkeeping(use->user) && !may_read(context, use))
            return false;
        PASS_GUARD(no_view, use->user->kind != KILN_INSTR_view);
    }
    return true;
}

static void
merge(KilnInstr *cast, KilnPassContext *context)
{
    KilnBuffer *wide = cast->operands[0].buffer, *weight = cast->operands[1].buffer;
    kiln_foreach_buffer_use_safe (use, wide) {
        KilnInstr *user = use->user;
        if (user->kind == KILN_INSTR_dealloc) {
            kiln_instr_remove(user);
        } else if (user != cast && user != wide->def) {
            kiln_pass_note(context, rule, "%s: @%s", kiln_instr_label(user), weight->name);
            kiln_instr_set_operand(user, use->index, weight);
        }
    }
    kiln_instr_remove(cast);
    if (wide->def)
        kiln_instr_remove(wide->def);
}

IR_PASS(merge_cast_into_matmul);

gboolean
kiln_pass_merge_cast_into_matmul(KilnIRFunction *function, KilnPassContext *context, bool *changed,
                                 GError **error)
{
    (void)error;
    *changed = false;
    g_autoptr(GPtrArray) casts = g_ptr_array_new();
    kiln_foreach_instr (instr, function) {
        if (instr->kind == KILN_INSTR_cast)
            g_ptr_array_add(casts, instr);
    }
    for (guint i = 0; i < casts->len; i++) {
        KilnInstr *cast = g_ptr_array_index(casts, i);
        if (!may_merge(context, cast))
            continue;
        merge(cast, context);
        *changed = true;
    }
    return TRUE;
}
