/* SPDX-License-Identifier: Apache-2.0 */
/* Operators of com.microsoft that ONNX Runtime's optimizer makes of several: activations with a
 * bias, products and convolutions with what follows them. Each becomes the operators that it was
 * made of. Passes fuse them again where a kernel takes them together. */
#include "graph/graph.h"
#include "graph/module.h"
#include "graph/node.h"
#include "graph/onnx/contrib/contrib.h"
#include "graph/onnx/convert.h"
#include "graph/op/activation.h"
#include "graph/op/bounds.h"
#include "graph/op/cast.h"
#include "graph/op/conv.h"
#include "graph/op/math.h"
#include "graph/op/qproduct.h"
#include "graph/op/quantize.h"
#include "graph/op/slice.h"

#include <string.h>

/* @x plus operand @i, where there is one. */
static KilnValue *
plus(KilnOnnxCall *call, KilnValue *x, uint32_t i, GError **error)
{
    return kiln_onnx_plus(call, x, kiln_onnx_operand(call, i), error);
}

/* --- activations --- */

static KilnValue *
gelu(KilnOnnxCall *call, KilnValue *x, const char *approximate, GError **error)
{
    KilnAttrs_gelu *attrs = kiln_onnx_defaults(call, KILN_OP_gelu);
    attrs->approximate = approximate;
    return x ? kiln_onnx_build1(call, KILN_OP_gelu, attrs, x, error) : NULL;
}

gboolean
kiln_onnx_convert_bias_gelu(KilnOnnxCall *call, GError **error)
{
    KilnValue *x = kiln_onnx_need(call, 0, error);
    KilnValue *sum = x && kiln_onnx_need(call, 1, error) ? plus(call, x, 1, error) : NULL;
    return sum && kiln_onnx_set_result(call, 0, gelu(call, sum, "none", error));
}

gboolean
kiln_onnx_convert_fast_gelu(KilnOnnxCall *call, GError **error)
{
    KilnValue *sum = plus(call, kiln_onnx_need(call, 0, error), 1, error);
    return sum && kiln_onnx_set_result(call, 0, gelu(call, sum, "tanh", error));
}

/*   x * sigmoid(alpha * x) */
gboolean
kiln_onnx_convert_quick_gelu(KilnOnnxCall *call, GError **error)
{
    KilnValue *x = kiln_onnx_need(call, 0, error);
    float alpha = 1.702F;
    if (!x || !kiln_onnx_take_float(call, "alpha", &alpha, error))
        return FALSE;
    KilnValue *scaled = x;
    if (alpha != 1)
        scaled = kiln_onnx_times(
            call, x, kiln_onnx_scalar(call, "alpha", x->type.dtype, (double)alpha), error);
    KilnValue *gate = scaled ? kiln_onnx_build1(call, KILN_OP_sigmoid, NULL, scaled, error) : NULL;
    return gate && kiln_onnx_set_result(call, 0, kiln_onnx_times(call, x, gate, error));
}

/*   x + bias + skip */
gboolean
kiln_onnx_convert_bias_add(KilnOnnxCall *call, GError **error)
{
    KilnValue *x = kiln_onnx_need(call, 0, error);
    if (!x || !kiln_onnx_need(call, 1, error) || !kiln_onnx_need(call, 2, error))
        return FALSE;
    return kiln_onnx_set_result(call, 0, plus(call, plus(call, x, 1, error), 2, error));
}

/* The first half of x + bias along the last axis, times gelu of the second half. */
gboolean
kiln_onnx_convert_bias_split_gelu(KilnOnnxCall *call, GError **error)
{
    KilnValue *x = kiln_onnx_need(call, 0, error);
    KilnValue *sum = x && kiln_onnx_need(call, 1, error) ? plus(call, x, 1, error) : NULL;
    if (!sum)
        return FALSE;
    KilnAttrs_split *attrs = kiln_onnx_defaults(call, KILN_OP_split);
    attrs->axis = -1;
    attrs->num_outputs = 2;
    g_autofree char *name = g_strdup_printf("%s.halves", call->base);
    KilnNode *halves = kiln_node_new(call->function,
                                     &(KilnNodeSpec){ .op = KILN_OP_split,
                                                      .operands = &sum,
                                                      .n_operands = 1,
                                                      .n_results = 2,
                                                      .attrs = attrs,
                                                      .result_name = name },
                                     error);
    KilnValue *gate = halves ? gelu(call, &halves->results[1], "none", error) : NULL;
    return gate &&
           kiln_onnx_set_result(call, 0, kiln_onnx_times(call, &halves->results[0], gate, error));
}

/* --- activations by name --- */

/* An activation that an attribute names, with its numbers. */
typedef struct {
    const char *name; /* NULL: there is none */
    float numbers[2];
    uint32_t n;
} Activation;

static KilnValue *
clip(KilnOnnxCall *call, const Activation *activation, KilnValue *x, GError **error)
{
    KilnValue *operands[] = {
        x, kiln_onnx_scalar(call, "min", x->type.dtype, (double)activation->numbers[0]),
        kiln_onnx_scalar(call, "max", x->type.dtype, (double)activation->numbers[1])
    };
    return kiln_onnx_build(call, KILN_OP_clip, NULL, operands, G_N_ELEMENTS(operands), error);
}

static KilnValue *
activate(KilnOnnxCall *call, const Activation *activation, KilnValue *x, GError **error)
{
    static const struct {
        const char *name;
        KilnOp op;
        uint32_t n; /* numbers that it has */
    } known[] = { { "Relu", KILN_OP_relu, 0 },
                  { "Tanh", KILN_OP_tanh, 0 },
                  { "Sigmoid", KILN_OP_sigmoid, 0 },
                  { "LeakyRelu", KILN_OP_leaky_relu, 1 },
                  { "HardSigmoid", KILN_OP_hard_sigmoid, 2 },
                  { "Clip", KILN_OP_clip, 2 } };
    size_t i = 0;
    if (!x || !activation->name || !*activation->name)
        return x;
    while (i < G_N_ELEMENTS(known) && strcmp(known[i].name, activation->name) != 0)
        i++;
    if (i == G_N_ELEMENTS(known)) {
        kiln_onnx_unsupported(call, error, "activation %s", activation->name);
        return NULL;
    }
    if (activation->n < known[i].n) {
        kiln_onnx_throw(call, KILN_ERROR_INVALID, error, "%s: expected %u numbers, found %u",
                        activation->name, known[i].n, activation->n);
        return NULL;
    }
    if (known[i].op == KILN_OP_clip)
        return clip(call, activation, x, error);
    void *attrs = kiln_onnx_defaults(call, known[i].op);
    if (known[i].op == KILN_OP_leaky_relu)
        ((KilnAttrs_leaky_relu *)attrs)->alpha = activation->numbers[0];
    if (known[i].op == KILN_OP_hard_sigmoid) {
        ((KilnAttrs_hard_sigmoid *)attrs)->alpha = activation->numbers[0];
        ((KilnAttrs_hard_sigmoid *)attrs)->beta = activation->numbers[1];
    }
    return kiln_onnx_build1(call, known[i].op, attrs, x, error);
}

/* --- convolutions and products --- */

/* The row's operator of the first @n operands. */
static KilnValue *
first_part(KilnOnnxCall *call, uint32_t n, GError **error)
{
    if (!kiln_onnx_read_attrs(call, error))
        return NULL;
    n = MIN(n, call->n_operands);
    while (n > 2 && !call->operands[n - 1])
        n--;
    return kiln_onnx_build(call, call->op, call->attrs, call->operands, n, error);
}

/*   activation(conv(x, w, b) + z) */
gboolean
kiln_onnx_convert_fused_conv(KilnOnnxCall *call, GError **error)
{
    Activation activation = { .name = NULL };
    KilnFloats numbers = { 0 };
    if (!kiln_onnx_take_text(call, "activation", &activation.name, error) ||
        !kiln_onnx_take_floats(call, "activation_params", &numbers, error))
        return FALSE;
    activation.n = MIN(numbers.n, 2u);
    for (uint32_t i = 0; i < activation.n; i++)
        activation.numbers[i] = numbers.v[i];
    KilnValue *sum = plus(call, first_part(call, 3, error), 3, error);
    return sum && kiln_onnx_set_result(call, 0, activate(call, &activation, sum, error));
}

/*   activation(gemm(a, b, c)) */
gboolean
kiln_onnx_convert_fused_gemm(KilnOnnxCall *call, GError **error)
{
    Activation activation = { NULL, { 0.01F, 0 }, 2 };
    float unused = 0;
    if (!kiln_onnx_take_text(call, "activation", &activation.name, error) ||
        !kiln_onnx_take_float(call, "activation_alpha", &activation.numbers[0], error) ||
        !kiln_onnx_take_float(call, "activation_beta", &activation.numbers[1], error) ||
        !kiln_onnx_take_float(call, "activation_gamma", &unused, error))
        return FALSE;
    KilnValue *y = first_part(call, 3, error);
    return y && kiln_onnx_set_result(call, 0, activate(call, &activation, y, error));
}

/* A side of a product: @batch moves dim 0 before the last one, @last swaps the last two then. */
static KilnValue *
side(KilnOnnxCall *call, uint32_t i, bool batch, bool last, GError **error)
{
    KilnValue *x = kiln_onnx_need(call, i, error);
    int64_t perm[KILN_MAX_RANK], rank = x ? x->type.rank : 0;
    if (!x || (!batch && !last))
        return x;
    if (rank < 0) {
        kiln_onnx_unsupported(call, error, "an operand of unknown rank that is transposed");
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
    return kiln_onnx_permuted(call, x, perm, (uint32_t)rank, error);
}

/*   alpha * matmul(a, b), each transposed as the attributes say */
gboolean
kiln_onnx_convert_fused_matmul(KilnOnnxCall *call, GError **error)
{
    int64_t trans[2] = { 0, 0 }, batch[2] = { 0, 0 };
    float alpha = 1;
    if (!kiln_onnx_take_int(call, "transA", &trans[0], error) ||
        !kiln_onnx_take_int(call, "transB", &trans[1], error) ||
        !kiln_onnx_take_int(call, "transBatchA", &batch[0], error) ||
        !kiln_onnx_take_int(call, "transBatchB", &batch[1], error) ||
        !kiln_onnx_take_float(call, "alpha", &alpha, error))
        return FALSE;
    KilnValue *a = side(call, 0, batch[0], trans[0], error);
    KilnValue *b = a ? side(call, 1, batch[1], trans[1], error) : NULL;
    KilnValue *y = b ? kiln_onnx_product(call, a, b, error) : NULL;
    if (y && alpha != 1)
        y = kiln_onnx_times(call, y, kiln_onnx_scalar(call, "alpha", a->type.dtype, (double)alpha),
                            error);
    return kiln_onnx_set_result(call, 0, y);
}

/* A convolution of [N, H, W, C]. The filter is that of the plain one. */
gboolean
kiln_onnx_convert_nhwc_conv(KilnOnnxCall *call, GError **error)
{
    KilnValue *x = kiln_onnx_need(call, 0, error);
    call->operands[0] = x ? kiln_onnx_channels_second(call, x, error) : NULL;
    KilnValue *y = call->operands[0] ? first_part(call, 3, error) : NULL;
    return y && kiln_onnx_set_result(call, 0, kiln_onnx_channels_last(call, y, error));
}

/* --- products of integers --- */

/* The integers of matmul_integer as floats, times both scales, plus operand @bias. */
static gboolean
scale_product(KilnOnnxCall *call, KilnValue *integers, KilnValue *a_scale, KilnValue *b_scale,
              uint32_t bias, GError **error)
{
    KilnAttrs_cast to = { .to = a_scale->type.dtype };
    KilnValue *scale = integers ? kiln_onnx_times(call, a_scale, b_scale, error) : NULL;
    KilnValue *floats = scale ? kiln_onnx_build1(call, KILN_OP_cast, &to, integers, error) : NULL;
    KilnValue *y = floats ? kiln_onnx_times(call, floats, scale, error) : NULL;
    return kiln_onnx_set_result(call, 0, plus(call, y, bias, error));
}

/*   (a - az) . (b - bz) * (as * bs) + bias, of (a, b, as, bs, az, bz, bias) */
gboolean
kiln_onnx_convert_matmul_integer_to_float(KilnOnnxCall *call, GError **error)
{
    KilnValue *operands[] = { kiln_onnx_need(call, 0, error), NULL, kiln_onnx_operand(call, 4),
                              kiln_onnx_operand(call, 5) };
    if (!operands[0] || !(operands[1] = kiln_onnx_need(call, 1, error)))
        return FALSE;
    KilnValue *a_scale = kiln_onnx_need(call, 2, error);
    KilnValue *b_scale = a_scale ? kiln_onnx_need(call, 3, error) : NULL;
    uint32_t n = operands[3] ? 4 : operands[2] ? 3 : 2;
    return b_scale &&
           scale_product(call,
                         kiln_onnx_build(call, KILN_OP_matmul_integer, NULL, operands, n, error),
                         a_scale, b_scale, 6, error);
}

/* The same of (a, b, bs, bz, bias), where a is quantized first. */
gboolean
kiln_onnx_convert_dynamic_quantize_matmul(KilnOnnxCall *call, GError **error)
{
    KilnValue *a = kiln_onnx_need(call, 0, error), *b = a ? kiln_onnx_need(call, 1, error) : NULL;
    KilnValue *b_scale = b ? kiln_onnx_need(call, 2, error) : NULL;
    if (!b_scale)
        return FALSE;
    g_autofree char *name = g_strdup_printf("%s.quantized", call->base);
    KilnNode *node = kiln_node_new(call->function,
                                   &(KilnNodeSpec){ .op = KILN_OP_dynamic_quantize_linear,
                                                    .operands = &a,
                                                    .n_operands = 1,
                                                    .n_results = 3,
                                                    .result_name = name },
                                   error);
    if (!node)
        return FALSE;
    KilnValue *operands[] = { &node->results[0], b, &node->results[2], kiln_onnx_operand(call, 3) };
    return scale_product(
        call,
        kiln_onnx_build(call, KILN_OP_matmul_integer, NULL, operands, operands[3] ? 4 : 3, error),
        &node->results[1], b_scale, 4, error);
}
