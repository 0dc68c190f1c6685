/* SPDX-License-Identifier: Apache-2.0 */
/* MatMulNBits of com.microsoft: a product with weights of 2, 4 or 8 bits, each block of which along
 * the inner dim has a scale and a zero point. It becomes matmul_nbits, whose kernels read the
 * packed weights. Products of halves are computed in f32, as ONNX Runtime computes them.
 *
 * Groups say for each place along K whose scale and zero point it has. Where there are groups,
 * weights become floats. They are constants, so that folding does this when the model is compiled:
 *
 *   b: u8[N, blocks, bytes] => bits of a byte, the lowest first => f[N, blocks, block size]
 *   a . transpose(((b - zero) * scale)[N, K]) + bias */
#include "graph/onnx/contrib/bits.h"

#include "graph/graph.h"
#include "graph/onnx/convert.h"
#include "graph/onnx/steps.h"
#include "graph/op/logic.h"
#include "graph/op/qproduct.h"

typedef struct {
    KilnOnnxSteps s;
    KilnDType dtype; /* of the product */
    int64_t k, n, bits, block, blocks;
} Blocks;

/* Numbers of each block of @rows rows, as a list or as rows of @each. */
static gboolean
check_rows(const KilnOnnxCall *call, uint32_t i, int64_t rows, int64_t each, GError **error)
{
    const KilnValue *x = kiln_onnx_operand(call, i);
    return x && x->type.rank == 2   ? KILN_ONNX_REQUIRE_DIMS(call, i, error, rows, each)
           : x && x->type.rank == 1 ? KILN_ONNX_REQUIRE_DIMS(call, i, error, rows * each)
                                    : kiln_onnx_require_rank(call, i, 1, 3, error);
}

static gboolean
check_shapes(const KilnOnnxCall *call, const Blocks *b, GError **error)
{
    const KilnValue *zeros = kiln_onnx_operand(call, 3);
    const int64_t bytes = b->block * b->bits / 8, packed = b->blocks * b->bits;
    const KilnValue *groups = kiln_onnx_operand(call, 4);
    const int64_t padded = b->blocks * b->block;
    const int64_t all =
        groups && groups->type.rank == 1 && groups->type.dims[0] == padded ? padded : b->k;
    const bool whole = !zeros || zeros->type.dtype != KILN_DTYPE_u8;
    return (call->operands[1]->type.rank != 3 ||
            KILN_ONNX_REQUIRE_DIMS(call, 1, error, b->n, b->blocks, bytes)) &&
           check_rows(call, 2, b->n, b->blocks, error) &&
           check_rows(call, 3, b->n, whole ? b->blocks : packed / 8 + (packed % 8 != 0), error) &&
           KILN_ONNX_REQUIRE_DIMS(call, 4, error, all) &&
           KILN_ONNX_REQUIRE_DIMS(call, 5, error, b->n);
}

static gboolean
read_attrs(KilnOnnxCall *call, Blocks *b, GError **error)
{
    int64_t level = 0, packed = 0;
    if (!kiln_onnx_take_int(call, "K", &b->k, error) ||
        !kiln_onnx_take_int(call, "N", &b->n, error) ||
        !kiln_onnx_take_int(call, "bits", &b->bits, error) ||
        !kiln_onnx_take_int(call, "block_size", &b->block, error) ||
        !kiln_onnx_take_int(call, "accuracy_level", &level, error) ||
        !kiln_onnx_take_int(call, "weight_prepacked", &packed, error))
        return FALSE;
    if (b->k < 1 || b->n < 1 || b->block < 1 || b->k > INT32_MAX || b->n > INT32_MAX ||
        b->block > INT32_MAX)
        return kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                               "expected K, N and block_size from 1 to 2147483647, found "
                               "%" G_GINT64_FORMAT ", %" G_GINT64_FORMAT " and %" G_GINT64_FORMAT,
                               b->k, b->n, b->block);
    b->blocks = (b->k + b->block - 1) / b->block;
    if (b->bits != 2 && b->bits != 4 && b->bits != 8)
        return kiln_onnx_unsupported(call, error, "bits=%" G_GINT64_FORMAT, b->bits);
    if (packed)
        return kiln_onnx_unsupported(call, error, "weights that are packed for another machine");
    return check_shapes(call, b, error);
}

static KilnValue *
reshaped(const Blocks *b, KilnValue *x, int64_t rows, int64_t columns, int64_t last)
{
    const KilnOnnxExtent extents[] = { KILN_ONNX_NUMBER(rows), KILN_ONNX_NUMBER(columns),
                                       KILN_ONNX_NUMBER(last) };
    return kiln_onnx_step_reshape(&b->s, x, extents, last ? 3 : 2);
}

KilnValue *
kiln_onnx_step_unpack(const KilnOnnxSteps *s, KilnValue *x, int64_t bits, bool high)
{
    static const KilnAttrs_bit_shift right = { .direction = "RIGHT" };
    const int64_t parts = 8 / bits, last = x ? x->type.rank : 0;
    KilnOnnxExtent extents[KILN_MAX_RANK];
    KilnValue *all = NULL;
    if (parts == 1 || !x)
        return x;
    if (last < 1 || x->type.dims[last - 1] < 0 || x->type.dims[last - 1] > INT64_MAX / 8) {
        kiln_onnx_unsupported(s->call, s->error, "an unknown number of bytes");
        return NULL;
    }
    for (int64_t i = 0; i < parts; i++) {
        const int64_t by = (high ? parts - 1 - i : i) * bits;
        KilnValue *part = x;
        if (by)
            part = kiln_onnx_step2(s, KILN_OP_bit_shift, &right, x,
                                   kiln_onnx_scalar(s->call, "by", KILN_DTYPE_u8, (double)by));
        part = kiln_onnx_step2(
            s, KILN_OP_bitwise_and, NULL, part,
            kiln_onnx_scalar(s->call, "mask", KILN_DTYPE_u8, (double)((1 << bits) - 1)));
        part = kiln_onnx_step_unsqueeze(s, part, &last, 1);
        all = i ? kiln_onnx_step_concat(s, all, part, last) : part;
    }
    for (int d = 0; d < last - 1; d++)
        extents[d] = (KilnOnnxExtent)KILN_ONNX_DIM(x, d);
    extents[last - 1] = (KilnOnnxExtent)KILN_ONNX_NUMBER(x->type.dims[last - 1] * parts);
    return kiln_onnx_step_reshape(s, all, extents, (uint32_t)last);
}

/* A zero point for each block: [N, blocks, 1]. Bytes have several, floats are as they are. */
static KilnValue *
zeros(const Blocks *b, KilnValue *zero)
{
    if (!zero)
        return kiln_onnx_scalar(b->s.call, "zero", b->dtype, (double)(1 << (b->bits - 1)));
    if (zero->type.dtype == KILN_DTYPE_u8) {
        zero = kiln_onnx_step_unpack(&b->s, reshaped(b, zero, b->n, 1, -1), b->bits, false);
        zero = kiln_onnx_step_slice(&b->s, zero, 2, 0, b->blocks, 1);
    }
    return kiln_onnx_step_cast(&b->s, reshaped(b, zero, b->n, b->blocks, 1), b->dtype);
}

/* @x, [N, blocks, 1], for each place of [N, K] by its group. */
static KilnValue *
of_groups(const Blocks *b, KilnValue *x)
{
    KilnValue *groups = kiln_onnx_operand(b->s.call, 4);
    if (!groups || !x || x->type.rank != 3)
        return x;
    x = reshaped(b, x, b->n, b->blocks, 0);
    groups = kiln_onnx_step_slice(&b->s, groups, 0, 0, b->k, 1);
    return kiln_onnx_step_gather(&b->s, x, kiln_onnx_step_from_front(&b->s, x, 1, groups), 1);
}

/* @w, numbers of [N, blocks, block size], as [N, K] */
static KilnValue *
matrix_of(const Blocks *b, KilnValue *w)
{
    w = reshaped(b, w, b->n, b->blocks * b->block, 0);
    return b->blocks * b->block == b->k ? w : kiln_onnx_step_slice(&b->s, w, 1, 0, b->k, 1);
}

/* [N, K] */
static KilnValue *
weights_of(const Blocks *b)
{
    const KilnOnnxCall *call = b->s.call;
    const bool grouped = kiln_onnx_operand(call, 4);
    KilnValue *w = reshaped(b, call->operands[1], b->n, b->blocks, -1);
    w = kiln_onnx_step_cast(&b->s, kiln_onnx_step_unpack(&b->s, w, b->bits, false), b->dtype);
    if (grouped)
        w = matrix_of(b, w);
    w = w ? kiln_onnx_step_sub(&b->s, w, of_groups(b, zeros(b, kiln_onnx_operand(call, 3)))) : NULL;
    KilnValue *scale = w ? reshaped(b, call->operands[2], b->n, b->blocks, 1) : NULL;
    scale = of_groups(b, kiln_onnx_step_cast(&b->s, scale, b->dtype));
    w = kiln_onnx_step_mul(&b->s, w, scale);
    return grouped ? w : matrix_of(b, w);
}

/* @x as f32 of @rows rows of @columns, or as it is if it has this shape already. */
static KilnValue *
rows_of(const Blocks *b, KilnValue *x, int64_t rows, int64_t columns)
{
    if (x && (x->type.rank != 2 || x->type.dims[0] != rows || x->type.dims[1] != columns))
        x = reshaped(b, x, rows, columns, 0);
    return x;
}

/* The product with packed weights. */
static KilnValue *
packed_product(const Blocks *b, KilnValue *a)
{
    KilnOnnxCall *call = b->s.call;
    const KilnAttrs_matmul_nbits attrs = {
        .K = b->k, .N = b->n, .bits = b->bits, .block_size = b->block
    };
    const int64_t packed = (b->blocks * b->bits + 7) / 8;
    KilnValue *w = call->operands[1], *scales = call->operands[2];
    KilnValue *points = kiln_onnx_operand(call, 3), *bias = kiln_onnx_operand(call, 5);
    if (w->type.rank != 3)
        w = reshaped(b, w, b->n, b->blocks, -1);
    scales = kiln_onnx_step_cast(&b->s, rows_of(b, scales, b->n, b->blocks), KILN_DTYPE_f32);
    if (points && points->type.dtype == KILN_DTYPE_u8)
        points = rows_of(b, points, b->n, packed);
    else if (points)
        points = kiln_onnx_step_cast(&b->s, rows_of(b, points, b->n, b->blocks), KILN_DTYPE_f32);
    bias = kiln_onnx_step_cast(&b->s, bias, KILN_DTYPE_f32);
    KilnValue *operands[] = { a, w, scales, points, bias };
    if (!a || !w || !scales || (!points && kiln_onnx_operand(call, 3)) ||
        (!bias && kiln_onnx_operand(call, 5)))
        return NULL;
    return kiln_onnx_build(call, KILN_OP_matmul_nbits, &attrs, operands,
                           bias     ? 5
                           : points ? 4
                                    : 3,
                           b->s.error);
}

/* The product with weights that become floats. */
static KilnValue *
float_product(const Blocks *b, KilnValue *a)
{
    static const int64_t swap[] = { 1, 0 };
    KilnValue *w = a ? weights_of(b) : NULL, *bias = kiln_onnx_operand(b->s.call, 5);
    KilnValue *y = kiln_onnx_step_matmul(&b->s, a, kiln_onnx_step_transpose(&b->s, w, swap, 2));
    return y && bias ? kiln_onnx_step_add(&b->s, y, kiln_onnx_step_cast(&b->s, bias, b->dtype)) : y;
}

/* (a, b, scales, zero points, groups, bias) */
gboolean
kiln_onnx_convert_matmul_nbits(KilnOnnxCall *call, GError **error)
{
    Blocks b = { .s = { call, error }, .bits = 4 };
    for (uint32_t i = 0; i < 3; i++) {
        if (!kiln_onnx_need(call, i, error))
            return FALSE;
    }
    if (!read_attrs(call, &b, error))
        return FALSE;
    KilnDType dtype = call->operands[0]->type.dtype;
    b.dtype = kiln_dtype_is_half(dtype) ? KILN_DTYPE_f32 : dtype;
    const bool packed = !kiln_onnx_operand(call, 4) && b.dtype == KILN_DTYPE_f32 &&
                        call->operands[1]->type.dtype == KILN_DTYPE_u8 && b.block * b.bits % 8 == 0;
    KilnValue *a = kiln_onnx_step_cast(&b.s, call->operands[0], b.dtype);
    KilnValue *y = packed ? packed_product(&b, a) : float_product(&b, a);
    return kiln_onnx_set_result(call, 0, kiln_onnx_step_cast(&b.s, y, dtype));
}
