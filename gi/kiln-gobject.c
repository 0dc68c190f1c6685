/* SPDX-License-Identifier: Apache-2.0 */
/* Boxed types of Kiln's objects, and functions over kiln.h that bindings can call. Numbers come and
 * go as bytes, which a call copies or keeps: no memory of a caller is bound from one call to the
 * next. */
#include "gi/kiln-gobject.h"

#include <string.h>

struct KilnRunner {
    grefcount owners;
    KilnProgram *program;
    KilnSession *session;
};

G_DEFINE_BOXED_TYPE(KilnModel, kiln_model, kiln_model_ref, kiln_model_unref)
G_DEFINE_BOXED_TYPE(KilnPipeline, kiln_pipeline, kiln_pipeline_ref, kiln_pipeline_unref)
G_DEFINE_BOXED_TYPE(KilnProgram, kiln_program, kiln_program_ref, kiln_program_unref)
G_DEFINE_BOXED_TYPE(KilnRunner, kiln_runner, kiln_runner_ref, kiln_runner_unref)
G_DEFINE_BOXED_TYPE(KilnItem, kiln_item, kiln_item_ref, kiln_item_unref)

/**
 * kiln_model_new_from_path:
 * @path: (type filename): an ONNX file, or a text of Kiln
 * @error: a place for an error
 *
 * Loads a model.
 *
 * Returns: (transfer full): the model
 */
KilnModel *
kiln_model_new_from_path(const char *path, GError **error)
{
    return kiln_model_load(path, error);
}

static char **
names(const KilnModel *model, unsigned n,
      const KilnTensorInfo *(*get)(const KilnModel *model, unsigned i))
{
    char **found = g_new0(char *, n + 1);
    for (unsigned i = 0; i < n; i++)
        found[i] = g_strdup(get(model, i)->name);
    return found;
}

/**
 * kiln_model_get_input_names:
 * @model: a model
 *
 * The names of the inputs, in the order of kiln_runner_call().
 *
 * Returns: (transfer full) (array zero-terminated=1): the names
 */
char **
kiln_model_get_input_names(const KilnModel *model)
{
    return names(model, kiln_model_n_inputs(model), kiln_model_input);
}

/**
 * kiln_model_get_output_names:
 * @model: a model
 *
 * The names of the outputs, in the order of kiln_runner_call().
 *
 * Returns: (transfer full) (array zero-terminated=1): the names
 */
char **
kiln_model_get_output_names(const KilnModel *model)
{
    return names(model, kiln_model_n_outputs(model), kiln_model_output);
}

/**
 * kiln_pipeline_new_from_name:
 * @name: (type filename): a pipeline that ships with Kiln, or a file
 * @error: a place for an error
 *
 * Loads a pipeline.
 *
 * Returns: (transfer full): the pipeline
 */
KilnPipeline *
kiln_pipeline_new_from_name(const char *name, GError **error)
{
    return kiln_pipeline_load(name, error);
}

/**
 * kiln_pipeline_new_from_text:
 * @text: passes with commas between them
 * @error: a place for an error
 *
 * Makes a pipeline of the inline form.
 *
 * Returns: (transfer full): the pipeline
 */
KilnPipeline *
kiln_pipeline_new_from_text(const char *text, GError **error)
{
    return kiln_pipeline_parse(text, error);
}

/**
 * kiln_program_new_for_model:
 * @model: a model
 * @pipeline: (nullable): the passes that run; %NULL: the pipeline `default`
 * @threads: how many threads a run has at most; 0: one for each processor
 * @error: a place for an error
 *
 * Compiles a model.
 *
 * Returns: (transfer full): the program
 */
KilnProgram *
kiln_program_new_for_model(KilnModel *model, KilnPipeline *pipeline, int threads, GError **error)
{
    KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
    options.pipeline = pipeline;
    options.threads = threads;
    return kiln_program_compile(model, &options, error);
}

/**
 * kiln_program_new_from_path:
 * @path: (type filename): a file that kiln_program_write() or `kiln compile` wrote
 * @error: a place for an error
 *
 * Loads a compiled program.
 *
 * Returns: (transfer full): the program
 */
KilnProgram *
kiln_program_new_from_path(const char *path, GError **error)
{
    return kiln_program_load(path, NULL, error);
}

/**
 * kiln_program_write:
 * @program: a program
 * @path: (type filename): the file to write
 * @error: a place for an error
 *
 * Writes a program to a file.
 *
 * Returns: %TRUE unless it failed
 */
gboolean
kiln_program_write(KilnProgram *program, const char *path, GError **error)
{
    return kiln_program_save(program, path, error);
}

/**
 * kiln_runner_new:
 * @program: a program
 * @error: a place for an error
 *
 * Makes a session for calls of a program.
 *
 * Returns: (transfer full): the runner
 */
KilnRunner *
kiln_runner_new(KilnProgram *program, GError **error)
{
    KilnSession *session = kiln_session_new(program, NULL, error);
    if (!session)
        return NULL;
    KilnRunner *runner = g_new0(KilnRunner, 1);
    g_ref_count_init(&runner->owners);
    runner->program = kiln_program_ref(program);
    runner->session = session;
    return runner;
}

/**
 * kiln_runner_ref: (skip)
 * @runner: a runner
 *
 * One owner more.
 *
 * Returns: @runner
 */
KilnRunner *
kiln_runner_ref(KilnRunner *runner)
{
    g_ref_count_inc(&runner->owners);
    return runner;
}

/**
 * kiln_runner_unref: (skip)
 * @runner: a runner
 *
 * One owner less; the last one frees it.
 */
void
kiln_runner_unref(KilnRunner *runner)
{
    if (!runner || !g_ref_count_dec(&runner->owners))
        return;
    kiln_session_free(runner->session);
    kiln_program_unref(runner->program);
    g_free(runner);
}

static gboolean
is_item(KilnDType dtype)
{
    return dtype == KILN_DTYPE_sequence || dtype == KILN_DTYPE_optional || dtype == KILN_DTYPE_map;
}

static gboolean
bind(KilnRunner *runner, unsigned i, KilnItem *item, GError **error)
{
    const KilnTensorInfo *input = kiln_program_input(runner->program, i);
    const KilnDType dtype = kiln_item_dtype(item);
    if (is_item(input->dtype))
        return kiln_session_bind_input_item(runner->session, i, item, error);
    if (dtype != input->dtype) {
        g_set_error(error, KILN_ERROR, KILN_ERROR_TYPE, "input %s: expected %s, found %s",
                    input->name, kiln_dtype_name(input->dtype), kiln_dtype_name(dtype));
        return FALSE;
    }
    int rank = 0;
    const int64_t *dims = kiln_item_dims(item, &rank);
    return kiln_session_bind_input_shaped(runner->session, i, kiln_item_data(item), rank, dims,
                                          error);
}

static KilnItem *
output(KilnRunner *runner, unsigned i, GError **error)
{
    if (is_item(kiln_program_output(runner->program, i)->dtype))
        return kiln_session_output_item(runner->session, i, error);
    KilnTensorInfo info = KILN_TENSOR_INFO_INIT;
    GError *failed = NULL;
    const void *data = kiln_session_output(runner->session, i, &info, &failed);
    if (failed) {
        g_propagate_error(error, failed);
        return NULL;
    }
    return kiln_item_new_tensor(info.dtype, info.rank, info.dims, data, error);
}

/**
 * kiln_runner_call:
 * @runner: a runner
 * @inputs: (element-type KilnItem) (transfer none): an item for each input
 * @error: a place for an error
 *
 * Runs the program. The results are copies.
 *
 * Returns: (element-type KilnItem) (transfer container): an item for each output
 */
GPtrArray *
kiln_runner_call(KilnRunner *runner, GPtrArray *inputs, GError **error)
{
    const unsigned n = kiln_program_n_inputs(runner->program);
    const guint found = inputs ? inputs->len : 0;
    if (found != n) {
        g_set_error(error, KILN_ERROR, KILN_ERROR_USAGE, "inputs: expected %u, found %u", n, found);
        return NULL;
    }
    /* Each call binds all inputs anew: those of the last one may be gone. */
    for (unsigned i = 0; i < n; i++) {
        if (!bind(runner, i, g_ptr_array_index(inputs, i), error))
            return NULL;
    }
    if (!kiln_session_run(runner->session, error))
        return NULL;
    g_autoptr(GPtrArray) results = g_ptr_array_new_with_free_func((GDestroyNotify)kiln_item_unref);
    for (unsigned i = 0; i < kiln_program_n_outputs(runner->program); i++) {
        KilnItem *item = output(runner, i, error);
        if (!item)
            return NULL;
        g_ptr_array_add(results, item);
    }
    return g_steal_pointer(&results);
}

/**
 * kiln_item_new_from_bytes:
 * @dtype: an element type, such as `f32`; strings and items have no bytes
 * @dims: (array length=n_dims) (nullable): the shape
 * @n_dims: how many dims there are
 * @bytes: the elements, row-major and dense, which are copied
 * @error: a place for an error
 *
 * Makes a tensor.
 *
 * Returns: (transfer full): the tensor
 */
KilnItem *
kiln_item_new_from_bytes(const char *dtype, const gint64 *dims, gsize n_dims, GBytes *bytes,
                         GError **error)
{
    int id = 0;
    while (id < KILN_N_DTYPES && strcmp(kiln_dtype_name((KilnDType)id), dtype) != 0)
        id++;
    if (id == KILN_N_DTYPES || id == KILN_DTYPE_string || is_item((KilnDType)id)) {
        g_set_error(error, KILN_ERROR, KILN_ERROR_USAGE,
                    "expected an element type of numbers, found '%s'", dtype);
        return NULL;
    }
    if (n_dims > 8) {
        g_set_error(error, KILN_ERROR, KILN_ERROR_LIMIT, "expected at most 8 dims, found %zu",
                    n_dims);
        return NULL;
    }
    gsize size = 0, expected = kiln_dtype_size((KilnDType)id);
    const void *data = g_bytes_get_data(bytes, &size);
    gboolean fits = TRUE;
    for (gsize i = 0; i < n_dims; i++)
        fits = fits && dims[i] >= 0 && g_size_checked_mul(&expected, expected, (gsize)dims[i]);
    if (!fits || expected != size) {
        g_set_error(error, KILN_ERROR, KILN_ERROR_SHAPE,
                    "the bytes do not fit the dims: expected %zu, found %zu", fits ? expected : 0,
                    size);
        return NULL;
    }
    return kiln_item_new_tensor((KilnDType)id, (int)n_dims, dims, data, error);
}

/**
 * kiln_item_new_from_items:
 * @items: (element-type KilnItem) (transfer none): tensors of one element type, or maps
 * @error: a place for an error
 *
 * Makes a sequence.
 *
 * Returns: (transfer full): the sequence
 */
KilnItem *
kiln_item_new_from_items(GPtrArray *items, GError **error)
{
    return kiln_item_new_sequence((KilnItem *const *)items->pdata, items->len, error);
}

/**
 * kiln_item_get_dtype:
 * @item: an item
 *
 * The element type of a tensor, or `sequence`, `optional` or `map`.
 *
 * Returns: its name
 */
const char *
kiln_item_get_dtype(const KilnItem *item)
{
    return kiln_dtype_name(kiln_item_dtype(item));
}

/**
 * kiln_item_get_dims:
 * @item: an item
 * @n_dims: (out): how many dims there are; 0 for an item that is no tensor
 *
 * The shape of a tensor.
 *
 * Returns: (transfer full) (array length=n_dims): the dims
 */
gint64 *
kiln_item_get_dims(const KilnItem *item, gsize *n_dims)
{
    int rank = 0;
    const int64_t *dims = kiln_item_dims(item, &rank);
    *n_dims = (gsize)rank;
    return g_memdup2(dims, (gsize)rank * sizeof *dims);
}

/**
 * kiln_item_get_bytes:
 * @item: an item
 *
 * The elements of a tensor of numbers. They keep the item. An item of another kind has none.
 *
 * Returns: (transfer full): the bytes
 */
GBytes *
kiln_item_get_bytes(KilnItem *item)
{
    if (kiln_item_dtype(item) == KILN_DTYPE_string || !kiln_item_data(item))
        return g_bytes_new(NULL, 0);
    return g_bytes_new_with_free_func(kiln_item_data(item), kiln_item_bytes(item),
                                      (GDestroyNotify)kiln_item_unref, kiln_item_ref(item));
}

/**
 * kiln_item_get_items:
 * @item: an item
 *
 * The items in a sequence, an optional or a map.
 *
 * Returns: (element-type KilnItem) (transfer container): the items
 */
GPtrArray *
kiln_item_get_items(const KilnItem *item)
{
    GPtrArray *items = g_ptr_array_new_with_free_func((GDestroyNotify)kiln_item_unref);
    for (gsize i = 0; i < kiln_item_length(item); i++)
        g_ptr_array_add(items, kiln_item_ref(kiln_item_get(item, i)));
    return items;
}
