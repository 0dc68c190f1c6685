/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/onnx/steps.h"

#include "graph/graph.h"
#include "graph/op/activation.h"
#include "graph/op/additive.h"
#include "graph/op/bounds.h"
#include "graph/op/cast.h"
#include "graph/op/concat.h"
#include "graph/op/expand.h"
#include "graph/op/gather.h"
#include "graph/op/generate.h"
#include "graph/op/logic.h"
#include "graph/op/math.h"
#include "graph/op/matmul.h"
#include "graph/op/multiplicative.h"
#include "graph/op/reduce.h"
#include "graph/op/reshape.h"
#include "graph/op/slice.h"
#include "graph/op/transpose.h"

static KilnValue *
build(const KilnOnnxSteps *s, KilnOp op, const void *attrs, KilnValue *const *operands, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (!operands[i])
            return NULL;
    }
    return kiln_onnx_build(s->call, op, attrs, operands, n, s->error);
}

KilnValue *
kiln_onnx_step1(const KilnOnnxSteps *s, KilnOp op, const void *attrs, KilnValue *a)
{
    return build(s, op, attrs, (KilnValue *[]){ a }, 1);
}

KilnValue *
kiln_onnx_step2(const KilnOnnxSteps *s, KilnOp op, const void *attrs, KilnValue *a, KilnValue *b)
{
    return build(s, op, attrs, (KilnValue *[]){ a, b }, 2);
}

KilnValue *
kiln_onnx_step3(const KilnOnnxSteps *s, KilnOp op, const void *attrs, KilnValue *a, KilnValue *b,
                KilnValue *c)
{
    return build(s, op, attrs, (KilnValue *[]){ a, b, c }, 3);
}

KilnValue *
kiln_onnx_step_number(const KilnOnnxSteps *s, KilnOp op, KilnValue *a, double number)
{
    if (!a)
        return NULL;
    return kiln_onnx_step2(s, op, NULL, a,
                           kiln_onnx_scalar(s->call, "number", a->type.dtype, number));
}

#define BINARY(op)                                                                                 \
    KilnValue *kiln_onnx_step_##op(const KilnOnnxSteps *s, KilnValue *a, KilnValue *b)             \
    {                                                                                              \
        return kiln_onnx_step2(s, KILN_OP_##op, NULL, a, b);                                       \
    }                                                                                              \
    KilnValue *kiln_onnx_step_##op##_number(const KilnOnnxSteps *s, KilnValue *a, double number)   \
    {                                                                                              \
        return kiln_onnx_step_number(s, KILN_OP_##op, a, number);                                  \
    }
BINARY(add)
BINARY(sub)
BINARY(mul)
BINARY(div)
BINARY(pow)
BINARY(equal)
BINARY(less)
BINARY(greater)
BINARY(greater_or_equal)
#undef BINARY

KilnValue *
kiln_onnx_step_both(const KilnOnnxSteps *s, KilnValue *a, KilnValue *b)
{
    return kiln_onnx_step2(s, KILN_OP_and, NULL, a, b);
}

KilnValue *
kiln_onnx_step_either(const KilnOnnxSteps *s, KilnValue *a, KilnValue *b)
{
    return kiln_onnx_step2(s, KILN_OP_or, NULL, a, b);
}

KilnValue *
kiln_onnx_step_opposite(const KilnOnnxSteps *s, KilnValue *a)
{
    return kiln_onnx_step1(s, KILN_OP_not, NULL, a);
}

KilnValue *
kiln_onnx_step_any(const KilnOnnxSteps *s, KilnValue *a)
{
    const KilnAttrs_reduce_max attrs = { .keepdims = false };
    return kiln_onnx_step1(s, KILN_OP_reduce_max, &attrs, a);
}

KilnValue *
kiln_onnx_step_is_inf(const KilnOnnxSteps *s, KilnValue *a)
{
    const KilnAttrs_is_inf attrs = { .detect_negative = true, .detect_positive = true };
    return kiln_onnx_step1(s, KILN_OP_is_inf, &attrs, a);
}

KilnValue *
kiln_onnx_step_is_nan(const KilnOnnxSteps *s, KilnValue *a)
{
    return kiln_onnx_step1(s, KILN_OP_is_nan, NULL, a);
}

KilnValue *
kiln_onnx_step_where(const KilnOnnxSteps *s, KilnValue *condition, KilnValue *a, KilnValue *b)
{
    return kiln_onnx_step3(s, KILN_OP_where, NULL, condition, a, b);
}

KilnValue *
kiln_onnx_step_least(const KilnOnnxSteps *s, KilnValue *a, KilnValue *b)
{
    return kiln_onnx_step2(s, KILN_OP_min, NULL, a, b);
}

KilnValue *
kiln_onnx_step_abs(const KilnOnnxSteps *s, KilnValue *a)
{
    return kiln_onnx_step1(s, KILN_OP_abs, NULL, a);
}

KilnValue *
kiln_onnx_step_exp(const KilnOnnxSteps *s, KilnValue *a)
{
    return kiln_onnx_step1(s, KILN_OP_exp, NULL, a);
}

KilnValue *
kiln_onnx_step_sqrt(const KilnOnnxSteps *s, KilnValue *a)
{
    return kiln_onnx_step1(s, KILN_OP_sqrt, NULL, a);
}

KilnValue *
kiln_onnx_step_log(const KilnOnnxSteps *s, KilnValue *a)
{
    return kiln_onnx_step1(s, KILN_OP_log, NULL, a);
}

KilnValue *
kiln_onnx_step_sigmoid(const KilnOnnxSteps *s, KilnValue *a)
{
    return kiln_onnx_step1(s, KILN_OP_sigmoid, NULL, a);
}

KilnValue *
kiln_onnx_step_softplus(const KilnOnnxSteps *s, KilnValue *a)
{
    return kiln_onnx_step1(s, KILN_OP_softplus, NULL, a);
}

KilnValue *
kiln_onnx_step_arg_max(const KilnOnnxSteps *s, KilnValue *a, int64_t axis)
{
    const KilnAttrs_arg_max attrs = { .axis = axis, .keepdims = true };
    return kiln_onnx_step1(s, KILN_OP_arg_max, &attrs, a);
}

KilnValue *
kiln_onnx_step_sum(const KilnOnnxSteps *s, KilnValue *a, int64_t axis, bool keep)
{
    const KilnAttrs_reduce_sum attrs = { .keepdims = keep };
    return kiln_onnx_step2(s, KILN_OP_reduce_sum, &attrs, a,
                           kiln_onnx_ints(s->call, "axes", &axis, 1));
}

KilnValue *
kiln_onnx_step_most(const KilnOnnxSteps *s, KilnValue *a, int64_t axis)
{
    const KilnAttrs_reduce_max attrs = { .keepdims = true };
    return kiln_onnx_step2(s, KILN_OP_reduce_max, &attrs, a,
                           kiln_onnx_ints(s->call, "axes", &axis, 1));
}

KilnValue *
kiln_onnx_step_sums_before(const KilnOnnxSteps *s, KilnValue *a, int64_t axis)
{
    const KilnAttrs_cum_sum attrs = { .exclusive = true };
    return kiln_onnx_step2(s, KILN_OP_cum_sum, &attrs, a,
                           kiln_onnx_scalar(s->call, "axis", KILN_DTYPE_i64, (double)axis));
}

KilnValue *
kiln_onnx_step_swish(const KilnOnnxSteps *s, KilnValue *a)
{
    return kiln_onnx_step_swish_by(s, a, 1);
}

KilnValue *
kiln_onnx_step_swish_by(const KilnOnnxSteps *s, KilnValue *a, float alpha)
{
    const KilnAttrs_swish attrs = { .alpha = alpha };
    return kiln_onnx_step1(s, KILN_OP_swish, &attrs, a);
}

KilnValue *
kiln_onnx_step_mod(const KilnOnnxSteps *s, KilnValue *a, KilnValue *b)
{
    const KilnAttrs_mod attrs = { .fmod = false };
    return kiln_onnx_step2(s, KILN_OP_mod, &attrs, a, b);
}

static KilnValue *
shift(const KilnOnnxSteps *s, KilnValue *a, int n, const char *direction)
{
    const KilnAttrs_bit_shift attrs = { .direction = direction };
    KilnValue *by = a ? kiln_onnx_scalar(s->call, "places", a->type.dtype, n) : NULL;
    return kiln_onnx_step2(s, KILN_OP_bit_shift, &attrs, a, by);
}

KilnValue *
kiln_onnx_step_higher(const KilnOnnxSteps *s, KilnValue *a, int n)
{
    return shift(s, a, n, "LEFT");
}

KilnValue *
kiln_onnx_step_lower(const KilnOnnxSteps *s, KilnValue *a, int n)
{
    return shift(s, a, n, "RIGHT");
}

KilnValue *
kiln_onnx_step_bits(const KilnOnnxSteps *s, KilnValue *a, KilnDType to)
{
    const KilnAttrs_bit_cast attrs = { .to = to };
    return a && a->type.dtype == to ? a : kiln_onnx_step1(s, KILN_OP_bit_cast, &attrs, a);
}

KilnValue *
kiln_onnx_step_xor(const KilnOnnxSteps *s, KilnValue *a, KilnValue *b)
{
    return kiln_onnx_step2(s, KILN_OP_bitwise_xor, NULL, a, b);
}

KilnValue *
kiln_onnx_step_capped(const KilnOnnxSteps *s, KilnValue *a, double cap)
{
    a = kiln_onnx_step1(s, KILN_OP_tanh, NULL, kiln_onnx_step_div_number(s, a, cap));
    return kiln_onnx_step_mul_number(s, a, cap);
}

KilnValue *
kiln_onnx_step_matmul(const KilnOnnxSteps *s, KilnValue *a, KilnValue *b)
{
    return kiln_onnx_step2(s, KILN_OP_matmul, NULL, a, b);
}

KilnValue *
kiln_onnx_step_cast(const KilnOnnxSteps *s, KilnValue *a, KilnDType to)
{
    KilnAttrs_cast attrs = kiln_cast_to(to);
    return a && a->type.dtype == to ? a : kiln_onnx_step1(s, KILN_OP_cast, &attrs, a);
}

KilnValue *
kiln_onnx_step_transpose(const KilnOnnxSteps *s, KilnValue *a, const int64_t *perm, uint32_t n)
{
    KilnAttrs_transpose attrs = { .perm = { .n = n, .v = (int64_t *)perm } };
    return kiln_onnx_step1(s, KILN_OP_transpose, &attrs, a);
}

KilnValue *
kiln_onnx_step_unsqueeze(const KilnOnnxSteps *s, KilnValue *a, const int64_t *axes, uint32_t n)
{
    return kiln_onnx_step2(s, KILN_OP_unsqueeze, NULL, a, kiln_onnx_ints(s->call, "axes", axes, n));
}

KilnValue *
kiln_onnx_step_slice(const KilnOnnxSteps *s, KilnValue *a, int64_t axis, int64_t start, int64_t end,
                     int64_t step)
{
    KilnValue *operands[] = { a, kiln_onnx_ints(s->call, "starts", &start, 1),
                              kiln_onnx_ints(s->call, "ends", &end, 1),
                              kiln_onnx_ints(s->call, "axes", &axis, 1), NULL };
    if (step != 1)
        operands[4] = kiln_onnx_ints(s->call, "steps", &step, 1);
    return build(s, KILN_OP_slice, NULL, operands, step == 1 ? 4 : 5);
}

KilnValue *
kiln_onnx_step_slice_to(const KilnOnnxSteps *s, KilnValue *a, int64_t axis, int64_t start,
                        KilnValue *end)
{
    KilnValue *operands[] = { a, kiln_onnx_ints(s->call, "starts", &start, 1), end,
                              kiln_onnx_ints(s->call, "axes", &axis, 1) };
    return build(s, KILN_OP_slice, NULL, operands, 4);
}

KilnValue *
kiln_onnx_step_between(const KilnOnnxSteps *s, KilnValue *a, KilnValue *start, KilnValue *end)
{
    return kiln_onnx_step3(s, KILN_OP_slice, NULL, a, start, end);
}

KilnValue *
kiln_onnx_step_write(const KilnOnnxSteps *s, KilnValue *buffer, KilnValue *x, KilnValue *at)
{
    return kiln_onnx_step3(s, KILN_OP_tensor_scatter, NULL, buffer, x, at);
}

KilnValue *
kiln_onnx_step_at_least(const KilnOnnxSteps *s, KilnValue *a, double number)
{
    return kiln_onnx_step_number(s, KILN_OP_max, a, number);
}

KilnValue *
kiln_onnx_step_at_most(const KilnOnnxSteps *s, KilnValue *a, double number)
{
    return kiln_onnx_step_number(s, KILN_OP_min, a, number);
}

KilnValue *
kiln_onnx_step_gather(const KilnOnnxSteps *s, KilnValue *a, KilnValue *indices, int64_t axis)
{
    KilnAttrs_gather attrs = { .axis = axis };
    return kiln_onnx_step2(s, KILN_OP_gather, &attrs, a, indices);
}

KilnValue *
kiln_onnx_step_gather_nd(const KilnOnnxSteps *s, KilnValue *a, KilnValue *indices,
                         int64_t batch_dims)
{
    const KilnAttrs_gather_nd attrs = { .batch_dims = batch_dims };
    return kiln_onnx_step2(s, KILN_OP_gather_nd, &attrs, a, indices);
}

KilnValue *
kiln_onnx_step_gather_elements(const KilnOnnxSteps *s, KilnValue *a, KilnValue *indices,
                               int64_t axis)
{
    KilnAttrs_gather_elements attrs = { .axis = axis };
    return kiln_onnx_step2(s, KILN_OP_gather_elements, &attrs, a, indices);
}

KilnValue *
kiln_onnx_step_scatter_elements(const KilnOnnxSteps *s, KilnValue *a, KilnValue *indices,
                                KilnValue *values, int64_t axis)
{
    const KilnAttrs_scatter_elements attrs = { .axis = axis, .reduction = "none" };
    return kiln_onnx_step3(s, KILN_OP_scatter_elements, &attrs, a, indices, values);
}

KilnValue *
kiln_onnx_step_pad_with(const KilnOnnxSteps *s, KilnValue *a, KilnValue *pads, KilnValue *value)
{
    return kiln_onnx_step3(s, KILN_OP_pad, NULL, a, pads, value);
}

KilnValue *
kiln_onnx_step_pad(const KilnOnnxSteps *s, KilnValue *a, KilnValue *pads)
{
    return kiln_onnx_step2(s, KILN_OP_pad, NULL, a, pads);
}

KilnValue *
kiln_onnx_step_longer(const KilnOnnxSteps *s, KilnValue *a, int64_t axis, KilnValue *more)
{
    const int64_t zero = 0;
    KilnValue *behind = kiln_onnx_step_unsqueeze(s, more, &zero, 1);
    KilnValue *operands[] = {
        a, kiln_onnx_step_concat(s, kiln_onnx_ints(s->call, "before", &zero, 1), behind, 0), NULL,
        kiln_onnx_ints(s->call, "axis", &axis, 1)
    };
    return a && operands[1] ? kiln_onnx_build(s->call, KILN_OP_pad, NULL, operands, 4, s->error)
                            : NULL;
}

KilnValue *
kiln_onnx_step_concat(const KilnOnnxSteps *s, KilnValue *a, KilnValue *b, int64_t axis)
{
    KilnAttrs_concat attrs = { .axis = axis };
    return kiln_onnx_step2(s, KILN_OP_concat, &attrs, a, b);
}

/* --- shapes --- */

static bool
is_number(const KilnOnnxExtent *extent, int64_t *out)
{
    *out = extent->of ? extent->of->type.dims[extent->dim] : extent->number;
    return !extent->of || *out >= 0;
}

/* One extent as a list of one. */
static KilnValue *
extent_list(const KilnOnnxSteps *s, const KilnOnnxExtent *extent)
{
    int64_t number;
    if (is_number(extent, &number))
        return kiln_onnx_ints(s->call, "extent", &number, 1);
    KilnAttrs_shape attrs = { .start = extent->dim, .end = extent->dim + 1 };
    return kiln_onnx_step1(s, KILN_OP_shape, &attrs, extent->of);
}

KilnValue *
kiln_onnx_step_shape(const KilnOnnxSteps *s, const KilnOnnxExtent *extents, uint32_t n)
{
    int64_t numbers[KILN_MAX_RANK];
    KilnValue *parts[KILN_MAX_RANK];
    bool all = true;
    for (uint32_t i = 0; i < n; i++)
        all &= is_number(&extents[i], &numbers[i]);
    if (all)
        return kiln_onnx_ints(s->call, "shape", numbers, n);
    for (uint32_t i = 0; i < n; i++)
        parts[i] = extent_list(s, &extents[i]);
    KilnAttrs_concat attrs = { .axis = 0 };
    return build(s, KILN_OP_concat, &attrs, parts, n);
}

KilnValue *
kiln_onnx_step_extents(const KilnOnnxSteps *s, KilnValue *of, int dim)
{
    const KilnOnnxExtent extent = KILN_ONNX_DIM(of, dim);
    return of ? extent_list(s, &extent) : NULL;
}

KilnValue *
kiln_onnx_step_extent(const KilnOnnxSteps *s, KilnValue *of, int dim)
{
    const KilnOnnxExtent extent = KILN_ONNX_DIM(of, dim);
    int64_t number;
    if (!of)
        return NULL;
    if (is_number(&extent, &number))
        return kiln_onnx_scalar(s->call, "extent", KILN_DTYPE_i64, (double)number);
    return kiln_onnx_step1(s, KILN_OP_squeeze, NULL, extent_list(s, &extent));
}

KilnValue *
kiln_onnx_step_expand(const KilnOnnxSteps *s, KilnValue *a, const KilnOnnxExtent *extents,
                      uint32_t n)
{
    return kiln_onnx_step_expand_to(s, a, kiln_onnx_step_shape(s, extents, n));
}

KilnValue *
kiln_onnx_step_expand_to(const KilnOnnxSteps *s, KilnValue *a, KilnValue *shape)
{
    return kiln_onnx_step2(s, KILN_OP_expand, NULL, a, shape);
}

KilnValue *
kiln_onnx_step_reshape(const KilnOnnxSteps *s, KilnValue *a, const KilnOnnxExtent *extents,
                       uint32_t n)
{
    return a ? kiln_onnx_step_reshape_to(s, a, kiln_onnx_step_shape(s, extents, n)) : NULL;
}

KilnValue *
kiln_onnx_step_reshape_to(const KilnOnnxSteps *s, KilnValue *a, KilnValue *shape)
{
    const KilnAttrs_reshape attrs = { .allowzero = true };
    return kiln_onnx_step2(s, KILN_OP_reshape, &attrs, a, shape);
}

KilnValue *
kiln_onnx_step_from_front(const KilnOnnxSteps *s, KilnValue *table, int dim, KilnValue *places)
{
    KilnValue *below = kiln_onnx_step_number(s, KILN_OP_less, places, 0);
    KilnValue *end = below ? kiln_onnx_step_extent(s, table, dim) : NULL;
    return end ? kiln_onnx_step3(s, KILN_OP_where, NULL, below,
                                 kiln_onnx_step_cast(s, end, places->type.dtype), places)
               : NULL;
}

/* --- operands --- */

gboolean
kiln_onnx_require_rank(const KilnOnnxCall *call, uint32_t i, int min, int max, GError **error)
{
    const KilnValue *value = kiln_onnx_operand(call, i);
    if (!value)
        return TRUE;
    if (value->type.rank < 0)
        return kiln_onnx_unsupported(call, error, "operand %u of an unknown rank", i);
    if (value->type.rank >= min && value->type.rank <= max)
        return TRUE;
    g_autofree char *found = kiln_type_to_string(&value->type);
    return min == max ? kiln_onnx_throw(call, KILN_ERROR_SHAPE, error,
                                        "operand %u: expected rank %d, found %s", i, min, found)
                      : kiln_onnx_throw(call, KILN_ERROR_SHAPE, error,
                                        "operand %u: expected rank %d to %d, found %s", i, min, max,
                                        found);
}

static char *
dims_text(const int64_t *dims, int rank)
{
    GString *text = g_string_new("[");
    for (int d = 0; d < rank; d++) {
        if (dims[d] < 0)
            g_string_append_printf(text, "%s?", d ? "," : "");
        else
            g_string_append_printf(text, "%s%" G_GINT64_FORMAT, d ? "," : "", dims[d]);
    }
    return g_string_free(g_string_append_c(text, ']'), FALSE);
}

gboolean
kiln_onnx_require_shape(const KilnOnnxCall *call, uint32_t i, const int64_t *dims, int rank,
                        GError **error)
{
    const KilnValue *value = kiln_onnx_operand(call, i);
    bool good = true;
    if (!value)
        return TRUE;
    if (!kiln_onnx_require_rank(call, i, rank, rank, error))
        return FALSE;
    for (int d = 0; d < rank; d++)
        good &= dims[d] < 0 || value->type.dims[d] < 0 || value->type.dims[d] == dims[d];
    if (good)
        return TRUE;
    g_autofree char *expected = dims_text(dims, rank);
    g_autofree char *found = kiln_type_to_string(&value->type);
    return kiln_onnx_throw(call, KILN_ERROR_SHAPE, error, "operand %u: expected %s, found %s", i,
                           expected, found);
}

gboolean
kiln_onnx_require_one(const KilnOnnxCall *call, uint32_t i, GError **error)
{
    const KilnValue *value = kiln_onnx_operand(call, i);
    return kiln_onnx_require_rank(call, i, 0, 1, error) &&
           (!value || value->type.rank == 0 || KILN_ONNX_REQUIRE_DIMS(call, i, error, 1));
}

int64_t
kiln_onnx_one_or(const KilnOnnxCall *call, uint32_t i, int dim, int64_t number)
{
    const KilnValue *value = kiln_onnx_operand(call, i);
    return value && value->type.rank > dim && value->type.dims[dim] == 1 ? 1 : number;
}
