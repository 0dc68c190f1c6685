/* SPDX-License-Identifier: Apache-2.0 */
/* Sinking, hoisting and merging transposes until nothing changes: no order of them goes round in
 * circles. Tried on the inputs of the goldens of these passes and on random graphs. */
#include "backends/ref/ref.h"
#include "graph/text/text.h"
#include "passes/context/options.h"
#include "passes/context/report.h"
#include "passes/manager/manager.h"
#include "passes/pipeline/pipeline.h"
#include "tests/random/random_graph.h"

#include <criterion/criterion.h>

#include <string.h>

enum {
    RANDOM_GRAPHS = 400
};

static const char *const orders[] = {
    "sink-transposes, hoist-transposes, merge-transposes",
    "hoist-transposes, sink-transposes, merge-transposes",
    "merge-transposes, hoist-transposes, transpose-to-reshape, sink-transposes",
};

static gboolean
run(const char *order, KilnModule *module, KilnPassReport *report, GError **error)
{
    g_autofree char *text = g_strdup_printf("version: 1\n"
                                            "graph:\n"
                                            "  - group: [%s]\n"
                                            "    convergence: until-fixed-point\n",
                                            order);
    g_autoptr(KilnPassPipeline) pipeline =
        kiln_pass_pipeline_parse_yaml(text, strlen(text), "group", error);
    KilnPassOptions options = KILN_PASS_OPTIONS_INIT;
    options.target = kiln_ref_target();
    options.check_changed = true;
    return pipeline && kiln_pipeline_run_graph(pipeline, module, &options, report, error);
}

/* The cap on iterations is an error. */
static void
expect_fixed_point(const KilnModule *module, const char *name)
{
    for (size_t i = 0; i < G_N_ELEMENTS(orders); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(KilnModule) clone = kiln_module_clone(module);
        g_autoptr(KilnPassReport) report = kiln_pass_report_new();
        cr_assert(run(orders[i], clone, NULL, &error), "%s: %s: %s", name, orders[i],
                  error ? error->message : "");
        cr_assert(run(orders[i], clone, report, &error), "%s: again: %s", name,
                  error ? error->message : "");
        for (guint k = 0; k < report->passes->len; k++) {
            const KilnPassStats *stats = g_ptr_array_index(report->passes, k);
            cr_assert(!stats->changed, "%s: %s changed something after the fixed point", name,
                      stats->id);
        }
    }
}

static void
try_golden(const char *path)
{
    g_autofree char *text = NULL;
    g_autoptr(GError) error = NULL;
    cr_assert(g_file_get_contents(path, &text, NULL, NULL), "%s", path);
    char *expected = strstr(text, "# ----");
    size_t length = expected ? (size_t)(expected - text) : strlen(text);
    g_autoptr(KilnModule) module = kiln_module_parse(text, length, path, &error);
    cr_assert(module, "%s: %s", path, error ? error->message : "");
    expect_fixed_point(module, path);
}

Test(transposes, goldens)
{
    static const char *const folders[] = { "sink-transposes", "hoist-transposes",
                                           "merge-transposes" };
    for (size_t i = 0; i < G_N_ELEMENTS(folders); i++) {
        g_autofree char *folder =
            g_build_filename(KILN_SOURCE_DIR "/tests/golden", folders[i], NULL);
        g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
        cr_assert(dir, "%s", folder);
        for (const char *name; (name = g_dir_read_name(dir));) {
            g_autofree char *path = g_build_filename(folder, name, NULL);
            try_golden(path);
        }
    }
}

Test(transposes, random_graphs)
{
    for (uint64_t seed = 1; seed <= RANDOM_GRAPHS; seed++) {
        g_autofree char *name = g_strdup_printf("graph %u", (unsigned)seed);
        g_autoptr(KilnModule) module = random_graph(seed);
        expect_fixed_point(module, name);
    }
}
