/* SPDX-License-Identifier: Apache-2.0 */
/* Parses `graph` blocks, their nodes and the subgraphs of nodes. Nodes are made by the builder that
 * passes use, so arity, attributes and types are checked where they are read. */
#include "graph/text/parse.h"

#include "graph/base/budget.h"
#include "graph/function.h"
#include "graph/grow/reserve.h"
#include "graph/module/regions.h"
#include "graph/node.h"

#include <string.h>

#define FIELD(T, info, attrs) (*(T *)((char *)(attrs) + (info)->offset))

static bool parse_body(KilnParser *parser);

/* --- values --- */

static KilnValue *
find_value(const KilnScope *scope, const char *name)
{
    KilnValue *value = NULL;
    for (; scope && !value; scope = scope->outer)
        value = kiln_function_find_value(scope->function, name);
    return value;
}

/* A `%name` that must be defined above. */
static KilnValue *
parse_value(KilnParser *parser)
{
    KilnToken at = parser->token;
    KilnValue *value =
        at.kind == KILN_TOKEN_VALUE ? find_value(parser->scope, kiln_parse_text(parser)) : NULL;
    if (!value)
        kiln_parse_throw(parser, at.kind == KILN_TOKEN_VALUE ? "a value that is defined above"
                                                             : "a %value");
    else
        kiln_parse_advance(parser);
    return value;
}

/* A `%name` that must be new. */
static const char *
parse_new_name(KilnParser *parser)
{
    KilnToken at = parser->token;
    const char *name = kiln_parse_name(parser, KILN_TOKEN_VALUE, "a %name");
    if (!name || !find_value(parser->scope, name))
        return name;
    kiln_parse_throw_at(parser, &at, KILN_ERROR_PARSE, "two values are called %.*s", (int)at.length,
                        at.start);
    return NULL;
}

/* --- arguments --- */

/* `[0,4)`: kept as text, in one spelling. */
static bool
parse_range(KilnParser *parser, const char **out)
{
    double low, high;
    g_autoptr(GString) text = g_string_new(NULL);
    if (!kiln_parse_at(parser, '[') && !kiln_parse_at(parser, '('))
        return kiln_parse_throw(parser, "a domain such as [0,4)");
    const char *from = parser->token.start;
    kiln_parse_advance(parser);
    g_string_append_len(text, from, 1);
    g_string_append_len(text, parser->token.start, (gssize)parser->token.length);
    if (!kiln_parse_f64(parser, &low) || !kiln_parse_expect(parser, ','))
        return false;
    g_string_append_c(text, ',');
    g_string_append_len(text, parser->token.start, (gssize)parser->token.length);
    KilnToken at = parser->token;
    if (!kiln_parse_f64(parser, &high))
        return false;
    if (!(low <= high))
        return kiln_parse_throw_at(parser, &at, KILN_ERROR_PARSE,
                                   "expected a domain whose end is not below its start");
    if (!kiln_parse_at(parser, ']') && !kiln_parse_at(parser, ')'))
        return kiln_parse_throw(parser, "']' or ')'");
    g_string_append_len(text, parser->token.start, 1);
    kiln_parse_advance(parser);
    *out = kiln_arena_strdup(parser->module->arena, text->str);
    return true;
}

/* The word behind `constant`; a node may be literal besides. */
static bool
parse_constness(KilnParser *parser, bool node, KilnConstness *out)
{
    if (!kiln_parse_expect(parser, '='))
        return false;
    if (kiln_parse_accept_word(parser, "compile"))
        *out = KILN_CONSTNESS_COMPILE;
    else if (kiln_parse_accept_word(parser, "run"))
        *out = KILN_CONSTNESS_RUN;
    else if (node && kiln_parse_accept_word(parser, "literal"))
        *out = KILN_CONSTNESS_LITERAL;
    else
        return kiln_parse_throw(parser,
                                node ? "'literal', 'compile' or 'run'" : "'compile' or 'run'");
    return true;
}

static bool
parse_argument_options(KilnParser *parser, KilnArgument *argument)
{
    for (;;) {
        if (kiln_parse_accept_word(parser, "constant")) {
            if (!parse_constness(parser, false, &argument->constness))
                return false;
        } else if (kiln_parse_accept_word(parser, "variable")) {
            argument->variable = true;
        } else if (kiln_parse_accept_word(parser, "in")) {
            if (!parse_range(parser, &argument->range))
                return false;
        } else {
            return true;
        }
    }
}

static bool
parse_argument(KilnParser *parser)
{
    KilnToken at = parser->token;
    const char *name = parse_new_name(parser);
    KilnType type;
    if (!name || !kiln_parse_expect(parser, ':') || !kiln_parse_type(parser, &type))
        return false;
    KilnArgument *argument =
        kiln_function_add_argument(parser->scope->function, name, &type, parser->error);
    if (!argument)
        return kiln_parse_prefix(parser, &at);
    return parse_argument_options(parser, argument);
}

bool
kiln_parse_arguments(KilnParser *parser)
{
    if (!kiln_parse_expect(parser, '('))
        return false;
    if (kiln_parse_accept(parser, ')'))
        return true;
    do {
        if (!parse_argument(parser))
            return false;
    } while (kiln_parse_accept(parser, ','));
    return kiln_parse_expect(parser, ')');
}

/* --- nodes --- */

typedef struct {
    KilnToken at;      /* where the node begins */
    GPtrArray *names;  /* of the results */
    GPtrArray *inputs; /* KilnValue*, NULL where absent */
    GArray *types;     /* stated */
    KilnOp op;
    void *attrs;
    KilnConstness mark;
    const char *name;
} NodeText;

static void
node_text_clear(NodeText *text)
{
    g_ptr_array_unref(text->names);
    g_ptr_array_unref(text->inputs);
    g_array_unref(text->types);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(NodeText, node_text_clear)

/* `%a, %b =`; nothing for a node without results. */
static bool
parse_results(KilnParser *parser, NodeText *text)
{
    if (parser->token.kind != KILN_TOKEN_VALUE)
        return true;
    do {
        const char *name = parse_new_name(parser);
        if (!name)
            return false;
        g_ptr_array_add(text->names, (char *)name);
    } while (kiln_parse_accept(parser, ','));
    return kiln_parse_expect(parser, '=');
}

static bool
parse_operands(KilnParser *parser, NodeText *text)
{
    if (!kiln_parse_expect(parser, '('))
        return false;
    if (kiln_parse_accept(parser, ')'))
        return true;
    do {
        KilnValue *value = NULL;
        if (!kiln_parse_accept_word(parser, "_") && !(value = parse_value(parser)))
            return false;
        g_ptr_array_add(text->inputs, value);
    } while (kiln_parse_accept(parser, ','));
    return kiln_parse_expect(parser, ')');
}

KilnFunction *
kiln_parse_subgraph(KilnParser *parser, const char *name)
{
    if (parser->depth == KILN_PARSE_MAX_DEPTH) {
        kiln_parse_throw(parser, "subgraphs that are less deeply nested");
        return NULL;
    }
    KilnFunction *region = kiln_function_new_region(parser->module, name);
    KilnScope scope = { region, parser->scope };
    parser->scope = &scope;
    parser->depth++;
    bool ok = (!kiln_parse_at(parser, '(') || kiln_parse_arguments(parser)) && parse_body(parser);
    parser->depth--;
    parser->scope = scope.outer;
    return ok ? region : NULL;
}

/* `body @name(arguments) {…}` for the attribute @info. */
static bool
parse_region(KilnParser *parser, const KilnAttrInfo *info, NodeText *text)
{
    bool bare = kiln_region_is_bare(text->op) && kiln_parse_at(parser, '{');
    if (!bare && !kiln_parse_expect_word(parser, kiln_region_label(info)))
        return false;
    const char *name = info->name;
    if (parser->token.kind == KILN_TOKEN_SYMBOL &&
        !(name = kiln_parse_name(parser, KILN_TOKEN_SYMBOL, "a name")))
        return false;
    KilnFunction *region = kiln_parse_subgraph(parser, name);
    FIELD(KilnFunction *, info, text->attrs) = region;
    return region != NULL;
}

static bool
parse_operation(KilnParser *parser, NodeText *text)
{
    if (parser->token.kind != KILN_TOKEN_WORD ||
        !kiln_op_from_name(kiln_parse_text(parser), &text->op) || text->op == KILN_OP_return)
        return kiln_parse_throw(parser, "an operator");
    kiln_parse_advance(parser);
    const KilnOpInfo *info = kiln_op_info(text->op);
    text->attrs = kiln_op_attrs_new(text->op, parser->module->arena);
    if (text->op == KILN_OP_const) {
        KilnAttrs_const *attrs = text->attrs;
        attrs->value = kiln_parse_constant_name(parser);
        return attrs->value != NULL;
    }
    const KilnAttrInfo *callee = kiln_attr_find(info->attrs, info->n_attrs, KILN_ATTR_CALLEE);
    if (callee) {
        const char *symbol = kiln_parse_name(parser, KILN_TOKEN_SYMBOL, "the @name of a region");
        FIELD(const char *, callee, text->attrs) = symbol;
        if (!symbol)
            return false;
    }
    if (!parse_operands(parser, text))
        return false;
    if (!kiln_region_is_bare(text->op) &&
        !kiln_parse_attrs(parser, info->name, info->attrs, info->n_attrs, text->attrs))
        return false;
    for (uint32_t i = 0; i < info->n_attrs; i++) {
        if (info->attrs[i].kind == KILN_ATTR_FUNCTION &&
            !parse_region(parser, &info->attrs[i], text))
            return false;
    }
    return true;
}

static bool
build_node(KilnParser *parser, NodeText *text)
{
    uint32_t n = text->names->len;
    const KilnOpInfo *info = kiln_op_info(text->op);
    if (!n && info->max_results)
        return kiln_parse_throw_at(parser, &text->at, KILN_ERROR_PARSE,
                                   "expected '%%name =' before %s, which has results", info->name);
    if (text->types->len && text->types->len != n)
        return kiln_parse_throw_at(parser, &text->at, KILN_ERROR_PARSE,
                                   "expected as many types as results (%u), found %u", n,
                                   text->types->len);
    const char *const *names = (const char *const *)text->names->pdata;
    KilnNodeSpec spec = { .op = text->op,
                          .name = text->name,
                          .operands = (KilnValue *const *)text->inputs->pdata,
                          .n_operands = text->inputs->len,
                          .n_results = n,
                          .attrs = text->attrs,
                          .result_names = n ? names : NULL,
                          .types = text->types->len ? (KilnType *)text->types->data : NULL };
    KilnNode *node = kiln_node_new(parser->scope->function, &spec, parser->error);
    if (!node)
        return kiln_parse_prefix(parser, &text->at);
    node->mark = text->mark;
    g_hash_table_insert(parser->lines, node, GUINT_TO_POINTER(text->at.line));
    for (uint32_t i = 0; i < n; i++) {
        if (strcmp(node->results[i].name, names[i]) != 0)
            return kiln_parse_throw_at(parser, &text->at, KILN_ERROR_PARSE,
                                       "two values are called %%%s", names[i]);
    }
    return true;
}

static bool
parse_node(KilnParser *parser)
{
    g_auto(NodeText) text = { .at = parser->token,
                              .names = g_ptr_array_new(),
                              .inputs = g_ptr_array_new(),
                              .types = g_array_new(FALSE, FALSE, sizeof(KilnType)) };
    if (!parse_results(parser, &text) || !parse_operation(parser, &text))
        return false;
    if (kiln_parse_accept(parser, ':') && !kiln_parse_types(parser, text.types))
        return false;
    if (kiln_parse_accept_word(parser, "constant") && !parse_constness(parser, true, &text.mark))
        return false;
    return kiln_parse_loc(parser, &text.name) && build_node(parser, &text);
}

/* --- bodies --- */

static bool
parse_results_of_function(KilnParser *parser, GPtrArray *values, GPtrArray *names)
{
    if (kiln_parse_at(parser, '}'))
        return true;
    do {
        KilnValue *value = parse_value(parser);
        if (!value)
            return false;
        const char *name = value->name;
        if (kiln_parse_accept_word(parser, "as") &&
            !(name = kiln_parse_word(parser, "the name of a result")))
            return false;
        g_ptr_array_add(values, value);
        g_ptr_array_add(names, (char *)name);
    } while (kiln_parse_accept(parser, ','));
    return true;
}

/* `return %a, %b as "name"`, behind the word. */
static bool
parse_return(KilnParser *parser, const KilnToken *at)
{
    g_autoptr(GPtrArray) values = g_ptr_array_new();
    g_autoptr(GPtrArray) names = g_ptr_array_new();
    if (!parse_results_of_function(parser, values, names))
        return false;
    KilnFunction *function = parser->scope->function;
    if (!kiln_function_set_results(function, (KilnValue *const *)values->pdata,
                                   (const char *const *)names->pdata, values->len, parser->error))
        return kiln_parse_prefix(parser, at);
    g_hash_table_insert(parser->lines, kiln_function_return(function), GUINT_TO_POINTER(at->line));
    return true;
}

/* `{ nodes return … }` */
static bool
parse_body(KilnParser *parser)
{
    if (!kiln_parse_expect(parser, '{'))
        return false;
    for (;;) {
        KilnToken at = parser->token;
        if (kiln_parse_accept_word(parser, "return"))
            return parse_return(parser, &at) && kiln_parse_expect(parser, '}');
        if (kiln_parse_at(parser, '}') || at.kind == KILN_TOKEN_END)
            return kiln_parse_throw(parser, "a node or 'return'");
        if (!parse_node(parser))
            return false;
        const KilnFunction *function = parser->scope->function;
        if (!kiln_reserve_check(function->next_id, parser->error) ||
            !kiln_budget_check_nodes(parser->module->n_nodes, function->name, parser->error) ||
            !kiln_budget_check_time(parser->error))
            return kiln_parse_prefix(parser, &at);
    }
}

bool
kiln_parse_graph(KilnParser *parser)
{
    KilnToken at = parser->token;
    const char *name = kiln_parse_name(parser, KILN_TOKEN_SYMBOL, "the @name of a graph");
    if (!name)
        return false;
    if (kiln_module_find_function(parser->module, name))
        return kiln_parse_throw_at(parser, &at, KILN_ERROR_PARSE, "two graphs are called @%s",
                                   name);
    KilnScope scope = { kiln_function_new(parser->module, name), NULL };
    parser->scope = &scope;
    bool ok = kiln_parse_arguments(parser) && parse_body(parser);
    parser->scope = NULL;
    return ok;
}
