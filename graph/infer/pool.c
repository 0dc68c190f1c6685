/* SPDX-License-Identifier: Apache-2.0 */
/* Shape functions of pooling: windows over the spatial dims of [N,C,spatial…], or all of them. */
#include "graph/graph.h"
#include "graph/infer/common.h"
#include "graph/op/pool.h"

static gboolean
check_pool_attrs(const KilnInfer *in, GError **error)
{
    int64_t order = kiln_infer_attr_int(in->node, "storage_order", 0);
    int64_t p = kiln_infer_attr_int(in->node, "p", 2);
    if (order != 0 && order != 1)
        return kiln_throw(error, KILN_ERROR_SHAPE,
                          "storage_order: expected 0 or 1, found %" G_GINT64_FORMAT, order);
    if (p < 1)
        return kiln_throw(error, KILN_ERROR_SHAPE, "p: expected 1 or more, found %" G_GINT64_FORMAT,
                          p);
    return TRUE;
}

/* Batch and channels of the data, then the window's result dims. */
static KilnType
pooled_shape(const KilnType *x, const KilnWindow *window)
{
    KilnType out = kiln_infer_unknown(x->dtype, window->rank < 0 ? -1 : window->rank + 2);
    for (int d = 0; d < 2 && x->rank >= 0; d++)
        kiln_dim_copy(&out, d, x, d);
    for (int i = 0; i < window->rank; i++) {
        kiln_dim_set(&out, i + 2, window->out[i]);
        if (window->open_out[i])
            kiln_type_set_dim(&out, i + 2, window->open_out[i]);
    }
    return out;
}

KILN_INFER(pool)
{
    const KilnType *x = kiln_infer_type(in, 0);
    bool max = in->node->op == KILN_OP_max_pool;
    KilnDTypeSet types = KILN_SET_FLOATS | KILN_SET_QUANTIZED | (max ? KILN_SET_BYTES : 0);
    KilnWindow window;
    if (!kiln_infer_require(in, 0, types, error) || !check_pool_attrs(in, error) ||
        !kiln_window_resolve(in->node, &window, error))
        return FALSE;
    in->out[0] = pooled_shape(x, &window);
    if (max)
        in->out[0].quant = kiln_infer_moved_quant(in, 0);
    if (in->node->n_results > 1) {
        in->out[1] = kiln_infer_plain(&in->out[0]);
        in->out[1].dtype = KILN_DTYPE_i64;
    }
    return TRUE;
}

KILN_INFER(global_pool)
{
    const KilnType *x = kiln_infer_type(in, 0);
    if (!kiln_infer_require(in, 0, KILN_SET_FLOATS | KILN_SET_QUANTIZED, error) ||
        !kiln_infer_require_rank(in, 0, 2, KILN_MAX_RANK, error) || !check_pool_attrs(in, error))
        return FALSE;
    in->out[0] = kiln_infer_plain(x);
    for (int d = 2; d < x->rank; d++)
        kiln_dim_set(&in->out[0], d, 1);
    if (in->node->op == KILN_OP_global_max_pool)
        in->out[0].quant = kiln_infer_moved_quant(in, 0);
    return TRUE;
}

/* Operand 2 of max_unpool states the whole shape of the result. */
static gboolean
stated_shape(const KilnInfer *in, KilnType *out, GError **error)
{
    const KilnKnown *shape = kiln_infer_known(in, 2);
    int64_t n = kiln_infer_list_length(in, 2);
    if (n >= 0 && out->rank >= 0 && n != out->rank)
        return kiln_infer_throw_shape(in->node, 2, error, "%d elements", out->rank);
    int64_t rank = shape ? shape->n : out->rank >= 0 ? out->rank : n;
    if (!kiln_infer_check_rank(rank, error))
        return FALSE;
    *out = kiln_infer_unknown(out->dtype, rank);
    for (int d = 0; d < out->rank; d++) {
        if (!kiln_dim_set_open(out, d, kiln_infer_element(in, 2, d), error))
            return FALSE;
    }
    return TRUE;
}

KILN_INFER(max_unpool)
{
    const KilnType *x = kiln_infer_type(in, 0), *indices = kiln_infer_type(in, 1);
    KilnWindow window;
    if (!kiln_infer_require(in, 0, KILN_SET_FLOATS, error) ||
        !kiln_infer_require(in, 1, KILN_SET(i64), error) ||
        !kiln_infer_require_list(in, 2, KILN_SET(i64), false, error) ||
        !kiln_window_resolve(in->node, &window, error))
        return FALSE;
    if (x->rank >= 0 && !kiln_infer_require_rank(in, 1, x->rank, x->rank, error))
        return FALSE;
    for (int d = 0; d < x->rank && indices->rank >= 0; d++) {
        if (!kiln_infer_require_dim(in, 1, d, x->dims[d], error))
            return FALSE;
    }
    in->out[0] = pooled_shape(x, &window);
    return !kiln_infer_type(in, 2) || stated_shape(in, &in->out[0], error);
}
