/* SPDX-License-Identifier: Apache-2.0 */
/* Operators of com.microsoft whose channels are last, or may be: convolutions, pools and
 * normalizations by groups. Transposes stand around the plain operator; passes move them. */
#include "graph/graph.h"
#include "graph/module.h"
#include "graph/node.h"
#include "graph/tensor.h"
#include "graph/onnx/contrib/contrib.h"
#include "graph/onnx/convert.h"
#include "graph/onnx/converters.h"
#include "graph/onnx/steps.h"
#include "graph/op/conv.h"
#include "graph/op/norm.h"
#include "graph/op/pool.h"

/* --- convolutions and pools --- */

/*   activation(conv(x, w, b) + z), where x, z and the result have channels last */
gboolean
kiln_onnx_convert_nhwc_fused_conv(KilnOnnxCall *call, GError **error)
{
    const KilnOnnxSteps s = { call, error };
    KilnValue *x = kiln_onnx_need(call, 0, error), *z = kiln_onnx_operand(call, 3);
    call->operands[0] = kiln_onnx_step_channels_second(&s, x);
    if (!call->operands[0])
        return FALSE;
    if (z && !(call->operands[3] = kiln_onnx_step_channels_second(&s, z)))
        return FALSE;
    if (!kiln_onnx_convert_fused_conv(call, error))
        return FALSE;
    return kiln_onnx_set_result(call, 0, kiln_onnx_step_channels_last(&s, call->results[0]));
}

/* The pads must be known. (x, w, pads, bias) */
gboolean
kiln_onnx_convert_conv_transpose_of_pads(KilnOnnxCall *call, GError **error)
{
    KilnAttrs_conv_transpose *attrs = kiln_onnx_attrs(call, conv_transpose);
    const KilnValue *x = kiln_onnx_need(call, 0, error);
    const KilnValue *value = x ? kiln_onnx_need(call, 2, error) : NULL;
    if (!value || !kiln_onnx_require_rank(call, 0, 3, KILN_MAX_RANK, error) ||
        !KILN_ONNX_REQUIRE_DIMS(call, 2, error, 2 * (x->type.rank - 2)))
        return FALSE;
    const KilnConstant *constant = kiln_value_constant(value);
    if (!constant || constant->type.dtype != KILN_DTYPE_i64)
        return kiln_onnx_unsupported(call, error, "pads that are not known");
    g_autoptr(GBytes) bytes = kiln_tensor_view(constant->tensor, error);
    if (!bytes)
        return FALSE;
    const size_t size = g_bytes_get_size(bytes);
    attrs->pads.n = (uint32_t)(size / sizeof *attrs->pads.v);
    attrs->pads.v =
        kiln_arena_copy(call->import->module->arena, g_bytes_get_data(bytes, NULL), size);
    call->operands[2] = kiln_onnx_operand(call, 3);
    call->n_operands = call->operands[2] ? 3 : 2;
    return TRUE;
}

gboolean
kiln_onnx_convert_nhwc_pool(KilnOnnxCall *call, GError **error)
{
    const KilnOnnxSteps s = { call, error };
    KilnValue *x = kiln_onnx_step_channels_second(&s, kiln_onnx_need(call, 0, error));
    if (!x || !kiln_onnx_read_attrs(call, error))
        return FALSE;
    KilnValue *y = kiln_onnx_step1(&s, call->op, call->attrs, x);
    return kiln_onnx_set_result(call, 0, kiln_onnx_step_channels_last(&s, y));
}

/* --- normalizations by groups --- */

typedef struct {
    int64_t groups, last, activation;
    float epsilon;
} Groups;

static gboolean
read_groups(KilnOnnxCall *call, Groups *out, GError **error)
{
    *out = (Groups){ .last = 1, .epsilon = 1e-5F };
    if (!kiln_onnx_take_int(call, "groups", &out->groups, error) ||
        !kiln_onnx_take_flag(call, "channels_last", &out->last, error) ||
        !kiln_onnx_take_int(call, "activation", &out->activation, error) ||
        !kiln_onnx_take_float(call, "epsilon", &out->epsilon, error))
        return FALSE;
    return out->activation == 0 || out->activation == 1 ||
           kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                           "activation: expected 0 or 1, found %" G_GINT64_FORMAT, out->activation);
}

/* @x, which has channels second, by operands 1 and 2; the order of the model again. */
static KilnValue *
normalized(const KilnOnnxSteps *s, const Groups *groups, KilnValue *x)
{
    const KilnAttrs_group_normalization attrs = { .epsilon = groups->epsilon,
                                                  .num_groups = groups->groups,
                                                  .stash_type = 1 };
    const KilnDType dtype = x ? x->type.dtype : KILN_DTYPE_f32;
    KilnValue *scale = x ? kiln_onnx_need(s->call, 1, s->error) : NULL;
    KilnValue *bias = scale ? kiln_onnx_need(s->call, 2, s->error) : NULL;
    KilnValue *y =
        kiln_onnx_step3(s, KILN_OP_group_normalization, &attrs, x,
                        kiln_onnx_step_cast(s, scale, dtype), kiln_onnx_step_cast(s, bias, dtype));
    if (groups->activation)
        y = kiln_onnx_step_swish(s, y);
    return groups->last ? kiln_onnx_step_channels_last(s, y) : y;
}

/* (x, gamma, beta) */
gboolean
kiln_onnx_convert_group_norm(KilnOnnxCall *call, GError **error)
{
    const KilnOnnxSteps s = { call, error };
    Groups groups;
    KilnValue *x = kiln_onnx_need(call, 0, error);
    if (!x || !read_groups(call, &groups, error))
        return FALSE;
    if (groups.last)
        x = kiln_onnx_step_channels_second(&s, x);
    return kiln_onnx_set_result(call, 0, normalized(&s, &groups, x));
}

/* Operand 3 as it broadcasts to operand 0: it may be one row of channels for each sample. */
static KilnValue *
skip_of(const KilnOnnxSteps *s, const Groups *groups)
{
    const int64_t axes[] = { groups->last ? 1 : 2, groups->last ? 2 : 3 };
    KilnValue *skip = kiln_onnx_need(s->call, 3, s->error);
    return skip && skip->type.rank == 2 ? kiln_onnx_step_unsqueeze(s, skip, axes, 2) : skip;
}

/* (x, gamma, beta, skip, bias): x + skip + bias is result 1, too. */
gboolean
kiln_onnx_convert_skip_group_norm(KilnOnnxCall *call, GError **error)
{
    static const int64_t behind[] = { 1, 2 };
    const KilnOnnxSteps s = { call, error };
    Groups groups;
    KilnValue *x = kiln_onnx_need(call, 0, error), *bias = kiln_onnx_operand(call, 4);
    if (!x || !kiln_onnx_require_rank(call, 0, 4, 4, error) || !read_groups(call, &groups, error))
        return FALSE;
    KilnValue *sum = kiln_onnx_step_add(&s, x, skip_of(&s, &groups));
    if (sum && bias)
        sum = kiln_onnx_step_add(
            &s, sum, groups.last ? bias : kiln_onnx_step_unsqueeze(&s, bias, behind, 2));
    if (!sum || (call->n_results > 1 && !kiln_onnx_set_result(call, 1, sum)))
        return FALSE;
    KilnValue *second = groups.last ? kiln_onnx_step_channels_second(&s, sum) : sum;
    return kiln_onnx_set_result(call, 0, normalized(&s, &groups, second));
}
