/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the makers of nests: values to choose from, and steps that compute. */
#ifndef KILN_TESTS_RANDOM_RANDOM_FLOW_PRIV_H
#define KILN_TESTS_RANDOM_RANDOM_FLOW_PRIV_H

#include "graph/node.h"
#include "tests/random/random_graph_priv.h"

/* `g.values` are all that can be read: those of functions around come first. */
typedef struct {
    RandomGraph g;
    int depth;
    GPtrArray *flows; /* KilnValue*: results of the entry's branches, loops and scans */
} Flow;

typedef enum {
    ANY,
    STATIC,
    VECTOR, /* static, of rank 1 or more, and not empty */
    SCALAR, /* of rank 0 */
    RANKED, /* of rank 1 or more, with any dims */
} Kind;

/** True for tensors of @kind that are small enough to be read. */
bool rf_is_of_kind(const KilnType *type, Kind kind);
/** Returns a value of @kind and @dtype, or of any if that is KILN_N_DTYPES. A late one rather than
 * an early one, and often one that nothing reads yet. NULL if it finds none. */
KilnValue *rf_pick(Flow *flow, KilnDType dtype, Kind kind);
/** Returns a value of the element type and rank of @type, and certainly of its dims if @whole. */
KilnValue *rf_pick_like(Flow *flow, const KilnType *type, bool whole);
/** Adds a node and offers its results. NULL if inference refuses it. */
KilnNode *rf_add_node(Flow *flow, const KilnNodeSpec *spec);
/** The same with one operand, or with two if @b is not NULL. NULL if @a is NULL. */
KilnValue *rf_add(Flow *flow, const char *op, const void *attrs, KilnValue *a, KilnValue *b);
/** Adds a constant without dims. */
KilnValue *rf_number(Flow *flow, KilnDType dtype, double value);
/** Adds the greatest elements of @x along @axes (NULL: all), which go. NULL if @x is NULL. */
KilnValue *rf_maximum(Flow *flow, KilnValue *x, KilnValue *axes);
/** Bounds the integers of @x. */
KilnValue *rf_between(Flow *flow, KilnValue *x, int64_t low, int64_t high);
/** Drops rows of @x at the begin and at the end. */
KilnValue *rf_some_rows(Flow *flow, KilnValue *x);
/** Adds one or a few nodes that compute. */
void rf_step(Flow *flow);

/** Adds a loop or scan that needs no iterations: sums, counters, rows, cells. */
void rf_step_sums(Flow *flow);

/** Returns a sequence or an optional; NULL if there is none. */
KilnValue *rf_pick_item(Flow *flow, KilnDType dtype);
/** Adds a sequence, which may be empty. */
KilnValue *rf_add_sequence(Flow *flow);
/** Adds an element to @sequence, or takes one away. */
KilnValue *rf_changed_sequence(Flow *flow, KilnValue *sequence);
/** Adds one or a few nodes that make, change or read sequences and optionals. */
void rf_step_items(Flow *flow);

#endif
