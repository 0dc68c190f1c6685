/* SPDX-License-Identifier: Apache-2.0 */
/* Operators of com.microsoft that are a few of ONNX's in a row. */
#include "graph/graph.h"
#include "graph/node.h"
#include "graph/onnx/contrib/cache.h"
#include "graph/onnx/contrib/contrib.h"
#include "graph/onnx/convert.h"
#include "graph/onnx/converters.h"
#include "graph/onnx/steps.h"
#include "graph/op/gather.h"
#include "graph/op/logic.h"
#include "graph/op/reduce.h"
#include "graph/op/resize.h"

#include <math.h>
#include <string.h>

/* --- dims and elements --- */

/* The axis is operand 1, a number. */
gboolean
kiln_onnx_convert_expand_dims(KilnOnnxCall *call, GError **error)
{
    const KilnOnnxSteps s = { call, error };
    const KilnOnnxExtent one[] = { KILN_ONNX_NUMBER(1) };
    KilnValue *axis = kiln_onnx_need(call, 0, error) ? kiln_onnx_need(call, 1, error) : NULL;
    if (axis && axis->type.rank != 1)
        axis = kiln_onnx_step_reshape(&s, axis, one, 1);
    axis = kiln_onnx_step_cast(&s, axis, KILN_DTYPE_i64);
    if (axis)
        call->operands[1] = axis;
    return axis != NULL;
}

gboolean
kiln_onnx_convert_matmul_integer_16(KilnOnnxCall *call, GError **error)
{
    const KilnOnnxSteps s = { call, error };
    KilnValue *a = kiln_onnx_need(call, 0, error);
    KilnValue *b = a ? kiln_onnx_need(call, 1, error) : NULL;
    a = b ? kiln_onnx_step_cast(&s, a, KILN_DTYPE_i32) : NULL;
    b = kiln_onnx_step_cast(&s, b, KILN_DTYPE_i32);
    return kiln_onnx_set_result(call, 0, kiln_onnx_step_matmul(&s, a, b));
}

enum {
    MAX_SLICES = 1 << 20 /* numbers that say which elements slices have */
};

/* The places of all slices of @size elements, @step apart: [slices, size] */
static KilnValue *
slices_of(const KilnOnnxSteps *s, int64_t all, int64_t size, int64_t step)
{
    const int64_t n = (all - size) / step + 1;
    if (n > MAX_SLICES / size) {
        kiln_onnx_unsupported(s->call, s->error, "%" G_GINT64_FORMAT " slices of %" G_GINT64_FORMAT,
                              n, size);
        return NULL;
    }
    g_autofree int64_t *places = g_new(int64_t, n * size);
    for (int64_t i = 0; i < n * size; i++)
        places[i] = i / size * step + i % size;
    const KilnOnnxExtent shape[] = { KILN_ONNX_NUMBER(n), KILN_ONNX_NUMBER(size) };
    KilnValue *flat = kiln_onnx_ints(s->call, "places", places, (uint32_t)(n * size));
    return kiln_onnx_step_reshape(s, flat, shape, 2);
}

/* All slices of `size` elements along `dim`, which are a last dim then. */
gboolean
kiln_onnx_convert_unfold_tensor(KilnOnnxCall *call, GError **error)
{
    const KilnOnnxSteps s = { call, error };
    int64_t dim = -1, size = 0, step = 1, perm[KILN_MAX_RANK];
    KilnValue *x = kiln_onnx_need(call, 0, error);
    if (!x || !kiln_onnx_require_rank(call, 0, 1, KILN_MAX_RANK - 1, error) ||
        !kiln_onnx_take_int(call, "dim", &dim, error) ||
        !kiln_onnx_take_int(call, "size", &size, error) ||
        !kiln_onnx_take_int(call, "step", &step, error))
        return FALSE;
    const int rank = x->type.rank;
    if (dim < -rank || dim >= rank)
        return kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                               "dim: expected %d to %d, found %" G_GINT64_FORMAT, -rank, rank - 1,
                               dim);
    dim += dim < 0 ? rank : 0;
    const int64_t all = x->type.dims[dim];
    if (all < 0)
        return kiln_onnx_unsupported(call, error, "an axis of an unknown length");
    if (size < 1 || size > all || step < 1)
        return kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                               "expected a size of 1 to %" G_GINT64_FORMAT
                               " and a step of 1 or more, found %" G_GINT64_FORMAT
                               " and %" G_GINT64_FORMAT,
                               all, size, step);
    KilnValue *y = kiln_onnx_step_gather(&s, x, slices_of(&s, all, size, step), dim);
    for (int d = 0; d < rank; d++)
        perm[d] = d <= dim ? d : d + 1;
    perm[rank] = dim + 1;
    return kiln_onnx_set_result(call, 0, kiln_onnx_step_transpose(&s, y, perm, (uint32_t)rank + 1));
}

/* In the order of the first places. The results are values, where each element is, and how often
 * each value occurs. */
gboolean
kiln_onnx_convert_unique_contrib(KilnOnnxCall *call, GError **error)
{
    static const uint32_t from[] = { 0, 2, 3 };
    KilnAttrs_unique attrs = { .axis = G_MININT64, .sorted = false };
    KilnValue *x = kiln_onnx_need(call, 0, error);
    if (!x || !kiln_onnx_require_rank(call, 0, 1, 1, error))
        return FALSE;
    const KilnOnnxSteps s = { call, error };
    KilnValue *results = kiln_onnx_step_results(&s, KILN_OP_unique, &attrs, x, 4, "unique");
    for (uint32_t i = 0; results && i < call->n_results && i < 3; i++)
        kiln_onnx_set_result(call, i, &results[from[i]]);
    return results != NULL;
}

/*   softmax(x + bias); a softmax before opset 13 */
gboolean
kiln_onnx_convert_bias_softmax(KilnOnnxCall *call, GError **error)
{
    const KilnOnnxSteps s = { call, error };
    int64_t inner = 0;
    KilnValue *x = kiln_onnx_need(call, 0, error);
    KilnValue *bias = x ? kiln_onnx_need(call, 1, error) : NULL;
    if (!bias || !kiln_onnx_take_flag(call, "is_inner_broadcast", &inner, error))
        return FALSE;
    call->operands[0] = kiln_onnx_step_add(&s, x, bias);
    call->n_operands = 1;
    return call->operands[0] && kiln_onnx_convert_softmax_2d(call, error);
}

/* --- distances --- */

/* The sum of the squares of each row of @x. */
static KilnValue *
squares(const KilnOnnxSteps *s, KilnValue *x)
{
    const KilnAttrs_reduce_sum_square attrs = { .keepdims = true };
    return kiln_onnx_step2(s, KILN_OP_reduce_sum_square, &attrs, x,
                           kiln_onnx_ints(s->call, "axes", (int64_t[]){ 1 }, 1));
}

/*   |a|² + transpose(|b|²) - 2 a . transpose(b), not below 0, and its root */
gboolean
kiln_onnx_convert_cdist(KilnOnnxCall *call, GError **error)
{
    static const int64_t swap[] = { 1, 0 };
    const KilnOnnxSteps s = { call, error };
    const char *metric = "sqeuclidean";
    KilnValue *a = kiln_onnx_need(call, 0, error);
    KilnValue *b = a ? kiln_onnx_need(call, 1, error) : NULL;
    if (!b || !kiln_onnx_require_rank(call, 0, 2, 2, error) ||
        !kiln_onnx_require_rank(call, 1, 2, 2, error) ||
        !kiln_onnx_take_text(call, "metric", &metric, error))
        return FALSE;
    const bool root = strcmp(metric, "euclidean") == 0;
    if (!root && strcmp(metric, "sqeuclidean") != 0)
        return kiln_onnx_unsupported(call, error, "metric=%s", metric);
    KilnValue *product = kiln_onnx_step_matmul(&s, a, kiln_onnx_step_transpose(&s, b, swap, 2));
    KilnValue *sums = kiln_onnx_step_add(&s, squares(&s, a),
                                         kiln_onnx_step_transpose(&s, squares(&s, b), swap, 2));
    KilnValue *y = kiln_onnx_step_sub(&s, sums, kiln_onnx_step_mul_number(&s, product, 2));
    y = kiln_onnx_step_at_least(&s, y, 0);
    return kiln_onnx_set_result(call, 0, root ? kiln_onnx_step_sqrt(&s, y) : y);
}

/* --- repeated words --- */

KilnValue *
kiln_onnx_step_block_repeats(const KilnOnnxSteps *s, KilnValue *tokens, KilnValue *scores,
                             int64_t n, double blocked)
{
    const KilnAttrs_scatter_elements least = { .axis = 1, .reduction = "min" };
    KilnValue *same = NULL;
    if (!scores)
        return NULL;
    for (int64_t i = 0; i < n - 1; i++) {
        KilnValue *word =
            kiln_onnx_step_slice(s, tokens, 1, i - n + 1, i < n - 2 ? i - n + 2 : INT64_MAX, 1);
        KilnValue *before = kiln_onnx_step_slice(s, tokens, 1, i, i - n + 1, 1);
        KilnValue *equal = kiln_onnx_step2(s, KILN_OP_equal, NULL, before, word);
        same = same ? kiln_onnx_step2(s, KILN_OP_and, NULL, same, equal) : equal;
        if (!same)
            return NULL;
    }
    const KilnDType dtype = scores->type.dtype;
    KilnValue *next = n > 1 ? kiln_onnx_step_slice(s, tokens, 1, n - 1, INT64_MAX, 1) : tokens;
    KilnValue *all = same ? same : kiln_onnx_step2(s, KILN_OP_equal, NULL, tokens, tokens);
    KilnValue *bound = kiln_onnx_step3(s, KILN_OP_where, NULL, all,
                                       kiln_onnx_scalar(s->call, "blocked", dtype, blocked),
                                       kiln_onnx_scalar(s->call, "free", dtype, INFINITY));
    return kiln_onnx_step3(s, KILN_OP_scatter_elements, &least, scores, next, bound);
}

/* (ids[batch, length], scores[batch, words]) */
gboolean
kiln_onnx_convert_ngram_repeat_block(KilnOnnxCall *call, GError **error)
{
    const KilnOnnxSteps s = { call, error };
    int64_t n = 0;
    KilnValue *ids = kiln_onnx_need(call, 0, error);
    KilnValue *scores = ids ? kiln_onnx_need(call, 1, error) : NULL;
    if (!scores || !kiln_onnx_require_rank(call, 0, 2, 2, error) ||
        !kiln_onnx_require_rank(call, 1, 2, 2, error) ||
        !kiln_onnx_take_int(call, "ngram_size", &n, error))
        return FALSE;
    if (n < 1 || n > 64)
        return kiln_onnx_unsupported(call, error, "ngram_size=%" G_GINT64_FORMAT, n);
    return kiln_onnx_set_result(call, 0,
                                kiln_onnx_step_block_repeats(&s, ids, scores, n, -INFINITY));
}

/* --- CropAndResize --- */

typedef struct {
    KilnOnnxSteps s;
    KilnValue *boxes;
    int64_t size[2]; /* height and width of a crop */
    float outside;
} Crops;

/* Where the rows (@axis 0) or columns of the crops are in the picture, from 0 to 1: [boxes, n]. */
static KilnValue *
places(const Crops *c, int64_t axis)
{
    const KilnOnnxSteps *s = &c->s;
    KilnValue *low = kiln_onnx_step_slice(s, c->boxes, 1, axis, axis + 1, 1);
    KilnValue *high = kiln_onnx_step_slice(s, c->boxes, 1, axis + 2, axis + 3, 1);
    const int64_t n = c->size[axis];
    if (n == 1)
        return kiln_onnx_step_mul_number(s, kiln_onnx_step_add(s, low, high), 0.5);
    KilnValue *step =
        kiln_onnx_step_div_number(s, kiln_onnx_step_sub(s, high, low), (double)(n - 1));
    KilnValue *count =
        kiln_onnx_count_to(s, kiln_onnx_scalar(s->call, "n", KILN_DTYPE_i64, (double)n));
    count = step ? kiln_onnx_step_cast(s, count, step->type.dtype) : NULL;
    return kiln_onnx_step_add(s, low, kiln_onnx_step_mul(s, step, count));
}

/* @at as [boxes, height, width, 1] */
static KilnValue *
spread(const Crops *c, KilnValue *at, int64_t axis)
{
    const int64_t axes[] = { 2 - axis, 3 };
    if (!at)
        return NULL;
    const KilnOnnxExtent extents[] = { KILN_ONNX_DIM(c->boxes, 0), KILN_ONNX_NUMBER(c->size[0]),
                                       KILN_ONNX_NUMBER(c->size[1]), KILN_ONNX_NUMBER(1) };
    return kiln_onnx_step_expand(&c->s, kiln_onnx_step_unsqueeze(&c->s, at, axes, 2), extents, 4);
}

/* Whether both of @y and @x are from 0 to 1: [boxes, 1, height, width]. */
static KilnValue *
inside(const Crops *c, KilnValue *const at[2])
{
    const KilnOnnxSteps *s = &c->s;
    KilnValue *all = NULL;
    for (int i = 0; i < 2; i++) {
        const int64_t axes[] = { 1, i ? 2 : 3 };
        KilnValue *low = kiln_onnx_step_number(s, KILN_OP_greater_or_equal, at[i], 0);
        KilnValue *both = kiln_onnx_step2(
            s, KILN_OP_and, NULL, low, kiln_onnx_step_number(s, KILN_OP_less_or_equal, at[i], 1));
        both = kiln_onnx_step_unsqueeze(s, both, axes, 2);
        all = i ? kiln_onnx_step2(s, KILN_OP_and, NULL, all, both) : both;
    }
    return all;
}

/* Operand 3 must be known. */
static gboolean
read_size(KilnOnnxCall *call, Crops *c, GError **error)
{
    const KilnValue *value = kiln_onnx_need(call, 3, error);
    const KilnConstant *constant = value ? kiln_value_constant(value) : NULL;
    if (!value)
        return FALSE;
    if (!constant || constant->type.dtype != KILN_DTYPE_i32 || constant->type.rank != 1 ||
        constant->type.dims[0] != 2)
        return kiln_onnx_unsupported(call, error, "a size of crops that is not known");
    g_autoptr(GBytes) bytes = kiln_tensor_view(constant->tensor, error);
    if (!bytes)
        return FALSE;
    const int32_t *numbers = g_bytes_get_data(bytes, NULL);
    c->size[0] = numbers[0];
    c->size[1] = numbers[1];
    return (c->size[0] > 0 && c->size[1] > 0) ||
           kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                           "operand 3: expected 1 or more, found %d and %d", numbers[0],
                           numbers[1]);
}

/* Samples of grid_sample, whose corners are those of the picture. (x, boxes, which picture of each,
 * size) */
gboolean
kiln_onnx_convert_crop_and_resize(KilnOnnxCall *call, GError **error)
{
    Crops c = { .s = { call, error } };
    const char *mode = "bilinear";
    for (uint32_t i = 0; i < 3; i++) {
        if (!kiln_onnx_need(call, i, error))
            return FALSE;
    }
    c.boxes = call->operands[1];
    if (!kiln_onnx_require_rank(call, 0, 4, 4, error) ||
        !kiln_onnx_require_rank(call, 1, 2, 2, error) || !read_size(call, &c, error) ||
        !kiln_onnx_take_text(call, "mode", &mode, error) ||
        !kiln_onnx_take_float(call, "extrapolation_value", &c.outside, error))
        return FALSE;
    if (strcmp(mode, "bilinear") != 0)
        return kiln_onnx_unsupported(call, error, "mode=%s", mode);
    const KilnAttrs_grid_sample attrs = { .align_corners = true,
                                          .mode = "linear",
                                          .padding_mode = "border" };
    KilnValue *at[] = { places(&c, 0), places(&c, 1) };
    KilnValue *grid = kiln_onnx_step_concat(&c.s, spread(&c, at[1], 1), spread(&c, at[0], 0), -1);
    grid = kiln_onnx_step_sub_number(&c.s, kiln_onnx_step_mul_number(&c.s, grid, 2), 1);
    KilnValue *pictures = kiln_onnx_step_gather(&c.s, call->operands[0], call->operands[2], 0);
    KilnValue *y = kiln_onnx_step2(&c.s, KILN_OP_grid_sample, &attrs, pictures, grid);
    KilnValue *outside =
        y ? kiln_onnx_scalar(call, "outside", y->type.dtype, (double)c.outside) : NULL;
    return kiln_onnx_set_result(
        call, 0, kiln_onnx_step3(&c.s, KILN_OP_where, NULL, inside(&c, at), y, outside));
}
