/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions: one arena, resolved addresses, and the loop that runs. */
#include "runtime/internal.h"

#include "graph/alloc.h"

#include <string.h>
#include <time.h>

typedef struct {
    const void *data;
    KilnBinding binding;
    bool bound;
} InputSlot;

typedef struct {
    void *user; /* the caller's memory; NULL: the session's own */
    size_t user_bytes;
    void *own;
    size_t own_bytes;
} OutputSlot;

struct KilnSession {
    KilnProgram *program;
    const KilnSpecialisation *made; /* NULL before the first run of an open program */
    int threads;
    bool profile;
    bool shapes_changed; /* inputs were bound with other shapes than `made` is for */
    bool ran;
    void *user_arena;
    size_t user_arena_bytes;
    char *arena;
    size_t arena_bytes;
    InputSlot *inputs;
    OutputSlot *outputs;
    char **states;
    uint32_t n_states;
    KilnKernelArgs *args; /* one per call */
    void **addresses;     /* one per slot: what args[].data point into */
    KilnProfileEntry *entries;
};

/* --- addresses --- */

static void *
address_of(const KilnSession *session, const KilnSlot *slot)
{
    char *base = NULL;
    switch (slot->kind) {
    case KILN_SLOT_NONE:
        return NULL;
    case KILN_SLOT_WEIGHT:
        base = (char *)g_bytes_get_data(session->made->weights[slot->index], NULL);
        break;
    case KILN_SLOT_STATE:
        base = session->states[slot->index];
        break;
    case KILN_SLOT_ARENA:
        base = session->arena;
        break;
    case KILN_SLOT_INPUT:
        base = (char *)session->inputs[slot->index].data;
        break;
    case KILN_SLOT_OUTPUT: {
        const OutputSlot *output = &session->outputs[slot->index];
        base = output->user ? output->user : output->own;
        break;
    }
    }
    return base ? base + slot->offset : NULL;
}

/* Resolves the operands of one kind that lie in buffer @index; UINT32_MAX: of all. */
static void
resolve(KilnSession *session, int kind, uint32_t index)
{
    for (uint32_t i = 0; i < session->made->n_slots; i++) {
        const KilnSlot *slot = &session->made->slots[i];
        if (index == UINT32_MAX || ((int)slot->kind == kind && slot->index == index))
            session->addresses[i] = address_of(session, slot);
    }
}

static void
drop_specialisation(KilnSession *session)
{
    for (uint32_t i = 0; i < session->n_states; i++)
        kiln_free(session->states[i]);
    g_clear_pointer(&session->states, g_free);
    session->n_states = 0;
    if (session->arena != session->user_arena)
        kiln_free(session->arena);
    session->arena = NULL;
    g_clear_pointer(&session->args, g_free);
    g_clear_pointer(&session->addresses, g_free);
    g_clear_pointer(&session->entries, g_free);
    session->made = NULL;
}

static gboolean
make_memory(KilnSession *session, GError **error)
{
    const KilnSpecialisation *made = session->made;
    size_t need = (size_t)made->arena_bytes;
    if (session->user_arena && session->user_arena_bytes < need)
        return kiln_throw(error, KILN_ERROR_USAGE, "arena: expected %zu bytes, found %zu", need,
                          session->user_arena_bytes);
    session->arena = session->user_arena ? session->user_arena : kiln_alloc(1, need, error);
    if (!session->arena)
        return FALSE;
    session->states = g_new0(char *, made->n_states + 1);
    for (uint32_t i = 0; i < made->n_states; i++) {
        size_t size;
        const void *bytes = g_bytes_get_data(made->states[i], &size);
        session->states[i] = kiln_alloc(1, size, error);
        session->n_states = i + 1;
        if (!session->states[i])
            return FALSE;
        memcpy(session->states[i], bytes, size);
    }
    for (unsigned i = 0; i < made->outputs.n; i++) {
        OutputSlot *output = &session->outputs[i];
        size_t size = (size_t)made->outputs.info[i].bytes;
        if (output->user && output->user_bytes != size)
            output->user = NULL; /* bound for another shape */
        if (output->user || (output->own && output->own_bytes >= size))
            continue;
        kiln_free(output->own);
        output->own = kiln_alloc(1, size, error);
        output->own_bytes = output->own ? size : 0;
        if (!output->own)
            return FALSE;
    }
    return TRUE;
}

static void
make_entries(KilnSession *session)
{
    const KilnSpecialisation *made = session->made;
    session->entries = g_new0(KilnProfileEntry, made->n_calls + 1);
    for (uint32_t c = 0; c < made->n_calls; c++) {
        const KilnBoundCall *call = &made->calls[c];
        session->entries[c] =
            (KilnProfileEntry){ .instruction = kiln_instr_info(call->instr->kind)->name,
                                .node = kiln_instr_label(call->instr),
                                .kernel = call->kernel->name,
                                .flops = call->cost.flops,
                                .bytes = call->cost.bytes };
    }
}

static gboolean
take_specialisation(KilnSession *session, const KilnSpecialisation *made, GError **error)
{
    if (session->made == made)
        return TRUE;
    drop_specialisation(session);
    session->made = made;
    if (!make_memory(session, error)) {
        drop_specialisation(session);
        return FALSE;
    }
    session->args = g_new0(KilnKernelArgs, made->n_calls + 1);
    session->addresses = g_new0(void *, made->n_slots + 1);
    for (uint32_t c = 0; c < made->n_calls; c++) {
        const KilnBoundCall *call = &made->calls[c];
        session->args[c] = (KilnKernelArgs){
            .instr = call->instr,
            .data = session->addresses + call->first_slot,
            .scratch = call->scratch_offset < 0 ? NULL : session->arena + call->scratch_offset,
            .packed = call->packed,
            .threads = call->parallel ? session->threads : 1,
        };
    }
    if (session->profile)
        make_entries(session);
    resolve(session, 0, UINT32_MAX);
    return TRUE;
}

/* --- life --- */

KilnSession *
kiln_session_new(KilnProgram *program, const KilnSessionOptions *options, GError **error)
{
    const KilnSessionOptions defaults = KILN_SESSION_OPTIONS_INIT;
    options = options ? options : &defaults;
    if (options->size != sizeof *options)
        return kiln_throw_null(error, KILN_ERROR_USAGE,
                               "KilnSessionOptions: expected size %zu, found %zu", sizeof *options,
                               options->size);
    if (options->threads < 0 || options->threads > program->threads)
        return kiln_throw_null(error, KILN_ERROR_USAGE,
                               "threads: expected 0 to %d, as compiled, found %d", program->threads,
                               options->threads);
    if ((uintptr_t)options->arena % KILN_ALIGNMENT)
        return kiln_throw_null(error, KILN_ERROR_USAGE,
                               "arena: expected an address aligned to %d bytes", KILN_ALIGNMENT);
    g_autoptr(KilnSession) session = g_new0(KilnSession, 1);
    session->program = kiln_program_ref(program);
    session->threads = options->threads ? options->threads : program->threads;
    session->profile = options->profile;
    session->user_arena = options->arena;
    session->user_arena_bytes = options->arena_bytes;
    session->inputs = g_new0(InputSlot, program->inputs.n + 1);
    session->outputs = g_new0(OutputSlot, program->outputs.n + 1);
    session->shapes_changed = program->open;
    if (!program->open) {
        const KilnSpecialisation *made = g_ptr_array_index(program->specialisations, 0);
        if (!take_specialisation(session, made, error))
            return NULL;
    }
    return g_steal_pointer(&session);
}

void
kiln_session_free(KilnSession *session)
{
    if (!session)
        return;
    drop_specialisation(session);
    for (unsigned i = 0; session->outputs && i < session->program->outputs.n; i++)
        kiln_free(session->outputs[i].own);
    g_free(session->inputs);
    g_free(session->outputs);
    kiln_program_unref(session->program);
    g_free(session);
}

/* --- inputs and outputs --- */

gboolean
kiln_session_bind_input_shaped(KilnSession *session, unsigned i, const void *data, int rank,
                               const int64_t *dims, GError **error)
{
    const KilnProgram *program = session->program;
    if (i >= program->inputs.n)
        return kiln_throw(error, KILN_ERROR_USAGE, "input %u: the program has %u", i,
                          program->inputs.n);
    const KilnType *declared = &program->inputs.types[i];
    const char *name = program->inputs.info[i].name;
    size_t unit = MAX(kiln_dtype_size(declared->dtype), (size_t)1);
    if (rank < 0 || rank > KILN_MAX_RANK)
        return kiln_throw(error, KILN_ERROR_SHAPE, "input %s: expected rank 0 to %d, found %d",
                          name, KILN_MAX_RANK, rank);
    if (!data || (uintptr_t)data % unit)
        return kiln_throw(error, KILN_ERROR_USAGE,
                          "input %s: expected an address aligned to %zu bytes", name, unit);
    KilnType found = kiln_type_make(declared->dtype, rank, dims);
    bool fits = kiln_type_bytes(&found) >= 0 && (declared->rank < 0 || declared->rank == rank);
    for (int d = 0; fits && d < rank && declared->rank >= 0; d++)
        fits = declared->dims[d] < 0 || declared->dims[d] == dims[d];
    if (!fits) {
        g_autofree char *expected_text = kiln_type_to_string(declared);
        g_autofree char *found_text = kiln_type_to_string(&found);
        return kiln_throw(error, KILN_ERROR_SHAPE, "input %s: expected %s, found %s", name,
                          expected_text, found_text);
    }
    InputSlot *slot = &session->inputs[i];
    bool same = slot->bound && slot->binding.rank == rank &&
                (rank == 0 || memcmp(slot->binding.dims, dims, (size_t)rank * sizeof *dims) == 0);
    session->shapes_changed |= program->open && (!same || program->value_inputs[i]);
    slot->binding = (KilnBinding){ .rank = rank };
    for (int d = 0; d < rank; d++)
        slot->binding.dims[d] = dims[d];
    slot->data = data;
    slot->bound = true;
    if (session->made)
        resolve(session, KILN_SLOT_INPUT, i);
    return TRUE;
}

gboolean
kiln_session_bind_input(KilnSession *session, unsigned i, const void *data, size_t bytes,
                        GError **error)
{
    const KilnProgram *program = session->program;
    if (i >= program->inputs.n)
        return kiln_throw(error, KILN_ERROR_USAGE, "input %u: the program has %u", i,
                          program->inputs.n);
    const KilnTensorInfo *info = &program->inputs.info[i];
    if (info->bytes < 0)
        return kiln_throw(error, KILN_ERROR_SHAPE, "input %s: its shape is open: bind it with one",
                          info->name);
    if ((size_t)info->bytes != bytes)
        return kiln_throw(error, KILN_ERROR_SHAPE,
                          "input %s: expected %" G_GINT64_FORMAT " bytes, found %zu", info->name,
                          info->bytes, bytes);
    return kiln_session_bind_input_shaped(session, i, data, info->rank, info->dims, error);
}

gboolean
kiln_session_bind_output(KilnSession *session, unsigned i, void *data, size_t bytes, GError **error)
{
    const KilnProgram *program = session->program;
    if (i >= program->outputs.n)
        return kiln_throw(error, KILN_ERROR_USAGE, "output %u: the program has %u", i,
                          program->outputs.n);
    const KilnTensorInfo *info =
        session->made ? &session->made->outputs.info[i] : &program->outputs.info[i];
    size_t unit = MAX(kiln_dtype_size(info->dtype), (size_t)1);
    if (info->bytes < 0)
        return kiln_throw(error, KILN_ERROR_SHAPE, "output %s: its shape is not known yet",
                          info->name);
    if ((size_t)info->bytes != bytes)
        return kiln_throw(error, KILN_ERROR_SHAPE,
                          "output %s: expected %" G_GINT64_FORMAT " bytes, found %zu", info->name,
                          info->bytes, bytes);
    if (!data || (uintptr_t)data % unit)
        return kiln_throw(error, KILN_ERROR_USAGE,
                          "output %s: expected an address aligned to %zu bytes", info->name, unit);
    session->outputs[i].user = data;
    session->outputs[i].user_bytes = bytes;
    if (session->made)
        resolve(session, KILN_SLOT_OUTPUT, i);
    return TRUE;
}

/* --- running --- */

static gboolean
specialise(KilnSession *session, GError **error)
{
    const KilnProgram *program = session->program;
    g_autofree KilnBinding *bindings = g_new0(KilnBinding, program->inputs.n + 1);
    for (unsigned i = 0; i < program->inputs.n; i++) {
        bindings[i] = session->inputs[i].binding;
        bindings[i].data = program->value_inputs[i] ? session->inputs[i].data : NULL;
    }
    const KilnSpecialisation *made = kiln_program_specialise(session->program, bindings, error);
    if (!made || !take_specialisation(session, made, error))
        return FALSE;
    session->shapes_changed = false;
    for (unsigned i = 0; i < program->inputs.n;
         i++) /* values may change in place: compare them at every run */
        session->shapes_changed |= program->value_inputs[i];
    return TRUE;
}

static double
now_ms(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec * 1e-6;
}

static gboolean
throw_run(const KilnSession *session, uint32_t c, const char *message, GError **error)
{
    const KilnInstr *instr = session->made->calls[c].instr;
    return kiln_throw(error, KILN_ERROR_RUN, "%s (%s): %s", kiln_instr_label(instr),
                      kiln_instr_info(instr->kind)->name, message);
}

static gboolean
run_profiled(KilnSession *session, GError **error)
{
    for (uint32_t c = 0; c < session->made->n_calls; c++) {
        double start = now_ms();
        const char *message = session->made->calls[c].kernel->run(&session->args[c]);
        session->entries[c].ms += now_ms() - start;
        session->entries[c].runs++;
        if (message)
            return throw_run(session, c, message, error);
    }
    return TRUE;
}

gboolean
kiln_session_run(KilnSession *session, GError **error)
{
    for (unsigned i = 0; i < session->program->inputs.n; i++) {
        if (!session->inputs[i].bound)
            return kiln_throw(error, KILN_ERROR_USAGE, "input %s is not bound",
                              session->program->inputs.info[i].name);
    }
    if (session->shapes_changed && !specialise(session, error))
        return FALSE;
    session->ran = true;
    if (session->profile)
        return run_profiled(session, error);
    const KilnBoundCall *calls = session->made->calls;
    for (uint32_t c = 0; c < session->made->n_calls; c++) {
        const char *message = calls[c].kernel->run(&session->args[c]);
        if (message)
            return throw_run(session, c, message, error);
    }
    return TRUE;
}

const void *
kiln_session_output(KilnSession *session, unsigned i, KilnTensorInfo *info, GError **error)
{
    if (i >= session->program->outputs.n)
        return kiln_throw_null(error, KILN_ERROR_USAGE, "output %u: the program has %u", i,
                               session->program->outputs.n);
    if (!session->ran || !session->made)
        return kiln_throw_null(error, KILN_ERROR_USAGE, "output %s: the session has not run",
                               session->program->outputs.info[i].name);
    if (info)
        *info = session->made->outputs.info[i];
    return session->outputs[i].user ? session->outputs[i].user : session->outputs[i].own;
}

const KilnProfileEntry *
kiln_session_profile(KilnSession *session, unsigned *out_n)
{
    *out_n = session->entries ? session->made->n_calls : 0;
    return session->entries;
}
