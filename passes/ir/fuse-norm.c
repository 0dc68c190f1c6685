/* SPDX-License-Identifier: Apache-2.0 */
/* fuse-norm: a layer or root-mean-square normalization adds a residual to its data on the way.
 *
 *     %s = alloc : f32[1,128,256]
 *     add @out %s, @in %x, @in %r                     layer_normalization @out @y, @in %x,
 *     layer_normalization @out @y, @in %s,      =>        @in @scale, @in @bias, _, _, @in %r
 *         @in @scale, @in @bias
 *     dealloc %s
 *
 * where nothing else reads the sum: transformers that normalize in front of a block read it again.
 *
 * requires nothing, preserves nothing; class E: the sum rounds as it did. The normalization moves
 * up to the sum: nothing lives longer, but the result lives from where the sum did, in as many
 * bytes. What a kernel takes is for the target to say. Behind fuse-tails: a product that adds
 * stores one value less, too, and does it in registers. Before stack-elementwise, which would take
 * the sum. */

#include "ir/tail.h"
#include "passes/pass.h"
#include "passes/query_ir/lives.h"

static const char rule[] = "fuse-norm";

enum {
    OPERANDS_MAX = 7
};

/* The normalization with its residual, before it stands in a function. */
typedef struct {
    KilnInstr instr;
    KilnBufferUse uses[OPERANDS_MAX];
} Draft;

/* Residuals are floats: sums of others round otherwise, if at all. */
static bool
may_have_residual(const KilnInstr *instr)
{
    const KilnBuffer *result = kiln_instr_operand(instr, 0);
    return (instr->kind == KILN_INSTR_layer_normalization ||
            instr->kind == KILN_INSTR_rms_normalization) &&
           kiln_dtype_is_float(result->type.dtype) && !result->type.quant;
}

/* The add whose result @norm normalizes; NULL where another instruction made it. */
static KilnInstr *
sum_of(const KilnInstr *norm)
{
    const KilnBuffer *data = norm->operands[1].buffer;
    kiln_foreach_buffer_use (use, data) {
        if (use->user->kind == KILN_INSTR_add && use->access == KILN_ACCESS_OUT)
            return use->user;
    }
    return NULL;
}

static void
begin_draft(const KilnInstr *norm, const KilnInstr *sum, Draft *draft)
{
    const uint32_t residual = kiln_residual_operand(norm->kind);
    *draft = (Draft){ .instr = *norm };
    draft->instr.operands = draft->uses;
    draft->instr.n_operands = residual + 1;
    for (uint32_t i = 0; i <= residual; i++) {
        draft->uses[i].access = i < norm->n_operands ? norm->operands[i].access : KILN_ACCESS_IN;
        draft->uses[i].buffer = kiln_instr_operand(norm, i);
    }
    draft->uses[1].buffer = sum->operands[1].buffer;
    draft->uses[residual].buffer = sum->operands[2].buffer;
}

/* --- conditions --- */

/* The normalization alone reads the sum, which @sum alone writes. */
static bool
is_only_normalized(KilnPassContext *context, const KilnLives *lives, const KilnInstr *sum)
{
    const KilnBuffer *between = sum->operands[0].buffer;
    uint32_t n_reads = 0;
    PASS_GUARD(own_buffer, between->kind == KILN_BUFFER_ALLOC);
    kiln_foreach_buffer_use (use, between) {
        PASS_GUARD(no_view, use->user->kind != KILN_INSTR_view);
        n_reads += !kiln_instr_is_bookkeeping(use->user) && use->access != KILN_ACCESS_OUT;
    }
    PASS_GUARD(read_once, n_reads == 1);
    PASS_GUARD(written_once, kiln_lives_facts(lives, between)->n_writes == 1);
    return true;
}

/* What is added has the type of the sum: nothing is broadcast, and each lies as kernels read it. */
static bool
may_be_residual(KilnPassContext *context, const KilnInstr *sum)
{
    const KilnType *type = &sum->operands[0].buffer->type;
    for (uint32_t i = 1; i <= 2; i++) {
        const KilnBuffer *term = sum->operands[i].buffer;
        PASS_GUARD(same_type, kiln_type_equal(&term->type, type));
        PASS_GUARD(dense, !kiln_buffer_is_strided(term));
    }
    return true;
}

/* @norm can stand where @sum does: its result is not used before, its parameters are ready,
 * and it has no further result, which would live longer: the normalization writes that. */
static bool
may_move(KilnPassContext *context, const KilnLives *lives, const KilnInstr *norm,
         const KilnInstr *sum)
{
    KilnBuffer *result = norm->operands[0].buffer;
    const KilnFacts *facts = kiln_lives_facts(lives, kiln_buffer_origin(result));
    const uint32_t residual = kiln_residual_operand(norm->kind);
    PASS_GUARD(one_residual, !kiln_instr_operand(norm, residual));
    PASS_GUARD(whole_result, result->kind != KILN_BUFFER_VIEW);
    PASS_GUARD(written_first, facts->first == lives->places[norm->id].step);
    for (uint32_t i = 2; i < norm->n_operands; i++) {
        KilnBuffer *operand = norm->operands[i].buffer;
        if (!operand)
            continue;
        PASS_GUARD(ready, kiln_lives_facts(lives, kiln_buffer_origin(operand))->last_write <
                              lives->places[sum->id].step);
    }
    return true;
}

static bool
may_fuse(KilnPassContext *context, const KilnLives *lives, const KilnInstr *norm,
         const KilnInstr *sum, Draft *draft)
{
    if (!is_only_normalized(context, lives, sum) || !may_be_residual(context, sum) ||
        !may_move(context, lives, norm, sum))
        return false;
    begin_draft(norm, sum, draft);
    PASS_GUARD(kernel, kiln_fuse_has_kernel(context, &draft->instr, sum, norm));
    return true;
}

/* --- rewriting --- */

static bool
fuse(KilnPassContext *context, KilnLives *lives, KilnInstr *norm, KilnInstr *sum,
     const Draft *draft, GError **error)
{
    KilnBuffer *operands[OPERANDS_MAX];
    for (uint32_t i = 0; i < draft->instr.n_operands; i++)
        operands[i] = draft->uses[i].buffer;
    kiln_lives_define_before(lives, norm->operands[0].buffer, sum, lives->places[sum->id].position);
    KilnInstr *fused = kiln_instr_new(norm->function, norm->kind, operands, draft->instr.n_operands,
                                      norm->attrs, sum, error);
    if (!fused)
        return false;
    fused->name = norm->name;
    kiln_pass_note(context, rule, "%s: %s", kiln_instr_label(fused), sum->operands[0].buffer->name);
    kiln_fuse_finish(lives, sum, norm);
    return true;
}

IR_PASS(fuse_norm);

gboolean
kiln_pass_fuse_norm(KilnIRFunction *function, KilnPassContext *context, bool *changed,
                    GError **error)
{
    KilnLives *lives = kiln_pass_lives(context, function);
    g_autoptr(GPtrArray) norms = g_ptr_array_new();
    *changed = false;
    kiln_foreach_instr (instr, function) {
        if (may_have_residual(instr))
            g_ptr_array_add(norms, instr);
    }
    for (guint i = 0; i < norms->len; i++) {
        KilnInstr *norm = g_ptr_array_index(norms, i), *sum = sum_of(norm);
        Draft draft;
        if (!sum || !may_fuse(context, lives, norm, sum, &draft))
            continue;
        if (!fuse(context, lives, norm, sum, &draft, error))
            return FALSE;
        *changed = true;
    }
    return TRUE;
}
