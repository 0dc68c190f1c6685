/* SPDX-License-Identifier: Apache-2.0 */
/* Shape functions of what picks elements by index: the gathers, and checks of the scatters. Index
 * values are data: whether they are in range is decided when the program runs, or when it is
 * compiled where they are known then. */
#include "graph/infer/common.h"
#include "graph/node.h"
#include "graph/op/gather.h"

/* --- gather --- */

/* Result[outer, index, inner] = data[outer, indices[index], inner]; unknown where an index is out
 * of range. */
static void
gather_known(KilnInfer *in, int axis)
{
    const KilnType *x = kiln_infer_type(in, 0);
    const int64_t *from = kiln_known_operand(in, 0), *indices = kiln_known_operand(in, 1);
    int64_t *to = from && indices ? kiln_known_result(in, 0) : NULL;
    if (!to || in->known[0]->n == 0)
        return;
    int64_t count = kiln_type_elements(kiln_infer_type(in, 1)), size = x->dims[axis], inner = 1;
    for (int d = axis + 1; d < x->rank; d++)
        inner *= x->dims[d];
    for (int64_t k = 0; k < in->known[0]->n; k++) {
        int64_t index = indices[k / inner % count];
        index += index < 0 ? size : 0;
        if (index < 0 || index >= size) {
            kiln_known_forget(in, 0);
            return;
        }
        to[k] = from[(k / inner / count * size + index) * inner + k % inner];
    }
}

gboolean
kiln_gather_check(const KilnNode *node, GError **error)
{
    const KilnValue *x = kiln_node_operand(node, 0), *indices = kiln_node_operand(node, 1);
    int axis = kiln_type_axis(&x->type, kiln_attrs(node, gather)->axis);
    int64_t size = axis < 0 ? -1 : x->type.dims[axis];
    if (!indices->known || size < 0 || kiln_type_elements(&node->results[0].type) <= 0)
        return TRUE;
    for (int64_t i = 0; i < indices->known->n; i++) {
        int64_t index = indices->known->v[i];
        if (index < -size || index >= size)
            return kiln_throw(error, KILN_ERROR_SHAPE,
                              "%s (gather): expected indices in [%" G_GINT64_FORMAT
                              ", %" G_GINT64_FORMAT "), found %" G_GINT64_FORMAT,
                              kiln_node_label(node), -size, size, index);
    }
    return TRUE;
}

KILN_INFER(gather)
{
    const KilnType *x = kiln_infer_type(in, 0), *indices = kiln_infer_type(in, 1);
    int axis = 0;
    if (!kiln_infer_require(in, 1, KILN_SET_INDICES, error) ||
        !kiln_infer_require_rank(in, 0, 1, KILN_MAX_RANK, error))
        return FALSE;
    if (x->rank >= 0 && !kiln_infer_axis(x->rank, kiln_attrs(in->node, gather)->axis, &axis, error))
        return FALSE;
    if (x->rank < 0 || indices->rank < 0) {
        in->out[0] = kiln_type_unranked(x->dtype);
        return TRUE;
    }
    if (!kiln_infer_check_rank(x->rank - 1 + indices->rank, error))
        return FALSE;
    KilnType out = { .dtype = x->dtype };
    int along = x->quant ? x->quant->axis : -1;
    if (along >= 0 && along != axis)
        out.quant = kiln_infer_quant_along(in, along < axis ? along : along - 1 + indices->rank);
    for (int d = 0; d < x->rank; d++) {
        for (int i = 0; d == axis && i < indices->rank; i++)
            kiln_dim_copy(&out, out.rank++, indices, i);
        if (d != axis)
            kiln_dim_copy(&out, out.rank++, x, d);
    }
    in->out[0] = out;
    gather_known(in, axis);
    return TRUE;
}

/* The indices of gather_elements and scatter_elements stand at coordinates of the data: along no
 * other dim than @axis may they reach further than it. */
static gboolean
require_within(const KilnInfer *in, int axis, GError **error)
{
    const KilnType *x = kiln_infer_type(in, 0), *indices = kiln_infer_type(in, 1);
    for (int d = 0; d < x->rank && d < indices->rank; d++) {
        if (d != axis && x->dims[d] >= 0 && indices->dims[d] > x->dims[d])
            return kiln_infer_throw_shape(in->node, 1, error,
                                          "dim %d to be at most %" G_GINT64_FORMAT, d, x->dims[d]);
    }
    return TRUE;
}

KILN_INFER(gather_elements)
{
    const KilnType *x = kiln_infer_type(in, 0), *indices = kiln_infer_type(in, 1);
    int axis = 0;
    if (!kiln_infer_require(in, 1, KILN_SET_INDICES, error) ||
        !kiln_infer_require_rank(in, 0, 1, KILN_MAX_RANK, error))
        return FALSE;
    if (x->rank >= 0 &&
        (!kiln_infer_axis(x->rank, kiln_attrs(in->node, gather_elements)->axis, &axis, error) ||
         !kiln_infer_require_rank(in, 1, x->rank, x->rank, error) ||
         !require_within(in, axis, error)))
        return FALSE;
    in->out[0] = kiln_infer_plain(indices);
    in->out[0].dtype = x->dtype;
    if (indices->rank < 0)
        in->out[0] = kiln_infer_unknown(x->dtype, x->rank);
    return TRUE;
}

/* --- gather_nd and scatter_nd: the last dim of the indices is a position in the data --- */

/* Its length, at most @max; -1 where not known. */
static gboolean
position_length(const KilnInfer *in, int max, int64_t *out, GError **error)
{
    const KilnType *indices = kiln_infer_type(in, 1);
    *out = indices->rank > 0 ? indices->dims[indices->rank - 1] : KILN_DIM_UNKNOWN;
    if (*out > max)
        return kiln_infer_throw_shape(in->node, 1, error, "a last dim of at most %d", max);
    return TRUE;
}

KILN_INFER(gather_nd)
{
    const KilnType *x = kiln_infer_type(in, 0), *indices = kiln_infer_type(in, 1);
    int64_t batch = kiln_attrs(in->node, gather_nd)->batch_dims, length;
    if (!kiln_infer_require(in, 1, KILN_SET(i64), error) ||
        !kiln_infer_require_rank(in, 0, 1, KILN_MAX_RANK, error) ||
        !kiln_infer_require_rank(in, 1, 1, KILN_MAX_RANK, error))
        return FALSE;
    if (batch < 0 || (x->rank >= 0 && batch >= x->rank) ||
        (indices->rank >= 0 && batch >= indices->rank))
        return kiln_throw(error, KILN_ERROR_SHAPE,
                          "batch_dims: expected 0 or more and less than both ranks, found "
                          "%" G_GINT64_FORMAT,
                          batch);
    in->out[0] = kiln_type_unranked(x->dtype);
    if (x->rank < 0 || indices->rank < 0)
        return TRUE;
    if (!position_length(in, x->rank - (int)batch, &length, error))
        return FALSE;
    if (length < 0)
        return TRUE;
    if (!kiln_infer_check_rank(indices->rank - 1 + x->rank - batch - length, error))
        return FALSE;
    KilnType out = { .dtype = x->dtype };
    for (int d = 0; d < indices->rank - 1; d++) {
        kiln_dim_copy(&out, out.rank++, indices, d);
        if (d < batch && !kiln_dim_merge(&out, d, x, d))
            return kiln_infer_throw_shape(in->node, 1, error,
                                          "batch dim %d to be %" G_GINT64_FORMAT, d, x->dims[d]);
    }
    for (int d = (int)(batch + length); d < x->rank; d++)
        kiln_dim_copy(&out, out.rank++, x, d);
    in->out[0] = out;
    return TRUE;
}

gboolean
kiln_infer_check_scatter_nd(const KilnInfer *in, GError **error)
{
    const KilnType *x = kiln_infer_type(in, 0), *indices = kiln_infer_type(in, 1);
    int64_t length;
    if (!kiln_infer_require(in, 1, KILN_SET(i64), error) ||
        !kiln_infer_require_like(in, 2, 0, error) ||
        !kiln_infer_require_rank(in, 0, 1, KILN_MAX_RANK, error) ||
        !kiln_infer_require_rank(in, 1, 1, KILN_MAX_RANK, error) ||
        !kiln_infer_one_of("reduction", kiln_attrs(in->node, scatter_nd)->reduction,
                           "none add mul max min", error))
        return FALSE;
    if (x->rank < 0 || indices->rank < 0)
        return TRUE;
    if (!position_length(in, x->rank, &length, error))
        return FALSE;
    if (length < 0)
        return TRUE;
    int outer = indices->rank - 1, rank = outer + x->rank - (int)length;
    if (!kiln_infer_require_rank(in, 2, rank, rank, error))
        return FALSE;
    for (int d = 0; d < rank; d++) {
        int64_t size = d < outer ? indices->dims[d] : x->dims[d - outer + length];
        if (!kiln_infer_require_dim(in, 2, d, size, error))
            return FALSE;
    }
    return TRUE;
}

gboolean
kiln_infer_check_scatter_elements(const KilnInfer *in, GError **error)
{
    const KilnType *x = kiln_infer_type(in, 0), *indices = kiln_infer_type(in, 1);
    const KilnAttrs_scatter_elements *attrs = kiln_attrs(in->node, scatter_elements);
    int axis, rank = x->rank >= 0 ? x->rank : indices->rank;
    if (!kiln_infer_require(in, 1, KILN_SET_INDICES, error) ||
        !kiln_infer_require_like(in, 2, 0, error) ||
        !kiln_infer_require_rank(in, 0, 1, KILN_MAX_RANK, error) ||
        !kiln_infer_one_of("reduction", attrs->reduction, "none add mul max min", error))
        return FALSE;
    if (rank < 0)
        return TRUE;
    if (!kiln_infer_axis(rank, attrs->axis, &axis, error) ||
        !kiln_infer_require_rank(in, 1, rank, rank, error) ||
        !kiln_infer_require_rank(in, 2, rank, rank, error) || !require_within(in, axis, error))
        return FALSE;
    for (int d = 0; d < indices->rank; d++) {
        if (!kiln_infer_require_dim(in, 2, d, indices->dims[d], error))
            return FALSE;
    }
    return TRUE;
}

/* --- tensor_scatter: the update of each sample lies in one piece along the axis --- */

KILN_INFER(tensor_scatter)
{
    const KilnType *cache = kiln_infer_type(in, 0), *update = kiln_infer_type(in, 1);
    const KilnAttrs_tensor_scatter *attrs = kiln_attrs(in->node, tensor_scatter);
    int axis;
    if (!kiln_infer_one_of("mode", attrs->mode, "linear circular", error) ||
        !kiln_infer_require_like(in, 1, 0, error) ||
        !kiln_infer_require_rank(in, 0, 2, KILN_MAX_RANK, error) ||
        !kiln_infer_require(in, 2, KILN_SET(i64), error) ||
        !kiln_infer_require_rank(in, 2, 1, 1, error))
        return FALSE;
    in->out[0] = *cache;
    if (cache->rank < 0)
        return TRUE;
    if (!kiln_infer_axis(cache->rank, attrs->axis, &axis, error) ||
        !kiln_infer_require_rank(in, 1, cache->rank, cache->rank, error) ||
        !kiln_infer_require_dim(in, 2, 0, cache->dims[0], error))
        return FALSE;
    if (axis == 0)
        return kiln_throw(error, KILN_ERROR_SHAPE, "axis: expected one behind dim 0, the samples");
    for (int d = 0; d < update->rank; d++) {
        if (d != axis && !kiln_infer_require_dim(in, 1, d, cache->dims[d], error))
            return FALSE;
    }
    if (update->rank >= 0 && cache->dims[axis] >= 0 && update->dims[axis] > cache->dims[axis])
        return kiln_infer_throw_shape(in->node, 1, error, "dim %d to be at most %" G_GINT64_FORMAT,
                                      axis, cache->dims[axis]);
    return TRUE;
}
