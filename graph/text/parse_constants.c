/* SPDX-License-Identifier: Apache-2.0 */
/* Parses `constants { @name = payload : type }`. A payload is read once its type is known: the
 * lexer jumps to the type and back. Bytes of files are mapped and shared, never copied. */
#include "graph/text/parse.h"

#include "graph/base/alloc.h"
#include "graph/base/beside.h"
#include "graph/base/map_file.h"
#include "graph/module/layout.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static GBytes *
new_payload(KilnParser *parser, const KilnToken *at, size_t size, void **out_data)
{
    GBytes *bytes = kiln_bytes_new(1, size, out_data, parser->error);
    if (!bytes)
        kiln_parse_prefix(parser, at);
    return bytes;
}

/* --- inline payloads --- */

/* @n was counted when the payload was skipped: nothing is allocated for elements that are not
 * there. */
static bool
check_count(KilnParser *parser, const KilnType *type, int64_t n)
{
    int64_t expected = kiln_type_bytes(type) / (int64_t)kiln_dtype_size(type->dtype);
    return n == expected ||
           kiln_parse_throw_at(parser, &parser->token, KILN_ERROR_PARSE,
                               "expected %" G_GINT64_FORMAT " elements, found %" G_GINT64_FORMAT,
                               expected, n);
}

static KilnTensor *
parse_inline(KilnParser *parser, const KilnType *type, int64_t n)
{
    KilnToken at = parser->token;
    size_t size = kiln_dtype_size(type->dtype);
    if (!kiln_parse_expect(parser, '['))
        return NULL;
    void *memory;
    g_autoptr(GBytes) bytes = new_payload(parser, &at, (size_t)n * size, &memory);
    if (!bytes)
        return NULL;
    for (int64_t i = 0; i < n; i++) {
        if ((i && !kiln_parse_expect(parser, ',')) ||
            !kiln_parse_element(parser, type->dtype, memory, i))
            return NULL;
    }
    if (!kiln_parse_expect(parser, ']'))
        return NULL;
    return kiln_tensor_new_data(type, bytes, parser->error);
}

/* Appends the string at the current token to @bytes, and its end to @ends. */
static bool
parse_string(KilnParser *parser, GString *bytes, GArray *ends)
{
    if (parser->token.kind != KILN_TOKEN_STRING)
        return kiln_parse_throw(parser, "a string");
    kiln_token_append(&parser->token, bytes);
    gsize end = bytes->len;
    g_array_append_val(ends, end);
    kiln_parse_advance(parser);
    return true;
}

static KilnTensor *
new_texts(KilnParser *parser, const KilnToken *at, const KilnType *type, const GString *bytes,
          const GArray *ends)
{
    g_autofree KilnText *texts = g_new(KilnText, ends->len + 1);
    gsize begin = 0;
    for (guint i = 0; i < ends->len; i++) {
        gsize end = g_array_index(ends, gsize, i);
        texts[i] = (KilnText){ bytes->str + begin, end - begin };
        begin = end;
    }
    KilnTensor *tensor = kiln_tensor_new_texts(type, texts, ends->len, parser->error);
    if (!tensor)
        kiln_parse_prefix(parser, at);
    return tensor;
}

static KilnTensor *
parse_strings(KilnParser *parser, const KilnType *type)
{
    KilnToken at = parser->token;
    g_autoptr(GArray) ends = g_array_new(FALSE, FALSE, sizeof(gsize));
    g_autoptr(GString) bytes = g_string_new(NULL);
    if (!kiln_parse_expect(parser, '['))
        return NULL;
    while (!kiln_parse_at(parser, ']')) {
        if ((ends->len && !kiln_parse_expect(parser, ',')) || !parse_string(parser, bytes, ends))
            return NULL;
    }
    kiln_parse_advance(parser);
    return new_texts(parser, &at, type, bytes, ends);
}

/* Every element is one string, which the tensor holds once. */
static KilnTensor *
parse_string_splat(KilnParser *parser, const KilnType *type)
{
    KilnToken at = parser->token;
    const KilnType scalar = kiln_type_scalar(KILN_DTYPE_string);
    g_autoptr(GArray) ends = g_array_new(FALSE, FALSE, sizeof(gsize));
    g_autoptr(GString) bytes = g_string_new(NULL);
    if (!kiln_parse_expect(parser, '(') || !parse_string(parser, bytes, ends) ||
        !kiln_parse_expect(parser, ')'))
        return NULL;
    g_autoptr(KilnTensor) one = new_texts(parser, &at, &scalar, bytes, ends);
    return one ? kiln_tensor_new_splat_bits(type, g_bytes_get_data(one->bytes, NULL)) : NULL;
}

/* --- generated payloads --- */

static KilnTensor *
parse_splat(KilnParser *parser, const KilnType *type)
{
    uint8_t element[8] = { 0 };
    if (!kiln_parse_element(parser, type->dtype, element, 0))
        return NULL;
    return kiln_tensor_new_splat_bits(type, element);
}

static bool
parse_field(KilnParser *parser, const char *name)
{
    return kiln_parse_expect_word(parser, name) && kiln_parse_expect(parser, '=');
}

static KilnTensor *
parse_normal(KilnParser *parser, const KilnType *type)
{
    uint64_t seed;
    double std;
    if (!parse_field(parser, "seed") || !kiln_parse_u64(parser, &seed) ||
        !kiln_parse_expect(parser, ',') || !parse_field(parser, "std") ||
        !kiln_parse_f64(parser, &std))
        return NULL;
    return kiln_tensor_new_normal(type, seed, std);
}

static KilnTensor *
parse_uniform(KilnParser *parser, const KilnType *type)
{
    uint64_t seed;
    double low, high;
    if (!parse_field(parser, "seed") || !kiln_parse_u64(parser, &seed) ||
        !kiln_parse_expect(parser, ',') || !parse_field(parser, "low") ||
        !kiln_parse_f64(parser, &low) || !kiln_parse_expect(parser, ',') ||
        !parse_field(parser, "high") || !kiln_parse_f64(parser, &high))
        return NULL;
    return kiln_tensor_new_uniform(type, seed, low, high);
}

/* --- base64 --- */

/* Bytes that @length characters stand for; -1 where they are no base64. */
static int64_t
base64_size(const char *text, size_t length)
{
    size_t digits = length;
    while (digits && length - digits < 2 && text[digits - 1] == '=')
        digits--;
    for (size_t i = 0; i < digits; i++) {
        if (!g_ascii_isalnum(text[i]) && text[i] != '+' && text[i] != '/')
            return -1;
    }
    return length % 4 ? -1 : (int64_t)(length / 4 * 3 - (length - digits));
}

static KilnTensor *
parse_base64(KilnParser *parser, const KilnType *type)
{
    KilnToken at = parser->token;
    if (at.kind != KILN_TOKEN_STRING) {
        kiln_parse_throw(parser, "a string in base64");
        return NULL;
    }
    kiln_parse_advance(parser);
    const char *text = at.start + 1;
    size_t length = at.length - 2;
    const bool strings = type->dtype == KILN_DTYPE_string;
    int64_t found = base64_size(text, length),
            expected = strings ? MAX(found, (int64_t)0) : kiln_tensor_stored_bytes(type);
    if (found != expected) {
        kiln_parse_throw_at(parser, &at, KILN_ERROR_PARSE,
                            "expected %" G_GINT64_FORMAT " bytes in base64, found %s", expected,
                            found < 0 ? "no base64" : "another number");
        return NULL;
    }
    void *memory;
    g_autoptr(GBytes) bytes = new_payload(parser, &at, (size_t)expected, &memory);
    if (!bytes)
        return NULL;
    gint state = 0;
    guint save = 0;
    g_base64_decode_step(text, length, memory, &state, &save);
    KilnTensor *tensor = kiln_tensor_new_stored(type, bytes, parser->error);
    if (!tensor)
        kiln_parse_prefix(parser, &at);
    return tensor;
}

/* --- files --- */

/* Mapped once for all constants that lie in it. */
static GBytes *
map_file(KilnParser *parser, const KilnToken *at, const char *path)
{
    GBytes *known = g_hash_table_lookup(parser->files, path);
    if (known)
        return known;
    g_autoptr(GError) why = NULL;
    GBytes *bytes = kiln_map_file(path, &why);
    if (!bytes) {
        kiln_parse_throw_at(parser, at, KILN_ERROR_IO, "%s", why->message);
        return NULL;
    }
    g_hash_table_insert(parser->files, g_strdup(path), bytes);
    return bytes;
}

/* The real path of the directory that the text stands in. Free with free(). */
static char *
directory_of(KilnParser *parser, const KilnToken *at)
{
    const char *path = parser->module->path;
    if (!path) {
        kiln_parse_throw_at(
            parser, at, KILN_ERROR_PARSE,
            "expected a text from a file, which lies beside the file of file(...), "
            "found one from memory or standard input (kiln opt --inline writes a text "
            "that names no file)");
        return NULL;
    }
    g_autofree char *name = g_path_get_dirname(path);
    char *directory = realpath(name, NULL);
    if (!directory)
        kiln_parse_throw_at(parser, at, KILN_ERROR_IO, "%s: %s", name, g_strerror(errno));
    return directory;
}

/* The file's path without links, below the text's directory. */
static char *
resolve_path(KilnParser *parser, const KilnToken *at, const char *stated)
{
    char *path = NULL, *directory = directory_of(parser, at);
    if (!directory)
        return NULL;
    KilnBeside found = kiln_beside_find(directory, stated, &path);
    if (found == KILN_BESIDE_BAD_NAME || found == KILN_BESIDE_OUTSIDE)
        kiln_parse_throw_at(parser, at, KILN_ERROR_PARSE,
                            "expected a path below the text's directory, found '%s'%s", stated,
                            found == KILN_BESIDE_OUTSIDE ? ", a link that leads out of it" : "");
    else if (found != KILN_BESIDE_FOUND)
        kiln_parse_throw_at(parser, at, KILN_ERROR_IO, "%s/%s: no such file", directory, stated);
    free(directory);
    return path;
}

static KilnTensor *
parse_file(KilnParser *parser, const KilnType *type)
{
    KilnToken at = parser->token;
    if (at.kind != KILN_TOKEN_STRING) {
        kiln_parse_throw(parser, "a path as a string");
        return NULL;
    }
    g_autofree char *stated = kiln_token_text(&at);
    kiln_parse_advance(parser);
    int64_t offset, size, expected = kiln_tensor_stored_bytes(type);
    if (!kiln_parse_expect(parser, ',') || !kiln_parse_i64(parser, 0, G_MAXINT64, &offset) ||
        !kiln_parse_expect(parser, ',') || !kiln_parse_i64(parser, 0, G_MAXINT64, &size))
        return NULL;
    if (size != expected) {
        kiln_parse_throw_at(parser, &at, KILN_ERROR_PARSE,
                            "expected %" G_GINT64_FORMAT " bytes, found %" G_GINT64_FORMAT,
                            expected, size);
        return NULL;
    }
    g_autofree char *path = resolve_path(parser, &at, stated);
    GBytes *whole = path ? map_file(parser, &at, path) : NULL;
    if (!whole)
        return NULL;
    int64_t length = (int64_t)g_bytes_get_size(whole);
    if (offset > length || size > length - offset) {
        kiln_parse_throw_at(parser, &at, KILN_ERROR_IO,
                            "%s: expected at least %" G_GINT64_FORMAT
                            " bytes from %" G_GINT64_FORMAT
                            " on, found a file of %" G_GINT64_FORMAT,
                            path, size, offset, length);
        return NULL;
    }
    g_autoptr(GBytes) bytes = g_bytes_new_from_bytes(whole, (gsize)offset, (gsize)size);
    KilnTensor *tensor = kiln_tensor_new_stored(type, bytes, parser->error);
    if (tensor) {
        tensor->file = g_steal_pointer(&path);
        tensor->file_offset = offset;
        tensor->mapped = true;
    }
    return tensor;
}

/* --- entries --- */

typedef struct {
    const char *name;
    KilnTensor *(*parse)(KilnParser *parser, const KilnType *type); /* between parentheses */
} Recipe;

static const Recipe recipes[] = {
    { "splat", parse_splat },
    { "random_normal", parse_normal },
    { "random_uniform", parse_uniform },
    { "base64", parse_base64 },
    { "file", parse_file },
};

static KilnTensor *
parse_payload(KilnParser *parser, const KilnType *type, int64_t n_inline)
{
    bool strings = type->dtype == KILN_DTYPE_string;
    if (kiln_parse_at(parser, '[')) {
        if (!check_count(parser, type, n_inline))
            return NULL;
        return strings ? parse_strings(parser, type) : parse_inline(parser, type, n_inline);
    }
    if (kiln_parse_accept_word(parser, "sparse"))
        return kiln_tensor_new_sparse(type);
    if (kiln_parse_accept_word(parser, "extern"))
        return kiln_tensor_new_extern(type);
    if (strings && kiln_parse_accept_word(parser, "splat"))
        return parse_string_splat(parser, type);
    if (!strings && kiln_parse_accept_word(parser, "iota"))
        return kiln_tensor_new_iota(type);
    for (size_t i = 0; i < G_N_ELEMENTS(recipes); i++) {
        if ((strings && recipes[i].parse != parse_base64) ||
            !kiln_parse_accept_word(parser, recipes[i].name))
            continue;
        if (!kiln_parse_expect(parser, '('))
            return NULL;
        g_autoptr(KilnTensor) tensor = recipes[i].parse(parser, type);
        return tensor && kiln_parse_expect(parser, ')') ? g_steal_pointer(&tensor) : NULL;
    }
    kiln_parse_throw(parser, strings ? "strings such as [\"a\", \"b\"]"
                                     : "a payload such as [1, 2] or splat(0.5)");
    return NULL;
}

/* To the ':' behind the payload; counts the elements of an inline one. */
static bool
skip_payload(KilnParser *parser, int64_t *out_elements)
{
    int64_t commas = 0, tokens = 0;
    for (int depth = 0; depth > 0 || !kiln_parse_at(parser, ':'); tokens++) {
        const KilnToken *token = &parser->token;
        bool word = token->kind == KILN_TOKEN_WORD || token->kind == KILN_TOKEN_NUMBER ||
                    token->kind == KILN_TOKEN_STRING;
        bool open = token->kind == KILN_TOKEN_PUNCT && strchr("([", token->punct);
        bool close = token->kind == KILN_TOKEN_PUNCT && strchr(")]", token->punct) && depth;
        bool separator = token->kind == KILN_TOKEN_PUNCT && strchr(",=", token->punct) && depth;
        if (!word && !open && !close && !separator)
            return kiln_parse_throw(parser, tokens ? "the payload to go on, or ': type'"
                                                   : "a payload such as [1, 2] or splat(0.5)");
        depth += open ? 1 : close ? -1 : 0;
        commas += kiln_parse_at(parser, ',');
        kiln_parse_advance(parser);
    }
    *out_elements = tokens <= 2 ? 0 : commas + 1; /* `[` and `]` alone */
    return true;
}

/* A generated payload has the elements of its type and no more. */
static bool
fits_layout(const KilnType *type, const KilnTensor *tensor)
{
    KilnLayout layout;
    bool stored = tensor->kind == KILN_TENSOR_DATA || tensor->kind == KILN_TENSOR_EXTERN;
    return !type->layout || stored ||
           (kiln_layout_of(type, &layout) && kiln_layout_is_whole(type, &layout));
}

static bool
parse_entry(KilnParser *parser)
{
    KilnToken at = parser->token;
    const char *name =
        kiln_parse_name(parser, KILN_TOKEN_SYMBOL, "the @name of a constant, or '}'");
    if (!name || !kiln_parse_expect(parser, '='))
        return false;
    if (kiln_module_find_constant(parser->module, name))
        return kiln_parse_throw_at(parser, &at, KILN_ERROR_PARSE, "two constants are called @%s",
                                   name);
    KilnLexer payload_lexer = parser->lexer;
    KilnToken payload = parser->token;
    KilnType type;
    int64_t elements = 0;
    if (!skip_payload(parser, &elements) || !kiln_parse_expect(parser, ':') ||
        !kiln_parse_type(parser, &type))
        return false;
    KilnLexer behind_lexer = parser->lexer;
    KilnToken behind = parser->token;
    if (!kiln_type_is_static(&type) || kiln_type_bytes(&type) < 0)
        return kiln_parse_throw_at(parser, &at, KILN_ERROR_PARSE,
                                   "@%s: expected a type whose size is known, found another", name);
    parser->lexer = payload_lexer;
    parser->token = payload;
    g_autoptr(KilnTensor) tensor = parse_payload(parser, &type, elements);
    if (!tensor || (!kiln_parse_at(parser, ':') && !kiln_parse_expect(parser, ':')))
        return false;
    if (!fits_layout(&type, tensor))
        return kiln_parse_throw_at(parser, &payload, KILN_ERROR_PARSE,
                                   "@%s: expected stored bytes for the padding of layout %s, found "
                                   "a generated payload",
                                   name, type.layout);
    parser->lexer = behind_lexer;
    parser->token = behind;
    kiln_module_add_constant(parser->module, name, g_steal_pointer(&tensor), &type);
    return true;
}

bool
kiln_parse_constants(KilnParser *parser)
{
    if (!kiln_parse_expect(parser, '{'))
        return false;
    while (!kiln_parse_accept(parser, '}')) {
        if (!parse_entry(parser))
            return false;
    }
    return true;
}
