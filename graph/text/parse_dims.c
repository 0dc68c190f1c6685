/* SPDX-License-Identifier: Apache-2.0 */
/* Parses dims: `2*N + floor((M + 1)/2)`, `max(N,M)`, `select(1=N,M,N)`.
 *
 *      sum      = term { ("+" | "-") term }
 *      term     = ["-"] factor { "*" factor }
 *      factor   = number | name | "(" sum ")" | function
 *      function = ("floor" | "ceil") "(" factor "/" factor ")"
 *               | ("min" | "max" | "mod") "(" sum "," sum ")"
 *               | "select" "(" sum "=" sum "," sum "," sum ")"
 */
#include "graph/text/parse.h"

static const KilnDim *parse_sum(KilnParser *parser, int depth);
static const KilnDim *parse_factor(KilnParser *parser, int depth);

/* What was read is no expression: a number or a divisor is out of range. */
static const KilnDim *
checked(KilnParser *parser, const KilnToken *at, const KilnDim *dim)
{
    if (!dim)
        kiln_parse_throw_at(parser, at, KILN_ERROR_PARSE,
                            "expected an expression of 64-bit numbers with divisors of 1 or more");
    return dim;
}

static bool
parse_arguments(KilnParser *parser, const char *separators, const KilnDim **args, int depth)
{
    for (uint32_t i = 0;; i++) {
        bool quotient = separators[0] == '/';
        args[i] = quotient ? parse_factor(parser, depth) : parse_sum(parser, depth);
        if (!args[i])
            return false;
        if (!separators[i])
            return kiln_parse_expect(parser, ')');
        if (!kiln_parse_expect(parser, separators[i]))
            return false;
    }
}

static const KilnDim *
quotient(KilnDimTable *table, const KilnDim *const *args)
{
    return kiln_dim_floor(table, args[0], args[1]);
}

static const KilnDim *
ceiling(KilnDimTable *table, const KilnDim *const *args)
{
    return kiln_dim_ceil(table, args[0], args[1]);
}

static const KilnDim *
minimum(KilnDimTable *table, const KilnDim *const *args)
{
    return kiln_dim_min(table, args[0], args[1]);
}

static const KilnDim *
maximum(KilnDimTable *table, const KilnDim *const *args)
{
    return kiln_dim_max(table, args[0], args[1]);
}

static const KilnDim *
remainder_of(KilnDimTable *table, const KilnDim *const *args)
{
    return kiln_dim_remainder(table, args[0], args[1]);
}

static const KilnDim *
selection(KilnDimTable *table, const KilnDim *const *args)
{
    return kiln_dim_select(table, args[0], args[1], args[2], args[3]);
}

static const struct {
    const char *name, *separators;
    const KilnDim *(*make)(KilnDimTable *table, const KilnDim *const *args);
} functions[] = {
    { "floor", "/", quotient }, { "ceil", "/", ceiling },     { "min", ",", minimum },
    { "max", ",", maximum },    { "mod", ",", remainder_of }, { "select", "=,,", selection },
};

/* A name, or a function where a parenthesis follows. */
static const KilnDim *
parse_word(KilnParser *parser, int depth)
{
    KilnToken at = parser->token;
    const char *word = kiln_parse_word(parser, "a dim");
    KilnDimTable *table = parser->module->dims;
    if (!word || at.kind == KILN_TOKEN_STRING || !kiln_parse_at(parser, '('))
        return word ? kiln_dim_name(table, word) : NULL;
    for (size_t i = 0; i < G_N_ELEMENTS(functions); i++) {
        const KilnDim *args[4];
        if (!g_str_equal(word, functions[i].name))
            continue;
        kiln_parse_advance(parser);
        if (!parse_arguments(parser, functions[i].separators, args, depth + 1))
            return NULL;
        return checked(parser, &at, functions[i].make(table, args));
    }
    kiln_parse_throw_at(parser, &at, KILN_ERROR_PARSE,
                        "expected floor, ceil, min, max, mod or select, found '%s'", word);
    return NULL;
}

static const KilnDim *
parse_factor(KilnParser *parser, int depth)
{
    int64_t number;
    if (depth > KILN_PARSE_MAX_DEPTH) {
        kiln_parse_throw(parser, "a dim of less depth");
        return NULL;
    }
    if (parser->token.kind == KILN_TOKEN_NUMBER)
        return kiln_parse_i64(parser, INT64_MIN, INT64_MAX, &number)
                   ? kiln_dim_number(parser->module->dims, number)
                   : NULL;
    if (!kiln_parse_accept(parser, '('))
        return parse_word(parser, depth);
    const KilnDim *inner = parse_sum(parser, depth + 1);
    return inner && kiln_parse_expect(parser, ')') ? inner : NULL;
}

static const KilnDim *
parse_term(KilnParser *parser, int depth)
{
    KilnDimTable *table = parser->module->dims;
    KilnToken at = parser->token;
    bool negative = kiln_parse_accept(parser, '-');
    const KilnDim *term = parse_factor(parser, depth);
    while (term && kiln_parse_accept(parser, '*')) {
        const KilnDim *factor = parse_factor(parser, depth);
        term = factor ? checked(parser, &at, kiln_dim_mul(table, term, factor)) : NULL;
    }
    return term && negative ? checked(parser, &at, kiln_dim_scale(table, term, -1)) : term;
}

/* A number with its sign goes on with a sum: the lexer takes `N-3` for `N` and `-3`. */
static bool
at_signed_number(const KilnParser *parser)
{
    return parser->token.kind == KILN_TOKEN_NUMBER && *parser->token.start == '-';
}

static const KilnDim *
parse_sum(KilnParser *parser, int depth)
{
    KilnDimTable *table = parser->module->dims;
    KilnToken at = parser->token;
    const KilnDim *sum = parse_term(parser, depth);
    while (sum) {
        if (!kiln_parse_accept(parser, '+') && !kiln_parse_at(parser, '-') &&
            !at_signed_number(parser))
            return sum;
        const KilnDim *term = parse_term(parser, depth);
        sum = term ? checked(parser, &at, kiln_dim_add(table, sum, term)) : NULL;
    }
    return NULL;
}

const KilnDim *
kiln_parse_dim(KilnParser *parser)
{
    return parse_sum(parser, 0);
}
