/* SPDX-License-Identifier: Apache-2.0 */
/* The types that stand for Kiln's objects. Each holds what it was made from. */
#ifndef KILN_PYTHON_OBJECTS_H
#define KILN_PYTHON_OBJECTS_H

#include "kiln.h"
#include "python/src/state.h"
#include "runtime/kiln-shapes.h"

typedef struct {
    PyObject_HEAD KilnPyState *state;
    KilnModel *model;
    PyObject *origin; /* arguments of restore_model() */
} KilnPyModel;

typedef struct {
    PyObject_HEAD KilnPyState *state;
    KilnPipeline *pipeline;
    PyObject *steps;  /* list: calls that made it, for restore_pipeline() */
    PyObject *passes; /* list: capsules of the passes that it registered */
} KilnPyPipeline;

/** What compiling calls back. It lives as long as its program. */
typedef struct {
    PyObject *progress, *log; /* NULL: none */
    double next_look;         /* at signals */
} KilnPyCallbacks;

typedef struct {
    PyObject_HEAD KilnPyState *state;
    KilnProgram *program;
    PyObject *origin; /* arguments of restore_program() */
    PyObject *pipeline;
    KilnPyCallbacks callbacks;
    bool *at_run; /* per input: a constant that comes with the first run */
} KilnPyProgram;

extern PyType_Spec kiln_py_model_spec, kiln_py_pipeline_spec, kiln_py_program_spec,
    kiln_py_session_spec;

/* --- making (module.c and methods call these) --- */

PyObject *kiln_py_load(KilnPyState *state, PyObject *args, PyObject *kwargs);
PyObject *kiln_py_load_program(KilnPyState *state, PyObject *args, PyObject *kwargs);
PyObject *kiln_py_load_plugin(KilnPyState *state, PyObject *path);
PyObject *kiln_py_compile(KilnPyModel *model, PyObject *args, PyObject *kwargs);
PyObject *kiln_py_new_session(KilnPyProgram *program, PyObject *args, PyObject *kwargs);

/** The pipeline that @object names or is. A new reference in *@out_object where it is one. */
KilnPipeline *kiln_py_pipeline_of(KilnPyState *state, PyObject *object, PyObject **out_object);

/** {input: dims} as shapes, which g_free() frees; @map NULL or None: none. Names are those of @map.
 */
bool kiln_py_read_shapes(KilnPyState *state, PyObject *map, KilnShape **out, unsigned *out_n);

/* --- callbacks (callbacks.c) --- */

/** Looks for signals, at most every 50 ms; true where a handler raised. Needs the GIL only then. */
bool kiln_py_interrupted(KilnPyState *state, double *next_look);
/** KilnCompileOptions.progress and .log; @data is the KilnPyProgram. */
gboolean kiln_py_progress(double fraction, const char *what, void *data);
void kiln_py_log(const char *line, void *data);

#endif
