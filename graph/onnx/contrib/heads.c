/* SPDX-License-Identifier: Apache-2.0 */
/* Attention of com.microsoft, of a hidden state and merged weights or of queries, keys and values
 * that were projected before, becomes
 *
 *   softmax(q . transpose(k) * scale + bias) . v
 *
 * on [batch, heads, rows, head size], where the bias is the sum of all masks: raise-attention looks
 * for one. Sizes that are open stay open: shapes are computed from the operands. */
#include "graph/onnx/contrib/heads.h"

#include "graph/graph.h"
#include "graph/onnx/contrib/cache.h"
#include "graph/onnx/convert.h"
#include "graph/onnx/steps.h"
#include "graph/op/logic.h"
#include "graph/op/softmax.h"

#include <float.h>
#include <math.h>
gboolean
kiln_onnx_heads_read(KilnOnnxHeads *self, GError **error)
{
    KilnOnnxCall *call = self->call;
    self->filter = -10000;
    if (!kiln_onnx_take_int(call, "num_heads", &self->heads, error) ||
        !kiln_onnx_take_flag(call, "unidirectional", &self->causal, error) ||
        !kiln_onnx_take_float(call, "scale", &self->scale, error) ||
        !kiln_onnx_take_float(call, "mask_filter_value", &self->filter, error))
        return FALSE;
    return (self->heads >= 1 && self->heads <= INT32_MAX) ||
           kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                           "num_heads: expected 1 or more, found %" G_GINT64_FORMAT, self->heads);
}

KilnValue *
kiln_onnx_heads_split(const KilnOnnxHeads *self, KilnValue *x)
{
    static const int64_t perm[] = { 0, 2, 1, 3 };
    const int64_t hidden = x ? x->type.dims[2] : -1;
    if (!x)
        return NULL;
    if (hidden >= 0 && (hidden == 0 || hidden % self->heads != 0)) {
        kiln_onnx_throw(self->call, KILN_ERROR_SHAPE, self->s.error,
                        "expected a hidden size in multiples of %" G_GINT64_FORMAT
                        " heads, found %" G_GINT64_FORMAT,
                        self->heads, hidden);
        return NULL;
    }
    const KilnOnnxExtent extents[] = { KILN_ONNX_DIM(x, 0), KILN_ONNX_DIM(x, 1),
                                       KILN_ONNX_NUMBER(self->heads),
                                       KILN_ONNX_NUMBER(hidden < 0 ? -1 : hidden / self->heads) };
    return kiln_onnx_step_transpose(&self->s, kiln_onnx_step_reshape(&self->s, x, extents, 4), perm,
                                    4);
}

/* --- masks --- */

/* 0 where @keep, else @filter. */
static KilnValue *
as_bias(const KilnOnnxHeads *self, KilnValue *keep, float filter)
{
    KilnDType dtype = self->q->type.dtype;
    return kiln_onnx_step3(&self->s, KILN_OP_where, NULL, keep,
                           kiln_onnx_scalar(self->call, "kept", dtype, 0),
                           kiln_onnx_scalar(self->call, "masked", dtype, (double)filter));
}

/* The last key that each row of queries sees: those of earlier steps, and of this step's as many as
 * there are rows up to it. ONNX Runtime's kernel shows all of them to the last row. */
static KilnValue *
last_of_rows(const KilnOnnxHeads *self, KilnValue *rows, KilnValue *keys)
{
    const KilnOnnxSteps *s = &self->s;
    KilnValue *count = kiln_onnx_count_to(s, rows);
    if (!self->before)
        return kiln_onnx_step_add(s, count, kiln_onnx_step_sub(s, keys, rows));
    KilnValue *end =
        kiln_onnx_step2(s, KILN_OP_equal, NULL, count, kiln_onnx_step_sub_number(s, rows, 1));
    return kiln_onnx_step3(s, KILN_OP_where, NULL, end, keys,
                           kiln_onnx_step_add(s, count, self->before));
}

/* Hides the keys that come later. */
static KilnValue *
causal_bias(const KilnOnnxHeads *self)
{
    static const int64_t axis[] = { 1 };
    const KilnOnnxSteps *s = &self->s;
    KilnValue *rows = kiln_onnx_step_extent(s, self->q, 2);
    KilnValue *keys = kiln_onnx_step_extent(s, self->k, 2);
    KilnValue *last = last_of_rows(self, rows, keys);
    KilnValue *keep = kiln_onnx_step2(s, KILN_OP_less_or_equal, NULL, kiln_onnx_count_to(s, keys),
                                      kiln_onnx_step_unsqueeze(s, last, axis, 1));
    return as_bias(self, keep, -FLT_MAX);
}

/* The keys before the @n-th of each batch, or from it on (@op); @n is [batch]. */
static KilnValue *
keep_beside(const KilnOnnxHeads *self, KilnOp op, KilnValue *n)
{
    static const int64_t axes[] = { 1, 2, 3 };
    const KilnOnnxSteps *s = &self->s;
    KilnValue *keys = kiln_onnx_count_to(s, kiln_onnx_step_extent(s, self->k, 2));
    n = kiln_onnx_step_unsqueeze(s, kiln_onnx_step_cast(s, n, KILN_DTYPE_i64), axes, 3);
    return kiln_onnx_step2(s, op, NULL, keys, n);
}

/* The same where the number of samples is open. Zeros behind @mask stand for starts that it may
 * lack; others than starts become zeros. */
static KilnValue *
keep_open_lengths(const KilnOnnxHeads *self, KilnValue *mask)
{
    const KilnOnnxSteps *s = &self->s;
    const KilnOnnxExtent each[] = { KILN_ONNX_DIM(self->q, 0) };
    mask = kiln_onnx_step_cast(s, mask, KILN_DTYPE_i64);
    KilnValue *batch = kiln_onnx_step_extents(s, self->q, 0);
    KilnValue *twice = kiln_onnx_step_mul_number(s, batch, 2);
    KilnValue *ends = kiln_onnx_step_slice_to(s, mask, 0, 0, batch);
    KilnValue *has =
        kiln_onnx_step2(s, KILN_OP_equal, NULL, kiln_onnx_step_extents(s, mask, 0), twice);
    KilnValue *more = kiln_onnx_step_longer(s, mask, 0, kiln_onnx_step_extent(s, self->q, 0));
    KilnValue *starts = kiln_onnx_step_between(s, more, batch, twice);
    starts = kiln_onnx_step_mul(s, starts, kiln_onnx_step_cast(s, has, KILN_DTYPE_i64));
    KilnValue *keep = keep_beside(self, KILN_OP_less, kiln_onnx_step_reshape(s, ends, each, 1));
    return kiln_onnx_step2(s, KILN_OP_and, NULL, keep,
                           keep_beside(self, KILN_OP_greater_or_equal, starts));
}

/* A mask of rank 1: the end of the keys of each batch, and after these perhaps their starts. Where
 * there are sums of lengths behind the ends (3 batch + 2), no kernel reads them. */
static KilnValue *
keep_lengths(const KilnOnnxHeads *self, KilnValue *mask)
{
    const KilnOnnxSteps *s = &self->s;
    const int64_t batch = self->q->type.dims[0], n = mask->type.dims[0];
    if (kiln_type_equal_dims(&mask->type, 0, &self->q->type, 0))
        return keep_beside(self, KILN_OP_less, mask);
    if (batch < 0 || batch > INT32_MAX || n < 0)
        return keep_open_lengths(self, mask);
    if (n != 2 * batch && n != 3 * batch + 2) {
        kiln_onnx_throw(self->call, KILN_ERROR_SHAPE, s->error,
                        "expected a mask of 1, 2 or 3 numbers (and 2 more) for each of "
                        "%" G_GINT64_FORMAT " samples, found %" G_GINT64_FORMAT,
                        batch, n);
        return NULL;
    }
    KilnValue *keep =
        keep_beside(self, KILN_OP_less, kiln_onnx_step_slice(s, mask, 0, 0, batch, 1));
    if (n != 2 * batch)
        return keep;
    KilnValue *starts = kiln_onnx_step_slice(s, mask, 0, batch, 2 * batch, 1);
    return kiln_onnx_step2(s, KILN_OP_and, NULL, keep,
                           keep_beside(self, KILN_OP_greater_or_equal, starts));
}

/* A mask of integers, of which 1 keeps: [batch, keys] or [batch, rows, keys] with a dim for heads,
 * and one for rows where it has none. */
static KilnValue *
keep_ones(const KilnOnnxHeads *self, KilnValue *mask)
{
    static const int64_t axes[] = { 1, 2 };
    KilnValue *keep = kiln_onnx_step_cast(&self->s, mask, KILN_DTYPE_bool);
    if (self->n_keys)
        keep = kiln_onnx_as_long(&self->s, keep, mask->type.rank - 1, self->k, 2);
    return kiln_onnx_step_unsqueeze(&self->s, keep, axes, mask->type.rank == 2 ? 2 : 1);
}

/* Both; each may be absent. */
static KilnValue *
joined(const KilnOnnxSteps *s, KilnValue *a, KilnValue *b)
{
    return a && b ? kiln_onnx_step_add(s, a, b) : a ? a : b;
}

/* 0 for keys that there are, else -inf. */
static KilnValue *
end_bias(const KilnOnnxHeads *self)
{
    KilnValue *keys = kiln_onnx_count_to(&self->s, kiln_onnx_step_extent(&self->s, self->k, 2));
    return as_bias(self, kiln_onnx_step2(&self->s, KILN_OP_less, NULL, keys, self->n_keys),
                   -INFINITY);
}

/* Checks what is added to scores of [batch, heads, rows, keys]. Of a buffer, the number of keys is
 * not known. */
static gboolean
check_masks(const KilnOnnxHeads *self, uint32_t mask, uint32_t bias, GError **error)
{
    KilnOnnxCall *call = self->call;
    const KilnValue *keep = kiln_onnx_operand(call, mask);
    const int64_t *q = self->q->type.dims;
    const int64_t keys = self->n_keys ? -1 : self->k->type.dims[2];
    if (keep && (keep->type.rank < 1 || keep->type.rank > 3))
        return kiln_onnx_unsupported(call, error, "a mask of rank %d", keep->type.rank);
    if (keep && keep->type.rank == 2 && !KILN_ONNX_REQUIRE_DIMS(call, mask, error, q[0], keys))
        return FALSE;
    if (keep && keep->type.rank == 3 &&
        !KILN_ONNX_REQUIRE_DIMS(call, mask, error, q[0], q[2], keys))
        return FALSE;
    return KILN_ONNX_REQUIRE_DIMS(call, bias, error, kiln_onnx_one_or(call, bias, 0, q[0]),
                                  kiln_onnx_one_or(call, bias, 1, self->heads), q[2], keys);
}

static KilnValue *
mask_bias(const KilnOnnxHeads *self, KilnValue *mask)
{
    return as_bias(self, mask->type.rank == 1 ? keep_lengths(self, mask) : keep_ones(self, mask),
                   self->filter);
}

/* What hides keys that come later, and rows of a buffer without a key, in *@out; NULL: nothing. */
static gboolean
sum_ends(const KilnOnnxHeads *self, KilnValue **out)
{
    const bool causal = self->causal && self->q->type.dims[2] != 1;
    KilnValue *later = causal ? causal_bias(self) : NULL;
    KilnValue *end = self->n_keys ? end_bias(self) : NULL;
    *out = joined(&self->s, later, end);
    return (later || !causal) && (end || !self->n_keys) && (*out || (!causal && !self->n_keys));
}

/* The sum of all that is added to the scores, in *@out; NULL where there is nothing. */
static gboolean
sum_masks(const KilnOnnxHeads *self, uint32_t mask, uint32_t bias, KilnValue **out)
{
    KilnValue *keep = kiln_onnx_operand(self->call, mask);
    KilnValue *more = kiln_onnx_operand(self->call, bias);
    KilnValue *masked = keep ? mask_bias(self, keep) : NULL, *end;
    *out = NULL;
    if ((keep && !masked) || !sum_ends(self, &end))
        return FALSE;
    if (more && self->n_keys)
        more = kiln_onnx_as_long(&self->s, more, 3, self->k, 2);
    *out = joined(&self->s, joined(&self->s, masked, end), more);
    return *out || (!keep && !end && !more);
}

/* --- attention --- */

static gboolean
find_scale(KilnOnnxHeads *self, GError **error)
{
    int64_t size = self->q->type.dims[3];
    if (self->scale == 0 && size > 0)
        self->scale = 1 / sqrtf((float)size);
    return self->scale != 0 ||
           kiln_onnx_unsupported(self->call, error, "a head size that is not known");
}

/* Sets result 3: @scores of the keys that there are. */
static gboolean
show(const KilnOnnxHeads *self, KilnValue *scores)
{
    if (self->n_keys)
        scores = kiln_onnx_step_slice_to(&self->s, scores, 3, 0, self->n_keys);
    return kiln_onnx_set_result(self->call, 3, scores);
}

gboolean
kiln_onnx_heads_attend(KilnOnnxHeads *self, uint32_t mask, uint32_t bias, GError **error)
{
    static const int64_t swap[] = { 0, 1, 3, 2 }, back[] = { 0, 2, 1, 3 };
    const KilnOnnxSteps *s = &self->s;
    KilnValue *masks;
    if (!find_scale(self, error) || !check_masks(self, mask, bias, error) ||
        !sum_masks(self, mask, bias, &masks))
        return FALSE;
    KilnValue *keys = kiln_onnx_step_transpose(s, self->k, swap, 4);
    KilnValue *scores =
        kiln_onnx_step_mul_number(s, kiln_onnx_step_matmul(s, self->q, keys), (double)self->scale);
    if (masks)
        scores = kiln_onnx_step_add(s, scores, masks);
    KilnValue *weights =
        kiln_onnx_step1(s, KILN_OP_softmax, &(KilnAttrs_softmax){ .axis = -1 }, scores);
    KilnValue *y = kiln_onnx_step_transpose(s, kiln_onnx_step_matmul(s, weights, self->v), back, 4);
    if (!y || (self->shows && !show(self, scores)))
        return FALSE;
    const int64_t size = y->type.dims[3];
    const KilnOnnxExtent extents[] = { KILN_ONNX_DIM(y, 0), KILN_ONNX_DIM(y, 1),
                                       KILN_ONNX_NUMBER(size < 0 ? -1 : self->heads * size) };
    return kiln_onnx_set_result(self->call, 0, kiln_onnx_step_reshape(s, y, extents, 3));
}
