/* SPDX-License-Identifier: Apache-2.0 */
/* Trees as ONNX has them, and their form as operands of tree_ensemble (graph/ops/learn.def).
 *
 * tree_ensemble knows one test, x <= split. The others become one or two such tests:
 *
 *   x > t       x <= t with the branches exchanged
 *   x < t       x <= the number below t
 *   x == t      x <= the number below t, then x <= t
 *   x in {…}    the same for each member, in ascending order
 *
 * A node that several branches lead to is stored once. A test that is always true leads from each
 * of these branches to it. */
#ifndef KILN_GRAPH_ONNX_ML_FOREST_H
#define KILN_GRAPH_ONNX_ML_FOREST_H

#include "graph/graph.h"
#include "graph/onnx/steps.h"

typedef enum {
    KILN_BRANCH_LEQ,
    KILN_BRANCH_LT,
    KILN_BRANCH_GTE,
    KILN_BRANCH_GT,
    KILN_BRANCH_EQ,
    KILN_BRANCH_NEQ,
    KILN_BRANCH_MEMBER,
    KILN_BRANCH_LEAF,
    KILN_N_BRANCHES
} KilnBranch;

typedef struct {
    KilnBranch mode;
    bool missing; /* NaN takes the branch of true */
    bool reached; /* from a root */
    int64_t feature;
    double split;     /* not of MEMBER */
    int64_t yes, no;  /* numbers of nodes */
    int64_t first, n; /* MEMBER: its members; LEAF: its entries */
    int64_t waiting;  /* branches that lead here, and are not stored yet */
    int64_t parked;   /* the last branch that waits for this node to be stored; -1: none */
    int64_t place;    /* in the operands; -1: not stored yet */
} KilnForestNode;

/** A weight of a leaf. */
typedef struct {
    int64_t node; /* whose leaf it is: entries are in its order, then in theirs */
    int64_t target;
    double weight;
} KilnForestEntry;

typedef struct {
    KilnDType dtype; /* f32, f64: of splits and weights */
    GArray *nodes;   /* KilnForestNode */
    GArray *members; /* double: of each set in ascending order */
    GArray *entries; /* KilnForestEntry */
    GArray *roots;   /* int64_t: numbers of nodes */
    bool complete;   /* all nodes must be reached from roots */
    int64_t n_targets;
    const char *targets;   /* the attribute that names them */
    const char *aggregate; /* SUM, AVERAGE, MIN, MAX */
    /* Names node @i as the model does; freed with g_free(). */
    char *(*name)(const void *data, int64_t i);
    const void *data;
} KilnForest;

/** Begins an error of branches that make no tree. */
#define KILN_FOREST_BRANCHES "attributes 'nodes_truenodeids' and 'nodes_falsenodeids': "

void kiln_forest_init(KilnForest *forest);
void kiln_forest_clear(KilnForest *forest);
static inline KilnForestNode *
kiln_forest_node(const KilnForest *forest, int64_t i)
{
    return &((KilnForestNode *)(void *)forest->nodes->data)[i];
}

/** Gives leaves their entries, which it brings in order. */
void kiln_forest_sort_entries(KilnForest *forest);
/** The scores [N, targets] of @x [N, F], which has the forest's element type. NULL and an error
 * where branches lead back to their node, or features or targets do not exist. */
KilnValue *kiln_forest_build(const KilnOnnxSteps *s, KilnForest *forest, KilnValue *x);

#endif
