/* SPDX-License-Identifier: Apache-2.0 */
/* inline-branches: an `if` whose condition is known becomes the branch that it takes.
 *
 *     c = true                             x
 *     y = if(c) then { neg(x) }     =>     |
 *               else { exp(x) }           neg
 *
 *   inline   by a literal, or by integers that are known
 *
 * The nodes of the branch stand where the `if` stood; the other branch goes with it. A branch with
 * subgraphs of its own stays until those are inlined, which happens before where their conditions
 * are known, too: pipelines run on subgraphs before what is around them. Where the branch says
 * more of a shape than the `if` did, its readers see that.
 *
 * requires nothing, preserves nothing; class E. Must run behind what finds conditions:
 * simplify-shapes, constant-fold. */
#include "graph/outline.h"
#include "passes/pass.h"

static const char rule[] = "inline";

/* The value of @condition in *@out, where it is known. */
static bool
is_known(const KilnValue *condition, bool *out)
{
    uint8_t element[8] = { 0 };
    const KilnConstant *constant = kiln_value_constant(condition);
    g_autoptr(KilnTensor) tensor =
        constant ? kiln_tensor_copy(constant->tensor) : kiln_value_known_tensor(condition);
    if (!tensor || !kiln_tensor_is_splat(tensor, 1, element))
        return false;
    *out = element[0] != 0;
    return true;
}

static bool
has_subgraphs(const KilnFunction *branch)
{
    kiln_foreach_node (node, branch) {
        kiln_foreach_region (region, node)
            return true;
    }
    return false;
}

/* Whatever is of type @branch is of type @type, which may say less of its shape. */
static bool
says_no_less(const KilnType *branch, const KilnType *type)
{
    KilnType shape = *branch;
    if (type->rank >= 0 && branch->rank != type->rank)
        return false;
    for (int d = 0; d < type->rank; d++) {
        bool open = type->dims[d] < 0 && !type->dim_names[d];
        shape.dims[d] = open ? type->dims[d] : branch->dims[d];
        shape.dim_names[d] = open ? NULL : branch->dim_names[d];
    }
    shape.rank = type->rank;
    return kiln_type_equal(&shape, type);
}

static bool
may_inline(KilnPassContext *context, const KilnNode *node, const KilnFunction **out_branch)
{
    bool taken = false;
    GUARD(known_condition, is_known(kiln_node_operand(node, 0), &taken));
    const KilnAttrs_if *attrs = kiln_attrs(node, if);
    const KilnFunction *branch = taken ? attrs->then_branch : attrs->else_branch;
    GUARD(flat, !has_subgraphs(branch));
    const KilnNode *results = kiln_function_return(branch);
    for (uint32_t i = 0; i < node->n_results; i++)
        GUARD(type, says_no_less(&results->operands[i].value->type, &node->results[i].type));
    *out_branch = branch;
    return true;
}

/* Shapes that a branch said make more of what follows known. */
static gboolean
refine_types(KilnFunction *function, GError **error)
{
    kiln_foreach_node (node, function) {
        bool refined;
        if (!kiln_node_refine(node, &refined, error))
            return FALSE;
    }
    return TRUE;
}

gboolean
kiln_pass_inline_branches(KilnFunction *function, KilnPassContext *context, bool *changed,
                          GError **error)
{
    bool retyped = false;
    *changed = false;
    if (!kiln_function_order(function)->n_of_op[KILN_OP_if])
        return TRUE;
    kiln_foreach_node_safe (node, function) {
        const KilnFunction *branch;
        if (node->op != KILN_OP_if || !may_inline(context, node, &branch))
            continue;
        const KilnNode *results = kiln_function_return(branch);
        for (uint32_t i = 0; i < node->n_results; i++) {
            const KilnType *type = &results->operands[i].value->type;
            retyped |= !kiln_type_equal(&node->results[i].type, type);
            node->results[i].type = *type;
        }
        kiln_pass_note(context, rule, "%s", kiln_node_label(node));
        if (!kiln_node_inline(node, branch, error))
            return FALSE;
        *changed = true;
    }
    return !retyped || refine_types(function, error);
}
