/* SPDX-License-Identifier: Apache-2.0 */
/* lower: operators that the target has no kernel of its own for are expressed by ones that it has.
 *
 *     sum(a, b, c)            =>  add(add(a, b), c); max and min the same way
 *     mean(a, b, c)           =>  add(add(a, b), c) / 3
 *     reduce_l1(x)            =>  reduce_sum(abs(x))
 *     reduce_l2(x)            =>  sqrt(reduce_sum(x · x))
 *     reduce_sum_square(x)    =>  reduce_sum(x · x)
 *     reduce_log_sum(x)       =>  log(reduce_sum(x))
 *     global_average_pool(x)  =>  reduce_mean(x) over the spatial axes; global_max_pool: reduce_max
 *     hard_swish(x)           =>  x · hard_sigmoid(x, 1/6, 1/2)
 *     depth_to_space(x)       =>  reshape, transpose, reshape; space_to_depth the same way back
 *     attention, channel_shuffle, rms_normalization, swish: graph/module/decompose.h
 *
 * requires nothing, preserves nothing; class U: an intermediate is rounded to the element type
 * where the one operator rounded once. Like Glow's lowering the target has a veto, by having a
 * kernel of its own or by lacking one for what would take its place: a target's fallback does not
 * count, since only its own kernels are faster. Without a target nothing is lowered. */
#include "passes/rule.h"

#include "graph/module/decompose.h"
#include "graph/op/activation.h"
#include "graph/op/additive.h"
#include "graph/op/math.h"
#include "graph/op/multiplicative.h"
#include "graph/op/pool.h"
#include "graph/op/reduce.h"
#include "graph/op/reshape.h"
#include "graph/op/transpose.h"

static bool
target_lacks(KilnPassContext *context, const KilnNode *node)
{
    bool lowered_whole = node->operands[0].value->type.quant != NULL;
    return kiln_pass_target(context) && !lowered_whole && !kiln_pass_target_has(context, node);
}

/* Whether the nodes that stand right before the root since the rewrite began, when the next id was
 * @mark, have kernels. */
static bool
target_has_all(KilnPassContext *context, const KilnNode *root, uint32_t mark)
{
    for (const KilnNode *node = root->previous; node && node->id >= mark; node = node->previous) {
        if (node->op != KILN_OP_const && target_lacks(context, node))
            return false;
    }
    return true;
}

/* A new node on the way from x to the result: NULL passes a failure on. */
static KilnValue *
step(const KilnMatch *match, KilnOp op, KilnValue *a, KilnValue *b, const void *attrs)
{
    KilnValue *operands[] = { a, b };
    return a ? kiln_match_build(match, op, attrs, operands, b ? 2 : 1) : NULL;
}

static bool
finish(KilnMatch *match, uint32_t mark, KilnValue *value)
{
    if (!value)
        return false;
    GUARD(target_has, target_has_all(match->context, match->root, mark));
    return kiln_match_replace(match, value);
}

/* An intermediate that overflows where the result would not is more than rounding: half floats end
 * at 65504. */
static bool
is_narrow(const KilnValue *value)
{
    return value->type.dtype == KILN_DTYPE_f16;
}

/* --- variadic operators --- */

static KilnValue *
fold_left(const KilnMatch *match, KilnOp op)
{
    const KilnNode *node = match->root;
    KilnValue *sum = node->operands[0].value;
    for (uint32_t i = 1; sum && i < node->n_operands; i++)
        sum = step(match, op, sum, node->operands[i].value, NULL);
    return sum;
}

static bool
lower_extremum(KilnMatch *match)
{
    const uint32_t mark = match->root->function->next_id;
    const KilnNode *node = match->root;
    GUARD(target_lacks, target_lacks(match->context, node));
    return finish(match, mark, fold_left(match, node->op));
}

static bool
lower_sum(KilnMatch *match)
{
    const uint32_t mark = match->root->function->next_id;
    const KilnNode *node = match->root;
    GUARD(target_lacks, target_lacks(match->context, node));
    GUARD(wide_enough, !is_narrow(&node->results[0]));
    KilnValue *value = fold_left(match, KILN_OP_add);
    if (node->op == KILN_OP_mean && value) {
        KilnType type = kiln_type_scalar(value->type.dtype);
        KilnValue *n = kiln_build_constant(match->root->function, match->root, "n",
                                           kiln_tensor_new_splat(&type, node->n_operands));
        value = step(match, KILN_OP_div, value, n, NULL);
    }
    return finish(match, mark, value);
}

/* --- reductions --- */

/* reduce_sum over the axes of the matched reduction, of @value. */
static KilnValue *
reduce_sum(const KilnMatch *match, KilnValue *value)
{
    const KilnNode *node = match->root;
    /* All reductions have the same attributes; the description says where they are. */
    const KilnOpInfo *info = kiln_op_info(node->op), *sum = kiln_op_info(KILN_OP_reduce_sum);
    KilnAttrs_reduce_sum attrs;
    kiln_attrs_copy_matching(sum->attrs, sum->n_attrs, &attrs, info->attrs, info->n_attrs,
                             node->attrs, match->root->function->module->arena);
    return step(match, KILN_OP_reduce_sum, value, kiln_node_operand(node, 1), &attrs);
}

static bool
lower_reduction(KilnMatch *match)
{
    const uint32_t mark = match->root->function->next_id;
    const KilnNode *node = match->root;
    KilnValue *x = node->operands[0].value;
    GUARD(target_lacks, target_lacks(match->context, node));
    GUARD(float_type, kiln_dtype_is_float(x->type.dtype));
    bool shrinks = node->op == KILN_OP_reduce_log_sum || node->op == KILN_OP_reduce_l2;
    GUARD(wide_enough, !shrinks || !is_narrow(x));
    if (node->op == KILN_OP_reduce_log_sum)
        return finish(match, mark, step(match, KILN_OP_log, reduce_sum(match, x), NULL, NULL));
    bool l1 = node->op == KILN_OP_reduce_l1;
    KilnValue *inner = step(match, l1 ? KILN_OP_abs : KILN_OP_mul, x, l1 ? NULL : x, NULL);
    KilnValue *sum = inner ? reduce_sum(match, inner) : NULL;
    if (node->op == KILN_OP_reduce_l2)
        sum = step(match, KILN_OP_sqrt, sum, NULL, NULL);
    return finish(match, mark, sum);
}

static bool
lower_global_pool(KilnMatch *match)
{
    const uint32_t mark = match->root->function->next_id;
    KilnNode *node = match->root;
    KilnValue *x = node->operands[0].value;
    GUARD(target_lacks, target_lacks(match->context, node));
    GUARD(ranked, x->type.rank >= 2);
    int64_t axes[KILN_MAX_RANK];
    uint32_t n = (uint32_t)x->type.rank - 2;
    for (uint32_t i = 0; i < n; i++)
        axes[i] = i + 2;
    KilnValue *list = kiln_build_ints(match->root->function, node, axes, n);
    KilnOp op = node->op == KILN_OP_global_average_pool ? KILN_OP_reduce_mean : KILN_OP_reduce_max;
    return finish(match, mark, step(match, op, x, list, NULL));
}

/* --- the others --- */

static bool
lower_hard_swish(KilnMatch *match)
{
    const uint32_t mark = match->root->function->next_id;
    KilnValue *x = kiln_match_value(match, "x");
    GUARD(target_lacks, target_lacks(match->context, match->root));
    GUARD(sixth_exact, x->type.dtype != KILN_DTYPE_f64); /* attributes are f32 */
    KilnAttrs_hard_sigmoid attrs = { .alpha = 1.0f / 6.0f, .beta = 0.5f };
    KilnValue *gate = step(match, KILN_OP_hard_sigmoid, x, NULL, &attrs);
    return finish(match, mark, gate ? step(match, KILN_OP_mul, x, gate, NULL) : NULL);
}

static KilnValue *
reshape_to(const KilnMatch *match, KilnValue *x, const int64_t *dims, uint32_t n)
{
    KilnAttrs_reshape attrs = { .allowzero = true };
    KilnValue *shape = kiln_build_ints(match->root->function, match->root, dims, n);
    return step(match, KILN_OP_reshape, x, shape, &attrs);
}

static bool
lower_block_move(KilnMatch *match)
{
    const uint32_t mark = match->root->function->next_id;
    KilnNode *node = match->root;
    KilnValue *x = node->operands[0].value;
    GUARD(target_lacks, target_lacks(match->context, node));
    GUARD(static_shape, kiln_type_is_static(&x->type));
    bool to_depth = node->op == KILN_OP_space_to_depth;
    int64_t block = to_depth ? kiln_attrs(node, space_to_depth)->blocksize
                             : kiln_attrs(node, depth_to_space)->blocksize;
    const char *mode =
        to_depth ? kiln_attrs(node, space_to_depth)->mode : kiln_attrs(node, depth_to_space)->mode;
    bool dcr = g_str_equal(mode, "DCR");
    const int64_t *in = x->type.dims, *out = node->results[0].type.dims;
    /* depth_to_space splits C into blocks beside the rows and columns that they become part of; DCR
     * has the blocks before the depth, CRD behind it. space_to_depth splits H and W. */
    const int64_t split_depth_dcr[] = { in[0], block, block, out[1], in[2], in[3] };
    const int64_t split_depth_crd[] = { in[0], out[1], block, block, in[2], in[3] };
    const int64_t split_space[] = { in[0], in[1], out[2], block, out[3], block };
    static const int64_t perms[2][2][6] = {
        { { 0, 1, 4, 2, 5, 3 }, { 0, 3, 4, 1, 5, 2 } }, /* to space: CRD, DCR */
        { { 0, 1, 3, 5, 2, 4 }, { 0, 3, 5, 1, 2, 4 } }, /* to depth */
    };
    const int64_t *split = to_depth ? split_space : dcr ? split_depth_dcr : split_depth_crd;
    KilnAttrs_transpose attrs = { .perm = { .n = 6, .v = (int64_t *)perms[to_depth][dcr] } };
    KilnValue *value = reshape_to(match, x, split, 6);
    value = step(match, KILN_OP_transpose, value, NULL, &attrs);
    return finish(match, mark, value ? reshape_to(match, value, out, 4) : NULL);
}

static bool
lower_raised(KilnMatch *match)
{
    const uint32_t mark = match->root->function->next_id;
    GUARD(target_lacks, target_lacks(match->context, match->root));
    return finish(match, mark, kiln_decompose(match->root, match->error));
}

static const KilnRule rules[] = {
    RULE("lower-extremum", E, "(max|min ? ? ...)", lower_extremum),
    RULE("lower-sum", U, "(sum|mean ? ? ...)", lower_sum),
    RULE("lower-norm-reduction", U, "(reduce_l1|reduce_l2|reduce_sum_square|reduce_log_sum ?x ...)",
         lower_reduction),
    RULE("lower-global-pool", U, "(global_average_pool|global_max_pool ?x)", lower_global_pool),
    RULE("lower-hard-swish", U, "(hard_swish ?x)", lower_hard_swish),
    RULE("lower-block-move", E, "(depth_to_space|space_to_depth ?x)", lower_block_move),
    RULE("lower-raised", U, "(attention|channel_shuffle|rms_normalization|swish ? ...)",
         lower_raised),
};

RULE_PASS(lower, FORWARD);
