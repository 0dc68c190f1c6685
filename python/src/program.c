/* SPDX-License-Identifier: Apache-2.0 */
/* The type Program: what a program is, files of it, and its sessions. */
#include "kiln.h"
#include "python/src/objects.h"
#include "python/src/state.h"
#include "runtime/kiln-shapes.h"

/* --- files --- */

static bool
load_into(KilnPyProgram *program, PyObject *source, const KilnLoadOptions *options)
{
    GError *error = NULL;
    GBytes *content = NULL;
    PyObject *text = NULL, *encoded = NULL, *bytes = NULL;
    bool of_bytes = PyObject_CheckBuffer(source);
    if (of_bytes) {
        bytes = kiln_py_content(source);
        content = bytes ? kiln_py_gbytes(bytes) : NULL;
    }
    if (of_bytes ? !content : !kiln_py_path(source, &text, &encoded)) {
        Py_XDECREF(bytes);
        return false;
    }
    const char *path = encoded ? PyBytes_AsString(encoded) : NULL;
    PyThreadState *thread = PyEval_SaveThread();
    program->program = content ? kiln_program_load_bytes(content, "(memory)", options, &error)
                               : kiln_program_load(path, options, &error);
    if (content)
        g_bytes_unref(content);
    PyEval_RestoreThread(thread);
    if (!program->program)
        kiln_py_raise(program->state, error);
    else if (bytes)
        program->origin = Py_BuildValue("(O)", bytes);
    else
        program->origin =
            Py_BuildValue("(N)", kiln_py_support(program->state, "absolute", "(O)", text));
    Py_XDECREF(bytes);
    Py_XDECREF(text);
    Py_XDECREF(encoded);
    return program->origin != NULL;
}

PyObject *
kiln_py_load_program(KilnPyState *state, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "source", "cache_dir", NULL };
    PyObject *source, *cache_dir = Py_None, *text = NULL, *encoded = NULL;
    KilnLoadOptions options = KILN_LOAD_OPTIONS_INIT;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$O:load_program", names, &source, &cache_dir))
        return NULL;
    if (cache_dir != Py_None && !kiln_py_path(cache_dir, &text, &encoded))
        return NULL;
    options.cache_dir = encoded ? PyBytes_AsString(encoded) : NULL;
    KilnPyProgram *program = kiln_py_new(state->program);
    if (program) {
        program->state = state;
        if (!load_into(program, source, &options))
            Py_CLEAR(program);
        else
            program->at_run = g_new0(bool, kiln_program_n_inputs(program->program) + 1);
    }
    Py_XDECREF(text);
    Py_XDECREF(encoded);
    return (PyObject *)program;
}

static PyObject *
program_save(PyObject *object, PyObject *path)
{
    KilnPyProgram *self = (KilnPyProgram *)object;
    PyObject *text, *encoded;
    if (!kiln_py_path(path, &text, &encoded))
        return NULL;
    const char *file = PyBytes_AsString(encoded);
    GError *error = NULL;
    PyThreadState *thread = PyEval_SaveThread();
    gboolean good = kiln_program_save(self->program, file, &error);
    PyEval_RestoreThread(thread);
    Py_DECREF(text);
    Py_DECREF(encoded);
    return good && !PyErr_Occurred() ? Py_NewRef(Py_None) : kiln_py_raise(self->state, error);
}

/* --- facts --- */

static PyObject *
list_infos(KilnPyProgram *self, unsigned n,
           const KilnTensorInfo *(*at)(const KilnProgram *program, unsigned i))
{
    PyObject *list = PyTuple_New((Py_ssize_t)n);
    for (unsigned i = 0; list && i < n; i++) {
        PyObject *info = kiln_py_info(self->state, at(self->program, i));
        if (!info || PyTuple_SetItem(list, (Py_ssize_t)i, info) < 0)
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *
program_inputs(PyObject *object, void *closure)
{
    (void)closure;
    KilnPyProgram *self = (KilnPyProgram *)object;
    return list_infos(self, kiln_program_n_inputs(self->program), kiln_program_input);
}

static PyObject *
program_outputs(PyObject *object, void *closure)
{
    (void)closure;
    KilnPyProgram *self = (KilnPyProgram *)object;
    return list_infos(self, kiln_program_n_outputs(self->program), kiln_program_output);
}

static PyObject *
program_metadata(PyObject *object, void *closure)
{
    (void)closure;
    KilnPyProgram *self = (KilnPyProgram *)object;
    return kiln_py_metadata(self->state, kiln_program_metadata(self->program));
}

static PyObject *
program_fold_runs(PyObject *object, void *closure)
{
    (void)closure;
    return PyLong_FromUnsignedLongLong(kiln_program_fold_runs(((KilnPyProgram *)object)->program));
}

static PyObject *
program_memory(PyObject *object, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "shapes", NULL };
    KilnPyProgram *self = (KilnPyProgram *)object;
    PyObject *map = NULL;
    g_autofree KilnShape *shapes = NULL;
    unsigned n;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:memory", names, &map) ||
        !kiln_py_read_shapes(self->state, map, &shapes, &n))
        return NULL;
    KilnMemoryReport report = KILN_MEMORY_REPORT_INIT;
    GError *error = NULL;
    PyThreadState *thread = PyEval_SaveThread();
    gboolean good = shapes ? kiln_program_memory_for(self->program, shapes, n, &report, &error)
                           : kiln_program_memory(self->program, &report, &error);
    PyEval_RestoreThread(thread);
    if (!good || PyErr_Occurred())
        return kiln_py_raise(self->state, error);
    return kiln_py_support(self->state, "MemoryReport", "(LLLLLNd)", (long long)report.sum,
                           (long long)report.lb_node, (long long)report.lb_live,
                           (long long)report.arena, (long long)report.weights,
                           PyBool_FromLong(report.proven_optimal), report.plan_ms);
}

static PyObject *
program_prepare(PyObject *object, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "shapes", NULL };
    KilnPyProgram *self = (KilnPyProgram *)object;
    PyObject *map = NULL;
    g_autofree KilnShape *shapes = NULL;
    unsigned n;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:prepare", names, &map) ||
        !kiln_py_read_shapes(self->state, map, &shapes, &n))
        return NULL;
    GError *error = NULL;
    PyThreadState *thread = PyEval_SaveThread();
    gboolean good = kiln_program_prepare(self->program, shapes, n, &error);
    PyEval_RestoreThread(thread);
    if (good && !PyErr_Occurred())
        Py_RETURN_NONE;
    return kiln_py_raise(self->state, error);
}

static PyObject *
program_session(PyObject *self, PyObject *args, PyObject *kwargs)
{
    return kiln_py_new_session((KilnPyProgram *)self, args, kwargs);
}

static PyObject *
program_map(PyObject *object, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "inputs", "threads", "outputs", NULL };
    PyObject *inputs, *threads = Py_None, *outputs = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$OO:map", names, &inputs, &threads, &outputs))
        return NULL;
    return kiln_py_support(((KilnPyProgram *)object)->state, "map_runs", "(OOOO)", object, inputs,
                           threads, outputs);
}

static PyObject *
program_reduce(PyObject *object, PyObject *protocol)
{
    KilnPyProgram *self = (KilnPyProgram *)object;
    return kiln_py_support(self->state, "reduced", "(sOO)", "restore_program", self->origin,
                           protocol);
}

/* --- life --- */

static int
program_traverse(PyObject *object, visitproc visit, void *arg)
{
    KilnPyProgram *self = (KilnPyProgram *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->origin);
    Py_VISIT(self->pipeline);
    Py_VISIT(self->callbacks.progress);
    Py_VISIT(self->callbacks.log);
    return 0;
}

/* The program itself goes with the object: what it calls back must live as long. */
static int
program_clear(PyObject *object)
{
    KilnPyProgram *self = (KilnPyProgram *)object;
    Py_CLEAR(self->origin);
    Py_CLEAR(self->callbacks.progress);
    return 0;
}

static void
program_dealloc(PyObject *object)
{
    KilnPyProgram *self = (KilnPyProgram *)object;
    PyObject_GC_UnTrack(object);
    kiln_program_unref(self->program);
    program_clear(object);
    Py_CLEAR(self->callbacks.log);
    Py_CLEAR(self->pipeline);
    g_free(self->at_run);
    kiln_py_delete(object);
}

static PyObject *
program_repr(PyObject *object)
{
    return kiln_py_support(((KilnPyProgram *)object)->state, "described", "(sO)", "Program",
                           object);
}

static PyGetSetDef program_getset[] = {
    { "inputs", program_inputs, NULL, "The inputs as a tuple of TensorInfo(name, dtype, shape).",
      NULL },
    { "outputs", program_outputs, NULL, "The outputs as a tuple of TensorInfo(name, dtype, shape).",
      NULL },
    { "metadata", program_metadata, NULL, "What the model's file says about itself.", NULL },
    { "fold_runs", program_fold_runs, NULL, "How often runs computed the folded constants.", NULL },
    { NULL, NULL, NULL, NULL, NULL },
};

static PyMethodDef program_methods[] = {
    { "session", (PyCFunction)(void (*)(void))program_session, METH_VARARGS | METH_KEYWORDS,
      "session($self, *, threads=0, profile=False, poison=False, time_limit=0, seed=None,\n"
      "        untrusted=False)\n--\n\n"
      "A new Session: the memory of runs. One thread at a time uses it.\n\n"
      "threads: at most those of compile(). time_limit: milliseconds of a run.\n"
      "seed: random operators without a seed draw the same numbers in every run." },
    { "map", (PyCFunction)(void (*)(void))program_map, METH_VARARGS | METH_KEYWORDS,
      "map($self, inputs, *, threads=None, outputs=None)\n--\n\n"
      "Runs each dict of an iterable, and yields the results in order. Several threads run, each\n"
      "with a session. At most twice as many inputs as threads are held at once." },
    { "prepare", (PyCFunction)(void (*)(void))program_prepare, METH_VARARGS | METH_KEYWORDS,
      "prepare($self, shapes=None)\n--\n\nDoes the work of the first run with these shapes." },
    { "memory", (PyCFunction)(void (*)(void))program_memory, METH_VARARGS | METH_KEYWORDS,
      "memory($self, shapes=None)\n--\n\nA MemoryReport of runs, in bytes." },
    { "save", program_save, METH_O,
      "save($self, path, /)\n--\n\nWrites a file that load_program() loads in milliseconds." },
    { "__reduce_ex__", program_reduce, METH_O, NULL },
    { NULL, NULL, 0, NULL },
};

static PyType_Slot slots[] = {
    { Py_tp_doc, "A compiled model. It is immutable, and threads may share it.\n\n"
                 "See Model.compile() and load_program()." },
    { Py_tp_new, kiln_py_no_constructor },
    { Py_tp_traverse, program_traverse },
    { Py_tp_clear, program_clear },
    { Py_tp_dealloc, program_dealloc },
    { Py_tp_repr, program_repr },
    { Py_tp_getset, program_getset },
    { Py_tp_methods, program_methods },
    { 0, NULL },
};

PyType_Spec kiln_py_program_spec = {
    .name = "kiln_nn._kiln.Program",
    .basicsize = sizeof(KilnPyProgram),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = slots,
};
