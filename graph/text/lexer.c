/* SPDX-License-Identifier: Apache-2.0 */
/* The lexer of both levels. Every step is linear: a position only ever moves forward, and columns
 * are counted along. */
#include "graph/text/lexer.h"

#include "graph/base/names.h"

#include <string.h>

void
kiln_lexer_init(KilnLexer *lexer, const char *text, size_t length)
{
    *lexer = (KilnLexer){ .at = text, .end = text + length, .line = 1, .column = 1 };
}

/* Moves to @to, which is on the same line. */
static void
advance_to(KilnLexer *lexer, const char *to)
{
    for (; lexer->at < to; lexer->at++) {
        /* Continuation bytes of UTF-8 begin no character. */
        if (((unsigned char)*lexer->at & 0xc0) != 0x80)
            lexer->column++;
    }
}

static const char *
comment_end(const char *at, const char *end)
{
    const char *newline = memchr(at, '\n', (size_t)(end - at));
    return newline ? newline : end;
}

static void
skip_blanks(KilnLexer *lexer)
{
    while (lexer->at < lexer->end) {
        char c = *lexer->at;
        if (c == '\n') {
            lexer->at++;
            lexer->line++;
            lexer->column = 1;
        } else if (c == ' ' || c == '\t' || c == '\r') {
            lexer->at++;
            lexer->column++;
        } else if (c == '#') {
            lexer->at = comment_end(lexer->at, lexer->end);
        } else {
            return;
        }
    }
}

static const char *
digits_end(const char *at, const char *end)
{
    while (at < end && g_ascii_isdigit(*at))
        at++;
    return at;
}

/* The end of the string whose opening quote is at @at; NULL and @wrong where it is malformed. */
static const char *
string_end(const char *at, const char *end, const char **wrong)
{
    for (at++; at < end && *at != '\n'; at++) {
        if (*at == '"')
            return at + 1;
        if (*at != '\\')
            continue;
        at++;
        if (at < end && strchr("\"\\nrt", *at) && *at)
            continue;
        /* Only ASCII: whatever is escaped, the text that comes out is UTF-8. */
        bool hex =
            end - at > 2 && *at == 'x' && g_ascii_isxdigit(at[2]) && at[1] >= '0' && at[1] <= '7';
        if (!hex || (at[1] == '0' && at[2] == '0')) {
            *wrong = "an escape that is none of \\\" \\\\ \\n \\r \\t \\x01…\\x7f";
            return NULL;
        }
        at += 2;
    }
    *wrong = "a string without its closing quote";
    return NULL;
}

/* A number begins with a digit, or a minus before a digit or `inf`. */
static const char *
number_end(const char *at, const char *end, const char **wrong)
{
    if (*at == '-')
        at++;
    if (end - at > 2 && at[0] == '0' && at[1] == 'x') {
        at += 2;
        while (at < end && g_ascii_isxdigit(*at))
            at++;
    } else if (g_ascii_isdigit(*at)) {
        at = digits_end(at, end);
        if (end - at > 1 && *at == '.' && g_ascii_isdigit(at[1]))
            at = digits_end(at + 1, end);
        if (at < end && (*at == 'e' || *at == 'E')) {
            const char *exponent = at + 1;
            if (exponent < end && (*exponent == '-' || *exponent == '+'))
                exponent++;
            const char *after = digits_end(exponent, end);
            at = after > exponent ? after : at;
        }
    } else {
        at += strlen("inf");
    }
    if (at < end && kiln_is_name_char(*at)) {
        *wrong = "a malformed number";
        return NULL;
    }
    return at;
}

static bool
begins_number(const char *at, const char *end)
{
    if (*at == '-') {
        at++;
        bool infinite = end - at >= 3 && memcmp(at, "inf", 3) == 0 &&
                        (end - at == 3 || !kiln_is_name_char(at[3]));
        return at < end && (g_ascii_isdigit(*at) || infinite);
    }
    return g_ascii_isdigit(*at);
}

/* Finds kind and end of the token at @at; NULL for a bad one. */
static const char *
scan(const char *at, const char *end, KilnToken *token)
{
    if (*at == '%' || *at == '@') {
        token->kind = *at == '%' ? KILN_TOKEN_VALUE : KILN_TOKEN_SYMBOL;
        if (end - at > 1 && at[1] == '"')
            return string_end(at + 1, end, &token->wrong);
        const char *stop = kiln_name_end(at + 1, end);
        token->wrong = "a sigil without a name";
        return stop > at + 1 ? stop : NULL;
    }
    if (*at == '"') {
        token->kind = KILN_TOKEN_STRING;
        return string_end(at, end, &token->wrong);
    }
    if (begins_number(at, end)) {
        token->kind = KILN_TOKEN_NUMBER;
        return number_end(at, end, &token->wrong);
    }
    if (g_ascii_isalpha(*at) || *at == '_') {
        token->kind = KILN_TOKEN_WORD;
        return kiln_name_end(at, end);
    }
    token->kind = KILN_TOKEN_PUNCT;
    if (end - at > 1 && at[0] == '-' && at[1] == '>') {
        token->punct = '>';
        return at + 2;
    }
    token->punct = *at;
    token->wrong = "a character that begins no token";
    return strchr("(){}[],:=;?*+-/", *at) && *at ? at + 1 : NULL;
}

KilnToken
kiln_lexer_next(KilnLexer *lexer)
{
    skip_blanks(lexer);
    KilnToken token = { .start = lexer->at, .line = lexer->line, .column = lexer->column };
    if (lexer->at == lexer->end)
        return token;
    const char *stop = scan(lexer->at, lexer->end, &token);
    if (!stop) {
        /* A parser stops here; one that goes on must still see the text end. */
        token.kind = KILN_TOKEN_BAD;
        stop = MIN(g_utf8_next_char(lexer->at), lexer->end);
    }
    token.length = (size_t)(stop - lexer->at);
    if (stop[-1] == '"' || token.kind == KILN_TOKEN_BAD) {
        advance_to(lexer, stop);
    } else { /* ASCII */
        lexer->at = stop;
        lexer->column += (uint32_t)token.length;
    }
    return token;
}

bool
kiln_lexer_skip_braces(KilnLexer *lexer, int64_t depth)
{
    KilnLexer ahead = *lexer; /* its position: the start of the line, if that is another */
    const char *wrong;
    for (const char *at = lexer->at; at && at < lexer->end;) {
        switch (*at) {
        case '"':
            at = string_end(at, lexer->end, &wrong);
            continue;
        case '#':
            at = comment_end(at, lexer->end);
            continue;
        case '\n':
            ahead.at = at + 1;
            ahead.line++;
            ahead.column = 1;
            break;
        case '{':
            depth++;
            break;
        case '}':
            if (--depth < 0)
                return false;
            if (depth > 0)
                break;
            advance_to(&ahead, at + 1);
            *lexer = ahead;
            return true;
        }
        at++;
    }
    return false;
}

bool
kiln_token_is(const KilnToken *token, const char *word)
{
    return token->kind == KILN_TOKEN_WORD && token->length == strlen(word) &&
           memcmp(token->start, word, token->length) == 0;
}

static char
unescape(const char **at)
{
    char c = *(*at)++;
    switch (c) {
    case 'n':
        return '\n';
    case 'r':
        return '\r';
    case 't':
        return '\t';
    case 'x':
        c = (char)(g_ascii_xdigit_value((*at)[0]) << 4 | g_ascii_xdigit_value((*at)[1]));
        *at += 2;
        return c;
    default:
        return c;
    }
}

void
kiln_token_append(const KilnToken *token, GString *text)
{
    const char *at = token->start, *end = at + token->length;
    if (token->kind == KILN_TOKEN_VALUE || token->kind == KILN_TOKEN_SYMBOL)
        at++;
    if (at < end && *at == '"') {
        at++;
        end--;
    }
    if (!memchr(token->start, '\\', token->length)) { /* escapes are in strings only */
        g_string_append_len(text, at, end - at);
        return;
    }
    while (at < end) {
        char c = *at++;
        g_string_append_c(text, c == '\\' ? unescape(&at) : c);
    }
}

char *
kiln_token_text(const KilnToken *token)
{
    GString *text = g_string_sized_new(token->length);
    kiln_token_append(token, text);
    return g_string_free(text, FALSE);
}

char *
kiln_token_describe(const KilnToken *token)
{
    if (token->kind == KILN_TOKEN_END)
        return g_strdup("the end of the text");
    if (token->kind == KILN_TOKEN_BAD)
        return g_strdup(token->wrong);
    enum {
        LONGEST = 40
    };
    if (token->length <= LONGEST)
        return g_strdup_printf("'%.*s'", (int)token->length, token->start);
    const char *cut = g_utf8_find_prev_char(token->start, token->start + LONGEST);
    return g_strdup_printf("'%.*s…'", (int)(cut - token->start), token->start);
}
