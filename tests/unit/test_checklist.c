/* SPDX-License-Identifier: Apache-2.0 */
/* Promises of the pass manager and of every pass, by their names in the checklists: what an entry
 * of a pipeline may say (P1 to P5), that passes settle (P7, N15), and that addresses decide nothing
 * (N14). Passes come from the table and graphs from the goldens, so that new ones are tested too.
 */
#include "passes/context/options.h"
#include "passes/context/report.h"
#include "passes/manager/hash.h"
#include "passes/manager/manager.h"
#include "passes/pipeline/pipeline.h"
#include "passes/pipeline/pipeline_priv.h"

#include "backends/ref/ref.h"
#include "passes/pass.h"
#include "tests/random/random_graph.h"

#include <criterion/criterion.h>
#include <string.h>

/* --- pipelines --- */

static KilnPassPipeline *
pipeline_of_yaml(const char *yaml)
{
    g_autoptr(GError) error = NULL;
    KilnPassPipeline *pipeline =
        kiln_pass_pipeline_parse_yaml(yaml, strlen(yaml), "p.yaml", &error);
    cr_assert(pipeline, "%s", error ? error->message : "");
    return pipeline;
}

static KilnModule *
module_of(const char *text)
{
    g_autoptr(GError) error = NULL;
    KilnModule *module = kiln_module_parse(text, strlen(text), "text", &error);
    cr_assert(module, "%s", error ? error->message : "");
    return module;
}

static const KilnPipelineEntry *
entry_at(const KilnPassPipeline *pipeline, guint i)
{
    return g_ptr_array_index(pipeline->graph, i);
}

static const char twins[] =
    "graph @f(%x: f32[4]) {\n  %a = exp(%x) : f32[4]\n"
    "  %b = exp(%x) : f32[4]\n  %c = add(%a, %b) : f32[4]\n  return %c\n}\n";

static char *
run_text(const char *text, const char *yaml, KilnPassReport *report)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(KilnModule) module = module_of(text);
    g_autoptr(KilnPassPipeline) pipeline = pipeline_of_yaml(yaml);
    KilnPassOptions options = KILN_PASS_OPTIONS_INIT;
    cr_assert(kiln_pipeline_run_graph(pipeline, module, &options, report, &error), "%s",
              error ? error->message : "");
    GString *out = g_string_new(NULL);
    cr_assert(kiln_module_print(module, NULL, out, NULL));
    return g_string_free(out, FALSE);
}

static uint32_t
runs_of(const KilnPassReport *report, const char *id)
{
    for (guint i = 0; i < report->passes->len; i++) {
        const KilnPassStats *stats = g_ptr_array_index(report->passes, i);
        if (strcmp(stats->id, id) == 0)
            return stats->runs;
    }
    return 0;
}

Test(checklist, glw_p1_an_entry_without_a_pass_does_nothing)
{
    g_autoptr(KilnPassReport) report = kiln_pass_report_new();
    g_autofree char *text = run_text(twins, "version: 1\ngraph:\n  - {dce: none}\n", report);
    cr_assert_str_eq(text, twins);
    cr_assert_eq(runs_of(report, "empty"), 1);
    cr_assert_eq(report->applications, 1);
}

Test(checklist, glw_p2_an_entry_runs_once_unless_it_says_otherwise)
{
    static const char yaml[] = "version: 1\ngraph:\n  - cse\n"
                               "  - {pass: cse, convergence: until-fixed-point}\n"
                               "  - {pass: cse, convergence: one-pass}\n";
    g_autoptr(KilnPassPipeline) pipeline = pipeline_of_yaml(yaml);
    cr_assert_eq(entry_at(pipeline, 0)->convergence, KILN_ONE_PASS);
    cr_assert_eq(entry_at(pipeline, 1)->convergence, KILN_UNTIL_FIXED_POINT);
    cr_assert_eq(entry_at(pipeline, 2)->convergence, KILN_ONE_PASS);
    g_autoptr(KilnPassReport) once = kiln_pass_report_new();
    g_free(run_text(twins, "version: 1\ngraph:\n  - cse\n", once));
    cr_assert_eq(runs_of(once, "cse"), 1);
    g_autoptr(KilnPassReport) fixed = kiln_pass_report_new();
    g_free(run_text(twins, "version: 1\ngraph:\n  - {pass: cse, convergence: until-fixed-point}\n",
                    fixed));
    cr_assert_eq(runs_of(fixed, "cse"), 2); /* the second finds nothing */
}

Test(checklist, glw_p3_dce_runs_before_an_entry_unless_it_says_otherwise)
{
    g_autoptr(KilnPassPipeline) pipeline =
        pipeline_of_yaml("version: 1\ngraph:\n  - cse\n  - {pass: cse, dce: none}\n"
                         "  - {pass: cse, dce: before-pass}\n");
    cr_assert(entry_at(pipeline, 0)->dce_before);
    cr_assert_not(entry_at(pipeline, 1)->dce_before);
    cr_assert(entry_at(pipeline, 2)->dce_before);
    static const char dead[] = "graph @f(%x: f32[4]) {\n  %a = exp(%x) : f32[4]\n"
                               "  %b = neg(%x) : f32[4]\n  return %b\n}\n";
    g_autofree char *with = run_text(dead, "version: 1\ngraph:\n  - empty\n", NULL);
    cr_assert_null(strstr(with, "exp"));
    g_autofree char *without =
        run_text(dead, "version: 1\ngraph:\n  - {pass: empty, dce: none}\n", NULL);
    cr_assert_str_eq(without, dead);
}

Test(checklist, glw_p4_an_entry_is_of_both_modes_unless_it_says_otherwise)
{
    g_autoptr(KilnPassPipeline) pipeline =
        pipeline_of_yaml("version: 1\ngraph:\n  - cse\n  - {pass: cse, modes: [train]}\n");
    cr_assert_eq(entry_at(pipeline, 0)->modes, 1u << KILN_MODE_INFER | 1u << KILN_MODE_TRAIN);
    cr_assert_eq(entry_at(pipeline, 1)->modes, 1u << KILN_MODE_TRAIN);
    g_autoptr(KilnPassReport) report = kiln_pass_report_new();
    g_autofree char *text =
        run_text(twins, "version: 1\ngraph:\n  - {pass: cse, modes: [train], dce: none}\n", report);
    cr_assert_str_eq(text, twins); /* in inference */
    cr_assert_eq(report->applications, 0);
}

Test(checklist, glw_p5_a_pipeline_is_a_list_that_prints_and_reads_back)
{
    g_autoptr(KilnPassPipeline) pipeline = kiln_pass_pipeline_new();
    for (uint32_t i = 0; i < kiln_pass_count(); i++) {
        KilnPipelineEntry *entry = kiln_pass_pipeline_add(pipeline, kiln_pass_at(i)->id, NULL);
        cr_assert_not_null(entry);
        entry->convergence = i % 3 ? KILN_ONE_PASS : KILN_UNTIL_FIXED_POINT;
        entry->max_iterations = i % 5 ? KILN_MAX_ITERATIONS : 7;
        entry->dce_before = i % 2 == 0 || entry->pass->level == KILN_LEVEL_IR;
        entry->modes = i % 7 ? entry->modes : 1u << KILN_MODE_TRAIN;
    }
    pipeline->flags = KILN_FLAG(finite_math) | KILN_FLAG(quant_lossy);
    g_autoptr(GString) text = g_string_new(NULL), again = g_string_new(NULL);
    kiln_pass_pipeline_print(pipeline, text);
    g_autoptr(KilnPassPipeline) read = pipeline_of_yaml(text->str);
    kiln_pass_pipeline_print(read, again);
    cr_assert_str_eq(again->str, text->str);
    cr_assert_eq(read->graph->len + read->ir->len, kiln_pass_count());
    cr_assert_eq(read->flags, pipeline->flags);
    for (guint i = 0; i < read->graph->len; i++) {
        const KilnPipelineEntry *a = entry_at(pipeline, i), *b = entry_at(read, i);
        cr_assert(a->pass == b->pass && a->convergence == b->convergence && a->modes == b->modes &&
                  a->dce_before == b->dce_before && a->max_iterations == b->max_iterations);
    }
    g_ptr_array_remove_index(read->graph, 0); /* it is a vector: entries go and come anywhere */
    g_string_truncate(again, 0);
    kiln_pass_pipeline_print(read, again);
    cr_assert_lt(again->len, text->len);
}

/* --- every pass on every kind of graph --- */

enum {
    RANDOM_GRAPHS = 40,
};

/* One pass, lossy rewrites allowed. */
static KilnPassPipeline *
pipeline_of_pass(const char *id)
{
    g_autofree char *text =
        g_strconcat(id, strcmp(id, "constant-fold") == 0 ? "{evaluate=compile}" : "", NULL);
    KilnPassPipeline *pipeline = kiln_pass_pipeline_parse_inline(text, NULL);
    cr_assert(pipeline, "%s", id);
    pipeline->flags = (1u << KILN_N_FLAGS) - 1;
    return pipeline;
}

static void
add_golden(GPtrArray *modules, const char *path)
{
    g_autofree char *text = NULL;
    cr_assert(g_file_get_contents(path, &text, NULL, NULL));
    char *rule = strstr(text, "\n# ----\n");
    if (rule)
        rule[1] = '\0';
    if (strstr(text, "\nfunc @"))
        return;
    KilnModule *module = kiln_module_parse(text, strlen(text), path, NULL);
    if (module)
        g_ptr_array_add(modules, module);
}

static int
by_name(gconstpointer a, gconstpointer b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void
list_folder(const char *path, GPtrArray *names)
{
    g_autoptr(GDir) dir = g_dir_open(path, 0, NULL);
    const char *name;
    while (dir && (name = g_dir_read_name(dir)))
        g_ptr_array_add(names, g_build_filename(path, name, NULL));
    g_ptr_array_sort(names, by_name);
}

static void
module_unref(gpointer module)
{
    kiln_module_free(module);
}

/* What the goldens of all passes begin with, and random graphs. */
static GPtrArray *
all_graphs(void)
{
    GPtrArray *modules = g_ptr_array_new_with_free_func(module_unref);
    g_autoptr(GPtrArray) folders = g_ptr_array_new_with_free_func(g_free);
    list_folder(KILN_SOURCE_DIR "/tests/golden", folders);
    for (guint i = 0; i < folders->len; i++) {
        g_autoptr(GPtrArray) files = g_ptr_array_new_with_free_func(g_free);
        list_folder(g_ptr_array_index(folders, i), files);
        for (guint k = 0; k < files->len; k++)
            add_golden(modules, g_ptr_array_index(files, k));
    }
    cr_assert_gt(modules->len, 100);
    for (uint64_t seed = 1; seed <= RANDOM_GRAPHS; seed++)
        g_ptr_array_add(modules, random_graph(seed));
    return modules;
}

static bool
changed_by(const KilnPassReport *report, const char *id)
{
    for (guint i = 0; i < report->passes->len; i++) {
        const KilnPassStats *stats = g_ptr_array_index(report->passes, i);
        if (strcmp(stats->id, id) == 0)
            return stats->changed > 0;
    }
    return false;
}

/* Runs @pass once, its DCE before it; false where it cannot run on @module. */
static bool
run_pass(const KilnPassPipeline *pipeline, const char *id, KilnModule *module, bool *changed)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(KilnPassReport) report = kiln_pass_report_new();
    KilnPassOptions options = KILN_PASS_OPTIONS_INIT;
    options.target = kiln_ref_target();
    options.mode = module->mode;
    options.check_changed = true;
    if (!kiln_pipeline_run_graph(pipeline, module, &options, report, &error)) {
        cr_expect(error->code != KILN_ERROR_PASS && error->code != KILN_ERROR_LIMIT, "%s: %s", id,
                  error->message);
        return false;
    }
    *changed = changed_by(report, id);
    return true;
}

static uint64_t
content(const KilnModule *module)
{
    uint64_t hash = kiln_hash_module(module).named;
    for (guint i = 0; i < module->functions->len; i++)
        hash = hash * 31 + kiln_hash_function(g_ptr_array_index(module->functions, i)).named;
    return hash;
}

/* The second run of a pass says that it changed nothing, and it is true. */
static void
expect_settled(const KilnPassPipeline *pipeline, const char *id, const KilnModule *original)
{
    bool changed, again;
    g_autoptr(KilnModule) module = kiln_module_clone(original);
    g_autoptr(KilnPassPipeline) sweep = pipeline_of_pass("dce");
    if (!run_pass(pipeline, id, module, &changed) || !changed)
        return;
    cr_assert(run_pass(sweep, "dce", module, &again));
    uint64_t before = content(module);
    cr_assert(run_pass(pipeline, id, module, &again));
    if (!again && before == content(module))
        return;
    g_autoptr(GString) text = g_string_new(NULL);
    kiln_module_print(original, NULL, text, NULL);
    cr_expect(false, "%s: the second run %s\n%s", id,
              again ? "changed something" : "changed something and does not say so", text->str);
}

Test(checklist, glw_p7_n15_a_pass_run_twice_changes_nothing_the_second_time)
{
    g_autoptr(GPtrArray) graphs = all_graphs();
    for (uint32_t p = 0; p < kiln_pass_count(); p++) {
        const KilnPassInfo *pass = kiln_pass_at(p);
        if (pass->level != KILN_LEVEL_GRAPH)
            continue;
        g_autoptr(KilnPassPipeline) pipeline = pipeline_of_pass(pass->id);
        for (guint i = 0; i < graphs->len; i++)
            expect_settled(pipeline, pass->id, g_ptr_array_index(graphs, i));
    }
}

/* --- addresses --- */

/* Pieces of memory of many sizes, every other one freed: what is allocated next lies elsewhere, and
 * in another order. */
static GPtrArray *
disturb(uint32_t seed)
{
    GPtrArray *pieces = g_ptr_array_new_with_free_func(g_free);
    for (uint32_t i = 0; i < 2000; i++) {
        seed = seed * 1664525u + 1013904223u;
        g_ptr_array_add(pieces, g_malloc(16 + (seed >> 16) % (i % 50 ? 600 : 70000)));
    }
    for (guint i = seed % 2; i < pieces->len; i += 2)
        g_clear_pointer(&pieces->pdata[i], g_free);
    return pieces;
}

static char *
optimized_text(const char *text, const KilnPassPipeline *pipeline, uint32_t seed)
{
    g_autoptr(GError) error = NULL;
    GPtrArray *pieces = disturb(seed);
    g_autoptr(KilnModule) module = module_of(text);
    KilnPassOptions options = KILN_PASS_OPTIONS_INIT;
    options.target = kiln_ref_target();
    cr_assert(kiln_pipeline_run_graph(pipeline, module, &options, NULL, &error), "%s",
              error ? error->message : "");
    GString *out = g_string_new(NULL);
    cr_assert(kiln_module_print(module, NULL, out, NULL));
    g_ptr_array_unref(pieces);
    return g_string_free(out, FALSE);
}

/* Every pass of the table in turn, twice. */
static KilnPassPipeline *
pipeline_of_all(void)
{
    g_autoptr(GString) text = g_string_new(NULL);
    for (uint32_t i = 0; i < 2 * kiln_pass_count(); i++) {
        const KilnPassInfo *pass = kiln_pass_at(i % kiln_pass_count());
        if (pass->level == KILN_LEVEL_GRAPH)
            g_string_append_printf(text, "%s%s%s", text->len ? "," : "", pass->id,
                                   strcmp(pass->id, "constant-fold") == 0 ? "{evaluate=compile}"
                                                                          : "");
    }
    g_autoptr(GError) error = NULL;
    KilnPassPipeline *pipeline = kiln_pass_pipeline_parse_inline(text->str, &error);
    cr_assert(pipeline, "%s", error ? error->message : "");
    return pipeline;
}

/* Products that may be merged in every way: groups with a common left and a common right operand,
 * some of which depend on others. */
static char *
many_products(void)
{
    GString *text = g_string_new("graph @f(%x: f32[6,8], %y: f32[6,8]) {\n");
    g_autoptr(GString) constants = g_string_new("constants {\n");
    for (int i = 0; i < 40; i++) {
        g_string_append_printf(text, "  %%w%d = const @w%d : f32[8,8]\n", i, i % 20);
        g_string_append_printf(text, "  %%p%d = matmul(%s, %%w%d) : f32[6,8]\n", i,
                               i % 3 == 0   ? "%x"
                               : i % 3 == 1 ? "%y"
                                            : "%p1",
                               i);
        if (i < 20)
            g_string_append_printf(constants, "  @w%d = random_normal(seed=%d, std=1) : f32[8,8]\n",
                                   i, i);
    }
    g_string_append(text, "  %s0 = add(%p0, %p2) : f32[6,8]\n");
    for (int i = 1; i < 39; i++)
        g_string_append_printf(text, "  %%s%d = add(%%s%d, %%p%d) : f32[6,8]\n", i, i - 1, i + 1);
    g_string_append_printf(text, "  return %%s38\n}\n%s}\n", constants->str);
    return g_string_free(text, FALSE);
}

static void
expect_same_text(const char *text, const KilnPassPipeline *pipeline)
{
    g_autofree char *first = optimized_text(text, pipeline, 0);
    for (uint32_t seed = 1; seed <= 3; seed++) {
        g_autofree char *other = optimized_text(text, pipeline, seed);
        cr_assert_str_eq(other, first);
    }
}

Test(checklist, n14_where_memory_lies_decides_nothing)
{
    g_autoptr(KilnPassPipeline) all = pipeline_of_all();
    g_autofree char *products = many_products();
    expect_same_text(products, all);
    for (uint64_t seed = 100; seed < 120; seed++) {
        g_autoptr(KilnModule) module = random_graph(seed);
        g_autoptr(GString) text = g_string_new(NULL);
        cr_assert(kiln_module_print(module, NULL, text, NULL));
        expect_same_text(text->str, all);
    }
}
