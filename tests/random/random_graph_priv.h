/* SPDX-License-Identifier: Apache-2.0 */
/* What the families of random nodes share: numbers, operands to choose from, constants. */
#ifndef KILN_TESTS_RANDOM_GRAPH_PRIV_H
#define KILN_TESTS_RANDOM_GRAPH_PRIV_H

#include "tests/random/random_graph.h"

typedef struct {
    uint64_t state;
    KilnDType dtype; /* of the graph's data */
    KilnModule *module;
    KilnFunction *function;
    GPtrArray *values; /* KilnValue* to choose operands from */
    unsigned refused;  /* nodes that inference did not take */
} RandomGraph;

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

#endif
