/* SPDX-License-Identifier: Apache-2.0 */
/* Chains of helper nodes for converters that express an operator by several others. A step that
 * gets NULL builds nothing and passes NULL on, so that only the end of a chain is tested. */
#ifndef KILN_GRAPH_ONNX_STEPS_H
#define KILN_GRAPH_ONNX_STEPS_H

#include "graph/op.h"
#include "graph/graph.h"
#include "graph/onnx/convert.h"

typedef struct {
    KilnOnnxCall *call;
    GError **error; /* of the first step that failed */
} KilnOnnxSteps;

KilnValue *kiln_onnx_step1(const KilnOnnxSteps *s, KilnOp op, const void *attrs, KilnValue *a);
KilnValue *kiln_onnx_step2(const KilnOnnxSteps *s, KilnOp op, const void *attrs, KilnValue *a,
                           KilnValue *b);
KilnValue *kiln_onnx_step3(const KilnOnnxSteps *s, KilnOp op, const void *attrs, KilnValue *a,
                           KilnValue *b, KilnValue *c);
/** @a by @op with a number of its element type. */
KilnValue *kiln_onnx_step_number(const KilnOnnxSteps *s, KilnOp op, KilnValue *a, double number);
/** @buffer with the rows of @x written from row @at of each batch on (tensor_scatter). */
KilnValue *kiln_onnx_step_write(const KilnOnnxSteps *s, KilnValue *buffer, KilnValue *x,
                                KilnValue *at);
/** @a, or @number where that is more. */
KilnValue *kiln_onnx_step_at_least(const KilnOnnxSteps *s, KilnValue *a, double number);
/** Arithmetic and comparisons, which many converters would include much for otherwise. */
#define KILN_ONNX_BINARY(op)                                                                       \
    KilnValue *kiln_onnx_step_##op(const KilnOnnxSteps *s, KilnValue *a, KilnValue *b);            \
    KilnValue *kiln_onnx_step_##op##_number(const KilnOnnxSteps *s, KilnValue *a, double number);
KILN_ONNX_BINARY(add)
KILN_ONNX_BINARY(sub)
KILN_ONNX_BINARY(mul)
KILN_ONNX_BINARY(div)
KILN_ONNX_BINARY(pow)
KILN_ONNX_BINARY(equal)
KILN_ONNX_BINARY(less)
KILN_ONNX_BINARY(greater)
KILN_ONNX_BINARY(greater_or_equal)
#undef KILN_ONNX_BINARY
/** Of flags: both, one at least, the opposite, and true where one of all elements is. */
KilnValue *kiln_onnx_step_both(const KilnOnnxSteps *s, KilnValue *a, KilnValue *b);
KilnValue *kiln_onnx_step_either(const KilnOnnxSteps *s, KilnValue *a, KilnValue *b);
KilnValue *kiln_onnx_step_opposite(const KilnOnnxSteps *s, KilnValue *a);
KilnValue *kiln_onnx_step_any(const KilnOnnxSteps *s, KilnValue *a);
/** Where elements are infinite, and where they are not a number. */
KilnValue *kiln_onnx_step_is_inf(const KilnOnnxSteps *s, KilnValue *a);
KilnValue *kiln_onnx_step_is_nan(const KilnOnnxSteps *s, KilnValue *a);
/** @a where @condition is true, else @b. */
KilnValue *kiln_onnx_step_where(const KilnOnnxSteps *s, KilnValue *condition, KilnValue *a,
                                KilnValue *b);
/** The lesser one of @a and @b. */
KilnValue *kiln_onnx_step_least(const KilnOnnxSteps *s, KilnValue *a, KilnValue *b);
/** @a, or @number where that is less. */
KilnValue *kiln_onnx_step_at_most(const KilnOnnxSteps *s, KilnValue *a, double number);
/** The absolute value, e^@a, the root, the logarithm, the sigmoid and log(1 + e^@a). */
KilnValue *kiln_onnx_step_abs(const KilnOnnxSteps *s, KilnValue *a);
KilnValue *kiln_onnx_step_exp(const KilnOnnxSteps *s, KilnValue *a);
KilnValue *kiln_onnx_step_sqrt(const KilnOnnxSteps *s, KilnValue *a);
KilnValue *kiln_onnx_step_log(const KilnOnnxSteps *s, KilnValue *a);
KilnValue *kiln_onnx_step_sigmoid(const KilnOnnxSteps *s, KilnValue *a);
KilnValue *kiln_onnx_step_softplus(const KilnOnnxSteps *s, KilnValue *a);
/** The sum along @axis; @keep: it stays as a dim of 1. */
KilnValue *kiln_onnx_step_sum(const KilnOnnxSteps *s, KilnValue *a, int64_t axis, bool keep);
/** The greatest element along @axis, which stays as a dim of 1. */
KilnValue *kiln_onnx_step_most(const KilnOnnxSteps *s, KilnValue *a, int64_t axis);
/** The sums of the elements before each one along @axis. */
KilnValue *kiln_onnx_step_sums_before(const KilnOnnxSteps *s, KilnValue *a, int64_t axis);
/** Where the first greatest element along @axis is, which stays as a dim of 1. */
KilnValue *kiln_onnx_step_arg_max(const KilnOnnxSteps *s, KilnValue *a, int64_t axis);
/** @a * sigmoid(@a) */
KilnValue *kiln_onnx_step_swish(const KilnOnnxSteps *s, KilnValue *a);
/** @a * sigmoid(@alpha * @a) */
KilnValue *kiln_onnx_step_swish_by(const KilnOnnxSteps *s, KilnValue *a, float alpha);
/** @a modulo @b, with the sign of @b. */
KilnValue *kiln_onnx_step_mod(const KilnOnnxSteps *s, KilnValue *a, KilnValue *b);
/** The bits of @a, which is unsigned, @n places higher or lower. */
KilnValue *kiln_onnx_step_higher(const KilnOnnxSteps *s, KilnValue *a, int n);
KilnValue *kiln_onnx_step_lower(const KilnOnnxSteps *s, KilnValue *a, int n);
/** The bits of @a as elements of another type of that size. */
KilnValue *kiln_onnx_step_bits(const KilnOnnxSteps *s, KilnValue *a, KilnDType to);
/** The bits of @a and @b that differ. */
KilnValue *kiln_onnx_step_xor(const KilnOnnxSteps *s, KilnValue *a, KilnValue *b);
/** @cap * tanh(@a / @cap) */
KilnValue *kiln_onnx_step_capped(const KilnOnnxSteps *s, KilnValue *a, double cap);
KilnValue *kiln_onnx_step_matmul(const KilnOnnxSteps *s, KilnValue *a, KilnValue *b);
/** @a itself if it has the element type already. */
KilnValue *kiln_onnx_step_cast(const KilnOnnxSteps *s, KilnValue *a, KilnDType to);
KilnValue *kiln_onnx_step_transpose(const KilnOnnxSteps *s, KilnValue *a, const int64_t *perm,
                                    uint32_t n);
KilnValue *kiln_onnx_step_unsqueeze(const KilnOnnxSteps *s, KilnValue *a, const int64_t *axes,
                                    uint32_t n);
/** @a from @start to @end along @axis. */
KilnValue *kiln_onnx_step_slice(const KilnOnnxSteps *s, KilnValue *a, int64_t axis, int64_t start,
                                int64_t end, int64_t step);
/** The same, where the end is a list of one. */
KilnValue *kiln_onnx_step_slice_to(const KilnOnnxSteps *s, KilnValue *a, int64_t axis,
                                   int64_t start, KilnValue *end);
/** The list @a from @start to @end, which are lists of one. */
KilnValue *kiln_onnx_step_between(const KilnOnnxSteps *s, KilnValue *a, KilnValue *start,
                                  KilnValue *end);
/** What @indices pick of @a along @axis. */
KilnValue *kiln_onnx_step_gather(const KilnOnnxSteps *s, KilnValue *a, KilnValue *indices,
                                 int64_t axis);
/** What the tuples of @indices pick of @a behind its first @batch_dims dims. */
KilnValue *kiln_onnx_step_gather_nd(const KilnOnnxSteps *s, KilnValue *a, KilnValue *indices,
                                    int64_t batch_dims);
/** What @indices pick of @a along @axis, one element for each. */
KilnValue *kiln_onnx_step_gather_elements(const KilnOnnxSteps *s, KilnValue *a, KilnValue *indices,
                                          int64_t axis);
/** @places along dim @dim of @table, but places behind its end for those below 0, so that they are
 * an error, too: a gather counts them from the end. */
KilnValue *kiln_onnx_step_from_front(const KilnOnnxSteps *s, KilnValue *table, int dim,
                                     KilnValue *places);
/** @a with @values in the places @indices along @axis. */
KilnValue *kiln_onnx_step_scatter_elements(const KilnOnnxSteps *s, KilnValue *a, KilnValue *indices,
                                           KilnValue *values, int64_t axis);
/** @a with zeros around it: @pads of i64, as Pad has them. */
KilnValue *kiln_onnx_step_pad(const KilnOnnxSteps *s, KilnValue *a, KilnValue *pads);
/** The same with @value instead of zeros. */
KilnValue *kiln_onnx_step_pad_with(const KilnOnnxSteps *s, KilnValue *a, KilnValue *pads,
                                   KilnValue *value);
/** @a with @more zeros, a scalar, at the end of @axis. */
KilnValue *kiln_onnx_step_longer(const KilnOnnxSteps *s, KilnValue *a, int64_t axis,
                                 KilnValue *more);
/** @samples classes for each row of @x, [rows, classes], which has the logarithms of probabilities:
 * [rows, samples] of @dtype. @seed 0: that of the run. */
KilnValue *kiln_onnx_step_draw_classes(const KilnOnnxSteps *s, KilnValue *x, int64_t samples,
                                       int64_t seed, KilnDType dtype);
KilnValue *kiln_onnx_step_concat(const KilnOnnxSteps *s, KilnValue *a, KilnValue *b, int64_t axis);

/** One extent of a shape: dim @dim of @of, or @number if @of is NULL. Of a reshape, -1 is what is
 * left. */
typedef struct {
    KilnValue *of;
    int dim;
    int64_t number;
} KilnOnnxExtent;
#define KILN_ONNX_DIM(value, d)                                                                    \
    {                                                                                              \
        .of = (value), .dim = (d)                                                                  \
    }
#define KILN_ONNX_NUMBER(n)                                                                        \
    {                                                                                              \
        .number = (n)                                                                              \
    }
/** The extents as a list of i64: a constant if all are known. */
KilnValue *kiln_onnx_step_shape(const KilnOnnxSteps *s, const KilnOnnxExtent *extents, uint32_t n);
/** Dim @dim of @of as a list of one. */
KilnValue *kiln_onnx_step_extents(const KilnOnnxSteps *s, KilnValue *of, int dim);
/** The same as a scalar. */
KilnValue *kiln_onnx_step_extent(const KilnOnnxSteps *s, KilnValue *of, int dim);
/** @a broadcast to the extents. */
KilnValue *kiln_onnx_step_expand(const KilnOnnxSteps *s, KilnValue *a,
                                 const KilnOnnxExtent *extents, uint32_t n);
KilnValue *kiln_onnx_step_reshape(const KilnOnnxSteps *s, KilnValue *a,
                                  const KilnOnnxExtent *extents, uint32_t n);
/** The same for a @shape that is a list of i64. */
KilnValue *kiln_onnx_step_expand_to(const KilnOnnxSteps *s, KilnValue *a, KilnValue *shape);
KilnValue *kiln_onnx_step_reshape_to(const KilnOnnxSteps *s, KilnValue *a, KilnValue *shape);

/** Checks that operand @i has a rank from @min to @max. */
gboolean kiln_onnx_require_rank(const KilnOnnxCall *call, uint32_t i, int min, int max,
                                GError **error);
/** Checks that operand @i has the @rank dims of @dims, as far as they are known. A dim of -1 may be
 * any number. */
gboolean kiln_onnx_require_shape(const KilnOnnxCall *call, uint32_t i, const int64_t *dims,
                                 int rank, GError **error);
#define KILN_ONNX_REQUIRE_DIMS(call, i, error, ...)                                                \
    kiln_onnx_require_shape((call), (i), (int64_t[]){ __VA_ARGS__ },                               \
                            sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t), (error))
/** Checks that operand @i is a scalar or a list of one. */
gboolean kiln_onnx_require_one(const KilnOnnxCall *call, uint32_t i, GError **error);
/** 1 where dim @dim of operand @i is 1, else @number: what it must be if it may broadcast. */
int64_t kiln_onnx_one_or(const KilnOnnxCall *call, uint32_t i, int dim, int64_t number);

#endif
