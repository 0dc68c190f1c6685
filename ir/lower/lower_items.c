/* SPDX-License-Identifier: Apache-2.0 */
/* Lowering of sequences, optionals and maps. Where data decides dims of a tensor that comes out of
 * one, they are measured first:
 *
 *     %y = sequence_at(%s, %i) : f32[n,3]    =>    item_dims @out %dims, @in %s, @in %i {dims =
 * [0]} define @in %dims {values = [n]} sequence_at @out %y, @in %s, @in %i */
#include "graph/module/define.h"
#include "graph/op/items.h"
#include "ir/lower/lower_priv.h"

gboolean
kiln_lower_item_none(KilnLower *l, const KilnNode *node, GError **error)
{
    KilnBuffer *to = kiln_lower_result(l, node, 0);
    return kiln_lower_emit(l, node, KILN_INSTR_item_none, &to, 1, NULL, error);
}

gboolean
kiln_lower_item_list(KilnLower *l, const KilnNode *node, GError **error)
{
    g_autofree KilnBuffer **operands = g_new0(KilnBuffer *, node->n_operands + 1);
    operands[0] = kiln_lower_result(l, node, 0);
    for (uint32_t i = 0; i < node->n_operands; i++)
        operands[1 + i] = kiln_lower_operand(l, node, i);
    return kiln_lower_emit(l, node, KILN_INSTR_item_list, operands, 1 + node->n_operands, NULL,
                           error);
}

/* The dims of result 0 that @node defines: a new buffer for their numbers, and their list. NULL
 * where it defines none. */
static KilnBuffer *
alloc_dims(KilnLower *l, const KilnNode *node, KilnInts *out_dims)
{
    const KilnStrings *names = kiln_node_item_dims(node);
    int64_t dims[KILN_MAX_RANK];
    int n = 0;
    for (uint32_t d = 0; d < names->n && d < KILN_MAX_RANK; d++) {
        if (*names->v[d])
            dims[n++] = d;
    }
    *out_dims = kiln_lower_ints(l, dims, n);
    return n ? kiln_lower_line(l, node, "dims", KILN_DTYPE_i64, kiln_size_make(n)) : NULL;
}

gboolean
kiln_lower_item_out(KilnLower *l, const KilnNode *node, GError **error)
{
    const bool at = node->op == KILN_OP_sequence_at;
    KilnInstrAttrs_item_dims attrs = { .dims = { 0 } };
    KilnBuffer *operands[] = { alloc_dims(l, node, &attrs.dims), kiln_lower_operand(l, node, 0),
                               at ? kiln_lower_operand(l, node, 1) : NULL };
    const uint32_t n = at ? 3 : 2;
    if (operands[0] &&
        (!kiln_lower_emit(l, node, KILN_INSTR_item_dims, operands, n, &attrs, error) ||
         !kiln_lower_numbers(l, node, operands[0], error)))
        return FALSE;
    operands[0] = kiln_lower_result(l, node, 0);
    return kiln_lower_emit(l, node, at ? KILN_INSTR_sequence_at : KILN_INSTR_optional_get_element,
                           operands, n, NULL, error);
}

gboolean
kiln_lower_concat_from_sequence(KilnLower *l, const KilnNode *node, GError **error)
{
    const KilnAttrs_concat_from_sequence *stated = kiln_attrs(node, concat_from_sequence);
    const int64_t axis = kiln_type_axis(&node->results[0].type, stated->axis);
    KilnInstrAttrs_concat_dims of_dims = { .axis = axis, .new_axis = stated->new_axis };
    const KilnInstrAttrs_concat_from_sequence attrs = { .axis = axis,
                                                        .new_axis = stated->new_axis };
    KilnBuffer *operands[] = { alloc_dims(l, node, &of_dims.dims), kiln_lower_operand(l, node, 0) };
    if (operands[0] &&
        (!kiln_lower_emit(l, node, KILN_INSTR_concat_dims, operands, 2, &of_dims, error) ||
         !kiln_lower_numbers(l, node, operands[0], error)))
        return FALSE;
    operands[0] = kiln_lower_result(l, node, 0);
    return kiln_lower_emit(l, node, KILN_INSTR_concat_from_sequence, operands, 2, &attrs, error);
}

gboolean
kiln_lower_cast_map(KilnLower *l, const KilnNode *node, GError **error)
{
    const KilnInstrAttrs_cast_map attrs = { .max_map = kiln_attrs(node, cast_map)->max_map };
    KilnInts dims;
    KilnBuffer *operands[] = { alloc_dims(l, node, &dims), kiln_lower_operand(l, node, 0) };
    if (operands[0] &&
        (!kiln_lower_emit(l, node, KILN_INSTR_map_length, operands, 2, NULL, error) ||
         !kiln_lower_numbers(l, node, operands[0], error)))
        return FALSE;
    operands[0] = kiln_lower_result(l, node, 0);
    return kiln_lower_emit(l, node, KILN_INSTR_cast_map, operands, 2, &attrs, error);
}
