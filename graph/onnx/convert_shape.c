/* SPDX-License-Identifier: Apache-2.0 */
/* Old forms of operators that move data: what were attributes become constant operands. */
#include "graph/graph.h"
#include "graph/onnx/convert.h"
#include "graph/op/concat.h"
#include "graph/op/slice.h"

/* Takes an attribute of integers, if it is there, as operand @i. */
static gboolean
ints_to_operand(KilnOnnxCall *call, const char *name, uint32_t i, GError **error)
{
    KilnInts list;
    bool there;
    if (!kiln_onnx_need(call, 0, error) || !kiln_onnx_take_ints(call, name, &list, &there, error))
        return FALSE;
    if (there)
        kiln_onnx_set_operand(call, i, kiln_onnx_ints(call, name, list.v, list.n));
    return TRUE;
}

gboolean
kiln_onnx_convert_axes_attr(KilnOnnxCall *call, GError **error)
{
    return ints_to_operand(call, "axes", 1, error);
}

gboolean
kiln_onnx_convert_reshape_1(KilnOnnxCall *call, GError **error)
{
    return ints_to_operand(call, "shape", 1, error);
}

gboolean
kiln_onnx_convert_slice_1(KilnOnnxCall *call, GError **error)
{
    return ints_to_operand(call, "starts", 1, error) && ints_to_operand(call, "ends", 2, error) &&
           ints_to_operand(call, "axes", 3, error);
}

/* Opset 1 calls the attribute `paddings`, opset 2 `pads`. */
gboolean
kiln_onnx_convert_pad_attrs(KilnOnnxCall *call, GError **error)
{
    float value = 0;
    if (!ints_to_operand(call, call->opset < 2 ? "paddings" : "pads", 1, error) ||
        !kiln_onnx_take_float(call, "value", &value, error))
        return FALSE;
    KilnDType dtype = call->operands[0]->type.dtype;
    if (value != 0)
        kiln_onnx_set_operand(call, 2, kiln_onnx_scalar(call, "value", dtype, value));
    return kiln_onnx_need(call, 1, error) != NULL;
}

/* Equal lengths are what the number of results says. */
static gboolean
count_outputs(KilnOnnxCall *call, GError **error)
{
    if (!kiln_onnx_read_attrs(call, error))
        return FALSE;
    KilnAttrs_split *attrs = kiln_onnx_attrs(call, split);
    if (kiln_onnx_operand(call, 1)) {
        attrs->num_outputs = 0;
        return TRUE;
    }
    /* Absent results at the end count too. */
    int64_t n = (int64_t)call->node->proto->n_output;
    if (attrs->num_outputs && attrs->num_outputs != n)
        return kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                               "num_outputs: expected %" G_GINT64_FORMAT
                               " as there are results, found %" G_GINT64_FORMAT,
                               n, attrs->num_outputs);
    attrs->num_outputs = n;
    return TRUE;
}

gboolean
kiln_onnx_convert_split(KilnOnnxCall *call, GError **error)
{
    call->n_results = (uint32_t)call->node->proto->n_output;
    return count_outputs(call, error);
}

gboolean
kiln_onnx_convert_split_attr(KilnOnnxCall *call, GError **error)
{
    return ints_to_operand(call, "split", 1, error) && kiln_onnx_convert_split(call, error);
}

gboolean
kiln_onnx_convert_concat_1(KilnOnnxCall *call, GError **error)
{
    kiln_onnx_attrs(call, concat)->axis = 1;
    return kiln_onnx_read_attrs(call, error);
}

/* Tile-1 repeats along one axis; count and axis are operands, which must be constants here. */
gboolean
kiln_onnx_convert_tile_1(KilnOnnxCall *call, GError **error)
{
    int64_t numbers[2], repeats[KILN_MAX_RANK];
    KilnValue *x = kiln_onnx_need(call, 0, error);
    if (!x)
        return FALSE;
    for (uint32_t i = 0; i < 2; i++) {
        KilnValue *operand = kiln_onnx_need(call, i + 1, error);
        if (!operand)
            return FALSE;
        if (!operand->known || operand->known->n != 1)
            return kiln_onnx_unsupported(call, error, "a count or axis that is no constant");
        numbers[i] = operand->known->v[0];
    }
    int axis = x->type.rank < 0 ? -1 : kiln_type_axis(&x->type, numbers[1]);
    if (axis < 0)
        return kiln_onnx_unsupported(call, error, "axis %" G_GINT64_FORMAT " of rank %d",
                                     numbers[1], x->type.rank);
    for (int i = 0; i < x->type.rank; i++)
        repeats[i] = i == axis ? numbers[0] : 1;
    call->operands[1] = kiln_onnx_ints(call, "repeats", repeats, (uint32_t)x->type.rank);
    call->n_operands = 2;
    return TRUE;
}
