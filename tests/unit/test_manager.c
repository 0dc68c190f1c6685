/* SPDX-License-Identifier: Apache-2.0 */
/* The pass manager: what it runs, in which order, how often, and what it counts and notices. */
#include "graph/op/flow.h"
#include "graph/op/math.h"
#include "passes/context/context.h"
#include "passes/context/options.h"
#include "passes/context/report.h"
#include "passes/manager/manager.h"
#include "passes/pass.h"
#include "passes/pipeline/pipeline.h"
#include "tests/unit/graph_builder.h"

#include <glib/gstdio.h>
#include <json-glib/json-glib.h>
#include <string.h>

/* --- passes made for these tests; what they see is written into a trace --- */

typedef struct {
    GString *trace;
    GString *text;       /* dumps and notes */
    uint32_t cancel_at;  /* progress call that cancels; 0: none */
    uint32_t n_progress; /* calls so far */
    double fraction;
} Watch;

static void
trace(KilnPassContext *context, const char *function)
{
    Watch *watch = context->options->data;
    g_string_append_printf(watch->trace, "%s%s@%s", watch->trace->len ? " " : "", context->pass->id,
                           function);
}

static gboolean
look(KilnFunction *function, KilnPassContext *context, bool *changed, GError **error)
{
    (void)error;
    trace(context, function->name);
    *changed = false;
    return TRUE;
}

/* Takes one neg of a chain away per run. */
static gboolean
shorten(KilnFunction *function, KilnPassContext *context, bool *changed, GError **error)
{
    (void)error;
    trace(context, function->name);
    *changed = false;
    kiln_foreach_node (node, function) {
        if (node->op != KILN_OP_neg)
            continue;
        kiln_pass_note(context, "shorten-by-one", "%s", kiln_node_label(node));
        kiln_value_replace(&node->results[0], node->operands[0].value);
        kiln_node_remove(node);
        *changed = true;
        break;
    }
    return TRUE;
}

static gboolean
turn(KilnFunction *function, KilnOp from, KilnOp to, KilnPassContext *context, bool *changed,
     GError **error)
{
    *changed = false;
    kiln_foreach_node_safe (node, function) {
        if (node->op != from)
            continue;
        KilnValue *built = kiln_build(function, node, to, NULL, &node->operands[0].value, 1, error);
        if (!built)
            return FALSE;
        kiln_pass_note(context, "turn", "%s", kiln_node_label(node));
        kiln_value_replace(&node->results[0], built);
        kiln_node_remove(node);
        *changed = true;
    }
    return TRUE;
}

static gboolean
to_abs(KilnFunction *function, KilnPassContext *context, bool *changed, GError **error)
{
    return turn(function, KILN_OP_neg, KILN_OP_abs, context, changed, error);
}

static gboolean
to_neg(KilnFunction *function, KilnPassContext *context, bool *changed, GError **error)
{
    return turn(function, KILN_OP_abs, KILN_OP_neg, context, changed, error);
}

/* There and back in turn: never done. */
static gboolean
sway(KilnFunction *function, KilnPassContext *context, bool *changed, GError **error)
{
    if (!to_abs(function, context, changed, error))
        return FALSE;
    return *changed || to_neg(function, context, changed, error);
}

static gboolean
grow(KilnFunction *function, KilnPassContext *context, bool *changed, GError **error)
{
    KilnNode *first = function->first;
    KilnValue *x = &kiln_function_argument(function, 0)->value;
    KilnValue *built = kiln_build(function, first, KILN_OP_neg, NULL, &x, 1, error);
    if (!built)
        return FALSE;
    kiln_node_set_operand(first, 0, built);
    kiln_pass_note(context, "grow-by-one", "%s", built->name);
    *changed = true;
    return TRUE;
}

static gboolean
boast(KilnFunction *function, KilnPassContext *context, bool *changed, GError **error)
{
    (void)function, (void)context, (void)error;
    *changed = true;
    return TRUE;
}

static gboolean
hide(KilnFunction *function, KilnPassContext *context, bool *changed, GError **error)
{
    gboolean ok = to_abs(function, context, changed, error);
    *changed = false;
    return ok;
}

static gboolean
hide_constant(KilnFunction *function, KilnPassContext *context, bool *changed, GError **error)
{
    (void)context, (void)error;
    KilnType type = kiln_type_scalar(KILN_DTYPE_f32);
    kiln_module_add_constant(function->module, "sneaked", kiln_tensor_new_splat(&type, 1), NULL);
    *changed = false;
    return TRUE;
}

static gboolean
spoil(KilnFunction *function, KilnPassContext *context, bool *changed, GError **error)
{
    (void)context, (void)error;
    function->first->results[0].type.dims[0] = 77;
    *changed = true;
    return TRUE;
}

static gboolean
misplace(KilnFunction *function, KilnPassContext *context, bool *changed, GError **error)
{
    (void)context, (void)error;
    kiln_node_move(function->last->previous, function->first);
    return *changed = true;
}

static gboolean
give_up(KilnFunction *function, KilnPassContext *context, bool *changed, GError **error)
{
    (void)function, (void)context, (void)changed;
    return kiln_throw(error, KILN_ERROR_MEMORY, "no room for it");
}

static gboolean
wants_order(KilnFunction *function, KilnPassContext *context, bool *changed, GError **error)
{
    (void)error;
    uint32_t id = 0;
    kiln_foreach_node (node, function)
        cr_expect_eq(node->id, id++);
    cr_expect_eq(function->next_id, id);
    return look(function, context, changed, error);
}

static gboolean
look_ir(KilnIRFunction *function, KilnPassContext *context, bool *changed, GError **error)
{
    (void)error;
    cr_expect_null(kiln_pass_liveness(context));
    trace(context, function->name);
    *changed = false;
    return TRUE;
}

static gboolean
wants_lives(KilnIRFunction *function, KilnPassContext *context, bool *changed, GError **error)
{
    (void)error;
    const KilnMemoryPlan *plan = kiln_pass_liveness(context);
    cr_expect_not_null(plan);
    cr_expect_eq(plan ? plan->n_lives : 0, 1);
    trace(context, function->name);
    *changed = false;
    return TRUE;
}

static const KilnPassInfo test_passes[] = {
    { .id = "look", .run_graph = look },
    { .id = "look-too", .run_graph = look },
    { .id = "shorten", .run_graph = shorten },
    { .id = "to-abs", .run_graph = to_abs },
    { .id = "to-neg", .run_graph = to_neg },
    { .id = "sway", .run_graph = sway },
    { .id = "grow", .run_graph = grow },
    { .id = "boast", .run_graph = boast },
    { .id = "hide", .run_graph = hide },
    { .id = "hide-constant", .run_graph = hide_constant },
    { .id = "spoil", .run_graph = spoil },
    { .id = "misplace", .run_graph = misplace },
    { .id = "give-up", .run_graph = give_up },
    { .id = "wants-order", .run_graph = wants_order, .requires_ = KILN_ANALYSIS_ORDER },
    { .id = "look-ir", .level = KILN_LEVEL_IR, .run_ir = look_ir },
    { .id = "wants-lives",
      .level = KILN_LEVEL_IR,
      .run_ir = wants_lives,
      .requires_ = KILN_ANALYSIS_LIVENESS | KILN_ANALYSIS_ORDER },
};

/* --- a run --- */

typedef struct {
    KilnModule *module;
    KilnPassPipeline *pipeline;
    KilnPassOptions options;
    KilnPassReport *report;
    Watch watch;
    GError *error;
} Case;

static void
collect(const char *text, void *data)
{
    g_string_append(((Watch *)data)->text, text);
}

/* A module with @f: a chain of @n negs of %x, and a node that nothing reads. */
static void
setup(Case *c, const char *passes, int n)
{
    *c = (Case){ .module = kiln_module_new(), .pipeline = kiln_pass_pipeline_new() };
    for (size_t i = 0; i < G_N_ELEMENTS(test_passes); i++)
        cr_assert(kiln_pass_pipeline_register(c->pipeline, &test_passes[i], NULL));
    cr_assert(kiln_pipeline_read_inline(c->pipeline, passes, &c->error), "%s",
              c->error ? c->error->message : "");
    c->options = (KilnPassOptions)KILN_PASS_OPTIONS_INIT;
    c->options.dump = c->options.log = collect;
    c->options.data = &c->watch;
    c->report = kiln_pass_report_new();
    c->watch.trace = g_string_new(NULL);
    c->watch.text = g_string_new(NULL);
    KilnFunction *f = kiln_function_new(c->module, "f");
    KilnValue *v = add_argument(f, "x", f32_2x3());
    for (int i = 0; i < n; i++)
        v = add_node(f, KILN_OP_neg, "n", NULL, v, NULL);
    add_node(f, KILN_OP_exp, "dead", NULL, v, NULL);
    set_result(f, v);
}

static void
teardown(Case *c)
{
    kiln_module_free(c->module);
    kiln_pass_pipeline_free(c->pipeline);
    kiln_pass_report_free(c->report);
    g_string_free(c->watch.trace, TRUE);
    g_string_free(c->watch.text, TRUE);
    g_clear_error(&c->error);
}

static bool
run(Case *c)
{
    g_clear_error(&c->error);
    return kiln_pipeline_run_graph(c->pipeline, c->module, &c->options, c->report, &c->error);
}

static void
expect_ok(Case *c, const char *expected_trace)
{
    cr_assert(run(c), "%s", c->error ? c->error->message : "");
    cr_assert_str_eq(c->watch.trace->str, expected_trace);
}

static void
expect_error(Case *c, KilnError code, const char *message)
{
    cr_assert_not(run(c));
    cr_assert(g_error_matches(c->error, KILN_ERROR, (int)code), "%s", c->error->message);
    cr_assert(strstr(c->error->message, message), "expected: %s\nfound:    %s", message,
              c->error->message);
}

static const KilnPassStats *
stats_of(const Case *c, const char *id)
{
    for (guint i = 0; i < c->report->passes->len; i++) {
        const KilnPassStats *stats = g_ptr_array_index(c->report->passes, i);
        if (strcmp(stats->id, id) == 0)
            return stats;
    }
    return NULL;
}

static uint32_t
runs_of(const Case *c, const char *id)
{
    const KilnPassStats *stats = stats_of(c, id);
    return stats ? stats->runs : 0;
}

/* --- order and counting --- */

Test(manager, glw_p3_entries_run_in_order_with_dce_before_each)
{
    Case c;
    setup(&c, "look,look-too", 2);
    expect_ok(&c, "look@f look-too@f");
    cr_assert_eq(runs_of(&c, "dce"), 2);
    cr_assert_eq(stats_of(&c, "dce")->changed, 1);
    cr_assert_eq(c.report->entries, 2);
    cr_assert_eq(c.report->applications, 4);
    cr_assert_str_eq(c.report->last_application, "4 look-too @f");
    cr_assert_eq(stats_of(&c, "dce")->nodes_before, 4);
    cr_assert_eq(stats_of(&c, "dce")->nodes_after, 3);
    teardown(&c);
}

Test(manager, dce_can_be_kept_away)
{
    Case c;
    setup(&c, "look{dce=none},look-too", 2);
    c.options.stop_after = 1;
    expect_ok(&c, "look@f");
    cr_assert_eq(runs_of(&c, "dce"), 0);
    cr_assert_eq(kiln_module_entry(c.module)->n_nodes, 4);
    teardown(&c);
}

Test(manager, an_entry_of_dce_runs_it_once)
{
    Case c;
    setup(&c, "dce", 2);
    expect_ok(&c, "");
    cr_assert_eq(runs_of(&c, "dce"), 1);
    teardown(&c);
}

Test(manager, every_function_is_visited_callees_first_subgraphs_before_what_is_around)
{
    Case c;
    setup(&c, "look", 1);
    KilnFunction *g = kiln_function_new(c.module, "g");
    KilnValue *cond = add_argument(g, "c", kiln_type_scalar(KILN_DTYPE_bool));
    KilnValue *x = add_argument(g, "x", f32_2x3());
    KilnAttrs_if attrs = { .then_branch = kiln_function_new_region(c.module, "then"),
                           .else_branch = kiln_function_new_region(c.module, "else") };
    set_result(attrs.then_branch, x);
    set_result(attrs.else_branch, x);
    KilnType type = f32_2x3();
    KilnNode *node = kiln_node_new(g,
                                   &(KilnNodeSpec){ .op = KILN_OP_if,
                                                    .operands = &cond,
                                                    .n_operands = 1,
                                                    .attrs = &attrs,
                                                    .types = &type,
                                                    .result_name = "r" },
                                   &c.error);
    cr_assert_not_null(node, "%s", c.error ? c.error->message : "");
    set_result(g, kiln_node_result(node, 0));
    expect_ok(&c, "look@f look@then look@else look@g");
    teardown(&c);
}

Test(manager, subgraphs_of_what_an_entry_removed_are_not_visited)
{
    Case c;
    setup(&c, "look", 1);
    KilnFunction *f = kiln_module_entry(c.module);
    KilnValue *cond = add_argument(f, "c", kiln_type_scalar(KILN_DTYPE_bool));
    KilnAttrs_if attrs = { .then_branch = kiln_function_new_region(c.module, "then"),
                           .else_branch = kiln_function_new_region(c.module, "else") };
    KilnValue *x = &kiln_function_argument(f, 0)->value;
    set_result(attrs.then_branch, x);
    set_result(attrs.else_branch, x);
    KilnType type = f32_2x3();
    cr_assert_not_null(kiln_node_new(
        f,
        &(KilnNodeSpec){
            .op = KILN_OP_if, .operands = &cond, .n_operands = 1, .attrs = &attrs, .types = &type },
        NULL));
    expect_ok(&c, "look@then look@else look@f"); /* dead, but there when the entry began */
    g_string_truncate(c.watch.trace, 0);
    expect_ok(&c, "look@f");
    teardown(&c);
}

/* --- fixed points --- */

Test(manager, a_fixed_point_ends_when_nothing_changes)
{
    Case c;
    setup(&c, "shorten{convergence=until-fixed-point}", 3);
    expect_ok(&c, "shorten@f shorten@f shorten@f shorten@f");
    cr_assert_eq(runs_of(&c, "shorten"), 4);
    cr_assert_eq(stats_of(&c, "shorten")->changed, 3);
    cr_assert_eq(runs_of(&c, "dce"), 4);
    teardown(&c);
}

Test(manager, glw_p6_a_cap_that_is_hit_names_the_pass_and_its_last_rewrites)
{
    Case c;
    setup(&c, "shorten{convergence=until-fixed-point,max-iterations=3}", 8);
    expect_error(&c, KILN_ERROR_LIMIT,
                 "pass shorten (application 6, @f): no fixed point after 3 iterations; last "
                 "rewrites: shorten-by-one: n; shorten-by-one: n_1; shorten-by-one: n_2");
    teardown(&c);
}

Test(manager, growth_without_end_hits_the_cap)
{
    Case c;
    setup(&c, "grow{convergence=until-fixed-point}", 1);
    expect_error(&c, KILN_ERROR_LIMIT, "no fixed point after 64 iterations");
    cr_assert(strstr(c.error->message, "grow-by-one: neg_62; grow-by-one: neg_63"), "%s",
              c.error->message);
    teardown(&c);
}

Test(manager, glw_p6_oscillation_is_noticed_before_the_cap)
{
    Case c;
    setup(&c, "sway{convergence=until-fixed-point,max-iterations=10000}", 1);
    expect_error(&c, KILN_ERROR_PASS,
                 "pass sway (application 6, @f): it oscillates: the function after iteration 3 "
                 "equals that of 2 iterations before; these passes undo each other: sway (turn); "
                 "last rewrites: turn: ");
    teardown(&c);
}

Test(manager, a_group_is_a_fixed_point_over_several_passes)
{
    Case c;
    setup(&c, "", 2);
    KilnPipelineEntry *group = kiln_arena_new0(c.pipeline->arena, KilnPipelineEntry, 1);
    *group = (KilnPipelineEntry){ .group = g_ptr_array_new(),
                                  .convergence = KILN_UNTIL_FIXED_POINT,
                                  .max_iterations = 64,
                                  .modes = 3 };
    cr_assert_not_null(kiln_pass_pipeline_add(c.pipeline, "shorten", NULL));
    cr_assert_not_null(kiln_pass_pipeline_add(c.pipeline, "look", NULL));
    g_ptr_array_add(group->group, g_ptr_array_index(c.pipeline->graph, 0));
    g_ptr_array_add(group->group, g_ptr_array_index(c.pipeline->graph, 1));
    g_ptr_array_set_free_func(c.pipeline->graph, NULL);
    g_ptr_array_set_size(c.pipeline->graph, 0);
    g_ptr_array_add(c.pipeline->graph, group);
    /* Nothing changed since the last look: what it would find is known. */
    expect_ok(&c, "shorten@f look@f shorten@f look@f shorten@f");
    cr_assert_eq(c.report->entries, 1);
    g_ptr_array_unref(group->group);
    teardown(&c);
}

Test(manager, glw_p6_passes_of_a_group_that_undo_each_other_are_named)
{
    Case c;
    setup(&c, "", 1);
    static const char yaml[] =
        "version: 1\ngraph:\n  - {group: [to-abs, to-neg], convergence: until-fixed-point}\n";
    cr_assert(kiln_pipeline_read_yaml(c.pipeline, yaml, strlen(yaml), "p.yaml", &c.error));
    expect_error(
        &c, KILN_ERROR_PASS,
        "group to-abs, to-neg (p.yaml:3:5) (application 8, @f): the function after "
        "iteration 2 equals that before it; these passes undo each other: to-abs (turn), to-neg "
        "(turn); last rewrites: turn: n; turn: n");
    teardown(&c);
}

/* --- honesty and validity --- */

Test(manager, a_pass_that_hides_a_change_is_caught)
{
    Case c;
    setup(&c, "hide", 1);
    c.options.check_changed = true;
    expect_error(&c, KILN_ERROR_PASS,
                 "pass hide (application 2, @f): it reports no change, but the function or the "
                 "module changed");
    teardown(&c);
    setup(&c, "hide-constant", 1);
    c.options.check_changed = true;
    expect_error(&c, KILN_ERROR_PASS, "pass hide-constant (application 2, @f): it reports no");
    teardown(&c);
}

Test(manager, a_pass_that_makes_up_a_change_is_caught)
{
    Case c;
    setup(&c, "boast", 1);
    c.options.check_changed = true;
    expect_error(&c, KILN_ERROR_PASS,
                 "pass boast (application 2, @f): it reports a change, but nothing changed");
    teardown(&c);
    /* in a fixed point even where nobody asked for the check */
    setup(&c, "boast{convergence=until-fixed-point,dce=none}", 1);
    expect_error(&c, KILN_ERROR_PASS,
                 "pass boast (application 1, @f): it reports a change in iteration 1, but nothing");
    teardown(&c);
}

Test(manager, honest_passes_pass_the_check)
{
    Case c;
    setup(&c, "shorten{convergence=until-fixed-point},dce,look", 3);
    c.options.check_changed = true;
    cr_assert(run(&c), "%s", c.error ? c.error->message : "");
    teardown(&c);
}

Test(manager, what_a_pass_leaves_is_verified)
{
    Case c;
    setup(&c, "spoil{dce=none}", 1);
    expect_error(&c, KILN_ERROR_SHAPE,
                 "pass spoil (application 1, @f): it left a function that is not valid: ");
    teardown(&c);
    setup(&c, "spoil{dce=none}", 1);
    c.options.verify = false;
    cr_assert(run(&c));
    teardown(&c);
    setup(&c, "to-abs{dce=none},misplace{dce=none},look{dce=none}", 2);
    expect_error(&c, KILN_ERROR_INVALID, "pass misplace (application 2, @f): it left");
    teardown(&c);
}

Test(manager, what_was_not_valid_at_the_start_is_no_pass_s_doing)
{
    Case c;
    setup(&c, "look", 1);
    kiln_module_entry(c.module)->first->results[0].type.dims[0] = 77;
    expect_error(&c, KILN_ERROR_SHAPE, "before the first pass: @f: ");
    teardown(&c);
}

Test(manager, errors_of_a_pass_say_where)
{
    Case c;
    setup(&c, "look,give-up", 1);
    expect_error(&c, KILN_ERROR_MEMORY, "pass give-up (application 4, @f): no room for it");
    teardown(&c);
}

/* --- choosing --- */

Test(manager, stop_after_counts_entries)
{
    for (int64_t n = 0; n <= 4; n++) {
        Case c;
        setup(&c, "look,shorten{convergence=until-fixed-point},look-too", 2);
        c.options.stop_after = n;
        static const char *const traces[] = {
            "",
            "look@f",
            "look@f shorten@f shorten@f shorten@f",
            "look@f shorten@f shorten@f shorten@f look-too@f",
            "look@f shorten@f shorten@f shorten@f look-too@f",
        };
        expect_ok(&c, traces[n]);
        cr_assert_eq(c.report->entries, MIN(n, 3));
        teardown(&c);
    }
}

Test(manager, bisect_limit_counts_applications_dce_included)
{
    for (int64_t n = 0; n <= 8; n++) {
        Case c;
        setup(&c, "look,shorten{convergence=until-fixed-point,dce=none}", 2);
        c.options.bisect_limit = n;
        cr_assert(run(&c), "%s", c.error ? c.error->message : "");
        cr_assert_eq(c.report->applications, MIN(n, 5));
        cr_assert_eq(runs_of(&c, "dce"), MIN(n, 1));
        cr_assert_eq(runs_of(&c, "look"), n >= 2);
        cr_assert_eq(runs_of(&c, "shorten"), (uint32_t)CLAMP(n - 2, 0, 3));
        teardown(&c);
    }
}

Test(manager, skip_and_only)
{
    Case c;
    setup(&c, "look,look-too,look", 1);
    c.options.skip = (const char *const[]){ "look", NULL };
    expect_ok(&c, "look-too@f");
    cr_assert_eq(c.report->entries, 3); /* numbers of entries do not shift */
    teardown(&c);

    setup(&c, "look,look-too,look", 1);
    c.options.only = (const char *const[]){ "look", NULL };
    expect_ok(&c, "look@f look@f");
    cr_assert_eq(runs_of(&c, "dce"), 2); /* it belongs to the entries */
    teardown(&c);

    setup(&c, "look,dce", 1);
    c.options.skip = (const char *const[]){ "dce", NULL };
    expect_ok(&c, "look@f");
    cr_assert_eq(runs_of(&c, "dce"), 0);
    teardown(&c);

    setup(&c, "look", 1);
    c.options.skip = (const char *const[]){ "lokk", NULL };
    expect_error(&c, KILN_ERROR_USAGE, "skip: there is no pass 'lokk' (did you mean 'look'?)");
    c.options.skip = NULL;
    c.options.print_after = (const char *const[]){ "all", "kool", NULL };
    expect_error(&c, KILN_ERROR_USAGE, "print-after: there is no pass 'kool'");
    teardown(&c);
}

Test(manager, glw_p4_entries_of_another_mode_are_skipped)
{
    Case c;
    setup(&c, "look{modes=train},look-too{modes=infer}", 1);
    expect_ok(&c, "look-too@f");
    g_string_truncate(c.watch.trace, 0);
    c.options.mode = KILN_MODE_TRAIN;
    expect_ok(&c, "look@f");
    teardown(&c);
}

/* --- analyses --- */

Test(manager, analyses_are_there_when_they_are_required)
{
    Case c;
    setup(&c, "to-abs,wants-order", 5); /* to-abs gives new ids in the wrong order */
    expect_ok(&c, "wants-order@f");
    teardown(&c);
}

Test(manager, the_ir_level_goes_on_counting)
{
    static const char text[] = "func @f {\n"
                               "  input @x : f32[4]\n"
                               "  output @y : f32[4]\n"
                               "  %a = alloc : f32[4]\n"
                               "  relu @out %a, @in @x\n"
                               "  neg @out @y, @in %a\n"
                               "  dealloc %a\n"
                               "}\n";
    Case c;
    setup(&c, "look,look-ir,wants-lives", 1);
    g_autoptr(KilnIRModule) ir = kiln_ir_module_parse(text, strlen(text), "t.kiln", &c.error);
    cr_assert_not_null(ir, "%s", c.error ? c.error->message : "");
    expect_ok(&c, "look@f");
    c.options.stop_after = 2;
    cr_assert(kiln_pipeline_run_ir(c.pipeline, ir, &c.options, c.report, &c.error), "%s",
              c.error ? c.error->message : "");
    cr_assert_str_eq(c.watch.trace->str, "look@f look-ir@f");
    cr_assert_str_eq(c.report->last_application, "3 look-ir @f");
    cr_assert_eq(stats_of(&c, "look-ir")->nodes_before, 4);
    c.options.stop_after = -1;
    g_string_truncate(c.watch.trace, 0);
    cr_assert(kiln_pipeline_run_ir(c.pipeline, ir, &c.options, NULL, &c.error), "%s",
              c.error ? c.error->message : "");
    cr_assert_str_eq(c.watch.trace->str, "look-ir@f wants-lives@f");
    teardown(&c);
}

/* --- what is shown --- */

static gboolean
step(double fraction, const char *what, void *data)
{
    Watch *watch = data;
    cr_expect_geq(fraction, watch->fraction);
    cr_expect_lt(fraction, 1.0);
    cr_expect_not_null(what);
    watch->fraction = fraction;
    return ++watch->n_progress != watch->cancel_at;
}

Test(manager, progress_can_cancel)
{
    Case c;
    setup(&c, "look,look-too,look", 1);
    c.options.progress = step;
    expect_ok(&c, "look@f look-too@f look@f");
    cr_assert_eq(c.watch.n_progress, 6);
    teardown(&c);
    setup(&c, "look,look-too,look", 1);
    c.options.progress = step;
    c.watch.cancel_at = 4;
    expect_error(&c, KILN_ERROR_CANCELLED, "pass look-too (application 4, @f): cancelled");
    cr_assert_str_eq(c.watch.trace->str, "look@f");
    teardown(&c);
}

static uint32_t
count_of(const char *text, const char *part)
{
    uint32_t n = 0;
    for (const char *at = text; (at = strstr(at, part)) != NULL; at++)
        n++;
    return n;
}

Test(manager, dumps)
{
    Case c;
    setup(&c, "look,shorten", 1);
    c.options.print_after = (const char *const[]){ "shorten", NULL };
    cr_assert(run(&c));
    cr_assert_str_eq(c.watch.text->str, "# after 4 shorten @f\n"
                                        "graph @f(%x: f32[2,3]) {\n"
                                        "  return %x as n\n"
                                        "}\n");
    teardown(&c);

    setup(&c, "look,shorten", 1);
    c.options.print_after = (const char *const[]){ "all", NULL };
    cr_assert(run(&c));
    cr_assert_eq(count_of(c.watch.text->str, "# after "), 4);
    cr_assert_eq(count_of(c.watch.text->str, "(unchanged)"), 2);
    teardown(&c);

    setup(&c, "look,shorten", 1);
    c.options.print_changed = true;
    cr_assert(run(&c));
    cr_assert_eq(count_of(c.watch.text->str, "# after "), 2);
    cr_assert_not_null(strstr(c.watch.text->str, "# after 1 dce @f\n"));
    teardown(&c);
}

Test(manager, a_dump_directory_gets_a_file_per_application)
{
    g_autofree char *directory = g_dir_make_tmp("kiln-dump-XXXXXX", NULL);
    g_autofree char *inner = g_build_filename(directory, "new", NULL);
    Case c;
    setup(&c, "shorten", 1);
    c.options.dump_dir = inner;
    cr_assert(run(&c), "%s", c.error ? c.error->message : "");
    static const char *const names[] = { "0001-dce-f.kiln", "0002-shorten-f.kiln" };
    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autofree char *path = g_build_filename(inner, names[i], NULL);
        cr_assert(g_file_test(path, G_FILE_TEST_EXISTS), "%s", path);
        g_remove(path);
    }
    teardown(&c);
    setup(&c, "shorten", 1);
    c.options.dump_dir = "/proc/no-such-folder/x";
    expect_error(&c, KILN_ERROR_IO, "/proc/no-such-folder/x: cannot be made: ");
    teardown(&c);
    g_rmdir(inner);
    g_rmdir(directory);
}

Test(manager, rewrites_are_logged_and_counted)
{
    Case c;
    setup(&c, "shorten", 1);
    c.options.log_rewrites = true;
    cr_assert(run(&c));
    cr_assert_str_eq(c.watch.text->str,
                     "dce: remove-node: dead (exp)\nshorten: shorten-by-one: n\n");
    g_autofree char *json = kiln_pass_report_to_json(c.report);
    g_autoptr(JsonParser) parser = json_parser_new();
    cr_assert(json_parser_load_from_data(parser, json, -1, NULL));
    JsonObject *root = json_node_get_object(json_parser_get_root(parser));
    cr_assert_eq(json_object_get_int_member(root, "schema_version"), 1);
    JsonArray *passes = json_object_get_array_member(root, "passes");
    cr_assert_eq(json_array_get_length(passes), 2);
    JsonObject *pass = json_array_get_object_element(passes, 1);
    cr_assert_str_eq(json_object_get_string_member(pass, "name"), "shorten");
    cr_assert_str_eq(json_object_get_string_member(pass, "level"), "graph");
    cr_assert_eq(json_object_get_int_member(pass, "runs"), 1);
    cr_assert_eq(json_object_get_int_member(pass, "changed"), 1);
    cr_assert_eq(json_object_get_int_member(pass, "nodes_before"), 2);
    cr_assert_eq(json_object_get_int_member(pass, "nodes_after"), 1);
    cr_assert(json_object_has_member(pass, "ms"));
    JsonObject *rule = json_object_get_object_member(json_object_get_object_member(pass, "rules"),
                                                     "shorten-by-one");
    cr_assert_eq(json_object_get_int_member(rule, "fired"), 1);
    cr_assert(json_object_has_member(rule, "refused"));
    teardown(&c);
}

Test(manager, an_empty_module_is_fine)
{
    Case c;
    setup(&c, "look", 1);
    g_autoptr(KilnModule) empty = kiln_module_new();
    cr_assert(kiln_pipeline_run_graph(c.pipeline, empty, &c.options, NULL, &c.error));
    teardown(&c);
}
