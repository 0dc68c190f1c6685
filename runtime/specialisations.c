/* SPDX-License-Identifier: Apache-2.0 */
/* The specialisations of a program: made when a combination of shapes (and of values that shapes
 * depend on) is met first, kept for the next time. The cache is short, so that a program whose
 * values differ at every run does not grow without end. */
#include "graph/base/budget.h"
#include "passes/context/options.h"
#include "passes/context/report.h"
#include "passes/pipeline/pipeline.h"
#include "runtime/bind.h"
#include "runtime/compile.h"
#include "runtime/fold_calls.h"
#include "runtime/program.h"
#include "runtime/specialise.h"

#include "graph/base/alloc.h"

#include <string.h>

bool
kiln_specialisation_fits(const KilnProgram *program, const KilnSpecialisation *made,
                         const KilnBinding *bindings)
{
    for (unsigned i = 0; i < program->inputs.n; i++) {
        const KilnBinding *have = &made->bindings[i], *want = &bindings[i];
        if (have->rank != want->rank)
            return false;
        for (int d = 0; d < want->rank; d++) {
            if (have->dims[d] != want->dims[d])
                return false;
        }
        if (!program->value_inputs[i])
            continue;
        size_t size;
        const void *bytes = g_bytes_get_data(made->values[i], &size);
        if (size && memcmp(bytes, want->data, size) != 0)
            return false;
    }
    return true;
}

static gboolean
keep_key(const KilnProgram *program, KilnSpecialisation *made, const KilnBinding *bindings,
         GError **error)
{
    unsigned n = program->inputs.n;
    made->bindings = g_new0(KilnBinding, n + 1);
    made->values = g_new0(GBytes *, n + 1);
    for (unsigned i = 0; i < n; i++) {
        made->bindings[i] = bindings[i];
        made->bindings[i].data = NULL;
        if (!program->value_inputs[i])
            continue;
        size_t size = (size_t)made->inputs.info[i].bytes;
        void *copy;
        made->values[i] = kiln_bytes_new(1, size, &copy, error);
        if (!made->values[i])
            return FALSE;
        if (size)
            memcpy(copy, bindings[i].data, size);
    }
    return TRUE;
}

/* --- making --- */

/* What part of the whole each stage is, for progress. */
static const double graph_stage = 0.6, ir_stage = 0.2, bind_stage = 0.2;

static void
begin_stage(KilnProgram *program, double length)
{
    program->progress_done += program->progress_stage;
    program->progress_stage = length;
}

static KilnIRModule *
optimize(KilnProgram *program, const KilnBinding *bindings, GError **error)
{
    const KilnPassPipeline *passes = program->pipeline->passes;
    const KilnPassOptions *options = &program->pass_options;
    g_autoptr(KilnPassReport) report = kiln_pass_report_new();
    begin_stage(program, graph_stage);
    if (program->model->ir_text) {
        begin_stage(program, ir_stage);
        return kiln_compile_ir_text(program->model, passes, options, report, error);
    }
    KilnModule *module =
        kiln_compile_graph(program->model, bindings, passes, options, report, error);
    begin_stage(program, ir_stage);
    return module ? kiln_compile_ir(module, passes, options, report, error) : NULL;
}

/* Computes what can be computed ahead of the runs; *@out is NULL where there is nothing of that
 * kind. */
static gboolean
fold(const KilnProgram *program, KilnIRModule *ir, KilnFolder **out, GError **error)
{
    bool given = false;
    for (unsigned i = 0; i < program->model->inputs.n; i++)
        given |= program->values[i] != NULL;
    if (!given && !ir->module->folding && !kiln_ir_takes_fixed(ir))
        return TRUE;
    const KilnFoldOptions options = { .target = program->target,
                                      .directory = program->cache_dir,
                                      .threads = program->threads,
                                      .limits = program->limits,
                                      .values = program->values };
    *out = kiln_folder_new(ir, &options, error);
    return *out != NULL;
}

static KilnSpecialisation *
make(KilnProgram *program, const KilnBinding *bindings, GError **error)
{
    program->progress_done = program->progress_stage = 0;
    KilnIRModule *ir = optimize(program, bindings, error);
    if (!ir)
        return NULL;
    begin_stage(program, bind_stage);
    KilnFolder *folder = NULL;
    if (!fold(program, ir, &folder, error)) {
        kiln_prefix_error(error, "%s: ", program->model->name);
        kiln_ir_module_free(ir);
        return NULL;
    }
    const KilnPassOptions *passes = &program->pass_options;
    KilnBindOptions options = { .target = program->target,
                                .threads = program->threads,
                                .memory_limit = program->memory_limit,
                                .cache = program->cache,
                                .folder = folder,
                                .frugal = passes->prefer_memory,
                                .outputs = &program->model->outputs,
                                .progress = passes->progress,
                                .data = program };
    g_autoptr(KilnSpecialisation) made = kiln_program_bind(ir, &options, error);
    if (!made) {
        kiln_prefix_error(error, "%s: ", program->model->name);
        return NULL;
    }
    if (!keep_key(program, made, bindings, error))
        return NULL;
    if (!passes->progress(1, "done", program))
        return kiln_throw_null(error, KILN_ERROR_CANCELLED, "%s: cancelled", program->model->name);
    return g_steal_pointer(&made);
}

/* --- the cache --- */

/* The specialisation for @bindings, moved to the end of the list; NULL where there is none. */
static KilnSpecialisation *
find(KilnProgram *program, const KilnBinding *bindings)
{
    GPtrArray *list = program->specialisations;
    for (guint i = list->len; i-- > 0;) {
        if (!kiln_specialisation_fits(program, g_ptr_array_index(list, i), bindings))
            continue;
        g_ptr_array_insert(list, -1, g_ptr_array_steal_index(list, i));
        return g_ptr_array_index(list, list->len - 1);
    }
    return NULL;
}

KilnSpecialisation *
kiln_program_specialise(KilnProgram *program, const KilnBinding *bindings, GError **error)
{
    g_autoptr(KilnBudget) budget = kiln_budget_new(&program->limits);
    KilnBudget *before = kiln_budget_enter(budget);
    /* Compiling under the lock makes each combination once, however many sessions meet it first
     * together. */
    pthread_mutex_lock(&program->lock);
    KilnSpecialisation *found = find(program, bindings);
    if (!found && (found = make(program, bindings, error))) {
        if (program->specialisations->len == KILN_MAX_SPECIALISATIONS)
            g_ptr_array_remove_index(program->specialisations, 0);
        g_ptr_array_add(program->specialisations, found);
    }
    if (found)
        kiln_specialisation_ref(found);
    pthread_mutex_unlock(&program->lock);
    kiln_budget_leave(before);
    return found;
}
