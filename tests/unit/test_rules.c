/* SPDX-License-Identifier: Apache-2.0 */
/* The driver of rules: order, guards, what dies, what is left as it was, where it ends. */
#include "graph/op/additive.h"
#include "graph/op/generate.h"
#include "graph/op/math.h"
#include "passes/context/context.h"
#include "passes/context/options.h"
#include "passes/context/report.h"
#include "passes/manager/hash.h"
#include "passes/rule.h"
#include "passes/rules/pattern.h"

#include "tests/unit/graph_builder.h"
#include "tests/unit/op_named.h"

#include <string.h>

typedef struct {
    KilnModule *module;
    KilnFunction *function;
    KilnPassOptions options;
    KilnPassReport *report;
    KilnPassContext context;
    GString *log;
} Case;

static void
append(const char *text, void *data)
{
    g_string_append(((Case *)data)->log, text);
}

static void
setup(Case *c)
{
    *c = (Case){ .module = kiln_module_new(), .report = kiln_pass_report_new() };
    c->function = kiln_function_new(c->module, "f");
    c->log = g_string_new(NULL);
    c->options = (KilnPassOptions)KILN_PASS_OPTIONS_INIT;
    c->options.log = append;
    c->options.log_rewrites = true;
    c->options.data = c;
    c->context.options = &c->options;
    c->context.stats = kiln_pass_report_stats(c->report, kiln_pass_find("empty"));
}

static void
teardown(Case *c)
{
    kiln_pass_context_clear_recent(&c->context);
    kiln_pass_report_free(c->report);
    kiln_module_free(c->module);
    g_string_free(c->log, TRUE);
}

static bool
run(Case *c, const KilnRule *rules, uint32_t n, KilnSweep sweep)
{
    GError *error = NULL;
    bool changed = false;
    uint64_t before = kiln_hash_function(c->function).named ^ kiln_hash_module(c->module).named;
    KilnRuleList list = { rules, n, sweep };
    cr_assert(kiln_rules_run(&list, c->function, &c->context, &changed, &error), "%s",
              error ? error->message : "");
    uint64_t after = kiln_hash_function(c->function).named ^ kiln_hash_module(c->module).named;
    cr_assert_eq(changed, before != after, "changed must be honest");
    return changed;
}

static void
expect(const Case *c, const char *text)
{
    g_autofree char *found = describe(c->function);
    cr_assert_str_eq(found, text);
}

static uint32_t
refusals(const Case *c, const char *rule, const char *guard)
{
    const KilnPassStats *stats = c->context.stats;
    for (guint i = 0; i < stats->rules->len; i++) {
        const KilnRuleStats *found = g_ptr_array_index(stats->rules, i);
        for (guint k = 0; strcmp(found->name, rule) == 0 && k < found->refusals->len; k++) {
            const KilnRefusal *refusal = g_ptr_array_index(found->refusals, k);
            if (strcmp(refusal->guard, guard) == 0)
                return refusal->count;
        }
    }
    return 0;
}

/* --- rewrites used below --- */

static bool
to_operand(KilnMatch *match)
{
    return kiln_match_replace(match, kiln_match_value(match, "x"));
}

static bool
to_abs(KilnMatch *match)
{
    KilnValue *x = kiln_match_value(match, "x");
    KilnValue *built = kiln_match_build(match, KILN_OP_abs, NULL, &x, 1);
    return built && kiln_match_replace(match, built);
}

static bool
build_then_refuse(KilnMatch *match)
{
    KilnValue *x = kiln_match_value(match, "x");
    KilnFunction *function = match->root->function;
    int64_t one = 1;
    KilnValue *ints = kiln_build_ints(function, match->root, &one, 1);
    KilnValue *built = kiln_match_build(match, KILN_OP_shape, NULL, &x, 1);
    if (!built || !ints)
        return false;
    return kiln_match_replace(match, built); /* i64 for f32: refused */
}

static bool
never(KilnMatch *match)
{
    GUARD(never, false);
    return true;
}

static bool
fails(KilnMatch *match)
{
    return kiln_throw(match->error, KILN_ERROR_MEMORY, "no room");
}

Test(rules, a_chain_collapses_and_what_dies_is_removed)
{
    static const KilnRule rules[] = { RULE("involution", E, "(neg (neg ?x))", to_operand) };
    for (int sweep = 0; sweep < 2; sweep++) {
        Case c;
        setup(&c);
        KilnValue *v = add_argument(c.function, "x", f32_2x3());
        for (int i = 0; i < 101; i++)
            v = add_node(c.function, op_named("neg"), "n", NULL, v, NULL);
        set_result(c.function, v);
        cr_assert(run(&c, rules, 1, (KilnSweep)sweep));
        cr_assert_eq(c.function->n_nodes, 2);
        cr_assert_not(run(&c, rules, 1, (KilnSweep)sweep));
        teardown(&c);
    }
}

Test(rules, the_first_rule_that_is_not_refused_wins)
{
    static const KilnRule rules[] = {
        RULE("refused", E, "(neg ?x)", never),
        RULE("fires", E, "(neg#n ?x)", to_abs),
        RULE("too-late", E, "(neg ?x)", to_operand),
    };
    Case c;
    setup(&c);
    KilnValue *x = add_argument(c.function, "x", f32_2x3());
    set_result(c.function, add_node(c.function, op_named("neg"), "n", NULL, x, NULL));
    cr_assert(run(&c, rules, G_N_ELEMENTS(rules), KILN_SWEEP_FORWARD));
    expect(&c, "abs(x) return(n)"); /* the model's name moves to what took the node's place */
    cr_assert_eq(refusals(&c, "refused", "never"), 1);
    cr_assert_str_eq(c.log->str, "rules: fires: n (neg) by abs (abs)\n");
    teardown(&c);
}

Test(rules, a_guard_can_be_switched_off)
{
    Case c;
    setup(&c);
    c.options.disabled_guard = "r/never";
    cr_assert(kiln_pass_guard(&c.context, "r", "never", false));
    cr_assert_not(kiln_pass_guard(&c.context, "r", "nevermore", false));
    cr_assert_not(kiln_pass_guard(&c.context, "other", "never", false));
    cr_assert(kiln_pass_guard(&c.context, "other", "never", true));
    teardown(&c);
}

Test(rules, a_rewrite_that_gives_up_leaves_nothing_behind)
{
    static const KilnRule rules[] = { RULE("gives-up", E, "(relu ?x)", build_then_refuse) };
    Case c;
    setup(&c);
    KilnValue *x = add_argument(c.function, "x", f32_2x3());
    set_result(c.function, add_node(c.function, op_named("relu"), "r", NULL, x, NULL));
    cr_assert_not(run(&c, rules, 1, KILN_SWEEP_FORWARD));
    cr_assert_eq(c.function->n_nodes, 2);
    cr_assert_eq(c.module->constants->len, 0);
    cr_assert_eq(refusals(&c, "gives-up", "type"), 1);
    teardown(&c);
}

Test(rules, a_failing_rewrite_stops_the_pass)
{
    static const KilnRule rules[] = { RULE("fails", E, "(relu ?x)", fails) };
    Case c;
    setup(&c);
    KilnValue *x = add_argument(c.function, "x", f32_2x3());
    set_result(c.function, add_node(c.function, op_named("relu"), "r", NULL, x, NULL));
    bool changed;
    GError *error = NULL;
    static const KilnRuleList list = RULE_LIST(rules, FORWARD);
    cr_assert_not(kiln_rules_run(&list, c.function, &c.context, &changed, &error));
    cr_assert(g_error_matches(error, KILN_ERROR, KILN_ERROR_MEMORY));
    cr_assert_str_eq(error->message, "rule fails: no room");
    g_error_free(error);
    teardown(&c);
}

Test(rules, a_pattern_that_does_not_parse_is_named)
{
    static const KilnRule rules[] = { RULE("typo", E, "(rellu ?x)", to_operand) };
    Case c;
    setup(&c);
    bool changed;
    GError *error = NULL;
    static const KilnRuleList list = RULE_LIST(rules, FORWARD);
    cr_assert_not(kiln_rules_run(&list, c.function, &c.context, &changed, &error));
    cr_assert(g_str_has_prefix(error->message, "rule typo: pattern '(rellu ?x)': column 2"));
    g_error_free(error);
    teardown(&c);
}

Test(rules, lossy_rules_need_their_flag)
{
    static const KilnRule rules[] = {
        LOSSY_RULE("lossy", KILN_FLAG(no_signed_zeros), "(neg ?x)", to_operand),
    };
    Case c;
    setup(&c);
    KilnValue *x = add_argument(c.function, "x", f32_2x3());
    set_result(c.function, add_node(c.function, op_named("neg"), "n", NULL, x, NULL));
    c.context.flags = KILN_FLAG(finite_math);
    cr_assert_not(run(&c, rules, 1, KILN_SWEEP_FORWARD));
    cr_assert_eq(refusals(&c, "lossy", "flags"), 1);
    c.context.flags |= KILN_FLAG(no_signed_zeros);
    cr_assert(run(&c, rules, 1, KILN_SWEEP_FORWARD));
    expect(&c, "return(x)");
    teardown(&c);
}

static bool
swap_operands(KilnMatch *match)
{
    KilnValue *operands[] = { kiln_match_value(match, "y"), kiln_match_value(match, "x") };
    KilnValue *built = kiln_match_build(match, KILN_OP_add, NULL, operands, 2);
    return built && kiln_match_replace(match, built);
}

Test(rules, rules_without_an_end_hit_the_cap)
{
    static const KilnRule rules[] = { RULE("there-and-back", E, "(add ?x ?y)", swap_operands) };
    Case c;
    setup(&c);
    KilnValue *x = add_argument(c.function, "x", f32_2x3());
    KilnValue *y = add_argument(c.function, "y", f32_2x3());
    set_result(c.function, add_node(c.function, op_named("add"), "a", NULL, x, y));
    bool changed;
    GError *error = NULL;
    static const KilnRuleList list = RULE_LIST(rules, FORWARD);
    cr_assert_not(kiln_rules_run(&list, c.function, &c.context, &changed, &error));
    cr_assert(g_error_matches(error, KILN_ERROR, KILN_ERROR_LIMIT));
    cr_assert(strstr(error->message, "there-and-back: "), "%s", error->message);
    g_error_free(error);
    teardown(&c);
}

/* A rewrite far below must wake up a pattern that reaches three nodes down. */
Test(rules, a_change_wakes_the_roots_that_it_can_affect)
{
    static const KilnRule rules[] = {
        RULE("deep", E, "(relu (relu (relu (abs ?x))))", to_abs),
        RULE("shallow", E, "(neg ?x)", to_abs),
    };
    Case c;
    setup(&c);
    KilnValue *x = add_argument(c.function, "x", f32_2x3());
    KilnValue *n = add_node(c.function, op_named("neg"), "n", NULL, x, NULL);
    KilnValue *r = n;
    for (int i = 0; i < 3; i++)
        r = add_node(c.function, op_named("relu"), "r", NULL, r, NULL);
    set_result(c.function, r);
    cr_assert(run(&c, rules, G_N_ELEMENTS(rules), KILN_SWEEP_REVERSE));
    g_autofree char *found = describe(c.function);
    cr_assert(g_str_has_prefix(found, "abs(x) return("), "%s", found);
    teardown(&c);
}

/* `!` holds only once another reader has gone. */
Test(rules, a_lost_reader_wakes_single_use_patterns)
{
    static const KilnRule rules[] = {
        RULE("swallow", E, "(relu (neg! ?x))", to_abs),
        RULE("drop", E, "(add (sub ?a ?a) ?x)", to_operand),
    };
    Case c;
    setup(&c);
    KilnValue *x = add_argument(c.function, "x", f32_2x3());
    KilnValue *n = add_node(c.function, op_named("neg"), "n", NULL, x, NULL);
    KilnValue *r = add_node(c.function, op_named("relu"), "r", NULL, n, NULL);
    KilnValue *zero = add_node(c.function, op_named("sub"), "zero", NULL, n, n);
    KilnValue *sum = add_node(c.function, op_named("add"), "sum", NULL, zero, r);
    set_result(c.function, sum);
    cr_assert(run(&c, rules, G_N_ELEMENTS(rules), KILN_SWEEP_FORWARD));
    g_autofree char *found = describe(c.function);
    cr_assert(g_str_has_prefix(found, "abs(x) return("), "%s", found);
    teardown(&c);
}

/* Readers of the root read what the root read: no node is made, and none but the root replaced. */
static bool
bypass(KilnMatch *match)
{
    KilnNode *root = match->root;
    kiln_pass_note(match->context, match->rule, "%s", kiln_node_label(root));
    kiln_foreach_use_safe (use, &root->results[0])
        kiln_node_set_operand(use->user, use->index, kiln_match_value(match, "x"));
    return true;
}

/* The relu is passed over, since no rule matches above a neg, and the rewrite does not tell of it.
 */
Test(rules, what_was_passed_over_is_seen_once_it_may_match)
{
    static const KilnRule rules[] = {
        RULE("bypass", E, "(neg ?x)", bypass),
        RULE("superfluous", E, "(relu (abs#x ?))", to_operand),
    };
    for (int sweep = 0; sweep < 2; sweep++) {
        Case c;
        setup(&c);
        KilnValue *x = add_argument(c.function, "x", f32_2x3());
        KilnValue *a = add_node(c.function, op_named("abs"), "a", NULL, x, NULL);
        KilnValue *n = add_node(c.function, op_named("neg"), "n", NULL, a, NULL);
        KilnValue *r = add_node(c.function, op_named("relu"), "r", NULL, n, NULL);
        set_result(c.function, add_node(c.function, op_named("add"), "sum", NULL, a, r));
        cr_assert(run(&c, rules, G_N_ELEMENTS(rules), (KilnSweep)sweep));
        expect(&c, "abs(x) add(a,a) return(sum)");
        cr_assert_not(run(&c, rules, G_N_ELEMENTS(rules), (KilnSweep)sweep));
        teardown(&c);
    }
}

/* Doubling the graph must not do more than double the work: counted in matches tried, by a rule
 * that only counts. */
static uint32_t
refused_on(int n)
{
    static const KilnRule rules[] = {
        RULE("count", E, "(@ELEMENTWISE ?x)", never),
        RULE("involution", E, "(neg (neg ?x))", to_operand),
    };
    Case c;
    setup(&c);
    c.options.log_rewrites = false;
    KilnValue *x = add_argument(c.function, "x", f32_2x3());
    KilnValue *v = x;
    for (int i = 0; i < n; i++)
        v = add_node(c.function, op_named("neg"), "n", NULL, v, NULL);
    set_result(c.function, v);
    run(&c, rules, G_N_ELEMENTS(rules), KILN_SWEEP_FORWARD);
    uint32_t count = refusals(&c, "count", "never");
    teardown(&c);
    return count;
}

Test(rules, work_grows_with_the_graph_and_no_faster)
{
    uint32_t small = refused_on(200), big = refused_on(2000);
    cr_assert_leq(big, 11 * small, "200 nodes: %u visits, 2000 nodes: %u", small, big);
}

Test(rules, results_do_not_depend_on_addresses)
{
    static const KilnRule rules[] = {
        RULE("a", E, "(neg ?x)", to_abs),
        RULE("b", E, "(relu (abs ?x))", to_operand),
    };
    g_autofree char *first = NULL;
    g_autoptr(GPtrArray) shifts = g_ptr_array_new_with_free_func(g_free);
    for (int round = 0; round < 4; round++) {
        Case c;
        setup(&c);
        g_ptr_array_add(shifts, g_malloc(1000 * (gsize)(round + 1)));
        KilnValue *x = add_argument(c.function, "x", f32_2x3());
        KilnValue *sum = x;
        for (int i = 0; i < 20; i++) {
            KilnValue *n = add_node(c.function, op_named("neg"), "n", NULL, x, NULL);
            KilnValue *r = add_node(c.function, op_named("relu"), "r", NULL, n, NULL);
            sum = add_node(c.function, op_named("add"), "s", NULL, sum, r);
        }
        set_result(c.function, sum);
        run(&c, rules, G_N_ELEMENTS(rules), KILN_SWEEP_FORWARD);
        char *found = describe(c.function);
        if (first)
            cr_assert_str_eq(found, first);
        else
            first = g_strdup(found);
        g_free(found);
        teardown(&c);
    }
}

Test(rules, registered_rules_are_found)
{
    for (uint32_t i = 0; i < kiln_pass_count(); i++) {
        const KilnPassInfo *pass = kiln_pass_at(i);
        cr_assert_eq((pass->rules != NULL) + (pass->run_graph != NULL) + (pass->run_ir != NULL), 1);
        cr_assert(!pass->rules || pass->rules->n > 0, "%s", pass->id);
        for (uint32_t k = 0; pass->rules && k < pass->rules->n; k++) {
            const KilnRule *rule = &pass->rules->rules[k];
            GError *error = NULL;
            g_autoptr(KilnPattern) pattern = kiln_pattern_parse(rule->pattern, &error);
            cr_assert(pattern, "%s: %s", rule->name, error ? error->message : "");
        }
    }
}
