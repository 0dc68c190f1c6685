/* SPDX-License-Identifier: Apache-2.0 */
/* KILN_RANDOM_GRAPHS=n makes n graphs per test instead of a few: for long runs by hand.
 *
 * Properties of passes on random typed graphs: whatever a pass did, the verifier is content,
 * `changed` is honest, and the reference evaluates the result to what it evaluated the graph to,
 * bit by bit for passes of class E. At the IR level memory that is not written yet is poisoned, and
 * each function runs with a heap buffer per alloc and in its planned arena. */
#include "graph/number.h"
#include "graph/text/text.h"
#include "passes/manager.h"
#include "passes/results.h"
#include "tests/lean_target.h"
#include "tests/unit/random_graph.h"

#include <criterion/criterion.h>
#include <math.h>

enum {
    GRAPHS_PER_TEST = 75
};

/* What a failure shows beside the error. */
typedef struct {
    uint64_t seed;
    const KilnModule *module;
    const char *passes;
} Case;

static void
fail(const Case *at, const char *what, const GError *error)
{
    g_autoptr(GString) text = g_string_new(NULL);
    kiln_module_print(at->module, NULL, text, NULL);
    cr_assert(false, "seed %lu, %s: %s: %s\n%s", (unsigned long)at->seed, at->passes, what,
              error ? error->message : "", text->str);
}

static KilnPassPipeline *
pipeline_of(const char *passes)
{
    g_autoptr(GError) error = NULL;
    KilnPassPipeline *pipeline;
    if (strcmp(passes, "default") == 0)
        pipeline = kiln_pass_pipeline_load(KILN_SOURCE_DIR "/pipelines/default.yaml", &error);
    else
        pipeline = kiln_pass_pipeline_parse_inline(passes, &error);
    cr_assert(pipeline, "%s: %s", passes, error ? error->message : "");
    return pipeline;
}

static KilnPassOptions
options_on(const KilnTarget *target)
{
    KilnPassOptions options = KILN_PASS_OPTIONS_INIT;
    options.target = target;
    options.check_changed = true;
    return options;
}

static bool
changed_something(const KilnPassReport *report)
{
    bool changed = false;
    for (guint i = 0; i < report->passes->len; i++)
        changed |= ((const KilnPassStats *)g_ptr_array_index(report->passes, i))->changed > 0;
    return changed;
}

static KilnResults *
graph_results(const Case *at, const KilnModule *module)
{
    g_autoptr(GError) error = NULL;
    KilnResults *results =
        kiln_results_of_graph(kiln_module_entry(module), kiln_ref_target(), NULL, &error);
    if (!results)
        fail(at, "evaluating", error);
    return results;
}

/* --- rounding --- */

static double
largest(const KilnTensor *tensor)
{
    double most = 0;
    g_autoptr(GBytes) bytes = kiln_tensor_view(tensor, NULL);
    for (int64_t i = 0; bytes && i < kiln_type_elements(&tensor->type); i++) {
        double x = fabs(kiln_element_as_f64(tensor->type.dtype, g_bytes_get_data(bytes, NULL), i));
        most = isfinite(x) ? MAX(most, x) : most;
    }
    return most;
}

/* The largest magnitude that the graph meets on its way: what roundings are relative to. Where
 * terms cancel, results are much smaller. */
static double
largest_on_the_way(const Case *at)
{
    g_autoptr(KilnModule) clone = kiln_module_clone(at->module);
    KilnFunction *function = kiln_module_entry(clone);
    g_autoptr(GPtrArray) values = g_ptr_array_new();
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    for (guint i = 0; i < function->arguments->len; i++)
        g_ptr_array_add(values, &kiln_function_argument(function, i)->value);
    kiln_foreach_node (node, function) {
        for (uint32_t r = 0; r < node->n_results; r++)
            g_ptr_array_add(values, &node->results[r]);
    }
    for (guint i = 0; i < values->len; i++)
        g_ptr_array_add(names, g_strdup_printf("value %u", i));
    cr_assert(kiln_function_set_results(function, (KilnValue *const *)values->pdata,
                                        (const char *const *)names->pdata, values->len, NULL));
    g_autoptr(KilnResults) results = graph_results(at, clone);
    double most = 0;
    for (guint i = 0; i < results->tensors->len; i++)
        most = MAX(most, largest(g_ptr_array_index(results->tensors, i)));
    return most;
}

/* As kiln_results_compare(), but for U with the magnitude of the terms in place of the result's. */
static gboolean
compare(const Case *at, const KilnResults *before, const KilnResults *after, KilnNumerics numerics,
        GError **error)
{
    if (numerics == KILN_NUMERICS_E)
        return kiln_results_compare(before, after, numerics, error);
    double most = largest_on_the_way(at);
    for (guint i = 0; i < before->tensors->len; i++) {
        const KilnTensor *a = g_ptr_array_index(before->tensors, i);
        const KilnTensor *b = g_ptr_array_index(after->tensors, i);
        double own = MAX(largest(a), largest(b));
        KilnErrorTerms terms = { MAX(before->terms.terms, after->terms.terms), 0 };
        terms.terms *= own > 0 ? most / own : 1;
        if (!kiln_compare_numerics(a, b, numerics, &terms, error)) {
            g_prefix_error(error, "%s: ", (char *)g_ptr_array_index(before->names, i));
            return FALSE;
        }
    }
    return TRUE;
}

/* --- the graph level --- */

/* A clone that @passes ran on. */
static KilnModule *
optimized(const Case *at, const KilnTarget *target, bool *changed)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(KilnPassPipeline) pipeline = pipeline_of(at->passes);
    g_autoptr(KilnPassReport) report = kiln_pass_report_new();
    KilnPassOptions options = options_on(target);
    KilnModule *clone = kiln_module_clone(at->module);
    if (!kiln_pipeline_run_graph(pipeline, clone, &options, report, &error))
        fail(at, "running", error);
    *changed = changed_something(report);
    return clone;
}

static void
expect_stable(const Case *at, KilnModule *module, const KilnTarget *target)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(KilnPassPipeline) pipeline = pipeline_of(at->passes);
    g_autoptr(KilnPassPipeline) sweep = pipeline_of("dce");
    g_autoptr(KilnPassReport) report = kiln_pass_report_new();
    KilnPassOptions options = options_on(target);
    if (!kiln_pipeline_run_graph(sweep, module, &options, NULL, &error) ||
        !kiln_pipeline_run_graph(pipeline, module, &options, report, &error))
        fail(at, "running again", error);
    if (changed_something(report))
        fail(at, "a second run changed something", NULL);
}

static void
try_graph_pass(const Case *at, const KilnResults *expected, const KilnTarget *target,
               KilnNumerics numerics)
{
    bool changed;
    g_autoptr(GError) error = NULL;
    g_autoptr(KilnModule) module = optimized(at, target, &changed);
    if (!changed)
        return;
    g_autoptr(KilnResults) found = graph_results(at, module);
    if (!compare(at, expected, found, numerics, &error))
        fail(at, "the result differs", error);
    expect_stable(at, module, target);
}

static void
try_graph_passes(Case *at, const KilnResults *expected)
{
    static const struct {
        const char *passes;
        KilnNumerics numerics;
        bool lean;
    } runs[] = {
        { "dce", KILN_NUMERICS_E, false },
        { "cse", KILN_NUMERICS_E, false },
        { "dedup-constants,cse", KILN_NUMERICS_E, false },
        { "eliminate-noop", KILN_NUMERICS_E, false },
        { "merge-concats", KILN_NUMERICS_E, false },
        { "eliminate-concat-slice", KILN_NUMERICS_E, false },
        { "eliminate-slice-concat", KILN_NUMERICS_E, false },
        { "merge-transposes", KILN_NUMERICS_E, false },
        { "transpose-to-reshape", KILN_NUMERICS_E, false },
        { "optimize-arithmetic", KILN_NUMERICS_E, false },
        { "constant-fold{evaluate=compile}", KILN_NUMERICS_E, false },
        { "constant-fold{evaluate=compile,max-bytes=300,max-expansion=2}", KILN_NUMERICS_E, false },
        { "fold-batchnorm", KILN_NUMERICS_U, false },
        { "lower", KILN_NUMERICS_U, false },
        { "lower", KILN_NUMERICS_U, true },
    };
    g_autoptr(GArray) kernels = g_array_new(FALSE, FALSE, sizeof(KilnKernel));
    KilnTarget lean = lean_target(kernels);
    for (size_t i = 0; i < G_N_ELEMENTS(runs); i++) {
        at->passes = runs[i].passes;
        try_graph_pass(at, expected, runs[i].lean ? &lean : kiln_ref_target(), runs[i].numerics);
    }
}

/* --- the IR level --- */

static KilnIRModule *
lowered(const Case *at, const KilnModule *module)
{
    g_autoptr(GError) error = NULL;
    KilnIRModule *ir = kiln_ir_module_new(kiln_module_clone(module));
    KilnIRFunction *function = kiln_lower(kiln_module_entry(ir->module), &error);
    if (!function || !kiln_ir_verify(function, &error))
        fail(at, "lowering", error);
    g_ptr_array_add(ir->functions, function);
    return ir;
}

/* By name: results of the graph are outputs of the function. */
static void
expect_ir(const Case *at, KilnIRModule *ir, const KilnResults *expected)
{
    g_autoptr(GError) error = NULL;
    KilnIRFunction *function = g_ptr_array_index(ir->functions, 0);
    g_autoptr(KilnResults) heap = kiln_results_of_ir(function, kiln_ref_target(), false, &error);
    if (!heap || !kiln_results_compare(expected, heap, KILN_NUMERICS_E, &error))
        fail(at, "a buffer per alloc", error);
    g_autoptr(KilnMemoryPlan) plan = kiln_memory_plan(function, kiln_ref_target(), 1, &error);
    if (!plan || !kiln_ir_verify(function, &error))
        fail(at, "planning", error);
    g_autoptr(KilnResults) planned = kiln_results_of_ir(function, kiln_ref_target(), true, &error);
    if (!planned || !kiln_results_compare(expected, planned, KILN_NUMERICS_E, &error))
        fail(at, "in its arena", error);
}

static void
try_ir_pass(const Case *at, const KilnModule *module, const KilnResults *expected)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(KilnIRModule) ir = lowered(at, module);
    g_autoptr(KilnPassPipeline) pipeline = pipeline_of(at->passes);
    g_autoptr(KilnPassReport) report = kiln_pass_report_new();
    KilnPassOptions options = options_on(kiln_ref_target());
    if (!kiln_pipeline_run_ir(pipeline, ir, &options, report, &error))
        fail(at, "running", error);
    if (!changed_something(report))
        return;
    expect_ir(at, ir, expected);
    g_autoptr(KilnPassReport) again = kiln_pass_report_new();
    if (!kiln_pipeline_run_ir(pipeline, ir, &options, again, &error))
        fail(at, "running again", error);
    if (!strchr(at->passes, ',') && strcmp(at->passes, "default") != 0 && changed_something(again))
        fail(at, "a second run changed something", NULL);
}

static void
try_ir_passes(Case *at, const KilnResults *expected)
{
    static const char *const runs[] = {
        "ir-peephole",
        "dse",
        "hoist-dealloc",
        "sink-allocs",
        "share-buffers",
        "delete-dead-allocs",
        "make-weights-const",
        "share-buffers,ir-peephole,share-buffers,dse,delete-dead-allocs",
        "sink-allocs,hoist-dealloc,share-buffers,sink-allocs,hoist-dealloc"
    };
    at->passes = "none";
    g_autoptr(KilnIRModule) ir = lowered(at, at->module);
    expect_ir(at, ir, expected);
    for (size_t i = 0; i < G_N_ELEMENTS(runs); i++) {
        at->passes = runs[i];
        try_ir_pass(at, at->module, expected);
    }
}

/* --- both levels --- */

static void
try_default(Case *at, const KilnResults *expected)
{
    bool changed;
    g_autoptr(GError) error = NULL;
    at->passes = "default";
    g_autoptr(KilnModule) module = optimized(at, kiln_ref_target(), &changed);
    g_autoptr(KilnResults) found = graph_results(at, module);
    if (!compare(at, expected, found, KILN_NUMERICS_U, &error))
        fail(at, "the result differs", error);
    try_ir_pass(at, module, found);
}

static void
try_seeds(uint64_t part)
{
    const char *asked = g_getenv("KILN_RANDOM_GRAPHS");
    uint64_t n = asked ? g_ascii_strtoull(asked, NULL, 10) : GRAPHS_PER_TEST;
    uint64_t nodes = 0, first = 1 + part * n;
    for (uint64_t seed = first; seed < first + n; seed++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(KilnModule) module = random_graph(seed);
        Case at = { seed, module, "as made" };
        if (!kiln_module_verify(module, &error))
            fail(&at, "verifying", error);
        g_autoptr(KilnResults) expected = graph_results(&at, module);
        try_graph_passes(&at, expected);
        try_ir_passes(&at, expected);
        try_default(&at, expected);
        nodes += kiln_module_entry(module)->n_nodes;
    }
    cr_expect(nodes > 15 * n, "graphs of %lu nodes altogether are too small", (unsigned long)nodes);
}

Test(random_graphs, part_1)
{
    try_seeds(0);
}

Test(random_graphs, part_2)
{
    try_seeds(1);
}

Test(random_graphs, part_3)
{
    try_seeds(2);
}

Test(random_graphs, part_4)
{
    try_seeds(3);
}
