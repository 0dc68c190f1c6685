/* SPDX-License-Identifier: Apache-2.0 */
/* Files of plug-ins, which bring passes, operators, or both. */
#ifndef KILN_GRAPH_ONNX_PLUGIN_PLUGINS_H
#define KILN_GRAPH_ONNX_PLUGIN_PLUGINS_H

#include "graph/kiln-op.h"

#include <gmodule.h>

/** A binary that holds this library with hidden symbols defines it, as Python's extension does: it
 * makes global symbols of the functions that plug-ins call. NULL elsewhere. KILN_ERROR_PIPELINE. */
gboolean kiln_plugin_show_functions(GError **error) __attribute__((weak, visibility("hidden")));
/** Opens the file @path, which then finds the functions of this library. KILN_ERROR_PIPELINE. */
GModule *kiln_plugin_open(const char *path, GError **error);
/** Registers all of @n descriptions, or none. Fails where Kiln has such an operator itself. @from
 * names where they come from. */
gboolean kiln_plugin_register_new(const KilnOpDescription *ops, uint32_t n, const char *from,
                                  GError **error);
/** Registers the operators of @module, which then stays for ever. *@out_any is FALSE if it brings
 * none. */
gboolean kiln_plugin_register_module(GModule *module, const char *path, gboolean *out_any,
                                     GError **error);

#endif
