/* SPDX-License-Identifier: Apache-2.0 */
/* A plug-in whose pass has the name of a built-in one. */
#include <passes/kiln-pass.h>

static gboolean
run(KilnFunction *function, KilnPassContext *context, bool *changed, GError **error)
{
    (void)function, (void)context, (void)error;
    *changed = false;
    return TRUE;
}

static const KilnPassInfo passes[] = { { .id = "dce", .summary = "another", .run_graph = run } };
KILN_PASS_PLUGIN(passes)
