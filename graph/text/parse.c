/* SPDX-License-Identifier: Apache-2.0 */
/* Parses whole texts in two rounds: constants and declarations first, wherever they stand, then the
 * functions, which refer to them. */
#include "graph/text/parse.h"

#include "graph/text/text.h"
#include "graph/verify/verify.h"

#include <string.h>

/* How much of @text is ASCII without NULs, in words: most of most texts. */
static size_t
ascii_length(const char *text, size_t length)
{
    const uint64_t ones = UINT64_C(0x0101010101010101), high = ones << 7;
    size_t i = 0;
    for (uint64_t word; i + sizeof word <= length; i += sizeof word) {
        memcpy(&word, text + i, sizeof word);
        if ((word | (word - ones)) & high)
            break;
    }
    return i;
}

/* Whoever lexes may rely on UTF-8 without NULs. */
static bool
check_encoding(KilnParser *parser, const char *text, size_t length)
{
    const char *wrong;
    size_t plain = ascii_length(text, length);
    if (g_utf8_validate_len(text + plain, length - plain, &wrong))
        return true;
    KilnToken at = { .line = 1, .column = 1 };
    const char *line = text;
    for (const char *newline; (newline = memchr(line, '\n', (size_t)(wrong - line)));
         line = newline + 1)
        at.line++;
    at.column += (uint32_t)g_utf8_strlen(line, wrong - line);
    return kiln_parse_throw_at(parser, &at, KILN_ERROR_PARSE,
                               "expected UTF-8 without NUL, found byte 0x%02x",
                               (unsigned char)*wrong);
}

static void
bytes_free(gpointer bytes)
{
    g_bytes_unref(bytes);
}

bool
kiln_parser_init(KilnParser *parser, const char *text, size_t length, const char *path,
                 GError **error)
{
    *parser =
        (KilnParser){ .path = path ? path : "<text>",
                      .module = kiln_module_new(),
                      .files = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, bytes_free),
                      .lines = g_hash_table_new(NULL, NULL),
                      .declared = g_ptr_array_new(),
                      .bodies = g_array_new(FALSE, FALSE, sizeof(KilnBlock)),
                      .text = g_string_new(NULL),
                      .error = error };
    parser->module->path = g_strdup(path);
    text = text ? text : ""; /* of an empty file */
    if (!check_encoding(parser, text, length))
        return false;
    kiln_lexer_init(&parser->lexer, text, length);
    kiln_parse_advance(parser);
    return true;
}

void
kiln_parser_clear(KilnParser *parser)
{
    g_clear_pointer(&parser->module, kiln_module_free);
    g_clear_pointer(&parser->files, g_hash_table_unref);
    g_clear_pointer(&parser->lists, g_hash_table_unref);
    g_clear_pointer(&parser->lines, g_hash_table_unref);
    g_clear_pointer(&parser->declared, g_ptr_array_unref);
    g_clear_pointer(&parser->bodies, g_array_unref);
    if (parser->text)
        g_string_free(g_steal_pointer(&parser->text), TRUE);
}

/* --- blocks --- */

/* Remembers the block that begins behind the word and goes on behind its closing brace. */
static bool
skip_block(KilnParser *parser, GArray *blocks)
{
    KilnBlock block = { parser->lexer, parser->token };
    KilnToken at = parser->token;
    if (!kiln_parse_at(parser, '}') &&
        kiln_lexer_skip_braces(&parser->lexer, kiln_parse_at(parser, '{'))) {
        kiln_parse_advance(parser);
        g_array_append_val(blocks, block);
        return true;
    }
    for (int64_t depth = 0;;) {
        bool open = kiln_parse_at(parser, '{'), close = kiln_parse_at(parser, '}');
        if (parser->token.kind == KILN_TOKEN_BAD)
            return kiln_parse_throw(parser, "a token");
        if (parser->token.kind == KILN_TOKEN_END || (close && !depth))
            return kiln_parse_throw_at(parser, &parser->token, KILN_ERROR_PARSE,
                                       "expected the block of line %u to be closed, found %s",
                                       at.line, close ? "'}' before '{'" : "the end of the text");
        depth += open - close;
        kiln_parse_advance(parser);
        if (close && !depth)
            break;
    }
    g_array_append_val(blocks, block);
    return true;
}

static bool
parse_type_list(KilnParser *parser, GArray *types)
{
    if (!kiln_parse_expect(parser, '('))
        return false;
    if (kiln_parse_accept(parser, ')'))
        return true;
    return kiln_parse_types(parser, types) && kiln_parse_expect(parser, ')');
}

/* `@name(types) -> types` behind `declare`, and a body, whose constants may stand further down: it
 * is read with the graphs. */
static bool
parse_declaration(KilnParser *parser)
{
    KilnModule *module = parser->module;
    KilnToken at = parser->token;
    const char *name = kiln_parse_name(parser, KILN_TOKEN_SYMBOL, "the @name of a region");
    if (!name)
        return false;
    if (kiln_module_find_declaration(module, name))
        return kiln_parse_throw_at(parser, &at, KILN_ERROR_PARSE, "@%s is declared twice", name);
    g_autoptr(GArray) operands = g_array_new(FALSE, FALSE, sizeof(KilnType));
    g_autoptr(GArray) results = g_array_new(FALSE, FALSE, sizeof(KilnType));
    if (!parse_type_list(parser, operands) || !kiln_parse_expect(parser, '>'))
        return false;
    if (kiln_parse_at(parser, '(') ? !parse_type_list(parser, results)
                                   : !kiln_parse_types(parser, results))
        return false;
    KilnDeclaration *declaration = kiln_arena_new0(module->arena, KilnDeclaration, 1);
    declaration->name = name;
    declaration->n_operands = operands->len;
    declaration->operands =
        kiln_arena_copy(module->arena, operands->data, operands->len * sizeof(KilnType));
    declaration->n_results = results->len;
    declaration->results =
        kiln_arena_copy(module->arena, results->data, results->len * sizeof(KilnType));
    g_ptr_array_add(module->declarations, declaration);
    if (!kiln_parse_accept_word(parser, "body"))
        return true;
    g_ptr_array_add(parser->declared, declaration);
    return skip_block(parser, parser->bodies);
}

bool
kiln_text_is_module(const char *text, size_t length)
{
    static const char *const words[] = { "graph",   "func",     "fold", "constants",
                                         "declare", "metadata", "dims" };
    while (length && g_ascii_isspace(*text))
        text++, length--;
    if (length && *text == '#')
        return true;
    for (size_t i = 0; i < G_N_ELEMENTS(words); i++) {
        size_t n = strlen(words[i]);
        if (length >= n && memcmp(text, words[i], n) == 0 &&
            (length == n || !g_ascii_isalnum(text[n])))
            return true;
    }
    return false;
}

bool
kiln_parse_blocks(KilnParser *parser, GArray *graphs, GArray *funcs)
{
    const char *expected =
        funcs ? "'graph', 'func', 'fold', 'constants', 'declare', 'dims' or 'metadata'"
              : "'graph', 'fold', 'constants', 'declare', 'dims' or 'metadata'";
    g_autoptr(GArray) folds = g_array_new(FALSE, FALSE, sizeof(KilnBlock));
    while (parser->token.kind != KILN_TOKEN_END) {
        bool ok;
        if (kiln_parse_accept_word(parser, "graph"))
            ok = skip_block(parser, graphs);
        else if (funcs && kiln_parse_accept_word(parser, "func"))
            ok = skip_block(parser, funcs);
        else if (kiln_parse_accept_word(parser, "fold"))
            ok = skip_block(parser, folds);
        else if (kiln_parse_accept_word(parser, "constants"))
            ok = kiln_parse_constants(parser);
        else if (kiln_parse_accept_word(parser, "declare"))
            ok = parse_declaration(parser);
        else if (kiln_parse_accept_word(parser, "dims"))
            ok = kiln_parse_dim_facts(parser);
        else if (kiln_parse_accept_word(parser, "metadata"))
            ok = kiln_parse_metadata(parser);
        else
            ok = kiln_parse_throw(parser, expected);
        if (!ok)
            return false;
    }
    if (folds->len > 1)
        return kiln_parse_throw_at(parser, &g_array_index(folds, KilnBlock, 1).token,
                                   KILN_ERROR_PARSE, "expected one block 'fold', found another");
    parser->has_fold = folds->len;
    if (parser->has_fold)
        parser->fold = g_array_index(folds, KilnBlock, 0);
    return true;
}

static bool
verify(KilnParser *parser)
{
    const KilnNode *node = NULL;
    if (kiln_module_verify_at(parser->module, &node, parser->error))
        return true;
    guint line = node ? GPOINTER_TO_UINT(g_hash_table_lookup(parser->lines, node)) : 0;
    if (line)
        kiln_prefix_error(parser->error, "%s:%u: ", parser->path, line);
    else
        kiln_prefix_error(parser->error, "%s: ", parser->path);
    return false;
}

/* Where there are graphs, what is folded is read by the last of them. */
static bool
connect_folding(KilnParser *parser)
{
    const KilnFunction *entry = kiln_module_entry(parser->module);
    g_autoptr(GPtrArray) names = g_ptr_array_new();
    for (guint i = 0; entry && i < entry->arguments->len; i++)
        g_ptr_array_add(names, (char *)kiln_function_argument(entry, i)->value.name);
    return !entry || kiln_parse_folding(parser, (const char *const *)names->pdata, names->len);
}

static bool
parse_bodies(KilnParser *parser)
{
    for (guint i = 0; i < parser->bodies->len; i++) {
        const KilnBlock *block = &g_array_index(parser->bodies, KilnBlock, i);
        KilnDeclaration *declaration = g_ptr_array_index(parser->declared, i);
        parser->lexer = block->lexer;
        parser->token = block->token;
        declaration->body = kiln_parse_subgraph(parser, "body");
        if (!declaration->body)
            return false;
    }
    return true;
}

bool
kiln_parse_graphs(KilnParser *parser, const GArray *graphs)
{
    if (!parse_bodies(parser))
        return false;
    for (guint i = 0; i < graphs->len; i++) {
        const KilnBlock *block = &g_array_index(graphs, KilnBlock, i);
        parser->lexer = block->lexer;
        parser->token = block->token;
        if (!kiln_parse_graph(parser))
            return false;
    }
    return connect_folding(parser) && verify(parser);
}

KilnModule *
kiln_module_parse(const char *text, size_t length, const char *path, GError **error)
{
    KilnParser parser;
    KilnModule *module = NULL;
    g_autoptr(GArray) graphs = g_array_new(FALSE, FALSE, sizeof(KilnBlock));
    if (kiln_parser_init(&parser, text, length, path, error) &&
        kiln_parse_blocks(&parser, graphs, NULL) && kiln_parse_graphs(&parser, graphs))
        module = g_steal_pointer(&parser.module);
    kiln_parser_clear(&parser);
    return module;
}
