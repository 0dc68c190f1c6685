/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that branches and loops run. None runs itself, and the depth is bounded. Several may
 * run one function, so each is looked at once. */
#include "ir/flow.h"
#include "ir/verify/verify_priv.h"

enum {
    DEPTH_MAX = 64, /* of functions in each other */
    ENTERED = -1    /* a height: the function is being looked at */
};

static gboolean check_callee(const KilnIRFunction *function, GHashTable *heights, int depth,
                             int *height, GError **error);

/* *@out_height: how many functions run inside each other below @function. */
static gboolean
check_calls(const KilnIRFunction *function, GHashTable *heights, int depth, int *out_height,
            GError **error)
{
    *out_height = 0;
    g_hash_table_insert(heights, (gpointer)function, GINT_TO_POINTER(ENTERED));
    kiln_foreach_instr (instr, function) {
        for (int b = 0; b < kiln_flow_n_functions(instr); b++) {
            const KilnIRFunction *callee = kiln_flow_function(instr, b);
            if (callee && !check_callee(callee, heights, depth + 1, out_height, error))
                return FALSE;
        }
    }
    g_hash_table_insert(heights, (gpointer)function, GINT_TO_POINTER(*out_height));
    return TRUE;
}

/* The same for one that another function runs at @depth. *@height becomes that of the caller, as
 * far as it is known. */
static gboolean
check_callee(const KilnIRFunction *function, GHashTable *heights, int depth, int *height,
             GError **error)
{
    gpointer known;
    int below = 0;
    bool seen = g_hash_table_lookup_extended(heights, function, NULL, &known);
    if (seen && GPOINTER_TO_INT(known) == ENTERED)
        return kiln_ir_throw(function, error, "expected a func that does not run itself");
    if (depth > DEPTH_MAX || (seen && depth + GPOINTER_TO_INT(known) > DEPTH_MAX))
        return kiln_ir_throw(function, error,
                             "expected at most %d branches and loops in each other, found more",
                             DEPTH_MAX);
    if (seen)
        below = GPOINTER_TO_INT(known);
    else if (!check_calls(function, heights, depth, &below, error))
        return FALSE;
    *height = MAX(*height, below + 1);
    return TRUE;
}

gboolean
kiln_flow_verify(const KilnIRFunction *function, GError **error)
{
    g_autoptr(GHashTable) heights = g_hash_table_new(NULL, NULL);
    int height;
    return check_calls(function, heights, 0, &height, error);
}
