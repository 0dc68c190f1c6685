/* SPDX-License-Identifier: Apache-2.0 */
/* What a recurrent cell feeds to its activations: x · W + h · R + b, in a body that reads x anew in
 * each iteration and carries h. Exporters write one product for all gates and take it apart, one
 * product for x and h joined, or a product for each. */
#ifndef KILN_PASSES_QUERY_GATES_H
#define KILN_PASSES_QUERY_GATES_H

#include "graph/graph.h"
#include "graph/kiln-types.h"
#include "passes/query/lift.h"

enum {
    KILN_GATE_TERMS = 4 /* of a bias */
};

/** Rows and columns of a matrix from around the loop, or columns of a vector. */
typedef struct {
    KilnValue *value; /* NULL: there is none */
    bool transposed;  /* its rows are columns */
    int64_t row, column, rows, columns;
} KilnGateBlock;

typedef struct {
    KilnValue *input;   /* of the body: x, which lifts; NULL: there is none */
    KilnGateBlock w, r; /* [x or h, gate] */
    KilnGateBlock bias[KILN_GATE_TERMS];
    uint32_t n_bias;
} KilnGate;

/** Finds the terms of @value, of the body. Products with @state are of h, and others of x. False
 * where @value has other terms, or two of a kind. */
bool kiln_gate_find(const KilnLift *lift, KilnValue *value, const KilnValue *state, KilnGate *out);

typedef enum {
    KILN_GATE_W,
    KILN_GATE_R,
} KilnGateMatrix;

/** The matrices of @gates as recurrent operators read them: [1, gates, x or h]. NULL fails. */
KilnValue *kiln_gates_build_matrix(KilnNode *before, const KilnGate *gates, uint32_t n,
                                   KilnGateMatrix which, GError **error);
/** The biases of @n gates, @hidden of each, in a row: [1, gates]. NULL fails. */
KilnValue *kiln_gates_build_bias(KilnNode *before, const KilnGate *gates, uint32_t n,
                                 int64_t hidden, KilnDType dtype, GError **error);

#endif
