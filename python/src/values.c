/* SPDX-License-Identifier: Apache-2.0 */
/* Inputs: arrays are read in place, strings through addresses of their UTF-8. Outputs: memory of
 * the session becomes that of a Tensor, and NumPy's array borrows it. */
#include "python/src/values.h"
#include "graph/kiln-items.h"
#include "graph/kiln-types.h"
#include "kiln.h"
#include "python/src/state.h"

#include <string.h>

/* --- strings --- */

static bool
text_of(KilnPyState *state, PyObject *item, const char *name, KilnText *out)
{
    Py_ssize_t length;
    char *bytes = NULL;
    if (PyUnicode_Check(item)) {
        out->text = PyUnicode_AsUTF8AndSize(item, &length);
    } else if (PyBytes_Check(item) && PyBytes_AsStringAndSize(item, &bytes, &length) == 0) {
        out->text = bytes;
    } else {
        kiln_py_throw(state, KILN_ERROR_TYPE,
                      "input %s: expected strings, found another object in the array", name);
        return false;
    }
    out->length = out->text ? (size_t)length : 0;
    return out->text != NULL;
}

/* One block: addresses of texts, then the texts. */
static bool
take_items(KilnPyState *state, PyObject *items, const char *name, KilnPyArray *out)
{
    Py_ssize_t n = PyList_Size(items);
    out->bytes = n * (Py_ssize_t)(sizeof(KilnText *) + sizeof(KilnText));
    if (!kiln_py_array_make_copy(state, out))
        return false;
    const KilnText **addresses = out->copy;
    KilnText *texts = (KilnText *)(addresses + n);
    for (Py_ssize_t k = 0; k < n; k++) {
        if (!text_of(state, PyList_GetItem(items, k), name, &texts[k]))
            return false;
        addresses[k] = &texts[k];
    }
    out->data = out->copy;
    out->bytes = n * (Py_ssize_t)sizeof(KilnText *);
    return true;
}

static bool
take_dims(KilnPyState *state, PyObject *shape, const char *name, KilnPyArray *out)
{
    Py_ssize_t rank = PyTuple_Size(shape);
    if (rank > KILN_PY_RANK) {
        kiln_py_throw(state, KILN_ERROR_SHAPE, "input %s: expected rank 0 to %d, found %zd", name,
                      KILN_PY_RANK, rank);
        return false;
    }
    out->rank = (int)rank;
    for (Py_ssize_t d = 0; d < rank; d++)
        out->dims[d] = PyLong_AsLongLong(PyTuple_GetItem(shape, d));
    return !PyErr_Occurred();
}

static bool
take_texts(KilnPyState *state, PyObject *object, const char *name, KilnPyArray *out)
{
    PyObject *pair = kiln_py_support(state, "texts_of", "(O)", object);
    PyObject *shape, *items;
    memset(out, 0, sizeof *out);
    out->dtype = KILN_DTYPE_string;
    bool good = pair && PyArg_ParseTuple(pair, "O!O!", &PyTuple_Type, &shape, &PyList_Type, &items);
    if (good)
        out->owner = Py_NewRef(items); /* the strings own their UTF-8 */
    good = good && take_dims(state, shape, name, out) && take_items(state, items, name, out);
    Py_XDECREF(pair);
    if (!good)
        kiln_py_array_release(out);
    return good;
}

PyObject *
kiln_py_make_texts(KilnPyState *state, const void *data, const KilnTensorInfo *info)
{
    const KilnText *const *texts = data;
    Py_ssize_t n = (Py_ssize_t)(info->bytes / (int64_t)sizeof(KilnText *));
    PyObject *items = PyList_New(n);
    for (Py_ssize_t k = 0; items && k < n; k++) {
        const KilnText *text = texts[k];
        PyObject *item = text
                             ? PyUnicode_DecodeUTF8(text->text, (Py_ssize_t)text->length, "replace")
                             : PyUnicode_FromString("");
        if (!item || PyList_SetItem(items, k, item) < 0)
            Py_CLEAR(items);
    }
    PyObject *shape = items ? kiln_py_shape(info) : NULL;
    if (!shape) {
        Py_XDECREF(items);
        return NULL;
    }
    return kiln_py_support(state, "array_of_texts", "(NN)", items, shape);
}

/* --- all types --- */

static bool
check_dtype(KilnPyState *state, const char *kind, const KilnTensorInfo *info, KilnDType found)
{
    if (found == info->dtype)
        return true;
    kiln_py_throw(state, KILN_ERROR_TYPE, "%s %s: expected %s, found %s", kind, info->name,
                  kiln_dtype_name(info->dtype), kiln_dtype_name(found));
    return false;
}

/* Lists and numbers have the element type that is expected. */
static PyObject *
as_expected(KilnPyState *state, PyObject *object, const KilnTensorInfo *info)
{
    if (!PyList_Check(object) && !PyTuple_Check(object) && !PyLong_Check(object) &&
        !PyFloat_Check(object))
        return Py_NewRef(object);
    return kiln_py_support(state, "array_of_numbers", "(Os)", object, kiln_dtype_name(info->dtype));
}

bool
kiln_py_take_value(KilnPyState *state, PyObject *object, const KilnTensorInfo *info,
                   KilnPyArray *out)
{
    if (info->dtype == KILN_DTYPE_string)
        return take_texts(state, object, info->name, out);
    PyObject *array = as_expected(state, object, info);
    bool good = array && kiln_py_array_take(state, array, info->name, false, out);
    Py_XDECREF(array);
    if (good && check_dtype(state, "input", info, out->dtype))
        return true;
    if (good)
        kiln_py_array_release(out);
    return false;
}

static bool
fits(KilnPyState *state, const KilnTensorInfo *info, const KilnPyArray *array)
{
    bool good = info->rank < 0 || info->rank == array->rank;
    for (int d = 0; good && d < info->rank; d++)
        good = info->dims[d] < 0 || info->dims[d] == array->dims[d];
    if (!good) {
        g_autoptr(GString) expected = g_string_new(NULL), found = g_string_new(NULL);
        for (int d = 0; d < info->rank; d++)
            g_string_append_printf(expected, "%s%" G_GINT64_FORMAT, d ? "," : "", info->dims[d]);
        for (int d = 0; d < array->rank; d++)
            g_string_append_printf(found, "%s%" G_GINT64_FORMAT, d ? "," : "", array->dims[d]);
        kiln_py_throw(state, KILN_ERROR_SHAPE, "output %s: expected [%s], found [%s]", info->name,
                      expected->str, found->str);
    }
    return good;
}

bool
kiln_py_take_out(KilnPyState *state, PyObject *object, const KilnTensorInfo *info, KilnPyArray *out)
{
    memset(out, 0, sizeof *out);
    if (info->dtype == KILN_DTYPE_string || info->contents) {
        kiln_py_throw(
            state, KILN_ERROR_USAGE,
            "output %s: results of type %s are new objects, and are not written to memory "
            "of the caller",
            info->name, info->contents ? info->contents : "string");
        return false;
    }
    if (!kiln_py_array_take(state, object, info->name, true, out))
        return false;
    if (check_dtype(state, "output", info, out->dtype) && fits(state, info, out))
        return true;
    kiln_py_array_release(out);
    return false;
}

static PyObject *
wrap(KilnPyState *state, void *data, const KilnTensorInfo *info)
{
    PyObject *tensor = kiln_py_tensor_new(state, data, info);
    if (!tensor)
        return NULL;
    const char *ml = kiln_py_ml_name(info->dtype);
    PyObject *array = ml ? kiln_py_support(state, "to_numpy_or_tensor", "(Os)", tensor, ml)
                         : PyObject_CallFunctionObjArgs(state->asarray, tensor, NULL);
    Py_DECREF(tensor);
    return array;
}

PyObject *
kiln_py_make_value(KilnPyState *state, KilnSession *session, unsigned i, KilnDType dtype)
{
    GError *error = NULL;
    KilnTensorInfo info = KILN_TENSOR_INFO_INIT;
    if (dtype == KILN_DTYPE_string) {
        const void *seen = kiln_session_output(session, i, &info, &error);
        return seen ? kiln_py_make_texts(state, seen, &info) : kiln_py_raise(state, error);
    }
    if (dtype == KILN_DTYPE_sequence || dtype == KILN_DTYPE_optional || dtype == KILN_DTYPE_map) {
        g_autoptr(KilnItem) item = kiln_session_output_item(session, i, &error);
        return item ? kiln_py_make_item(state, item) : kiln_py_raise(state, error);
    }
    void *data = kiln_session_take_output(session, i, &info, &error);
    return data ? wrap(state, data, &info) : kiln_py_raise(state, error);
}
