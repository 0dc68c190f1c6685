/* SPDX-License-Identifier: Apache-2.0 */
/* Numeric checks around applications. Results are kept per function, so that each application costs
 * one run and not two; a subgraph is checked as part of the function around it. A function with
 * open dims has results for several bindings of its names, drawn when it is seen first. */
#include "passes/manager/check.h"

#include "graph/arena.h"
#include "graph/binding.h"
#include "ir/open.h"
#include "passes/context/options.h"
#include "passes/manager/cut_points.h"
#include "passes/manager/draws.h"
#include "passes/manager/results.h"
#include "passes/pass.h"

enum {
    SEED = 1
};

struct KilnNumericCheck {
    const KilnPassOptions *options;
    const KilnTarget *target;
    KilnArena *arena; /* of bindings */
    GHashTable
        *by_function; /* function → GPtrArray of Run, none where it cannot be run; looked up */
};

/* What a function computes for some numbers. */
typedef struct {
    const KilnDimBinding *binding; /* without names: its shapes are fixed */
    GPtrArray *inputs;             /* of a graph; the record borrows them */
    KilnRecord *record;
} Run;

static void
run_free(gpointer data)
{
    Run *run = data;
    kiln_record_free(run->record);
    if (run->inputs)
        g_ptr_array_unref(run->inputs);
    g_free(run);
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
    check->arena = kiln_arena_new();
    check->by_function = g_hash_table_new_full(NULL, NULL, NULL, (GDestroyNotify)g_ptr_array_unref);
    return check;
}

void
kiln_check_free(KilnNumericCheck *check)
{
    if (!check)
        return;
    g_hash_table_unref(check->by_function);
    kiln_arena_free(check->arena);
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

/* --- running --- */

static gboolean
run_graph(const KilnNumericCheck *check, const KilnFunction *function, Run *out, GError **error)
{
    out->inputs = kiln_random_inputs(function, out->binding, SEED, error);
    if (out->inputs)
        out->record = kiln_record_graph(function, check->target, out->inputs, error);
    return out->record != NULL;
}

static gboolean
run_ir(const KilnNumericCheck *check, const KilnIRFunction *function, Run *out, GError **error)
{
    g_autoptr(KilnIRFunction) copy = NULL;
    if (out->binding->n) {
        copy = kiln_open_copy_defined(function, out->binding, error);
        if (!copy || !kiln_ir_verify(copy, error))
            return FALSE;
    }
    KilnResults *results = kiln_results_of_ir(copy ? copy : function, check->target, false, error);
    out->record = results ? kiln_record_new(results) : NULL;
    return out->record != NULL;
}

/* The run of the function as it is now; NULL where it refuses the numbers. */
static Run *
run_at(const KilnNumericCheck *check, const KilnUnit *unit, const KilnDimBinding *binding,
       GError **error)
{
    Run *run = g_new0(Run, 1);
    run->binding = binding;
    if (unit->graph ? run_graph(check, outermost(unit), run, error)
                    : run_ir(check, unit->instrs, run, error))
        return run;
    run_free(run);
    return NULL;
}

typedef struct {
    const KilnNumericCheck *check;
    const KilnUnit *unit;
    GPtrArray *runs;
} Drawing;

/* A KilnRunAtFn. */
static gboolean
add_run(const KilnDimBinding *binding, void *data, GError **error)
{
    const Drawing *drawing = data;
    const KilnDimBinding *kept = kiln_dim_binding_copy(drawing->check->arena, binding);
    Run *run = run_at(drawing->check, drawing->unit, kept, error);
    if (run)
        g_ptr_array_add(drawing->runs, run);
    return run != NULL;
}

/* --- telling --- */

static void tell(const KilnNumericCheck *check, const char *format, ...) G_GNUC_PRINTF(2, 3);

static void
tell(const KilnNumericCheck *check, const char *format, ...)
{
    if (!check->options->log)
        return;
    va_list arguments;
    va_start(arguments, format);
    g_autofree char *text = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    g_autofree char *line = g_strdup_printf("check: %s\n", text);
    check->options->log(line, check->options->data);
}

static void
tell_not_compared(const KilnNumericCheck *check, const KilnUnit *unit, const GError *why)
{
    tell(check, "@%s cannot be run and is not compared: %s", kiln_unit_name(unit), why->message);
}

/* " with N=3"; "" where shapes are fixed. */
static char *
with_numbers(const Run *run)
{
    g_autofree char *text = kiln_binding_to_string(run->binding);
    return *text ? g_strdup_printf(" with %s", text) : g_strdup("");
}

static void
tell_draws(const KilnNumericCheck *check, const KilnUnit *unit, const GPtrArray *runs,
           const KilnDrawCount *count)
{
    g_autoptr(GString) compared = g_string_new(NULL);
    if (!count->refused)
        return;
    for (guint i = 0; i < runs->len; i++) {
        g_autofree char *text =
            kiln_binding_to_string(((Run *)g_ptr_array_index(runs, i))->binding);
        g_string_append_printf(compared, "%s%s", i ? "; " : "", text);
    }
    tell(check, "@%s is compared with %s; left out: %u, the last %s", kiln_unit_name(unit),
         compared->str, count->refused, count->last);
}

/* --- around an application --- */

/* The runs of a function that is not known yet. */
static GPtrArray *
draw_runs(const KilnNumericCheck *check, const KilnUnit *unit, KilnDrawCount *count, bool *out_open,
          GError **error)
{
    g_autoptr(GPtrArray) runs = g_ptr_array_new_with_free_func(run_free);
    g_autoptr(KilnOpenNames) names = unit->graph ? kiln_open_names_of_graph(outermost(unit))
                                                 : kiln_open_names_of_ir(unit->instrs);
    Drawing drawing = { check, unit, runs };
    *out_open = names->names->len > 0;
    return kiln_run_at_draws(names, add_run, &drawing, count, error) ? g_steal_pointer(&runs)
                                                                     : NULL;
}

/* Where an open function refuses all numbers, nothing would ever be compared: that is no check. */
gboolean
kiln_check_before(KilnNumericCheck *check, const KilnUnit *unit, GError **error)
{
    bool open;
    g_autoptr(GError) why = NULL;
    g_auto(KilnDrawCount) count = { 0, NULL };
    if (g_hash_table_contains(check->by_function, outermost(unit)))
        return TRUE;
    GPtrArray *runs = draw_runs(check, unit, &count, &open, &why);
    if (!runs && open && why->code != KILN_ERROR_UNSUPPORTED) {
        g_propagate_prefixed_error(error, g_steal_pointer(&why),
                                   "what @%s computes cannot be checked: ", kiln_unit_name(unit));
        return FALSE;
    }
    if (runs)
        tell_draws(check, unit, runs, &count);
    else
        tell_not_compared(check, unit, why);
    g_hash_table_insert(check->by_function, outermost(unit), runs ? runs : g_ptr_array_new());
    return TRUE;
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

/* *@out_run: the run after the pass, NULL where its result cannot be run at all. */
static gboolean
compare_run(const KilnNumericCheck *check, const KilnUnit *unit, const Run *before,
            KilnNumerics numerics, Run **out_run, GError **error)
{
    GError *why = NULL;
    g_autofree char *with = with_numbers(before);
    *out_run = run_at(check, unit, before->binding, &why);
    if (*out_run) {
        gboolean good = compare(check, unit, before->record, (*out_run)->record, numerics, error);
        if (!good)
            kiln_prefix_error(error, "it changed what @%s computes%s: ", kiln_unit_name(unit),
                              with);
        return good;
    }
    if (!g_error_matches(why, KILN_ERROR, KILN_ERROR_UNSUPPORTED)) {
        g_propagate_prefixed_error(error, why, "its result cannot be run%s: ", with);
        return FALSE;
    }
    tell_not_compared(check, unit, why);
    g_clear_error(&why);
    return TRUE;
}

static gboolean
compare_runs(const KilnNumericCheck *check, const KilnUnit *unit, const GPtrArray *before,
             KilnNumerics numerics, GPtrArray *after, GError **error)
{
    gboolean good = TRUE;
    for (guint i = 0; good && i < before->len; i++) {
        Run *run;
        good = compare_run(check, unit, g_ptr_array_index(before, i), numerics, &run, error);
        if (run)
            g_ptr_array_add(after, run);
    }
    return good;
}

gboolean
kiln_check_after(KilnNumericCheck *check, const KilnUnit *unit, KilnNumerics numerics,
                 GError **error)
{
    bool open;
    gboolean good = TRUE;
    g_auto(KilnDrawCount) count = { 0, NULL };
    const GPtrArray *before = g_hash_table_lookup(check->by_function, outermost(unit));
    GPtrArray *after = NULL;
    if (before && before->len) {
        after = g_ptr_array_new_with_free_func(run_free);
        good = compare_runs(check, unit, before, numerics, after, error);
    } else { /* a pass may have removed what could not be run */
        after = draw_runs(check, unit, &count, &open, NULL);
    }
    forget_folds(check, unit);
    g_hash_table_insert(check->by_function, outermost(unit), after ? after : g_ptr_array_new());
    return good;
}
