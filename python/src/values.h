/* SPDX-License-Identifier: Apache-2.0 */
/* The one place where Python's values become what Kiln binds, and results become Python's values.
 */
#ifndef KILN_PYTHON_VALUES_H
#define KILN_PYTHON_VALUES_H

#include "graph/kiln-items.h"
#include "graph/kiln-types.h"
#include "kiln.h"
#include "python/src/array.h"
#include "python/src/state.h"

/** Takes the value of an input, whose element type must be that of @info. An exception
 * names it. */
bool kiln_py_take_value(KilnPyState *state, PyObject *object, const KilnTensorInfo *info,
                        KilnPyArray *out);
/** Takes the memory that an output is written to: writable, and of the type in @info. */
bool kiln_py_take_out(KilnPyState *state, PyObject *object, const KilnTensorInfo *info,
                      KilnPyArray *out);
/** The value of output @i, of @dtype, after a run, which owns its memory: an array of NumPy, or a
 * Tensor where NumPy and ml_dtypes lack the element type; for other kinds, as in
 * kiln_py_make_item(). */
PyObject *kiln_py_make_value(KilnPyState *state, KilnSession *session, unsigned i, KilnDType dtype);
/** An array of str objects. @data are addresses of texts, as many as @info has bytes for. */
PyObject *kiln_py_make_texts(KilnPyState *state, const void *data, const KilnTensorInfo *info);

/* --- sequences, optionals and maps (items.c) --- */

/** Copies the value of an input of such a type: a list, None or a value, or a dict. */
KilnItem *kiln_py_take_item(KilnPyState *state, PyObject *object, const KilnTensorInfo *info);
/** The same, of what a run wrote. */
PyObject *kiln_py_make_item(KilnPyState *state, const KilnItem *item);

#endif
