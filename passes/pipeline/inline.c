/* SPDX-License-Identifier: Apache-2.0 */
/* The inline form of pipelines: 'a,b{x=1,y=[2,3],z="q"},c'. Beside a pass's own options the braces
 * take convergence, max-iterations, dce and modes. */
#include "passes/pass.h"
#include "passes/pipeline/pipeline.h"
#include "passes/pipeline/pipeline_priv.h"

#include <string.h>

typedef struct {
    KilnPassPipeline *pipeline;
    const char *text;
    const char *at;
    GError **error;
} Parser;

static void G_GNUC_PRINTF(3, 4) fail_at(Parser *parser, const char *at, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_autofree char *what = g_strdup_vprintf(format, args);
    va_end(args);
    int line = 1, column = 1;
    for (const char *c = parser->text; c < at; c++) {
        line += *c == '\n';
        column = *c == '\n' ? 1 : column + ((*c & 0xc0) != 0x80);
    }
    kiln_throw(parser->error, KILN_ERROR_PIPELINE, "passes:%d:%d: %s", line, column, what);
}

static bool
expected(Parser *parser, const char *what)
{
    if (*parser->at)
        fail_at(parser, parser->at, "expected %s, found '%.1s'", what, parser->at);
    else
        fail_at(parser, parser->at, "expected %s, found the end", what);
    return false;
}

static void
skip_blanks(Parser *parser)
{
    parser->at += strspn(parser->at, " \t\n");
}

static bool
accept(Parser *parser, char c)
{
    skip_blanks(parser);
    if (*parser->at != c)
        return false;
    parser->at++;
    return true;
}

static char *
take_name(Parser *parser)
{
    skip_blanks(parser);
    size_t length = strspn(parser->at, "abcdefghijklmnopqrstuvwxyz"
                                       "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.");
    const char *start = parser->at;
    parser->at += length;
    return length ? g_strndup(start, length) : NULL;
}

/* --- values --- */

/* After its quote. \" and \\ stand for what they show, \n for a line break. */
static char *
take_quoted(Parser *parser)
{
    g_autoptr(GString) text = g_string_new(NULL);
    for (; *parser->at != '"'; parser->at++) {
        if (*parser->at == '\\' && parser->at[1]) {
            parser->at++;
            g_string_append_c(text, *parser->at == 'n' ? '\n' : *parser->at);
        } else if (*parser->at) {
            g_string_append_c(text, *parser->at);
        } else {
            return expected(parser, "'\"'"), NULL;
        }
    }
    parser->at++;
    return g_strdup(text->str);
}

static char *
take_word(Parser *parser, bool *quoted)
{
    skip_blanks(parser);
    *quoted = *parser->at == '"';
    if (*quoted) {
        parser->at++;
        return take_quoted(parser);
    }
    size_t length = strcspn(parser->at, " \t\n,{}[]=\"");
    const char *start = parser->at;
    parser->at += length;
    return length ? g_strndup(start, length) : (expected(parser, "a value"), NULL);
}

static bool
take_words(Parser *parser, GPtrArray *words, KilnOptionText *text)
{
    text->is_list = accept(parser, '[');
    if (!text->is_list || !accept(parser, ']')) {
        do {
            char *one = take_word(parser, &text->quoted);
            if (!one)
                return false;
            g_ptr_array_add(words, one);
        } while (text->is_list && accept(parser, ','));
        if (text->is_list && !accept(parser, ']'))
            return expected(parser, "',' or ']'");
    }
    text->words = (const char *const *)words->pdata;
    text->n_words = words->len;
    return true;
}

/* --- settings --- */

static bool
set_modes(const KilnOptionText *text, KilnPipelineEntry *entry)
{
    entry->modes = 0;
    for (uint32_t i = 0; i < text->n_words; i++) {
        uint32_t bit;
        if (!kiln_pipeline_mode(text->words[i], &bit))
            return false;
        entry->modes |= bit;
    }
    return entry->modes != 0;
}

/* What every entry has. Stores what would have been right where the value is wrong; false where
 * @name is no such setting. */
static bool
set_common(const char *name, const KilnOptionText *text, KilnPipelineEntry *entry,
           const char **out_wrong)
{
    const char *word = text->is_list ? "" : text->words[0];
    bool ok;
    if (strcmp(name, "convergence") == 0) {
        ok = kiln_pipeline_convergence(word, &entry->convergence);
        *out_wrong = ok ? NULL : "one-pass or until-fixed-point";
    } else if (strcmp(name, "max-iterations") == 0) {
        ok = kiln_pipeline_iterations(word, &entry->max_iterations);
        *out_wrong = ok ? NULL : "a number of 1 to 10000";
    } else if (strcmp(name, "dce") == 0) {
        ok = entry->pass->level == KILN_LEVEL_GRAPH && kiln_pipeline_dce(word, &entry->dce_before);
        *out_wrong = ok                                       ? NULL
                     : entry->pass->level == KILN_LEVEL_GRAPH ? "before-pass or none"
                                                              : "no such key at the ir level";
    } else if (strcmp(name, "modes") == 0) {
        ok = set_modes(text, entry);
        *out_wrong = ok ? NULL : "infer, train or a list of them";
    } else {
        return false;
    }
    return true;
}

static bool
parse_setting(Parser *parser, KilnPipelineEntry *entry, GPtrArray *names)
{
    skip_blanks(parser);
    const char *start = parser->at;
    char *name = take_name(parser);
    if (!name)
        return expected(parser, "the name of an option");
    if (g_ptr_array_find_with_equal_func(names, name, g_str_equal, NULL)) {
        fail_at(parser, start, "option '%s' is there twice", name);
        g_free(name);
        return false;
    }
    g_ptr_array_add(names, name);
    if (!accept(parser, '='))
        return expected(parser, "'='");
    skip_blanks(parser);
    const char *value = parser->at;
    g_autoptr(GPtrArray) words = g_ptr_array_new_with_free_func(g_free);
    KilnOptionText text = { 0 };
    if (!take_words(parser, words, &text))
        return false;
    const char *wrong = NULL;
    if (set_common(name, &text, entry, &wrong)) {
        if (wrong)
            fail_at(parser, value, "%s: expected %s", name, wrong);
        return !wrong;
    }
    g_autoptr(GError) why = NULL;
    if (kiln_pipeline_set_option(parser->pipeline, entry, name, &text, &why))
        return true;
    fail_at(parser, kiln_pipeline_has_option(entry, name) ? value : start, "%s", why->message);
    return false;
}

static bool
parse_entry(Parser *parser)
{
    skip_blanks(parser);
    const char *start = parser->at;
    g_autofree char *id = take_name(parser);
    if (!id)
        return expected(parser, "the name of a pass");
    KilnPipelineEntry *entry = kiln_pass_pipeline_add(parser->pipeline, id, NULL);
    if (!entry) {
        g_autofree char *hint = kiln_suggest_pass(parser->pipeline, id);
        fail_at(parser, start, "there is no pass '%s'%s", id, hint);
        return false;
    }
    if (!accept(parser, '{') || accept(parser, '}'))
        return true;
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    do {
        if (!parse_setting(parser, entry, names))
            return false;
    } while (accept(parser, ','));
    return accept(parser, '}') || expected(parser, "',' or '}'");
}

gboolean
kiln_pipeline_read_inline(KilnPassPipeline *pipeline, const char *text, GError **error)
{
    Parser parser = { pipeline, text, text, error };
    if (!g_utf8_validate(text, -1, NULL))
        return kiln_throw(error, KILN_ERROR_PIPELINE, "passes:1:1: the text is not UTF-8");
    skip_blanks(&parser);
    if (!*parser.at)
        return TRUE; /* no passes at all */
    do {
        if (!parse_entry(&parser))
            return FALSE;
    } while (accept(&parser, ','));
    return !*parser.at || expected(&parser, "',' or the end");
}

KilnPassPipeline *
kiln_pass_pipeline_parse_inline(const char *text, GError **error)
{
    g_autoptr(KilnPassPipeline) pipeline = kiln_pass_pipeline_new();
    return kiln_pipeline_read_inline(pipeline, text, error) ? g_steal_pointer(&pipeline) : NULL;
}
