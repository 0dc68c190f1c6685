/* SPDX-License-Identifier: Apache-2.0 */
/* Operators of com.microsoft that ONNX Runtime's optimizer makes of several: activations with a
 * bias, products and convolutions with what follows them. Each becomes the operators that it was
 * made of. Passes fuse them again where a kernel takes them together. */
#include "graph/graph.h"
#include "graph/onnx/contrib/contrib.h"
#include "graph/onnx/convert.h"
#include "graph/onnx/steps.h"
#include "graph/op/activation.h"
#include "graph/op/bounds.h"
#include "graph/op/conv.h"
#include "graph/op/qproduct.h"
#include "graph/op/quantize.h"
#include "graph/op/slice.h"

#include <string.h>

/* --- activations --- */

KilnValue *
kiln_onnx_step_gelu(const KilnOnnxSteps *s, KilnValue *x, const char *approximate)
{
    KilnAttrs_gelu attrs = { .approximate = approximate };
    return kiln_onnx_step1(s, KILN_OP_gelu, &attrs, x);
}

/* Operand 0 plus operand 1, which must be there. */
static KilnValue *
biased(const KilnOnnxSteps *s)
{
    KilnValue *x = kiln_onnx_need(s->call, 0, s->error);
    KilnValue *bias = x ? kiln_onnx_need(s->call, 1, s->error) : NULL;
    return kiln_onnx_step_add(s, x, bias);
}

gboolean
kiln_onnx_convert_bias_gelu(KilnOnnxCall *call, GError **error)
{
    const KilnOnnxSteps s = { call, error };
    return kiln_onnx_set_result(call, 0, kiln_onnx_step_gelu(&s, biased(&s), "none"));
}

gboolean
kiln_onnx_convert_fast_gelu(KilnOnnxCall *call, GError **error)
{
    const KilnOnnxSteps s = { call, error };
    KilnValue *x = kiln_onnx_need(call, 0, error);
    return kiln_onnx_set_result(
        call, 0, kiln_onnx_step_gelu(&s, kiln_onnx_step_add_operand(&s, x, 1), "tanh"));
}

/*   x * sigmoid(alpha * x) */
gboolean
kiln_onnx_convert_quick_gelu(KilnOnnxCall *call, GError **error)
{
    const KilnOnnxSteps s = { call, error };
    KilnValue *x = kiln_onnx_need(call, 0, error);
    float alpha = 1.702F;
    if (!x || !kiln_onnx_take_float(call, "alpha", &alpha, error))
        return FALSE;
    KilnValue *scaled = alpha == 1 ? x : kiln_onnx_step_mul_number(&s, x, (double)alpha);
    KilnValue *gate = kiln_onnx_step1(&s, KILN_OP_sigmoid, NULL, scaled);
    return kiln_onnx_set_result(call, 0, kiln_onnx_step_mul(&s, x, gate));
}

/*   x + bias + skip */
gboolean
kiln_onnx_convert_bias_add(KilnOnnxCall *call, GError **error)
{
    const KilnOnnxSteps s = { call, error };
    KilnValue *sum = biased(&s), *skip = sum ? kiln_onnx_need(call, 2, error) : NULL;
    return kiln_onnx_set_result(call, 0, kiln_onnx_step_add(&s, sum, skip));
}

/* The first half of x + bias along the last axis, times gelu of the second half. */
gboolean
kiln_onnx_convert_bias_split_gelu(KilnOnnxCall *call, GError **error)
{
    const KilnOnnxSteps s = { call, error };
    KilnAttrs_split attrs = { .axis = -1, .num_outputs = 2 };
    KilnValue *halves = kiln_onnx_step_results(&s, KILN_OP_split, &attrs, biased(&s), 2, "halves");
    KilnValue *gate = halves ? kiln_onnx_step_gelu(&s, &halves[1], "none") : NULL;
    return kiln_onnx_set_result(call, 0, gate ? kiln_onnx_step_mul(&s, &halves[0], gate) : NULL);
}

/* --- activations by name --- */

/* An activation that an attribute names, with its numbers. */
typedef struct {
    const char *name; /* NULL: there is none */
    float numbers[2];
    uint32_t n;
} Activation;

static KilnValue *
clip(const KilnOnnxSteps *s, const Activation *activation, KilnValue *x)
{
    KilnDType dtype = x->type.dtype;
    return kiln_onnx_step3(s, KILN_OP_clip, NULL, x,
                           kiln_onnx_scalar(s->call, "min", dtype, (double)activation->numbers[0]),
                           kiln_onnx_scalar(s->call, "max", dtype, (double)activation->numbers[1]));
}

static KilnValue *
activate(const KilnOnnxSteps *s, const Activation *activation, KilnValue *x)
{
    const float *numbers = activation->numbers;
    const KilnAttrs_leaky_relu leaky = { .alpha = numbers[0] };
    const KilnAttrs_hard_sigmoid hard = { .alpha = numbers[0], .beta = numbers[1] };
    const struct {
        const char *name;
        KilnOp op;
        uint32_t n; /* numbers that it has */
        const void *attrs;
    } known[] = { { "Relu", KILN_OP_relu, 0, NULL },
                  { "Tanh", KILN_OP_tanh, 0, NULL },
                  { "Sigmoid", KILN_OP_sigmoid, 0, NULL },
                  { "LeakyRelu", KILN_OP_leaky_relu, 1, &leaky },
                  { "HardSigmoid", KILN_OP_hard_sigmoid, 2, &hard },
                  { "Clip", KILN_OP_clip, 2, NULL } };
    size_t i = 0;
    if (!x || !activation->name || !*activation->name)
        return x;
    while (i < G_N_ELEMENTS(known) && strcmp(known[i].name, activation->name) != 0)
        i++;
    if (i == G_N_ELEMENTS(known))
        kiln_onnx_unsupported(s->call, s->error, "activation %s", activation->name);
    else if (activation->n < known[i].n)
        kiln_onnx_throw(s->call, KILN_ERROR_INVALID, s->error, "%s: expected %u numbers, found %u",
                        activation->name, known[i].n, activation->n);
    else if (known[i].op == KILN_OP_clip)
        return clip(s, activation, x);
    else
        return kiln_onnx_step1(s, known[i].op, known[i].attrs, x);
    return NULL;
}

/* --- convolutions and products --- */

/* The row's operator of the first three operands, the last of which may be absent. */
static KilnValue *
first_part(KilnOnnxCall *call, GError **error)
{
    return kiln_onnx_read_attrs(call, error)
               ? kiln_onnx_build(call, call->op, call->attrs, call->operands,
                                 kiln_onnx_operand(call, 2) ? 3 : MIN(call->n_operands, 2u), error)
               : NULL;
}

/*   activation(conv(x, w, b) + z) */
gboolean
kiln_onnx_convert_fused_conv(KilnOnnxCall *call, GError **error)
{
    const KilnOnnxSteps s = { call, error };
    Activation activation = { .name = NULL };
    KilnFloats numbers = { 0 };
    if (!kiln_onnx_take_text(call, "activation", &activation.name, error) ||
        !kiln_onnx_take_floats(call, "activation_params", &numbers, error))
        return FALSE;
    activation.n = MIN(numbers.n, 2u);
    for (uint32_t i = 0; i < activation.n; i++)
        activation.numbers[i] = numbers.v[i];
    KilnValue *sum = kiln_onnx_step_add_operand(&s, first_part(call, error), 3);
    return kiln_onnx_set_result(call, 0, activate(&s, &activation, sum));
}

static gboolean
take_activation(KilnOnnxCall *call, Activation *activation, GError **error)
{
    float unused = 0;
    *activation = (Activation){ NULL, { 0.01F, 0 }, 2 };
    return kiln_onnx_take_text(call, "activation", &activation->name, error) &&
           kiln_onnx_take_float(call, "activation_alpha", &activation->numbers[0], error) &&
           kiln_onnx_take_float(call, "activation_beta", &activation->numbers[1], error) &&
           kiln_onnx_take_float(call, "activation_gamma", &unused, error);
}

/*   activation(gemm(a, b, c)) */
gboolean
kiln_onnx_convert_fused_gemm(KilnOnnxCall *call, GError **error)
{
    const KilnOnnxSteps s = { call, error };
    Activation activation;
    if (!take_activation(call, &activation, error))
        return FALSE;
    return kiln_onnx_set_result(call, 0, activate(&s, &activation, first_part(call, error)));
}

/* A side of a product: @batch moves dim 0 before the last one, @last swaps the last two then. */
static KilnValue *
side(const KilnOnnxSteps *s, uint32_t i, bool batch, bool last)
{
    KilnValue *x = kiln_onnx_need(s->call, i, s->error);
    int64_t perm[KILN_MAX_RANK], rank = x ? x->type.rank : 0;
    if (!x || (!batch && !last))
        return x;
    if (rank < 0) {
        kiln_onnx_unsupported(s->call, s->error, "an operand of unknown rank that is transposed");
        return NULL;
    }
    if (rank < 2)
        return x;
    for (int d = 0; d < rank; d++)
        perm[d] = batch && d < rank - 1 ? (d + 1) % (rank - 1) : d;
    if (last) {
        int64_t swap = perm[rank - 1];
        perm[rank - 1] = perm[rank - 2];
        perm[rank - 2] = swap;
    }
    return kiln_onnx_step_transpose(s, x, perm, (uint32_t)rank);
}

/*   alpha * matmul(a, b), each transposed as the attributes say */
static KilnValue *
scaled_matmul(KilnOnnxCall *call, GError **error)
{
    const KilnOnnxSteps s = { call, error };
    int64_t trans[2] = { 0, 0 }, batch[2] = { 0, 0 };
    float alpha = 1;
    if (!kiln_onnx_take_flag(call, "transA", &trans[0], error) ||
        !kiln_onnx_take_flag(call, "transB", &trans[1], error) ||
        !kiln_onnx_take_flag(call, "transBatchA", &batch[0], error) ||
        !kiln_onnx_take_flag(call, "transBatchB", &batch[1], error) ||
        !kiln_onnx_take_float(call, "alpha", &alpha, error))
        return NULL;
    KilnValue *a = side(&s, 0, batch[0], trans[0]);
    KilnValue *y = kiln_onnx_step_matmul(&s, a, a ? side(&s, 1, batch[1], trans[1]) : NULL);
    return alpha == 1 ? y : kiln_onnx_step_mul_number(&s, y, (double)alpha);
}

gboolean
kiln_onnx_convert_fused_matmul(KilnOnnxCall *call, GError **error)
{
    return kiln_onnx_set_result(call, 0, scaled_matmul(call, error));
}

gboolean
kiln_onnx_convert_fused_matmul_activation(KilnOnnxCall *call, GError **error)
{
    const KilnOnnxSteps s = { call, error };
    Activation activation;
    if (!take_activation(call, &activation, error))
        return FALSE;
    return kiln_onnx_set_result(call, 0, activate(&s, &activation, scaled_matmul(call, error)));
}

/* A convolution of [N, H, W, C]. The filter is that of the plain one. */
gboolean
kiln_onnx_convert_nhwc_conv(KilnOnnxCall *call, GError **error)
{
    const KilnOnnxSteps s = { call, error };
    KilnValue *x = kiln_onnx_step_channels_second(&s, kiln_onnx_need(call, 0, error));
    if (!x)
        return FALSE;
    call->operands[0] = x;
    return kiln_onnx_set_result(call, 0, kiln_onnx_step_channels_last(&s, first_part(call, error)));
}

/* --- products of integers --- */

KilnValue *
kiln_onnx_step_scaled_product(const KilnOnnxSteps *s, KilnValue *a, KilnValue *b,
                              KilnValue *const zeros[2], KilnValue *const scales[2])
{
    KilnValue *operands[] = { a, b, zeros[0], zeros[1] };
    KilnValue *integers = kiln_onnx_build(s->call, KILN_OP_matmul_integer, NULL, operands,
                                          zeros[1]   ? 4
                                          : zeros[0] ? 3
                                                     : 2,
                                          s->error);
    KilnValue *scale = integers ? kiln_onnx_step_mul(s, scales[0], scales[1]) : NULL;
    KilnValue *floats = kiln_onnx_step_cast(s, integers, scales[0]->type.dtype);
    return scale ? kiln_onnx_step_mul(s, floats, scale) : NULL;
}

/* That, plus operand @bias. */
static gboolean
scaled_product(const KilnOnnxSteps *s, KilnValue *a, KilnValue *b, KilnValue *const zeros[2],
               KilnValue *const scales[2], uint32_t bias)
{
    const int rank = b->type.rank;
    if (!KILN_ONNX_REQUIRE_DIMS(s->call, bias, s->error, rank < 1 ? -1 : b->type.dims[rank - 1]))
        return FALSE;
    KilnValue *y = kiln_onnx_step_scaled_product(s, a, b, zeros, scales);
    return kiln_onnx_set_result(s->call, 0, kiln_onnx_step_add_operand(s, y, bias));
}

/*   (a - az) . (b - bz) * (as * bs) + bias, of (a, b, as, bs, az, bz, bias) */
gboolean
kiln_onnx_convert_matmul_integer_to_float(KilnOnnxCall *call, GError **error)
{
    const KilnOnnxSteps s = { call, error };
    for (uint32_t i = 0; i < 4; i++) {
        if (!kiln_onnx_need(call, i, error))
            return FALSE;
    }
    KilnValue *zeros[] = { kiln_onnx_operand(call, 4), kiln_onnx_operand(call, 5) };
    if (!kiln_onnx_require_one(call, 2, error) || !kiln_onnx_require_one(call, 4, error))
        return FALSE;
    return scaled_product(&s, call->operands[0], call->operands[1], zeros, call->operands + 2, 6);
}

/* The same of (a, b, bs, bz, bias), where a is quantized first. */
gboolean
kiln_onnx_convert_dynamic_quantize_matmul(KilnOnnxCall *call, GError **error)
{
    const KilnOnnxSteps s = { call, error };
    for (uint32_t i = 0; i < 3; i++) {
        if (!kiln_onnx_need(call, i, error))
            return FALSE;
    }
    KilnValue *a = kiln_onnx_step_results(&s, KILN_OP_dynamic_quantize_linear, NULL,
                                          call->operands[0], 3, "quantized");
    if (!a)
        return FALSE;
    KilnValue *zeros[] = { &a[2], kiln_onnx_operand(call, 3) };
    KilnValue *scales[] = { &a[1], call->operands[2] };
    return scaled_product(&s, &a[0], call->operands[1], zeros, scales, 4);
}
