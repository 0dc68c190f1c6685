/* SPDX-License-Identifier: Apache-2.0 */
/* Pipelines as users hold them: shipped ones by name, files, inline text, or built in C. */
#include "passes/pipeline/pipeline.h"
#include "runtime/pipeline.h"

#include "graph/grow/reserve.h"
#include "passes/pipeline/suggest.h"
#include "runtime/scope.h"

#include <string.h>

static KilnPipeline *
wrap(KilnPassPipeline *passes)
{
    if (!passes)
        return NULL;
    KilnPipeline *pipeline = g_new0(KilnPipeline, 1);
    atomic_init(&pipeline->references, 1);
    pipeline->passes = passes;
    return pipeline;
}

/* Appends what a shipped pipeline or a file says to @passes. */
static gboolean
read_named(KilnPassPipeline *passes, const char *name_or_path, GError **error)
{
    const char *text = kiln_pipeline_shipped(name_or_path);
    if (text)
        return kiln_pipeline_read_yaml(passes, text, strlen(text), name_or_path, error);
    bool is_name = !strchr(name_or_path, '.') && !strchr(name_or_path, '/');
    if (is_name && !g_file_test(name_or_path, G_FILE_TEST_EXISTS)) {
        g_autofree char *names = kiln_pipeline_shipped_names();
        g_auto(GStrv) words = g_strsplit(names, ", ", -1);
        g_autofree char *hint =
            kiln_suggest(name_or_path, (const char *const *)words, g_strv_length(words));
        return kiln_throw(error, KILN_ERROR_PIPELINE, "%s: expected a file or one of %s%s",
                          name_or_path, names, hint);
    }
    return kiln_pipeline_read_file(passes, name_or_path, error);
}

static KilnPipeline *
read_source(const KilnPipelineSource *source, GError **error)
{
    g_autoptr(KilnPassPipeline) passes = kiln_pass_pipeline_new();
    for (const char *const *plugin = source->plugins; plugin && *plugin; plugin++) {
        if (!kiln_pass_pipeline_load_plugin(passes, *plugin, error))
            return NULL;
    }
    gboolean good = source->name ? read_named(passes, source->name, error)
                                 : kiln_pipeline_read_inline(passes, source->text, error);
    return good ? wrap(g_steal_pointer(&passes)) : NULL;
}

KilnPipeline *
kiln_pipeline_open(const KilnPipelineSource *source, GError **error)
{
    G_GNUC_UNUSED g_auto(KilnRunScope) scope = kiln_run_scope_enter(NULL, NULL);
    /* With a hold on the reserve; once the pipeline is there, it allocates no more. */
    if (!kiln_reserve_hold(error))
        return NULL;
    g_autoptr(KilnPipeline) pipeline = read_source(source, error);
    gboolean good = pipeline && kiln_reserve_check_step(error);
    kiln_reserve_release();
    return good ? g_steal_pointer(&pipeline) : NULL;
}

KilnPipeline *
kiln_pipeline_load(const char *name_or_path, GError **error)
{
    return kiln_pipeline_open(&(KilnPipelineSource){ .name = name_or_path }, error);
}

KilnPipeline *
kiln_pipeline_parse(const char *text, GError **error)
{
    return kiln_pipeline_open(&(KilnPipelineSource){ .text = text }, error);
}

KilnPipeline *
kiln_pipeline_new(void)
{
    return wrap(kiln_pass_pipeline_new());
}

static gboolean
check_unused(KilnPipeline *pipeline, GError **error)
{
    return !atomic_load(&pipeline->used) ||
           kiln_throw(error, KILN_ERROR_USAGE,
                      "a pipeline that a program was compiled with cannot change");
}

gboolean
kiln_pipeline_load_plugin(KilnPipeline *pipeline, const char *path, GError **error)
{
    return check_unused(pipeline, error) &&
           kiln_pass_pipeline_load_plugin(pipeline->passes, path, error);
}

gboolean
kiln_pipeline_register_passes(KilnPipeline *pipeline, const KilnPassPlugin *table, GError **error)
{
    return check_unused(pipeline, error) &&
           kiln_pass_pipeline_register_table(pipeline->passes, "a table of passes", table, error);
}

gboolean
kiln_pipeline_add(KilnPipeline *pipeline, const char *pass, GError **error)
{
    G_GNUC_UNUSED g_auto(KilnRunScope) scope = kiln_run_scope_enter(NULL, NULL);
    if (!check_unused(pipeline, error))
        return FALSE;
    KilnPassPipeline *passes = pipeline->passes;
    guint n_graph = passes->graph->len, n_ir = passes->ir->len;
    gboolean good = kiln_pipeline_read_inline(passes, pass, error);
    if (good && passes->graph->len == n_graph && passes->ir->len == n_ir)
        good = kiln_throw(error, KILN_ERROR_PIPELINE, "expected a pass, found nothing");
    if (!good) {
        /* What was read before the mistake goes again. */
        g_ptr_array_set_size(passes->graph, (int)n_graph);
        g_ptr_array_set_size(passes->ir, (int)n_ir);
    }
    return good;
}

char *
kiln_pipeline_to_string(const KilnPipeline *pipeline)
{
    GString *out = g_string_new(NULL);
    kiln_pass_pipeline_print(pipeline->passes, out);
    return g_string_free(out, FALSE);
}

KilnPipeline *
kiln_pipeline_ref(KilnPipeline *pipeline)
{
    atomic_fetch_add(&pipeline->references, 1);
    return pipeline;
}

void
kiln_pipeline_unref(KilnPipeline *pipeline)
{
    if (!pipeline || atomic_fetch_sub(&pipeline->references, 1) != 1)
        return;
    kiln_pass_pipeline_free(pipeline->passes);
    g_free(pipeline);
}
