/* SPDX-License-Identifier: Apache-2.0 */
/* Operand types and attributes of instructions, as each row asks. */
#include "ir/verify_priv.h"

gboolean
kiln_instr_check(const KilnInstr *instr, GError **error)
{
    if (instr->kind == KILN_INSTR_copy &&
        !kiln_type_equal(&instr->operands[0].buffer->type, &instr->operands[1].buffer->type)) {
        g_autofree char *to = kiln_type_to_string(&instr->operands[0].buffer->type);
        g_autofree char *from = kiln_type_to_string(&instr->operands[1].buffer->type);
        return kiln_instr_throw(instr, error, "expected %s, found %s", to, from);
    }
    return TRUE;
}
