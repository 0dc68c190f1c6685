/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/module/decompose.h"

#include "graph/node.h"
#include "graph/op/activation.h"
#include "graph/op/additive.h"
#include "graph/op/cast.h"
#include "graph/op/math.h"
#include "graph/op/matmul.h"
#include "graph/op/multiplicative.h"
#include "graph/op/norm.h"
#include "graph/op/reduce.h"
#include "graph/op/reshape.h"
#include "graph/op/softmax.h"
#include "graph/op/transpose.h"

/* Builds nodes before one; after a failure every step passes NULL on. */
typedef struct {
    KilnNode *before;
    GError **error;
} Builder;

static KilnValue *
step(const Builder *b, KilnOp op, const void *attrs, KilnValue *x, KilnValue *y)
{
    KilnValue *operands[] = { x, y };
    if (!x)
        return NULL;
    return kiln_build(b->before->function, b->before, op, attrs, operands, y ? 2 : 1, b->error);
}

/* @x by @op with a second operand that must have been built, too. */
static KilnValue *
with(const Builder *b, KilnOp op, KilnValue *x, KilnValue *y)
{
    return y ? step(b, op, NULL, x, y) : NULL;
}

static KilnValue *
number(const Builder *b, KilnDType dtype, double value)
{
    KilnType type = kiln_type_scalar(dtype);
    return kiln_build_constant(b->before->function, b->before, "number",
                               kiln_tensor_new_splat(&type, value));
}

static KilnValue *
ints(const Builder *b, const int64_t *values, int n)
{
    return kiln_build_ints(b->before->function, b->before, values, (uint32_t)n);
}

/* Half floats as f32; everything else as it is. */
static KilnValue *
widened(const Builder *b, KilnValue *x)
{
    KilnAttrs_cast attrs = kiln_cast_to(KILN_DTYPE_f32);
    return kiln_dtype_is_half(x->type.dtype) ? step(b, KILN_OP_cast, &attrs, x, NULL) : x;
}

static KilnValue *
narrowed(const Builder *b, KilnValue *x, KilnDType dtype)
{
    KilnAttrs_cast attrs = kiln_cast_to(dtype);
    return kiln_dtype_is_half(dtype) ? step(b, KILN_OP_cast, &attrs, x, NULL) : x;
}

/* --- operators --- */

static KilnValue *
swish(const Builder *b, const KilnNode *node)
{
    KilnValue *x = node->operands[0].value, *scaled = x;
    double alpha = (double)kiln_attrs(node, swish)->alpha;
    if (alpha != 1)
        scaled = with(b, KILN_OP_mul, x, number(b, x->type.dtype, alpha));
    return with(b, KILN_OP_mul, x, step(b, KILN_OP_sigmoid, NULL, scaled, NULL));
}

static KilnValue *
rms_normalization(const Builder *b, const KilnNode *node)
{
    const KilnAttrs_rms_normalization *attrs = kiln_attrs(node, rms_normalization);
    const KilnType *type = &node->operands[0].value->type;
    int first = type->rank < 0 ? -1 : kiln_type_axis(type, attrs->axis), n = 0;
    int64_t axes[KILN_MAX_RANK];
    for (int d = first; first >= 0 && d < type->rank; d++)
        axes[n++] = d;
    if (n == 0)
        return NULL;
    KilnValue *x = widened(b, node->operands[0].value);
    KilnValue *scale = widened(b, node->operands[1].value);
    KilnValue *over = ints(b, axes, n), *square = with(b, KILN_OP_mul, x, x);
    KilnValue *mean = with(b, KILN_OP_reduce_mean, square, over);
    if (!mean || !scale)
        return NULL;
    KilnValue *sum =
        with(b, KILN_OP_add, mean, number(b, mean->type.dtype, (double)attrs->epsilon));
    KilnValue *y = with(b, KILN_OP_div, x, step(b, KILN_OP_sqrt, NULL, sum, NULL));
    return narrowed(b, with(b, KILN_OP_mul, y, scale), type->dtype);
}

static KilnValue *
attention(const Builder *b, const KilnNode *node)
{
    KilnValue *operands[4] = { NULL };
    for (uint32_t i = 0; i < node->n_operands; i++) {
        KilnValue *value = node->operands[i].value;
        if (value && value->type.rank < 0)
            return NULL;
        operands[i] = value ? widened(b, value) : NULL;
        if (value && !operands[i])
            return NULL;
    }
    KilnValue *q = operands[0], *k = operands[1];
    double scale = (double)kiln_attrs(node, attention)->scale;
    int64_t perm[KILN_MAX_RANK];
    int rank = k->type.rank;
    for (int d = 0; d < rank; d++)
        perm[d] = d < rank - 2 ? d : 2 * rank - 3 - d;
    KilnAttrs_transpose swap = { .perm = { .n = (uint32_t)rank, .v = perm } };
    KilnAttrs_softmax last = { .axis = -1 };
    if (scale != 1)
        q = with(b, KILN_OP_mul, q, number(b, q->type.dtype, scale));
    KilnValue *scores = with(b, KILN_OP_matmul, q, step(b, KILN_OP_transpose, &swap, k, NULL));
    if (operands[3])
        scores = with(b, KILN_OP_add, scores, operands[3]);
    KilnValue *shares = step(b, KILN_OP_softmax, &last, scores, NULL);
    return narrowed(b, with(b, KILN_OP_matmul, shares, operands[2]), node->results[0].type.dtype);
}

/* Dims in front of the axis may be open: 0 keeps them. */
static KilnValue *
channel_shuffle(const Builder *b, const KilnNode *node)
{
    const KilnAttrs_channel_shuffle *attrs = kiln_attrs(node, channel_shuffle);
    const KilnType *type = &node->operands[0].value->type;
    int axis = type->rank < 0 ? -1 : kiln_type_axis(type, attrs->axis);
    if (axis < 0 || type->rank == KILN_MAX_RANK)
        return NULL;
    int64_t split[KILN_MAX_RANK], joined[KILN_MAX_RANK], perm[KILN_MAX_RANK];
    bool open = false, empty = false;
    for (int d = 0; d < type->rank; d++) {
        open |= type->dims[d] < 0;
        empty |= type->dims[d] == 0;
        if (type->dims[d] < 0 && d >= axis)
            return NULL;
        joined[d] = MAX(type->dims[d], 0);
        split[d + (d > axis)] = joined[d];
        perm[d + (d > axis)] = d + (d > axis);
    }
    if (open && empty)
        return NULL;
    split[axis] = attrs->group;
    split[axis + 1] = joined[axis] / attrs->group;
    perm[axis] = axis + 1;
    perm[axis + 1] = axis;
    KilnAttrs_reshape reshape = { .allowzero = !open };
    KilnAttrs_transpose transpose = { .perm = { .n = (uint32_t)type->rank + 1, .v = perm } };
    KilnValue *x =
        step(b, KILN_OP_reshape, &reshape, node->operands[0].value, ints(b, split, type->rank + 1));
    x = step(b, KILN_OP_transpose, &transpose, x, NULL);
    return step(b, KILN_OP_reshape, &reshape, x, ints(b, joined, type->rank));
}

/* In ONNX the channels are dim 1. */
static KilnValue *
batch_normalization(const Builder *b, const KilnNode *node)
{
    KilnAttrs_batch_normalization attrs = *kiln_attrs(node, batch_normalization);
    KilnValue *operands[5];
    const KilnType *type = &node->results[0].type;
    int axis = type->rank < 2 ? -1 : kiln_type_axis(type, attrs.axis);
    if (axis < 0 || node->n_results > 1)
        return NULL;
    int64_t order[KILN_MAX_RANK];
    for (int d = 0; d < type->rank; d++)
        order[d] = d;
    order[1] = axis;
    order[axis] = 1;
    KilnAttrs_transpose swap = { .perm = { .n = (uint32_t)type->rank, .v = order } };
    for (uint32_t i = 0; i < 5; i++)
        operands[i] = kiln_node_operand(node, i);
    operands[0] = step(b, KILN_OP_transpose, &swap, operands[0], NULL);
    if (!operands[0])
        return NULL;
    attrs.axis = 1;
    KilnValue *result =
        kiln_build(node->function, b->before, node->op, &attrs, operands, 5, b->error);
    return step(b, KILN_OP_transpose, &swap, result, NULL);
}

bool
kiln_node_decomposes(const KilnNode *node)
{
    switch (node->op) {
    case KILN_OP_swish:
    case KILN_OP_rms_normalization:
    case KILN_OP_attention:
    case KILN_OP_channel_shuffle:
        return true;
    case KILN_OP_batch_normalization:
        return kiln_attrs(node, batch_normalization)->axis != 1;
    default:
        return false;
    }
}

KilnValue *
kiln_decompose(KilnNode *node, GError **error)
{
    const Builder b = { node, error };
    switch (node->op) {
    case KILN_OP_swish:
        return swish(&b, node);
    case KILN_OP_rms_normalization:
        return rms_normalization(&b, node);
    case KILN_OP_attention:
        return attention(&b, node);
    case KILN_OP_batch_normalization:
        return batch_normalization(&b, node);
    default:
        return channel_shuffle(&b, node);
    }
}
