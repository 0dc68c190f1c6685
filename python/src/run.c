/* SPDX-License-Identifier: Apache-2.0 */
/* Session.run(): binds what the caller gives, runs without the GIL, and collects results.
 *
 * Memory of the caller stays borrowed while the run reads or writes it. Results are memory that the
 * session gives away, so later runs do not write it. */
#include "graph/kiln-types.h"
#include "kiln.h"
#include "python/src/array.h"
#include "python/src/session.h"
#include "python/src/state.h"
#include "python/src/values.h"

#include <string.h>

/* The arguments of a call. */
typedef struct {
    PyObject *feeds, *out, *outputs;
} Call;

/* --- arguments --- */

static bool
set_argument(Call *call, PyObject *name, PyObject *value)
{
    static const char *const names[] = { "inputs", "out", "outputs" };
    PyObject **places[] = { &call->feeds, &call->out, &call->outputs };
    for (int i = 0; i < 3; i++) {
        if (PyUnicode_CompareWithASCIIString(name, names[i]))
            continue;
        *places[i] = value == Py_None ? NULL : value;
        return true;
    }
    PyErr_Format(PyExc_TypeError, "run() got an unexpected keyword argument '%U'", name);
    return false;
}

static bool
read_call(PyObject *const *args, Py_ssize_t n, PyObject *keywords, Call *call)
{
    Py_ssize_t n_keywords = keywords ? PyTuple_Size(keywords) : 0;
    if (n > 1) {
        PyErr_Format(PyExc_TypeError, "run() takes 1 positional argument, found %zd", n);
        return false;
    }
    if (n == 1)
        call->feeds = args[0];
    for (Py_ssize_t k = 0; k < n_keywords; k++) {
        if (!set_argument(call, PyTuple_GetItem(keywords, k), args[n + k]))
            return false;
    }
    if ((call->feeds && !PyDict_Check(call->feeds)) || (call->out && !PyDict_Check(call->out))) {
        PyErr_SetString(PyExc_TypeError, "run() expects dicts {name: array} as inputs and out");
        return false;
    }
    return true;
}

/* The input has no value: the dict has none, or has it under another name. */
static bool
throw_missing(KilnPySession *self, unsigned i, PyObject *feeds)
{
    PyObject *text = kiln_py_support(self->state, "missing_input", "(OOO)", self->inputs[i].name,
                                     feeds ? feeds : Py_None, (PyObject *)self->program);
    if (text)
        kiln_py_throw(self->state, KILN_ERROR_USAGE, "%s", PyUnicode_AsUTF8AndSize(text, NULL));
    Py_XDECREF(text);
    return false;
}

/* A name in @given that is none of the session's. */
static bool
throw_unknown(KilnPySession *self, const char *kind, PyObject *given)
{
    PyObject *text = kiln_py_support(self->state, "unknown_name", "(sOO)", kind, given,
                                     (PyObject *)self->program);
    if (text)
        kiln_py_throw(self->state, KILN_ERROR_USAGE, "%s", PyUnicode_AsUTF8AndSize(text, NULL));
    Py_XDECREF(text);
    return false;
}

/* --- inputs --- */

static bool
is_bound(const KilnPyInput *input, const KilnPyArray *array)
{
    return input->data && input->data == array->data && input->rank == array->rank &&
           !input->carried && !input->at_run &&
           !memcmp(input->dims, array->dims, (size_t)array->rank * sizeof *array->dims);
}

static bool
bind_array(KilnPySession *self, unsigned i)
{
    KilnPyInput *input = &self->inputs[i];
    KilnPyArray *array = &input->array;
    GError *error = NULL;
    if (is_bound(input, array))
        return true;
    input->data = NULL;
    if (!kiln_session_bind_input_shaped(self->session, i, array->data, array->rank, array->dims,
                                        &error))
        return kiln_py_raise(self->state, error) != NULL;
    input->was_bound = true;
    input->data = array->data;
    input->rank = array->rank;
    memcpy(input->dims, array->dims, sizeof input->dims);
    return true;
}

static bool
bind_item(KilnPySession *self, unsigned i, PyObject *given, const KilnTensorInfo *info)
{
    GError *error = NULL;
    g_autoptr(KilnItem) item = kiln_py_take_item(self->state, given, info);
    if (!item)
        return false;
    if (!kiln_session_bind_input_item(self->session, i, item, &error))
        return kiln_py_raise(self->state, error) != NULL;
    self->inputs[i].was_bound = true;
    return true;
}

/* The input keeps the value that it has: a constant, or what the last run left. */
static bool
keeps_value(const KilnPyInput *input, PyObject *given)
{
    if (input->at_run && input->constant)
        return !given || given == input->constant;
    return !given && input->carried && input->has_value;
}

static bool
bind_input(KilnPySession *self, unsigned i, PyObject *given, PyObject *feeds)
{
    KilnPyInput *input = &self->inputs[i];
    const KilnTensorInfo *info = kiln_program_input(self->program->program, i);
    if (keeps_value(input, given))
        return true;
    if (!given)
        return throw_missing(self, i, feeds);
    kiln_py_array_release(&input->array);
    Py_CLEAR(input->constant);
    Py_INCREF(given); /* the dict may change while its array is asked */
    bool good = info->contents ? bind_item(self, i, given, info)
                               : kiln_py_take_value(self->state, given, info, &input->array) &&
                                     bind_array(self, i);
    input->rebound = good && input->carried;
    if (good && input->at_run)
        input->constant = Py_NewRef(given);
    Py_DECREF(given);
    return good;
}

static bool
bind_inputs(KilnPySession *self, PyObject *feeds)
{
    Py_ssize_t used = 0;
    for (unsigned i = 0; i < self->n_inputs; i++) {
        PyObject *given = feeds ? PyDict_GetItemWithError(feeds, self->inputs[i].name) : NULL;
        used += given != NULL;
        if (PyErr_Occurred())
            return false;
        /* It may be known since the program was compiled. Else the run says that it is not bound.
         */
        if (!given && !self->inputs[i].was_bound)
            continue;
        if (!bind_input(self, i, given, feeds))
            return false;
    }
    return !feeds || used == PyDict_Size(feeds) || throw_unknown(self, "input", feeds);
}

/* --- outputs --- */

/* A carried output is read by the next run, when the memory of the caller may be gone: it stays in
 * the session's, and is copied after the run. */
static bool
bind_output(KilnPySession *self, unsigned i, PyObject *given)
{
    KilnPyOutput *output = &self->outputs[i];
    KilnPyArray *array = &output->array;
    const KilnTensorInfo *info = kiln_program_output(self->program->program, i);
    bool binds = given && !output->carried;
    GError *error = NULL;
    output->given = Py_XNewRef(given);
    if (given && !kiln_py_take_out(self->state, given, info, array))
        return false;
    void *data = binds ? array->data : NULL;
    if (data == output->data && (!data || output->bytes == array->bytes))
        return true;
    if (!kiln_session_bind_output(self->session, i, data, binds ? (size_t)array->bytes : 0, &error))
        return kiln_py_raise(self->state, error) != NULL;
    output->data = data;
    output->bytes = array->bytes;
    return true;
}

static bool
bind_outputs(KilnPySession *self, PyObject *out)
{
    Py_ssize_t used = 0;
    for (unsigned i = 0; i < self->n_outputs; i++) {
        PyObject *given = out ? PyDict_GetItemWithError(out, self->outputs[i].name) : NULL;
        if (given == Py_None)
            given = NULL, used++;
        used += given != NULL;
        if (PyErr_Occurred() || !bind_output(self, i, given))
            return false;
    }
    return !out || used == PyDict_Size(out) || throw_unknown(self, "output", out);
}

/* --- running --- */

static bool
run(KilnPySession *self)
{
    GError *error = NULL;
    g_atomic_int_set(&self->cancel, 0);
    PyThreadState *thread = PyEval_SaveThread();
    gboolean good = kiln_session_run(self->session, &error);
    PyEval_RestoreThread(thread);
    if (!good || PyErr_Occurred())
        return kiln_py_raise(self->state, error) != NULL;
    for (unsigned i = 0; i < self->n_inputs; i++)
        self->inputs[i].has_value = self->inputs[i].carried;
    return true;
}

/* Results in the caller's memory must have the shape of the array there. */
static bool
finish_written(KilnPySession *self, unsigned i)
{
    const KilnPyArray *array = &self->outputs[i].array;
    KilnTensorInfo info = KILN_TENSOR_INFO_INIT;
    GError *error = NULL;
    const void *data = kiln_session_output(self->session, i, &info, &error);
    if (!data)
        return kiln_py_raise(self->state, error) != NULL;
    bool same = info.rank == array->rank;
    for (int d = 0; same && d < info.rank; d++)
        same = info.dims[d] == array->dims[d];
    if (!same) {
        kiln_py_throw(self->state, KILN_ERROR_SHAPE,
                      "output %s: expected an array with the shape of the result, found another "
                      "shape of %zd bytes",
                      info.name, array->bytes);
        return false;
    }
    if (data != array->data && array->bytes) /* it is carried */
        memcpy(array->data, data, (size_t)array->bytes);
    return true;
}

/* True where the caller wants output @i: all of them, or those that it names. */
static int
is_wanted(KilnPySession *self, const Call *call, unsigned i)
{
    return call->outputs ? PySequence_Contains(call->outputs, self->outputs[i].name) : 1;
}

static bool
collect_one(KilnPySession *self, unsigned i, PyObject *results)
{
    KilnPyOutput *output = &self->outputs[i];
    PyObject *value = NULL;
    if (!output->given)
        value = kiln_py_make_value(self->state, self->session, i, output->dtype);
    else if (finish_written(self, i))
        value = Py_NewRef(output->given);
    bool good = value && PyDict_SetItem(results, output->name, value) == 0;
    Py_XDECREF(value);
    return good;
}

static PyObject *
collect(KilnPySession *self, const Call *call)
{
    PyObject *results = PyDict_New();
    for (unsigned i = 0; results && i < self->n_outputs; i++) {
        int wanted = self->outputs[i].given ? 1 : is_wanted(self, call, i);
        if (wanted < 0 || (wanted && !collect_one(self, i, results)))
            Py_CLEAR(results);
    }
    return results;
}

/* What the next run does not need. A value that was bound in vain must be bound again. */
static void
give_back(KilnPySession *self, bool ran)
{
    for (unsigned i = 0; i < self->n_inputs; i++) {
        KilnPyInput *input = &self->inputs[i];
        if (!input->at_run)
            kiln_py_array_release(&input->array);
        if (!ran && input->rebound)
            input->has_value = false;
        input->rebound = false;
    }
    for (unsigned i = 0; i < self->n_outputs; i++) {
        kiln_py_array_release(&self->outputs[i].array);
        Py_CLEAR(self->outputs[i].given);
    }
}

/* Names in `outputs` that no output has. */
static bool
check_wanted(KilnPySession *self, const Call *call)
{
    if (!call->outputs)
        return true;
    Py_ssize_t wanted = PySequence_Size(call->outputs), found = 0;
    for (unsigned i = 0; wanted >= 0 && i < self->n_outputs; i++) {
        int is = is_wanted(self, call, i);
        if (is < 0)
            return false;
        found += is;
    }
    if (wanted < 0)
        return false;
    return found == wanted || throw_unknown(self, "output", call->outputs);
}

PyObject *
kiln_py_session_run(PyObject *object, PyObject *const *args, Py_ssize_t n, PyObject *keywords)
{
    KilnPySession *self = (KilnPySession *)object;
    Call call = { NULL, NULL, NULL };
    if (!read_call(args, n, keywords, &call) || !kiln_py_session_enter(self))
        return NULL;
    PyObject *results = NULL;
    bool bound =
        check_wanted(self, &call) && bind_inputs(self, call.feeds) && bind_outputs(self, call.out);
    bool ran = bound && run(self);
    if (ran)
        results = collect(self, &call);
    give_back(self, ran);
    kiln_py_session_leave(self);
    return results;
}
