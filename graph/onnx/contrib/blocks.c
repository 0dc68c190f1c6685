/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of few bits in blocks: GatherBlockQuantized and MatMulBnb4 of com.microsoft. The first
 * makes floats of the rows that are looked up, the second of all weights when the model is
 * compiled. */
#include "graph/graph.h"
#include "graph/onnx/contrib/bits.h"
#include "graph/onnx/contrib/contrib.h"
#include "graph/onnx/convert.h"
#include "graph/onnx/steps.h"

enum {
    DATA,
    INDICES,
    SCALES,
    ZEROS
};

/* --- GatherBlockQuantized --- */

typedef struct {
    KilnOnnxSteps s;
    KilnOnnxCall *call;
    int64_t bits, block, quantized, gathered; /* the last two are axes */
} Rows;

/* Bytes have several numbers in the last dim, in the data and in the zero points. */
static gboolean
check_blocks(const Rows *r, GError **error)
{
    const KilnOnnxCall *call = r->call;
    const KilnType *data = &call->operands[DATA]->type;
    const int64_t parts = data->dtype == KILN_DTYPE_u8 ? 8 / r->bits : 1;
    const int last = data->rank - 1;
    int64_t dims[KILN_MAX_RANK];
    if (parts > 1 && r->quantized != last)
        return kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                               "quantize_axis: expected the last axis of packed numbers, found "
                               "%" G_GINT64_FORMAT,
                               r->quantized);
    for (int d = 0; d <= last; d++)
        dims[d] = data->dims[d];
    dims[last] = dims[last] < 0 || dims[last] > INT64_MAX / 8 ? -1 : dims[last] * parts;
    if (dims[r->quantized] >= 0)
        dims[r->quantized] = dims[r->quantized] / r->block + (dims[r->quantized] % r->block != 0);
    if (!kiln_onnx_require_shape(call, SCALES, dims, data->rank, error))
        return FALSE;
    if (dims[last] >= 0)
        dims[last] = dims[last] / parts + (dims[last] % parts != 0);
    return kiln_onnx_require_shape(call, ZEROS, dims, data->rank, error);
}

static gboolean
read_rows(Rows *r, GError **error)
{
    KilnOnnxCall *call = r->call;
    *r = (Rows){ r->s, call, 4, 128, 1, 0 };
    for (uint32_t i = DATA; i <= SCALES; i++) {
        if (!kiln_onnx_need(call, i, error))
            return FALSE;
    }
    const int rank = call->operands[DATA]->type.rank;
    if (!kiln_onnx_take_int(call, "bits", &r->bits, error) ||
        !kiln_onnx_take_int(call, "block_size", &r->block, error) ||
        !kiln_onnx_take_int(call, "quantize_axis", &r->quantized, error) ||
        !kiln_onnx_take_int(call, "gather_axis", &r->gathered, error) ||
        !kiln_onnx_require_rank(call, DATA, 1, KILN_MAX_RANK - 1, error) ||
        !kiln_onnx_require_rank(call, SCALES, rank, rank, error) ||
        !kiln_onnx_require_rank(call, ZEROS, rank, rank, error))
        return FALSE;
    if (r->quantized < -rank || r->quantized >= rank || r->gathered < -rank || r->gathered >= rank)
        return kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                               "expected axes of rank %d, found quantize_axis=%" G_GINT64_FORMAT
                               " and gather_axis=%" G_GINT64_FORMAT,
                               rank, r->quantized, r->gathered);
    r->quantized += r->quantized < 0 ? rank : 0;
    r->gathered += r->gathered < 0 ? rank : 0;
    if (r->bits != 2 && r->bits != 4 && r->bits != 8)
        return kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                               "bits: expected 2, 4 or 8, found %" G_GINT64_FORMAT, r->bits);
    if (r->block < 16 || r->block > INT32_MAX || (r->block & (r->block - 1)))
        return kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                               "block_size: expected a power of 2 from 16 on, found "
                               "%" G_GINT64_FORMAT,
                               r->block);
    return check_blocks(r, error);
}

static KilnValue *
looked_up(const Rows *r, KilnValue *x)
{
    return kiln_onnx_step_gather(&r->s, x, r->call->operands[INDICES], r->gathered);
}

/* The zero point of each block, in the form of @scales. Bytes without one have half of their range.
 */
static KilnValue *
zeros_of(const Rows *r, KilnValue *zeros, KilnValue *scales, KilnDType dtype)
{
    if (zeros || dtype != KILN_DTYPE_u8)
        return zeros;
    KilnOnnxExtent extents[KILN_MAX_RANK];
    for (int d = 0; d < scales->type.rank; d++)
        extents[d] = (KilnOnnxExtent)KILN_ONNX_DIM(scales, d);
    KilnValue *half =
        kiln_onnx_scalar(r->call, "half", KILN_DTYPE_u8, (double)((int64_t)1 << (r->bits - 1)));
    return kiln_onnx_step_expand(&r->s, half, extents, (uint32_t)scales->type.rank);
}

/* (@data - zeros) * scales, in blocks along @axis */
static KilnValue *
real(const Rows *r, KilnValue *data, KilnValue *scales, KilnValue *zeros, int64_t axis)
{
    if (!data || !scales)
        return NULL;
    const KilnDType dtype = data->type.dtype;
    if (dtype == KILN_DTYPE_u8)
        data = kiln_onnx_step_unpack(&r->s, data, r->bits, false);
    if (dtype == KILN_DTYPE_u8 && zeros) {
        zeros = kiln_onnx_step_unpack(&r->s, zeros, r->bits, false);
        const int64_t last = scales->type.rank - 1, n = scales->type.dims[last];
        if (zeros && n >= 0 && zeros->type.dims[last] != n)
            zeros = kiln_onnx_step_slice(&r->s, zeros, last, 0, n, 1);
    }
    KilnValue *operands[] = { data, scales, zeros_of(r, zeros, scales, dtype) };
    return kiln_onnx_step_dequantize(&r->s, operands, axis, r->block);
}

/* (data, indices, scales, zero points). Blocks along the axis of the lookup are undone first. */
gboolean
kiln_onnx_convert_gather_block_quantized(KilnOnnxCall *call, GError **error)
{
    Rows r = { .s = { call, error }, .call = call };
    if (!read_rows(&r, error))
        return FALSE;
    KilnValue *data = call->operands[DATA], *scales = call->operands[SCALES];
    KilnValue *zeros = kiln_onnx_operand(call, ZEROS);
    if (r.quantized == r.gathered)
        return kiln_onnx_set_result(call, 0,
                                    looked_up(&r, real(&r, data, scales, zeros, r.quantized)));
    const int more = call->operands[INDICES]->type.rank - 1;
    if (more < -1)
        return kiln_onnx_unsupported(call, error, "indices of an unknown rank");
    const int64_t axis = r.quantized > r.gathered ? r.quantized + more : r.quantized;
    data = looked_up(&r, data);
    scales = looked_up(&r, scales);
    if (zeros && !(zeros = looked_up(&r, zeros)))
        return FALSE;
    return kiln_onnx_set_result(call, 0, real(&r, data, scales, zeros, axis));
}

/* --- MatMulBnb4 --- */

/* What each number of 4 bits means, in units of the greatest weight of its block. */
static const float fp4[16] = { 0.0F,         0.005208333F,  0.6666667F,   1.0F,
                               0.33333334F,  0.5F,          0.16666667F,  0.25F,
                               -0.0F,        -0.005208333F, -0.6666667F,  -1.0F,
                               -0.33333334F, -0.5F,         -0.16666667F, -0.25F };
static const float nf4[16] = { -1.0F,        -0.6961928F,  -0.52507305F,  -0.39491749F,
                               -0.28444138F, -0.18477343F, -0.091050036F, 0.0F,
                               0.0795803F,   0.1609302F,   0.24611230F,   0.33791524F,
                               0.44070983F,  0.5626170F,   0.72295684F,   1.0F };

typedef struct {
    KilnOnnxSteps s;
    int64_t k, n, block, kind, transposed;
} Bnb;

static gboolean
read_bnb(KilnOnnxCall *call, Bnb *b, GError **error)
{
    int64_t training = 0;
    b->transposed = 1;
    if (!kiln_onnx_take_int(call, "K", &b->k, error) ||
        !kiln_onnx_take_int(call, "N", &b->n, error) ||
        !kiln_onnx_take_int(call, "block_size", &b->block, error) ||
        !kiln_onnx_take_int(call, "quant_type", &b->kind, error) ||
        !kiln_onnx_take_flag(call, "transB", &b->transposed, error) ||
        !kiln_onnx_take_flag(call, "training_mode", &training, error))
        return FALSE;
    if (b->kind != 0 && b->kind != 1)
        return kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                               "quant_type: expected 0 or 1, found %" G_GINT64_FORMAT, b->kind);
    return (b->k >= 1 && b->n >= 1 && b->block >= 1 && b->k <= INT32_MAX && b->n <= INT32_MAX &&
            b->block <= INT32_MAX) ||
           kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                           "expected K, N and block_size from 1 to 2147483647, found "
                           "%" G_GINT64_FORMAT ", %" G_GINT64_FORMAT " and %" G_GINT64_FORMAT,
                           b->k, b->n, b->block);
}

/* The weights as [N, K] floats of @dtype. */
static KilnValue *
weights_of(const Bnb *b, KilnDType dtype)
{
    const KilnOnnxSteps *s = &b->s;
    const KilnType type = kiln_type_make(KILN_DTYPE_f32, 1, (int64_t[]){ 16 });
    g_autoptr(GBytes) bytes = g_bytes_new(b->kind ? nf4 : fp4, sizeof nf4);
    KilnValue *table = kiln_onnx_helper(s->call, "table", kiln_tensor_new_data(&type, bytes, NULL));
    const int64_t all = b->k * b->n, blocks = (all + b->block - 1) / b->block;
    KilnValue *codes = kiln_onnx_step_unpack(s, s->call->operands[1], 4, true);
    codes = kiln_onnx_step_cast(s, codes, KILN_DTYPE_i32);
    KilnValue *w = kiln_onnx_step_gather(s, table, codes, 0);
    const int64_t rest = blocks * b->block - all;
    if (w && w->type.dims[0] > all)
        w = kiln_onnx_step_slice(s, w, 0, 0, all, 1);
    if (rest > 0)
        w = kiln_onnx_step_pad(s, w, kiln_onnx_ints(s->call, "pads", (int64_t[]){ 0, rest }, 2));
    const KilnOnnxExtent in_blocks[] = { KILN_ONNX_NUMBER(blocks), KILN_ONNX_NUMBER(b->block) };
    const KilnOnnxExtent column[] = { KILN_ONNX_NUMBER(blocks), KILN_ONNX_NUMBER(1) };
    const KilnOnnxExtent flat[] = { KILN_ONNX_NUMBER(blocks * b->block) };
    const KilnOnnxExtent matrix[] = { KILN_ONNX_NUMBER(b->n), KILN_ONNX_NUMBER(b->k) };
    KilnValue *scales = kiln_onnx_step_cast(
        s, kiln_onnx_step_reshape(s, s->call->operands[2], column, 2), KILN_DTYPE_f32);
    w = kiln_onnx_step_mul(s, kiln_onnx_step_reshape(s, w, in_blocks, 2), scales);
    if (rest > 0)
        w = kiln_onnx_step_slice(s, kiln_onnx_step_reshape(s, w, flat, 1), 0, 0, all, 1);
    return kiln_onnx_step_cast(s, kiln_onnx_step_reshape(s, w, matrix, 2), dtype);
}

/* (a, b, greatest weights of blocks) */
gboolean
kiln_onnx_convert_matmul_bnb4(KilnOnnxCall *call, GError **error)
{
    static const int64_t swap[] = { 1, 0 };
    Bnb b = { .s = { call, error } };
    for (uint32_t i = 0; i < 3; i++) {
        if (!kiln_onnx_need(call, i, error))
            return FALSE;
    }
    if (!kiln_onnx_require_rank(call, 1, 1, 1, error) ||
        !kiln_onnx_require_rank(call, 2, 1, 1, error) || !read_bnb(call, &b, error))
        return FALSE;
    KilnValue *w = weights_of(&b, call->operands[0]->type.dtype);
    if (b.transposed)
        w = kiln_onnx_step_transpose(&b.s, w, swap, 2);
    return kiln_onnx_set_result(call, 0, kiln_onnx_step_matmul(&b.s, call->operands[0], w));
}
