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
        if (!list && kiln_flow_n_functions(instr))
            list = g_ptr_array_new_with_free_func(body_free);
        for (int b = 0; b < kiln_flow_n_functions(instr); b++) {
            KilnBody *body = g_new0(KilnBody, 1);
            body->function = kiln_flow_function(instr, b);
            g_ptr_array_add(list, body);
        }
    }
    return list;
}

bool
kiln_bodies_draw(const KilnIRFunction *function, const GPtrArray *bodies)
{
    kiln_foreach_instr (instr, function) {
        if (kiln_instr_stream(instr))
            return true;
    }
    for (guint i = 0; bodies && i < bodies->len; i++) {
        if (((const KilnBody *)g_ptr_array_index(bodies, i))->draws)
            return true;
    }
    return false;
}
