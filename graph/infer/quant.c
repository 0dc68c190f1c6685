/* SPDX-License-Identifier: Apache-2.0 */
/* Shape functions of quantization, and of products whose scales and zero points are operands. */
#include "graph/graph.h"
#include "graph/infer/common.h"
#include "graph/op/qproduct.h"
#include "graph/op/quantize.h"

static const KilnDTypeSet quantized_types =
    KILN_SET_BYTES | KILN_SET(i16) | KILN_SET(u16) | KILN_SET(i4) | KILN_SET(u4) | KILN_SET(i2) |
    KILN_SET(u2) | KILN_SET(f8e4m3fn) | KILN_SET(f8e4m3fnuz) | KILN_SET(f8e5m2) |
    KILN_SET(f8e5m2fnuz) | KILN_SET(f6e2m3) | KILN_SET(f6e3m2) | KILN_SET(f4e2m1);
static const KilnDTypeSet scale_types = KILN_SET_FLOATS | KILN_SET(f8e8m0);

/* A scale or zero point for all of a tensor, or one per index of dim @dim of @type. */
static gboolean
check_parameter(const KilnInfer *in, uint32_t i, const KilnType *type, int dim, GError **error)
{
    const KilnType *parameter = kiln_infer_type(in, i);
    if (!parameter || parameter->rank <= 0)
        return TRUE;
    if (!kiln_infer_require_rank(in, i, 0, 1, error))
        return FALSE;
    if (parameter->dims[0] == 1 || type->rank <= dim)
        return TRUE;
    return kiln_infer_require_dim(in, i, 0, type->dims[dim], error);
}

/* --- quantize_linear and dequantize_linear: operands x, scale, zero point --- */

static bool
may_be_one(const KilnType *type)
{
    int64_t elements = kiln_type_elements(type);
    return elements < 0 || elements == 1;
}

/* A parameter of blocks: the dims of x, but for the axis, where one stands for each @size of it. */
static gboolean
check_blocks_of(const KilnInfer *in, uint32_t i, int axis, int64_t size, GError **error)
{
    const KilnType *x = kiln_infer_type(in, 0), *parameter = kiln_infer_type(in, i);
    if (!parameter || parameter->rank < 0)
        return TRUE;
    if (!kiln_infer_require_rank(in, i, x->rank, x->rank, error))
        return FALSE;
    for (int d = 0; d < x->rank; d++) {
        int64_t dim = x->dims[d];
        int64_t expected = d == axis && dim > 0 ? (dim - 1) / size + 1 : dim;
        if (!kiln_infer_require_dim(in, i, d, expected, error))
            return FALSE;
    }
    return TRUE;
}

static gboolean
check_blocks(const KilnInfer *in, int64_t axis, int64_t size, GError **error)
{
    const KilnType *x = kiln_infer_type(in, 0);
    int d;
    if (size < 0)
        return kiln_throw(error, KILN_ERROR_INVALID,
                          "block_size: expected at least 0, found %" G_GINT64_FORMAT, size);
    return x->rank < 0 ||
           (kiln_infer_axis(x->rank, axis, &d, error) && check_blocks_of(in, 1, d, size, error) &&
            check_blocks_of(in, 2, d, size, error));
}

static gboolean
check_linear(const KilnInfer *in, int64_t axis, int64_t block_size, GError **error)
{
    const KilnType *x = kiln_infer_type(in, 0), *scale = kiln_infer_type(in, 1);
    const KilnType *zero_point = kiln_infer_type(in, 2);
    if (x->quant)
        return kiln_infer_throw_type(in, 0, "a type that is not quantized, beside a scale", error);
    if (!scale)
        return kiln_infer_throw_type(in, 1, "a scale beside the zero point", error);
    if (block_size)
        return check_blocks(in, axis, block_size, error);
    int d = x->rank < 0 ? KILN_MAX_RANK : kiln_type_axis(x, axis);
    bool per_axis = scale->rank == 1 && !may_be_one(scale);
    if (per_axis && x->rank >= 0 && !kiln_infer_axis(x->rank, axis, &d, error))
        return FALSE;
    d = d < 0 ? KILN_MAX_RANK : d; /* nothing to compare with */
    if (!check_parameter(in, 1, x, d, error) || !check_parameter(in, 2, x, d, error))
        return FALSE;
    if (!zero_point || scale->rank < 0 || zero_point->rank < 0 ||
        (may_be_one(scale) && may_be_one(zero_point)))
        return TRUE;
    if (!kiln_infer_require_rank(in, 2, scale->rank, scale->rank, error))
        return FALSE;
    return scale->rank == 0 || kiln_infer_require_dim(in, 2, 0, scale->dims[0], error);
}

KILN_INFER(quantize_linear)
{
    const KilnType *x = kiln_infer_type(in, 0), *zero_point = kiln_infer_type(in, 2);
    const KilnAttrs_quantize_linear *attrs = kiln_attrs(in->node, quantize_linear);
    if (!kiln_infer_type(in, 1) && !zero_point)
        return kiln_infer_require(in, 0, KILN_SET_FLOATS, error) &&
               kiln_infer_typed_quantize(in, error);
    if (!kiln_infer_require(in, 0, KILN_SET_FLOATS | KILN_SET(i32), error) ||
        !kiln_infer_require(in, 1, scale_types, error) ||
        !kiln_infer_require(in, 2, quantized_types, error) ||
        !check_linear(in, attrs->axis, attrs->block_size, error))
        return FALSE;
    in->out[0] = *x;
    in->out[0].quant = NULL;
    in->out[0].dtype = zero_point ? zero_point->dtype : KILN_DTYPE_u8;
    return TRUE;
}

KILN_INFER(dequantize_linear)
{
    const KilnAttrs_dequantize_linear *attrs = kiln_attrs(in->node, dequantize_linear);
    if (!kiln_infer_type(in, 1) && !kiln_infer_type(in, 2))
        return kiln_infer_typed_dequantize(in, error);
    if (!kiln_infer_require(in, 0, quantized_types | KILN_SET(i32), error) ||
        !kiln_infer_require(in, 1, KILN_SET_FLOATS, error) ||
        !kiln_infer_require_like(in, 2, 0, error) ||
        !check_linear(in, attrs->axis, attrs->block_size, error))
        return FALSE;
    in->out[0] = *kiln_infer_type(in, 0);
    in->out[0].quant = NULL;
    in->out[0].dtype = kiln_infer_type(in, 1)->dtype;
    return TRUE;
}

KILN_INFER(dynamic_quantize_linear)
{
    if (!kiln_infer_require(in, 0, KILN_SET(f32), error))
        return FALSE;
    in->out[0] = kiln_infer_plain(kiln_infer_type(in, 0));
    in->out[0].dtype = KILN_DTYPE_u8;
    in->out[1] = kiln_type_scalar(KILN_DTYPE_f32);
    in->out[2] = kiln_type_scalar(KILN_DTYPE_u8);
    return TRUE;
}

/* --- products with weights of few bits --- */

enum {
    NBITS_COLUMNS = 32, /* a packed form may have so many columns more, which fill up a panel */
    NBITS_HEAD = 8,     /* bytes of a scale and a zero point in it, at most */
    NBITS_WORD = 4      /* bytes of the words that it keeps the numbers of a block in */
};

/* Kernels count the bytes of their packed form without asking whether they can be counted. */
static gboolean
check_nbits_packed(const KilnAttrs_matmul_nbits *attrs, GError **error)
{
    const int64_t blocks = (attrs->K - 1) / attrs->block_size + 1;
    const int64_t words = (attrs->block_size * attrs->bits - 1) / (8 * NBITS_WORD) + 1;
    int64_t bytes;
    if (!__builtin_mul_overflow(blocks * (NBITS_HEAD + NBITS_WORD * words),
                                attrs->N + NBITS_COLUMNS, &bytes))
        return TRUE;
    return kiln_throw(error, KILN_ERROR_INVALID,
                      "expected packed weights of less than 2^63 bytes, found K=%" G_GINT64_FORMAT
                      ", N=%" G_GINT64_FORMAT ", bits=%" G_GINT64_FORMAT
                      " and block_size=%" G_GINT64_FORMAT,
                      attrs->K, attrs->N, attrs->bits, attrs->block_size);
}

static gboolean
check_nbits(const KilnAttrs_matmul_nbits *attrs, GError **error)
{
    if (attrs->bits != 2 && attrs->bits != 4 && attrs->bits != 8)
        return kiln_throw(error, KILN_ERROR_INVALID,
                          "bits: expected 2, 4 or 8, found %" G_GINT64_FORMAT, attrs->bits);
    if (attrs->K < 1 || attrs->N < 1 || attrs->block_size < 1 || attrs->K > INT32_MAX ||
        attrs->N > INT32_MAX || attrs->block_size > INT32_MAX)
        return kiln_throw(error, KILN_ERROR_INVALID,
                          "expected K, N and block_size from 1 to 2147483647, found "
                          "%" G_GINT64_FORMAT ", %" G_GINT64_FORMAT " and %" G_GINT64_FORMAT,
                          attrs->K, attrs->N, attrs->block_size);
    if (attrs->block_size * attrs->bits % 8 != 0)
        return kiln_throw(error, KILN_ERROR_INVALID,
                          "block_size: expected whole bytes, found %" G_GINT64_FORMAT
                          " times %" G_GINT64_FORMAT " bits",
                          attrs->block_size, attrs->bits);
    return check_nbits_packed(attrs, error);
}

/* An operand that may be absent has elements of @dtypes and the @rank dims at @dims. */
static gboolean
check_dims(const KilnInfer *in, uint32_t i, KilnDTypeSet dtypes, const int64_t *dims, int rank,
           GError **error)
{
    const KilnType *type = kiln_infer_type(in, i);
    if (!kiln_infer_require(in, i, dtypes, error) ||
        !kiln_infer_require_rank(in, i, rank, rank, error))
        return FALSE;
    for (int d = 0; type && type->rank >= 0 && d < rank; d++) {
        if (!kiln_infer_require_dim(in, i, d, dims[d], error))
            return FALSE;
    }
    return TRUE;
}

/* Operands x, packed weights, scales, zero points, bias. The attributes say how many weights the
 * bytes stand for, because some fill up the last block. */
KILN_INFER(matmul_nbits)
{
    const KilnAttrs_matmul_nbits *attrs = kiln_attrs(in->node, matmul_nbits);
    const KilnType *a = kiln_infer_type(in, 0), *zeros = kiln_infer_type(in, 3);
    const KilnDTypeSet f32 = KILN_SET(f32), u8 = KILN_SET(u8);
    if (!check_nbits(attrs, error))
        return FALSE;
    const int64_t blocks = (attrs->K - 1) / attrs->block_size + 1;
    const int64_t weights[] = { attrs->N, blocks, attrs->block_size * attrs->bits / 8 };
    int64_t points[] = { attrs->N, blocks };
    if (zeros && zeros->dtype == KILN_DTYPE_u8)
        points[1] = (blocks * attrs->bits - 1) / 8 + 1;
    if (!kiln_infer_require(in, 0, f32, error) ||
        !kiln_infer_require_rank(in, 0, 1, KILN_MAX_RANK, error) ||
        !check_dims(in, 1, u8, weights, 3, error) || !check_dims(in, 2, f32, weights, 2, error) ||
        !check_dims(in, 3, u8 | f32, points, 2, error) ||
        !check_dims(in, 4, f32, weights, 1, error) ||
        (a->rank > 0 && !kiln_infer_require_dim(in, 0, a->rank - 1, attrs->K, error)))
        return FALSE;
    in->out[0] = kiln_infer_plain(a);
    if (a->rank > 0)
        kiln_dim_set(&in->out[0], a->rank - 1, attrs->N);
    return TRUE;
}

/* --- integer products: zero points beside the factors --- */

/* A zero point (or scale) of a factor: one, one per row ([M] or [batch…,M,1]) of the left one, one
 * per column ([N] or [batch…,1,N]) of the right one, which contracts its last dim but one. */
static gboolean
check_matrix_parameter(const KilnInfer *in, uint32_t i, uint32_t factor, bool left, GError **error)
{
    const KilnType *parameter = kiln_infer_type(in, i), *type = kiln_infer_type(in, factor);
    if (!parameter || parameter->rank <= 0 || type->rank < 0)
        return TRUE;
    if (type->rank < 2)
        return kiln_infer_require_scalar(in, i, error);
    if (parameter->rank == 1)
        return check_parameter(in, i, type, type->rank - (left ? 2 : 1), error);
    KilnType expected = kiln_infer_plain(type);
    kiln_dim_set(&expected, type->rank - (left ? 1 : 2), 1);
    return kiln_infer_require_broadcast_to(in, i, &expected, error);
}

KILN_INFER(matmul_integer)
{
    if (!kiln_infer_require(in, 0, KILN_SET_BYTES, error) ||
        !kiln_infer_require(in, 1, KILN_SET_BYTES, error) ||
        !kiln_infer_require_like(in, 2, 0, error) || !kiln_infer_require_like(in, 3, 1, error) ||
        !check_matrix_parameter(in, 2, 0, true, error) ||
        !check_matrix_parameter(in, 3, 1, false, error))
        return FALSE;
    in->out[0].dtype = KILN_DTYPE_i32;
    return kiln_infer_matmul_shape(in, 0, 1, &in->out[0], error);
}

KILN_INFER(qlinear_matmul)
{
    for (uint32_t i = 0; i < 8; i++) {
        bool scale = i == 1 || i == 4 || i == 6;
        if (!kiln_infer_require(in, i, scale ? KILN_SET_FLOATS : KILN_SET_BYTES, error))
            return FALSE;
    }
    if (!kiln_infer_require_like(in, 2, 0, error) || !kiln_infer_require_like(in, 5, 3, error) ||
        !check_matrix_parameter(in, 1, 0, true, error) ||
        !check_matrix_parameter(in, 2, 0, true, error) ||
        !check_matrix_parameter(in, 4, 3, false, error) ||
        !check_matrix_parameter(in, 5, 3, false, error))
        return FALSE;
    in->out[0].dtype = kiln_infer_type(in, 7)->dtype;
    return kiln_infer_matmul_shape(in, 0, 3, &in->out[0], error);
}

KILN_INFER(conv_integer)
{
    if (!kiln_infer_require(in, 0, KILN_SET_BYTES, error) ||
        !kiln_infer_require(in, 1, KILN_SET_BYTES, error) ||
        !kiln_infer_require_like(in, 2, 0, error) || !kiln_infer_require_like(in, 3, 1, error) ||
        !kiln_infer_require_scalar(in, 2, error) ||
        !check_parameter(in, 3, kiln_infer_type(in, 1), 0, error))
        return FALSE;
    in->out[0].dtype = KILN_DTYPE_i32;
    return kiln_infer_conv_shape(in, 1, KILN_MANY, &in->out[0], error);
}

/* Operands x, its scale and zero point, weights, theirs, the result's, bias. */
KILN_INFER(qlinear_conv)
{
    for (uint32_t i = 0; i < 8; i++) {
        bool scale = i == 1 || i == 4 || i == 6, weights = i == 4 || i == 5;
        if (!kiln_infer_require(in, i, scale ? KILN_SET_FLOATS : KILN_SET_BYTES, error) ||
            (i != 0 && i != 3 && !weights && !kiln_infer_require_scalar(in, i, error)) ||
            (weights && !check_parameter(in, i, kiln_infer_type(in, 3), 0, error)))
            return FALSE;
    }
    if (!kiln_infer_require_like(in, 2, 0, error) || !kiln_infer_require_like(in, 5, 3, error) ||
        !kiln_infer_require(in, 8, KILN_SET(i32), error))
        return FALSE;
    in->out[0].dtype = kiln_infer_type(in, 7)->dtype;
    return kiln_infer_conv_shape(in, 3, 8, &in->out[0], error);
}
