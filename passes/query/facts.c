/* SPDX-License-Identifier: Apache-2.0 */
#include "passes/query/facts.h"

#include "graph/op/activation.h"
#include "graph/op/additive.h"
#include "graph/op/bounds.h"
#include "graph/op/cast.h"
#include "graph/op/concat.h"
#include "graph/op/expand.h"
#include "graph/op/gather.h"
#include "graph/op/math.h"
#include "graph/op/multiplicative.h"
#include "graph/op/reduce.h"
#include "graph/op/reshape.h"
#include "graph/op/slice.h"
#include "graph/op/softmax.h"
#include "graph/op/structure.h"
#include "graph/op/transpose.h"
#include "passes/query/clip.h"

enum {
    LEVELS = 4,       /* of nodes that are looked through */
    MOST_OPERANDS = 8 /* of one node: more are not looked at */
};

static bool never_negative(const KilnValue *value, int levels);

/* The first @n operands. */
static bool
operands_are(const KilnNode *node, uint32_t n, int levels)
{
    for (uint32_t i = 0; i < n; i++) {
        if (i == MOST_OPERANDS || !never_negative(kiln_node_operand(node, i), levels))
            return false;
    }
    return true;
}

/* What a float node makes of operands that are never negative, and what never is. */
static bool
float_node_is(const KilnNode *node, int levels)
{
    const KilnValue *x = kiln_node_operand(node, 0);
    KilnInterval interval;
    switch (node->op) {
    case KILN_OP_abs:
    case KILN_OP_exp:
    case KILN_OP_hard_sigmoid:
    case KILN_OP_reduce_l1:
    case KILN_OP_reduce_l2:
    case KILN_OP_reduce_sum_square:
    case KILN_OP_relu:
    case KILN_OP_sigmoid:
    case KILN_OP_softmax:
    case KILN_OP_sqrt: /* the root of -0 is -0 */
        return true;
    case KILN_OP_clip:
        return kiln_clip_interval(node, &interval) && interval.low >= 0 && interval.high >= 0;
    case KILN_OP_cast:
        return x->type.dtype == KILN_DTYPE_bool ||
               (kiln_dtype_is_integer(x->type.dtype) && !kiln_dtype_is_signed(x->type.dtype)) ||
               (kiln_dtype_is_float(x->type.dtype) && operands_are(node, 1, levels));
    case KILN_OP_mul:
        return node->operands[1].value == x || operands_are(node, 2, levels);
    case KILN_OP_add:
    case KILN_OP_concat:
    case KILN_OP_sum:
        return operands_are(node, node->n_operands, levels);
    default:
        return false;
    }
}

/* Ops that only choose among the elements of operand 0, of any type. */
static bool
chooses(KilnOp op)
{
    return op == KILN_OP_identity || op == KILN_OP_reshape || op == KILN_OP_flatten ||
           op == KILN_OP_squeeze || op == KILN_OP_unsqueeze || op == KILN_OP_transpose ||
           op == KILN_OP_slice || op == KILN_OP_split || op == KILN_OP_expand ||
           op == KILN_OP_tile || op == KILN_OP_gather || op == KILN_OP_depth_to_space ||
           op == KILN_OP_space_to_depth;
}

static bool
never_negative(const KilnValue *value, int levels)
{
    const KilnNode *node = value ? value->def : NULL;
    if (!node || levels == 0)
        return false;
    if (chooses(node->op))
        return operands_are(node, 1, levels - 1);
    return kiln_dtype_is_float(value->type.dtype) && float_node_is(node, levels - 1);
}

bool
kiln_never_negative(const KilnValue *value)
{
    return never_negative(value, LEVELS);
}

bool
kiln_never_signed(const KilnValue *value)
{
    const KilnNode *node = value->def;
    for (int i = 0; node && chooses(node->op) && i < LEVELS; i++)
        node = node->operands[0].value->def;
    if (!node || !kiln_dtype_is_float(value->type.dtype))
        return false;
    return node->op == KILN_OP_abs || node->op == KILN_OP_exp || node->op == KILN_OP_sigmoid ||
           node->op == KILN_OP_softmax || node->op == KILN_OP_reduce_l1 ||
           (node->op == KILN_OP_mul && node->operands[0].value == node->operands[1].value);
}

bool
kiln_only_reader(const KilnValue *value, const KilnNode *node)
{
    kiln_foreach_use (use, value) {
        if (use->user != node)
            return false;
    }
    return true;
}
