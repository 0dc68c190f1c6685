/* SPDX-License-Identifier: Apache-2.0 */
/* Passes that go wrong on purpose, each in its own way: what kiln bisect is tested with. */
#include <passes/kiln-pass.h>
#include <graph/op/activation.h>
#include <graph/op/math.h>
#include <graph/op/multiplicative.h>
#include <graph/op/reduce.h>

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

/* The mean of an open dim becomes a sum over its likely number: it is right for the hint alone. */
static bool
mean_of_hint(KilnNode *mean, GError **error)
{
    const KilnAttrs_reduce_mean *attrs = (const KilnAttrs_reduce_mean *)mean->attrs;
    const KilnValue *x = kiln_node_operand(mean, 0);
    const KilnAttrs_reduce_sum same = { .keepdims = attrs->keepdims,
                                        .noop_with_empty_axes = attrs->noop_with_empty_axes };
    KilnValue *operands[2] = { mean->operands[0].value, kiln_node_operand(mean, 1) };
    int64_t likely = kiln_type_likely_elements(&x->type) /
                     MAX(kiln_type_likely_elements(&mean->results[0].type), 1);
    KilnType scalar = kiln_type_scalar(x->type.dtype);
    KilnValue *factors[2];
    factors[0] = kiln_build(mean->function, mean, KILN_OP_reduce_sum, &same, operands,
                            mean->n_operands, error);
    factors[1] = kiln_build_constant(mean->function, mean, "share",
                                     kiln_tensor_new_splat(&scalar, 1 / (double)likely));
    KilnValue *product =
        factors[0] ? kiln_build(mean->function, mean, KILN_OP_mul, NULL, factors, 2, error) : NULL;
    if (!product)
        return false;
    kiln_value_replace(&mean->results[0], product);
    kiln_node_remove(mean);
    return true;
}

static gboolean
mean_of_hints(KilnFunction *function, KilnPassContext *context, bool *changed, GError **error)
{
    kiln_foreach_node_safe (node, function) {
        if (node->op != KILN_OP_reduce_mean)
            continue;
        kiln_pass_note(context, "mean", "%s", kiln_node_label(node));
        if (!mean_of_hint(node, error))
            return FALSE;
        *changed = true;
    }
    return TRUE;
}

/* A slice begins where it does with the numbers at hand, whatever the run brings. */
static gboolean
freeze_starts(KilnIRFunction *function, KilnPassContext *context, bool *changed, GError **error)
{
    (void)error;
    kiln_foreach_instr (instr, function) {
        if (instr->kind != KILN_INSTR_slice || !kiln_instr_attrs(instr, slice)->starts.open)
            continue;
        kiln_instr_attrs(instr, slice)->starts.open = NULL;
        kiln_instr_touch(instr);
        kiln_pass_note(context, "freeze", "%s", kiln_instr_label(instr));
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
    { .id = "mean-of-hints",
      .level = KILN_LEVEL_GRAPH,
      .numerics = KILN_NUMERICS_U,
      .summary = "takes open dims for their hints",
      .run_graph = mean_of_hints },
    { .id = "freeze-starts",
      .level = KILN_LEVEL_IR,
      .summary = "takes open starts for what they are here",
      .run_ir = freeze_starts },
};
KILN_PASS_PLUGIN(passes)
