/* SPDX-License-Identifier: Apache-2.0 */
/* Attention of ONNX: products and a softmax, in the order of its definition, so that each
 * intermediate is rounded as the definition rounds it. raise-attention makes one operator of them.
 *
 *     q·√s   (k·√s)ᵀ
 *        \   /
 *       matmul ─── softcap ─── + bias ─── softmax ─── matmul ─── 0 where no key is attended
 *                                                      /
 *                                                     v
 *
 * Where a head of keys serves several heads of queries, both have a dim for the keys' head and
 * one for the query's head within it, which is 1 for keys, values and masks per key. */
#include "graph/graph.h"
#include "graph/onnx/convert.h"
#include "graph/onnx/steps.h"

#include "graph/op/cast.h"
#include "graph/op/expand.h"
#include "graph/op/generate.h"
#include "graph/op/logic.h"
#include "graph/op/math.h"
#include "graph/op/reduce.h"
#include "graph/op/softmax.h"
#include "graph/op/structure.h"

#include <math.h>

enum {
    Q,
    K,
    V,
    MASK,
    PAST_KEY,
    PAST_VALUE,
    VALID /* keys that are no padding, for each sample */
};

typedef struct {
    KilnOnnxSteps s;
    KilnOnnxCall *call;
    KilnDType dtype;
    int64_t q_heads, kv_heads; /* 0: not stated */
    int64_t causal, mode, left, right;
    KilnDType precision; /* of the softmax */
    float scale, softcap;
    bool flat;             /* operands are [batch, sequence, heads × size] */
    bool grouped;          /* see above */
    KilnValue *q, *k, *v;  /* [batch, heads, sequence, size] */
    KilnValue *bias;       /* NULL: none */
    bool may_mask_all;     /* a query may have no key */
    KilnValue *unattended; /* [.., queries, 1]: whether that is so */
} Attention;

/* --- attributes and operands --- */

static gboolean
take_attrs(Attention *a, GError **error)
{
    KilnOnnxCall *call = a->call;
    return kiln_onnx_take_int(call, "q_num_heads", &a->q_heads, error) &&
           kiln_onnx_take_int(call, "kv_num_heads", &a->kv_heads, error) &&
           kiln_onnx_take_int(call, "is_causal", &a->causal, error) &&
           kiln_onnx_take_int(call, "qk_matmul_output_mode", &a->mode, error) &&
           kiln_onnx_take_int(call, "left_window_size", &a->left, error) &&
           kiln_onnx_take_int(call, "right_window_size", &a->right, error) &&
           kiln_onnx_take_float(call, "scale", &a->scale, error) &&
           kiln_onnx_take_float(call, "softcap", &a->softcap, error) &&
           kiln_onnx_take_dtype(call, "softmax_precision", &a->precision, error);
}

static gboolean
check_attrs(const Attention *a, GError **error)
{
    const KilnOnnxCall *call = a->call;
    if (a->mode < 0 || a->mode > 3)
        return kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                               "qk_matmul_output_mode: expected 0 to 3, found %" G_GINT64_FORMAT,
                               a->mode);
    if (a->left < -1 || a->right < -1)
        return kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                               "left_window_size and right_window_size: expected -1 or more, "
                               "found %" G_GINT64_FORMAT " and %" G_GINT64_FORMAT,
                               a->left, a->right);
    if (!kiln_dtype_is_float(a->precision))
        return kiln_onnx_throw(call, KILN_ERROR_TYPE, error,
                               "softmax_precision: expected a float type, found %s",
                               kiln_dtype_name(a->precision));
    return TRUE;
}

static gboolean
check_operands(const Attention *a, GError **error)
{
    const KilnOnnxCall *call = a->call;
    const bool keys = kiln_onnx_operand(call, PAST_KEY),
               values = kiln_onnx_operand(call, PAST_VALUE);
    if (keys != values)
        return kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                               "expected past_key and past_value, found one of them");
    if (keys && kiln_onnx_operand(call, VALID))
        return kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                               "nonpad_kv_seqlen stands beside past_key");
    const int rank = a->flat ? 3 : 4;
    return kiln_onnx_require_rank(call, Q, rank, rank, error) &&
           kiln_onnx_require_rank(call, K, rank, rank, error) &&
           kiln_onnx_require_rank(call, V, rank, rank, error) &&
           kiln_onnx_require_rank(call, MASK, 1, 4, error) &&
           kiln_onnx_require_rank(call, PAST_KEY, 4, 4, error) &&
           kiln_onnx_require_rank(call, PAST_VALUE, 4, 4, error) &&
           kiln_onnx_require_rank(call, VALID, 1, 1, error);
}

/* The numbers of heads: stated for flat operands, else a dim of them. */
static gboolean
find_heads(Attention *a, GError **error)
{
    KilnOnnxCall *call = a->call;
    if (!a->flat) {
        a->q_heads = call->operands[Q]->type.dims[1];
        a->kv_heads = call->operands[K]->type.dims[1];
        if (a->q_heads < 0 || a->kv_heads < 0)
            return kiln_onnx_unsupported(call, error, "an unknown number of heads");
    }
    if (a->q_heads < 1 || a->kv_heads < 1 || a->q_heads % a->kv_heads != 0)
        return kiln_onnx_throw(call, KILN_ERROR_SHAPE, error,
                               "expected heads of queries in multiples of those of keys, found "
                               "%" G_GINT64_FORMAT " and %" G_GINT64_FORMAT,
                               a->q_heads, a->kv_heads);
    a->grouped = a->q_heads != a->kv_heads;
    return TRUE;
}

/* [batch, sequence, heads × size] as [batch, heads, sequence, size]. */
static KilnValue *
split_heads(const Attention *a, uint32_t operand, int64_t heads)
{
    KilnValue *x = a->call->operands[operand];
    const int64_t width = x->type.dims[2];
    if (!a->flat)
        return x;
    if (width < 0) {
        kiln_onnx_unsupported(a->call, a->s.error, "operand %u: an unknown hidden size", operand);
        return NULL;
    }
    if (width % heads != 0) {
        kiln_onnx_throw(a->call, KILN_ERROR_SHAPE, a->s.error,
                        "operand %u: expected a hidden size in multiples of %" G_GINT64_FORMAT
                        " heads, found %" G_GINT64_FORMAT,
                        operand, heads, width);
        return NULL;
    }
    const KilnOnnxExtent shape[] = { KILN_ONNX_DIM(x, 0), KILN_ONNX_DIM(x, 1),
                                     KILN_ONNX_NUMBER(heads), KILN_ONNX_NUMBER(width / heads) };
    static const int64_t perm[] = { 0, 2, 1, 3 };
    return kiln_onnx_step_transpose(&a->s, kiln_onnx_step_reshape(&a->s, x, shape, 4), perm, 4);
}

static KilnValue *
with_past(const Attention *a, uint32_t past, KilnValue *x)
{
    KilnValue *before = kiln_onnx_operand(a->call, past);
    return before ? kiln_onnx_step_concat(&a->s, before, x, 2) : x;
}

static gboolean
find_tensors(Attention *a, GError **error)
{
    KilnOnnxCall *call = a->call;
    a->q = split_heads(a, Q, a->q_heads);
    a->k = a->q ? split_heads(a, K, a->kv_heads) : NULL;
    a->v = a->k ? split_heads(a, V, a->kv_heads) : NULL;
    a->k = a->v ? with_past(a, PAST_KEY, a->k) : NULL;
    a->v = a->k ? with_past(a, PAST_VALUE, a->v) : NULL;
    if (!a->v)
        return FALSE;
    if (isnan(a->scale) && a->q->type.dims[3] < 0)
        return kiln_onnx_unsupported(call, error, "an unknown size of heads");
    return (call->n_results < 2 || kiln_onnx_set_result(call, 1, a->k)) &&
           (call->n_results < 3 || kiln_onnx_set_result(call, 2, a->v));
}

/* --- the bias: a mask, and -inf for keys that are out of sight --- */

/* @visible where @more holds, too; false on failure. */
static bool
narrow(const Attention *a, KilnValue **visible, KilnValue *more)
{
    *visible = *visible ? kiln_onnx_step2(&a->s, KILN_OP_and, NULL, *visible, more) : more;
    return *visible != NULL;
}

/* 0, 1, … below the extent of dim 2 of @of. */
static KilnValue *
positions(const Attention *a, KilnValue *of)
{
    KilnValue *bounds[] = { kiln_onnx_scalar(a->call, "zero", KILN_DTYPE_i64, 0),
                            kiln_onnx_step_extent(&a->s, of, 2),
                            kiln_onnx_scalar(a->call, "one", KILN_DTYPE_i64, 1) };
    return kiln_onnx_step3(&a->s, KILN_OP_range, NULL, bounds[0], bounds[1], bounds[2]);
}

/* The number of valid keys of each sample as [batch, 1, 1, 1]. */
static KilnValue *
valid_keys(const Attention *a)
{
    static const int64_t axes[] = { 1, 2, 3 };
    return kiln_onnx_step_unsqueeze(&a->s, kiln_onnx_operand(a->call, VALID), axes, 3);
}

/* Where the queries stand among the keys, as a column: [queries, 1] or [batch, 1, queries, 1]. */
static KilnValue *
query_positions(const Attention *a)
{
    static const int64_t last[] = { 1 };
    KilnValue *i = kiln_onnx_step_unsqueeze(&a->s, positions(a, a->q), last, 1);
    if (kiln_onnx_operand(a->call, PAST_KEY)) {
        KilnValue *past = kiln_onnx_step_extent(&a->s, a->call->operands[PAST_KEY], 2);
        return kiln_onnx_step_add(&a->s, i, past);
    }
    if (kiln_onnx_operand(a->call, VALID)) {
        KilnValue *before =
            kiln_onnx_step_sub(&a->s, valid_keys(a), kiln_onnx_step_extent(&a->s, a->q, 2));
        return kiln_onnx_step_add(&a->s, i, before);
    }
    return i;
}

/* The keys at @j that a query at @i may see by its position. */
static bool
find_near(const Attention *a, KilnValue *i, KilnValue *j, KilnValue **visible)
{
    const KilnOnnxSteps *s = &a->s;
    bool good =
        !a->causal || narrow(a, visible, kiln_onnx_step2(s, KILN_OP_less_or_equal, NULL, j, i));
    if (good && a->left >= 0) {
        KilnValue *first = kiln_onnx_step_sub_number(s, i, (double)a->left);
        good = narrow(a, visible, kiln_onnx_step2(s, KILN_OP_greater_or_equal, NULL, j, first));
    }
    if (good && a->right >= 0) {
        KilnValue *last = kiln_onnx_step_add_number(s, i, (double)a->right);
        good = narrow(a, visible, kiln_onnx_step2(s, KILN_OP_less_or_equal, NULL, j, last));
    }
    return good;
}

/* The keys that a query may see, as a bool that broadcasts to the scores; NULL in @out: all. */
static bool
find_visible(const Attention *a, KilnValue **out)
{
    const bool near = a->causal || a->left >= 0 || a->right >= 0;
    const bool padded = kiln_onnx_operand(a->call, VALID);
    *out = NULL;
    if (!near && !padded)
        return true;
    KilnValue *j = positions(a, a->k);
    if (near && !find_near(a, query_positions(a), j, out))
        return false;
    return !padded || narrow(a, out, kiln_onnx_step2(&a->s, KILN_OP_less, NULL, j, valid_keys(a)));
}

/* The last dim of a mask may be shorter than the keys: the rest is not attended. */
static KilnValue *
pad_mask(const Attention *a, KilnValue *mask)
{
    const KilnOnnxSteps *s = &a->s;
    const int rank = mask->type.rank;
    const KilnType *type = &mask->type, *keys = &a->k->type;
    if (kiln_type_equal_dims(type, rank - 1, keys, 2))
        return mask;
    const KilnOnnxExtent missing[] = { KILN_ONNX_DIM(a->k, 2) },
                         there[] = { KILN_ONNX_DIM(mask, rank - 1) };
    if (type->dims[rank - 1] >= 0 && keys->dims[2] >= 0 && type->dims[rank - 1] > keys->dims[2]) {
        kiln_onnx_throw(a->call, KILN_ERROR_SHAPE, s->error,
                        "operand %d: expected a mask of at most %" G_GINT64_FORMAT
                        " keys, found %" G_GINT64_FORMAT,
                        MASK, keys->dims[2], type->dims[rank - 1]);
        return NULL;
    }
    KilnOnnxExtent shape[KILN_MAX_RANK];
    for (int d = 0; d < rank; d++)
        shape[d] = (KilnOnnxExtent)KILN_ONNX_DIM(mask, d);
    KilnValue *more = kiln_onnx_step_sub(s, kiln_onnx_step_shape(s, missing, 1),
                                         kiln_onnx_step_shape(s, there, 1));
    KilnValue *front = rank > 1 ? kiln_onnx_step_shape(s, shape, (uint32_t)rank - 1) : NULL;
    KilnValue *dims = front ? kiln_onnx_step_concat(s, front, more, 0) : more;
    KilnValue *fill = kiln_onnx_scalar(a->call, "masked", type->dtype,
                                       type->dtype == KILN_DTYPE_bool ? 0 : -INFINITY);
    KilnValue *rest = kiln_onnx_step2(s, KILN_OP_expand, NULL, fill, dims);
    return kiln_onnx_step_concat(s, mask, rest, -1);
}

/* A mask with a dim for heads gets two where heads are grouped. */
static KilnValue *
group_mask(const Attention *a, KilnValue *mask)
{
    const int rank = mask ? mask->type.rank : 0;
    if (!a->grouped || rank < 3)
        return mask;
    const int64_t heads = mask->type.dims[rank - 3];
    const int64_t axis = rank - 2;
    if (heads == 1)
        return kiln_onnx_step_unsqueeze(&a->s, mask, &axis, 1);
    if (heads < 0) {
        kiln_onnx_unsupported(a->call, a->s.error, "a mask of an unknown number of heads");
        return NULL;
    }
    if (heads != a->q_heads) {
        kiln_onnx_throw(a->call, KILN_ERROR_SHAPE, a->s.error,
                        "operand %d: expected a mask of 1 or %" G_GINT64_FORMAT
                        " heads, found %" G_GINT64_FORMAT,
                        MASK, a->q_heads, heads);
        return NULL;
    }
    const KilnOnnxExtent shape[] = { KILN_ONNX_DIM(mask, 0), KILN_ONNX_NUMBER(a->kv_heads),
                                     KILN_ONNX_NUMBER(a->q_heads / a->kv_heads),
                                     KILN_ONNX_DIM(mask, rank - 2), KILN_ONNX_DIM(mask, rank - 1) };
    return rank == 4 ? kiln_onnx_step_reshape(&a->s, mask, shape, 5)
                     : kiln_onnx_step_reshape(&a->s, mask, shape + 1, 4);
}

static KilnValue *
bias_of(const Attention *a, KilnValue *visible)
{
    KilnValue *zero = kiln_onnx_scalar(a->call, "attended", a->dtype, 0);
    KilnValue *hidden = kiln_onnx_scalar(a->call, "hidden", a->dtype, -INFINITY);
    return kiln_onnx_step3(&a->s, KILN_OP_where, NULL, visible, zero, hidden);
}

static gboolean
find_bias(Attention *a)
{
    KilnValue *mask = kiln_onnx_operand(a->call, MASK), *visible;
    const bool stated = mask;
    if (!find_visible(a, &visible))
        return FALSE;
    if (visible && !(visible = group_mask(a, visible)))
        return FALSE;
    if (stated) {
        if (mask->type.dtype != KILN_DTYPE_bool)
            mask = kiln_onnx_step_cast(&a->s, mask, a->dtype);
        mask = mask ? pad_mask(a, mask) : NULL;
        mask = group_mask(a, mask);
        if (!mask)
            return FALSE;
    }
    if (mask && mask->type.dtype == KILN_DTYPE_bool) {
        if (visible && !narrow(a, &visible, mask))
            return FALSE;
        visible = visible ? visible : mask;
        mask = NULL;
    }
    KilnValue *bias = visible ? bias_of(a, visible) : NULL;
    a->bias = bias && mask ? kiln_onnx_step_add(&a->s, mask, bias) : visible ? bias : mask;
    a->may_mask_all = stated || kiln_onnx_operand(a->call, VALID) || a->left >= 0 || a->right >= 0;
    return a->bias || (!visible && !stated);
}

/* --- scores --- */

/* Dims for the heads of keys and for the heads within each. */
static KilnValue *
group(const Attention *a, KilnValue *x, bool queries)
{
    static const int64_t axis[] = { 2 };
    if (!a->grouped || !x)
        return x;
    if (!queries)
        return kiln_onnx_step_unsqueeze(&a->s, x, axis, 1);
    const KilnOnnxExtent shape[] = { KILN_ONNX_DIM(x, 0), KILN_ONNX_NUMBER(a->kv_heads),
                                     KILN_ONNX_NUMBER(a->q_heads / a->kv_heads),
                                     KILN_ONNX_DIM(x, 2), KILN_ONNX_DIM(x, 3) };
    return kiln_onnx_step_reshape(&a->s, x, shape, 5);
}

/* [batch, heads, ..] again. */
static KilnValue *
ungroup(const Attention *a, KilnValue *x)
{
    if (!a->grouped || !x)
        return x;
    const KilnOnnxExtent shape[] = { KILN_ONNX_DIM(x, 0), KILN_ONNX_NUMBER(a->q_heads),
                                     KILN_ONNX_DIM(x, 3), KILN_ONNX_DIM(x, 4) };
    return kiln_onnx_step_reshape(&a->s, x, shape, 4);
}

static KilnValue *
scores_of(const Attention *a)
{
    static const int64_t swap[] = { 0, 1, 3, 2 }, swap_grouped[] = { 0, 1, 2, 4, 3 };
    const KilnOnnxSteps *s = &a->s;
    const double scale = isnan(a->scale) ? 1 / sqrt((double)a->q->type.dims[3]) : (double)a->scale;
    KilnValue *q = group(a, a->q, true), *k = group(a, a->k, false);
    k = kiln_onnx_step_transpose(s, k, a->grouped ? swap_grouped : swap, a->grouped ? 5 : 4);
    if (scale != 1) {
        q = kiln_onnx_step_mul_number(s, q, sqrt(scale));
        k = kiln_onnx_step_mul_number(s, k, sqrt(scale));
    }
    return kiln_onnx_step_matmul(s, q, k);
}

static KilnValue *
capped(const Attention *a, KilnValue *scores)
{
    return a->softcap > 0 ? kiln_onnx_step_capped(&a->s, scores, (double)a->softcap) : scores;
}

/* 0 for queries without a key. */
static KilnValue *
zero_unattended(const Attention *a, KilnValue *x)
{
    if (!a->unattended)
        return x;
    KilnValue *zero = kiln_onnx_scalar(a->call, "nothing", a->dtype, 0);
    return kiln_onnx_step3(&a->s, KILN_OP_where, NULL, a->unattended, zero, x);
}

static bool
find_unattended(Attention *a)
{
    const KilnOnnxSteps *s = &a->s;
    if (!a->bias || !a->may_mask_all)
        return true;
    const int64_t last = -1;
    KilnAttrs_reduce_max keep = { .keepdims = true };
    KilnValue *most = kiln_onnx_step2(s, KILN_OP_reduce_max, &keep, a->bias,
                                      kiln_onnx_ints(a->call, "keys", &last, 1));
    a->unattended = kiln_onnx_step_number(s, KILN_OP_equal, most, -INFINITY);
    return a->unattended != NULL;
}

/* The scores of this mode of qk_matmul_output. */
static gboolean
show(const Attention *a, int64_t mode, KilnValue *scores)
{
    if (a->mode != mode || a->call->n_results < 4 || !scores)
        return scores != NULL;
    return kiln_onnx_set_result(a->call, 3, ungroup(a, scores));
}

/* Half floats are rounded at every step, as the definition of softmax says; fold-softmax knows the
 * formula. */
static KilnValue *
softmax(const Attention *a, KilnValue *scores)
{
    const KilnOnnxSteps *s = &a->s;
    const KilnAttrs_softmax last = { .axis = -1 };
    const KilnAttrs_reduce_max most = { .keepdims = true };
    const KilnAttrs_reduce_sum all = { .keepdims = true };
    const int64_t keys = -1;
    if (!kiln_dtype_is_half(a->precision))
        return kiln_onnx_step1(s, KILN_OP_softmax, &last, scores);
    KilnValue *axes = kiln_onnx_ints(a->call, "keys", &keys, 1);
    KilnValue *max = kiln_onnx_step2(s, KILN_OP_reduce_max, &most, scores, axes);
    KilnValue *powers = kiln_onnx_step1(s, KILN_OP_exp, NULL, kiln_onnx_step_sub(s, scores, max));
    return kiln_onnx_step_div(s, powers,
                              kiln_onnx_step2(s, KILN_OP_reduce_sum, &all, powers, axes));
}

static KilnValue *
attend(Attention *a)
{
    const KilnOnnxSteps *s = &a->s;
    KilnValue *scores = scores_of(a);
    if (!show(a, 0, scores))
        return NULL;
    scores = capped(a, scores);
    if (!show(a, 1, scores))
        return NULL;
    if (a->bias)
        scores = kiln_onnx_step_add(s, scores, a->bias);
    if (!show(a, 2, scores) || !find_unattended(a))
        return NULL;
    scores = kiln_onnx_step_cast(s, scores, a->precision);
    KilnValue *shares = kiln_onnx_step_cast(s, softmax(a, scores), a->dtype);
    if (a->mode == 3 && a->call->n_results > 3 && !show(a, 3, zero_unattended(a, shares)))
        return NULL;
    KilnValue *v = group(a, kiln_onnx_step_cast(s, a->v, a->dtype), false);
    KilnValue *y = kiln_onnx_step_matmul(s, shares, v);
    return ungroup(a, zero_unattended(a, y));
}

/* [batch, heads, sequence, size] as the operands were. */
static KilnValue *
join_heads(const Attention *a, KilnValue *y)
{
    static const int64_t perm[] = { 0, 2, 1, 3 };
    if (!a->flat || !y)
        return y;
    const int64_t size = a->v->type.dims[3];
    y = kiln_onnx_step_transpose(&a->s, y, perm, 4);
    if (!y)
        return NULL;
    const KilnOnnxExtent shape[] = { KILN_ONNX_DIM(y, 0), KILN_ONNX_DIM(y, 1),
                                     KILN_ONNX_NUMBER(a->q_heads * size) };
    return kiln_onnx_step_reshape(&a->s, y, shape, 3);
}

gboolean
kiln_onnx_convert_attention(KilnOnnxCall *call, GError **error)
{
    for (uint32_t i = Q; i <= V; i++) {
        if (!kiln_onnx_need(call, i, error))
            return FALSE;
    }
    const KilnDType dtype = call->operands[Q]->type.dtype;
    Attention a = { .s = { call, error },
                    .call = call,
                    .dtype = dtype,
                    .left = -1,
                    .right = -1,
                    .precision = dtype,
                    .scale = NAN,
                    .flat = call->operands[Q]->type.rank == 3 };
    return take_attrs(&a, error) && check_attrs(&a, error) && check_operands(&a, error) &&
           find_heads(&a, error) && find_tensors(&a, error) && find_bias(&a) &&
           kiln_onnx_set_result(call, 0, join_heads(&a, attend(&a)));
}
