/* SPDX-License-Identifier: Apache-2.0 */
/* Operators of plug-ins: one instruction, which says itself whether it has an effect. */
#include "ir/lower/lower_priv.h"

#include "graph/op/plugin.h"

/* Operands of a plug-in are plain, and none decides shapes alone: it gets all of them. */
gboolean
kiln_lower_plugin(KilnLower *l, const KilnNode *node, GError **error)
{
    (void)error;
    const KilnInstrInfo *info = kiln_instr_info(KILN_INSTR_plugin_op);
    const KilnOpInfo *op = kiln_op_info(node->op);
    g_autofree KilnBuffer **operands = g_new(KilnBuffer *, node->n_results + node->n_operands + 1);
    uint32_t n = 0;
    for (uint32_t r = 0; r < node->n_results; r++)
        operands[n++] = kiln_lower_result(l, node, r);
    for (uint32_t i = 0; i < node->n_operands; i++)
        operands[n++] = kiln_lower_operand(l, node, i);
    KilnInstrAttrs_plugin_op *attrs = kiln_instr_attrs_new(KILN_INSTR_plugin_op, l->ir->arena);
    kiln_attrs_copy_matching(info->attrs, info->n_attrs, attrs, op->attrs, op->n_attrs, node->attrs,
                             l->ir->arena);
    attrs->effect = node->op == KILN_OP_plugin_effect;
    kiln_lower_name(l, node,
                    kiln_instr_new_stated(l->ir, KILN_INSTR_plugin_op, operands, n, node->n_results,
                                          attrs, NULL));
    return TRUE;
}
