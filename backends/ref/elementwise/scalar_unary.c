/* SPDX-License-Identifier: Apache-2.0 */
/* Element-wise instructions of one operand, on single elements. Where a formula of the ONNX text
 * loses digits or overflows (sigmoid, softplus, elu near 0), an equal one that does not is used. */
#include "backends/ref/elementwise/scalar.h"
#include "backends/ref/kernel.h"

#include <math.h>

#define FLOAT(id, expression)                                                                      \
    static double f_##id(double x, const void *attrs)                                              \
    {                                                                                              \
        (void)attrs;                                                                               \
        return expression;                                                                         \
    }
#define SIGNED(id, expression)                                                                     \
    static int64_t s_##id(int64_t x, const void *attrs)                                            \
    {                                                                                              \
        (void)attrs;                                                                               \
        return expression;                                                                         \
    }
#define UNSIGNED(id, expression)                                                                   \
    static uint64_t u_##id(uint64_t x, const void *attrs)                                          \
    {                                                                                              \
        (void)attrs;                                                                               \
        return expression;                                                                         \
    }
#define A(id) ((const KilnInstrAttrs_##id *)attrs)

/* NaN passes through wherever a comparison with it chooses the branch that computes on. */
FLOAT(abs, fabs(x))
FLOAT(acos, acos(x))
FLOAT(acosh, acosh(x))
FLOAT(asin, asin(x))
FLOAT(asinh, asinh(x))
FLOAT(atan, atan(x))
FLOAT(atanh, atanh(x))
FLOAT(ceil, ceil(x))
FLOAT(celu, x > 0 ? x : (double)A(celu)->alpha * expm1(x / (double)A(celu)->alpha))
FLOAT(cos, cos(x))
FLOAT(cosh, cosh(x))
FLOAT(elu, x > 0 ? x : (double)A(elu)->alpha * expm1(x))
FLOAT(erf, erf(x))
FLOAT(exp, exp(x))
FLOAT(floor, floor(x))
FLOAT(leaky_relu, x < 0 ? (double)A(leaky_relu)->alpha * x : x)
FLOAT(log, log(x))
FLOAT(neg, -x)
FLOAT(reciprocal, 1 / x)
FLOAT(relu, x < 0 ? 0 : x)
FLOAT(round, rint(x)) /* half to even */
FLOAT(selu, (double)A(selu)->gamma *(x > 0 ? x : (double)A(selu)->alpha * expm1(x)))
FLOAT(sign, x > 0 ? 1 : x < 0 ? -1 : x)
FLOAT(sin, sin(x))
FLOAT(sinh, sinh(x))
FLOAT(softplus, fmax(x, 0) + log1p(exp(-fabs(x))))
FLOAT(softsign, x / (1 + fabs(x)))
FLOAT(sqrt, sqrt(x))
FLOAT(tan, tan(x))
FLOAT(tanh, tanh(x))
FLOAT(thresholded_relu, x > (double)A(thresholded_relu)->alpha || isnan(x) ? x : 0)

static double
f_gelu(double x, const void *attrs)
{
    const double root_2 = 1.41421356237309504880, root_2_over_pi = 0.79788456080286535588;
    if (strcmp(A(gelu)->approximate, "tanh") == 0)
        return 0.5 * x * (1 + tanh(root_2_over_pi * (x + 0.044715 * x * x * x)));
    return 0.5 * x * erfc(-x / root_2);
}

static double
f_hard_sigmoid(double x, const void *attrs)
{
    double y = (double)A(hard_sigmoid)->alpha * x + (double)A(hard_sigmoid)->beta;
    return ref_max(0, ref_min(y, 1));
}

static double
f_hard_swish(double x, const void *attrs)
{
    (void)attrs;
    return x * ref_max(0, ref_min(x / 6 + 0.5, 1));
}

static double
f_mish(double x, const void *attrs)
{
    return x * tanh(f_softplus(x, attrs));
}

/* ONNX defines 0 for what is in no branch, NaN included. */
static double
f_shrink(double x, const void *attrs)
{
    double lambd = (double)A(shrink)->lambd, bias = (double)A(shrink)->bias;
    return x < -lambd ? x + bias : x > lambd ? x - bias : 0;
}

static double
f_sigmoid(double x, const void *attrs)
{
    (void)attrs;
    if (x < 0) {
        double e = exp(x);
        return e / (1 + e);
    }
    return 1 / (1 + exp(-x));
}

static double
f_swish(double x, const void *attrs)
{
    return x * f_sigmoid((double)A(swish)->alpha * x, NULL);
}

SIGNED(abs, x < 0 ? (int64_t)(0 - (uint64_t)x) : x)
SIGNED(bitwise_not, ~x)
SIGNED(neg, (int64_t)(0 - (uint64_t)x))
SIGNED(relu, x < 0 ? 0 : x)
SIGNED(shrink, ref_truncate_signed(f_shrink((double)x, attrs)))
SIGNED(sign, (x > 0) - (x < 0))

UNSIGNED(abs, x)
UNSIGNED(bitwise_not, ~x)
UNSIGNED(not, !x)
UNSIGNED(relu, x)
UNSIGNED(shrink, ref_truncate_unsigned(f_shrink((double)x, attrs)))
UNSIGNED(sign, x != 0)

static bool
test_is_inf(double x, const void *attrs)
{
    return isinf(x) && (x > 0 ? A(is_inf)->detect_positive : A(is_inf)->detect_negative);
}

static bool
test_is_nan(double x, const void *attrs)
{
    (void)attrs;
    return isnan(x);
}

// clang-format off
#define F(id) [KILN_INSTR_##id] = { .f = f_##id },
#define FSU(id) [KILN_INSTR_##id] = { .f = f_##id, .s = s_##id, .u = u_##id },
static const RefUnary ops[KILN_N_INSTRS] = {
    FSU(abs) F(acos) F(acosh) F(asin) F(asinh) F(atan) F(atanh) F(ceil) F(celu) F(cos) F(cosh)
    F(elu) F(erf) F(exp) F(floor) F(gelu) F(hard_sigmoid) F(hard_swish) F(leaky_relu) F(log)
    F(mish) F(reciprocal) FSU(relu) F(round) F(selu) FSU(shrink) F(sigmoid) FSU(sign) F(sin)
    F(sinh) F(softplus) F(softsign) F(sqrt) F(swish) F(tan) F(tanh) F(thresholded_relu)
    [KILN_INSTR_neg] = { .f = f_neg, .s = s_neg },
    [KILN_INSTR_bitwise_not] = { .s = s_bitwise_not, .u = u_bitwise_not },
    [KILN_INSTR_is_inf] = { .test = test_is_inf },
    [KILN_INSTR_is_nan] = { .test = test_is_nan },
    [KILN_INSTR_not] = { .u = u_not },
};
// clang-format on

const RefUnary *
kiln_ref_unary_op(KilnInstrKind kind)
{
    const RefUnary *op = &ops[kind];
    return op->f || op->s || op->u || op->test ? op : NULL;
}

RefValue
kiln_ref_apply_unary(const RefUnary *op, const void *attrs, RefClass class_, RefValue x)
{
    if (op->test)
        return (RefValue){ .u = op->test(x.f, attrs) };
    switch (class_) {
    case REF_FLOAT:
        return (RefValue){ .f = op->f(x.f, attrs) };
    case REF_SIGNED:
        return (RefValue){ .s = op->s(x.s, attrs) };
    default:
        return (RefValue){ .u = op->u(x.u, attrs) };
    }
}

const char *
kiln_ref_unary(const KilnKernelArgs *args)
{
    const KilnInstr *instr = args->instr;
    const KilnDType from = ref_type(args, 1)->dtype, to = ref_type(args, 0)->dtype;
    const RefUnary *op = kiln_ref_unary_op(instr->kind);
    const int64_t n = ref_elements(ref_type(args, 0));
    for (int64_t i = 0; i < n; i++) {
        RefValue x = ref_load(from, args->data[1], i);
        ref_store(to, args->data[0], i, kiln_ref_apply_unary(op, instr->attrs, ref_class(from), x));
    }
    return NULL;
}
