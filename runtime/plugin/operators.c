/* SPDX-License-Identifier: Apache-2.0 */
/* Operators of plug-ins, and of the program itself. */
#include "graph/onnx/plugin/plugins.h"
#include "graph/error.h"
#include "graph/kiln-op.h"
#include "kiln.h"

gboolean
kiln_op_register(const KilnOpDescription *op, GError **error)
{
    return kiln_plugin_register_new(op, 1, "the program", error);
}

gboolean
kiln_op_load_plugin(const char *path, GError **error)
{
    gboolean any = FALSE;
    GModule *module = kiln_plugin_open(path, error);
    if (!module)
        return FALSE;
    gboolean good = kiln_plugin_register_module(module, path, &any, error);
    if (good && !any)
        good = kiln_throw(error, KILN_ERROR_PIPELINE,
                          "plug-in %s: it has no symbol " KILN_OP_PLUGIN_SYMBOL, path);
    g_module_close(module); /* one with operators stays */
    return good;
}
