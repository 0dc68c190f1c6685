/* SPDX-License-Identifier: Apache-2.0 */
/* Passes in Python: a row of a table that calls a Python function, and the types that stand for a
 * graph while it runs. */
#ifndef KILN_PYTHON_PASSES_H
#define KILN_PYTHON_PASSES_H

#include "passes/kiln-pass.h"
#include "python/src/state.h"

/** A graph function that a pass may change. After the pass @function is NULL, and nodes and values
 * of it are of no use. */
typedef struct {
    PyObject_HEAD KilnPyState *state;
    KilnFunction *function;
    KilnPassContext *context;
} KilnPyFunction;

typedef struct {
    PyObject_HEAD KilnPyFunction *owner;
    KilnNode *node;
} KilnPyNode;

typedef struct {
    PyObject_HEAD KilnPyFunction *owner;
    KilnValue *value;
} KilnPyValue;

extern PyType_Spec kiln_py_function_spec, kiln_py_node_spec, kiln_py_value_spec;

/** A capsule with a pass that calls @function. Its table lives as long. */
PyObject *kiln_py_pass_new(KilnPyState *state, PyObject *function, const char *id,
                           const char *summary);
const KilnPassPlugin *kiln_py_pass_table(PyObject *pass);

PyObject *kiln_py_node(KilnPyFunction *owner, KilnNode *node);
PyObject *kiln_py_value(KilnPyFunction *owner, KilnValue *value);
/** The node or value behind @object; NULL and an exception where it is none of @owner's, or was
 * removed. */
KilnNode *kiln_py_node_of(KilnPyFunction *owner, PyObject *object);
KilnValue *kiln_py_value_of(KilnPyFunction *owner, PyObject *object);
/** False, and an exception, once the pass is over. */
bool kiln_py_is_open(const KilnPyFunction *owner);

/** The attributes of @node as a dict. Constants and subgraphs are left out. */
PyObject *kiln_py_attrs(const KilnNode *node);
/** Writes the entries of a dict into @attrs, a struct of attributes of @op. Lists go to @arena. */
bool kiln_py_read_attrs(KilnPyState *state, KilnOp op, PyObject *dict, void *attrs,
                        KilnArena *arena);

#endif
