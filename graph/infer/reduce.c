/* SPDX-License-Identifier: Apache-2.0 */
/* Shape functions of what works along axes: reductions, argmax, softmax, cumulative sums, top-k. */
#include "graph/infer/common.h"
#include "graph/op/reduce.h"

#include <string.h>

/* --- reductions over the axes of an operand --- */

gboolean
kiln_reduce_axes(const KilnNode *node, bool reduced[KILN_MAX_RANK], bool *out_known, GError **error)
{
    const KilnType *x = &kiln_node_operand(node, 0)->type;
    const KilnValue *axes = kiln_node_operand(node, 1);
    memset(reduced, 0, sizeof(bool) * KILN_MAX_RANK);
    *out_known = false;
    bool empty = !axes || kiln_type_elements(&axes->type) == 0;
    if (x->rank < 0 || (!empty && !axes->known))
        return TRUE;
    *out_known = true;
    if (!empty)
        return kiln_infer_mark_axes(axes->known->v, axes->known->n, x->rank, reduced, error);
    bool noop = kiln_infer_attr_bool(node, "noop_with_empty_axes", false);
    for (int d = 0; d < x->rank; d++)
        reduced[d] = !noop;
    return TRUE;
}

static KilnDTypeSet
reduce_types(KilnOp op)
{
    KilnDTypeSet words = KILN_SET_FLOATS | KILN_SET_INDICES | KILN_SET(u32) | KILN_SET(u64);
    if (op == KILN_OP_reduce_max || op == KILN_OP_reduce_min)
        return words | KILN_SET_BYTES | KILN_SET(bool) | KILN_SET_QUANTIZED;
    return words | KILN_SET_QUANTIZED;
}

/* The result where the axes, or the operand's rank, are not known: its rank may be. */
static KilnType
reduce_unknown(const KilnInfer *in, bool keepdims)
{
    const KilnType *x = kiln_infer_type(in, 0);
    bool noop = kiln_infer_attr_bool(in->node, "noop_with_empty_axes", false);
    int64_t n = kiln_infer_type(in, 1) ? kiln_infer_list_length(in, 1) : 0;
    if (keepdims)
        return kiln_infer_unknown(x->dtype, x->rank);
    if (n == 0 && !noop)
        return kiln_type_scalar(x->dtype);
    return x->rank < 0 || n < 0 ? kiln_type_unranked(x->dtype)
                                : kiln_infer_unknown(x->dtype, x->rank - n);
}

KILN_INFER(reduce)
{
    const KilnType *x = kiln_infer_type(in, 0);
    bool keepdims = kiln_infer_attr_bool(in->node, "keepdims", true);
    bool reduced[KILN_MAX_RANK], axes_known;
    if (!kiln_infer_require(in, 0, reduce_types(in->node->op), error) ||
        !kiln_infer_require_list(in, 1, KILN_SET(i64), true, error) ||
        !kiln_reduce_axes(in->node, reduced, &axes_known, error))
        return FALSE;
    if (!axes_known) {
        in->out[0] = reduce_unknown(in, keepdims);
        return TRUE;
    }
    KilnType out = { .dtype = x->dtype };
    for (int d = 0; d < x->rank; d++) {
        if (!reduced[d])
            kiln_dim_copy(&out, out.rank++, x, d);
        else if (keepdims)
            kiln_dim_set(&out, out.rank++, 1);
    }
    in->out[0] = out;
    kiln_known_reduce(in, reduced);
    return TRUE;
}

KILN_INFER(arg_reduce)
{
    const KilnType *x = kiln_infer_type(in, 0);
    bool keepdims = kiln_infer_attr_bool(in->node, "keepdims", true);
    int axis;
    if (!kiln_infer_require(in, 0, KILN_SET_NUMBERS, error))
        return FALSE;
    if (x->rank < 0) {
        in->out[0] = kiln_type_unranked(KILN_DTYPE_i64);
        return TRUE;
    }
    if (!kiln_infer_axis(x->rank, kiln_infer_attr_int(in->node, "axis", 0), &axis, error))
        return FALSE;
    KilnType out = { .dtype = KILN_DTYPE_i64 };
    for (int d = 0; d < x->rank; d++) {
        if (d != axis)
            kiln_dim_copy(&out, out.rank++, x, d);
        else if (keepdims)
            kiln_dim_set(&out, out.rank++, 1);
    }
    in->out[0] = out;
    return TRUE;
}

/* --- along one axis, shape unchanged --- */

KILN_INFER(softmax)
{
    const KilnType *x = kiln_infer_type(in, 0);
    int axis;
    if (!kiln_infer_require(in, 0, KILN_SET_FLOATS | KILN_SET_QUANTIZED, error))
        return FALSE;
    if (x->rank >= 0 &&
        !kiln_infer_axis(x->rank, kiln_infer_attr_int(in->node, "axis", -1), &axis, error))
        return FALSE;
    int64_t p = kiln_infer_attr_int(in->node, "p", 2);
    if (p != 1 && p != 2)
        return kiln_throw(error, KILN_ERROR_SHAPE, "p: expected 1 or 2, found %" G_GINT64_FORMAT,
                          p);
    in->out[0] = *x;
    return TRUE;
}

gboolean
kiln_infer_check_cum_sum(const KilnInfer *in, GError **error)
{
    const KilnType *x = kiln_infer_type(in, 0);
    const KilnKnown *axis = kiln_infer_known(in, 1);
    int ignored;
    if (!kiln_infer_require(in, 1, KILN_SET_INDICES, error) ||
        !kiln_infer_require_scalar(in, 1, error))
        return FALSE;
    return !axis || axis->n != 1 || x->rank < 0 ||
           kiln_infer_axis(x->rank, axis->v[0], &ignored, error);
}

/* --- top-k --- */

/* Dim @axis of @out becomes k. */
static gboolean
top_k_dim(const KilnInfer *in, KilnType *out, int axis, GError **error)
{
    const KilnKnown *k = kiln_infer_known(in, 1);
    int64_t size = out->dims[axis];
    if (!k || k->n != 1)
        return kiln_dim_set_open(out, axis, kiln_infer_element(in, 1, 0), error);
    if (k->v[0] < 0 || (size >= 0 && k->v[0] > size))
        return kiln_throw(error, KILN_ERROR_SHAPE,
                          "k: expected at most the %" G_GINT64_FORMAT
                          " elements of axis %d, found %" G_GINT64_FORMAT,
                          size, axis, k->v[0]);
    kiln_dim_set(out, axis, k->v[0]);
    return TRUE;
}

KILN_INFER(top_k)
{
    const KilnType *x = kiln_infer_type(in, 0);
    int axis;
    if (!kiln_infer_require(in, 0, KILN_SET_NUMBERS, error) ||
        !kiln_infer_require(in, 1, KILN_SET(i64), error) ||
        !kiln_infer_require_scalar(in, 1, error))
        return FALSE;
    KilnType out = kiln_infer_plain(x);
    if (x->rank >= 0 &&
        (!kiln_infer_axis(x->rank, kiln_attrs(in->node, top_k)->axis, &axis, error) ||
         !top_k_dim(in, &out, axis, error)))
        return FALSE;
    in->out[0] = in->out[1] = out;
    if (x->quant && x->quant->axis >= 0 && x->rank >= 0 && x->quant->axis != axis)
        in->out[0].quant = x->quant;
    in->out[1].dtype = KILN_DTYPE_i64;
    return TRUE;
}
