/* SPDX-License-Identifier: Apache-2.0 */
/* Loads plug-ins, and registers operators that Kiln does not have itself. */
#include "graph/onnx/plugin/plugins.h"

#include "graph/error.h"
#include "graph/onnx/opset.h"
#include "graph/plugin/plugin.h"

#include <dlfcn.h>

/* --- files --- */

/* Plug-ins link to nothing of Kiln: they find its functions among the global symbols. A program may
 * have opened this library with local symbols, as Python does with modules. */
static void
make_symbols_global(void)
{
    Dl_info here;
    if (!dladdr((void *)(uintptr_t)kiln_plugin_open, &here) || !here.dli_fname)
        return;
    void *library = dlopen(here.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL);
    if (library)
        dlclose(library); /* what is there stays: only a reference was taken */
}

static gboolean
show_functions(GError **error)
{
    if (!kiln_plugin_show_functions)
        make_symbols_global();
    else if (!kiln_plugin_show_functions(error))
        return FALSE;
    /* A plug-in takes the first global symbols of these names. NULL: it will tell what it lacks. */
    void *program = dlopen(NULL, RTLD_NOW);
    void *found = program ? dlsym(program, "kiln_throw") : NULL;
    if (program)
        dlclose(program);
    return !found || found == (void *)(uintptr_t)kiln_throw ||
           kiln_throw(
               error, KILN_ERROR_PIPELINE,
               "this process has another copy of Kiln, whose functions a plug-in would call");
}

GModule *
kiln_plugin_open(const char *path, GError **error)
{
    /* A bare name would be searched for in the system's folders: a plug-in is always a file. */
    g_autofree char *file = g_canonicalize_filename(path, NULL);
    if (!g_file_test(file, G_FILE_TEST_IS_REGULAR))
        return kiln_throw_null(error, KILN_ERROR_PIPELINE, "plug-in %s: there is no such file",
                               path);
    if (!show_functions(error)) {
        kiln_prefix_error(error, "plug-in %s: ", path);
        return NULL;
    }
    /* Not lazily: a symbol that is missing is told now, instead of ending the process later. */
    GModule *module = g_module_open(file, G_MODULE_BIND_LOCAL);
    if (!module)
        return kiln_throw_null(error, KILN_ERROR_PIPELINE, "plug-in %s: %s", path,
                               g_module_error());
    return module;
}

/* --- operators --- */

/* Fails where Kiln has the operator: two meanings of one name would depend on what is loaded. */
static gboolean
check_not_own(const KilnOpDescription *op, const char *from, GError **error)
{
    if (!op->domain || !op->name)
        return TRUE; /* the registry complains */
    bool of_onnx = !*op->domain || g_str_equal(op->domain, "ai.onnx");
    bool own = of_onnx ? kiln_onnx_first_opset(op->name) > 0
                       : kiln_onnx_domain_row(op->domain, op->name) != NULL;
    if (!own)
        return TRUE;
    g_autofree char *name = kiln_plugin_name(op->domain, op->name);
    return kiln_throw(error, KILN_ERROR_USAGE, "%s: operator %s: Kiln has it itself", from, name);
}

gboolean
kiln_plugin_register_new(const KilnOpDescription *ops, uint32_t n, const char *from, GError **error)
{
    for (uint32_t i = 0; i < n; i++) {
        if (!check_not_own(&ops[i], from, error))
            return FALSE;
    }
    return kiln_plugin_register(ops, n, from, error);
}

gboolean
kiln_plugin_register_module(GModule *module, const char *path, gboolean *out_any, GError **error)
{
    gpointer symbol = NULL;
    *out_any = g_module_symbol(module, KILN_OP_PLUGIN_SYMBOL, &symbol) && symbol;
    if (!*out_any)
        return TRUE;
    const KilnOpPlugin *plugin = ((KilnOpPluginFn)symbol)();
    if (!plugin)
        return kiln_throw(error, KILN_ERROR_PIPELINE,
                          "plug-in %s: " KILN_OP_PLUGIN_SYMBOL "() returns nothing", path);
    if (plugin->api_version != KILN_OP_API_VERSION)
        return kiln_throw(error, KILN_ERROR_PIPELINE,
                          "plug-in %s: built for version %u of kiln-op.h, expected %d", path,
                          plugin->api_version, KILN_OP_API_VERSION);
    if (plugin->description_size != sizeof(KilnOpDescription))
        return kiln_throw(error, KILN_ERROR_PIPELINE,
                          "plug-in %s: its descriptions are %u bytes, expected %zu", path,
                          plugin->description_size, sizeof(KilnOpDescription));
    g_autofree char *from = g_strdup_printf("plug-in %s", path);
    if (!kiln_plugin_register_new(plugin->operators, plugin->n_operators, from, error))
        return FALSE;
    g_module_make_resident(module);
    return TRUE;
}
