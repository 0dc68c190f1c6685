/* SPDX-License-Identifier: Apache-2.0 */
/* merge-qdq: an operator between dequantize_linear and quantize_linear becomes the operator on
 * quantized types.
 *
 *      a        b
 *      |        |                        a     b
 *  dequantize  dequantize                 \   /
 *        \    /              =>             op        of the type of the quantize_linear
 *          op                               |
 *          |
 *      quantize
 *
 *  quantize(relu(product))  =>  relu(product) with the quantize's type on both; clip the same way
 *  quantize(move(dequantize(x)))  =>  move(x), rescaled where the types differ
 *
 * The bias of a product becomes i32 in steps of the sums. What a literal loses on the way must be
 * no more than what f32 rounds in the product anyway. Under the flag quant-lossy (class QS) any
 * literal is rounded where that moves the result by half a step at most.
 *
 * requires nothing, preserves nothing; class QT: both sides compute the same reals up to the
 * rounding of f32 and round them to the same grid. So the operators are continuous ones, results
 * have 16 bits at most, the sums of products cannot leave i32, and what addition loses in f32 is
 * less than a quarter of a step; and no real of an operand, nor a sum, is beyond what f32 holds.
 * Only typed forms are looked at: type-quantization comes before. */
#include "graph/base/number.h"
#include "graph/op/additive.h"
#include "graph/op/bounds.h"
#include "graph/op/expand.h"
#include "graph/op/quantize.h"
#include "passes/query/literal.h"
#include "passes/query/quant_product.h"
#include "passes/query/quant_range.h"
#include "passes/rule.h"

#include <math.h>

/* --- what stands around the operator --- */

static const KilnType *
result_type(const KilnMatch *match)
{
    return &match->root->results[0].type;
}

static bool
is_narrow(const KilnType *type)
{
    return kiln_dtype_size(type->dtype) <= sizeof(int16_t);
}

/* --- element-wise operators and pools --- */

/* f32 adds up with errors of 2^-24 of the larger operand; the other operators lose no more than
 * the last bit of what they result in. */
static bool
is_resolved(const KilnNode *op, const KilnType *out)
{
    if (op->op != KILN_OP_add && op->op != KILN_OP_sub)
        return true;
    for (uint32_t i = 0; i < 2; i++) {
        const KilnType *type = &kiln_quant_source(op->operands[i].value)->type;
        for (uint32_t k = 0; k < type->quant->n; k++) {
            double most = kiln_quant_most_steps(type) * (double)type->quant->scales[k];
            for (uint32_t y = 0; y < out->quant->n; y++) {
                if (most * 0x1p-22 > (double)out->quant->scales[y])
                    return false;
            }
        }
    }
    return true;
}

static bool
is_bound(const KilnNode *op, uint32_t i)
{
    return op->op == KILN_OP_clip && i > 0;
}

static bool
all_dequantized(const KilnNode *op)
{
    for (uint32_t i = 0; i < op->n_operands; i++) {
        const KilnValue *value = op->operands[i].value;
        if (!value)
            continue;
        if (is_bound(op, i) ? value->type.dtype != KILN_DTYPE_f32 : !kiln_quant_source(value))
            return false;
    }
    return true;
}

/* Reals of the operands that f32 holds: beyond, dequantize_linear has infinities. */
static bool
all_survive_f32(const KilnNode *op)
{
    for (uint32_t i = 0; i < op->n_operands; i++) {
        const KilnValue *value = op->operands[i].value;
        const KilnValue *source = value && !is_bound(op, i) ? kiln_quant_source(value) : NULL;
        if (source && !kiln_quant_survives_f32(&source->type))
            return false;
    }
    return true;
}

static bool
merge_operator(KilnMatch *match)
{
    const KilnNode *op = kiln_match_node(match, "op");
    const KilnType *type = result_type(match);
    if (!all_dequantized(op))
        return false;
    GUARD(narrow, is_narrow(type));
    GUARD(survives_f32, all_survive_f32(op));
    g_autofree KilnValue **operands = g_new0(KilnValue *, op->n_operands);
    for (uint32_t i = 0; i < op->n_operands; i++) {
        KilnValue *value = op->operands[i].value;
        operands[i] = value && !is_bound(op, i) ? kiln_quant_source(value) : value;
    }
    return kiln_match_replace(match, kiln_build_typed(match->root, op->op, op->attrs, operands,
                                                      op->n_operands, type, NULL));
}

static bool
merge_arithmetic(KilnMatch *match)
{
    const KilnNode *op = kiln_match_node(match, "op");
    if (!all_dequantized(op))
        return false;
    GUARD(resolved, is_resolved(op, result_type(match)));
    return merge_operator(match);
}

static bool
merge_pool(KilnMatch *match)
{
    GUARD(one_result, kiln_match_node(match, "op")->n_results == 1); /* indices need it as it is */
    return merge_operator(match);
}

/* --- products --- */

/* The scale of channel @i of the sums, and the quantization of a bias of @rank. */
static KilnQuant *
sum_quant(const KilnMatch *match, const KilnQuant *x, const KilnQuant *w, int rank)
{
    KilnArena *arena = match->root->function->module->arena;
    KilnQuant *quant = kiln_arena_new0(arena, KilnQuant, 1);
    float *scales = kiln_arena_alloc(arena, w->n * sizeof *scales);
    for (uint32_t i = 0; i < w->n; i++) {
        scales[i] = x->scales[0] * w->scales[i];
        if (!isfinite(scales[i]) || scales[i] <= 0)
            return NULL;
    }
    *quant = (KilnQuant){ w->axis < 0 ? -1 : rank - 1, w->n, scales,
                          kiln_arena_new0(arena, int32_t, w->n) };
    return quant;
}

/* The reals that a literal stands for, dequantized or plain; NULL where it is none. */
static double *
reals_of(const KilnValue *value, GError **error)
{
    const KilnValue *source = kiln_quant_source(value);
    const KilnConstant *constant = source ? kiln_value_constant(source) : NULL;
    if (!constant || constant->type.quant->axis > 0)
        return source ? NULL : kiln_literal_read(value, error);
    g_autoptr(GBytes) bytes = kiln_tensor_view(constant->tensor, error);
    if (!bytes)
        return NULL;
    const KilnQuant *quant = constant->type.quant;
    const int64_t n = kiln_type_elements(&constant->type);
    const int64_t inner = quant->axis < 0 ? MAX(n, 1) : MAX(n / MAX(quant->n, 1), 1);
    double *reals = g_new(double, (gsize)n + 1);
    for (int64_t i = 0; i < n; i++) {
        int64_t stored =
            kiln_element_as_i64(constant->type.dtype, g_bytes_get_data(bytes, NULL), i);
        reals[i] =
            (double)(stored - quant->zero_points[i / inner]) * (double)quant->scales[i / inner];
    }
    return reals;
}

/* What rounding a bias to steps of the sums does. */
typedef struct {
    double most; /* that it adds to a sum, in steps */
    double lost; /* reals by which it is off at most */
} Bias;

/* A literal bias in steps of the sums. */
static KilnValue *
literal_bias(const KilnMatch *match, const KilnValue *bias, const KilnQuant *quant, Bias *out)
{
    KilnFunction *function = match->root->function;
    KilnType type = bias->type;
    g_autofree double *reals = reals_of(bias, match->error);
    int64_t n = kiln_type_elements(&type);
    *out = (Bias){ 0, 0 };
    if (!reals || (quant->axis >= 0 && type.dims[quant->axis] != quant->n))
        return NULL;
    g_autofree int32_t *steps = g_new(int32_t, (gsize)n + 1);
    for (int64_t i = 0; i < n; i++) {
        double step = (double)quant->scales[quant->axis < 0 ? 0 : i % quant->n];
        double count = rint(reals[i] / step);
        if (!(fabs(count) <= INT32_MAX))
            return NULL;
        steps[i] = (int32_t)count;
        out->most = MAX(out->most, fabs(count));
        out->lost = MAX(out->lost, fabs(reals[i] - count * step));
    }
    type.dtype = KILN_DTYPE_i32;
    KilnType plain = type;
    type.quant = quant;
    g_autoptr(GBytes) bytes = g_bytes_new(steps, (gsize)n * sizeof *steps);
    KilnTensor *tensor = kiln_tensor_compact(kiln_tensor_new_data(&plain, bytes, match->error));
    return tensor ? kiln_build_constant_as(function, match->root, "bias", tensor, &type) : NULL;
}

/* What the bias lost is within the roundings of a sum of @terms in f32: kiln_real_slack(). */
static bool
is_float_rounding(const Bias *bias, double terms, const KilnType *out)
{
    double range = 0x1p7 * (double)out->quant->scales[0];
    return bias->lost <= terms * 0x1p-23 * range;
}

/* Half a step of any sum is at most half a step of the result. */
static bool
is_fine(const KilnQuant *sums, const KilnType *out)
{
    for (uint32_t i = 0; i < sums->n; i++) {
        if (sums->scales[i] > out->quant->scales[0])
            return false;
    }
    return true;
}

/* The product op on what its operands are dequantized from; @rounds: a bias may lose more than f32
 * does. */
static bool
build_product(const KilnMatch *match, bool rounds, KilnValue **out)
{
    const KilnNode *op = kiln_match_node(match, "op");
    const KilnType *type = result_type(match);
    KilnValue *bias = kiln_node_operand(op, 2);
    KilnValue *operands[3] = { NULL, kiln_quant_source(op->operands[1].value) };
    if (operands[1])
        operands[0] = kiln_quant_source_of_view(match, op->operands[0].value);
    if (!operands[0])
        return false;
    GUARD(narrow, is_narrow(type));
    const KilnType *x = &operands[0]->type, *w = &operands[1]->type;
    GUARD(survives_f32, kiln_quant_products_survive_f32(x, w));
    const double terms = kiln_quant_terms(op);
    Bias lost = { 0, 0 };
    if (bias) {
        const KilnQuant *sums = sum_quant(match, x->quant, w->quant, bias->type.rank);
        if (!sums || bias->type.rank < 1)
            return false;
        operands[2] = literal_bias(match, bias, sums, &lost);
        if (!operands[2])
            return false;
        GUARD(bias_fits, rounds ? is_fine(sums, type) : is_float_rounding(&lost, terms, type));
    }
    GUARD(sums_fit,
          terms > 0 &&
              terms * kiln_quant_most_steps(x) * kiln_quant_most_steps(w) + lost.most < 0x1p31);
    *out = kiln_build_typed(match->root, op->op, op->attrs, operands, bias ? 3 : 2, type, NULL);
    return *out;
}

static bool
replace_product(KilnMatch *match, bool rounds)
{
    KilnValue *merged;
    return build_product(match, rounds, &merged) && kiln_match_replace(match, merged);
}

static bool
merge_product(KilnMatch *match)
{
    return replace_product(match, false);
}

static bool
merge_product_round_bias(KilnMatch *match)
{
    return replace_product(match, true);
}

/* Rounding to the result's grid keeps order, so an activation may as well choose afterwards. */
static bool
replace_activated(KilnMatch *match, bool rounds)
{
    const KilnNode *activation = kiln_match_node(match, "a");
    KilnValue *operands[3] = { NULL };
    if (!build_product(match, rounds, &operands[0]))
        return false;
    for (uint32_t i = 1; i < activation->n_operands; i++)
        operands[i] = activation->operands[i].value;
    return kiln_match_replace(
        match, kiln_build_typed(match->root, activation->op, activation->attrs, operands,
                                activation->n_operands, result_type(match), NULL));
}

static bool
merge_activated(KilnMatch *match)
{
    return replace_activated(match, false);
}

static bool
merge_activated_round_bias(KilnMatch *match)
{
    return replace_activated(match, true);
}

/* --- movement --- */

/* What stands for 0 in a border is one number for all channels, which an instruction can state
 * where there is one scale, or where it is 0. */
static bool
is_padded_alike(const KilnType *type)
{
    for (uint32_t i = 0; type->quant->axis >= 0 && i < type->quant->n; i++) {
        if (type->quant->zero_points[i])
            return false;
    }
    return true;
}

static bool
merge_movement(KilnMatch *match)
{
    const KilnNode *op = kiln_match_node(match, "op");
    const KilnType *type = result_type(match);
    KilnValue *x = kiln_quant_source(op->operands[0].value);
    if (!x || op->n_results != 1)
        return false;
    GUARD(narrow, is_narrow(type));
    GUARD(survives_f32, all_survive_f32(op));
    GUARD(one_zero, op->op != KILN_OP_pad || is_padded_alike(&x->type));
    g_autofree KilnValue **operands = g_new0(KilnValue *, op->n_operands);
    for (uint32_t i = 0; i < op->n_operands; i++)
        operands[i] = i ? op->operands[i].value : x;
    KilnValue *moved =
        kiln_build_typed(match->root, op->op, op->attrs, operands, op->n_operands, NULL, NULL);
    if (moved && !kiln_type_equal(&moved->type, type))
        moved =
            kiln_build_typed(match->root, KILN_OP_rescale_quantized, NULL, &moved, 1, type, NULL);
    return kiln_match_replace(match, moved);
}

#define PRODUCTS "conv|conv_transpose|matmul|gemm"
#define PRODUCT "(quantize_linear (" PRODUCTS "!#op ...))"
#define ACTIVATED "(quantize_linear (relu|clip!#a (" PRODUCTS "!#op ...) ...))"

/* The patterns take quantize_linear of one operand, the typed form, alone. */
static const KilnRule rules[] = {
    RULE("merge-product", QT, PRODUCT, merge_product),
    RULE("merge-activated-product", QT, ACTIVATED, merge_activated),
    FLAGGED_RULE("merge-product-round-bias", QS, KILN_FLAG(quant_lossy), PRODUCT,
                 merge_product_round_bias),
    FLAGGED_RULE("merge-activated-product-round-bias", QS, KILN_FLAG(quant_lossy), ACTIVATED,
                 merge_activated_round_bias),
    RULE("merge-arithmetic", QT, "(quantize_linear (add|sub|mul|div|min|max|prelu|concat!#op ...))",
         merge_arithmetic),
    RULE("merge-pool", QT,
         "(quantize_linear (max_pool|average_pool|global_average_pool|global_max_pool!#op ?))",
         merge_pool),
    RULE(
        "merge-function", QT,
        "(quantize_linear (relu|clip|leaky_relu|sigmoid|tanh|hard_sigmoid|hard_swish|gelu|elu|celu|"
        "selu|erf|exp|mish|softplus|softsign|abs|neg|sqrt!#op ...))",
        merge_operator),
    RULE("merge-movement", QT,
         "(quantize_linear (@KEEPS_QUANTIZATION!#op (dequantize_linear ?) ...))", merge_movement),
};

RULE_PASS(merge_qdq, FORWARD);
