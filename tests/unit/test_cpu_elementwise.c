/* SPDX-License-Identifier: Apache-2.0 */
/* Element-wise kernels of the cpu backend: their functions' accuracy and equal bits on every
 * instruction set, over all floats or a sample of them, and every instruction against the reference
 * kernels over shapes, broadcasts and special values. */
#include "backends/cpu/cpu.h"
#include "backends/cpu/elementwise/elementwise.h"
#include "backends/cpu/isa.h"
#include "graph/base/number.h"
#include "ir/target.h"
#include "tests/unit/cpu_case.h"
#include "tests/unit/ref_case.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const Tolerance exact = { 0, 0 };
static const Tolerance near = { 1e-30, 4e-7 }; /* 3 units of the last place or more */

static float
float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static const float specials[] = {
    0.0f,
    -0.0f,
    1.0f,
    -1.0f,
    0.5f,
    -0.5f,
    1.5f,
    2.5f,
    -1.5f,
    -2.5f,
    INFINITY,
    -INFINITY,
    NAN,
    FLT_MAX,
    -FLT_MAX,
    FLT_MIN,
    -FLT_MIN,
    1e-45f,
    -1e-45f,
    1e-40f,
    88.72284f,
    88.7229f,
    89.0f,
    -87.3f,
    -88.0f,
    -103.9f,
    -103.97f,
    -104.0f,
    -110.0f,
    8388607.5f,
    -8388607.5f,
    8388609.0f,
    0.49999997f,
    -0.49999997f,
    3.9f,
    3.95f,
    9.5f,
    20.0f,
    1e-8f,
    -1e-8f,
    0x1.6a09e6p-1f,
    0x1.6a09e8p-1f,
    0x1.fffffep-1f,
    0x1.000002p+0f,
    0.625f,
    0.9f,
    -3.0f,
    3.0f,
};

/* --- accuracy --- */

static double
sigmoid(double x)
{
    double e = exp(-fabs(x));
    return (x < 0 ? e : 1) / (1 + e);
}

static double
softplus(double x)
{
    return fmax(x, 0) + log1p(exp(-fabs(x)));
}

static double
silu(double x)
{
    return x * sigmoid(x);
}

static double
gelu(double x)
{
    return x / 2 * erfc(-x * 0.70710678118654752440);
}

typedef struct {
    const char *name;
    KilnCpuUnary op;
    double (*exact)(double x);
    double bound; /* in units of the last place of the exact result */
} Accuracy;

static const Accuracy accuracies[] = {
    { "exp", KILN_CPU_UNARY_exp, exp, 1.25 },
    { "log", KILN_CPU_UNARY_log, log, 1.0 },
    { "tanh", KILN_CPU_UNARY_tanh, tanh, 1.5 },
    { "sigmoid", KILN_CPU_UNARY_sigmoid, sigmoid, 2.0 },
    { "erf", KILN_CPU_UNARY_erf, erf, 1.5 },
    { "softplus", KILN_CPU_UNARY_softplus, softplus, 2.0 },
    { "elu", KILN_CPU_UNARY_elu, expm1, 1.5 },
    { "silu", KILN_CPU_UNARY_swish, silu, 2.0 },
    { "gelu", KILN_CPU_UNARY_gelu, gelu, 2.0 },
    { "acos", KILN_CPU_UNARY_acos, acos, 0.51 },
    { "acosh", KILN_CPU_UNARY_acosh, acosh, 0.51 },
    { "asin", KILN_CPU_UNARY_asin, asin, 0.51 },
    { "asinh", KILN_CPU_UNARY_asinh, asinh, 0.51 },
    { "atan", KILN_CPU_UNARY_atan, atan, 0.51 },
    { "atanh", KILN_CPU_UNARY_atanh, atanh, 0.51 },
    { "cos", KILN_CPU_UNARY_cos, cos, 0.51 },
    { "cosh", KILN_CPU_UNARY_cosh, cosh, 0.51 },
    { "sin", KILN_CPU_UNARY_sin, sin, 0.51 },
    { "sinh", KILN_CPU_UNARY_sinh, sinh, 0.51 },
    { "tan", KILN_CPU_UNARY_tan, tan, 0.51 },
};

static double
error_of(float found, double expected)
{
    if (isnan(expected) || isinf((float)expected))
        return (isnan(expected) && isnan(found)) || found == (float)expected ? 0 : INFINITY;
    int exponent;
    frexp(expected, &exponent);
    return fabs((double)found - expected) / ldexp(1, MAX(exponent, -125) - 24);
}

/* Every @step-th float by its bits. */
static void
check_accuracy(KilnCpuIsa isa, const Accuracy *a, uint32_t step)
{
    enum {
        N = 1000
    };
    float x[N], y[N], worst_at = 0;
    double worst = 0;
    for (uint64_t bits = 0; bits < UINT64_C(1) << 32;) {
        int n = 0;
        for (; n < N && bits < UINT64_C(1) << 32; bits += step) {
            float value = float_of((uint32_t)bits);
            if (a->op != KILN_CPU_UNARY_elu || value < 0) /* above, elu is the identity */
                x[n++] = value;
        }
        kiln_cpu_rows(isa)->unary[a->op](y, x, n, &(KilnCpuParams){ 1, 1 });
        for (int i = 0; i < n; i++) {
            double error = error_of(y[i], a->exact((double)x[i]));
            if (error > worst) {
                worst = error;
                worst_at = x[i];
            }
        }
    }
    cr_expect_leq(worst, a->bound, "%s of %a on %s: %g units of the last place", a->name,
                  (double)worst_at, kiln_cpu_isa_name(isa), worst);
}

/* With KILN_TEST_LONG every float. */
Test(cpu_elementwise, accuracy)
{
    const uint32_t step = getenv("KILN_TEST_LONG") ? 1 : 9973;
    for (size_t i = 0; i < G_N_ELEMENTS(accuracies); i++)
        check_accuracy(kiln_cpu_isa_best(), &accuracies[i], step);
}

/* The approximation of gelu by tanh: within 2^-22 |x|. */
Test(cpu_elementwise, accuracy_of_gelu_tanh)
{
    const KilnCpuRows *rows = kiln_cpu_rows(kiln_cpu_isa_best());
    for (uint64_t bits = 0; bits < UINT64_C(1) << 32; bits += 4999) {
        const float x = float_of((uint32_t)bits);
        const double wide = (double)x, y = wide * (wide * wide * 0.044715 + 1);
        float found;
        rows->unary[KILN_CPU_UNARY_gelu_tanh](&found, &x, 1, &(KilnCpuParams){ 0, 0 });
        if (isnan(x) || isinf(x))
            continue;
        const double expected = wide * sigmoid(1.5957691216057307117597842397375 * y);
        cr_assert_leq(fabs((double)found - expected), 0x1p-22 * fabs(wide) + 0x1p-149,
                      "gelu_tanh of %a", (double)x);
    }
}

/* Every @step-th float on @isa as on the portable loops; of NaNs, any. */
static void
check_same_bits(KilnCpuIsa isa, int op, uint32_t step)
{
    enum {
        N = 1000
    };
    float x[N], expected[N], found[N];
    const KilnCpuParams params = { 0.75f, 1.25f };
    for (uint64_t bits = 0; bits < UINT64_C(1) << 32;) {
        int n = 0;
        for (; n < N && bits < UINT64_C(1) << 32; bits += step)
            x[n++] = float_of((uint32_t)bits);
        kiln_cpu_rows(KILN_CPU_ISA_PORTABLE)->unary[op](expected, x, n, &params);
        kiln_cpu_rows(isa)->unary[op](found, x, n, &params);
        for (int i = 0; i < n; i++)
            cr_assert((isnan(expected[i]) && isnan(found[i])) ||
                          memcmp(&expected[i], &found[i], sizeof *found) == 0,
                      "operation %d of %a on %s: expected %a, found %a", op, (double)x[i],
                      kiln_cpu_isa_name(isa), (double)expected[i], (double)found[i]);
    }
}

/* With KILN_TEST_LONG a thousand times as many floats. */
Test(cpu_elementwise, same_bits_on_every_instruction_set)
{
    const uint32_t step = getenv("KILN_TEST_LONG") ? 97 : 99991;
    for (KilnCpuIsa isa = KILN_CPU_ISA_AVX2; isa <= KILN_CPU_ISA_AVX512; isa++) {
        for (int op = 0; op < KILN_CPU_N_UNARY && kiln_cpu_isa_supported(isa); op++)
            check_same_bits(isa, op, step);
    }
}

/* --- rows --- */

/* An element's result depends on the element alone: not on where in a row it stands. */
Test(cpu_elementwise, same_bits_anywhere)
{
    enum {
        N = 100
    };
    const KilnCpuRows *rows = kiln_cpu_rows(kiln_cpu_isa_best());
    const KilnCpuParams params = { 0.75f, 1.25f };
    float x[N], whole[N], part[N + 1];
    for (int i = 0; i < N; i++)
        x[i] = i < (int)G_N_ELEMENTS(specials) ? specials[i] : (float)(i - 75) * 0.37f;
    for (int op = 0; op < KILN_CPU_N_UNARY; op++) {
        rows->unary[op](whole, x, N, &params);
        for (int first = 0; first < N; first++) {
            int n = MIN(N - first, 1 + first % 37);
            memset(part, 0x5a, sizeof part);
            rows->unary[op](part, x + first, n, &params);
            cr_assert_eq(memcmp(part, whole + first, (size_t)n * sizeof *part), 0,
                         "operation %d, %d elements from %d on", op, n, first);
            cr_assert_eq(memcmp(part + n, &(uint32_t){ 0x5a5a5a5a }, 4), 0, "wrote too far");
        }
    }
}

/* --- one operand --- */

static const KilnInstrKind exact_unary[] = {
    KILN_INSTR_abs,        KILN_INSTR_ceil,   KILN_INSTR_floor, KILN_INSTR_leaky_relu,
    KILN_INSTR_neg,        KILN_INSTR_relu,   KILN_INSTR_round, KILN_INSTR_sign,
    KILN_INSTR_reciprocal, KILN_INSTR_shrink, KILN_INSTR_sqrt,  KILN_INSTR_thresholded_relu,
};
static const KilnInstrKind close_unary[] = {
    KILN_INSTR_celu,       KILN_INSTR_elu,      KILN_INSTR_erf,  KILN_INSTR_exp,
    KILN_INSTR_gelu,       KILN_INSTR_log,      KILN_INSTR_mish, KILN_INSTR_selu,
    KILN_INSTR_sigmoid,    KILN_INSTR_softplus, KILN_INSTR_tanh, KILN_INSTR_softsign,
    KILN_INSTR_hard_swish, KILN_INSTR_swish,    KILN_INSTR_acos, KILN_INSTR_acosh,
    KILN_INSTR_asin,       KILN_INSTR_asinh,    KILN_INSTR_atan, KILN_INSTR_atanh,
    KILN_INSTR_cos,        KILN_INSTR_cosh,     KILN_INSTR_sin,  KILN_INSTR_sinh,
    KILN_INSTR_tan,
};

static RefCase *
unary_case(KilnInstrKind kind, const float *values, int64_t n)
{
    RefCase *c = case_new(kind);
    case_out(c, KILN_DTYPE_f32, 1, &n);
    case_in(c, KILN_DTYPE_f32, 1, &n, NULL);
    if (values)
        memcpy(c->data[1], values, (size_t)n * sizeof *values);
    else
        cpu_fill(c, 1, 7);
    return c;
}

static void
check_unary(KilnInstrKind kind, Tolerance tolerance)
{
    static const int64_t lengths[] = { 0, 1, 3, 4, 5, 15, 16, 17, 31, 33, 1000, 40000 };
    for (size_t i = 0; i < G_N_ELEMENTS(lengths); i++) {
        g_autoptr(RefCase) c = unary_case(kind, NULL, lengths[i]);
        cpu_agrees(c, tolerance, "random");
    }
    g_autoptr(RefCase) c = unary_case(kind, specials, G_N_ELEMENTS(specials));
    cpu_agrees(c, tolerance, "specials");
}

Test(cpu_elementwise, unary)
{
    for (size_t i = 0; i < G_N_ELEMENTS(exact_unary); i++)
        check_unary(exact_unary[i], exact);
    for (size_t i = 0; i < G_N_ELEMENTS(close_unary); i++)
        check_unary(close_unary[i], (Tolerance){ 1e-37, 2e-6 });
}

Test(cpu_elementwise, unary_attributes)
{
    g_autoptr(RefCase) gelu = unary_case(KILN_INSTR_gelu, NULL, 1000);
    CASE_ATTRS(gelu, gelu)->approximate = "tanh";
    cpu_agrees(gelu, (Tolerance){ 1e-37, 2e-6 }, "tanh");
    g_autoptr(RefCase) hard = unary_case(KILN_INSTR_hard_sigmoid, specials, G_N_ELEMENTS(specials));
    CASE_ATTRS(hard, hard_sigmoid)->alpha = 0.3f;
    cpu_agrees(hard, (Tolerance){ 1e-7, 2e-7 }, "specials");
    g_autoptr(RefCase) elu = unary_case(KILN_INSTR_elu, specials, G_N_ELEMENTS(specials));
    CASE_ATTRS(elu, elu)->alpha = -2.5f;
    cpu_agrees(elu, (Tolerance){ 1e-37, 4e-7 }, "negative alpha");
    g_autoptr(RefCase) celu = unary_case(KILN_INSTR_celu, specials, G_N_ELEMENTS(specials));
    CASE_ATTRS(celu, celu)->alpha = 0.25f;
    cpu_agrees(celu, (Tolerance){ 1e-37, 4e-7 }, "specials");
    CASE_ATTRS(celu, celu)->alpha = -0.25f;
    cr_assert_null(kiln_target_find(kiln_cpu_target(), &celu->instr));
}

Test(cpu_elementwise, clip)
{
    static const double low[] = { -1, 2, NAN, -INFINITY }, high[] = { 1, -2, NAN, 0.5 };
    for (int i = 0; i < 4; i++) {
        for (int there = 0; there < 4; there++) {
            g_autoptr(RefCase) c = unary_case(KILN_INSTR_clip, specials, G_N_ELEMENTS(specials));
            if (there & 1)
                case_in(c, KILN_DTYPE_f32, SCALAR, &low[i]);
            else
                case_absent(c);
            if (there & 2)
                case_in(c, KILN_DTYPE_f32, SCALAR, &high[i]);
            cpu_agrees(c, exact, "bounds");
        }
    }
}

/* --- several operands --- */

typedef struct {
    int rank;
    int64_t dims[6];
} Shape;

/* result, first, second */
static const Shape broadcasts[][3] = {
    { { 0, { 0 } }, { 0, { 0 } }, { 0, { 0 } } },
    { { 1, { 17 } }, { 1, { 17 } }, { 1, { 17 } } },
    { { 1, { 0 } }, { 1, { 0 } }, { 0, { 0 } } },
    { { 2, { 3, 50 } }, { 2, { 3, 50 } }, { 0, { 0 } } },
    { { 2, { 3, 50 } }, { 1, { 1 } }, { 2, { 3, 50 } } },
    { { 4, { 2, 5, 7, 7 } }, { 4, { 2, 5, 7, 7 } }, { 4, { 1, 5, 1, 1 } } },
    { { 4, { 2, 5, 7, 7 } }, { 3, { 5, 1, 1 } }, { 4, { 2, 5, 7, 7 } } },
    { { 3, { 4, 9, 33 } }, { 3, { 4, 9, 33 } }, { 1, { 33 } } },
    { { 3, { 4, 9, 33 } }, { 3, { 4, 9, 1 } }, { 3, { 4, 9, 33 } } },
    { { 3, { 4, 9, 33 } }, { 3, { 4, 1, 33 } }, { 3, { 1, 9, 1 } } },
    { { 6, { 2, 3, 2, 3, 2, 5 } }, { 6, { 2, 1, 2, 1, 2, 1 } }, { 6, { 1, 3, 1, 3, 1, 5 } } },
    { { 2, { 2, 40001 } }, { 2, { 2, 40001 } }, { 2, { 2, 1 } } },
    { { 2, { 20000, 3 } }, { 2, { 20000, 3 } }, { 1, { 3 } } },
};

static RefCase *
binary_case(KilnInstrKind kind, const Shape *shapes, KilnDType result)
{
    RefCase *c = case_new(kind);
    case_out(c, result, shapes[0].rank, shapes[0].dims);
    cpu_in(c, shapes[1].rank, shapes[1].dims);
    cpu_in(c, shapes[2].rank, shapes[2].dims);
    return c;
}

/* All pairs of special values. */
static RefCase *
special_case(KilnInstrKind kind, KilnDType result)
{
    const int64_t n = G_N_ELEMENTS(specials);
    RefCase *c = case_new(kind);
    case_out(c, result, DIMS(n, n));
    case_in(c, KILN_DTYPE_f32, DIMS(n, 1), NULL);
    case_in(c, KILN_DTYPE_f32, DIMS(1, n), NULL);
    memcpy(c->data[1], specials, sizeof specials);
    memcpy(c->data[2], specials, sizeof specials);
    return c;
}

static void
check_binary(KilnInstrKind kind, KilnDType result)
{
    for (size_t i = 0; i < G_N_ELEMENTS(broadcasts); i++) {
        g_autofree char *what = g_strdup_printf("case %d", (int)i);
        g_autoptr(RefCase) c = binary_case(kind, broadcasts[i], result);
        cpu_agrees(c, exact, what);
    }
    g_autoptr(RefCase) c = special_case(kind, result);
    cpu_agrees(c, exact, "specials");
}

Test(cpu_elementwise, binary)
{
    static const KilnInstrKind kinds[] = { KILN_INSTR_add, KILN_INSTR_sub,  KILN_INSTR_mul,
                                           KILN_INSTR_div, KILN_INSTR_max,  KILN_INSTR_min,
                                           KILN_INSTR_sum, KILN_INSTR_prelu };
    for (size_t i = 0; i < G_N_ELEMENTS(kinds); i++)
        check_binary(kinds[i], KILN_DTYPE_f32);
}

Test(cpu_elementwise, compare)
{
    static const KilnInstrKind kinds[] = { KILN_INSTR_equal, KILN_INSTR_greater,
                                           KILN_INSTR_greater_or_equal, KILN_INSTR_less,
                                           KILN_INSTR_less_or_equal };
    for (size_t i = 0; i < G_N_ELEMENTS(kinds); i++)
        check_binary(kinds[i], KILN_DTYPE_bool);
}

/* Operands that only together are as large as the result; the first two may be one element each. */
Test(cpu_elementwise, variadic)
{
    static const KilnInstrKind kinds[] = { KILN_INSTR_max, KILN_INSTR_min, KILN_INSTR_sum,
                                           KILN_INSTR_mean };
    for (size_t i = 0; i < G_N_ELEMENTS(kinds); i++) {
        for (int order = 0; order < 3; order++) {
            g_autoptr(RefCase) c = case_new(kinds[i]);
            case_out(c, KILN_DTYPE_f32, DIMS(3, 4, 19));
            cpu_in(c, 3, order == 0 ? (int64_t[]){ 3, 4, 19 } : (int64_t[]){ 1, 1, 1 });
            cpu_in(c, 3, order == 2 ? (int64_t[]){ 1, 4, 1 } : (int64_t[]){ 1, 1, 1 });
            cpu_in(c, 3, (int64_t[]){ 3, 1, 19 });
            cpu_in(c, 3, (int64_t[]){ 3, 4, 19 });
            cpu_agrees(c, (Tolerance){ 1e-6, 0 }, "four operands");
        }
    }
}

Test(cpu_elementwise, integers)
{
    static const KilnInstrKind kinds[] = { KILN_INSTR_add, KILN_INSTR_sub, KILN_INSTR_mul };
    static const KilnDType dtypes[] = { KILN_DTYPE_i32, KILN_DTYPE_i64 };
    for (size_t i = 0; i < G_N_ELEMENTS(broadcasts) * 6; i++) {
        const Shape *s = broadcasts[i / 6];
        const KilnDType dtype = dtypes[i % 2];
        g_autoptr(RefCase) c = case_new(kinds[i % 3]);
        case_out(c, dtype, s[0].rank, s[0].dims);
        case_in(c, dtype, s[1].rank, s[1].dims, NULL);
        case_in(c, dtype, s[2].rank, s[2].dims, NULL); /* 0xa5…: products wrap */
        cpu_fill(c, 1, 3);
        cpu_agrees(c, exact, "wrapping");
    }
}

/* Small numbers of either sign, many of them equal. */
static void
fill_signed(RefCase *c, uint32_t i)
{
    for (int64_t k = 0; k < kiln_type_elements(&c->buffers[i].type); k++)
        kiln_element_store_f64(c->buffers[i].type.dtype, c->data[i], k,
                               (double)(k * (7 + i) % 11) - 5);
}

Test(cpu_elementwise, integer_comparisons)
{
    static const KilnInstrKind kinds[] = { KILN_INSTR_equal, KILN_INSTR_greater,
                                           KILN_INSTR_greater_or_equal, KILN_INSTR_less,
                                           KILN_INSTR_less_or_equal };
    for (size_t i = 0; i < G_N_ELEMENTS(broadcasts) * 10; i++) {
        const Shape *s = broadcasts[i / 10];
        const KilnDType dtype = i % 2 ? KILN_DTYPE_i32 : KILN_DTYPE_i64;
        g_autoptr(RefCase) c = case_new(kinds[i / 2 % 5]);
        case_out(c, KILN_DTYPE_bool, s[0].rank, s[0].dims);
        case_in(c, dtype, s[1].rank, s[1].dims, NULL);
        case_in(c, dtype, s[2].rank, s[2].dims, NULL);
        fill_signed(c, 1);
        fill_signed(c, 2);
        cpu_agrees(c, exact, "comparison");
    }
}

/* Any byte but 0 is true. */
Test(cpu_elementwise, logic)
{
    static const KilnInstrKind kinds[] = { KILN_INSTR_and, KILN_INSTR_or, KILN_INSTR_xor,
                                           KILN_INSTR_not };
    for (size_t i = 0; i < G_N_ELEMENTS(broadcasts) * 4; i++) {
        const Shape *s = broadcasts[i / 4];
        const KilnInstrKind kind = kinds[i % 4];
        g_autoptr(RefCase) c = case_new(kind);
        const uint32_t n = kind == KILN_INSTR_not ? 1 : 2;
        case_out(c, KILN_DTYPE_bool, s[0].rank, s[0].dims);
        for (uint32_t k = 1; k <= n; k++) {
            const Shape *in = n == 1 ? &s[0] : &s[k];
            case_in(c, KILN_DTYPE_bool, in->rank, in->dims, NULL);
            for (int64_t e = 0; e < kiln_type_elements(&c->buffers[k].type); e++)
                ((uint8_t *)c->data[k])[e] = (uint8_t)(e * (3 + k) % 5 * 2 % 5);
        }
        cpu_agrees(c, exact, "logic");
    }
}

/* --- pow --- */

/* @base is specials of @dtype, with this exponent of @of. */
static void
check_power(KilnDType dtype, KilnDType of, double exponent)
{
    const bool once = exponent == 2 || exponent == 0.5 || exponent == -1;
    const bool scalar = of == KILN_DTYPE_i64;
    const int64_t n = G_N_ELEMENTS(specials), one[] = { 1, 1 };
    g_autoptr(RefCase) c = case_new(KILN_INSTR_pow);
    case_out(c, dtype, scalar ? 1 : 2, scalar ? &n : (int64_t[]){ 1, n });
    case_in(c, dtype, 1, &n, NULL);
    for (int64_t i = 0; i < n; i++)
        kiln_element_store_f64(dtype, c->data[1], i, (double)specials[i]);
    case_in(c, of, scalar ? 0 : 2, one, &exponent);
    if (dtype == KILN_DTYPE_f64)
        cpu_agrees(c, (Tolerance){ 1e-15, 1e-15 }, "exponent of f64");
    else
        cpu_agrees(c, once ? exact : near, "exponent");
}

Test(cpu_elementwise, pow_of_one_exponent)
{
    static const double exponents[] = { 2, 0.5, 3, -1, 0, 1, -0.5, 0.25, 7, -3, 1.7, INFINITY };
    static const KilnDType dtypes[] = { KILN_DTYPE_f32, KILN_DTYPE_f64 };
    for (size_t i = 0; i < 2 * G_N_ELEMENTS(exponents); i++) {
        const double exponent = exponents[i / 2];
        check_power(dtypes[i % 2], dtypes[i % 2], exponent);
        if (exponent == rint(exponent) && !isinf(exponent))
            check_power(dtypes[i % 2], KILN_DTYPE_i64, exponent);
    }
}

Test(cpu_elementwise, pow_of_exponents)
{
    for (size_t i = 0; i < G_N_ELEMENTS(broadcasts); i++) {
        g_autoptr(RefCase) c = binary_case(KILN_INSTR_pow, broadcasts[i], KILN_DTYPE_f32);
        g_autoptr(RefCase) wide = case_new(KILN_INSTR_pow);
        cpu_agrees(c, near, "broadcast");
        case_out(wide, KILN_DTYPE_f64, broadcasts[i][0].rank, broadcasts[i][0].dims);
        for (uint32_t k = 1; k < 3; k++) {
            case_in(wide, KILN_DTYPE_f64, broadcasts[i][k].rank, broadcasts[i][k].dims, NULL);
            cpu_fill(wide, k, k);
        }
        cpu_agrees(wide, (Tolerance){ 1e-15, 1e-15 }, "broadcast f64");
    }
    g_autoptr(RefCase) c = special_case(KILN_INSTR_pow, KILN_DTYPE_f32);
    cpu_agrees(c, near, "specials");
}

/* --- where, copy --- */

Test(cpu_elementwise, where)
{
    static const KilnDType dtypes[] = { KILN_DTYPE_f32, KILN_DTYPE_i64, KILN_DTYPE_f16,
                                        KILN_DTYPE_bool };
    static const Shape shapes[][4] = {
        { { 0, { 0 } }, { 0, { 0 } }, { 0, { 0 } }, { 0, { 0 } } },
        { { 2, { 5, 33 } }, { 2, { 5, 33 } }, { 2, { 5, 33 } }, { 2, { 5, 33 } } },
        { { 2, { 5, 33 } }, { 1, { 33 } }, { 2, { 5, 33 } }, { 0, { 0 } } },
        { { 3, { 4, 5, 6 } }, { 3, { 4, 1, 1 } }, { 3, { 1, 5, 1 } }, { 3, { 1, 1, 6 } } },
        { { 2, { 300, 100 } }, { 2, { 300, 1 } }, { 0, { 0 } }, { 2, { 300, 100 } } },
    };
    for (size_t i = 0; i < G_N_ELEMENTS(shapes) * G_N_ELEMENTS(dtypes); i++) {
        const Shape *s = shapes[i / G_N_ELEMENTS(dtypes)];
        const KilnDType dtype = dtypes[i % G_N_ELEMENTS(dtypes)];
        g_autoptr(RefCase) c = case_new(KILN_INSTR_where);
        case_out(c, dtype, s[0].rank, s[0].dims);
        case_in(c, KILN_DTYPE_bool, s[1].rank, s[1].dims, NULL);
        case_in(c, dtype, s[2].rank, s[2].dims, NULL);
        case_in(c, dtype, s[3].rank, s[3].dims, NULL);
        for (uint32_t k = 1; k < 4; k++)
            cpu_fill(c, k, k);
        for (int64_t k = 0; k < kiln_type_elements(&c->buffers[1].type); k++)
            ((uint8_t *)c->data[1])[k] &= 2; /* not 0, and not 1 */
        cpu_agrees(c, exact, "where");
    }
}

Test(cpu_elementwise, copy)
{
    for (int64_t n = 0; n <= 1 << 20; n = 5 * n + 1) {
        g_autoptr(RefCase) c = case_new(KILN_INSTR_copy);
        case_out(c, KILN_DTYPE_u8, 1, &n);
        case_in(c, KILN_DTYPE_u8, 1, &n, NULL);
        cpu_fill(c, 1, 1);
        cpu_agrees(c, exact, "copy");
    }
}

/* --- cast --- */

static const KilnDType casts[][2] = {
#define BOTH(a, b)                                                                                 \
    { KILN_DTYPE_##a, KILN_DTYPE_##b },                                                            \
    {                                                                                              \
        KILN_DTYPE_##b, KILN_DTYPE_##a                                                             \
    }
    BOTH(f32, i64),
    BOTH(f32, i32),
    BOTH(f32, i8),
    BOTH(f32, u8),
    BOTH(f32, bool),
    BOTH(f32, f16),
    BOTH(f32, bf16),
    BOTH(i64, i32),
    BOTH(bool, i64),
    BOTH(bool, i32),
    { KILN_DTYPE_f32, KILN_DTYPE_f32 },
    { KILN_DTYPE_u16, KILN_DTYPE_u16 },
};

static const double cast_values[] = {
    0,          -0.0,          1,    -1,     0.5,     -0.5,         127,           128,
    -128,       -129,          255,  256,    254.9,   1e10,         -1e10,         2147483520,
    2147483648, -2147483648.0, 4e18, 9.3e18, -9.3e18, 1e38,         65504,         65519,
    65520,      -65536,        6e-8, 2e-8,   1e-7,    1.0009765625, 1.00048828125, 16777217,
    3,
};

Test(cpu_elementwise, cast)
{
    for (size_t i = 0; i < G_N_ELEMENTS(casts); i++) {
        const int64_t n = G_N_ELEMENTS(cast_values);
        const KilnDType from = casts[i][0], to = casts[i][1];
        g_autofree char *what =
            g_strdup_printf("%s to %s", kiln_dtype_name(from), kiln_dtype_name(to));
        g_autoptr(RefCase) c = case_new(KILN_INSTR_cast);
        case_out(c, to, 1, &n);
        case_in(c, from, 1, &n, cast_values);
        cpu_agrees(c, exact, what);
        g_autoptr(RefCase) bits = case_new(KILN_INSTR_cast); /* every byte 0xa5 */
        case_out(bits, to, DIMS(40000));
        case_in(bits, from, DIMS(40000), NULL);
        cpu_agrees(bits, exact, what);
        if (from != KILN_DTYPE_f32)
            continue;
        g_autoptr(RefCase) special = case_new(KILN_INSTR_cast);
        case_out(special, to, DIMS(G_N_ELEMENTS(specials)));
        case_in(special, from, DIMS(G_N_ELEMENTS(specials)), NULL);
        memcpy(special->data[1], specials, sizeof specials);
        cpu_agrees(special, exact, what);
    }
}

/* All halves, and floats around them. */
Test(cpu_elementwise, cast_of_halves)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_cast);
    case_out(c, KILN_DTYPE_f32, DIMS(65536));
    case_in(c, KILN_DTYPE_f16, DIMS(65536), NULL);
    for (int i = 0; i < 65536; i++)
        ((uint16_t *)c->data[1])[i] = (uint16_t)i;
    cpu_agrees(c, exact, "all halves");
    g_autoptr(RefCase) d = case_new(KILN_INSTR_cast);
    case_out(d, KILN_DTYPE_f16, DIMS(5 * 65536));
    case_in(d, KILN_DTYPE_f32, DIMS(5 * 65536), NULL);
    for (int i = 0; i < 5 * 65536; i++) {
        float x = kiln_f16_to_f32((uint16_t)(i / 5));
        uint32_t bits;
        memcpy(&bits, &x, sizeof bits);
        bits += (uint32_t[]){ 0, 0xfff, 0x1000, 0x1001, 0x800 }[i % 5];
        memcpy((float *)d->data[1] + i, &bits, sizeof bits);
    }
    cpu_agrees(d, exact, "around halves");
}

/* Layouts and types that no kernel takes are left to the fallback. */
Test(cpu_elementwise, refuses)
{
    g_autoptr(RefCase) c = unary_case(KILN_INSTR_relu, NULL, 16);
    c->buffers[0].type.layout = c->buffers[1].type.layout = "A16a";
    cr_assert_null(kiln_target_find(kiln_cpu_target(), &c->instr));
    g_autoptr(RefCase) d = case_new(KILN_INSTR_pow);
    case_out(d, KILN_DTYPE_f32, DIMS(2));
    case_in(d, KILN_DTYPE_f32, DIMS(2), NULL);
    case_in(d, KILN_DTYPE_i64, DIMS(2), NULL);
    cr_assert_null(kiln_target_find(kiln_cpu_target(), &d->instr));
}
