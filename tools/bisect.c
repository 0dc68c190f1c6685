/* SPDX-License-Identifier: Apache-2.0 */
/* One try of a bisection: the pipeline cut short, the result evaluated on the reference and
 * compared with that of the model, all of it in a child process that may crash. */
#include "tools/bisect.h"

#include "passes/context/options.h"
#include "passes/context/report.h"
#include "passes/manager/cut_points.h"
#include "passes/manager/manager.h"
#include "passes/pass.h"
#include "runtime/compile.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- what the child notes while it works, in memory that it shares with its parent --- */

typedef struct {
    KilnTry *note;
    const KilnPassReport *report;
} Watch;

static gboolean
note_application(double fraction, const char *what, void *data)
{
    (void)fraction;
    const Watch *watch = data;
    KilnTry *note = watch->note;
    note->applications = watch->report->applications;
    note->pass = watch->report->last_pass;
    note->pass_options = watch->report->last_options;
    note->n_rewrites = 0;
    g_strlcpy(note->last, what, sizeof note->last);
    return TRUE;
}

static void
note_rewrite(const char *line, void *data)
{
    KilnTry *note = ((const Watch *)data)->note;
    if (note->n_rewrites >= KILN_BISECT_REWRITES)
        return;
    char *to = note->rewrites[note->n_rewrites++];
    g_strlcpy(to, line, KILN_BISECT_LINE);
    g_strchomp(to);
}

/* --- running --- */

typedef struct {
    KilnModule *module;
    KilnIRModule *ir;
    KilnPassReport *report;
} State;

static void
state_clear(State *state)
{
    g_clear_pointer(&state->module, kiln_module_free);
    g_clear_pointer(&state->ir, kiln_ir_module_free);
    g_clear_pointer(&state->report, kiln_pass_report_free);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(State, state_clear)

static gboolean
run(const KilnBisect *bisect, KilnCut cut, KilnTry *note, State *state, GError **error)
{
    KilnPassOptions options = bisect->options;
    options.bisect_limit = cut.limit;
    options.progress = note ? note_application : NULL;
    options.log = note ? note_rewrite : NULL;
    options.log_rewrites = note != NULL;
    state->report = kiln_pass_report_new();
    Watch watch = { note, state->report };
    options.data = &watch;
    if (bisect->model->ir_text) {
        state->ir =
            kiln_compile_ir_text(bisect->model, bisect->passes, &options, state->report, error);
        return state->ir != NULL;
    }
    state->module = kiln_compile_graph(bisect->model, bisect->bindings, bisect->passes, &options,
                                       state->report, error);
    if (state->module && cut.lowered)
        state->ir = kiln_compile_ir(g_steal_pointer(&state->module), bisect->passes, &options,
                                    state->report, error);
    return state->module || state->ir;
}

static KilnResults *
results_of(const KilnBisect *bisect, const State *state, GError **error)
{
    if (!state->ir)
        return kiln_results_on(kiln_module_entry(state->module), bisect->reference, bisect->inputs,
                               error);
    const GPtrArray *functions = state->ir->functions;
    if (functions->len == 0)
        return kiln_throw_null(error, KILN_ERROR_INVALID, "there is no function to run");
    return kiln_ir_results_on(g_ptr_array_index(functions, functions->len - 1), bisect->reference,
                              bisect->inputs, false, error);
}

/* Steps that grow on their way to the results: the graph is compared value by value, and what was
 * lowered of it with what it computes. */
static gboolean
compare_values(const KilnBisect *bisect, const State *state, KilnCut cut, const KilnResults *found,
               KilnNumerics numerics, uint32_t n_rounding)
{
    g_auto(State) model = { NULL, NULL, NULL }, graph = { NULL, NULL, NULL };
    if (bisect->model->ir_text || !run(bisect, (KilnCut){ false, 0 }, NULL, &model, NULL) ||
        (state->ir && !run(bisect, (KilnCut){ false, cut.limit }, NULL, &graph, NULL)))
        return FALSE;
    const KilnFunction *optimized = kiln_module_entry(state->ir ? graph.module : state->module);
    KilnRecord *record =
        kiln_record_graph(kiln_module_entry(model.module), bisect->reference, bisect->inputs, NULL);
    if (!record)
        return FALSE;
    record->roundings = MAX(n_rounding, 1);
    gboolean good = kiln_record_compare_cut(record, optimized, bisect->reference, numerics, NULL);
    kiln_record_free(record);
    if (!good || !state->ir)
        return good;
    g_autoptr(KilnResults) computed =
        kiln_results_on(optimized, bisect->reference, bisect->inputs, NULL);
    return computed && kiln_results_compare(computed, found, numerics, NULL);
}

/* Bounds are those of one pass: roundings of several add up. */
static gboolean
compare(const KilnBisect *bisect, const State *state, KilnCut cut, GError **error)
{
    g_autoptr(KilnResults) found = results_of(bisect, state, error);
    if (!found)
        return FALSE;
    uint32_t n_rounding;
    KilnNumerics numerics = kiln_pass_report_numerics(state->report, bisect->passes, &n_rounding);
    found->terms.terms =
        MAX(found->terms.terms, bisect->expected->terms.terms) * MAX(n_rounding, 1);
    g_autoptr(GError) why = NULL;
    if (kiln_results_compare(bisect->expected, found, numerics, &why) ||
        (numerics > KILN_NUMERICS_Z &&
         compare_values(bisect, state, cut, found, numerics, n_rounding)))
        return TRUE;
    g_propagate_error(error, g_steal_pointer(&why));
    return FALSE;
}

static void
try_here(const KilnBisect *bisect, KilnCut cut, KilnTry *note)
{
    g_autoptr(GError) why = NULL;
    g_auto(State) state = { NULL, NULL, NULL };
    note->good = run(bisect, cut, note, &state, &why) && compare(bisect, &state, cut, &why);
    if (why)
        g_strlcpy(note->why, why->message, sizeof note->why);
    note->finished = true;
}

gboolean
kiln_bisect_try(const KilnBisect *bisect, KilnCut cut, KilnTry *out, GError **error)
{
    KilnTry *note =
        mmap(NULL, sizeof *note, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (note == MAP_FAILED)
        return kiln_throw(error, KILN_ERROR_MEMORY, "no memory to share with a process: %s",
                          g_strerror(errno));
    pid_t child = fork();
    if (child == 0) {
        try_here(bisect, cut, note);
        _exit(0);
    }
    int status = 0;
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    *out = *note;
    munmap(note, sizeof *note);
    if (child < 0)
        return kiln_throw(error, KILN_ERROR_IO, "cannot make a process: %s", g_strerror(errno));
    if (out->finished)
        return TRUE;
    out->good = false;
    if (WIFSIGNALED(status))
        g_snprintf(out->why, sizeof out->why, "it crashed: %s", g_strsignal(WTERMSIG(status)));
    else
        g_snprintf(out->why, sizeof out->why, "it ended the process with status %d",
                   WEXITSTATUS(status));
    return TRUE;
}

/* --- around the tries --- */

gboolean
kiln_bisect_run(const KilnBisect *bisect, KilnCut cut, KilnModule **module, KilnIRModule **ir,
                GError **error)
{
    g_auto(State) state = { NULL, NULL, NULL };
    if (!run(bisect, cut, NULL, &state, error))
        return FALSE;
    *module = g_steal_pointer(&state.module);
    *ir = g_steal_pointer(&state.ir);
    return TRUE;
}

gboolean
kiln_bisect_expect(KilnBisect *bisect, uint64_t seed, GError **error)
{
    g_auto(State) state = { NULL, NULL, NULL };
    if (!run(bisect, (KilnCut){ false, 0 }, NULL, &state, error))
        return FALSE;
    bisect->inputs =
        state.ir ? kiln_ir_random_inputs(g_ptr_array_index(state.ir->functions, 0), seed, error)
                 : kiln_random_inputs(kiln_module_entry(state.module), NULL, seed, error);
    bisect->expected = bisect->inputs ? results_of(bisect, &state, error) : NULL;
    if (!bisect->expected)
        kiln_prefix_error(error, "%s cannot be run before any pass: ", bisect->model->name);
    return bisect->expected != NULL;
}

void
kiln_bisect_clear(KilnBisect *bisect)
{
    g_clear_pointer(&bisect->inputs, g_ptr_array_unref);
    g_clear_pointer(&bisect->expected, kiln_results_free);
}
