/* SPDX-License-Identifier: Apache-2.0 */
/* What a session reads of the constant cache. */
#include "runtime/bind.h"
#include "runtime/fold_calls.h"
#include "runtime/program.h"
#include "runtime/session.h"

bool
kiln_session_has_folded(const KilnSession *session)
{
    const KilnFolder *folder = session->made->folder;
    return folder && kiln_folder_n_buffers(folder);
}

static gboolean
find_folded(KilnSession *session, unsigned long long generation, GError **error)
{
    KilnProgram *program = session->program;
    KilnCacheEntry *entry = kiln_folder_acquire(session->made->folder, program->cache,
                                                session->data, &program->fold_runs, error);
    if (!entry)
        return FALSE;
    if (session->entry)
        kiln_cache_entry_unref(session->entry);
    session->entry = entry;
    session->generation = generation;
    session->constants_changed = false;
    return TRUE;
}

/* What was packed of them. */
static void
take_packed(KilnSession *session)
{
    const KilnSpecialisation *made = session->made;
    uint32_t first = made->folder->left.results->len;
    for (uint32_t c = 0; c < made->n_calls; c++) {
        uint32_t late = made->calls[c].late;
        if (!late)
            continue;
        const KilnCachedBuffer *buffer = &session->entry->buffers[first + late - 1];
        session->calls[c].args.packed = g_bytes_get_data(buffer->bytes, NULL);
        session->calls[c].args.fitted = buffer->spare;
    }
}

gboolean
kiln_session_pin_folded(KilnSession *session, GError **error)
{
    unsigned long long generation = atomic_load(&session->program->generation);
    bool found = session->entry && session->generation == generation &&
                 !session->constants_changed && kiln_cache_entry_pin(session->entry);
    bool same = found && session->fills == atomic_load(&session->entry->fills);
    if (!found && !find_folded(session, generation, error))
        return FALSE;
    if (!same) {
        session->fills = atomic_load(&session->entry->fills);
        kiln_session_resolve(session, KILN_SLOT_FOLDED, UINT32_MAX);
        take_packed(session);
    }
    return TRUE;
}
