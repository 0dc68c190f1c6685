/* SPDX-License-Identifier: Apache-2.0 */
/* type-quantization: scales and zero points that are literal move from operands into types.
 *
 *    quantize_linear(x, s, z)    =>  storage_cast(quantize_linear(x) : i8 q(s,z))
 *    dequantize_linear(q, s, z)  =>  dequantize_linear(storage_cast(q) : i8 q(s,z))
 *    qlinear_conv(x, …, w, …, b) =>  storage_cast(conv(storage_cast(x), storage_cast(w),
 *                                                      storage_cast(b)) : u8 q(s,z))
 *    qlinear_matmul              =>  the same around matmul
 *    storage_cast(storage_cast(x))  =>  storage_cast(x), or x where that is its type
 *    storage_cast(constant)         =>  the constant under the other type
 *
 * requires nothing, preserves nothing; class E: the typed forms have the same arithmetic, step by
 * step. Casts move no data. What the types cannot say stays: scales that are computed, are not
 * above 0 or belong to rows or blocks; i32 data of quantize_linear; types of fewer than 8 bits, and
 * floats of 8. */
#include "graph/op/conv.h"
#include "graph/op/matmul.h"
#include "graph/op/quantize.h"
#include "passes/query/literal.h"
#include "passes/rule.h"

#include <math.h>

/* --- parameters --- */

/* The numbers of @value, @n of them or one for all; @otherwise where it is absent. NULL where they
 * are not literal. */
static double *
numbers_of(const KilnValue *value, int64_t n, double otherwise, GError **error)
{
    double *read = value ? kiln_literal_read(value, error) : NULL;
    int64_t found = value ? kiln_type_elements(&value->type) : 1;
    if ((value && !read) || (found != n && found != 1)) {
        g_free(read);
        return NULL;
    }
    double *numbers = g_new(double, (gsize)n);
    for (int64_t i = 0; i < n; i++)
        numbers[i] = read ? read[found == 1 ? 0 : i] : otherwise;
    g_free(read);
    return numbers;
}

static int64_t
elements_of(const KilnValue *value)
{
    return value ? kiln_type_elements(&value->type) : 1;
}

/* The quantization that two operands say, @axis where there are several of them; NULL where they
 * are not literal or no types can say it. */
static const KilnQuant *
read_quant(const KilnMatch *match, const KilnValue *scale, const KilnValue *zero, int axis)
{
    KilnArena *arena = match->root->function->module->arena;
    int64_t n = MAX(elements_of(scale), elements_of(zero));
    if (n < 1 || n > UINT32_MAX || elements_of(scale) < 1 || (n > 1 && axis < 0))
        return NULL;
    g_autofree double *scales = numbers_of(scale, n, 1, match->error);
    g_autofree double *zeros = scales ? numbers_of(zero, n, 0, match->error) : NULL;
    if (!zeros)
        return NULL;
    float *own_scales = kiln_arena_alloc(arena, (size_t)n * sizeof *own_scales);
    int32_t *own_zeros = kiln_arena_alloc(arena, (size_t)n * sizeof *own_zeros);
    for (int64_t i = 0; i < n; i++) {
        own_scales[i] = (float)scales[i];
        own_zeros[i] = (int32_t)zeros[i];
        if (!isfinite(own_scales[i]) || own_scales[i] <= 0)
            return NULL;
    }
    KilnQuant *quant = kiln_arena_new0(arena, KilnQuant, 1);
    *quant = (KilnQuant){ n > 1 ? axis : -1, (uint32_t)n, own_scales, own_zeros };
    return quant;
}

static KilnType
with_quant(const KilnType *type, const KilnQuant *quant)
{
    KilnType quantized = *type;
    quantized.quant = quant;
    return quantized;
}

/* @x read as @quant says; NULL (x was absent) passes on. */
static KilnValue *
cast(const KilnMatch *match, KilnValue *x, const KilnQuant *quant)
{
    KilnType type = with_quant(&x->type, quant);
    return kiln_match_build_typed(match, KILN_OP_storage_cast, NULL, &x, 1, &type);
}

/* --- quantize_linear and dequantize_linear --- */

static int
axis_of(const KilnType *x, int64_t axis)
{
    return x->rank < 0 ? -1 : kiln_type_axis(x, axis);
}

/* Types say the parameters of integers of whole bytes. */
static bool
may_be_quantized(const KilnType *type)
{
    return kiln_dtype_is_integer(type->dtype) && kiln_dtype_bits(type->dtype) >= 8;
}

static bool
type_quantize(KilnMatch *match)
{
    const KilnNode *node = match->root;
    KilnValue *x = kiln_node_operand(node, 0);
    const KilnType *out = &node->results[0].type;
    GUARD(float_data, kiln_dtype_is_float(x->type.dtype));
    GUARD(bytes, may_be_quantized(out) && !kiln_node_has_blocks(node));
    const KilnQuant *quant =
        read_quant(match, kiln_node_operand(node, 1), kiln_node_operand(node, 2),
                   axis_of(&x->type, kiln_attrs(node, quantize_linear)->axis));
    GUARD(literal_parameters, quant);
    KilnType type = with_quant(out, quant);
    KilnValue *typed = kiln_match_build_typed(match, KILN_OP_quantize_linear, NULL, &x, 1, &type);
    KilnValue *stored = typed ? cast(match, typed, NULL) : NULL;
    return kiln_match_replace(match, stored);
}

static bool
type_dequantize(KilnMatch *match)
{
    const KilnNode *node = match->root;
    KilnValue *q = kiln_node_operand(node, 0);
    GUARD(bytes, may_be_quantized(&q->type) && !kiln_node_has_blocks(node));
    const KilnQuant *quant =
        read_quant(match, kiln_node_operand(node, 1), kiln_node_operand(node, 2),
                   axis_of(&q->type, kiln_attrs(node, dequantize_linear)->axis));
    GUARD(literal_parameters, quant);
    KilnValue *typed = cast(match, q, quant);
    KilnValue *reals = typed ? kiln_match_build_typed(match, KILN_OP_dequantize_linear, NULL,
                                                      &typed, 1, &node->results[0].type)
                             : NULL;
    return kiln_match_replace(match, reals);
}

/* --- products --- */

/* The bias of sums over @x and @w: their scales multiplied; NULL where no float says that. */
static const KilnQuant *
sum_quant(const KilnMatch *match, const KilnQuant *x, const KilnQuant *w)
{
    KilnArena *arena = match->root->function->module->arena;
    float *scales = kiln_arena_alloc(arena, w->n * sizeof *scales);
    for (uint32_t i = 0; i < w->n; i++) {
        scales[i] = x->scales[0] * w->scales[i];
        if (!isfinite(scales[i]) || scales[i] <= 0)
            return NULL;
    }
    KilnQuant *quant = kiln_arena_new0(arena, KilnQuant, 1);
    *quant =
        (KilnQuant){ w->axis < 0 ? -1 : 0, w->n, scales, kiln_arena_new0(arena, int32_t, w->n) };
    return quant;
}

/* Operands of both: x, its scale and zero point; w and its, the result's. */
enum {
    X,
    X_SCALE,
    X_ZERO,
    W,
    W_SCALE,
    W_ZERO,
    Y_SCALE,
    Y_ZERO,
    BIAS,
};

/* How the factors, the result and the bias are quantized; NULL for a bias that is absent. */
typedef struct {
    const KilnQuant *x, *w, *y, *bias;
} Quants;

/* Weights have parameters along @axis where they have several. */
static bool
read_quants(const KilnMatch *match, int axis, Quants *out)
{
    const KilnNode *node = match->root;
    KilnValue *const v[] = {
        kiln_node_operand(node, X_SCALE), kiln_node_operand(node, X_ZERO),
        kiln_node_operand(node, W_SCALE), kiln_node_operand(node, W_ZERO),
        kiln_node_operand(node, Y_SCALE), kiln_node_operand(node, Y_ZERO),
    };
    out->x = read_quant(match, v[0], v[1], -1);
    out->w = out->x ? read_quant(match, v[2], v[3], axis) : NULL;
    out->y = out->w ? read_quant(match, v[4], v[5], -1) : NULL;
    out->bias = NULL;
    GUARD(literal_parameters, out->y);
    return true;
}

/* The product @op of cast operands, the result cast back. */
static KilnValue *
build_product(const KilnMatch *match, KilnOp op, const void *attrs, const Quants *quants)
{
    const KilnNode *node = match->root;
    KilnValue *operands[3] = { cast(match, kiln_node_operand(node, X), quants->x) };
    operands[1] = operands[0] ? cast(match, kiln_node_operand(node, W), quants->w) : NULL;
    if (operands[1] && quants->bias)
        operands[2] = cast(match, kiln_node_operand(node, BIAS), quants->bias);
    if (!operands[1] || (quants->bias && !operands[2]))
        return NULL;
    KilnType type = with_quant(&node->results[0].type, quants->y);
    KilnValue *product =
        kiln_match_build_typed(match, op, attrs, operands, quants->bias ? 3 : 2, &type);
    return product ? cast(match, product, NULL) : NULL;
}

static bool
type_conv(KilnMatch *match)
{
    const KilnNode *node = match->root;
    Quants quants;
    if (!read_quants(match, 0, &quants))
        return false;
    const KilnValue *bias = kiln_node_operand(node, BIAS);
    quants.bias = bias ? sum_quant(match, quants.x, quants.w) : NULL;
    GUARD(bias_scale, !bias || quants.bias);
    const KilnOpInfo *from = kiln_op_info(node->op), *to = kiln_op_info(KILN_OP_conv);
    KilnAttrs_conv attrs;
    kiln_attrs_copy_matching(to->attrs, to->n_attrs, &attrs, from->attrs, from->n_attrs,
                             node->attrs, match->root->function->module->arena);
    return kiln_match_replace(match, build_product(match, KILN_OP_conv, &attrs, &quants));
}

/* A list of scales belongs to the rows of the left factor and of the result, to the columns of the
 * right one; with batch dims it may be anything. */
static bool
one_each(const KilnNode *node)
{
    const KilnType *w = &node->operands[W].value->type;
    for (uint32_t i = X_SCALE; i <= Y_ZERO; i++) {
        const KilnType *type = &node->operands[i].value->type;
        bool columns = (i == W_SCALE || i == W_ZERO) && type->rank == 1 && w->rank >= 2;
        if (i != W && !columns && kiln_type_elements(type) != 1)
            return false;
    }
    return true;
}

static bool
type_matmul(KilnMatch *match)
{
    const KilnNode *node = match->root;
    GUARD(columns_only, one_each(node));
    int rank = node->operands[W].value->type.rank;
    Quants quants;
    if (!read_quants(match, rank - 1, &quants))
        return false;
    return kiln_match_replace(match, build_product(match, KILN_OP_matmul, NULL, &quants));
}

/* --- casts --- */

static bool
merge_casts(KilnMatch *match)
{
    const KilnType *type = &match->root->results[0].type;
    KilnValue *x = kiln_match_value(match, "x");
    if (kiln_type_equal(&x->type, type))
        return kiln_match_replace(match, x);
    return kiln_match_replace(
        match, kiln_match_build_typed(match, KILN_OP_storage_cast, NULL, &x, 1, type));
}

static bool
cast_constant(KilnMatch *match)
{
    const KilnType *type = &match->root->results[0].type;
    return kiln_match_replace(match,
                              kiln_literal_recast(match->root, kiln_match_value(match, "c"), type));
}

/* The typed forms have no scale among their operands. */
static const KilnRule rules[] = {
    RULE("type-quantize", E, "(quantize_linear ?x ?scale ...)", type_quantize),
    RULE("type-dequantize", E, "(dequantize_linear ?q ?scale ...)", type_dequantize),
    RULE("type-qlinear-conv", E, "(qlinear_conv ?x ...)", type_conv),
    RULE("type-qlinear-matmul", E, "(qlinear_matmul ?x ...)", type_matmul),
    RULE("drop-storage-cast", E, "(storage_cast ?x)", kiln_match_replace_by_x),
    RULE("merge-storage-casts", E, "(storage_cast (storage_cast ?x))", merge_casts),
    RULE("cast-constant", E, "(storage_cast $c)", cast_constant),
};

RULE_PASS(type_quantization, FORWARD);
