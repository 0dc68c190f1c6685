/* SPDX-License-Identifier: Apache-2.0 */
/* What a run wrote, as callers read it. */
#include "graph/base/alloc.h"
#include "graph/error.h"
#include "graph/kiln-types.h"
#include "kiln.h"
#include "runtime/open/carry.h"
#include "runtime/options.h"
#include "runtime/session.h"

#include <string.h>

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

gboolean
kiln_session_renew_outputs(KilnSession *session, GError **error)
{
    for (unsigned i = 0; i < session->made->outputs.n; i++) {
        if (!kiln_session_make_output(session, i, error))
            return FALSE;
    }
    kiln_session_resolve(session, KILN_SLOT_OUTPUT, UINT32_MAX);
    session->outputs_taken = false;
    return TRUE;
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
    if (session->outputs[i].taken)
        return kiln_throw_null(error, KILN_ERROR_USAGE,
                               "output %s: its memory was taken since the last run",
                               session->program->outputs.info[i].name);
    if (info && !kiln_report_copy(&kind, &session->made->outputs.info[i], info, error))
        return NULL;
    OutputSlot *slot = &session->outputs[i];
    const KilnCarry *carry = kiln_session_carried_in_place(session, i);
    if (carry && !slot->user && !copy_carried(session, carry, error))
        return NULL;
    return slot->user ? slot->user : slot->own;
}

static bool
is_carried(const KilnSession *session, unsigned output)
{
    bool carried = false;
    for (unsigned k = 0; k < session->carries.n; k++)
        carried |= session->carries.v[k].output == output;
    return carried;
}

static void *
copy_output(const void *data, int64_t bytes, GError **error)
{
    void *copy = kiln_alloc_for("an output", 1, (size_t)bytes, error);
    if (copy && bytes)
        memcpy(copy, data, (size_t)bytes);
    return copy;
}

void *
kiln_session_take_output(KilnSession *session, unsigned i, KilnTensorInfo *info, GError **error)
{
    const void *data = kiln_session_output(session, i, info, error);
    if (!data)
        return NULL;
    OutputSlot *slot = &session->outputs[i];
    const KilnTensorInfo *found = &session->made->outputs.info[i];
    if (found->dtype == KILN_DTYPE_string)
        return kiln_throw_null(error, KILN_ERROR_USAGE,
                               "output %s: strings are valid until the next run, and are not taken",
                               found->name);
    if (slot->user)
        return kiln_throw_null(error, KILN_ERROR_USAGE,
                               "output %s: it is in bound memory, which is the caller's already",
                               found->name);
    if (is_carried(session, i)) /* the next run reads it */
        return copy_output(data, found->bytes, error);
    slot->own = NULL;
    slot->own_bytes = 0;
    slot->taken = session->outputs_taken = true;
    return (void *)data;
}

void
kiln_session_free_output(void *data)
{
    kiln_free(data);
}
