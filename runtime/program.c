/* SPDX-License-Identifier: Apache-2.0 */
/* Programs: a model under a pipeline, as one or several specialisations. */
#include "runtime/internal.h"

#include <string.h>

/* --- options --- */

static void
forward_log(const char *text, void *data)
{
    const KilnProgram *program = data;
    if (program->log)
        program->log(text, program->data);
}

static gboolean
forward_progress(double fraction, const char *what, void *data)
{
    const KilnProgram *program = data;
    if (program->cancel && *program->cancel)
        return FALSE;
    return program->progress ? program->progress(fraction, what, program->data) : TRUE;
}

static gboolean
check_options(const KilnCompileOptions *options, GError **error)
{
    if (options->size != sizeof *options)
        return kiln_throw(error, KILN_ERROR_USAGE,
                          "KilnCompileOptions: expected size %zu, found %zu", sizeof *options,
                          options->size);
    if (options->threads < 0 || options->threads > 1024)
        return kiln_throw(error, KILN_ERROR_USAGE, "threads: expected 0 to 1024, found %d",
                          options->threads);
    return TRUE;
}

static gboolean
read_options(KilnProgram *program, const KilnCompileOptions *options, GError **error)
{
    program->target = kiln_target_by_name(options->target ? options->target : "cpu", error);
    if (!program->target)
        return FALSE;
    program->pipeline = options->pipeline ? kiln_pipeline_ref(options->pipeline)
                                          : kiln_pipeline_load("default", error);
    if (!program->pipeline)
        return FALSE;
    atomic_store(&program->pipeline->used, true);
    program->threads = options->threads ? options->threads : kiln_processor_count();
    program->memory_limit = options->memory_limit;
    program->cancel = options->cancel;
    program->log = options->log;
    program->progress = options->progress;
    program->data = options->data;
    program->pass_options = (KilnPassOptions)KILN_PASS_OPTIONS_INIT;
    program->pass_options.target = program->target;
    program->pass_options.threads = program->threads;
    program->pass_options.mode = options->train ? KILN_MODE_TRAIN : KILN_MODE_INFER;
    program->pass_options.verify = !options->no_verify;
    program->pass_options.log_rewrites = options->log != NULL;
    program->pass_options.log = forward_log;
    program->pass_options.progress = forward_progress;
    program->pass_options.data = program;
    return TRUE;
}

/* --- specialisations --- */

static bool
same_binding(const KilnProgram *program, const KilnSpecialisation *made, const KilnBinding *wanted)
{
    for (unsigned i = 0; i < program->inputs.n; i++) {
        const KilnBinding *old = &made->bindings[i], *new = &wanted[i];
        if (old->rank != new->rank ||
            (new->rank > 0 &&
             memcmp(old->dims, new->dims, (size_t) new->rank * sizeof *new->dims) != 0))
            return false;
        if (!program->value_inputs[i])
            continue;
        size_t size;
        const void *bytes = g_bytes_get_data(made->values[i], &size);
        if (size && memcmp(bytes, new->data, size) != 0)
            return false;
    }
    return true;
}

static gboolean
keep_key(const KilnProgram *program, KilnSpecialisation *made, const KilnBinding *bindings)
{
    unsigned n = program->inputs.n;
    made->bindings = g_memdup2(bindings, (n + 1) * sizeof *bindings);
    made->values = g_new0(GBytes *, n + 1);
    for (unsigned i = 0; i < n; i++) {
        if (program->value_inputs[i])
            made->values[i] = g_bytes_new(bindings[i].data, (size_t)made->inputs.info[i].bytes);
        made->bindings[i].data = NULL;
    }
    return TRUE;
}

static KilnSpecialisation *
make(KilnProgram *program, const KilnBinding *bindings, GError **error)
{
    const KilnPassPipeline *passes = program->pipeline->passes;
    const KilnPassOptions *options = &program->pass_options;
    g_autoptr(KilnPassReport) report = kiln_pass_report_new();
    KilnIRModule *ir;
    if (program->model->ir_text) {
        ir = kiln_compile_ir_text(program->model, passes, options, report, error);
    } else {
        KilnModule *module =
            kiln_compile_graph(program->model, bindings, passes, options, report, error);
        ir = module ? kiln_compile_ir(module, passes, options, report, error) : NULL;
    }
    if (!ir)
        return NULL;
    g_autoptr(KilnSpecialisation) made =
        kiln_program_bind(ir, program->target, program->threads, error);
    if (!made)
        return NULL;
    if (program->memory_limit && made->arena_bytes > program->memory_limit)
        return kiln_throw_null(
            error, KILN_ERROR_LIMIT,
            "%s: expected an arena of at most %" G_GINT64_FORMAT
            " bytes, the plan needs %" G_GINT64_FORMAT " (lower bound %" G_GINT64_FORMAT ")",
            program->model->name, program->memory_limit, made->arena_bytes, made->plan->lb_live);
    keep_key(program, made, bindings);
    return g_steal_pointer(&made);
}

const KilnSpecialisation *
kiln_program_specialise(KilnProgram *program, const KilnBinding *bindings, GError **error)
{
    /* Compiling under the lock makes each combination once, however many sessions meet it first
     * together. */
    pthread_mutex_lock(&program->lock);
    KilnSpecialisation *found = NULL;
    for (guint i = 0; i < program->specialisations->len && !found; i++) {
        KilnSpecialisation *candidate = g_ptr_array_index(program->specialisations, i);
        found = same_binding(program, candidate, bindings) ? candidate : NULL;
    }
    if (!found) {
        found = make(program, bindings, error);
        if (found)
            g_ptr_array_add(program->specialisations, found);
    }
    pthread_mutex_unlock(&program->lock);
    return found;
}

/* --- compiling --- */

/* What the caller's shapes and the model's own say of each input; *@out_open where something is
 * left to a run. */
static KilnBinding *
initial_bindings(KilnProgram *program, const KilnCompileOptions *options, bool *out_open,
                 GError **error)
{
    unsigned n = program->model->inputs.n;
    g_autofree KilnBinding *bindings = g_new0(KilnBinding, n + 1);
    *out_open = false;
    for (unsigned i = 0; i < n; i++)
        bindings[i].rank = KILN_RANK_UNKNOWN;
    for (unsigned s = 0; s < options->n_shapes; s++) {
        const KilnShape *shape = &options->shapes[s];
        unsigned i = 0;
        while (i < n && strcmp(program->model->inputs.info[i].name, shape->input) != 0)
            i++;
        if (i == n)
            return kiln_throw_null(error, KILN_ERROR_USAGE, "shape: the model has no input %s",
                                   shape->input);
        if (shape->rank < 0 || shape->rank > KILN_MAX_RANK)
            return kiln_throw_null(error, KILN_ERROR_USAGE,
                                   "shape of %s: expected rank 0 to %d, found %d", shape->input,
                                   KILN_MAX_RANK, shape->rank);
        bindings[i].rank = shape->rank;
        memcpy(bindings[i].dims, shape->dims, sizeof bindings[i].dims);
    }
    for (unsigned i = 0; i < n; i++) {
        const KilnType *type = &program->model->inputs.types[i];
        if (bindings[i].rank == KILN_RANK_UNKNOWN && kiln_type_is_static(type)) {
            bindings[i].rank = type->rank;
            memcpy(bindings[i].dims, type->dims, sizeof bindings[i].dims);
        }
        *out_open |= bindings[i].rank == KILN_RANK_UNKNOWN || program->value_inputs[i];
    }
    return g_steal_pointer(&bindings);
}

static void
list_from(KilnInfoList *to, const KilnInfoList *from)
{
    g_autofree const char **names = g_new0(const char *, from->n + 1);
    for (unsigned i = 0; i < from->n; i++)
        names[i] = from->info[i].name;
    kiln_info_list_clear(to);
    kiln_info_list_init(to, from->n, names, from->types);
}

KilnProgram *
kiln_program_compile(KilnModel *model, const KilnCompileOptions *options, GError **error)
{
    const KilnCompileOptions defaults = KILN_COMPILE_OPTIONS_INIT;
    options = options ? options : &defaults;
    if (!check_options(options, error))
        return NULL;
    g_autoptr(KilnProgram) program = g_new0(KilnProgram, 1);
    atomic_init(&program->references, 1);
    pthread_mutex_init(&program->lock, NULL);
    program->specialisations =
        g_ptr_array_new_with_free_func((GDestroyNotify)kiln_specialisation_free);
    program->model = kiln_model_ref(model);
    if (!read_options(program, options, error))
        return NULL;
    list_from(&program->inputs, &model->inputs);
    list_from(&program->outputs, &model->outputs);
    program->value_inputs = model->ir_text ? g_new0(bool, model->inputs.n + 1)
                                           : kiln_value_arguments(kiln_module_entry(model->module));
    g_autofree KilnBinding *bindings = initial_bindings(program, options, &program->open, error);
    if (!bindings)
        return NULL;
    if (!program->open) {
        const KilnSpecialisation *made = kiln_program_specialise(program, bindings, error);
        if (!made)
            return NULL;
        list_from(&program->inputs, &made->inputs);
        list_from(&program->outputs, &made->outputs);
    }
    return g_steal_pointer(&program);
}

KilnProgram *
kiln_program_ref(KilnProgram *program)
{
    atomic_fetch_add(&program->references, 1);
    return program;
}

void
kiln_program_unref(KilnProgram *program)
{
    if (!program || atomic_fetch_sub(&program->references, 1) != 1)
        return;
    g_ptr_array_unref(program->specialisations);
    pthread_mutex_destroy(&program->lock);
    kiln_info_list_clear(&program->inputs);
    kiln_info_list_clear(&program->outputs);
    g_free(program->value_inputs);
    kiln_pipeline_unref(program->pipeline);
    kiln_model_unref(program->model);
    g_free(program);
}

unsigned
kiln_program_n_inputs(const KilnProgram *program)
{
    return program->inputs.n;
}

unsigned
kiln_program_n_outputs(const KilnProgram *program)
{
    return program->outputs.n;
}

const KilnTensorInfo *
kiln_program_input(const KilnProgram *program, unsigned i)
{
    return i < program->inputs.n ? &program->inputs.info[i] : NULL;
}

const KilnTensorInfo *
kiln_program_output(const KilnProgram *program, unsigned i)
{
    return i < program->outputs.n ? &program->outputs.info[i] : NULL;
}

void
kiln_program_memory(const KilnProgram *program, KilnMemoryReport *out)
{
    /* The first specialisation stands for the program: later ones are for other shapes. */
    KilnProgram *self = (KilnProgram *)program;
    *out = (KilnMemoryReport){ -1, -1, -1, -1, -1, FALSE, 0 };
    pthread_mutex_lock(&self->lock);
    if (program->specialisations->len) {
        const KilnSpecialisation *made = g_ptr_array_index(program->specialisations, 0);
        const KilnMemoryPlan *plan = made->plan;
        *out = (KilnMemoryReport){ plan->sum,    plan->lb_node,      plan->lb_live,
                                   plan->arena,  made->weight_bytes, plan->proven_optimal,
                                   plan->plan_ms };
    }
    pthread_mutex_unlock(&self->lock);
}
