/* SPDX-License-Identifier: Apache-2.0 */
/* What a run wrote, as callers read it. */
#include "graph/base/alloc.h"
#include "graph/base/item.h"
#include "graph/error.h"
#include "graph/kiln-types.h"
#include "kiln.h"
#include "runtime/open/carry.h"
#include "runtime/options.h"
#include "runtime/session.h"

#include <string.h>

static const KilnStructKind kind = KILN_STRUCT_KIND(KilnTensorInfo, KILN_TENSOR_INFO_INIT);

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

bool
kiln_session_hides_rank(const KilnSession *session, const KilnSpecialisation *made, unsigned i)
{
    return kiln_dtype_is_item(made->outputs.types[i].dtype) &&
           !kiln_dtype_is_item(session->program->outputs.types[i].dtype);
}

gboolean
kiln_session_check_rank(const KilnSession *session, const KilnSpecialisation *made, unsigned i,
                        GError **error)
{
    if (!session->outputs[i].user || !kiln_session_hides_rank(session, made, i))
        return TRUE;
    return kiln_throw(
        error, KILN_ERROR_UNSUPPORTED,
        "output %s: expected no memory of the caller, because a run decides the rank, "
        "found some",
        made->outputs.info[i].name);
}

/* Output @i, whose rank the run decided: the tensor that lies in an optional. */
static const void *
unpacked_output(const KilnSession *session, unsigned i, KilnTensorInfo *info, GError **error)
{
    static const char *const no_names[KILN_MAX_RANK] = { NULL };
    const KilnItem *item = kiln_item_get(kiln_item_of(session->outputs[i].own), 0);
    KilnTensorInfo found = session->program->outputs.info[i];
    found.dims = kiln_item_dims(item, &found.rank);
    found.dim_names = no_names;
    found.bytes = (int64_t)kiln_item_bytes(item);
    if (info && !kiln_report_copy(&kind, &found, info, error))
        return NULL;
    return kiln_item_data(item);
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
    if (session->outputs[i].taken)
        return kiln_throw_null(error, KILN_ERROR_USAGE,
                               "output %s: its memory was taken since the last run",
                               session->program->outputs.info[i].name);
    if (kiln_session_hides_rank(session, session->made, i))
        return unpacked_output(session, i, info, error);
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
    KilnTensorInfo local = KILN_TENSOR_INFO_INIT;
    const KilnTensorInfo *found = &local;
    const void *data = kiln_session_output(session, i, &local, error);
    if (!data || (info && !kiln_report_copy(&kind, &local, info, error)))
        return NULL;
    OutputSlot *slot = &session->outputs[i];
    if (found->dtype == KILN_DTYPE_string)
        return kiln_throw_null(error, KILN_ERROR_USAGE,
                               "output %s: strings are valid until the next run, and are not taken",
                               found->name);
    if (slot->user)
        return kiln_throw_null(error, KILN_ERROR_USAGE,
                               "output %s: it is in bound memory, which is the caller's already",
                               found->name);
    if (is_carried(session, i) || /* the next run reads it */
        kiln_session_hides_rank(session, session->made, i))
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
