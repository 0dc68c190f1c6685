/* SPDX-License-Identifier: Apache-2.0 */
/* Passes that are Python functions, and the type Function that they are called with. */
#include "python/src/passes.h"

#include "graph/text/text.h"
#include "python/src/array.h"

/* --- the row --- */

/* The row comes first: kiln_pass_running() finds the rest beside it. */
typedef struct {
    KilnPassInfo row;
    KilnPassPlugin table;
    KilnPyState *state;
    PyObject *function;
    char *id, *summary;
} Pass;

static const char capsule_name[] = "kiln_nn.pass";

static void
free_pass(PyObject *capsule)
{
    Pass *pass = PyCapsule_GetPointer(capsule, capsule_name);
    Py_XDECREF(pass->function);
    g_free(pass->id);
    g_free(pass->summary);
    g_free(pass);
}

static bool
call(const Pass *pass, KilnFunction *function, KilnPassContext *context)
{
    KilnPyFunction *object = kiln_py_new(pass->state->function);
    if (!object)
        return false;
    object->state = pass->state;
    object->function = function;
    object->context = context;
    PyObject *result = PyObject_CallFunctionObjArgs(pass->function, (PyObject *)object, NULL);
    object->function = NULL;
    object->context = NULL;
    Py_DECREF(object);
    Py_XDECREF(result);
    return result != NULL;
}

static gboolean
run(KilnFunction *function, KilnPassContext *context, bool *changed, GError **error)
{
    const Pass *pass = (const Pass *)kiln_pass_running(context);
    const uint64_t before = function->stamp;
    PyGILState_STATE held = PyGILState_Ensure();
    bool good = !PyErr_Occurred() && call(pass, function, context);
    PyGILState_Release(held);
    *changed = function->stamp != before;
    return good || kiln_throw(error, KILN_ERROR_PASS, "%s: its Python function raised", pass->id);
}

PyObject *
kiln_py_pass_new(KilnPyState *state, PyObject *function, const char *id, const char *summary)
{
    if (!PyCallable_Check(function)) {
        PyErr_SetString(PyExc_TypeError, "register() expects a callable");
        return NULL;
    }
    Pass *pass = g_new0(Pass, 1);
    pass->state = state;
    pass->function = Py_NewRef(function);
    pass->id = g_strdup(id);
    pass->summary = g_strdup(summary);
    pass->row = (KilnPassInfo){ .id = pass->id,
                                .level = KILN_LEVEL_GRAPH,
                                .numerics = KILN_NUMERICS_U,
                                .summary = pass->summary,
                                .run_graph = run };
    pass->table = (KilnPassPlugin){ KILN_PASS_API_VERSION, sizeof(KilnPassInfo), &pass->row, 1 };
    PyObject *capsule = PyCapsule_New(pass, capsule_name, free_pass);
    if (!capsule) {
        Py_DECREF(pass->function);
        g_free(pass->id);
        g_free(pass->summary);
        g_free(pass);
    }
    return capsule;
}

const KilnPassPlugin *
kiln_py_pass_table(PyObject *pass)
{
    return &((Pass *)PyCapsule_GetPointer(pass, capsule_name))->table;
}

/* --- Function --- */

bool
kiln_py_is_open(const KilnPyFunction *owner)
{
    if (!owner->function)
        kiln_py_throw(
            owner->state, KILN_ERROR_USAGE,
            "expected a function of the pass that runs, found one of a pass that is over");
    return owner->function != NULL;
}

static PyObject *
function_name(PyObject *object, void *closure)
{
    (void)closure;
    KilnPyFunction *self = (KilnPyFunction *)object;
    return kiln_py_is_open(self) ? PyUnicode_FromString(self->function->name) : NULL;
}

/* Appends @item, a new reference or NULL, to @list; false where one is missing. */
static bool
append(PyObject *list, PyObject *item)
{
    bool good = item && PyList_Append(list, item) == 0;
    Py_XDECREF(item);
    return good;
}

static PyObject *
function_nodes(PyObject *object, void *closure)
{
    (void)closure;
    KilnPyFunction *self = (KilnPyFunction *)object;
    PyObject *list = kiln_py_is_open(self) ? PyList_New(0) : NULL;
    bool good = list != NULL;
    for (KilnNode *node = good ? self->function->first : NULL; good && node; node = node->next)
        good = append(list, kiln_py_node(self, node));
    if (!good)
        Py_CLEAR(list);
    return list;
}

static PyObject *
function_arguments(PyObject *object, void *closure)
{
    (void)closure;
    KilnPyFunction *self = (KilnPyFunction *)object;
    PyObject *list = kiln_py_is_open(self) ? PyList_New(0) : NULL;
    bool good = list != NULL;
    for (guint i = 0; good && i < self->function->arguments->len; i++) {
        KilnArgument *argument = g_ptr_array_index(self->function->arguments, i);
        good = append(list, kiln_py_value(self, &argument->value));
    }
    if (!good)
        Py_CLEAR(list);
    return list;
}

static PyObject *
function_str(PyObject *object)
{
    KilnPyFunction *self = (KilnPyFunction *)object;
    if (!kiln_py_is_open(self))
        return NULL;
    g_autoptr(GString) text = g_string_new(NULL);
    kiln_function_print(self->function, text);
    return PyUnicode_FromString(text->str);
}

/* --- building --- */

/* The operands of a list, None for one that is absent; NULL: an exception. */
static KilnValue **
read_operands(KilnPyFunction *self, PyObject *list, uint32_t *out_n)
{
    PyObject *items = PySequence_List(list);
    if (!items)
        return NULL;
    *out_n = (uint32_t)PyList_Size(items);
    KilnValue **operands = g_new0(KilnValue *, *out_n + 1);
    for (uint32_t i = 0; i < *out_n; i++) {
        PyObject *item = PyList_GetItem(items, (Py_ssize_t)i);
        if (item == Py_None)
            continue;
        operands[i] = kiln_py_value_of(self, item);
        if (!operands[i])
            break;
    }
    Py_DECREF(items);
    if (PyErr_Occurred())
        g_clear_pointer(&operands, g_free);
    return operands;
}

static PyObject *
build(KilnPyFunction *self, KilnNodeSpec *spec, PyObject *operands, PyObject *attrs)
{
    GError *error = NULL;
    KilnNode *node = NULL;
    const KilnOpInfo *info = kiln_op_info(spec->op);
    g_autofree KilnValue **values = read_operands(self, operands, &spec->n_operands);
    if (!values)
        return NULL;
    spec->operands = values;
    g_autoptr(KilnArena) arena = kiln_arena_new();
    void *fields = info->attrs_size ? kiln_op_attrs_new(spec->op, arena) : NULL;
    if (attrs != Py_None && !kiln_py_read_attrs(self->state, spec->op, attrs, fields, arena))
        return NULL;
    spec->attrs = fields;
    node = kiln_node_new(self->function, spec, &error);
    return node ? kiln_py_node(self, node) : kiln_py_raise(self->state, error);
}

static PyObject *
function_build(PyObject *object, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "op", "operands", "attrs", "before", "name", "results", NULL };
    KilnPyFunction *self = (KilnPyFunction *)object;
    KilnNodeSpec spec = { 0 };
    const char *op;
    PyObject *operands, *attrs = Py_None, *before = Py_None;
    int results = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "sO|OOzi:build", names, &op, &operands, &attrs,
                                     &before, &spec.name, &results) ||
        !kiln_py_is_open(self))
        return NULL;
    if (!kiln_op_from_name(op, &spec.op) || spec.op == KILN_OP_const || spec.op == KILN_OP_return)
        return kiln_py_throw(self->state, KILN_ERROR_USAGE,
                             "build: expected an operator to build, found '%s'", op);
    spec.before = before == Py_None ? NULL : kiln_py_node_of(self, before);
    spec.n_results = results > 0 ? (uint32_t)results : 0;
    return PyErr_Occurred() ? NULL : build(self, &spec, operands, attrs);
}

static KilnTensor *
tensor_of(KilnPyState *state, PyObject *array)
{
    KilnPyArray from;
    GError *error = NULL;
    KilnTensor *tensor = NULL;
    if (!kiln_py_array_take(state, array, "constant", false, &from))
        return NULL;
    KilnType type = kiln_type_make(from.dtype, from.rank, from.dims);
    tensor = kiln_tensor_new_copy(&type, from.data, &error);
    kiln_py_array_release(&from);
    return tensor ? tensor : kiln_py_raise(state, error);
}

static PyObject *
function_constant(PyObject *object, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "array", "before", "name", NULL };
    KilnPyFunction *self = (KilnPyFunction *)object;
    const char *name = "constant";
    PyObject *array, *before = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|Os:constant", names, &array, &before,
                                     &name) ||
        !kiln_py_is_open(self))
        return NULL;
    KilnNode *place = before == Py_None ? NULL : kiln_py_node_of(self, before);
    KilnTensor *tensor = PyErr_Occurred() ? NULL : tensor_of(self->state, array);
    if (!tensor)
        return NULL;
    return kiln_py_value(self, kiln_build_constant(self->function, place, name, tensor));
}

static PyObject *
function_note(PyObject *object, PyObject *args)
{
    KilnPyFunction *self = (KilnPyFunction *)object;
    const char *rule, *text;
    if (!PyArg_ParseTuple(args, "ss:note", &rule, &text) || !kiln_py_is_open(self))
        return NULL;
    kiln_pass_note(self->context, rule, "%s", text);
    Py_RETURN_NONE;
}

static void
function_dealloc(PyObject *object)
{
    kiln_py_delete(object);
}

static PyGetSetDef function_getset[] = {
    { "name", function_name, NULL, "The name of the function.", NULL },
    { "nodes", function_nodes, NULL, "The nodes in order, as a list.", NULL },
    { "arguments", function_arguments, NULL, "The arguments as a list of values.", NULL },
    { NULL, NULL, NULL, NULL, NULL },
};

static PyMethodDef function_methods[] = {
    { "build", (PyCFunction)(void (*)(void))function_build, METH_VARARGS | METH_KEYWORDS,
      "build($self, op, operands, attrs=None, before=None, name=None, results=0)\n--\n\n"
      "Makes a node of an operator by its name in Kiln. Returns the Node." },
    { "constant", (PyCFunction)(void (*)(void))function_constant, METH_VARARGS | METH_KEYWORDS,
      "constant($self, array, before=None, name='constant')\n--\n\nMakes a constant. Returns its "
      "Value." },
    { "note", function_note, METH_VARARGS,
      "note($self, rule, text, /)\n--\n\nCounts a rewrite, and logs a line." },
    { NULL, NULL, 0, NULL },
};

static PyType_Slot slots[] = {
    { Py_tp_doc, "A graph that a pass in Python reads and changes. str() of it is Kiln's text.\n\n"
                 "It is valid until the pass returns." },
    { Py_tp_new, kiln_py_no_constructor },
    { Py_tp_dealloc, function_dealloc },
    { Py_tp_str, function_str },
    { Py_tp_getset, function_getset },
    { Py_tp_methods, function_methods },
    { 0, NULL },
};

PyType_Spec kiln_py_function_spec = {
    .name = "kiln_nn._kiln.Function",
    .basicsize = sizeof(KilnPyFunction),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};
