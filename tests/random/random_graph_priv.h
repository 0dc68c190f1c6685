/* SPDX-License-Identifier: Apache-2.0 */
/* What the families of random nodes share: numbers, operands to choose from, constants. */
#ifndef KILN_TESTS_RANDOM_RANDOM_GRAPH_PRIV_H
#define KILN_TESTS_RANDOM_RANDOM_GRAPH_PRIV_H

#include "tests/random/random_graph.h"

typedef struct {
    uint64_t state;
    KilnDType dtype; /* of the graph's data */
    KilnModule *module;
    KilnFunction *function;
    GPtrArray *values; /* KilnValue* to choose operands from */
    unsigned refused;  /* nodes that inference did not take */
    int64_t most;      /* elements of a value that operands are chosen from */
} RandomGraph;

/** A module of one function, empty; @g has its state and element type. */
void rg_begin(RandomGraph *g);
void rg_argument(RandomGraph *g, const KilnType *type);
/** A node or a few of any family. */
void rg_step(RandomGraph *g);
/** Chooses results, up to @ends (at most 5) values that nothing reads among them. The module is the
 * caller's. */
KilnModule *rg_end(RandomGraph *g, uint32_t ends);

uint64_t rg_next(RandomGraph *g);
int rg_below(RandomGraph *g, int n);
bool rg_one_in(RandomGraph *g, int n);
/** Small; often 1, rarely 0. */
int64_t rg_extent(RandomGraph *g);

/** Adds a node and offers its results as operands; NULL where inference refuses it. */
KilnValue *rg_add(RandomGraph *g, KilnOp op, const void *attrs, uint32_t n_results,
                  uint32_t n_operands, KilnValue *const *operands);
KilnValue *rg_unary(RandomGraph *g, KilnOp op, const void *attrs, KilnValue *x);
KilnValue *rg_binary(RandomGraph *g, KilnOp op, const void *attrs, KilnValue *x, KilnValue *y);
KilnValue *rg_ints(RandomGraph *g, const int64_t *values, uint32_t n);
/** A constant of @type: a splat, numbers of [low, high) that other constants may have too, or iota.
 */
KilnValue *rg_constant(RandomGraph *g, const KilnType *type, double low, double high);
/** A constant with one element, of the graph's element type. */
KilnValue *rg_scalar(RandomGraph *g, double number);
/** A value that there is already; late ones are chosen more often, so that chains get long. */
KilnValue *rg_any(RandomGraph *g);
/** A value whose shape broadcasts with @x's; a new constant where none is found. */
KilnValue *rg_broadcastable(RandomGraph *g, KilnValue *x);

/** One of the idioms that exporters write for what is an operator elsewhere, exact or almost. */
void rg_idiom(RandomGraph *g);

/** What goes to vendor libraries, and what stands around it: a node or a block on pictures, lines
 * and volumes; products of matrices, and what works along rows. */
void rg_picture(RandomGraph *g);
void rg_product(RandomGraph *g);
/** A value of that rank; NULL where none is found. */
KilnValue *rg_of_rank(RandomGraph *g, int least, int most);
/** A constant whose sums of @terms products have the size of what they multiply: a new one, one
 * that something else reads, or an argument. */
KilnValue *rg_weight(RandomGraph *g, int rank, const int64_t *dims, int64_t terms);
KilnValue *rg_activation(RandomGraph *g, KilnValue *x);
/** None to three element-wise operators behind @y, which may be NULL; their other operands
 * broadcast in every way, residuals among them. */
void rg_tails(RandomGraph *g, KilnValue *y);
/** How many columns a matrix may have: whole vectors of a machine, and not. */
int64_t rg_columns(RandomGraph *g);

#endif
