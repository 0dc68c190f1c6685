/* SPDX-License-Identifier: Apache-2.0 */
/* Sequences are lists, an optional is its value or None, and maps are dicts. Tensors inside are
 * copied: an item owns its memory. */
#include "graph/kiln-items.h"
#include "graph/kiln-types.h"
#include "kiln.h"
#include "python/src/array.h"
#include "python/src/state.h"
#include "python/src/values.h"

#include <string.h>

/* A value on its way into an item. @type is the rest of a text such as "sequence(f32[?,3])". */
typedef struct {
    KilnPyState *state;
    const char *name; /* of the input */
    const char *type;
    PyObject *object;
} Take;

static KilnItem *take(const Take *from);

static KilnItem *
made(const Take *from, KilnItem *item, GError *error)
{
    return item ? item : kiln_py_raise(from->state, error);
}

static KilnItem *
throw_other(const Take *from, const char *expected)
{
    PyObject *type = PyType_GetName(Py_TYPE(from->object));
    const char *found = type ? PyUnicode_AsUTF8AndSize(type, NULL) : NULL;
    if (found)
        kiln_py_throw(from->state, KILN_ERROR_TYPE, "input %s: expected %s for %s, found %s",
                      from->name, expected, from->type, found);
    Py_XDECREF(type);
    return NULL;
}

/* --- values become items --- */

static KilnItem *
take_tensor(const Take *from)
{
    g_autofree char *element = g_strndup(from->type, strcspn(from->type, "[,)"));
    KilnTensorInfo info = KILN_TENSOR_INFO_INIT;
    KilnPyArray array;
    GError *error = NULL;
    info.name = from->name;
    if (!kiln_py_dtype_named(element, &info.dtype))
        return kiln_py_throw(from->state, KILN_ERROR_TYPE, "input %s: expected a tensor, found %s",
                             from->name, element);
    if (!kiln_py_take_value(from->state, from->object, &info, &array))
        return NULL;
    KilnItem *item = kiln_item_new_tensor(array.dtype, array.rank, array.dims, array.data, &error);
    kiln_py_array_release(&array);
    return made(from, item, error);
}

static KilnItem *
take_sequence(const Take *from)
{
    if (PyUnicode_Check(from->object) || PyBytes_Check(from->object) ||
        !PySequence_Check(from->object))
        return throw_other(from, "a list");
    PyObject *list = PySequence_List(from->object);
    Py_ssize_t n = list ? PyList_Size(list) : 0, done = 0;
    g_autofree KilnItem **items = g_new0(KilnItem *, (size_t)n + 1);
    for (; list && done < n; done++) {
        const Take one = { from->state, from->name, from->type + strlen("sequence("),
                           PyList_GetItem(list, done) };
        items[done] = take(&one);
        if (!items[done])
            break;
    }
    GError *error = NULL;
    KilnItem *sequence = NULL;
    if (list && done == n)
        sequence = made(from, kiln_item_new_sequence(items, (size_t)n, &error), error);
    for (Py_ssize_t i = 0; i < done; i++)
        kiln_item_unref(items[i]);
    Py_XDECREF(list);
    return sequence;
}

static KilnItem *
take_optional(const Take *from)
{
    GError *error = NULL;
    g_autoptr(KilnItem) inner = NULL;
    if (from->object != Py_None) {
        const Take one = { from->state, from->name, from->type + strlen("optional("),
                           from->object };
        inner = take(&one);
        if (!inner)
            return NULL;
    }
    KilnItem *item = kiln_item_new_optional(inner, &error);
    return made(from, item, error);
}

static KilnItem *
take_map(const Take *from)
{
    const char *key_type = from->type + strlen("map("), *comma = strchr(key_type, ',');
    if (!PyDict_Check(from->object) || !comma)
        return throw_other(from, "a dict");
    PyObject *keys = PyDict_Keys(from->object), *values = PyDict_Values(from->object);
    const Take key_list = { from->state, from->name, key_type, keys };
    const Take value_list = { from->state, from->name, comma + 1, values };
    GError *error = NULL;
    g_autoptr(KilnItem) key_item = keys && values ? take_tensor(&key_list) : NULL;
    g_autoptr(KilnItem) value_item = key_item ? take_tensor(&value_list) : NULL;
    Py_XDECREF(keys);
    Py_XDECREF(values);
    if (!value_item)
        return NULL;
    KilnItem *map = kiln_item_new_map(key_item, value_item, &error);
    return made(from, map, error);
}

static KilnItem *
take(const Take *from)
{
    if (g_str_has_prefix(from->type, "sequence("))
        return take_sequence(from);
    if (g_str_has_prefix(from->type, "optional("))
        return take_optional(from);
    return g_str_has_prefix(from->type, "map(") ? take_map(from) : take_tensor(from);
}

KilnItem *
kiln_py_take_item(KilnPyState *state, PyObject *object, const KilnTensorInfo *info)
{
    const Take from = { state, info->name, info->contents, object };
    return take(&from);
}

/* --- items become values --- */

static PyObject *
make_tensor(KilnPyState *state, const KilnItem *item)
{
    KilnTensorInfo info = KILN_TENSOR_INFO_INIT;
    info.dtype = kiln_item_dtype(item);
    info.dims = kiln_item_dims(item, &info.rank);
    info.bytes = (int64_t)kiln_item_bytes(item);
    if (info.dtype == KILN_DTYPE_string)
        return kiln_py_make_texts(state, kiln_item_data(item), &info);
    PyObject *shape = kiln_py_shape(&info);
    if (!shape)
        return NULL;
    return kiln_py_support(state, "array_of_item", "(y#sN)", (const char *)kiln_item_data(item),
                           (Py_ssize_t)info.bytes, kiln_dtype_name(info.dtype), shape);
}

static PyObject *
make_list(KilnPyState *state, const KilnItem *item)
{
    Py_ssize_t n = (Py_ssize_t)kiln_item_length(item);
    PyObject *list = PyList_New(n);
    for (Py_ssize_t i = 0; list && i < n; i++) {
        PyObject *value = kiln_py_make_item(state, kiln_item_get(item, (size_t)i));
        if (!value || PyList_SetItem(list, i, value) < 0)
            Py_CLEAR(list);
    }
    return list;
}

PyObject *
kiln_py_make_item(KilnPyState *state, const KilnItem *item)
{
    switch ((int)kiln_item_dtype(item)) {
    case KILN_DTYPE_sequence:
        return make_list(state, item);
    case KILN_DTYPE_optional:
        return kiln_item_length(item) ? kiln_py_make_item(state, kiln_item_get(item, 0))
                                      : Py_NewRef(Py_None);
    case KILN_DTYPE_map: {
        PyObject *pair = make_list(state, item);
        return pair ? kiln_py_support(state, "dict_of", "(N)", pair) : NULL;
    }
    default:
        return make_tensor(state, item);
    }
}
