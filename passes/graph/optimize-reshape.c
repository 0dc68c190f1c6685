/* SPDX-License-Identifier: Apache-2.0 */
/* optimize-reshape: chains of reshapes become one, and constants are stored in the shape that is
 * read. `reshape` stands for flatten, squeeze and unsqueeze, too.
 *
 *      x              x            x            const         const     const         const'
 *      |              |            |              |             |         |             |
 *   reshape   =>      |         reshape   =>   reshape       reshape => const'       quantize
 *  (same shape)       |            |              |                       |      =>
 *                                reshape          |                    quantize
 *                                                                         |
 *                                                                      reshape
 *
 *   reshape-identity     the shape is the operand's, every extent known by number or name
 *   reshape-of-constant  the same payload under another shape: it takes no storage
 *   reshape-of-quantize  a quantize_linear per tensor that nothing else reads
 *   reshape-chain        whatever else reads the inner one keeps it; it is a view
 *
 * requires nothing, preserves nothing; class E: the same elements in the same order. With open
 * extents a chain is merged where a reshape can state the result exactly: by the outer one's own
 * target, where that copies no dims, or by one that kiln_reshape_build() makes. */
#include "graph/op/quantize.h"
#include "graph/op/reshape.h"
#include "passes/query/movement.h"
#include "passes/rule.h"

static bool
drop_identity(KilnMatch *match)
{
    KilnValue *x = kiln_match_value(match, "x");
    GUARD(ranked, x->type.rank >= 0);
    for (int d = 0; d < x->type.rank; d++)
        GUARD(extents_known, kiln_type_knows_dim(&x->type, d));
    return kiln_match_replace(match, x);
}

/* --- constants --- */

/* @constant under the shape of @type. */
static KilnValue *
reshaped_constant(KilnMatch *match, const KilnConstant *constant, const KilnType *type)
{
    KilnTensor *tensor = kiln_tensor_copy(constant->tensor);
    tensor->type = kiln_type_make(type->dtype, type->rank, type->dims);
    KilnValue *value =
        kiln_moved_constant(match->root->function, match->root, constant->name, tensor, type);
    kiln_value_constant(value)->charged = constant->charged;
    kiln_value_constant(value)->base = constant->base;
    return value;
}

static bool
reshape_constant(KilnMatch *match)
{
    const KilnConstant *constant = kiln_value_constant(kiln_match_value(match, "c"));
    const KilnType *type = &match->root->results[0].type;
    GUARD(static_shape, kiln_type_is_static(type));
    GUARD(plain, !type->layout && !constant->type.layout);
    return kiln_match_replace(match, reshaped_constant(match, constant, type));
}

static bool
reshape_quantize(KilnMatch *match)
{
    KilnNode *root = match->root;
    const KilnNode *quantize = kiln_match_node(match, "q");
    const KilnConstant *constant = kiln_value_constant(kiln_match_value(match, "c"));
    const KilnType *type = &root->results[0].type;
    GUARD(static_shape, kiln_type_is_static(type));
    GUARD(plain, !type->layout && !constant->type.layout);
    GUARD(per_tensor, kiln_type_elements(&quantize->operands[1].value->type) == 1);
    KilnType unquantized = kiln_type_make(constant->type.dtype, type->rank, type->dims);
    KilnValue *operands[] = { reshaped_constant(match, constant, &unquantized),
                              quantize->operands[1].value, kiln_node_operand(quantize, 2) };
    KilnNodeSpec spec = { .op = KILN_OP_quantize_linear,
                          .name = quantize->name,
                          .operands = operands,
                          .n_operands = quantize->n_operands,
                          .attrs = quantize->attrs,
                          .types = type };
    return kiln_match_replace(match, kiln_match_build_node(match, &spec));
}

/* --- chains --- */

/* The target of @node says the shape whatever it reshapes: no 0 copies a dim. */
static bool
target_stands_alone(const KilnNode *node)
{
    if (node->op != KILN_OP_reshape)
        return false;
    const KilnKnown *target = node->operands[1].value->known;
    const KilnExtents *extents = node->operands[1].value->extents;
    if (kiln_attrs(node, reshape)->allowzero)
        return true;
    for (int64_t i = 0; target && i < target->n; i++) {
        if (target->v[i] == 0)
            return false;
    }
    for (uint32_t i = 0; !target && extents && i < extents->n; i++) {
        int64_t lo, hi, number;
        kiln_dim_range(extents->v[i], &lo, &hi);
        if (lo < 1 && !(kiln_dim_is_number(extents->v[i], &number) && number == -1))
            return false;
    }
    return target || extents;
}

static KilnValue *
reshape_like(KilnMatch *match, KilnValue *x)
{
    KilnNode *outer = match->root;
    const KilnType *type = &outer->results[0].type;
    if (kiln_type_is_known(type) && kiln_type_equal(type, &x->type))
        return x;
    if (!target_stands_alone(outer))
        return kiln_reshape_build(match->root->function, outer, x, type, match->error);
    KilnValue *operands[] = { x, outer->operands[1].value };
    KilnNodeSpec spec = { .op = KILN_OP_reshape,
                          .name = outer->name,
                          .operands = operands,
                          .n_operands = 2,
                          .attrs = outer->attrs,
                          .types = type };
    return kiln_match_build_node(match, &spec);
}

static bool
merge_chain(KilnMatch *match)
{
    KilnValue *x = kiln_match_value(match, "x");
    const KilnType *between = &kiln_match_node(match, "inner")->results[0].type;
    GUARD(plain, !x->type.layout && !between->layout);
    return kiln_match_replace(match, reshape_like(match, x));
}

#define RESHAPE "reshape|flatten|squeeze|unsqueeze"

static const KilnRule rules[] = {
    RULE("reshape-identity", E, "(" RESHAPE " ?x ...)", drop_identity),
    RULE("reshape-of-constant", E, "(" RESHAPE " $c ...)", reshape_constant),
    RULE("reshape-of-quantize", E, "(" RESHAPE " (quantize_linear!#q $c ? ...) ...)",
         reshape_quantize),
    RULE("reshape-chain", E, "(" RESHAPE " (" RESHAPE "#inner ?x ...) ...)", merge_chain),
};

RULE_PASS(optimize_reshape, FORWARD);
