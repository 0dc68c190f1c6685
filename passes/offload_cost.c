/* SPDX-License-Identifier: Apache-2.0 */
/* The target's kernels say what they take (KilnKernel.cost) where there is a model for them, fitted
 * to measurements. For the rest there are rates, measured with kiln-bench-model on the machine of
 * these measurements (bench/costs/operators.csv): both sides of the scales come from one machine.
 */
#include "passes/offload_cost.h"

/* Operations per microsecond, and bytes per microsecond where those are what counts. */
// clang-format off
static const struct {
    KilnOp op;
    double flops_per_us;
    double bytes_per_us;
} rates[] = {
    { KILN_OP_conv,           165e3, 40e3 },
    { KILN_OP_conv_transpose,  90e3, 40e3 },
    { KILN_OP_matmul,         180e3, 40e3 },
    { KILN_OP_gemm,           180e3, 40e3 },
    { KILN_OP_max_pool,        25e3, 40e3 },
    { KILN_OP_average_pool,    25e3, 40e3 },
};
static const double other_flops_per_us = 60e3; /* element-wise, reductions, normalisations */
static const double other_bytes_per_us = 40e3; /* through L2 and L3 */
static const double tail_flops_per_us = 60e3;  /* on the way out of a product */
static const double tail_bytes_per_us = 80e3;  /* a residual on the way in */
static const double reorder_bytes_per_us = 35e3; /* read and written */
// clang-format on

const KilnNode *
kiln_tail_of_product(const KilnNode *node)
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
        const KilnNode *product = kiln_tail_of_product(def);
        /* A residual first, then one activation. */
        if (product && def->n_operands == 2)
            return product;
    }
    return NULL;
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
    KilnCost work = kiln_node_cost(node);
    if (fused) {
        double read = (double)kiln_type_bytes(&node->results[0].type) * (node->n_operands - 1);
        bool binary = node->n_operands == 2;
        return (double)work.flops / tail_flops_per_us + (binary ? read / tail_bytes_per_us : 0);
    }
    if (node->op == KILN_OP_concat && is_joined_in_place(node))
        return 0;
    double us = kiln_node_us(costs->target, node, costs->any_algorithm);
    if (us >= 0)
        return us;
    double flops = other_flops_per_us, bytes = other_bytes_per_us;
    for (size_t i = 0; i < G_N_ELEMENTS(rates); i++) {
        if (rates[i].op == node->op) {
            flops = rates[i].flops_per_us;
            bytes = rates[i].bytes_per_us;
        }
    }
    return MAX((double)work.flops / flops, (double)work.bytes / bytes);
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
kiln_reorder_us(const KilnType *type)
{
    return 2.0 * (double)kiln_type_bytes(type) / reorder_bytes_per_us;
}
