/* SPDX-License-Identifier: Apache-2.0 */
/* Affine functions per channel, y[c] = x[c] · factor[c] + offset[c] with c the index along one dim.
 * A chain of arithmetic with literals computes one, and so does a batch normalization in inference
 * mode. They move into the weights and the bias of the product in front of them.
 *
 * Functions that take a match refuse by GUARD, as the rule of that match. */
#ifndef KILN_PASSES_QUERY_AFFINE_H
#define KILN_PASSES_QUERY_AFFINE_H

#include "passes/rule.h"

typedef struct {
    int64_t n;
    double *factor, *offset;
    double *lost; /* the largest offset inside the chain, scaled to the result; rounding is relative
                     to it */
} KilnAffine;

/** x · 1 + 0 in @n channels; false and @error if memory is short. */
bool kiln_affine_init(KilnAffine *affine, int64_t n, GError **error);
void kiln_affine_clear(KilnAffine *affine);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(KilnAffine, kiln_affine_clear)
/** True if a factor is not 1. Below: if an offset is not 0. */
bool kiln_affine_scales(const KilnAffine *affine);
bool kiln_affine_shifts(const KilnAffine *affine);
/** True if neither factors nor offsets lose bits in @dtype: kiln_literal_keeps_bits(). */
bool kiln_affine_keeps_bits(const KilnAffine *affine, KilnDType dtype);
/** True if factors and offsets are finite in @dtype, and no factor is too small to keep its
 * bits. */
bool kiln_affine_fits(const KilnAffine *affine, KilnDType dtype);

/** True if one function instead of the chain keeps to class U. Each value inside a chain was
 * rounded relative to itself. In the result that rounding may be at most 16 units in the last place
 * of |factor| · scale or |offset|. @scale: how large the products in front of the chain are, by
 * channel; NULL: not known. @bias: added to them there; NULL: nothing. False for (x + 12582912) -
 * 12582912, which rounds to integers. False for values that overflow or become subnormal numbers of
 * @dtype on the way. */
bool kiln_affine_keeps_precision(const KilnAffine *affine, const double *scale, const double *bias,
                                 KilnDType dtype);

/** The same for a chain behind @product (conv, conv_transpose, matmul, gemm). For inputs around 1,
 * its weights and bias say how large its results are. False and @error if memory is short. */
bool kiln_product_keeps_precision(const KilnNode *product, const KilnAffine *affine,
                                  GError **error);

/** True if weights and bias of @product lose no bits by @affine: kiln_literal_keeps_bits(). False
 * and @error if they cannot be read. */
bool kiln_product_keeps_bits(const KilnNode *product, const KilnAffine *affine, GError **error);

/** True if x + (bias + term) instead of (x + bias) + term keeps to class U. The rounding of x +
 * bias may be at most 16 units in the last place of the result, as above. The rounding of bias +
 * term may be at most 16 units in the last place of x + bias: a later step may subtract @term
 * again. @bias or @term may be NULL: any number. False if both are. @scale: how large x is. All
 * have @n elements. */
bool kiln_sum_keeps_precision(const double *bias, const double *term, const double *scale,
                              int64_t n, KilnDType dtype);

/** The same for @term, which varies along channels at most, and the bias of @product (conv,
 * conv_transpose). True if there is no bias. False and @error if memory is short. */
bool kiln_product_takes_term(const KilnNode *product, const KilnValue *term, GError **error);

/** Appends the arithmetic behind @value to @affine. Returns the number of its nodes; @end is the
 * last one. They are neg, and add, sub, mul and div with a literal that varies along dim @axis at
 * most (a scalar, a splat, [C,1,1], …). Each is the only reader of the value in front of it. A
 * literal divided by the chain ends it. 0 if @value has no such reader, or an error is set. */
uint32_t kiln_affine_chain(KilnMatch *match, const KilnValue *value, int axis, KilnAffine *affine,
                           KilnNode **end);

/** The constant with the numbers of @value: its own, or that of its kiln_literal_source(). NULL if
 * there is none. */
const KilnConstant *kiln_affine_constant(const KilnValue *value);

/** True if @bn normalizes with the statistics that it is given, and nothing reads its results after
 * the first. */
bool kiln_batchnorm_infers(const KilnNode *bn);
/** The dim of the result with its channels; -1 if there is none, or the rank is open. */
int kiln_batchnorm_axis(const KilnNode *bn);

/** Appends a batch normalization in inference mode with literal statistics to @affine. False if
 * they cannot be read. */
bool kiln_affine_append_batchnorm(KilnAffine *affine, const KilnNode *bn, GError **error);
/** The same for constants: scale, bias, mean and variance; NULL if there is none. */
bool kiln_affine_append_statistics(KilnAffine *affine, const KilnConstant *const statistics[4],
                                   double epsilon, GError **error);

/** kiln_affine_keeps_precision() if @affine is one batch normalization of @scale. A normalized
 * value is around 1: the products in front of the bias are as large as the scale. */
bool kiln_batchnorm_keeps_precision(const KilnAffine *affine, const KilnConstant *scale,
                                    KilnDType dtype, GError **error);

/** The dim of the result of @product (conv, conv_transpose, matmul, gemm) that runs over the
 * outputs of its weights; -1 if there is none or the rank is not known. */
int kiln_product_axis(const KilnNode *product);

/** Builds a node before @end, of @end's type, that computes @affine of @product's result. It has
 * another bias, and other weights if @affine scales. A matmul that needs a bias becomes a gemm. Old
 * constants do not change. Weights that are a cast of 16 bits are scaled behind the cast: only for
 * conv and conv_transpose, and only if speed counts more than memory. */
bool kiln_affine_absorb(KilnMatch *match, const KilnNode *product, const KilnAffine *affine,
                        KilnNode *end, KilnNode **out);

/** Makes the readers of @end's result read @value, which was built before @end. Removes @end and
 * all that only it read. */
void kiln_affine_replace_chain(KilnMatch *match, KilnNode *end, KilnValue *value);

/** Tries @fold as @rule on every node of @function whose op is a root: once each, in their order
 * before the call. @fold moves the chain behind the root into it. The new node stands at the end of
 * the chain, with other roots between. */
gboolean kiln_affine_fold_all(KilnFunction *function, bool (*is_root)(KilnOp op), const char *rule,
                              KilnRewriteFn fold, KilnPassContext *context, bool *changed,
                              GError **error);

/** @x plus a number that its type has, before @before. NULL and an error where it cannot be built.
 */
KilnValue *kiln_add_number(KilnNode *before, KilnValue *x, int64_t number, GError **error);

#endif
