/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of f64: one loop over the mathematical library each. sin and cos take the library for
 * angles of very many turns alone. */
#include "backends/cpu/elementwise/real_functions.h"

#include "backends/cpu/elementwise/elementwise.h"
#include "backends/cpu/elementwise/real_math.h"
#include "backends/cpu/isa.h"
#include "ir/kernel.h"

#include <math.h>
#include <string.h>

enum {
    ANGLES = 512
};

static inline double
sigmoid(double x)
{
    const double e = exp(-fabs(x));
    return x < 0 ? e / (1 + e) : 1 / (1 + e);
}

static inline double
softplus(double x)
{
    return fmax(x, 0) + log1p(exp(-fabs(x)));
}

static inline double
within_0_and_1(double x)
{
    return x <= 0 ? 0 : x > 1 ? 1 : x;
}

/* With the parameters a and b of the attributes. */
#define FUNCTION(id, expression)                                                                   \
    static void run_##id(void *out, const void *in, int64_t n, const KilnCpuParams *p)             \
    {                                                                                              \
        double *to = out;                                                                          \
        const double *from = in, a = (double)p->a, b = (double)p->b;                               \
        (void)a, (void)b;                                                                          \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const double x = from[i];                                                              \
            to[i] = (expression);                                                                  \
        }                                                                                          \
    }
#define FUNCTIONS(X)                                                                               \
    X(acos, acos(x))                                                                               \
    X(acosh, acosh(x))                                                                             \
    X(asin, asin(x))                                                                               \
    X(asinh, asinh(x))                                                                             \
    X(atan, atan(x))                                                                               \
    X(atanh, atanh(x))                                                                             \
    X(celu, x > 0 ? x : a * expm1(x / a))                                                          \
    X(cosh, cosh(x))                                                                               \
    X(elu, x > 0 ? x : a * expm1(x))                                                               \
    X(erf, erf(x))                                                                                 \
    X(gelu, 0.5 * x * erfc(-x / 1.41421356237309504880))                                           \
    X(hard_sigmoid, within_0_and_1(a *x + b))                                                      \
    X(hard_swish, x *within_0_and_1(x / 6 + 0.5))                                                  \
    X(mish, x *tanh(softplus(x)))                                                                  \
    X(selu, b *(x > 0 ? x : a * expm1(x)))                                                         \
    X(shrink, x<-b ? x + a : x> b ? x - a : 0)                                                     \
    X(sinh, sinh(x))                                                                               \
    X(softplus, softplus(x))                                                                       \
    X(swish, x *sigmoid(a *x))                                                                     \
    X(tan, tan(x))
FUNCTIONS(FUNCTION)
FUNCTION(gelu_tanh, 0.5 * x * (1 + tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x))))

/* The loop of numbers.def, and angles beyond its bound. A block is copied, because results may lie
 * where it does. */
#define WITH_FAR_ANGLES(id)                                                                        \
    static void run_##id(void *out, const void *in, int64_t n, const KilnCpuParams *p)             \
    {                                                                                              \
        const KilnCpuOneRow near =                                                                 \
            kiln_cpu_typed(KILN_CPU_ISA_AUTO)->one[KILN_CPU_ONE_##id][KILN_DTYPE_f64];             \
        double *to = out, block[ANGLES];                                                           \
        for (int64_t i = 0; i < n; i += ANGLES) {                                                  \
            const int64_t length = n - i < ANGLES ? n - i : ANGLES;                                \
            memcpy(block, (const double *)in + i, (size_t)length * sizeof *block);                 \
            near(to + i, block, length, p);                                                        \
            for (int64_t k = 0; k < length; k++) {                                                 \
                if (fabs(block[k]) > real_most_angle)                                              \
                    to[i + k] = id(block[k]);                                                      \
            }                                                                                      \
        }                                                                                          \
    }
WITH_FAR_ANGLES(cos)
WITH_FAR_ANGLES(sin)

KilnCpuOneRow
kiln_cpu_real_function(KilnInstrKind kind, const void *attrs)
{
    if (kind == KILN_INSTR_gelu &&
        strcmp(((const KilnInstrAttrs_gelu *)attrs)->approximate, "tanh") == 0)
        return run_gelu_tanh;
    switch (kind) {
#define CASE(id, expression)                                                                       \
    case KILN_INSTR_##id:                                                                          \
        return run_##id;
        FUNCTIONS(CASE)
#undef CASE
    case KILN_INSTR_cos:
        return run_cos;
    case KILN_INSTR_sin:
        return run_sin;
    default:
        return NULL;
    }
}
