/* SPDX-License-Identifier: Apache-2.0 */
/* The attributes of a plug-in's operator as columns of typed attributes. An entry of `attributes`
 * says how many values of which column belong to a name:
 *
 *     attributes=["int 1 axis", "floats 2 scales", "tensor f32 2,3 table", "string 1 mode"]
 *     ints=[1]  floats=[0.5, 0.25]  texts=["AAAAAA…", "nearest"]
 *
 * So all that knows typed attributes copies, compares, prints and parses them. */
#include "graph/plugin/plugin.h"

#include "graph/op/plugin.h"

#include <string.h>

static const struct {
    const char *word, *name;
    bool list;
} kinds[] = {
    [KILN_OP_ATTRIBUTE_INT] = { "int", "an integer", false },
    [KILN_OP_ATTRIBUTE_FLOAT] = { "float", "a float", false },
    [KILN_OP_ATTRIBUTE_STRING] = { "string", "a text", false },
    [KILN_OP_ATTRIBUTE_INTS] = { "ints", "integers", true },
    [KILN_OP_ATTRIBUTE_FLOATS] = { "floats", "floats", true },
    [KILN_OP_ATTRIBUTE_STRINGS] = { "strings", "texts", true },
    [KILN_OP_ATTRIBUTE_TENSOR] = { "tensor", "a tensor", false },
};

const char *
kiln_plugin_kind_name(KilnOpAttributeKind kind)
{
    return kinds[kind].name;
}

bool
kiln_node_is_plugin(const KilnNode *node)
{
    return node->op == KILN_OP_plugin_op || node->op == KILN_OP_plugin_effect;
}

KilnPluginColumns
kiln_node_plugin_columns(const KilnNode *node)
{
    if (node->op == KILN_OP_plugin_op)
        return KILN_PLUGIN_COLUMNS(kiln_attrs(node, plugin_op));
    return KILN_PLUGIN_COLUMNS(kiln_attrs(node, plugin_effect));
}

/* --- reading --- */

/* The word in front of the next blank, which *@text is moved behind. */
static bool
next_word(const char **text, char *out, size_t room)
{
    const char *end = strchr(*text, ' ');
    size_t length = end ? (size_t)(end - *text) : 0;
    if (!length || length >= room)
        return false;
    memcpy(out, *text, length);
    out[length] = '\0';
    *text = end + 1;
    return true;
}

/* "f32", then "2,3", or "-" for a scalar. */
static bool
read_type(const char **text, KilnType *out)
{
    char word[256];
    KilnDType dtype;
    if (!next_word(text, word, sizeof word) || !kiln_dtype_from_name(word, &dtype) ||
        kiln_dtype_is_address(dtype) || !next_word(text, word, sizeof word))
        return false;
    int64_t dims[KILN_MAX_RANK];
    int rank = 0;
    for (char *at = strcmp(word, "-") == 0 ? NULL : word; at;) {
        char *end;
        if (rank == KILN_MAX_RANK || !g_ascii_isdigit(*at))
            return false;
        dims[rank++] = g_ascii_strtoll(at, &end, 10);
        if (*end && *end != ',')
            return false;
        at = *end ? end + 1 : NULL;
    }
    *out = kiln_type_make(dtype, rank, dims);
    return kiln_type_bytes(out) >= 0;
}

static bool
read_count(const char **text, uint32_t *out)
{
    char word[32];
    guint64 n;
    if (!next_word(text, word, sizeof word) ||
        !g_ascii_string_to_unsigned(word, 10, 0, G_MAXUINT32, &n, NULL))
        return false;
    *out = (uint32_t)n;
    return true;
}

static bool
read_entry(const char *text, KilnPluginAttribute *out)
{
    char word[32];
    if (!next_word(&text, word, sizeof word))
        return false;
    unsigned kind = 0;
    while (kind < G_N_ELEMENTS(kinds) && strcmp(word, kinds[kind].word) != 0)
        kind++;
    if (kind == G_N_ELEMENTS(kinds))
        return false;
    out->kind = (KilnOpAttributeKind)kind;
    out->n = 1;
    bool good = kind == KILN_OP_ATTRIBUTE_TENSOR ? read_type(&text, &out->type)
                                                 : read_count(&text, &out->n);
    out->name = text;
    return good && *text && (kinds[kind].list || out->n == 1);
}

/* True if @text is base64 of as many bytes as @type has. */
static bool
is_payload(const char *text, const KilnType *type)
{
    size_t length = strlen(text), padding = 0;
    for (size_t i = 0; i < length; i++) {
        bool pads = text[i] == '=' && i + 2 >= length;
        padding += pads;
        if (!pads && !g_ascii_isalnum(text[i]) && text[i] != '+' && text[i] != '/')
            return false;
    }
    return length % 4 == 0 && (int64_t)(length / 4 * 3 - padding) == kiln_type_bytes(type);
}

bool
kiln_plugin_next_attribute(const KilnPluginColumns *columns, KilnPluginPlace *place,
                           KilnPluginAttribute *out, bool *broken)
{
    *broken = false;
    if (place->next == columns->attributes.n) {
        *broken = place->ints != columns->ints.n || place->floats != columns->floats.n ||
                  place->texts != columns->texts.n;
        return false;
    }
    *broken = true;
    if (!read_entry(columns->attributes.v[place->next], out))
        return false;
    bool is_int = out->kind == KILN_OP_ATTRIBUTE_INT || out->kind == KILN_OP_ATTRIBUTE_INTS;
    bool is_float = out->kind == KILN_OP_ATTRIBUTE_FLOAT || out->kind == KILN_OP_ATTRIBUTE_FLOATS;
    uint32_t *at = is_int ? &place->ints : is_float ? &place->floats : &place->texts;
    uint32_t there = is_int ? columns->ints.n : is_float ? columns->floats.n : columns->texts.n;
    if (out->n > there - *at)
        return false;
    out->first = *at;
    if (out->kind == KILN_OP_ATTRIBUTE_TENSOR &&
        !is_payload(columns->texts.v[out->first], &out->type))
        return false;
    *at += out->n;
    place->next++;
    *broken = false;
    return true;
}

void
kiln_plugin_decode(const KilnPluginColumns *columns, const KilnPluginAttribute *attribute, void *to)
{
    const char *text = columns->texts.v[attribute->first];
    int state = 0;
    guint save = 0;
    g_base64_decode_step(text, strlen(text), to, &state, &save);
}

/* --- checking --- */

const KilnOpAttribute *
kiln_plugin_attribute_of(const KilnOpDescription *op, const char *name)
{
    for (unsigned i = 0; i < op->n_attributes; i++) {
        if (strcmp(op->attributes[i].name, name) == 0)
            return &op->attributes[i];
    }
    return NULL;
}

static gboolean
check_required(const KilnPluginColumns *columns, const KilnOpAttribute *wanted, GError **error)
{
    KilnPluginPlace place = { 0 };
    KilnPluginAttribute found;
    bool broken;
    while (kiln_plugin_next_attribute(columns, &place, &found, &broken)) {
        if (strcmp(found.name, wanted->name) == 0)
            return TRUE;
    }
    return kiln_throw(error, KILN_ERROR_INVALID, "lacks the attribute '%s'", wanted->name);
}

gboolean
kiln_plugin_check_attributes(const KilnPluginColumns *columns, const KilnOpDescription *op,
                             GError **error)
{
    KilnPluginPlace place = { 0 };
    KilnPluginAttribute found;
    bool broken;
    while (kiln_plugin_next_attribute(columns, &place, &found, &broken)) {
        const KilnOpAttribute *wanted = kiln_plugin_attribute_of(op, found.name);
        if (!wanted)
            return kiln_throw(error, KILN_ERROR_INVALID, "the operator has no attribute '%s'",
                              found.name);
        if (wanted->kind != found.kind)
            return kiln_throw(error, KILN_ERROR_INVALID, "attribute '%s': expected %s, found %s",
                              found.name, kinds[wanted->kind].name, kinds[found.kind].name);
    }
    if (broken)
        return kiln_throw(error, KILN_ERROR_INVALID,
                          "entry %u of 'attributes': expected a kind, a number of values that are "
                          "there, and a name",
                          place.next);
    for (unsigned i = 0; i < op->n_attributes; i++) {
        if (op->attributes[i].required && !check_required(columns, &op->attributes[i], error))
            return FALSE;
    }
    return TRUE;
}

/* --- writing --- */

void
kiln_plugin_writer_init(KilnPluginWriter *writer, KilnArena *arena)
{
    writer->arena = arena;
    writer->attributes = g_ptr_array_new();
    writer->texts = g_ptr_array_new();
    writer->ints = g_array_new(FALSE, FALSE, sizeof(int64_t));
    writer->floats = g_array_new(FALSE, FALSE, sizeof(float));
}

void
kiln_plugin_writer_clear(KilnPluginWriter *writer)
{
    g_ptr_array_unref(writer->attributes);
    g_ptr_array_unref(writer->texts);
    g_array_unref(writer->ints);
    g_array_unref(writer->floats);
}

static void
write_entry(KilnPluginWriter *writer, const char *name, KilnOpAttributeKind kind, size_t n)
{
    g_ptr_array_add(writer->attributes,
                    kiln_arena_printf(writer->arena, "%s %zu %s", kinds[kind].word, n, name));
}

void
kiln_plugin_write_ints(KilnPluginWriter *writer, const char *name, KilnOpAttributeKind kind,
                       const int64_t *values, size_t n)
{
    write_entry(writer, name, kind, n);
    g_array_append_vals(writer->ints, values, (guint)n);
}

void
kiln_plugin_write_floats(KilnPluginWriter *writer, const char *name, KilnOpAttributeKind kind,
                         const float *values, size_t n)
{
    write_entry(writer, name, kind, n);
    g_array_append_vals(writer->floats, values, (guint)n);
}

void
kiln_plugin_write_texts(KilnPluginWriter *writer, const char *name, KilnOpAttributeKind kind,
                        const char *const *values, size_t n)
{
    write_entry(writer, name, kind, n);
    for (size_t i = 0; i < n; i++)
        g_ptr_array_add(writer->texts, kiln_arena_strdup(writer->arena, values[i]));
}

void
kiln_plugin_write_tensor(KilnPluginWriter *writer, const char *name, const KilnType *type,
                         const void *bytes)
{
    g_autoptr(GString) entry = g_string_new("tensor ");
    g_string_append_printf(entry, "%s %s", kiln_dtype_name(type->dtype), type->rank ? "" : "-");
    for (int d = 0; d < type->rank; d++)
        g_string_append_printf(entry, "%s%" G_GINT64_FORMAT, d ? "," : "", type->dims[d]);
    g_string_append_printf(entry, " %s", name);
    g_ptr_array_add(writer->attributes, kiln_arena_strdup(writer->arena, entry->str));
    size_t size = (size_t)kiln_type_bytes(type);
    char *text = kiln_arena_alloc(writer->arena, (size / 3 + 1) * 4 + 1);
    int state = 0, save = 0;
    gsize length = g_base64_encode_step(bytes, size, FALSE, text, &state, &save);
    g_base64_encode_close(FALSE, text + length, &state, &save);
    g_ptr_array_add(writer->texts, text);
}

KilnPluginColumns
kiln_plugin_writer_columns(const KilnPluginWriter *writer)
{
    return (KilnPluginColumns){
        .attributes = { writer->attributes->len, (const char **)writer->attributes->pdata },
        .ints = { writer->ints->len, (int64_t *)(void *)writer->ints->data, NULL },
        .floats = { writer->floats->len, (float *)(void *)writer->floats->data },
        .texts = { writer->texts->len, (const char **)writer->texts->pdata },
    };
}
