/* SPDX-License-Identifier: Apache-2.0 */
/* Normalizations as exporters write them: what is common to layer, root-mean-square and instance
 * normalization. */
#ifndef KILN_PASSES_QUERY_NORMALIZED_H
#define KILN_PASSES_QUERY_NORMALIZED_H

#include "graph/module.h"

/** x / √(mean(x²) + ε). */
typedef struct {
    KilnValue *x;
    const KilnNode *mean; /* of the squares */
    double epsilon;
    uint32_t reads;     /* how often the formula reads x */
    bool single_reader; /* every value between x and the quotient has one */
} KilnNormalized;

/** Reads the formula that ends in @root: x over the root, or times its reciprocal (reciprocal, 1/√,
 * a power of -½); squares by pow or mul. */
bool kiln_normalized_of(const KilnNode *root, KilnNormalized *out);

/** What kiln_normalized_of() may read, by operators alone. */
#define KILN_NORMALIZED_PATTERN "(div|mul~ ? (sqrt|pow|reciprocal|div ...))"

/** Reads the reciprocal alone: 1 / √(mean(x²) + ε), which may have any readers itself. */
bool kiln_inverse_of(const KilnFunction *function, const KilnValue *value, KilnNormalized *out);

/** x - mean(x). */
typedef struct {
    KilnValue *x;
    const KilnNode *mean;
} KilnCentred;
/** Reads the formula behind @value, in @function. */
bool kiln_centred_of(const KilnFunction *function, const KilnValue *value, KilnCentred *out);

/** Bit d is set where a reduction reduces dim d; 0 where that is not known. */
uint32_t kiln_reduced_dims(const KilnNode *reduction);
/** The first of the dims that @dims marks where they are the last ones of @type; else -1. */
int kiln_first_trailing_dim(const KilnType *type, uint32_t dims);
bool kiln_keeps_dims(const KilnNode *reduction);

/** A literal of ones that a normalization of the dims of @data from @axis on may take as scale. */
KilnValue *kiln_run_ones(KilnNode *before, const KilnType *data, int axis);
/** @value as an operand that has an element for each of the dims of @data from @axis on, where it
 * broadcasts to @data without varying along other dims: itself, a view of it, or a literal of its
 * one number. NULL where it is no such operand, and with @error where it cannot be built. */
KilnValue *kiln_run_parameter(KilnNode *before, KilnValue *value, const KilnType *data, int axis,
                              GError **error);
/** @number for each channel: each index of dim 1 of @data, which is known. */
KilnValue *kiln_channel_number(KilnNode *before, const KilnType *data, const char *name,
                               double number);
/** @value as a vector of an element per channel, where it broadcasts to @data without varying along
 * other dims; else as kiln_run_parameter(). */
KilnValue *kiln_channel_parameter(KilnNode *before, KilnValue *value, const KilnType *data,
                                  GError **error);

#endif
