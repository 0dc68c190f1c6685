/* SPDX-License-Identifier: Apache-2.0 */
/* QuantizeLinear and DequantizeLinear of opsets 19 to 28, and QLinearMatMul of opset 21. */
#include "graph/node.h"
#include "graph/onnx/convert.h"
#include "graph/op/cast.h"
#include "graph/op/matmul.h"
#include "graph/op/quantize.h"

/* `output_dtype` says what an absent zero point cannot: then zeros of that type stand there. */
static gboolean
zero_point_of(KilnOnnxCall *call, KilnDType dtype, GError **error)
{
    KilnValue *scale = kiln_onnx_need(call, 1, error);
    if (!scale)
        return FALSE;
    if (!kiln_type_is_static(&scale->type))
        return kiln_onnx_unsupported(call, error, "output_dtype with scales of unknown shape");
    KilnType type = kiln_type_make(dtype, scale->type.rank, scale->type.dims);
    g_autofree char *name = g_strdup_printf("%s.zero_point", call->base);
    KilnValue *zeros =
        kiln_build_constant(call->function, NULL, name, kiln_tensor_new_splat(&type, 0));
    zeros->made_up = true;
    kiln_onnx_set_operand(call, 2, zeros);
    return TRUE;
}

/* The quotient is computed in f32, which is at least as exact as the 16-bit floats are. */
static gboolean
check_precision(KilnOnnxCall *call, GError **error)
{
    int64_t there = 0;
    KilnDType dtype = KILN_DTYPE_f32;
    if (!kiln_onnx_take_int(call, "precision", &there, error) ||
        (there && !kiln_onnx_take_dtype(call, "precision", &dtype, error)))
        return FALSE;
    return kiln_dtype_is_float(dtype) && dtype != KILN_DTYPE_f64 && !kiln_dtype_is_low_float(dtype)
               ? TRUE
               : kiln_onnx_unsupported(call, error, "precision=%s", kiln_dtype_name(dtype));
}

gboolean
kiln_onnx_convert_quantize_linear(KilnOnnxCall *call, GError **error)
{
    int64_t there = 0;
    KilnDType dtype = KILN_DTYPE_u8;
    if (!check_precision(call, error) || !kiln_onnx_take_int(call, "output_dtype", &there, error) ||
        (there && !kiln_onnx_take_dtype(call, "output_dtype", &dtype, error)) ||
        !kiln_onnx_read_attrs(call, error))
        return FALSE;
    const KilnValue *zero_point = kiln_onnx_operand(call, 2);
    dtype = zero_point ? zero_point->type.dtype : dtype;
    if (!kiln_dtype_is_low_float(dtype) || kiln_dtype_bits(dtype) < 8) /* where it says nothing */
        kiln_onnx_attrs(call, quantize_linear)->saturate = true;
    if (zero_point || dtype == KILN_DTYPE_u8)
        return TRUE;
    return zero_point_of(call, dtype, error);
}

/* With another `output_dtype` than the type of the scale, the product is computed in f32 and cast.
 */
static gboolean
dequantize_to(KilnOnnxCall *call, KilnDType dtype, GError **error)
{
    KilnAttrs_cast to_f32 = kiln_cast_to(KILN_DTYPE_f32), to_result = kiln_cast_to(dtype);
    KilnValue *scale = call->operands[1];
    if (!kiln_onnx_read_attrs(call, error))
        return FALSE;
    if (scale->type.dtype != KILN_DTYPE_f32)
        scale = kiln_onnx_build1(call, KILN_OP_cast, &to_f32, scale, error);
    KilnValue *operands[] = { call->operands[0], scale, kiln_onnx_operand(call, 2) };
    KilnValue *result = scale ? kiln_onnx_build(call, KILN_OP_dequantize_linear,
                                                kiln_onnx_attrs(call, dequantize_linear), operands,
                                                operands[2] ? 3 : 2, error)
                              : NULL;
    if (result && dtype != KILN_DTYPE_f32)
        result = kiln_onnx_build1(call, KILN_OP_cast, &to_result, result, error);
    return kiln_onnx_set_result(call, 0, result);
}

gboolean
kiln_onnx_convert_dequantize_linear(KilnOnnxCall *call, GError **error)
{
    int64_t there = 0;
    KilnDType dtype = KILN_DTYPE_f32;
    KilnValue *scale = kiln_onnx_need(call, 1, error);
    if (!scale || !kiln_onnx_take_int(call, "output_dtype", &there, error) ||
        (there && !kiln_onnx_take_dtype(call, "output_dtype", &dtype, error)))
        return FALSE;
    if (!there || dtype == scale->type.dtype)
        return TRUE;
    if (!kiln_dtype_is_float(dtype) || dtype == KILN_DTYPE_f64 || kiln_dtype_is_low_float(dtype))
        return kiln_onnx_unsupported(call, error, "output_dtype=%s", kiln_dtype_name(dtype));
    return dequantize_to(call, dtype, error);
}

/* --- QLinearMatMul --- */

/* The real numbers of operands @at … @at + 2, with a scale for each index of @axis, or one. */
static KilnValue *
real_factor(KilnOnnxCall *call, uint32_t at, int64_t axis, GError **error)
{
    KilnAttrs_dequantize_linear attrs = { .axis = axis };
    KilnValue *operands[] = { call->operands[at], kiln_onnx_need(call, at + 1, error),
                              kiln_onnx_operand(call, at + 2) };
    return operands[1] ? kiln_onnx_build(call, KILN_OP_dequantize_linear, &attrs, operands,
                                         operands[2] ? 3 : 2, error)
                       : NULL;
}

/* No integers are summed up where floats of 8 bits are stored. */
gboolean
kiln_onnx_convert_qlinear_matmul(KilnOnnxCall *call, GError **error)
{
    KilnAttrs_quantize_linear attrs = { .axis = 1, .saturate = true };
    KilnValue *a = kiln_onnx_need(call, 0, error), *b = a ? kiln_onnx_need(call, 3, error) : NULL;
    if (!b)
        return FALSE;
    if (!kiln_dtype_is_low_float(a->type.dtype))
        return TRUE;
    KilnValue *factors[2] = { real_factor(call, 0, -2, error) };
    factors[1] = factors[0] ? real_factor(call, 3, -1, error) : NULL;
    KilnValue *product =
        factors[1] ? kiln_onnx_build(call, KILN_OP_matmul, NULL, factors, 2, error) : NULL;
    KilnValue *operands[] = { product, product ? kiln_onnx_need(call, 6, error) : NULL,
                              kiln_onnx_operand(call, 7) };
    return operands[1] &&
           kiln_onnx_set_result(call, 0,
                                kiln_onnx_build(call, KILN_OP_quantize_linear, &attrs, operands,
                                                operands[2] ? 3 : 2, error));
}
