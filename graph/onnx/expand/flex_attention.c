/* SPDX-License-Identifier: Apache-2.0 */
/* FlexAttention: attention with two graphs of the model's own inside.
 *
 *     q · √scale   k · √scale, a copy for each query head of its group
 *          \        /
 *           matmul            [batch, heads, queries, keys]
 *              |
 *          score_mod, softmax, prob_mod, in the precision of the softmax
 *              |
 *           matmul with v
 */
#include "graph/graph.h"
#include "graph/onnx/convert.h"
#include "graph/onnx/steps.h"
#include "graph/op/expand.h"
#include "graph/op/reshape.h"
#include "graph/op/softmax.h"
#include "graph/op/transpose.h"

#include <math.h>

/* The sizes that the expansion must know. */
typedef struct {
    int64_t heads, kv_heads, head_size, value_size;
} Sizes;

static gboolean
find_sizes(const KilnOnnxCall *call, Sizes *out, GError **error)
{
    KilnValue *operands[3];
    for (uint32_t i = 0; i < 3; i++) {
        operands[i] = kiln_onnx_need(call, i, error);
        if (!operands[i])
            return FALSE;
        if (operands[i]->type.rank >= 0 && operands[i]->type.rank != 4)
            return kiln_onnx_throw(call, KILN_ERROR_SHAPE, error,
                                   "operand %u: expected rank 4, found rank %d", i,
                                   operands[i]->type.rank);
    }
    const KilnType *q = &operands[0]->type, *k = &operands[1]->type, *v = &operands[2]->type;
    if (q->rank < 0 || k->rank < 0 || v->rank < 0 || q->dims[1] < 0 || k->dims[1] < 0 ||
        k->dims[3] < 0 || v->dims[3] < 0)
        return kiln_onnx_unsupported(call, error, "heads of unknown number or size");
    *out = (Sizes){ q->dims[1], k->dims[1], k->dims[3], v->dims[3] };
    if (out->heads != out->kv_heads && (out->kv_heads < 1 || out->heads % out->kv_heads != 0))
        return kiln_onnx_throw(call, KILN_ERROR_SHAPE, error,
                               "expected query heads in groups for each of %" G_GINT64_FORMAT
                               " key heads, found %" G_GINT64_FORMAT,
                               out->kv_heads, out->heads);
    return TRUE;
}

/* Each head of @x, of @size numbers a row, stands once for each query head of its group. */
static KilnValue *
repeat_heads(KilnOnnxCall *call, KilnValue *x, const Sizes *sizes, int64_t size, GError **error)
{
    if (sizes->heads == sizes->kv_heads)
        return x;
    const int64_t axis = 2, copies[] = { 1, 1, sizes->heads / sizes->kv_heads, 1, 1 };
    const int64_t shape[] = { 0, sizes->heads, -1, size };
    x = kiln_onnx_build2(call, KILN_OP_unsqueeze, NULL, x, kiln_onnx_ints(call, "axis", &axis, 1),
                         error);
    if (x)
        x = kiln_onnx_build2(call, KILN_OP_expand, NULL, x,
                             kiln_onnx_ints(call, "copies", copies, 5), error);
    return x ? kiln_onnx_build2(call, KILN_OP_reshape, NULL, x,
                                kiln_onnx_ints(call, "heads", shape, 4), error)
             : NULL;
}

static KilnValue *
cast_to(KilnOnnxCall *call, KilnValue *x, KilnDType dtype, GError **error)
{
    const KilnOnnxSteps s = { call, error };
    return !x || x->type.dtype == dtype ? x : kiln_onnx_step_cast(&s, x, dtype);
}

static KilnValue *
scores_of(KilnOnnxCall *call, const Sizes *sizes, float scale, GError **error)
{
    KilnValue *q = call->operands[0];
    KilnAttrs_transpose swap = { .perm = { .n = 4, .v = (int64_t[]){ 0, 1, 3, 2 } } };
    KilnValue *k = repeat_heads(call, call->operands[1], sizes, sizes->head_size, error);
    KilnValue *root = kiln_onnx_scalar(call, "scale", q->type.dtype, sqrt((double)scale));
    const KilnOnnxSteps steps = { call, error };
    q = kiln_onnx_step_mul(&steps, q, root);
    k = q ? kiln_onnx_step_mul(&steps, k, root) : NULL;
    k = k ? kiln_onnx_build1(call, KILN_OP_transpose, &swap, k, error) : NULL;
    return kiln_onnx_step_matmul(&steps, q, k);
}

gboolean
kiln_onnx_convert_flex_attention(KilnOnnxCall *call, GError **error)
{
    Sizes sizes = { 0 };
    float scale = NAN;
    KilnAttrs_softmax last = { .axis = -1 };
    if (!find_sizes(call, &sizes, error) || !kiln_onnx_take_float(call, "scale", &scale, error))
        return FALSE;
    KilnDType dtype = call->operands[0]->type.dtype;
    KilnDType precision = dtype == KILN_DTYPE_f64 ? KILN_DTYPE_f64 : KILN_DTYPE_f32;
    if (!kiln_onnx_take_dtype(call, "softmax_precision", &precision, error))
        return FALSE;
    if (!kiln_dtype_is_float(precision))
        return kiln_onnx_throw(call, KILN_ERROR_TYPE, error,
                               "softmax_precision: expected a float type, found %s",
                               kiln_dtype_name(precision));
    scale = isnan(scale) ? (float)(1 / sqrt((double)sizes.head_size)) : scale;
    if (scale < 0)
        return kiln_onnx_unsupported(call, error, "scale=%g", (double)scale);
    KilnValue *x = cast_to(call, scores_of(call, &sizes, scale, error), precision, error);
    x = x ? kiln_onnx_apply_graph(call, "score_mod", x, error) : NULL;
    x = x ? kiln_onnx_build1(call, KILN_OP_softmax, &last, x, error) : NULL;
    x = x ? kiln_onnx_apply_graph(call, "prob_mod", x, error) : NULL;
    x = cast_to(call, x, dtype, error);
    KilnValue *v =
        x ? repeat_heads(call, call->operands[2], &sizes, sizes.value_size, error) : NULL;
    return kiln_onnx_set_result(
        call, 0, v ? kiln_onnx_step_matmul(&(KilnOnnxSteps){ call, error }, x, v) : NULL);
}
