/* SPDX-License-Identifier: Apache-2.0 */
/* What must hold of a golden file: its text round trip, the expected text, verification and honest
 * `changed` after every pass, idempotence, and equal results before and after. */
#include "passes/context/options.h"
#include "passes/context/report.h"
#include "passes/manager/manager.h"
#include "passes/pipeline/pipeline.h"
#include "tests/golden/golden.h"

#include "backends/cpu/cpu.h"
#include "backends/ref/ref.h"
#include "graph/binding.h"
#include "graph/module/folding.h"
#include "passes/manager/cut_points.h"
#include "passes/pipeline/pipeline_priv.h"
#include "passes/manager/results.h"
#include "passes/rule.h"
#include "tests/lean_target.h"
#include "tests/test_vendor.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static KilnIRModule *
parse(const char *text, const char *path, GError **error)
{
    return kiln_ir_module_parse(text, strlen(text), path, error);
}

/* A case is of one level: the printer of the IR level leaves graphs out. */
static char *
print(const KilnIRModule *ir, GError **error)
{
    g_autoptr(GString) text = g_string_new(NULL);
    if (ir->functions->len && ir->module->functions->len)
        return kiln_throw(error, KILN_ERROR_PARSE, "a case has graphs or funcs, not both"), NULL;
    gboolean ok = ir->functions->len ? kiln_ir_module_print(ir, NULL, text, error)
                                     : kiln_module_print(ir->module, NULL, text, error);
    return ok ? g_strdup(text->str) : NULL;
}

/* print(parse(x)) == x for printed x. */
static gboolean
check_round_trip(const char *printed, const char *path, GError **error)
{
    g_autoptr(KilnIRModule) ir = parse(printed, path, error);
    g_autofree char *again = ir ? print(ir, error) : NULL;
    if (!again) {
        g_prefix_error(error, "reading the printed text again: ");
        return FALSE;
    }
    if (strcmp(again, printed) != 0)
        return kiln_throw(error, KILN_ERROR_MISMATCH,
                          "printed text does not read back to itself:\n%s----\n%s", printed, again);
    return TRUE;
}

/* --- the pipeline --- */

static KilnPassPipeline *
pipeline_of(const Golden *golden, GError **error)
{
    g_autoptr(KilnPassPipeline) pipeline = NULL;
    if (golden->passes) {
        pipeline = kiln_pass_pipeline_parse_inline(golden->passes, error);
    } else {
        g_autofree char *path =
            g_strdup_printf(KILN_SOURCE_DIR "/pipelines/%s.yaml", golden->pipeline);
        pipeline = kiln_pass_pipeline_load(path, error);
    }
    g_auto(GStrv) flags = g_strsplit(golden->flags ? golden->flags : "", ",", -1);
    for (int i = 0; pipeline && flags[i]; i++) {
        uint32_t flag = kiln_pipeline_flag(g_strstrip(flags[i]));
        if (!flag)
            return kiln_throw_null(error, KILN_ERROR_PIPELINE, "%s: there is no flag '%s'",
                                   golden->path, flags[i]);
        pipeline->flags |= flag;
    }
    return g_steal_pointer(&pipeline);
}

static KilnPassOptions
options_of(const Golden *golden, const KilnTarget *target, const char *disabled_guard)
{
    KilnPassOptions options = KILN_PASS_OPTIONS_INIT;
    options.target = target;
    options.mode = g_strcmp0(golden->mode, "train") == 0 ? KILN_MODE_TRAIN : KILN_MODE_INFER;
    options.check_changed = true;
    options.disabled_guard = disabled_guard;
    return options;
}

static gboolean
run_without(const Golden *golden, const char *disabled_guard, KilnIRModule *ir,
            KilnPassReport *report, GError **error)
{
    g_autoptr(GArray) kernels = g_array_new(FALSE, FALSE, sizeof(KilnKernel));
    KilnTarget lean = lean_target(kernels);
    KilnTarget vendor = test_vendor_target();
    const KilnTarget *target = !golden->target                         ? kiln_ref_target()
                               : g_str_equal(golden->target, "cpu")    ? kiln_cpu_target()
                               : g_str_equal(golden->target, "vendor") ? &vendor
                                                                       : &lean;
    KilnPassOptions options = options_of(golden, target, disabled_guard);
    g_autoptr(KilnPassPipeline) pipeline = pipeline_of(golden, error);
    return pipeline && kiln_pipeline_run_graph(pipeline, ir->module, &options, report, error) &&
           kiln_pipeline_run_ir(pipeline, ir, &options, report, error);
}

static gboolean
run(const Golden *golden, KilnIRModule *ir, KilnPassReport *report, GError **error)
{
    return run_without(golden, g_getenv("KILN_DISABLE_GUARD"), ir, report, error);
}

static KilnNumerics
widest(const GPtrArray *entries, uint32_t flags)
{
    KilnNumerics numerics = KILN_NUMERICS_E;
    for (guint i = 0; i < entries->len; i++) {
        const KilnPipelineEntry *entry = g_ptr_array_index(entries, i);
        KilnNumerics one =
            entry->pass ? kiln_pass_numerics(entry->pass, flags) : widest(entry->group, flags);
        numerics = MAX(numerics, one);
    }
    return numerics;
}

/* --- guards --- */

/* True where the case comes out as @text although @guard ("rule/guard") is switched off. In a
 * process of its own: what a guard keeps away may well be a crash. */
static bool
is_indifferent_to(const Golden *golden, const char *guard, const char *text)
{
    pid_t child = fork();
    if (child == 0) {
        int nowhere = open("/dev/null", O_WRONLY);
        dup2(nowhere, STDOUT_FILENO);
        dup2(nowhere, STDERR_FILENO);
        setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
        signal(SIGABRT, SIG_DFL);
        KilnIRModule *ir = parse(golden->input, golden->path, NULL);
        bool ran = ir && run_without(golden, guard, ir, NULL, NULL);
        char *found = ran ? print(ir, NULL) : NULL;
        _exit(found && strcmp(found, text) == 0 ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    return child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* `# guard: pass/guard`: the guard refused a rule of the pass, and does something there. */
static gboolean
check_guard(const Golden *golden, const KilnPassReport *report, const char *text, FILE *notes,
            GError **error)
{
    bool refused = false, noticed = false;
    for (guint i = 0; i < report->passes->len; i++) {
        const KilnPassStats *stats = g_ptr_array_index(report->passes, i);
        for (guint r = 0; r < stats->rules->len; r++) {
            const KilnRuleStats *rule = g_ptr_array_index(stats->rules, r);
            for (guint k = 0; k < rule->refusals->len; k++) {
                const KilnRefusal *refusal = g_ptr_array_index(rule->refusals, k);
                g_autofree char *name = g_strconcat(stats->id, "/", refusal->guard, NULL);
                g_autofree char *switched = g_strconcat(rule->name, "/", refusal->guard, NULL);
                if (strcmp(name, golden->guard) != 0)
                    continue;
                refused = true;
                if (is_indifferent_to(golden, switched, text))
                    continue;
                noticed = true;
                if (notes)
                    fprintf(notes, "guard %s %s %s\n", golden->path, stats->id, switched);
            }
        }
    }
    if (noticed)
        return TRUE;
    return kiln_throw(error, KILN_ERROR_MISMATCH,
                      refused ? "guard %s refused, but without it the result is the same"
                              : "nothing was refused by guard %s",
                      golden->guard);
}

/* --- idempotence --- */

/* What the second run starts from: nodes and constants that the passes left dead may go. */
static gboolean
sweep(KilnIRModule *ir, GError **error)
{
    KilnPassOptions options = KILN_PASS_OPTIONS_INIT;
    g_autoptr(KilnPassPipeline) pipeline = kiln_pass_pipeline_parse_inline("dce", error);
    return pipeline && (ir->functions->len ||
                        kiln_pipeline_run_graph(pipeline, ir->module, &options, NULL, error));
}

static gboolean
check_idempotent(const Golden *golden, KilnIRModule *ir, GError **error)
{
    g_autofree char *first = sweep(ir, error) ? print(ir, error) : NULL;
    g_autoptr(KilnPassReport) report = kiln_pass_report_new();
    if (!first || !run(golden, ir, report, error)) {
        g_prefix_error(error, "second run: ");
        return FALSE;
    }
    for (guint i = 0; i < report->passes->len; i++) {
        const KilnPassStats *stats = g_ptr_array_index(report->passes, i);
        if (stats->changed)
            return kiln_throw(error, KILN_ERROR_MISMATCH,
                              "pass %s is not idempotent: the second run changed something",
                              stats->id);
    }
    g_autofree char *second = print(ir, error);
    if (!second)
        return FALSE;
    if (strcmp(first, second) != 0)
        return kiln_throw(error, KILN_ERROR_MISMATCH, "the second run changed:\n%s----\n%s", first,
                          second);
    return TRUE;
}

/* --- a whole case --- */

static KilnIRFunction *
func_named(const KilnIRModule *ir, const char *name)
{
    for (guint i = 0; i < ir->functions->len; i++) {
        KilnIRFunction *function = g_ptr_array_index(ir->functions, i);
        if (strcmp(function->name, name) == 0)
            return function;
    }
    return NULL;
}

/* "N=3, M=2"; the names point into @parts. */
static KilnDimBinding
parse_dims(char **parts)
{
    KilnDimBinding binding = { 0, g_new0(KilnBoundName, g_strv_length(parts) + 1) };
    for (char **part = parts; *part; part++) {
        char *value = strchr(*part, '=');
        if (!value)
            continue;
        *value++ = '\0';
        binding.names[binding.n++] =
            (KilnBoundName){ g_strstrip(*part), g_ascii_strtoll(value, NULL, 10) };
    }
    return binding;
}

static KilnResults *
results_with_dims(const Golden *golden, const KilnFunction *function, GError **error)
{
    g_auto(GStrv) parts = g_strsplit(golden->dims ? golden->dims : "", ",", -1);
    KilnDimBinding binding = parse_dims(parts);
    KilnResults *results = kiln_results_of_graph(function, kiln_ref_target(), &binding, error);
    g_free(binding.names);
    return results;
}

static gboolean
check_graph(const Golden *golden, const KilnFunction *before, const KilnIRModule *after,
            KilnNumerics numerics, GError **error)
{
    const KilnTarget *target = kiln_ref_target();
    const KilnFunction *result = kiln_module_find_function(after->module, before->name);
    if (!result)
        return kiln_throw(error, KILN_ERROR_MISMATCH, "it is gone");
    g_autoptr(KilnResults) expected = results_with_dims(golden, before, error);
    g_autoptr(KilnResults) found = expected ? results_with_dims(golden, result, error) : NULL;
    g_autoptr(GError) why = NULL;
    if (!found || kiln_results_compare(expected, found, numerics, &why))
        return found != NULL;
    /* As `--check` does: ties are told from other steps where the values before are known. */
    KilnRecord *record = golden->dims || numerics <= KILN_NUMERICS_Z
                             ? NULL
                             : kiln_record_graph(before, target, NULL, error);
    bool good = record && kiln_record_compare_cut(record, result, target, numerics, NULL);
    kiln_record_free(record);
    if (!good && why)
        g_propagate_error(error, g_steal_pointer(&why));
    return good;
}

/* With a buffer of its own per alloc, then in the planned arena. */
static gboolean
check_func(const KilnIRFunction *before, const KilnIRModule *after, KilnNumerics numerics,
           GError **error)
{
    const KilnTarget *target = kiln_ref_target();
    KilnIRFunction *result = func_named(after, before->name);
    if (!result)
        return kiln_throw(error, KILN_ERROR_MISMATCH, "it is gone");
    g_autoptr(KilnResults) expected = kiln_results_of_ir(before, target, false, error);
    g_autoptr(KilnResults) found =
        expected ? kiln_results_of_ir(result, target, false, error) : NULL;
    if (!found || !kiln_results_compare(expected, found, numerics, error))
        return FALSE;
    g_autoptr(KilnMemoryPlan) plan = kiln_memory_plan(result, target, 1, error);
    g_autoptr(KilnResults) planned = plan ? kiln_results_of_ir(result, target, true, error) : NULL;
    if (planned && kiln_results_compare(expected, planned, numerics, error))
        return TRUE;
    g_prefix_error(error, "in its arena: ");
    return FALSE;
}

static gboolean
check_results(const Golden *golden, const char *after_text, GError **error)
{
    g_autoptr(KilnPassPipeline) pipeline = pipeline_of(golden, error);
    g_autoptr(KilnIRModule) before = pipeline ? parse(golden->input, golden->path, error) : NULL;
    g_autoptr(KilnIRModule) after = before ? parse(after_text, golden->path, error) : NULL;
    if (!after)
        return FALSE;
    KilnNumerics numerics =
        MAX(widest(pipeline->graph, pipeline->flags), widest(pipeline->ir, pipeline->flags));
    for (guint i = 0; i < before->module->functions->len; i++) {
        const KilnFunction *function = g_ptr_array_index(before->module->functions, i);
        /* What a fold computes is compared where the entry reads it. */
        if (kiln_function_is_fold(function) ||
            check_graph(golden, function, after, numerics, error))
            continue;
        g_prefix_error(error, "executing @%s before and after: ", function->name);
        return FALSE;
    }
    for (guint i = 0; i < before->functions->len; i++) {
        const KilnIRFunction *function = g_ptr_array_index(before->functions, i);
        if (check_func(function, after, numerics, error))
            continue;
        g_prefix_error(error, "executing @%s before and after: ", function->name);
        return FALSE;
    }
    return TRUE;
}

static gboolean
check_failure(const Golden *golden, gboolean ok, GError *found, GError **error)
{
    g_autoptr(GError) why = found;
    if (ok)
        return kiln_throw(error, KILN_ERROR_MISMATCH, "it must fail with '%s' and did not",
                          golden->error);
    if (!strstr(why->message, golden->error))
        return kiln_throw(error, KILN_ERROR_MISMATCH, "expected an error with '%s', found: %s",
                          golden->error, why->message);
    return TRUE;
}

static gboolean
update_file(const Golden *golden, const char *text, GError **error)
{
    g_autofree char *content = g_strconcat(golden->input, "# ----\n", text, NULL);
    return g_file_set_contents(golden->path, content, -1, error);
}

static gboolean
check_text(const Golden *golden, const char *text, bool update, GError **error)
{
    if (update)
        return update_file(golden, text, error);
    if (!golden->expected)
        return kiln_throw(error, KILN_ERROR_MISMATCH,
                          "no '# ----' and expected text; KILN_UPDATE=1 writes:\n%s", text);
    if (strcmp(golden->expected, text) != 0)
        return kiln_throw(error, KILN_ERROR_MISMATCH, "expected:\n%s----\nfound:\n%s",
                          golden->expected, text);
    return TRUE;
}

static void
note_fired(const Golden *golden, const KilnPassReport *report, FILE *notes)
{
    for (guint i = 0; i < report->passes->len; i++) {
        const KilnPassStats *stats = g_ptr_array_index(report->passes, i);
        if (stats->changed)
            fprintf(notes, "fired %s %s -\n", golden->path, stats->id);
        for (guint k = 0; k < stats->rules->len; k++) {
            const KilnRuleStats *rule = g_ptr_array_index(stats->rules, k);
            if (rule->fired)
                fprintf(notes, "fired %s %s %s\n", golden->path, stats->id, rule->name);
        }
    }
}

gboolean
golden_check(const Golden *golden, bool update, FILE *notes, GError **error)
{
    GError *why = NULL;
    g_autoptr(KilnPassReport) report = kiln_pass_report_new();
    g_autoptr(KilnIRModule) ir = parse(golden->input, golden->path, &why);
    if (ir) {
        g_autofree char *printed = print(ir, &why);
        if (!printed || !check_round_trip(printed, golden->path, error)) {
            if (why)
                g_propagate_error(error, why);
            return FALSE;
        }
    }
    gboolean ok = ir && run(golden, ir, report, &why);
    if (notes)
        note_fired(golden, report, notes);
    if (golden->error)
        return check_failure(golden, ok, why, error);
    if (!ok) {
        g_propagate_error(error, why);
        return FALSE;
    }
    g_autofree char *text = print(ir, error);
    return text && check_text(golden, text, update, error) &&
           check_round_trip(text, golden->path, error) &&
           (!golden->guard || check_guard(golden, report, text, notes, error)) &&
           (golden->no_run || check_results(golden, text, error)) &&
           (golden->not_idempotent || check_idempotent(golden, ir, error));
}
