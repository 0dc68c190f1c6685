/* SPDX-License-Identifier: Apache-2.0 */
/* Element-wise instructions of two operands, on single elements.
 *
 * Chosen where the ONNX text leaves it open: a shift by the width of the type or more gives 0; an
 * integer to a negative integer power is the exact value truncated (0 but for bases 1 and -1), and
 * an error for base 0; an integer base with a float exponent goes through double, truncated and
 * saturated. max and min propagate NaN. */
#include "backends/ref/elementwise/scalar.h"

#include <math.h>
#include <string.h>

#define FLOAT(id, expression)                                                                      \
    static double f_##id(double a, double b, const void *attrs)                                    \
    {                                                                                              \
        (void)attrs;                                                                               \
        return expression;                                                                         \
    }
#define SIGNED(id, expression)                                                                     \
    static int64_t s_##id(int64_t a, int64_t b, const void *attrs)                                 \
    {                                                                                              \
        (void)attrs;                                                                               \
        return expression;                                                                         \
    }
#define UNSIGNED(id, expression)                                                                   \
    static uint64_t u_##id(uint64_t a, uint64_t b, const void *attrs)                              \
    {                                                                                              \
        (void)b, (void)attrs;                                                                      \
        return expression;                                                                         \
    }

FLOAT(add, a + b)
FLOAT(sub, a - b)
FLOAT(mul, a *b)
FLOAT(div, a / b)
FLOAT(max, ref_max(a, b))
FLOAT(min, ref_min(a, b))
FLOAT(mean, (a + b) / 2)
FLOAT(prelu, a < 0 ? a * b : a)

/* Arithmetic of signed integers in their unsigned image: wraps without undefined behaviour. */
#define WRAP(a, operator, b) ((int64_t)((uint64_t)(a) operator(uint64_t)(b)))
SIGNED(add, WRAP(a, +, b))
SIGNED(sub, WRAP(a, -, b))
SIGNED(mul, WRAP(a, *, b))
SIGNED(div, b == -1 ? WRAP(0, -, a) : a / b)
SIGNED(max, a > b ? a : b)
SIGNED(min, a < b ? a : b)
SIGNED(prelu, a < 0 ? WRAP(a, *, b) : a)
SIGNED(and, a &b)
SIGNED(or, a | b)
SIGNED(xor, a ^ b)

UNSIGNED(add, a + b)
UNSIGNED(sub, a - b)
UNSIGNED(mul, a *b)
UNSIGNED(div, a / b)
UNSIGNED(max, a > b ? a : b)
UNSIGNED(min, a < b ? a : b)
UNSIGNED(mod, a % b)
UNSIGNED(prelu, a)
UNSIGNED(and, a &b)
UNSIGNED(or, a | b)
UNSIGNED(xor, a ^ b)

/* fmod: the sign of the dividend, as in C; else that of the divisor, as in Python, zeros too. */
static double
f_mod(double a, double b, const void *attrs)
{
    double r = fmod(a, b);
    if (((const KilnInstrAttrs_mod *)attrs)->fmod)
        return r;
    if (r == 0)
        return copysign(0, b);
    return (r < 0) == (b < 0) ? r : r + b;
}

static int64_t
s_mod(int64_t a, int64_t b, const void *attrs)
{
    int64_t r = b == -1 ? 0 : a % b;
    if (((const KilnInstrAttrs_mod *)attrs)->fmod || r == 0 || (r < 0) == (b < 0))
        return r;
    return r + b;
}

/* A shift to the right copies the sign. What is shifted by less than 0 has gone altogether. */
static int64_t
s_bit_shift(int64_t a, int64_t b, const void *attrs)
{
    bool left = strcmp(((const KilnInstrAttrs_bit_shift *)attrs)->direction, "LEFT") == 0;
    bool gone = b < 0 || b >= 64;
    if (left)
        return gone ? 0 : (int64_t)((uint64_t)a << b);
    int64_t sign = a < 0 ? -1 : 0;
    return gone ? sign : (int64_t)((uint64_t)(a ^ sign) >> b) ^ sign;
}

static uint64_t
u_bit_shift(uint64_t a, uint64_t b, const void *attrs)
{
    if (b >= 64)
        return 0;
    bool left = strcmp(((const KilnInstrAttrs_bit_shift *)attrs)->direction, "LEFT") == 0;
    return left ? a << b : a >> b;
}

// clang-format off
#define FSU(id) .f = f_##id, .s = s_##id, .u = u_##id
static const RefBinary ops[KILN_N_INSTRS] = {
    [KILN_INSTR_add] = { FSU(add) },
    [KILN_INSTR_sub] = { FSU(sub) },
    [KILN_INSTR_mul] = { FSU(mul) },
    [KILN_INSTR_div] = { FSU(div), .divides = true },
    [KILN_INSTR_mod] = { FSU(mod), .divides = true },
    [KILN_INSTR_max] = { FSU(max) },
    [KILN_INSTR_min] = { FSU(min) },
    [KILN_INSTR_sum] = { FSU(add) },
    [KILN_INSTR_mean] = { .f = f_mean },
    [KILN_INSTR_prelu] = { FSU(prelu) },
    [KILN_INSTR_bit_shift] = { .s = s_bit_shift, .u = u_bit_shift },
    [KILN_INSTR_bitwise_and] = { .s = s_and, .u = u_and },
    [KILN_INSTR_bitwise_or] = { .s = s_or, .u = u_or },
    [KILN_INSTR_bitwise_xor] = { .s = s_xor, .u = u_xor },
    [KILN_INSTR_and] = { .u = u_and },
    [KILN_INSTR_or] = { .u = u_or },
    [KILN_INSTR_xor] = { .u = u_xor },
    [KILN_INSTR_equal] = { .compare = REF_EQUAL },
    [KILN_INSTR_greater] = { .compare = REF_GREATER },
    [KILN_INSTR_greater_or_equal] = { .compare = REF_GREATER | REF_EQUAL },
    [KILN_INSTR_less] = { .compare = REF_LESS },
    [KILN_INSTR_less_or_equal] = { .compare = REF_LESS | REF_EQUAL },
};
// clang-format on

const RefBinary *
kiln_ref_binary_op(KilnInstrKind kind)
{
    const RefBinary *op = &ops[kind];
    return op->f || op->s || op->u || op->compare ? op : NULL;
}

/* 0 where a NaN makes the two unordered. */
#define ORDER(a, b) ((a) < (b) ? REF_LESS : (a) == (b) ? REF_EQUAL : (a) > (b) ? REF_GREATER : 0)

static int
order(RefClass class_, RefValue a, RefValue b)
{
    switch (class_) {
    case REF_FLOAT:
        return ORDER(a.f, b.f);
    case REF_SIGNED:
        return ORDER(a.s, b.s);
    default:
        return ORDER(a.u, b.u);
    }
}

const char *
kiln_ref_apply_binary(const RefBinary *op, const void *attrs, RefClass class_,
                      const RefValue operands[2], RefValue *out)
{
    const RefValue a = operands[0], b = operands[1];
    if (op->compare) {
        out->u = (op->compare & order(class_, a, b)) != 0;
        return NULL;
    }
    switch (class_) {
    case REF_FLOAT:
        out->f = op->f(a.f, b.f, attrs);
        return NULL;
    case REF_SIGNED:
        if (op->divides && b.s == 0)
            return "integer division by zero";
        out->s = op->s(a.s, b.s, attrs);
        return NULL;
    default:
        if (op->divides && b.u == 0)
            return "integer division by zero";
        out->u = op->u(a.u, b.u, attrs);
        return NULL;
    }
}

static uint64_t
integer_power(uint64_t base, uint64_t exponent)
{
    uint64_t power = 1;
    for (; exponent; exponent >>= 1, base *= base) {
        if (exponent & 1)
            power *= base;
    }
    return power;
}

static double
as_double(RefClass class_, RefValue value)
{
    return class_ == REF_FLOAT ? value.f : class_ == REF_SIGNED ? (double)value.s : (double)value.u;
}

const char *
kiln_ref_apply_pow(RefClass base, RefClass exponent, const RefValue operands[2], RefValue *out)
{
    const RefValue a = operands[0], b = operands[1];
    if (base == REF_FLOAT || exponent == REF_FLOAT) {
        double power = pow(as_double(base, a), as_double(exponent, b));
        if (base == REF_FLOAT)
            out->f = power;
        else if (base == REF_SIGNED)
            out->s = ref_truncate_signed(power);
        else
            out->u = ref_truncate_unsigned(power);
        return NULL;
    }
    if (exponent == REF_UNSIGNED || b.s >= 0) {
        out->u = integer_power(a.u, b.u);
        return NULL;
    }
    if (a.u == 0)
        return "zero to a negative integer power";
    if (a.u == 1)
        out->u = 1;
    else if (base == REF_SIGNED && a.s == -1)
        out->s = b.s % 2 ? -1 : 1;
    else
        out->u = 0;
    return NULL;
}
