/* SPDX-License-Identifier: Apache-2.0 */
/* Attention of com.microsoft: of a hidden state and merged weights (Attention), or of queries, keys
 * and values that were projected before (MultiHeadAttention). Both become
 *
 *   softmax(q . transpose(k) * scale + masks) . v
 *
 * on [batch, heads, rows, head size]. Sizes that are open stay open: shapes are computed from the
 * operands. */
#include "graph/graph.h"
#include "graph/module.h"
#include "graph/node.h"
#include "graph/onnx/contrib/contrib.h"
#include "graph/onnx/convert.h"
#include "graph/onnx/steps.h"
#include "graph/op/cast.h"
#include "graph/op/concat.h"
#include "graph/op/gather.h"
#include "graph/op/generate.h"
#include "graph/op/logic.h"
#include "graph/op/slice.h"
#include "graph/op/softmax.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* What the attributes say, and what is attended. */
typedef struct {
    KilnOnnxCall *call;
    int64_t heads, causal;
    float scale;          /* 0: one over the root of the head size */
    float filter;         /* is added where a mask of integers has 0 */
    KilnValue *q, *k, *v; /* [batch, heads, rows, head size] */
} Heads;

/* Dims of 0 are those of @x. */
static KilnValue *
reshaped(KilnOnnxCall *call, KilnValue *x, const int64_t *dims, uint32_t n, GError **error)
{
    const KilnOnnxSteps steps = { call, error };
    KilnOnnxExtent extents[4];
    if (!x)
        return NULL;
    for (uint32_t i = 0; i < n; i++)
        extents[i] = dims[i] ? (KilnOnnxExtent)KILN_ONNX_NUMBER(dims[i])
                             : (KilnOnnxExtent)KILN_ONNX_DIM(x, (int)i);
    return kiln_onnx_step_reshape(&steps, x, extents, n);
}

/* @x with a dim of 1 as dim @d. */
static KilnValue *
unsqueezed(KilnOnnxCall *call, KilnValue *x, int64_t d, GError **error)
{
    const KilnOnnxSteps steps = { call, error };
    return kiln_onnx_step_unsqueeze(&steps, x, &d, 1);
}

/* Columns @first to @first + @n of the last dim of @x. */
static KilnValue *
columns(KilnOnnxCall *call, KilnValue *x, int64_t first, int64_t n, GError **error)
{
    KilnValue *operands[] = { x, kiln_onnx_ints(call, "first", (int64_t[]){ first }, 1),
                              kiln_onnx_ints(call, "end", (int64_t[]){ first + n }, 1),
                              kiln_onnx_ints(call, "last", (int64_t[]){ -1 }, 1) };
    return kiln_onnx_build(call, KILN_OP_slice, NULL, operands, G_N_ELEMENTS(operands), error);
}

static gboolean
read_heads(Heads *self, GError **error)
{
    KilnOnnxCall *call = self->call;
    self->filter = -10000;
    if (!kiln_onnx_take_int(call, "num_heads", &self->heads, error) ||
        !kiln_onnx_take_int(call, "unidirectional", &self->causal, error) ||
        !kiln_onnx_take_float(call, "scale", &self->scale, error) ||
        !kiln_onnx_take_float(call, "mask_filter_value", &self->filter, error))
        return FALSE;
    return self->heads > 0 ||
           kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                           "num_heads: expected 1 or more, found %" G_GINT64_FORMAT, self->heads);
}

/* [batch, rows, hidden] as [batch, heads, rows, hidden / heads] */
static KilnValue *
split_heads(const Heads *self, KilnValue *x, GError **error)
{
    static const int64_t perm[] = { 0, 2, 1, 3 };
    const int64_t dims[] = { 0, 0, self->heads, -1 };
    return kiln_onnx_permuted(self->call, reshaped(self->call, x, dims, 4, error), perm, 4, error);
}

/* --- masks --- */

/* The extent of dim @d of @x as a scalar. */
static KilnValue *
extent(KilnOnnxCall *call, KilnValue *x, int d, GError **error)
{
    const KilnOnnxSteps steps = { call, error };
    return kiln_onnx_step_extent(&steps, x, d);
}

/* 0 to @n - 1 */
static KilnValue *
count_to(KilnOnnxCall *call, KilnValue *n, GError **error)
{
    KilnValue *operands[] = { kiln_onnx_scalar(call, "from", KILN_DTYPE_i64, 0), n,
                              kiln_onnx_scalar(call, "by", KILN_DTYPE_i64, 1) };
    return n ? kiln_onnx_build(call, KILN_OP_range, NULL, operands, 3, error) : NULL;
}

/* 0 where @keep, else @filter. */
static KilnValue *
as_bias(const Heads *self, KilnValue *keep, float filter, GError **error)
{
    KilnDType dtype = self->q->type.dtype;
    KilnValue *operands[] = { keep, kiln_onnx_scalar(self->call, "kept", dtype, 0),
                              kiln_onnx_scalar(self->call, "masked", dtype, (double)filter) };
    return keep ? kiln_onnx_build(self->call, KILN_OP_where, NULL, operands, 3, error) : NULL;
}

/* Row i of the queries sees the keys up to i + keys - rows. */
static KilnValue *
causal_bias(const Heads *self, GError **error)
{
    KilnOnnxCall *call = self->call;
    KilnValue *rows = extent(call, self->q, 2, error);
    KilnValue *keys = rows ? extent(call, self->k, 2, error) : NULL;
    KilnValue *minus =
        keys ? kiln_onnx_times(call, rows, kiln_onnx_scalar(call, "minus", KILN_DTYPE_i64, -1),
                               error)
             : NULL;
    KilnValue *offset = minus ? kiln_onnx_plus(call, keys, minus, error) : NULL;
    KilnValue *own =
        offset ? kiln_onnx_plus(call, count_to(call, rows, error), offset, error) : NULL;
    KilnValue *column = reshaped(call, own, (int64_t[]){ -1, 1 }, 2, error);
    KilnValue *seen = column ? count_to(call, keys, error) : NULL;
    KilnValue *keep =
        seen ? kiln_onnx_build2(call, KILN_OP_less_or_equal, NULL, seen, column, error) : NULL;
    return as_bias(self, keep, -FLT_MAX, error);
}

/* Numbers of keys per batch: [batch]. */
static KilnValue *
keep_lengths(const Heads *self, KilnValue *lengths, GError **error)
{
    KilnAttrs_cast to = { .to = KILN_DTYPE_i64 };
    KilnOnnxCall *call = self->call;
    KilnValue *wide = kiln_onnx_build1(call, KILN_OP_cast, &to, lengths, error);
    KilnValue *column = reshaped(call, wide, (int64_t[]){ -1, 1, 1, 1 }, 4, error);
    KilnValue *keys = column ? count_to(call, extent(call, self->k, 2, error), error) : NULL;
    return keys ? kiln_onnx_build2(call, KILN_OP_less, NULL, keys, column, error) : NULL;
}

/* A mask of integers: 1 keeps. [batch, keys] or [batch, rows, keys]. */
static KilnValue *
keep_ones(const Heads *self, KilnValue *mask, GError **error)
{
    KilnAttrs_cast to = { .to = KILN_DTYPE_bool };
    static const int64_t dims[] = { 0, 1, 1, -1 };
    KilnValue *keep = kiln_onnx_build1(self->call, KILN_OP_cast, &to, mask, error);
    if (mask->type.rank == 2)
        return reshaped(self->call, keep, dims, 4, error);
    return unsqueezed(self->call, keep, 1, error);
}

/* @scores with what operand @i masks. */
static KilnValue *
with_mask(const Heads *self, KilnValue *scores, uint32_t i, GError **error)
{
    KilnOnnxCall *call = self->call;
    KilnValue *mask = kiln_onnx_operand(call, i), *keep;
    if (!scores || !mask)
        return scores;
    bool lengths = mask->type.rank == 1 && kiln_type_equal_dims(&mask->type, 0, &self->q->type, 0);
    if (mask->type.rank == 1 && !lengths)
        kiln_onnx_unsupported(call, error, "a mask of rank 1 that is not a length for each batch");
    else if (mask->type.rank < 1 || mask->type.rank > 3)
        kiln_onnx_unsupported(call, error, "a mask of rank %d", mask->type.rank);
    else {
        keep = lengths ? keep_lengths(self, mask, error) : keep_ones(self, mask, error);
        KilnValue *bias = as_bias(self, keep, self->filter, error);
        return bias ? kiln_onnx_plus(call, scores, bias, error) : NULL;
    }
    return NULL;
}

/* --- attention --- */

/* @mask and @bias: operands. The result is [batch, rows, hidden]. */
static KilnValue *
attend(const Heads *self, uint32_t mask, uint32_t bias, GError **error)
{
    static const int64_t swap[] = { 0, 1, 3, 2 }, back[] = { 0, 2, 1, 3 }, merge[] = { 0, 0, -1 };
    KilnOnnxCall *call = self->call;
    int64_t size = self->q->type.dims[3];
    float scale = self->scale;
    if (scale == 0 && size < 1) {
        kiln_onnx_unsupported(call, error, "a head size that is not known");
        return NULL;
    }
    if (scale == 0)
        scale = 1 / sqrtf((float)size);
    KilnValue *keys = kiln_onnx_permuted(call, self->k, swap, 4, error);
    KilnValue *scores = keys ? kiln_onnx_product(call, self->q, keys, error) : NULL;
    if (scores)
        scores = kiln_onnx_times(
            call, scores, kiln_onnx_scalar(call, "scale", self->q->type.dtype, (double)scale),
            error);
    scores = with_mask(self, scores, mask, error);
    if (scores && self->causal) {
        KilnValue *causal = causal_bias(self, error);
        scores = causal ? kiln_onnx_plus(call, scores, causal, error) : NULL;
    }
    if (scores)
        scores = kiln_onnx_plus(call, scores, kiln_onnx_operand(call, bias), error);
    KilnValue *weights =
        scores ? kiln_onnx_build1(call, KILN_OP_softmax, NULL, scores, error) : NULL;
    KilnValue *y = weights ? kiln_onnx_product(call, weights, self->v, error) : NULL;
    return reshaped(call, kiln_onnx_permuted(call, y, back, 4, error), merge, 3, error);
}

/* @past before @x along the rows. */
static KilnValue *
appended(KilnOnnxCall *call, KilnValue *past, KilnValue *x, GError **error)
{
    KilnAttrs_concat *attrs = kiln_onnx_defaults(call, KILN_OP_concat);
    attrs->axis = 2;
    return past ? kiln_onnx_build2(call, KILN_OP_concat, attrs, past, x, error) : x;
}

/* --- MultiHeadAttention --- */

/* Operand @i plus its part of the bias, which begins at @first. */
static KilnValue *
biased(KilnOnnxCall *call, uint32_t i, int64_t *first, GError **error)
{
    KilnValue *x = kiln_onnx_need(call, i, error), *bias = kiln_onnx_operand(call, 3);
    if (!x || !bias)
        return x;
    int64_t n = x->type.rank == 3 ? x->type.dims[2] : -1;
    if (n < 0) {
        kiln_onnx_unsupported(call, error, "a bias of an operand whose hidden size is not known");
        return NULL;
    }
    KilnValue *part = columns(call, bias, *first, n, error);
    *first += n;
    return part ? kiln_onnx_plus(call, x, part, error) : NULL;
}

static gboolean
check_plain(const KilnOnnxCall *call, GError **error)
{
    for (uint32_t i = 8; i < call->n_operands; i++) {
        if (call->operands[i])
            return kiln_onnx_unsupported(call, error, "operand %u, a buffer that is shared", i);
    }
    if (kiln_onnx_result_read(call, 3))
        return kiln_onnx_unsupported(call, error, "result 3, the weights");
    for (uint32_t i = 0; i < 3; i++) {
        const KilnValue *x = kiln_onnx_operand(call, i);
        if (!x || x->type.rank != 3)
            return kiln_onnx_unsupported(call, error, "operand %u that is no [batch, rows, hidden]",
                                         i);
    }
    return TRUE;
}

/* (query, key, value, bias, key padding mask, attention bias, past key, past value) */
gboolean
kiln_onnx_convert_multi_head_attention(KilnOnnxCall *call, GError **error)
{
    Heads self = { .call = call };
    int64_t first = 0;
    if (!check_plain(call, error) || !read_heads(&self, error))
        return FALSE;
    KilnValue *q = biased(call, 0, &first, error), *k = q ? biased(call, 1, &first, error) : NULL;
    KilnValue *v = k ? biased(call, 2, &first, error) : NULL;
    self.q = v ? split_heads(&self, q, error) : NULL;
    self.k = self.q ? split_heads(&self, k, error) : NULL;
    self.v = self.k ? split_heads(&self, v, error) : NULL;
    self.k = self.v ? appended(call, kiln_onnx_operand(call, 6), self.k, error) : NULL;
    self.v = self.k ? appended(call, kiln_onnx_operand(call, 7), self.v, error) : NULL;
    if (!self.v || !kiln_onnx_set_result(call, 0, attend(&self, 4, 5, error)))
        return FALSE;
    return (call->n_results <= 1 || kiln_onnx_set_result(call, 1, self.k)) &&
           (call->n_results <= 2 || kiln_onnx_set_result(call, 2, self.v));
}

/* --- Attention --- */

/* The hidden sizes of queries, keys and values. */
static gboolean
read_sizes(KilnOnnxCall *call, int64_t sizes[3], GError **error)
{
    const KilnValue *weights = kiln_onnx_need(call, 1, error);
    KilnInts stated = { 0 };
    bool there = false;
    if (!weights || !kiln_onnx_take_ints(call, "qkv_hidden_sizes", &stated, &there, error))
        return FALSE;
    if (there && stated.n == 3) {
        memcpy(sizes, stated.v, 3 * sizeof *sizes);
        return TRUE;
    }
    int64_t all = weights->type.rank == 2 ? weights->type.dims[1] : -1;
    if (all < 3 || all % 3)
        return kiln_onnx_unsupported(call, error, "weights whose hidden sizes are not known");
    sizes[0] = sizes[1] = sizes[2] = all / 3;
    return TRUE;
}

/* Part @i of past, which is [2, batch, heads, rows, head size]; NULL where there is no past. */
static KilnValue *
past_part(KilnOnnxCall *call, int64_t i, GError **error)
{
    KilnAttrs_gather *attrs = kiln_onnx_defaults(call, KILN_OP_gather);
    KilnValue *past = kiln_onnx_operand(call, 4);
    return past ? kiln_onnx_build2(call, KILN_OP_gather, attrs, past,
                                   kiln_onnx_scalar(call, "part", KILN_DTYPE_i64, (double)i), error)
                : NULL;
}

/* Keys and values as one: [2, batch, heads, rows, head size]. */
static gboolean
set_present(const Heads *self, GError **error)
{
    KilnOnnxCall *call = self->call;
    KilnValue *k = unsqueezed(call, self->k, 0, error);
    KilnValue *v = unsqueezed(call, self->v, 0, error);
    KilnAttrs_concat *attrs = kiln_onnx_defaults(call, KILN_OP_concat);
    attrs->axis = 0;
    return k && v &&
           kiln_onnx_set_result(call, 1,
                                kiln_onnx_build2(call, KILN_OP_concat, attrs, k, v, error));
}

/* (input, weights, bias, mask, past, attention bias) */
gboolean
kiln_onnx_convert_attention_1(KilnOnnxCall *call, GError **error)
{
    Heads self = { .call = call };
    int64_t sizes[3], rotary = 0, shares = 0, rotary_size = 0;
    if (!read_heads(&self, error) || !kiln_onnx_take_int(call, "do_rotary", &rotary, error) ||
        !kiln_onnx_take_int(call, "past_present_share_buffer", &shares, error) ||
        !kiln_onnx_take_int(call, "rotary_embedding_dim", &rotary_size, error))
        return FALSE;
    if (rotary || shares || kiln_onnx_operand(call, 6))
        return kiln_onnx_unsupported(call, error, "%s",
                                     rotary ? "do_rotary" : "past and present in one buffer");
    KilnValue *x = kiln_onnx_need(call, 0, error);
    if (!x || !read_sizes(call, sizes, error))
        return FALSE;
    KilnValue *all = kiln_onnx_product(call, x, call->operands[1], error);
    all = all ? kiln_onnx_plus(call, all, kiln_onnx_operand(call, 2), error) : NULL;
    KilnValue *parts[3] = { NULL };
    int64_t first = 0;
    for (int i = 0; i < 3 && all; i++) {
        KilnValue *part = columns(call, all, first, sizes[i], error);
        parts[i] = part ? split_heads(&self, part, error) : NULL;
        all = parts[i] ? all : NULL;
        first += sizes[i];
    }
    if (!all)
        return FALSE;
    KilnValue *past[2] = { past_part(call, 0, error), past_part(call, 1, error) };
    self.q = parts[0];
    self.k = appended(call, past[0], parts[1], error);
    self.v = self.k ? appended(call, past[1], parts[2], error) : NULL;
    if (!self.v || !kiln_onnx_set_result(call, 0, attend(&self, 3, 5, error)))
        return FALSE;
    return call->n_results <= 1 || set_present(&self, error);
}
