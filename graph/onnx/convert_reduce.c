/* SPDX-License-Identifier: Apache-2.0 */
/* Old forms of reductions, softmax and TopK. */
#include "graph/node.h"
#include "graph/onnx/convert.h"
#include "graph/op/generate.h"
#include "graph/op/reshape.h"

gboolean
kiln_onnx_convert_reduce_axes(KilnOnnxCall *call, GError **error)
{
    KilnInts axes;
    bool there;
    if (!kiln_onnx_need(call, 0, error) || !kiln_onnx_take_ints(call, "axes", &axes, &there, error))
        return FALSE;
    if (there && axes.n)
        kiln_onnx_set_operand(call, 1, kiln_onnx_ints(call, "axes", axes.v, axes.n));
    return TRUE;
}

/* Back to the operand's shape: its type says what inference cannot tell where a dim is no number.
 */
static gboolean
unfold(KilnOnnxCall *call, KilnValue *folded, KilnValue *shape, GError **error)
{
    KilnAttrs_reshape attrs = { .allowzero = true };
    KilnNode *node = kiln_node_new(call->function,
                                   &(KilnNodeSpec){ .op = KILN_OP_reshape,
                                                    .operands = (KilnValue *[]){ folded, shape },
                                                    .n_operands = 2,
                                                    .attrs = &attrs,
                                                    .types = &call->operands[0]->type },
                                   error);
    return node && kiln_onnx_set_result(call, 0, &node->results[0]);
}

/* Before opset 13 the operand is folded to two dims at `axis`, and the second is normalised:
 *
 *      x                    x ──────────┐
 *      │                 flatten      shape
 *   softmax      =>         │           │
 *                        softmax ──── reshape
 *
 * Where axis is the last dim both forms are the same. */
gboolean
kiln_onnx_convert_softmax_2d(KilnOnnxCall *call, GError **error)
{
    int64_t axis = 1;
    KilnValue *x = kiln_onnx_need(call, 0, error);
    if (!x || !kiln_onnx_take_int(call, "axis", &axis, error))
        return FALSE;
    int rank = x->type.rank;
    if (rank >= 0 && (axis < -rank || axis >= rank) && !(axis == 1 && rank <= 1))
        return kiln_onnx_throw(call, KILN_ERROR_SHAPE, error,
                               "axis %" G_GINT64_FORMAT " is out of range for rank %d", axis, rank);
    bool last = axis == -1 || (rank >= 0 && axis == rank - 1);
    if (last)
        return TRUE; /* the default of all three ops is -1 */
    KilnAttrs_flatten flatten = { .axis = MIN(axis, rank < 0 ? axis : rank) };
    KilnValue *folded = kiln_onnx_build1(call, KILN_OP_flatten, &flatten, x, error);
    KilnValue *normal =
        folded ? kiln_onnx_build1(call, call->op, call->attrs, folded, error) : NULL;
    KilnValue *shape = NULL;
    if (normal && kiln_type_is_static(&x->type))
        shape = kiln_onnx_ints(call, "shape", x->type.dims, (uint32_t)rank);
    else if (normal)
        shape = kiln_onnx_build1(call, KILN_OP_shape, NULL, x, error);
    return shape && unfold(call, normal, shape, error);
}

gboolean
kiln_onnx_convert_top_k_1(KilnOnnxCall *call, GError **error)
{
    int64_t k = 0;
    if (!kiln_onnx_need(call, 0, error) || !kiln_onnx_take_int(call, "k", &k, error))
        return FALSE;
    kiln_onnx_set_operand(call, 1, kiln_onnx_ints(call, "k", &k, 1));
    return TRUE;
}
