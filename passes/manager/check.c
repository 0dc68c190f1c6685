/* SPDX-License-Identifier: Apache-2.0 */
/* Numeric checks around applications. Results are kept per function, so that each application costs
 * one run and not two; a subgraph is checked as part of the function around it. */
#include "passes/manager/check.h"

#include "passes/context/options.h"
#include "passes/manager/cut_points.h"
#include "passes/manager/results.h"
#include "passes/pass.h"

struct KilnNumericCheck {
    const KilnPassOptions *options;
    const KilnTarget *target;
    GHashTable *by_function; /* function → KilnRecord, NULL where it could not be run; looked up */
};

static void
record_free(gpointer record)
{
    kiln_record_free(record);
}

KilnNumericCheck *
kiln_check_new(const KilnPassOptions *options, GError **error)
{
    const KilnTarget *target = options->check_target ? options->check_target : options->target;
    if (!target)
        return kiln_throw_null(error, KILN_ERROR_USAGE,
                               "checking numbers needs a target to run on");
    KilnNumericCheck *check = g_new0(KilnNumericCheck, 1);
    check->options = options;
    check->target = target;
    check->by_function = g_hash_table_new_full(NULL, NULL, NULL, record_free);
    return check;
}

void
kiln_check_free(KilnNumericCheck *check)
{
    if (!check)
        return;
    g_hash_table_unref(check->by_function);
    g_free(check);
}

/* The function that can run alone. */
static gpointer
outermost(const KilnUnit *unit)
{
    KilnFunction *function = unit->graph;
    while (function && function->owner)
        function = function->owner->function;
    return function ? (gpointer)function : (gpointer)unit->instrs;
}

static KilnRecord *
run(const KilnNumericCheck *check, const KilnUnit *unit, GError **error)
{
    gpointer function = outermost(unit);
    if (unit->graph)
        return kiln_record_graph(function, check->target, NULL, error);
    KilnResults *results = kiln_results_of_ir(function, check->target, false, error);
    return results ? kiln_record_new(results) : NULL;
}

static void
tell_not_compared(const KilnNumericCheck *check, const KilnUnit *unit, const GError *why)
{
    if (!check->options->log)
        return;
    g_autofree char *line = g_strdup_printf("check: @%s cannot be run and is not compared: %s\n",
                                            kiln_unit_name(unit), why->message);
    check->options->log(line, check->options->data);
}

void
kiln_check_before(KilnNumericCheck *check, const KilnUnit *unit)
{
    g_autoptr(GError) why = NULL;
    if (g_hash_table_contains(check->by_function, outermost(unit)))
        return;
    KilnRecord *record = run(check, unit, &why);
    if (!record)
        tell_not_compared(check, unit, why);
    g_hash_table_insert(check->by_function, outermost(unit), record);
}

/* A pass on the entry may have changed what is folded out of it: that is run anew. */
static void
forget_folds(KilnNumericCheck *check, const KilnUnit *unit)
{
    const KilnModule *module = unit->module;
    if (!unit->graph || !module->folding || unit->graph != kiln_module_entry(module))
        return;
    for (guint i = 0; i + 1 < module->functions->len; i++)
        g_hash_table_remove(check->by_function, g_ptr_array_index(module->functions, i));
}

/* Results that are too far apart may be so because legal differences grew on their way. */
static gboolean
compare(const KilnNumericCheck *check, const KilnUnit *unit, const KilnRecord *before,
        const KilnRecord *after, KilnNumerics numerics, GError **error)
{
    g_autoptr(GError) why = NULL;
    if (kiln_results_compare(before->results, after->results, numerics, &why) ||
        (unit->graph && numerics > KILN_NUMERICS_Z &&
         kiln_record_compare_cut(before, outermost(unit), check->target, numerics, NULL)))
        return TRUE;
    g_propagate_error(error, g_steal_pointer(&why));
    return FALSE;
}

gboolean
kiln_check_after(KilnNumericCheck *check, const KilnUnit *unit, KilnNumerics numerics,
                 GError **error)
{
    GError *why = NULL;
    const KilnRecord *before = g_hash_table_lookup(check->by_function, outermost(unit));
    KilnRecord *after = run(check, unit, &why);
    if (!after && before && !g_error_matches(why, KILN_ERROR, KILN_ERROR_UNSUPPORTED)) {
        g_propagate_prefixed_error(error, why, "its result cannot be run: ");
        return FALSE;
    }
    if (!after && before)
        tell_not_compared(check, unit, why);
    g_clear_error(&why);
    gboolean ok = !before || !after || compare(check, unit, before, after, numerics, error);
    forget_folds(check, unit);
    g_hash_table_insert(check->by_function, outermost(unit), after);
    if (!ok)
        kiln_prefix_error(error, "it changed what @%s computes: ", kiln_unit_name(unit));
    return ok;
}
