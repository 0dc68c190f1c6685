/* SPDX-License-Identifier: Apache-2.0 */
/* Programs: a model under a pipeline, as one or several specialisations. */
#include "passes/context/options.h"
#include "runtime/shapes/dims.h"
#include "runtime/options.h"
#include "runtime/program.h"
#include "runtime/scope.h"
#include "runtime/targets.h"
#include "runtime/open/template.h"
#include "runtime/open/zeros.h"

#include "graph/texts.h"
#include "graph/base/budget.h"
#include "graph/base/map_file.h"
#include "graph/module/define.h"
#include "ir/define.h"
#include "ir/plan.h"
#include "runtime/fold_calls.h"
#include "runtime/fold_file.h"

#include <string.h>

/* --- options --- */

static void
forward_log(const char *text, void *data)
{
    const KilnProgram *program = data;
    if (!program->log)
        return;
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    for (char **line = lines; *line; line++) {
        if (**line)
            program->log(*line, program->data);
    }
}

static gboolean
forward_progress(double fraction, const char *what, void *data)
{
    const KilnProgram *program = data;
    if (program->cancel && g_atomic_int_get(program->cancel))
        return FALSE;
    double all = program->progress_done + fraction * program->progress_stage;
    return program->progress ? program->progress(MIN(all, 1.0), what, program->data) : TRUE;
}

static gboolean
copy_options(const KilnCompileOptions *options, KilnCompileOptions *copy, GError **error)
{
    static const KilnStructKind kind =
        KILN_STRUCT_KIND(KilnCompileOptions, KILN_COMPILE_OPTIONS_INIT);
    if (!kiln_options_copy(&kind, options, copy, error))
        return FALSE;
    if (copy->threads < 0 || copy->threads > 1024)
        return kiln_throw(error, KILN_ERROR_USAGE, "threads: expected 0 to 1024, found %d",
                          copy->threads);
    if (copy->memory_limit < 0)
        return kiln_throw(error, KILN_ERROR_USAGE,
                          "memory limit: expected 0 or more, found %" G_GINT64_FORMAT,
                          copy->memory_limit);
    const KilnLimits limits = { copy->total_limit, copy->node_limit, copy->time_limit };
    return kiln_limits_check(&limits, error);
}

static gboolean
read_options(KilnProgram *program, const KilnCompileOptions *options, GError **error)
{
    program->target =
        kiln_target_choose(options->target ? options->target : "cpu", !options->no_offload, error);
    if (!program->target)
        return FALSE;
    program->pipeline = options->pipeline ? kiln_pipeline_ref(options->pipeline)
                                          : kiln_pipeline_load("default", error);
    if (!program->pipeline)
        return FALSE;
    atomic_store(&program->pipeline->used, true);
    program->threads = options->threads ? options->threads : kiln_processor_count();
    program->memory_limit = options->memory_limit;
    program->limits =
        (KilnLimits){ options->total_limit, options->node_limit, options->time_limit };
    program->parallel_for = options->parallel_for;
    program->pool = options->pool;
    program->cache =
        kiln_constant_cache_ref(options->cache ? options->cache : program->model->cache);
    program->cache_dir = g_strdup(options->cache_dir);
    if (options->cache_dir && !kiln_fold_directory_make(options->cache_dir, error))
        return FALSE;
    program->cancel = options->cancel;
    program->log = options->log;
    program->progress = options->progress;
    program->data = options->data;
    program->pass_options = (KilnPassOptions)KILN_PASS_OPTIONS_INIT;
    program->pass_options.target = program->target;
    program->pass_options.threads = program->threads;
    program->pass_options.mode = options->train ? KILN_MODE_TRAIN : KILN_MODE_INFER;
    program->pass_options.verify = !options->no_verify;
    program->pass_options.prefer_memory = options->prefer_memory;
    program->pass_options.one_algorithm = options->no_offload;
    program->pass_options.log_rewrites = options->log != NULL;
    program->pass_options.log = forward_log;
    program->pass_options.progress = forward_progress;
    program->pass_options.data = program;
    return TRUE;
}

/* --- compiling --- */

/* -1: there is none. */
static int
find(const KilnInfoList *list, const char *name)
{
    for (unsigned i = 0; i < list->n; i++) {
        if (strcmp(list->info[i].name, name) == 0)
            return (int)i;
    }
    return -1;
}

int
kiln_program_input_named(const KilnProgram *program, const char *what, const char *name,
                         GError **error)
{
    int i = name ? find(&program->model->inputs, name) : -1;
    if (!name)
        kiln_throw(error, KILN_ERROR_USAGE, "%s: expected the name of an input, found NULL", what);
    else if (i < 0)
        kiln_throw(error, KILN_ERROR_USAGE, "%s: the model has no input %s", what, name);
    return i;
}

/* A reference to @value, or a copy with the texts of its strings. */
static GBytes *
value_of(const KilnProgram *program, unsigned i, GBytes *value, GError **error)
{
    const KilnTensorInfo *info = &program->model->inputs.info[i];
    size_t size;
    const void *data = g_bytes_get_data(value, &size);
    int64_t n = (int64_t)(size / sizeof(KilnText *));
    if (info->dtype != KILN_DTYPE_string)
        return g_bytes_ref(value);
    return kiln_texts_check(data, n, info->name, error) ? kiln_texts_copy(data, n, error) : NULL;
}

/* Which inputs are constant, and the values that are known already. */
static gboolean
read_constants(KilnProgram *program, const KilnCompileOptions *options, GError **error)
{
    for (unsigned c = 0; c < options->n_constants; c++) {
        const KilnConstantInput *constant = &options->constants[c];
        int i = kiln_program_input_named(program, "constant", constant->input, error);
        if (i < 0)
            return FALSE;
        bool compile = constant->when == KILN_CONSTANT_COMPILE;
        if (!compile && constant->when != KILN_CONSTANT_RUN)
            return kiln_throw(error, KILN_ERROR_USAGE,
                              "constant %s: expected when 0 or 1, found %d", constant->input,
                              (int)constant->when);
        if (program->constness[i])
            return kiln_throw(error, KILN_ERROR_USAGE, "constant %s: stated twice",
                              constant->input);
        const KilnDType dtype = program->model->inputs.info[i].dtype;
        if (kiln_dtype_is_item(dtype))
            return kiln_throw(error, KILN_ERROR_USAGE, "constant %s: expected a tensor, found %s",
                              constant->input, program->model->inputs.info[i].contents);
        program->constness[i] = compile ? KILN_CONSTNESS_COMPILE : KILN_CONSTNESS_RUN;
        if (compile && constant->value &&
            !(program->values[i] = value_of(program, (unsigned)i, constant->value, error)))
            return FALSE;
    }
    return TRUE;
}

/* A value states its input's bytes: where the shape is open still, options->shapes must close it.
 */
static gboolean
check_value(const KilnProgram *program, unsigned i, const KilnBinding *binding, GError **error)
{
    const KilnTensorInfo *info = &program->model->inputs.info[i];
    if (kiln_binding_is_open(binding))
        return kiln_throw(error, KILN_ERROR_USAGE,
                          "constant %s: its shape is open, and no shape is given", info->name);
    KilnType type = kiln_type_make(info->dtype, binding->rank, binding->dims);
    int64_t expected = kiln_type_bytes(&type);
    size_t found = g_bytes_get_size(program->values[i]);
    if (expected >= 0 && (size_t)expected == found)
        return TRUE;
    return kiln_throw(error, KILN_ERROR_SHAPE,
                      "constant %s: expected %" G_GINT64_FORMAT " bytes, found %zu", info->name,
                      expected, found);
}

/* What the caller's shapes and the model's own say of each input; *@out_open where something is
 * left to a run. */
static KilnBinding *
initial_bindings(KilnProgram *program, const KilnCompileOptions *options, bool *out_open,
                 GError **error)
{
    unsigned n = program->model->inputs.n;
    g_autofree KilnBinding *bindings = g_new0(KilnBinding, n + 1);
    *out_open = false;
    if (!kiln_program_read_shapes(program, options->shapes, options->n_shapes, bindings, error))
        return NULL;
    for (unsigned i = 0; i < n; i++) {
        const KilnType *type = &program->model->inputs.types[i];
        if (bindings[i].rank == KILN_RANK_UNKNOWN && kiln_type_is_static(type)) {
            bindings[i].rank = type->rank;
            memcpy(bindings[i].dims, type->dims, sizeof bindings[i].dims);
        }
        if (!kiln_dims_check(type, program->model->inputs.info[i].name, &bindings[i], error))
            return NULL;
        bindings[i].constness = program->constness[i];
        if (program->values[i]) {
            if (!check_value(program, i, &bindings[i], error))
                return NULL;
            bindings[i].data =
                program->value_inputs[i] ? g_bytes_get_data(program->values[i], NULL) : NULL;
        }
        bool value_is_open = program->value_inputs[i] && !program->values[i];
        bool open_function = program->model->ir_text && !kiln_type_is_static(type);
        *out_open |= kiln_binding_is_open(&bindings[i]) || value_is_open || open_function;
        if (program->model->ir_text && kiln_type_is_static(type) &&
            !kiln_binding_fits(&bindings[i], type))
            return kiln_throw_null(
                error, KILN_ERROR_SHAPE,
                "shape of %s: the model is at the ir level, its shapes are fixed",
                program->model->inputs.info[i].name);
    }
    return g_steal_pointer(&bindings);
}

/* What is known of inputs and outputs before the first run; shapes that cannot be are found here.
 */
static gboolean
shape_open_program(KilnProgram *program, const KilnBinding *bindings, GError **error)
{
    if (program->model->ir_text)
        return kiln_program_pin(program, bindings, error);
    program->shaped = kiln_specialise(program->model->module, bindings, program->target, error);
    if (!program->shaped) {
        kiln_prefix_error(error, "%s: ", program->model->name);
        return FALSE;
    }
    kiln_info_list_clear(&program->inputs); /* what the model alone said */
    kiln_info_list_clear(&program->outputs);
    kiln_info_lists_of_graph(program->shaped, &program->inputs, &program->outputs);
    return TRUE;
}

/* With fixed shapes, too, data may decide dims: then the program is open. Shapes that the model
 * refuses are refused where it is made. */
static bool
data_decides(const KilnProgram *program, const KilnBinding *bindings)
{
    const KilnModel *model = program->model;
    if (model->ir_text)
        return kiln_defines_any(model->ir->functions);
    if (!kiln_data_may_decide(model->module))
        return false;
    g_autoptr(KilnModule) shaped = kiln_specialise(model->module, bindings, program->target, NULL);
    return shaped && kiln_module_defines(shaped);
}

static gboolean
specialise_now(KilnProgram *program, const KilnBinding *bindings, GError **error)
{
    g_autoptr(KilnSpecialisation) made = kiln_program_specialise(program, bindings, NULL, error);
    if (!made)
        return FALSE;
    kiln_info_list_copy(&program->inputs, &made->inputs);
    kiln_info_list_copy(&program->outputs, &made->outputs);
    kiln_info_list_state_contents(&program->inputs, &program->model->inputs);
    kiln_info_list_state_contents(&program->outputs, &program->model->outputs);
    return TRUE;
}

KilnProgram *
kiln_program_new(KilnModel *model)
{
    KilnProgram *program = g_new0(KilnProgram, 1);
    atomic_init(&program->references, 1);
    pthread_mutex_init(&program->lock, NULL);
    program->specialisations =
        g_ptr_array_new_with_free_func((GDestroyNotify)kiln_specialisation_unref);
    program->templates = g_ptr_array_new_with_free_func((GDestroyNotify)kiln_template_unref);
    program->zeros = g_ptr_array_new_with_free_func((GDestroyNotify)kiln_zeros_free);
    program->model = kiln_model_ref(model);
    program->constness = g_new0(KilnConstness, model->inputs.n + 1);
    program->values = g_new0(GBytes *, model->inputs.n + 1);
    return program;
}

/* The head of each weight in the file and the small ones were read: each brought 64 KB or more. */
static void
drop_file(const KilnModel *model)
{
    size_t size = 0;
    const void *data = model->map ? g_bytes_get_data(model->map, &size) : NULL;
    if (size)
        kiln_map_drop(data, size);
}

/* @model with what the caller says of its dims. */
static KilnModel *
model_with_ranges(KilnModel *model, const KilnCompileOptions *options, GError **error)
{
    unsigned n = options->n_ranges;
    g_autofree KilnDimStatement *statements = g_new0(KilnDimStatement, (gsize)n + 1);
    for (unsigned i = 0; i < n; i++)
        statements[i] = (KilnDimStatement){ .what = "dim range",
                                            .name = options->ranges[i].name,
                                            .facts = options->ranges[i] };
    return kiln_model_with_dims(model, statements, n, error);
}

KilnProgram *
kiln_program_compile(KilnModel *loaded, const KilnCompileOptions *given, GError **error)
{
    const KilnCompileOptions defaults = KILN_COMPILE_OPTIONS_INIT;
    KilnCompileOptions options;
    if (!copy_options(given ? given : &defaults, &options, error))
        return NULL;
    g_autoptr(KilnModel) model = model_with_ranges(loaded, &options, error);
    if (!model)
        return NULL;
    g_autoptr(KilnProgram) program = kiln_program_new(model);
    if (!read_options(program, &options, error))
        return NULL;
    g_autoptr(KilnBudget) budget = kiln_budget_new(&program->limits);
    G_GNUC_UNUSED g_auto(KilnRunScope) scope =
        kiln_run_scope_enter_within(program->parallel_for, program->pool, budget);
    for (const char *const *note = kiln_model_notes(loaded); program->log && *note; note++)
        program->log(*note, program->data);
    kiln_info_list_copy(&program->inputs, &model->inputs);
    kiln_info_list_copy(&program->outputs, &model->outputs);
    program->value_inputs =
        model->ir_text ? g_new0(bool, model->inputs.n + 1) : kiln_value_inputs(model->module);
    if (!read_constants(program, &options, error))
        return NULL;
    g_autofree KilnBinding *bindings = initial_bindings(program, &options, &program->open, error);
    if (!bindings)
        return NULL;
    program->open |= data_decides(program, bindings);
    gboolean good = program->open ? shape_open_program(program, bindings, error)
                                  : specialise_now(program, bindings, error);
    if (good && options.prefer_memory)
        drop_file(model);
    return good && kiln_checkpoint(error) ? g_steal_pointer(&program) : NULL;
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
    g_ptr_array_unref(program->templates);
    g_ptr_array_unref(program->zeros);
    for (unsigned i = 0; i < program->model->inputs.n; i++)
        g_clear_pointer(&program->values[i], g_bytes_unref);
    g_free(program->values);
    g_free(program->constness);
    g_free(program->cache_dir);
    g_free(program->refusal);
    kiln_constant_cache_unref(program->cache);
    pthread_mutex_destroy(&program->lock);
    kiln_info_list_clear(&program->inputs);
    kiln_info_list_clear(&program->outputs);
    g_free(program->value_inputs);
    kiln_module_free(program->shaped);
    kiln_pipeline_unref(program->pipeline);
    kiln_model_unref(program->model);
    g_free(program);
}

const KilnMetadata *
kiln_program_metadata(const KilnProgram *program)
{
    return &program->model->metadata;
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

int
kiln_program_find_input(const KilnProgram *program, const char *name)
{
    return find(&program->inputs, name);
}

int
kiln_program_find_output(const KilnProgram *program, const char *name)
{
    return find(&program->outputs, name);
}

void
kiln_program_invalidate_constants(KilnProgram *program)
{
    atomic_fetch_add(&program->generation, 1);
    pthread_mutex_lock(&program->lock);
    for (guint i = 0; i < program->specialisations->len; i++) {
        const KilnSpecialisation *made = g_ptr_array_index(program->specialisations, i);
        if (made->folder)
            kiln_folder_forget(made->folder);
    }
    for (guint i = 0; i < program->templates->len; i++) {
        const KilnTemplate *template = g_ptr_array_index(program->templates, i);
        if (template->folder)
            kiln_folder_forget(template->folder);
    }
    pthread_mutex_unlock(&program->lock);
}

uint64_t
kiln_program_fold_runs(const KilnProgram *program)
{
    return atomic_load(&((KilnProgram *)program)->fold_runs);
}

gboolean
kiln_memory_report_copy(const KilnMemoryReport *report, KilnMemoryReport *out, GError **error)
{
    static const KilnStructKind kind = KILN_STRUCT_KIND(KilnMemoryReport, KILN_MEMORY_REPORT_INIT);
    return kiln_report_copy(&kind, report, out, error);
}

gboolean
kiln_program_memory(const KilnProgram *program, KilnMemoryReport *out, GError **error)
{
    KilnProgram *self = (KilnProgram *)program;
    KilnMemoryReport report = { sizeof report, -1, -1, -1, -1, -1, FALSE, 0 };
    pthread_mutex_lock(&self->lock);
    guint n = program->specialisations->len;
    if (n)
        kiln_specialisation_report(program, g_ptr_array_index(program->specialisations, n - 1),
                                   &report);
    pthread_mutex_unlock(&self->lock);
    return kiln_memory_report_copy(&report, out, error);
}
