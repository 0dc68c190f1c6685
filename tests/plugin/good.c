/* SPDX-License-Identifier: Apache-2.0 */
/* A plug-in as an author outside the tree would write it: a list of rules and a pass by hand. */

#include <passes/kiln-pass.h>
#include <graph/op/activation.h>
#include <graph/op/structure.h>

typedef struct {
    bool deep;
} SoftenOptions;

static const KilnAttrInfo soften_options[] = {
    { "deep", KILN_ATTR_BOOL, offsetof(SoftenOptions, deep), { .i = false } },
};
static const KilnOptionTable soften_table = { soften_options, NULL, G_N_ELEMENTS(soften_options),
                                              sizeof(SoftenOptions) };

static bool
to_softsign(KilnMatch *match)
{
    KilnValue *x = kiln_match_value(match, "x");
    const SoftenOptions *options = (const SoftenOptions *)kiln_pass_options(match->context);
    GUARD(deep_enough, !options->deep || x->def);
    KilnValue *soft = kiln_match_build(match, KILN_OP_softsign, NULL, &x, 1);
    return soft && kiln_match_replace(match, soft);
}

static const KilnRule rules[] = {
    LOSSY_RULE("tanh-to-softsign", KILN_FLAG(finite_math), "(tanh ?x)", to_softsign),
};

static const KilnRuleList soften = RULE_LIST(rules, FORWARD);

static gboolean
drop_identities(KilnFunction *function, KilnPassContext *context, bool *changed, GError **error)
{
    (void)error;
    kiln_foreach_node_safe (node, function) {
        if (node->op != KILN_OP_identity)
            continue;
        kiln_pass_note(context, "drop", "%s", kiln_node_label(node));
        kiln_value_replace(kiln_node_result(node, 0), kiln_node_operand(node, 0));
        kiln_node_remove(node);
        *changed = true;
    }
    return TRUE;
}

static gboolean
count_copies(KilnIRFunction *function, KilnPassContext *context, bool *changed, GError **error)
{
    (void)changed, (void)error;
    kiln_foreach_instr (instr, function) {
        if (instr->kind == KILN_INSTR_copy)
            kiln_pass_note(context, "copy", "%s", kiln_instr_label(instr));
    }
    return TRUE;
}

static const KilnPassInfo passes[] = {
    { .id = "soften",
      .level = KILN_LEVEL_GRAPH,
      .numerics = KILN_NUMERICS_L,
      .summary = "softsign for tanh",
      .options = &soften_table,
      .rules = &soften },
    { .id = "drop-identities",
      .level = KILN_LEVEL_GRAPH,
      .numerics = KILN_NUMERICS_E,
      .summary = "remove identities",
      .run_graph = drop_identities },
    { .id = "count-copies",
      .level = KILN_LEVEL_IR,
      .numerics = KILN_NUMERICS_E,
      .summary = "note every copy",
      .run_ir = count_copies },
};
KILN_PASS_PLUGIN(passes)
