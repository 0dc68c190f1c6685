/* SPDX-License-Identifier: Apache-2.0 */
/* The cost model of oneDNN's kernels. It counts a few terms from the shape. Each term has a factor
 * that was fitted to measurements (costs.h, or costs_avx2.h without AVX-512). It does not need the
 * library. */
#ifndef KILN_BACKENDS_ONEDNN_COST_H
#define KILN_BACKENDS_ONEDNN_COST_H

#include <stdbool.h>
#include <stdint.h>

/** Every model: its name and number of terms. */
#define KILN_ONEDNN_COST_KINDS(X)                                                                  \
    X(window, 5)     /* convolutions whose kernel has several taps */                              \
    X(pointwise, 5)  /* convolutions whose kernel has one tap */                                   \
    X(transposed, 5) /* with read and written exchanged */                                         \
    X(depthwise, 5)                                                                                \
    X(pool, 3)                                                                                     \
    X(global_pool, 3)                                                                              \
    X(matmul, 4)                                                                                   \
    X(reorder, 3) /* from row-major or back */                                                     \
    X(softmax, 3)                                                                                  \
    X(layer_normalization, 3)                                                                      \
    X(reduction, 3)                                                                                \
    X(lstm, 4)                                                                                     \
    X(concat, 3)                                                                                   \
    X(pass, 3)        /* adds one number per channel to a value in place */                        \
    X(tail, 2)        /* in the store of another operation */                                      \
    X(far_weights, 1) /* extra time of a window if its weights come from memory */

typedef enum {
#define KIND(name, n) KILN_ONEDNN_COST_##name,
    KILN_ONEDNN_COST_KINDS(KIND)
#undef KIND
    KILN_ONEDNN_N_COSTS
} KilnOnednnCostKind;

enum {
    KILN_ONEDNN_TERMS = 5, /* most terms of a model */
};

/** The counts of an operation. They mean
 *  - for convolutions and pools: channels, and the positions of all pictures read and written;
 *  - for products: rows are positions, columns are channels;
 *  - for operations along rows: @in columns, @written rows;
 *  - for LSTMs: @in inputs, @out states, a group for each step, @written sequences of a batch;
 *  - for concats, passes and tails: @out channels of @written positions, each with @taps
 *    operations and @groups further operands.
 * @block: channels of a block, the floats of a vector of the library. */
typedef struct {
    int64_t in, out, groups, taps, read, written, block;
} KilnOnednnWork;

/** Counts the terms of @kind. @blocked: channels in blocks, else last. */
void kiln_onednn_terms(KilnOnednnCostKind kind, const KilnOnednnWork *work, bool blocked,
                       double terms[KILN_ONEDNN_TERMS]);
/** Returns the cost in microseconds on one thread. */
double kiln_onednn_cost(KilnOnednnCostKind kind, const KilnOnednnWork *work, bool blocked);

#endif
