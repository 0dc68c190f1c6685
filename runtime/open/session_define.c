/* SPDX-License-Identifier: Apache-2.0 */
/* Runs whose data decides dims: the calls up to a definition are made, its numbers are read, and
 * the calls that hang on them are made ready. Nothing is done for numbers of the run before. */
#include "graph/base/alloc.h"
#include "graph/base/budget.h"
#include "graph/module/define.h"
#include "runtime/open/define.h"
#include "runtime/open/instance.h"
#include "runtime/session.h"

#include <string.h>

static void
read_numbers(const KilnSession *session, const KilnDefinition *item, int64_t *out)
{
    const KilnBoundCall *call = &session->made->calls[item->call];
    const void *data = item->constant ? g_bytes_get_data(item->constant, NULL)
                                      : session->addresses[call->first_slot];
    bool wide = call->instr->operands[0].buffer->type.dtype == KILN_DTYPE_i64;
    for (uint32_t i = 0; i < item->n; i++)
        out[i] = wide ? ((const int64_t *)data)[i] : ((const int32_t *)data)[i];
}

/* Memory of the caller must have room for what data decides. */
static gboolean
check_decided(const KilnSession *session, GError **error)
{
    for (unsigned i = 0; i < session->made->outputs.n; i++) {
        const OutputSlot *output = &session->outputs[i];
        const KilnTensorInfo *info = &session->made->outputs.info[i];
        if (output->user && kiln_instance_decides_output(session->made, i) &&
            output->user_bytes < (size_t)info->bytes)
            return kiln_throw(error, KILN_ERROR_SHAPE,
                              "output %s: expected room for %" G_GINT64_FORMAT " bytes, found %zu",
                              info->name, info->bytes, output->user_bytes);
    }
    return TRUE;
}

/* A bigger arena with what lies in the one that there is. */
static gboolean
grow_arena(KilnSession *session, size_t need, GError **error)
{
    if (session->user_arena || session->arena_bytes >= need)
        return kiln_session_make_arena(session, need, error);
    char *before = session->arena;
    size_t bytes = session->arena_bytes;
    session->arena = NULL;
    session->arena_bytes = 0;
    bool limited = kiln_limits_current().bytes || bytes > SIZE_MAX / 4;
    gboolean good = kiln_session_make_arena(session, limited ? need : MAX(need, 2 * bytes), error);
    if (good && bytes)
        memcpy(session->arena, before, bytes);
    kiln_free(before);
    return good;
}

/* The instance got other numbers in the run. What lies in the arena stays. */
static gboolean
follow(KilnSession *session, GError **error)
{
    const KilnSpecialisation *made = session->made;
    if (!grow_arena(session, (size_t)made->arena_bytes, error))
        return FALSE;
    for (unsigned i = 0; i < made->outputs.n; i++) {
        if (!kiln_session_make_output(session, i, error))
            return FALSE;
    }
    kiln_session_refill(session, false);
    return check_decided(session, error);
}

/* Numbers of data that an instruction cannot take make the run fail, and leave the program whole.
 */
static gboolean
move(KilnSession *session, uint32_t k, const int64_t *numbers, bool *out_changed, GError **error)
{
    g_autoptr(GError) why = NULL;
    if (kiln_instance_define(session->made, k, numbers, out_changed, &why))
        return TRUE;
    if (g_error_matches(why, KILN_ERROR, KILN_ERROR_INVALID))
        why->code = KILN_ERROR_RUN;
    g_propagate_error(error, g_steal_pointer(&why));
    return FALSE;
}

static gboolean
define(KilnSession *session, const KilnDefinitions *definitions, uint32_t k, GError **error)
{
    const KilnDefinition *item = &definitions->items[k];
    int64_t numbers[KILN_DEFINED_MAX];
    bool changed;
    read_numbers(session, item, numbers);
    session->lost =
        !move(session, k, numbers, &changed, error) || (changed && !follow(session, error));
    if (session->lost)
        kiln_prefix_error(error, "%s: ", kiln_instr_label(session->made->calls[item->call].instr));
    return !session->lost;
}

gboolean
kiln_session_stages(KilnSession *session, KilnCallsFn run, GError **error)
{
    const KilnDefinitions *definitions = kiln_instance_definitions(session->made);
    uint32_t from = 0;
    for (uint32_t k = 0; k < definitions->n; k++) {
        uint32_t call = definitions->items[k].call;
        if (!run(session, from, call, error) || !define(session, definitions, k, error))
            return FALSE;
        from = call;
    }
    return run(session, from, session->made->n_calls, error);
}
