/* SPDX-License-Identifier: Apache-2.0 */
/* Elements of eight bits and fewer: floats with few digits, and streams of 2, 4 and 6 bits. */
#include "graph/base/number.h"
#include "graph/type.h"

#include <math.h>

/* How the codes of a type are read. A finite number is (-1)^sign × 1.mantissa × 2^(exponent -
 * bias), and exponent 0 stands for 0.mantissa × 2^(1 - bias). */
typedef struct {
    int mantissa, bias; /* bits; f8e8m0 has no entry */
    uint8_t sign;       /* its bit */
    uint8_t largest;    /* the code of the largest number */
    uint8_t over;  /* of what is larger, without saturation: infinity or NaN; 0: there is none */
    uint8_t nan;   /* the default NaN; 0: there is none */
    bool one_zero; /* the code of -0 is the only NaN */
} Format;

static const Format *
format_of(KilnDType dtype)
{
    static const Format formats[KILN_N_DTYPES] = {
        [KILN_DTYPE_f8e4m3fn] = { 3, 7, 0x80, 0x7e, 0x7f, 0x7f, false },
        [KILN_DTYPE_f8e4m3fnuz] = { 3, 8, 0x80, 0x7f, 0x80, 0x80, true },
        [KILN_DTYPE_f8e5m2] = { 2, 15, 0x80, 0x7b, 0x7c, 0x7e, false },
        [KILN_DTYPE_f8e5m2fnuz] = { 2, 16, 0x80, 0x7f, 0x80, 0x80, true },
        [KILN_DTYPE_f6e2m3] = { 3, 1, 0x20, 0x1f, 0, 0, false },
        [KILN_DTYPE_f6e3m2] = { 2, 3, 0x20, 0x1f, 0, 0, false },
        [KILN_DTYPE_f4e2m1] = { 1, 1, 0x08, 0x07, 0, 0, false },
    };
    return &formats[dtype];
}

enum {
    E8M0_BIAS = 127,
    E8M0_LARGEST = 254,
    E8M0_NAN = 255,
};

/* The magnitude that the bits below the sign say. */
static float
magnitude_of(const Format *format, unsigned code)
{
    int hidden = 1 << format->mantissa, exponent = (int)code >> format->mantissa;
    int fraction = (int)code & (hidden - 1);
    return exponent ? ldexpf((float)(hidden + fraction), exponent - format->bias - format->mantissa)
                    : ldexpf((float)fraction, 1 - format->bias - format->mantissa);
}

float
kiln_low_float_to_f32(KilnDType dtype, uint8_t code)
{
    if (dtype == KILN_DTYPE_f8e8m0)
        return code == E8M0_NAN ? NAN : ldexpf(1, code - E8M0_BIAS);
    const Format *format = format_of(dtype);
    unsigned magnitude = code & (format->sign - 1U);
    float sign = code & format->sign ? -1 : 1, value;
    if (format->one_zero && code == format->nan)
        return NAN;
    if (magnitude <= format->largest)
        value = magnitude_of(format, magnitude);
    else
        value = magnitude == format->over && format->over != format->nan ? INFINITY : NAN;
    return copysignf(value, sign);
}

/* A power of two: up, down, or the nearer one, and the upper one of two that are as near. */
static uint8_t
e8m0_from(double value, bool saturate, KilnRoundMode mode)
{
    int exponent;
    if (isnan(value) || value < 0)
        return E8M0_NAN;
    if (isinf(value))
        return saturate ? E8M0_LARGEST : E8M0_NAN;
    if (value == 0)
        return saturate ? 0 : E8M0_NAN;
    double fraction = frexp(value, &exponent); /* of [0.5, 1) */
    bool up = mode == KILN_ROUND_UP        ? fraction > 0.5
              : mode == KILN_ROUND_NEAREST ? fraction >= 0.75
                                           : false;
    int code = exponent - 1 + up + E8M0_BIAS;
    if (code >= 0 && code <= E8M0_LARGEST)
        return (uint8_t)code;
    return !saturate ? E8M0_NAN : code < 0 ? 0 : E8M0_LARGEST;
}

uint8_t
kiln_low_float_from_f64(KilnDType dtype, double value, bool saturate, KilnRoundMode mode)
{
    if (dtype == KILN_DTYPE_f8e8m0)
        return e8m0_from(value, saturate, mode);
    const Format *format = format_of(dtype);
    const uint8_t sign = signbit(value) ? format->sign : 0;
    const double magnitude = fabs(value);
    if (isnan(value))
        return format->nan ? sign | format->nan : 0;
    int exponent = 1 - format->bias;
    unsigned code = format->largest + 1U;
    if (magnitude < 2 * (double)magnitude_of(format, format->largest)) {
        if (magnitude != 0 && ilogb(magnitude) > exponent)
            exponent = ilogb(magnitude);
        /* Units in the last place of this binade; rint rounds half to even. A carry out of the
         * fraction raises the exponent. */
        unsigned units = (unsigned)rint(ldexp(magnitude, format->mantissa - exponent));
        code = ((unsigned)(exponent + format->bias - 1) << format->mantissa) + units;
    }
    if (code > format->largest)
        return saturate || !format->over ? sign | format->largest : sign | format->over;
    return code == 0 && format->one_zero ? 0 : sign | (uint8_t)code;
}

/* --- streams of bits --- */

int64_t
kiln_packed_bytes(KilnDType dtype, int64_t n)
{
    int64_t bits = kiln_dtype_bits(dtype);
    return n / 8 * bits + (n % 8 * bits + 7) / 8;
}

void
kiln_pack_elements(KilnDType dtype, void *packed, const void *elements, int64_t n)
{
    const uint8_t *from = elements;
    uint8_t *to = packed;
    const unsigned bits = kiln_dtype_bits(dtype), mask = (1U << bits) - 1;
    unsigned held = 0, n_held = 0;
    for (int64_t i = 0; i < n; i++) {
        held |= (from[i] & mask) << n_held;
        n_held += bits;
        if (n_held >= 8) {
            *to++ = (uint8_t)held;
            held >>= 8;
            n_held -= 8;
        }
    }
    if (n_held)
        *to = (uint8_t)held;
}

void
kiln_unpack_elements(KilnDType dtype, void *elements, const void *packed, int64_t first, int64_t n)
{
    const uint8_t *from = packed;
    uint8_t *to = elements;
    const unsigned bits = kiln_dtype_bits(dtype), mask = (1U << bits) - 1;
    int64_t whole = bits == 4 && first % 2 == 0 ? n / 2 : 0; /* bytes of big weights */
    for (int64_t i = 0; i < whole; i++) {
        to[2 * i] = from[first / 2 + i] & 15;
        to[2 * i + 1] = from[first / 2 + i] >> 4;
    }
    for (int64_t i = 2 * whole; i < n; i++) {
        const int64_t at = first + i, byte = at / 8 * bits + at % 8 * bits / 8;
        const unsigned skip = (unsigned)(at % 8) * bits % 8;
        unsigned word = from[byte];
        if (skip + bits > 8) /* the element goes on in the next byte */
            word |= (unsigned)from[byte + 1] << 8;
        to[i] = (uint8_t)(word >> skip & mask);
    }
}
