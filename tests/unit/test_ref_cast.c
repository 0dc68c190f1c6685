/* SPDX-License-Identifier: Apache-2.0 */
/* The reference backend's cast: every pair of element types, edges of ranges, and the 16-bit floats
 * over all of their values. */
#include "graph/base/number.h"
#include "ir/instr.h"
#include "ref_case.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

static void
expect_cast(KilnDType from, KilnDType to, int64_t n, const double *in_then_out)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_cast);
    case_out(c, to, DIMS(n));
    case_in(c, from, DIMS(n), in_then_out);
    case_gives(c, in_then_out + n, 0);
}

#define CAST(from, to, n, ...)                                                                     \
    expect_cast(KILN_DTYPE_##from, KILN_DTYPE_##to, n, VALUES(__VA_ARGS__))

Test(ref_cast, floats_to_integers_truncate_and_saturate)
{
    CAST(f32, i8, 6, 1.9, -1.9, 127.9, 300, -300, NAN, 1, -1, 127, 127, -128, 0);
    CAST(f64, u8, 5, 255.9, 256, -0.9, -5, INFINITY, 255, 255, 0, 0, 255);
    CAST(f32, i32, 4, 2147483648., -2147483648., -INFINITY, 7.5, 2147483647, -2147483648.,
         -2147483648., 7);
    CAST(f64, u32, 2, 4294967295.5, 4294967296., 4294967295., 4294967295.);
    CAST(f16, i16, 3, 65504, -65504, -3.5, 32767, -32768, -3);
    CAST(bf16, u16, 2, 70000, 3.5, 65535, 3);
    g_autoptr(RefCase) c = case_new(KILN_INSTR_cast);
    case_out(c, KILN_DTYPE_i64, DIMS(3));
    case_in(c, KILN_DTYPE_f64, DIMS(3), VALUES(0x1p63, -0x1p70, NAN));
    cr_assert_null(case_run(c));
    const int64_t *y = c->data[0];
    cr_expect(y[0] == INT64_MAX && y[1] == INT64_MIN && y[2] == 0);
    g_autoptr(RefCase) u = case_new(KILN_INSTR_cast);
    case_out(u, KILN_DTYPE_u64, DIMS(3));
    case_in(u, KILN_DTYPE_f32, DIMS(3), VALUES(0x1p64, 0x1p63, -1));
    cr_assert_null(case_run(u));
    const uint64_t *z = u->data[0];
    cr_expect(z[0] == UINT64_MAX && z[1] == UINT64_C(1) << 63 && z[2] == 0);
}

Test(ref_cast, integers_keep_their_low_bits)
{
    CAST(i16, i8, 4, 200, -200, 127, 256, -56, 56, 127, 0);
    CAST(i32, u8, 2, -1, 511, 255, 255);
    CAST(i8, u64, 1, -1, 0x1p64);
    CAST(u8, i8, 2, 200, 5, -56, 5);
    CAST(u32, i64, 1, 4294967295., 4294967295.);
    CAST(u16, i16, 1, 65535, -1);
}

Test(ref_cast, bools)
{
    CAST(f32, bool, 5, 0, -0., 0.25, -7, NAN, 0, 0, 1, 1, 1);
    CAST(f16, bool, 2, 0, 6e-8, 0, 1);
    CAST(i32, bool, 3, 0, 256, -1, 0, 1, 1);
    CAST(bool, f32, 2, 0, 1, 0, 1);
    CAST(bool, u8, 2, 0, 1, 0, 1);
    CAST(bool, bf16, 2, 0, 1, 0, 1);
}

Test(ref_cast, integers_to_floats_round_once)
{
    CAST(i32, f32, 2, 16777217, 16777219, 16777216, 16777220);
    CAST(i32, f16, 3, 2049, 65520, -65519, 2048, INFINITY, -65504);
    CAST(i32, bf16, 2, 257, 259, 256, 260);
    g_autoptr(RefCase) c = case_new(KILN_INSTR_cast);
    case_out(c, KILN_DTYPE_f32, DIMS(1));
    case_in(c, KILN_DTYPE_i64, DIMS(1), NULL);
    /* Through double this would become a tie first, and then go to even: down. */
    ((int64_t *)c->data[1])[0] = (INT64_C(1) << 60) + (INT64_C(1) << 36) + 1;
    case_gives(c, VALUES(0x1p60 + 0x1p37), 0);
}

Test(ref_cast, floats_to_floats)
{
    CAST(f64, f32, 3, 0.1, 1e300, NAN, (double)0.1f, INFINITY, NAN);
    CAST(f32, f16, 4, 65519.996, 65520, 6e-8, 1e-9, 65504, INFINITY, 0x1p-24, 0);
    CAST(f64, f16, 1, 1 + 0x1p-11 + 0x1p-40, 1 + 0x1p-10);
    CAST(f32, bf16, 3, 1 + 0x1p-8, 1 + 3 * 0x1p-8, -INFINITY, 1, 1 + 0x1p-6, -INFINITY);
    CAST(f16, bf16, 1, 2049, 2048);
    CAST(bf16, f64, 1, 3.140625, 3.140625);
}

static RefCase *
all_halves(KilnDType from, KilnDType to)
{
    RefCase *c = case_new(KILN_INSTR_cast);
    case_out(c, to, DIMS(65536));
    case_in(c, from, DIMS(65536), NULL);
    for (int i = 0; i < 65536; i++)
        ((uint16_t *)c->data[1])[i] = (uint16_t)i;
    cr_assert_null(case_run(c));
    return c;
}

static void
expect_as_widened(KilnDType from, float (*widen)(uint16_t))
{
    g_autoptr(RefCase) single = all_halves(from, KILN_DTYPE_f32);
    g_autoptr(RefCase) wide = all_halves(from, KILN_DTYPE_f64);
    g_autoptr(RefCase) same = all_halves(from, from);
    for (int i = 0; i < 65536; i++) {
        float expected = widen((uint16_t)i);
        float found = ((float *)single->data[0])[i];
        double found_wide = ((double *)wide->data[0])[i];
        if (isnan(expected))
            cr_assert(isnan(found) && isnan(found_wide), "%04x", i);
        else
            cr_assert(memcmp(&found, &expected, 4) == 0 && found_wide == (double)expected, "%04x",
                      i);
        cr_assert_eq(((uint16_t *)same->data[0])[i], i);
    }
}

/* Back to the same 16 bits: all but the quiet bit of signalling NaNs survives. */
static void
expect_round_trip(KilnDType half, uint16_t infinity, uint16_t quiet)
{
    g_autoptr(RefCase) single = all_halves(half, KILN_DTYPE_f32);
    g_autoptr(RefCase) back = case_new(KILN_INSTR_cast);
    case_out(back, half, DIMS(65536));
    case_in(back, KILN_DTYPE_f32, DIMS(65536), NULL);
    memcpy(back->data[1], single->data[0], 4 * 65536);
    cr_assert_null(case_run(back));
    for (int i = 0; i < 65536; i++) {
        int expected = (i & 0x7fff) > infinity ? i | quiet : i;
        cr_assert_eq(((uint16_t *)back->data[0])[i], expected, "%04x", i);
    }
}

Test(ref_cast, all_values_of_16_bit_floats)
{
    expect_as_widened(KILN_DTYPE_f16, kiln_f16_to_f32);
    expect_as_widened(KILN_DTYPE_bf16, kiln_bf16_to_f32);
    expect_round_trip(KILN_DTYPE_f16, 0x7c00, 0x0200);
    expect_round_trip(KILN_DTYPE_bf16, 0x7f80, 0x0040);
}

/* 0 and 1 are in every type but f8e8m0, which has no 0, and arrive as themselves in every other. */
Test(ref_cast, every_pair_of_types)
{
    for (KilnDType from = 0; from < KILN_N_DTYPES; from++) {
        for (KilnDType to = 0; to < KILN_N_DTYPES; to++) {
            const double low = from == KILN_DTYPE_f8e8m0 || to == KILN_DTYPE_f8e8m0;
            if (!kiln_dtype_is_address(from) && !kiln_dtype_is_address(to))
                expect_cast(from, to, 2, VALUES(low, 1, low, 1));
        }
    }
}

static void
expect_text(KilnDType from, double value, const char *text)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_cast);
    case_out(c, KILN_DTYPE_string, DIMS(1));
    case_in(c, from, DIMS(1), VALUES(value));
    case_gives_texts(c, 1, TEXTS(text));
}

Test(ref_cast, numbers_as_numpy_writes_them)
{
    expect_text(KILN_DTYPE_f32, 0.1f, "0.1");
    expect_text(KILN_DTYPE_f32, 1, "1.0");
    expect_text(KILN_DTYPE_f32, -0.0, "-0.0");
    expect_text(KILN_DTYPE_f32, 1e16, "1e+16");
    expect_text(KILN_DTYPE_f32, 12345678, "12345678.0");
    expect_text(KILN_DTYPE_f32, 1.5e-5f, "1.5e-05");
    expect_text(KILN_DTYPE_f32, 1e-4f, "0.0001");
    expect_text(KILN_DTYPE_f64, 0.1, "0.1");
    expect_text(KILN_DTYPE_f64, 1.0 / 3, "0.3333333333333333");
    expect_text(KILN_DTYPE_f64, 1e300, "1e+300");
    expect_text(KILN_DTYPE_f64, 123456789012345.0, "123456789012345.0");
    expect_text(KILN_DTYPE_f16, 0.1, "0.1");
    expect_text(KILN_DTYPE_f32, INFINITY, "inf");
    expect_text(KILN_DTYPE_f32, -INFINITY, "-inf");
    expect_text(KILN_DTYPE_f64, NAN, "nan");
    expect_text(KILN_DTYPE_i8, -128, "-128");
    expect_text(KILN_DTYPE_u64, 0x1p63, "9223372036854775808");
    expect_text(KILN_DTYPE_bool, 1, "True");
    expect_text(KILN_DTYPE_u4, 15, "15");
}

/* What @text becomes; @message: why it cannot. */
static void
expect_number(const char *text, KilnDType to, double value, const char *message)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_cast);
    case_out(c, to, DIMS(1));
    case_texts(c, DIMS(1), TEXTS(text));
    if (message)
        cr_expect_str_eq(case_run(c), message, "%s", text);
    else
        case_gives(c, VALUES(value), 0);
}

Test(ref_cast, strings_as_numbers)
{
    static const char number[] = "a string is not a number";
    static const char integer[] = "a string is not an integer of the type";
    expect_number("3.14", KILN_DTYPE_f32, (double)3.14f, NULL);
    expect_number(" 1E8\n", KILN_DTYPE_f64, 1e8, NULL);
    expect_number("-inf", KILN_DTYPE_f16, -INFINITY, NULL);
    expect_number("+INF", KILN_DTYPE_bf16, INFINITY, NULL);
    expect_number("NaN", KILN_DTYPE_f32, NAN, NULL);
    expect_number("100.5", KILN_DTYPE_i32, 100, NULL);
    expect_number("-128", KILN_DTYPE_i8, -128, NULL);
    expect_number("9223372036854775808", KILN_DTYPE_u64, 0x1p63, NULL);
    expect_number("TRUE", KILN_DTYPE_bool, 1, NULL);
    expect_number("0", KILN_DTYPE_bool, 0, NULL);
    expect_number("", KILN_DTYPE_f32, 0, number);
    expect_number("0x10", KILN_DTYPE_f32, 0, number);
    expect_number("1 2", KILN_DTYPE_f32, 0, number);
    expect_number("nan(1)", KILN_DTYPE_f32, 0, number);
    expect_number("300", KILN_DTYPE_u8, 0, integer);
    expect_number("-1", KILN_DTYPE_u64, 0, integer);
    expect_number("9223372036854775808", KILN_DTYPE_i64, 0, integer);
    expect_number("1e30", KILN_DTYPE_i64, 0, integer);
    expect_number("yes", KILN_DTYPE_bool, 0, "a string is neither true nor false");
}
