/* SPDX-License-Identifier: Apache-2.0 */
/* What a run wrote, as callers read it. */
#include "graph/base/alloc.h"
#include "graph/error.h"
#include "graph/kiln-types.h"
#include "kiln.h"
#include "runtime/open/carry.h"
#include "runtime/options.h"
#include "runtime/session.h"

/* What lies in rows with gaps, to the session's own memory for the output. */
static gboolean
copy_carried(KilnSession *session, const KilnCarry *carry, GError **error)
{
    OutputSlot *slot = &session->outputs[carry->output];
    size_t bytes = kiln_carry_bytes(carry);
    if (!slot->own || slot->own_bytes < bytes) {
        kiln_free(slot->own);
        slot->own = kiln_alloc_for("an output", 1, bytes, error);
        slot->own_bytes = slot->own ? bytes : 0;
    }
    if (slot->own)
        kiln_carry_gather(carry, slot->own);
    return slot->own != NULL;
}

const void *
kiln_session_output(KilnSession *session, unsigned i, KilnTensorInfo *info, GError **error)
{
    if (i >= session->program->outputs.n)
        return kiln_throw_null(error, KILN_ERROR_USAGE, "output %u: the program has %u", i,
                               session->program->outputs.n);
    if (!session->ran)
        return kiln_throw_null(error, KILN_ERROR_USAGE,
                               "output %s: the session has not run, or its last run failed",
                               session->program->outputs.info[i].name);
    if (session->outputs[i].moved)
        return kiln_throw_null(error, KILN_ERROR_USAGE,
                               "output %s: other memory was bound since the last run",
                               session->program->outputs.info[i].name);
    static const KilnStructKind kind = KILN_STRUCT_KIND(KilnTensorInfo, KILN_TENSOR_INFO_INIT);
    if (info && !kiln_report_copy(&kind, &session->made->outputs.info[i], info, error))
        return NULL;
    OutputSlot *slot = &session->outputs[i];
    const KilnCarry *carry = kiln_session_carried_in_place(session, i);
    if (carry && !slot->user && !copy_carried(session, carry, error))
        return NULL;
    return slot->user ? slot->user : slot->own;
}
