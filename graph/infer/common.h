/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers of the shape functions: checks of operands and attributes, and arithmetic on dims.
 *
 * A check passes if its subject is not known yet, or if the operand is absent. All checks set
 * KILN_ERROR_TYPE or KILN_ERROR_SHAPE and say `expected X, found Y`. */
#ifndef KILN_GRAPH_INFER_COMMON_H
#define KILN_GRAPH_INFER_COMMON_H

#include "graph/graph.h"
#include "graph/infer/infer.h"

/** Sets of element types: bit `1 << dtype`. */
typedef uint32_t KilnDTypeSet;
#define KILN_SET(dtype) (1u << KILN_DTYPE_##dtype)
#define KILN_SET_FLOATS (KILN_SET(f32) | KILN_SET(f64) | KILN_SET(f16) | KILN_SET(bf16))
#define KILN_SET_SIGNED (KILN_SET(i8) | KILN_SET(i16) | KILN_SET(i32) | KILN_SET(i64))
#define KILN_SET_UNSIGNED (KILN_SET(u8) | KILN_SET(u16) | KILN_SET(u32) | KILN_SET(u64))
#define KILN_SET_INTEGERS (KILN_SET_SIGNED | KILN_SET_UNSIGNED)
#define KILN_SET_NUMBERS (KILN_SET_FLOATS | KILN_SET_INTEGERS)
#define KILN_SET_INDICES (KILN_SET(i32) | KILN_SET(i64))
#define KILN_SET_BYTES (KILN_SET(i8) | KILN_SET(u8))
#define KILN_SET_ITEMS (KILN_SET(sequence) | KILN_SET(optional) | KILN_SET(map))
#define KILN_SET_ANY (((1u << KILN_N_DTYPES) - 1) & ~KILN_SET_ITEMS)
/** A flag in a set: quantized integers (by their type) count as floats. */
#define KILN_SET_QUANTIZED (1u << 31)

/** 128 bits, so that geometry of any 64-bit dims and attributes does not overflow. */
__extension__ typedef __int128 KilnWide;

/* --- errors --- */

/** Sets KILN_ERROR_SHAPE, `operand i: expected X, found <type>`. Always FALSE. */
gboolean kiln_infer_throw_shape(const KilnNode *node, uint32_t i, GError **error,
                                const char *format, ...) G_GNUC_PRINTF(4, 5);

/* --- checks of operands --- */

gboolean kiln_infer_require(const KilnInfer *in, uint32_t i, KilnDTypeSet set, GError **error);
/** Checks that operand @i has the element type of operand @like. */
gboolean kiln_infer_require_like(const KilnInfer *in, uint32_t i, uint32_t like, GError **error);
/** Checks that no operand of a variadic op is absent. */
gboolean kiln_infer_require_present(const KilnInfer *in, GError **error);
/** Checks that all operands have the element type of the first, or that all are quantized, each in
 * its own type. */
gboolean kiln_infer_require_alike(const KilnInfer *in, GError **error);
gboolean kiln_infer_require_rank(const KilnInfer *in, uint32_t i, int min, int max, GError **error);
/** Checks for one element: rank 0, or a vector of one as exporters write it. */
gboolean kiln_infer_require_scalar(const KilnInfer *in, uint32_t i, GError **error);
/** Checks that operand @i is a list: an element type of @set and rank 1 (or 0 if @or_scalar). */
gboolean kiln_infer_require_list(const KilnInfer *in, uint32_t i, KilnDTypeSet set, bool or_scalar,
                                 GError **error);
/** Checks that operand @i is a vector as long as dim @dim of @type. */
gboolean kiln_infer_require_vector(const KilnInfer *in, uint32_t i, const KilnType *type, int dim,
                                   GError **error);
/** Checks that dim @d of operand @i is @expected, unless one of them is not known. */
gboolean kiln_infer_require_dim(const KilnInfer *in, uint32_t i, int d, int64_t expected,
                                GError **error);
/** Checks that operand @i broadcasts to @type without changing it. */
gboolean kiln_infer_require_broadcast_to(const KilnInfer *in, uint32_t i, const KilnType *type,
                                         GError **error);
/** The length of a list operand, from its values or its type; -1 if not known or absent. */
int64_t kiln_infer_list_length(const KilnInfer *in, uint32_t i);

/* --- attributes --- */

/** The field @name of the node's attributes; NULL if its op has none of that name and kind. */
const void *kiln_infer_attr(const KilnNode *node, const char *name, KilnAttrKind kind);
bool kiln_infer_attr_bool(const KilnNode *node, const char *name, bool otherwise);
int64_t kiln_infer_attr_int(const KilnNode *node, const char *name, int64_t otherwise);
KilnInts kiln_infer_attr_ints(const KilnNode *node, const char *name);
/** Checks that attribute @name has one of the values in @choices (separated by one space). */
gboolean kiln_infer_one_of(const char *name, const char *value, const char *choices,
                           GError **error);
enum {
    KILN_INFER_SEPARATORS = 64 /* patterns of a tokenizer */
};
/** Checks the attributes of `tokenizer`, and that its patterns are sound. */
gboolean kiln_infer_tokens(KilnStrings separators, const char *tokenexp, int64_t mincharnum,
                           GError **error);
/** Maps @axis from [-rank, rank) to [0, rank). */
gboolean kiln_infer_axis(int rank, int64_t axis, int *out, GError **error);
/** Marks @axes. They must be in range and unique. */
gboolean kiln_infer_mark_axes(const int64_t *axes, int64_t n, int rank, bool marked[KILN_MAX_RANK],
                              GError **error);

/* --- results --- */

/** The shape and element type of @type, plain and unquantized. */
static inline KilnType
kiln_infer_plain(const KilnType *type)
{
    KilnType plain = *type;
    plain.layout = NULL;
    plain.quant = NULL;
    return plain;
}
/** A type of @rank unknown dims; unranked if @rank is negative. */
KilnType kiln_infer_unknown(KilnDType dtype, int64_t rank);
gboolean kiln_infer_check_rank(int64_t rank, GError **error);
/** The quantization of operand @i if it is per tensor: moving elements keeps it. */
const KilnQuant *kiln_infer_moved_quant(const KilnInfer *in, uint32_t i);
/** The quantization of operand 0, with @axis as its axis in the result. NULL if it has an axis and
 * @axis is negative. */
const KilnQuant *kiln_infer_quant_along(const KilnInfer *in, int axis);
/** Checks the quantized factors of a product in operands 0 and 1, and its bias in operand 2.
 * Weights are per tensor or along @axis (negative: per tensor only). The bias is i32 in steps of
 * the sums. Passes if neither factor is quantized. */
gboolean kiln_infer_check_quantized_product(const KilnInfer *in, int axis, GError **error);
/** Infers quantize_linear and dequantize_linear of one operand, with parameters in the types. */
gboolean kiln_infer_typed_quantize(KilnInfer *in, GError **error);
gboolean kiln_infer_typed_dequantize(KilnInfer *in, GError **error);

static inline void
kiln_dim_set(KilnType *type, int d, int64_t value)
{
    type->dims[d] = value < 0 ? KILN_DIM_UNKNOWN : value;
    type->open[d] = NULL;
}
static inline void
kiln_dim_copy(KilnType *to, int d, const KilnType *from, int from_d)
{
    to->dims[d] = from->dims[from_d];
    to->open[d] = from->open[from_d];
}
/** Merges dim @from_d of @from into dim @d of @to, which is the same dim. False if two known
 * numbers differ. */
bool kiln_dim_merge(KilnType *to, int d, const KilnType *from, int from_d);
/** Sets dim @d to the product of @n dims of @from. */
gboolean kiln_dim_product(KilnType *to, int d, const KilnType *from, int first, int n,
                          GError **error);
/** Sets a dim to @value, which must be in [0, 2^63). */
gboolean kiln_dim_set_wide(KilnType *to, int d, KilnWide value, GError **error);
/** Sets a dim to the number or expression @dim. NULL: not known. Fails where it is certainly
 * negative. */
gboolean kiln_dim_set_open(KilnType *to, int d, const KilnDim *dim, GError **error);
/** Sets dim @d of @to to dim @from_d of @from times @times ≥ 0 plus @more. */
gboolean kiln_dim_set_scaled(KilnType *to, int d, const KilnType *from, int from_d, int64_t times,
                             KilnWide more, GError **error);

/** Broadcasts the shapes of all present operands from @first on. Does not change @out's dtype. */
gboolean kiln_infer_broadcast_operands(const KilnInfer *in, uint32_t first, KilnType *out,
                                       GError **error);

/* --- values of operands --- */

/** Reads a constant list operand of floats: up to @max values into @out, and their number into @n.
 * False if they are not known, or more than @max. */
bool kiln_infer_floats(const KilnValue *value, double *out, int64_t max, int64_t *n);

/* --- known integers of results: each function does nothing if the result cannot be known --- */

/** Zeroed elements for result @r. NULL unless its type is static, plain, integer or bool, and small
 * enough. */
int64_t *kiln_known_result(KilnInfer *in, uint32_t r);
void kiln_known_forget(KilnInfer *in, uint32_t r);
/** Known integers of operand @i, one per element of its static type; else NULL. */
const int64_t *kiln_known_operand(const KilnInfer *in, uint32_t i);
/** Gives result @r the elements of operand @i in the same order. */
void kiln_known_copy(KilnInfer *in, uint32_t r, uint32_t i);
/** Computes the node's element-wise op on its broadcast operands. */
void kiln_known_elementwise(KilnInfer *in);
/** Sets element (i0, i1, …) of result @r to element @base + Σ i·stride of operand @i. */
void kiln_known_strided(KilnInfer *in, uint32_t r, uint32_t i, int64_t base,
                        const int64_t strides[KILN_MAX_RANK]);
/** Computes reduce_sum, reduce_prod, reduce_max and reduce_min over the marked axes. */
void kiln_known_reduce(KilnInfer *in, const bool reduced[KILN_MAX_RANK]);
/** The row-major strides of a static type. */
void kiln_known_strides(const KilnType *type, int64_t strides[KILN_MAX_RANK]);

/** A bound of the operator `shape`, clamped into [0, @rank]. */
static inline int
kiln_infer_shape_bound(int64_t bound, int rank)
{
    bound += bound < 0 && bound >= -rank ? rank : 0;
    return (int)CLAMP(bound, 0, rank);
}
/** True if @dim is known and never less than 0. */
static inline bool
kiln_infer_is_natural(const KilnDim *dim)
{
    int64_t lo, hi;
    kiln_dim_range(dim, &lo, &hi);
    return dim && lo >= 0;
}

/* --- quotients: numbers of floats on the way from shapes to shapes --- */

/** An element: over / under, with under >= 1. It is not known where @over is NULL. */
typedef struct {
    const KilnDim *over;
    int64_t under;
} KilnRatio;

/** Element @k of operand @i, an integer or a float. */
KilnRatio kiln_infer_ratio(const KilnInfer *in, uint32_t i, int64_t k);
/** True where @dtype is f32 or f64, and holds @ratio for all values of the names. */
bool kiln_ratio_is_exact(KilnRatio ratio, KilnDType dtype);
/** True for the operators that kiln_ratio_calculate() is for, where it knows the result or not. */
bool kiln_ratio_knows(KilnOp op);
/** Computes @op on floats of @dtype. */
KilnRatio kiln_ratio_calculate(KilnDimTable *dims, KilnOp op, KilnDType dtype,
                               const KilnRatio v[2]);
/** @ratio as an element of @to. The caller sees to it that it fits there. */
KilnRatio kiln_ratio_cast(KilnDimTable *dims, KilnRatio ratio, KilnDType from, KilnDType to);

/* --- checks of shape function `same` for ops of other families --- */

gboolean kiln_infer_check_cum_sum(const KilnInfer *in, GError **error);
gboolean kiln_infer_check_instance_normalization(const KilnInfer *in, GError **error);
gboolean kiln_infer_check_group_normalization(const KilnInfer *in, GError **error);
gboolean kiln_infer_check_lrn(const KilnInfer *in, GError **error);
gboolean kiln_infer_check_mean_variance_normalization(const KilnInfer *in, GError **error);
gboolean kiln_infer_check_scatter_elements(const KilnInfer *in, GError **error);
gboolean kiln_infer_check_scatter_nd(const KilnInfer *in, GError **error);
gboolean kiln_infer_check_trilu(const KilnInfer *in, GError **error);
gboolean kiln_infer_check_reverse_sequence(const KilnInfer *in, GError **error);

/* --- shared by families --- */

/** The shape of numpy's matmul of operands @a and @b. Does not change @out's dtype. */
gboolean kiln_infer_matmul_shape(const KilnInfer *in, uint32_t a, uint32_t b, KilnType *out,
                                 GError **error);
/** Checks data, weights (operand @w) and bias of a convolution. Gives the shape of its result. */
gboolean kiln_infer_conv_shape(const KilnInfer *in, uint32_t w, uint32_t bias, KilnType *out,
                               GError **error);

#endif
