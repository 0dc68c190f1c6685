/* SPDX-License-Identifier: Apache-2.0 */
/* Plans of ops whose dims correspond to those of their operands one to one: the transpose behind
 * them is the one that was in front (`aligned` below). permute_rank.c has the others.
 *
 * Guards say what is refused; their names are those of the pass that asks. */
#include "passes/permute/permute_priv.h"

#include "graph/op/bounds.h"
#include "graph/op/concat.h"
#include "graph/op/expand.h"
#include "graph/op/gather.h"
#include "graph/op/norm.h"
#include "graph/op/pool.h"
#include "graph/op/quantize.h"
#include "graph/op/reduce.h"
#include "graph/op/reshape.h"
#include "graph/op/slice.h"
#include "graph/op/softmax.h"
#include "graph/op/transpose.h"
#include "passes/permute/permute.h"
#include "passes/query/extents.h"
#include "passes/query/movement.h"
#include "passes/query/quant_range.h"

#include <string.h>

typedef bool (*Planner)(KilnPermuted *plan);

/* --- parts of plans --- */

const KilnType *
kiln_permuted_type(const KilnPermuted *plan, uint32_t i)
{
    const KilnValue *value = kiln_node_operand(plan->node, i);
    return value ? &value->type : NULL;
}

/* The known integers of operand @i of the node; NULL if there are none. */
static const KilnKnown *
known_integers(const KilnPermuted *plan, uint32_t i)
{
    const KilnValue *value = kiln_node_operand(plan->node, i);
    return value ? value->known : NULL;
}

void *
kiln_permuted_attr(const KilnPermuted *plan, const char *name)
{
    const KilnOpInfo *info = kiln_op_info(plan->op);
    const KilnAttrInfo *attr = kiln_attr_find(info->attrs, info->n_attrs, name);
    return attr ? (char *)plan->attrs + attr->offset : NULL;
}

/* @perm for a value of @rank, the last dims being the same. */
static KilnPerm
widened(const KilnPerm *perm, int rank)
{
    KilnPerm wide = { .rank = rank };
    int more = rank - perm->rank;
    for (int d = 0; d < rank; d++)
        wide.at[d] = d < more ? d : perm->at[d - more] + more;
    return wide;
}

/* @perm for the last @rank dims; none where they do not stay among themselves. */
static KilnPerm
narrowed(const KilnPerm *perm, int rank)
{
    KilnPerm narrow = { .rank = rank };
    int less = perm->rank - rank;
    for (int d = 0; d < perm->rank; d++) {
        if (d < less ? perm->at[d] != d : perm->at[d] < less)
            return KILN_PERM_NONE;
        if (d >= less)
            narrow.at[d - less] = perm->at[d] - less;
    }
    return narrow;
}

void
kiln_permuted_set_ints(KilnPermuted *plan, uint32_t i, KilnDType dtype, const int64_t *values,
                       uint32_t n)
{
    KilnPermutedOperand *operand = &plan->operands[i];
    operand->kind = KILN_PERMUTED_INTS;
    operand->ints = kiln_ints_make(plan->arena, values, n);
    operand->type = kiln_type_make(dtype, 1, (int64_t[]){ n });
}

bool
kiln_permuted_set_extents(KilnPermuted *plan, uint32_t i, const KilnType *type, bool infer,
                          bool *stated)
{
    const KilnFunction *function = plan->node->function;
    KilnValue *near = plan->node->operands[0].value;
    *stated = kiln_type_is_static(type) || kiln_extents_can_build(function, near, type, false);
    if (kiln_type_is_static(type)) {
        kiln_permuted_set_ints(plan, i, KILN_DTYPE_i64, type->dims, (uint32_t)type->rank);
        return true;
    }
    if (!*stated && !(infer && kiln_extents_can_build(function, near, type, true)))
        return false;
    plan->operands[i].kind = KILN_PERMUTED_EXTENTS;
    plan->operands[i].type = *type;
    return true;
}

/* All results are transposes by what the node's data is a transpose by. */
static bool
aligned(KilnPermuted *plan, const KilnPerm *perm)
{
    for (uint32_t r = 0; r < plan->node->n_results; r++)
        plan->results[r] = *perm;
    return true;
}

bool
kiln_permuted_data(KilnPermuted *plan, KilnPerm *perm)
{
    KilnPermutedOperand *data = &plan->operands[0];
    KilnPerm from = plan->from[0];
    const KilnType *x = kiln_permuted_type(plan, 0);
    if (plan->want.rank >= 0) {
        if (x->rank != plan->want.rank)
            return false;
        data->kind =
            kiln_perm_equal(&from, &plan->want) ? KILN_PERMUTED_FLIPPED : KILN_PERMUTED_INVERSE;
        data->perm = *perm = plan->want;
        return true;
    }
    if (from.rank < 0)
        return false;
    data->kind = KILN_PERMUTED_FLIPPED;
    data->perm = *perm = from;
    return true;
}

/* --- several operands that share their dims --- */

/* The dims of the literal or value @type, of which the operand is a transpose by @perm; dims of 1
 * in front that it did not have are left out. */
static KilnType
side_type(const KilnPermuted *plan, const KilnType *type, const KilnPerm *perm)
{
    KilnType wide = *type;
    int more = perm->rank - type->rank;
    wide.rank = perm->rank;
    for (int d = perm->rank - 1; d >= 0; d--) {
        wide.dims[d] = d < more ? 1 : type->dims[d - more];
        wide.open[d] = d < more ? NULL : type->open[d - more];
    }
    KilnType side = kiln_perm_type_before(plan->arena, &wide, perm);
    while (side.rank > type->rank && side.dims[0] == 1) {
        side.rank--;
        memmove(side.dims, side.dims + 1, sizeof *side.dims * (size_t)side.rank);
        memmove(side.open, side.open + 1, sizeof *side.open * (size_t)side.rank);
    }
    return side;
}

/* Whether the dims of @type that may be other than 1 stand in the same order without @perm. */
static bool
keeps_order(const KilnType *type, const KilnPerm *perm)
{
    int more = perm->rank - type->rank, last = -1;
    for (int d = more; d < perm->rank; d++) {
        if (type->dims[d - more] == 1)
            continue;
        if (perm->at[d] < last)
            return false;
        last = perm->at[d];
    }
    return true;
}

/* A reshape to @type. */
static bool
view_plan(KilnPermuted *plan, uint32_t i, const KilnType *type)
{
    KilnPermutedOperand *operand = &plan->operands[i];
    if (!kiln_reshape_can_build(plan->node->function, plan->node->operands[i].value, type))
        return false;
    operand->kind = KILN_PERMUTED_VIEW;
    operand->type = *type;
    plan->has_view = true;
    return true;
}

/* An operand that is no transpose by @perm: read as it is where that is the same, else permuted
 * while compiling or by a reshape. */
static bool
side_plan(KilnPermuted *plan, uint32_t i, const KilnPerm *perm)
{
    KilnPermutedOperand *operand = &plan->operands[i];
    const KilnValue *value = kiln_node_operand(plan->node, i);
    const KilnType *type = &value->type;
    if (type->rank < 0 || type->layout || type->rank > perm->rank)
        return false;
    KilnType side = side_type(plan, type, perm);
    bool in_order = keeps_order(type, perm);
    if (in_order && kiln_type_same_shape(&side, type))
        return true;
    if (kiln_perm_can_move(value)) {
        operand->kind = KILN_PERMUTED_LITERAL;
        operand->perm = kiln_perm_inverse(perm);
        operand->type = side;
        return true;
    }
    if (in_order && !kiln_quant_is_per_axis(type))
        return view_plan(plan, i, &side);
    operand->kind = KILN_PERMUTED_INVERSE;
    operand->perm = narrowed(perm, type->rank);
    return plan->inverse && operand->perm.rank >= 0;
}

/* Operands @first … of a node whose result, of rank perm->rank, is a transpose by @perm. */
static bool
operands_plan(KilnPermuted *plan, uint32_t n, const KilnPerm *perm)
{
    for (uint32_t i = 0; i < n; i++) {
        const KilnType *type = kiln_permuted_type(plan, i);
        if (!type)
            continue;
        const KilnPerm *from = &plan->from[i];
        KilnPerm wide = from->rank >= 0 && from->rank <= perm->rank ? widened(from, perm->rank)
                                                                    : KILN_PERM_NONE;
        if (kiln_perm_equal(&wide, perm)) {
            plan->operands[i].kind = KILN_PERMUTED_FLIPPED;
            plan->operands[i].perm = *from;
        } else if (!side_plan(plan, i, perm)) {
            return false;
        }
    }
    return true;
}

/* What all operands are to be transposes by: what the first that is one is. */
static bool
shared_perm(const KilnPermuted *plan, KilnPerm *perm)
{
    int rank = plan->node->results[0].type.rank;
    if (plan->want.rank >= 0) {
        *perm = plan->want;
        return true;
    }
    for (uint32_t i = 0; i < plan->node->n_operands; i++) {
        if (plan->from[i].rank < 0 || plan->from[i].rank > rank)
            continue;
        *perm = widened(&plan->from[i], rank);
        return true;
    }
    return false;
}

/* Scales and zero points stand along an axis, or are one number. */
static bool
plan_linear(KilnPermuted *plan)
{
    const KilnType *x = kiln_permuted_type(plan, 0), *scale = kiln_permuted_type(plan, 1);
    const KilnType *zero_point = kiln_permuted_type(plan, 2);
    int64_t *axis = kiln_permuted_attr(plan, "axis");
    KilnPerm perm;
    if (!kiln_permuted_data(plan, &perm) || kiln_node_has_blocks(plan->node))
        return false;
    bool one_number = (!scale || kiln_type_elements(scale) == 1) &&
                      (!zero_point || kiln_type_elements(zero_point) == 1);
    int d = kiln_type_axis(x, *axis);
    if (!one_number && d < 0)
        return false;
    if (!one_number)
        *axis = perm.at[d];
    return aligned(plan, &perm);
}

static bool
plan_first_operand(KilnPermuted *plan)
{
    KilnPerm perm;
    return kiln_permuted_data(plan, &perm) && aligned(plan, &perm);
}

static bool
plan_broadcast(KilnPermuted *plan)
{
    KilnPerm perm;
    return shared_perm(plan, &perm) && operands_plan(plan, plan->node->n_operands, &perm) &&
           aligned(plan, &perm);
}

static bool
plan_concat(KilnPermuted *plan)
{
    int64_t *axis = kiln_permuted_attr(plan, "axis");
    KilnPerm perm;
    if (!shared_perm(plan, &perm) || !operands_plan(plan, plan->node->n_operands, &perm))
        return false;
    *axis = perm.at[kiln_type_axis(&plan->node->results[0].type, *axis)];
    return aligned(plan, &perm);
}

/* --- along an axis --- */

/* softmax and its like, split, top_k: an attribute names the axis. */
static bool
plan_axis(KilnPermuted *plan)
{
    int64_t *axis = kiln_permuted_attr(plan, "axis");
    KilnPerm perm;
    if (!kiln_permuted_data(plan, &perm))
        return false;
    *axis = perm.at[kiln_type_axis(kiln_permuted_type(plan, 0), *axis)];
    return aligned(plan, &perm);
}

/* The axis is an operand: cum_sum and cum_prod. */
static bool
plan_cum_sum(KilnPermuted *plan)
{
    KilnPassContext *context = plan->context;
    const char *rule = plan->rule;
    const KilnKnown *known = known_integers(plan, 1);
    const KilnType *type = kiln_permuted_type(plan, 1);
    KilnPerm perm;
    if (!kiln_permuted_data(plan, &perm))
        return false;
    PASS_GUARD(axis_known, known && known->n == 1);
    int64_t axis = perm.at[kiln_type_axis(kiln_permuted_type(plan, 0), known->v[0])];
    kiln_permuted_set_ints(plan, 1, type->dtype, &axis, 1);
    plan->operands[1].type = kiln_type_make(type->dtype, type->rank, type->dims);
    return aligned(plan, &perm);
}

/* --- movement --- */

/* Operand @i holds axes; false where they are not known. */
static bool
permuted_axes(KilnPermuted *plan, uint32_t i, const KilnPerm *perm)
{
    KilnPassContext *context = plan->context;
    const char *rule = plan->rule;
    const KilnKnown *known = known_integers(plan, i);
    PASS_GUARD(axes_known, known && known->n <= KILN_MAX_RANK);
    int64_t axes[KILN_MAX_RANK];
    for (int64_t k = 0; k < known->n; k++)
        axes[k] = perm->at[kiln_type_axis(kiln_permuted_type(plan, 0), known->v[k])];
    kiln_permuted_set_ints(plan, i, kiln_permuted_type(plan, i)->dtype, axes, (uint32_t)known->n);
    return true;
}

static bool
plan_slice(KilnPermuted *plan)
{
    KilnPassContext *context = plan->context;
    const char *rule = plan->rule;
    const KilnType *starts = kiln_permuted_type(plan, 1);
    KilnPerm perm;
    if (!kiln_permuted_data(plan, &perm))
        return false;
    if (kiln_permuted_type(plan, 3))
        return permuted_axes(plan, 3, &perm) && aligned(plan, &perm);
    int64_t n = kiln_type_elements(starts), axes[KILN_MAX_RANK];
    PASS_GUARD(starts_counted, n >= 0 && n <= perm.rank);
    for (int64_t k = 0; k < n; k++)
        axes[k] = perm.at[k];
    plan->n_operands = MAX(plan->n_operands, 4);
    kiln_permuted_set_ints(plan, 3, starts->dtype, axes, (uint32_t)n);
    return aligned(plan, &perm);
}

static bool
plan_pad(KilnPermuted *plan)
{
    KilnPassContext *context = plan->context;
    const char *rule = plan->rule;
    const KilnKnown *pads = known_integers(plan, 1);
    KilnPerm perm;
    if (!kiln_permuted_data(plan, &perm))
        return false;
    if (kiln_permuted_type(plan, 3))
        return permuted_axes(plan, 3, &perm) && aligned(plan, &perm);
    PASS_GUARD(pads_known, pads && pads->n == 2 * perm.rank);
    int64_t both[2 * KILN_MAX_RANK];
    for (int d = 0; d < perm.rank; d++) {
        both[perm.at[d]] = pads->v[d];
        both[perm.rank + perm.at[d]] = pads->v[perm.rank + d];
    }
    kiln_permuted_set_ints(plan, 1, KILN_DTYPE_i64, both, 2 * (uint32_t)perm.rank);
    return aligned(plan, &perm);
}

static bool
plan_tile(KilnPermuted *plan)
{
    KilnPassContext *context = plan->context;
    const char *rule = plan->rule;
    const KilnKnown *repeats = known_integers(plan, 1);
    KilnPerm perm;
    if (!kiln_permuted_data(plan, &perm))
        return false;
    PASS_GUARD(repeats_known, repeats && repeats->n == perm.rank);
    int64_t moved[KILN_MAX_RANK];
    for (int d = 0; d < perm.rank; d++)
        moved[perm.at[d]] = repeats->v[d];
    kiln_permuted_set_ints(plan, 1, KILN_DTYPE_i64, moved, (uint32_t)perm.rank);
    return aligned(plan, &perm);
}

static bool
plan_expand(KilnPermuted *plan)
{
    const KilnType *out = &plan->node->results[0].type;
    KilnPerm perm;
    bool stated;
    if (!shared_perm(plan, &perm) || !operands_plan(plan, 1, &perm))
        return false;
    KilnType before = kiln_perm_type_before(plan->arena, out, &perm);
    return kiln_permuted_set_extents(plan, 1, &before, false, &stated) && aligned(plan, &perm);
}

/* --- normalization and windows --- */

/* Nothing but the axis of the channels depends on where dims stand. A vector may have none. */
static bool
plan_batch_normalization(KilnPermuted *plan)
{
    KilnPassContext *context = plan->context;
    const char *rule = plan->rule;
    KilnPerm perm;
    if (!kiln_permuted_data(plan, &perm) || perm.rank < 2)
        return false;
    int64_t *axis = kiln_permuted_attr(plan, "axis");
    *axis = perm.at[kiln_type_axis(kiln_permuted_type(plan, 0), *axis)];
    PASS_GUARD(inference, kiln_pass_mode(context) == KILN_MODE_INFER &&
                              !kiln_attrs(plan->node, batch_normalization)->training_mode);
    return aligned(plan, &perm);
}

static bool
plan_lrn(KilnPermuted *plan)
{
    KilnPassContext *context = plan->context;
    const char *rule = plan->rule;
    KilnPerm perm;
    if (!kiln_permuted_data(plan, &perm))
        return false;
    PASS_GUARD(lrn_channels_stay, perm.at[1] == 1);
    return aligned(plan, &perm);
}

/* The dims from the axis on are normalized together and scaled. */
static bool
plan_layer_normalization(KilnPermuted *plan)
{
    KilnPassContext *context = plan->context;
    const char *rule = plan->rule;
    const KilnType *x = kiln_permuted_type(plan, 0);
    KilnPerm perm;
    if (!kiln_permuted_data(plan, &perm))
        return false;
    const int64_t *attr = kiln_permuted_attr(plan, "axis");
    int axis = kiln_type_axis(x, *attr);
    for (int d = axis; d < perm.rank; d++)
        PASS_GUARD(normalized_stay, perm.at[d] == d);
    return aligned(plan, &perm);
}

/* Permutes an attribute of one number per spatial dim, or of one for each end. */
static void
permute_spatial(KilnPermuted *plan, const char *name, const KilnPerm *perm)
{
    KilnInts *list = kiln_permuted_attr(plan, name);
    uint32_t spatial = (uint32_t)perm->rank - 2;
    if (!list || !list->n)
        return;
    KilnInts old = *list;
    *list = kiln_ints_make(plan->arena, old.v, old.n);
    for (uint32_t i = 0; i < old.n; i++)
        list->v[i / spatial * spatial + (uint32_t)perm->at[i % spatial + 2] - 2] = old.v[i];
}

/* Elements of a window are summed, or compared, in an order that is the kernel's: along one dim it
 * is the same in any other. */
static bool
has_one_dim(const KilnInts *kernel)
{
    int n = 0;
    for (uint32_t i = 0; i < kernel->n; i++)
        n += kernel->v[i] != 1;
    return n <= 1;
}

static bool
plan_pool(KilnPermuted *plan)
{
    KilnPassContext *context = plan->context;
    const char *rule = plan->rule;
    const KilnInts *kernel = kiln_permuted_attr(plan, "kernel_shape");
    KilnPerm perm;
    if (!kiln_permuted_data(plan, &perm) || perm.rank < 3)
        return false;
    PASS_GUARD(pool_channels_stay, perm.at[0] == 0 && perm.at[1] == 1);
    PASS_GUARD(window_of_one_dim, has_one_dim(kernel));
    PASS_GUARD(no_indices, plan->node->n_results == 1);
    permute_spatial(plan, "strides", &perm);
    permute_spatial(plan, "dilations", &perm);
    permute_spatial(plan, "pads", &perm);
    permute_spatial(plan, "kernel_shape", &perm);
    return aligned(plan, &perm);
}

/* --- which op has which plan --- */

/* What has no row reduces, is element-wise, or has no plan. */
static const Planner planners[KILN_OP_END] = {
    [KILN_OP_quantize_linear] = plan_linear,
    [KILN_OP_dequantize_linear] = plan_linear,
    [KILN_OP_clip] = plan_first_operand, /* bounds are scalars */
    [KILN_OP_softmax] = plan_axis,
    [KILN_OP_log_softmax] = plan_axis,
    [KILN_OP_hardmax] = plan_axis,
    [KILN_OP_lp_normalization] = plan_axis,
    [KILN_OP_top_k] = plan_axis,
    [KILN_OP_split] = plan_axis,
    [KILN_OP_channel_shuffle] = plan_axis,
    [KILN_OP_arg_max] = kiln_permute_plan_arg_reduce,
    [KILN_OP_arg_min] = kiln_permute_plan_arg_reduce,
    [KILN_OP_cum_prod] = plan_cum_sum,
    [KILN_OP_cum_sum] = plan_cum_sum,
    [KILN_OP_concat] = plan_concat,
    [KILN_OP_slice] = plan_slice,
    [KILN_OP_pad] = plan_pad,
    [KILN_OP_tile] = plan_tile,
    [KILN_OP_expand] = plan_expand,
    [KILN_OP_gather] = kiln_permute_plan_gather,
    [KILN_OP_reshape] = kiln_permute_plan_reshape,
    [KILN_OP_flatten] = kiln_permute_plan_reshape,
    [KILN_OP_squeeze] = kiln_permute_plan_reshape,
    [KILN_OP_unsqueeze] = kiln_permute_plan_reshape,
    [KILN_OP_batch_normalization] = plan_batch_normalization,
    [KILN_OP_lrn] = plan_lrn,
    [KILN_OP_layer_normalization] = plan_layer_normalization,
    [KILN_OP_rms_normalization] = plan_layer_normalization,
    [KILN_OP_max_pool] = plan_pool,
    [KILN_OP_average_pool] = plan_pool,
    [KILN_OP_lp_pool] = plan_pool,
};

static Planner
planner_of(KilnOp op)
{
    if (planners[op])
        return planners[op];
    return kiln_op_has(op, KILN_TRAIT_REDUCES)       ? kiln_permute_plan_reduce
           : kiln_op_has(op, KILN_TRAIT_ELEMENTWISE) ? plan_broadcast
                                                     : NULL;
}

/* Ranks known, layouts plain: what every plan takes for granted. */
static bool
is_plain(const KilnNode *node)
{
    for (uint32_t i = 0; i < node->n_operands; i++) {
        const KilnValue *value = node->operands[i].value;
        if (value && value->type.layout)
            return false;
    }
    for (uint32_t r = 0; r < node->n_results; r++) {
        if (node->results[r].type.layout || node->results[r].type.rank < 0)
            return false;
    }
    return node->n_operands > 0 && node->operands[0].value && node->n_results > 0;
}

bool
kiln_permute_plan(KilnPermuted *plan)
{
    const KilnNode *node = plan->node;
    const KilnOpInfo *info = kiln_op_info(node->op);
    Planner planner = planner_of(node->op);
    if (!planner || !is_plain(node) ||
        (plan->want.rank >= 0 && plan->want.rank != node->results[0].type.rank))
        return false;
    plan->op = node->op;
    plan->attrs = kiln_op_attrs_new(node->op, plan->arena);
    if (plan->attrs)
        kiln_attrs_copy(info->attrs, info->n_attrs, plan->attrs, node->attrs, plan->arena);
    plan->n_operands = node->n_operands;
    plan->operands = kiln_arena_new0(plan->arena, KilnPermutedOperand, node->n_operands + 5);
    plan->results = kiln_arena_new0(plan->arena, KilnPerm, node->n_results);
    plan->has_view = false;
    return planner(plan);
}
