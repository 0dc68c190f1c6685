/* SPDX-License-Identifier: Apache-2.0 */
/* Pipeline files: the tree of a YAML text to a pipeline. Everything that is wrong is collected, so
 * that one run shows all of it, each with file:line:column. */
#include "passes/pass.h"
#include "passes/pipeline/pipeline.h"
#include "passes/pipeline/pipeline_priv.h"
#include "passes/pipeline/suggest.h"
#include "passes/pipeline/yaml_walk.h"

#include <stdlib.h>
#include <string.h>

enum {
    MAX_COMPLAINTS = 20,
    MAX_INCLUDES = 16, /* files inside files */
    MAX_FILES = 256,   /* all together */
};

/* One file being read; `outer` includes it. */
typedef struct Reader Reader;
struct Reader {
    const Reader *outer;
    KilnPassPipeline *pipeline;
    const char *file;     /* as messages name it */
    const char *identity; /* resolved path: equal for equal files; NULL: text that is no file */
    uint32_t *budget;     /* nodes that are left */
    GString *errors;      /* shared with the files around */
    uint32_t *n_errors;
    uint32_t *n_files;
    KilnArena *arena; /* of trees */
};

static void G_GNUC_PRINTF(3, 4)
    complain(Reader *reader, const KilnYaml *at, const char *format, ...)
{
    if (++*reader->n_errors > MAX_COMPLAINTS)
        return;
    va_list args;
    va_start(args, format);
    g_string_append_printf(reader->errors, "%s%s:%d:%d: ", reader->errors->len ? "\n" : "",
                           reader->file, at->line, at->column);
    g_string_append_vprintf(reader->errors, format, args);
    va_end(args);
}

static const char *
shown(const Reader *reader, const KilnYaml *node)
{
    return kiln_yaml_describe(node, reader->arena);
}

/* The text of a scalar that says something; NULL after a complaint. */
static const char *
word(Reader *reader, const KilnYaml *node, const char *expected)
{
    if (node->kind == KILN_YAML_SCALAR && !kiln_yaml_is_null(node))
        return node->text;
    complain(reader, node, "expected %s, found %s", expected, shown(reader, node));
    return NULL;
}

static bool
check_keys(Reader *reader, const KilnYaml *mapping, const char *what, const char *const *known)
{
    bool ok = true;
    for (uint32_t i = 0; i < mapping->n; i++) {
        const char *key = mapping->keys[i]->text;
        if (g_strv_contains(known, key))
            continue;
        g_autofree char *hint = kiln_suggest(key, known, g_strv_length((char **)known));
        complain(reader, mapping->keys[i], "%s has no key '%s'%s", what, key, hint);
        ok = false;
    }
    return ok;
}

/* --- keys of an entry --- */

static void
read_convergence(Reader *reader, const KilnYaml *node, KilnPipelineEntry *entry)
{
    const char *text = word(reader, node, "one-pass or until-fixed-point");
    if (text && !kiln_pipeline_convergence(text, &entry->convergence))
        complain(reader, node, "convergence: expected one-pass or until-fixed-point, found '%s'",
                 text);
}

static void
read_iterations(Reader *reader, const KilnYaml *node, KilnPipelineEntry *entry)
{
    if (node->kind != KILN_YAML_SCALAR || node->quoted ||
        !kiln_pipeline_iterations(node->text, &entry->max_iterations))
        complain(reader, node, "max-iterations: expected a number of 1 to %d, found %s",
                 KILN_MAX_ITERATIONS_LIMIT, shown(reader, node));
}

static void
read_dce(Reader *reader, const KilnYaml *node, KilnLevel level, KilnPipelineEntry *entry)
{
    const char *text = word(reader, node, "before-pass or none");
    if (level == KILN_LEVEL_IR)
        complain(reader, node, "dce: the ir level has no such key");
    else if (text && !kiln_pipeline_dce(text, &entry->dce_before))
        complain(reader, node, "dce: expected before-pass or none, found '%s'", text);
}

static void
read_modes(Reader *reader, const KilnYaml *node, KilnPipelineEntry *entry)
{
    if (node->kind != KILN_YAML_SEQUENCE || node->n == 0) {
        complain(reader, node, "modes: expected a list of infer and train, found %s",
                 node->kind == KILN_YAML_SEQUENCE ? "an empty one" : shown(reader, node));
        return;
    }
    entry->modes = 0;
    for (uint32_t i = 0; i < node->n; i++) {
        const char *text = word(reader, node->items[i], "infer or train");
        uint32_t bit;
        if (!text)
            continue;
        if (!kiln_pipeline_mode(text, &bit))
            complain(reader, node->items[i], "modes: expected infer or train, found '%s'", text);
        else if (entry->modes & bit)
            complain(reader, node->items[i], "modes: '%s' is there twice", text);
        entry->modes |= bit;
    }
}

static void
read_option(Reader *reader, const KilnYaml *key, const KilnYaml *value, KilnPipelineEntry *entry)
{
    g_autoptr(GPtrArray) words = g_ptr_array_new();
    bool list = value->kind == KILN_YAML_SEQUENCE;
    if (value->kind == KILN_YAML_MAPPING || (!list && kiln_yaml_is_null(value))) {
        complain(reader, value, "option '%s': expected a value, found %s", key->text,
                 shown(reader, value));
        return;
    }
    for (uint32_t i = 0; list && i < value->n; i++) {
        const char *text = word(reader, value->items[i], "a value");
        if (!text)
            return;
        g_ptr_array_add(words, (char *)text);
    }
    if (!list)
        g_ptr_array_add(words, (char *)value->text);
    KilnOptionText text = { .words = (const char *const *)words->pdata,
                            .n_words = words->len,
                            .is_list = list,
                            .quoted = !list && value->quoted };
    g_autoptr(GError) why = NULL;
    if (!kiln_pipeline_set_option(reader->pipeline, entry, key->text, &text, &why))
        complain(reader, kiln_pipeline_has_option(entry, key->text) ? value : key, "%s",
                 why->message);
}

static void
read_options(Reader *reader, const KilnYaml *node, KilnPipelineEntry *entry)
{
    if (!entry->pass) {
        complain(reader, node, "options belong to a pass, not to a group");
        return;
    }
    if (node->kind != KILN_YAML_MAPPING) {
        complain(reader, node, "options: expected a mapping, found %s", shown(reader, node));
        return;
    }
    for (uint32_t i = 0; i < node->n; i++)
        read_option(reader, node->keys[i], node->items[i], entry);
}

/* --- entries --- */

typedef struct {
    KilnLevel level;
    bool dce_before; /* of entries that do not say: the group's */
} Place;

static void read_entry(Reader *reader, const KilnYaml *node, Place place, GPtrArray *list);
static void read_include(Reader *reader, const KilnYaml *entry, Place place, GPtrArray *list);

static const char *
level_name(KilnLevel level)
{
    return level == KILN_LEVEL_GRAPH ? "graph" : "ir";
}

static const KilnPassInfo *
find_pass(Reader *reader, const KilnYaml *node, KilnLevel level)
{
    const char *id = word(reader, node, "the name of a pass");
    if (!id)
        return NULL;
    const KilnPassInfo *pass = kiln_pass_pipeline_find(reader->pipeline, id);
    if (!pass) {
        g_autofree char *hint = kiln_suggest_pass(reader->pipeline, id);
        complain(reader, node, "there is no pass '%s'%s", id, hint);
    } else if (pass->level != level) {
        complain(reader, node, "pass %s is of the %s level and cannot stand under '%s'", id,
                 level_name(pass->level), level_name(level));
        pass = NULL;
    }
    return pass;
}

static KilnPipelineEntry *
new_entry(Reader *reader, const KilnPassInfo *pass, const KilnYaml *at, Place place)
{
    KilnPipelineEntry *entry = kiln_pipeline_entry_new(reader->pipeline, pass);
    entry->dce_before = place.dce_before;
    entry->where =
        kiln_arena_printf(reader->pipeline->arena, "%s:%d:%d", reader->file, at->line, at->column);
    return entry;
}

static void
read_members(Reader *reader, const KilnYaml *node, Place place, KilnPipelineEntry *entry)
{
    if (node->kind != KILN_YAML_SEQUENCE || node->n == 0) {
        complain(reader, node, "group: expected a list of passes, found %s",
                 node->kind == KILN_YAML_SEQUENCE ? "an empty one" : shown(reader, node));
        return;
    }
    place.dce_before = entry->dce_before;
    for (uint32_t i = 0; i < node->n; i++)
        read_entry(reader, node->items[i], place, entry->group);
}

static const KilnPassInfo *
default_pass(Reader *reader, const KilnYaml *node, KilnLevel level)
{
    if (level == KILN_LEVEL_GRAPH)
        return kiln_pass_find("empty");
    complain(reader, node, "an entry of the ir level needs a pass");
    return NULL;
}

static void
read_mapping(Reader *reader, const KilnYaml *node, Place place, GPtrArray *list)
{
    static const char *const known[] = { "pass",        "group",          "include",
                                         "convergence", "max-iterations", "dce",
                                         "modes",       "options",        NULL };
    const KilnYaml *group = kiln_yaml_get(node, "group"), *named = kiln_yaml_get(node, "pass");
    check_keys(reader, node, "an entry", known);
    if (kiln_yaml_get(node, "include")) {
        read_include(reader, node, place, list);
        return;
    }
    if (group && named) {
        complain(reader, node, "an entry is a pass or a group, not both");
        return;
    }
    const KilnPassInfo *pass = group   ? NULL
                               : named ? find_pass(reader, named, place.level)
                                       : default_pass(reader, node, place.level);
    if (!pass && !group)
        return;
    KilnPipelineEntry *entry = new_entry(reader, pass, node, place);
    g_ptr_array_add(list, entry);
    const KilnYaml *value;
    if ((value = kiln_yaml_get(node, "convergence")))
        read_convergence(reader, value, entry);
    if ((value = kiln_yaml_get(node, "max-iterations")))
        read_iterations(reader, value, entry);
    if ((value = kiln_yaml_get(node, "dce")))
        read_dce(reader, value, place.level, entry);
    if ((value = kiln_yaml_get(node, "modes")))
        read_modes(reader, value, entry);
    if ((value = kiln_yaml_get(node, "options")))
        read_options(reader, value, entry);
    if (group)
        read_members(reader, group, place, entry);
}

static void
read_entry(Reader *reader, const KilnYaml *node, Place place, GPtrArray *list)
{
    if (node->kind == KILN_YAML_MAPPING) {
        read_mapping(reader, node, place, list);
        return;
    }
    /* A bare word is a pass with defaults. */
    const KilnPassInfo *pass = find_pass(reader, node, place.level);
    if (pass)
        g_ptr_array_add(list, new_entry(reader, pass, node, place));
}

static void
read_list(Reader *reader, const KilnYaml *node, Place place, GPtrArray *list)
{
    if (node->kind != KILN_YAML_SEQUENCE) {
        complain(reader, node, "%s: expected a list of entries, found %s", level_name(place.level),
                 shown(reader, node));
        return;
    }
    for (uint32_t i = 0; i < node->n; i++)
        read_entry(reader, node->items[i], place, list);
}

/* --- files --- */

static uint32_t
read_flags(Reader *reader, const KilnYaml *node)
{
    uint32_t flags = 0;
    if (node->kind != KILN_YAML_SEQUENCE) {
        complain(reader, node, "flags: expected a list, found %s", shown(reader, node));
        return 0;
    }
    const char *names[KILN_N_FLAGS];
    for (uint32_t i = 0; i < KILN_N_FLAGS; i++)
        names[i] = kiln_pipeline_flag_name(i);
    for (uint32_t i = 0; i < node->n; i++) {
        const char *text = word(reader, node->items[i], "a flag");
        uint32_t flag = text ? kiln_pipeline_flag(text) : 0;
        if (text && !flag) {
            g_autofree char *hint = kiln_suggest(text, names, KILN_N_FLAGS);
            complain(reader, node->items[i], "there is no flag '%s'%s", text, hint);
        } else if (flags & flag) {
            complain(reader, node->items[i], "flag '%s' is there twice", text);
        }
        flags |= flag;
    }
    return flags;
}

/* A path of the file, relative to where the file is. */
static char *
resolve(const Reader *reader, const char *path)
{
    if (g_path_is_absolute(path))
        return g_strdup(path);
    g_autofree char *directory = g_path_get_dirname(reader->file);
    return strcmp(directory, ".") == 0 ? g_strdup(path) : g_build_filename(directory, path, NULL);
}

static void
read_plugins(Reader *reader, const KilnYaml *node)
{
    if (node->kind != KILN_YAML_SEQUENCE) {
        complain(reader, node, "plugins: expected a list, found %s", shown(reader, node));
        return;
    }
    for (uint32_t i = 0; i < node->n; i++) {
        const char *text = word(reader, node->items[i], "the path of a plug-in");
        g_autofree char *path = text ? resolve(reader, text) : NULL;
        g_autoptr(GError) why = NULL;
        if (path && !kiln_pass_pipeline_load_plugin(reader->pipeline, path, &why))
            complain(reader, node->items[i], "%s", why->message);
    }
}

static bool
check_root(Reader *reader, const KilnYaml *root)
{
    static const char *const known[] = { "version", "flags", "plugins", "graph", "ir", NULL };
    if (root->kind != KILN_YAML_MAPPING) {
        complain(reader, root, "expected a mapping with 'version', found %s", shown(reader, root));
        return false;
    }
    const KilnYaml *version = kiln_yaml_get(root, "version");
    if (!version)
        complain(reader, root, "'version: 1' is missing");
    else if (version->kind != KILN_YAML_SCALAR || version->quoted ||
             strcmp(version->text, "1") != 0)
        complain(reader, version, "version: expected 1, found %s", shown(reader, version));
    check_keys(reader, root, "a pipeline", known);
    return true;
}

static void
read_root(Reader *reader, const KilnYaml *root)
{
    const KilnYaml *value;
    if (!check_root(reader, root))
        return;
    if ((value = kiln_yaml_get(root, "flags")))
        reader->pipeline->flags = read_flags(reader, value);
    if ((value = kiln_yaml_get(root, "plugins")))
        read_plugins(reader, value);
    if ((value = kiln_yaml_get(root, "graph")))
        read_list(reader, value, (Place){ KILN_LEVEL_GRAPH, true }, reader->pipeline->graph);
    if ((value = kiln_yaml_get(root, "ir")))
        read_list(reader, value, (Place){ KILN_LEVEL_IR, true }, reader->pipeline->ir);
}

/* --- include --- */

/* Of an included file only the list of the same level counts. What it allows to be lossy must be
 * allowed by the file that includes it: flags are decided where they are seen. */
static void
read_included(Reader *reader, const KilnYaml *root, const KilnYaml *at, Place place,
              GPtrArray *list)
{
    const KilnYaml *value;
    if (!check_root(reader, root))
        return;
    if ((value = kiln_yaml_get(root, "plugins")))
        read_plugins(reader, value);
    if ((value = kiln_yaml_get(root, "flags"))) {
        uint32_t missing = read_flags(reader, value) & ~reader->pipeline->flags;
        for (uint32_t i = 0; i < KILN_N_FLAGS; i++) {
            if (missing & 1u << i)
                complain(reader, value, "flag '%s' is not set by %s, which includes this file",
                         kiln_pipeline_flag_name(i), reader->outer->file);
        }
    }
    value = kiln_yaml_get(root, level_name(place.level));
    if (value)
        read_list(reader, value, place, list);
    else
        complain((Reader *)reader->outer, at, "include: %s has no '%s' list", reader->file,
                 level_name(place.level));
}

static bool
check_cycle(Reader *reader, const KilnYaml *at, const char *path, const char *identity)
{
    uint32_t depth = 0;
    for (const Reader *outer = reader; outer; outer = outer->outer) {
        if (++depth > MAX_INCLUDES) {
            complain(reader, at, "include: more than %d files inside files", MAX_INCLUDES);
            return false;
        }
        if (!outer->identity || strcmp(outer->identity, identity) != 0)
            continue;
        complain(reader, at, "include: %s includes itself", path);
        return false;
    }
    return true;
}

static void
add_errors(Reader *reader, const char *message)
{
    ++*reader->n_errors;
    g_string_append_printf(reader->errors, "%s%s", reader->errors->len ? "\n" : "", message);
}

static char *
identity_of(const char *path)
{
    char *real = realpath(path, NULL);
    char *copy = g_strdup(real);
    free(real);
    return copy;
}

/* What GLib says last: before it stands the path, which our message has already. */
static const char *
reason(const GError *error)
{
    const char *last = g_strrstr(error->message, ": ");
    return last ? last + 2 : error->message;
}

/* The text that an include asks for: a shipped pipeline by name (a word without a dot or slash), or
 * a file. NULL after a complaint. */
static char *
load_include(Reader *reader, const KilnYaml *at, const char *text, char **path, char **identity,
             gsize *length)
{
    char *content = NULL;
    g_autoptr(GError) why = NULL;
    if (!strpbrk(text, "./")) {
        *path = g_strdup(text);
        *identity = g_strdup_printf("shipped %s", text);
        if ((content = g_strdup(kiln_pipeline_shipped(text)))) {
            *length = strlen(content);
            return content;
        }
        g_autofree char *names = kiln_pipeline_shipped_names();
        complain(reader, at, "include: expected a file or one of %s, found %s", names, text);
        return NULL;
    }
    *path = resolve(reader, text);
    *identity = identity_of(*path);
    if (*identity && g_file_get_contents(*path, &content, length, &why))
        return content;
    complain(reader, at, "include: %s cannot be read%s%s", *path, why ? ": " : "",
             why ? reason(why) : "");
    return NULL;
}

static void
read_include(Reader *reader, const KilnYaml *entry, Place place, GPtrArray *list)
{
    const KilnYaml *at = kiln_yaml_get(entry, "include");
    if (entry->n > 1) {
        complain(reader, entry, "an entry with 'include' has no other keys");
        return;
    }
    const char *text = word(reader, at, "the path of a pipeline file");
    if (!text)
        return;
    g_autofree char *path = NULL, *identity = NULL;
    gsize length = 0;
    g_autofree char *content = load_include(reader, at, text, &path, &identity, &length);
    g_autoptr(GError) why = NULL;
    if (!content || !check_cycle(reader, at, path, identity))
        return;
    if (++*reader->n_files > MAX_FILES) {
        complain(reader, at, "include: more than %d files", MAX_FILES);
        return;
    }
    Reader inner = *reader;
    inner.outer = reader;
    inner.file = path;
    inner.identity = identity;
    KilnYaml *root = kiln_yaml_parse(inner.arena, content, length, path, inner.budget, &why);
    if (root)
        read_included(&inner, root, at, place, list);
    else
        add_errors(reader, why->message);
}

/* --- entry points --- */

static gboolean
read_text(KilnPassPipeline *pipeline, const char *text, size_t length, const Reader *from,
          GError **error)
{
    g_autoptr(KilnArena) arena = kiln_arena_new();
    g_autoptr(GString) errors = g_string_new(NULL);
    uint32_t budget = KILN_YAML_MAX_NODES, n_errors = 0, n_files = 1;
    Reader reader = *from;
    reader.pipeline = pipeline;
    reader.budget = &budget;
    reader.errors = errors;
    reader.n_errors = &n_errors;
    reader.n_files = &n_files;
    reader.arena = arena;
    KilnYaml *root = kiln_yaml_parse(arena, text, length, reader.file, &budget, error);
    if (!root)
        return FALSE;
    read_root(&reader, root);
    if (n_errors > MAX_COMPLAINTS)
        g_string_append_printf(errors, "\n%s: and %u more", reader.file, n_errors - MAX_COMPLAINTS);
    return n_errors == 0 || kiln_throw_lines(error, KILN_ERROR_PIPELINE, errors->str);
}

gboolean
kiln_pipeline_read_yaml(KilnPassPipeline *pipeline, const char *text, size_t length,
                        const char *name, GError **error)
{
    return read_text(pipeline, text, length, &(Reader){ .file = name }, error);
}

gboolean
kiln_pipeline_read_file(KilnPassPipeline *pipeline, const char *path, GError **error)
{
    g_autofree char *text = NULL;
    gsize length = 0;
    g_autoptr(GError) why = NULL;
    if (!g_file_get_contents(path, &text, &length, &why))
        return kiln_throw(error, KILN_ERROR_IO, "%s: cannot be read: %s", path, reason(why));
    g_autofree char *identity = identity_of(path);
    return read_text(pipeline, text, length, &(Reader){ .file = path, .identity = identity },
                     error);
}

KilnPassPipeline *
kiln_pass_pipeline_parse_yaml(const char *text, size_t length, const char *name, GError **error)
{
    g_autoptr(KilnPassPipeline) pipeline = kiln_pass_pipeline_new();
    return kiln_pipeline_read_yaml(pipeline, text, length, name, error) ? g_steal_pointer(&pipeline)
                                                                        : NULL;
}

KilnPassPipeline *
kiln_pass_pipeline_load(const char *path, GError **error)
{
    g_autoptr(KilnPassPipeline) pipeline = kiln_pass_pipeline_new();
    return kiln_pipeline_read_file(pipeline, path, error) ? g_steal_pointer(&pipeline) : NULL;
}
