/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens of the text form.
 *
 * A lexer is plain data: copying it saves a position, assigning the copy returns there. It reads
 * valid UTF-8 only (whoever starts it checks), so tokens never split a character. */
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
    KILN_TOKEN_PUNCT,  /* ( ) { } [ ] , : = ; ? * and -> */
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
/** The next token, comments and white space skipped; END for ever at the end. */
KilnToken kiln_lexer_next(KilnLexer *lexer);

/** Moves behind the brace that closes the last of @depth open ones, or with @depth 0 of those that
 * open from here on. False where there is none or the text on the way is malformed: the lexer has
 * not moved, and going token by token finds what is wrong. What stands between braces and quotes
 * may be wrong without that. */
bool kiln_lexer_skip_braces(KilnLexer *lexer, int64_t depth);

/** True for a WORD that reads @word. */
bool kiln_token_is(const KilnToken *token, const char *word);
static inline bool
kiln_token_is_punct(const KilnToken *token, char punct)
{
    return token->kind == KILN_TOKEN_PUNCT && token->punct == punct;
}
/** The text that a WORD, STRING, VALUE or SYMBOL stands for: without sigil, unescaped. */
char *kiln_token_text(const KilnToken *token);
/** The same behind what @text holds. */
void kiln_token_append(const KilnToken *token, GString *text);
/** How a message quotes the token: `conv', end of text. */
char *kiln_token_describe(const KilnToken *token);

#endif
