/* SPDX-License-Identifier: Apache-2.0 */
/* Lowering of what moves no data: reshapes, dropout that drops nothing, and variadic ops of one
 * operand become views of their operand's buffer, or that buffer itself. */
#include "ir/lower/lower_priv.h"

#include "graph/infer/common.h"
#include "graph/op/offload.h"

gboolean
kiln_lower_alias_first(KilnLower *l, const KilnNode *node, GError **error)
{
    return kiln_lower_alias(l, node, 0, kiln_lower_operand(l, node, 0), error);
}

gboolean
kiln_lower_unchanged(KilnLower *l, const KilnNode *node, GError **error)
{
    const KilnType *from = &kiln_node_operand(node, 0)->type, *to = &node->results[0].type;
    if (from->dtype == to->dtype && kiln_quant_equal(from->quant, to->quant))
        return kiln_lower_alias_first(l, node, error);
    KilnBuffer *operands[] = { kiln_lower_result(l, node, 0), kiln_lower_operand(l, node, 0) };
    return kiln_lower_emit(l, node, KILN_INSTR_rescale_quantized, operands, 2, NULL, error);
}

gboolean
kiln_lower_dropout(KilnLower *l, const KilnNode *node, GError **error)
{
    const KilnValue *training = kiln_node_operand(node, 2);
    bool trains = training && training->known && training->known->n && training->known->v[0];
    double ratio = 0.5;
    int64_t n = 1;
    bool ratio_known =
        !kiln_node_operand(node, 1) || kiln_infer_floats(kiln_node_operand(node, 1), &ratio, 1, &n);
    if (trains && !ratio_known)
        return kiln_lower_throw_unknown(node, 1, error);
    if (trains && n == 1 && ratio != 0)
        return kiln_lower_throw(node, KILN_ERROR_UNSUPPORTED, error,
                                "expected inference, found training_mode with ratio %g", ratio);
    if (kiln_lower_wants(l, node, 0) && !kiln_lower_alias_first(l, node, error))
        return FALSE;
    if (!kiln_lower_wants(l, node, 1))
        return TRUE;
    const KilnValue *mask = &node->results[1];
    KilnType plain = kiln_type_make(KILN_DTYPE_bool, mask->type.rank, mask->type.dims);
    KilnBuffer *all =
        kiln_lower_weight(l, mask->name, kiln_tensor_new_splat(&plain, 1), &mask->type);
    return kiln_lower_alias(l, node, 1, all, error);
}

gboolean
kiln_lower_variadic(KilnLower *l, const KilnNode *node, GError **error)
{
    if (node->n_operands == 1)
        return kiln_lower_unchanged(l, node, error);
    KilnInstrKind kind = KILN_INSTR_sum;
    kiln_lower_namesake(node, &kind);
    return kiln_lower_generic(l, node, kind, NULL, error);
}

gboolean
kiln_lower_call(KilnLower *l, const KilnNode *node, GError **error)
{
    (void)error;
    g_autofree KilnBuffer **operands = g_new(KilnBuffer *, node->n_results + node->n_operands);
    uint32_t n = 0;
    for (uint32_t r = 0; r < node->n_results; r++)
        operands[n++] = kiln_lower_result(l, node, r);
    for (uint32_t i = 0; i < node->n_operands; i++)
        operands[n++] = kiln_lower_operand(l, node, i);
    KilnInstr *call = kiln_instr_new_call(l->ir, kiln_attrs(node, vendor_executable)->callee,
                                          operands, n, node->n_results, NULL);
    call->name = kiln_arena_strdup(l->ir->arena, node->name);
    return TRUE;
}
