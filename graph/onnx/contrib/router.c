/* SPDX-License-Identifier: Apache-2.0 */
/* MoEGroupRouter of com.microsoft: experts stand in groups. A row picks the groups whose greatest
 * scores have the greatest sums, and of their experts those with the greatest scores.
 *
 *   share = sigmoid(x),  score = share + bias
 *   result 0: log(share) of the experts that a row picks, `router_sentinel` of the others
 *   result 1: score,  result 2: share */
#include "graph/graph.h"
#include "graph/onnx/contrib/contrib.h"
#include "graph/onnx/convert.h"
#include "graph/onnx/steps.h"
#include "graph/op/logic.h"

#include <math.h>

typedef struct {
    KilnOnnxSteps s;
    KilnOnnxCall *call;
    int64_t k, groups, k_groups, in_group;
    float sentinel;
    int64_t experts;
    KilnValue *share, *score; /* [rows, experts] */
} Router;

static gboolean
take_attrs(Router *r, GError **error)
{
    KilnOnnxCall *call = r->call;
    r->groups = r->k_groups = 1;
    r->in_group = 2;
    r->sentinel = -10000;
    return kiln_onnx_take_int(call, "top_k", &r->k, error) &&
           kiln_onnx_take_int(call, "n_group", &r->groups, error) &&
           kiln_onnx_take_int(call, "topk_group", &r->k_groups, error) &&
           kiln_onnx_take_int(call, "group_topk", &r->in_group, error) &&
           kiln_onnx_take_float(call, "router_sentinel", &r->sentinel, error);
}

static gboolean
check(Router *r, GError **error)
{
    const KilnOnnxCall *call = r->call;
    if (!kiln_onnx_need(call, 0, error) || !kiln_onnx_need(call, 1, error) ||
        !kiln_onnx_require_rank(call, 0, 1, KILN_MAX_RANK, error))
        return FALSE;
    if (kiln_onnx_operand(call, 2))
        return kiln_onnx_unsupported(call, error, "operand 2, the weights of a projection");
    const KilnType *x = &call->operands[0]->type;
    r->experts = x->dims[x->rank - 1];
    if (r->experts < 0)
        return kiln_onnx_unsupported(call, error, "an unknown number of experts");
    if (r->k < 1 || r->k > r->experts)
        return kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                               "top_k: expected 1 to %" G_GINT64_FORMAT
                               " experts, found %" G_GINT64_FORMAT,
                               r->experts, r->k);
    if (r->groups < 1 || r->experts % r->groups != 0 || r->k_groups < 1 ||
        r->k_groups > r->groups || r->in_group < 1)
        return kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                               "expected n_group to divide %" G_GINT64_FORMAT
                               " experts, topk_group of at most that, and group_topk of 1 or more, "
                               "found %" G_GINT64_FORMAT ", %" G_GINT64_FORMAT
                               " and %" G_GINT64_FORMAT,
                               r->experts, r->groups, r->k_groups, r->in_group);
    return KILN_ONNX_REQUIRE_DIMS(call, 1, error, r->experts);
}

/* The scores, but -inf in the groups that a row does not pick. */
static KilnValue *
in_groups(const Router *r)
{
    static const int64_t last[] = { 2 };
    const KilnOnnxSteps *s = &r->s;
    const int64_t size = r->experts / r->groups;
    const KilnOnnxExtent split[] = { KILN_ONNX_DIM(r->score, 0), KILN_ONNX_NUMBER(r->groups),
                                     KILN_ONNX_NUMBER(size) };
    const KilnOnnxExtent flat[] = { KILN_ONNX_DIM(r->score, 0), KILN_ONNX_NUMBER(r->experts) };
    if (r->k_groups == r->groups)
        return r->score;
    KilnValue *scores = kiln_onnx_step_reshape(s, r->score, split, 3);
    KilnValue *best = kiln_onnx_step_greatest(s, scores, MIN(r->in_group, size));
    KilnValue *sums = best ? kiln_onnx_step_sum(s, best, -1, false) : NULL;
    KilnValue *picked = kiln_onnx_step_greatest(s, sums, r->k_groups);
    if (!picked)
        return NULL;
    KilnValue *zeros = kiln_onnx_step_mul_number(s, sums, 0);
    KilnValue *ones = kiln_onnx_step_add_number(s, kiln_onnx_step_mul_number(s, picked, 0), 1);
    KilnValue *mask = kiln_onnx_step_scatter_elements(s, zeros, &picked[1], ones, 1);
    mask = kiln_onnx_step_unsqueeze(s, kiln_onnx_step_cast(s, mask, KILN_DTYPE_bool), last, 1);
    scores = kiln_onnx_step3(s, KILN_OP_where, NULL, mask, scores,
                             kiln_onnx_scalar(r->call, "none", KILN_DTYPE_f32, -INFINITY));
    return kiln_onnx_step_reshape(s, scores, flat, 2);
}

/* Result 0 in f32. */
static KilnValue *
routed(const Router *r)
{
    const KilnOnnxSteps *s = &r->s;
    KilnValue *best = kiln_onnx_step_greatest(s, in_groups(r), r->k);
    if (!best)
        return NULL;
    KilnValue *shares = kiln_onnx_step_gather_elements(s, r->share, &best[1], 1);
    shares = kiln_onnx_step_log(s, kiln_onnx_step_at_least(s, shares, 1e-20));
    KilnValue *sentinel =
        kiln_onnx_scalar(r->call, "sentinel", KILN_DTYPE_f32, (double)r->sentinel);
    KilnValue *real = kiln_onnx_step_number(s, KILN_OP_greater, &best[0], -INFINITY);
    shares = kiln_onnx_step3(s, KILN_OP_where, NULL, real, shares, sentinel);
    const KilnOnnxExtent all[] = { KILN_ONNX_DIM(r->share, 0), KILN_ONNX_NUMBER(r->experts) };
    return kiln_onnx_step_scatter_elements(s, kiln_onnx_step_expand(s, sentinel, all, 2), &best[1],
                                           shares, 1);
}

/* (logits, bias) */
gboolean
kiln_onnx_convert_moe_group_router(KilnOnnxCall *call, GError **error)
{
    Router r = { .s = { call, error }, .call = call };
    if (!take_attrs(&r, error) || !check(&r, error))
        return FALSE;
    KilnValue *x = call->operands[0];
    const KilnOnnxExtent rows[] = { KILN_ONNX_NUMBER(-1), KILN_ONNX_NUMBER(r.experts) };
    const KilnDType dtype = x->type.dtype;
    x = x->type.rank == 2 ? x : kiln_onnx_step_reshape(&r.s, x, rows, 2);
    r.share = kiln_onnx_step_sigmoid(&r.s, kiln_onnx_step_cast(&r.s, x, KILN_DTYPE_f32));
    r.score = kiln_onnx_step_add(&r.s, r.share, call->operands[1]);
    if (!r.score || (call->n_results > 1 && !kiln_onnx_set_result(call, 1, r.score)) ||
        (call->n_results > 2 && !kiln_onnx_set_result(call, 2, r.share)))
        return FALSE;
    if (call->n_results > 1 && !kiln_onnx_result_read(call, 0))
        return TRUE;
    return kiln_onnx_set_result(call, 0, kiln_onnx_step_cast(&r.s, routed(&r), dtype));
}
