/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays of other libraries, read where they lie.
 *
 * The order of attempts: a tensor of Kiln; the buffer protocol (NumPy, bytes, memoryview, array);
 * arrays whose dtype is of ml_dtypes, which the buffer protocol cannot express; DLPack (PyTorch,
 * JAX); and at last plain numbers and lists, which NumPy converts. */
#include "python/src/array.h"
#include "graph/kiln-types.h"

#include <stdlib.h>
#include <string.h>

void
kiln_py_array_release(KilnPyArray *array)
{
    if (array->view.obj)
        PyBuffer_Release(&array->view);
    free(array->copy);
    PyObject *owner = array->owner;
    memset(array, 0, sizeof *array);
    Py_XDECREF(owner);
}

bool
kiln_py_array_make_copy(KilnPyState *state, KilnPyArray *out)
{
    out->copy = aligned_alloc(64, ((size_t)out->bytes + 64) / 64 * 64);
    if (out->copy)
        return true;
    kiln_py_throw(state, KILN_ERROR_MEMORY, "expected %zd bytes for a copy of an array, found none",
                  out->bytes);
    return false;
}

/* --- the buffer protocol --- */

static bool
check_rank(KilnPyState *state, int rank, const char *name)
{
    if (rank <= KILN_PY_RANK)
        return true;
    kiln_py_throw(state, KILN_ERROR_SHAPE, "%s: expected rank 0 to %d, found %d", name,
                  KILN_PY_RANK, rank);
    return false;
}

static bool
is_aligned(const void *data, KilnDType dtype)
{
    return (uintptr_t)data % kiln_dtype_size(dtype) == 0;
}

/* The view is dense, or a copy takes its place. */
static bool
make_dense(KilnPyState *state, const char *name, bool writable, KilnPyArray *out)
{
    Py_buffer *view = &out->view;
    if (PyBuffer_IsContiguous(view, 'C') && is_aligned(view->buf, out->dtype)) {
        out->data = view->buf;
        return true;
    }
    if (writable) {
        kiln_py_throw(state, KILN_ERROR_USAGE,
                      "%s: expected row-major memory aligned to its element, found other strides "
                      "or another alignment",
                      name);
        return false;
    }
    if (!kiln_py_array_make_copy(state, out) ||
        PyBuffer_ToContiguous(out->copy, view, view->len, 'C') < 0)
        return false;
    out->data = out->copy;
    PyBuffer_Release(view);
    return true;
}

/* @as: the element type that the elements stand for; NULL: the format says it. */
static bool
take_view(KilnPyState *state, const char *name, bool writable, const KilnDType *as,
          KilnPyArray *out)
{
    const Py_buffer *view = &out->view;
    if (!check_rank(state, view->ndim, name))
        return false;
    if (as)
        out->dtype = *as;
    else if (!kiln_py_dtype_of_format(view->format, view->itemsize, &out->dtype)) {
        kiln_py_throw(state, KILN_ERROR_TYPE,
                      "%s: expected an element type of ONNX, found the buffer format '%s'", name,
                      view->format ? view->format : "B");
        return false;
    }
    out->rank = view->ndim;
    for (int d = 0; d < view->ndim; d++)
        out->dims[d] = view->shape ? view->shape[d] : view->len / MAX(view->itemsize, 1);
    out->bytes = view->len;
    return make_dense(state, name, writable, out);
}

static bool
get_buffer(PyObject *object, bool writable, KilnPyArray *out)
{
    int flags = PyBUF_STRIDES | PyBUF_FORMAT | (writable ? PyBUF_WRITABLE : 0);
    return PyObject_GetBuffer(object, &out->view, flags) == 0;
}

/* --- dtypes of ml_dtypes --- */

/* The name of object.dtype in *@out, as UTF-8 of the returned object; NULL: it has none. */
static PyObject *
dtype_name(PyObject *object, const char **out)
{
    PyObject *dtype = PyObject_GetAttrString(object, "dtype");
    PyObject *name = dtype ? PyObject_GetAttrString(dtype, "name") : NULL;
    Py_XDECREF(dtype);
    *out = name && PyUnicode_Check(name) ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
    if (!*out) {
        PyErr_Clear();
        Py_CLEAR(name);
    }
    return name;
}

/* An array whose elements have no format: it is read through a view as unsigned integers. */
static bool
take_unnamed(KilnPyState *state, PyObject *object, const char *name, bool writable,
             KilnPyArray *out)
{
    const char *text;
    KilnDType dtype;
    PyObject *found = dtype_name(object, &text);
    bool known = found && kiln_py_dtype_named(text, &dtype) && kiln_py_ml_name(dtype);
    if (!known) {
        kiln_py_throw(state, KILN_ERROR_TYPE,
                      "%s: expected an array in the memory of the processor, found %s %s", name,
                      found ? "the dtype" : "an object without",
                      found ? text : "a buffer that can be used so");
        Py_XDECREF(found);
        return false;
    }
    Py_DECREF(found);
    PyObject *view =
        PyObject_CallMethod(object, "view", "s", kiln_dtype_size(dtype) == 2 ? "u2" : "u1");
    bool good =
        view && get_buffer(view, writable, out) && take_view(state, name, writable, &dtype, out);
    Py_XDECREF(view); /* the buffer keeps it */
    return good;
}

static bool
take_buffer(KilnPyState *state, PyObject *object, const char *name, bool writable, KilnPyArray *out)
{
    if (get_buffer(object, writable, out))
        return take_view(state, name, writable, NULL, out);
    if (!PyErr_ExceptionMatches(PyExc_BufferError) && !PyErr_ExceptionMatches(PyExc_ValueError))
        return false;
    PyErr_Clear();
    if (writable && get_buffer(object, false, out)) {
        PyBuffer_Release(&out->view);
        kiln_py_throw(state, KILN_ERROR_USAGE, "%s: expected writable memory, found read-only",
                      name);
        return false;
    }
    PyErr_Clear();
    return take_unnamed(state, object, name, writable, out);
}

/* --- tensors --- */

static bool
take_tensor(KilnPyState *state, KilnPyTensor *tensor, const char *name, bool writable,
            KilnPyArray *out)
{
    if (writable && tensor->read_only) {
        kiln_py_throw(state, KILN_ERROR_USAGE, "%s: expected writable memory, found read-only",
                      name);
        return false;
    }
    out->data = tensor->data;
    out->dtype = tensor->dtype;
    out->rank = tensor->rank;
    out->bytes = tensor->bytes;
    for (int d = 0; d < tensor->rank; d++)
        out->dims[d] = tensor->dims[d];
    out->owner = Py_NewRef((PyObject *)tensor);
    return true;
}

/* --- all --- */

/* Numbers and lists, by way of NumPy. */
static bool
take_numbers(KilnPyState *state, PyObject *object, const char *name, KilnPyArray *out)
{
    PyObject *array = PyObject_CallFunctionObjArgs(state->asarray, object, NULL);
    bool good = array && take_buffer(state, array, name, false, out);
    Py_XDECREF(array);
    return good;
}

static bool
take_any(KilnPyState *state, PyObject *object, const char *name, bool writable, KilnPyArray *out)
{
    if (Py_TYPE(object) == state->tensor)
        return take_tensor(state, (KilnPyTensor *)object, name, writable, out);
    if (PyObject_CheckBuffer(object))
        return take_buffer(state, object, name, writable, out);
    if (PyObject_HasAttrString(object, "__dlpack__"))
        return kiln_py_dlpack_import(state, object, name, writable, out);
    if (!writable)
        return take_numbers(state, object, name, out);
    kiln_py_throw(state, KILN_ERROR_TYPE, "%s: expected an array, found another object", name);
    return false;
}

bool
kiln_py_array_take(KilnPyState *state, PyObject *object, const char *name, bool writable,
                   KilnPyArray *out)
{
    memset(out, 0, sizeof *out);
    if (take_any(state, object, name, writable, out))
        return true;
    kiln_py_array_release(out);
    return false;
}
