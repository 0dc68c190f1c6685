/* SPDX-License-Identifier: Apache-2.0 */
/* The type Pipeline: shipped ones, files, and lists of passes, which may be Python functions. It
 * keeps the list of the calls that made it, because a pickle holds those. */
#include "kiln.h"
#include "python/src/objects.h"
#include "python/src/passes.h"
#include "python/src/state.h"

#include <string.h>

static KilnPyPipeline *
new_object(KilnPyState *state, PyTypeObject *type)
{
    KilnPyPipeline *self = kiln_py_new(type);
    if (!self)
        return NULL;
    self->state = state;
    self->steps = PyList_New(0);
    self->passes = PyList_New(0);
    if (!self->steps || !self->passes)
        Py_CLEAR(self);
    return self;
}

/* Notes that @method was called with @argument. */
static bool
note(KilnPyPipeline *self, const char *method, PyObject *argument)
{
    PyObject *step = Py_BuildValue("(sO)", method, argument);
    bool good = step && PyList_Append(self->steps, step) == 0;
    Py_XDECREF(step);
    return good;
}

/* Notes that @method was called with @argument, whose reference it takes. NULL: it failed. */
static bool
note_own(KilnPyPipeline *self, const char *method, PyObject *argument)
{
    bool good = argument && note(self, method, argument);
    Py_XDECREF(argument);
    return good;
}

static KilnPipeline *
open_name(const char *name, GError **error)
{
    if (strpbrk(name, ",{"))
        return kiln_pipeline_parse(name, error);
    KilnPipeline *pipeline = kiln_pipeline_load(name, error);
    if (!pipeline && !strpbrk(name, "./")) /* no file: it may be one pass */
        pipeline = kiln_pipeline_parse(name, NULL);
    if (pipeline)
        g_clear_error(error);
    return pipeline;
}

/* Pipeline(source=None): None: empty; else a name, a path, or passes inline. */
static bool
open_source(KilnPyPipeline *self, PyObject *source)
{
    GError *error = NULL;
    if (source == Py_None) {
        self->pipeline = kiln_pipeline_new();
        return true;
    }
    PyObject *text, *encoded;
    if (!kiln_py_path(source, &text, &encoded))
        return false;
    const char *name = PyBytes_AsString(encoded);
    self->pipeline = open_name(name, &error);
    if (!self->pipeline)
        kiln_py_raise(self->state, error);
    bool good =
        self->pipeline &&
        note_own(self, "open", kiln_py_support(self->state, "absolute_pipeline", "(O)", text));
    Py_DECREF(text);
    Py_DECREF(encoded);
    return good;
}

static PyObject *
pipeline_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "source", NULL };
    PyObject *source = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:Pipeline", names, &source))
        return NULL;
    KilnPyPipeline *self = new_object(PyType_GetModuleState(type), type);
    if (self && !open_source(self, source))
        Py_CLEAR(self);
    return (PyObject *)self;
}

KilnPipeline *
kiln_py_pipeline_of(KilnPyState *state, PyObject *object, PyObject **out_object)
{
    PyObject *pipeline =
        Py_TYPE(object) == state->pipeline
            ? Py_NewRef(object)
            : PyObject_CallFunctionObjArgs((PyObject *)state->pipeline, object, NULL);
    *out_object = pipeline;
    return pipeline ? kiln_pipeline_ref(((KilnPyPipeline *)pipeline)->pipeline) : NULL;
}

/* --- Python --- */

static PyObject *
pipeline_add(PyObject *object, PyObject *argument)
{
    KilnPyPipeline *self = (KilnPyPipeline *)object;
    GError *error = NULL;
    const char *text = PyUnicode_AsUTF8AndSize(argument, NULL);
    if (!text)
        return NULL;
    if (!kiln_pipeline_add(self->pipeline, text, &error))
        return kiln_py_raise(self->state, error);
    return note(self, "add", argument) ? Py_NewRef(object) : NULL;
}

static PyObject *
pipeline_load_plugin(PyObject *object, PyObject *argument)
{
    KilnPyPipeline *self = (KilnPyPipeline *)object;
    PyObject *text, *encoded;
    GError *error = NULL;
    if (!kiln_py_path(argument, &text, &encoded))
        return NULL;
    gboolean good = kiln_pipeline_load_plugin(self->pipeline, PyBytes_AsString(encoded), &error);
    if (!good)
        kiln_py_raise(self->state, error);
    good = good &&
           note_own(self, "load_plugin", kiln_py_support(self->state, "absolute", "(O)", text));
    Py_DECREF(text);
    Py_DECREF(encoded);
    return good ? Py_NewRef(object) : NULL;
}

static PyObject *
pipeline_register(PyObject *object, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "function", "id", "summary", NULL };
    KilnPyPipeline *self = (KilnPyPipeline *)object;
    PyObject *function;
    const char *id, *summary = "a pass in Python";
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "Os|s:register", names, &function, &id,
                                     &summary))
        return NULL;
    PyObject *pass = kiln_py_pass_new(self->state, function, id, summary);
    GError *error = NULL;
    bool good = pass && PyList_Append(self->passes, pass) == 0;
    if (good && !kiln_pipeline_register_passes(self->pipeline, kiln_py_pass_table(pass), &error))
        good = kiln_py_raise(self->state, error) != NULL;
    Py_XDECREF(pass);
    good = good && note_own(self, "register", Py_BuildValue("(Oss)", function, id, summary));
    return good ? Py_NewRef(object) : NULL;
}

static PyObject *
pipeline_str(PyObject *object)
{
    g_autofree char *text = kiln_pipeline_to_string(((KilnPyPipeline *)object)->pipeline);
    return PyUnicode_FromString(text);
}

static PyObject *
pipeline_reduce(PyObject *object, PyObject *unused)
{
    (void)unused;
    KilnPyPipeline *self = (KilnPyPipeline *)object;
    return Py_BuildValue("(N(O))", PyObject_GetAttrString(self->state->support, "restore_pipeline"),
                         self->steps);
}

static int
pipeline_traverse(PyObject *object, visitproc visit, void *arg)
{
    KilnPyPipeline *self = (KilnPyPipeline *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->steps);
    Py_VISIT(self->passes);
    return 0;
}

static void
pipeline_dealloc(PyObject *object)
{
    KilnPyPipeline *self = (KilnPyPipeline *)object;
    PyObject_GC_UnTrack(object);
    if (self->pipeline)
        kiln_pipeline_unref(self->pipeline);
    Py_XDECREF(self->steps);
    Py_XDECREF(self->passes); /* after the pipeline, which points to their rows */
    kiln_py_delete(object);
}

static PyMethodDef pipeline_methods[] = {
    { "add", pipeline_add, METH_O,
      "add($self, passes, /)\n--\n\nAppends 'id' or 'id{option=value}', or several separated by "
      "commas." },
    { "register", (PyCFunction)(void (*)(void))pipeline_register, METH_VARARGS | METH_KEYWORDS,
      "register($self, function, id, summary='a pass in Python')\n--\n\n"
      "Makes a Python function a graph pass of that id, for add(). It is called with a\n"
      "passes.Function, which it may change." },
    { "load_plugin", pipeline_load_plugin, METH_O,
      "load_plugin($self, path, /)\n--\n\nLoads passes from a shared object." },
    { "__reduce__", pipeline_reduce, METH_NOARGS, NULL },
    { NULL, NULL, 0, NULL },
};

static PyType_Slot slots[] = {
    { Py_tp_doc, "Pipeline(source=None)\n--\n\n"
                 "The passes that compiling runs.\n\n"
                 "source: 'default' or another shipped pipeline, a file, or passes such as\n"
                 "'dce' or 'dce,cse'. None: an empty pipeline, for add(). str() of it is YAML." },
    { Py_tp_new, pipeline_new },
    { Py_tp_str, pipeline_str },
    { Py_tp_traverse, pipeline_traverse },
    { Py_tp_dealloc, pipeline_dealloc },
    { Py_tp_methods, pipeline_methods },
    { 0, NULL },
};

PyType_Spec kiln_py_pipeline_spec = {
    .name = "kiln_nn._kiln.Pipeline",
    .basicsize = sizeof(KilnPyPipeline),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = slots,
};
