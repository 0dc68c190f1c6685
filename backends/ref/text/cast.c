/* SPDX-License-Identifier: Apache-2.0 */
/* cast from and to strings.
 *
 * Numbers are written as NumPy writes them: integers in decimal, bools as True and False, floats
 * with the fewest digits that read back to the same number, with an exponent from 1e16 on and below
 * 1e-4. Strings are read as numbers in plain or scientific form, with white space around them. INF
 * and NaN may have any case. An integer may have a fraction, which is cut off. */
#include "backends/ref/kernel.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

enum {
    LONGEST = 64,        /* bytes of a printed number */
    LONGEST_READ = 1024, /* bytes of a number that is read */
    MOST_DIGITS = 17
};

/* --- printing --- */

/* @value as an element of @dtype reads back. */
static double
narrowed(KilnDType dtype, double value)
{
    uint64_t element = 0;
    kiln_element_store_f64(dtype, &element, 0, value);
    return kiln_element_as_f64(dtype, &element, 0);
}

/* The fewest digits of @value, without a point, and its decimal exponent. */
static int
find_digits(KilnDType dtype, double value, char digits[MOST_DIGITS + 1], int *exponent)
{
    char text[G_ASCII_DTOSTR_BUF_SIZE];
    for (int n = 0; n < MOST_DIGITS; n++) {
        char format[8];
        g_snprintf(format, sizeof format, "%%.%de", n);
        g_ascii_formatd(text, sizeof text, format, value);
        if (narrowed(dtype, g_ascii_strtod(text, NULL)) == value)
            break;
    }
    int n = 0;
    const char *at = text;
    for (; *at != 'e'; at++) {
        if (g_ascii_isdigit(*at))
            digits[n++] = *at;
    }
    *exponent = atoi(at + 1);
    while (n > 1 && digits[n - 1] == '0')
        n--;
    digits[n] = '\0';
    return n;
}

static int
print_float(char *out, KilnDType dtype, double value)
{
    char digits[MOST_DIGITS + 1];
    int exponent;
    const char *sign = signbit(value) ? "-" : "";
    if (isnan(value))
        return g_snprintf(out, LONGEST, "nan");
    if (isinf(value))
        return g_snprintf(out, LONGEST, "%sinf", sign);
    int n = find_digits(dtype, fabs(value), digits, &exponent);
    if (value != 0 && (exponent >= 16 || exponent < -4))
        return g_snprintf(out, LONGEST, "%s%c%s%se%c%02d", sign, digits[0], n > 1 ? "." : "",
                          digits + 1, exponent < 0 ? '-' : '+', abs(exponent));
    if (exponent < 0)
        return g_snprintf(out, LONGEST, "%s0.%.*s%s", sign, -exponent - 1, "000", digits);
    if (n <= exponent + 1)
        return g_snprintf(out, LONGEST, "%s%s%.*s.0", sign, digits, exponent + 1 - n,
                          "0000000000000000");
    return g_snprintf(out, LONGEST, "%s%.*s.%s", sign, exponent + 1, digits, digits + exponent + 1);
}

static int
print_element(char *out, KilnDType dtype, const void *data, int64_t i)
{
    if (kiln_dtype_is_float(dtype))
        return print_float(out, dtype, ref_load_float(dtype, data, i));
    const int64_t value = ref_load_int(dtype, data, i);
    if (dtype == KILN_DTYPE_bool)
        return g_snprintf(out, LONGEST, value ? "True" : "False");
    return g_snprintf(out, LONGEST,
                      dtype == KILN_DTYPE_u64 ? "%" G_GUINT64_FORMAT : "%" G_GINT64_FORMAT, value);
}

const char *
kiln_ref_cast_to_string(const KilnKernelArgs *args)
{
    const KilnType *from = ref_type(args, 1);
    const KilnText **out = args->data[0];
    const int64_t n = ref_elements(from);
    for (int64_t i = 0; i < n; i++) {
        char text[LONGEST];
        int length = print_element(text, from->dtype, args->data[1], i);
        if (!kiln_text_new_copy(args->texts, text, (size_t)length, &out[i]))
            return "no memory for strings";
    }
    return NULL;
}

bool
kiln_ref_cast_to_string_supports(const KilnInstr *instr)
{
    return kiln_instr_operand(instr, 0)->type.dtype == KILN_DTYPE_string;
}

/* --- reading --- */

/* The text without white space around it, and with a zero behind it. */
static bool
trim(KilnText text, char out[LONGEST_READ])
{
    while (text.length && g_ascii_isspace(*text.text)) {
        text.text++;
        text.length--;
    }
    while (text.length && g_ascii_isspace(text.text[text.length - 1]))
        text.length--;
    if (!text.length || text.length >= LONGEST_READ || memchr(text.text, '\0', text.length))
        return false;
    memcpy(out, text.text, text.length);
    out[text.length] = '\0';
    return true;
}

/* Decimal numbers, inf and nan: not all that C takes for a number. */
static bool
read_float(const char *text, double *out)
{
    const char *plain = text + (*text == '+' || *text == '-');
    char *end;
    bool named = g_ascii_strcasecmp(plain, "inf") == 0 ||
                 g_ascii_strcasecmp(plain, "infinity") == 0 ||
                 g_ascii_strcasecmp(plain, "nan") == 0;
    if (!named && strspn(plain, "0123456789.eE+-") != strlen(plain))
        return false;
    *out = g_ascii_strtod(text, &end);
    return end != text && !*end;
}

/* False too where the number is out of the range of 64 bits. */
static bool
read_int(const char *text, bool is_signed, int64_t *out)
{
    char *end;
    double value;
    errno = 0;
    *out = is_signed || *text == '-' ? g_ascii_strtoll(text, &end, 10)
                                     : (int64_t)g_ascii_strtoull(text, &end, 10);
    if (end != text && !*end)
        return errno == 0;
    if (!read_float(text, &value) || !isfinite(value))
        return false;
    *out =
        is_signed || value < 0 ? ref_truncate_signed(value) : (int64_t)ref_truncate_unsigned(value);
    return value >= -0x1p63 && value < (is_signed ? 0x1p63 : 0x1p64);
}

/* True where element @i of @dtype holds @value: it was stored there. */
static bool
holds(KilnDType dtype, const void *data, int64_t i, int64_t value, bool negative)
{
    if (!kiln_dtype_is_signed(dtype) && negative)
        return false;
    return ref_load_int(dtype, data, i) == value;
}

static bool
read_bool(const char *text, uint8_t *out)
{
    double value = 0;
    bool is_true = g_ascii_strcasecmp(text, "true") == 0;
    bool named = is_true || g_ascii_strcasecmp(text, "false") == 0;
    bool good = named || read_float(text, &value);
    *out = is_true || value != 0;
    return good;
}

static const char *
read_element(KilnText text, KilnDType dtype, void *data, int64_t i)
{
    char plain[LONGEST_READ];
    double value;
    int64_t integer;
    if (!trim(text, plain))
        return "a string is not a number";
    if (dtype == KILN_DTYPE_bool)
        return read_bool(plain, (uint8_t *)data + i) ? NULL : "a string is neither true nor false";
    if (kiln_dtype_is_float(dtype)) {
        if (!read_float(plain, &value))
            return "a string is not a number";
        ref_store_float(dtype, data, i, value);
        return NULL;
    }
    if (!read_int(plain, kiln_dtype_is_signed(dtype), &integer))
        return "a string is not an integer of the type";
    ref_store_int(dtype, data, i, integer);
    bool negative = *plain == '-' && integer != 0;
    return holds(dtype, data, i, integer, negative) ? NULL
                                                    : "a string is not an integer of the type";
}

const char *
kiln_ref_cast_from_string(const KilnKernelArgs *args)
{
    const KilnText *const *x = args->data[1];
    const KilnType *to = ref_type(args, 0);
    const int64_t n = ref_elements(to);
    const char *message = NULL;
    for (int64_t i = 0; i < n && !message; i++) {
        if (to->dtype == KILN_DTYPE_string)
            ref_copy_element(args->data[0], i, x, i, sizeof *x);
        else
            message = read_element(kiln_text_of(x[i]), to->dtype, args->data[0], i);
    }
    return message;
}
