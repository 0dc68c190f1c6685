/* SPDX-License-Identifier: Apache-2.0 */
/* A plug-in that calls what no library has: told when it is loaded, not when it is called. */
#include <passes/kiln-pass.h>

void kiln_function_that_is_nowhere(void);

static gboolean
run(KilnFunction *function, KilnPassContext *context, bool *changed, GError **error)
{
    (void)function, (void)context, (void)error;
    *changed = false;
    kiln_function_that_is_nowhere();
    return TRUE;
}

static const KilnPassInfo passes[] = { { .id = "lost", .summary = "lost", .run_graph = run } };
KILN_PASS_PLUGIN(passes)
