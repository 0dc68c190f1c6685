/* SPDX-License-Identifier: Apache-2.0 */
/* Shape functions of convolutions: data [N,C,spatial…], weights [M,C/group,kernel…] (transposed:
 * [C,M/group,kernel…]), bias [M]. */
#include "graph/infer/common.h"
#include "graph/op/conv.h"

static gboolean
check_group(const KilnInfer *in, uint32_t w, int64_t *group, GError **error)
{
    const KilnType *weights = kiln_infer_type(in, w);
    *group = kiln_infer_attr_int(in->node, "group", 1);
    if (*group < 1)
        return kiln_throw(error, KILN_ERROR_SHAPE,
                          "group: expected 1 or more, found %" G_GINT64_FORMAT, *group);
    /* Dim 0 holds the channels of all groups: of the result, or of transposed data. */
    if (weights->rank > 0 && weights->dims[0] >= 0 && weights->dims[0] % *group)
        return kiln_infer_throw_shape(in->node, w, error,
                                      "dim 0 to be a multiple of group %" G_GINT64_FORMAT, *group);
    return TRUE;
}

/* The result's channels: dim @d of the weights, @times over. */
static gboolean
channel_dim(const KilnType *weights, int d, int64_t times, KilnType *out, GError **error)
{
    if (weights->rank < 0)
        return TRUE;
    return kiln_dim_set_scaled(out, 1, weights, d, times, 0, error);
}

gboolean
kiln_infer_conv_shape(const KilnInfer *in, uint32_t w, uint32_t bias, KilnType *out, GError **error)
{
    const KilnType *x = kiln_infer_type(in, 0), *weights = kiln_infer_type(in, w);
    bool transposed = in->node->op == KILN_OP_conv_transpose;
    KilnWindow window;
    int64_t group;
    if (!kiln_window_resolve(in->node, &window, error) || !check_group(in, w, &group, error))
        return FALSE;
    *out = kiln_infer_unknown(out->dtype, window.rank < 0 ? -1 : window.rank + 2);
    if (window.rank < 0)
        return TRUE;
    if (x->rank > 0 && weights->rank > 0 && weights->dims[transposed ? 0 : 1] >= 0) {
        KilnWide channels = (KilnWide)weights->dims[transposed ? 0 : 1] * (transposed ? 1 : group);
        if (x->dims[1] >= 0 && channels != x->dims[1])
            return kiln_infer_throw_shape(in->node, w, error,
                                          "weights for %" G_GINT64_FORMAT
                                          " channels in %" G_GINT64_FORMAT " groups",
                                          x->dims[1], group);
    }
    if (x->rank > 0)
        kiln_dim_copy(out, 0, x, 0);
    if (!channel_dim(weights, transposed ? 1 : 0, transposed ? group : 1, out, error))
        return FALSE;
    for (int i = 0; i < window.rank; i++) {
        kiln_dim_set(out, i + 2, window.out[i]);
        if (window.open_out[i])
            kiln_type_set_dim(out, i + 2, window.open_out[i]);
    }
    return kiln_infer_require_vector(in, bias, out, 1, error);
}

static gboolean
float_conv(KilnInfer *in, GError **error)
{
    const KilnType *x = kiln_infer_type(in, 0);
    KilnDTypeSet types = KILN_SET_FLOATS | KILN_SET_QUANTIZED;
    if (!kiln_infer_require(in, 0, types, error) || !kiln_infer_require(in, 1, types, error))
        return FALSE;
    /* A quantized convolution has a wider bias and may mix signs of data and weights. Channels of
     * the result are dim 1 of transposed weights, of each group. */
    bool transposed = in->node->op == KILN_OP_conv_transpose;
    int axis = !transposed ? 0 : kiln_infer_attr_int(in->node, "group", 1) == 1 ? 1 : -1;
    if (!kiln_infer_check_quantized_product(in, axis, error) ||
        (!x->quant && !kiln_infer_require_alike(in, error)))
        return FALSE;
    in->out[0].dtype = x->dtype;
    return kiln_infer_conv_shape(in, 1, 2, &in->out[0], error);
}

KILN_INFER(conv)
{
    return float_conv(in, error);
}

KILN_INFER(conv_transpose)
{
    return float_conv(in, error);
}

/* Operand @i has @channels in dim 1, and the result's dims elsewhere. */
static gboolean
check_sampling(KilnInfer *in, uint32_t i, KilnWide channels, GError **error)
{
    const KilnType *type = kiln_infer_type(in, i);
    KilnType *out = &in->out[0];
    if (!type)
        return TRUE;
    if (out->rank >= 0 && !kiln_infer_require_rank(in, i, out->rank, out->rank, error))
        return FALSE;
    for (int d = 0; d < out->rank && type->rank >= 0; d++) {
        if (d != 1 && !kiln_infer_require_dim(in, i, d, out->dims[d], error))
            return FALSE;
        if (d != 1)
            kiln_dim_merge(out, d, type, d);
    }
    return type->rank < 0 || channels < 0 || channels > INT64_MAX ||
           kiln_infer_require_dim(in, i, 1, (int64_t)channels, error);
}

KILN_INFER(deform_conv)
{
    const KilnType *x = kiln_infer_type(in, 0);
    const int64_t groups = kiln_attrs(in->node, deform_conv)->offset_group;
    KilnWindow window;
    KilnWide places;
    if (!kiln_infer_require(in, 0, KILN_SET_FLOATS, error))
        return FALSE;
    for (uint32_t i = 1; i < 5; i++) {
        if (kiln_infer_type(in, i) && !kiln_infer_require_like(in, i, 0, error))
            return FALSE;
    }
    in->out[0].dtype = x->dtype;
    if (!kiln_infer_conv_shape(in, 1, 3, &in->out[0], error) ||
        !kiln_window_resolve(in->node, &window, error))
        return FALSE;
    if (groups < 1 || (x->rank > 0 && x->dims[1] >= 0 && x->dims[1] % groups))
        return kiln_throw(
            error, KILN_ERROR_SHAPE,
            "offset_group: expected a divisor of the channels, found %" G_GINT64_FORMAT, groups);
    places = window.rank < 0 ? -1 : groups;
    for (int d = 0; d < window.rank; d++) {
        if (places < 0 || window.kernel[d] < 0 || places > INT64_MAX)
            places = -1;
        else
            places *= window.kernel[d];
    }
    return check_sampling(in, 2, places < 0 ? -1 : places * MAX(window.rank, 1), error) &&
           check_sampling(in, 4, places, error);
}
