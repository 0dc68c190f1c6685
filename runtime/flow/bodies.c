/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/flow/bodies.h"

#include "ir/flow.h"

static void
body_free(gpointer data)
{
    KilnBody *body = data;
    if (body->clear)
        body->clear(body);
    g_free(body);
}

GPtrArray *
kiln_bodies_new(const KilnIRFunction *function)
{
    GPtrArray *list = NULL;
    kiln_foreach_instr (instr, function) {
        if (!kiln_instr_is_flow(instr->kind))
            continue;
        if (!list)
            list = g_ptr_array_new_with_free_func(body_free);
        for (int b = 0; b < (instr->kind == KILN_INSTR_branch ? 2 : 1); b++) {
            KilnBody *body = g_new0(KilnBody, 1);
            body->function = kiln_flow_function(instr, b);
            g_ptr_array_add(list, body);
        }
    }
    return list;
}
