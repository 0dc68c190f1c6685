/* SPDX-License-Identifier: Apache-2.0 */
/* What Kiln calls while it compiles and runs, without the GIL: progress, log, and a look at
 * signals, by which Ctrl-C ends it. */
#include "python/src/objects.h"
#include "python/src/state.h"

#include <time.h>

static const double look_every = 0.05; /* seconds */

static double
now_seconds(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

bool
kiln_py_interrupted(KilnPyState *state, double *next_look)
{
    if (PyThread_get_thread_ident() != state->main_thread)
        return false;
    double now = now_seconds();
    if (now < *next_look)
        return false;
    *next_look = now + look_every;
    PyGILState_STATE held = PyGILState_Ensure();
    bool raised = PyErr_Occurred() || PyErr_CheckSignals() < 0;
    PyGILState_Release(held);
    return raised;
}

/* False: it asks to cancel, or raised. */
static gboolean
call_progress(PyObject *progress, double fraction, const char *what)
{
    PyObject *result = PyObject_CallFunction(progress, "ds", fraction, what);
    gboolean goes_on = result && result != Py_False;
    Py_XDECREF(result);
    return goes_on;
}

gboolean
kiln_py_progress(double fraction, const char *what, void *data)
{
    KilnPyProgram *program = data;
    KilnPyCallbacks *callbacks = &program->callbacks;
    if (kiln_py_interrupted(program->state, &callbacks->next_look))
        return FALSE;
    if (!callbacks->progress)
        return TRUE;
    PyGILState_STATE held = PyGILState_Ensure();
    gboolean goes_on = !PyErr_Occurred() && call_progress(callbacks->progress, fraction, what);
    PyGILState_Release(held);
    return goes_on;
}

void
kiln_py_log(const char *line, void *data)
{
    KilnPyProgram *program = data;
    PyGILState_STATE held = PyGILState_Ensure();
    if (!PyErr_Occurred()) { /* else compiling ends at the next step of progress */
        PyObject *result = PyObject_CallFunction(program->callbacks.log, "s", line);
        Py_XDECREF(result);
    }
    PyGILState_Release(held);
}
