/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers of all types: making objects, raising errors, facts and bytes. */
#include "python/src/state.h"

#include <string.h>

PyTypeObject *
kiln_py_add_type(PyObject *module, PyType_Spec *spec)
{
    PyObject *type = PyType_FromModuleAndSpec(module, spec, NULL);
    const char *name = strrchr(spec->name, '.') + 1;
    if (type && PyModule_AddObjectRef(module, name, type) < 0)
        Py_CLEAR(type);
    return (PyTypeObject *)type;
}

void *
kiln_py_new(PyTypeObject *type)
{
    return PyType_GenericAlloc(type, 0);
}

void
kiln_py_delete(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    freefunc free_self = (freefunc)PyType_GetSlot(type, Py_tp_free);
    free_self(self);
    Py_DECREF(type);
}

PyObject *
kiln_py_no_constructor(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    (void)args, (void)kwargs;
    PyErr_Format(PyExc_TypeError, "%R has no constructor: see kiln_nn.load()", type);
    return NULL;
}

/* --- errors --- */

static void *
raise_text(KilnPyState *state, int code, const char *text)
{
    PyObject *message = PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
    if (message)
        PyErr_SetObject(state->errors[code], message);
    Py_XDECREF(message);
    return NULL;
}

void *
kiln_py_raise(KilnPyState *state, GError *error)
{
    bool known = error && error->domain == KILN_ERROR && error->code < KILN_N_ERRORS;
    if (!PyErr_Occurred())
        raise_text(state, known ? error->code : KILN_ERROR_RUN, error ? error->message : "?");
    g_clear_error(&error);
    return NULL;
}

void *
kiln_py_throw(KilnPyState *state, KilnError code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_autofree char *text = g_strdup_vprintf(format, args);
    va_end(args);
    return raise_text(state, (int)code, text);
}

/* --- facts --- */

PyObject *
kiln_py_support(KilnPyState *state, const char *name, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    PyObject *function = PyObject_GetAttrString(state->support, name);
    PyObject *args = function ? Py_VaBuildValue(format, values) : NULL;
    va_end(values);
    PyObject *result = args ? PyObject_Call(function, args, NULL) : NULL;
    Py_XDECREF(args);
    Py_XDECREF(function);
    return result;
}

PyObject *
kiln_py_shape(const KilnTensorInfo *info)
{
    if (info->rank < 0)
        Py_RETURN_NONE;
    PyObject *shape = PyTuple_New(info->rank);
    for (int d = 0; shape && d < info->rank; d++) {
        const char *name = info->dim_names ? info->dim_names[d] : NULL;
        PyObject *dim = info->dims[d] >= 0 ? PyLong_FromLongLong(info->dims[d])
                        : name             ? PyUnicode_FromString(name)
                                           : Py_NewRef(Py_None);
        if (!dim || PyTuple_SetItem(shape, d, dim) < 0)
            Py_CLEAR(shape);
    }
    return shape;
}

PyObject *
kiln_py_info(KilnPyState *state, const KilnTensorInfo *info)
{
    PyObject *shape = kiln_py_shape(info);
    if (!shape)
        return NULL;
    return kiln_py_support(state, "TensorInfo", "(ssN)", info->name,
                           info->contents ? info->contents : kiln_dtype_name(info->dtype), shape);
}

static PyObject *
opsets_of(const KilnMetadata *metadata)
{
    PyObject *opsets = PyDict_New();
    for (unsigned i = 0; opsets && i < metadata->n_opsets; i++) {
        PyObject *version = PyLong_FromLongLong(metadata->opsets[i].version);
        if (!version || PyDict_SetItemString(opsets, metadata->opsets[i].domain, version) < 0)
            Py_CLEAR(opsets);
        Py_XDECREF(version);
    }
    return opsets;
}

static PyObject *
properties_of(const KilnMetadata *metadata)
{
    PyObject *properties = PyDict_New();
    for (unsigned i = 0; properties && i < metadata->n_properties; i++) {
        PyObject *value = PyUnicode_FromString(metadata->properties[i].value);
        if (!value || PyDict_SetItemString(properties, metadata->properties[i].key, value) < 0)
            Py_CLEAR(properties);
        Py_XDECREF(value);
    }
    return properties;
}

PyObject *
kiln_py_metadata(KilnPyState *state, const KilnMetadata *metadata)
{
    PyObject *opsets = opsets_of(metadata), *properties = opsets ? properties_of(metadata) : NULL;
    if (!properties) {
        Py_XDECREF(opsets);
        return NULL;
    }
    return kiln_py_support(state, "Metadata", "(sssssLLNN)", metadata->graph_name,
                           metadata->producer_name, metadata->producer_version, metadata->domain,
                           metadata->doc_string, (long long)metadata->ir_version,
                           (long long)metadata->model_version, opsets, properties);
}

/* --- bytes --- */

/* The last reference may go on any thread. */
static void
drop_view(void *data)
{
    Py_buffer *view = data;
    if (Py_IsInitialized()) {
        PyGILState_STATE held = PyGILState_Ensure();
        PyBuffer_Release(view);
        PyGILState_Release(held);
    }
    g_free(view);
}

GBytes *
kiln_py_gbytes(PyObject *object)
{
    Py_buffer *view = g_new0(Py_buffer, 1);
    if (PyObject_GetBuffer(object, view, PyBUF_SIMPLE) < 0) {
        g_free(view);
        return NULL;
    }
    return g_bytes_new_with_free_func(view->buf, (gsize)view->len, drop_view, view);
}

/* Whether @object is one block of memory that cannot be written through it. */
static bool
is_read_only(PyObject *object)
{
    Py_buffer view;
    if (PyObject_GetBuffer(object, &view, PyBUF_SIMPLE) < 0) {
        PyErr_Clear();
        return false;
    }
    bool read_only = view.readonly;
    PyBuffer_Release(&view);
    return read_only;
}

PyObject *
kiln_py_content(PyObject *object)
{
    return is_read_only(object) ? Py_NewRef(object) : PyBytes_FromObject(object);
}

bool
kiln_py_path(PyObject *object, PyObject **out_text, PyObject **out_encoded)
{
    *out_encoded = NULL;
    *out_text = NULL;
    if (!PyUnicode_FSConverter(object, out_encoded))
        return false;
    *out_text = PyUnicode_DecodeFSDefault(PyBytes_AsString(*out_encoded));
    if (!*out_text)
        Py_CLEAR(*out_encoded);
    return *out_text != NULL;
}
