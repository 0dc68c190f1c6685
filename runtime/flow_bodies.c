/* SPDX-License-Identifier: Apache-2.0 */
/* The functions that branches and loops run, as a program has them. */
#include "ir/flow.h"
#include "runtime/flow.h"
#include "runtime/open/template.h"

static void
body_free(gpointer data)
{
    KilnBody *body = data;
    kiln_specialisation_unref(body->made);
    kiln_template_unref(body->origin);
    g_free(body);
}

/* The functions that @function names, in order; NULL where it names none. */
static GPtrArray *
list_bodies(const KilnIRFunction *function)
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

gboolean
kiln_bodies_bind(const KilnIRFunction *function, const KilnBindOptions *options, GPtrArray **out,
                 GError **error)
{
    *out = list_bodies(function);
    for (guint i = 0; *out && i < (*out)->len; i++) {
        KilnBody *body = g_ptr_array_index(*out, i);
        body->made = kiln_bind_function(body->function, options, error);
        if (!body->made)
            return FALSE;
    }
    return TRUE;
}

GPtrArray *
kiln_bodies_open(const KilnIRFunction *function)
{
    GPtrArray *list = list_bodies(function);
    for (guint i = 0; list && i < list->len; i++) {
        KilnBody *body = g_ptr_array_index(list, i);
        body->origin = kiln_template_new_beside(body->function, body->function->inputs->len);
    }
    return list;
}
