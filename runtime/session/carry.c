/* SPDX-License-Identifier: Apache-2.0 */
/* Carried values around a run: where the input is read from, and what the output leaves. Strings:
 * those of inputs are checked, and those that a run makes live until the next one. */
#include "ir/carry.h"
#include "kiln.h"
#include "runtime/open/instance.h"
#include "runtime/options.h"
#include "runtime/session.h"

#include <string.h>

/* --- stating --- */

static gboolean
check_pair(const KilnSession *session, unsigned output, unsigned input, GError **error)
{
    const KilnProgram *program = session->program;
    if (output >= program->outputs.n)
        return kiln_throw(error, KILN_ERROR_USAGE, "output %u: the program has %u", output,
                          program->outputs.n);
    if (input >= program->inputs.n)
        return kiln_throw(error, KILN_ERROR_USAGE, "input %u: the program has %u", input,
                          program->inputs.n);
    const char *from = program->outputs.info[output].name, *to = program->inputs.info[input].name;
    if (program->values[input] || program->constness[input] != KILN_CONSTNESS_VARYING)
        return kiln_throw(error, KILN_ERROR_USAGE, "input %s: it is constant", to);
    for (unsigned k = 0; k < session->carries.n; k++) {
        if (session->carries.v[k].output == output || session->carries.v[k].input == input)
            return kiln_throw(error, KILN_ERROR_USAGE, "output %s, input %s: carried already", from,
                              to);
    }
    const KilnType *out = &program->outputs.types[output], *in = &program->inputs.types[input];
    if (kiln_dtype_is_address(in->dtype))
        return kiln_throw(error, KILN_ERROR_UNSUPPORTED,
                          "input %s: %s are not carried, because the next run forgets them", to,
                          in->dtype == KILN_DTYPE_string ? "strings"
                                                         : "sequences, optionals and maps");
    if (out->dtype == in->dtype && (out->rank == in->rank || out->rank < 0 || in->rank < 0))
        return TRUE;
    g_autofree char *expected = kiln_type_to_string(in), *found = kiln_type_to_string(out);
    return kiln_throw(error, KILN_ERROR_TYPE, "output %s to input %s: expected %s, found %s", from,
                      to, expected, found);
}

gboolean
kiln_session_carry(KilnSession *session, unsigned output, unsigned input, GError **error)
{
    const KilnProgram *program = session->program;
    KilnCarries *carries = &session->carries;
    if (!check_pair(session, output, input, error))
        return FALSE;
    const KilnType *out = &program->outputs.types[output], *in = &program->inputs.types[input];
    carries->v = g_renew(KilnCarry, carries->v, carries->n + 1);
    carries->v[carries->n++] = (KilnCarry){ .output = output,
                                            .input = input,
                                            .dtype = in->dtype,
                                            .axis = out->rank < 0 ? -1 : kiln_append_axis(out, in),
                                            .is_bound = session->data[input] != NULL };
    if (program->open)
        kiln_session_drop(session); /* the instance was made for other carried values */
    return TRUE;
}

static KilnCarry *
find(KilnSession *session, unsigned input)
{
    for (unsigned k = 0; k < session->carries.n; k++) {
        if (session->carries.v[k].input == input)
            return &session->carries.v[k];
    }
    return NULL;
}

void
kiln_session_carry_bound(KilnSession *session, unsigned input)
{
    KilnCarry *carry = find(session, input);
    if (carry)
        carry->is_bound = true;
}

/* --- where values lie --- */

static bool
is_in_place(const KilnSession *session, unsigned k)
{
    return session->made && kiln_instance_state(session->made, k) != UINT32_MAX;
}

const KilnCarry *
kiln_session_carried_in_place(const KilnSession *session, unsigned output)
{
    for (unsigned k = 0; k < session->carries.n; k++) {
        if (session->carries.v[k].output == output && is_in_place(session, k))
            return &session->carries.v[k];
    }
    return NULL;
}

/* The value leaves the output, which the next run writes. */
static gboolean
leave_output(KilnSession *session, KilnCarry *carry, GError **error)
{
    OutputSlot *slot = &session->outputs[carry->output];
    size_t bytes = kiln_carry_bytes(carry);
    if (carry->output_at != slot->own) {
        if (!kiln_carry_make_dense(carry, bytes, error))
            return FALSE;
        if (bytes)
            memcpy(carry->dense, carry->output_at, bytes);
    } else {
        void *dense = carry->dense;
        size_t dense_bytes = carry->dense_bytes;
        carry->dense = slot->own;
        carry->dense_bytes = slot->own_bytes;
        slot->own = dense;
        slot->own_bytes = dense_bytes;
        session->carries_moved = true;
    }
    carry->place = KILN_CARRIED_DENSE;
    return TRUE;
}

gboolean
kiln_session_carry_begin(KilnSession *session, GError **error)
{
    for (unsigned k = 0; k < session->carries.n; k++) {
        KilnCarry *carry = &session->carries.v[k];
        if (carry->is_bound || carry->place == KILN_CARRIED_NOWHERE)
            continue;
        if (carry->place == KILN_CARRIED_OUTPUT && !leave_output(session, carry, error))
            return FALSE;
        KilnBinding *binding = &session->bindings[carry->input];
        binding->rank = carry->value.rank;
        memcpy(binding->dims, carry->value.dims, sizeof binding->dims);
        const void *data = carry->place == KILN_CARRIED_STATE ? carry->state : carry->dense;
        session->data[carry->input] = data;
        if (session->program->value_inputs[carry->input])
            binding->data = data;
        session->carries_moved = true;
    }
    return TRUE;
}

gboolean
kiln_session_carry_ready(KilnSession *session, GError **error)
{
    for (unsigned k = 0; k < session->carries.n; k++) {
        KilnCarry *carry = &session->carries.v[k];
        bool in_place = is_in_place(session, k), in_state = carry->place == KILN_CARRIED_STATE;
        const void *data = session->data[carry->input];
        if (in_place && (carry->is_bound || !in_state)) {
            carry->value = session->bindings[carry->input];
            carry->value.data = NULL;
            kiln_carry_scatter(carry, data);
            carry->place = KILN_CARRIED_STATE;
            carry->is_bound = false;
        } else if (!in_place && !carry->is_bound && in_state) {
            if (!kiln_carry_make_dense(carry, kiln_carry_bytes(carry), error))
                return FALSE;
            kiln_carry_gather(carry, carry->dense);
            carry->place = KILN_CARRIED_DENSE;
            session->data[carry->input] = carry->dense;
            session->carries_moved = true;
        }
    }
    for (unsigned k = 0; session->carries_moved && k < session->carries.n; k++) {
        if (!kiln_session_make_output(session, session->carries.v[k].output, error))
            return FALSE;
    }
    if (session->carries_moved)
        kiln_session_resolve(session, -1, UINT32_MAX);
    session->carries_moved = false;
    return TRUE;
}

void
kiln_session_carry_end(KilnSession *session)
{
    for (unsigned k = 0; k < session->carries.n; k++) {
        KilnCarry *carry = &session->carries.v[k];
        const KilnType *type = &session->made->outputs.types[carry->output];
        bool in_place = is_in_place(session, k);
        carry->value.rank = type->rank;
        memcpy(carry->value.dims, type->dims, sizeof carry->value.dims);
        carry->place = in_place ? KILN_CARRIED_STATE : KILN_CARRIED_OUTPUT;
        carry->is_bound = false;
        carry->output_at = session->outputs[carry->output].user
                               ? session->outputs[carry->output].user
                               : session->outputs[carry->output].own;
        if (in_place && session->outputs[carry->output].user)
            kiln_carry_gather(carry, session->outputs[carry->output].user);
    }
}

/* --- the caller --- */

gboolean
kiln_session_truncate(KilnSession *session, unsigned input, int64_t extent, GError **error)
{
    KilnCarry *carry = find(session, input);
    const char *name =
        input < session->program->inputs.n ? session->program->inputs.info[input].name : "?";
    if (!carry || carry->axis < 0)
        return kiln_throw(error, KILN_ERROR_USAGE, "input %s: nothing is appended to it", name);
    if (carry->place == KILN_CARRIED_NOWHERE || carry->is_bound)
        return kiln_throw(error, KILN_ERROR_USAGE, "input %s: no run has made its value", name);
    int64_t has = carry->value.dims[carry->axis];
    if (extent < 0 || extent > has)
        return kiln_throw(error, KILN_ERROR_SHAPE,
                          "input %s: expected 0 to %" G_GINT64_FORMAT
                          " elements, found %" G_GINT64_FORMAT,
                          name, has, extent);
    if (carry->place == KILN_CARRIED_OUTPUT && !leave_output(session, carry, error))
        return FALSE;
    session->ran = false; /* the output has more than the value */
    kiln_carry_cut(carry, extent);
    return TRUE;
}

void
kiln_session_reset(KilnSession *session)
{
    for (unsigned k = 0; k < session->carries.n; k++) {
        KilnCarry *carry = &session->carries.v[k];
        bool was_bound = carry->is_bound || carry->place == KILN_CARRIED_NOWHERE;
        carry->place = KILN_CARRIED_NOWHERE;
        if (!was_bound)
            session->data[carry->input] = NULL;
    }
}

static gboolean
copy_value(const KilnCarry *carry, KilnCarry *to, GError **error)
{
    size_t bytes = kiln_carry_bytes(carry);
    if (carry->place == KILN_CARRIED_NOWHERE || carry->is_bound)
        return TRUE;
    to->value = carry->value;
    if (!kiln_carry_make_dense(to, bytes, error))
        return FALSE;
    if (carry->place == KILN_CARRIED_STATE)
        kiln_carry_gather(carry, to->dense);
    else if (bytes)
        memcpy(to->dense, carry->place == KILN_CARRIED_OUTPUT ? carry->output_at : carry->dense,
               bytes);
    to->place = KILN_CARRIED_DENSE;
    return TRUE;
}

KilnSession *
kiln_session_clone(const KilnSession *session, GError **error)
{
    KilnSessionOptions options = KILN_SESSION_OPTIONS_INIT;
    options.cancel = session->cancel;
    options.poll = session->poll;
    options.poll_data = session->poll_data;
    return kiln_session_clone_with(session, &options, error);
}

KilnSession *
kiln_session_clone_with(const KilnSession *session, const KilnSessionOptions *given, GError **error)
{
    static const KilnStructKind kind =
        KILN_STRUCT_KIND(KilnSessionOptions, KILN_SESSION_OPTIONS_INIT);
    KilnSessionOptions options;
    if (!kiln_options_copy(&kind, given, &options, error))
        return NULL;
    const KilnSessionOptions asks = options;
    options = (KilnSessionOptions)KILN_SESSION_OPTIONS_INIT;
    options.threads = session->threads;
    options.profile = session->profile;
    options.poison = session->poisons;
    options.cancel = asks.cancel;
    options.poll = asks.poll;
    options.poll_data = asks.poll_data;
    options.parallel_for = session->parallel_for;
    options.pool = session->pool;
    options.time_limit = session->budget ? session->budget_ms : 0;
    options.seeded = session->seeded;
    options.seed = session->run_seed;
    g_autoptr(KilnSession) clone = kiln_session_new(session->program, &options, error);
    if (!clone)
        return NULL;
    unsigned n = session->program->inputs.n;
    memcpy(clone->bindings, session->bindings, n * sizeof *clone->bindings);
    memcpy(clone->data, session->data, n * sizeof *clone->data);
    kiln_session_copy_items(clone, session);
    clone->ranges_changed = true;
    for (unsigned k = 0; k < session->carries.n; k++) {
        const KilnCarry *carry = &session->carries.v[k];
        bool own = carry->place != KILN_CARRIED_NOWHERE && !carry->is_bound;
        if (own)
            clone->data[carry->input] = NULL;
        if (!kiln_session_carry(clone, carry->output, carry->input, error) ||
            !copy_value(carry, &clone->carries.v[k], error))
            return NULL;
    }
    if (clone->made)
        kiln_session_resolve(clone, -1, UINT32_MAX);
    return g_steal_pointer(&clone);
}

/* --- reading --- */

static void
dense_strides(const KilnType *type, int64_t *strides)
{
    int64_t step = 1;
    for (int d = type->rank - 1; d >= 0; d--) {
        strides[d] = step;
        step *= type->dims[d];
    }
}

const void *
kiln_session_output_strided(KilnSession *session, unsigned i, int64_t *strides, GError **error)
{
    const KilnCarry *carry = i < session->program->outputs.n && session->ran
                                 ? kiln_session_carried_in_place(session, i)
                                 : NULL;
    if (!carry) {
        const void *data = kiln_session_output(session, i, NULL, error);
        if (data)
            dense_strides(&session->made->outputs.types[i], strides);
        return data;
    }
    KilnType type = session->made->outputs.types[i];
    type.dims[carry->axis] = carry->room;
    dense_strides(&type, strides);
    return carry->state;
}

/* --- strings, which are never carried --- */

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
