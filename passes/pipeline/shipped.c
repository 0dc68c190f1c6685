/* SPDX-License-Identifier: Apache-2.0 */
/* The pipelines that ship with Kiln, as texts in the library: found wherever it lies. */

#include "passes/pipeline/pipeline.h"

#include <string.h>

static const struct {
    const char *name, *text;
} shipped[] = {
#include "pipelines.inc"
};

const char *
kiln_pipeline_shipped(const char *name)
{
    for (size_t i = 0; i < G_N_ELEMENTS(shipped); i++) {
        if (strcmp(shipped[i].name, name) == 0)
            return shipped[i].text;
    }
    return NULL;
}

char *
kiln_pipeline_shipped_names(void)
{
    g_autoptr(GString) names = g_string_new(NULL);
    for (size_t i = 0; i < G_N_ELEMENTS(shipped); i++)
        g_string_append_printf(names, "%s%s", i ? ", " : "", shipped[i].name);
    return g_string_free(g_steal_pointer(&names), FALSE);
}
