/* SPDX-License-Identifier: Apache-2.0 */
/* The block `metadata { … }`, both ways: a line for each thing that the model says of itself. */
#include "graph/base/names.h"
#include "graph/text/lexer.h"
#include "graph/text/parse.h"
#include "graph/text/print.h"

/* --- printing --- */

static void
print_text(const char *name, const char *text, GString *out)
{
    if (!*text)
        return;
    kiln_print_indent(out, KILN_TEXT_INDENT);
    g_string_append_printf(out, "%s = ", name);
    kiln_string_print(text, out);
    g_string_append_c(out, '\n');
}

static void
print_number(const char *name, int64_t number, GString *out)
{
    if (!number)
        return;
    kiln_print_indent(out, KILN_TEXT_INDENT);
    g_string_append_printf(out, "%s = %" G_GINT64_FORMAT "\n", name, number);
}

static void
print_key(const char *word, const char *key, GString *out)
{
    kiln_print_indent(out, KILN_TEXT_INDENT);
    g_string_append_printf(out, "%s ", word);
    kiln_string_print(key, out);
    g_string_append(out, " = ");
}

void
kiln_metadata_print(const KilnMetadata *metadata, GString *out)
{
    g_string_append(out, "metadata {\n");
#define X(field, number) print_text(#field, metadata->field, out);
    KILN_METADATA_TEXTS(X)
#undef X
#define X(field, number) print_number(#field, metadata->field, out);
    KILN_METADATA_NUMBERS(X)
#undef X
    for (unsigned i = 0; i < metadata->n_opsets; i++) {
        print_key("opset", metadata->opsets[i].domain, out);
        g_string_append_printf(out, "%" G_GINT64_FORMAT "\n", metadata->opsets[i].version);
    }
    for (unsigned i = 0; i < metadata->n_properties; i++) {
        print_key("property", metadata->properties[i].key, out);
        kiln_string_print(metadata->properties[i].value, out);
        g_string_append_c(out, '\n');
    }
    g_string_append(out, "}\n");
}

/* --- parsing --- */

static const char *
parse_string(KilnParser *parser)
{
    return kiln_parse_name(parser, KILN_TOKEN_STRING, "a string");
}

static bool
parse_number(KilnParser *parser, int64_t *out)
{
    return kiln_parse_expect(parser, '=') && kiln_parse_i64(parser, INT64_MIN, INT64_MAX, out);
}

static bool
parse_text(KilnParser *parser, const char **out)
{
    return kiln_parse_expect(parser, '=') && (*out = parse_string(parser));
}

static bool
parse_line(KilnParser *parser, KilnMetadata *metadata, GArray *opsets, GArray *properties)
{
#define X(field, number)                                                                           \
    if (kiln_parse_accept_word(parser, #field))                                                    \
        return parse_text(parser, &metadata->field);
    KILN_METADATA_TEXTS(X)
#undef X
#define X(field, number)                                                                           \
    if (kiln_parse_accept_word(parser, #field))                                                    \
        return parse_number(parser, &metadata->field);
    KILN_METADATA_NUMBERS(X)
#undef X
    if (kiln_parse_accept_word(parser, "opset")) {
        KilnOpset opset = { .domain = parse_string(parser) };
        if (!opset.domain || !parse_number(parser, &opset.version))
            return false;
        g_array_append_val(opsets, opset);
        return true;
    }
    if (kiln_parse_accept_word(parser, "property")) {
        KilnProperty property = { .key = parse_string(parser) };
        if (!property.key || !parse_text(parser, &property.value))
            return false;
        g_array_append_val(properties, property);
        return true;
    }
#define X(field, number) #field ", "
    return kiln_parse_throw(parser, KILN_METADATA_TEXTS(X)
                                        KILN_METADATA_NUMBERS(X) "opset, property or '}'");
#undef X
}

bool
kiln_parse_metadata(KilnParser *parser)
{
    KilnArena *arena = parser->module->arena;
    KilnMetadata *metadata = &parser->module->metadata;
    g_autoptr(GArray) opsets = g_array_new(FALSE, FALSE, sizeof(KilnOpset));
    g_autoptr(GArray) properties = g_array_new(FALSE, FALSE, sizeof(KilnProperty));
    if (!kiln_metadata_is_empty(metadata))
        return kiln_parse_throw(parser, "one block 'metadata'");
    if (!kiln_parse_expect(parser, '{'))
        return false;
    while (!kiln_parse_accept(parser, '}')) {
        if (!parse_line(parser, metadata, opsets, properties))
            return false;
    }
    metadata->n_opsets = opsets->len;
    metadata->opsets = kiln_arena_copy(arena, opsets->data, opsets->len * sizeof(KilnOpset));
    metadata->n_properties = properties->len;
    metadata->properties =
        kiln_arena_copy(arena, properties->data, properties->len * sizeof(KilnProperty));
    return true;
}
