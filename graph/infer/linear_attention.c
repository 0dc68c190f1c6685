/* SPDX-License-Identifier: Apache-2.0 */
/* The shape function of linear_attention: queries [B, T, Hq·Dk], keys [B, T, H·Dk], values
 * [B, T, H·Dv], the state before [B, H, Dk, Dv], decay [B, T, H or H·Dk], rate [B, T, H or 1]. */
#include "graph/graph.h"
#include "graph/infer/common.h"
#include "graph/op/recurrent.h"

#include <string.h>

enum {
    QUERY,
    KEY,
    VALUE,
    STATE,
    DECAY,
    RATE
};

static gboolean
check_rule(const KilnInfer *in, GError **error)
{
    const char *rule = kiln_attrs(in->node, linear_attention)->update_rule;
    if (!kiln_infer_one_of("update_rule", rule, "linear gated delta gated_delta", error))
        return FALSE;
    static const char *const names[] = { [DECAY] = "decay", [RATE] = "beta" };
    for (uint32_t i = DECAY; i <= RATE; i++) {
        bool wanted = strstr(rule, i == DECAY ? "gated" : "delta"), there = kiln_infer_type(in, i);
        if (wanted != there)
            return kiln_throw(error, KILN_ERROR_INVALID, "%s: expected %s where update_rule is %s",
                              names[i], wanted ? "an operand" : "none", rule);
    }
    return TRUE;
}

static gboolean
check_heads(const KilnAttrs_linear_attention *attrs, GError **error)
{
    const int64_t q = attrs->q_num_heads, kv = attrs->kv_num_heads;
    if (q >= 1 && kv >= 1 && q <= 1 << 30 && q % kv == 0)
        return TRUE;
    return kiln_throw(error, KILN_ERROR_SHAPE,
                      "expected heads of queries in multiples of those of keys, found "
                      "%" G_GINT64_FORMAT " and %" G_GINT64_FORMAT,
                      q, kv);
}

/* The last dim of operand @i as one part for each of @heads. */
static gboolean
per_head(const KilnInfer *in, uint32_t i, int64_t heads, const KilnDim **out, GError **error)
{
    const KilnType *type = kiln_infer_type(in, i);
    *out = NULL;
    if (type->rank < 0)
        return TRUE;
    if (type->dims[2] >= 0 && type->dims[2] % heads != 0)
        return kiln_infer_throw_shape(in->node, i, error, "dim 2 in multiples of %" G_GINT64_FORMAT,
                                      heads);
    *out = kiln_dim_floor(in->dims, kiln_type_dim(type, 2, in->dims),
                          kiln_dim_number(in->dims, heads));
    return TRUE;
}

/* The last dim of a gate: one of two numbers. */
static gboolean
check_gate(const KilnInfer *in, uint32_t i, int64_t heads, int64_t other, GError **error)
{
    const KilnType *type = kiln_infer_type(in, i);
    if (!type || type->rank < 0 || type->dims[2] < 0 || other < 0 || type->dims[2] == heads ||
        type->dims[2] == other)
        return TRUE;
    return kiln_infer_throw_shape(
        in->node, i, error, "dim 2 to be %" G_GINT64_FORMAT " or %" G_GINT64_FORMAT, heads, other);
}

static gboolean
check_operands(const KilnInfer *in, GError **error)
{
    const KilnType *q = kiln_infer_type(in, QUERY);
    for (uint32_t i = QUERY; i <= RATE; i++) {
        if (!kiln_infer_require(in, i, KILN_SET_FLOATS, error) ||
            !kiln_infer_require_rank(in, i, i == STATE ? 4 : 3, i == STATE ? 4 : 3, error) ||
            (i != STATE && !kiln_infer_require_like(in, i, QUERY, error)))
            return FALSE;
        for (int d = 0; q->rank >= 0 && d < (i == STATE ? 1 : 2); d++) {
            if (!kiln_infer_require_dim(in, i, d, q->dims[d], error))
                return FALSE;
        }
    }
    return TRUE;
}

static gboolean
set_state(KilnInfer *in, const KilnDim *depth, const KilnDim *width, GError **error)
{
    const KilnType *q = kiln_infer_type(in, QUERY), *past = kiln_infer_type(in, STATE);
    const int64_t heads = kiln_attrs(in->node, linear_attention)->kv_num_heads;
    int64_t n;
    if (!kiln_infer_require_dim(in, STATE, 1, heads, error) ||
        (kiln_dim_is_number(depth, &n) && !kiln_infer_require_dim(in, STATE, 2, n, error)) ||
        (kiln_dim_is_number(width, &n) && !kiln_infer_require_dim(in, STATE, 3, n, error)))
        return FALSE;
    if (in->node->n_results < 2)
        return TRUE;
    KilnType state = kiln_infer_unknown(past ? past->dtype : q->dtype, 4);
    if (q->rank >= 0)
        kiln_dim_copy(&state, 0, q, 0);
    kiln_dim_set(&state, 1, heads);
    in->out[1] = state;
    return kiln_dim_set_open(&in->out[1], 2, depth, error) &&
           kiln_dim_set_open(&in->out[1], 3, width, error);
}

KILN_INFER(linear_attention)
{
    const KilnType *q = kiln_infer_type(in, QUERY);
    const KilnAttrs_linear_attention *attrs = kiln_attrs(in->node, linear_attention);
    const int64_t heads = attrs->kv_num_heads;
    const KilnDim *depth, *of_keys, *width;
    int64_t n = -1;
    if (!check_rule(in, error) || !check_heads(attrs, error) || !check_operands(in, error) ||
        !per_head(in, QUERY, attrs->q_num_heads, &depth, error) ||
        !per_head(in, KEY, heads, &of_keys, error) || !per_head(in, VALUE, heads, &width, error))
        return FALSE;
    if (kiln_dim_is_number(depth, &n) && !kiln_infer_require_dim(in, KEY, 2, n * heads, error))
        return FALSE;
    if (!check_gate(in, DECAY, heads, n < 0 ? n : n * heads, error) ||
        !check_gate(in, RATE, heads, 1, error))
        return FALSE;
    in->out[0] = kiln_infer_unknown(q->dtype, 3);
    for (int d = 0; q->rank >= 0 && d < 2; d++)
        kiln_dim_copy(&in->out[0], d, q, d);
    return kiln_dim_set_open(&in->out[0], 2, kiln_dim_scale(in->dims, width, attrs->q_num_heads),
                             error) &&
           set_state(in, depth ? depth : of_keys, width, error);
}
