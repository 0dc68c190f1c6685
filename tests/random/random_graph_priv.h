/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the families of random nodes: numbers, operands to choose from, constants. */
#ifndef KILN_TESTS_RANDOM_RANDOM_GRAPH_PRIV_H
#define KILN_TESTS_RANDOM_RANDOM_GRAPH_PRIV_H

#include "graph/graph.h"

typedef struct {
    uint64_t state;
    KilnDType dtype; /* of the graph's data */
    KilnModule *module;
    KilnFunction *function;
    GPtrArray *values; /* KilnValue* to choose operands from */
    unsigned refused;  /* nodes that inference refused */
    int64_t most;      /* largest number of elements of an operand */
} RandomGraph;

/** Begins an empty module of one function. The caller has set state and element type of @g. */
void rg_begin(RandomGraph *g);
void rg_argument(RandomGraph *g, const KilnType *type);
/** Adds one or a few nodes of any family. */
void rg_step(RandomGraph *g);
/** Chooses results, with up to @ends (at most 5) values that nothing reads. The caller owns the
 * module. */
KilnModule *rg_end(RandomGraph *g, uint32_t ends);

uint64_t rg_next(RandomGraph *g);
int rg_below(RandomGraph *g, int n);
bool rg_one_in(RandomGraph *g, int n);
/** Returns a small extent, often 1, rarely 0. */
int64_t rg_extent(RandomGraph *g);

/** Adds a node and offers its results as operands. NULL if inference refuses it. */
KilnValue *rg_add(RandomGraph *g, KilnOp op, const void *attrs, uint32_t n_results,
                  uint32_t n_operands, KilnValue *const *operands);
KilnValue *rg_unary(RandomGraph *g, KilnOp op, const void *attrs, KilnValue *x);
KilnValue *rg_binary(RandomGraph *g, KilnOp op, const void *attrs, KilnValue *x, KilnValue *y);
KilnValue *rg_ints(RandomGraph *g, const int64_t *values, uint32_t n);
/** Adds a constant of @type: a splat, iota, or numbers in [low, high), perhaps shared. */
KilnValue *rg_constant(RandomGraph *g, const KilnType *type, double low, double high);
/** Adds a constant with one element of the graph's element type. */
KilnValue *rg_scalar(RandomGraph *g, double number);
/** Returns an existing value. Late ones are chosen more often, so that chains get long. */
KilnValue *rg_any(RandomGraph *g);
/** Returns a value whose shape broadcasts with @x's, or a new constant if it finds none. */
KilnValue *rg_broadcastable(RandomGraph *g, KilnValue *x);

/** Adds an idiom of exporters that is equal to one operator, exactly or almost. */
void rg_idiom(RandomGraph *g);

/** Add nodes that vendor libraries run, and their surroundings: a node or a block on pictures,
 * lines and volumes; matrix products and operators along rows. */
void rg_picture(RandomGraph *g);
void rg_product(RandomGraph *g);
/** Returns a value with a rank from @least to @most, or NULL if it finds none. */
KilnValue *rg_of_rank(RandomGraph *g, int least, int most);
/** Returns weights: a new constant, one that another node reads, or an argument. Sums of @terms
 * products with them have the size of the other factors. */
KilnValue *rg_weight(RandomGraph *g, int rank, const int64_t *dims, int64_t terms);
KilnValue *rg_activation(RandomGraph *g, KilnValue *x);
/** Adds up to three element-wise operators behind @y, which may be NULL. Their other operands
 * broadcast in every way; residuals are among them. */
void rg_tails(RandomGraph *g, KilnValue *y);
/** Returns a number of columns for a matrix: whole vectors of a machine, or not. */
int64_t rg_columns(RandomGraph *g);

#endif
