/* SPDX-License-Identifier: Apache-2.0 */
/* Builds the tree from the events of libfyaml's parser.
 *
 * The library's own documents are not used: they follow cycles of aliases, expand them without
 * bound, and skip what comes after the first document. Its parser loops for ever on some invalid
 * bytes in directives, and crashes on a tab behind a key that a `?` began, so text is checked to be
 * UTF-8 and free of directives and tabs before it sees it. */
#include "passes/pipeline/yaml_walk.h"

#include "graph/error.h"

#include <libfyaml.h>
#include <string.h>

/* A collection that is being read. */
typedef struct {
    KilnYaml *node;
    GPtrArray *items, *keys; /* KilnYaml* */
    KilnYaml *key;           /* MAPPING: waits for its value */
} Frame;

typedef struct {
    KilnArena *arena;
    const char *name;
    uint32_t budget;
    GArray *stack;       /* Frame */
    GHashTable *anchors; /* name → KilnYaml, from where the node begins */
    KilnYaml *root;
    uint32_t documents;
    int line, column; /* of the last event that had a place */
    GError **error;
} Walk;

static gboolean
fail(Walk *walk, int line, int column, const char *what)
{
    return kiln_throw(walk->error, KILN_ERROR_PIPELINE, "%s:%d:%d: %s", walk->name, line, column,
                      what);
}

/* --- before the library sees the text --- */

static size_t
line_break(const char *at)
{
    if (*at == '\n' || *at == '\r')
        return 1;
    if (strncmp(at, "\xc2\x85", 2) == 0) /* next line */
        return 2;
    /* line and paragraph separator */
    return strncmp(at, "\xe2\x80\xa8", 3) == 0 || strncmp(at, "\xe2\x80\xa9", 3) == 0 ? 3 : 0;
}

static gboolean
check_bytes(Walk *walk, const char *text, size_t length)
{
    const char *bad = NULL;
    if (length > KILN_YAML_MAX_BYTES)
        return fail(walk, 1, 1, "the file is too big for a pipeline");
    bool valid = g_utf8_validate_len(text, length, &bad);
    int line = 1, column = 1;
    bool starts = true;
    for (const char *at = text; at < text + length; at++) {
        if (!valid && at == bad)
            return fail(walk, line, column,
                        *at ? "this byte is not UTF-8" : "a zero byte cannot stand here");
        if (starts && *at == '%')
            return fail(walk, line, column, "directives ('%') are not supported");
        if (*at == '\t')
            return fail(walk, line, column, "tabs are not supported: use blanks, or \\t in quotes");
        size_t skip = line_break(at);
        if (skip) {
            bool pair = *at == '\r' && at[1] == '\n';
            at += skip - 1;
            line += !pair;
            column = pair ? column : 1;
            starts = true;
        } else {
            starts = starts && strncmp(at, "\xef\xbb\xbf", 3) == 0; /* byte order mark */
            at += starts ? 2 : 0;
            column += (*at & 0xc0) != 0x80 && !starts;
        }
    }
    return TRUE;
}

/* --- building --- */

static KilnYaml *
node_new(Walk *walk, KilnYamlKind kind, struct fy_token *token)
{
    const struct fy_mark *mark = token ? fy_token_start_mark(token) : NULL;
    if (mark) {
        walk->line = mark->line + 1;
        walk->column = mark->column + 1;
    }
    KilnYaml *node = kiln_arena_new0(walk->arena, KilnYaml, 1);
    node->kind = kind;
    node->line = walk->line;
    node->column = walk->column;
    node->text = "";
    return node;
}

static const char *
token_text(Walk *walk, struct fy_token *token)
{
    size_t length = 0;
    const char *text = token ? fy_token_get_text(token, &length) : NULL;
    if (!text)
        return "";
    /* An escape can write a zero byte into a double-quoted scalar: the text ends there. */
    char *copy = kiln_arena_alloc(walk->arena, length + 1);
    memcpy(copy, text, length);
    return copy;
}

static gboolean
check_key(Walk *walk, const Frame *frame, const KilnYaml *key)
{
    if (key->kind != KILN_YAML_SCALAR)
        return fail(walk, key->line, key->column, "a key must be a word");
    if (kiln_yaml_is_null(key))
        return fail(walk, key->line, key->column, "a key is missing");
    if (strcmp(key->text, "<<") == 0)
        return fail(walk, key->line, key->column,
                    "merge keys ('<<') are not supported: write the keys out");
    for (guint i = 0; i < frame->keys->len; i++) {
        const KilnYaml *other = g_ptr_array_index(frame->keys, i);
        if (strcmp(other->text, key->text) != 0)
            continue;
        g_autofree char *what =
            g_strdup_printf("the key '%s' was given before, at line %d", key->text, other->line);
        return fail(walk, key->line, key->column, what);
    }
    return TRUE;
}

/* Hands a finished node to the collection around it. */
static gboolean
add(Walk *walk, KilnYaml *node)
{
    if (!walk->stack->len) {
        walk->root = node;
        return TRUE;
    }
    Frame *frame = &g_array_index(walk->stack, Frame, walk->stack->len - 1);
    KilnYaml *parent = frame->node;
    parent->size += node->size;
    parent->depth = MAX(parent->depth, node->depth + 1);
    if (parent->depth > KILN_YAML_MAX_DEPTH)
        return fail(walk, node->line, node->column, "this is nested too deep");
    if (parent->size > walk->budget)
        return fail(walk, walk->line, walk->column,
                    "too many nodes (aliases and includes count each time)");
    if (parent->kind == KILN_YAML_SEQUENCE) {
        g_ptr_array_add(frame->items, node);
    } else if (!frame->key) {
        if (!check_key(walk, frame, node))
            return FALSE;
        frame->key = node;
    } else {
        g_ptr_array_add(frame->keys, frame->key);
        g_ptr_array_add(frame->items, node);
        frame->key = NULL;
    }
    return TRUE;
}

static gboolean
open_collection(Walk *walk, KilnYaml *node, const char *anchor)
{
    if (walk->stack->len >= KILN_YAML_MAX_DEPTH)
        return fail(walk, node->line, node->column, "this is nested too deep");
    Frame frame = { node, g_ptr_array_new(), g_ptr_array_new(), NULL };
    if (anchor)
        g_hash_table_insert(walk->anchors, (char *)anchor, node);
    g_array_append_val(walk->stack, frame);
    return TRUE;
}

static void
frame_clear(gpointer data)
{
    Frame *frame = data;
    g_ptr_array_unref(frame->items);
    g_ptr_array_unref(frame->keys);
}

static gboolean
close_collection(Walk *walk)
{
    Frame *frame = &g_array_index(walk->stack, Frame, walk->stack->len - 1);
    KilnYaml *node = frame->node;
    node->n = frame->items->len;
    node->items = kiln_arena_copy(walk->arena, frame->items->pdata, node->n * sizeof(KilnYaml *));
    node->keys =
        kiln_arena_copy(walk->arena, frame->keys->pdata, frame->keys->len * sizeof(KilnYaml *));
    node->size++;
    g_array_set_size(walk->stack, walk->stack->len - 1);
    return add(walk, node);
}

static gboolean
add_scalar(Walk *walk, const struct fy_event *event, const char *anchor)
{
    struct fy_token *token = event->scalar.value;
    KilnYaml *node = node_new(walk, KILN_YAML_SCALAR, token);
    node->text = token_text(walk, token);
    enum fy_scalar_style style = token ? fy_token_scalar_style(token) : FYSS_PLAIN;
    node->quoted = style != FYSS_PLAIN;
    /* The library's mark is behind the quote. */
    node->column -= style == FYSS_SINGLE_QUOTED || style == FYSS_DOUBLE_QUOTED;
    node->size = 1;
    if (anchor)
        g_hash_table_insert(walk->anchors, (char *)anchor, node);
    return add(walk, node);
}

static gboolean
add_alias(Walk *walk, const struct fy_event *event)
{
    const KilnYaml *place = node_new(walk, KILN_YAML_SCALAR, event->alias.anchor);
    const char *name = token_text(walk, event->alias.anchor);
    KilnYaml *target = g_hash_table_lookup(walk->anchors, name);
    for (guint i = 0; target && i < walk->stack->len; i++) {
        if (g_array_index(walk->stack, Frame, i).node != target)
            continue;
        g_autofree char *what = g_strdup_printf("'*%s' is inside its own anchor", name);
        return fail(walk, place->line, place->column, what);
    }
    if (target)
        return add(walk, target);
    g_autofree char *what = g_strdup_printf("there is no anchor '&%s' before this", name);
    return fail(walk, place->line, place->column, what);
}

static gboolean
check_tag(Walk *walk, struct fy_token *tag)
{
    if (!tag)
        return TRUE;
    const KilnYaml *place = node_new(walk, KILN_YAML_SCALAR, tag);
    return fail(walk, place->line, place->column, "tags ('!') are not supported");
}

static gboolean
take(Walk *walk, const struct fy_event *event)
{
    switch (event->type) {
    case FYET_DOCUMENT_START:
        if (walk->documents++ == 0)
            return TRUE;
        node_new(walk, KILN_YAML_SCALAR, event->document_start.document_start);
        return fail(walk, walk->line, walk->column, "a pipeline file has one document");
    case FYET_SCALAR:
        return check_tag(walk, event->scalar.tag) &&
               add_scalar(walk, event,
                          event->scalar.anchor ? token_text(walk, event->scalar.anchor) : NULL);
    case FYET_ALIAS:
        return add_alias(walk, event);
    case FYET_SEQUENCE_START:
        return check_tag(walk, event->sequence_start.tag) &&
               open_collection(
                   walk, node_new(walk, KILN_YAML_SEQUENCE, event->sequence_start.sequence_start),
                   event->sequence_start.anchor ? token_text(walk, event->sequence_start.anchor)
                                                : NULL);
    case FYET_MAPPING_START:
        return check_tag(walk, event->mapping_start.tag) &&
               open_collection(
                   walk, node_new(walk, KILN_YAML_MAPPING, event->mapping_start.mapping_start),
                   event->mapping_start.anchor ? token_text(walk, event->mapping_start.anchor)
                                               : NULL);
    case FYET_SEQUENCE_END:
    case FYET_MAPPING_END:
        return close_collection(walk);
    default:
        return TRUE;
    }
}

/* --- errors of the library --- */

static void
swallow(struct fy_diag *diag, void *user, const char *text, size_t length)
{
    (void)diag, (void)user, (void)text, (void)length;
}

static gboolean
throw_collected(Walk *walk, struct fy_diag *diag)
{
    g_autoptr(GString) text = g_string_new(NULL);
    void *cursor = NULL;
    struct fy_diag_error *one;
    while ((one = fy_diag_errors_iterate(diag, &cursor)) != NULL)
        g_string_append_printf(text, "%s%s:%d:%d: %s", text->len ? "\n" : "", walk->name,
                               MAX(one->line, 1), MAX(one->column, 1), one->msg);
    if (!text->len)
        return fail(walk, walk->line, walk->column, "this is not YAML");
    return kiln_throw(walk->error, KILN_ERROR_PIPELINE, "%s", text->str);
}

static gboolean
run(Walk *walk, struct fy_parser *parser, struct fy_diag *diag)
{
    bool ended = false;
    while (!ended) {
        struct fy_event *event = fy_parser_parse(parser);
        if (!event)
            return throw_collected(walk, diag);
        ended = event->type == FYET_STREAM_END;
        gboolean ok = take(walk, event);
        fy_parser_event_free(parser, event);
        if (!ok)
            return FALSE;
    }
    return walk->root ? TRUE : fail(walk, 1, 1, "the file is empty");
}

KilnYaml *
kiln_yaml_parse(KilnArena *arena, const char *text, size_t length, const char *name,
                uint32_t *budget, GError **error)
{
    g_autoptr(GArray) stack = g_array_new(FALSE, FALSE, sizeof(Frame));
    g_array_set_clear_func(stack, frame_clear);
    g_autoptr(GHashTable) anchors = g_hash_table_new(g_str_hash, g_str_equal);
    Walk walk = { .arena = arena,
                  .name = name,
                  .budget = *budget,
                  .stack = stack,
                  .anchors = anchors,
                  .line = 1,
                  .column = 1,
                  .error = error };
    g_autofree char *copy = NULL; /* with a zero byte behind it, which looking ahead relies on */
    if (length <= KILN_YAML_MAX_BYTES) {
        copy = g_malloc0(length + 1);
        memcpy(copy, text, length);
    }
    if (!check_bytes(&walk, copy, length))
        return NULL;
    struct fy_diag_cfg diag_config;
    fy_diag_cfg_default(&diag_config);
    diag_config.fp = NULL;
    diag_config.output_fn = swallow;
    struct fy_diag *diag = fy_diag_create(&diag_config);
    fy_diag_set_collect_errors(diag, true);
    struct fy_parse_cfg config = { .flags = FYPCF_DEFAULT_VERSION_1_2, .diag = diag };
    struct fy_parser *parser = fy_parser_create(&config);
    gboolean ok = parser && fy_parser_set_string(parser, copy, length) == 0;
    ok = ok ? run(&walk, parser, diag) : throw_collected(&walk, diag);
    fy_parser_destroy(parser);
    fy_diag_destroy(diag); /* an unref alone would leak the collected errors */
    if (!ok)
        return NULL;
    *budget -= MIN(walk.root->size, *budget);
    return walk.root;
}

/* --- reading the tree --- */

KilnYaml *
kiln_yaml_get(const KilnYaml *mapping, const char *key)
{
    for (uint32_t i = 0; mapping->kind == KILN_YAML_MAPPING && i < mapping->n; i++) {
        if (strcmp(mapping->keys[i]->text, key) == 0)
            return mapping->items[i];
    }
    return NULL;
}

bool
kiln_yaml_is_null(const KilnYaml *node)
{
    return node->kind == KILN_YAML_SCALAR && !node->quoted &&
           (!*node->text || strcmp(node->text, "~") == 0 || strcmp(node->text, "null") == 0);
}

const char *
kiln_yaml_describe(const KilnYaml *node, KilnArena *arena)
{
    if (node->kind == KILN_YAML_MAPPING)
        return "a mapping";
    if (node->kind == KILN_YAML_SEQUENCE)
        return "a list";
    return kiln_yaml_is_null(node) ? "nothing" : kiln_arena_printf(arena, "'%s'", node->text);
}
