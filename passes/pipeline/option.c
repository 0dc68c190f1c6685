/* SPDX-License-Identifier: Apache-2.0 */
/* Options of passes: words to typed fields. */
#include "passes/pass.h"
#include "passes/pipeline/pipeline_priv.h"
#include "passes/pipeline/suggest.h"

#include <errno.h>
#include <math.h>
#include <string.h>

/* The name inside: '_' where files write '-'. Files may not write '_'. */
static char *
inner_name(const char *name)
{
    return strchr(name, '_') ? NULL : g_strdelimit(g_strdup(name), "-", '_');
}

static const KilnAttrInfo *
find(const KilnPassInfo *pass, const char *name)
{
    g_autofree char *inner = inner_name(name);
    const KilnOptionTable *table = pass->options;
    return inner && table ? kiln_attr_find(table->attrs, table->n, inner) : NULL;
}

bool
kiln_pipeline_has_option(const KilnPipelineEntry *entry, const char *name)
{
    return entry->pass && find(entry->pass, name);
}

static bool
parse_int(const char *word, int64_t *out)
{
    gint64 value = 0;
    if (!g_ascii_string_to_signed(word, 10, G_MININT64, G_MAXINT64, &value, NULL))
        return false;
    *out = value;
    return true;
}

static bool
parse_float(const char *word, float *out)
{
    char *end;
    errno = 0;
    double value = g_ascii_strtod(word, &end);
    /* The locale-free forms that print: no hexadecimal, no blanks, no overflow. */
    if (end == word || *end || g_ascii_isspace(*word) || strpbrk(word, "xX"))
        return false;
    *out = (float)value;
    bool overflows = isinf(*out) && (!isinf(value) || errno == ERANGE);
    return !overflows;
}

static bool
is_choice(const char *choices, const char *word)
{
    g_auto(GStrv) words = g_strsplit(choices, "|", -1);
    return g_strv_contains((const char *const *)words, word);
}

typedef struct {
    KilnArena *arena;
    const KilnAttrInfo *info;
    const char *choices; /* of a STRING; NULL: any */
    void *field;
} Target;

/* Each returns what was expected where the text is no such value, else NULL. */
static const char *
set_list(const Target *target, const KilnOptionText *text)
{
    uint32_t n = text->n_words;
    if (target->info->kind == KILN_ATTR_INTS) {
        KilnInts list = { .n = n, .v = kiln_arena_new0(target->arena, int64_t, n) };
        for (uint32_t i = 0; i < n; i++) {
            if (!parse_int(text->words[i], &list.v[i]))
                return "a list of integers";
        }
        *(KilnInts *)target->field = list;
    } else if (target->info->kind == KILN_ATTR_FLOATS) {
        KilnFloats list = { n, kiln_arena_new0(target->arena, float, n) };
        for (uint32_t i = 0; i < n; i++) {
            if (!parse_float(text->words[i], &list.v[i]))
                return "a list of numbers";
        }
        *(KilnFloats *)target->field = list;
    } else {
        KilnStrings list = { n, kiln_arena_new0(target->arena, const char *, n) };
        for (uint32_t i = 0; i < n; i++)
            list.v[i] = kiln_arena_strdup(target->arena, text->words[i]);
        *(KilnStrings *)target->field = list;
    }
    return NULL;
}

static const char *
set_scalar(const Target *target, const KilnOptionText *text)
{
    const char *word = text->words[0];
    switch (target->info->kind) {
    case KILN_ATTR_INT:
        return !text->quoted && parse_int(word, target->field) ? NULL : "an integer";
    case KILN_ATTR_FLOAT:
        return !text->quoted && parse_float(word, target->field) ? NULL : "a number";
    case KILN_ATTR_BOOL:
        *(KilnC_BOOL *)target->field = strcmp(word, "true") == 0;
        return !text->quoted && (strcmp(word, "true") == 0 || strcmp(word, "false") == 0)
                   ? NULL
                   : "true or false";
    case KILN_ATTR_DTYPE:
        return kiln_dtype_from_name(word, target->field) ? NULL : "an element type";
    case KILN_ATTR_STRING:
        if (target->choices && !is_choice(target->choices, word))
            return target->choices;
        *(KilnC_STRING *)target->field = kiln_arena_strdup(target->arena, word);
        return NULL;
    default:
        return "nothing: the option cannot be written in text";
    }
}

static const char *
set_value(const Target *target, const KilnOptionText *text)
{
    switch (target->info->kind) {
    case KILN_ATTR_INTS:
    case KILN_ATTR_FLOATS:
    case KILN_ATTR_STRINGS:
        return text->is_list ? set_list(target, text) : "a list";
    default:
        return text->is_list ? "one value" : set_scalar(target, text);
    }
}

static gboolean
throw_unknown(const KilnPassInfo *pass, const char *name, GError **error)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    for (uint32_t i = 0; pass->options && i < pass->options->n; i++)
        g_ptr_array_add(names, g_strdelimit(g_strdup(pass->options->attrs[i].name), "_", '-'));
    g_autofree char *hint = kiln_suggest(name, (const char *const *)names->pdata, names->len);
    return kiln_throw(error, KILN_ERROR_PIPELINE, "pass %s has no option '%s'%s", pass->id, name,
                      hint);
}

gboolean
kiln_pipeline_set_option(KilnPassPipeline *pipeline, KilnPipelineEntry *entry, const char *name,
                         const KilnOptionText *text, GError **error)
{
    const KilnPassInfo *pass = entry->pass;
    const KilnAttrInfo *info = find(pass, name);
    if (!info)
        return throw_unknown(pass, name, error);
    size_t index = (size_t)(info - pass->options->attrs);
    const char *const *choices = pass->options->choices;
    Target target = { pipeline->arena, info, choices ? choices[index] : NULL,
                      (char *)entry->options + info->offset };
    const char *expected = set_value(&target, text);
    if (!expected)
        return TRUE;
    g_autoptr(GString) found = g_string_new(text->is_list ? "[" : NULL);
    for (uint32_t i = 0; i < text->n_words; i++)
        g_string_append_printf(found, "%s%s", i ? ", " : "", text->words[i]);
    g_string_append(found, text->is_list ? "]" : "");
    return kiln_throw(error, KILN_ERROR_PIPELINE, "option '%s' of pass %s: expected %s, found '%s'",
                      name, pass->id, expected, found->str);
}
