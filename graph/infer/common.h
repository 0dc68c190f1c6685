/* SPDX-License-Identifier: Apache-2.0 */
/* What the shape functions share: checks of operands and attributes, and arithmetic on dims.
 *
 * A check passes where what it looks at is not known yet; an absent operand passes every check. All
 * checks set KILN_ERROR_TYPE or KILN_ERROR_SHAPE and say `expected X, found Y`. */
#ifndef KILN_GRAPH_INFER_COMMON_H
#define KILN_GRAPH_INFER_COMMON_H

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
#define KILN_SET_ANY ((1u << KILN_N_DTYPES) - 1)
/** Added to a set: integers whose type says how they are quantized stand for floats. */
#define KILN_SET_QUANTIZED (1u << 31)

/** 128 bits, so that geometry of any 64-bit dims and attributes cannot overflow. */
__extension__ typedef __int128 KilnWide;

/* --- errors --- */

/** `operand i: expected X, found <type>`, as KILN_ERROR_SHAPE. Always FALSE. */
gboolean kiln_infer_throw_shape(const KilnNode *node, uint32_t i, GError **error,
                                const char *format, ...) G_GNUC_PRINTF(4, 5);

/* --- checks of operands --- */

gboolean kiln_infer_require(const KilnInfer *in, uint32_t i, KilnDTypeSet set, GError **error);
/** Operand @i has the element type of operand @like. */
gboolean kiln_infer_require_like(const KilnInfer *in, uint32_t i, uint32_t like, GError **error);
/** No operand of a variadic op is absent. */
gboolean kiln_infer_require_present(const KilnInfer *in, GError **error);
/** Every operand has the element type of the first; or all are quantized, in types of their own. */
gboolean kiln_infer_require_alike(const KilnInfer *in, GError **error);
gboolean kiln_infer_require_rank(const KilnInfer *in, uint32_t i, int min, int max, GError **error);
/** One element: rank 0, or a vector of one as exporters write it. */
gboolean kiln_infer_require_scalar(const KilnInfer *in, uint32_t i, GError **error);
/** A list of integers in operand @i: an element type of @set and rank 1 (or 0 where @or_scalar). */
gboolean kiln_infer_require_list(const KilnInfer *in, uint32_t i, KilnDTypeSet set, bool or_scalar,
                                 GError **error);
/** Operand @i is a vector as long as dim @dim of @type. */
gboolean kiln_infer_require_vector(const KilnInfer *in, uint32_t i, const KilnType *type, int dim,
                                   GError **error);
/** Dim @d of operand @i is @expected, unless one of them is not known. */
gboolean kiln_infer_require_dim(const KilnInfer *in, uint32_t i, int d, int64_t expected,
                                GError **error);
/** Operand @i broadcasts to @type without changing it. */
gboolean kiln_infer_require_broadcast_to(const KilnInfer *in, uint32_t i, const KilnType *type,
                                         GError **error);
/** Elements of a list operand, from its values or its type; -1 where not known or absent. */
int64_t kiln_infer_list_length(const KilnInfer *in, uint32_t i);

/* --- attributes --- */

/** The field @name of the node's attributes; NULL where its op has none of that name and kind. */
const void *kiln_infer_attr(const KilnNode *node, const char *name, KilnAttrKind kind);
bool kiln_infer_attr_bool(const KilnNode *node, const char *name, bool otherwise);
int64_t kiln_infer_attr_int(const KilnNode *node, const char *name, int64_t otherwise);
KilnInts kiln_infer_attr_ints(const KilnNode *node, const char *name);
/** An attribute that names one of @choices (separated by one space). */
gboolean kiln_infer_one_of(const char *name, const char *value, const char *choices,
                           GError **error);
/** @axis of [-rank, rank) in [0, rank). */
gboolean kiln_infer_axis(int rank, int64_t axis, int *out, GError **error);
/** Marks @axes, which must be in range and unique. */
gboolean kiln_infer_mark_axes(const int64_t *axes, int64_t n, int rank, bool marked[KILN_MAX_RANK],
                              GError **error);

/* --- results --- */

/** Shape and element type of @type: plain and unquantized. */
static inline KilnType
kiln_infer_plain(const KilnType *type)
{
    KilnType plain = *type;
    plain.layout = NULL;
    plain.quant = NULL;
    return plain;
}
/** @rank dims that are not known; unranked where @rank is negative. */
KilnType kiln_infer_unknown(KilnDType dtype, int64_t rank);
gboolean kiln_infer_check_rank(int64_t rank, GError **error);
/** The quantization of operand @i where it is per tensor, so that moving elements keeps it. */
const KilnQuant *kiln_infer_moved_quant(const KilnInfer *in, uint32_t i);
/** The quantization of operand 0 where its axis, if it has one, becomes @axis of the result; NULL
 * where that is negative: there is no such axis. */
const KilnQuant *kiln_infer_quant_along(const KilnInfer *in, int axis);
/** Quantized factors of a product in operands 0 and 1, weights per tensor or along @axis (negative:
 * not), and bias in operand 2: i32 in steps of the sums. Passes where neither factor is. */
gboolean kiln_infer_check_quantized_product(const KilnInfer *in, int axis, GError **error);
/** quantize_linear and dequantize_linear of one operand, whose parameters stand in types. */
gboolean kiln_infer_typed_quantize(KilnInfer *in, GError **error);
gboolean kiln_infer_typed_dequantize(KilnInfer *in, GError **error);

static inline void
kiln_dim_set(KilnType *type, int d, int64_t value)
{
    type->dims[d] = value < 0 ? KILN_DIM_UNKNOWN : value;
    type->dim_names[d] = NULL;
}
static inline void
kiln_dim_copy(KilnType *to, int d, const KilnType *from, int from_d)
{
    to->dims[d] = from->dims[from_d];
    to->dim_names[d] = from->dim_names[from_d];
}
/** Dim @d of @to is also dim @from_d of @from: takes what is known of either; false where two
 * numbers differ. */
bool kiln_dim_merge(KilnType *to, int d, const KilnType *from, int from_d);
/** Sets dim @d to the product of @n dims of @from; a lone dim keeps its name. */
gboolean kiln_dim_product(KilnType *to, int d, const KilnType *from, int first, int n,
                          GError **error);
/** Sets a dim to @value, which must be in [0, 2^63). */
gboolean kiln_dim_set_wide(KilnType *to, int d, KilnWide value, GError **error);

/** Broadcasts the shapes of all present operands from @first on; @out's dtype is left alone. */
gboolean kiln_infer_broadcast_operands(const KilnInfer *in, uint32_t first, KilnType *out,
                                       GError **error);

/* --- values of operands --- */

/** Values of a list operand that are not integers, from its constant: fills @out with up to @max of
 * them and sets @n; false where they are not known (or there are more). */
bool kiln_infer_floats(const KilnValue *value, double *out, int64_t max, int64_t *n);

/* --- known integers of results: one line per shape function; each does nothing where the result
 * cannot be known --- */

/** Zeroed elements for result @r; NULL where its type is not static, plain, integer or bool, or has
 * too many elements. */
int64_t *kiln_known_result(KilnInfer *in, uint32_t r);
void kiln_known_forget(KilnInfer *in, uint32_t r);
/** Known integers of operand @i, as many as its static type has elements; else NULL. */
const int64_t *kiln_known_operand(const KilnInfer *in, uint32_t i);
/** Result @r holds the elements of operand @i in the same order. */
void kiln_known_copy(KilnInfer *in, uint32_t r, uint32_t i);
/** The node's element-wise op on its broadcast operands. */
void kiln_known_elementwise(KilnInfer *in);
/** Element (i0, i1, …) of result @r is element @base + Σ i·stride of operand @i. */
void kiln_known_strided(KilnInfer *in, uint32_t r, uint32_t i, int64_t base,
                        const int64_t strides[KILN_MAX_RANK]);
/** reduce_sum, reduce_prod, reduce_max and reduce_min over the marked axes. */
void kiln_known_reduce(KilnInfer *in, const bool reduced[KILN_MAX_RANK]);
/** Row-major strides of a static type. */
void kiln_known_strides(const KilnType *type, int64_t strides[KILN_MAX_RANK]);

/* --- checks that `same` adds for the ops that have their family elsewhere --- */

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

/** The shape of numpy's matmul of operands @a and @b; @out's dtype is left alone. */
gboolean kiln_infer_matmul_shape(const KilnInfer *in, uint32_t a, uint32_t b, KilnType *out,
                                 GError **error);
/** Checks data, weights and bias of a convolution with weights in operand @w and gives the shape of
 * its result. */
gboolean kiln_infer_conv_shape(const KilnInfer *in, uint32_t w, uint32_t bias, KilnType *out,
                               GError **error);

#endif
