/* SPDX-License-Identifier: Apache-2.0 */
/* Entries of the profile of a session: one per call. */
#include "ir/plan.h"
#include "ir/target.h"
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
        entry->ms = anew ? 0 : entry->ms;
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

const KilnProfileEntry *const *
kiln_session_profile(KilnSession *session, unsigned *out_n)
{
    *out_n = session->entries ? session->made->n_calls : 0;
    return (const KilnProfileEntry *const *)session->entries;
}
