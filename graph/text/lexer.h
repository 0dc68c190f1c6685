/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens of the text form.
 *
 * A lexer is plain data: a copy saves a position, and assigning the copy back returns there. Its
 * text must be valid UTF-8, which the caller checks, so that tokens never split a character. */
#ifndef KILN_GRAPH_TEXT_LEXER_H
#define KILN_GRAPH_TEXT_LEXER_H

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum {
    KILN_TOKEN_END,    /* of the text */
    KILN_TOKEN_WORD,   /* [A-Za-z_][A-Za-z0-9_.]* */
    KILN_TOKEN_NUMBER, /* decimal, -inf, or 0x… */
    KILN_TOKEN_STRING, /* "…" with \" \\ \n \r \t \x01…\x7f */
    KILN_TOKEN_VALUE,  /* %name or %"…" */
    KILN_TOKEN_SYMBOL, /* @name or @"…" */
    KILN_TOKEN_PUNCT,  /* ( ) { } [ ] , : = ; ? * + - / and -> */
    KILN_TOKEN_BAD,    /* no token begins here: `wrong` says why */
} KilnTokenKind;

typedef struct {
    KilnTokenKind kind;
    char punct;        /* PUNCT: the character; '>' for -> */
    const char *start; /* into the text; sigil and quotes included */
    size_t length;
    uint32_t line, column; /* from 1; columns count characters */
    const char *wrong;     /* BAD */
} KilnToken;

typedef struct {
    const char *at, *end;
    uint32_t line, column; /* of `at` */
} KilnLexer;

void kiln_lexer_init(KilnLexer *lexer, const char *text, size_t length);
/** Returns the next token after white space and comments. At the end it always returns END. */
KilnToken kiln_lexer_next(KilnLexer *lexer);

/** Moves behind the brace that closes the outermost of @depth open braces, or with @depth 0 of the
 * next to open. Returns false and does not move if there is none or a string on the way is
 * malformed. The caller then reads token by token to find the error. Other errors on the way are
 * not noticed. */
bool kiln_lexer_skip_braces(KilnLexer *lexer, int64_t depth);

/** True for a WORD that reads @word. */
bool kiln_token_is(const KilnToken *token, const char *word);
static inline bool
kiln_token_is_punct(const KilnToken *token, char punct)
{
    return token->kind == KILN_TOKEN_PUNCT && token->punct == punct;
}
/** Returns a new string: the text of a WORD, STRING, VALUE or SYMBOL, unescaped, without sigil. */
char *kiln_token_text(const KilnToken *token);
/** Appends the same to @text. */
void kiln_token_append(const KilnToken *token, GString *text);
/** Returns a new string: the token as messages quote it, 'conv' or the end of the text. */
char *kiln_token_describe(const KilnToken *token);

#endif
