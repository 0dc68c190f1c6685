/* SPDX-License-Identifier: Apache-2.0 */
/* Shape functions of constants, of ops without results, and of ops whose results are stated. */
#include "graph/infer/common.h"

#include "graph/base/number.h"
#include "graph/graph.h"
#include "graph/op/layout.h"

KILN_INFER(none)
{
    (void)in, (void)error;
    return TRUE;
}

/* Another layout of one value, whose shape the result follows when dims are bound later. */
static gboolean
follow_operand(KilnInfer *in, GError **error)
{
    const KilnType *x = kiln_infer_type(in, 0);
    if (x->dtype != in->given[0].dtype)
        return kiln_infer_throw_type(in, 0, kiln_dtype_name(in->given[0].dtype), error);
    in->out[0] = *x;
    in->out[0].layout = in->given[0].layout;
    return TRUE;
}

KILN_INFER(given)
{
    if (!in->given && in->node->n_results)
        return kiln_throw(error, KILN_ERROR_INVALID, "%s needs stated types",
                          kiln_op_info(in->node->op)->name);
    switch (in->node->op) {
    case KILN_OP_pack:
    case KILN_OP_unpack:
        return follow_operand(in, error);
    default:
        for (uint32_t r = 0; r < in->node->n_results; r++)
            in->out[r] = in->given[r];
        return TRUE;
    }
}

static void
known_tensor(KilnInfer *in, const KilnTensor *tensor)
{
    bool readable = tensor->kind == KILN_TENSOR_DATA || tensor->kind == KILN_TENSOR_SPLAT ||
                    tensor->kind == KILN_TENSOR_IOTA;
    int64_t *to = readable ? kiln_known_result(in, 0) : NULL;
    if (!to)
        return;
    g_autoptr(GBytes) bytes = kiln_tensor_view(tensor, NULL);
    if (!bytes) {
        kiln_known_forget(in, 0);
        return;
    }
    for (int64_t k = 0; k < in->known[0]->n; k++)
        to[k] = kiln_element_as_i64(tensor->type.dtype, g_bytes_get_data(bytes, NULL), k);
}

KILN_INFER(constant)
{
    const KilnConstant *constant = kiln_attrs(in->node, const)->value;
    if (!constant)
        return kiln_throw(error, KILN_ERROR_INVALID, "value: expected a constant, found none");
    in->out[0] = constant->type;
    known_tensor(in, constant->tensor);
    return TRUE;
}
