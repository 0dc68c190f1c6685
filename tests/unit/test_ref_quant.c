/* SPDX-License-Identifier: Apache-2.0 */
/* The reference backend's quantization: rounding to even, saturation, zero points and scales per
 * tensor, axis, row, column and channel, and the products of integers. Random numbers too. */
#include "ref_case.h"
#include "graph/base/number.h"
#include "graph/base/random.h"
#include "ir/instr.h"

#include <math.h>
#include <stdint.h>

#define F32 KILN_DTYPE_f32
#define I32 KILN_DTYPE_i32
#define I8 KILN_DTYPE_i8
#define U8 KILN_DTYPE_u8

Test(ref_quant, quantize_linear)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_quantize_linear);
    case_out(c, U8, DIMS(8));
    case_in(c, F32, DIMS(8), VALUES(1, 3, 5, -1, 1000, -1000, NAN, INFINITY));
    case_in(c, F32, SCALAR, VALUES(2));
    case_in(c, U8, SCALAR, VALUES(10));
    case_gives(c, VALUES(10, 12, 12, 10, 255, 0, 10, 255), 0);
    g_autoptr(RefCase) none = case_new(KILN_INSTR_quantize_linear);
    case_out(none, U8, DIMS(3));
    case_in(none, KILN_DTYPE_f16, DIMS(3), VALUES(0.5, 1.5, -3));
    case_in(none, F32, SCALAR, VALUES(1));
    case_gives(none, VALUES(0, 2, 0), 0);
    g_autoptr(RefCase) wide = case_new(KILN_INSTR_quantize_linear);
    case_out(wide, KILN_DTYPE_i16, DIMS(3));
    case_in(wide, I32, DIMS(3), VALUES(100000, -5, -100000));
    case_in(wide, F32, SCALAR, VALUES(2));
    case_in(wide, KILN_DTYPE_i16, SCALAR, VALUES(-1));
    case_gives(wide, VALUES(32767, -3, -32768), 0);
}

/* The quotient is rounded to f32 before it is rounded to an integer. */
Test(ref_quant, quantize_linear_divides_in_f32)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_quantize_linear);
    const float x = 0.35f, scale = 0.1f; /* 3.4999999, which is 3.5 in f32 */
    cr_assert((double)x / (double)scale < 3.5 && x / scale == 3.5f);
    case_out(c, U8, DIMS(1));
    case_in(c, F32, DIMS(1), VALUES((double)x));
    case_in(c, F32, SCALAR, VALUES((double)scale));
    case_in(c, U8, SCALAR, VALUES(0));
    case_gives(c, VALUES(4), 0);
}

Test(ref_quant, per_axis)
{
    g_autoptr(RefCase) q = case_new(KILN_INSTR_quantize_linear);
    CASE_ATTRS(q, quantize_linear)->axis = -2;
    case_out(q, I8, DIMS(1, 2, 2));
    case_in(q, F32, DIMS(1, 2, 2), VALUES(1, -2, 1, -2));
    case_in(q, F32, DIMS(2), VALUES(1, 0.5));
    case_in(q, I8, DIMS(2), VALUES(0, 100));
    case_gives(q, VALUES(1, -2, 102, 96), 0);
    g_autoptr(RefCase) d = case_new(KILN_INSTR_dequantize_linear);
    case_out(d, F32, DIMS(1, 2, 2));
    case_in(d, I8, DIMS(1, 2, 2), VALUES(1, -2, 102, 96));
    case_in(d, F32, DIMS(2), VALUES(1, 0.5));
    case_in(d, I8, DIMS(2), VALUES(0, 100));
    case_gives(d, VALUES(1, -2, 1, -2), 0);
}

Test(ref_quant, dequantize_linear)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_dequantize_linear);
    case_out(c, KILN_DTYPE_f16, DIMS(3));
    case_in(c, KILN_DTYPE_u16, DIMS(3), VALUES(0, 32768, 65535));
    case_in(c, KILN_DTYPE_f16, SCALAR, VALUES(0.5));
    case_in(c, KILN_DTYPE_u16, SCALAR, VALUES(32768));
    case_gives(c, VALUES(-16384, 0, 16384), 0);
    g_autoptr(RefCase) bias = case_new(KILN_INSTR_dequantize_linear);
    case_out(bias, F32, DIMS(2));
    case_in(bias, I32, DIMS(2), VALUES(-2147483648., 3));
    case_in(bias, F32, SCALAR, VALUES(0.25));
    case_gives(bias, VALUES(-536870912, 0.75), 0);
}

/* --- dynamic_quantize_linear, rescale_quantized --- */

static RefCase *
dynamic(int64_t n, const double *x)
{
    RefCase *c = case_new(KILN_INSTR_dynamic_quantize_linear);
    case_out(c, U8, DIMS(n));
    case_out(c, F32, SCALAR);
    case_out(c, U8, SCALAR);
    case_in(c, F32, DIMS(n), x);
    return c;
}

Test(ref_quant, dynamic_quantize_linear)
{
    g_autoptr(RefCase) c = dynamic(6, VALUES(0, 2, -3, -2.5, 1.34, 0.5));
    case_gives(c, VALUES(153, 255, 0, 26, 221, 179), 0);
    case_expect(c, 1, VALUES((double)(5.f / 255)), 0);
    case_expect(c, 2, VALUES(153), 0);
    g_autoptr(RefCase) positive = dynamic(3, VALUES(1, 2.55, 0.5));
    case_gives(positive, VALUES(100, 255, 50), 0);
    case_expect(positive, 2, VALUES(0), 0);
    g_autoptr(RefCase) zeros = dynamic(2, VALUES(0, 0));
    case_gives(zeros, VALUES(0, 0), 0);
    case_expect(zeros, 1, VALUES(1), 0);
}

Test(ref_quant, rescale_quantized)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_rescale_quantized);
    case_out(c, I8, DIMS(2, 3));
    case_in(c, U8, DIMS(2, 3), VALUES(10, 11, 13, 10, 11, 200));
    cr_expect_null(case_kernel(c));
    const KilnQuant to = { -1, 1, (float[]){ 1 }, (int32_t[]){ -5 } };
    const KilnQuant from = { 0, 2, (float[]){ 0.5, 2 }, (int32_t[]){ 10, 9 } };
    c->buffers[0].type.quant = &to;
    c->buffers[1].type.quant = &from;
    case_gives(c, VALUES(-5, -5, -3, -3, -1, 127), 0);
}

/* --- products --- */

Test(ref_quant, matmul_integer)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_matmul_integer);
    case_out(c, I32, DIMS(4, 2));
    case_in(c, U8, DIMS(4, 3), VALUES(11, 7, 3, 10, 6, 2, 9, 5, 1, 8, 4, 0));
    case_in(c, U8, DIMS(3, 2), VALUES(1, 4, 2, 5, 3, 6));
    case_in(c, U8, SCALAR, VALUES(12));
    case_in(c, U8, SCALAR, VALUES(0));
    case_gives(c, VALUES(-38, -83, -44, -98, -50, -113, -56, -128), 0);
}

Test(ref_quant, matmul_integer_by_row_and_column)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_matmul_integer);
    case_out(c, I32, DIMS(2, 2, 2));
    case_in(c, U8, DIMS(2, 2, 2), VALUES(1, 2, 3, 4, 5, 6, 7, 8));
    case_in(c, I8, DIMS(2, 2), VALUES(1, -1, 2, -2));
    case_in(c, U8, DIMS(2), VALUES(1, 3));
    case_in(c, I8, DIMS(2), VALUES(0, 1));
    case_gives(c, VALUES(2, -3, 2, -3, 14, -23, 14, -23), 0);
    g_autoptr(RefCase) batch = case_new(KILN_INSTR_matmul_integer);
    case_out(batch, I32, DIMS(2, 1, 1));
    case_in(batch, U8, DIMS(2, 1, 2), VALUES(1, 2, 3, 4));
    case_in(batch, U8, DIMS(2, 1), VALUES(10, 20));
    case_in(batch, U8, DIMS(2, 1, 1), VALUES(1, 2));
    case_gives(batch, VALUES(20, 50), 0);
}

Test(ref_quant, matmul_integer_of_vectors)
{
    g_autoptr(RefCase) both = case_new(KILN_INSTR_matmul_integer);
    case_out(both, I32, SCALAR);
    case_in(both, I8, DIMS(3), VALUES(1, 2, -3));
    case_in(both, I8, DIMS(3), VALUES(4, 5, 6));
    case_gives(both, VALUES(-4), 0);
    g_autoptr(RefCase) row = case_new(KILN_INSTR_matmul_integer);
    case_out(row, I32, DIMS(2, 2));
    case_in(row, U8, DIMS(2), VALUES(1, 2));
    case_in(row, U8, DIMS(2, 2, 2), VALUES(1, 2, 3, 4, 5, 6, 7, 8));
    case_gives(row, VALUES(7, 10, 19, 22), 0);
    g_autoptr(RefCase) column = case_new(KILN_INSTR_matmul_integer);
    case_out(column, I32, DIMS(2));
    case_in(column, U8, DIMS(2, 2), VALUES(1, 2, 3, 4));
    case_in(column, U8, DIMS(2), VALUES(5, 6));
    case_gives(column, VALUES(17, 39), 0);
}

/* Columns: 1 2 | 3, with the numbers 9 10 | 11 less 8; and 1 - 15, 2 - 15 | (3 - 1) × 2. */
Test(ref_quant, matmul_nbits)
{
    g_autoptr(RefCase) middle = case_new(KILN_INSTR_matmul_nbits);
    *CASE_ATTRS(middle, matmul_nbits) = (KilnInstrAttrs_matmul_nbits){
        .K = 3, .N = 1, .bits = 4, .block_size = 2, .activation = "none"
    };
    case_out(middle, F32, DIMS(2, 1));
    case_in(middle, F32, DIMS(2, 3), VALUES(1, 1, 1, 100, 10, 1));
    case_in(middle, U8, DIMS(1, 2, 1), VALUES(0xa9, 0x7b));
    case_in(middle, F32, DIMS(1, 2), VALUES(1, 1));
    case_gives(middle, VALUES(6, 123), 0);
    g_autoptr(RefCase) zeros = case_new(KILN_INSTR_matmul_nbits);
    *CASE_ATTRS(zeros, matmul_nbits) = *CASE_ATTRS(middle, matmul_nbits);
    case_out(zeros, F32, DIMS(1, 1));
    case_in(zeros, F32, DIMS(1, 3), VALUES(1, 1, 1));
    case_in(zeros, U8, DIMS(1, 2, 1), VALUES(0x21, 0xf3));
    case_in(zeros, F32, DIMS(1, 2), VALUES(1, 2));
    case_in(zeros, U8, DIMS(1, 1), VALUES(0x1f));
    case_in(zeros, F32, DIMS(1), VALUES(0.5));
    case_gives(zeros, VALUES(-14 - 13 + 4 + 0.5), 0);
}

static RefCase *
qlinear_matmul(int64_t columns, const double *b_scale, const double *b_zero)
{
    RefCase *c = case_new(KILN_INSTR_qlinear_matmul);
    case_out(c, U8, DIMS(1, 2));
    case_in(c, U8, DIMS(1, 2), VALUES(12, 20));
    case_in(c, F32, SCALAR, VALUES(0.5));
    case_in(c, U8, SCALAR, VALUES(10));
    case_in(c, I8, DIMS(2, 2), VALUES(3, -1, 2, 4));
    case_in(c, F32, DIMS(columns), b_scale);
    case_in(c, I8, DIMS(columns), b_zero);
    case_in(c, F32, SCALAR, VALUES(2));
    case_in(c, U8, SCALAR, VALUES(100));
    return c;
}

Test(ref_quant, qlinear_matmul)
{
    /* Sums: 2*3+10*2 = 26, 2*-1+10*4 = 38; less 12 per unit of the zero point. */
    g_autoptr(RefCase) one = qlinear_matmul(1, VALUES(1), VALUES(1));
    case_gives(one, VALUES(104, 106), 0); /* 14/4 = 3.5 and 26/4 = 6.5, both to even */
    g_autoptr(RefCase) two = qlinear_matmul(2, VALUES(1, 20), VALUES(0, 1));
    case_gives(two, VALUES(106, 230), 0);
    g_autoptr(RefCase) far = qlinear_matmul(1, VALUES(1000), VALUES(0));
    case_gives(far, VALUES(255, 255), 0);
}

Test(ref_quant, conv_integer)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_conv_integer);
    CASE_ATTRS(c, conv_integer)->dilations = CASE_INTS(c, 1, 1);
    CASE_ATTRS(c, conv_integer)->pads = CASE_INTS(c, 1, 1, 1, 1);
    CASE_ATTRS(c, conv_integer)->strides = CASE_INTS(c, 1, 1);
    case_out(c, I32, DIMS(1, 1, 4, 4));
    case_in(c, U8, DIMS(1, 1, 3, 3), VALUES(2, 3, 4, 5, 6, 7, 8, 9, 10));
    case_in(c, U8, DIMS(1, 1, 2, 2), VALUES(1, 1, 1, 1));
    case_in(c, U8, SCALAR, VALUES(1));
    case_gives(c, VALUES(1, 3, 5, 3, 5, 12, 16, 9, 11, 24, 28, 15, 7, 15, 17, 9), 0);
}

/* Two groups, a stride, a dilation, uneven pads, zero points and scales per channel, a bias. */
Test(ref_quant, qlinear_conv)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_qlinear_conv);
    CASE_ATTRS(c, qlinear_conv)->dilations = CASE_INTS(c, 2);
    CASE_ATTRS(c, qlinear_conv)->pads = CASE_INTS(c, 1, 0);
    CASE_ATTRS(c, qlinear_conv)->strides = CASE_INTS(c, 2);
    CASE_ATTRS(c, qlinear_conv)->group = 2;
    case_out(c, I8, DIMS(1, 2, 2));
    case_in(c, U8, DIMS(1, 2, 4), VALUES(6, 7, 8, 9, 1, 2, 3, 4));
    case_in(c, F32, SCALAR, VALUES(0.5));
    case_in(c, U8, SCALAR, VALUES(5));
    case_in(c, I8, DIMS(2, 1, 2), VALUES(3, 2, -1, 4));
    case_in(c, F32, DIMS(2), VALUES(2, 4));
    case_in(c, I8, DIMS(2), VALUES(0, 1));
    case_in(c, F32, SCALAR, VALUES(1));
    case_in(c, I8, SCALAR, VALUES(3));
    case_in(c, I32, DIMS(2), VALUES(10, -50));
    /* Channel 0: 2*2 = 4, 3*2+2*4 = 14, and 10: as they are. Channel 1: 3*-3 = -9,
     * -2*-3 + 3*-1 = 3, less 50: times 2. */
    case_gives(c, VALUES(17, 27, -115, -91), 0);
}

/* --- random numbers --- */

Test(ref_quant, random_numbers_depend_on_seed_and_place_alone)
{
    g_autoptr(RefCase) n = case_new(KILN_INSTR_random_normal);
    CASE_ATTRS(n, random_normal)->mean = 3;
    CASE_ATTRS(n, random_normal)->scale = 2;
    CASE_ATTRS(n, random_normal)->seed = 7;
    case_out(n, F32, DIMS(2, 2));
    double normal[4];
    for (uint64_t i = 0; i < 4; i++)
        normal[i] = (double)(float)(3 + 2 * kiln_random_normal(7, i));
    case_gives(n, normal, 0);
    g_autoptr(RefCase) u = case_new(KILN_INSTR_random_uniform);
    CASE_ATTRS(u, random_uniform)->low = -1;
    CASE_ATTRS(u, random_uniform)->high = 3;
    CASE_ATTRS(u, random_uniform)->seed = 9;
    case_out(u, KILN_DTYPE_f64, DIMS(3));
    double uniform[3];
    for (uint64_t i = 0; i < 3; i++)
        uniform[i] = -1 + 4 * kiln_random_unit(9, i);
    case_gives(u, uniform, 0);
}

/* bf16 has three steps in the range; a draw that rounds up to `high` is not returned. */
Test(ref_quant, random_uniform_stays_below_high)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_random_uniform);
    CASE_ATTRS(c, random_uniform)->low = 1;
    CASE_ATTRS(c, random_uniform)->high = 1 + 0x1p-7f * 2;
    case_out(c, KILN_DTYPE_bf16, DIMS(100));
    cr_assert_null(case_run(c));
    for (int i = 0; i < 100; i++) {
        float x = kiln_bf16_to_f32(((uint16_t *)c->data[0])[i]);
        cr_expect(x >= 1 && x < 1 + 0x1p-7f * 2, "%g", (double)x);
    }
}
