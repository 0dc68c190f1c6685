/* SPDX-License-Identifier: Apache-2.0 */
/* The parser's small change: errors with their place, punctuation, names and numbers. */
#include "graph/text/parse.h"

#include "graph/base/number.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <string.h>

/* --- errors --- */

bool
kiln_parse_throw_at(KilnParser *parser, const KilnToken *token, KilnError code, const char *format,
                    ...)
{
    va_list args;
    va_start(args, format);
    g_autofree char *message = g_strdup_vprintf(format, args);
    va_end(args);
    return kiln_throw(parser->error, code, "%s:%u:%u: %s", parser->path, token->line, token->column,
                      message);
}

bool
kiln_parse_throw(KilnParser *parser, const char *expected)
{
    g_autofree char *found = kiln_token_describe(&parser->token);
    return kiln_parse_throw_at(parser, &parser->token, KILN_ERROR_PARSE, "expected %s, found %s",
                               expected, found);
}

bool
kiln_parse_prefix(KilnParser *parser, const KilnToken *token)
{
    kiln_prefix_error(parser->error, "%s:%u:%u: ", parser->path, token->line, token->column);
    return false;
}

/* --- tokens --- */

void
kiln_parse_advance(KilnParser *parser)
{
    parser->token = kiln_lexer_next(&parser->lexer);
}

bool
kiln_parse_accept(KilnParser *parser, char punct)
{
    if (!kiln_parse_at(parser, punct))
        return false;
    kiln_parse_advance(parser);
    return true;
}

bool
kiln_parse_accept_word(KilnParser *parser, const char *word)
{
    if (!kiln_token_is(&parser->token, word))
        return false;
    kiln_parse_advance(parser);
    return true;
}

bool
kiln_parse_expect(KilnParser *parser, char punct)
{
    if (kiln_parse_accept(parser, punct))
        return true;
    char expected[8];
    g_snprintf(expected, sizeof expected, punct == '>' ? "'->'" : "'%c'", punct);
    return kiln_parse_throw(parser, expected);
}

bool
kiln_parse_expect_word(KilnParser *parser, const char *word)
{
    if (kiln_parse_accept_word(parser, word))
        return true;
    g_autofree char *expected = g_strdup_printf("'%s'", word);
    return kiln_parse_throw(parser, expected);
}

const char *
kiln_parse_text(KilnParser *parser)
{
    g_string_truncate(parser->text, 0);
    kiln_token_append(&parser->token, parser->text);
    return parser->text->str;
}

const char *
kiln_parse_name(KilnParser *parser, KilnTokenKind kind, const char *expected)
{
    if (parser->token.kind != kind) {
        kiln_parse_throw(parser, expected);
        return NULL;
    }
    const char *name = kiln_arena_strdup(parser->module->arena, kiln_parse_text(parser));
    kiln_parse_advance(parser);
    return name;
}

const char *
kiln_parse_word(KilnParser *parser, const char *expected)
{
    bool string = parser->token.kind == KILN_TOKEN_STRING;
    return kiln_parse_name(parser, string ? KILN_TOKEN_STRING : KILN_TOKEN_WORD, expected);
}

bool
kiln_parse_loc(KilnParser *parser, const char **out)
{
    *out = NULL;
    if (!kiln_parse_accept_word(parser, "loc"))
        return true;
    if (!kiln_parse_expect(parser, '('))
        return false;
    *out = kiln_parse_name(parser, KILN_TOKEN_STRING, "the name of a node as a string");
    return *out && kiln_parse_expect(parser, ')');
}

/* --- numbers --- */

enum {
    NUMBER_LENGTH = 400 /* digits of the longest number that is read */
};

/* Copies the number so that it ends with a NUL; the text itself does not. */
static bool
number_text(KilnParser *parser, const char *expected, char text[NUMBER_LENGTH])
{
    const KilnToken *token = &parser->token;
    if (token->kind != KILN_TOKEN_NUMBER || token->length >= NUMBER_LENGTH)
        return kiln_parse_throw(parser, expected);
    memcpy(text, token->start, token->length);
    text[token->length] = 0;
    return true;
}

/* False where the token is no integer, or more than fits. */
static bool
integer_of(const KilnToken *token, int64_t *out)
{
    const char *at = token->start, *end = at + token->length;
    if (token->kind != KILN_TOKEN_NUMBER)
        return false;
    bool negative = *at == '-';
    for (*out = 0, at += negative; at < end; at++) {
        int digit = negative ? '0' - *at : *at - '0';
        if (!g_ascii_isdigit(*at) || __builtin_mul_overflow(*out, 10, out) ||
            __builtin_add_overflow(*out, digit, out))
            return false;
    }
    return true;
}

bool
kiln_parse_i64(KilnParser *parser, int64_t low, int64_t high, int64_t *out)
{
    if (integer_of(&parser->token, out) && *out >= low && *out <= high) {
        kiln_parse_advance(parser);
        return true;
    }
    if (low == G_MININT64 && high == G_MAXINT64)
        return kiln_parse_throw(parser, "an integer");
    g_autofree char *expected =
        g_strdup_printf("an integer from %" G_GINT64_FORMAT " to %" G_GINT64_FORMAT, low, high);
    return kiln_parse_throw(parser, expected);
}

bool
kiln_parse_u64(KilnParser *parser, uint64_t *out)
{
    static const char expected[] = "an integer from 0 to 18446744073709551615";
    char text[NUMBER_LENGTH], *end;
    if (!number_text(parser, expected, text))
        return false;
    errno = 0;
    *out = g_ascii_strtoull(text, &end, 10);
    if (*end || errno || *text == '-')
        return kiln_parse_throw(parser, expected);
    kiln_parse_advance(parser);
    return true;
}

/* `nan`, or `nan(0x…)` with all bits of the element. */
static bool
parse_nan(KilnParser *parser, KilnFloatText *out)
{
    out->value = NAN;
    if (!kiln_parse_accept(parser, '('))
        return true;
    char text[NUMBER_LENGTH], *end;
    if (!number_text(parser, "the bits of a NaN as 0x…", text))
        return false;
    errno = 0;
    out->bits = g_ascii_strtoull(text, &end, 16);
    out->has_bits = true;
    if (*end || errno || text[0] != '0' || text[1] != 'x')
        return kiln_parse_throw(parser, "the bits of a NaN as 0x…");
    kiln_parse_advance(parser);
    return kiln_parse_expect(parser, ')');
}

/* Digits, at most one point among them, and no exponent: what most numbers of a text are. An
 * integer of up to 15 digits and a power of ten up to 10^22 are doubles, so that their quotient is
 * rounded once, as strtod() rounds (Clinger, 1990). False for what is not so. */
static bool
short_decimal(const KilnToken *token, double *out)
{
    static const double powers[] = { 1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                     1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15 };
    const char *at = token->start, *end = at + token->length, *point = NULL;
    const bool negative = *at == '-';
    int64_t digits = 0;
    at += negative;
    if (FLT_EVAL_METHOD != 0 || end - at > (int)G_N_ELEMENTS(powers) || at == end)
        return false;
    for (const char *c = at; c < end; c++) {
        if (*c == '.' && !point && c > at && c + 1 < end)
            point = c;
        else if (g_ascii_isdigit(*c))
            digits = 10 * digits + (*c - '0');
        else
            return false;
    }
    const double value = (double)digits / powers[point ? end - point - 1 : 0];
    *out = negative ? -value : value;
    return point || end - at < (int)G_N_ELEMENTS(powers);
}

static bool
parse_float(KilnParser *parser, KilnFloatText *out)
{
    *out = (KilnFloatText){ .token = parser->token };
    if (kiln_parse_accept_word(parser, "nan"))
        return parse_nan(parser, out);
    if (kiln_parse_accept_word(parser, "inf")) {
        out->value = INFINITY;
        return true;
    }
    if (parser->token.kind == KILN_TOKEN_NUMBER && short_decimal(&parser->token, &out->value)) {
        kiln_parse_advance(parser);
        return true;
    }
    char text[NUMBER_LENGTH], *end;
    if (!number_text(parser, "a number", text))
        return false;
    if (strcmp(text, "-inf") == 0) {
        out->value = -INFINITY;
        kiln_parse_advance(parser);
        return true;
    }
    out->value = g_ascii_strtod(text, &end);
    if (*end || strchr(text, 'x') || isinf(out->value))
        return kiln_parse_throw(parser, "a number");
    kiln_parse_advance(parser);
    return true;
}

/* What a float of each width needs: the bits of the default NaN, and of the exponent. */
static const struct {
    uint64_t exponent, quiet, all;
} float_bits[KILN_N_DTYPES] = {
    [KILN_DTYPE_f32] = { 0x7f800000u, 0x7fc00000u, G_MAXUINT32 },
    [KILN_DTYPE_f64] = { UINT64_C(0x7ff) << 52, UINT64_C(0x7ff8) << 48, G_MAXUINT64 },
    [KILN_DTYPE_f16] = { 0x7c00, 0x7e00, G_MAXUINT16 },
    [KILN_DTYPE_bf16] = { 0x7f80, 0x7fc0, G_MAXUINT16 },
};

static bool
store_low_float(KilnParser *parser, KilnDType dtype, const KilnFloatText *number, uint8_t *element)
{
    const char *name = kiln_dtype_name(dtype);
    *element = number->has_bits && number->bits <= G_MAXUINT8
                   ? (uint8_t)number->bits
                   : kiln_low_float_from_f64(dtype, number->value, false, KILN_ROUND_UP);
    float stored = kiln_low_float_to_f32(dtype, *element);
    if (isnan(number->value))
        return (isnan(stored) && (!number->has_bits || number->bits == *element)) ||
               kiln_parse_throw_at(parser, &number->token, KILN_ERROR_PARSE,
                                   "expected the bits of a NaN of %s, found others", name);
    bool fits = isinf(number->value) ? isinf(stored)
                                     : fabs(number->value) <= kiln_float_format(dtype)->largest;
    return (fits && !isnan(stored)) ||
           kiln_parse_throw_at(parser, &number->token, KILN_ERROR_PARSE,
                               "expected a number that %s can hold, found another", name);
}

static bool
store_float(KilnParser *parser, KilnDType dtype, const KilnFloatText *number, void *element)
{
    uint64_t exponent = float_bits[dtype].exponent, all = float_bits[dtype].all;
    const char *name = kiln_dtype_name(dtype);
    if (kiln_dtype_is_low_float(dtype))
        return store_low_float(parser, dtype, number, element);
    if (isnan(number->value)) {
        uint64_t bits = number->has_bits ? number->bits : float_bits[dtype].quiet;
        uint64_t fraction = bits & ((exponent & -exponent) - 1);
        if (bits & ~all || (bits & exponent) != exponent || !fraction)
            return kiln_parse_throw_at(parser, &number->token, KILN_ERROR_PARSE,
                                       "expected the bits of a NaN of %s, found others", name);
        memcpy(element, &bits, kiln_dtype_size(dtype));
        return true;
    }
    kiln_element_store_f64(dtype, element, 0, number->value);
    if (isfinite(number->value) && isinf(kiln_element_as_f64(dtype, element, 0)))
        return kiln_parse_throw_at(parser, &number->token, KILN_ERROR_PARSE,
                                   "expected a number that %s can hold, found a bigger one", name);
    return true;
}

bool
kiln_parse_f64(KilnParser *parser, double *out)
{
    KilnFloatText number;
    return parse_float(parser, &number) && store_float(parser, KILN_DTYPE_f64, &number, out);
}

bool
kiln_parse_f32(KilnParser *parser, float *out)
{
    KilnFloatText number;
    return parse_float(parser, &number) && store_float(parser, KILN_DTYPE_f32, &number, out);
}

static bool
parse_bool(KilnParser *parser, uint8_t *out)
{
    bool on = kiln_token_is(&parser->token, "true");
    if (on || kiln_token_is(&parser->token, "false")) {
        *out = on;
        kiln_parse_advance(parser);
        return true;
    }
    if (parser->token.kind != KILN_TOKEN_NUMBER)
        return kiln_parse_throw(parser, "true or false");
    /* Models may hold other bytes than 0 and 1; they are kept. */
    int64_t byte;
    if (!kiln_parse_i64(parser, 0, G_MAXUINT8, &byte))
        return false;
    *out = (uint8_t)byte;
    return true;
}

bool
kiln_parse_element(KilnParser *parser, KilnDType dtype, void *bytes, int64_t index)
{
    size_t size = kiln_dtype_size(dtype);
    char *at = (char *)bytes + (size_t)index * size;
    if (kiln_dtype_is_float(dtype)) {
        KilnFloatText number;
        return parse_float(parser, &number) && store_float(parser, dtype, &number, at);
    }
    if (dtype == KILN_DTYPE_bool)
        return parse_bool(parser, (uint8_t *)at);
    uint64_t bits;
    if (dtype == KILN_DTYPE_u64) {
        if (!kiln_parse_u64(parser, &bits))
            return false;
    } else {
        bool is_signed = kiln_dtype_is_signed(dtype);
        int unused = 64 - (int)kiln_dtype_bits(dtype);
        int64_t high = is_signed ? G_MAXINT64 >> unused : (int64_t)(G_MAXUINT64 >> unused);
        int64_t value;
        if (!kiln_parse_i64(parser, is_signed ? -high - 1 : 0, high, &value))
            return false;
        bits = (uint64_t)value & G_MAXUINT64 >> unused;
    }
    memcpy(at, &bits, size); /* little-endian: the low bytes come first */
    return true;
}
