/* SPDX-License-Identifier: Apache-2.0 */
/* MatMulNBits of com.microsoft: a product with weights of 2, 4 or 8 bits, each block of which along
 * the inner dim has a scale and a zero point. Weights become floats. They are constants, so that
 * folding does this when the model is compiled. Products of halves are computed in f32, as ONNX
 * Runtime computes them.
 *
 *   b: u8[N, blocks, bytes] => bits of a byte, the lowest first => f[N, blocks, block size]
 *   a . transpose(((b - zero) * scale)[N, K]) + bias */
#include "graph/onnx/contrib/bits.h"

#include "graph/graph.h"
#include "graph/onnx/convert.h"
#include "graph/onnx/steps.h"
#include "graph/op/logic.h"

typedef struct {
    KilnOnnxSteps s;
    KilnDType dtype; /* of the product */
    int64_t k, n, bits, block, blocks;
} Blocks;

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
    if (b->k < 1 || b->n < 1 || b->block < 1 || b->k > INT32_MAX || b->block > INT32_MAX)
        return kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                               "expected K, N and block_size of 1 or more, found %" G_GINT64_FORMAT
                               ", %" G_GINT64_FORMAT " and %" G_GINT64_FORMAT,
                               b->k, b->n, b->block);
    b->blocks = (b->k + b->block - 1) / b->block;
    if (b->bits != 2 && b->bits != 4 && b->bits != 8)
        return kiln_onnx_unsupported(call, error, "bits=%" G_GINT64_FORMAT, b->bits);
    if (packed)
        return kiln_onnx_unsupported(call, error, "weights that are packed for another machine");
    return !kiln_onnx_operand(call, 4) ||
           kiln_onnx_unsupported(call, error, "operand 4, the group of each row");
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

/* (a, b, scales, zero points, groups, bias) */
gboolean
kiln_onnx_convert_matmul_nbits(KilnOnnxCall *call, GError **error)
{
    static const int64_t swap[] = { 1, 0 };
    Blocks b = { .s = { call, error }, .bits = 4 };
    KilnValue *a = kiln_onnx_need(call, 0, error);
    KilnValue *bytes = a ? kiln_onnx_need(call, 1, error) : NULL;
    KilnValue *scales = bytes ? kiln_onnx_need(call, 2, error) : NULL;
    if (!scales || !read_attrs(call, &b, error))
        return FALSE;
    KilnDType dtype = a->type.dtype;
    b.dtype = kiln_dtype_is_half(dtype) ? KILN_DTYPE_f32 : dtype;
    a = kiln_onnx_step_cast(&b.s, a, b.dtype);
    KilnValue *w =
        kiln_onnx_step_unpack(&b.s, reshaped(&b, bytes, b.n, b.blocks, -1), b.bits, false);
    w = kiln_onnx_step_cast(&b.s, w, b.dtype);
    w = kiln_onnx_step_sub(&b.s, w, w ? zeros(&b, kiln_onnx_operand(call, 3)) : NULL);
    KilnValue *scale = w ? reshaped(&b, scales, b.n, b.blocks, 1) : NULL;
    w = kiln_onnx_step_mul(&b.s, w, kiln_onnx_step_cast(&b.s, scale, b.dtype));
    w = reshaped(&b, w, b.n, b.blocks * b.block, 0);
    if (b.blocks * b.block != b.k)
        w = kiln_onnx_step_slice(&b.s, w, 1, 0, b.k, 1);
    KilnValue *y = kiln_onnx_step_matmul(&b.s, a, kiln_onnx_step_transpose(&b.s, w, swap, 2));
    KilnValue *bias = kiln_onnx_operand(call, 5);
    if (y && bias)
        y = kiln_onnx_step_add(&b.s, y, kiln_onnx_step_cast(&b.s, bias, b.dtype));
    return kiln_onnx_set_result(call, 0, kiln_onnx_step_cast(&b.s, y, dtype));
}
