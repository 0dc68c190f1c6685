/* SPDX-License-Identifier: Apache-2.0 */
/* QuantizeLinear and DequantizeLinear of opsets 19 and 21. */
#include "graph/node.h"
#include "graph/onnx/convert.h"

/* Blocks of one axis with a scale each have no canonical form yet. */
static gboolean
check_block_size(KilnOnnxCall *call, GError **error)
{
    int64_t block_size = 0;
    if (!kiln_onnx_take_int(call, "block_size", &block_size, error))
        return FALSE;
    return block_size == 0 ||
           kiln_onnx_unsupported(call, error, "block_size=%" G_GINT64_FORMAT, block_size);
}

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

gboolean
kiln_onnx_convert_quantize_linear(KilnOnnxCall *call, GError **error)
{
    int64_t saturate, there = 0; /* `saturate` matters for 8-bit floats alone */
    KilnDType dtype = KILN_DTYPE_u8;
    if (!check_block_size(call, error) || !kiln_onnx_take_int(call, "saturate", &saturate, error) ||
        !kiln_onnx_take_int(call, "output_dtype", &there, error))
        return FALSE;
    if (there && !kiln_onnx_take_dtype(call, "output_dtype", &dtype, error))
        return FALSE;
    if (kiln_onnx_operand(call, 2) || dtype == KILN_DTYPE_u8)
        return TRUE;
    return zero_point_of(call, dtype, error);
}

gboolean
kiln_onnx_convert_dequantize_linear(KilnOnnxCall *call, GError **error)
{
    return check_block_size(call, error);
}
