/* SPDX-License-Identifier: Apache-2.0 */
#include "passes/offload/offload_cost.h"

#include "graph/dim.h"
#include "graph/op/bounds.h"
#include "graph/op/concat.h"
#include "graph/op/conv.h"
#include "graph/op/matmul.h"

/* @tails: those of the nodes before it, by id. */
static const KilnNode *
product_of(const KilnNode *node, const KilnNode *const *tails)
{
    if (!kiln_op_has(node->op, KILN_TRAIT_ELEMENTWISE) || node->n_results != 1)
        return NULL;
    for (uint32_t i = 0; i < node->n_operands; i++) {
        const KilnValue *value = node->operands[i].value;
        const KilnNode *def = value ? value->def : NULL;
        if (!def || value->n_uses != 1 || def->function != node->function ||
            !kiln_type_same_shape(&value->type, &node->results[0].type))
            continue;
        if (def->op == KILN_OP_conv || def->op == KILN_OP_matmul || def->op == KILN_OP_gemm)
            return def;
        const KilnNode *product = tails[def->id];
        /* A residual first, then one activation. */
        if (product && def->n_operands == 2)
            return product;
    }
    return NULL;
}

const KilnNode **
kiln_find_tails(const KilnFunction *function)
{
    const KilnNode **tails = g_new0(const KilnNode *, (gsize)function->next_id + 1);
    kiln_foreach_node (node, function)
        tails[node->id] = product_of(node, tails);
    return tails;
}

/* Its operands are computed where they will lie, as parts of the result that follow each other. */
static bool
is_joined_in_place(const KilnNode *concat)
{
    const KilnType *y = &concat->results[0].type;
    int axis = kiln_type_axis(y, kiln_attrs(concat, concat)->axis);
    for (int i = 0; i < axis; i++) {
        if (y->dims[i] != 1)
            return false;
    }
    for (uint32_t i = 0; i < concat->n_operands; i++) {
        const KilnValue *part = concat->operands[i].value;
        if (!part->def || kiln_op_has(part->def->op, KILN_TRAIT_VIEW) ||
            part->def->op == KILN_OP_const)
            return false;
    }
    return true;
}

double
kiln_own_us(const KilnOffloadCosts *costs, const KilnNode *node, bool fused)
{
    if (fused) {
        const KilnRates *rates = kiln_target_rates(costs->target);
        const KilnType likely = kiln_type_at_hints(&node->results[0].type);
        double residual = (double)kiln_type_bytes(&likely);
        bool binary = node->n_operands == 2 && node->op != KILN_OP_clip;
        return binary ? rates->tail_byte * residual
                      : rates->tail_flop * (double)kiln_node_cost(node).flops;
    }
    if (node->op == KILN_OP_concat && is_joined_in_place(node))
        return 0;
    return kiln_node_us(costs->target, node, costs->any_algorithm);
}

/* Gives @type the least numbers, and keeps it as it was at the end of @kept. */
static void
shrink(KilnType *type, GArray *kept)
{
    g_array_append_val(kept, *type);
    for (int d = 0; d < type->rank; d++) {
        int64_t most;
        if (!type->open[d])
            continue;
        kiln_dim_range(type->open[d], &type->dims[d], &most);
        type->dims[d] = MAX(type->dims[d], (int64_t)1);
        type->open[d] = NULL;
    }
}

bool
kiln_offload_holds_at_least(const KilnOffloadCosts *costs, KilnNode *node)
{
    g_autoptr(GPtrArray) types = g_ptr_array_new();
    g_autoptr(GArray) kept = g_array_new(FALSE, FALSE, sizeof(KilnType));
    for (uint32_t i = 0; i < node->n_operands; i++) {
        if (node->operands[i].value)
            g_ptr_array_add(types, &node->operands[i].value->type);
    }
    for (uint32_t r = 0; r < node->n_results; r++)
        g_ptr_array_add(types, &node->results[r].type);
    for (guint i = 0; i < types->len; i++)
        shrink(g_ptr_array_index(types, i), kept);
    double own = kiln_own_us(costs, node, false);
    double vendor = costs->vendor->node_us(node, 0) + costs->vendor->call_us;
    for (guint i = types->len; i-- > 0;) /* a value may be there twice */
        *(KilnType *)g_ptr_array_index(types, i) = g_array_index(kept, KilnType, i);
    return vendor <= own;
}

bool
kiln_is_layouted(const KilnVendor *vendor, const KilnNode *node, KilnVendorRole role,
                 const bool *layouted)
{
    if (role == KILN_VENDOR_NONE || node->results[0].type.rank < 3)
        return false;
    if (role == KILN_VENDOR_ANCHOR)
        return vendor->wants_layout(node);
    for (uint32_t i = 0; i < node->n_operands; i++) {
        const KilnValue *value = node->operands[i].value;
        if (value && value->def && value->def->function == node->function &&
            layouted[value->def->id])
            return true;
    }
    return false;
}

double
kiln_reorder_us(const KilnTarget *target, const KilnType *type)
{
    const KilnRates *rates = kiln_target_rates(target);
    const KilnType likely = kiln_type_at_hints(type);
    return rates->relayout_byte * (double)kiln_type_bytes(&likely) + rates->relayout_call;
}
