/* SPDX-License-Identifier: Apache-2.0 */
/* The module kiln_nn._kiln: its types and functions. kiln_nn/__init__.py names them for users. */
#include "graph/kiln-types.h"
#include "kiln.h"
#include "python/src/array.h"
#include "python/src/objects.h"
#include "python/src/passes.h"
#include "python/src/state.h"
#include "runtime/targets.h"

static PyObject *
load(PyObject *module, PyObject *args, PyObject *kwargs)
{
    return kiln_py_load(PyModule_GetState(module), args, kwargs);
}

static PyObject *
load_program(PyObject *module, PyObject *args, PyObject *kwargs)
{
    return kiln_py_load_program(PyModule_GetState(module), args, kwargs);
}

static PyObject *
load_plugin(PyObject *module, PyObject *path)
{
    return kiln_py_load_plugin(PyModule_GetState(module), path);
}

static PyObject *
build_info(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyUnicode_FromString(kiln_build_info());
}

static PyObject *
processors(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyLong_FromLong(kiln_processor_count());
}

static PyMethodDef functions[] = {
    { "load", (PyCFunction)(void (*)(void))load, METH_VARARGS | METH_KEYWORDS,
      "load($module, source, name=None, *, untrusted=False, total_limit=0, node_limit=0, "
      "time_limit=0,\n"
      "     accept_newer_opsets=False)\n--\n\n"
      "Loads an .onnx file or a .kiln text from a path, or from bytes. Returns a Model.\n\n"
      "Memory that is read-only, such as bytes or a mapped file, is used where it lies. Other "
      "memory\n"
      "is copied.\n"
      "name: stands for the path of bytes in messages; external data lie beside it.\n"
      "untrusted: sets limits for the model of a stranger. total_limit is in bytes, node_limit in\n"
      "nodes, time_limit in milliseconds." },
    { "load_program", (PyCFunction)(void (*)(void))load_program, METH_VARARGS | METH_KEYWORDS,
      "load_program($module, source, *, cache_dir=None)\n--\n\n"
      "Loads a compiled program from a path or from bytes. Returns a Program. Memory is used as by "
      "load().\n\n"
      "Load only programs of makers whose code you would run." },
    { "load_plugin", load_plugin, METH_O,
      "load_plugin($module, path, /)\n--\n\n"
      "Loads the operators of a shared object, for models that are loaded from now on.\n\n"
      "Pickles of models and programs name the file, and load it again. Passes of plug-ins belong\n"
      "to a pipeline: Pipeline.load_plugin()." },
    { "build_info", build_info, METH_NOARGS,
      "build_info($module)\n--\n\nCompiler, instruction set and libraries, for reports of bugs." },
    { "processors", processors, METH_NOARGS,
      "processors($module)\n--\n\nHow many processors this process may use: the limits of "
      "control groups count, too." },
    { NULL, NULL, 0, NULL },
};

static int
add_types(PyObject *module, KilnPyState *state)
{
    const struct {
        PyTypeObject **type;
        PyType_Spec *spec;
    } types[] = {
        { &state->model, &kiln_py_model_spec },     { &state->pipeline, &kiln_py_pipeline_spec },
        { &state->program, &kiln_py_program_spec }, { &state->session, &kiln_py_session_spec },
        { &state->tensor, &kiln_py_tensor_spec },   { &state->function, &kiln_py_function_spec },
        { &state->node, &kiln_py_node_spec },       { &state->value, &kiln_py_value_spec },
    };
    for (size_t i = 0; i < G_N_ELEMENTS(types); i++) {
        *types[i].type = kiln_py_add_type(module, types[i].spec);
        if (!*types[i].type)
            return -1;
    }
    return 0;
}

/* Exceptions are classes of kiln_nn._support, in the order of the codes. */
static int
find_errors(KilnPyState *state)
{
    static const char *const names[] = {
#define X(id, sentence) #id,
        KILN_ERROR_MAP(X)
#undef X
    };
    for (int code = 0; code < KILN_N_ERRORS; code++) {
        state->errors[code] = kiln_py_support(state, "error_class", "(s)", names[code]);
        if (!state->errors[code])
            return -1;
    }
    return 0;
}

static int
find_numpy(KilnPyState *state)
{
    PyObject *numpy = PyImport_ImportModule("numpy");
    state->asarray = numpy ? PyObject_GetAttrString(numpy, "asarray") : NULL;
    Py_XDECREF(numpy);
    return state->asarray ? 0 : -1;
}

static int
exec_module(PyObject *module)
{
    KilnPyState *state = PyModule_GetState(module);
    /* Callbacks find the interpreter by their thread, which tells of the main one alone. */
    if (PyInterpreterState_GetID(PyInterpreterState_Get()) != 0) {
        PyErr_SetString(PyExc_ImportError, "kiln_nn works in the main interpreter alone");
        return -1;
    }
    state->support = PyImport_ImportModule("kiln_nn._support");
    if (!state->support || find_errors(state) < 0 || find_numpy(state) < 0 ||
        add_types(module, state) < 0)
        return -1;
    PyObject *main_thread = kiln_py_support(state, "main_thread", "()");
    if (!main_thread)
        return -1;
    state->main_thread = PyLong_AsUnsignedLong(main_thread);
    Py_DECREF(main_thread);
    if (PyErr_Occurred())
        return -1;
    return PyModule_AddStringConstant(module, "version", kiln_version());
}

static int
traverse(PyObject *module, visitproc visit, void *arg)
{
    KilnPyState *state = PyModule_GetState(module);
    PyTypeObject *types[] = { state->model,  state->pipeline, state->program, state->session,
                              state->tensor, state->function, state->node,    state->value };
    for (size_t i = 0; i < G_N_ELEMENTS(types); i++)
        Py_VISIT(types[i]);
    for (int code = 0; code < KILN_N_ERRORS; code++)
        Py_VISIT(state->errors[code]);
    Py_VISIT(state->support);
    Py_VISIT(state->asarray);
    return 0;
}

static int
clear(PyObject *module)
{
    KilnPyState *state = PyModule_GetState(module);
    PyTypeObject **types[] = { &state->model,  &state->pipeline, &state->program, &state->session,
                               &state->tensor, &state->function, &state->node,    &state->value };
    for (size_t i = 0; i < G_N_ELEMENTS(types); i++)
        Py_CLEAR(*types[i]);
    for (int code = 0; code < KILN_N_ERRORS; code++)
        Py_CLEAR(state->errors[code]);
    Py_CLEAR(state->support);
    Py_CLEAR(state->asarray);
    return 0;
}

static void
free_module(void *module)
{
    clear(module);
}

static PyModuleDef_Slot slots[] = {
    { Py_mod_exec, exec_module },
    { 0, NULL },
};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "kiln_nn._kiln",
    .m_doc = "Kiln in C. Import kiln_nn instead.",
    .m_size = sizeof(KilnPyState),
    .m_methods = functions,
    .m_slots = slots,
    .m_traverse = traverse,
    .m_clear = clear,
    .m_free = free_module,
};

PyMODINIT_FUNC PyInit__kiln(void);

PyMODINIT_FUNC
PyInit__kiln(void)
{
    return PyModuleDef_Init(&definition);
}
