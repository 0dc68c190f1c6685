/* SPDX-License-Identifier: Apache-2.0 */
/* The formula of every operation of elementwise.def, for one vector. If the formula of ONNX loses
 * digits or overflows, an equal formula that does not takes its place. A NaN goes through where it
 * goes through the formula of ONNX. */
#ifndef KILN_BACKENDS_CPU_ELEMENTWISE_ELEMENTWISE_OPS_H
#define KILN_BACKENDS_CPU_ELEMENTWISE_ELEMENTWISE_OPS_H

#include "backends/cpu/elementwise/arc_functions.h"
#include "backends/cpu/elementwise/elementwise.h"
#include "backends/cpu/simd/vector_math.h"

#define OP(id) static inline V op_##id(V x, const KilnCpuParams *p)
#define PLAIN_OP(id, expression)                                                                   \
    OP(id)                                                                                         \
    {                                                                                              \
        (void)p;                                                                                   \
        return expression;                                                                         \
    }
#define ZERO V_SET1(0.0f)
#define ONE V_SET1(1.0f)
#define PARAM_A V_SET1(p->a)
#define PARAM_B V_SET1(p->b)

PLAIN_OP(abs, V_ABS(x))
PLAIN_OP(acos, vector_acos(x))
PLAIN_OP(asin, vector_asin(x))
PLAIN_OP(atan, vector_atan(x))
PLAIN_OP(ceil, V_CEIL(x))
PLAIN_OP(clip, V_MIN(PARAM_B, V_MAX(PARAM_A, x)))
PLAIN_OP(elu, V_SELECT(V_LT(ZERO, x), x, V_MUL(PARAM_A, expm1_negative(x))))
PLAIN_OP(erf, vector_erf(x))
PLAIN_OP(exp, vector_exp(x))
PLAIN_OP(floor, V_FLOOR(x))
PLAIN_OP(gelu, vector_gelu(x))
PLAIN_OP(gelu_tanh, vector_gelu_tanh(x))
PLAIN_OP(hard_sigmoid, V_MAX(ZERO, V_MIN(ONE, V_FUSED(PARAM_A, x, PARAM_B))))
PLAIN_OP(leaky_relu, V_SELECT(V_LT(x, ZERO), V_MUL(PARAM_A, x), x))
PLAIN_OP(log, vector_log(x))
PLAIN_OP(mish, vector_mish(x))
PLAIN_OP(neg, V_NEG(x))
PLAIN_OP(pow_cube, V_MUL(V_MUL(x, x), x))
PLAIN_OP(pow_square, V_MUL(x, x))
PLAIN_OP(reciprocal, V_DIV(ONE, x))
PLAIN_OP(relu, V_MAX(ZERO, x))
PLAIN_OP(round, V_ROUND(x))
PLAIN_OP(sigmoid, vector_sigmoid(x))
PLAIN_OP(softplus, vector_softplus(x))
PLAIN_OP(softsign, V_DIV(x, V_ADD(ONE, V_ABS(x))))
PLAIN_OP(sqrt, V_SQRT(x))
PLAIN_OP(tanh, vector_tanh(x))

OP(swish)
{
    return V_SELECT(V_NAN(x), x, vector_swish(x, PARAM_A));
}

/* Alpha is positive: x and x / alpha have the same sign. */
OP(celu)
{
    V negative = V_MUL(PARAM_A, expm1_negative(V_DIV(x, PARAM_A)));
    return V_SELECT(V_LT(ZERO, x), x, negative);
}

/* x (x + 3) / 6 within -3 … 3; the sum is exact where it is small. */
OP(hard_swish)
{
    (void)p;
    V gate = V_MAX(ZERO, V_MIN(V_SET1(6.0f), V_ADD(x, V_SET1(3.0f))));
    return V_MUL(x, V_MUL(gate, V_SET1(0x1.555556p-3f)));
}

/* x^0.5. It differs from the root: -inf becomes inf, and -0 becomes 0. */
OP(pow_root)
{
    (void)p;
    V root = V_SQRT(V_ADD(x, ZERO));
    return V_SELECT(V_EQ(x, V_SET1(-__builtin_inff())), V_ABS(x), root);
}

OP(selu)
{
    V negative = V_MUL(PARAM_A, expm1_negative(x));
    return V_MUL(PARAM_B, V_SELECT(V_LT(ZERO, x), x, negative));
}

/* ONNX defines 0 for an x in neither branch, NaN included. */
OP(shrink)
{
    V up = V_SELECT(V_LT(x, V_NEG(PARAM_B)), V_ADD(x, PARAM_A), ZERO);
    return V_SELECT(V_LT(PARAM_B, x), V_SUB(x, PARAM_A), up);
}

OP(sign)
{
    (void)p;
    V below = V_SELECT(V_LT(x, ZERO), V_SET1(-1.0f), x);
    return V_SELECT(V_LT(ZERO, x), ONE, below);
}

OP(thresholded_relu)
{
    V kept = V_SELECT(V_LT(PARAM_A, x), x, ZERO);
    return V_SELECT(V_NAN(x), x, kept);
}

#undef OP
#undef PLAIN_OP
#undef PARAM_A
#undef PARAM_B

#define BINARY_OP(id, expression)                                                                  \
    static inline V op_##id(V a, V b)                                                              \
    {                                                                                              \
        return expression;                                                                         \
    }
/* max and min keep a NaN of either operand. If both are 0, they keep the first, as clip does. */
BINARY_OP(add, V_ADD(a, b))
BINARY_OP(div, V_DIV(a, b))
BINARY_OP(max, V_SELECT(V_NAN(b), b, V_MAX(b, a)))
BINARY_OP(min, V_SELECT(V_NAN(b), b, V_MIN(b, a)))
BINARY_OP(mul, V_MUL(a, b))
BINARY_OP(prelu, V_SELECT(V_LT(a, ZERO), V_MUL(a, b), a))
BINARY_OP(sub, V_SUB(a, b))
#undef BINARY_OP
#undef ZERO
#undef ONE

#define COMPARE_OP(id, expression)                                                                 \
    static inline B op_##id(V a, V b)                                                              \
    {                                                                                              \
        return expression;                                                                         \
    }
COMPARE_OP(equal, V_EQ(a, b))
COMPARE_OP(greater, V_LT(b, a))
COMPARE_OP(greater_or_equal, V_LE(b, a))
COMPARE_OP(less, V_LT(a, b))
COMPARE_OP(less_or_equal, V_LE(a, b))
#undef COMPARE_OP

#endif
