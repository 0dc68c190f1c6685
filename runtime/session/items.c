/* SPDX-License-Identifier: Apache-2.0 */
/* Sequences, optionals and maps as inputs and outputs of a session. An input is the address of an
 * item, as an element of its type is. */
#include "graph/base/item.h"
#include "graph/error.h"
#include "kiln.h"
#include "runtime/model.h"
#include "runtime/session.h"

void
kiln_session_items_init(KilnSession *session)
{
    const KilnInfoList *inputs = &session->program->inputs;
    session->items = g_new0(KilnItem *, inputs->n + 1);
    session->element_ranks = g_new0(int64_t, inputs->n + 1);
    for (unsigned i = 0; i < inputs->n; i++)
        session->has_items |= kiln_dtype_is_item(inputs->types[i].dtype);
}

void
kiln_session_items_clear(KilnSession *session)
{
    for (unsigned i = 0; i < session->program->inputs.n; i++)
        kiln_item_unref(session->items[i]);
    g_free(session->items);
    g_free(session->element_ranks);
}

void
kiln_session_copy_items(KilnSession *clone, const KilnSession *session)
{
    for (unsigned i = 0; i < session->program->inputs.n; i++) {
        if (session->data[i] == (const void *)&session->items[i]) {
            clone->items[i] = kiln_item_ref(session->items[i]);
            clone->data[i] = &clone->items[i];
        }
        clone->element_ranks[i] = session->element_ranks[i];
        if (session->bindings[i].data == (const void *)&session->element_ranks[i])
            clone->bindings[i].data = &clone->element_ranks[i];
    }
}

const void *
kiln_session_key(const KilnSession *session, unsigned i)
{
    return kiln_dtype_is_item(session->program->inputs.types[i].dtype)
               ? (const void *)&session->element_ranks[i]
               : session->data[i];
}

gboolean
kiln_session_begin_items(KilnSession *session, GError **error)
{
    const KilnInfoList *inputs = &session->program->inputs;
    for (unsigned i = 0; i < inputs->n; i++) {
        if (!kiln_dtype_is_item(inputs->types[i].dtype))
            continue;
        const KilnItem *item = kiln_item_of(session->data[i]);
        g_autofree char *what = g_strdup_printf("input %s", inputs->info[i].name);
        if (!kiln_item_check(item, &inputs->types[i], what, error))
            return FALSE;
        session->element_ranks[i] = kiln_item_element_rank(item);
    }
    return TRUE;
}

gboolean
kiln_session_bind_input_item(KilnSession *session, unsigned i, KilnItem *item, GError **error)
{
    const KilnInfoList *inputs = &session->program->inputs;
    if (i < inputs->n && !kiln_dtype_is_item(inputs->types[i].dtype))
        return kiln_throw(error, KILN_ERROR_USAGE,
                          "input %s: expected the data of a tensor, found an item",
                          inputs->info[i].name);
    if (i >= inputs->n)
        return kiln_throw(error, KILN_ERROR_USAGE, "input %u: the program has %u", i, inputs->n);
    if (!kiln_session_bind_input(session, i, &session->items[i], sizeof(KilnItem *), error))
        return FALSE;
    kiln_item_ref(item);
    kiln_item_unref(session->items[i]);
    session->items[i] = item;
    return TRUE;
}

KilnItem *
kiln_session_output_item(KilnSession *session, unsigned i, GError **error)
{
    const KilnInfoList *outputs = &session->program->outputs;
    const void *data = kiln_session_output(session, i, NULL, error);
    if (!data)
        return NULL;
    KilnDType dtype = outputs->types[i].dtype;
    if (!kiln_dtype_is_item(dtype)) {
        kiln_throw(error, KILN_ERROR_USAGE,
                   "output %s: expected a sequence, optional or map, found %s",
                   outputs->info[i].name, kiln_dtype_name(dtype));
        return NULL;
    }
    KilnItem *item = kiln_item_of(data);
    if (item)
        return kiln_item_ref(item);
    return dtype == KILN_DTYPE_sequence ? kiln_item_new_sequence(NULL, 0, error)
                                        : kiln_item_new_optional(NULL, error);
}
