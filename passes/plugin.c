/* SPDX-License-Identifier: Apache-2.0 */
/* Plug-ins: shared objects that bring passes, loaded for one pipeline and closed with it. */
#include "passes/kiln-pass.h"
#include "passes/manager.h"

#include <gmodule.h>

/* A bare name would be searched for in the system's folders: a plug-in is always a file. */
static char *
as_path(const char *path)
{
    return g_canonicalize_filename(path, NULL);
}

static gboolean
register_all(KilnPassPipeline *pipeline, const char *path, const KilnPassPlugin *plugin,
             GError **error)
{
    if (!plugin)
        return kiln_throw(error, KILN_ERROR_PIPELINE,
                          "plug-in %s: " KILN_PASS_PLUGIN_SYMBOL "() returns nothing", path);
    if (plugin->api_version != KILN_PASS_API_VERSION)
        return kiln_throw(error, KILN_ERROR_PIPELINE,
                          "plug-in %s: built for version %u of kiln-pass.h, expected %d", path,
                          plugin->api_version, KILN_PASS_API_VERSION);
    if (plugin->info_size != sizeof(KilnPassInfo))
        return kiln_throw(error, KILN_ERROR_PIPELINE,
                          "plug-in %s: its rows are %u bytes, expected %zu", path,
                          plugin->info_size, sizeof(KilnPassInfo));
    for (uint32_t i = 0; i < plugin->n_passes; i++) {
        if (!kiln_pass_pipeline_register(pipeline, &plugin->passes[i], error)) {
            g_prefix_error(error, "plug-in %s: ", path);
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
    if (!g_file_test(file, G_FILE_TEST_IS_REGULAR))
        return kiln_throw(error, KILN_ERROR_PIPELINE, "plug-in %s: there is no such file", path);
    /* Not lazily: a symbol that is missing is told now, instead of ending the process later. */
    GModule *module = g_module_open(file, G_MODULE_BIND_LOCAL);
    if (!module)
        return kiln_throw(error, KILN_ERROR_PIPELINE, "plug-in %s: %s", path, g_module_error());
    gpointer symbol = NULL;
    if (!g_module_symbol(module, KILN_PASS_PLUGIN_SYMBOL, &symbol) || !symbol) {
        g_module_close(module);
        return kiln_throw(error, KILN_ERROR_PIPELINE,
                          "plug-in %s: it has no symbol " KILN_PASS_PLUGIN_SYMBOL, path);
    }
    g_ptr_array_add(pipeline->plugins, module); /* from here on closed with the pipeline */
    return register_all(pipeline, path, ((KilnPassPluginFn)symbol)(), error);
}
