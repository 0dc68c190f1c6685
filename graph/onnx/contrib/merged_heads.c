/* SPDX-License-Identifier: Apache-2.0 */
/* Attention and QAttention of com.microsoft: of a hidden state and the merged weights of queries,
 * keys and values. Those of QAttention are integers. */
#include "graph/graph.h"
#include "graph/onnx/contrib/contrib.h"
#include "graph/onnx/contrib/heads.h"
#include "graph/onnx/convert.h"
#include "graph/onnx/steps.h"

#include <string.h>

/* The hidden sizes that the node states, or a third of the columns of the weights each. */
static gboolean
read_sizes(KilnOnnxCall *call, int64_t sizes[3], GError **error)
{
    const KilnValue *weights = kiln_onnx_need(call, 1, error);
    KilnInts stated = { 0 };
    bool there = false;
    if (!weights || !kiln_onnx_require_rank(call, 1, 2, 2, error) ||
        !kiln_onnx_take_ints(call, "qkv_hidden_sizes", &stated, &there, error))
        return FALSE;
    if (there && stated.n != 3)
        return kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                               "qkv_hidden_sizes: expected 3 numbers, found %u", stated.n);
    if (there) {
        memcpy(sizes, stated.v, 3 * sizeof *sizes);
        return TRUE;
    }
    const int64_t all = weights->type.dims[1];
    if (all < 0)
        return kiln_onnx_unsupported(call, error, "weights whose hidden sizes are not known");
    sizes[0] = sizes[1] = sizes[2] = all / 3;
    return all % 3 == 0 ||
           kiln_onnx_throw(call, KILN_ERROR_SHAPE, error,
                           "operand 1: expected columns in multiples of 3, found %" G_GINT64_FORMAT,
                           all);
}

/* Queries and keys have heads of one size. */
static gboolean
check_sizes(const KilnOnnxHeads *self, const int64_t sizes[3], GError **error)
{
    bool good = sizes[0] == sizes[1];
    for (int i = 0; i < 3; i++)
        good &= sizes[i] > 0 && sizes[i] <= INT32_MAX && sizes[i] % self->heads == 0;
    return good || kiln_onnx_throw(self->call, KILN_ERROR_INVALID, error,
                                   "expected hidden sizes in multiples of %" G_GINT64_FORMAT
                                   " heads, the same for queries and keys, found %" G_GINT64_FORMAT
                                   ", %" G_GINT64_FORMAT " and %" G_GINT64_FORMAT,
                                   self->heads, sizes[0], sizes[1], sizes[2]);
}

/* Operands 0 to 2 are the hidden state, the weights and the bias. */
static gboolean
check_operands(const KilnOnnxHeads *self, const int64_t sizes[3], uint32_t past, GError **error)
{
    KilnOnnxCall *call = self->call;
    const int64_t *x = call->operands[0]->type.dims, all = sizes[0] + sizes[1] + sizes[2];
    const bool both = kiln_onnx_operand(call, past) || call->n_results > 1;
    if (both && sizes[0] != sizes[2])
        return kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                               "expected keys and values of one hidden size beside a past, found "
                               "%" G_GINT64_FORMAT " and %" G_GINT64_FORMAT,
                               sizes[1], sizes[2]);
    return KILN_ONNX_REQUIRE_DIMS(call, 1, error, x[2], all) &&
           KILN_ONNX_REQUIRE_DIMS(call, 2, error, all) &&
           KILN_ONNX_REQUIRE_DIMS(call, past, error, 2, x[0], self->heads, -1,
                                  sizes[0] / self->heads);
}

/* @all, [batch, rows, hidden], in three parts of heads. */
static gboolean
split(KilnOnnxHeads *self, KilnValue *all, const int64_t sizes[3])
{
    KilnValue **parts[] = { &self->q, &self->k, &self->v };
    int64_t first = 0;
    for (int i = 0; i < 3; i++) {
        *parts[i] = kiln_onnx_heads_split(
            self, kiln_onnx_step_slice(&self->s, all, 2, first, first + sizes[i], 1));
        first += sizes[i];
        if (!*parts[i])
            return FALSE;
    }
    return TRUE;
}

/* Puts part @i of operand @past, which is [2, batch, heads, rows, head size], before *@x. */
static gboolean
append_to_past(const KilnOnnxHeads *self, uint32_t operand, int64_t i, KilnValue **x)
{
    KilnValue *past = kiln_onnx_operand(self->call, operand);
    if (!past)
        return TRUE;
    past = kiln_onnx_step_gather(
        &self->s, past, kiln_onnx_scalar(self->call, "part", KILN_DTYPE_i64, (double)i), 0);
    *x = kiln_onnx_step_concat(&self->s, past, *x, 2);
    return *x != NULL;
}

/* Keys and values as one: [2, batch, heads, rows, head size]. */
static KilnValue *
present(const KilnOnnxHeads *self)
{
    static const int64_t front[] = { 0 };
    return kiln_onnx_step_concat(&self->s, kiln_onnx_step_unsqueeze(&self->s, self->k, front, 1),
                                 kiln_onnx_step_unsqueeze(&self->s, self->v, front, 1), 0);
}

/* Drops a mask of one column, which means nothing. */
static void
drop_column(KilnOnnxHeads *self, uint32_t mask)
{
    const KilnValue *keep = kiln_onnx_operand(self->call, mask);
    if (keep && keep->type.rank == 2 && keep->type.dims[1] == 1 && self->k->type.dims[2] != 1)
        self->call->operands[mask] = NULL;
}

/* Result 1 has what is to be the next past. */
static gboolean
finish(KilnOnnxHeads *self, uint32_t mask, uint32_t past, uint32_t bias, GError **error)
{
    if (!append_to_past(self, past, 0, &self->k) || !append_to_past(self, past, 1, &self->v))
        return FALSE;
    drop_column(self, mask);
    return kiln_onnx_heads_attend(self, mask, bias, error) &&
           (self->call->n_results <= 1 || kiln_onnx_set_result(self->call, 1, present(self)));
}

static gboolean
read_attrs(KilnOnnxHeads *self, int64_t sizes[3], uint32_t past, GError **error)
{
    KilnOnnxCall *call = self->call;
    int64_t rotary = 0, shares = 0, rotary_size = 0;
    if (!kiln_onnx_heads_read(self, error) ||
        !kiln_onnx_take_flag(call, "do_rotary", &rotary, error) ||
        !kiln_onnx_take_flag(call, "past_present_share_buffer", &shares, error) ||
        !kiln_onnx_take_int(call, "rotary_embedding_dim", &rotary_size, error))
        return FALSE;
    if (rotary || shares)
        return kiln_onnx_unsupported(call, error, "%s",
                                     rotary ? "do_rotary" : "past and present in one buffer");
    return kiln_onnx_require_rank(call, 0, 3, 3, error) && read_sizes(call, sizes, error) &&
           check_sizes(self, sizes, error) && check_operands(self, sizes, past, error);
}

/* (input, weights, bias, mask, past, attention bias) */
gboolean
kiln_onnx_convert_attention_1(KilnOnnxCall *call, GError **error)
{
    KilnOnnxHeads self = { .s = { call, error }, .call = call };
    int64_t sizes[3];
    KilnValue *x = kiln_onnx_need(call, 0, error);
    if (!x || !read_attrs(&self, sizes, 4, error))
        return FALSE;
    if (kiln_onnx_operand(call, 6))
        return kiln_onnx_unsupported(call, error, "past and present in one buffer");
    KilnValue *all = kiln_onnx_step_matmul(&self.s, x, call->operands[1]);
    return split(&self, kiln_onnx_step_add_operand(&self.s, all, 2), sizes) &&
           finish(&self, 3, 4, 5, error);
}

/* (input, weights, bias, input scale, weight scale, mask, input zero, weight zero, past) */
gboolean
kiln_onnx_convert_qattention(KilnOnnxCall *call, GError **error)
{
    KilnOnnxHeads self = { .s = { call, error }, .call = call };
    int64_t sizes[3];
    for (uint32_t i = 0; i < 5; i++) {
        if (!kiln_onnx_need(call, i, error))
            return FALSE;
    }
    if (!read_attrs(&self, sizes, 8, error))
        return FALSE;
    if (!kiln_onnx_require_one(call, 3, error) || !kiln_onnx_require_one(call, 6, error))
        return FALSE;
    KilnValue *zeros[] = { kiln_onnx_operand(call, 6), kiln_onnx_operand(call, 7) };
    KilnValue *all = kiln_onnx_step_scaled_product(&self.s, call->operands[0], call->operands[1],
                                                   zeros, call->operands + 3);
    return split(&self, kiln_onnx_step_add_operand(&self.s, all, 2), sizes) &&
           finish(&self, 5, 8, UINT32_MAX, error);
}
