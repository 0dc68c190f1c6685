/* SPDX-License-Identifier: Apache-2.0 */
/* Losses, which have no op of their own: gathers and sums.
 *
 * The loss of a sample is -x[n, t[n], …] × w[n], where w is the weight of its class, 1 without
 * weights, and 0 where the target is to be ignored. `mean` divides by the sum of w. */
#include "graph/graph.h"
#include "graph/onnx/convert.h"
#include "graph/onnx/model.h"
#include "graph/op/gather.h"
#include "graph/op/logic.h"
#include "graph/op/math.h"
#include "graph/op/multiplicative.h"
#include "graph/op/reduce.h"
#include "graph/op/reshape.h"
#include "graph/op/softmax.h"

#include <string.h>

typedef struct {
    KilnOnnxCall *call;
    KilnValue *input;   /* log probabilities [N,C,…] */
    KilnValue *target;  /* [N,…] */
    KilnValue *weight;  /* [C], or NULL */
    KilnValue *ignored; /* bool [N,…]: targets to ignore; NULL: none */
    const char *reduction;
} Loss;

static KilnValue *
build3(KilnOnnxCall *call, KilnOp op, KilnValue *a, KilnValue *b, KilnValue *c, GError **error)
{
    return a && b && c ? kiln_onnx_build(call, op, NULL, (KilnValue *[]){ a, b, c }, 3, error)
                       : NULL;
}

static KilnValue *
build2(KilnOnnxCall *call, KilnOp op, const void *attrs, KilnValue *a, KilnValue *b, GError **error)
{
    return a && b ? kiln_onnx_build2(call, op, attrs, a, b, error) : NULL;
}

/* The targets, and which to ignore: those are read as class 0, which exists. */
static gboolean
find_ignored(Loss *loss, GError **error)
{
    KilnOnnxCall *call = loss->call;
    const KilnOnnxAttr *given = NULL;
    for (size_t i = 0; i < call->node->n_attrs; i++) {
        if (strcmp(call->node->attrs[i].proto->name, "ignore_index") == 0)
            given = &call->node->attrs[i];
    }
    int64_t index = 0;
    if (!kiln_onnx_take_int(call, "ignore_index", &index, error))
        return FALSE;
    if (!given)
        return TRUE;
    KilnDType dtype = loss->target->type.dtype;
    KilnValue *number = kiln_onnx_scalar(call, "ignore_index", dtype, (double)index);
    KilnValue *first = kiln_onnx_scalar(call, "class", dtype, 0);
    loss->ignored = build2(call, KILN_OP_equal, NULL, loss->target, number, error);
    loss->target = build3(call, KILN_OP_where, loss->ignored, first, loss->target, error);
    return loss->target != NULL;
}

/* w of every sample; NULL where all are 1 (or, with @out_failed, on failure). */
static KilnValue *
sample_weights(const Loss *loss, bool *out_failed, GError **error)
{
    KilnOnnxCall *call = loss->call;
    KilnValue *w = NULL;
    *out_failed = false;
    if (loss->weight) {
        w = build2(call, KILN_OP_gather, NULL, loss->weight, loss->target, error);
        *out_failed = !w;
    }
    if (!loss->ignored || *out_failed)
        return w;
    KilnDType dtype = loss->input->type.dtype;
    KilnValue *zero = kiln_onnx_scalar(call, "zero", dtype, 0);
    w = w ? w : kiln_onnx_scalar(call, "one", dtype, 1);
    w = build3(call, KILN_OP_where, loss->ignored, zero, w, error);
    *out_failed = !w;
    return w;
}

static KilnValue *
reduce(const Loss *loss, KilnValue *losses, KilnValue *weights, GError **error)
{
    KilnOnnxCall *call = loss->call;
    KilnAttrs_reduce_sum sum = { .keepdims = false };
    KilnAttrs_reduce_mean mean = { .keepdims = false };
    if (strcmp(loss->reduction, "none") == 0)
        return losses;
    if (strcmp(loss->reduction, "mean") == 0 && !weights)
        return kiln_onnx_build1(call, KILN_OP_reduce_mean, &mean, losses, error);
    KilnValue *total = kiln_onnx_build1(call, KILN_OP_reduce_sum, &sum, losses, error);
    if (!total || strcmp(loss->reduction, "sum") == 0)
        return total;
    if (strcmp(loss->reduction, "mean") != 0) {
        kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                        "reduction: expected none, sum or mean, found '%s'", loss->reduction);
        return NULL;
    }
    KilnValue *count = kiln_onnx_build1(call, KILN_OP_reduce_sum, &sum, weights, error);
    return build2(call, KILN_OP_div, NULL, total, count, error);
}

static KilnValue *
build_loss(Loss *loss, GError **error)
{
    KilnOnnxCall *call = loss->call;
    KilnAttrs_gather_elements along = { .axis = 1 };
    if (!find_ignored(loss, error))
        return NULL;
    KilnValue *axis = kiln_onnx_ints(call, "axis", (int64_t[]){ 1 }, 1);
    KilnValue *index = build2(call, KILN_OP_unsqueeze, NULL, loss->target, axis, error);
    KilnValue *picked = build2(call, KILN_OP_gather_elements, &along, loss->input, index, error);
    KilnValue *flat = build2(call, KILN_OP_squeeze, NULL, picked, axis, error);
    KilnValue *losses = flat ? kiln_onnx_build1(call, KILN_OP_neg, NULL, flat, error) : NULL;
    bool failed;
    KilnValue *weights = losses ? sample_weights(loss, &failed, error) : NULL;
    if (!losses || failed)
        return NULL;
    if (weights)
        losses = build2(call, KILN_OP_mul, NULL, losses, weights, error);
    return losses ? reduce(loss, losses, weights, error) : NULL;
}

static gboolean
loss_init(Loss *loss, KilnOnnxCall *call, GError **error)
{
    *loss = (Loss){ .call = call, .reduction = "mean" };
    loss->input = kiln_onnx_need(call, 0, error);
    loss->target = loss->input ? kiln_onnx_need(call, 1, error) : NULL;
    loss->weight = kiln_onnx_operand(call, 2);
    return loss->target && kiln_onnx_take_text(call, "reduction", &loss->reduction, error);
}

gboolean
kiln_onnx_convert_nll_loss(KilnOnnxCall *call, GError **error)
{
    Loss loss;
    return loss_init(&loss, call, error) && kiln_onnx_set_result(call, 0, build_loss(&loss, error));
}

gboolean
kiln_onnx_convert_softmax_loss(KilnOnnxCall *call, GError **error)
{
    Loss loss;
    KilnAttrs_log_softmax over_classes = { .axis = 1 };
    if (!loss_init(&loss, call, error))
        return FALSE;
    loss.input = kiln_onnx_build1(call, KILN_OP_log_softmax, &over_classes, loss.input, error);
    if (!loss.input || !kiln_onnx_set_result(call, 0, build_loss(&loss, error)))
        return FALSE;
    return call->n_results < 2 || kiln_onnx_set_result(call, 1, loss.input);
}
