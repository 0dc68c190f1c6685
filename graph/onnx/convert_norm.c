/* SPDX-License-Identifier: Apache-2.0 */
/* Forms of the normalisations. */
#include "graph/node.h"
#include "graph/onnx/convert.h"
#include "graph/onnx/steps.h"
#include "graph/op/expand.h"
#include "graph/op/math.h"
#include "graph/op/norm.h"
#include "graph/op/reshape.h"

#include <string.h>

/* Statistics as results: those that nothing reads are left out. Before opset 14 a node that wants
 * them trains; the two that it saves for the backward pass have no counterpart. */
static gboolean
trim_statistics(KilnOnnxCall *call, uint32_t highest, GError **error)
{
    while (call->n_results > 1 && !kiln_onnx_result_read(call, call->n_results - 1))
        call->n_results--;
    if (call->n_results > highest)
        return kiln_onnx_unsupported(call, error, "the statistics saved by training are read");
    return TRUE;
}

gboolean
kiln_onnx_convert_batch_normalization(KilnOnnxCall *call, GError **error)
{
    return trim_statistics(call, 3, error);
}

/* One mean and variance per element instead of per channel: nothing but arithmetic.
 *
 *   (x - mean) / sqrt(var + epsilon) * scale + bias */
static gboolean
normalise_elements(KilnOnnxCall *call, GError **error)
{
    for (uint32_t i = 0; i < 5; i++) {
        if (!kiln_onnx_need(call, i, error))
            return FALSE;
    }
    KilnValue *const *in = call->operands;
    float epsilon = kiln_onnx_attrs(call, batch_normalization)->epsilon;
    const KilnOnnxSteps steps = { call, error };
    KilnValue *small = kiln_onnx_scalar(call, "epsilon", in[4]->type.dtype, epsilon);
    KilnValue *deviation =
        kiln_onnx_step1(&steps, KILN_OP_sqrt, NULL, kiln_onnx_step_add(&steps, in[4], small));
    KilnValue *x = deviation ? kiln_onnx_step_sub(&steps, in[0], in[3]) : NULL;
    x = kiln_onnx_step_mul(&steps, kiln_onnx_step_div(&steps, x, deviation), in[1]);
    x = kiln_onnx_step_add(&steps, x, in[2]);
    return kiln_onnx_set_result(call, 0, x);
}

gboolean
kiln_onnx_convert_batch_normalization_1(KilnOnnxCall *call, GError **error)
{
    int64_t is_test, spatial = 1;
    if (!kiln_onnx_take_int(call, "is_test", &is_test, error) ||
        !kiln_onnx_take_int(call, "spatial", &spatial, error) || !trim_statistics(call, 3, error) ||
        !kiln_onnx_read_attrs(call, error))
        return FALSE;
    kiln_onnx_attrs(call, batch_normalization)->training_mode = call->n_results > 1;
    if (spatial)
        return TRUE;
    if (call->n_results > 1)
        return kiln_onnx_unsupported(call, error, "training with statistics per element");
    return normalise_elements(call, error);
}

/* Opset 18 has a scale and bias per group, opset 21 one per channel:
 *
 *   [G]  --reshape-->  [G,1]  --expand-->  [G,C/G]  --reshape-->  [C] */
static KilnValue *
spread(KilnOnnxCall *call, KilnValue *value, int64_t groups, int64_t channels, GError **error)
{
    int64_t per_group[2] = { groups, channels / groups };
    KilnValue *column = kiln_onnx_ints(call, "column", (int64_t[]){ groups, 1 }, 2);
    KilnValue *shape = kiln_onnx_ints(call, "per_group", per_group, 2);
    KilnValue *flat = kiln_onnx_ints(call, "flat", &channels, 1);
    value = kiln_onnx_build2(call, KILN_OP_reshape, NULL, value, column, error);
    value = value ? kiln_onnx_build2(call, KILN_OP_expand, NULL, value, shape, error) : NULL;
    return value ? kiln_onnx_build2(call, KILN_OP_reshape, NULL, value, flat, error) : NULL;
}

gboolean
kiln_onnx_convert_group_normalization_18(KilnOnnxCall *call, GError **error)
{
    KilnValue *x = kiln_onnx_need(call, 0, error);
    if (!x || !kiln_onnx_read_attrs(call, error))
        return FALSE;
    int64_t groups = kiln_onnx_attrs(call, group_normalization)->num_groups;
    int64_t channels = x->type.rank > 1 ? x->type.dims[1] : -1;
    if (channels < 0)
        return kiln_onnx_unsupported(call, error, "an unknown number of channels");
    if (groups < 1 || channels % groups != 0)
        return kiln_onnx_throw(call, KILN_ERROR_SHAPE, error,
                               "%" G_GINT64_FORMAT " channels in %" G_GINT64_FORMAT " groups",
                               channels, groups);
    for (uint32_t i = 1; i <= 2; i++) {
        KilnValue *value = kiln_onnx_need(call, i, error);
        call->operands[i] = value ? spread(call, value, groups, channels, error) : NULL;
        if (!call->operands[i])
            return FALSE;
    }
    return TRUE;
}

gboolean
kiln_onnx_convert_mean_variance_normalization(KilnOnnxCall *call, GError **error)
{
    static int64_t axes[] = { 0, 2, 3 };
    kiln_onnx_attrs(call, mean_variance_normalization)->axes = (KilnInts){ .n = 3, .v = axes };
    return kiln_onnx_read_attrs(call, error);
}

/* Scale and bias broadcast to all of the data, those of graph/ops to the dims that are normalised.
 */
static bool
is_of_run(const KilnType *x, int axis, const KilnValue *value)
{
    KilnType run = *x;
    run.rank = x->rank - axis;
    memmove(run.dims, x->dims + axis, (size_t)run.rank * sizeof *run.dims);
    return !value || value->type.rank < 0 || kiln_type_may_broadcast(&value->type, &run);
}

/*   layer_normalization(x, 1) * scale + bias */
static gboolean
scale_afterwards(KilnOnnxCall *call, GError **error)
{
    KilnValue *x = call->operands[0], *bias = kiln_onnx_operand(call, 2);
    KilnValue *one = kiln_onnx_scalar(call, "one", x->type.dtype, 1);
    g_autofree char *name = g_strdup_printf("%s.normalized", call->base);
    KilnNode *node = kiln_node_new(call->function,
                                   &(KilnNodeSpec){ .op = call->op,
                                                    .operands = (KilnValue *[]){ x, one },
                                                    .n_operands = 2,
                                                    .n_results = call->n_results,
                                                    .attrs = call->attrs,
                                                    .result_name = name },
                                   error);
    if (!node)
        return FALSE;
    node->results[0].made_up = true;
    const KilnOnnxSteps steps = { call, error };
    KilnValue *y = kiln_onnx_step_mul(&steps, &node->results[0], call->operands[1]);
    if (bias)
        y = kiln_onnx_step_add(&steps, y, bias);
    for (uint32_t i = 1; y && i < call->n_results; i++)
        kiln_onnx_set_result(call, i, &node->results[i]);
    return kiln_onnx_set_result(call, 0, y);
}

gboolean
kiln_onnx_convert_layer_normalization(KilnOnnxCall *call, GError **error)
{
    KilnValue *x = kiln_onnx_need(call, 0, error);
    KilnValue *scale = x ? kiln_onnx_need(call, 1, error) : NULL;
    if (!scale || !kiln_onnx_read_attrs(call, error))
        return FALSE;
    int64_t stated = kiln_onnx_attrs(call, layer_normalization)->axis;
    int axis = x->type.rank < 0 ? -1 : kiln_type_axis(&x->type, stated);
    if (axis < 0 ||
        (is_of_run(&x->type, axis, scale) && is_of_run(&x->type, axis, kiln_onnx_operand(call, 2))))
        return TRUE;
    return scale_afterwards(call, error);
}

/* x in the type in which the definition normalizes. Half floats that are normalized in f32 need no
 * cast: the operator rounds once, as the cast behind it would. */
static KilnDType
normalized_in(KilnDType x, KilnDType stash)
{
    return kiln_dtype_is_half(x) && stash == KILN_DTYPE_f32 ? x : stash;
}

/* The normalized x is rounded to its type before it is scaled: only wide floats round once. */
gboolean
kiln_onnx_convert_rms_normalization(KilnOnnxCall *call, GError **error)
{
    KilnValue *x = kiln_onnx_need(call, 0, error);
    KilnValue *scale = x ? kiln_onnx_need(call, 1, error) : NULL;
    if (!scale || !kiln_onnx_read_attrs(call, error))
        return FALSE;
    KilnAttrs_rms_normalization *attrs = kiln_onnx_attrs(call, rms_normalization);
    const KilnDType dtype = x->type.dtype;
    KilnDType stash;
    if (attrs->stash_type != (int)attrs->stash_type ||
        !kiln_dtype_from_onnx((int)attrs->stash_type, &stash) || !kiln_dtype_is_float(stash))
        return kiln_onnx_throw(call, KILN_ERROR_TYPE, error,
                               "stash_type: expected 1, 10, 11 or 16, found %" G_GINT64_FORMAT,
                               attrs->stash_type);
    int axis = x->type.rank < 0 ? -1 : kiln_type_axis(&x->type, attrs->axis);
    const KilnDType inner = normalized_in(dtype, stash);
    if (inner == dtype && !kiln_dtype_is_half(dtype) && scale->type.dtype == dtype &&
        (axis < 0 || is_of_run(&x->type, axis, scale)))
        return TRUE;
    const KilnOnnxSteps s = { call, error };
    KilnValue *one = kiln_onnx_scalar(call, "one", inner, 1);
    KilnValue *y = kiln_onnx_step2(&s, KILN_OP_rms_normalization, attrs,
                                   kiln_onnx_step_cast(&s, x, inner), one);
    y = kiln_onnx_step_cast(&s, kiln_onnx_step_cast(&s, y, dtype), scale->type.dtype);
    return kiln_onnx_set_result(call, 0, kiln_onnx_step_mul(&s, y, scale));
}
