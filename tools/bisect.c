/* SPDX-License-Identifier: Apache-2.0 */
/* One try of a bisection: the pipeline cut short, the result evaluated on the reference and
 * compared with that of the model, all of it in a child process that may crash. */
#include "tools/bisect.h"

#include "passes/context/options.h"
#include "passes/context/report.h"
#include "graph/arena.h"
#include "graph/binding.h"
#include "ir/open.h"
#include "passes/manager/cut_points.h"
#include "passes/manager/draws.h"
#include "passes/manager/manager.h"
#include "passes/manager/results.h"
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
    if (note->n_rewrites >= KILN_BISECT_REWRITES || g_str_has_prefix(line, "check: "))
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

static const KilnIRFunction *
ir_entry(const State *state, GError **error)
{
    const GPtrArray *functions = state->ir->functions;
    return functions->len
               ? g_ptr_array_index(functions, functions->len - 1)
               : kiln_throw_null(error, KILN_ERROR_INVALID, "there is no function to run");
}

/* The entry as it is with the numbers of a run; *@out_copy owns what was made for them. */
static const KilnIRFunction *
ir_entry_at(const State *state, const KilnDimBinding *binding, KilnIRFunction **out_copy,
            GError **error)
{
    const KilnIRFunction *entry = ir_entry(state, error);
    *out_copy = NULL;
    if (!entry || !entry->open)
        return entry;
    *out_copy = kiln_open_copy_defined(entry, binding, error);
    return *out_copy && kiln_ir_verify(*out_copy, error) ? *out_copy : NULL;
}

static KilnResults *
results_of(const KilnBisect *bisect, const State *state, const KilnBisectRun *run, GError **error)
{
    if (!state->ir)
        return kiln_results_on(kiln_module_entry(state->module), bisect->reference, run->inputs,
                               error);
    g_autoptr(KilnIRFunction) copy = NULL;
    const KilnIRFunction *entry = ir_entry_at(state, run->binding, &copy, error);
    return entry ? kiln_ir_results_on(entry, bisect->reference, run->inputs, false, error) : NULL;
}

/* Steps that grow on their way to the results: the graph is compared value by value, and what was
 * lowered of it with what it computes. */
static gboolean
compare_values(const KilnBisect *bisect, const State *state, KilnCut cut, const KilnBisectRun *at,
               const KilnResults *found, KilnNumerics numerics, uint32_t n_rounding)
{
    g_auto(State) model = { NULL, NULL, NULL }, graph = { NULL, NULL, NULL };
    if (bisect->model->ir_text || !run(bisect, (KilnCut){ false, 0 }, NULL, &model, NULL) ||
        (state->ir && !run(bisect, (KilnCut){ false, cut.limit }, NULL, &graph, NULL)))
        return FALSE;
    const KilnFunction *optimized = kiln_module_entry(state->ir ? graph.module : state->module);
    KilnRecord *record =
        kiln_record_graph(kiln_module_entry(model.module), bisect->reference, at->inputs, NULL);
    if (!record)
        return FALSE;
    record->roundings = MAX(n_rounding, 1);
    gboolean good = kiln_record_compare_cut(record, optimized, bisect->reference, numerics, NULL);
    kiln_record_free(record);
    if (!good || !state->ir)
        return good;
    g_autoptr(KilnResults) computed =
        kiln_results_on(optimized, bisect->reference, at->inputs, NULL);
    return computed && kiln_results_compare(computed, found, numerics, NULL);
}

/* Bounds are those of one pass: roundings of several add up. */
static gboolean
compare_run(const KilnBisect *bisect, const State *state, KilnCut cut, const KilnBisectRun *run,
            GError **error)
{
    g_autoptr(KilnResults) found = results_of(bisect, state, run, error);
    if (!found)
        return FALSE;
    uint32_t n_rounding;
    KilnNumerics numerics = kiln_pass_report_numerics(state->report, bisect->passes, &n_rounding);
    found->terms.terms = MAX(found->terms.terms, run->expected->terms.terms) * MAX(n_rounding, 1);
    g_autoptr(GError) why = NULL;
    if (kiln_results_compare(run->expected, found, numerics, &why) ||
        (numerics > KILN_NUMERICS_Z &&
         compare_values(bisect, state, cut, run, found, numerics, n_rounding)))
        return TRUE;
    g_propagate_error(error, g_steal_pointer(&why));
    return FALSE;
}

static gboolean
compare(const KilnBisect *bisect, const State *state, KilnCut cut, GError **error)
{
    for (guint i = 0; i < bisect->runs->len; i++) {
        const KilnBisectRun *run = g_ptr_array_index(bisect->runs, i);
        if (compare_run(bisect, state, cut, run, error))
            continue;
        g_autofree char *with = kiln_binding_to_string(run->binding);
        if (*with)
            kiln_prefix_error(error, "with %s: ", with);
        return FALSE;
    }
    return TRUE;
}

static void
try_here(const KilnBisect *bisect, KilnCut cut, KilnTry *note)
{
    g_autoptr(GError) why = NULL;
    g_auto(State) state = { NULL, NULL, NULL };
    note->made = run(bisect, cut, note, &state, &why);
    note->good = note->made && compare(bisect, &state, cut, &why);
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

static void
free_run(gpointer data)
{
    KilnBisectRun *run = data;
    if (run->inputs)
        g_ptr_array_unref(run->inputs);
    kiln_results_free(run->expected);
    g_free(run);
}

typedef struct {
    KilnBisect *bisect;
    const State *state; /* before any pass */
    uint64_t seed;
} Expectation;

static GPtrArray *
random_inputs(const Expectation *self, const KilnDimBinding *binding, GError **error)
{
    if (!self->state->ir)
        return kiln_random_inputs(kiln_module_entry(self->state->module), binding, self->seed,
                                  error);
    g_autoptr(KilnIRFunction) copy = NULL;
    const KilnIRFunction *entry = ir_entry_at(self->state, binding, &copy, error);
    return entry ? kiln_ir_random_inputs(entry, self->seed, error) : NULL;
}

/* A KilnRunAtFn. */
static gboolean
expect_at(const KilnDimBinding *binding, void *data, GError **error)
{
    const Expectation *self = data;
    KilnBisect *bisect = self->bisect;
    KilnBisectRun *run = g_new0(KilnBisectRun, 1);
    run->binding = kiln_dim_binding_copy(bisect->arena, binding);
    run->inputs = random_inputs(self, run->binding, error);
    run->expected = run->inputs ? results_of(bisect, self->state, run, error) : NULL;
    gboolean good = run->expected != NULL;
    if (good)
        g_ptr_array_add(bisect->runs, run);
    else
        free_run(run);
    return good;
}

gboolean
kiln_bisect_expect(KilnBisect *bisect, uint64_t seed, GError **error)
{
    g_auto(State) state = { NULL, NULL, NULL };
    if (!run(bisect, (KilnCut){ false, 0 }, NULL, &state, error))
        return FALSE;
    const KilnIRFunction *entry = state.ir ? ir_entry(&state, error) : NULL;
    if (state.ir && !entry)
        return FALSE;
    g_autoptr(KilnOpenNames) names =
        entry ? kiln_open_names_of_ir(entry)
              : kiln_open_names_of_graph(kiln_module_entry(state.module));
    bisect->arena = kiln_arena_new();
    bisect->runs = g_ptr_array_new_with_free_func(free_run);
    Expectation expectation = { bisect, &state, seed };
    gboolean good = kiln_run_at_draws(names, expect_at, &expectation, &bisect->draws, error);
    if (!good)
        kiln_prefix_error(error, "%s cannot be run before any pass: ", bisect->model->name);
    return good;
}

void
kiln_bisect_clear(KilnBisect *bisect)
{
    g_clear_pointer(&bisect->runs, g_ptr_array_unref);
    g_clear_pointer(&bisect->arena, kiln_arena_free);
    kiln_draw_count_clear(&bisect->draws);
}
