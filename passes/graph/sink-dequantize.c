/* SPDX-License-Identifier: Apache-2.0 */
/* sink-dequantize: a product of dequantized bytes is a product of integers, scaled and shifted.
 *
 *      x          w                       x            w
 *      |          |                       |            |
 *  dequantize  dequantize            storage_cast  storage_cast
 *        \       /                          \         /
 *        matmul (+ bias)     =>           matmul_integer
 *                                               |
 *                                          cast : f32
 *                                               |
 *                                    mul(x_scale × w_scale) (+ bias)
 *
 * for matmul, gemm and conv whose result nothing quantizes: the last layer of most networks, whose
 * weights are otherwise dequantized in every run. Weights may have a scale and a zero point per
 * channel of the result.
 *
 * requires nothing, preserves nothing; class U: integers add up without rounding, the sum is
 * rounded to f32 and scaled, where each real and each sum of reals was rounded. Sums fit i32.
 * Without a target, or where it has no kernel of its own for products of integers, nothing is done.
 * Behind merge-qdq, which takes the products whose results are quantized. */
#include "graph/op/additive.h"
#include "graph/op/cast.h"
#include "graph/op/conv.h"
#include "graph/op/matmul.h"
#include "graph/op/multiplicative.h"
#include "graph/op/qproduct.h"
#include "graph/op/quantize.h"
#include "graph/op/reshape.h"
#include "graph/op/transpose.h"
#include "passes/query/quant_product.h"
#include "passes/rule.h"

#include <float.h>

/* Which axis of the second factor is the channels of the result. */
static int
channel_axis(const KilnNode *op)
{
    if (op->op == KILN_OP_conv || kiln_product_turns_right(op))
        return 0;
    return op->operands[1].value->type.rank - 1;
}

/* Bytes with one scale on the left and one, or one per channel, on the right. */
static bool
are_bytes(const KilnNode *op, const KilnType *x, const KilnType *w)
{
    if (kiln_dtype_size(x->dtype) != 1 || kiln_dtype_size(w->dtype) != 1 || x->quant->axis >= 0)
        return false;
    const bool batch = op->op == KILN_OP_matmul && w->rank != 2;
    return w->quant->axis < 0 || (w->quant->axis == channel_axis(op) && !batch);
}

/* Factors that keep all their digits. */
static bool
factors_are_normal(const KilnType *x, const KilnType *w)
{
    for (uint32_t i = 0; i < w->quant->n; i++) {
        if (!(x->quant->scales[0] * w->quant->scales[i] >= FLT_MIN))
            return false;
    }
    return true;
}

static KilnValue *
constant(const KilnMatch *match, const char *name, const KilnType *type, const void *data)
{
    KilnTensor *tensor = kiln_tensor_compact(kiln_tensor_new_copy(type, data, NULL));
    return tensor ? kiln_build_constant(match->root->function, match->root, name, tensor) : NULL;
}

/* The stored integers of @value as plain ones. */
static KilnValue *
stored(const KilnMatch *match, KilnValue *value)
{
    KilnType type = value->type;
    type.quant = NULL;
    return kiln_match_build_typed(match, KILN_OP_storage_cast, NULL, &value, 1, &type);
}

/* Zero points as the integer product takes them. */
static KilnValue *
zero_points(const KilnMatch *match, const KilnType *quantized)
{
    const KilnQuant *quant = quantized->quant;
    g_autofree int8_t *bytes = g_new(int8_t, quant->n);
    for (uint32_t i = 0; i < quant->n; i++)
        bytes[i] = (int8_t)(uint8_t)quant->zero_points[i];
    const KilnType type = { .dtype = quantized->dtype,
                            .rank = quant->axis < 0 ? 0 : 1,
                            .dims = { quant->n } };
    return constant(match, "zero_point", &type, bytes);
}

/* x_scale × w_scale, where it stands beside a result of @rank. */
static KilnValue *
scales(const KilnMatch *match, const KilnType *x, const KilnType *w, bool conv, int rank)
{
    const KilnQuant *quant = w->quant;
    g_autofree float *products = g_new(float, quant->n);
    for (uint32_t i = 0; i < quant->n; i++)
        products[i] = x->quant->scales[0] * quant->scales[i];
    KilnType type = { .dtype = KILN_DTYPE_f32, .rank = quant->axis < 0 ? 0 : conv ? rank - 1 : 1 };
    for (int d = 0; d < type.rank; d++)
        type.dims[d] = d == 0 ? quant->n : 1;
    return constant(match, "scale", &type, products);
}

/* The product of integers; its operands are NULL where something failed. */
static KilnValue *
build_integers(const KilnMatch *match, KilnValue *x, KilnValue *w)
{
    const KilnNode *op = match->root;
    KilnValue *operands[] = { stored(match, x), stored(match, w), zero_points(match, &x->type),
                              zero_points(match, &w->type) };
    if (kiln_product_turns_right(op) && operands[1])
        operands[1] = kiln_match_build(match, KILN_OP_transpose, NULL, &operands[1], 1);
    for (size_t i = 0; i < G_N_ELEMENTS(operands); i++) {
        if (!operands[i])
            return NULL;
    }
    if (op->op != KILN_OP_conv)
        return kiln_match_build(match, KILN_OP_matmul_integer, NULL, operands, 4);
    const KilnAttrs_conv *conv = kiln_attrs(op, conv);
    const KilnAttrs_conv_integer attrs = { .auto_pad = conv->auto_pad,
                                           .dilations = conv->dilations,
                                           .group = conv->group,
                                           .kernel_shape = conv->kernel_shape,
                                           .pads = conv->pads,
                                           .strides = conv->strides };
    return kiln_match_build(match, KILN_OP_conv_integer, &attrs, operands, 4);
}

/* The bias of a convolution beside its channels. */
static KilnValue *
beside_channels(const KilnMatch *match, KilnValue *bias)
{
    int64_t axes[KILN_MAX_RANK];
    const int n = match->root->results[0].type.rank - 2;
    for (int i = 0; i < n; i++)
        axes[i] = i + 1;
    KilnValue *dims = kiln_build_ints(match->root->function, match->root, axes, (uint32_t)n);
    return dims ? kiln_match_build(match, KILN_OP_unsqueeze, NULL, (KilnValue *[]){ bias, dims }, 2)
                : NULL;
}

static bool
sink(KilnMatch *match)
{
    const KilnNode *op = match->root;
    KilnValue *w = kiln_quant_source(op->operands[1].value), *bias = kiln_node_operand(op, 2);
    KilnValue *x = w && kiln_pass_target(match->context)
                       ? kiln_quant_source_of_view(match, op->operands[0].value)
                       : NULL;
    if (!x)
        return false;
    GUARD(bytes, are_bytes(op, &x->type, &w->type));
    GUARD(plain_product, kiln_product_is_plain(op));
    GUARD(survives_f32, kiln_quant_products_survive_f32(&x->type, &w->type));
    GUARD(normal_factors, factors_are_normal(&x->type, &w->type));
    const double terms = kiln_quant_terms(op);
    GUARD(sums_fit,
          terms > 0 &&
              terms * kiln_quant_most_steps(&x->type) * kiln_quant_most_steps(&w->type) < 0x1p31);
    /* Runs would turn it. */
    GUARD(turned_ahead, !kiln_product_turns_right(op) || kiln_value_constant(w));
    KilnValue *sums = build_integers(match, x, w);
    if (!sums)
        return false;
    GUARD(target_has, kiln_pass_target_has(match->context, sums->def));
    const KilnAttrs_cast to = kiln_cast_to(KILN_DTYPE_f32);
    KilnValue *reals = kiln_match_build(match, KILN_OP_cast, &to, &sums, 1);
    KilnValue *factor =
        scales(match, &x->type, &w->type, op->op == KILN_OP_conv, op->results[0].type.rank);
    if (reals && factor)
        reals = kiln_match_build(match, KILN_OP_mul, NULL, (KilnValue *[]){ reals, factor }, 2);
    if (!reals || !factor)
        return false;
    if (bias && op->op == KILN_OP_conv && !(bias = beside_channels(match, bias)))
        return false;
    if (bias)
        reals = kiln_match_build(match, KILN_OP_add, NULL, (KilnValue *[]){ reals, bias }, 2);
    return kiln_match_replace(match, reals);
}

static const KilnRule rules[] = {
    RULE("sink-dequantize", U, "(conv|matmul|gemm ? (dequantize_linear ?) ...)", sink),
};

RULE_PASS(sink_dequantize, FORWARD);
