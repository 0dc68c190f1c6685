/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of the instructions that carry more than operands: the steps of a stack, the callee of a
 * call. */
#include "ir/check_priv.h"

#include <string.h>

/* --- stack --- */

/* Aligned at the last dim, every dim of @in is 1 or that of @out. */
static bool
broadcasts_to(const KilnType *in, const KilnType *out)
{
    for (int d = 1; d <= in->rank; d++) {
        int64_t dim = in->dims[in->rank - d];
        if (d > out->rank || (dim != 1 && dim != out->dims[out->rank - d]))
            return false;
    }
    return true;
}

static gboolean
throw_step(uint32_t i, const KilnStackStep *step, const char *what, GError **error)
{
    return kiln_throw(error, KILN_ERROR_INVALID, "step %u (%s): %s", i,
                      kiln_instr_info(step->kind)->name, what);
}

static gboolean
check_step(const KilnCheck *check, uint32_t i, GError **error)
{
    const KilnStackStep *step = &check->instr->steps[i];
    const KilnInstrInfo *info = kiln_instr_info(step->kind);
    bool unary = strcmp(info->signature, "oi") == 0, binary = strcmp(info->signature, "oii") == 0;
    bool movement = info->flags & KILN_INSTR_MOVEMENT;
    if (!(info->flags & KILN_INSTR_DATA_PARALLEL) || movement || !(unary || binary))
        return throw_step(i, step, "expected an element-wise instruction of one or two operands",
                          error);
    if (info->n_attrs && !step->attrs)
        return throw_step(i, step, "it has no attributes", error);
    if (unary && (step->has_scalar || step->operand >= 0))
        return throw_step(i, step, "expected no further operand", error);
    if (unary || (step->has_scalar && step->operand < 0))
        return TRUE;
    bool there = !step->has_scalar && step->operand >= 2 &&
                 kiln_instr_operand(check->instr, (uint32_t)step->operand);
    return there || throw_step(i, step, "expected a scalar or an operand of the stack", error);
}

gboolean
kiln_check_stack(KilnCheck *check, GError **error)
{
    const KilnInstr *instr = check->instr;
    if (!instr->n_steps || instr->n_operands < 2)
        return kiln_throw(error, KILN_ERROR_INVALID, "expected an operand and a step, found none");
    for (uint32_t i = 1; i < instr->n_operands; i++) {
        const KilnBuffer *buffer = instr->operands[i].buffer;
        if (!buffer)
            return kiln_throw(error, KILN_ERROR_INVALID, "operand %u is required, found none", i);
        if (!broadcasts_to(&buffer->type, kiln_check_type(check, 0)))
            return kiln_check_throw(check, i, "dims that broadcast to the result's", error);
    }
    for (uint32_t i = 0; i < instr->n_steps; i++) {
        if (!check_step(check, i, error))
            return FALSE;
    }
    return TRUE;
}

/* --- call --- */

static const KilnDeclaration *
find_declaration(const KilnModule *module, const char *name)
{
    for (guint i = 0; i < module->declarations->len; i++) {
        const KilnDeclaration *declaration = g_ptr_array_index(module->declarations, i);
        if (strcmp(declaration->name, name) == 0)
            return declaration;
    }
    return NULL;
}

gboolean
kiln_check_call(KilnCheck *check, GError **error)
{
    const KilnInstr *instr = check->instr;
    const KilnDeclaration *callee =
        instr->callee ? find_declaration(instr->function->module, instr->callee) : NULL;
    if (!callee)
        return kiln_throw(error, KILN_ERROR_INVALID, "@%s is not declared",
                          instr->callee ? instr->callee : "?");
    uint32_t n = callee->n_results + callee->n_operands;
    if (instr->n_operands != n)
        return kiln_throw(error, KILN_ERROR_INVALID, "@%s: expected %u operands, found %u",
                          callee->name, n, instr->n_operands);
    for (uint32_t i = 0; i < n; i++) {
        bool result = i < callee->n_results;
        const KilnType *type =
            result ? &callee->results[i] : &callee->operands[i - callee->n_results];
        if (instr->operands[i].access != (result ? KILN_ACCESS_OUT : KILN_ACCESS_IN))
            return kiln_throw(error, KILN_ERROR_INVALID, "@%s: operand %u: expected %s",
                              callee->name, i, result ? "@out" : "@in");
        if (!instr->operands[i].buffer)
            return kiln_throw(error, KILN_ERROR_INVALID, "operand %u is required, found none", i);
        if (!kiln_type_equal(type, kiln_check_type(check, i))) {
            g_autofree char *expected = kiln_type_to_string(type);
            return kiln_check_throw(check, i, expected, error);
        }
    }
    return TRUE;
}
