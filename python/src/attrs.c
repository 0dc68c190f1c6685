/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes of nodes as objects, and back: one case for each kind. */
#include "python/src/passes.h"

#include "python/src/array.h"

/* --- reading a node --- */

static PyObject *
list_of_ints(const KilnInts *ints)
{
    PyObject *list = PyList_New(0);
    for (uint32_t i = 0; list && i < ints->n; i++) {
        PyObject *item = PyLong_FromLongLong(ints->v[i]);
        if (!item || PyList_Append(list, item) < 0)
            Py_CLEAR(list);
        Py_XDECREF(item);
    }
    return list;
}

static PyObject *
list_of_floats(const KilnFloats *floats)
{
    PyObject *list = PyList_New(0);
    for (uint32_t i = 0; list && i < floats->n; i++) {
        PyObject *item = PyFloat_FromDouble((double)floats->v[i]);
        if (!item || PyList_Append(list, item) < 0)
            Py_CLEAR(list);
        Py_XDECREF(item);
    }
    return list;
}

static PyObject *
list_of_strings(const KilnStrings *strings)
{
    PyObject *list = PyList_New(0);
    for (uint32_t i = 0; list && i < strings->n; i++) {
        PyObject *item = PyUnicode_FromString(strings->v[i]);
        if (!item || PyList_Append(list, item) < 0)
            Py_CLEAR(list);
        Py_XDECREF(item);
    }
    return list;
}

/* A new reference; NULL without an exception for what is left out. */
static PyObject *
read_field(const KilnAttrInfo *info, const void *field)
{
    switch (info->kind) {
    case KILN_ATTR_INT:
        return PyLong_FromLongLong(*(const int64_t *)field);
    case KILN_ATTR_BOOL:
        return PyBool_FromLong(*(const bool *)field);
    case KILN_ATTR_FLOAT:
        return PyFloat_FromDouble((double)*(const float *)field);
    case KILN_ATTR_STRING: {
        const char *text = *(const char *const *)field;
        return text ? PyUnicode_FromString(text) : Py_NewRef(Py_None);
    }
    case KILN_ATTR_INTS:
        return list_of_ints(field);
    case KILN_ATTR_FLOATS:
        return list_of_floats(field);
    case KILN_ATTR_STRINGS:
        return list_of_strings(field);
    case KILN_ATTR_DTYPE:
        return PyUnicode_FromString(kiln_dtype_name(*(const KilnDType *)field));
    case KILN_ATTR_CONSTANT:
    case KILN_ATTR_FUNCTION:
        break;
    }
    return NULL;
}

PyObject *
kiln_py_attrs(const KilnNode *node)
{
    const KilnOpInfo *info = kiln_op_info(node->op);
    PyObject *dict = PyDict_New();
    for (uint32_t i = 0; dict && i < info->n_attrs; i++) {
        PyObject *value =
            read_field(&info->attrs[i], (const char *)node->attrs + info->attrs[i].offset);
        bool good =
            value ? PyDict_SetItemString(dict, info->attrs[i].name, value) == 0 : !PyErr_Occurred();
        Py_XDECREF(value);
        if (!good)
            Py_CLEAR(dict);
    }
    return dict;
}

/* --- writing a struct --- */

static bool
write_ints(PyObject *value, KilnInts *out, KilnArena *arena)
{
    PyObject *list = PySequence_List(value);
    if (!list)
        return false;
    uint32_t n = (uint32_t)PyList_Size(list);
    g_autofree int64_t *numbers = g_new0(int64_t, n + 1);
    for (uint32_t i = 0; i < n && !PyErr_Occurred(); i++)
        numbers[i] = PyLong_AsLongLong(PyList_GetItem(list, (Py_ssize_t)i));
    *out = kiln_ints_make(arena, numbers, n);
    Py_DECREF(list);
    return !PyErr_Occurred();
}

static bool
write_floats(PyObject *value, KilnFloats *out, KilnArena *arena)
{
    PyObject *list = PySequence_List(value);
    if (!list)
        return false;
    out->n = (uint32_t)PyList_Size(list);
    out->v = kiln_arena_new0(arena, float, out->n + 1);
    for (uint32_t i = 0; i < out->n && !PyErr_Occurred(); i++)
        out->v[i] = (float)PyFloat_AsDouble(PyList_GetItem(list, (Py_ssize_t)i));
    Py_DECREF(list);
    return !PyErr_Occurred();
}

/* NULL and an exception where @value is no string. */
static const char *
text_of(PyObject *value, KilnArena *arena)
{
    const char *text = PyUnicode_Check(value) ? PyUnicode_AsUTF8AndSize(value, NULL) : NULL;
    if (!text && !PyErr_Occurred())
        PyErr_SetString(PyExc_TypeError, "expected a str");
    return text ? kiln_arena_strdup(arena, text) : NULL;
}

static bool
write_strings(PyObject *value, KilnStrings *out, KilnArena *arena)
{
    PyObject *list = PySequence_List(value);
    if (!list)
        return false;
    out->n = (uint32_t)PyList_Size(list);
    out->v = kiln_arena_new0(arena, const char *, out->n + 1);
    for (uint32_t i = 0; i < out->n && !PyErr_Occurred(); i++)
        out->v[i] = text_of(PyList_GetItem(list, (Py_ssize_t)i), arena);
    Py_DECREF(list);
    return !PyErr_Occurred();
}

static bool
write_dtype(PyObject *value, KilnDType *out)
{
    const char *name = PyUnicode_Check(value) ? PyUnicode_AsUTF8AndSize(value, NULL) : NULL;
    if (name && kiln_py_dtype_named(name, out))
        return true;
    if (!PyErr_Occurred())
        PyErr_SetString(PyExc_TypeError, "expected the name of an element type");
    return false;
}

static bool
write_field(const KilnAttrInfo *info, PyObject *value, void *field, KilnArena *arena)
{
    switch (info->kind) {
    case KILN_ATTR_INT:
        *(int64_t *)field = PyLong_AsLongLong(value);
        break;
    case KILN_ATTR_BOOL:
        *(bool *)field = PyObject_IsTrue(value) > 0;
        break;
    case KILN_ATTR_FLOAT:
        *(float *)field = (float)PyFloat_AsDouble(value);
        break;
    case KILN_ATTR_STRING:
        *(const char **)field = value == Py_None ? NULL : text_of(value, arena);
        break;
    case KILN_ATTR_INTS:
        return write_ints(value, field, arena);
    case KILN_ATTR_FLOATS:
        return write_floats(value, field, arena);
    case KILN_ATTR_STRINGS:
        return write_strings(value, field, arena);
    case KILN_ATTR_DTYPE:
        return write_dtype(value, field);
    case KILN_ATTR_CONSTANT:
    case KILN_ATTR_FUNCTION:
        PyErr_SetString(PyExc_TypeError, "constants and subgraphs cannot be set");
        break;
    }
    return !PyErr_Occurred();
}

bool
kiln_py_read_attrs(KilnPyState *state, KilnOp op, PyObject *dict, void *attrs, KilnArena *arena)
{
    const KilnOpInfo *info = kiln_op_info(op);
    PyObject *key, *value;
    Py_ssize_t at = 0;
    if (!PyDict_Check(dict)) {
        kiln_py_throw(state, KILN_ERROR_USAGE, "attrs: expected a dict, found another object");
        return false;
    }
    while (PyDict_Next(dict, &at, &key, &value)) {
        const char *name = PyUnicode_Check(key) ? PyUnicode_AsUTF8AndSize(key, NULL) : NULL;
        const KilnAttrInfo *attr = name ? kiln_attr_find(info->attrs, info->n_attrs, name) : NULL;
        if (!attr) {
            kiln_py_throw(state, KILN_ERROR_USAGE, "%s: expected an attribute of it, found '%s'",
                          info->name, name ? name : "another key");
            return false;
        }
        if (!write_field(attr, value, (char *)attrs + attr->offset, arena))
            return false;
    }
    return true;
}
