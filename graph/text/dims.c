/* SPDX-License-Identifier: Apache-2.0 */
/* Facts of the names of open dims, in the text form:
 *
 *     dims {
 *       N: least=4, most=96, multiple=4, hint=64
 *     }
 */
#include "graph/text/parse.h"
#include "graph/text/print.h"

/* --- printing --- */

static void
print_fact(const char *key, int64_t number, int64_t otherwise, const char **separator, GString *out)
{
    if (number == otherwise)
        return;
    g_string_append_printf(out, "%s%s=%" G_GINT64_FORMAT, *separator, key, number);
    *separator = ", ";
}

void
kiln_dims_print(KilnDimTable *table, GString *out)
{
    g_autoptr(GPtrArray) names = kiln_dim_table_stated(table);
    if (names->len)
        g_string_append(out, "dims {\n");
    for (guint i = 0; i < names->len; i++) {
        const KilnDim *name = g_ptr_array_index(names, i);
        const char *separator = ": ";
        KilnDimFacts facts;
        kiln_dim_facts(name, &facts);
        kiln_print_indent(out, KILN_TEXT_INDENT);
        kiln_dim_print(name, out);
        print_fact("least", facts.lo, 1, &separator, out);
        print_fact("most", facts.hi, KILN_DIM_MOST, &separator, out);
        print_fact("multiple", facts.divisor, 1, &separator, out);
        print_fact("hint", facts.hint, 0, &separator, out);
        g_string_append_c(out, '\n');
    }
    if (names->len)
        g_string_append(out, "}\n");
}

/* --- parsing --- */

static bool
parse_fact(KilnParser *parser, KilnDimFacts *facts)
{
    const struct {
        const char *key;
        int64_t *number, least, most;
    } keys[] = { { "least", &facts->lo, 0, G_MAXINT64 },
                 { "most", &facts->hi, 0, G_MAXINT64 },
                 { "multiple", &facts->divisor, 1, G_MAXINT32 },
                 { "hint", &facts->hint, 1, G_MAXINT32 } };
    for (size_t i = 0; i < G_N_ELEMENTS(keys); i++) {
        if (kiln_parse_accept_word(parser, keys[i].key))
            return kiln_parse_expect(parser, '=') &&
                   kiln_parse_i64(parser, keys[i].least, keys[i].most, keys[i].number);
    }
    return kiln_parse_throw(parser, "least, most, multiple or hint");
}

static bool
parse_name(KilnParser *parser)
{
    KilnDimTable *table = parser->module->dims;
    KilnToken at = parser->token;
    KilnDimFacts facts = { .lo = 1, .hi = KILN_DIM_MOST, .divisor = 1 }, known;
    const char *name = kiln_parse_word(parser, "the name of a dim or '}'");
    if (!name || !kiln_parse_expect(parser, ':'))
        return false;
    do {
        if (!parse_fact(parser, &facts))
            return false;
    } while (kiln_parse_accept(parser, ','));
    if (kiln_dim_facts(kiln_dim_name(table, name), &known) &&
        (known.lo != 1 || known.hi != KILN_DIM_MOST || known.divisor != 1 || known.hint))
        return kiln_parse_throw_at(parser, &at, KILN_ERROR_PARSE, "dim %s is stated twice", name);
    if (facts.hint && (facts.hint < facts.lo || facts.hint > facts.hi))
        return kiln_parse_throw_at(parser, &at, KILN_ERROR_PARSE,
                                   "dim %s: expected a hint within the bounds", name);
    g_autoptr(GError) inner = NULL;
    return kiln_dim_state(table, name, &facts, &inner) ||
           kiln_parse_throw_at(parser, &at, KILN_ERROR_PARSE, "dim %s", inner->message);
}

bool
kiln_parse_dim_facts(KilnParser *parser)
{
    if (!kiln_parse_expect(parser, '{'))
        return false;
    while (!kiln_parse_accept(parser, '}')) {
        if (!parse_name(parser))
            return false;
    }
    return true;
}
