/* SPDX-License-Identifier: Apache-2.0 */
/* Shape functions of spectra: dft and the matrix that sums a spectrum up to bands. */
#include "graph/graph.h"
#include "graph/infer/common.h"
#include "graph/op/signal.h"

/* --- dft: the last dim has 1 element for a real signal, 2 for a complex one --- */

gboolean
kiln_dft_axis(const KilnNode *node, int *out, bool *out_known, GError **error)
{
    const KilnValue *x = kiln_node_operand(node, 0), *operand = kiln_node_operand(node, 2);
    const int rank = x->type.rank;
    int64_t stated = -2;
    *out_known = rank >= 0 && (!operand || (operand->known && operand->known->n == 1));
    if (!*out_known)
        return TRUE;
    if (operand)
        stated = operand->known->v[0];
    *out = kiln_type_axis(&x->type, stated);
    if (*out >= 0 && *out < rank - 1)
        return TRUE;
    return kiln_throw(error, KILN_ERROR_SHAPE,
                      "axis: expected one in front of the last dim of rank %d, found "
                      "%" G_GINT64_FORMAT,
                      rank, stated);
}

/* The extent of the last dim that goes in. */
static gboolean
check_parts(const KilnInfer *in, GError **error)
{
    const KilnType *x = kiln_infer_type(in, 0);
    const KilnAttrs_dft *attrs = kiln_attrs(in->node, dft);
    const int64_t parts = x->dims[x->rank - 1];
    if (parts >= 0 && parts != 1 && parts != 2)
        return kiln_infer_throw_shape(in->node, 0, error, "1 or 2 parts of a number");
    return !attrs->onesided ||
           kiln_infer_require_dim(in, 0, x->rank - 1, attrs->inverse ? 2 : 1, error);
}

/* Elements of the whole signal; NULL where they are not known. */
static const KilnDim *
signal_length(const KilnInfer *in, int axis)
{
    const KilnAttrs_dft *attrs = kiln_attrs(in->node, dft);
    const KilnDim *extent = kiln_type_dim(kiln_infer_type(in, 0), axis, in->dims);
    if (kiln_node_operand(in->node, 1))
        return kiln_infer_element(in, 1, 0);
    if (!attrs->onesided || !attrs->inverse)
        return extent;
    return kiln_dim_scale(in->dims, kiln_dim_sub(in->dims, extent, kiln_dim_number(in->dims, 1)),
                          2);
}

KILN_INFER(dft)
{
    const KilnType *x = kiln_infer_type(in, 0);
    const KilnAttrs_dft *attrs = kiln_attrs(in->node, dft);
    const bool real = attrs->inverse && attrs->onesided;
    int axis = 0;
    bool known;
    if (!kiln_infer_require(in, 0, KILN_SET_FLOATS, error) ||
        !kiln_infer_require_rank(in, 0, 2, KILN_MAX_RANK, error) ||
        !kiln_infer_require(in, 1, KILN_SET_INDICES, error) ||
        !kiln_infer_require_scalar(in, 1, error) ||
        !kiln_infer_require(in, 2, KILN_SET_INDICES, error) ||
        !kiln_infer_require_scalar(in, 2, error) || !kiln_dft_axis(in->node, &axis, &known, error))
        return FALSE;
    in->out[0] = kiln_infer_unknown(x->dtype, x->rank);
    if (x->rank < 0)
        return TRUE;
    kiln_dim_set(&in->out[0], x->rank - 1, real ? 1 : 2);
    if (!check_parts(in, error))
        return FALSE;
    if (!known)
        return TRUE;
    for (int d = 0; d < x->rank - 1; d++)
        kiln_dim_copy(&in->out[0], d, x, d);
    const KilnDim *length = signal_length(in, axis);
    int64_t n;
    if (kiln_dim_is_number(length, &n) && n < 1)
        return kiln_throw(error, KILN_ERROR_SHAPE,
                          "expected a signal of 1 element or more, found %" G_GINT64_FORMAT, n);
    if (attrs->onesided && !attrs->inverse)
        length =
            kiln_dim_add(in->dims, kiln_dim_floor(in->dims, length, kiln_dim_number(in->dims, 2)),
                         kiln_dim_number(in->dims, 1));
    return kiln_dim_set_open(&in->out[0], axis, length, error);
}

/* --- mel_weight_matrix: a row for each bin of the spectrum, a column for each band --- */

KILN_INFER(mel_weight_matrix)
{
    const KilnDType dtype = kiln_attrs(in->node, mel_weight_matrix)->output_datatype;
    for (uint32_t i = 0; i < 5; i++) {
        if (!kiln_infer_require(in, i, i < 3 ? KILN_SET_INDICES : KILN_SET_FLOATS, error) ||
            !kiln_infer_require_scalar(in, i, error))
            return FALSE;
    }
    if (!(KILN_SET_NUMBERS & 1u << dtype))
        return kiln_throw(error, KILN_ERROR_TYPE,
                          "output_datatype: expected a type of numbers, found %s",
                          kiln_dtype_name(dtype));
    in->out[0] = kiln_infer_unknown(dtype, 2);
    const KilnDim *half =
        kiln_dim_floor(in->dims, kiln_infer_element(in, 1, 0), kiln_dim_number(in->dims, 2));
    return kiln_dim_set_open(&in->out[0], 0,
                             kiln_dim_add(in->dims, half, kiln_dim_number(in->dims, 1)), error) &&
           kiln_dim_set_open(&in->out[0], 1, kiln_infer_element(in, 0, 0), error);
}
