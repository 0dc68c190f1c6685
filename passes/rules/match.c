/* SPDX-License-Identifier: Apache-2.0 */
/* Matching a compiled pattern at a node.
 *
 * `~` is the only choice that a pattern has. Each order of all of them is tried in turn, as written
 * first, so that no binding has to be undone: patterns have very few. */
#include "graph/op/expand.h"
#include "passes/query/extents.h"
#include "passes/query/literal.h"
#include "passes/rule.h"
#include "passes/rules/pattern.h"

#include <string.h>

typedef struct {
    const KilnPattern *pattern;
    const KilnFunction *function;
    KilnValue **values;
    uint32_t swaps; /* bit per `~`: the operands in the other order */
} Attempt;

/* The same name again must be the same value, or the same node (of which it may be another
 * result). */
static bool
bind(Attempt *attempt, const KilnTerm *term, KilnValue *value)
{
    if (term->slot < 0)
        return true;
    KilnValue **bound = &attempt->values[term->slot];
    if (*bound)
        return term->kind == KILN_TERM_NODE ? (*bound)->def == value->def : *bound == value;
    *bound = value;
    return true;
}

static bool
type_fits(const KilnTerm *term, const KilnValue *value)
{
    bool quantized = value->type.quant;
    return (term->dtypes >> value->type.dtype & 1) && (!term->quantized || quantized) &&
           (!term->plain || !quantized);
}

static bool match_operands(Attempt *attempt, const KilnTerm *term, const KilnNode *node);

static bool
match_value(Attempt *attempt, const KilnTerm *term, KilnValue *value)
{
    if (!value)
        return term->kind == KILN_TERM_ABSENT;
    switch (term->kind) {
    case KILN_TERM_ABSENT:
        return false;
    case KILN_TERM_LITERAL:
        if (!kiln_value_constant(value))
            return false;
        break;
    case KILN_TERM_VALUE:
        break;
    case KILN_TERM_NODE:
        /* A node of a function around this subgraph runs at other times: only its values are
         * seen. */
        if (!value->def || !kiln_term_has_op(term, value->def->op) ||
            value->index != term->result || value->def->function != attempt->function ||
            (term->single_use && !kiln_value_single_use(value)))
            return false;
        break;
    }
    return type_fits(term, value) && bind(attempt, term, value) &&
           (term->kind != KILN_TERM_NODE || match_operands(attempt, term, value->def));
}

static bool
match_operands(Attempt *attempt, const KilnTerm *term, const KilnNode *node)
{
    bool swapped = term->commutes >= 0 && (attempt->swaps >> term->commutes & 1);
    const KilnTerm *child = term + 1;
    for (uint32_t i = 0; i < term->n_children; i++, child += child->size) {
        uint32_t operand = swapped ? 1 - i : i;
        if (!match_value(attempt, child, kiln_node_operand(node, operand)))
            return false;
    }
    for (uint32_t i = term->n_children; i < node->n_operands && !term->rest; i++) {
        if (node->operands[i].value)
            return false;
    }
    return true;
}

static bool
may_be(const KilnTerm *term, uint32_t op)
{
    switch (term->kind) {
    case KILN_TERM_NODE:
        return op != KILN_ORDER_NO_OP && kiln_term_has_op(term, (KilnOp)op);
    case KILN_TERM_LITERAL:
        return op == KILN_OP_const;
    case KILN_TERM_VALUE:
    case KILN_TERM_ABSENT:
        break;
    }
    return true;
}

bool
kiln_pattern_may_match(const KilnPattern *pattern, const KilnOrderEntry *entry)
{
    const KilnTerm *root = &pattern->terms[0], *child = root + 1;
    bool straight = true, swapped = root->commutes >= 0;
    for (uint32_t i = 0; i < root->n_children && i < KILN_ORDER_DEFS; i++, child += child->size) {
        straight &= may_be(child, kiln_order_def(entry, i));
        swapped = swapped && may_be(child, kiln_order_def(entry, 1 - i));
    }
    return straight || swapped;
}

bool
kiln_pattern_match(const KilnPattern *pattern, KilnNode *root, KilnValue **values)
{
    const KilnTerm *term = &pattern->terms[0];
    if (!kiln_term_has_op(term, root->op) || term->result >= root->n_results)
        return false;
    for (uint32_t swaps = 0; swaps < 1u << pattern->n_commutes; swaps++) {
        memset(values, 0, pattern->n_slots * sizeof *values);
        Attempt attempt = { pattern, root->function, values, swaps };
        if (match_value(&attempt, term, &root->results[term->result]))
            return true;
    }
    return false;
}

/* --- what a rewrite sees --- */

static KilnValue *
find(const KilnMatch *match, const char *name)
{
    for (uint32_t i = 0; i < match->pattern->n_slots; i++) {
        if (strcmp(match->pattern->names[i], name) == 0)
            return match->values[i];
    }
    g_assert_not_reached();
    return NULL;
}

KilnValue *
kiln_match_value(const KilnMatch *match, const char *name)
{
    return find(match, name);
}

KilnNode *
kiln_match_node(const KilnMatch *match, const char *name)
{
    KilnValue *value = find(match, name);
    return value ? value->def : NULL;
}

KilnValue *
kiln_match_build(const KilnMatch *match, KilnOp op, const void *attrs, KilnValue *const *operands,
                 uint32_t n_operands)
{
    return kiln_build(match->root->function, match->root, op, attrs, operands, n_operands,
                      match->error);
}

KilnValue *
kiln_match_build_typed(const KilnMatch *match, KilnOp op, const void *attrs,
                       KilnValue *const *operands, uint32_t n_operands, const KilnType *type)
{
    return kiln_build_typed(match->root, op, attrs, operands, n_operands, type, match->error);
}

KilnValue *
kiln_match_build_node(const KilnMatch *match, const KilnNodeSpec *spec)
{
    KilnNodeSpec before_root = *spec;
    before_root.before = match->root;
    KilnNode *node = kiln_node_new(match->root->function, &before_root, match->error);
    return node ? &node->results[0] : NULL;
}

static void
replace(KilnMatch *match, KilnValue *from, KilnValue *value)
{
    if (match->touched) {
        kiln_foreach_use (use, from)
            g_ptr_array_add(match->touched, use->user);
    }
    const char *by = value->def ? kiln_op_info(value->def->op)->name : "argument";
    kiln_pass_note(match->context, match->rule, "%s (%s) by %s (%s)", kiln_node_label(from->def),
                   kiln_op_info(from->def->op)->name, value->name, by);
    kiln_value_replace(from, value);
}

bool
kiln_match_replace_result(KilnMatch *match, uint32_t result, KilnValue *value)
{
    KilnValue *from = &match->root->results[result];
    GUARD(type, kiln_type_equal(&from->type, &value->type));
    replace(match, from, value);
    return true;
}

void
kiln_match_replace_other(KilnMatch *match, KilnValue *from, KilnValue *value)
{
    replace(match, from, value);
    if (match->touched)
        g_ptr_array_add(match->touched, from->def);
}

bool
kiln_match_replace(KilnMatch *match, KilnValue *value)
{
    return value && kiln_match_replace_result(match, match->pattern->terms[0].result, value);
}

bool
kiln_match_replace_by_x(KilnMatch *match)
{
    return kiln_match_replace(match, kiln_match_value(match, "x"));
}

bool
kiln_match_replace_by_op(KilnMatch *match, KilnOp op, KilnValue *const *operands,
                         uint32_t n_operands)
{
    return kiln_match_replace(match, kiln_match_build(match, op, NULL, operands, n_operands));
}

/* One number that is expanded to the shape of @type, which has open dims. */
static KilnValue *
build_expanded(KilnMatch *match, const KilnType *type, double number)
{
    KilnNode *root = match->root;
    KilnValue *near = root->n_operands ? root->operands[0].value : NULL;
    KilnValue *shape = kiln_extents_build(root->function, root, near, type, false, match->error);
    if (!shape)
        return NULL;
    KilnType scalar = kiln_type_scalar(type->dtype), plain = *type;
    KilnValue *operands[] = {
        kiln_literal_build_splat(root->function, root, "splat", &scalar, number), shape
    };
    plain.quant = NULL;
    plain.layout = NULL;
    KilnNodeSpec spec = {
        .op = KILN_OP_expand, .operands = operands, .n_operands = 2, .types = &plain
    };
    return kiln_match_build_node(match, &spec);
}

bool
kiln_match_replace_by_splat(KilnMatch *match, double number)
{
    const KilnType *type = &match->root->results[match->pattern->terms[0].result].type;
    if (!kiln_type_is_static(type))
        return kiln_match_replace(match, build_expanded(match, type, number));
    KilnType plain = kiln_type_make(type->dtype, type->rank, type->dims);
    KilnValue *splat =
        kiln_literal_build_splat(match->root->function, match->root, "splat", &plain, number);
    return kiln_match_replace(match, splat);
}
