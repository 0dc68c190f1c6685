/* SPDX-License-Identifier: Apache-2.0 */
/* Shortest round-trip printing, half-precision conversions, and access to one element of any type.
 */
#include "graph/base/number.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* The default quiet NaNs, whose bits need not be spelled out. */
#define NAN_BITS_F32 0x7fc00000u
#define NAN_BITS_F64 UINT64_C(0x7ff8000000000000)

static void
print_decimal(GString *out, double value, int first_digits, int last_digits, bool single)
{
    char text[G_ASCII_DTOSTR_BUF_SIZE];
    for (int digits = first_digits; digits <= last_digits; digits++) {
        char format[8];
        g_snprintf(format, sizeof format, "%%.%dg", digits);
        g_ascii_formatd(text, sizeof text, format, value);
        double back = g_ascii_strtod(text, NULL);
        back = single ? (float)back : back; /* as the parser narrows, whatever the locale */
        if (back == value)
            break;
    }
    g_string_append(out, text);
}

void
kiln_print_f32(GString *out, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (isnan(value) && bits != NAN_BITS_F32)
        g_string_append_printf(out, "nan(0x%08x)", bits);
    else if (!isfinite(value))
        g_string_append(out, isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
    else
        print_decimal(out, value, 6, 9, true);
}

void
kiln_print_f64(GString *out, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (isnan(value) && bits != NAN_BITS_F64)
        g_string_append_printf(out, "nan(0x%016" G_GINT64_MODIFIER "x)", bits);
    else if (!isfinite(value))
        g_string_append(out, isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
    else
        print_decimal(out, value, 15, 17, false);
}

float
kiln_f16_to_f32(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
    uint32_t exponent = (half >> 10) & 0x1fu;
    uint32_t fraction = half & 0x3ffu;
    uint32_t bits;
    if (exponent == 0x1f) {
        bits = sign | 0x7f800000u | fraction << 13;
    } else if (exponent) {
        bits = sign | (exponent + 112) << 23 | fraction << 13;
    } else {
        float subnormal = (float)fraction * 0x1p-24f;
        memcpy(&bits, &subnormal, sizeof bits);
        bits |= sign;
    }
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Rounds in one step from the wider type: f64 → f32 → f16 would round twice. */
uint16_t
kiln_f64_to_f16(double value)
{
    uint16_t sign = signbit(value) ? 0x8000 : 0;
    double magnitude = fabs(value);
    if (isnan(value))
        return sign | 0x7e00;
    if (magnitude >= 65520.0)
        return sign | 0x7c00;
    int exponent;
    frexp(magnitude, &exponent);
    exponent = MAX(exponent - 1, -14);
    /* The unit in the last place of this binade; rint rounds half to even. */
    double units = rint(ldexp(magnitude, 10 - exponent));
    /* Adding, not or-ing, lets a carry out of the fraction raise the exponent. */
    uint32_t biased = magnitude < 0x1p-14 ? 0 : (uint32_t)(exponent + 15);
    uint32_t bits = biased ? (biased << 10) + (uint32_t)(units - 1024.0) : (uint32_t)units;
    return sign | (uint16_t)bits;
}

uint16_t
kiln_f32_to_f16(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (isnan(value)) /* keep what fits of the payload, and stay a NaN */
        return (uint16_t)(bits >> 16 & 0x8000u) | 0x7e00 | (uint16_t)(bits >> 13 & 0x1ffu);
    return kiln_f64_to_f16(value);
}

float
kiln_bf16_to_f32(uint16_t half)
{
    uint32_t bits = (uint32_t)half << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

uint16_t
kiln_f32_to_bf16(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (isnan(value))
        return (uint16_t)(bits >> 16) | 0x40;
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

#define LOAD(T)                                                                                    \
    T value;                                                                                       \
    memcpy(&value, (const char *)bytes + (size_t)index * sizeof value, sizeof value)

const KilnFloatFormat *
kiln_float_format(KilnDType dtype)
{
    static const KilnFloatFormat formats[KILN_N_DTYPES] = {
        [KILN_DTYPE_f64] = { DBL_MANT_DIG, DBL_EPSILON, DBL_MAX, DBL_MIN },
        [KILN_DTYPE_f32] = { FLT_MANT_DIG, FLT_EPSILON, FLT_MAX, FLT_MIN },
        [KILN_DTYPE_f16] = { 11, 0x1p-10, 65504, 0x1p-14 },
        [KILN_DTYPE_bf16] = { 8, 0x1p-7, 0x1.fep127, FLT_MIN },
        [KILN_DTYPE_f8e4m3fn] = { 4, 0x1p-3, 448, 0x1p-6 },
        [KILN_DTYPE_f8e4m3fnuz] = { 4, 0x1p-3, 240, 0x1p-7 },
        [KILN_DTYPE_f8e5m2] = { 3, 0x1p-2, 57344, 0x1p-14 },
        [KILN_DTYPE_f8e5m2fnuz] = { 3, 0x1p-2, 57344, 0x1p-15 },
        [KILN_DTYPE_f8e8m0] = { 1, 1, 0x1p127, 0x1p-127 },
        [KILN_DTYPE_f6e2m3] = { 4, 0x1p-3, 7.5, 1 },
        [KILN_DTYPE_f6e3m2] = { 3, 0x1p-2, 28, 0x1p-2 },
        [KILN_DTYPE_f4e2m1] = { 2, 0x1p-1, 6, 1 },
    };
    return &formats[dtype];
}

/* The labels of the floats of 8 bits and fewer. */
#define LOW_FLOATS                                                                                 \
    case KILN_DTYPE_f8e4m3fn:                                                                      \
    case KILN_DTYPE_f8e4m3fnuz:                                                                    \
    case KILN_DTYPE_f8e5m2:                                                                        \
    case KILN_DTYPE_f8e5m2fnuz:                                                                    \
    case KILN_DTYPE_f8e8m0:                                                                        \
    case KILN_DTYPE_f6e2m3:                                                                        \
    case KILN_DTYPE_f6e3m2:                                                                        \
    case KILN_DTYPE_f4e2m1:

double
kiln_element_as_f64(KilnDType dtype, const void *bytes, int64_t index)
{
    switch (dtype) {
    case KILN_DTYPE_f32: {
        LOAD(float);
        return value;
    }
    case KILN_DTYPE_f64: {
        LOAD(double);
        return value;
    }
    case KILN_DTYPE_f16: {
        LOAD(uint16_t);
        return kiln_f16_to_f32(value);
    }
    case KILN_DTYPE_bf16: {
        LOAD(uint16_t);
        return kiln_bf16_to_f32(value);
    }
    case KILN_DTYPE_u64: {
        LOAD(uint64_t);
        return (double)value;
    }
        LOW_FLOATS
        return kiln_low_float_to_f32(dtype, ((const uint8_t *)bytes)[index]);
    default:
        return (double)kiln_element_as_i64(dtype, bytes, index);
    }
}

static int64_t
truncate_to_i64(double value)
{
    if (isnan(value))
        return 0;
    if (value >= 0x1p63)
        return INT64_MAX;
    return value <= -0x1p63 ? INT64_MIN : (int64_t)value;
}

/* The low @bits of an element's byte. */
static int64_t
few_bits(const void *bytes, int64_t index, int bits, bool is_signed)
{
    int value = ((const uint8_t *)bytes)[index] & ((1 << bits) - 1), sign = 1 << (bits - 1);
    return is_signed ? (value ^ sign) - sign : value;
}

int64_t
kiln_element_as_i64(KilnDType dtype, const void *bytes, int64_t index)
{
    switch (dtype) {
    case KILN_DTYPE_i64: {
        LOAD(int64_t);
        return value;
    }
    case KILN_DTYPE_i32: {
        LOAD(int32_t);
        return value;
    }
    case KILN_DTYPE_i16: {
        LOAD(int16_t);
        return value;
    }
    case KILN_DTYPE_i8: {
        LOAD(int8_t);
        return value;
    }
    case KILN_DTYPE_u64: {
        LOAD(uint64_t);
        return (int64_t)value;
    }
    case KILN_DTYPE_u32: {
        LOAD(uint32_t);
        return value;
    }
    case KILN_DTYPE_u16: {
        LOAD(uint16_t);
        return value;
    }
    case KILN_DTYPE_u8:
    case KILN_DTYPE_bool: {
        LOAD(uint8_t);
        return value;
    }
    case KILN_DTYPE_i4:
        return few_bits(bytes, index, 4, true);
    case KILN_DTYPE_u4:
        return few_bits(bytes, index, 4, false);
    case KILN_DTYPE_i2:
        return few_bits(bytes, index, 2, true);
    case KILN_DTYPE_u2:
        return few_bits(bytes, index, 2, false);
    case KILN_DTYPE_string:
    case KILN_DTYPE_sequence:
    case KILN_DTYPE_optional:
    case KILN_DTYPE_map:
    case KILN_N_DTYPES:
        return 0;
    default:
        return truncate_to_i64(kiln_element_as_f64(dtype, bytes, index));
    }
}

#define STORE(T, expression)                                                                       \
    do {                                                                                           \
        T stored = (T)(expression);                                                                \
        memcpy((char *)bytes + (size_t)index * sizeof stored, &stored, sizeof stored);             \
    } while (0)

/* The upper bounds are exact in a double for all but the 64-bit types, which are tested apart. */
static double
saturate(double value, double low, double high)
{
    return isnan(value) ? 0 : CLAMP(value, low, high);
}

void
kiln_element_store_f64(KilnDType dtype, void *bytes, int64_t index, double value)
{
    switch (dtype) {
    case KILN_DTYPE_f32:
        STORE(float, value);
        break;
    case KILN_DTYPE_f64:
        STORE(double, value);
        break;
    case KILN_DTYPE_f16:
        STORE(uint16_t, kiln_f64_to_f16(value));
        break;
    case KILN_DTYPE_bf16:
        STORE(uint16_t, kiln_f32_to_bf16((float)value));
        break;
    case KILN_DTYPE_i8:
        STORE(int8_t, saturate(value, INT8_MIN, INT8_MAX));
        break;
    case KILN_DTYPE_i16:
        STORE(int16_t, saturate(value, INT16_MIN, INT16_MAX));
        break;
    case KILN_DTYPE_i32:
        STORE(int32_t, saturate(value, INT32_MIN, INT32_MAX));
        break;
    case KILN_DTYPE_i64:
        STORE(int64_t, truncate_to_i64(value));
        break;
    case KILN_DTYPE_u8:
        STORE(uint8_t, saturate(value, 0, UINT8_MAX));
        break;
    case KILN_DTYPE_u16:
        STORE(uint16_t, saturate(value, 0, UINT16_MAX));
        break;
    case KILN_DTYPE_u32:
        STORE(uint32_t, saturate(value, 0, UINT32_MAX));
        break;
    case KILN_DTYPE_u64:
        STORE(uint64_t, isnan(value) || value <= 0 ? 0
                        : value >= 0x1p64          ? UINT64_MAX
                                                   : (uint64_t)value);
        break;
    case KILN_DTYPE_bool:
        STORE(uint8_t, value != 0);
        break;
    case KILN_DTYPE_i4:
        STORE(uint8_t, (int)saturate(value, -8, 7) & 15);
        break;
    case KILN_DTYPE_u4:
        STORE(uint8_t, saturate(value, 0, 15));
        break;
    case KILN_DTYPE_i2:
        STORE(uint8_t, (int)saturate(value, -2, 1) & 3);
        break;
    case KILN_DTYPE_u2:
        STORE(uint8_t, saturate(value, 0, 3));
        break;
        LOW_FLOATS
        STORE(uint8_t, kiln_low_float_from_f64(dtype, value, true, KILN_ROUND_UP));
        break;
    case KILN_DTYPE_string:
    case KILN_DTYPE_sequence:
    case KILN_DTYPE_optional:
    case KILN_DTYPE_map:
    case KILN_N_DTYPES:
        break;
    }
}
