/* SPDX-License-Identifier: Apache-2.0 */
/* Passes that go wrong on purpose, each in its own way: what kiln bisect is tested with. */
#include <passes/kiln-pass.h>
#include <graph/op/activation.h>
#include <graph/op/math.h>

#include <stdlib.h>

static bool
drop(KilnMatch *match)
{
    return kiln_match_replace(match, kiln_match_value(match, "x"));
}

static const KilnRule rules[] = {
    RULE("drop-negation", E, "(neg ?x)", drop),
};

static const KilnRuleList drop_negations = RULE_LIST(rules, FORWARD);

/* A result that is not what inference says. */
static gboolean
bend_types(KilnFunction *function, KilnPassContext *context, bool *changed, GError **error)
{
    (void)context, (void)error;
    kiln_foreach_node (node, function) {
        if (node->op != KILN_OP_tanh || node->results[0].type.rank == 0)
            continue;
        node->results[0].type.dims[0] += 1;
        *changed = true;
    }
    return TRUE;
}

static gboolean
crash(KilnFunction *function, KilnPassContext *context, bool *changed, GError **error)
{
    (void)context, (void)changed, (void)error;
    kiln_foreach_node (node, function) {
        if (node->op == KILN_OP_exp)
            abort();
    }
    return TRUE;
}

/* a - b becomes b - a. */
static gboolean
swap_operands(KilnIRFunction *function, KilnPassContext *context, bool *changed, GError **error)
{
    (void)error;
    kiln_foreach_instr (instr, function) {
        if (instr->kind != KILN_INSTR_sub)
            continue;
        KilnBuffer *a = kiln_instr_operand(instr, 1), *b = kiln_instr_operand(instr, 2);
        kiln_instr_set_operand(instr, 1, b);
        kiln_instr_set_operand(instr, 2, a);
        kiln_pass_note(context, "swap", "%s", kiln_instr_label(instr));
        *changed = true;
    }
    return TRUE;
}

static const KilnPassInfo passes[] = {
    { .id = "drop-negations",
      .level = KILN_LEVEL_GRAPH,
      .summary = "loses signs",
      .rules = &drop_negations },
    { .id = "bend-types",
      .level = KILN_LEVEL_GRAPH,
      .summary = "leaves a type that is wrong",
      .run_graph = bend_types },
    { .id = "crash", .level = KILN_LEVEL_GRAPH, .summary = "ends the process", .run_graph = crash },
    { .id = "swap-operands",
      .level = KILN_LEVEL_IR,
      .summary = "subtracts the wrong way",
      .run_ir = swap_operands },
};
KILN_PASS_PLUGIN(passes)
