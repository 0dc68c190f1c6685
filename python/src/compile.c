/* SPDX-License-Identifier: Apache-2.0 */
/* Model.compile(): keyword arguments become KilnCompileOptions. Texts and memory that the options
 * point to belong to objects in the arguments, or to the struct Compile. */
#include "graph/kiln-types.h"
#include "kiln.h"
#include "python/src/array.h"
#include "python/src/objects.h"
#include "python/src/state.h"
#include "runtime/kiln-constants.h"
#include "runtime/kiln-shapes.h"

#include <string.h>

typedef struct {
    KilnCompileOptions options;
    KilnShape *shapes;
    KilnDimRange *ranges;
    KilnConstantInput *constants;
    PyObject *pipeline, *shape_map, *range_map, *constant_map, *cache_dir, *progress, *log;
    PyObject *cache_text, *cache_bytes; /* of cache_dir */
    PyObject *pipeline_object;
    int prefer_memory, train, verify, offload, untrusted;
    long long memory_limit, total_limit, node_limit, time_limit;
} Compile;

static void
clear(Compile *compile)
{
    for (unsigned i = 0; compile->constants && i < compile->options.n_constants; i++) {
        if (compile->constants[i].value)
            g_bytes_unref(compile->constants[i].value);
    }
    g_free(compile->shapes);
    g_free(compile->ranges);
    g_free(compile->constants);
    if (compile->options.pipeline)
        kiln_pipeline_unref(compile->options.pipeline);
    Py_XDECREF(compile->pipeline_object);
    Py_XDECREF(compile->cache_text);
    Py_XDECREF(compile->cache_bytes);
}

/* --- dicts --- */

/* @map as a dict of str keys in *@out_n entries; false where it is another object. */
static bool
check_map(KilnPyState *state, PyObject *map, const char *what, unsigned *out_n)
{
    PyObject *key, *value;
    Py_ssize_t at = 0;
    bool good = PyDict_Check(map);
    while (good && PyDict_Next(map, &at, &key, &value))
        good = PyUnicode_Check(key) && PyUnicode_AsUTF8AndSize(key, NULL);
    if (!good) {
        PyErr_Clear();
        kiln_py_throw(state, KILN_ERROR_USAGE, "%s: expected a dict with names as keys, found %s",
                      what, PyDict_Check(map) ? "another key" : "another object");
        return false;
    }
    *out_n = (unsigned)PyDict_Size(map);
    return true;
}

static bool
read_dim(KilnPyState *state, PyObject *dim, const char *input, int64_t *out)
{
    if (dim == Py_None || PyUnicode_Check(dim)) { /* open still, as the model says */
        *out = -1;
        return true;
    }
    *out = PyLong_AsLongLong(dim);
    if (*out != -1 || !PyErr_Occurred())
        return true;
    PyErr_Clear();
    kiln_py_throw(state, KILN_ERROR_USAGE, "shapes: %s: expected a number or None, found %s", input,
                  "another object");
    return false;
}

static bool
read_shape(KilnPyState *state, PyObject *name, PyObject *dims, KilnShape *out)
{
    PyObject *list = PySequence_List(dims);
    if (!list)
        return false;
    Py_ssize_t rank = PyList_Size(list);
    out->input = PyUnicode_AsUTF8AndSize(name, NULL);
    out->rank = (int)rank;
    bool good = rank <= KILN_PY_RANK;
    if (!good)
        kiln_py_throw(state, KILN_ERROR_SHAPE, "shapes: %s: expected rank 0 to %d, found %zd",
                      out->input, KILN_PY_RANK, rank);
    for (Py_ssize_t d = 0; good && d < rank; d++)
        good = read_dim(state, PyList_GetItem(list, d), out->input, &out->dims[d]);
    Py_DECREF(list);
    return good;
}

bool
kiln_py_read_shapes(KilnPyState *state, PyObject *map, KilnShape **out, unsigned *out_n)
{
    PyObject *name, *dims;
    Py_ssize_t at = 0;
    *out_n = 0;
    if (!map || map == Py_None)
        return true;
    if (!check_map(state, map, "shapes", out_n))
        return false;
    *out = g_new0(KilnShape, *out_n + 1);
    for (unsigned i = 0; PyDict_Next(map, &at, &name, &dims); i++) {
        if (!read_shape(state, name, dims, &(*out)[i]))
            return false;
    }
    return true;
}

static bool
read_ranges(KilnPyState *state, Compile *compile)
{
    PyObject *name, *range;
    Py_ssize_t at = 0;
    if (!compile->range_map || compile->range_map == Py_None)
        return true;
    if (!check_map(state, compile->range_map, "ranges", &compile->options.n_ranges))
        return false;
    compile->ranges = g_new0(KilnDimRange, compile->options.n_ranges + 1);
    compile->options.ranges = compile->ranges;
    for (unsigned i = 0; PyDict_Next(compile->range_map, &at, &name, &range); i++) {
        long long least, most, multiple, hint;
        PyObject *row = kiln_py_support(state, "range_row", "(O)", range);
        bool good = row && PyArg_ParseTuple(row, "LLLL", &least, &most, &multiple, &hint);
        Py_XDECREF(row);
        if (!good)
            return false;
        compile->ranges[i] =
            (KilnDimRange){ PyUnicode_AsUTF8AndSize(name, NULL), least, most, multiple, hint };
    }
    return true;
}

/* --- constants --- */

static const KilnTensorInfo *
input_named(const KilnModel *model, const char *name)
{
    for (unsigned i = 0; i < kiln_model_n_inputs(model); i++) {
        if (!strcmp(kiln_model_input(model, i)->name, name))
            return kiln_model_input(model, i);
    }
    return NULL;
}

/* The bytes of @value, which must have the element type of the input. */
static GBytes *
constant_bytes(KilnPyModel *model, const char *name, PyObject *value)
{
    KilnPyArray array;
    if (!kiln_py_array_take(model->state, value, name, false, &array))
        return NULL;
    const KilnTensorInfo *info = input_named(model->model, name);
    GBytes *bytes = NULL;
    if (info && info->dtype != array.dtype)
        kiln_py_throw(model->state, KILN_ERROR_TYPE, "constants: %s: expected %s, found %s", name,
                      kiln_dtype_name(info->dtype), kiln_dtype_name(array.dtype));
    else {
        PyObject *copy = PyBytes_FromStringAndSize(array.data, array.bytes);
        bytes = copy ? kiln_py_gbytes(copy) : NULL;
        Py_XDECREF(copy);
    }
    kiln_py_array_release(&array);
    return bytes;
}

static bool
read_constants(KilnPyModel *model, Compile *compile)
{
    PyObject *name, *value;
    Py_ssize_t at = 0;
    if (!compile->constant_map || compile->constant_map == Py_None)
        return true;
    if (!check_map(model->state, compile->constant_map, "constants", &compile->options.n_constants))
        return false;
    compile->constants = g_new0(KilnConstantInput, compile->options.n_constants + 1);
    compile->options.constants = compile->constants;
    for (unsigned i = 0; PyDict_Next(compile->constant_map, &at, &name, &value); i++) {
        KilnConstantInput *constant = &compile->constants[i];
        constant->input = PyUnicode_AsUTF8AndSize(name, NULL);
        constant->when = value == Py_None ? KILN_CONSTANT_RUN : KILN_CONSTANT_COMPILE;
        if (value == Py_None)
            continue;
        constant->value = constant_bytes(model, constant->input, value);
        if (!constant->value)
            return false;
    }
    return true;
}

/* --- all options --- */

static bool
parse(Compile *compile, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {
        "pipeline",     "target",        "threads",    "shapes",     "ranges",
        "constants",    "prefer_memory", "train",      "verify",     "offload",
        "memory_limit", "total_limit",   "node_limit", "time_limit", "untrusted",
        "cache_dir",    "progress",      "log",        NULL
    };
    compile->verify = compile->offload = 1;
    return PyArg_ParseTupleAndKeywords(
        args, kwargs, "|$OziOOOppppLLLLpOOO:compile", names, &compile->pipeline,
        &compile->options.target, &compile->options.threads, &compile->shape_map,
        &compile->range_map, &compile->constant_map, &compile->prefer_memory, &compile->train,
        &compile->verify, &compile->offload, &compile->memory_limit, &compile->total_limit,
        &compile->node_limit, &compile->time_limit, &compile->untrusted, &compile->cache_dir,
        &compile->progress, &compile->log);
}

static void
set_plain_options(Compile *compile)
{
    KilnCompileOptions *options = &compile->options;
    if (compile->untrusted)
        kiln_compile_options_untrusted(options);
    options->prefer_memory = compile->prefer_memory;
    options->train = compile->train;
    options->no_verify = !compile->verify;
    options->no_offload = !compile->offload;
    options->memory_limit = compile->memory_limit;
    if (compile->total_limit)
        options->total_limit = compile->total_limit;
    if (compile->node_limit)
        options->node_limit = compile->node_limit;
    if (compile->time_limit)
        options->time_limit = compile->time_limit;
}

static bool
read_options(KilnPyModel *model, Compile *compile, PyObject *args, PyObject *kwargs)
{
    KilnPyState *state = model->state;
    if (!parse(compile, args, kwargs))
        return false;
    set_plain_options(compile);
    if (compile->pipeline && compile->pipeline != Py_None) {
        compile->options.pipeline =
            kiln_py_pipeline_of(state, compile->pipeline, &compile->pipeline_object);
        if (!compile->options.pipeline)
            return false;
    }
    if (compile->cache_dir && compile->cache_dir != Py_None) {
        if (!kiln_py_path(compile->cache_dir, &compile->cache_text, &compile->cache_bytes))
            return false;
        compile->options.cache_dir = PyBytes_AsString(compile->cache_bytes);
    }
    if (!kiln_py_read_shapes(state, compile->shape_map, &compile->shapes,
                             &compile->options.n_shapes))
        return false;
    compile->options.shapes = compile->shapes;
    return read_ranges(state, compile) && read_constants(model, compile);
}

/* --- compiling --- */

static void
set_callbacks(KilnPyProgram *program, Compile *compile)
{
    if (compile->progress && compile->progress != Py_None)
        program->callbacks.progress = Py_NewRef(compile->progress);
    if (compile->log && compile->log != Py_None) {
        program->callbacks.log = Py_NewRef(compile->log);
        compile->options.log = kiln_py_log;
    }
    compile->options.progress = kiln_py_progress;
    compile->options.data = program;
}

static void
mark_constants(KilnPyProgram *program, const Compile *compile)
{
    program->at_run = g_new0(bool, kiln_program_n_inputs(program->program) + 1);
    for (unsigned i = 0; i < compile->options.n_constants; i++) {
        const KilnConstantInput *constant = &compile->constants[i];
        int input = kiln_program_find_input(program->program, constant->input);
        if (input >= 0)
            program->at_run[input] = constant->when == KILN_CONSTANT_RUN;
    }
}

static bool
compile_into(KilnPyProgram *program, KilnPyModel *model, Compile *compile, PyObject *kwargs)
{
    GError *error = NULL;
    set_callbacks(program, compile);
    PyThreadState *thread = PyEval_SaveThread();
    program->program = kiln_program_compile(model->model, &compile->options, &error);
    PyEval_RestoreThread(thread);
    if (!program->program || PyErr_Occurred()) /* log may have raised */
        return kiln_py_raise(model->state, error) != NULL;
    program->pipeline = Py_XNewRef(compile->pipeline_object);
    program->origin =
        kiln_py_support(model->state, "compile_origin", "(OO)", model, kwargs ? kwargs : Py_None);
    mark_constants(program, compile);
    return program->origin != NULL;
}

PyObject *
kiln_py_compile(KilnPyModel *model, PyObject *args, PyObject *kwargs)
{
    Compile compile = { .options = KILN_COMPILE_OPTIONS_INIT };
    KilnPyProgram *program = kiln_py_new(model->state->program);
    if (!program)
        return NULL;
    program->state = model->state;
    if (!read_options(model, &compile, args, kwargs) ||
        !compile_into(program, model, &compile, kwargs))
        Py_CLEAR(program);
    clear(&compile);
    return (PyObject *)program;
}
