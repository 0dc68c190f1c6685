/* SPDX-License-Identifier: Apache-2.0 */
/* The state of the module, its errors, and helpers of all types. Each object has a pointer to the
 * state, which lives as long as the object's type. */
#ifndef KILN_PYTHON_STATE_H
#define KILN_PYTHON_STATE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "kiln.h"

#include <stdbool.h>

typedef struct {
    PyTypeObject *model, *pipeline, *program, *session, *tensor;
    PyTypeObject *function, *node, *value; /* of passes in Python */
    PyObject *support;                     /* the module kiln_nn._support */
    PyObject *errors[KILN_N_ERRORS];       /* exception classes by code */
    PyObject *asarray;                     /* numpy.asarray */
    unsigned long main_thread;             /* the thread that handles signals */
} KilnPyState;

/** Makes a type whose objects reach @module's state. */
PyTypeObject *kiln_py_add_type(PyObject *module, PyType_Spec *spec);
/** An object of @type, zeroed behind its head. */
void *kiln_py_new(PyTypeObject *type);
/** Frees the memory of @self, whose parts are gone. */
void kiln_py_delete(PyObject *self);
/** tp_new of types that have no constructor. */
PyObject *kiln_py_no_constructor(PyTypeObject *type, PyObject *args, PyObject *kwargs);

/* --- errors --- */

/** Raises @error as the exception of its code and frees it. An exception that a callback raised
 * stays instead. Returns NULL. */
void *kiln_py_raise(KilnPyState *state, GError *error);
/** Raises the exception of @code. Returns NULL. */
void *kiln_py_throw(KilnPyState *state, KilnError code, const char *format, ...)
    G_GNUC_PRINTF(3, 4);

/* --- facts that Kiln states, as objects of kiln_nn._support --- */

/** Calls the function or class @name of kiln_nn._support; "(…)" as Py_BuildValue() has it. */
PyObject *kiln_py_support(KilnPyState *state, const char *name, const char *format, ...);
PyObject *kiln_py_info(KilnPyState *state, const KilnTensorInfo *info);
PyObject *kiln_py_metadata(KilnPyState *state, const KilnMetadata *metadata);
/** (rank, dims) as a tuple; a dim is an int, a name, or None. */
PyObject *kiln_py_shape(const KilnTensorInfo *info);

/* --- bytes --- */

/** The memory of @object, which it keeps alive. NULL: an exception is raised. */
GBytes *kiln_py_gbytes(PyObject *object);
/** @object, which supports the buffer protocol, where its memory is read-only; else `bytes` with a
 * copy of it. */
PyObject *kiln_py_content(PyObject *object);
/** The path that @object (str, bytes or os.PathLike) states, as str and for the file system. */
bool kiln_py_path(PyObject *object, PyObject **out_text, PyObject **out_encoded);

#endif
