/* SPDX-License-Identifier: Apache-2.0 */
/* A plug-in that asks about open dims, at both levels. */
#include <passes/kiln-pass.h>
#include <graph/dim.h>
#include <graph/op/additive.h>
#include <graph/size.h>

#include <string.h>

/* --- graphs --- */

/* "dim 0 = past + t in 2..64, likely 24, a multiple of 1" */
static void
tell_dim(KilnPassContext *context, const KilnValue *value, int d)
{
    const KilnDim *dim = value->type.open[d];
    KilnDimFacts facts = { .divisor = 1 };
    int64_t least, most;
    char *text = kiln_dim_to_string(dim);
    kiln_type_dim_range(&value->type, d, &least, &most);
    if (!kiln_dim_facts(dim, &facts)) { /* no name */
        while (kiln_dim_divides(facts.divisor * 2, dim) == KILN_ANSWER_YES)
            facts.divisor *= 2;
    }
    kiln_pass_remark(context, "dim",
                     "%s dim %d = %s in %" G_GINT64_FORMAT "..%" G_GINT64_FORMAT
                     ", likely %" G_GINT64_FORMAT ", a multiple of %" G_GINT64_FORMAT,
                     value->name, d, text, least, most, kiln_dim_hint(dim), facts.divisor);
    g_free(text);
}

static gboolean
tell_dims(KilnFunction *function, KilnPassContext *context, bool *changed, GError **error)
{
    (void)changed, (void)error;
    kiln_foreach_node (node, function) {
        for (uint32_t r = 0; r < node->n_results; r++) {
            const KilnValue *value = &node->results[r];
            for (int d = 0; d < value->type.rank; d++) {
                if (value->type.open[d])
                    tell_dim(context, value, d);
            }
        }
    }
    return TRUE;
}

/*   x + neg(y)   =>   x - y, where no dim is broadcast: for all numbers of open dims */
static bool
subtract(KilnMatch *match)
{
    KilnValue *operands[2] = { kiln_match_value(match, "x"), kiln_match_value(match, "y") };
    GUARD(equal_shapes, kiln_type_equal_shape(&operands[0]->type, &operands[1]->type));
    KilnValue *difference = kiln_match_build(match, KILN_OP_sub, NULL, operands, 2);
    return difference && kiln_match_replace(match, difference);
}

static const KilnRule rules[] = {
    RULE("subtract", E, "(add ?x (neg ?y))", subtract),
};

static const KilnRuleList subtract_equals = RULE_LIST(rules, FORWARD);

/* --- instructions --- */

/* "a: 244 bytes here, 4*N always" */
static gboolean
tell_sizes(KilnIRFunction *function, KilnPassContext *context, bool *changed, GError **error)
{
    (void)changed, (void)error;
    kiln_foreach_instr (instr, function) {
        if (instr->kind != KILN_INSTR_alloc)
            continue;
        const KilnBuffer *buffer = kiln_instr_operand(instr, 0);
        KilnSize size = kiln_type_size_bytes(&buffer->type);
        char *text = size.dim ? kiln_dim_to_string(size.dim) : g_strdup("as many");
        kiln_pass_remark(context, "size", "%s: %" G_GINT64_FORMAT " bytes here, %s always",
                         buffer->name, size.n, size.lost ? "nobody knows" : text);
        g_free(text);
    }
    return TRUE;
}

/* Orders the operands of an addition by their names, where both are alike for all numbers. */
static gboolean
sort_sums(KilnIRFunction *function, KilnPassContext *context, bool *changed, GError **error)
{
    (void)error;
    kiln_foreach_instr (instr, function) {
        if (instr->kind != KILN_INSTR_add)
            continue;
        KilnBuffer *a = kiln_instr_operand(instr, 1), *b = kiln_instr_operand(instr, 2);
        if (strcmp(a->name, b->name) <= 0 || !kiln_type_same_bytes(&a->type, &b->type))
            continue;
        kiln_instr_set_operand(instr, 1, b);
        kiln_instr_set_operand(instr, 2, a);
        kiln_pass_note(context, "sort", "%s", kiln_instr_label(instr));
        *changed = true;
    }
    return TRUE;
}

static const KilnPassInfo passes[] = {
    { .id = "tell-dims",
      .level = KILN_LEVEL_GRAPH,
      .summary = "tell all that is known of open dims",
      .run_graph = tell_dims },
    { .id = "subtract-equals",
      .level = KILN_LEVEL_GRAPH,
      .summary = "subtract in place of adding a negation",
      .rules = &subtract_equals },
    { .id = "tell-sizes",
      .level = KILN_LEVEL_IR,
      .summary = "tell the bytes of buffers",
      .run_ir = tell_sizes },
    { .id = "sort-sums",
      .level = KILN_LEVEL_IR,
      .summary = "order the operands of additions",
      .run_ir = sort_sums },
};
KILN_PASS_PLUGIN(passes)
