/* SPDX-License-Identifier: Apache-2.0 */
/* Normalizations of com.microsoft with what ONNX Runtime's optimizer fuses into them: the sum of a
 * residual connection, the lookups of an embedding. */
#include "graph/graph.h"
#include "graph/onnx/contrib/contrib.h"
#include "graph/onnx/convert.h"
#include "graph/op/cast.h"
#include "graph/op/gather.h"
#include "graph/op/generate.h"
#include "graph/op/norm.h"
#include "graph/op/reduce.h"
#include "graph/op/slice.h"

/* Both statistics are there for training alone. */
static gboolean
check_statistics(const KilnOnnxCall *call, GError **error)
{
    for (uint32_t i = 1; i <= 2; i++) {
        if (kiln_onnx_result_read(call, i))
            return kiln_onnx_unsupported(call, error, "result %u, the statistics of training", i);
    }
    return TRUE;
}

/* The row's normalization of @x along the last axis, by @scale and @bias, which may be NULL. */
static KilnValue *
normalized(KilnOnnxCall *call, KilnValue *x, KilnValue *scale, KilnValue *bias, GError **error)
{
    KilnValue *operands[] = { x, scale, bias };
    return kiln_onnx_build(call, call->op, call->attrs, operands, bias ? 3 : 2, error);
}

/* Normalizes input + skip + operand @bias by operand 2, and by operand @beta where there is one.
 * Result 3 is the sum. */
static gboolean
normalize_sum(KilnOnnxCall *call, uint32_t bias, uint32_t beta, GError **error)
{
    KilnValue *input = kiln_onnx_need(call, 0, error);
    KilnValue *skip = input ? kiln_onnx_need(call, 1, error) : NULL;
    KilnValue *gamma = skip ? kiln_onnx_need(call, 2, error) : NULL;
    if (!gamma || !check_statistics(call, error) || !kiln_onnx_read_attrs(call, error))
        return FALSE;
    KilnValue *sum = kiln_onnx_plus(call, input, skip, error);
    sum = kiln_onnx_plus(call, sum, kiln_onnx_operand(call, bias), error);
    KilnValue *more = beta ? kiln_onnx_operand(call, beta) : NULL;
    if (!sum || !kiln_onnx_set_result(call, 0, normalized(call, sum, gamma, more, error)))
        return FALSE;
    return call->n_results <= 3 || kiln_onnx_set_result(call, 3, sum);
}

/* (input, skip, gamma, beta, bias) */
gboolean
kiln_onnx_convert_skip_layer_normalization(KilnOnnxCall *call, GError **error)
{
    kiln_onnx_attrs(call, layer_normalization)->epsilon = 1e-12F;
    return normalize_sum(call, 4, 3, error);
}

/* (input, skip, gamma, bias) */
gboolean
kiln_onnx_convert_skip_rms_normalization(KilnOnnxCall *call, GError **error)
{
    kiln_onnx_attrs(call, rms_normalization)->epsilon = 1e-12F;
    return normalize_sum(call, 3, 0, error);
}

/* --- embeddings --- */

/* The rows 0 to n - 1 of operand 3, where the ids have n columns. */
static KilnValue *
first_positions(KilnOnnxCall *call, GError **error)
{
    KilnAttrs_shape *columns = kiln_op_attrs_new(KILN_OP_shape, call->function->module->arena);
    columns->start = 1;
    columns->end = 2;
    KilnValue *n = kiln_onnx_build1(call, KILN_OP_shape, columns, call->operands[0], error);
    KilnValue *zero = kiln_onnx_ints(call, "zero", (int64_t[]){ 0 }, 1);
    KilnValue *operands[] = { call->operands[3], zero, n, zero };
    return n ? kiln_onnx_build(call, KILN_OP_slice, NULL, operands, G_N_ELEMENTS(operands), error)
             : NULL;
}

/* Rows of operand @table by operand @ids. */
static KilnValue *
looked_up(KilnOnnxCall *call, uint32_t table, uint32_t ids, GError **error)
{
    KilnValue *rows = kiln_onnx_need(call, table, error);
    KilnValue *places = rows ? kiln_onnx_need(call, ids, error) : NULL;
    return places ? kiln_onnx_build2(call, KILN_OP_gather, NULL, rows, places, error) : NULL;
}

/* The words, the positions and, where there are segments, the segments. */
static KilnValue *
embedded(KilnOnnxCall *call, GError **error)
{
    KilnValue *words = looked_up(call, 2, 0, error);
    if (!words || !kiln_onnx_need(call, 3, error))
        return NULL;
    KilnValue *positions =
        kiln_onnx_operand(call, 8) ? looked_up(call, 3, 8, error) : first_positions(call, error);
    KilnValue *sum = positions ? kiln_onnx_plus(call, words, positions, error) : NULL;
    if (!sum || !kiln_onnx_operand(call, 1))
        return sum;
    KilnValue *segments = looked_up(call, 4, 1, error);
    return segments ? kiln_onnx_plus(call, sum, segments, error) : NULL;
}

/* The first 0 of the columns that operand 0 has. */
static KilnValue *
no_columns(KilnOnnxCall *call, GError **error)
{
    KilnValue *zero = kiln_onnx_ints(call, "none", (int64_t[]){ 0 }, 1);
    KilnValue *one = kiln_onnx_ints(call, "axis", (int64_t[]){ 1 }, 1);
    KilnValue *operands[] = { call->operands[0], zero, zero, one };
    return kiln_onnx_build(call, KILN_OP_slice, NULL, operands, G_N_ELEMENTS(operands), error);
}

/* How many ones each row of the mask has; zeros where there is no mask. */
static KilnValue *
mask_index(KilnOnnxCall *call, GError **error)
{
    KilnValue *mask = kiln_onnx_operand(call, 7);
    KilnAttrs_reduce_sum *attrs =
        kiln_op_attrs_new(KILN_OP_reduce_sum, call->function->module->arena);
    attrs->keepdims = false;
    if (!mask)
        mask = no_columns(call, error);
    return mask ? kiln_onnx_build2(call, KILN_OP_reduce_sum, attrs, mask,
                                   kiln_onnx_ints(call, "columns", (int64_t[]){ 1 }, 1), error)
                : NULL;
}

/* (ids, segment ids, words, positions, segments, gamma, beta, mask, position ids) */
gboolean
kiln_onnx_convert_embed_layer_normalization(KilnOnnxCall *call, GError **error)
{
    int64_t mask_kind = 0;
    kiln_onnx_attrs(call, layer_normalization)->epsilon = 1e-12F;
    if (!kiln_onnx_take_int(call, "mask_index_type", &mask_kind, error) ||
        !kiln_onnx_read_attrs(call, error) || !kiln_onnx_need(call, 0, error))
        return FALSE;
    KilnValue *sum = embedded(call, error);
    KilnValue *gamma = sum ? kiln_onnx_need(call, 5, error) : NULL;
    KilnValue *beta = gamma ? kiln_onnx_need(call, 6, error) : NULL;
    if (!beta || !kiln_onnx_set_result(call, 0, normalized(call, sum, gamma, beta, error)))
        return FALSE;
    if (call->n_results > 1 && !kiln_onnx_set_result(call, 1, mask_index(call, error)))
        return FALSE;
    return call->n_results <= 2 || kiln_onnx_set_result(call, 2, sum);
}
