/* SPDX-License-Identifier: Apache-2.0 */
/* Affine functions per channel, y[c] = x[c] · factor[c] + offset[c] with c the index along one dim:
 * what a chain of arithmetic with literals computes, what a batch normalization in inference mode
 * computes, and how they move into the weights and the bias of the product in front of them.
 *
 * Functions that take a match refuse by GUARD, as the rule of that match. */
#ifndef KILN_PASSES_QUERY_AFFINE_H
#define KILN_PASSES_QUERY_AFFINE_H

#include "passes/rule.h"

typedef struct {
    int64_t n;
    double *factor, *offset;
    double *lost; /* the largest offset of a value inside the chain, as large as it is in the
                     result: its rounding is relative to that */
} KilnAffine;

/** x · 1 + 0 in @n channels; false and @error where memory is short. */
bool kiln_affine_init(KilnAffine *affine, int64_t n, GError **error);
void kiln_affine_clear(KilnAffine *affine);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(KilnAffine, kiln_affine_clear)
/** True where a factor is not 1; where an offset is not 0. */
bool kiln_affine_scales(const KilnAffine *affine);
bool kiln_affine_shifts(const KilnAffine *affine);
/** True where neither factors nor offsets lose bits in @dtype: kiln_literal_keeps_bits(). */
bool kiln_affine_keeps_bits(const KilnAffine *affine, KilnDType dtype);
/** True where factors and offsets are finite in @dtype and no factor loses bits for being small. */
bool kiln_affine_fits(const KilnAffine *affine, KilnDType dtype);

/** True where one function instead of the chain keeps to class U. Each value inside a chain was
 * rounded relative to itself. In the result that rounding may be at most 16 units in the last place
 * of what the result can be: |factor| · scale or |offset|. @scale: how large the products in front
 * of the chain are, by channel; NULL: not known. @bias: what is added to them there; NULL: nothing.
 * False for (x + 12582912) - 12582912, which rounds to integers, and for values that overflow or
 * become subnormal numbers of @dtype on the way. */
bool kiln_affine_keeps_precision(const KilnAffine *affine, const double *scale, const double *bias,
                                 KilnDType dtype);

/** The same of a chain behind @product (conv, conv_transpose, matmul, gemm), whose results are as
 * large as its weights and bias make them for inputs around 1. False and @error where memory is
 * short. */
bool kiln_product_keeps_precision(const KilnNode *product, const KilnAffine *affine,
                                  GError **error);

/** True where weights and bias of @product lose no bits by what follows: kiln_literal_keeps_bits().
 * False and @error where they cannot be had. */
bool kiln_product_keeps_bits(const KilnNode *product, const KilnAffine *affine, GError **error);

/** True where x + (bias + term) instead of (x + bias) + term keeps to class U. The rounding of x +
 * bias may be at most 16 units in the last place of the result, as above. The rounding of bias +
 * term may be at most 16 units in the last place of x + bias: a later step may take @term off
 * again. @bias or @term is NULL where it is not known, and may be any number then; false where both
 * are. @scale: how large x is. All have @n elements. */
bool kiln_sum_keeps_precision(const double *bias, const double *term, const double *scale,
                              int64_t n, KilnDType dtype);

/** The same of @term, which varies along channels at most, and the bias of @product (conv,
 * conv_transpose). True where there is no bias. False and @error where memory is short. */
bool kiln_product_takes_term(const KilnNode *product, const KilnValue *term, GError **error);

/** What the arithmetic behind @value does is appended to @affine, and how many nodes that are is
 * returned; @end is the last of them. They are neg, and add, sub, mul and div with a literal that
 * varies along dim @axis at most (a scalar, a splat, [C,1,1], …), each the single reader of what is
 * in front of it. A literal divided by the chain ends it. 0 where @value has no such reader, or
 * @error is set. */
uint32_t kiln_affine_chain(KilnMatch *match, const KilnValue *value, int axis, KilnAffine *affine,
                           KilnNode **end);

/** The constant that holds the numbers of @value: its own, or that of its kiln_literal_source().
 * NULL where there is none. */
const KilnConstant *kiln_affine_constant(const KilnValue *value);

/** True for a batch normalization that normalizes with the statistics it is given: its only result
 * that is read is the first. */
bool kiln_batchnorm_infers(const KilnNode *bn);
/** The dim of the result that is its channels; -1 where there is none, or the rank is open. */
int kiln_batchnorm_axis(const KilnNode *bn);

/** What a batch normalization in inference mode with literal statistics does, appended to @affine.
 * False where they cannot be read. */
bool kiln_affine_append_batchnorm(KilnAffine *affine, const KilnNode *bn, GError **error);
/** The same of constants: scale, bias, mean and variance; NULL for what is none. */
bool kiln_affine_append_statistics(KilnAffine *affine, const KilnConstant *const statistics[4],
                                   double epsilon, GError **error);

/** kiln_affine_keeps_precision() of @affine, which is what a batch normalization of @scale does and
 * nothing else. A normalized value is around 1: the products in front of the bias are as large as
 * the scale. */
bool kiln_batchnorm_keeps_precision(const KilnAffine *affine, const KilnConstant *scale,
                                    KilnDType dtype, GError **error);

/** The dim of the result of @product (conv, conv_transpose, matmul, gemm) that its weights have as
 * their outputs; -1 where there is none or the rank is not known. */
int kiln_product_axis(const KilnNode *product);

/** A node built before @end, of @end's type, that computes @affine of what @product computes: with
 * other weights (untouched where nothing scales) and another bias; a gemm in place of a matmul that
 * needs a bias. Old constants stay as they are. Weights that are a cast of 16 bits are scaled
 * behind the cast: only those of conv and conv_transpose, and only where speed counts more than
 * memory. */
bool kiln_affine_absorb(KilnMatch *match, const KilnNode *product, const KilnAffine *affine,
                        KilnNode *end, KilnNode **out);

/** Readers of @end's result read @value instead, which was built before @end; @end and what only it
 * read go. */
void kiln_affine_replace_chain(KilnMatch *match, KilnNode *end, KilnValue *value);

/** Tries @fold, which moves what stands behind the root of its match into it, as @rule: once on
 * every node of @function whose op is a root, in the order in which they stood before. What is
 * built stands at the end of its chain, with other roots between. */
gboolean kiln_affine_fold_all(KilnFunction *function, bool (*is_root)(KilnOp op), const char *rule,
                              KilnRewriteFn fold, KilnPassContext *context, bool *changed,
                              GError **error);

#endif
