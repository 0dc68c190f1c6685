/* SPDX-License-Identifier: Apache-2.0 */
/* Normalizations of com.microsoft with what ONNX Runtime's optimizer fuses into them: the sum of a
 * residual connection, the lookups of an embedding. */
#include "graph/graph.h"
#include "graph/onnx/contrib/contrib.h"
#include "graph/onnx/convert.h"
#include "graph/onnx/steps.h"
#include "graph/op/cast.h"
#include "graph/op/norm.h"
#include "graph/op/reduce.h"

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
    const KilnOnnxSteps s = { call, error };
    KilnValue *input = kiln_onnx_need(call, 0, error);
    KilnValue *skip = input ? kiln_onnx_need(call, 1, error) : NULL;
    KilnValue *gamma = skip ? kiln_onnx_need(call, 2, error) : NULL;
    if (!gamma || !check_statistics(call, error) || !kiln_onnx_read_attrs(call, error))
        return FALSE;
    KilnValue *sum = kiln_onnx_step_add_operand(&s, kiln_onnx_step_add(&s, input, skip), bias);
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
first_positions(const KilnOnnxSteps *s)
{
    return kiln_onnx_step_slice_to(s, s->call->operands[3], 0, 0,
                                   kiln_onnx_step_extents(s, s->call->operands[0], 1));
}

/* Rows of operand @table by operand @ids. */
static KilnValue *
looked_up(const KilnOnnxSteps *s, uint32_t table, uint32_t ids)
{
    KilnValue *rows = kiln_onnx_need(s->call, table, s->error);
    KilnValue *places = rows ? kiln_onnx_need(s->call, ids, s->error) : NULL;
    return kiln_onnx_step_gather(s, rows, places, 0);
}

/* The words, the positions and, where there are segments, the segments. */
static KilnValue *
embedded(const KilnOnnxSteps *s)
{
    KilnValue *words = looked_up(s, 2, 0);
    if (!words || !kiln_onnx_need(s->call, 3, s->error))
        return NULL;
    KilnValue *positions = kiln_onnx_operand(s->call, 8) ? looked_up(s, 3, 8) : first_positions(s);
    KilnValue *sum = kiln_onnx_step_add(s, words, positions);
    return sum && kiln_onnx_operand(s->call, 1) ? kiln_onnx_step_add(s, sum, looked_up(s, 4, 1))
                                                : sum;
}

/* How many ones each row of the mask has; zeros where there is no mask. */
static KilnValue *
mask_index(const KilnOnnxSteps *s)
{
    KilnAttrs_reduce_sum attrs = { .keepdims = false };
    KilnValue *mask = kiln_onnx_operand(s->call, 7);
    if (!mask) /* the sum of no columns */
        mask = kiln_onnx_step_slice(s, s->call->operands[0], 1, 0, 0, 1);
    return kiln_onnx_step2(s, KILN_OP_reduce_sum, &attrs, mask,
                           kiln_onnx_ints(s->call, "columns", (int64_t[]){ 1 }, 1));
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
    const KilnOnnxSteps s = { call, error };
    KilnValue *sum = embedded(&s);
    KilnValue *gamma = sum ? kiln_onnx_need(call, 5, error) : NULL;
    KilnValue *beta = gamma ? kiln_onnx_need(call, 6, error) : NULL;
    if (!beta || !kiln_onnx_set_result(call, 0, normalized(call, sum, gamma, beta, error)))
        return FALSE;
    if (call->n_results > 1 && !kiln_onnx_set_result(call, 1, mask_index(&s)))
        return FALSE;
    return call->n_results <= 2 || kiln_onnx_set_result(call, 2, sum);
}

/* --- embeddings of integers --- */

/* The tables and vectors of QEmbedLayerNormalization are operands 2 to 6. Their scales and zero
 * points follow the mask. */
enum {
    Q_FIRST = 2,
    Q_SCALES = 8,
    Q_ZEROS = 13
};

/* @x, which is operand @i or rows of it, as floats. */
static KilnValue *
real(const KilnOnnxSteps *s, KilnValue *x, uint32_t i)
{
    KilnValue *scale = x ? kiln_onnx_need(s->call, i - Q_FIRST + Q_SCALES, s->error) : NULL;
    KilnValue *zero = scale ? kiln_onnx_need(s->call, i - Q_FIRST + Q_ZEROS, s->error) : NULL;
    return zero ? kiln_onnx_step_dequantize(s, (KilnValue *[]){ x, scale, zero }, 1, 0) : NULL;
}

/* (ids, segment ids, words, positions, segments, gamma, beta, mask, 5 scales, 5 zero points) */
gboolean
kiln_onnx_convert_qembed_layer_normalization(KilnOnnxCall *call, GError **error)
{
    const KilnOnnxSteps s = { call, error };
    kiln_onnx_attrs(call, layer_normalization)->epsilon = 1e-12F;
    if (!kiln_onnx_read_attrs(call, error) || !kiln_onnx_need(call, 0, error))
        return FALSE;
    KilnValue *words = real(&s, looked_up(&s, 2, 0), 2);
    KilnValue *positions = words && kiln_onnx_need(call, 3, error) ? first_positions(&s) : NULL;
    KilnValue *sum = kiln_onnx_step_add(&s, words, real(&s, positions, 3));
    if (sum && kiln_onnx_operand(call, 1))
        sum = kiln_onnx_step_add(&s, sum, real(&s, looked_up(&s, 4, 1), 4));
    KilnValue *gamma = sum ? real(&s, kiln_onnx_need(call, 5, error), 5) : NULL;
    KilnValue *beta = gamma ? real(&s, kiln_onnx_need(call, 6, error), 6) : NULL;
    if (!beta || !kiln_onnx_set_result(call, 0, normalized(call, sum, gamma, beta, error)))
        return FALSE;
    return call->n_results <= 1 || kiln_onnx_set_result(call, 1, mask_index(&s));
}
