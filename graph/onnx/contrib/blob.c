/* SPDX-License-Identifier: Apache-2.0 */
/* MatMulFpQ4 of com.microsoft: weights of 4 bits, with the scale of each block of 32 before it, and
 * perhaps its zero point (`blk_quant_type` 1). Blocks stand column after column:
 *
 *   scale f32, zero point u8, 16 bytes: numbers 0 to 15 in the low bits, 16 to 31 in the high bits
 *
 * The blob is known when the model is imported, so that the weights become floats then. */
#include "graph/base/alloc.h"
#include "graph/graph.h"
#include "graph/node.h"
#include "graph/tensor.h"
#include "graph/onnx/convert.h"
#include "graph/onnx/steps.h"

#include <string.h>

enum {
    BLOCK = 32,
    HALF = BLOCK / 2
};

typedef struct {
    KilnOnnxSteps s;
    KilnOnnxCall *call;
    int64_t k, n, kind;
} Blob;

/* The numbers of operand @i, a constant of rank 1. NULL: it failed. */
static GBytes *
known(const Blob *b, uint32_t i, KilnDType dtype)
{
    const KilnValue *value = kiln_onnx_need(b->call, i, b->s.error);
    const KilnConstant *constant = value ? kiln_value_constant(value) : NULL;
    if (!value || !kiln_onnx_require_rank(b->call, i, 1, 1, b->s.error))
        return NULL;
    if (!constant || constant->type.dtype != dtype) {
        kiln_onnx_unsupported(b->call, b->s.error, "operand %u: numbers that are not known", i);
        return NULL;
    }
    return kiln_tensor_view(constant->tensor, b->s.error);
}

static gboolean
read_shape(Blob *b, GError **error)
{
    g_autoptr(GBytes) shape = known(b, 2, KILN_DTYPE_i64);
    if (!shape || !KILN_ONNX_REQUIRE_DIMS(b->call, 2, error, 2))
        return FALSE;
    const int64_t *dims = g_bytes_get_data(shape, NULL);
    b->k = dims[0];
    b->n = dims[1];
    return (b->k >= 1 && b->k <= INT32_MAX && b->n >= 1 && b->n <= INT32_MAX) ||
           kiln_onnx_throw(b->call, KILN_ERROR_INVALID, error,
                           "operand 2: expected 1 or more, found %" G_GINT64_FORMAT
                           " and %" G_GINT64_FORMAT,
                           b->k, b->n);
}

static int64_t
block_bytes(const Blob *b)
{
    return (int64_t)sizeof(float) + b->kind + HALF;
}

/* Writes the first @count numbers of the block at @block, @step apart. */
static void
decode(const Blob *b, const uint8_t *block, int64_t count, int64_t step, float *out)
{
    float scale;
    memcpy(&scale, block, sizeof scale);
    const int zero = b->kind ? block[sizeof scale] : 8;
    const uint8_t *data = block + sizeof scale + b->kind;
    for (int64_t i = 0; i < count; i++) {
        const int number = i < HALF ? data[i] & 15 : data[i - HALF] >> 4;
        out[i * step] = (float)(number - zero) * scale;
    }
}

/* [K, N] */
static KilnValue *
weights_of(const Blob *b)
{
    void *data;
    const int64_t blocks = (b->k + BLOCK - 1) / BLOCK;
    g_autoptr(GBytes) blob = known(b, 1, KILN_DTYPE_u8);
    if (!blob || !KILN_ONNX_REQUIRE_DIMS(b->call, 1, b->s.error, b->n * blocks * block_bytes(b)))
        return NULL;
    g_autoptr(GBytes) bytes =
        kiln_bytes_new((size_t)b->k * (size_t)b->n, sizeof(float), &data, b->s.error);
    if (!bytes)
        return NULL;
    const uint8_t *from = g_bytes_get_data(blob, NULL);
    for (int64_t n = 0; n < b->n; n++) {
        for (int64_t i = 0; i < blocks; i++, from += block_bytes(b))
            decode(b, from, MIN(BLOCK, b->k - i * BLOCK), b->n,
                   (float *)data + i * BLOCK * b->n + n);
    }
    const KilnType type = kiln_type_make(KILN_DTYPE_f32, 2, (int64_t[]){ b->k, b->n });
    KilnTensor *tensor = kiln_tensor_new_data(&type, bytes, b->s.error);
    return tensor ? kiln_onnx_helper(b->call, "weights", tensor) : NULL;
}

/* (a, blob, shape of the weights) */
gboolean
kiln_onnx_convert_matmul_fpq4(KilnOnnxCall *call, GError **error)
{
    Blob b = { .s = { call, error }, .call = call, .kind = 1 };
    if (!kiln_onnx_need(call, 0, error) ||
        !kiln_onnx_take_int(call, "blk_quant_type", &b.kind, error))
        return FALSE;
    if (b.kind != 0 && b.kind != 1)
        return kiln_onnx_unsupported(call, error, "blk_quant_type=%" G_GINT64_FORMAT, b.kind);
    if (!read_shape(&b, error))
        return FALSE;
    KilnValue *w = weights_of(&b);
    return kiln_onnx_set_result(call, 0, kiln_onnx_step_matmul(&b.s, call->operands[0], w));
}
