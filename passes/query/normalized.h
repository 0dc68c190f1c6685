/* SPDX-License-Identifier: Apache-2.0 */
/* Reads normalizations as exporters write them: the common part of layer, root-mean-square and
 * instance normalization. */
#ifndef KILN_PASSES_QUERY_NORMALIZED_H
#define KILN_PASSES_QUERY_NORMALIZED_H

#include "graph/module.h"

/** x / √(mean(x²) + ε). */
typedef struct {
    KilnValue *x;
    const KilnNode *mean; /* of the squares */
    double epsilon;
    uint32_t reads;     /* how many times the formula reads x */
    bool single_reader; /* every value between x and the quotient has one reader */
} KilnNormalized;

/** Reads the formula that ends in @root: x over the root, or times its reciprocal (reciprocal, 1/√,
 * a power of -½). Squares are pow or mul. */
bool kiln_normalized_of(const KilnNode *root, KilnNormalized *out);

/** The operators of formulas that kiln_normalized_of() may read. */
#define KILN_NORMALIZED_PATTERN "(div|mul~ ? (sqrt|pow|reciprocal|div ...))"

/** Reads only the reciprocal 1 / √(mean(x²) + ε). It may have any readers. */
bool kiln_inverse_of(const KilnFunction *function, const KilnValue *value, KilnNormalized *out);

/** x - mean(x). */
typedef struct {
    KilnValue *x;
    const KilnNode *mean;
} KilnCentred;
/** Reads the formula behind @value, in @function. */
bool kiln_centred_of(const KilnFunction *function, const KilnValue *value, KilnCentred *out);

/** Bit d is set if a reduction reduces dim d; 0 if that is not known. */
uint32_t kiln_reduced_dims(const KilnNode *reduction);
/** The first of the dims in @dims if they are the last ones of @type; else -1. */
int kiln_first_trailing_dim(const KilnType *type, uint32_t dims);
bool kiln_keeps_dims(const KilnNode *reduction);

/** A literal of ones: the scale of a normalization of the dims of @data from @axis on. */
KilnValue *kiln_run_ones(KilnNode *before, const KilnType *data, int axis);
/** @value as an operand with the dims of @data from @axis on. It must broadcast to @data and vary
 * along no other dim. Returns @value, a view of it, or a literal of its single number. NULL if it
 * does not fit, and with @error if it cannot be built. */
KilnValue *kiln_run_parameter(KilnNode *before, KilnValue *value, const KilnType *data, int axis,
                              GError **error);
/** A literal of @number for each channel: each index of dim 1 of @data, which is known. */
KilnValue *kiln_channel_number(KilnNode *before, const KilnType *data, const char *name,
                               double number);
/** @value as a vector with one element per channel. It must broadcast to @data and vary along no
 * other dim. Otherwise as kiln_run_parameter(). */
KilnValue *kiln_channel_parameter(KilnNode *before, KilnValue *value, const KilnType *data,
                                  GError **error);

#endif
