/* SPDX-License-Identifier: Apache-2.0 */
/* inline-branches: an `if` whose condition is known becomes the branch that it takes.
 *
 *     c = true                             x
 *     y = if(c) then { neg(x) }     =>     |
 *               else { exp(x) }           neg
 *
 *   inline   by a literal, or by integers that are known
 *
 * The nodes of the branch stand where the `if` stood, with subgraphs of their own; the other branch
 * goes with it. Where the branch says more of a shape than the `if` did, its readers see that.
 *
 * requires nothing, preserves nothing; class E. Must run behind what finds conditions:
 * simplify-shapes, constant-fold. */
#include "graph/module/flow.h"
#include "graph/op/flow.h"
#include "passes/pass.h"

static const char rule[] = "inline";

/* Whatever is of type @branch is of type @type, which may say less of its shape. */
static bool
says_no_less(const KilnType *branch, const KilnType *type)
{
    KilnType shape = *branch;
    if (type->rank >= 0 && branch->rank != type->rank)
        return false;
    for (int d = 0; d < type->rank; d++) {
        bool open = !kiln_type_knows_dim(type, d);
        shape.dims[d] = open ? type->dims[d] : branch->dims[d];
        shape.open[d] = open ? NULL : branch->open[d];
    }
    shape.rank = type->rank;
    return kiln_type_equal(&shape, type);
}

static bool
may_inline(KilnPassContext *context, const KilnNode *node, const KilnFunction **out_branch)
{
    const KilnFunction *branch = kiln_if_taken(node);
    PASS_GUARD(known_condition, branch != NULL);
    const KilnNode *results = kiln_function_return(branch);
    for (uint32_t i = 0; i < node->n_results; i++)
        PASS_GUARD(type, says_no_less(&results->operands[i].value->type, &node->results[i].type));
    *out_branch = branch;
    return true;
}

GRAPH_PASS(inline_branches);

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
        g_autofree KilnType *types = g_new0(KilnType, node->n_results + 1);
        for (uint32_t i = 0; i < node->n_results; i++)
            types[i] = node->results[i].type;
        kiln_pass_note(context, rule, "%s", kiln_node_label(node));
        if (!kiln_if_inline(node, branch, error))
            return FALSE;
        for (uint32_t i = 0; i < node->n_results; i++)
            retyped |= !kiln_type_equal(&types[i], &node->results[i].type);
        *changed = true;
    }
    /* Shapes that a branch said make more of what follows known. */
    return !retyped || kiln_function_refine(function, error);
}
