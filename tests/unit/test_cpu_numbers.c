/* SPDX-License-Identifier: Apache-2.0 */
/* The cpu backend's element-wise kernels of integers, bools and f64, and its casts, against the
 * reference: every type, odd lengths, broadcasts, no elements, the extremes of each type. */
#include "backends/cpu/elementwise/elementwise.h"
#include "backends/cpu/elementwise/typed.h"
#include "backends/cpu/isa.h"
#include "graph/base/number.h"
#include "graph/kiln-types.h"
#include "ir/instr.h"
#include "tests/unit/cpu_case.h"
#include "tests/unit/ref_case.h"

#include <math.h>
#include <string.h>

static const Tolerance exact = { 0, 0 }, rounded = { 1e-300, 1e-15 };

#define D(id) (1u << KILN_DTYPE_##id)
#define SIGNED (D(i8) | D(i16) | D(i32) | D(i64))
#define INTS (SIGNED | D(u8) | D(u16) | D(u32) | D(u64))
#define NUMBERS (INTS | D(f64))
#define CASTS (NUMBERS | D(bool) | D(f32) | D(f16) | D(bf16))

/* --- values --- */

static double
random_real(Random *r)
{
    static const double specials[] = {
        0,        -0.0,     1,     -1,    0.5,   -2.5, 1e300,
        -1e300,   INFINITY, NAN,   65520, 1e-40, 3e9,  -3e9,
        0x1.8p63, -0x1p63,  -0.75, 255.5, -129,  1e10, 0x1.fffffep127,
        0x1p-1060
    };
    if (below(r, 3) == 0)
        return specials[below(r, G_N_ELEMENTS(specials))];
    return (double)(below(r, 1 << 20) - (1 << 19)) / 4096;
}

/* Half of the integers are small, so that some are equal. */
static void
fill(RefCase *c, uint32_t operand, uint32_t seed)
{
    const KilnType *type = &c->buffers[operand].type;
    const size_t size = kiln_dtype_size(type->dtype);
    Random r = { seed };
    for (int64_t i = 0; i < kiln_type_elements(type); i++) {
        char *at = (char *)c->data[operand] + (size_t)i * size;
        if (kiln_dtype_is_float(type->dtype)) {
            kiln_element_store_f64(type->dtype, c->data[operand], i, random_real(&r));
            continue;
        }
        uint64_t bits = (uint64_t)below(&r, 7) - 3;
        if (below(&r, 2))
            bits = (uint64_t)below(&r, 1u << 28) << 36 ^ (uint64_t)below(&r, 1u << 28) << 14 ^
                   (uint64_t)below(&r, 1u << 14);
        else if (below(&r, 4) == 0) /* the least of each type, and the greatest */
            bits = (UINT64_C(1) << (8 * size - 1)) - (uint64_t)below(&r, 2);
        if (type->dtype == KILN_DTYPE_bool)
            bits &= 1;
        memcpy(at, &bits, size);
    }
}

static void
avoid_zeros(RefCase *c, uint32_t operand)
{
    const KilnType *type = &c->buffers[operand].type;
    for (int64_t i = 0; i < kiln_type_elements(type); i++) {
        if (kiln_element_as_i64(type->dtype, c->data[operand], i) == 0)
            kiln_element_store_f64(type->dtype, c->data[operand], i, 1);
    }
}

/* --- pairs --- */

typedef struct {
    int rank[3];
    int64_t dims[3][4]; /* of the result, and of the two operands */
} Shapes;

static const Shapes shapes[] = {
    { { 1, 1, 1 }, { { 0 }, { 0 }, { 0 } } },
    { { 1, 1, 1 }, { { 1 }, { 1 }, { 1 } } },
    { { 1, 1, 1 }, { { 63 }, { 63 }, { 63 } } },
    { { 1, 1, 1 }, { { 64 }, { 64 }, { 64 } } },
    { { 1, 1, 1 }, { { 20011 }, { 20011 }, { 20011 } } },
    { { 1, 1, 0 }, { { 1000 }, { 1000 } } },
    { { 1, 0, 1 }, { { 129 }, { 1 }, { 129 } } },
    { { 2, 2, 2 }, { { 7, 9 }, { 7, 1 }, { 1, 9 } } },
    { { 3, 3, 2 }, { { 3, 5, 65 }, { 3, 5, 65 }, { 5, 1 } } },
    { { 3, 1, 3 }, { { 2, 0, 5 }, { 5 }, { 2, 0, 5 } } },
};

static RefCase *
pair_case(KilnInstrKind kind, KilnDType dtype, KilnDType result, const Shapes *s, uint32_t seed)
{
    RefCase *c = case_new(kind);
    case_out(c, result, s->rank[0], s->dims[0]);
    for (int k = 1; k < 3; k++) {
        case_in(c, dtype, s->rank[k], s->dims[k], NULL);
        fill(c, (uint32_t)k, seed + (uint32_t)k);
    }
    return c;
}

static void
check_pairs(KilnInstrKind kind, uint32_t dtypes, bool compares)
{
    for (int dtype = 0; dtype < KILN_N_DTYPES; dtype++) {
        for (size_t i = 0; (dtypes >> dtype & 1) && i < G_N_ELEMENTS(shapes); i++) {
            const KilnDType result = compares ? KILN_DTYPE_bool : (KilnDType)dtype;
            g_autoptr(RefCase) c =
                pair_case(kind, (KilnDType)dtype, result, &shapes[i], 17 * (uint32_t)i);
            if (kind == KILN_INSTR_div || kind == KILN_INSTR_mod)
                avoid_zeros(c, 2);
            cpu_agrees(c, exact, kiln_dtype_name((KilnDType)dtype));
        }
    }
}

Test(cpu_numbers, arithmetic)
{
    static const KilnInstrKind kinds[] = { KILN_INSTR_add, KILN_INSTR_sub, KILN_INSTR_mul,
                                           KILN_INSTR_div, KILN_INSTR_max, KILN_INSTR_min };
    for (size_t i = 0; i < G_N_ELEMENTS(kinds); i++)
        check_pairs(kinds[i], NUMBERS, false);
    check_pairs(KILN_INSTR_prelu, SIGNED | D(f64), false);
    check_pairs(KILN_INSTR_mod, INTS, false);
    check_pairs(KILN_INSTR_sum, D(f64), false);
    check_pairs(KILN_INSTR_mean, D(f64), false);
}

Test(cpu_numbers, bits)
{
    check_pairs(KILN_INSTR_bitwise_and, INTS, false);
    check_pairs(KILN_INSTR_bitwise_or, INTS, false);
    check_pairs(KILN_INSTR_bitwise_xor, INTS, false);
    check_pairs(KILN_INSTR_bit_shift, INTS, false);
    check_pairs(KILN_INSTR_and, D(bool), false);
    check_pairs(KILN_INSTR_or, D(bool), false);
    check_pairs(KILN_INSTR_xor, D(bool), false);
}

Test(cpu_numbers, comparisons)
{
    static const KilnInstrKind kinds[] = { KILN_INSTR_greater, KILN_INSTR_greater_or_equal,
                                           KILN_INSTR_less, KILN_INSTR_less_or_equal };
    for (size_t i = 0; i < G_N_ELEMENTS(kinds); i++)
        check_pairs(kinds[i], NUMBERS, true);
    check_pairs(KILN_INSTR_equal, NUMBERS | D(bool), true);
}

Test(cpu_numbers, attributes_of_pairs)
{
    for (int dtype = 0; dtype < KILN_N_DTYPES; dtype++) {
        if (!(INTS >> dtype & 1))
            continue;
        g_autoptr(RefCase) mod =
            pair_case(KILN_INSTR_mod, (KilnDType)dtype, (KilnDType)dtype, &shapes[4], 3);
        avoid_zeros(mod, 2);
        CASE_ATTRS(mod, mod)->fmod = true;
        cpu_agrees(mod, exact, "as in C");
        g_autoptr(RefCase) shift =
            pair_case(KILN_INSTR_bit_shift, (KilnDType)dtype, (KilnDType)dtype, &shapes[4], 4);
        CASE_ATTRS(shift, bit_shift)->direction = "RIGHT";
        cpu_agrees(shift, exact, "to the right");
    }
}

/* Dividends beside whole multiples of the divisor, where a quotient rounds to a whole number; then
 * any, of which some are far greater than the divisor, infinite or NaN. */
Test(cpu_numbers, remainders_of_floats)
{
    static const KilnDType dtypes[] = { KILN_DTYPE_f32, KILN_DTYPE_f64 };
    const int64_t n = 20011;
    for (int i = 0; i < 8; i++) {
        const KilnDType dtype = dtypes[i & 1];
        Random r = { (uint32_t)i + 5 };
        g_autoptr(RefCase) c = case_new(KILN_INSTR_mod);
        CASE_ATTRS(c, mod)->fmod = i & 2;
        case_out(c, dtype, 1, &n);
        case_in(c, dtype, 1, &n, NULL);
        case_in(c, dtype, 1, &n, NULL);
        fill(c, 1, 3);
        fill(c, 2, 4);
        for (int64_t k = 0; (i & 4) && k < n; k++) {
            const double y = ldexp(1 + below(&r, 1 << 23) * 0x1p-23, (int)below(&r, 20) - 10);
            const double x = y * (double)below(&r, 1u << below(&r, 30));
            const double ulp = dtype == KILN_DTYPE_f32 ? 0x1p-24 : 0x1p-53;
            const double beside = x * (1 + (double)((int)below(&r, 5) - 2) * ulp);
            kiln_element_store_f64(dtype, c->data[1], k, below(&r, 2) ? beside : -beside);
            kiln_element_store_f64(dtype, c->data[2], k, below(&r, 2) ? y : -y);
        }
        cpu_agrees(c, exact, i & 2 ? "as in C" : "as in Python");
    }
    check_pairs(KILN_INSTR_mod, D(f32) | D(f64), false);
}

Test(cpu_numbers, division_by_zero)
{
    for (int dtype = 0; dtype < KILN_N_DTYPES; dtype++) {
        if (!(INTS >> dtype & 1))
            continue;
        g_autoptr(RefCase) div =
            pair_case(KILN_INSTR_div, (KilnDType)dtype, (KilnDType)dtype, &shapes[3], 5);
        avoid_zeros(div, 2);
        kiln_element_store_f64((KilnDType)dtype, div->data[2], 63, 0);
        cr_expect_str_eq(case_run(div), "integer division by zero");
        cpu_agrees(div, exact, "by zero");
        div->instr.kind = KILN_INSTR_mod;
        div->instr.attrs = kiln_instr_attrs_new(KILN_INSTR_mod, div->arena);
        cpu_agrees(div, exact, "by zero");
    }
}

Test(cpu_numbers, several_operands)
{
    static const KilnInstrKind kinds[] = { KILN_INSTR_max, KILN_INSTR_min, KILN_INSTR_sum,
                                           KILN_INSTR_mean };
    const int64_t whole[] = { 3, 130 }, row[] = { 130 }, column[] = { 3, 1 };
    for (size_t i = 0; i < G_N_ELEMENTS(kinds); i++) {
        g_autoptr(RefCase) c = case_new(kinds[i]);
        case_out(c, KILN_DTYPE_f64, 2, whole);
        case_in(c, KILN_DTYPE_f64, 1, row, NULL);
        case_in(c, KILN_DTYPE_f64, 1, row, NULL);
        case_in(c, KILN_DTYPE_f64, 2, column, NULL);
        case_in(c, KILN_DTYPE_f64, 2, whole, NULL);
        for (uint32_t k = 1; k < 5; k++)
            cpu_fill(c, k, k);
        cpu_agrees(c, exact, "four operands");
        g_autoptr(RefCase) same = case_new(kinds[i]);
        case_out(same, KILN_DTYPE_f64, 2, whole);
        case_in(same, KILN_DTYPE_f64, 0, NULL, VALUES(2));
        case_in(same, KILN_DTYPE_f64, 0, NULL, VALUES(3));
        case_in(same, KILN_DTYPE_f64, 2, whole, NULL);
        cpu_fill(same, 3, 3);
        cpu_agrees(same, exact, "a larger third operand");
    }
}

/* --- one operand --- */

static void
check_ones(KilnInstrKind kind, uint32_t dtypes, KilnDType result, Tolerance tolerance)
{
    static const int64_t lengths[] = { 0, 1, 63, 64, 65, 1000, 20011 };
    for (int dtype = 0; dtype < KILN_N_DTYPES; dtype++) {
        for (size_t i = 0; (dtypes >> dtype & 1) && i < G_N_ELEMENTS(lengths); i++) {
            g_autoptr(RefCase) c = case_new(kind);
            case_out(c, result == KILN_N_DTYPES ? (KilnDType)dtype : result, 1, &lengths[i]);
            case_in(c, (KilnDType)dtype, 1, &lengths[i], NULL);
            fill(c, 1, (uint32_t)i);
            cpu_agrees(c, tolerance, kiln_dtype_name((KilnDType)dtype));
        }
    }
}

Test(cpu_numbers, one_operand)
{
    check_ones(KILN_INSTR_abs, NUMBERS, KILN_N_DTYPES, exact);
    check_ones(KILN_INSTR_bitwise_not, INTS, KILN_N_DTYPES, exact);
    check_ones(KILN_INSTR_neg, SIGNED | D(f64), KILN_N_DTYPES, exact);
    check_ones(KILN_INSTR_not, D(bool), KILN_N_DTYPES, exact);
    check_ones(KILN_INSTR_relu, NUMBERS, KILN_N_DTYPES, exact);
    check_ones(KILN_INSTR_sign, NUMBERS, KILN_N_DTYPES, exact);
    check_ones(KILN_INSTR_is_inf, D(f16) | D(bf16) | D(f32) | D(f64), KILN_DTYPE_bool, exact);
    check_ones(KILN_INSTR_is_nan, D(f16) | D(bf16) | D(f32) | D(f64), KILN_DTYPE_bool, exact);
}

Test(cpu_numbers, functions_of_reals)
{
    static const KilnInstrKind kinds[] = {
        KILN_INSTR_acos,       KILN_INSTR_acosh,
        KILN_INSTR_asin,       KILN_INSTR_asinh,
        KILN_INSTR_atan,       KILN_INSTR_atanh,
        KILN_INSTR_ceil,       KILN_INSTR_celu,
        KILN_INSTR_cos,        KILN_INSTR_cosh,
        KILN_INSTR_elu,        KILN_INSTR_erf,
        KILN_INSTR_exp,        KILN_INSTR_floor,
        KILN_INSTR_gelu,       KILN_INSTR_hard_sigmoid,
        KILN_INSTR_hard_swish, KILN_INSTR_leaky_relu,
        KILN_INSTR_log,        KILN_INSTR_mish,
        KILN_INSTR_reciprocal, KILN_INSTR_round,
        KILN_INSTR_selu,       KILN_INSTR_shrink,
        KILN_INSTR_sigmoid,    KILN_INSTR_sin,
        KILN_INSTR_sinh,       KILN_INSTR_softplus,
        KILN_INSTR_softsign,   KILN_INSTR_sqrt,
        KILN_INSTR_swish,      KILN_INSTR_tan,
        KILN_INSTR_tanh,       KILN_INSTR_thresholded_relu,
    };
    for (size_t i = 0; i < G_N_ELEMENTS(kinds); i++)
        check_ones(kinds[i], D(f64), KILN_N_DTYPES, rounded);
}

/* --- accuracy --- */

static long double
sigmoid(long double x)
{
    const long double e = expl(-fabsl(x));
    return (x < 0 ? e : 1) / (1 + e);
}

static const struct {
    const char *name;
    KilnCpuOne op;
    long double (*exact)(long double x);
    double low, high;
    double bound; /* in units of the last place of the exact result */
} accuracies[] = {
    { "exp", KILN_CPU_ONE_exp, expl, -1, 1, 1 },
    { "exp", KILN_CPU_ONE_exp, expl, -746, 710, 1 },
    { "log", KILN_CPU_ONE_log, logl, 0.5, 2, 1 },
    { "log", KILN_CPU_ONE_log, logl, 1e-310, 1e-300, 1 },
    { "log", KILN_CPU_ONE_log, logl, 1e-3, 1e9, 1 },
    { "tanh", KILN_CPU_ONE_tanh, tanhl, -1, 1, 1.5 },
    { "tanh", KILN_CPU_ONE_tanh, tanhl, -25, 25, 1.5 },
    { "sigmoid", KILN_CPU_ONE_sigmoid, sigmoid, -6, 6, 2 },
    { "sigmoid", KILN_CPU_ONE_sigmoid, sigmoid, -740, 50, 2 },
    { "sin", KILN_CPU_ONE_sin, sinl, -4, 4, 1 },
    { "sin", KILN_CPU_ONE_sin, sinl, -1e6, 1e6, 1 },
    { "sin", KILN_CPU_ONE_sin, sinl, 3.14159265, 3.14159266, 1 },
    { "cos", KILN_CPU_ONE_cos, cosl, -4, 4, 1 },
    { "cos", KILN_CPU_ONE_cos, cosl, -1e6, 1e6, 1 },
    { "cos", KILN_CPU_ONE_cos, cosl, 1.57079632, 1.57079633, 1 },
};

static double
error_of(double found, long double expected)
{
    int exponent;
    if (isinf((double)expected))
        return found == (double)expected ? 0 : INFINITY;
    frexpl(expected, &exponent);
    return (double)(fabsl((long double)found - expected) / ldexpl(1, MAX(exponent, -1021) - 53));
}

/* Against long double, and each instruction set against the portable loops. */
Test(cpu_numbers, accuracy_of_reals)
{
    enum {
        N = 20000
    };
    static double x[N], y[N], portable[N];
    const KilnCpuParams none = { 0, 0 };
    for (size_t a = 0; a < G_N_ELEMENTS(accuracies); a++) {
        Random r = { (uint32_t)a };
        for (int i = 0; i < N; i++) {
            const double share = (below(&r, 1 << 24) + below(&r, 1 << 24) * 0x1p-24) * 0x1p-24;
            x[i] = accuracies[a].low + (accuracies[a].high - accuracies[a].low) * share;
        }
        for (KilnCpuIsa isa = KILN_CPU_ISA_PORTABLE; isa <= KILN_CPU_ISA_AVX512; isa++) {
            if (isa != KILN_CPU_ISA_PORTABLE && !kiln_cpu_isa_supported(isa))
                continue;
            kiln_cpu_typed(isa)->one[accuracies[a].op][KILN_DTYPE_f64](y, x, N, &none);
            for (int i = 0; isa == KILN_CPU_ISA_PORTABLE && i < N; i++) {
                portable[i] = y[i];
                cr_assert_leq(error_of(y[i], accuracies[a].exact((long double)x[i])),
                              accuracies[a].bound, "%s of %a is %a", accuracies[a].name, x[i],
                              y[i]);
            }
            cr_assert_arr_eq(y, portable, sizeof y, "%s on %s", accuracies[a].name,
                             kiln_cpu_isa_name(isa));
        }
    }
}

Test(cpu_numbers, infinities_of_one_sign)
{
    for (int sides = 0; sides < 4; sides++) {
        for (int dtype = 0; dtype < KILN_N_DTYPES; dtype++) {
            if (!kiln_dtype_is_float((KilnDType)dtype) || kiln_dtype_is_low_float((KilnDType)dtype))
                continue;
            g_autoptr(RefCase) c = case_new(KILN_INSTR_is_inf);
            CASE_ATTRS(c, is_inf)->detect_negative = sides & 1;
            CASE_ATTRS(c, is_inf)->detect_positive = sides >> 1;
            case_out(c, KILN_DTYPE_bool, DIMS(5));
            case_in(c, (KilnDType)dtype, DIMS(5), VALUES(INFINITY, -INFINITY, NAN, 0, -1));
            cpu_agrees(c, exact, "sides");
        }
    }
}

Test(cpu_numbers, clip)
{
    const int64_t n = 1003;
    for (int dtype = 0; dtype < KILN_N_DTYPES; dtype++) {
        for (int there = 0; (NUMBERS >> dtype & 1) && there < 4; there++) {
            g_autoptr(RefCase) c = case_new(KILN_INSTR_clip);
            case_out(c, (KilnDType)dtype, 1, &n);
            case_in(c, (KilnDType)dtype, 1, &n, NULL);
            fill(c, 1, (uint32_t)dtype);
            if (there & 1)
                case_in(c, (KilnDType)dtype, SCALAR, VALUES(3));
            else
                case_absent(c);
            if (there & 2)
                case_in(c, (KilnDType)dtype, SCALAR, VALUES(there == 3 ? 2 : 100));
            cpu_agrees(c, exact, "bounds");
        }
    }
}

/* --- casts --- */

/* Half floats are cast from f32 and f64, and to these. */
static bool
has_cast(KilnDType from, KilnDType to)
{
    const uint32_t halves = D(f16) | D(bf16), reals = D(f32) | D(f64);
    if (!(CASTS >> from & 1) || !(CASTS >> to & 1))
        return false;
    return (!(halves >> from & 1) || (reals >> to & 1) || from == to) &&
           (!(halves >> to & 1) || (reals >> from & 1) || from == to);
}

Test(cpu_numbers, casts)
{
    static const int64_t lengths[] = { 0, 1, 63, 65, 513, 20011 };
    for (int from = 0; from < KILN_N_DTYPES; from++) {
        for (int to = 0; to < KILN_N_DTYPES; to++) {
            const bool has = has_cast((KilnDType)from, (KilnDType)to);
            for (size_t i = 0; has && i < G_N_ELEMENTS(lengths); i++) {
                g_autoptr(RefCase) c = case_new(KILN_INSTR_cast);
                g_autofree char *what = g_strdup_printf(
                    "%s to %s", kiln_dtype_name((KilnDType)from), kiln_dtype_name((KilnDType)to));
                case_out(c, (KilnDType)to, 1, &lengths[i]);
                case_in(c, (KilnDType)from, 1, &lengths[i], NULL);
                fill(c, 1, (uint32_t)i);
                cpu_agrees(c, exact, what);
            }
        }
    }
}
