/* SPDX-License-Identifier: Apache-2.0 */
/* empty: does nothing. An entry of a pipeline without a name runs it; with `dce: before-pass` it is
 * the way to ask for dead-code elimination and nothing else.
 *
 * requires nothing, preserves everything, runs anywhere. */
#include "passes/pass.h"

GRAPH_PASS(empty);

gboolean
kiln_pass_empty(KilnFunction *function, KilnPassContext *context, bool *changed, GError **error)
{
    (void)function, (void)context, (void)error;
    *changed = false;
    return TRUE;
}
