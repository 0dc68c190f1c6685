/* SPDX-License-Identifier: Apache-2.0 */
/* fold-conv-transpose-bias: what is added to each channel of a transposed convolution, or of a
 * convolution, becomes part of its bias.
 *
 *      x   w, b                       x   w, b + reshape(c)
 *       \  /                           \  /
 *   conv_transpose   c: [1,C,1,1]  conv_transpose
 *          \         /        =>          |
 *             add
 *
 * c varies along the channels alone. It and b need not be literal: adding them costs C elements,
 * not the whole result. (A chain of arithmetic with literals is fold-arith-into-conv's.)
 *
 * requires nothing, preserves nothing; class U: the sum is rounded at other places. Where there is
 * a bias, the convolution plus it may lose no more than kiln_sum_keeps_precision() allows: one of
 * the two must be literal then, and the type wider than 16 bits, which would round their sum. The
 * convolution must have no other reader; it is built anew, and so is the bias, since others may
 * read them. */
#include "graph/op/additive.h"
#include "graph/op/reshape.h"
#include "passes/query/affine.h"
#include "passes/query/literal.h"
#include "passes/rule.h"

/* c as [C]. */
static KilnValue *
as_vector(KilnMatch *match, KilnValue *c, const int64_t *channels)
{
    KilnValue *shape = kiln_build_ints(match->root->function, match->root, channels, 1);
    KilnAttrs_reshape attrs = { .allowzero = true };
    return kiln_match_build(match, KILN_OP_reshape, &attrs, (KilnValue *[]){ c, shape }, 2);
}

static bool
add_to_bias(KilnMatch *match)
{
    const KilnNode *conv = kiln_match_node(match, "conv");
    KilnValue *c = kiln_match_value(match, "c"), *bias = kiln_node_operand(conv, 2);
    const KilnType *type = &conv->results[0].type;
    GUARD(plain, !type->layout);
    GUARD(per_channel, type->rank > 2 && !(kiln_broadcast_dims(&c->type, type) & ~2u));
    GUARD(all_channels, c->type.rank >= type->rank - 1 && type->dims[1] >= 0 &&
                            kiln_type_equal_dims(type, 1, &c->type, c->type.rank - type->rank + 1));
    GUARD(wide, !bias || !kiln_dtype_is_half(type->dtype));
    GUARD(precise, kiln_product_takes_term(conv, c, match->error));
    KilnValue *vector = as_vector(match, c, &type->dims[1]);
    if (vector && bias)
        vector = kiln_match_build(match, KILN_OP_add, NULL, (KilnValue *[]){ bias, vector }, 2);
    if (!vector)
        return false;
    KilnNodeSpec spec = { .op = conv->op,
                          .name = conv->name,
                          .operands = (KilnValue *[]){ conv->operands[0].value,
                                                       conv->operands[1].value, vector },
                          .n_operands = 3,
                          .attrs = conv->attrs,
                          .types = type };
    return kiln_match_replace(match, kiln_match_build_node(match, &spec));
}

static const KilnRule rules[] = {
    RULE("conv-add-bias", U, "(add~ (conv|conv_transpose#conv! ? ? ...):float ?c)", add_to_bias),
};

RULE_PASS(fold_conv_transpose_bias, FORWARD);
