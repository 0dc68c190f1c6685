/* SPDX-License-Identifier: Apache-2.0 */
/* The type Model: loading, and what a model says of itself. */
#include "kiln.h"
#include "python/src/objects.h"
#include "python/src/state.h"
#include "runtime/kiln-limits.h"

/* --- loading --- */

static PyObject *
new_model(KilnPyState *state, KilnModel *model, PyObject *origin)
{
    KilnPyModel *self = kiln_py_new(state->model);
    if (!self) {
        kiln_model_unref(model);
        return NULL;
    }
    self->state = state;
    self->model = model;
    self->origin = Py_NewRef(origin);
    return (PyObject *)self;
}

static KilnModel *
load_path(KilnPyState *state, const char *path, const KilnModelOptions *options)
{
    GError *error = NULL;
    PyThreadState *thread = PyEval_SaveThread();
    KilnModel *model = kiln_model_load_with(path, options, &error);
    PyEval_RestoreThread(thread);
    return model ? model : kiln_py_raise(state, error);
}

static KilnModel *
load_bytes(KilnPyState *state, PyObject *bytes, const char *name, const KilnModelOptions *options)
{
    GError *error = NULL;
    GBytes *content = kiln_py_gbytes(bytes);
    if (!content)
        return NULL;
    PyThreadState *thread = PyEval_SaveThread();
    KilnModel *model = kiln_model_load_bytes_with(content, name, options, &error);
    g_bytes_unref(content);
    PyEval_RestoreThread(thread);
    return model ? model : kiln_py_raise(state, error);
}

static PyObject *
load_from(KilnPyState *state, PyObject *source, PyObject *name, const KilnModelOptions *options,
          PyObject *rest)
{
    PyObject *origin = NULL, *encoded = NULL, *text = NULL;
    KilnModel *model = NULL;
    if (PyObject_CheckBuffer(source)) {
        PyObject *bytes = kiln_py_content(source);
        const char *file = NULL;
        bool named = name == Py_None || kiln_py_path(name, &text, &encoded);
        if (encoded)
            file = PyBytes_AsString(encoded);
        if (bytes && named)
            model = load_bytes(state, bytes, file, options);
        if (model)
            origin = Py_BuildValue("(OOO)", bytes, name, rest);
        Py_XDECREF(bytes);
    } else if (kiln_py_path(source, &text, &encoded)) {
        model = load_path(state, PyBytes_AsString(encoded), options);
        if (model)
            origin = Py_BuildValue("(NOO)", kiln_py_support(state, "absolute", "(O)", text),
                                   Py_None, rest);
    }
    Py_XDECREF(encoded);
    Py_XDECREF(text);
    if (model && !origin)
        kiln_model_unref(model);
    PyObject *self = origin ? new_model(state, model, origin) : NULL;
    Py_XDECREF(origin);
    return self;
}

PyObject *
kiln_py_load(KilnPyState *state, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "source",     "name",       "untrusted",           "total_limit",
                             "node_limit", "time_limit", "accept_newer_opsets", NULL };
    KilnModelOptions options = KILN_MODEL_OPTIONS_INIT;
    PyObject *source, *name = Py_None;
    int untrusted = 0, newer = 0;
    long long bytes = 0, nodes = 0, ms = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O$pLLLp:load", names, &source, &name,
                                     &untrusted, &bytes, &nodes, &ms, &newer))
        return NULL;
    if (untrusted)
        kiln_model_options_untrusted(&options);
    if (bytes)
        options.total_limit = bytes;
    if (nodes)
        options.node_limit = nodes;
    if (ms)
        options.time_limit = ms;
    options.accept_newer_opsets = newer;
    PyObject *rest =
        Py_BuildValue("{sisLsLsLsi}", "untrusted", untrusted, "total_limit", bytes, "node_limit",
                      nodes, "time_limit", ms, "accept_newer_opsets", newer);
    PyObject *model = rest ? load_from(state, source, name, &options, rest) : NULL;
    Py_XDECREF(rest);
    return model;
}

/* --- Python --- */

static void
model_dealloc(PyObject *object)
{
    KilnPyModel *self = (KilnPyModel *)object;
    kiln_model_unref(self->model);
    Py_XDECREF(self->origin);
    kiln_py_delete(object);
}

static PyObject *
list_infos(KilnPyModel *self, unsigned n,
           const KilnTensorInfo *(*at)(const KilnModel *model, unsigned i))
{
    PyObject *list = PyTuple_New((Py_ssize_t)n);
    for (unsigned i = 0; list && i < n; i++) {
        PyObject *info = kiln_py_info(self->state, at(self->model, i));
        if (!info || PyTuple_SetItem(list, (Py_ssize_t)i, info) < 0)
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *
model_inputs(PyObject *object, void *closure)
{
    (void)closure;
    KilnPyModel *self = (KilnPyModel *)object;
    return list_infos(self, kiln_model_n_inputs(self->model), kiln_model_input);
}

static PyObject *
model_outputs(PyObject *object, void *closure)
{
    (void)closure;
    KilnPyModel *self = (KilnPyModel *)object;
    return list_infos(self, kiln_model_n_outputs(self->model), kiln_model_output);
}

static PyObject *
model_metadata(PyObject *object, void *closure)
{
    (void)closure;
    KilnPyModel *self = (KilnPyModel *)object;
    return kiln_py_metadata(self->state, kiln_model_metadata(self->model));
}

static PyObject *
model_notes(PyObject *object, void *closure)
{
    (void)closure;
    PyObject *notes = PyList_New(0);
    const char *const *line = kiln_model_notes(((KilnPyModel *)object)->model);
    for (; notes && *line; line++) {
        PyObject *text = PyUnicode_FromString(*line);
        if (!text || PyList_Append(notes, text) < 0)
            Py_CLEAR(notes);
        Py_XDECREF(text);
    }
    return notes;
}

static PyObject *
list_unsupported(KilnPyState *state, KilnUnsupported *const *found, unsigned n)
{
    PyObject *list = PyList_New(0);
    for (unsigned i = 0; list && i < n; i++) {
        const KilnUnsupported *one = found[i];
        PyObject *row = kiln_py_support(state, "Unsupported", "(sisss)", one->op, one->opset,
                                        one->dtype, one->node, one->reason);
        if (!row || PyList_Append(list, row) < 0)
            Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}

static PyObject *
model_check(PyObject *object, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "target", NULL };
    KilnPyModel *self = (KilnPyModel *)object;
    const char *target = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|z:check", names, &target))
        return NULL;
    GError *error = NULL;
    unsigned n = 0;
    KilnUnsupported **found = kiln_model_check(self->model, target, &n, &error);
    if (!found)
        return kiln_py_raise(self->state, error);
    PyObject *list = list_unsupported(self->state, found, n);
    g_free(found);
    return list;
}

static PyObject *
model_compile(PyObject *self, PyObject *args, PyObject *kwargs)
{
    return kiln_py_compile((KilnPyModel *)self, args, kwargs);
}

static PyObject *
model_reduce(PyObject *object, PyObject *protocol)
{
    KilnPyModel *self = (KilnPyModel *)object;
    return kiln_py_support(self->state, "reduced", "(sOO)", "restore_model", self->origin,
                           protocol);
}

static PyObject *
model_repr(PyObject *object)
{
    return kiln_py_support(((KilnPyModel *)object)->state, "described", "(sO)", "Model", object);
}

static PyGetSetDef model_getset[] = {
    { "inputs", model_inputs, NULL, "The inputs as a tuple of TensorInfo(name, dtype, shape).",
      NULL },
    { "outputs", model_outputs, NULL, "The outputs as a tuple of TensorInfo(name, dtype, shape).",
      NULL },
    { "metadata", model_metadata, NULL, "What the model's file says about itself.", NULL },
    { "notes", model_notes, NULL, "Repairs by the importer, a line each.", NULL },
    { NULL, NULL, NULL, NULL, NULL },
};

static PyMethodDef model_methods[] = {
    { "compile", (PyCFunction)(void (*)(void))model_compile, METH_VARARGS | METH_KEYWORDS,
      "compile($self, *, pipeline=None, target=None, threads=0, shapes=None, ranges=None,\n"
      "        constants=None, prefer_memory=False, train=False, verify=True, offload=True,\n"
      "        memory_limit=0, total_limit=0, node_limit=0, time_limit=0, untrusted=False,\n"
      "        cache_dir=None, progress=None, log=None)\n--\n\n"
      "Optimizes the model, and plans and binds it. Returns a Program.\n\n"
      "pipeline: 'default', 'none', a file, or a Pipeline.\n"
      "target: 'cpu' or 'ref'.\n"
      "threads: the most threads of a run; 0: one for each processor.\n"
      "shapes: {input: dims}. None or -1 leaves a dim open.\n"
      "ranges: {name of an open dim: (least, most) or a dict with least, most, multiple, hint}.\n"
      "constants: {input: array}, inputs that are the same at every run. None instead of an "
      "array:\n"
      "    the first run brings it.\n"
      "progress: called with (fraction, step); False cancels.\n"
      "log: called with each line of the log." },
    { "check", (PyCFunction)(void (*)(void))model_check, METH_VARARGS | METH_KEYWORDS,
      "check($self, target=None)\n--\n\nWhat the target lacks for this model: a list of "
      "Unsupported." },
    { "__reduce_ex__", model_reduce, METH_O, NULL },
    { NULL, NULL, 0, NULL },
};

static PyType_Slot slots[] = {
    { Py_tp_doc, "A loaded model. It is immutable, and threads may share it. See load()." },
    { Py_tp_new, kiln_py_no_constructor },
    { Py_tp_dealloc, model_dealloc },
    { Py_tp_repr, model_repr },
    { Py_tp_getset, model_getset },
    { Py_tp_methods, model_methods },
    { 0, NULL },
};

PyType_Spec kiln_py_model_spec = {
    .name = "kiln_nn._kiln.Model",
    .basicsize = sizeof(KilnPyModel),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};
