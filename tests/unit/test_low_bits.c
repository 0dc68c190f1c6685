/* SPDX-License-Identifier: Apache-2.0 */
/* Element types of eight bits and fewer: all codes against tables, rounding against a search in
 * them, streams of bits, casts and quantization on both targets. */
#include "graph/base/number.h"
#include "graph/tensor.h"
#include "ir/instr.h"
#include "tests/unit/cpu_case.h"
#include "tests/unit/exact_memory.h"
#include "tests/unit/low_float_tables.h"
#include "tests/unit/ref_case.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const Tolerance exact = { 0, 0 };

static float
float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

Test(low_bits, every_code)
{
    for (size_t t = 0; t < G_N_ELEMENTS(low_floats); t++) {
        const KilnDType dtype = low_floats[t].dtype;
        cr_expect_eq(low_floats[t].n, 1 << kiln_dtype_bits(dtype));
        for (int code = 0; code < 256; code++) {
            float expected = float_of(low_floats[t].numbers[code % low_floats[t].n]);
            float found = kiln_low_float_to_f32(dtype, (uint8_t)code);
            bool same = isnan(expected) ? isnan(found)
                                        : found == expected && signbit(found) == signbit(expected);
            cr_expect(same, "%s %02x: expected %a, found %a", kiln_dtype_name(dtype),
                      (unsigned)code, (double)expected, (double)found);
        }
    }
}

/* --- rounding --- */

/* The code above 0 whose number is nearest, the even one of two; the first code that is no number
 * if that is nearer. */
static int
nearest(size_t t, double magnitude)
{
    const uint32_t *numbers = low_floats[t].numbers;
    int last = 0;
    while (last + 1 < low_floats[t].n / 2 && isfinite(float_of(numbers[last + 1])))
        last++;
    for (int code = 0; code < last; code++) {
        double low = (double)float_of(numbers[code]), high = (double)float_of(numbers[code + 1]);
        double middle = low + (high - low) / 2;
        if (magnitude < middle || (magnitude == middle && code % 2 == 0))
            return code;
        if (magnitude <= high)
            return code + 1;
    }
    double largest = (double)float_of(numbers[last]);
    double step = largest - (double)float_of(numbers[last - 1]);
    bool within = last % 2 ? magnitude < largest + step / 2 : magnitude <= largest + step / 2;
    return within ? last : last + 1;
}

static void
expect_rounded(size_t t, double value)
{
    const KilnDType dtype = low_floats[t].dtype;
    const int sign = low_floats[t].n / 2, code = nearest(t, fabs(value));
    const bool over = code == sign || isnan(float_of(low_floats[t].numbers[code])) ||
                      isinf(float_of(low_floats[t].numbers[code]));
    const uint8_t bits = kiln_low_float_from_f64(dtype, value, true, KILN_ROUND_UP);
    const uint8_t open = kiln_low_float_from_f64(dtype, value, false, KILN_ROUND_UP);
    const bool one_zero = dtype == KILN_DTYPE_f8e4m3fnuz || dtype == KILN_DTYPE_f8e5m2fnuz;
    int expected = over ? code - 1 : code;
    if (value < 0 && !(one_zero && expected == 0))
        expected |= sign;
    cr_assert_eq(bits, expected, "%s of %a: expected %02x, found %02x", kiln_dtype_name(dtype),
                 value, (unsigned)expected, bits);
    if (!over || kiln_dtype_bits(dtype) < 8) {
        cr_assert_eq(open, expected, "%s of %a", kiln_dtype_name(dtype), value);
        return;
    }
    float beyond = kiln_low_float_to_f32(dtype, open);
    if (dtype == KILN_DTYPE_f8e5m2)
        cr_assert_eq((double)beyond, value < 0 ? -INFINITY : INFINITY);
    else
        cr_assert(isnan(beyond), "%s of %a", kiln_dtype_name(dtype), value);
}

Test(low_bits, numbers_round_half_to_even)
{
    for (size_t t = 0; t < G_N_ELEMENTS(low_floats); t++) {
        if (low_floats[t].dtype == KILN_DTYPE_f8e8m0)
            continue;
        for (int code = 0; code < low_floats[t].n / 2; code++) {
            double a = (double)float_of(low_floats[t].numbers[code]);
            double b = (double)float_of(low_floats[t].numbers[MAX(code - 1, 0)]);
            if (!isfinite(a))
                continue;
            double points[] = { a, (a + b) / 2, a + (a - b) / 2 };
            for (int i = 0; i < 3; i++) {
                expect_rounded(t, points[i]);
                expect_rounded(t, -nextafter(points[i], INFINITY));
                expect_rounded(t, nextafter(points[i], 0));
            }
        }
        expect_rounded(t, 1e300);
        expect_rounded(t, -INFINITY);
        expect_rounded(t, 5e-324);
    }
}

Test(low_bits, powers_of_two)
{
    static const struct {
        double value;
        uint8_t up, down, nearest; /* with saturation */
        uint8_t open;              /* nearest, without */
    } rows[] = {
        { 1, 127, 127, 127, 127 },        { 1.25, 128, 127, 127, 127 },
        { 1.5, 128, 127, 128, 128 },      { 0, 0, 0, 0, 255 },
        { 0x1p-127, 0, 0, 0, 0 },         { 0x1.8p-128, 0, 0, 0, 0 },
        { 0x1p-140, 0, 0, 0, 255 },       { 0x1.4p-127, 1, 0, 0, 0 },
        { 0x1p127, 254, 254, 254, 254 },  { 0x1.8p127, 254, 254, 254, 255 },
        { INFINITY, 254, 254, 254, 255 }, { NAN, 255, 255, 255, 255 },
        { -1, 255, 255, 255, 255 },       { 0x1p500, 254, 254, 254, 255 },
    };
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        const KilnDType dtype = KILN_DTYPE_f8e8m0;
        double x = rows[i].value;
        cr_expect_eq(kiln_low_float_from_f64(dtype, x, true, KILN_ROUND_UP), rows[i].up, "%a", x);
        cr_expect_eq(kiln_low_float_from_f64(dtype, x, true, KILN_ROUND_DOWN), rows[i].down, "%a",
                     x);
        cr_expect_eq(kiln_low_float_from_f64(dtype, x, true, KILN_ROUND_NEAREST), rows[i].nearest,
                     "%a", x);
        cr_expect_eq(kiln_low_float_from_f64(dtype, x, false, KILN_ROUND_NEAREST), rows[i].open,
                     "%a", x);
    }
}

/* --- streams of bits --- */

Test(low_bits, streams_begin_with_the_low_bits)
{
    const uint8_t four[] = { 1, 2, 15 }, two[] = { 1, 2, 3, 0, 1 }, six[] = { 1, 2, 3, 4, 63 };
    uint8_t packed[4];
    kiln_pack_elements(KILN_DTYPE_i4, packed, four, 3);
    cr_expect(packed[0] == 0x21 && packed[1] == 0x0f);
    kiln_pack_elements(KILN_DTYPE_u2, packed, two, 5);
    cr_expect(packed[0] == 0x39 && packed[1] == 0x01);
    kiln_pack_elements(KILN_DTYPE_f6e2m3, packed, six, 5);
    cr_expect(packed[0] == 0x81 && packed[1] == 0x30 && packed[2] == 0x10 && packed[3] == 0x3f);
}

Test(low_bits, streams_come_back_from_any_element)
{
    static const KilnDType dtypes[] = { KILN_DTYPE_i2, KILN_DTYPE_u4, KILN_DTYPE_f4e2m1,
                                        KILN_DTYPE_f6e3m2 };
    uint8_t elements[100], back[100];
    for (size_t t = 0; t < G_N_ELEMENTS(dtypes); t++) {
        for (int64_t n = 0; n <= 100; n++) {
            int64_t size = kiln_packed_bytes(dtypes[t], n);
            uint8_t *packed = exact_memory(size), mask = (1 << kiln_dtype_bits(dtypes[t])) - 1;
            cr_expect_eq(size, (n * kiln_dtype_bits(dtypes[t]) + 7) / 8);
            for (int64_t i = 0; i < n; i++)
                elements[i] = (uint8_t)(37 * i + 11);
            kiln_pack_elements(dtypes[t], packed, elements, n);
            int64_t first = n / 3;
            kiln_unpack_elements(dtypes[t], back, packed, first, n - first);
            for (int64_t i = first; i < n; i++)
                cr_assert_eq(back[i - first], elements[i] & mask);
            free(packed);
        }
    }
}

Test(low_bits, tensors_are_stored_packed)
{
    const int64_t n = 5;
    const KilnType type = kiln_type_make(KILN_DTYPE_i4, 1, &n);
    g_autoptr(GBytes) stored = g_bytes_new_static("\x21\x43\xff", 3);
    g_autoptr(KilnTensor) tensor = kiln_tensor_new_stored(&type, stored, NULL);
    cr_assert_not_null(tensor);
    cr_expect_eq(kiln_tensor_storage(tensor), 3);
    g_autoptr(GBytes) view = kiln_tensor_view(tensor, NULL);
    const uint8_t *elements = g_bytes_get_data(view, NULL);
    for (int i = 0; i < 5; i++)
        cr_expect_eq(kiln_element_as_i64(KILN_DTYPE_i4, elements, i),
                     ((int[]){ 1, 2, 3, 4, -1 })[i]);
    KilnTensor *computed = kiln_tensor_compact(kiln_tensor_new_copy(&type, elements, NULL));
    cr_expect_eq(kiln_tensor_storage(computed), 3);
    cr_expect(kiln_tensor_equal(tensor, computed));
    kiln_tensor_free(computed);
    uint8_t element[8];
    cr_expect_not(kiln_tensor_is_splat(tensor, 5, element));
    g_autoptr(GBytes) fives = g_bytes_new_static("\x55\x55\x05", 3);
    g_autoptr(KilnTensor) splat = kiln_tensor_new_stored(&type, fives, NULL);
    cr_expect(kiln_tensor_is_splat(splat, 5, element) && element[0] == 5);
    cr_expect_not(kiln_tensor_is_splat(splat, 4, element));
    g_autoptr(GBytes) bad = g_bytes_new_static("\x21\x43", 2);
    g_autoptr(GError) error = NULL;
    cr_expect_null(kiln_tensor_new_stored(&type, bad, &error));
    cr_expect_str_eq(error->message, "expected 3 bytes for i4[5], found 2");
}

/* --- casts --- */

static const KilnDType low_types[] = {
    KILN_DTYPE_f8e4m3fn, KILN_DTYPE_f8e4m3fnuz, KILN_DTYPE_f8e5m2, KILN_DTYPE_f8e5m2fnuz,
    KILN_DTYPE_f8e8m0,   KILN_DTYPE_f6e2m3,     KILN_DTYPE_f6e3m2, KILN_DTYPE_f4e2m1,
    KILN_DTYPE_i4,       KILN_DTYPE_u4,         KILN_DTYPE_i2,     KILN_DTYPE_u2,
};
static const KilnDType wide_types[] = { KILN_DTYPE_f32, KILN_DTYPE_f16, KILN_DTYPE_bf16 };

static void
expect_casts(KilnDType from, KilnDType to, int64_t n, const void *data, bool saturate,
             const char *round_mode)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_cast);
    CASE_ATTRS(c, cast)->saturate = saturate;
    CASE_ATTRS(c, cast)->round_mode = round_mode;
    case_out(c, to, DIMS(n));
    case_in(c, from, DIMS(n), NULL);
    memcpy(c->data[1], data, (size_t)n * kiln_dtype_size(from));
    g_autofree char *what = g_strdup_printf("%s to %s", kiln_dtype_name(from), kiln_dtype_name(to));
    cpu_agrees(c, exact, what);
    /* Both have all bits alike, zeros with signs and NaNs, too. */
    void *out[CASE_MAX_OPERANDS] = { NULL };
    cpu_run(c, &(CpuCall){ .threads = 1 }, out);
    if (kiln_dtype_size(to) == 1)
        cr_assert_eq(memcmp(out[0], c->data[0], (size_t)n), 0, "%s: other bits", what);
    cpu_free(out);
}

/* All halves, and floats on both sides of every half and between two of them. */
Test(low_bits, casts_agree_on_both_targets)
{
    enum {
        HALVES = 65536
    };
    g_autofree uint16_t *halves = g_new(uint16_t, HALVES);
    g_autofree uint32_t *floats = g_new(uint32_t, 3 * HALVES);
    for (uint32_t i = 0; i < HALVES; i++) {
        halves[i] = (uint16_t)i;
        floats[3 * i] = i << 16;
        floats[3 * i + 1] = i << 16 | 1;
        floats[3 * i + 2] = i << 16 | 0xffff;
    }
    uint8_t codes[256];
    for (int i = 0; i < 256; i++)
        codes[i] = (uint8_t)i;
    for (size_t t = 0; t < G_N_ELEMENTS(low_types); t++) {
        for (int saturate = 0; saturate < 2; saturate++) {
            expect_casts(KILN_DTYPE_f32, low_types[t], 3 * HALVES, floats, saturate, "up");
            expect_casts(KILN_DTYPE_f16, low_types[t], HALVES, halves, saturate, "nearest");
            expect_casts(KILN_DTYPE_bf16, low_types[t], HALVES, halves, saturate, "down");
        }
        for (size_t w = 0; w < G_N_ELEMENTS(wide_types); w++)
            expect_casts(low_types[t], wide_types[w], 256, codes, true, "up");
        for (size_t u = 0; u < G_N_ELEMENTS(low_types); u++)
            if (u != t)
                expect_casts(low_types[t], low_types[u], 256, codes, u % 2, "up");
    }
}

Test(low_bits, integers_of_few_bits_keep_low_bits)
{
    const double in[] = { -9, -8, 7.9, 8, 17, -1.5, 1e30, NAN };
    const double i4[] = { 7, -8, 7, -8, 1, -1, -1, 0 }, u2[] = { 3, 0, 3, 0, 1, 3, 3, 0 };
    const KilnDType to[] = { KILN_DTYPE_i4, KILN_DTYPE_u2 };
    for (int i = 0; i < 2; i++) {
        g_autoptr(RefCase) c = case_new(KILN_INSTR_cast);
        case_out(c, to[i], DIMS(8));
        case_in(c, KILN_DTYPE_f32, DIMS(8), in);
        case_gives(c, i ? u2 : i4, 0);
        cpu_agrees(c, exact, "few bits");
    }
}

/* --- quantization --- */

/* How scales lie beside [3,40,5] or [3,40]. */
typedef struct {
    int rank, axis, block, scale_rank;
    int64_t scale[3];
} Grain;

static const Grain grains[] = {
    { 3, 1, 0, 0, { 0 } },        { 3, 1, 0, 1, { 40 } },       { 3, 2, 0, 1, { 5 } },
    { 3, 1, 16, 3, { 3, 3, 5 } }, { 3, 2, 2, 3, { 3, 40, 3 } }, { 2, 1, 16, 2, { 3, 3 } },
    { 2, -1, 40, 2, { 3, 1 } },   { 3, 0, 2, 3, { 2, 40, 5 } }, { 2, 0, 1, 2, { 3, 40 } },
};

static const KilnDType stored_types[] = {
    KILN_DTYPE_i8,     KILN_DTYPE_u8,         KILN_DTYPE_i16,        KILN_DTYPE_u16,
    KILN_DTYPE_i4,     KILN_DTYPE_u4,         KILN_DTYPE_i2,         KILN_DTYPE_u2,
    KILN_DTYPE_f4e2m1, KILN_DTYPE_f6e2m3,     KILN_DTYPE_f6e3m2,     KILN_DTYPE_f8e4m3fn,
    KILN_DTYPE_f8e5m2, KILN_DTYPE_f8e4m3fnuz, KILN_DTYPE_f8e5m2fnuz,
};

static RefCase *
linear_case(KilnInstrKind kind, const Grain *grain, KilnDType to, KilnDType from, bool has_zero)
{
    const int64_t dims[] = { 3, 40, 5 };
    const bool quantizes = kind == KILN_INSTR_quantize_linear;
    RefCase *c = case_new(kind);
    if (quantizes)
        *CASE_ATTRS(c, quantize_linear) = (KilnInstrAttrs_quantize_linear){
            .axis = grain->axis, .block_size = grain->block, .saturate = grain->rank == 3
        };
    else
        *CASE_ATTRS(c, dequantize_linear) =
            (KilnInstrAttrs_dequantize_linear){ .axis = grain->axis, .block_size = grain->block };
    const KilnDType scale = quantizes ? KILN_DTYPE_f32 : to;
    case_out(c, to, grain->rank, dims);
    case_in(c, from, grain->rank, dims, NULL);
    cpu_fill(c, 1, 7);
    case_in(c, scale, grain->scale_rank, grain->scale, NULL);
    for (int64_t i = 0; i < kiln_type_elements(&c->buffers[2].type); i++)
        kiln_element_store_f64(scale, c->data[2], i, 0.0625 + 0.015625 * (double)(i % 11));
    if (!has_zero)
        return c;
    case_in(c, quantizes ? to : from, grain->scale_rank, grain->scale, NULL);
    for (int64_t i = 0; i < kiln_type_elements(&c->buffers[3].type); i++)
        kiln_element_store_f64(c->buffers[3].type.dtype, c->data[3], i, (double)(i % 4));
    return c;
}

Test(low_bits, linear_quantization_agrees_on_both_targets)
{
    for (size_t g = 0; g < G_N_ELEMENTS(grains); g++) {
        for (size_t s = 0; s < G_N_ELEMENTS(stored_types); s++) {
            for (int w = 0; w < 3; w++) {
                g_autofree char *what =
                    g_strdup_printf("grain %u, %s", (unsigned)g, kiln_dtype_name(stored_types[s]));
                g_autoptr(RefCase) q = linear_case(KILN_INSTR_quantize_linear, &grains[g],
                                                   stored_types[s], wide_types[w], s % 2);
                cpu_agrees(q, exact, what);
                g_autoptr(RefCase) d = linear_case(KILN_INSTR_dequantize_linear, &grains[g],
                                                   wide_types[w], stored_types[s], s % 3);
                cpu_agrees(d, exact, what);
            }
        }
    }
}

/* Each place of the scale is found by the definition. */
Test(low_bits, blocks_share_a_scale)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_dequantize_linear);
    *CASE_ATTRS(c, dequantize_linear) =
        (KilnInstrAttrs_dequantize_linear){ .axis = 1, .block_size = 2 };
    case_out(c, KILN_DTYPE_f32, DIMS(2, 3, 2));
    case_in(c, KILN_DTYPE_i4, DIMS(2, 3, 2), VALUES(1, 1, 1, 1, 1, 1, -8, 7, 2, 2, 2, 2));
    case_in(c, KILN_DTYPE_f32, DIMS(2, 2, 2), VALUES(1, 2, 3, 4, 5, 6, 7, 8));
    case_in(c, KILN_DTYPE_i4, DIMS(2, 2, 2), VALUES(0, 0, 0, 0, 1, 0, 0, 1));
    case_gives(c, VALUES(1, 2, 1, 2, 3, 4, -45, 42, 5, 12, 14, 8), 0);
}

/* Kernels never read beside parameters that do not fit. */
Test(low_bits, parameters_that_do_not_fit)
{
    const Grain grain = { 2, 1, 16, 2, { 3, 2 } };
    g_autoptr(RefCase) c =
        linear_case(KILN_INSTR_dequantize_linear, &grain, KILN_DTYPE_f32, KILN_DTYPE_i4, true);
    cpu_agrees(c, exact, "two blocks");
    cr_expect_str_eq(case_run(c), "the number of scales or zero points does not fit the data");
}

Test(low_bits, infinities_and_nans_are_found)
{
    g_autoptr(RefCase) inf = case_new(KILN_INSTR_is_inf);
    case_out(inf, KILN_DTYPE_bool, DIMS(3));
    case_in(inf, KILN_DTYPE_f8e5m2, DIMS(3), NULL);
    memcpy(inf->data[1], "\xfc\x7d\x3c", 3);
    case_gives(inf, VALUES(1, 0, 0), 0);
    g_autoptr(RefCase) nan = case_new(KILN_INSTR_is_nan);
    case_out(nan, KILN_DTYPE_bool, DIMS(3));
    case_in(nan, KILN_DTYPE_f8e4m3fnuz, DIMS(3), NULL);
    memcpy(nan->data[1], "\x80\x7f\xff", 3);
    case_gives(nan, VALUES(1, 0, 0), 0);
}
