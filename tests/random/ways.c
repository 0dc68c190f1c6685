/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/random/ways.h"

#include "runtime/pipeline.h"
#include "kiln.h"
#include "passes/manager/results.h"
#include "passes/pipeline/pipeline.h"
#include "passes/rule.h"
#include "tests/random/given.h"

#include <string.h>

static const char *const way_names[] = { "known to compile", "known at the first run", "inputs",
                                         "given in mixed ways" };

/* --- programs --- */

/* Of @entries what changes no bit, and the lowerings without which nothing runs. */
static void
keep_exact(KilnPassPipeline *passes, GPtrArray *entries, bool three, bool late)
{
    for (guint i = entries->len; i-- > 0;) {
        KilnPipelineEntry *entry = g_ptr_array_index(entries, i);
        if (entry->group) {
            keep_exact(passes, entry->group, three, late);
            if (!entry->group->len)
                g_ptr_array_remove_index(entries, i);
        } else if (strcmp(entry->pass->id, "constant-fold") == 0) {
            given_set_option(passes, entry, "functions", three ? "three" : "two");
            given_set_option(passes, entry, "evaluate", late ? "run" : "compile");
        } else if (kiln_pass_numerics(entry->pass, 0) != KILN_NUMERICS_E &&
                   !g_str_has_prefix(entry->pass->id, "lower")) {
            g_ptr_array_remove_index(entries, i);
        }
    }
}

KilnPipeline *
ways_exact_pipeline(uint64_t seed, GError **error)
{
    KilnPipeline *pipeline = kiln_pipeline_load("default", error);
    if (pipeline)
        keep_exact(pipeline->passes, pipeline->passes->graph, seed & 1, seed >> 1 & 1);
    return pipeline;
}

static KilnResults *
run(KilnModel *model, const char *target, const Given *given, Way way, GError **error)
{
    g_autoptr(KilnPipeline) pipeline = ways_exact_pipeline(given->seed, error);
    return pipeline ? given_run_under(given, way, model, pipeline, target, false, error) : NULL;
}

static gboolean
agree_on(const char *target, KilnModel *literal, KilnModel *given_model, const Given *given,
         GError **error)
{
    g_autoptr(KilnResults) expected = run(literal, target, given, WAY_INPUT, error);
    for (Way way = 0; expected && way < N_WAYS; way++) {
        g_autoptr(KilnResults) found = run(given_model, target, given, way, error);
        if (!found || !kiln_results_compare(expected, found, KILN_NUMERICS_E, error)) {
            g_prefix_error(error, "on %s, constants %s: ", target, way_names[way]);
            return FALSE;
        }
    }
    return expected != NULL;
}

gboolean
ways_agree(uint64_t seed, Subject *subject, bool *fired, GError **error)
{
    g_auto(Given) given = { 0 };
    given_init(&given, subject, seed, true);
    *fired = given.inputs->len > given.n_before;
    if (!*fired)
        return TRUE;
    g_autoptr(KilnModel) literal = given_load(subject->module, error);
    g_autoptr(KilnModel) model = literal ? given_load(given.module, error) : NULL;
    return model && agree_on("ref", literal, model, &given, error) &&
           agree_on("cpu", literal, model, &given, error);
}
