/* SPDX-License-Identifier: Apache-2.0 */
/* The one place where Python's values become what Kiln binds, and results become Python's values.
 * Another kind of value, such as a sequence, gets its case here. */
#ifndef KILN_PYTHON_VALUES_H
#define KILN_PYTHON_VALUES_H

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
 * Tensor where NumPy and ml_dtypes lack the element type. */
PyObject *kiln_py_make_value(KilnPyState *state, KilnSession *session, unsigned i, KilnDType dtype);

#endif
