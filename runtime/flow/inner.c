/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions for the functions that branches and loops run. */
#include "graph/base/alloc.h"
#include "runtime/flow/flow.h"
#include "runtime/session.h"

KilnSession *
kiln_session_new_inner(KilnSession *outer, KilnSpecialisation *made, GError **error)
{
    g_autoptr(GError) why = NULL;
    KilnSession *session = g_new0(KilnSession, 1);
    session->program = outer->program; /* borrowed: the outer session has it */
    session->made = made;
    session->threads = outer->threads;
    session->parallel_for = outer->parallel_for;
    session->pool = outer->pool;
    session->cancel = outer->cancel;
    session->profile = outer->profile;
    session->poll = outer->poll;
    session->poll_data = outer->poll_data;
    session->texts = outer->texts; /* borrowed, too */
    session->data = g_new0(const void *, (gsize)made->inputs.n + 1);
    session->outputs = g_new0(OutputSlot, (gsize)made->outputs.n + 1);
    session->calls = g_new0(KilnCall, (gsize)made->n_calls + 1);
    session->addresses = g_new0(void *, (gsize)made->n_slots + 1);
    session->flows = kiln_flows_new(session, &why);
    if (why) {
        g_propagate_error(error, g_steal_pointer(&why));
        kiln_session_free_inner(session);
        return NULL;
    }
    return session;
}

void
kiln_session_free_inner(KilnSession *session)
{
    if (!session)
        return;
    unsigned n = session->made->outputs.n;
    kiln_session_drop(session);
    kiln_session_free_arena(session);
    for (unsigned i = 0; i < n; i++)
        kiln_free(session->outputs[i].own);
    g_free(session->data);
    g_free(session->outputs);
    g_free(session);
}
