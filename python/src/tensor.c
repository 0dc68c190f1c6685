/* SPDX-License-Identifier: Apache-2.0 */
/* The type Tensor. It keeps the memory of a result alive, and gives it to others without a copy. */
#include "graph/kiln-types.h"
#include "kiln.h"
#include "python/src/array.h"

static void
set_shape(KilnPyTensor *tensor, int rank, const int64_t *dims)
{
    Py_ssize_t step = (Py_ssize_t)kiln_dtype_size(tensor->dtype);
    tensor->rank = rank;
    for (int d = rank - 1; d >= 0; d--) {
        tensor->dims[d] = (Py_ssize_t)dims[d];
        tensor->strides[d] = step;
        step *= (Py_ssize_t)dims[d];
    }
    tensor->bytes = step;
}

PyObject *
kiln_py_tensor_new(KilnPyState *state, void *data, const KilnTensorInfo *info)
{
    KilnPyTensor *tensor = kiln_py_new(state->tensor);
    if (!tensor) {
        kiln_session_free_output(data);
        return NULL;
    }
    tensor->state = state;
    tensor->data = data;
    tensor->owns = true;
    tensor->dtype = info->dtype;
    set_shape(tensor, info->rank, info->dims);
    return (PyObject *)tensor;
}

/* Tensor(array, dtype=None): the same memory, perhaps with elements of another type of that size.
 */
static PyObject *
tensor_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "array", "dtype", NULL };
    PyObject *array;
    const char *dtype = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|z:Tensor", names, &array, &dtype))
        return NULL;
    KilnPyTensor *tensor = kiln_py_new(type);
    if (!tensor)
        return NULL;
    tensor->state = PyType_GetModuleState(type);
    KilnDType as;
    bool good = kiln_py_array_take(tensor->state, array, "array", false, &tensor->of);
    if (good && dtype &&
        (!kiln_py_dtype_named(dtype, &as) || as == KILN_DTYPE_string ||
         kiln_dtype_size(as) != kiln_dtype_size(tensor->of.dtype)))
        good = kiln_py_throw(tensor->state, KILN_ERROR_TYPE,
                             "array: expected a dtype of %zu bytes, found '%s'",
                             kiln_dtype_size(tensor->of.dtype), dtype) != NULL;
    if (!good) {
        Py_DECREF(tensor);
        return NULL;
    }
    tensor->data = tensor->of.data;
    tensor->dtype = dtype ? as : tensor->of.dtype;
    tensor->read_only = !tensor->of.copy && (tensor->of.view.obj ? tensor->of.view.readonly : true);
    set_shape(tensor, tensor->of.rank, tensor->of.dims);
    return (PyObject *)tensor;
}

static void
tensor_dealloc(PyObject *self)
{
    KilnPyTensor *tensor = (KilnPyTensor *)self;
    if (tensor->owns)
        kiln_session_free_output(tensor->data);
    kiln_py_array_release(&tensor->of);
    kiln_py_delete(self);
}

static int
tensor_getbuffer(PyObject *self, Py_buffer *view, int flags)
{
    KilnPyTensor *tensor = (KilnPyTensor *)self;
    if ((flags & PyBUF_WRITABLE) && tensor->read_only) {
        view->obj = NULL;
        PyErr_SetString(PyExc_BufferError, "the tensor is read-only");
        return -1;
    }
    bool strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES, shape = flags & PyBUF_ND;
    *view =
        (Py_buffer){ .buf = tensor->data,
                     .obj = Py_NewRef(self),
                     .len = tensor->bytes,
                     .itemsize = (Py_ssize_t)kiln_dtype_size(tensor->dtype),
                     .readonly = tensor->read_only,
                     .ndim = tensor->rank,
                     .format = flags & PyBUF_FORMAT ? (char *)kiln_py_format(tensor->dtype) : NULL,
                     .shape = shape ? tensor->dims : NULL,
                     .strides = strides ? tensor->strides : NULL };
    return 0;
}

/* --- Python --- */

static PyObject *
tensor_dtype(PyObject *self, void *closure)
{
    (void)closure;
    return PyUnicode_FromString(kiln_dtype_name(((KilnPyTensor *)self)->dtype));
}

static PyObject *
tensor_shape(PyObject *self, void *closure)
{
    (void)closure;
    KilnPyTensor *tensor = (KilnPyTensor *)self;
    PyObject *shape = PyTuple_New(tensor->rank);
    for (int d = 0; shape && d < tensor->rank; d++) {
        PyObject *dim = PyLong_FromSsize_t(tensor->dims[d]);
        if (!dim || PyTuple_SetItem(shape, d, dim) < 0)
            Py_CLEAR(shape);
    }
    return shape;
}

static PyObject *
tensor_nbytes(PyObject *self, void *closure)
{
    (void)closure;
    return PyLong_FromSsize_t(((KilnPyTensor *)self)->bytes);
}

static PyObject *
tensor_numpy(PyObject *self, PyObject *unused)
{
    (void)unused;
    KilnPyTensor *tensor = (KilnPyTensor *)self;
    return kiln_py_support(tensor->state, "to_numpy", "(Oz)", self, kiln_py_ml_name(tensor->dtype));
}

static PyObject *
tensor_array(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "dtype", "copy", NULL };
    PyObject *dtype = Py_None, *copy = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OO:__array__", names, &dtype, &copy))
        return NULL;
    KilnPyTensor *tensor = (KilnPyTensor *)self;
    return kiln_py_support(tensor->state, "to_array", "(OzOO)", self,
                           kiln_py_ml_name(tensor->dtype), dtype, copy);
}

static PyObject *
tensor_dlpack(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "stream", "max_version", "dl_device", "copy", NULL };
    PyObject *stream = Py_None, *version = Py_None, *device = Py_None, *copy = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$OOOO:__dlpack__", names, &stream, &version,
                                     &device, &copy))
        return NULL;
    int major = 0, minor = 0, type = 1, id = 0;
    if (version != Py_None && !PyArg_ParseTuple(version, "ii;max_version", &major, &minor))
        return NULL;
    if (device != Py_None && !PyArg_ParseTuple(device, "ii;dl_device", &type, &id))
        return NULL;
    if (stream != Py_None || type != 1 || copy == Py_True) {
        PyErr_SetString(PyExc_BufferError,
                        "expected no stream, the device (1, 0) and no copy, found others");
        return NULL;
    }
    return kiln_py_dlpack_export((KilnPyTensor *)self, major >= 1);
}

static PyObject *
tensor_dlpack_device(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    return Py_BuildValue("(ii)", 1, 0);
}

static PyObject *
tensor_repr(PyObject *self)
{
    PyObject *shape = tensor_shape(self, NULL);
    if (!shape)
        return NULL;
    PyObject *text = PyUnicode_FromFormat("kiln_nn.Tensor(dtype='%s', shape=%R)",
                                          kiln_dtype_name(((KilnPyTensor *)self)->dtype), shape);
    Py_DECREF(shape);
    return text;
}

static PyGetSetDef tensor_getset[] = {
    { "dtype", tensor_dtype, NULL, "Kiln's name of the element type, such as 'bf16'.", NULL },
    { "shape", tensor_shape, NULL, "The dims as a tuple.", NULL },
    { "nbytes", tensor_nbytes, NULL, "The size of the memory in bytes.", NULL },
    { NULL, NULL, NULL, NULL, NULL },
};

static PyMethodDef tensor_methods[] = {
    { "numpy", tensor_numpy, METH_NOARGS,
      "numpy($self)\n--\n\nA NumPy array on the same memory. ml_dtypes must be installed for "
      "element\n"
      "types that NumPy lacks." },
    { "__array__", (PyCFunction)(void (*)(void))tensor_array, METH_VARARGS | METH_KEYWORDS, NULL },
    { "__dlpack__", (PyCFunction)(void (*)(void))tensor_dlpack, METH_VARARGS | METH_KEYWORDS,
      "A capsule of DLPack with the same memory." },
    { "__dlpack_device__", tensor_dlpack_device, METH_NOARGS, NULL },
    { NULL, NULL, 0, NULL },
};

static PyType_Slot slots[] = {
    { Py_tp_doc, "Tensor(array, dtype=None)\n--\n\n"
                 "An array with an element type of ONNX, on the memory of @array.\n\n"
                 "@dtype gives the elements another type of the same size, such as 'bf16' for\n"
                 "an array of uint16. A Tensor supports the buffer protocol and DLPack." },
    { Py_tp_new, tensor_new },
    { Py_tp_dealloc, tensor_dealloc },
    { Py_tp_repr, tensor_repr },
    { Py_tp_getset, tensor_getset },
    { Py_tp_methods, tensor_methods },
    { Py_bf_getbuffer, tensor_getbuffer },
    { 0, NULL },
};

PyType_Spec kiln_py_tensor_spec = {
    .name = "kiln_nn._kiln.Tensor",
    .basicsize = sizeof(KilnPyTensor),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};
