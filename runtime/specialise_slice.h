/* SPDX-License-Identifier: Apache-2.0 */
/* What shapes hang on, before a model is specialised: nodes and inputs whose values it needs to
 * know, and nodes whose operands get names because data decides them. */
#ifndef KILN_RUNTIME_SPECIALISE_SLICE_H
#define KILN_RUNTIME_SPECIALISE_SLICE_H

#include "graph/module.h"

/* A function that is called with inputs of the model: the entry, and where constants were folded
 * the functions that do it. */
typedef struct {
    KilnFunction *function;
    const uint32_t *numbers; /* per argument: the value that it takes (graph/module/folding.h);
                                NULL: the input of that place */
    uint32_t first_result, n_results; /* of a fold: the numbers of its results; else none */
} KilnCallee;

/* Marks everything that the values of shape operands are computed from, and what decides which
 * subgraphs run. Walking backwards stops where a value depends on a type alone. */
typedef struct {
    const KilnFunction *function;
    const KilnModule *stated; /* whose inputs have the names of all dims that no run finds */
    GHashTable *nodes;        /* KilnNode*, of subgraphs too; looked up, never iterated */
    bool *arguments; /* of the function, by index: those of subgraphs are not known ahead */
} KilnShapeSlice;

/** In the order of their calls: a GArray of KilnCallee. */
GArray *kiln_callees_list(const KilnModule *module);
/** What shapes and branches of any function hang on, by number. The caller frees the flags. */
bool *kiln_callees_wanted(const KilnModule *module, const GArray *callees);
/** The number of @argument among all values. */
uint32_t kiln_callee_number(const KilnCallee *callee, guint argument);

/** Results that others need to be known are walked back from, too: @wanted, by number. @stated is
 * the model before its inputs were bound: types that are not settled yet have its names. */
void kiln_shape_slice_init(KilnShapeSlice *slice, const KilnCallee *callee,
                           const KilnModule *stated, const bool *wanted);
void kiln_shape_slice_clear(KilnShapeSlice *slice);
/** Adds what shapes of @function, a subgraph, hang on. */
void kiln_shape_slice_add_shapes(KilnShapeSlice *slice, const KilnFunction *function);
/** Adds what decides how often loops of @function run, and which branches. */
void kiln_shape_slice_add_loops(KilnShapeSlice *slice, const KilnFunction *function);

/** False where a run finds no dims of @function. */
bool kiln_live_may_be(const KilnFunction *function);
/** Operand @i of @node, which decides its shape, gets names in a run. */
bool kiln_live_operand(const KilnNode *node, uint32_t i, const KilnModule *stated);
/** Adds @node, and nodes of its subgraphs, if they have such operands. */
void kiln_live_add_node(KilnNode *node, const KilnModule *stated, GHashTable *live);
/** Adds the nodes of @function and its subgraphs that have such operands. */
void kiln_live_add(const KilnFunction *function, const KilnModule *stated, GHashTable *live);

#endif
