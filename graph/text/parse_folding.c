/* SPDX-License-Identifier: Apache-2.0 */
/* Parses `fold(arguments) { %f = run @runtime_fold(%w) … }`: names of values become numbers. */
#include "graph/module/folding.h"
#include "graph/text/parse.h"

typedef struct {
    KilnParser *parser;
    KilnFolding *folding;
    GHashTable *numbers; /* name → number + 1 */
} FoldText;

static bool
parse_operand(FoldText *text, GArray *operands)
{
    KilnToken at = text->parser->token;
    const char *name = kiln_parse_name(text->parser, KILN_TOKEN_VALUE, "a %value");
    if (!name)
        return false;
    guint number = GPOINTER_TO_UINT(g_hash_table_lookup(text->numbers, name));
    if (number == 0)
        return kiln_parse_throw_at(text->parser, &at, KILN_ERROR_PARSE,
                                   "expected an argument of the model or a result of a call "
                                   "above, found %%%s",
                                   name);
    number--;
    g_array_append_val(operands, number);
    return true;
}

static bool
parse_operands(FoldText *text, GArray *operands)
{
    if (!kiln_parse_expect(text->parser, '('))
        return false;
    if (kiln_parse_accept(text->parser, ')'))
        return true;
    do {
        if (!parse_operand(text, operands))
            return false;
    } while (kiln_parse_accept(text->parser, ','));
    return kiln_parse_expect(text->parser, ')');
}

/* `%f0, %f1 =` */
static bool
parse_results(FoldText *text, GPtrArray *names)
{
    KilnParser *parser = text->parser;
    uint32_t next = kiln_folding_n_values(text->folding);
    do {
        KilnToken at = parser->token;
        const char *name = kiln_parse_name(parser, KILN_TOKEN_VALUE, "a %value");
        if (!name)
            return false;
        if (!g_hash_table_insert(text->numbers, (char *)name, GUINT_TO_POINTER(++next)))
            return kiln_parse_throw_at(parser, &at, KILN_ERROR_PARSE, "two values are called %%%s",
                                       name);
        g_ptr_array_add(names, (char *)name);
    } while (kiln_parse_accept(parser, ','));
    return kiln_parse_expect(parser, '=');
}

/* `%f0, %f1 = compile @compiletime_fold(%w)` */
static bool
parse_call(FoldText *text)
{
    KilnParser *parser = text->parser;
    g_autoptr(GPtrArray) names = g_ptr_array_new();
    g_autoptr(GArray) operands = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    if (!parse_results(text, names))
        return false;
    bool compile = kiln_parse_accept_word(parser, "compile");
    if (!compile && !kiln_parse_accept_word(parser, "run"))
        return kiln_parse_throw(parser, "'compile' or 'run'");
    const char *function = kiln_parse_name(parser, KILN_TOKEN_SYMBOL, "the @name of a graph");
    if (!function || !parse_operands(text, operands))
        return false;
    KilnFold call = { .function = function,
                      .when = compile ? KILN_CONSTNESS_COMPILE : KILN_CONSTNESS_RUN,
                      .n_operands = operands->len,
                      .n_results = names->len,
                      .operands = (uint32_t *)operands->data,
                      .results = (const char **)names->pdata };
    kiln_folding_add(text->folding, &call, parser->module->arena);
    return true;
}

static bool
parse_signature(FoldText *text)
{
    KilnParser *parser = text->parser;
    KilnFunction *holder = kiln_function_new_region(parser->module, "fold");
    KilnScope scope = { holder, NULL };
    parser->scope = &scope;
    bool ok = kiln_parse_arguments(parser);
    parser->scope = NULL;
    for (guint i = 0; ok && i < holder->arguments->len; i++) {
        KilnArgument *argument = kiln_function_argument(holder, i);
        argument->function = NULL;
        g_ptr_array_add(text->folding->signature, argument);
        g_hash_table_insert(text->numbers, (char *)argument->value.name, GUINT_TO_POINTER(i + 1));
    }
    g_ptr_array_remove(parser->module->all_functions, holder); /* frees it, not its arguments */
    return ok;
}

/* The arguments of the entry take the values that are called like them. */
static bool
connect_entry(FoldText *text, const char *const *entry, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        guint number = GPOINTER_TO_UINT(g_hash_table_lookup(text->numbers, entry[i]));
        if (number == 0)
            return kiln_parse_throw_at(text->parser, &text->parser->fold.token, KILN_ERROR_PARSE,
                                       "nothing makes the argument %%%s of the entry", entry[i]);
        number--;
        g_array_append_val(text->folding->entry, number);
    }
    return true;
}

bool
kiln_parse_folding(KilnParser *parser, const char *const *entry, uint32_t n)
{
    if (!parser->has_fold)
        return true;
    parser->lexer = parser->fold.lexer;
    parser->token = parser->fold.token;
    g_autoptr(GHashTable) numbers = g_hash_table_new(g_str_hash, g_str_equal);
    FoldText text = { parser, kiln_folding_new(), numbers };
    parser->module->folding = text.folding;
    if (!parse_signature(&text) || !kiln_parse_expect(parser, '{'))
        return false;
    while (!kiln_parse_accept(parser, '}')) {
        if (!parse_call(&text))
            return false;
    }
    return connect_entry(&text, entry, n);
}
