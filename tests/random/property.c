/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/random/property.h"

#include "passes/context/options.h"
#include "passes/context/report.h"
#include "passes/manager/cut_points.h"
#include "passes/manager/manager.h"
#include "passes/pipeline/pipeline.h"

#include "backends/ref/ref.h"
#include "passes/manager/results.h"
#include "passes/rule.h"
#include "tests/lean_target.h"
#include "tests/random/flow.h"
#include "tests/random/offload.h"
#include "tests/random/open_shapes.h"
#include "tests/random/qdq.h"
#include "tests/random/ways.h"
#include "tests/test_vendor.h"

#include <float.h>
#include <string.h>

/* --- properties --- */

Property *
property_new(const char *passes, GError **error)
{
    static const char *const shipped[] = { "default", "glow", "fold", "lossy" };
    g_autoptr(KilnPassPipeline) pipeline = NULL;
    for (size_t i = 0; i < G_N_ELEMENTS(shipped) && !pipeline; i++) {
        g_autofree char *path = g_strdup_printf("%s/pipelines/%s.yaml", KILN_SOURCE_DIR, passes);
        if (strcmp(shipped[i], passes) == 0 && !(pipeline = kiln_pass_pipeline_load(path, error)))
            return NULL;
    }
    bool is_shipped = pipeline != NULL;
    if (!is_shipped && !(pipeline = kiln_pass_pipeline_parse_inline(passes, error)))
        return NULL;
    Property *property = g_new0(Property, 1);
    property->shipped = is_shipped;
    property->passes = g_strdup(passes);
    property->ir = pipeline->graph->len == 0;
    property->pipeline = g_steal_pointer(&pipeline);
    return property;
}

static Property *
property_new_whole(const char *what, uint64_t seed)
{
    Property *property = g_new0(Property, 1);
    property->passes = g_strdup(what);
    property->seed = seed;
    return property;
}

Property *
property_new_ways(uint64_t seed)
{
    Property *property = property_new_whole("constants given in every way", seed);
    property->ways = true;
    return property;
}

Property *
property_new_offload(uint64_t seed)
{
    Property *property = property_new_whole("programs through the vendor", seed);
    property->offload = true;
    return property;
}

Property *
property_new_qdq(uint64_t seed)
{
    Property *property = property_new_whole("default and none", seed);
    property->qdq = true;
    return property;
}

Property *
property_new_open(uint64_t seed)
{
    Property *property = property_new_whole("open programs", seed);
    property->open = true;
    return property;
}

Property *
property_new_flow(uint64_t seed)
{
    Property *property = property_new_whole("branches, loops and scans", seed);
    property->flow = true;
    return property;
}

Property *
property_new_programs(uint64_t seed)
{
    Property *property = property_new_whole("programs on ref and cpu", seed);
    property->flow = true;
    return property;
}

void
property_free(Property *property)
{
    if (!property)
        return;
    g_clear_pointer(&property->pipeline, kiln_pass_pipeline_free);
    g_free(property->passes);
    g_free(property);
}

/* --- running --- */

/* What a run did: whether anything, and the widest class of the passes that did. */
typedef struct {
    bool changed;
    KilnNumerics numerics;
} Outcome;

/* The dead-code elimination in front of an entry does not count, unless it is all there is. */
static bool
changed_something(const KilnPassReport *report)
{
    bool changed = false;
    for (guint i = 0; i < report->passes->len; i++) {
        const KilnPassStats *stats = g_ptr_array_index(report->passes, i);
        bool counts = report->passes->len == 1 || strcmp(stats->id, "dce") != 0;
        changed |= counts && stats->changed > 0;
    }
    return changed;
}

static Outcome
outcome_of(const KilnPassReport *report, const KilnPassPipeline *pipeline)
{
    uint32_t n_rounding;
    return (Outcome){ changed_something(report),
                      kiln_pass_report_numerics(report, pipeline, &n_rounding) };
}

static gboolean
run_graph(const Property *property, KilnModule *module, const KilnTarget *target, Outcome *out,
          GError **error)
{
    const char *skip[] = { property->skip, NULL };
    KilnPassOptions options = KILN_PASS_OPTIONS_INIT;
    options.target = target;
    options.check_changed = true;
    options.skip = property->skip ? skip : NULL;
    uint32_t flags = property->pipeline->flags;
    property->pipeline->flags = property->lossy ? (1u << KILN_N_FLAGS) - 1 : flags;
    g_autoptr(KilnPassReport) report = kiln_pass_report_new();
    gboolean good = kiln_pipeline_run_graph(property->pipeline, module, &options, report, error);
    *out = outcome_of(report, property->pipeline);
    property->pipeline->flags = flags;
    return good;
}

/* Dead nodes may stay: a pass leaves them to the next entry's dead-code elimination. */
static gboolean
is_stable(const Property *property, KilnModule *module, const KilnTarget *target, GError **error)
{
    Outcome outcome;
    g_autoptr(Property) sweep = property_new("dce", error);
    if (!sweep || !run_graph(sweep, module, target, &outcome, error) ||
        !run_graph(property, module, target, &outcome, error)) {
        g_prefix_error(error, "running again: ");
        return FALSE;
    }
    return !outcome.changed || kiln_throw(error, KILN_ERROR_PASS, "a second run changed something");
}

static gboolean ir_holds(const Property *property, Subject *subject, bool *fired, GError **error);

/* One pass of class QT or QS moved what it rewrote by one step; of QT, few elements of it. */
static gboolean
steps_are_one(Subject *subject, const KilnFunction *after, KilnNumerics numerics, GError **error)
{
    if (!(subject_largest(subject) * subject->expected->terms.terms < FLT_MAX))
        return TRUE;
    KilnRecord *before =
        kiln_record_graph(kiln_module_entry(subject->module), kiln_ref_target(), NULL, error);
    gboolean good =
        before && kiln_record_compare_cut(before, after, kiln_ref_target(), numerics, error);
    kiln_record_free(before);
    return good;
}

static gboolean
graph_holds(const Property *property, Subject *subject, bool *fired, GError **error)
{
    g_autoptr(GArray) kernels = g_array_new(FALSE, FALSE, sizeof(KilnKernel));
    KilnTarget lean = lean_target(kernels), vendor = test_vendor_target();
    const KilnTarget *target = property->lean     ? &lean
                               : property->vendor ? &vendor
                                                  : kiln_ref_target();
    g_autoptr(KilnModule) clone = kiln_module_clone(subject->module);
    Outcome outcome;
    if (!run_graph(property, clone, target, &outcome, error)) {
        g_prefix_error(error, "running: ");
        return FALSE;
    }
    *fired = outcome.changed;
    if (!*fired)
        return TRUE;
    g_autoptr(KilnResults) after =
        kiln_results_on(kiln_module_entry(clone), kiln_ref_target(), subject->inputs, error);
    if (!after || !subject_compare(subject, after, outcome.numerics, error)) {
        g_prefix_error(error, "the result differs: ");
        return FALSE;
    }
    bool steps = outcome.numerics == KILN_NUMERICS_QT || outcome.numerics == KILN_NUMERICS_QS;
    if (steps && property->pipeline->graph->len == 1 &&
        !steps_are_one(subject, kiln_module_entry(clone), outcome.numerics, error)) {
        g_prefix_error(error, "more than a step differs: ");
        return FALSE;
    }
    g_auto(Subject) optimized = { 0 };
    bool ir_fired;
    if (property->pipeline->ir->len && (!subject_init(&optimized, clone, error) ||
                                        !ir_holds(property, &optimized, &ir_fired, error)))
        return FALSE;
    return !property->idempotent || is_stable(property, clone, target, error);
}

/* --- the IR level --- */

/* On the inputs of the graph; by name: results of the graph are outputs of the function. */
static gboolean
ir_computes(KilnIRModule *ir, Subject *subject, KilnNumerics numerics, GError **error)
{
    KilnIRFunction *function = g_ptr_array_index(ir->functions, 0);
    g_autoptr(KilnResults) heap =
        kiln_ir_results_on(function, kiln_ref_target(), subject->inputs, false, error);
    if (!heap || !subject_compare(subject, heap, numerics, error)) {
        g_prefix_error(error, "a buffer per alloc: ");
        return FALSE;
    }
    g_autoptr(KilnMemoryPlan) plan = kiln_memory_plan(function, kiln_ref_target(), 1, error);
    g_autoptr(KilnResults) planned =
        plan && kiln_ir_verify(function, error)
            ? kiln_ir_results_on(function, kiln_ref_target(), subject->inputs, true, error)
            : NULL;
    if (planned && subject_compare(subject, planned, numerics, error))
        return TRUE;
    g_prefix_error(error, "in its arena: ");
    return FALSE;
}

static KilnIRModule *
lowered(const KilnModule *module, GError **error)
{
    g_autoptr(KilnIRModule) ir = kiln_ir_module_new(kiln_module_clone(module));
    KilnIRFunction *function = kiln_lower(kiln_module_entry(ir->module), error);
    if (!function || !kiln_ir_verify(function, error))
        return NULL;
    g_ptr_array_add(ir->functions, function);
    return g_steal_pointer(&ir);
}

static gboolean
ir_holds(const Property *property, Subject *subject, bool *fired, GError **error)
{
    KilnPassOptions options = KILN_PASS_OPTIONS_INIT;
    options.target = kiln_ref_target();
    options.check_changed = true;
    g_autoptr(KilnIRModule) ir = lowered(subject->module, error);
    g_autoptr(KilnPassReport) report = kiln_pass_report_new();
    if (!ir || !kiln_pipeline_run_ir(property->pipeline, ir, &options, report, error)) {
        g_prefix_error(error, ir ? "running: " : "lowering: ");
        return FALSE;
    }
    Outcome outcome = outcome_of(report, property->pipeline);
    *fired = outcome.changed;
    if (!ir_computes(ir, subject, outcome.numerics, error))
        return FALSE;
    g_autoptr(KilnPassReport) again = kiln_pass_report_new();
    if (!property->idempotent || !property->ir || !*fired)
        return TRUE;
    if (!kiln_pipeline_run_ir(property->pipeline, ir, &options, again, error)) {
        g_prefix_error(error, "running again: ");
        return FALSE;
    }
    return !changed_something(again) ||
           kiln_throw(error, KILN_ERROR_PASS, "a second run changed something");
}

gboolean
property_holds(const Property *property, Subject *subject, bool *fired, GError **error)
{
    *fired = false;
    if (property->ways)
        return ways_agree(property->seed, subject, fired, error);
    if (property->qdq)
        return qdq_agrees(subject, property->qdq_seen, fired, error);
    if (property->open)
        return open_agrees(property->seed, subject, property->open_seen, fired, error);
    if (property->flow)
        return flow_agrees(property->seed, subject, property->flow_seen, fired, error);
    if (property->offload)
        return offload_agrees(property->seed, subject, property->seen, fired, error);
    return property->ir ? ir_holds(property, subject, fired, error)
                        : graph_holds(property, subject, fired, error);
}
