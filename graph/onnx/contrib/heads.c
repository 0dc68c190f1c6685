/* SPDX-License-Identifier: Apache-2.0 */
/* Attention of com.microsoft: of a hidden state and merged weights (Attention), or of queries, keys
 * and values that were projected before (MultiHeadAttention). Both become
 *
 *   softmax(q . transpose(k) * scale + bias) . v
 *
 * on [batch, heads, rows, head size], where the bias is the sum of all masks: raise-attention looks
 * for one. Sizes that are open stay open: shapes are computed from the operands. */
#include "graph/graph.h"
#include "graph/onnx/contrib/contrib.h"
#include "graph/onnx/convert.h"
#include "graph/onnx/steps.h"
#include "graph/op/gather.h"
#include "graph/op/generate.h"
#include "graph/op/logic.h"
#include "graph/op/softmax.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* What the attributes say, and what is attended. */
typedef struct {
    KilnOnnxSteps s;
    KilnOnnxCall *call;
    int64_t heads, causal;
    float scale;          /* 0: one over the root of the head size */
    float filter;         /* is added where a mask of integers has 0 */
    KilnValue *q, *k, *v; /* [batch, heads, rows, head size] */
} Heads;

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
split_heads(const Heads *self, KilnValue *x)
{
    static const int64_t perm[] = { 0, 2, 1, 3 };
    const KilnOnnxExtent extents[] = { KILN_ONNX_DIM(x, 0), KILN_ONNX_DIM(x, 1),
                                       KILN_ONNX_NUMBER(self->heads), KILN_ONNX_NUMBER(-1) };
    return x ? kiln_onnx_step_transpose(&self->s, kiln_onnx_step_reshape(&self->s, x, extents, 4),
                                        perm, 4)
             : NULL;
}

/* --- masks --- */

/* 0 to @n - 1 */
static KilnValue *
count_to(const Heads *self, KilnValue *n)
{
    return kiln_onnx_step3(&self->s, KILN_OP_range, NULL,
                           kiln_onnx_scalar(self->call, "from", KILN_DTYPE_i64, 0), n,
                           kiln_onnx_scalar(self->call, "by", KILN_DTYPE_i64, 1));
}

/* 0 where @keep, else @filter. */
static KilnValue *
as_bias(const Heads *self, KilnValue *keep, float filter)
{
    KilnDType dtype = self->q->type.dtype;
    return kiln_onnx_step3(&self->s, KILN_OP_where, NULL, keep,
                           kiln_onnx_scalar(self->call, "kept", dtype, 0),
                           kiln_onnx_scalar(self->call, "masked", dtype, (double)filter));
}

/* Row i of the queries sees the keys up to i + keys - rows. */
static KilnValue *
causal_bias(const Heads *self)
{
    static const int64_t axis[] = { 1 };
    const KilnOnnxSteps *s = &self->s;
    KilnValue *rows = kiln_onnx_step_extent(s, self->q, 2);
    KilnValue *keys = kiln_onnx_step_extent(s, self->k, 2);
    KilnValue *last =
        kiln_onnx_step_add(s, count_to(self, rows), kiln_onnx_step_sub(s, keys, rows));
    KilnValue *keep = kiln_onnx_step2(s, KILN_OP_less_or_equal, NULL, count_to(self, keys),
                                      kiln_onnx_step_unsqueeze(s, last, axis, 1));
    return as_bias(self, keep, -FLT_MAX);
}

/* How many keys each batch has, [batch], as [batch, 1, 1, keys]. */
static KilnValue *
keep_lengths(const Heads *self, KilnValue *lengths)
{
    static const int64_t axes[] = { 1, 2, 3 };
    const KilnOnnxSteps *s = &self->s;
    KilnValue *n = kiln_onnx_step_cast(s, lengths, KILN_DTYPE_i64);
    KilnValue *keys = count_to(self, kiln_onnx_step_extent(s, self->k, 2));
    return kiln_onnx_step2(s, KILN_OP_less, NULL, keys, kiln_onnx_step_unsqueeze(s, n, axes, 3));
}

/* A mask of integers, of which 1 keeps: [batch, keys] or [batch, rows, keys] with a dim for heads,
 * and one for rows where it has none. */
static KilnValue *
keep_ones(const Heads *self, KilnValue *mask)
{
    static const int64_t axes[] = { 1, 2 };
    KilnValue *keep = kiln_onnx_step_cast(&self->s, mask, KILN_DTYPE_bool);
    return kiln_onnx_step_unsqueeze(&self->s, keep, axes, mask->type.rank == 2 ? 2 : 1);
}

static gboolean
check_mask(const Heads *self, const KilnValue *mask, GError **error)
{
    if (mask->type.rank < 1 || mask->type.rank > 3)
        return kiln_onnx_unsupported(self->call, error, "a mask of rank %d", mask->type.rank);
    return mask->type.rank > 1 || kiln_type_equal_dims(&mask->type, 0, &self->q->type, 0) ||
           kiln_onnx_unsupported(self->call, error,
                                 "a mask of rank 1 that is not a length for each batch");
}

/* Both; each may be absent. */
static KilnValue *
joined(const KilnOnnxSteps *s, KilnValue *a, KilnValue *b)
{
    return a && b ? kiln_onnx_step_add(s, a, b) : a ? a : b;
}

/* The sum of all that is added to the scores, in *@out; NULL where there is nothing. */
static gboolean
sum_masks(const Heads *self, uint32_t mask, uint32_t bias, KilnValue **out, GError **error)
{
    KilnValue *keep = kiln_onnx_operand(self->call, mask), *causal = NULL;
    *out = NULL;
    if (keep) {
        if (!check_mask(self, keep, error))
            return FALSE;
        keep = keep->type.rank == 1 ? keep_lengths(self, keep) : keep_ones(self, keep);
        if (!(*out = as_bias(self, keep, self->filter)))
            return FALSE;
    }
    if (self->causal && !(causal = causal_bias(self)))
        return FALSE;
    KilnValue *both = joined(&self->s, *out, causal), *more = kiln_onnx_operand(self->call, bias);
    *out = joined(&self->s, both, more);
    return *out || (!keep && !causal && !more);
}

/* --- attention --- */

static gboolean
find_scale(Heads *self, GError **error)
{
    int64_t size = self->q->type.dims[3];
    if (self->scale == 0 && size > 0)
        self->scale = 1 / sqrtf((float)size);
    return self->scale != 0 ||
           kiln_onnx_unsupported(self->call, error, "a head size that is not known");
}

/* Sets result 0, [batch, rows, hidden]. @mask and @bias: operands. */
static gboolean
attend(Heads *self, uint32_t mask, uint32_t bias, GError **error)
{
    static const int64_t swap[] = { 0, 1, 3, 2 }, back[] = { 0, 2, 1, 3 };
    const KilnOnnxSteps *s = &self->s;
    KilnValue *masks;
    if (!find_scale(self, error) || !sum_masks(self, mask, bias, &masks, error))
        return FALSE;
    KilnValue *keys = kiln_onnx_step_transpose(s, self->k, swap, 4);
    KilnValue *scores =
        kiln_onnx_step_mul_number(s, kiln_onnx_step_matmul(s, self->q, keys), (double)self->scale);
    if (masks)
        scores = kiln_onnx_step_add(s, scores, masks);
    KilnValue *weights =
        kiln_onnx_step1(s, KILN_OP_softmax, &(KilnAttrs_softmax){ .axis = -1 }, scores);
    KilnValue *y = kiln_onnx_step_transpose(s, kiln_onnx_step_matmul(s, weights, self->v), back, 4);
    const KilnOnnxExtent extents[] = { KILN_ONNX_DIM(y, 0), KILN_ONNX_DIM(y, 1),
                                       KILN_ONNX_NUMBER(-1) };
    return kiln_onnx_set_result(self->call, 0, y ? kiln_onnx_step_reshape(s, y, extents, 3) : NULL);
}

/* --- MultiHeadAttention --- */

/* Operand @i plus its part of the bias, which begins at *@first, in heads. */
static KilnValue *
projected(const Heads *self, uint32_t i, int64_t *first)
{
    const KilnOnnxSteps *s = &self->s;
    KilnValue *x = self->call->operands[i], *bias = kiln_onnx_operand(self->call, 3);
    int64_t n = x->type.dims[2];
    if (bias && n < 0) {
        kiln_onnx_unsupported(self->call, s->error,
                              "a bias of an operand whose hidden size is not known");
        return NULL;
    }
    if (bias)
        x = kiln_onnx_step_add(s, x, kiln_onnx_step_slice(s, bias, 0, *first, *first + n, 1));
    *first += n;
    return split_heads(self, x);
}

/* Operand @i before @x along the rows; @x where there is no such operand. */
static KilnValue *
behind_past(const Heads *self, uint32_t i, KilnValue *x)
{
    KilnValue *past = kiln_onnx_operand(self->call, i);
    return past ? kiln_onnx_step_concat(&self->s, past, x, 2) : x;
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
    return kiln_onnx_require_rank(call, 3, 1, 1, error) &&
           kiln_onnx_require_rank(call, 6, 4, 4, error) &&
           kiln_onnx_require_rank(call, 7, 4, 4, error);
}

/* (query, key, value, bias, key padding mask, attention bias, past key, past value) */
gboolean
kiln_onnx_convert_multi_head_attention(KilnOnnxCall *call, GError **error)
{
    Heads self = { .s = { call, error }, .call = call };
    int64_t first = 0;
    if (!check_plain(call, error) || !read_heads(&self, error) ||
        !(self.q = projected(&self, 0, &first)) || !(self.k = projected(&self, 1, &first)) ||
        !(self.v = projected(&self, 2, &first)) || !(self.k = behind_past(&self, 6, self.k)) ||
        !(self.v = behind_past(&self, 7, self.v)) || !attend(&self, 4, 5, error))
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
    if (there && stated.n != 3)
        return kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                               "qkv_hidden_sizes: expected 3 numbers, found %u", stated.n);
    if (there) {
        memcpy(sizes, stated.v, 3 * sizeof *sizes);
        return TRUE;
    }
    int64_t all = weights->type.rank == 2 ? weights->type.dims[1] : -1;
    if (all < 3 || all % 3)
        return kiln_onnx_unsupported(call, error, "weights whose hidden sizes are not known");
    sizes[0] = sizes[1] = sizes[2] = all / 3;
    return TRUE;
}

/* The hidden state by the weights, in three parts of heads. */
static gboolean
project(Heads *self, const int64_t sizes[3], GError **error)
{
    const KilnOnnxSteps *s = &self->s;
    KilnValue *x = kiln_onnx_need(self->call, 0, error),
              **parts[] = { &self->q, &self->k, &self->v };
    int64_t first = 0;
    if (!x || !kiln_onnx_require_rank(self->call, 0, 3, 3, error) ||
        !kiln_onnx_require_rank(self->call, 2, 1, 1, error) ||
        !kiln_onnx_require_rank(self->call, 4, 5, 5, error))
        return FALSE;
    KilnValue *all =
        kiln_onnx_step_add_operand(s, kiln_onnx_step_matmul(s, x, self->call->operands[1]), 2);
    for (int i = 0; i < 3; i++) {
        *parts[i] = split_heads(self, kiln_onnx_step_slice(s, all, 2, first, first + sizes[i], 1));
        first += sizes[i];
        if (!*parts[i])
            return FALSE;
    }
    return TRUE;
}

/* Puts part @i of past, which is [2, batch, heads, rows, head size], before *@x. */
static gboolean
append_to_past(const Heads *self, int64_t i, KilnValue **x)
{
    KilnValue *past = kiln_onnx_operand(self->call, 4);
    if (!past)
        return TRUE;
    past = kiln_onnx_step2(&self->s, KILN_OP_gather, NULL, past,
                           kiln_onnx_scalar(self->call, "part", KILN_DTYPE_i64, (double)i));
    *x = kiln_onnx_step_concat(&self->s, past, *x, 2);
    return *x != NULL;
}

/* Keys and values as one: [2, batch, heads, rows, head size]. */
static KilnValue *
present(const Heads *self)
{
    static const int64_t front[] = { 0 };
    return kiln_onnx_step_concat(&self->s, kiln_onnx_step_unsqueeze(&self->s, self->k, front, 1),
                                 kiln_onnx_step_unsqueeze(&self->s, self->v, front, 1), 0);
}

/* (input, weights, bias, mask, past, attention bias) */
gboolean
kiln_onnx_convert_attention_1(KilnOnnxCall *call, GError **error)
{
    Heads self = { .s = { call, error }, .call = call };
    int64_t sizes[3], rotary = 0, shares = 0, rotary_size = 0;
    if (!read_heads(&self, error) || !kiln_onnx_take_int(call, "do_rotary", &rotary, error) ||
        !kiln_onnx_take_int(call, "past_present_share_buffer", &shares, error) ||
        !kiln_onnx_take_int(call, "rotary_embedding_dim", &rotary_size, error))
        return FALSE;
    if (rotary || shares || kiln_onnx_operand(call, 6))
        return kiln_onnx_unsupported(call, error, "%s",
                                     rotary ? "do_rotary" : "past and present in one buffer");
    if (!read_sizes(call, sizes, error) || !project(&self, sizes, error) ||
        !append_to_past(&self, 0, &self.k) || !append_to_past(&self, 1, &self.v) ||
        !attend(&self, 3, 5, error))
        return FALSE;
    return call->n_results <= 1 || kiln_onnx_set_result(call, 1, present(&self));
}
