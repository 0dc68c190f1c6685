/* SPDX-License-Identifier: Apache-2.0 */
/* Runs that are made twice: plainly, and with poison in dead memory. The results must be the same.
 */
#include "runtime/session.h"

#include "graph/base/alloc.h"

#include <string.h>

/* What a run leaves: outputs, then states. */
static void *
result_at(const KilnSession *session, unsigned i, size_t *out_size)
{
    const KilnSpecialisation *made = session->made;
    if (i < made->outputs.n) {
        const OutputSlot *output = &session->outputs[i];
        bool in_place = kiln_session_carried_in_place(session, i);
        *out_size = in_place ? 0 : (size_t)made->outputs.info[i].bytes;
        return output->user ? output->user : output->own;
    }
    const GBytes *bytes = made->states[i - made->outputs.n];
    *out_size = bytes ? g_bytes_get_size((GBytes *)bytes) : 0;
    return session->states[i - made->outputs.n];
}

/* Copies of all that a run leaves, from number @first on; NULL where memory runs out. */
static GPtrArray *
copy_results(const KilnSession *session, unsigned first, GError **error)
{
    g_autoptr(GPtrArray) copies = g_ptr_array_new_with_free_func(kiln_free);
    for (unsigned i = first; i < session->made->outputs.n + session->made->n_states; i++) {
        size_t size;
        const void *data = result_at(session, i, &size);
        void *copy = kiln_alloc_for("a result", 1, size, error);
        if (!copy)
            return NULL;
        if (size)
            memcpy(copy, data, size);
        g_ptr_array_add(copies, copy);
    }
    return g_steal_pointer(&copies);
}

static gboolean
run_on_poison(KilnSession *session, GError **error)
{
    const KilnSpecialisation *made = session->made;
    kiln_poison_fill(session->arena, (size_t)made->arena_bytes);
    for (unsigned i = 0; i < made->outputs.n; i++) {
        size_t size;
        void *data = result_at(session, i, &size);
        kiln_poison_fill(data, size);
    }
    for (uint32_t c = 0; c < made->n_calls; c++) {
        if (!kiln_session_call(session, c, error))
            return FALSE;
        kiln_poison_step(session->poison, session->arena, c);
    }
    return TRUE;
}

/* The bytes of equal strings before the first that differ. */
static size_t
equal_texts(const char *found, const char *want, size_t size)
{
    const KilnText *const *x = (const void *)found, *const *y = (const void *)want;
    size_t i = 0;
    while (i < size / sizeof *x && kiln_text_equal(x[i], y[i]))
        i++;
    return i * sizeof *x;
}

static gboolean
compare_results(const KilnSession *session, const GPtrArray *expected, GError **error)
{
    unsigned n_outputs = session->made->outputs.n;
    for (unsigned i = 0; i < expected->len; i++) {
        size_t size, at = 0;
        const char *found = result_at(session, i, &size), *want = g_ptr_array_index(expected, i);
        if (i < n_outputs && kiln_dtype_is_address(session->made->outputs.info[i].dtype))
            at = equal_texts(found, want, size); /* two runs have them at other addresses */
        while (at < size && found[at] == want[at])
            at++;
        if (at == size)
            continue;
        g_autofree char *name =
            i < n_outputs ? g_strdup_printf("output %s", session->made->outputs.info[i].name)
                          : g_strdup_printf("state %u", i - n_outputs);
        return kiln_throw(error, KILN_ERROR_RUN,
                          "%s: byte %zu is 0x%02x, and 0x%02x with poisoned dead memory: an "
                          "instruction reads memory that nothing wrote",
                          name, at, (uint8_t)want[at], (uint8_t)found[at]);
    }
    return TRUE;
}

/* Plainly, then on poison, from the same states. */
gboolean
kiln_session_calls_poisoned(KilnSession *session, GError **error)
{
    unsigned n_outputs = session->made->outputs.n;
    g_autoptr(GPtrArray) states = copy_results(session, n_outputs, error);
    if (!states || !(session->profile ? kiln_session_calls_profiled(session, error)
                                      : kiln_session_calls(session, error)))
        return FALSE;
    g_autoptr(GPtrArray) results = copy_results(session, 0, error);
    for (unsigned i = 0; results && i < states->len; i++) {
        size_t size;
        void *state = result_at(session, n_outputs + i, &size);
        if (size)
            memcpy(state, g_ptr_array_index(states, i), size);
    }
    return results && run_on_poison(session, error) && compare_results(session, results, error);
}
