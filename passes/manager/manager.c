/* SPDX-License-Identifier: Apache-2.0 */
/* The one loop through which every pass runs, at both levels: assure what it requires → run →
 * check that `changed` is honest → keep only what it preserves → verify → compare numbers → dump,
 * time, count. Nothing bypasses apply(). */
#include "passes/manager/manager.h"

#include "graph/base/budget.h"
#include "graph/grow/reserve.h"
#include "passes/context/context.h"
#include "passes/manager/analysis.h"
#include "passes/manager/check.h"
#include "passes/manager/dump.h"
#include "passes/manager/hash.h"
#include "passes/manager/unit.h"
#include "passes/query/equal_constants.h"
#include "passes/query_ir/lives.h"
#include "passes/rule.h"

#include <string.h>

typedef struct {
    const KilnPassPipeline *pipeline;
    const KilnPassOptions *options;
    KilnPassReport *report;
    const KilnPassInfo *dce;
    KilnUnit module;
    KilnUnit unit; /* the function being worked on */
    KilnPassContext context;
    KilnAnalyses *analyses;
    KilnKnownHashes known;   /* for kiln_unit_hash() */
    KilnNumericCheck *check; /* NULL: numbers are not compared */
    double fraction;         /* of the entries that are done */
    bool stopped;            /* the bisect limit was reached */
    bool cost_known;         /* the report's is of the module as it is */
} Manager;

/* What one application is made of. */
typedef struct {
    const KilnPassInfo *pass;
    const void *options;
    bool implicit; /* DCE in front of an entry */
} Step;

static bool
contains(const char *const *ids, const char *id)
{
    for (; ids && *ids; ids++) {
        if (strcmp(*ids, id) == 0)
            return true;
    }
    return false;
}

/* --- one application --- */

/* "pass X (application N, @function): " in front of what went wrong. */
static gboolean
blame(const Manager *manager, const KilnPassInfo *pass, GError **error)
{
    kiln_prefix_error(error, "pass %s (application %u, @%s): ", pass->id,
                      manager->report->applications, kiln_unit_name(&manager->unit));
    return FALSE;
}

static gboolean
check_honest(uint64_t before, uint64_t after, bool changed, GError **error)
{
    if (before != after && !changed)
        return kiln_throw(error, KILN_ERROR_PASS,
                          "it reports no change, but the function or the module changed");
    if (before == after && changed)
        return kiln_throw(error, KILN_ERROR_PASS, "it reports a change, but nothing changed");
    return TRUE;
}

/* What our passes touch is noted by the functions that they change it with; a pass of others may
 * write past them. Where internal assertions are kept, so may ours: what the short way misses is
 * found at once. */
static gboolean
verify_after(const KilnUnit *unit, const KilnPassInfo *pass, GError **error)
{
    bool ours = kiln_pass_find(pass->id) == pass;
#ifndef G_DISABLE_ASSERT
    if (ours && !kiln_unit_verify_changes(unit, error))
        return FALSE;
    ours = false;
#endif
    return ours ? kiln_unit_verify_changes(unit, error) : kiln_unit_verify(unit, error);
}

/* What nothing touched since it was verified is valid still. */
static gboolean
verify(Manager *manager, const KilnPassInfo *pass, GError **error)
{
    const KilnUnit *unit = &manager->unit;
    if (!manager->options->verify || kiln_analyses_is_verified(manager->analyses, unit))
        return TRUE;
    if (!verify_after(unit, pass, error)) {
        kiln_prefix_error(error, "it left a function that is not valid: ");
        return FALSE;
    }
    kiln_analyses_set_verified(manager->analyses, unit);
    return TRUE;
}

/* Every function whole: before the first pass, nothing that happened until then is relied on; after
 * the last one, nothing that was looked at in parts. */
static gboolean
verify_all(const Manager *manager, const char *what, GError **error)
{
    if (!manager->options->verify)
        return TRUE;
    g_autoptr(GPtrArray) functions = kiln_unit_functions(&manager->module);
    for (guint i = 0; i < functions->len; i++) {
        KilnUnit unit = kiln_unit_of(&manager->module, g_ptr_array_index(functions, i));
        if (unit.graph && unit.graph->owner)
            continue; /* with the function around it */
        if (!kiln_unit_verify_whole(&unit, error)) {
            kiln_prefix_error(error, "%s: ", what);
            return FALSE;
        }
    }
    return TRUE;
}

static gboolean
run_and_check(Manager *manager, const Step *step, KilnPassStats *stats, bool *changed,
              GError **error)
{
    const KilnPassOptions *options = manager->options;
    const KilnUnit *unit = &manager->unit;
    uint64_t before = options->check_changed ? kiln_unit_hash(unit, NULL).named : 0;
    if (manager->check && !kiln_check_before(manager->check, unit, error))
        return FALSE;

    uint64_t stamp = kiln_unit_stamp(unit);
    gint64 start = g_get_monotonic_time();
    gboolean ok = kiln_unit_run(unit, step->pass, &manager->context, changed, error);
    stats->ms += (double)(g_get_monotonic_time() - start) / 1000.0;
    if (!ok)
        return FALSE;

    if (options->check_changed &&
        !check_honest(before, kiln_unit_hash(unit, NULL).named, *changed, error))
        return FALSE;
    if (*changed) {
        if (stamp == kiln_unit_stamp(unit))
            kiln_unit_touch(unit);
        kiln_analyses_keep_only(manager->analyses, unit, step->pass->preserves);
    }
    if (!verify(manager, step->pass, error))
        return FALSE;
    if (!manager->check || !*changed)
        return TRUE;
    const KilnPassContext *context = &manager->context;
    KilnNumerics numerics = kiln_pass_numerics(step->pass, context->flags);
    numerics = MAX(numerics, context->numerics);
    if (options->check_target && options->check_target != options->target)
        numerics = MAX(numerics, context->elsewhere);
    return kiln_check_after(manager->check, unit, numerics, error);
}

static gboolean
announce(Manager *manager, const Step *step, GError **error)
{
    const KilnPassInfo *pass = step->pass;
    KilnPassReport *report = manager->report;
    report->applications++;
    g_free(report->last_application);
    report->last_application = g_strdup_printf("%u %s @%s", report->applications, pass->id,
                                               kiln_unit_name(&manager->unit));
    report->last_pass = pass;
    report->last_options = step->options;
    const KilnPassOptions *options = manager->options;
    if (options->progress &&
        !options->progress(manager->fraction, report->last_application, options->data))
        return kiln_throw(error, KILN_ERROR_CANCELLED, "cancelled");
    return TRUE;
}

/* What the module costs now: measured again only where something changed. */
static KilnUnitCost
cost_now(Manager *manager, bool changed)
{
    KilnPassReport *report = manager->report;
    if (manager->options->measure && (changed || !manager->cost_known)) {
        report->cost = kiln_unit_cost(&manager->unit);
        report->measured = manager->cost_known = true;
    }
    return report->cost;
}

static void
count_before(Manager *manager, KilnPassStats *stats, int64_t size)
{
    KilnUnitCost cost = cost_now(manager, false);
    if (stats->runs > 0)
        return;
    stats->nodes_before = size;
    stats->cost_before = cost;
}

static void
count_after(Manager *manager, const Step *step, KilnPassStats *stats, int64_t size, bool changed)
{
    KilnUnitCost before = manager->report->cost;
    stats->runs++;
    stats->changed += changed;
    if (changed)
        stats->numerics = MAX(stats->numerics, manager->context.numerics);
    if (changed && !step->implicit)
        stats->last_changed = manager->report->applications;
    stats->nodes_after = kiln_unit_size(&manager->unit);
    stats->delta += stats->nodes_after - size;
    stats->cost_after = cost_now(manager, changed);
    stats->cost_delta.flops += stats->cost_after.flops - before.flops;
    stats->cost_delta.constant_bytes += stats->cost_after.constant_bytes - before.constant_bytes;
}

/* What the pass made is within reason, and there is memory and time to go on. */
static gboolean
check_limits(const Manager *manager, GError **error)
{
    const KilnUnit *unit = &manager->unit;
    return kiln_reserve_check((size_t)kiln_unit_size(unit), error) &&
           kiln_budget_check_nodes(unit->module->n_nodes, kiln_unit_name(unit), error) &&
           kiln_budget_check_time(error);
}

static gboolean
apply(Manager *manager, const Step *step, bool *changed, GError **error)
{
    const KilnPassOptions *options = manager->options;
    KilnPassReport *report = manager->report;
    *changed = false;
    if (options->bisect_limit >= 0 && report->applications >= options->bisect_limit) {
        manager->stopped = true;
        return TRUE;
    }
    if (!announce(manager, step, error))
        return blame(manager, step->pass, error);

    KilnPassStats *stats = kiln_pass_report_stats(report, step->pass);
    int64_t size = kiln_unit_size(&manager->unit);
    count_before(manager, stats, size);
    kiln_analyses_assure(manager->analyses, &manager->unit, step->pass->requires_);
    KilnPassContext *context = &manager->context;
    context->pass = step->pass;
    context->pass_options = step->options;
    context->stats = stats;
    context->implicit = step->implicit;
    context->application = report->applications;
    context->numerics = context->elsewhere = KILN_NUMERICS_E;
    context->liveness = step->pass->requires_ & KILN_ANALYSIS_LIVENESS
                            ? kiln_analyses_liveness(manager->analyses, &manager->unit)
                            : NULL;
    gboolean ok = run_and_check(manager, step, stats, changed, error);
    context->pass = NULL;
    context->subject = NULL;
    context->stats = NULL;
    count_after(manager, step, stats, size, *changed);
    if (!ok || !check_limits(manager, error))
        return blame(manager, step->pass, error);
    if (*changed && manager->unit.graph)
        kiln_module_compact(manager->unit.module);
    KilnApplication application = { step->pass, report->applications, *changed };
    return kiln_dump(options, &manager->unit, &application, error);
}

/* --- entries --- */

static gboolean run_entry(Manager *manager, const KilnPipelineEntry *entry, bool *changed,
                          GError **error);

static bool
is_wanted(const Manager *manager, const KilnPassInfo *pass)
{
    const KilnPassOptions *options = manager->options;
    return !contains(options->skip, pass->id) &&
           (!options->only || contains(options->only, pass->id));
}

static gboolean
run_once(Manager *manager, const KilnPipelineEntry *entry, bool *changed, GError **error)
{
    if (entry->group) {
        for (guint i = 0; i < entry->group->len && !manager->stopped; i++) {
            bool again = false;
            if (!run_entry(manager, g_ptr_array_index(entry->group, i), &again, error))
                return FALSE;
            *changed |= again;
        }
        return TRUE;
    }
    if (!is_wanted(manager, entry->pass) ||
        kiln_analyses_is_settled(manager->analyses, &manager->unit, entry))
        return TRUE;
    bool dce = entry->dce_before && entry->pass->level == KILN_LEVEL_GRAPH &&
               entry->pass != manager->dce && !contains(manager->options->skip, "dce");
    if (dce) {
        bool removed;
        if (!apply(manager, &(Step){ .pass = manager->dce, .implicit = true }, &removed, error))
            return FALSE;
    }
    bool again = false;
    if (!apply(manager, &(Step){ .pass = entry->pass, .options = entry->options }, &again, error))
        return FALSE;
    if (!again && !manager->stopped)
        kiln_analyses_set_settled(manager->analyses, &manager->unit, entry);
    *changed |= again;
    return TRUE;
}

/* "pass sink" or "group a, b", with the place in the file. */
static char *
entry_label(const KilnPipelineEntry *entry)
{
    GString *text = g_string_new(entry->group ? "group" : "pass");
    if (entry->pass)
        g_string_append_printf(text, " %s", entry->pass->id);
    for (guint i = 0; entry->group && i < entry->group->len; i++) {
        const KilnPipelineEntry *member = g_ptr_array_index(entry->group, i);
        g_string_append_printf(text, "%s %s", i ? "," : "",
                               member->pass ? member->pass->id : "group");
    }
    if (entry->where)
        g_string_append_printf(text, " (%s)", entry->where);
    return g_string_free(text, FALSE);
}

static gboolean
throw_no_fixed_point(const Manager *manager, const KilnPipelineEntry *entry, const char *why,
                     KilnError code, GError **error)
{
    g_autofree char *label = entry_label(entry);
    g_autofree char *recent = kiln_pass_context_recent(&manager->context);
    return kiln_throw(error, code, "%s (application %u, @%s): %s; last rewrites: %s", label,
                      manager->report->applications, kiln_unit_name(&manager->unit), why, recent);
}

/* What the function was after an iteration. */
typedef struct {
    KilnHashes hashes;
    uint32_t applications; /* until then */
} Form;

static Form
form_of(Manager *manager)
{
    return (Form){ kiln_unit_hash(&manager->unit, &manager->known), manager->report->applications };
}

/* "sink (below-relu), hoist (above-relu)": the passes that changed something after application
 * @since, each with its rules that fired, in order of their first application. */
static char *
doers(const KilnPassReport *report, uint32_t since)
{
    GString *text = g_string_new(NULL);
    for (guint i = 0; i < report->passes->len; i++) {
        const KilnPassStats *stats = g_ptr_array_index(report->passes, i);
        if (stats->last_changed <= since)
            continue;
        g_string_append_printf(text, "%s%s", text->len ? ", " : "", stats->id);
        const char *before = " (", *end = "";
        for (guint r = 0; r < stats->rules->len; r++) {
            const KilnRuleStats *rule = g_ptr_array_index(stats->rules, r);
            if (rule->last_fired <= since)
                continue;
            g_string_append_printf(text, "%s%s", before, rule->name);
            before = ", ";
            end = ")";
        }
        g_string_append(text, end);
    }
    return g_string_free(text, FALSE);
}

static char *
circle(const KilnPipelineEntry *entry, guint iteration, guint period, const char *by)
{
    if (period > 1)
        return g_strdup_printf("it oscillates: the function after iteration %u equals that of %u "
                               "iterations before; these passes undo each other: %s",
                               iteration, period, by);
    if (entry->group)
        return g_strdup_printf(
            "the function after iteration %u equals that before it; these passes "
            "undo each other: %s",
            iteration, by);
    return g_strdup_printf("it reports a change in iteration %u, but nothing changed", iteration);
}

/* A form that the function had before means going round in circles, which no cap on iterations
 * needs to find out. Names do not count, since what is done again makes new ones; only between one
 * iteration and the next may they be all that changed. */
static gboolean
check_progress(const Manager *manager, const KilnPipelineEntry *entry, const GArray *seen,
               Form form, GError **error)
{
    for (guint k = seen->len; k-- > 0;) {
        const Form *old = &g_array_index(seen, Form, k);
        bool same = k + 1 == seen->len ? old->hashes.named == form.hashes.named
                                       : old->hashes.structure == form.hashes.structure;
        if (!same)
            continue;
        guint period = seen->len - k;
        g_autofree char *by = doers(manager->report, old->applications);
        g_autofree char *why = circle(entry, seen->len, period, by);
        return throw_no_fixed_point(manager, entry, why, KILN_ERROR_PASS, error);
    }
    return TRUE;
}

static gboolean
run_to_fixed_point(Manager *manager, const KilnPipelineEntry *entry, bool *changed, GError **error)
{
    g_autoptr(GArray) seen = g_array_new(FALSE, FALSE, sizeof(Form));
    Form form = form_of(manager);
    g_array_append_val(seen, form);
    kiln_pass_context_clear_recent(&manager->context);
    for (uint32_t i = 0; i < entry->max_iterations; i++) {
        bool again = false;
        if (!run_once(manager, entry, &again, error))
            return FALSE;
        if (!again || manager->stopped)
            return TRUE;
        *changed = true;
        form = form_of(manager);
        if (!check_progress(manager, entry, seen, form, error))
            return FALSE;
        g_array_append_val(seen, form);
    }
    g_autofree char *why =
        g_strdup_printf("no fixed point after %u iterations", entry->max_iterations);
    return throw_no_fixed_point(manager, entry, why, KILN_ERROR_LIMIT, error);
}

static gboolean
run_entry(Manager *manager, const KilnPipelineEntry *entry, bool *changed, GError **error)
{
    if (!(entry->modes & (1u << manager->options->mode)))
        return TRUE;
    return entry->convergence == KILN_ONE_PASS ? run_once(manager, entry, changed, error)
                                               : run_to_fixed_point(manager, entry, changed, error);
}

static gboolean
run_entry_everywhere(Manager *manager, const KilnPipelineEntry *entry, GError **error)
{
    kiln_analyses_prune(manager->analyses, &manager->module);
    g_autoptr(GPtrArray) functions = kiln_unit_functions(&manager->module);
    for (guint i = 0; i < functions->len && !manager->stopped; i++) {
        void *function = g_ptr_array_index(functions, i);
        if (!kiln_unit_is_alive(&manager->module, function))
            continue; /* went with a node that an earlier application removed */
        manager->unit = kiln_unit_of(&manager->module, function);
        bool changed = false;
        if (!run_entry(manager, entry, &changed, error))
            return FALSE;
    }
    return TRUE;
}

/* --- pipelines --- */

static gboolean
check_ids(const Manager *manager, const char *option, const char *const *ids, GError **error)
{
    for (; ids && *ids; ids++) {
        if (strcmp(*ids, "all") == 0 && strcmp(option, "print-after") == 0)
            continue;
        if (kiln_pass_pipeline_find(manager->pipeline, *ids))
            continue;
        g_autofree char *hint = kiln_suggest_pass(manager->pipeline, *ids);
        return kiln_throw(error, KILN_ERROR_USAGE, "%s: there is no pass '%s'%s", option, *ids,
                          hint);
    }
    return TRUE;
}

static gboolean
run_entries(Manager *manager, const GPtrArray *entries, GError **error)
{
    const KilnPassOptions *options = manager->options;
    KilnPassReport *report = manager->report;
    for (guint i = 0; i < entries->len && !manager->stopped; i++) {
        if (options->stop_after >= 0 && report->entries >= options->stop_after)
            return TRUE;
        report->entries++;
        manager->fraction = (double)i / (double)entries->len;
        if (!run_entry_everywhere(manager, g_ptr_array_index(entries, i), error))
            return FALSE;
    }
    return TRUE;
}

static gboolean
run_pipeline(const KilnPassPipeline *pipeline, const KilnUnit *module,
             const KilnPassOptions *options, KilnPassReport *report, GError **error)
{
    g_autoptr(KilnPassReport) own_report = report ? NULL : kiln_pass_report_new();
    g_autoptr(KilnAnalyses) analyses = kiln_analyses_new(options);
    g_autoptr(KilnNumericCheck) check = NULL;
    Manager manager = { .pipeline = pipeline,
                        .options = options,
                        .report = report ? report : own_report,
                        .dce = kiln_pass_find("dce"),
                        .module = *module,
                        .analyses = analyses };
    if (!check_ids(&manager, "skip", options->skip, error) ||
        !check_ids(&manager, "only", options->only, error) ||
        !check_ids(&manager, "print-after", options->print_after, error))
        return FALSE;
    if (options->check_numerics && !(check = kiln_check_new(options, error)))
        return FALSE;
    manager.check = check;
    manager.context.options = options;
    manager.context.flags = pipeline->flags;
    const GPtrArray *entries = module->level == KILN_LEVEL_GRAPH ? pipeline->graph : pipeline->ir;
    gboolean ok = verify_all(&manager, "before the first pass", error) &&
                  run_entries(&manager, entries, error) &&
                  verify_all(&manager, "after the last pass", error);
    kiln_pass_context_clear_recent(&manager.context);
    kiln_lives_free(manager.context.lives);
    kiln_equal_constants_free(manager.context.equal_constants);
    kiln_module_trim(module->module);
    return ok;
}

gboolean
kiln_pipeline_run_graph(const KilnPassPipeline *pipeline, KilnModule *module,
                        const KilnPassOptions *options, KilnPassReport *report, GError **error)
{
    KilnUnit unit = { .level = KILN_LEVEL_GRAPH, .module = module };
    module->mode = options->mode;
    return run_pipeline(pipeline, &unit, options, report, error);
}

gboolean
kiln_pipeline_run_ir(const KilnPassPipeline *pipeline, KilnIRModule *ir,
                     const KilnPassOptions *options, KilnPassReport *report, GError **error)
{
    KilnUnit unit = { .level = KILN_LEVEL_IR, .module = ir->module, .ir = ir };
    return run_pipeline(pipeline, &unit, options, report, error);
}

KilnNumerics
kiln_pass_report_numerics(const KilnPassReport *report, const KilnPassPipeline *pipeline,
                          uint32_t *n_rounding)
{
    KilnNumerics widest = KILN_NUMERICS_E;
    *n_rounding = 0;
    for (guint i = 0; i < report->passes->len; i++) {
        const KilnPassStats *stats = g_ptr_array_index(report->passes, i);
        const KilnPassInfo *pass = kiln_pass_pipeline_find(pipeline, stats->id);
        if (!stats->changed || !pass)
            continue;
        KilnNumerics numerics = MAX(kiln_pass_numerics(pass, pipeline->flags), stats->numerics);
        widest = MAX(widest, numerics);
        *n_rounding += numerics >= KILN_NUMERICS_U ? stats->changed : 0;
    }
    return widest;
}
