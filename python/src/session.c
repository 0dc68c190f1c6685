/* SPDX-License-Identifier: Apache-2.0 */
/* The type Session: making, carried values, profiles. One thread at a time is inside. */
#include "python/src/session.h"
#include "graph/kiln-types.h"
#include "kiln.h"
#include "python/src/array.h"
#include "python/src/state.h"
#include "runtime/kiln-carry.h"

bool
kiln_py_session_enter(KilnPySession *self)
{
    if (self->busy) {
        kiln_py_throw(self->state, KILN_ERROR_USAGE,
                      "expected a session of its own for each thread, found one that another "
                      "thread runs");
        return false;
    }
    self->busy = true;
    return true;
}

void
kiln_py_session_leave(KilnPySession *self)
{
    self->busy = false;
}

/* --- making --- */

/* Asked between two instructions, without the GIL. */
static gboolean
poll(void *data)
{
    KilnPySession *self = data;
    return kiln_py_interrupted(self->state, &self->next_look);
}

static bool
make_slots(KilnPySession *self)
{
    const KilnProgram *program = self->program->program;
    self->n_inputs = kiln_program_n_inputs(program);
    self->n_outputs = kiln_program_n_outputs(program);
    self->inputs = g_new0(KilnPyInput, self->n_inputs + 1);
    self->outputs = g_new0(KilnPyOutput, self->n_outputs + 1);
    for (unsigned i = 0; i < self->n_inputs; i++) {
        self->inputs[i].name = PyUnicode_InternFromString(kiln_program_input(program, i)->name);
        self->inputs[i].at_run = self->program->at_run[i];
        if (!self->inputs[i].name)
            return false;
    }
    for (unsigned i = 0; i < self->n_outputs; i++) {
        const KilnTensorInfo *info = kiln_program_output(program, i);
        self->outputs[i].name = PyUnicode_InternFromString(info->name);
        self->outputs[i].dtype = info->dtype;
        if (!self->outputs[i].name)
            return false;
    }
    return true;
}

static KilnPySession *
new_object(KilnPyProgram *program)
{
    KilnPySession *self = kiln_py_new(program->state->session);
    if (!self)
        return NULL;
    self->state = program->state;
    self->program = (KilnPyProgram *)Py_NewRef((PyObject *)program);
    if (!make_slots(self))
        Py_CLEAR(self);
    return self;
}

static bool
read_options(PyObject *args, PyObject *kwargs, KilnSessionOptions *options)
{
    static char *names[] = {
        "threads", "profile", "poison", "time_limit", "seed", "untrusted", NULL
    };
    PyObject *seed = Py_None;
    int profile = 0, poison = 0, untrusted = 0;
    long long ms = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$ippLOp:session", names, &options->threads,
                                     &profile, &poison, &ms, &seed, &untrusted))
        return false;
    if (untrusted)
        kiln_session_options_untrusted(options);
    options->profile = profile;
    options->poison = poison;
    if (ms)
        options->time_limit = ms;
    options->seeded = seed != Py_None;
    if (options->seeded)
        options->seed = PyLong_AsUnsignedLongLongMask(seed);
    return !PyErr_Occurred();
}

PyObject *
kiln_py_new_session(KilnPyProgram *program, PyObject *args, PyObject *kwargs)
{
    KilnSessionOptions options = KILN_SESSION_OPTIONS_INIT;
    if (!read_options(args, kwargs, &options))
        return NULL;
    KilnPySession *self = new_object(program);
    if (!self)
        return NULL;
    options.cancel = &self->cancel;
    options.poll = poll;
    options.poll_data = self;
    self->origin = kwargs ? PyDict_Copy(kwargs) : PyDict_New();
    GError *error = NULL;
    self->session = self->origin ? kiln_session_new(program->program, &options, &error) : NULL;
    if (self->session)
        return (PyObject *)self;
    kiln_py_raise(program->state, error);
    Py_DECREF(self);
    return NULL;
}

/* --- life --- */

static int
session_traverse(PyObject *object, visitproc visit, void *arg)
{
    KilnPySession *self = (KilnPySession *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->program);
    Py_VISIT(self->origin);
    return 0;
}

static void
session_dealloc(PyObject *object)
{
    KilnPySession *self = (KilnPySession *)object;
    PyObject_GC_UnTrack(object);
    kiln_session_free(self->session);
    for (unsigned i = 0; i < self->n_inputs; i++) {
        kiln_py_array_release(&self->inputs[i].array);
        Py_XDECREF(self->inputs[i].constant);
        Py_XDECREF(self->inputs[i].name);
    }
    for (unsigned i = 0; i < self->n_outputs; i++) {
        kiln_py_array_release(&self->outputs[i].array);
        Py_XDECREF(self->outputs[i].name);
    }
    g_free(self->inputs);
    g_free(self->outputs);
    Py_XDECREF(self->origin);
    Py_XDECREF((PyObject *)self->program);
    kiln_py_delete(object);
}

/* --- carried values --- */

static int
find(KilnPySession *self, const char *kind, int at, const char *name)
{
    if (at < 0)
        kiln_py_throw(self->state, KILN_ERROR_USAGE, "%s %s: the program has none of that name",
                      kind, name);
    return at;
}

static bool
carry(KilnPySession *self, const char *from, const char *to)
{
    const KilnProgram *program = self->program->program;
    int output = find(self, "output", kiln_program_find_output(program, from), from);
    int input = output < 0 ? -1 : find(self, "input", kiln_program_find_input(program, to), to);
    GError *error = NULL;
    if (input < 0)
        return false;
    if (!kiln_session_carry(self->session, (unsigned)output, (unsigned)input, &error))
        return kiln_py_raise(self->state, error) != NULL;
    self->inputs[input].carried = self->outputs[output].carried = true;
    return true;
}

static PyObject *
session_carry(PyObject *object, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "output", "input", NULL };
    KilnPySession *self = (KilnPySession *)object;
    const char *output, *input;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "ss:carry", names, &output, &input) ||
        !kiln_py_session_enter(self))
        return NULL;
    bool good = carry(self, output, input);
    kiln_py_session_leave(self);
    return good ? Py_NewRef(Py_None) : NULL;
}

static PyObject *
session_truncate(PyObject *object, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "input", "extent", NULL };
    KilnPySession *self = (KilnPySession *)object;
    const char *name;
    long long extent;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "sL:truncate", names, &name, &extent) ||
        !kiln_py_session_enter(self))
        return NULL;
    GError *error = NULL;
    int input = find(self, "input", kiln_program_find_input(self->program->program, name), name);
    bool good = input >= 0 && kiln_session_truncate(self->session, (unsigned)input, extent, &error);
    kiln_py_session_leave(self);
    return good ? Py_NewRef(Py_None) : kiln_py_raise(self->state, error);
}

static PyObject *
session_reset(PyObject *object, PyObject *unused)
{
    (void)unused;
    KilnPySession *self = (KilnPySession *)object;
    if (!kiln_py_session_enter(self))
        return NULL;
    kiln_session_reset(self->session);
    for (unsigned i = 0; i < self->n_inputs; i++)
        self->inputs[i].has_value = false;
    kiln_py_session_leave(self);
    Py_RETURN_NONE;
}

/* Memory that the caller gave is bound anew by the next run of @to. */
static void
copy_slots(const KilnPySession *from, KilnPySession *to)
{
    for (unsigned i = 0; i < from->n_inputs; i++) {
        to->inputs[i].carried = from->inputs[i].carried;
        to->inputs[i].has_value = from->inputs[i].has_value;
        to->inputs[i].was_bound = from->inputs[i].was_bound;
    }
    for (unsigned i = 0; i < from->n_outputs; i++)
        to->outputs[i].carried = from->outputs[i].carried;
}

static PyObject *
session_clone(PyObject *object, PyObject *unused)
{
    (void)unused;
    KilnPySession *self = (KilnPySession *)object;
    if (!kiln_py_session_enter(self))
        return NULL;
    KilnPySession *clone = new_object(self->program);
    GError *error = NULL;
    if (clone) {
        KilnSessionOptions asks = KILN_SESSION_OPTIONS_INIT;
        asks.cancel = &clone->cancel;
        asks.poll = poll;
        asks.poll_data = clone;
        clone->origin = Py_NewRef(self->origin);
        clone->session = kiln_session_clone_with(self->session, &asks, &error);
        copy_slots(self, clone);
        if (!clone->session) {
            kiln_py_raise(self->state, error);
            Py_CLEAR(clone);
        }
    }
    kiln_py_session_leave(self);
    return (PyObject *)clone;
}

/* --- others --- */

static PyObject *
session_cancel(PyObject *object, PyObject *unused)
{
    (void)unused;
    g_atomic_int_set(&((KilnPySession *)object)->cancel, 1);
    Py_RETURN_NONE;
}

static PyObject *
list_profile(KilnPySession *self)
{
    unsigned n = 0;
    const KilnProfileEntry *const *entries = kiln_session_profile(self->session, &n);
    PyObject *list = PyList_New(0);
    for (unsigned i = 0; list && i < n; i++) {
        const KilnProfileEntry *entry = entries[i];
        PyObject *row = kiln_py_support(
            self->state, "ProfileEntry", "(sssLLKdL)", entry->instruction, entry->node,
            entry->kernel, (long long)entry->flops, (long long)entry->bytes,
            (unsigned long long)entry->runs, entry->ms, (long long)entry->live_bytes);
        if (!row || PyList_Append(list, row) < 0)
            Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}

static PyObject *
session_profile(PyObject *object, PyObject *unused)
{
    (void)unused;
    KilnPySession *self = (KilnPySession *)object;
    if (!kiln_py_session_enter(self))
        return NULL;
    PyObject *list = list_profile(self);
    kiln_py_session_leave(self);
    return list;
}

static PyObject *
session_program(PyObject *object, void *closure)
{
    (void)closure;
    return Py_NewRef((PyObject *)((KilnPySession *)object)->program);
}

static PyObject *
session_reduce(PyObject *object, PyObject *unused)
{
    (void)unused;
    KilnPySession *self = (KilnPySession *)object;
    return Py_BuildValue("(N(OO))", PyObject_GetAttrString(self->state->support, "restore_session"),
                         (PyObject *)self->program, self->origin);
}

static PyObject *
session_repr(PyObject *object)
{
    return kiln_py_support(((KilnPySession *)object)->state, "described", "(sO)", "Session",
                           (PyObject *)((KilnPySession *)object)->program);
}

static PyGetSetDef session_getset[] = {
    { "program", session_program, NULL, "The Program that it runs.", NULL },
    { NULL, NULL, NULL, NULL, NULL },
};

static PyMethodDef session_methods[] = {
    { "run", (PyCFunction)(void (*)(void))kiln_py_session_run, METH_FASTCALL | METH_KEYWORDS,
      "run($self, inputs, *, out=None, outputs=None)\n--\n\n"
      "Runs the program on a dict of arrays. Returns a dict of arrays.\n\n"
      "Row-major arrays are read in place; others are copied. Arrays of NumPy and ml_dtypes, and\n"
      "all that support the buffer protocol or DLPack, will do.\n"
      "out: {output: writable array} that results are written to. They are in the returned dict.\n"
      "outputs: names of the outputs that the returned dict has; None: all." },
    { "carry", (PyCFunction)(void (*)(void))session_carry, METH_VARARGS | METH_KEYWORDS,
      "carry($self, output, input)\n--\n\n"
      "From now on the input of each run is the output of the run before it. The first run needs\n"
      "a value." },
    { "truncate", (PyCFunction)(void (*)(void))session_truncate, METH_VARARGS | METH_KEYWORDS,
      "truncate($self, input, extent)\n--\n\nKeeps that many elements of a carried value." },
    { "reset", session_reset, METH_NOARGS, "reset($self)\n--\n\nForgets all carried values." },
    { "clone", session_clone, METH_NOARGS,
      "clone($self)\n--\n\nAnother session with the same carried values." },
    { "cancel", session_cancel, METH_NOARGS,
      "cancel($self)\n--\n\nEnds the run that another thread has under way: CancelledError "
      "there." },
    { "profile", session_profile, METH_NOARGS,
      "profile($self)\n--\n\nThe times of instructions; needs session(profile=True)." },
    { "__reduce__", session_reduce, METH_NOARGS, NULL },
    { NULL, NULL, 0, NULL },
};

static PyType_Slot slots[] = {
    { Py_tp_doc, "The memory of runs of a program. One thread at a time uses it.\n\n"
                 "See Program.session()." },
    { Py_tp_new, kiln_py_no_constructor },
    { Py_tp_traverse, session_traverse },
    { Py_tp_dealloc, session_dealloc },
    { Py_tp_repr, session_repr },
    { Py_tp_getset, session_getset },
    { Py_tp_methods, session_methods },
    { 0, NULL },
};

PyType_Spec kiln_py_session_spec = {
    .name = "kiln_nn._kiln.Session",
    .basicsize = sizeof(KilnPySession),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = slots,
};
