/* SPDX-License-Identifier: Apache-2.0 */
/* The parser's inside, which ir/text shares. Recursive descent with one token of lookahead: every
 * function reads from the current token on and leaves the one behind what it read current. They
 * return false (or NULL) with the parser's error set. */
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

/** The function that is being read, and those around it: a subgraph has no owner until its node is
 * built. */
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
    KilnBlock fold;      /* what stands behind the word `fold`, */
    bool has_fold;       /* where there is such a block */
    GHashTable *lists;   /* of parse_types.c: quantizations that were read; NULL: none */
    GHashTable *lines;   /* KilnNode* → its line, for the verifier's errors */
    GPtrArray *declared; /* KilnDeclaration* with a body, and beside it the KilnBlock of each */
    GArray *bodies;
    GString *text; /* of the token that kiln_parse_text() was asked for last */
    const KilnScope *scope;
    int depth;
    GError **error;
} KilnParser;

/** A float as it was written: a NaN may state its bits. */
typedef struct {
    double value;
    bool has_bits;
    uint64_t bits;
    KilnToken token;
} KilnFloatText;

/* --- the whole text --- */

/** Starts at the beginning of @text, with an empty module; KILN_ERROR_PARSE where it is no UTF-8.
 * kiln_parser_clear in either case. */
bool kiln_parser_init(KilnParser *parser, const char *text, size_t length, const char *path,
                      GError **error);
void kiln_parser_clear(KilnParser *parser);
/** Reads `constants` and `declare` blocks and finds the others: arrays of KilnBlock. @funcs NULL:
 * they are errors. */
bool kiln_parse_blocks(KilnParser *parser, GArray *graphs, GArray *funcs);
/** Reads `graph` blocks and verifies the module. */
bool kiln_parse_graphs(KilnParser *parser, const GArray *graphs);

/* --- errors --- */

/** `path:line:column: expected …, found …` at the current token. */
bool kiln_parse_throw(KilnParser *parser, const char *expected);
/** `path:line:column: …` at @token. */
bool kiln_parse_throw_at(KilnParser *parser, const KilnToken *token, KilnError code,
                         const char *format, ...) G_GNUC_PRINTF(4, 5);
/** Puts the place of @token before an error that is set already. */
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
/** The text of the current token, as kiln_token_text() has it, until the next call. */
const char *kiln_parse_text(KilnParser *parser);
/** The text of a token of @kind, in the module's arena; NULL says that @expected was. */
const char *kiln_parse_name(KilnParser *parser, KilnTokenKind kind, const char *expected);
/** A bare word or a string. */
const char *kiln_parse_word(KilnParser *parser, const char *expected);
bool kiln_parse_i64(KilnParser *parser, int64_t low, int64_t high, int64_t *out);
bool kiln_parse_u64(KilnParser *parser, uint64_t *out);
bool kiln_parse_float(KilnParser *parser, KilnFloatText *out);
bool kiln_parse_f64(KilnParser *parser, double *out);
bool kiln_parse_f32(KilnParser *parser, float *out);
/** One element of any type but string, stored with all its bits. */
bool kiln_parse_element(KilnParser *parser, KilnDType dtype, void *bytes, int64_t index);
/** `loc("…")` if it is there; else NULL in @out. */
bool kiln_parse_loc(KilnParser *parser, const char **out);

/* --- types, attributes, blocks --- */

/** What the type borrows lies in the module's arena. */
bool kiln_parse_type(KilnParser *parser, KilnType *out);
/** `f32` or `i8 q(0.1,3)`: an unranked type. */
bool kiln_parse_element_type(KilnParser *parser, KilnType *out);
/** Types with commas between them, appended to a GArray of KilnType. */
bool kiln_parse_types(KilnParser *parser, GArray *types);
/** `{name=value, …}` into @attrs, which holds defaults; nothing is fine too. */
bool kiln_parse_attrs(KilnParser *parser, const char *owner, const KilnAttrInfo *infos, uint32_t n,
                      void *attrs);
KilnConstant *kiln_parse_constant_name(KilnParser *parser);
/** `{ … }` behind the word `metadata`. */
bool kiln_parse_metadata(KilnParser *parser);
/** `constants { … }` behind the word. */
bool kiln_parse_constants(KilnParser *parser);
/** `(…) {…}`, the arguments only where there are some: a subgraph called @name. */
KilnFunction *kiln_parse_subgraph(KilnParser *parser, const char *name);
/** `@name(…) {…}` behind the word `graph`. */
bool kiln_parse_graph(KilnParser *parser);
/** `(%a: f32[4], …)`: arguments of the function that is being read. */
bool kiln_parse_arguments(KilnParser *parser);
/** `(…) {…}` behind the word `fold`, if it is there, once all functions were read: @entry names
 * the @n arguments of the last. */
bool kiln_parse_folding(KilnParser *parser, const char *const *entry, uint32_t n);

#endif
