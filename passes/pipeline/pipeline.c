/* SPDX-License-Identifier: Apache-2.0 */
/* Pipelines as objects: built in C, by the readers of both text forms, and from plug-ins. */
#include "passes/pipeline/pipeline_priv.h"

#include "passes/pipeline/pipeline.h"
#include "passes/pipeline/suggest.h"

#include <gmodule.h>
#include <string.h>

static void
entry_clear(gpointer data)
{
    KilnPipelineEntry *entry = data;
    g_clear_pointer(&entry->group, g_ptr_array_unref);
}

static void
plugin_close(gpointer module)
{
    g_module_close(module);
}

KilnPassPipeline *
kiln_pass_pipeline_new(void)
{
    KilnPassPipeline *pipeline = g_new0(KilnPassPipeline, 1);
    pipeline->arena = kiln_arena_new();
    pipeline->graph = g_ptr_array_new_with_free_func(entry_clear);
    pipeline->ir = g_ptr_array_new_with_free_func(entry_clear);
    pipeline->plugins = g_ptr_array_new_with_free_func(plugin_close);
    pipeline->extra = g_ptr_array_new();
    return pipeline;
}

void
kiln_pass_pipeline_free(KilnPassPipeline *pipeline)
{
    if (!pipeline)
        return;
    g_ptr_array_unref(pipeline->graph);
    g_ptr_array_unref(pipeline->ir);
    g_ptr_array_unref(pipeline->extra);
    g_ptr_array_unref(pipeline->plugins);
    kiln_arena_free(pipeline->arena);
    g_free(pipeline);
}

static GPtrArray *
list_of(KilnPassPipeline *pipeline, KilnLevel level)
{
    return level == KILN_LEVEL_GRAPH ? pipeline->graph : pipeline->ir;
}

KilnPipelineEntry *
kiln_pipeline_entry_new(KilnPassPipeline *pipeline, const KilnPassInfo *pass)
{
    KilnPipelineEntry *entry = kiln_arena_new0(pipeline->arena, KilnPipelineEntry, 1);
    entry->pass = pass;
    entry->group = pass ? NULL : g_ptr_array_new_with_free_func(entry_clear);
    entry->max_iterations = KILN_MAX_ITERATIONS;
    entry->dce_before = true;
    entry->modes = 1u << KILN_MODE_INFER | 1u << KILN_MODE_TRAIN;
    if (pass && pass->options) {
        entry->options = kiln_arena_alloc(pipeline->arena, pass->options->size);
        kiln_attrs_init(pass->options->attrs, pass->options->n, entry->options);
    }
    return entry;
}

KilnPipelineEntry *
kiln_pass_pipeline_add(KilnPassPipeline *pipeline, const char *pass_id, GError **error)
{
    const KilnPassInfo *pass = kiln_pass_pipeline_find(pipeline, pass_id);
    if (!pass) {
        g_autofree char *hint = kiln_suggest_pass(pipeline, pass_id);
        return kiln_throw_null(error, KILN_ERROR_PIPELINE, "there is no pass '%s'%s", pass_id,
                               hint);
    }
    KilnPipelineEntry *entry = kiln_pipeline_entry_new(pipeline, pass);
    g_ptr_array_add(list_of(pipeline, pass->level), entry);
    return entry;
}

/* --- passes beside the built-in ones --- */

const KilnPassInfo *
kiln_pass_pipeline_find(const KilnPassPipeline *pipeline, const char *id)
{
    const KilnPassInfo *pass = kiln_pass_find(id);
    for (guint i = 0; !pass && i < pipeline->extra->len; i++) {
        const KilnPassInfo *info = g_ptr_array_index(pipeline->extra, i);
        pass = strcmp(info->id, id) == 0 ? info : NULL;
    }
    return pass;
}

static bool
is_kebab(const char *id)
{
    return g_ascii_islower(id[0]) &&
           strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789-") == strlen(id);
}

gboolean
kiln_pass_pipeline_register(KilnPassPipeline *pipeline, const KilnPassInfo *info, GError **error)
{
    if (!info->id || !is_kebab(info->id))
        return kiln_throw(error, KILN_ERROR_PIPELINE,
                          "a pass needs an id of lower-case letters, digits and '-', found '%s'",
                          info->id ? info->id : "");
    bool graph = info->level == KILN_LEVEL_GRAPH;
    if (graph ? !info->run_graph && !info->rules : !info->run_ir)
        return kiln_throw(error, KILN_ERROR_PIPELINE, "pass %s has no function for the %s level",
                          info->id, graph ? "graph" : "ir");
    if (info->options && (!info->options->attrs || !info->options->size))
        return kiln_throw(error, KILN_ERROR_PIPELINE, "pass %s does not describe its options",
                          info->id);
    if (kiln_pass_pipeline_find(pipeline, info->id))
        return kiln_throw(error, KILN_ERROR_PIPELINE, "there are two passes '%s'", info->id);
    g_ptr_array_add(pipeline->extra, (gpointer)info);
    return TRUE;
}

/* --- words --- */

static const char *const flag_names[KILN_N_FLAGS] = {
#define X(id, text) [KILN_FLAG_BIT_##id] = text,
    KILN_FLAG_MAP(X)
#undef X
};

uint32_t
kiln_pipeline_flag(const char *word)
{
    for (int i = 0; i < KILN_N_FLAGS; i++) {
        if (strcmp(flag_names[i], word) == 0)
            return 1u << i;
    }
    return 0;
}

const char *
kiln_pipeline_flag_name(uint32_t bit)
{
    return bit < KILN_N_FLAGS ? flag_names[bit] : NULL;
}

bool
kiln_pipeline_convergence(const char *word, KilnConvergence *out)
{
    *out = strcmp(word, "one-pass") == 0 ? KILN_ONE_PASS : KILN_UNTIL_FIXED_POINT;
    return *out == KILN_ONE_PASS || strcmp(word, "until-fixed-point") == 0;
}

bool
kiln_pipeline_mode(const char *word, uint32_t *out_bit)
{
    bool infer = strcmp(word, "infer") == 0;
    *out_bit = 1u << (infer ? KILN_MODE_INFER : KILN_MODE_TRAIN);
    return infer || strcmp(word, "train") == 0;
}

bool
kiln_pipeline_dce(const char *word, bool *out_before)
{
    *out_before = strcmp(word, "before-pass") == 0;
    return *out_before || strcmp(word, "none") == 0;
}

bool
kiln_pipeline_iterations(const char *word, uint32_t *out)
{
    guint64 value = 0;
    if (!g_ascii_string_to_unsigned(word, 10, 1, KILN_MAX_ITERATIONS_LIMIT, &value, NULL))
        return false;
    *out = (uint32_t)value;
    return true;
}

char *
kiln_suggest_pass(const KilnPassPipeline *pipeline, const char *id)
{
    g_autoptr(GPtrArray) ids = g_ptr_array_new();
    for (uint32_t i = 0; i < kiln_pass_count(); i++)
        g_ptr_array_add(ids, (char *)kiln_pass_at(i)->id);
    for (guint i = 0; pipeline && i < pipeline->extra->len; i++) {
        const KilnPassInfo *info = g_ptr_array_index(pipeline->extra, i);
        g_ptr_array_add(ids, (char *)info->id);
    }
    return kiln_suggest(id, (const char *const *)ids->pdata, ids->len);
}
