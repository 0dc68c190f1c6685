/* SPDX-License-Identifier: Apache-2.0 */
/* The type Session: session.c makes it, and run.c runs it. */
#ifndef KILN_PYTHON_SESSION_H
#define KILN_PYTHON_SESSION_H

#include "graph/kiln-types.h"
#include "kiln.h"
#include "python/src/array.h"
#include "python/src/objects.h"
#include "python/src/state.h"

/** An input: what is bound, and what must stay where it is. */
typedef struct {
    PyObject *name;
    KilnPyArray array;  /* of the run under way; of all runs where it is a constant */
    PyObject *constant; /* the object that a constant was bound to */
    const void *data;   /* bound last; NULL: nothing, or it must be bound again */
    int rank;
    int64_t dims[KILN_PY_RANK];
    bool was_bound; /* once: the session has an address, which may be of memory that is gone */
    bool at_run;    /* a constant that comes with the first run */
    bool carried;   /* from the run before */
    bool has_value; /* carried: a run has made one */
    bool rebound;   /* carried: the run under way begins with a value of the caller */
} KilnPyInput;

typedef struct {
    PyObject *name;
    KilnDType dtype;
    KilnPyArray array; /* of the run under way; of the next one, too, where it is carried */
    PyObject *given;   /* borrowed: what the caller wants it to be written to */
    void *data;        /* bound; NULL: the session's own memory */
    Py_ssize_t bytes;  /* of it */
    bool carried;
} KilnPyOutput;

typedef struct {
    PyObject_HEAD KilnPyState *state;
    KilnPyProgram *program;
    PyObject *origin; /* keyword arguments, as a dict */
    KilnSession *session;
    KilnPyInput *inputs;
    KilnPyOutput *outputs;
    unsigned n_inputs, n_outputs;
    bool busy;           /* a thread runs it or changes it */
    volatile int cancel; /* cancel() sets it */
    double next_look;    /* at signals */
} KilnPySession;

/** Enters @self for one thread; false, and an exception, where another thread is inside. */
bool kiln_py_session_enter(KilnPySession *self);
void kiln_py_session_leave(KilnPySession *self);

/** run(inputs, *, out=None, outputs=None). */
PyObject *kiln_py_session_run(PyObject *self, PyObject *const *args, Py_ssize_t n,
                              PyObject *keywords);

#endif
