/* SPDX-License-Identifier: Apache-2.0 */
/* Upsample and the forms of Resize: (x, roi, scales, sizes) with absent operands left out; and
 * GridSample and RoiAlign. */
#include "graph/node.h"
#include "graph/onnx/convert.h"
#include "graph/op/resize.h"

#include <string.h>

/* What Upsample and Resize-10 do: no half pixels, and the pixel to the upper left. */
static void
set_asymmetric(KilnOnnxCall *call, const char *nearest_mode)
{
    KilnAttrs_resize *attrs = kiln_onnx_attrs(call, resize);
    attrs->coordinate_transformation_mode = "asymmetric";
    attrs->nearest_mode = nearest_mode;
    if (strcmp(attrs->mode, "bilinear") == 0) /* as Upsample-1 has it */
        attrs->mode = "linear";
}

static KilnValue *
floats(KilnOnnxCall *call, const char *suffix, const float *values, uint32_t n)
{
    KilnType type = kiln_type_make(KILN_DTYPE_f32, 1, (int64_t[]){ n });
    KilnTensor *tensor = kiln_tensor_new_copy(&type, values, NULL);
    g_autofree char *name = g_strdup_printf("%s.%s", call->base, suffix);
    KilnValue *value = tensor ? kiln_build_constant(call->function, NULL, name, tensor) : NULL;
    if (value)
        value->made_up = true;
    return value;
}

gboolean
kiln_onnx_convert_upsample_1(KilnOnnxCall *call, GError **error)
{
    float scales[4] = { 1, 1, 1, 1 };
    if (!kiln_onnx_need(call, 0, error) ||
        !kiln_onnx_take_float(call, "height_scale", &scales[2], error) ||
        !kiln_onnx_take_float(call, "width_scale", &scales[3], error) ||
        !kiln_onnx_read_attrs(call, error))
        return FALSE;
    set_asymmetric(call, "floor");
    kiln_onnx_set_operand(call, 2, floats(call, "scales", scales, 4));
    return kiln_onnx_need(call, 2, error) != NULL;
}

gboolean
kiln_onnx_convert_upsample_7(KilnOnnxCall *call, GError **error)
{
    KilnFloats scales = { 0, NULL };
    if (!kiln_onnx_need(call, 0, error) || !kiln_onnx_take_floats(call, "scales", &scales, error) ||
        !kiln_onnx_read_attrs(call, error))
        return FALSE;
    set_asymmetric(call, "floor");
    kiln_onnx_set_operand(call, 2, floats(call, "scales", scales.v, scales.n));
    return kiln_onnx_need(call, 2, error) != NULL;
}

/* Resize-10 takes the pixel below when it enlarges and the one above when it shrinks. */
static gboolean
nearest_mode_10(KilnOnnxCall *call, const KilnValue *scales, const char **out, GError **error)
{
    const KilnConstant *constant = kiln_value_constant(scales);
    bool grows = false, shrinks = false;
    *out = "floor";
    if (!constant || constant->type.dtype != KILN_DTYPE_f32 || constant->type.rank != 1)
        return TRUE;
    g_autoptr(GBytes) bytes = kiln_tensor_view(constant->tensor, error);
    if (!bytes)
        return FALSE;
    size_t size;
    const float *values = g_bytes_get_data(bytes, &size);
    for (size_t i = 0; i < size / sizeof *values; i++) {
        grows |= values[i] > 1;
        shrinks |= values[i] < 1;
    }
    if (grows && shrinks)
        return kiln_onnx_unsupported(call, error, "scales that enlarge and shrink at once");
    *out = shrinks ? "ceil" : "floor";
    return TRUE;
}

gboolean
kiln_onnx_convert_resize_10(KilnOnnxCall *call, GError **error)
{
    const char *nearest_mode;
    KilnValue *scales = kiln_onnx_need(call, 0, error) ? kiln_onnx_need(call, 1, error) : NULL;
    if (!scales || !nearest_mode_10(call, scales, &nearest_mode, error) ||
        !kiln_onnx_read_attrs(call, error))
        return FALSE;
    set_asymmetric(call, nearest_mode);
    call->operands[1] = NULL;
    kiln_onnx_set_operand(call, 2, scales);
    return TRUE;
}

/* tf_half_pixel_for_nn takes (x + 0.5) / scale, which is half_pixel's coordinate plus a half; so
 * rounding it is rounding that one otherwise: floor(v + 1/2) rounds v, preferring the ceiling, and
 * round_prefer_floor(v + 1/2) is ceil(v). */
static gboolean
half_pixel_for_nn(KilnOnnxCall *call, KilnAttrs_resize *attrs, GError **error)
{
    bool nearest = strcmp(attrs->mode, "nearest") == 0;
    if (nearest && strcmp(attrs->nearest_mode, "floor") == 0)
        attrs->nearest_mode = "round_prefer_ceil";
    else if (nearest && strcmp(attrs->nearest_mode, "round_prefer_floor") == 0)
        attrs->nearest_mode = "ceil";
    else
        return kiln_onnx_unsupported(call, error, "tf_half_pixel_for_nn with %s and %s",
                                     attrs->mode, attrs->nearest_mode);
    attrs->coordinate_transformation_mode = "half_pixel";
    return TRUE;
}

gboolean
kiln_onnx_convert_resize(KilnOnnxCall *call, GError **error)
{
    if (!kiln_onnx_need(call, 0, error) || !kiln_onnx_read_attrs(call, error))
        return FALSE;
    KilnAttrs_resize *attrs = kiln_onnx_attrs(call, resize);
    for (uint32_t i = 1; i < call->n_operands; i++) {
        const KilnValue *value = call->operands[i];
        if (value && value->type.rank == 1 && value->type.dims[0] == 0)
            call->operands[i] = NULL;
    }
    if (strcmp(attrs->coordinate_transformation_mode, "tf_crop_and_resize") != 0 &&
        call->n_operands > 1)
        call->operands[1] = NULL;
    if (strcmp(attrs->coordinate_transformation_mode, "tf_half_pixel_for_nn") == 0)
        return half_pixel_for_nn(call, attrs, error);
    return TRUE;
}

/* Before opset 20 the modes spoke of two dims. */
gboolean
kiln_onnx_convert_grid_sample_16(KilnOnnxCall *call, GError **error)
{
    if (!kiln_onnx_read_attrs(call, error))
        return FALSE;
    KilnAttrs_grid_sample *attrs = kiln_onnx_attrs(call, grid_sample);
    if (strcmp(attrs->mode, "bilinear") == 0)
        attrs->mode = "linear";
    else if (strcmp(attrs->mode, "bicubic") == 0)
        attrs->mode = "cubic";
    return TRUE;
}

/* Before opset 16 there was no shift by half a pixel. */
gboolean
kiln_onnx_convert_roi_align_10(KilnOnnxCall *call, GError **error)
{
    if (!kiln_onnx_read_attrs(call, error))
        return FALSE;
    kiln_onnx_attrs(call, roi_align)->coordinate_transformation_mode = "output_half_pixel";
    return TRUE;
}
