/* SPDX-License-Identifier: Apache-2.0 */
/* Plug-ins: shared objects that bring passes, loaded for one pipeline and closed with it. Operators
 * that they bring stay: see graph/kiln-op.h. */
#include "graph/kiln-op.h"
#include "graph/onnx/plugin/plugins.h"
#include "passes/kiln-pass.h"
#include "passes/pipeline/pipeline.h"

/* A bare name would be searched for in the system's folders: a plug-in is always a file. */
static char *
as_path(const char *path)
{
    return g_canonicalize_filename(path, NULL);
}

gboolean
kiln_pass_pipeline_register_table(KilnPassPipeline *pipeline, const char *from,
                                  const KilnPassPlugin *table, GError **error)
{
    if (table->api_version != KILN_PASS_API_VERSION)
        return kiln_throw(error, KILN_ERROR_PIPELINE,
                          "%s: built for version %u of kiln-pass.h, expected %d", from,
                          table->api_version, KILN_PASS_API_VERSION);
    if (table->info_size != sizeof(KilnPassInfo))
        return kiln_throw(error, KILN_ERROR_PIPELINE, "%s: its rows are %u bytes, expected %zu",
                          from, table->info_size, sizeof(KilnPassInfo));
    guint before = pipeline->extra->len;
    for (uint32_t i = 0; i < table->n_passes; i++) {
        if (!kiln_pass_pipeline_register(pipeline, &table->passes[i], error)) {
            g_ptr_array_set_size(pipeline->extra, (int)before);
            kiln_prefix_error(error, "%s: ", from);
            return FALSE;
        }
    }
    return TRUE;
}

gboolean
kiln_pass_pipeline_load_plugin(KilnPassPipeline *pipeline, const char *path, GError **error)
{
    g_autofree char *file = as_path(path);
    for (guint i = 0; i < pipeline->plugins->len; i++) {
        if (g_strcmp0(g_module_name(g_ptr_array_index(pipeline->plugins, i)), file) == 0)
            return TRUE; /* named by two files that include each other's lists */
    }
    GModule *module = kiln_plugin_open(path, error);
    if (!module)
        return FALSE;
    gboolean any = FALSE;
    gpointer symbol = NULL;
    if (!kiln_plugin_register_module(module, path, &any, error)) {
        g_module_close(module);
        return FALSE;
    }
    if ((!g_module_symbol(module, KILN_PASS_PLUGIN_SYMBOL, &symbol) || !symbol) && !any) {
        g_module_close(module);
        return kiln_throw(error, KILN_ERROR_PIPELINE,
                          "plug-in %s: it has no symbol " KILN_PASS_PLUGIN_SYMBOL
                          " and no symbol " KILN_OP_PLUGIN_SYMBOL,
                          path);
    }
    g_ptr_array_add(pipeline->plugins, module); /* from here on closed with the pipeline */
    if (!symbol)
        return TRUE; /* it brings operators alone */
    const KilnPassPlugin *plugin = ((KilnPassPluginFn)symbol)();
    g_autofree char *from = g_strdup_printf("plug-in %s", path);
    if (!plugin)
        return kiln_throw(error, KILN_ERROR_PIPELINE,
                          "%s: " KILN_PASS_PLUGIN_SYMBOL "() returns nothing", from);
    return kiln_pass_pipeline_register_table(pipeline, from, plugin, error);
}
