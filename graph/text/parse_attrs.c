/* SPDX-License-Identifier: Apache-2.0 */
/* Parses `{name=value, …}` by the attribute rows of an op or instruction. */
#include "graph/text/parse.h"
#include "graph/module/regions.h"

#include <string.h>

#define FIELD(T, info, attrs) (*(T *)((char *)(attrs) + (info)->offset))

/* `[a, b, …]`, each element read by @parse_one into a GArray. */
typedef bool (*ElementFn)(KilnParser *parser, GArray *list);

static bool
parse_list(KilnParser *parser, GArray *list, ElementFn parse_one)
{
    if (!kiln_parse_expect(parser, '['))
        return false;
    if (kiln_parse_accept(parser, ']'))
        return true;
    do {
        if (!parse_one(parser, list))
            return false;
    } while (kiln_parse_accept(parser, ','));
    return kiln_parse_expect(parser, ']');
}

static bool
parse_one_int(KilnParser *parser, GArray *list)
{
    int64_t value;
    if (!kiln_parse_i64(parser, G_MININT64, G_MAXINT64, &value))
        return false;
    g_array_append_val(list, value);
    return true;
}

static bool
parse_one_dim(KilnParser *parser, GArray *list)
{
    const KilnDim *dim = kiln_parse_dim(parser);
    if (dim)
        g_array_append_val(list, dim);
    return dim != NULL;
}

/* Integers of the IR: numbers and expressions. */
static bool
parse_open_ints(KilnParser *parser, KilnInts *out)
{
    g_autoptr(GArray) dims = g_array_new(FALSE, FALSE, sizeof(KilnDim *));
    if (!parse_list(parser, dims, parse_one_dim))
        return false;
    const KilnDim **open = (const KilnDim **)(gpointer)dims->data;
    g_autofree int64_t *numbers = g_new(int64_t, (gsize)dims->len + 1);
    for (guint i = 0; i < dims->len; i++) {
        numbers[i] = KILN_DIM_UNKNOWN;
        if (kiln_dim_is_number(open[i], &numbers[i]))
            open[i] = NULL;
    }
    *out = kiln_ints_make_open(parser->module->arena, numbers, dims->len ? open : NULL, dims->len);
    return true;
}

static bool
parse_one_float(KilnParser *parser, GArray *list)
{
    float value;
    if (!kiln_parse_f32(parser, &value))
        return false;
    g_array_append_val(list, value);
    return true;
}

static bool
parse_one_string(KilnParser *parser, GArray *list)
{
    const char *value = kiln_parse_name(parser, KILN_TOKEN_STRING, "a string");
    if (!value)
        return false;
    g_array_append_val(list, value);
    return true;
}

/* The three list structs look alike: a count and a pointer. */
static bool
parse_list_attr(KilnParser *parser, const KilnAttrInfo *info, void *attrs)
{
    bool ints = info->kind == KILN_ATTR_INTS, floats = info->kind == KILN_ATTR_FLOATS;
    guint size = ints ? sizeof(int64_t) : floats ? sizeof(float) : sizeof(char *);
    if (ints && parser->takes_open)
        return parse_open_ints(parser, &FIELD(KilnInts, info, attrs));
    ElementFn parse_one = ints ? parse_one_int : floats ? parse_one_float : parse_one_string;
    g_autoptr(GArray) list = g_array_new(FALSE, FALSE, size);
    if (!parse_list(parser, list, parse_one))
        return false;
    void *copy = kiln_arena_copy(parser->module->arena, list->data, (size_t)list->len * size);
    if (ints)
        FIELD(KilnInts, info, attrs) = (KilnInts){ .n = list->len, .v = copy };
    else if (floats)
        FIELD(KilnFloats, info, attrs) = (KilnFloats){ list->len, copy };
    else
        FIELD(KilnStrings, info, attrs) = (KilnStrings){ list->len, copy };
    return true;
}

static bool
parse_dtype(KilnParser *parser, KilnDType *out)
{
    if (parser->token.kind != KILN_TOKEN_WORD ||
        !kiln_dtype_from_name(kiln_parse_text(parser), out))
        return kiln_parse_throw(parser, "an element type such as f32");
    kiln_parse_advance(parser);
    return true;
}

KilnConstant *
kiln_parse_constant_name(KilnParser *parser)
{
    KilnToken at = parser->token;
    const char *name = kiln_parse_name(parser, KILN_TOKEN_SYMBOL, "the @name of a constant");
    if (!name)
        return NULL;
    KilnConstant *constant = kiln_module_find_constant(parser->module, name);
    if (!constant)
        kiln_parse_throw_at(parser, &at, KILN_ERROR_PARSE,
                            "expected a constant of the module, found '%.*s'", (int)at.length,
                            at.start);
    return constant;
}

static bool
parse_value(KilnParser *parser, const KilnAttrInfo *info, void *attrs)
{
    switch (info->kind) {
    case KILN_ATTR_INT:
        return kiln_parse_i64(parser, G_MININT64, G_MAXINT64, &FIELD(KilnC_INT, info, attrs));
    case KILN_ATTR_BOOL: {
        bool on = kiln_token_is(&parser->token, "true");
        if (!on && !kiln_token_is(&parser->token, "false"))
            return kiln_parse_throw(parser, "true or false");
        FIELD(KilnC_BOOL, info, attrs) = on;
        kiln_parse_advance(parser);
        return true;
    }
    case KILN_ATTR_FLOAT:
        return kiln_parse_f32(parser, &FIELD(KilnC_FLOAT, info, attrs));
    case KILN_ATTR_STRING:
        FIELD(KilnC_STRING, info, attrs) = NULL;
        if (kiln_parse_accept_word(parser, "_"))
            return true;
        FIELD(KilnC_STRING, info, attrs) = kiln_parse_name(parser, KILN_TOKEN_STRING, "a string");
        return FIELD(KilnC_STRING, info, attrs) != NULL;
    case KILN_ATTR_INTS:
    case KILN_ATTR_FLOATS:
    case KILN_ATTR_STRINGS:
        return parse_list_attr(parser, info, attrs);
    case KILN_ATTR_DTYPE:
        return parse_dtype(parser, &FIELD(KilnC_DTYPE, info, attrs));
    case KILN_ATTR_CONSTANT:
        FIELD(KilnC_CONSTANT, info, attrs) = kiln_parse_constant_name(parser);
        return FIELD(KilnC_CONSTANT, info, attrs) != NULL;
    case KILN_ATTR_FUNCTION: /* a block, not a value */
        break;
    }
    return kiln_parse_throw(parser, "an attribute that has a value");
}

static const KilnAttrInfo *
parse_attr_name(KilnParser *parser, const char *owner, const KilnAttrInfo *infos, uint32_t n)
{
    const char *name = kiln_parse_text(parser);
    const KilnAttrInfo *info =
        parser->token.kind == KILN_TOKEN_WORD ? kiln_attr_find(infos, n, name) : NULL;
    if (!info || info->kind == KILN_ATTR_FUNCTION || strcmp(name, KILN_ATTR_CALLEE) == 0) {
        g_autofree char *expected = g_strdup_printf("the name of an attribute of %s", owner);
        kiln_parse_throw(parser, expected);
        return NULL;
    }
    return info;
}

bool
kiln_parse_attrs(KilnParser *parser, const char *owner, const KilnAttrInfo *infos, uint32_t n,
                 void *attrs)
{
    if (!kiln_parse_accept(parser, '{') || kiln_parse_accept(parser, '}'))
        return true;
    g_autofree bool *seen = g_new0(bool, n + 1);
    do {
        KilnToken at = parser->token;
        const KilnAttrInfo *info = parse_attr_name(parser, owner, infos, n);
        if (!info)
            return false;
        if (seen[info - infos])
            return kiln_parse_throw_at(parser, &at, KILN_ERROR_PARSE,
                                       "attribute %s is stated twice", info->name);
        seen[info - infos] = true;
        kiln_parse_advance(parser);
        if (!kiln_parse_expect(parser, '=') || !parse_value(parser, info, attrs))
            return false;
    } while (kiln_parse_accept(parser, ','));
    return kiln_parse_expect(parser, '}');
}
