/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of other libraries' arrays, read in place; and tensors, which own the memory of results.
 * values.h says what becomes what. */
#ifndef KILN_PYTHON_ARRAY_H
#define KILN_PYTHON_ARRAY_H

#include "graph/kiln-types.h"
#include "kiln.h"
#include "python/src/state.h"

enum {
    KILN_PY_RANK = 8
};

/** An array that is borrowed: row-major, aligned to its element. Zeroed: nothing. */
typedef struct {
    void *data;
    KilnDType dtype;
    int rank;
    int64_t dims[KILN_PY_RANK];
    Py_ssize_t bytes;
    Py_buffer view; /* view.obj NULL: there is none */
    PyObject *owner;
    void *copy; /* memory of its own */
} KilnPyArray;

/** Reads @object: a tensor, what has the buffer protocol, DLPack, or a dtype of ml_dtypes. Strided
 * memory is copied, if @writable is not set. False: an exception is raised, which calls it @name.
 */
bool kiln_py_array_take(KilnPyState *state, PyObject *object, const char *name, bool writable,
                        KilnPyArray *out);
/** Memory for a row-major copy of @out, which has its type and its bytes. */
bool kiln_py_array_make_copy(KilnPyState *state, KilnPyArray *out);
/** Gives back what the array borrows. Needs the GIL. */
void kiln_py_array_release(KilnPyArray *array);

/* --- element types (dtypes.c) --- */

/** The type of an element of the buffer protocol; false where Kiln has none. */
bool kiln_py_dtype_of_format(const char *format, Py_ssize_t itemsize, KilnDType *out);
/** The format that stands for it, such as "f"; unsigned integers where there is none. */
const char *kiln_py_format(KilnDType dtype);
/** By Kiln's name ("f32", "bf16"), NumPy's ("float32") or ml_dtypes' ("bfloat16"). */
bool kiln_py_dtype_named(const char *name, KilnDType *out);
/** Its name in ml_dtypes; NULL for the types of NumPy itself. */
const char *kiln_py_ml_name(KilnDType dtype);
/** DLPack's code and bits; false where it has none. */
bool kiln_py_dlpack_of(KilnDType dtype, uint8_t *out_code, uint8_t *out_bits);
bool kiln_py_dtype_of_dlpack(uint8_t code, uint8_t bits, uint16_t lanes, KilnDType *out);

/* --- tensors (tensor.c) --- */

/** The type Tensor: memory with an element type and a shape, for the buffer protocol and DLPack. */
typedef struct {
    PyObject_HEAD KilnPyState *state;
    void *data;
    bool owns; /* @data is of kiln_session_take_output() */
    bool read_only;
    KilnPyArray of; /* that it wraps; else nothing */
    KilnDType dtype;
    int rank;
    Py_ssize_t dims[KILN_PY_RANK], strides[KILN_PY_RANK]; /* in bytes */
    Py_ssize_t bytes;
} KilnPyTensor;

extern PyType_Spec kiln_py_tensor_spec;
/** Takes over @data, of kiln_session_take_output(), also where it fails. */
PyObject *kiln_py_tensor_new(KilnPyState *state, void *data, const KilnTensorInfo *info);

/* --- DLPack (dlpack.c) --- */

PyObject *kiln_py_dlpack_export(KilnPyTensor *tensor, bool versioned);
/** Reads an object with __dlpack__(). */
bool kiln_py_dlpack_import(KilnPyState *state, PyObject *object, const char *name, bool writable,
                           KilnPyArray *out);

#endif
