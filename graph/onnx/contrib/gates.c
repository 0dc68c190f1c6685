/* SPDX-License-Identifier: Apache-2.0 */
/* Gates of com.microsoft: sums, normalizations and projections that a sigmoid weighs. They are
 * computed in f32, and the result is rounded to the type of the operands. */
#include "graph/graph.h"
#include "graph/onnx/convert.h"
#include "graph/onnx/steps.h"
#include "graph/op/math.h"
#include "graph/op/norm.h"

#include <math.h>
#include <string.h>

static gboolean
need_all(const KilnOnnxCall *call, uint32_t n, GError **error)
{
    for (uint32_t i = 0; i < n; i++) {
        if (!kiln_onnx_need(call, i, error))
            return FALSE;
    }
    return TRUE;
}

static KilnValue *
in_f32(const KilnOnnxSteps *s, uint32_t i)
{
    return kiln_onnx_step_cast(s, kiln_onnx_operand(s->call, i), KILN_DTYPE_f32);
}

/* The rows of @x, normalized along the last dim, times @scale. */
static KilnValue *
normalized(const KilnOnnxSteps *s, KilnValue *x, float epsilon, KilnValue *scale)
{
    const KilnAttrs_rms_normalization attrs = { .axis = -1, .epsilon = epsilon, .stash_type = 1 };
    KilnValue *one = kiln_onnx_scalar(s->call, "one", KILN_DTYPE_f32, 1);
    x = kiln_onnx_step2(s, KILN_OP_rms_normalization, &attrs, x, one);
    return kiln_onnx_step_mul(s, x, scale);
}

/* Sets result @i in the type of operand 0. */
static gboolean
set_rounded(const KilnOnnxSteps *s, uint32_t i, KilnValue *y)
{
    const KilnDType dtype = s->call->operands[0]->type.dtype;
    return kiln_onnx_set_result(s->call, i, kiln_onnx_step_cast(s, y, dtype));
}

/* --- sums and activations --- */

/*   x + y * gate, where a row has one gate */
gboolean
kiln_onnx_convert_gated_add(KilnOnnxCall *call, GError **error)
{
    const KilnOnnxSteps s = { call, error };
    int64_t dims[KILN_MAX_RANK];
    if (!need_all(call, 3, error) || !kiln_onnx_require_rank(call, 0, 1, KILN_MAX_RANK, error))
        return FALSE;
    if (kiln_onnx_operand(call, 3))
        return kiln_onnx_unsupported(call, error, "operand 3, the projection of the gate");
    const KilnType *x = &call->operands[0]->type;
    for (int d = 0; d < x->rank; d++)
        dims[d] = x->dims[d];
    if (!kiln_onnx_require_shape(call, 1, dims, x->rank, error))
        return FALSE;
    dims[x->rank - 1] = 1;
    if (!kiln_onnx_require_shape(call, 2, dims, x->rank, error))
        return FALSE;
    KilnValue *gated = kiln_onnx_step_mul(&s, call->operands[1], call->operands[2]);
    return kiln_onnx_set_result(call, 0, kiln_onnx_step_add(&s, call->operands[0], gated));
}

/*   z * sigmoid(z), where z is x times a scale, rounded */
gboolean
kiln_onnx_convert_scaled_silu(KilnOnnxCall *call, GError **error)
{
    const KilnOnnxSteps s = { call, error };
    float alpha = 1;
    if (!need_all(call, 1, error) || !kiln_onnx_take_float(call, "alpha", &alpha, error) ||
        !kiln_onnx_require_rank(call, 1, 0, 0, error))
        return FALSE;
    const KilnDType dtype = call->operands[0]->type.dtype;
    KilnValue *x = in_f32(&s, 0), *scale = in_f32(&s, 1);
    KilnValue *z =
        scale ? kiln_onnx_step_mul(&s, x, scale) : kiln_onnx_step_mul_number(&s, x, (double)alpha);
    z = kiln_onnx_step_cast(&s, z, dtype);
    return kiln_onnx_set_result(call, 0, kiln_onnx_step_mul(&s, z, kiln_onnx_step_sigmoid(&s, z)));
}

/* --- normalizations --- */

/* @x as rows of @columns; its own rows where they are as long. */
static KilnValue *
in_rows(const KilnOnnxSteps *s, KilnValue *x, int64_t columns)
{
    KilnOnnxExtent extents[KILN_MAX_RANK + 1];
    const int rank = x ? x->type.rank : 0;
    if (!x || x->type.dims[rank - 1] == columns)
        return x;
    for (int d = 0; d < rank - 1; d++)
        extents[d] = (KilnOnnxExtent)KILN_ONNX_DIM(x, d);
    const int64_t last = x->type.dims[rank - 1];
    extents[rank - 1] = (KilnOnnxExtent)KILN_ONNX_NUMBER(last < 0 ? -1 : last / columns);
    extents[rank] = (KilnOnnxExtent)KILN_ONNX_NUMBER(columns);
    return kiln_onnx_step_reshape(s, x, extents, (uint32_t)rank + 1);
}

/* @y in the dims of operand 0 again. */
static KilnValue *
in_place(const KilnOnnxSteps *s, KilnValue *y)
{
    KilnOnnxExtent extents[KILN_MAX_RANK];
    KilnValue *x = s->call->operands[0];
    if (!y || y->type.rank == x->type.rank)
        return y;
    for (int d = 0; d < x->type.rank; d++)
        extents[d] = (KilnOnnxExtent)KILN_ONNX_DIM(x, d);
    return kiln_onnx_step_reshape(s, y, extents, (uint32_t)x->type.rank);
}

/*   normalized x * scale * activation(gate), in groups of columns as long as the scale */
gboolean
kiln_onnx_convert_gated_rms_norm(KilnOnnxCall *call, GError **error)
{
    const KilnOnnxSteps s = { call, error };
    const char *activation = "silu";
    float epsilon = 1e-5F;
    if (!need_all(call, 3, error) ||
        !kiln_onnx_require_rank(call, 0, 1, KILN_MAX_RANK - 1, error) ||
        !kiln_onnx_require_rank(call, 1, 1, 1, error) ||
        !kiln_onnx_take_text(call, "activation", &activation, error) ||
        !kiln_onnx_take_float(call, "epsilon", &epsilon, error))
        return FALSE;
    const KilnType *x = &call->operands[0]->type;
    const int64_t columns = call->operands[1]->type.dims[0], last = x->dims[x->rank - 1];
    if (columns < 0)
        return kiln_onnx_unsupported(call, error, "a scale of an unknown length");
    if (columns < 1 || (last >= 0 && last % columns != 0))
        return kiln_onnx_throw(call, KILN_ERROR_SHAPE, error,
                               "expected rows in multiples of the scale's %" G_GINT64_FORMAT
                               " numbers, found %" G_GINT64_FORMAT,
                               columns, last);
    if (!kiln_onnx_require_shape(call, 2, x->dims, x->rank, error))
        return FALSE;
    const bool silu = strcmp(activation, "silu") == 0 || strcmp(activation, "swish") == 0;
    if (!silu && strcmp(activation, "sigmoid") != 0)
        return kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                               "activation: expected silu, swish or sigmoid, found %s", activation);
    KilnValue *y = normalized(&s, in_rows(&s, in_f32(&s, 0), columns), epsilon, in_f32(&s, 1));
    KilnValue *gate = in_f32(&s, 2);
    gate = silu ? kiln_onnx_step_swish(&s, gate) : kiln_onnx_step_sigmoid(&s, gate);
    return set_rounded(&s, 0, kiln_onnx_step_mul(&s, in_place(&s, y), gate));
}

/* --- projections --- */

/*   decay scale * softplus(a + bias), and sigmoid(b); (a, bias, decay scale, b) */
gboolean
kiln_onnx_convert_linear_attention_gate(KilnOnnxCall *call, GError **error)
{
    const KilnOnnxSteps s = { call, error };
    if (!need_all(call, 3, error) || !kiln_onnx_require_rank(call, 0, 3, 3, error) ||
        !KILN_ONNX_REQUIRE_DIMS(call, 1, error, call->operands[0]->type.dims[2]) ||
        !KILN_ONNX_REQUIRE_DIMS(call, 2, error, call->operands[0]->type.dims[2]) ||
        !kiln_onnx_require_shape(call, 3, call->operands[0]->type.dims, 3, error) ||
        (call->n_results > 1 && !kiln_onnx_need(call, 3, error)))
        return FALSE;
    KilnValue *sum = kiln_onnx_step_add(&s, in_f32(&s, 0), in_f32(&s, 1));
    KilnValue *decay = kiln_onnx_step_softplus(&s, sum);
    if (!set_rounded(&s, 0, kiln_onnx_step_mul(&s, decay, in_f32(&s, 2))))
        return FALSE;
    return call->n_results < 2 || set_rounded(&s, 1, kiln_onnx_step_sigmoid(&s, in_f32(&s, 3)));
}

/* --- EngramGate: (key, query, value, key scale, query scale, scale of the second result) --- */

static gboolean
check_engram(const KilnOnnxCall *call, GError **error)
{
    if (!need_all(call, 5, error) || !kiln_onnx_require_rank(call, 0, 4, 4, error))
        return FALSE;
    const int64_t *key = call->operands[0]->type.dims;
    if (key[3] < 1)
        return kiln_onnx_unsupported(call, error, "an unknown hidden size");
    return kiln_onnx_require_shape(call, 1, key, 4, error) &&
           KILN_ONNX_REQUIRE_DIMS(call, 2, error, key[0], key[1], key[3]) &&
           KILN_ONNX_REQUIRE_DIMS(call, 3, error, key[2], key[3]) &&
           KILN_ONNX_REQUIRE_DIMS(call, 4, error, key[2], key[3]) &&
           KILN_ONNX_REQUIRE_DIMS(call, 5, error, key[2], key[3]) &&
           (call->n_results < 2 || kiln_onnx_need(call, 5, error));
}

/*   d = sum of normalized key * normalized query / √(hidden size)
 *   sigmoid(sign(d) * √(max(|d|, 1e-6))) * value, and that normalized */
gboolean
kiln_onnx_convert_engram_gate(KilnOnnxCall *call, GError **error)
{
    static const int64_t branch[] = { 2 };
    const KilnOnnxSteps s = { call, error };
    float epsilon = 1e-5F;
    if (!kiln_onnx_take_float(call, "epsilon", &epsilon, error) || !check_engram(call, error))
        return FALSE;
    const double size = (double)call->operands[0]->type.dims[3];
    KilnValue *key = normalized(&s, in_f32(&s, 0), epsilon, in_f32(&s, 3));
    KilnValue *query = normalized(&s, in_f32(&s, 1), epsilon, in_f32(&s, 4));
    KilnValue *d = kiln_onnx_step_sum(&s, kiln_onnx_step_mul(&s, key, query), -1, true);
    d = kiln_onnx_step_mul_number(&s, d, 1 / sqrt(size));
    KilnValue *root = kiln_onnx_step_at_least(&s, kiln_onnx_step_abs(&s, d), 1e-6);
    root = kiln_onnx_step_sqrt(&s, root);
    KilnValue *gate = kiln_onnx_step_sigmoid(
        &s, kiln_onnx_step_mul(&s, kiln_onnx_step1(&s, KILN_OP_sign, NULL, d), root));
    KilnValue *value = kiln_onnx_step_unsqueeze(&s, in_f32(&s, 2), branch, 1);
    KilnValue *y = kiln_onnx_step_mul(&s, gate, value);
    if (!set_rounded(&s, 0, y))
        return FALSE;
    return call->n_results < 2 || set_rounded(&s, 1, normalized(&s, y, epsilon, in_f32(&s, 5)));
}
