/* SPDX-License-Identifier: Apache-2.0 */
/* Parses types: `f32[2,N,?]`, `f32[*]`, `f32[1,60,7,7]:aBcd16b`, `i8[2,3]
 * q(axis=0,[0.1,0.2],[0,0])`, `sequence(f32[?])`, `map(i64,f32)`. */
#include "graph/text/parse.h"

#include <string.h>

/* Almost all dims are numbers alone: then a comma or bracket follows. */
static bool
ends_dim(const KilnLexer *lexer)
{
    return lexer->at < lexer->end && (*lexer->at == ',' || *lexer->at == ']');
}

static bool
parse_dim(KilnParser *parser, KilnType *type)
{
    if (type->rank == KILN_MAX_RANK)
        return kiln_parse_throw(parser, "at most 8 dims");
    int d = type->rank++;
    type->dims[d] = KILN_DIM_UNKNOWN;
    if (kiln_parse_accept(parser, '?'))
        return true;
    KilnToken at = parser->token;
    if (at.kind == KILN_TOKEN_NUMBER && *at.start != '-' && ends_dim(&parser->lexer))
        return kiln_parse_i64(parser, 0, G_MAXINT64, &type->dims[d]);
    const KilnDim *dim = kiln_parse_dim(parser);
    if (!dim)
        return false;
    kiln_type_set_dim(type, d, dim);
    return type->dims[d] >= 0 || type->open[d] ||
           kiln_parse_throw_at(parser, &at, KILN_ERROR_PARSE,
                               "expected a dim of 0 or more, found %" G_GINT64_FORMAT,
                               type->dims[d]);
}

static bool
parse_shape(KilnParser *parser, KilnType *type)
{
    if (!kiln_parse_expect(parser, '['))
        return false;
    if (kiln_parse_accept(parser, '*')) {
        type->rank = KILN_RANK_UNKNOWN;
        return kiln_parse_expect(parser, ']');
    }
    if (parser->contents && kiln_parse_accept(parser, '-')) {
        type->rank = KILN_RANK_NONE;
        return kiln_parse_expect(parser, ']');
    }
    if (kiln_parse_accept(parser, ']'))
        return true;
    do {
        if (!parse_dim(parser, type))
            return false;
    } while (kiln_parse_accept(parser, ','));
    return kiln_parse_expect(parser, ']');
}

static bool
parse_layout(KilnParser *parser, KilnType *type)
{
    KilnToken at = parser->token;
    type->layout = kiln_parse_name(parser, KILN_TOKEN_WORD, "a layout such as aBcd16b");
    if (!type->layout)
        return false;
    int rank;
    int64_t dims[2 * KILN_MAX_RANK];
    return kiln_layout_physical(type, &rank, dims, parser->error) || kiln_parse_prefix(parser, &at);
}

static bool
parse_zero_point(KilnParser *parser, int32_t *out)
{
    int64_t value;
    if (!kiln_parse_i64(parser, G_MININT32, G_MAXINT32, &value))
        return false;
    *out = (int32_t)value;
    return true;
}

/* Lists of a quantization that were read, `[s,s,…],[z,z,…]`, by their text, which is on one line
 * and has a parenthesis behind it. A program states those of each weight twice, and they are what
 * most of its text consists of. */
typedef struct {
    const char *text;
    size_t length;
    KilnQuant quant;
} QuantLists;

/* Of all of the text, for lists may begin and end alike; eight bytes at once, for they are long. */
static guint
lists_hash(gconstpointer key)
{
    const QuantLists *lists = key;
    const char *text = lists->text;
    uint64_t hash = lists->length, word = 0;
    size_t left = lists->length;
    for (; left >= sizeof word; text += sizeof word, left -= sizeof word) {
        memcpy(&word, text, sizeof word);
        hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    }
    memcpy(&word, text, left);
    hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    return (guint)(hash >> 32); /* where every bit of the text has come */
}

static gboolean
lists_equal(gconstpointer a, gconstpointer b)
{
    const QuantLists *x = a, *y = b;
    return x->length == y->length && memcmp(x->text, y->text, x->length) == 0;
}

/* True where they begin at the current token and have been read before, which need not be done
 * again. */
static bool
repeat_lists(KilnParser *parser, KilnQuant *quant)
{
    KilnLexer *lexer = &parser->lexer;
    QuantLists key = { .text = parser->token.start };
    const char *end = memchr(lexer->at, ')', (size_t)(lexer->end - lexer->at));
    key.length = end ? (size_t)(end - key.text) : 0;
    const QuantLists *known =
        parser->lists && end ? g_hash_table_lookup(parser->lists, &key) : NULL;
    if (!known)
        return false;
    quant->n = known->quant.n;
    quant->scales = known->quant.scales;
    quant->zero_points = known->quant.zero_points;
    lexer->column += (uint32_t)(end - lexer->at);
    lexer->at = end;
    kiln_parse_advance(parser);
    return true;
}

static void
keep_lists(KilnParser *parser, const char *text, const char *end, const KilnQuant *quant)
{
    const size_t length = (size_t)(end - text);
    if (end == parser->lexer.end || *end != ')' || memchr(text, '\n', length))
        return;
    if (!parser->lists)
        parser->lists = g_hash_table_new_full(lists_hash, lists_equal, g_free, NULL);
    const QuantLists lists = { text, length, *quant };
    g_hash_table_add(parser->lists, g_memdup2(&lists, sizeof lists));
}

/* `[s, s, …],[z, z, …]`, up to the last bracket. */
static bool
parse_lists(KilnParser *parser, GArray *scales, GArray *zero_points)
{
    if (!kiln_parse_expect(parser, '['))
        return false;
    do {
        float scale;
        if (!kiln_parse_f32(parser, &scale))
            return false;
        g_array_append_val(scales, scale);
    } while (kiln_parse_accept(parser, ','));
    if (!kiln_parse_expect(parser, ']') || !kiln_parse_expect(parser, ',') ||
        !kiln_parse_expect(parser, '['))
        return false;
    do {
        int32_t zero_point;
        if (!parse_zero_point(parser, &zero_point))
            return false;
        g_array_append_val(zero_points, zero_point);
    } while (kiln_parse_accept(parser, ','));
    return kiln_parse_at(parser, ']') || kiln_parse_expect(parser, ']');
}

/* @at: where the quantization begins. */
static bool
parse_quant_lists(KilnParser *parser, const KilnToken *at, KilnQuant *quant)
{
    if (repeat_lists(parser, quant))
        return true;
    g_autoptr(GArray) scales = g_array_new(FALSE, FALSE, sizeof(float));
    g_autoptr(GArray) zero_points = g_array_new(FALSE, FALSE, sizeof(int32_t));
    const char *text = parser->token.start;
    if (!parse_lists(parser, scales, zero_points))
        return false;
    const char *end = parser->lexer.at;
    kiln_parse_advance(parser);
    if (scales->len != zero_points->len)
        return kiln_parse_throw_at(parser, at, KILN_ERROR_PARSE,
                                   "expected as many zero points as scales (%u), found %u",
                                   scales->len, zero_points->len);
    KilnArena *arena = parser->module->arena;
    quant->n = scales->len;
    quant->scales = kiln_arena_copy(arena, scales->data, scales->len * sizeof(float));
    quant->zero_points =
        kiln_arena_copy(arena, zero_points->data, zero_points->len * sizeof(int32_t));
    keep_lists(parser, text, end, quant);
    return true;
}

static bool
parse_quant_axis(KilnParser *parser, const KilnType *type, const KilnToken *at, KilnQuant *quant)
{
    int64_t axis;
    if (!kiln_parse_expect(parser, '=') || !kiln_parse_i64(parser, 0, KILN_MAX_RANK - 1, &axis) ||
        !kiln_parse_expect(parser, ','))
        return false;
    quant->axis = (int)axis;
    if (!parse_quant_lists(parser, at, quant))
        return false;
    if (type->rank >= 0 && axis >= type->rank)
        return kiln_parse_throw_at(parser, at, KILN_ERROR_PARSE,
                                   "expected an axis below the rank %d, found %d", type->rank,
                                   quant->axis);
    if (type->rank >= 0 && type->dims[axis] >= 0 && type->dims[axis] != quant->n)
        return kiln_parse_throw_at(parser, at, KILN_ERROR_PARSE,
                                   "expected %" G_GINT64_FORMAT " scales, found %" G_GINT64_FORMAT,
                                   type->dims[axis], (int64_t)quant->n);
    return true;
}

/* `(scale,zero)` or `(axis=N,[scales],[zeros])` behind `q`. */
static bool
parse_quant(KilnParser *parser, KilnType *type)
{
    KilnToken at = parser->token;
    KilnQuant quant = { .axis = -1, .n = 1 };
    if (!kiln_parse_expect(parser, '('))
        return false;
    if (kiln_parse_accept_word(parser, "axis")) {
        if (!parse_quant_axis(parser, type, &at, &quant))
            return false;
    } else {
        float scale;
        int32_t zero_point;
        if (!kiln_parse_f32(parser, &scale) || !kiln_parse_expect(parser, ',') ||
            !parse_zero_point(parser, &zero_point))
            return false;
        quant.scales = kiln_arena_copy(parser->module->arena, &scale, sizeof scale);
        quant.zero_points = kiln_arena_copy(parser->module->arena, &zero_point, sizeof zero_point);
    }
    type->quant = kiln_arena_copy(parser->module->arena, &quant, sizeof quant);
    return kiln_parse_expect(parser, ')');
}

static bool
parse_dtype(KilnParser *parser, const char *expected, KilnDType *out)
{
    if (parser->token.kind != KILN_TOKEN_WORD ||
        !kiln_dtype_from_name(kiln_parse_text(parser), out))
        return kiln_parse_throw(parser, expected);
    kiln_parse_advance(parser);
    return true;
}

/* Items inside each other: an optional of a sequence of maps is the deepest that there is. */
enum {
    MAX_CONTENTS = 3
};

static bool
parse_key(KilnParser *parser, KilnDType *out)
{
    static const char expected[] = "i64 or string";
    const KilnToken at = parser->token;
    if (!parse_dtype(parser, expected, out))
        return false;
    return *out == KILN_DTYPE_i64 || *out == KILN_DTYPE_string ||
           kiln_parse_throw_at(parser, &at, KILN_ERROR_PARSE, "expected %s, found '%s'", expected,
                               kiln_dtype_name(*out));
}

/* What a sequence or optional has; maps have a key. */
static bool
parse_contents(KilnParser *parser, KilnType *type)
{
    KilnContents contents = { .type = { 0 } };
    if (parser->contents == MAX_CONTENTS)
        return kiln_parse_throw(parser, "at most three types inside each other");
    if (!kiln_parse_expect(parser, '('))
        return false;
    if (type->dtype == KILN_DTYPE_map) {
        if (!parse_key(parser, &contents.key) || !kiln_parse_expect(parser, ',') ||
            !parse_dtype(parser, "an element type such as f32", &contents.type.dtype))
            return false;
    } else {
        parser->contents++;
        bool good = kiln_parse_type(parser, &contents.type);
        parser->contents--;
        if (!good)
            return false;
    }
    type->contents = kiln_arena_copy(parser->module->arena, &contents, sizeof contents);
    return kiln_parse_expect(parser, ')');
}

bool
kiln_parse_element_type(KilnParser *parser, KilnType *out)
{
    KilnType type = kiln_type_unranked(KILN_DTYPE_f32);
    if (!parse_dtype(parser, "an element type such as f32", &type.dtype))
        return false;
    if (kiln_dtype_is_item(type.dtype)) {
        type.rank = 0;
        *out = type;
        return parse_contents(parser, out);
    }
    if (kiln_parse_accept_word(parser, "q") && !parse_quant(parser, &type))
        return false;
    *out = type;
    return true;
}

bool
kiln_parse_type(KilnParser *parser, KilnType *out)
{
    KilnType type = { 0 };
    if (!parse_dtype(parser, "a type such as f32[2,N,3]", &type.dtype))
        return false;
    if (kiln_dtype_is_item(type.dtype)) {
        *out = type;
        return parse_contents(parser, out);
    }
    if (!parse_shape(parser, &type))
        return false;
    if (kiln_parse_accept(parser, ':') && !parse_layout(parser, &type))
        return false;
    if (kiln_parse_accept_word(parser, "q") && !parse_quant(parser, &type))
        return false;
    *out = type;
    return true;
}

bool
kiln_parse_types(KilnParser *parser, GArray *types)
{
    do {
        KilnType type;
        if (!kiln_parse_type(parser, &type))
            return false;
        g_array_append_val(types, type);
    } while (kiln_parse_accept(parser, ','));
    return true;
}
