/* SPDX-License-Identifier: Apache-2.0 */
/* The parser of patterns: S-expressions to terms. */
#include "passes/rules/pattern.h"

#include <string.h>

typedef struct {
    const char *text;
    const char *at;
    GArray *terms;    /* KilnTerm */
    GPtrArray *names; /* char* by slot */
    GArray *is_node;  /* bool by slot: a name is of a node or of a value, not of both */
    uint32_t n_commutes;
    uint32_t depth, deepest;
    GError **error;
} Parser;

static bool
fail(Parser *parser, const char *expected)
{
    g_autofree char *found =
        *parser->at ? g_strdup_printf("'%.12s'", parser->at) : g_strdup("the end");
    kiln_throw(parser->error, KILN_ERROR_PARSE, "pattern '%s': column %zu: expected %s, found %s",
               parser->text, (size_t)(parser->at - parser->text) + 1, expected, found);
    return false;
}

static void
skip_blanks(Parser *parser)
{
    while (*parser->at == ' ' || *parser->at == '\n' || *parser->at == '\t')
        parser->at++;
}

static bool
accept(Parser *parser, char c)
{
    if (*parser->at != c)
        return false;
    parser->at++;
    return true;
}

static bool
is_word(char c)
{
    return g_ascii_isalnum(c) || c == '_';
}

/* A word, or NULL where there is none. A dot before a letter belongs to it (vendor.graph), before
 * a digit it begins a result number. */
static char *
take_word(Parser *parser, bool dots)
{
    const char *start = parser->at;
    while (is_word(*parser->at) || (dots && *parser->at == '.' && g_ascii_isalpha(parser->at[1])))
        parser->at++;
    return parser->at > start ? g_strndup(start, (gsize)(parser->at - start)) : NULL;
}

static uint32_t
class_of(const char *name)
{
    bool is_float = strcmp(name, "float") == 0, is_int = strcmp(name, "int") == 0;
    bool is_signed = strcmp(name, "signed") == 0, is_unsigned = strcmp(name, "unsigned") == 0;
    bool is_number = strcmp(name, "number") == 0;
    KilnDType one;
    bool named = kiln_dtype_from_name(name, &one);
    uint32_t set = 0;
    for (int d = 0; d < KILN_N_DTYPES; d++) {
        KilnDType dtype = (KilnDType)d;
        bool integer = kiln_dtype_is_integer(dtype), negative = kiln_dtype_is_signed(dtype);
        if ((named && dtype == one) || ((is_float || is_number) && kiln_dtype_is_float(dtype)) ||
            ((is_int || is_number) && integer) || (is_signed && integer && negative) ||
            (is_unsigned && integer && !negative))
            set |= 1u << d;
    }
    return set;
}

/* `:f32` after a value or a node. */
static bool
parse_type(Parser *parser, KilnTerm *term)
{
    if (!accept(parser, ':'))
        return true;
    const char *start = parser->at;
    g_autofree char *name = take_word(parser, false);
    if (name && strcmp(name, "quantized") == 0) {
        term->quantized = true;
        return true;
    }
    KilnDType one;
    term->dtypes = name ? class_of(name) : 0;
    term->plain = name && !kiln_dtype_from_name(name, &one);
    if (term->dtypes)
        return true;
    parser->at = start;
    return fail(parser, "a dtype, number, float, int, signed, unsigned, bool or quantized");
}

static bool
parse_name(Parser *parser, KilnTerm *term, bool node, bool required)
{
    const char *start = parser->at;
    g_autofree char *name = take_word(parser, false);
    if (!name)
        return !required || fail(parser, "a name");
    for (guint i = 0; i < parser->names->len; i++) {
        if (strcmp(g_ptr_array_index(parser->names, i), name) != 0)
            continue;
        if (g_array_index(parser->is_node, bool, i) != node) {
            parser->at = start;
            return fail(parser, "a name that nodes and values do not share");
        }
        term->slot = (int)i;
        return true;
    }
    term->slot = (int)parser->names->len;
    g_ptr_array_add(parser->names, g_steal_pointer(&name));
    g_array_append_val(parser->is_node, node);
    return true;
}

/* --- nodes --- */

static bool
parse_trait(Parser *parser, KilnTerm *term)
{
    static const struct {
        const char *name;
        uint32_t bit;
    } traits[] = {
        { "ELEMENTWISE", KILN_TRAIT_ELEMENTWISE },
        { "COMMUTATIVE", KILN_TRAIT_COMMUTATIVE },
        { "LAYOUT_FREE", KILN_TRAIT_LAYOUT_FREE },
        { "INPLACE", KILN_TRAIT_INPLACE },
        { "MONOTONE", KILN_TRAIT_MONOTONE },
        { "SIDE_EFFECT", KILN_TRAIT_SIDE_EFFECT },
        { "RANDOM", KILN_TRAIT_RANDOM },
        { "EXPANDS", KILN_TRAIT_EXPANDS },
        { "VIEW", KILN_TRAIT_VIEW },
        { "REGION", KILN_TRAIT_REGION },
        { "STATE", KILN_TRAIT_STATE },
        { "QUANTIZED", KILN_TRAIT_QUANTIZED },
        { "KEEPS_QUANTIZATION", KILN_TRAIT_KEEPS_QUANTIZATION },
        { "REDUCES", KILN_TRAIT_REDUCES },
    };
    const char *start = parser->at;
    g_autofree char *name = take_word(parser, false);
    for (size_t i = 0; name && i < G_N_ELEMENTS(traits); i++) {
        if (strcmp(traits[i].name, name) != 0)
            continue;
        for (uint32_t op = 0; op < KILN_OP_END; op++) {
            if (op != KILN_OP_return && kiln_op_has(op, traits[i].bit))
                term->ops[op / 64] |= UINT64_C(1) << (op % 64);
        }
        return true;
    }
    parser->at = start;
    return fail(parser, "a trait");
}

static bool
parse_op(Parser *parser, KilnTerm *term)
{
    if (accept(parser, '@'))
        return parse_trait(parser, term);
    const char *start = parser->at;
    g_autofree char *name = take_word(parser, true);
    KilnOp op;
    if (!name || !kiln_op_from_name(name, &op) || op == KILN_OP_return) {
        parser->at = start;
        return fail(parser, "the name of an op");
    }
    term->ops[op / 64] |= UINT64_C(1) << (op % 64);
    return true;
}

/* What may follow the op names, in any order, once each: #name .result ! ~ */
static bool
parse_marks(Parser *parser, KilnTerm *term, bool *commutes)
{
    bool numbered = false;
    for (;;) {
        if (*parser->at == '#' && term->slot < 0) {
            parser->at++;
            if (!parse_name(parser, term, true, true))
                return false;
        } else if (*parser->at == '.' && g_ascii_isdigit(parser->at[1]) && !numbered) {
            char *end;
            guint64 result = g_ascii_strtoull(parser->at + 1, &end, 10);
            if (result >= KILN_MANY)
                return fail(parser, "the number of a result");
            parser->at = end;
            term->result = (uint32_t)result;
            numbered = true;
        } else if (*parser->at == '!' && !term->single_use) {
            parser->at++;
            term->single_use = true;
        } else if (*parser->at == '~' && !*commutes) {
            parser->at++;
            *commutes = true;
        } else {
            break;
        }
    }
    return is_word(*parser->at) || strchr("#.!~|", *parser->at ? *parser->at : '(')
               ? fail(parser, "an operand")
               : true;
}

static bool parse_operand(Parser *parser);

static bool
parse_operands(Parser *parser, guint index)
{
    uint32_t n = 0;
    bool rest = false;
    for (skip_blanks(parser); *parser->at != ')'; skip_blanks(parser)) {
        if (rest)
            return fail(parser, "')' after '...'");
        if (n == KILN_PATTERN_OPERANDS || parser->terms->len == KILN_PATTERN_TERMS)
            return fail(parser, "a smaller pattern");
        if (strncmp(parser->at, "...", 3) == 0) {
            parser->at += 3;
            rest = true;
            continue;
        }
        if (!parse_operand(parser))
            return false;
        n++;
    }
    KilnTerm *term = &g_array_index(parser->terms, KilnTerm, index);
    term->n_children = n;
    term->rest = rest;
    return true;
}

/* After its '('. */
static bool
parse_node(Parser *parser)
{
    KilnTerm term = { .kind = KILN_TERM_NODE, .commutes = -1, .dtypes = UINT32_MAX, .slot = -1 };
    bool commutes = false;
    if (++parser->depth > KILN_PATTERN_DEPTH)
        return fail(parser, "fewer nested nodes");
    parser->deepest = MAX(parser->deepest, parser->depth);
    skip_blanks(parser);
    do {
        if (!parse_op(parser, &term))
            return false;
    } while (accept(parser, '|'));
    if (!parse_marks(parser, &term, &commutes))
        return false;
    guint index = parser->terms->len;
    g_array_append_val(parser->terms, term);
    if (!parse_operands(parser, index))
        return false;

    KilnTerm *stored = &g_array_index(parser->terms, KilnTerm, index);
    if (commutes && (stored->n_children != 2 || stored->rest))
        return fail(parser, "two operands, which '~' lets stand in either order");
    if (commutes && parser->n_commutes == KILN_PATTERN_COMMUTES)
        return fail(parser, "fewer '~'");
    if (commutes)
        stored->commutes = (int)parser->n_commutes++;
    parser->at++;
    stored->size = parser->terms->len - index;
    parser->depth--;
    return parse_type(parser, stored);
}

static bool
parse_operand(Parser *parser)
{
    if (accept(parser, '('))
        return parse_node(parser);
    KilnTerm term = { .commutes = -1, .dtypes = UINT32_MAX, .slot = -1, .size = 1 };
    if (*parser->at == '_' && !is_word(parser->at[1])) {
        parser->at++;
        term.kind = KILN_TERM_ABSENT;
    } else if (*parser->at == '?' || *parser->at == '$') {
        term.kind = *parser->at++ == '?' ? KILN_TERM_VALUE : KILN_TERM_LITERAL;
        if (!parse_name(parser, &term, false, false) || !parse_type(parser, &term))
            return false;
    } else {
        return fail(parser, "'(', '?', '$', '_', '...' or ')'");
    }
    if (*parser->at && !strchr(" \n\t)", *parser->at))
        return fail(parser, "a blank or ')'");
    g_array_append_val(parser->terms, term);
    return true;
}

KilnPattern *
kiln_pattern_parse(const char *text, GError **error)
{
    g_autoptr(GArray) terms = g_array_new(FALSE, TRUE, sizeof(KilnTerm));
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GArray) is_node = g_array_new(FALSE, FALSE, sizeof(bool));
    Parser parser = {
        .text = text, .at = text, .terms = terms, .names = names, .is_node = is_node, .error = error
    };
    skip_blanks(&parser);
    if (!accept(&parser, '('))
        return fail(&parser, "'('"), NULL;
    if (!parse_node(&parser))
        return NULL;
    skip_blanks(&parser);
    if (*parser.at)
        return fail(&parser, "the end"), NULL;

    KilnPattern *pattern = g_new0(KilnPattern, 1);
    pattern->n_terms = terms->len;
    pattern->terms = g_memdup2(terms->data, terms->len * sizeof(KilnTerm));
    pattern->n_slots = names->len;
    pattern->names = g_new0(char *, names->len + 1);
    for (guint i = 0; i < names->len; i++)
        pattern->names[i] = g_strdup(g_ptr_array_index(names, i));
    pattern->n_commutes = parser.n_commutes;
    pattern->depth = parser.deepest;
    return pattern;
}

void
kiln_pattern_free(KilnPattern *pattern)
{
    if (!pattern)
        return;
    g_strfreev(pattern->names);
    g_free(pattern->terms);
    g_free(pattern);
}
