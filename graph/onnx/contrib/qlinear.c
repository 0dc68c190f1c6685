/* SPDX-License-Identifier: Apache-2.0 */
/* The quantized operators of com.microsoft, which ONNX Runtime's quantizer writes beside ONNX's
 * own: operands and result are integers with a scale and a zero point each.
 *
 *   QLinearAdd(a, as, az, b, bs, bz, ys, yz)
 *     =>  quantize_linear(add(dequantize_linear(a, as, az), dequantize_linear(b, bs, bz)), ys, yz)
 *
 * Passes make one integer operator of it again where there is one. */
#include "graph/graph.h"
#include "graph/onnx/contrib/contrib.h"
#include "graph/onnx/convert.h"
#include "graph/onnx/steps.h"
#include "graph/op/cast.h"
#include "graph/op/logic.h"
#include "graph/op/matmul.h"
#include "graph/op/quantize.h"
#include "graph/op/softmax.h"

KilnValue *
kiln_onnx_step_dequantize(const KilnOnnxSteps *s, KilnValue *const operands[3], int64_t axis,
                          int64_t block)
{
    const KilnAttrs_dequantize_linear attrs = { .axis = axis, .block_size = block };
    return operands[0] && operands[1] ? kiln_onnx_build(s->call, KILN_OP_dequantize_linear, &attrs,
                                                        operands, operands[2] ? 3 : 2, s->error)
                                      : NULL;
}

/* Operands @at … @at + 2: the integers, their scale and their zero point, the real numbers of them
 * along @axis where there is a scale for each place there. */
static KilnValue *
real(KilnOnnxCall *call, uint32_t at, int64_t axis, GError **error)
{
    KilnValue *x = kiln_onnx_need(call, at, error);
    KilnValue *scale = x ? kiln_onnx_need(call, at + 1, error) : NULL;
    KilnValue *operands[] = { x, scale, kiln_onnx_operand(call, at + 2) };
    return kiln_onnx_step_dequantize(&(KilnOnnxSteps){ call, error }, operands, axis, 0);
}

/* The same, where all have one scale and one zero point. */
static KilnValue *
real_of_one(KilnOnnxCall *call, uint32_t at, GError **error)
{
    return kiln_onnx_require_one(call, at + 1, error) && kiln_onnx_require_one(call, at + 2, error)
               ? real(call, at, 1, error)
               : NULL;
}

/* The result: @y as integers by the scale and the zero point of operands @at and @at + 1. */
static gboolean
set_integers(KilnOnnxCall *call, KilnValue *y, uint32_t at, GError **error)
{
    KilnValue *scale = y ? kiln_onnx_need(call, at, error) : NULL;
    KilnValue *operands[] = { y, scale, kiln_onnx_operand(call, at + 1) };
    return scale && kiln_onnx_require_one(call, at, error) &&
           kiln_onnx_require_one(call, at + 1, error) &&
           kiln_onnx_set_result(call, 0,
                                kiln_onnx_build(call, KILN_OP_quantize_linear, NULL, operands,
                                                operands[2] ? 3 : 2, error));
}

/* The row's operator of @n groups of three operands from @first on; the result's two from @result.
 */
static gboolean
on_reals(KilnOnnxCall *call, uint32_t first, uint32_t n, uint32_t result, GError **error)
{
    const KilnOnnxSteps s = { call, error };
    int64_t channels_last = 0;
    g_autofree KilnValue **operands = g_new0(KilnValue *, n);
    if (!kiln_onnx_take_flag(call, "channels_last", &channels_last, error) ||
        !kiln_onnx_read_attrs(call, error))
        return FALSE;
    for (uint32_t i = 0; i < n; i++) {
        operands[i] = real_of_one(call, first + 3 * i, error);
        if (operands[i] && channels_last)
            operands[i] = kiln_onnx_step_channels_second(&s, operands[i]);
        if (!operands[i])
            return FALSE;
    }
    KilnValue *y = kiln_onnx_build(call, call->op, call->attrs, operands, n, error);
    if (channels_last)
        y = kiln_onnx_step_channels_last(&s, y);
    return set_integers(call, y, result, error);
}

gboolean
kiln_onnx_convert_qlinear_unary(KilnOnnxCall *call, GError **error)
{
    return on_reals(call, 0, 1, 3, error);
}

gboolean
kiln_onnx_convert_qlinear_binary(KilnOnnxCall *call, GError **error)
{
    return on_reals(call, 0, 2, 6, error);
}

/* The result's scale and zero point come first. */
gboolean
kiln_onnx_convert_qlinear_concat(KilnOnnxCall *call, GError **error)
{
    if (call->n_operands < 5 || (call->n_operands - 2) % 3 != 0)
        return kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                               "expected 2 operands and 3 for each part, found %u",
                               call->n_operands);
    return on_reals(call, 2, (call->n_operands - 2) / 3, 0, error);
}

/* `opset` says how softmax-13's forerunners fold the operand to two dims; only the last axis means
 * the same in both. */
gboolean
kiln_onnx_convert_qlinear_softmax(KilnOnnxCall *call, GError **error)
{
    int64_t opset = 13;
    if (!kiln_onnx_take_int(call, "opset", &opset, error) || !kiln_onnx_read_attrs(call, error))
        return FALSE;
    const KilnValue *x = kiln_onnx_need(call, 0, error);
    if (!x)
        return FALSE;
    int64_t axis = kiln_onnx_attrs(call, softmax)->axis;
    if (opset < 13 && axis != -1 && axis != x->type.rank - 1)
        return kiln_onnx_unsupported(
            call, error, "axis=%" G_GINT64_FORMAT " of opset %" G_GINT64_FORMAT, axis, opset);
    return on_reals(call, 0, 1, 3, error);
}

/* The bias is of i32 by the product of the scales of a and b (and alpha), without a zero point. */
static KilnValue *
bias_of(const KilnOnnxSteps *s, KilnValue *c, float alpha)
{
    KilnValue *scale = kiln_onnx_step_mul(s, s->call->operands[1], s->call->operands[4]);
    if (alpha != 1)
        scale = kiln_onnx_step_mul_number(s, scale, (double)alpha);
    return kiln_onnx_step_mul(s, kiln_onnx_step_cast(s, c, KILN_DTYPE_f32), scale);
}

/* QGemm(a, as, az, b, bs, bz, c, ys, yz): c may be absent, and so may be the last two for a result
 * of f32. */
gboolean
kiln_onnx_convert_qgemm(KilnOnnxCall *call, GError **error)
{
    if (!kiln_onnx_read_attrs(call, error))
        return FALSE;
    const KilnAttrs_gemm *attrs = kiln_onnx_attrs(call, gemm);
    KilnValue *operands[3] = { real_of_one(call, 0, error) };
    operands[1] = operands[0] ? real(call, 3, attrs->transB ? 0 : 1, error) : NULL;
    if (!operands[1])
        return FALSE;
    KilnValue *c = kiln_onnx_operand(call, 6);
    operands[2] = c ? bias_of(&(KilnOnnxSteps){ call, error }, c, attrs->alpha) : NULL;
    if (c && !operands[2])
        return FALSE;
    KilnValue *y = kiln_onnx_build(call, KILN_OP_gemm, attrs, operands, c ? 3 : 2, error);
    return kiln_onnx_operand(call, 7) ? set_integers(call, y, 7, error)
                                      : kiln_onnx_set_result(call, 0, y);
}

/* Only the data and the result have channels last. */
gboolean
kiln_onnx_convert_qlinear_conv_contrib(KilnOnnxCall *call, GError **error)
{
    const KilnOnnxSteps s = { call, error };
    int64_t channels_last = 0;
    if (!kiln_onnx_take_flag(call, "channels_last", &channels_last, error) ||
        !kiln_onnx_read_attrs(call, error))
        return FALSE;
    KilnValue *x = kiln_onnx_need(call, 0, error);
    if (!x || !channels_last)
        return x != NULL;
    call->operands[0] = kiln_onnx_step_channels_second(&s, x);
    if (!call->operands[0])
        return FALSE;
    KilnValue *y =
        kiln_onnx_build(call, call->op, call->attrs, call->operands, call->n_operands, error);
    return y && kiln_onnx_set_result(call, 0, kiln_onnx_step_channels_last(&s, y));
}

/* (condition, x, scale, zero, y, scale, zero, result scale, result zero) */
gboolean
kiln_onnx_convert_qlinear_where(KilnOnnxCall *call, GError **error)
{
    KilnValue *operands[3] = { kiln_onnx_need(call, 0, error) };
    for (uint32_t i = 1; i < 3 && operands[i - 1]; i++)
        operands[i] = real_of_one(call, 3 * i - 2, error);
    return operands[2] &&
           set_integers(call, kiln_onnx_build(call, KILN_OP_where, NULL, operands, 3, error), 7,
                        error);
}

/* Axes are an attribute. */
gboolean
kiln_onnx_convert_qlinear_reduce_mean(KilnOnnxCall *call, GError **error)
{
    KilnInts axes = { 0 };
    bool there = false;
    if (!kiln_onnx_take_ints(call, "axes", &axes, &there, error) ||
        !kiln_onnx_read_attrs(call, error))
        return FALSE;
    KilnValue *operands[2] = { real_of_one(call, 0, error) };
    if (operands[0] && there)
        operands[1] = kiln_onnx_ints(call, "axes", axes.v, axes.n);
    return operands[0] && set_integers(call,
                                       kiln_onnx_build(call, call->op, call->attrs, operands,
                                                       operands[1] ? 2 : 1, error),
                                       3, error);
}
