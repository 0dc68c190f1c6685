/* SPDX-License-Identifier: Apache-2.0 */
/* The operators of com.microsoft.nchwc, which ONNX Runtime's optimizer writes for one machine.
 * Their tensors have blocks of channels as the innermost dim, although their shapes do not show it.
 * Here they have the order that the shapes show. So only filters change:
 *
 *   [out / b, in / b, places.., b of in, b of out]  =>  [out, in, places..]
 *   [out / b, in, places.., b of out]               =>  [out, in, places..], if in < b or each
 *                                                       channel is a group
 *
 * Numbers of channels that are no multiple of b are filled up with channels of 0, which stay. */
#include "graph/onnx/contrib/nchwc.h"

#include "graph/graph.h"
#include "graph/onnx/contrib/contrib.h"
#include "graph/onnx/convert.h"
#include "graph/onnx/converters.h"
#include "graph/onnx/steps.h"
#include "graph/op/resize.h"
#include "graph/op/structure.h"
#include "graph/tensor.h"

#include <string.h>

/* --- convolutions --- */

/* Appends dims of @type after the first two. */
static uint32_t
add_places(const KilnType *type, KilnOnnxExtent *extents, uint32_t n)
{
    for (int d = 2; d < type->rank; d++)
        extents[n++] = (KilnOnnxExtent)KILN_ONNX_NUMBER(type->dims[d]);
    return n;
}

/* @w in blocks of @b output channels, and of input channels if @both. */
static KilnValue *
split_blocks(const KilnOnnxSteps *s, KilnValue *w, int64_t b, bool both)
{
    const int64_t in = both ? b : 1;
    KilnOnnxExtent extents[KILN_MAX_RANK] = { KILN_ONNX_NUMBER(w->type.dims[0] / b),
                                              KILN_ONNX_NUMBER(w->type.dims[1] / in) };
    uint32_t n = add_places(&w->type, extents, 2);
    if (both)
        extents[n++] = (KilnOnnxExtent)KILN_ONNX_NUMBER(b);
    extents[n++] = (KilnOnnxExtent)KILN_ONNX_NUMBER(b);
    return kiln_onnx_step_reshape(s, w, extents, n);
}

/* The filter @w of blocks of @b, as it is without blocks. */
static KilnValue *
plain_filter(const KilnOnnxSteps *s, KilnValue *w, int64_t b, bool both)
{
    const int places = w->type.rank - 2;
    int64_t perm[KILN_MAX_RANK] = { 0, places + 2 + both, 1, places + 2 };
    int n = both ? 4 : 3;
    for (int d = 0; d < places; d++)
        perm[n++] = d + 2;
    KilnOnnxExtent extents[KILN_MAX_RANK] = { KILN_ONNX_NUMBER(w->type.dims[0]),
                                              KILN_ONNX_NUMBER(w->type.dims[1]) };
    const uint32_t rank = add_places(&w->type, extents, 2);
    KilnValue *blocks = split_blocks(s, w, b, both);
    return kiln_onnx_step_reshape(s, kiln_onnx_step_transpose(s, blocks, perm, (uint32_t)n),
                                  extents, rank);
}

/* Whether input channels have blocks, too; FALSE if the dims of the filter contradict @b. */
static gboolean
check_filter(KilnOnnxCall *call, int64_t b, bool *both, GError **error)
{
    const KilnType *w = &call->operands[1]->type;
    int64_t groups = 1;
    for (size_t i = 0; i < call->node->n_attrs; i++) {
        if (strcmp(call->node->attrs[i].proto->name, "group") == 0)
            groups = call->node->attrs[i].proto->i;
    }
    for (int d = 0; d < w->rank; d++) {
        if (w->dims[d] < 0)
            return kiln_onnx_unsupported(call, error, "a filter of unknown dims");
    }
    *both = groups == 1 ? w->dims[1] >= b : w->dims[1] != 1 || w->dims[0] != groups;
    if (w->dims[0] % b == 0 && (!*both || w->dims[1] % b == 0))
        return TRUE;
    return kiln_onnx_throw(call, KILN_ERROR_SHAPE, error,
                           "operand 1: expected channels in blocks of %" G_GINT64_FORMAT
                           ", found %" G_GINT64_FORMAT " and %" G_GINT64_FORMAT,
                           b, w->dims[0], w->dims[1]);
}

/*   activation(conv(x, w, b) + z) */
gboolean
kiln_onnx_convert_nchwc_conv(KilnOnnxCall *call, GError **error)
{
    const KilnOnnxSteps s = { call, error };
    KilnValue *x = kiln_onnx_need(call, 0, error);
    KilnValue *w = x ? kiln_onnx_need(call, 1, error) : NULL;
    const int64_t b =
        w && kiln_onnx_require_rank(call, 1, 3, 5, error) ? kiln_onnx_nchwc_block(call, error) : 0;
    bool both = false;
    if (!b || !check_filter(call, b, &both, error))
        return FALSE;
    call->operands[1] = plain_filter(&s, w, b, both);
    return call->operands[1] && kiln_onnx_convert_fused_conv(call, error);
}

/* --- the order of tensors --- */

static gboolean
read_channels(KilnOnnxCall *call, int64_t *last, KilnValue **x, GError **error)
{
    *x = kiln_onnx_need(call, 0, error);
    return *x && kiln_onnx_require_rank(call, 0, 3, 5, error) &&
           kiln_onnx_take_flag(call, "channels_last", last, error);
}

/* Channels of 0 fill up the last block. */
gboolean
kiln_onnx_convert_reorder_input(KilnOnnxCall *call, GError **error)
{
    const KilnOnnxSteps s = { call, error };
    int64_t last = 0;
    KilnValue *x;
    if (!read_channels(call, &last, &x, error))
        return FALSE;
    if (last)
        x = kiln_onnx_step_channels_second(&s, x);
    const int64_t channels = x ? x->type.dims[1] : 0;
    const int64_t b = channels > 0 && channels % 16 == 0 ? 16 : kiln_onnx_nchwc_block(call, error);
    if (!x || !b)
        return FALSE;
    if (channels < 0)
        return kiln_onnx_unsupported(call, error, "an unknown number of channels");
    if (channels % b == 0)
        return kiln_onnx_set_result(call, 0, kiln_onnx_step1(&s, KILN_OP_identity, NULL, x));
    int64_t pads[2 * KILN_MAX_RANK] = { 0 };
    pads[x->type.rank + 1] = b - channels % b;
    KilnValue *amounts = kiln_onnx_ints(call, "pads", pads, 2 * (uint32_t)x->type.rank);
    return kiln_onnx_set_result(call, 0, kiln_onnx_step_pad(&s, x, amounts));
}

/* `channels` says how many there are without those of 0. */
gboolean
kiln_onnx_convert_reorder_output(KilnOnnxCall *call, GError **error)
{
    const KilnOnnxSteps s = { call, error };
    int64_t last = 0, channels = 0;
    KilnValue *x;
    if (!read_channels(call, &last, &x, error) ||
        !kiln_onnx_take_int(call, "channels", &channels, error))
        return FALSE;
    if (channels < 1 || (x->type.dims[1] >= 0 && channels > x->type.dims[1]))
        return kiln_onnx_throw(call, KILN_ERROR_SHAPE, error,
                               "channels: expected 1 to %" G_GINT64_FORMAT
                               ", found %" G_GINT64_FORMAT,
                               x->type.dims[1], channels);
    const bool all = x->type.dims[1] == channels;
    if (!all)
        x = kiln_onnx_step_slice(&s, x, 1, 0, channels, 1);
    if (last)
        x = kiln_onnx_step_channels_last(&s, x);
    else if (all)
        x = kiln_onnx_step1(&s, KILN_OP_identity, NULL, x);
    return kiln_onnx_set_result(call, 0, x);
}

/* --- upsampling by whole numbers --- */

gboolean
kiln_onnx_convert_nchwc_upsample(KilnOnnxCall *call, GError **error)
{
    KilnInts scales = { 0 };
    bool there = false;
    float factors[KILN_MAX_RANK];
    if (!kiln_onnx_need(call, 0, error) || !kiln_onnx_require_rank(call, 0, 3, 5, error) ||
        !kiln_onnx_take_ints(call, "scales", &scales, &there, error) ||
        !kiln_onnx_read_attrs(call, error))
        return FALSE;
    KilnAttrs_resize *attrs = kiln_onnx_attrs(call, resize);
    const uint32_t rank = (uint32_t)call->operands[0]->type.rank;
    if (!there || scales.n != rank)
        return kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                               "scales: expected %u numbers, found %u", rank, scales.n);
    for (uint32_t i = 0; i < rank; i++)
        factors[i] = (float)scales.v[i];
    if (strcmp(attrs->mode, "nearest") == 0) {
        attrs->coordinate_transformation_mode = "asymmetric";
        attrs->nearest_mode = "floor";
    }
    const KilnType type = kiln_type_make(KILN_DTYPE_f32, 1, (int64_t[]){ rank });
    g_autoptr(GBytes) bytes = g_bytes_new(factors, rank * sizeof *factors);
    kiln_onnx_set_operand(
        call, 2, kiln_onnx_helper(call, "scales", kiln_tensor_new_data(&type, bytes, NULL)));
    return TRUE;
}
