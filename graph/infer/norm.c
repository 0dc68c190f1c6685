/* SPDX-License-Identifier: Apache-2.0 */
/* Shape functions of normalisations: the data's shape, and checks of scales, biases and statistics
 * against its channels. */
#include "graph/infer/common.h"
#include "graph/op/norm.h"

/* --- batch normalisation --- */

/* The dim of @x that is normalized. By default, which is ONNX's form, a vector is a batch of one
 * channel. */
static gboolean
find_channels(const KilnInfer *in, const KilnType *x, KilnType *channels, GError **error)
{
    const int64_t named = kiln_attrs(in->node, batch_normalization)->axis;
    int axis;
    if (x->rank < 0)
        return TRUE;
    if (x->rank == 1 && named == 1) {
        kiln_dim_set(channels, 0, 1);
        return TRUE;
    }
    if (!kiln_infer_axis(x->rank, named, &axis, error))
        return FALSE;
    kiln_dim_copy(channels, 0, x, axis);
    return TRUE;
}

KILN_INFER(batch_normalization)
{
    const KilnType *x = kiln_infer_type(in, 0);
    KilnDTypeSet types = KILN_SET_FLOATS | KILN_SET_QUANTIZED;
    if (!kiln_infer_require(in, 0, types, error) ||
        !kiln_infer_require_rank(in, 0, 1, KILN_MAX_RANK, error) ||
        !kiln_infer_require_like(in, 2, 1, error) || !kiln_infer_require_like(in, 4, 3, error))
        return FALSE;
    KilnType channels = kiln_infer_unknown(kiln_infer_type(in, 3)->dtype, 1);
    if (!find_channels(in, x, &channels, error))
        return FALSE;
    for (uint32_t i = 1; i < 5; i++) {
        if (!kiln_infer_require(in, i, types, error) ||
            !kiln_infer_require_vector(in, i, &channels, 0, error))
            return FALSE;
        if (kiln_infer_type(in, i)->rank == 1)
            kiln_dim_merge(&channels, 0, kiln_infer_type(in, i), 0);
    }
    if (in->node->n_results > 1 && !kiln_attrs(in->node, batch_normalization)->training_mode)
        return kiln_throw(error, KILN_ERROR_INVALID,
                          "expected 1 result where training_mode is not set, found %u",
                          in->node->n_results);
    in->out[0] = *x;
    for (uint32_t r = 1; r < in->node->n_results; r++)
        in->out[r] = channels;
    return TRUE;
}

/* --- checks that `same` calls --- */

/* Operands 1 and 2: scale and bias per channel. */
static gboolean
check_per_channel(const KilnInfer *in, GError **error)
{
    const KilnType *x = kiln_infer_type(in, 0);
    for (uint32_t i = 1; i <= 2; i++) {
        if (!kiln_infer_require_like(in, i, 0, error) ||
            !kiln_infer_require_vector(in, i, x, 1, error))
            return FALSE;
    }
    return TRUE;
}

gboolean
kiln_infer_check_instance_normalization(const KilnInfer *in, GError **error)
{
    return kiln_infer_require_rank(in, 0, 3, KILN_MAX_RANK, error) && check_per_channel(in, error);
}

static gboolean
check_stash_type(int64_t stash_type, KilnDType *out, GError **error)
{
    if (stash_type == (int)stash_type && kiln_dtype_from_onnx((int)stash_type, out) &&
        kiln_dtype_is_float(*out))
        return TRUE;
    return kiln_throw(error, KILN_ERROR_TYPE,
                      "stash_type: expected 1, 10, 11 or 16, found %" G_GINT64_FORMAT, stash_type);
}

gboolean
kiln_infer_check_group_normalization(const KilnInfer *in, GError **error)
{
    const KilnType *x = kiln_infer_type(in, 0);
    const KilnAttrs_group_normalization *attrs = kiln_attrs(in->node, group_normalization);
    KilnDType stash;
    if (!kiln_infer_require_rank(in, 0, 2, KILN_MAX_RANK, error) ||
        !check_stash_type(attrs->stash_type, &stash, error))
        return FALSE;
    if (attrs->num_groups < 1 || (x->rank > 1 && x->dims[1] >= 0 && x->dims[1] % attrs->num_groups))
        return kiln_throw(error, KILN_ERROR_SHAPE,
                          "num_groups: expected a divisor of the channels, found "
                          "%" G_GINT64_FORMAT,
                          attrs->num_groups);
    return check_per_channel(in, error);
}

gboolean
kiln_infer_check_lrn(const KilnInfer *in, GError **error)
{
    int64_t size = kiln_attrs(in->node, lrn)->size;
    if (size < 1)
        return kiln_throw(error, KILN_ERROR_SHAPE,
                          "size: expected 1 or more, found %" G_GINT64_FORMAT, size);
    return kiln_infer_require_rank(in, 0, 2, KILN_MAX_RANK, error);
}

gboolean
kiln_infer_check_mean_variance_normalization(const KilnInfer *in, GError **error)
{
    static const int64_t otherwise[] = { 0, 2, 3 };
    const KilnType *x = kiln_infer_type(in, 0);
    KilnInts axes = kiln_attrs(in->node, mean_variance_normalization)->axes;
    bool marked[KILN_MAX_RANK];
    if (x->rank < 0)
        return TRUE;
    return axes.n ? kiln_infer_mark_axes(axes.v, axes.n, x->rank, marked, error)
                  : kiln_infer_mark_axes(otherwise, 3, x->rank, marked, error);
}

/* --- layer and root-mean-square normalisation --- */

/* Operand @i broadcasts to the dims of the data from @axis on. */
static gboolean
require_of_run(const KilnInfer *in, uint32_t i, int axis, GError **error)
{
    const KilnType *x = kiln_infer_type(in, 0);
    KilnType run = { .dtype = x->dtype };
    for (int d = axis; d < x->rank; d++)
        kiln_dim_copy(&run, run.rank++, x, d);
    return kiln_infer_require_broadcast_to(in, i, &run, error);
}

KILN_INFER(rms_normalization)
{
    const KilnType *x = kiln_infer_type(in, 0);
    const KilnAttrs_rms_normalization *attrs = kiln_attrs(in->node, rms_normalization);
    KilnDType stash;
    int axis = 0;
    if (!kiln_infer_require(in, 0, KILN_SET_FLOATS, error) ||
        !kiln_infer_require_alike(in, error) || !check_stash_type(attrs->stash_type, &stash, error))
        return FALSE;
    if (x->rank >= 0 && (!kiln_infer_axis(x->rank, attrs->axis, &axis, error) ||
                         !require_of_run(in, 1, axis, error)))
        return FALSE;
    in->out[0] = *x;
    return TRUE;
}

KILN_INFER(layer_normalization)
{
    const KilnType *x = kiln_infer_type(in, 0);
    const KilnAttrs_layer_normalization *attrs = kiln_attrs(in->node, layer_normalization);
    KilnDType stash;
    int axis = 0;
    if (!kiln_infer_require(in, 0, KILN_SET_FLOATS | KILN_SET_QUANTIZED, error) ||
        !kiln_infer_require_alike(in, error) || !check_stash_type(attrs->stash_type, &stash, error))
        return FALSE;
    KilnType statistics = kiln_infer_plain(x);
    statistics.dtype = stash;
    if (x->rank >= 0) {
        if (!kiln_infer_axis(x->rank, attrs->axis, &axis, error))
            return FALSE;
        for (int d = axis; d < x->rank; d++)
            kiln_dim_set(&statistics, d, 1);
        if (!require_of_run(in, 1, axis, error) || !require_of_run(in, 2, axis, error))
            return FALSE;
    }
    in->out[0] = *x;
    for (uint32_t r = 1; r < in->node->n_results; r++)
        in->out[r] = statistics;
    return TRUE;
}
