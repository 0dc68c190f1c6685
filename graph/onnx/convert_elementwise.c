/* SPDX-License-Identifier: Apache-2.0 */
/* Old forms of element-wise operators, casts, Gemm and Dropout. */
#include "graph/node.h"
#include "graph/onnx/convert.h"
#include "graph/onnx/steps.h"
#include "graph/op/activation.h"
#include "graph/op/cast.h"
#include "graph/op/random.h"

#include <math.h>

/* @value with @n dims of one appended. */
static KilnValue *
append_dims(KilnOnnxCall *call, KilnValue *value, int n, GError **error)
{
    int64_t axes[KILN_MAX_RANK];
    for (int i = 0; i < n; i++)
        axes[i] = value->type.rank + i;
    const KilnOnnxSteps steps = { call, error };
    return kiln_onnx_step_unsqueeze(&steps, value, axes, (uint32_t)n);
}

/* Before opset 7, B's dims could be matched with those of A that begin at `axis`; without an axis
 * the last ones are matched, as now. */
gboolean
kiln_onnx_convert_broadcast_axis(KilnOnnxCall *call, GError **error)
{
    int64_t broadcast = 0, axis = G_MAXINT64;
    KilnValue *a = kiln_onnx_need(call, 0, error);
    KilnValue *b = a ? kiln_onnx_need(call, 1, error) : NULL;
    if (!b || !kiln_onnx_take_int(call, "broadcast", &broadcast, error) ||
        !kiln_onnx_take_int(call, "axis", &axis, error))
        return FALSE;
    if (!broadcast || axis == G_MAXINT64)
        return TRUE;
    if (a->type.rank < 0 || b->type.rank < 0)
        return kiln_onnx_unsupported(call, error, "an axis with operands of unknown rank");
    int first = kiln_type_axis(&a->type, axis);
    int missing = a->type.rank - first - b->type.rank;
    if (first < 0 || missing < 0)
        return kiln_onnx_throw(call, KILN_ERROR_SHAPE, error,
                               "axis %" G_GINT64_FORMAT " does not align rank %d with rank %d",
                               axis, b->type.rank, a->type.rank);
    if (missing)
        call->operands[1] = append_dims(call, b, missing, error);
    return call->operands[1] != NULL;
}

/* A slope of one dim belongs to the channels, axis 1. */
gboolean
kiln_onnx_convert_prelu_channels(KilnOnnxCall *call, GError **error)
{
    KilnValue *x = kiln_onnx_need(call, 0, error);
    KilnValue *slope = x ? kiln_onnx_need(call, 1, error) : NULL;
    if (!slope)
        return FALSE;
    if (x->type.rank < 0 || slope->type.rank < 0)
        return kiln_onnx_unsupported(call, error, "operands of unknown rank");
    if (slope->type.rank != 1 || slope->type.dims[0] == 1 || x->type.rank <= 2)
        return TRUE;
    call->operands[1] = append_dims(call, slope, x->type.rank - 2, error);
    return call->operands[1] != NULL;
}

gboolean
kiln_onnx_convert_clip_attrs(KilnOnnxCall *call, GError **error)
{
    KilnValue *x = kiln_onnx_need(call, 0, error);
    if (!x)
        return FALSE;
    for (uint32_t i = 1; i <= 2; i++) {
        const char *name = i == 1 ? "min" : "max";
        float bound = NAN;
        if (!kiln_onnx_take_float(call, name, &bound, error))
            return FALSE;
        if (!isnan(bound))
            kiln_onnx_set_operand(call, i, kiln_onnx_scalar(call, name, x->type.dtype, bound));
    }
    return TRUE;
}

gboolean
kiln_onnx_convert_selu_1(KilnOnnxCall *call, GError **error)
{
    KilnAttrs_selu *attrs = kiln_onnx_attrs(call, selu);
    attrs->alpha = 1.6732F;
    attrs->gamma = 1.0507F;
    return kiln_onnx_read_attrs(call, error);
}

gboolean
kiln_onnx_convert_gemm_broadcast(KilnOnnxCall *call, GError **error)
{
    int64_t broadcast;
    return kiln_onnx_take_int(call, "broadcast", &broadcast, error);
}

/* --- casts --- */

/* Opset 1 spells the type as the enumerator of TensorProto.DataType. */
gboolean
kiln_onnx_convert_cast_text(KilnOnnxCall *call, GError **error)
{
    static const char *const names[] = { "UNDEFINED", "FLOAT",  "UINT8",  "INT8",   "UINT16",
                                         "INT16",     "INT32",  "INT64",  "STRING", "BOOL",
                                         "FLOAT16",   "DOUBLE", "UINT32", "UINT64" };
    const char *to = "";
    if (!kiln_onnx_take_text(call, "to", &to, error))
        return FALSE;
    for (int i = 0; i < (int)G_N_ELEMENTS(names); i++) {
        if (g_ascii_strcasecmp(names[i], to) == 0 &&
            kiln_dtype_from_onnx(i, &kiln_onnx_attrs(call, cast)->to))
            return TRUE;
    }
    return kiln_onnx_unsupported(call, error, "element type %s", to);
}

/* What the attributes say matters for floats of 8 bits alone. */
static void
drop_idle_attrs(KilnAttrs_cast *attrs)
{
    if (!kiln_dtype_is_low_float(attrs->to) || kiln_dtype_bits(attrs->to) < 8)
        attrs->saturate = true;
    if (attrs->to != KILN_DTYPE_f8e8m0)
        attrs->round_mode = "up";
}

gboolean
kiln_onnx_convert_cast(KilnOnnxCall *call, GError **error)
{
    if (!kiln_onnx_read_attrs(call, error))
        return FALSE;
    drop_idle_attrs(kiln_onnx_attrs(call, cast));
    return TRUE;
}

gboolean
kiln_onnx_convert_cast_like(KilnOnnxCall *call, GError **error)
{
    KilnValue *like = kiln_onnx_need(call, 1, error);
    if (!like || !kiln_onnx_read_attrs(call, error))
        return FALSE;
    kiln_onnx_attrs(call, cast)->to = like->type.dtype;
    drop_idle_attrs(kiln_onnx_attrs(call, cast));
    call->n_operands = 1;
    return TRUE;
}

/* --- Dropout --- */

/* Up to opset 10 the graph is taken as one for inference, as everyone takes it: is_test = 0 was
 * what exporters left there. The mask had the data's type up to opset 7. */
gboolean
kiln_onnx_convert_dropout_attrs(KilnOnnxCall *call, GError **error)
{
    int64_t is_test;
    float ratio = 0.5F;
    KilnValue *x = kiln_onnx_need(call, 0, error);
    if (!x || !kiln_onnx_take_int(call, "is_test", &is_test, error) ||
        !kiln_onnx_take_float(call, "ratio", &ratio, error))
        return FALSE;
    kiln_onnx_set_operand(call, 1, kiln_onnx_scalar(call, "ratio", KILN_DTYPE_f32, ratio));
    bool mask_is_data = call->n_results == 2 && call->opset < 10;
    if (!mask_is_data)
        return TRUE;
    KilnNode *node = kiln_node_new(call->function,
                                   &(KilnNodeSpec){ .op = KILN_OP_dropout,
                                                    .operands = call->operands,
                                                    .n_operands = call->n_operands,
                                                    .n_results = 2 },
                                   error);
    if (!node)
        return FALSE;
    KilnAttrs_cast cast = kiln_cast_to(x->type.dtype);
    return kiln_onnx_set_result(call, 0, &node->results[0]) &&
           kiln_onnx_set_result(
               call, 1, kiln_onnx_build1(call, KILN_OP_cast, &cast, &node->results[1], error));
}

/*   swish(a) · b */
gboolean
kiln_onnx_convert_swiglu(KilnOnnxCall *call, GError **error)
{
    const KilnOnnxSteps s = { call, error };
    KilnAttrs_swish attrs = { .alpha = 1 };
    KilnValue *a = kiln_onnx_need(call, 0, error), *b = a ? kiln_onnx_need(call, 1, error) : NULL;
    if (!b || !kiln_onnx_take_float(call, "alpha", &attrs.alpha, error))
        return FALSE;
    bool alike = a->type.rank < 0 || b->type.rank < 0 || a->type.rank == b->type.rank;
    for (int d = 0; alike && d < MIN(a->type.rank, b->type.rank); d++)
        alike &= a->type.dims[d] < 0 || b->type.dims[d] < 0 || a->type.dims[d] == b->type.dims[d];
    if (!alike) {
        g_autofree char *expected = kiln_type_to_string(&a->type);
        g_autofree char *found = kiln_type_to_string(&b->type);
        return kiln_onnx_throw(call, KILN_ERROR_SHAPE, error, "operand 1: expected %s, found %s",
                               expected, found);
    }
    KilnValue *gate = kiln_onnx_step1(&s, KILN_OP_swish, &attrs, a);
    return kiln_onnx_set_result(call, 0, kiln_onnx_step_mul(&s, gate, b));
}
