/* SPDX-License-Identifier: Apache-2.0 */
/* Entries of the profile of a session: one per call, and one per call of the bodies that it ran. */
#include "ir/plan.h"
#include "ir/target.h"
#include "runtime/flow/flow.h"
#include "runtime/session.h"

void
kiln_session_state_entries(KilnSession *session, bool anew)
{
    const KilnSpecialisation *made = session->made;
    g_autofree int64_t *live = kiln_memory_live_bytes(made->plan);
    for (uint32_t c = 0; c < made->n_calls; c++) {
        const KilnBoundCall *call = &made->calls[c];
        const KilnCost cost = kiln_instr_cost(call->instr);
        KilnProfileEntry *entry = session->entries[c];
        entry->instruction = kiln_instr_info(call->instr->kind)->name;
        entry->node = kiln_instr_label(call->instr);
        entry->kernel = call->kernel ? call->kernel->name : "";
        entry->flops = cost.flops;
        entry->bytes = cost.bytes;
        entry->live_bytes = live[c];
        entry->runs = anew ? 0 : entry->runs;
        entry->calls = anew ? 0 : entry->calls;
        entry->ms = anew ? 0 : entry->ms;
    }
}

void
kiln_session_forget_times(KilnSession *session)
{
    for (uint32_t c = 0; session->entries && c < session->made->n_calls; c++) {
        session->entries[c]->ms = 0;
        session->entries[c]->runs = session->entries[c]->calls = 0;
        for (int b = 0; session->flows && b < 2; b++) {
            KilnSession *inner = kiln_flows_inner(session->flows, c, b);
            if (inner)
                kiln_session_forget_times(inner);
        }
    }
}

void
kiln_session_make_entries(KilnSession *session)
{
    const KilnSpecialisation *made = session->made;
    session->entries = g_malloc0(made->n_calls * (sizeof(void *) + sizeof(KilnProfileEntry)) + 1);
    KilnProfileEntry *entries = (KilnProfileEntry *)(session->entries + made->n_calls);
    for (uint32_t c = 0; c < made->n_calls; c++)
        session->entries[c] = &entries[c];
    kiln_session_state_entries(session, true);
}

/* --- bodies of branches and loops --- */

/* What the bodies of call @c of @session took. */
static double
ms_inside(const KilnSession *session, uint32_t c)
{
    double ms = 0;
    for (int b = 0; b < 2; b++) {
        const KilnSession *inner = kiln_flows_inner(session->flows, c, b);
        for (uint32_t i = 0; inner && inner->entries && i < inner->made->n_calls; i++)
            ms += inner->entries[i]->ms;
    }
    return ms;
}

/* Appends copies of the entries of @session, a body in @runs runs: sums over all that it was
 * called. A branch or loop has its own time, and its bodies come behind it. @runs 0: the session
 * itself. */
static void
add_entries(GPtrArray *list, const KilnSession *session, uint64_t runs)
{
    for (uint32_t c = 0; session->entries && c < session->made->n_calls; c++) {
        KilnProfileEntry *entry = g_memdup2(session->entries[c], sizeof *entry);
        const uint64_t of_session = runs ? runs : entry->runs;
        if (runs) {
            const double times = (double)entry->calls / (double)runs;
            entry->flops = (int64_t)((double)entry->flops * times);
            entry->bytes = (int64_t)((double)entry->bytes * times);
            entry->runs = runs;
        }
        g_ptr_array_add(list, entry);
        if (!session->flows)
            continue;
        entry->ms = MAX(entry->ms - ms_inside(session, c), 0.0);
        for (int b = 0; b < 2; b++) {
            const KilnSession *inner = kiln_flows_inner(session->flows, c, b);
            if (inner && of_session)
                add_entries(list, inner, of_session);
        }
    }
}

const KilnProfileEntry *const *
kiln_session_profile(KilnSession *session, unsigned *out_n)
{
    *out_n = session->entries ? session->made->n_calls : 0;
    if (!session->entries || !session->flows)
        return (const KilnProfileEntry *const *)session->entries;
    if (session->listed)
        g_ptr_array_unref(session->listed);
    session->listed = g_ptr_array_new_with_free_func(g_free);
    add_entries(session->listed, session, 0);
    *out_n = session->listed->len;
    return (const KilnProfileEntry *const *)session->listed->pdata;
}
