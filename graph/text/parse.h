/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of the parser, shared with ir/text: recursive descent with one token of lookahead.
 * Every function starts at the current token and stops at the token behind its text. It returns
 * false (or NULL) with the parser's error set. */
#ifndef KILN_GRAPH_TEXT_PARSE_H
#define KILN_GRAPH_TEXT_PARSE_H

#include "graph/module.h"
#include "graph/text/lexer.h"

enum {
    KILN_PARSE_MAX_DEPTH = 64, /* of nested subgraphs */
};

/** A `graph`, `func` or `fold` block, found by its braces and read once constants are known. */
typedef struct {
    KilnLexer lexer;
    KilnToken token;
} KilnBlock;

/** The function that is being read, and those around it. A subgraph has no owner until its node
 * exists. */
typedef struct KilnScope {
    KilnFunction *function;
    const struct KilnScope *outer;
} KilnScope;

typedef struct {
    KilnLexer lexer;
    KilnToken token; /* the current one */
    const char *path;
    KilnModule *module;
    GHashTable *files;   /* path → GBytes of the mapped file */
    KilnBlock fold;      /* text behind the word `fold`, */
    bool has_fold;       /* if there is such a block */
    GHashTable *lists;   /* of parse_types.c: quantizations read so far; NULL: none */
    GHashTable *lines;   /* KilnNode* → its line, for the verifier's errors */
    GPtrArray *declared; /* KilnDeclaration* with a body, and beside it the KilnBlock of each */
    GArray *bodies;
    int contents;    /* types of sequences around the type that is being read */
    bool takes_open; /* integers of attributes may be expressions */
    GString *text;   /* of the last kiln_parse_text() */
    const KilnScope *scope;
    int depth;
    GError **error;
} KilnParser;

/** A float as it was written. A NaN may state its bits. */
typedef struct {
    double value;
    bool has_bits;
    uint64_t bits;
    KilnToken token;
} KilnFloatText;

/* --- the whole text --- */

/** Starts @text with an empty module. KILN_ERROR_PARSE if it is not UTF-8. Call kiln_parser_clear
 * in either case. */
bool kiln_parser_init(KilnParser *parser, const char *text, size_t length, const char *path,
                      GError **error);
void kiln_parser_clear(KilnParser *parser);
/** Reads `constants` and `declare` blocks and finds the others: arrays of KilnBlock. @funcs NULL: a
 * `func` is an error. */
bool kiln_parse_blocks(KilnParser *parser, GArray *graphs, GArray *funcs);
/** Reads `graph` blocks and verifies the module. */
bool kiln_parse_graphs(KilnParser *parser, const GArray *graphs);

/* --- errors --- */

/** Sets the error `path:line:column: expected …, found …` at the current token. */
bool kiln_parse_throw(KilnParser *parser, const char *expected);
/** Sets the error `path:line:column: …` at @token. */
bool kiln_parse_throw_at(KilnParser *parser, const KilnToken *token, KilnError code,
                         const char *format, ...) G_GNUC_PRINTF(4, 5);
/** Puts the position of @token before the error that is set. */
bool kiln_parse_prefix(KilnParser *parser, const KilnToken *token);

/* --- tokens --- */

void kiln_parse_advance(KilnParser *parser);
static inline bool
kiln_parse_at(const KilnParser *parser, char punct)
{
    return kiln_token_is_punct(&parser->token, punct);
}
bool kiln_parse_accept(KilnParser *parser, char punct);
bool kiln_parse_accept_word(KilnParser *parser, const char *word);
bool kiln_parse_expect(KilnParser *parser, char punct);
bool kiln_parse_expect_word(KilnParser *parser, const char *word);
/** The text of the current token, as kiln_token_text() gives it. Valid until the next call. */
const char *kiln_parse_text(KilnParser *parser);
/** Reads a token of @kind; its text is in the module's arena. NULL: an error with @expected. */
const char *kiln_parse_name(KilnParser *parser, KilnTokenKind kind, const char *expected);
/** Reads a bare word or a string. */
const char *kiln_parse_word(KilnParser *parser, const char *expected);
bool kiln_parse_i64(KilnParser *parser, int64_t low, int64_t high, int64_t *out);
bool kiln_parse_u64(KilnParser *parser, uint64_t *out);
bool kiln_parse_f64(KilnParser *parser, double *out);
bool kiln_parse_f32(KilnParser *parser, float *out);
/** Reads one element of any type except string, and stores all its bits. */
bool kiln_parse_element(KilnParser *parser, KilnDType dtype, void *bytes, int64_t index);
/** Reads `loc("…")`. *out is NULL if there is none. */
bool kiln_parse_loc(KilnParser *parser, const char **out);

/* --- types, attributes, blocks --- */

/** Reads a type. The type borrows from the module's arena. */
bool kiln_parse_type(KilnParser *parser, KilnType *out);
/** Reads `f32` or `i8 q(0.1,3)`: an unranked type. */
bool kiln_parse_element_type(KilnParser *parser, KilnType *out);
/** Reads a dim: a number, a name, or an expression of them, in the module's table. NULL: an
 * error. */
const KilnDim *kiln_parse_dim(KilnParser *parser);
/** Reads a `dims` block behind its word. */
bool kiln_parse_dim_facts(KilnParser *parser);
/** Reads types with commas between them, and appends them to a GArray of KilnType. */
bool kiln_parse_types(KilnParser *parser, GArray *types);
/** Reads optional `{name=value, …}` into @attrs, which holds defaults. */
bool kiln_parse_attrs(KilnParser *parser, const char *owner, const KilnAttrInfo *infos, uint32_t n,
                      void *attrs);
KilnConstant *kiln_parse_constant_name(KilnParser *parser);
/** Reads `{ … }` behind the word `metadata`. */
bool kiln_parse_metadata(KilnParser *parser);
/** Reads `{ … }` behind the word `constants`. */
bool kiln_parse_constants(KilnParser *parser);
/** Reads `(…) {…}` as a subgraph called @name. `(…)` is absent without arguments. */
KilnFunction *kiln_parse_subgraph(KilnParser *parser, const char *name);
/** Reads `@name(…) {…}` behind the word `graph`. */
bool kiln_parse_graph(KilnParser *parser);
/** Reads `(%a: f32[4], …)`: arguments of the current function. */
bool kiln_parse_arguments(KilnParser *parser);
/** Reads an optional `fold` block, `(…) {…}` behind the word, once all functions are read. @entry
 * names the @n arguments of the last function. */
bool kiln_parse_folding(KilnParser *parser, const char *const *entry, uint32_t n);

#endif
