/* SPDX-License-Identifier: Apache-2.0 */
/* What the library's kernels take: the sum of a few terms that are counted from the shape, each
 * times a cost that was fitted to measurements (costs.h, without AVX-512 costs_avx2.h). Needs no
 * library. */
#ifndef KILN_BACKENDS_ONEDNN_COST_H
#define KILN_BACKENDS_ONEDNN_COST_H

#include <stdbool.h>
#include <stdint.h>

/** Every model: name, number of terms. */
#define KILN_ONEDNN_COST_KINDS(X)                                                                  \
    X(window, 5)     /* convolution; kernels of more than one tap */                               \
    X(pointwise, 5)  /* of one */                                                                  \
    X(transposed, 5) /* read and written for each other */                                         \
    X(depthwise, 5)                                                                                \
    X(pool, 3)                                                                                     \
    X(global_pool, 3)                                                                              \
    X(matmul, 4)                                                                                   \
    X(reorder, 3) /* out of row-major or back */                                                   \
    X(softmax, 3)                                                                                  \
    X(layer_normalization, 3)                                                                      \
    X(reduction, 3)                                                                                \
    X(lstm, 4)                                                                                     \
    X(concat, 3)                                                                                   \
    X(pass, 3)        /* over a value in place: one number per channel is added */                 \
    X(tail, 2)        /* on the way out of another operation */                                    \
    X(far_weights, 1) /* what a window takes longer whose weights come from memory */

typedef enum {
#define KIND(name, n) KILN_ONEDNN_COST_##name,
    KILN_ONEDNN_COST_KINDS(KIND)
#undef KIND
    KILN_ONEDNN_N_COSTS
} KilnOnednnCostKind;

enum {
    KILN_ONEDNN_TERMS = 5, /* most of all */
};

/** Of a convolution or pool: channels, and positions of all pictures that are read and written. Of
 * a product: rows are positions, and channels are what they have. Of what works along rows: @in
 * columns and @written rows. Of an LSTM: what it reads and its state are channels, steps are
 * groups, and @written are the sequences of a batch.
 * Of what works on values as they are: @out channels of @written positions, and in each @taps
 * operations and @groups further operands.
 * @block: of channels, as many as a vector of the library has floats. */
typedef struct {
    int64_t in, out, groups, taps, read, written, block;
} KilnOnednnWork;

/** @blocked: channels in blocks, else last. */
void kiln_onednn_terms(KilnOnednnCostKind kind, const KilnOnednnWork *work, bool blocked,
                       double terms[KILN_ONEDNN_TERMS]);
/** Microseconds on one thread. */
double kiln_onednn_cost(KilnOnednnCostKind kind, const KilnOnednnWork *work, bool blocked);

#endif
