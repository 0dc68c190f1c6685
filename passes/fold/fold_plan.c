/* SPDX-License-Identifier: Apache-2.0 */
#include "passes/fold/fold_plan.h"

#include "graph/base/number.h"
#include "graph/module/sweep.h"
#include "graph/op/cast.h"
#include "graph/op/concat.h"
#include "graph/op/expand.h"
#include "graph/op/flow.h"
#include "graph/op/generate.h"
#include "graph/op/offload.h"
#include "graph/op/quantize.h"
#include "graph/op/reshape.h"
#include "graph/op/slice.h"
#include "graph/op/structure.h"
#include "graph/op/transpose.h"
#include "passes/fold/constant_rules.h"
#include "passes/fold/constness.h"

#include <string.h>

bool
kiln_op_only_moves(KilnOp op)
{
    switch (op) {
    case KILN_OP_identity:
    case KILN_OP_reshape:
    case KILN_OP_flatten:
    case KILN_OP_squeeze:
    case KILN_OP_unsqueeze:
    case KILN_OP_transpose:
    case KILN_OP_split:
    case KILN_OP_slice:
    case KILN_OP_expand:
    case KILN_OP_tile:
    case KILN_OP_depth_to_space:
    case KILN_OP_space_to_depth:
    case KILN_OP_channel_shuffle:
        return true;
    default:
        return false;
    }
}

static bool
is_known(const KilnValue *value)
{
    return value->known && kiln_type_elements(&value->type) == value->known->n;
}

bool
kiln_fold_is_literal(const KilnValue *value)
{
    return is_known(value) || kiln_value_constant(value);
}

const KilnNode *
kiln_fold_reader(const KilnFoldPlan *plan, const KilnUse *use)
{
    const KilnNode *node = use->user;
    while (node->function != plan->function)
        node = node->function->owner;
    return node;
}

bool
kiln_fold_holds_branches_only(const KilnNode *node)
{
    if (!kiln_op_has(node->op, KILN_TRAIT_REGION))
        return true;
    if (node->op != KILN_OP_if)
        return false;
    kiln_foreach_region (region, node) {
        kiln_foreach_node (inner, region) {
            if (!kiln_fold_holds_branches_only(inner))
                return false;
        }
    }
    return true;
}

/* --- operands --- */

static const KilnFoldNode *
planned(const KilnFoldPlan *plan, const KilnValue *value)
{
    const KilnNode *def = value->def;
    return def && def->function == plan->function && def->id < plan->n && def->op != KILN_OP_const
               ? &plan->nodes[def->id]
               : NULL;
}

/* The first stage at which @value can be read. */
static KilnConstness
available(const KilnFoldPlan *plan, const KilnValue *value)
{
    if (kiln_fold_is_literal(value))
        return KILN_CONSTNESS_LITERAL;
    const KilnFoldNode *node = planned(plan, value);
    if (node)
        return node->earliest;
    return value->def ? KILN_CONSTNESS_VARYING : plan->when[kiln_value_constness(value)];
}

static bool
is_splat(const KilnFoldPlan *plan, const KilnValue *value)
{
    uint8_t element[8];
    const KilnConstant *constant = kiln_value_constant(value);
    if (constant)
        return !constant->type.quant && !constant->type.layout &&
               kiln_tensor_is_splat(constant->tensor, 1, element);
    const KilnFoldNode *node = planned(plan, value);
    return node && node->splat;
}

/* Bytes that stay alive for @value as it is: random weights take their place once bound. */
static int64_t
stored_bytes(const KilnValue *value)
{
    const KilnConstant *constant = kiln_value_constant(value);
    if (constant && (constant->tensor->kind == KILN_TENSOR_NORMAL ||
                     constant->tensor->kind == KILN_TENSOR_UNIFORM))
        return kiln_type_bytes(&constant->type);
    if (constant)
        return kiln_tensor_storage(constant->tensor);
    return is_known(value) ? 0 : kiln_type_bytes(&value->type);
}

static bool
read_before(const KilnNode *node, uint32_t i)
{
    for (uint32_t k = 0; k < i && k < 16; k++) {
        if (node->operands[k].value == node->operands[i].value)
            return true;
    }
    return false;
}

/* Bytes of the constants behind @value, which no node of the plan computes. What was folded before
 * goes on counting as what it came from: folding again must find the same. */
static int64_t
literal_base(const KilnValue *value)
{
    const KilnConstant *constant = kiln_value_constant(value);
    return constant && constant->base >= 0 ? constant->base
           : is_known(value)               ? kiln_type_bytes(&value->type)
                                           : stored_bytes(value);
}

static void
add_base(const KilnFoldPlan *plan, const KilnValue *value, KilnFoldNode *out)
{
    const KilnFoldNode *from = kiln_fold_is_literal(value) ? NULL : planned(plan, value);
    int64_t bytes = from ? from->base : literal_base(value);
    const KilnValue *source = from ? from->source : value;
    if (bytes > 0 && (!out->source || bytes > stored_bytes(out->source)))
        out->source = source;
    out->base = kiln_add_capped(out->base, MAX(bytes, (int64_t)0));
}

/* Values that the subgraphs of @node read around it, each once. */
static GPtrArray *
list_captures(const KilnNode *node)
{
    g_autoptr(GHashTable) met = g_hash_table_new(NULL, NULL);
    g_autoptr(GPtrArray) all = g_ptr_array_new();
    GPtrArray *list = g_ptr_array_new();
    if (kiln_op_has(node->op, KILN_TRAIT_REGION))
        kiln_node_add_captures(node, all);
    for (guint i = 0; i < all->len; i++) {
        if (g_hash_table_add(met, g_ptr_array_index(all, i)))
            g_ptr_array_add(list, g_ptr_array_index(all, i));
    }
    return list;
}

/* What the constants behind the operands take, each operand counted once. A small result is as good
 * as a constant, and counts as one for what is computed from it. */
static void
find_base(const KilnFoldPlan *plan, const KilnNode *node, KilnFoldNode *out)
{
    g_autoptr(GPtrArray) captures = list_captures(node);
    for (uint32_t i = 0; i < node->n_operands; i++) {
        if (node->operands[i].value && !read_before(node, i))
            add_base(plan, node->operands[i].value, out);
    }
    for (guint i = 0; i < captures->len; i++)
        add_base(plan, g_ptr_array_index(captures, i), out);
    if (kiln_node_is_known(node))
        out->base = out->bytes;
    else if (out->bytes <= KILN_FOLD_SMALL)
        out->base = MAX(out->base, out->bytes);
}

/* --- what a node is --- */

/* What subgraphs do counts for the node that has them: its mark says so. */
static bool
is_candidate(const KilnFoldPlan *plan, const KilnNode *node)
{
    const uint32_t apart = KILN_TRAIT_RANDOM | KILN_TRAIT_STATE | KILN_TRAIT_SIDE_EFFECT |
                           KILN_TRAIT_TERMINATOR | (plan->ahead ? 0 : KILN_TRAIT_REGION);
    return node->op != KILN_OP_const && node->op != KILN_OP_quantize_linear &&
           node->op != KILN_OP_vendor_executable && node->n_results > 0 &&
           !(kiln_op_info(node->op)->traits & apart);
}

/* @a and @b are surely the same element, over and over. */
static bool
same_splats(const KilnFoldPlan *plan, const KilnValue *a, const KilnValue *b)
{
    uint8_t one[8] = { 0 }, other[8] = { 0 };
    const KilnConstant *first = kiln_value_constant(a), *second = kiln_value_constant(b);
    if (!is_splat(plan, a) || !is_splat(plan, b))
        return false;
    return a == b ||
           (first && second && kiln_tensor_is_splat(first->tensor, 1, one) &&
            kiln_tensor_is_splat(second->tensor, 1, other) && memcmp(one, other, sizeof one) == 0);
}

/* A node that joins its operands gives equal elements where all of theirs are. */
static bool
joins_splats(const KilnFoldPlan *plan, const KilnNode *node)
{
    for (uint32_t i = 0; i < node->n_operands; i++) {
        if (!same_splats(plan, node->operands[0].value, node->operands[i].value))
            return false;
    }
    return true;
}

static bool
reduces_splat(const KilnFoldPlan *plan, const KilnNode *node)
{
    const KilnValue *value = node->operands[0].value;
    return is_splat(plan, value) && kiln_type_elements(&value->type) > 0 &&
           kiln_type_elements(&node->results[0].type) > 0;
}

/* All results of @node are equal elements, found without computing more than one of them. */
static bool
gives_splat(const KilnFoldPlan *plan, const KilnNode *node)
{
    if (node->op == KILN_OP_constant_of_shape) {
        const KilnConstant *value = kiln_attrs(node, constant_of_shape)->value;
        uint8_t element[8];
        return !value || kiln_tensor_is_splat(value->tensor, 1, element);
    }
    if (node->results[0].type.quant || node->results[0].type.layout)
        return false;
    if (kiln_op_only_moves(node->op))
        return is_splat(plan, node->operands[0].value);
    if (node->op == KILN_OP_concat)
        return joins_splats(plan, node);
    if (kiln_op_has(node->op, KILN_TRAIT_REDUCES))
        return reduces_splat(plan, node);
    const uint32_t each = KILN_TRAIT_ELEMENTWISE;
    if (!kiln_op_has(node->op, each) || node->op == KILN_OP_dequantize_linear ||
        node->op == KILN_OP_rescale_quantized)
        return false;
    for (uint32_t i = 0; i < node->n_operands; i++) {
        const KilnValue *value = node->operands[i].value;
        if (value && !is_splat(plan, value))
            return false;
    }
    return node->n_operands > 0;
}

static int64_t
result_bytes(const KilnNode *node)
{
    int64_t bytes = 0;
    if (kiln_constant_rule_finds_shape(node->op)) {
        const KilnType *type = &node->operands[0].value->type;
        bool fits = kiln_type_elements(type) >= 0 &&
                    !__builtin_mul_overflow(kiln_type_elements(type),
                                            (int64_t)sizeof(int64_t) * type->rank, &bytes);
        return fits ? bytes : -1; /* at most */
    }
    for (uint32_t i = 0; i < node->n_results; i++) {
        int64_t one = kiln_type_bytes(&node->results[i].type);
        if (one < 0)
            return -1;
        bytes = kiln_add_capped(bytes, one);
    }
    return bytes;
}

static int64_t
operand_bytes(const KilnNode *node)
{
    const KilnValue *value = kiln_node_operand(node, 0);
    return value ? kiln_type_bytes(&value->type) : 0;
}

static void
describe(const KilnFoldPlan *plan, const KilnNode *node, KilnFoldNode *out)
{
    const KilnValue *first = kiln_node_operand(node, 0);
    const KilnFoldNode *from = first ? planned(plan, first) : NULL;
    bool converts = node->op == KILN_OP_cast || node->op == KILN_OP_dequantize_linear;
    out->bytes = result_bytes(node);
    find_base(plan, node, out);
    out->splat = gives_splat(plan, node);
    if (out->splat && !plan->ahead)
        out->bytes = 0;
    out->grown = (converts && out->bytes > operand_bytes(node)) ||
                 (kiln_op_only_moves(node->op) && from && from->grown);
    out->repeats = (node->op == KILN_OP_expand || node->op == KILN_OP_tile) &&
                   out->bytes > operand_bytes(node);
    out->view = kiln_op_has(node->op, KILN_TRAIT_VIEW) && (!from || from->view);
}

static void
plan_earliest(KilnFoldPlan *plan, const KilnNode *node)
{
    KilnFoldNode *info = &plan->nodes[node->id];
    KilnConstness stage = plan->when[node->mark];
    /* Known integers are at hand wherever they are read. */
    if (kiln_node_is_known(node) && plan->ahead)
        stage = KILN_CONSTNESS_VARYING;
    if (plan->ahead && kiln_constant_rule_finds_shape(node->op))
        stage = KILN_CONSTNESS_VARYING;
    if (stage == KILN_CONSTNESS_VARYING)
        return;
    bool type_only = kiln_op_reads_type_only(node->op) || kiln_node_is_known(node);
    for (uint32_t i = 0; i < node->n_operands && !(type_only && !plan->ahead); i++) {
        if (node->operands[i].value)
            stage = MIN(stage, available(plan, node->operands[i].value));
    }
    g_autoptr(GPtrArray) captures = list_captures(node);
    for (guint i = 0; i < captures->len; i++)
        stage = MIN(stage, available(plan, g_ptr_array_index(captures, i)));
    describe(plan, node, info);
    if (stage != KILN_CONSTNESS_VARYING && is_candidate(plan, node) && info->bytes >= 0 &&
        plan->may_compute(plan, node))
        info->earliest = stage;
    plan->any |= info->earliest != KILN_CONSTNESS_VARYING;
}

/* --- ends --- */

/* Bytes that storing the results of @node adds, where they take the place of their source. */
static int64_t
charge_of(const KilnFoldPlan *plan, const KilnFoldNode *info)
{
    const KilnValue *source = info->source;
    bool goes = source && source->n_uses == 1 && !g_hash_table_contains(plan->credited, source);
    return MAX(info->bytes - (goes ? stored_bytes(source) : 0), (int64_t)0);
}

bool
kiln_fold_plan_accepts(KilnFoldPlan *plan, const KilnNode *node)
{
    KilnFoldNode *info = &plan->nodes[node->id];
    if (info->end)
        return true;
    info->charge = charge_of(plan, info);
    if (!plan->may_store(plan, node))
        return false;
    info->end = true;
    plan->charged = kiln_add_capped(plan->charged, info->charge);
    if (info->source)
        g_hash_table_add(plan->credited, (gpointer)info->source);
    return true;
}

/* The stages that read the results of @node. */
static uint8_t
reading_stages(const KilnFoldPlan *plan, const KilnNode *node)
{
    uint8_t stages = 0;
    for (uint32_t i = 0; i < node->n_results; i++) {
        kiln_foreach_use (use, &node->results[i])
            stages |= plan->nodes[kiln_fold_reader(plan, use)->id].stages;
    }
    return stages;
}

/* Whether a reader takes an extent from the results of @node, or from what it computes of them.
 * Readers come first. Of readers in other functions nothing is known. */
static bool
decides_shape(const KilnFoldPlan *plan, const KilnNode *node)
{
    for (uint32_t i = 0; i < node->n_results; i++) {
        kiln_foreach_use (use, &node->results[i]) {
            const KilnNode *user = use->user;
            if (user->function != plan->function || plan->nodes[user->id].decides_shape ||
                kiln_op_is_shape_operand(user->op, use->index))
                return true;
        }
    }
    return false;
}

static void
plan_stages(KilnFoldPlan *plan, const KilnNode *node)
{
    const uint32_t stays = KILN_TRAIT_SIDE_EFFECT | KILN_TRAIT_STATE;
    KilnFoldNode *info = &plan->nodes[node->id];
    uint8_t readers = reading_stages(plan, node), earliest = (uint8_t)(1u << info->earliest);
    /* What nothing reads is still there, and must not go on reading literals that are gone. */
    if ((kiln_op_info(node->op)->traits & stays) || (!plan->ahead && kiln_node_is_dead(node)))
        readers |= 1u << KILN_CONSTNESS_VARYING;
    bool ahead = info->earliest != KILN_CONSTNESS_VARYING, later = (readers & ~earliest) != 0;
    bool stored = ahead && later && kiln_fold_plan_accepts(plan, node);
    info->stages = stored || (!ahead && readers) ? earliest : readers;
    info->decides_shape = decides_shape(plan, node);
}

void
kiln_fold_plan_make(KilnFoldPlan *plan)
{
    plan->n = plan->function->next_id;
    plan->nodes = g_new0(KilnFoldNode, (gsize)plan->n + 1);
    plan->credited = g_hash_table_new(NULL, NULL);
    kiln_foreach_ordered (node, plan->function)
        plan_earliest(plan, node);
    if (!plan->any && !plan->ahead)
        return;
    kiln_foreach_ordered_reverse (node, plan->function)
        plan_stages(plan, node);
}

void
kiln_fold_plan_clear(KilnFoldPlan *plan)
{
    g_clear_pointer(&plan->nodes, g_free);
    g_clear_pointer(&plan->credited, g_hash_table_unref);
}
