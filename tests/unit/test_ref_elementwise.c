/* SPDX-License-Identifier: Apache-2.0 */
/* The reference backend's element-wise kernels on values computed by hand: edges of every class of
 * element types, NaN and infinities, broadcasting, results that overwrite an operand. */
#include "ir/instr.h"
#include "ref_case.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#define F32 KILN_DTYPE_f32

static void
unary(KilnInstrKind kind, const double *in, const double *expected, int64_t n, double tolerance)
{
    g_autoptr(RefCase) c = case_new(kind);
    case_out(c, F32, DIMS(n));
    case_in(c, F32, DIMS(n), in);
    case_gives(c, expected, tolerance);
}

#define UNARY(id, in, out) unary(KILN_INSTR_##id, in, out, sizeof(in) / sizeof(double), 1e-6)

Test(ref_elementwise, float_functions)
{
    const double x[] = { -2, -0.5, 0, 0.5, 1, 2.5, 3.5, INFINITY, NAN };
    UNARY(abs, x, VALUES(2, 0.5, 0, 0.5, 1, 2.5, 3.5, INFINITY, NAN));
    UNARY(ceil, x, VALUES(-2, 0, 0, 1, 1, 3, 4, INFINITY, NAN));
    UNARY(floor, x, VALUES(-2, -1, 0, 0, 1, 2, 3, INFINITY, NAN));
    UNARY(round, x, VALUES(-2, 0, 0, 0, 1, 2, 4, INFINITY, NAN));
    UNARY(neg, x, VALUES(2, 0.5, 0, -0.5, -1, -2.5, -3.5, -INFINITY, NAN));
    UNARY(reciprocal, x, VALUES(-0.5, -2, INFINITY, 2, 1, 0.4, 1 / 3.5, 0, NAN));
    UNARY(relu, x, VALUES(0, 0, 0, 0.5, 1, 2.5, 3.5, INFINITY, NAN));
    UNARY(sign, x, VALUES(-1, -1, 0, 1, 1, 1, 1, 1, NAN));
    UNARY(sqrt, x, VALUES(NAN, NAN, 0, sqrt(0.5), 1, sqrt(2.5), sqrt(3.5), INFINITY, NAN));
    UNARY(leaky_relu, x, VALUES(-0.02, -0.005, 0, 0.5, 1, 2.5, 3.5, INFINITY, NAN));
    UNARY(thresholded_relu, x, VALUES(0, 0, 0, 0, 0, 2.5, 3.5, INFINITY, NAN));
    UNARY(shrink, x, VALUES(-2, 0, 0, 0, 1, 2.5, 3.5, INFINITY, 0));
    UNARY(hard_sigmoid, x, VALUES(0.1, 0.4, 0.5, 0.6, 0.7, 1, 1, 1, NAN));
    UNARY(hard_swish, x,
          VALUES(-1. / 3, -5. / 24, 0, 7. / 24, 2. / 3, 55. / 24, 3.5, INFINITY, NAN));
    UNARY(softsign, x, VALUES(-2. / 3, -1. / 3, 0, 1. / 3, 0.5, 2.5 / 3.5, 3.5 / 4.5, NAN, NAN));
}

/* Literals computed with 30 digits. */
Test(ref_elementwise, transcendental_functions)
{
    const double x[] = { -1.5, 0, 0.75 };
    UNARY(exp, x, VALUES(0.22313016014842982893, 1, 2.11700001661267466855));
    UNARY(log, x, VALUES(NAN, -INFINITY, -0.28768207245178092744));
    UNARY(sin, x, VALUES(-0.99749498660405443094, 0, 0.68163876002333416673));
    UNARY(cos, x, VALUES(0.07073720166770291008, 1, 0.73168886887382088631));
    UNARY(tan, x, VALUES(-14.1014199471717193876, 0, 0.93159645994407246117));
    UNARY(asin, x, VALUES(NAN, 0, 0.84806207898148100806));
    UNARY(acos, x, VALUES(NAN, 1.57079632679489661923, 0.72273424781341561117));
    UNARY(atan, x, VALUES(-0.98279372324732906799, 0, 0.64350110879328438680));
    UNARY(sinh, x, VALUES(-2.12927945509481749683, 0, 0.82231673193582998070));
    UNARY(cosh, x, VALUES(2.35240961524324732577, 1, 1.29468328467684468784));
    UNARY(tanh, x, VALUES(-0.90514825364486643824, 0, 0.63514895238728731921));
    UNARY(asinh, x, VALUES(-1.19476321728710930411, 0, 0.69314718055994530942));
    UNARY(atanh, x, VALUES(NAN, 0, 0.97295507452765665255));
    UNARY(erf, x, VALUES(-0.96610514647531072707, 0, 0.71115563365351513184));
    UNARY(sigmoid, x, VALUES(0.18242552380635634648, 0.5, 0.67917869917539297359));
    UNARY(softplus, x, VALUES(0.201413277982752409, 0.69314718055994530942, 1.13687100611489994));
    UNARY(elu, x, VALUES(-0.77686983985157017107, 0, 0.75));
    UNARY(celu, x, VALUES(-0.77686983985157017107, 0, 0.75));
    UNARY(selu, x, VALUES(-1.36581435763666018, 0, 0.78802576589584350586));
    UNARY(gelu, x, VALUES(-0.100210801903287099, 0, 0.580029485717348851));
    UNARY(mish, x, VALUES(-0.298099742166806757, 0, 0.610018335218293398));
    const double y[] = { 0.5, 1, 3 };
    UNARY(acosh, y, VALUES(NAN, 0, 1.76274717403908605046));
}

/* Where the plain formula would overflow or lose every digit. */
Test(ref_elementwise, functions_far_out)
{
    const double x[] = { -1000, -100, 100, 1000 };
    UNARY(sigmoid, x, VALUES(0, 0, 1, 1));
    UNARY(softplus, x, VALUES(0, 0, 100, 1000));
    UNARY(mish, x, VALUES(0, 0, 100, 1000));
    UNARY(elu, x, VALUES(-1, -1, 100, 1000));
    UNARY(gelu, x, VALUES(0, 0, 100, 1000));
    g_autoptr(RefCase) c = case_new(KILN_INSTR_elu);
    case_out(c, F32, DIMS(1));
    case_in(c, F32, DIMS(1), VALUES(-1e-30));
    case_gives(c, VALUES(-(double)1e-30f), 0);
}

Test(ref_elementwise, gelu_by_tanh)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_gelu);
    CASE_ATTRS(c, gelu)->approximate = "tanh";
    case_out(c, F32, DIMS(2));
    case_in(c, F32, DIMS(2), VALUES(-1, 2));
    case_gives(c, VALUES(-0.15880801, 1.95459769), 1e-7);
}

Test(ref_elementwise, unary_integers_wrap)
{
    g_autoptr(RefCase) a = case_new(KILN_INSTR_abs);
    case_out(a, KILN_DTYPE_i8, DIMS(3));
    case_in(a, KILN_DTYPE_i8, DIMS(3), VALUES(-128, -5, 127));
    case_gives(a, VALUES(-128, 5, 127), 0);
    g_autoptr(RefCase) n = case_new(KILN_INSTR_neg);
    case_out(n, KILN_DTYPE_i64, DIMS(2));
    case_in(n, KILN_DTYPE_i64, DIMS(2), VALUES(-0x1p63, 7));
    case_gives(n, VALUES(-0x1p63, -7), 0);
    g_autoptr(RefCase) b = case_new(KILN_INSTR_bitwise_not);
    case_out(b, KILN_DTYPE_u8, DIMS(2));
    case_in(b, KILN_DTYPE_u8, DIMS(2), VALUES(0, 0xf0));
    case_gives(b, VALUES(255, 15), 0);
    g_autoptr(RefCase) s = case_new(KILN_INSTR_sign);
    case_out(s, KILN_DTYPE_u64, DIMS(2));
    case_in(s, KILN_DTYPE_u64, DIMS(2), VALUES(0, 0x1p63));
    case_gives(s, VALUES(0, 1), 0);
    g_autoptr(RefCase) not = case_new(KILN_INSTR_not);
    case_out(not, KILN_DTYPE_bool, DIMS(2));
    case_in(not, KILN_DTYPE_bool, DIMS(2), VALUES(0, 1));
    case_gives(not, VALUES(1, 0), 0);
}

Test(ref_elementwise, infinities_and_nans_are_found)
{
    const double x[] = { -INFINITY, INFINITY, NAN, 65504, 0 };
    g_autoptr(RefCase) c = case_new(KILN_INSTR_is_inf);
    case_out(c, KILN_DTYPE_bool, DIMS(5));
    case_in(c, KILN_DTYPE_f16, DIMS(5), x);
    case_gives(c, VALUES(1, 1, 0, 0, 0), 0);
    CASE_ATTRS(c, is_inf)->detect_negative = false;
    case_gives(c, VALUES(0, 1, 0, 0, 0), 0);
    CASE_ATTRS(c, is_inf)->detect_positive = false;
    case_gives(c, VALUES(0, 0, 0, 0, 0), 0);
    g_autoptr(RefCase) n = case_new(KILN_INSTR_is_nan);
    case_out(n, KILN_DTYPE_bool, DIMS(5));
    case_in(n, KILN_DTYPE_bf16, DIMS(5), x);
    case_gives(n, VALUES(0, 0, 1, 0, 0), 0);
}

/* --- two operands --- */

static RefCase *
binary(KilnInstrKind kind, KilnDType dtype, int64_t n, const double *a, const double *b)
{
    RefCase *c = case_new(kind);
    bool compares = kind >= KILN_INSTR_equal && kind <= KILN_INSTR_less_or_equal;
    case_out(c, compares ? KILN_DTYPE_bool : dtype, DIMS(n));
    case_in(c, dtype, DIMS(n), a);
    case_in(c, dtype, DIMS(n), b);
    return c;
}

static void
expect_binary(KilnInstrKind kind, KilnDType dtype, int64_t n, const double *values)
{
    g_autoptr(RefCase) c = binary(kind, dtype, n, values, values + n);
    case_gives(c, values + 2 * n, 0);
}

#define BINARY(id, dtype, n, ...)                                                                  \
    expect_binary(KILN_INSTR_##id, KILN_DTYPE_##dtype, n, VALUES(__VA_ARGS__))

Test(ref_elementwise, arithmetic_of_floats)
{
    BINARY(add, f32, 3, 1, INFINITY, 16777216, 2, -INFINITY, 1, 3, NAN, 16777216);
    BINARY(sub, f64, 2, 1, 16777217, 2, 1, -1, 16777216);
    BINARY(mul, f16, 3, 2048, 256, 3, 1, 256, -2, 2048, INFINITY, -6);
    BINARY(add, f16, 2, 2048, 2048, 1, 3, 2048, 2052);
    BINARY(add, bf16, 2, 256, 256, 1, 3, 256, 260);
    BINARY(div, f32, 4, 1, 1, 0, -1, 4, 0, 0, 0, 0.25, INFINITY, NAN, -INFINITY);
    BINARY(prelu, f32, 3, -2, 2, NAN, 0.5, 0.5, 0.5, -1, 2, NAN);
    BINARY(prelu, i32, 2, -2, 2, 3, 3, -6, 2);
}

Test(ref_elementwise, arithmetic_of_integers_wraps)
{
    BINARY(add, i8, 2, 127, -128, 1, -1, -128, 127);
    BINARY(add, u8, 1, 250, 10, 4);
    BINARY(sub, u16, 1, 1, 2, 65535);
    BINARY(mul, i32, 1, 65536, 65536, 0);
    BINARY(mul, u32, 1, 65537, 65537, 131073);
    BINARY(add, i64, 1, -0x1p63, -0x1p62, 0x1p62);
}

Test(ref_elementwise, division_of_integers)
{
    BINARY(div, i32, 4, 7, -7, 7, -7, 2, 2, -2, -2, 3, -3, -3, 3);
    BINARY(div, i8, 1, -128, -1, -128);
    BINARY(div, i64, 1, -0x1p63, -1, -0x1p63);
    BINARY(div, u64, 1, 0x1p63, 2, 0x1p62);
    BINARY(mod, i32, 4, 7, -7, 7, -7, 3, 3, -3, -3, 1, 2, -2, -1);
    BINARY(mod, i64, 1, -0x1p63, -1, 0);
    BINARY(mod, u8, 1, 200, 7, 4);
    g_autoptr(RefCase) zero = binary(KILN_INSTR_div, KILN_DTYPE_i32, 2, VALUES(1, 2), VALUES(1, 0));
    cr_expect_str_eq(case_run(zero), "integer division by zero");
    g_autoptr(RefCase) mod = binary(KILN_INSTR_mod, KILN_DTYPE_u8, 1, VALUES(1), VALUES(0));
    cr_expect_str_eq(case_run(mod), "integer division by zero");
}

Test(ref_elementwise, modulo_as_in_c)
{
    g_autoptr(RefCase) f =
        binary(KILN_INSTR_mod, F32, 4, VALUES(7, -7, 5.5, 1), VALUES(3, 3, -2, 0));
    CASE_ATTRS(f, mod)->fmod = true;
    case_gives(f, VALUES(1, -1, 1.5, NAN), 0);
    g_autoptr(RefCase) i =
        binary(KILN_INSTR_mod, KILN_DTYPE_i16, 3, VALUES(7, -7, 7), VALUES(3, 3, -3));
    CASE_ATTRS(i, mod)->fmod = true;
    case_gives(i, VALUES(1, -1, 1), 0);
}

Test(ref_elementwise, modulo_of_floats_as_in_python)
{
    const double inf = INFINITY;
    g_autoptr(RefCase) f =
        binary(KILN_INSTR_mod, F32, 10, VALUES(7, -7, 7, -7, 5.5, inf, 1, 1, -1, NAN),
               VALUES(3, 3, -3, -3, -2, 3, 0, inf, inf, 1));
    case_gives(f, VALUES(1, 2, -2, -1, -0.5, NAN, NAN, 1, inf, NAN), 0);
    g_autoptr(RefCase) zeros =
        binary(KILN_INSTR_mod, F32, 4, VALUES(0, -0.0, 6, -6), VALUES(-2, 2, -3, 3));
    cr_expect_null(case_run(zeros));
    const float *found = zeros->data[0];
    cr_expect(signbit(found[0]) && !signbit(found[1]) && signbit(found[2]) && !signbit(found[3]));
}

Test(ref_elementwise, bits)
{
    BINARY(bitwise_and, u8, 2, 0xcc, 3, 0xaa, 6, 0x88, 2);
    BINARY(bitwise_or, i16, 1, -32768, 1, -32767);
    BINARY(bitwise_xor, i32, 2, -1, 5, 1, 3, -2, 6);
    BINARY(bit_shift, u8, 3, 0x81, 1, 1, 1, 7, 8, 2, 128, 0);
    BINARY(bit_shift, u64, 2, 1, 1, 63, 64, 0x1p63, 0);
    g_autoptr(RefCase) right =
        binary(KILN_INSTR_bit_shift, KILN_DTYPE_u32, 3, VALUES(12, 1, 5), VALUES(2, 1, 200));
    CASE_ATTRS(right, bit_shift)->direction = "RIGHT";
    case_gives(right, VALUES(3, 0, 0), 0);
    BINARY(bit_shift, i8, 4, 0x41, -1, 1, 1, 1, 7, 8, -1, -126, -128, 0, 0);
    g_autoptr(RefCase) copied = binary(KILN_INSTR_bit_shift, KILN_DTYPE_i16, 5,
                                       VALUES(-9, 9, -9, -9, 9), VALUES(1, 1, 16, -1, 64));
    CASE_ATTRS(copied, bit_shift)->direction = "RIGHT";
    case_gives(copied, VALUES(-5, 4, -1, -1, 0), 0);
    BINARY(and, bool, 4, 0, 0, 1, 1, 0, 1, 0, 1, 0, 0, 0, 1);
    BINARY(or, bool, 4, 0, 0, 1, 1, 0, 1, 0, 1, 0, 1, 1, 1);
    BINARY(xor, bool, 4, 0, 0, 1, 1, 0, 1, 0, 1, 0, 1, 1, 0);
}

Test(ref_elementwise, comparisons)
{
    BINARY(less, f32, 4, 1, 2, NAN, 1, 2, 2, 1, NAN, 1, 0, 0, 0);
    BINARY(less_or_equal, f32, 4, 1, 2, NAN, 3, 2, 2, 1, 2, 1, 1, 0, 0);
    BINARY(greater, f16, 3, 3, 2, NAN, 2, 2, 1, 1, 0, 0);
    BINARY(greater_or_equal, bf16, 3, 3, 2, NAN, 2, 2, NAN, 1, 1, 0);
    BINARY(equal, f64, 3, 0., NAN, INFINITY, -0., NAN, INFINITY, 1, 0, 1);
    BINARY(less, i8, 1, -1, 1, 1);
    BINARY(less, u64, 1, 1, 0x1p63, 1);
    BINARY(greater, u8, 1, 255, 1, 1);
    BINARY(equal, bool, 2, 1, 0, 1, 1, 1, 0);
}

Test(ref_elementwise, largest_and_smallest)
{
    BINARY(max, f32, 4, NAN, 1, 3, -1, 1, NAN, 2, -2, NAN, NAN, 3, -1);
    BINARY(min, f32, 4, NAN, 1, 3, -1, 1, NAN, 2, -2, NAN, NAN, 2, -2);
    BINARY(max, i8, 1, -1, 1, 1);
    BINARY(max, u64, 1, 1, 0x1p63, 0x1p63);
    g_autoptr(RefCase) c = case_new(KILN_INSTR_mean);
    case_out(c, KILN_DTYPE_f16, DIMS(2, 2));
    case_in(c, KILN_DTYPE_f16, DIMS(2, 1), VALUES(1, 2));
    case_in(c, KILN_DTYPE_f16, DIMS(2), VALUES(10, 20));
    case_in(c, KILN_DTYPE_f16, SCALAR, VALUES(4));
    case_gives(c, VALUES(5, 25. / 3, 16. / 3, 26. / 3), 0.005);
    c->instr.kind = KILN_INSTR_sum;
    case_gives(c, VALUES(15, 25, 16, 26), 0);
    c->instr.kind = KILN_INSTR_max;
    case_gives(c, VALUES(10, 20, 10, 20), 0);
    c->instr.n_operands = 2; /* one operand, broadcast */
    c->instr.kind = KILN_INSTR_min;
    case_gives(c, VALUES(1, 1, 2, 2), 0);
    c->instr.n_operands = 4;
}

Test(ref_elementwise, powers)
{
    BINARY(pow, f32, 4, 2, -8, 0, 4, 10, 1. / 3, 0, -0.5, 1024, NAN, 1, 0.5);
    BINARY(pow, i32, 4, 3, -2, 2, -1, 4, 31, -1, -3, 81, -0x1p31, 0, -1);
    BINARY(pow, u8, 1, 3, 6, 729 - 512);
    g_autoptr(RefCase) zero = binary(KILN_INSTR_pow, KILN_DTYPE_i64, 1, VALUES(0), VALUES(-1));
    cr_expect_str_eq(case_run(zero), "zero to a negative integer power");
    g_autoptr(RefCase) mixed = case_new(KILN_INSTR_pow);
    case_out(mixed, KILN_DTYPE_i32, DIMS(4));
    case_in(mixed, KILN_DTYPE_i32, DIMS(4), VALUES(4, 2, -3, 10));
    case_in(mixed, F32, DIMS(4), VALUES(0.5, 3, 2, 300));
    case_gives(mixed, VALUES(2, 8, 9, -1),
               0); /* saturated in i64, of which i32 keeps the low bits */
    g_autoptr(RefCase) base = case_new(KILN_INSTR_pow);
    case_out(base, F32, DIMS(3));
    case_in(base, F32, DIMS(3), VALUES(1.5, 2, 2));
    case_in(base, KILN_DTYPE_i64, DIMS(3), VALUES(2, -1, 0));
    case_gives(base, VALUES(2.25, 0.5, 1), 0);
}

Test(ref_elementwise, broadcasting)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_sub);
    case_out(c, F32, DIMS(2, 3, 2));
    case_in(c, F32, DIMS(3, 1), VALUES(10, 20, 30));
    case_in(c, F32, DIMS(2, 1, 2), VALUES(1, 2, 3, 4));
    case_gives(c, VALUES(9, 8, 19, 18, 29, 28, 7, 6, 17, 16, 27, 26), 0);
    g_autoptr(RefCase) scalar = case_new(KILN_INSTR_div);
    case_out(scalar, F32, DIMS(2));
    case_in(scalar, F32, SCALAR, VALUES(12));
    case_in(scalar, F32, DIMS(2), VALUES(3, 4));
    case_gives(scalar, VALUES(4, 3), 0);
    g_autoptr(RefCase) empty = case_new(KILN_INSTR_add);
    case_out(empty, F32, DIMS(2, 0));
    case_in(empty, F32, DIMS(1, 0), NULL);
    case_in(empty, F32, DIMS(2, 1), VALUES(1, 2));
    cr_expect_null(case_run(empty));
}

Test(ref_elementwise, result_over_an_operand)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_sub);
    case_out(c, F32, DIMS(2, 2));
    case_in(c, F32, DIMS(2), VALUES(10, 20));
    case_in(c, F32, DIMS(2, 2), VALUES(1, 2, 3, 4));
    void *own = c->data[0];
    c->data[0] = c->data[2];
    case_gives(c, VALUES(9, 18, 7, 16), 0);
    c->data[0] = own;
}

/* --- clip, where --- */

Test(ref_elementwise, clip)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_clip);
    case_out(c, F32, DIMS(4));
    case_in(c, F32, DIMS(4), VALUES(-5, 0.5, 9, NAN));
    case_in(c, F32, SCALAR, VALUES(-1));
    case_in(c, F32, SCALAR, VALUES(3));
    case_gives(c, VALUES(-1, 0.5, 3, NAN), 0);
    ((float *)c->data[2])[0] = 7; /* low > high: high */
    case_gives(c, VALUES(3, 3, 3, NAN), 0);
    g_autoptr(RefCase) high = case_new(KILN_INSTR_clip);
    case_out(high, KILN_DTYPE_u8, DIMS(2));
    case_in(high, KILN_DTYPE_u8, DIMS(2), VALUES(3, 200));
    case_absent(high);
    case_in(high, KILN_DTYPE_u8, SCALAR, VALUES(150));
    case_gives(high, VALUES(3, 150), 0);
    g_autoptr(RefCase) none = case_new(KILN_INSTR_clip);
    case_out(none, KILN_DTYPE_i8, DIMS(2));
    case_in(none, KILN_DTYPE_i8, DIMS(2), VALUES(-3, 100));
    case_gives(none, VALUES(-3, 100), 0);
}

Test(ref_elementwise, where)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_where);
    case_out(c, KILN_DTYPE_i64, DIMS(2, 2));
    case_in(c, KILN_DTYPE_bool, DIMS(2, 1), VALUES(1, 0));
    case_in(c, KILN_DTYPE_i64, DIMS(2), VALUES(1, 2));
    case_in(c, KILN_DTYPE_i64, SCALAR, VALUES(-9));
    case_gives(c, VALUES(1, 2, -9, -9), 0);
}

Test(ref_elementwise, where_keeps_the_bits_of_nans)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_where);
    const uint32_t signalling = 0x7fa00001u;
    case_out(c, F32, DIMS(1));
    case_in(c, KILN_DTYPE_bool, DIMS(1), VALUES(1));
    case_in(c, F32, DIMS(1), NULL);
    case_in(c, F32, DIMS(1), VALUES(0));
    memcpy(c->data[2], &signalling, 4);
    cr_expect_null(case_run(c));
    cr_expect_eq(memcmp(c->data[0], &signalling, 4), 0);
}

Test(ref_elementwise, copy)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_copy);
    case_out(c, KILN_DTYPE_u16, DIMS(3));
    case_in(c, KILN_DTYPE_u16, DIMS(3), VALUES(1, 2, 65535));
    case_gives(c, VALUES(1, 2, 65535), 0);
}
