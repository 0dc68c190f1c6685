/* SPDX-License-Identifier: Apache-2.0 */
/* The strings of a session: those of its inputs are checked, and those that a run makes live until
 * the next one. */
#include "kiln.h"
#include "runtime/session.h"

KilnTextHeap *
kiln_session_new_texts(const KilnProgram *program)
{
    KilnTextHeap *heap = kiln_text_heap_new();
    int64_t limit = program->memory_limit ? program->memory_limit : program->limits.bytes;
    kiln_text_heap_limit(heap, limit);
    return heap;
}

gboolean
kiln_session_begin_texts(KilnSession *session, GError **error)
{
    const KilnTensorInfo *info = session->made->inputs.info;
    for (unsigned i = 0; i < session->made->inputs.n; i++) {
        if (info[i].dtype != KILN_DTYPE_string)
            continue;
        int64_t n = info[i].bytes / (int64_t)sizeof(KilnText *);
        g_autofree char *what = g_strdup_printf("input %s", info[i].name);
        if (!kiln_texts_check(session->data[i], n, what, error))
            return FALSE;
    }
    kiln_text_heap_reset(session->texts);
    return TRUE;
}

bool
kiln_session_lacks_texts(const KilnSession *session, const KilnInstr *instr, GError **error)
{
    GError *why = kiln_text_heap_take_error(session->texts);
    if (!why)
        return false;
    g_propagate_error(error, why);
    kiln_prefix_error(error, "%s (%s): ", kiln_instr_label(instr),
                      kiln_instr_info(instr->kind)->name);
    return true;
}
