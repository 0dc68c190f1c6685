/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that branches and loops run. A session has memory of its own for each of them, so each
 * is run in one place, and the depth is bounded. */
#include "ir/flow.h"
#include "ir/verify/verify_priv.h"

enum {
    DEPTH_MAX = 64 /* of functions in each other */
};

static gboolean
check_calls(const KilnIRFunction *function, GHashTable *seen, int depth, GError **error)
{
    if (!g_hash_table_add(seen, (gpointer)function->name))
        return kiln_ir_throw(function, error,
                             "expected one branch or loop that runs it, found several, or itself");
    if (depth > DEPTH_MAX)
        return kiln_ir_throw(function, error,
                             "expected at most %d branches and loops in each other, found more",
                             DEPTH_MAX);
    kiln_foreach_instr (instr, function) {
        const int n = instr->kind == KILN_INSTR_branch ? 2 : instr->kind == KILN_INSTR_loop ? 1 : 0;
        for (int b = 0; b < n; b++) {
            const KilnIRFunction *callee = kiln_flow_function(instr, b);
            if (callee && !check_calls(callee, seen, depth + 1, error))
                return FALSE;
        }
    }
    return TRUE;
}

gboolean
kiln_flow_verify(const KilnIRFunction *function, GError **error)
{
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
    return check_calls(function, seen, 0, error);
}
