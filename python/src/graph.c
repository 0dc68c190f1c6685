/* SPDX-License-Identifier: Apache-2.0 */
/* The types Node and Value of passes in Python. They borrow from a Function, and say so where it is
 * over, or where the node was removed. */
#include "kiln.h"
#include "python/src/passes.h"

#include "graph/text/text.h"

/* --- making and opening --- */

PyObject *
kiln_py_node(KilnPyFunction *owner, KilnNode *node)
{
    KilnPyNode *self = kiln_py_new(owner->state->node);
    if (!self)
        return NULL;
    self->owner = (KilnPyFunction *)Py_NewRef((PyObject *)owner);
    self->node = node;
    return (PyObject *)self;
}

PyObject *
kiln_py_value(KilnPyFunction *owner, KilnValue *value)
{
    KilnPyValue *self = kiln_py_new(owner->state->value);
    if (!self)
        return NULL;
    self->owner = (KilnPyFunction *)Py_NewRef((PyObject *)owner);
    self->value = value;
    return (PyObject *)self;
}

static KilnNode *
open_node(PyObject *object)
{
    KilnPyNode *self = (KilnPyNode *)object;
    if (!kiln_py_is_open(self->owner))
        return NULL;
    if (!kiln_node_is_linked(self->node))
        return kiln_py_throw(self->owner->state, KILN_ERROR_USAGE,
                             "expected a node of the function, found one that was removed");
    return self->node;
}

static KilnValue *
open_value(PyObject *object)
{
    KilnPyValue *self = (KilnPyValue *)object;
    if (!kiln_py_is_open(self->owner))
        return NULL;
    if (self->value->def && !kiln_node_is_linked(self->value->def))
        return kiln_py_throw(self->owner->state, KILN_ERROR_USAGE,
                             "expected a value of the function, found one whose node was removed");
    return self->value;
}

KilnNode *
kiln_py_node_of(KilnPyFunction *owner, PyObject *object)
{
    if (Py_TYPE(object) != owner->state->node || ((KilnPyNode *)object)->owner != owner)
        return kiln_py_throw(owner->state, KILN_ERROR_USAGE,
                             "expected a Node of this function, found another object");
    return open_node(object);
}

KilnValue *
kiln_py_value_of(KilnPyFunction *owner, PyObject *object)
{
    if (Py_TYPE(object) != owner->state->value || ((KilnPyValue *)object)->owner != owner)
        return kiln_py_throw(owner->state, KILN_ERROR_USAGE,
                             "expected a Value of this function, found another object");
    return open_value(object);
}

/* --- Node --- */

static PyObject *
node_op(PyObject *object, void *closure)
{
    (void)closure;
    KilnNode *node = open_node(object);
    return node ? PyUnicode_FromString(kiln_op_info(node->op)->name) : NULL;
}

static PyObject *
node_name(PyObject *object, void *closure)
{
    (void)closure;
    KilnNode *node = open_node(object);
    return node ? PyUnicode_FromString(kiln_node_label(node)) : NULL;
}

static PyObject *
node_operands(PyObject *object, void *closure)
{
    (void)closure;
    KilnNode *node = open_node(object);
    KilnPyFunction *owner = ((KilnPyNode *)object)->owner;
    PyObject *list = node ? PyTuple_New(node->n_operands) : NULL;
    for (uint32_t i = 0; list && i < node->n_operands; i++) {
        KilnValue *value = node->operands[i].value;
        PyObject *item = value ? kiln_py_value(owner, value) : Py_NewRef(Py_None);
        if (!item || PyTuple_SetItem(list, (Py_ssize_t)i, item) < 0)
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *
node_results(PyObject *object, void *closure)
{
    (void)closure;
    KilnNode *node = open_node(object);
    KilnPyFunction *owner = ((KilnPyNode *)object)->owner;
    PyObject *list = node ? PyTuple_New(node->n_results) : NULL;
    for (uint32_t i = 0; list && i < node->n_results; i++) {
        PyObject *item = kiln_py_value(owner, kiln_node_result(node, i));
        if (!item || PyTuple_SetItem(list, (Py_ssize_t)i, item) < 0)
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *
node_attrs(PyObject *object, void *closure)
{
    (void)closure;
    KilnNode *node = open_node(object);
    return node ? kiln_py_attrs(node) : NULL;
}

static PyObject *
node_str(PyObject *object)
{
    KilnNode *node = open_node(object);
    if (!node)
        return NULL;
    g_autoptr(GString) text = g_string_new(NULL);
    kiln_node_print(node, text);
    return PyUnicode_FromString(text->str);
}

static PyObject *
node_set_operand(PyObject *object, PyObject *args)
{
    KilnPyFunction *owner = ((KilnPyNode *)object)->owner;
    KilnNode *node = open_node(object);
    unsigned i;
    PyObject *item;
    if (!node || !PyArg_ParseTuple(args, "IO:set_operand", &i, &item))
        return NULL;
    if (i >= node->n_operands)
        return kiln_py_throw(owner->state, KILN_ERROR_USAGE,
                             "%s: expected operand 0 to %u, found %u", kiln_node_label(node),
                             node->n_operands - 1, i);
    KilnValue *value = item == Py_None ? NULL : kiln_py_value_of(owner, item);
    if (PyErr_Occurred())
        return NULL;
    GError *error = NULL;
    kiln_node_set_operand(node, i, value);
    if (node->op != KILN_OP_return && !kiln_node_reinfer(node, &error))
        return kiln_py_raise(owner->state, error);
    Py_RETURN_NONE;
}

static PyObject *
node_remove(PyObject *object, PyObject *unused)
{
    (void)unused;
    KilnNode *node = open_node(object);
    uint32_t uses = 0;
    for (uint32_t i = 0; node && i < node->n_results; i++)
        uses += node->results[i].n_uses;
    if (!node)
        return NULL;
    if (uses || node->op == KILN_OP_return)
        return kiln_py_throw(((KilnPyNode *)object)->owner->state, KILN_ERROR_USAGE,
                             "%s: expected a node without readers, found %u", kiln_node_label(node),
                             uses);
    kiln_node_remove(node);
    Py_RETURN_NONE;
}

/* Nodes and values are equal where they stand for one thing. */
static PyObject *
compare(const void *a, const void *b, int how)
{
    if (how != Py_EQ && how != Py_NE)
        Py_RETURN_NOTIMPLEMENTED;
    return PyBool_FromLong((a == b) == (how == Py_EQ));
}

static PyObject *
node_compare(PyObject *a, PyObject *b, int how)
{
    if (Py_TYPE(a) != Py_TYPE(b))
        Py_RETURN_NOTIMPLEMENTED;
    return compare(((KilnPyNode *)a)->node, ((KilnPyNode *)b)->node, how);
}

static Py_hash_t
node_hash(PyObject *object)
{
    return (Py_hash_t)((uintptr_t)((KilnPyNode *)object)->node >> 4);
}

static void
node_dealloc(PyObject *object)
{
    Py_XDECREF((PyObject *)((KilnPyNode *)object)->owner);
    kiln_py_delete(object);
}

static PyGetSetDef node_getset[] = {
    { "op", node_op, NULL, "Kiln's name of the operator.", NULL },
    { "name", node_name, NULL, "The name of the node in messages.", NULL },
    { "operands", node_operands, NULL, "Values, or None where one is absent.", NULL },
    { "results", node_results, NULL, "The values that it defines.", NULL },
    { "attrs", node_attrs, NULL, "A copy of the attributes, except constants and subgraphs.",
      NULL },
    { NULL, NULL, NULL, NULL, NULL },
};

static PyMethodDef node_methods[] = {
    { "set_operand", node_set_operand, METH_VARARGS,
      "set_operand($self, i, value, /)\n--\n\nMakes operand i another value, or None." },
    { "remove", node_remove, METH_NOARGS,
      "remove($self)\n--\n\nRemoves a node that nothing reads." },
    { NULL, NULL, 0, NULL },
};

static PyType_Slot node_slots[] = {
    { Py_tp_doc, "A node of a Function: an operator, operands, attributes and results." },
    { Py_tp_new, kiln_py_no_constructor },
    { Py_tp_dealloc, node_dealloc },
    { Py_tp_str, node_str },
    { Py_tp_richcompare, node_compare },
    { Py_tp_hash, node_hash },
    { Py_tp_getset, node_getset },
    { Py_tp_methods, node_methods },
    { 0, NULL },
};

PyType_Spec kiln_py_node_spec = {
    .name = "kiln_nn._kiln.Node",
    .basicsize = sizeof(KilnPyNode),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = node_slots,
};

/* --- Value --- */

static PyObject *
value_name(PyObject *object, void *closure)
{
    (void)closure;
    KilnValue *value = open_value(object);
    return value ? PyUnicode_FromString(value->name) : NULL;
}

static PyObject *
value_dtype(PyObject *object, void *closure)
{
    (void)closure;
    KilnValue *value = open_value(object);
    return value ? PyUnicode_FromString(kiln_dtype_name(value->type.dtype)) : NULL;
}

static PyObject *
value_shape(PyObject *object, void *closure)
{
    (void)closure;
    KilnValue *value = open_value(object);
    const char *names[KILN_MAX_RANK];
    if (!value)
        return NULL;
    for (int d = 0; d < value->type.rank; d++)
        names[d] = kiln_type_dim_name(&value->type, d);
    const KilnTensorInfo info = { .rank = value->type.rank,
                                  .dims = value->type.dims,
                                  .dim_names = names };
    return kiln_py_shape(&info);
}

static PyObject *
value_node(PyObject *object, void *closure)
{
    (void)closure;
    KilnValue *value = open_value(object);
    if (!value)
        return NULL;
    return value->def ? kiln_py_node(((KilnPyValue *)object)->owner, value->def)
                      : Py_NewRef(Py_None);
}

static PyObject *
value_readers(PyObject *object, void *closure)
{
    (void)closure;
    KilnValue *value = open_value(object);
    PyObject *list = value ? PyList_New(0) : NULL;
    for (KilnUse *use = list ? value->first_use : NULL; list && use; use = use->next) {
        PyObject *node = kiln_py_node(((KilnPyValue *)object)->owner, use->user);
        if (!node || PyList_Append(list, node) < 0)
            Py_CLEAR(list);
        Py_XDECREF(node);
    }
    return list;
}

static PyObject *
array_of(KilnPyState *state, const KilnTensor *tensor)
{
    GError *error = NULL;
    GBytes *bytes = kiln_tensor_view(tensor, &error);
    if (!bytes)
        return kiln_py_raise(state, error);
    gsize size;
    const char *data = g_bytes_get_data(bytes, &size);
    PyObject *copy = PyBytes_FromStringAndSize(data, (Py_ssize_t)size);
    g_bytes_unref(bytes);
    const KilnTensorInfo info = { .rank = tensor->type.rank, .dims = tensor->type.dims };
    PyObject *shape = copy ? kiln_py_shape(&info) : NULL;
    if (!shape) {
        Py_XDECREF(copy);
        return NULL;
    }
    return kiln_py_support(state, "array_of_bytes", "(NsN)", copy,
                           kiln_dtype_name(tensor->type.dtype), shape);
}

static PyObject *
value_constant(PyObject *object, void *closure)
{
    (void)closure;
    KilnValue *value = open_value(object);
    if (!value)
        return NULL;
    const KilnConstant *constant = kiln_value_constant(value);
    if (!constant || constant->type.dtype == KILN_DTYPE_string)
        Py_RETURN_NONE;
    return array_of(((KilnPyValue *)object)->owner->state, constant->tensor);
}

static PyObject *
value_replace(PyObject *object, PyObject *other)
{
    KilnPyFunction *owner = ((KilnPyValue *)object)->owner;
    KilnValue *from = open_value(object), *to = from ? kiln_py_value_of(owner, other) : NULL;
    if (!to)
        return NULL;
    if (!kiln_type_equal(&from->type, &to->type))
        return kiln_py_throw(owner->state, KILN_ERROR_TYPE,
                             "%s: expected a value of its type, found %s of another type",
                             from->name, to->name);
    if (from != to)
        kiln_value_replace(from, to);
    Py_RETURN_NONE;
}

static PyObject *
value_compare(PyObject *a, PyObject *b, int how)
{
    if (Py_TYPE(a) != Py_TYPE(b))
        Py_RETURN_NOTIMPLEMENTED;
    return compare(((KilnPyValue *)a)->value, ((KilnPyValue *)b)->value, how);
}

static Py_hash_t
value_hash(PyObject *object)
{
    return (Py_hash_t)((uintptr_t)((KilnPyValue *)object)->value >> 4);
}

static void
value_dealloc(PyObject *object)
{
    Py_XDECREF((PyObject *)((KilnPyValue *)object)->owner);
    kiln_py_delete(object);
}

static PyGetSetDef value_getset[] = {
    { "name", value_name, NULL, "The name, which is unique in the function.", NULL },
    { "dtype", value_dtype, NULL, "Kiln's name of the element type.", NULL },
    { "shape", value_shape, NULL, "A tuple of numbers, names and None; None without a rank.",
      NULL },
    { "node", value_node, NULL, "The node that defines it; None: it is an argument.", NULL },
    { "readers", value_readers, NULL, "The nodes that read it, once for each operand.", NULL },
    { "constant", value_constant, NULL, "A copy of the constant that it is; None: it is none.",
      NULL },
    { NULL, NULL, NULL, NULL, NULL },
};

static PyMethodDef value_methods[] = {
    { "replace", value_replace, METH_O,
      "replace($self, other, /)\n--\n\nMakes all readers read the other value, of the same type." },
    { NULL, NULL, 0, NULL },
};

static PyType_Slot value_slots[] = {
    { Py_tp_doc, "A value of a Function: an argument, or the result of a node." },
    { Py_tp_new, kiln_py_no_constructor },
    { Py_tp_dealloc, value_dealloc },
    { Py_tp_richcompare, value_compare },
    { Py_tp_hash, value_hash },
    { Py_tp_getset, value_getset },
    { Py_tp_methods, value_methods },
    { 0, NULL },
};

PyType_Spec kiln_py_value_spec = {
    .name = "kiln_nn._kiln.Value",
    .basicsize = sizeof(KilnPyValue),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = value_slots,
};
