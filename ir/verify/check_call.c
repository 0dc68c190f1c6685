/* SPDX-License-Identifier: Apache-2.0 */
/* The check of calls: operands are as the callee's declaration says. */
#include "graph/dim.h"
#include "graph/module.h"
#include "graph/type.h"
#include "ir/verify/check_priv.h"

/* True if @type is what @declared says. An open function has its expressions; a function at numbers
 * has a number for each. */
static bool
is_declared(const KilnType *declared, const KilnType *type)
{
    KilnType expected = *declared;
    if (expected.rank != type->rank)
        return false;
    for (int d = 0; d < type->rank; d++) {
        const KilnDim *open = expected.open[d];
        if (!open)
            continue;
        if (type->open[d] && !kiln_dim_same(open, type->open[d]))
            return false;
        expected.dims[d] = type->dims[d];
        expected.open[d] = type->open[d];
    }
    return kiln_type_equal(&expected, type);
}

gboolean
kiln_check_call(KilnCheck *check, GError **error)
{
    const KilnInstr *instr = check->instr;
    const KilnDeclaration *callee =
        instr->callee ? kiln_module_find_declaration(instr->function->module, instr->callee) : NULL;
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
        if (!is_declared(type, kiln_check_type(check, i))) {
            g_autofree char *expected = kiln_type_to_string(type);
            return kiln_check_throw(check, i, expected, error);
        }
        if (kiln_buffer_is_strided(instr->operands[i].buffer))
            return kiln_check_throw(check, i, "a dense buffer, not rows with gaps", error);
    }
    return TRUE;
}
