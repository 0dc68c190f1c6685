/* SPDX-License-Identifier: Apache-2.0 */
/* For authors of passes outside this tree: walk, match, build, replace.
 *
 * A plug-in is a shared object with one function, named in a pipeline file
 * (`plugins: [./libmypass.so]`):
 *
 *     #include <passes/kiln-pass.h>
 *
 *     static gboolean run(KilnFunction *function, KilnPassContext *context, bool *changed,
 *                         GError **error) { … }
 *
 *     static const KilnPassInfo passes[] = {
 *         { .id = "my-pass", .level = KILN_LEVEL_GRAPH, .numerics = KILN_NUMERICS_E,
 *           .summary = "what it does", .run_graph = run },
 *     };
 *     KILN_PASS_PLUGIN(passes)
 *
 * A list of rules stands there as `.rules = &list` instead of a function: see RULE_LIST of
 * passes/rule.h.
 *
 * A program with passes of its own gives such a table to kiln_pipeline_register_passes() of kiln.h.
 *
 * A pass changes the function that it is given and says honestly whether it did. The manager
 * verifies, checks, times and counts. This header has a version apart from kiln.h. Kiln refuses to
 * load a plug-in that was built against another version of it. */
#ifndef KILN_PASSES_KILN_PASS_H
#define KILN_PASSES_KILN_PASS_H

#include "passes/rule.h"

G_BEGIN_DECLS

#define KILN_PASS_API_VERSION 5

typedef struct KilnPassPlugin {
    uint32_t api_version; /* KILN_PASS_API_VERSION */
    uint32_t info_size;   /* sizeof(KilnPassInfo) */
    const KilnPassInfo *passes;
    uint32_t n_passes;
} KilnPassPlugin;

/** The symbol `kiln_pass_plugin`: it returns a table that lives as long as the plug-in. */
typedef const KilnPassPlugin *(*KilnPassPluginFn)(void);
#define KILN_PASS_PLUGIN_SYMBOL "kiln_pass_plugin"

#define KILN_PASS_PLUGIN(table)                                                                    \
    G_BEGIN_DECLS /* its name is the same in C++ */                                                \
        __attribute__((visibility("default"))) const KilnPassPlugin *                              \
        kiln_pass_plugin(void);                                                                    \
    G_END_DECLS                                                                                    \
    const KilnPassPlugin *kiln_pass_plugin(void)                                                   \
    {                                                                                              \
        static const KilnPassPlugin plugin = { KILN_PASS_API_VERSION, sizeof(KilnPassInfo), table, \
                                               G_N_ELEMENTS(table) };                              \
        return &plugin;                                                                            \
    }

G_END_DECLS

#endif
