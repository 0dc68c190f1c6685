/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions: one arena, resolved addresses, and the loop that runs. */
#include "runtime/session.h"

#include "exec/strided_copies.h"
#include "graph/base/alloc.h"
#include "graph/base/random.h"
#include "ir/flow.h"
#include "ir/plan.h"
#include "ir/plugin.h"
#include "kiln.h"
#include "runtime/bind.h"
#include "runtime/flow/flow.h"
#include "runtime/fold_calls.h"
#include "runtime/open/instance.h"
#include "runtime/options.h"
#include "runtime/program.h"
#include "runtime/scope.h"
#include "runtime/specialise.h"

#include <string.h>
#include <time.h>

/* What stands for the payload of an empty tensor: NULL would be an absent operand. */
static char nothing[KILN_ALIGNMENT] __attribute__((aligned(KILN_ALIGNMENT)));

/* --- addresses --- */

void *
kiln_session_address(const KilnSession *session, const KilnSlot *slot)
{
    char *base = NULL;
    switch (slot->kind) {
    case KILN_SLOT_NONE:
        return NULL;
    case KILN_SLOT_WEIGHT: {
        /* Calls that wait for a dim that data decides have no weights yet. */
        GBytes *bytes = session->made->weights[slot->index];
        base = bytes ? (char *)g_bytes_get_data(bytes, NULL) : NULL;
        break;
    }
    case KILN_SLOT_STATE:
        base = session->states[slot->index];
        break;
    case KILN_SLOT_ARENA:
        base = session->arena;
        break;
    case KILN_SLOT_INPUT:
        base = (char *)session->data[slot->index];
        break;
    case KILN_SLOT_FOLDED: {
        GBytes *bytes = session->entry ? session->entry->buffers[slot->index].bytes : NULL;
        base = bytes ? (char *)g_bytes_get_data(bytes, NULL) : NULL;
        break;
    }
    case KILN_SLOT_OUTPUT: {
        const OutputSlot *output = &session->outputs[slot->index];
        base = output->user ? output->user : output->own;
        break;
    }
    }
    return base ? base + slot->offset : NULL;
}

/* The addresses that the entry function of an object looks up. */
static void
resolve_frame(KilnSession *session)
{
    const KilnSpecialisation *made = session->made;
    uint32_t n_folded = made->folder ? made->folder->left.results->len : 0;
    if (!session->outputs_at) {
        session->outputs_at = g_new0(void *, made->outputs.n + 1);
        session->folded_at = g_new0(void *, n_folded + 1);
    }
    for (uint32_t i = 0; i < made->outputs.n; i++)
        session->outputs_at[i] =
            kiln_session_address(session, &(KilnSlot){ KILN_SLOT_OUTPUT, i, 0 });
    for (uint32_t i = 0; i < n_folded; i++)
        session->folded_at[i] =
            kiln_session_address(session, &(KilnSlot){ KILN_SLOT_FOLDED, i, 0 });
}

void
kiln_session_resolve(KilnSession *session, int kind, uint32_t index)
{
    for (uint32_t i = 0; i < session->made->n_slots; i++) {
        const KilnSlot *slot = &session->made->slots[i];
        if ((kind < 0 || (int)slot->kind == kind) && (index == UINT32_MAX || slot->index == index))
            session->addresses[i] = kiln_session_address(session, slot);
    }
    if (session->object)
        resolve_frame(session);
}

/* The arena and the outputs stay: the next specialisation may find them big enough. */
void
kiln_session_drop(KilnSession *session)
{
    for (unsigned k = 0; session->made && k < session->carries.n; k++) {
        uint32_t state = kiln_instance_state(session->made, k);
        if (state < session->n_states)
            session->states[state] = NULL;
    }
    for (uint32_t i = 0; i < session->n_states; i++)
        kiln_free(session->states[i]);
    g_clear_pointer(&session->states, g_free);
    session->n_states = 0;
    g_clear_pointer(&session->calls, g_free);
    g_clear_pointer(&session->addresses, g_free);
    g_clear_pointer(&session->outputs_at, g_free);
    g_clear_pointer(&session->folded_at, g_free);
    g_clear_pointer(&session->entries, g_free);
    g_clear_pointer(&session->entry, kiln_cache_entry_unref);
    g_clear_pointer(&session->poison, kiln_poison_free);
    g_clear_pointer(&session->flows, kiln_flows_free);
    g_clear_pointer(&session->made, kiln_specialisation_unref);
    session->settled = false;
}

void
kiln_session_free_arena(KilnSession *session)
{
    if (session->arena != session->user_arena)
        kiln_free(session->arena);
    session->arena = NULL;
    session->arena_bytes = 0;
}

/* Memory that grows with the shapes of runs doubles, so that few of them ask for more: fresh pages
 * take longer than a small run. Pages that nobody writes take no memory. */
static size_t
with_room(const KilnSession *session, size_t need, size_t before)
{
    bool grows = session->made->instance && before && !kiln_limits_current().bytes;
    return grows && need <= SIZE_MAX / 4 ? MAX(need, 2 * before) : need;
}

gboolean
kiln_session_make_arena(KilnSession *session, size_t need, GError **error)
{
    size_t bytes = with_room(session, need, session->arena_bytes);
    if (session->user_arena && session->user_arena_bytes < need)
        return kiln_throw(error, KILN_ERROR_USAGE, "arena: expected %zu bytes, found %zu", need,
                          session->user_arena_bytes);
    if (session->user_arena)
        session->arena = session->user_arena;
    if (session->arena && (session->user_arena || session->arena_bytes >= need))
        return TRUE;
    kiln_session_free_arena(session);
    session->arena = kiln_alloc_for("the arena of a session", 1, bytes, error);
    session->arena_bytes = session->arena ? bytes : 0;
    if (!session->arena)
        kiln_prefix_error(error, "arena: ");
    return session->arena != NULL;
}

static gboolean
make_states(KilnSession *session, GError **error)
{
    const KilnSpecialisation *made = session->made;
    session->states = g_new0(char *, made->n_states + 1);
    session->n_states = made->n_states;
    for (uint32_t i = 0; i < made->n_states; i++) {
        size_t size;
        if (!made->states[i]) /* a carried value has memory of its own */
            continue;
        const void *bytes = g_bytes_get_data(made->states[i], &size);
        session->states[i] = kiln_alloc_for("the state of a variable", 1, size, error);
        if (!session->states[i])
            return FALSE;
        if (size)
            memcpy(session->states[i], bytes, size);
    }
    return TRUE;
}

/* Memory of the session's own for output @i, unless the caller bound some. */
gboolean
kiln_session_make_output(KilnSession *session, unsigned i, GError **error)
{
    OutputSlot *output = &session->outputs[i];
    size_t size = (size_t)kiln_instance_output_room(session->made, i);
    if (kiln_session_carried_in_place(session, i))
        return TRUE;
    if (output->user || (output->own && output->own_bytes >= size))
        return TRUE;
    size_t bytes = with_room(session, size, output->own_bytes);
    kiln_free(output->own);
    output->own = kiln_alloc_for("an output", 1, bytes, error);
    output->own_bytes = output->own ? bytes : 0;
    if (!output->own)
        kiln_prefix_error(error, "output %s: ", session->made->outputs.info[i].name);
    return output->own != NULL;
}

static gboolean
make_outputs(KilnSession *session, GError **error)
{
    for (unsigned i = 0; i < session->made->outputs.n; i++) {
        if (!kiln_session_make_output(session, i, error))
            return FALSE;
    }
    return TRUE;
}

static gboolean
make_memory(KilnSession *session, GError **error)
{
    return kiln_session_make_arena(session, (size_t)session->made->arena_bytes, error) &&
           make_states(session, error) && make_outputs(session, error);
}

/* Of a branch or loop: what runs it. */
static const void *
prepared_of(const KilnSession *session, uint32_t c)
{
    const void *runner = session->flows ? kiln_flows_runner(session->flows, c) : NULL;
    return runner ? runner : session->made->calls[c].prepared;
}

static void
fill_calls(KilnSession *session)
{
    const KilnSpecialisation *made = session->made;
    session->draws = session->flows && kiln_flows_draw(session->flows);
    for (unsigned k = 0; k < session->carries.n; k++) {
        uint32_t state = kiln_instance_state(made, k);
        if (state != UINT32_MAX)
            session->states[state] = session->carries.v[k].state;
    }
    for (uint32_t c = 0; c < made->n_calls; c++) {
        const KilnBoundCall *call = &made->calls[c];
        if (!call->kernel) /* it waits for a dim that data decides */
            continue;
        session->calls[c].run = kiln_kernel_entry(call->kernel, call->instr);
        session->calls[c].args = (KilnKernelArgs){
            .instr = call->instr,
            .kernel = call->kernel,
            .data = session->addresses + call->first_slot,
            .scratch = call->scratch_offset < 0 ? nothing : session->arena + call->scratch_offset,
            .packed = call->packed ? g_bytes_get_data(call->packed, NULL) : NULL,
            .form = call->form,
            .fitted = call->fitted,
            .prepared = prepared_of(session, c),
            .threads = call->parallel ? session->threads : 1,
            .run_seed = &session->run_seed,
            .texts = session->texts,
        };
        session->draws |= kiln_instr_stream(call->instr) != NULL;
    }
}

/* Takes the reference @made over. */
static gboolean
take_specialisation(KilnSession *session, KilnSpecialisation *made, GError **error)
{
    kiln_session_drop(session);
    session->made = made;
    if (!make_memory(session, error)) {
        kiln_session_drop(session);
        return FALSE;
    }
    g_autoptr(GError) why = NULL;
    session->flows = kiln_flows_new(session, &why);
    if (why) {
        g_propagate_error(error, g_steal_pointer(&why));
        kiln_session_drop(session);
        return FALSE;
    }
    session->calls = g_new0(KilnCall, made->n_calls + 1);
    session->addresses = g_new0(void *, made->n_slots + 1);
    fill_calls(session);
    if (session->profile)
        kiln_session_make_entries(session);
    if (session->poisons)
        session->poison = kiln_poison_new(made->plan);
    kiln_session_resolve(session, -1, UINT32_MAX);
    return TRUE;
}

/* --- life --- */

/* What stands for the inputs that are known since the program was compiled. */
static void
bind_known(KilnSession *session)
{
    const KilnProgram *program = session->program;
    for (unsigned i = 0; i < program->inputs.n; i++) {
        const KilnType *type = &program->inputs.types[i];
        KilnBinding *binding = &session->bindings[i];
        binding->constness = program->constness[i];
        if (!program->values[i])
            continue;
        const void *value = g_bytes_get_data(program->values[i], NULL);
        session->data[i] = value ? value : nothing;
        binding->rank = type->rank;
        memcpy(binding->dims, type->dims, sizeof binding->dims);
        if (program->value_inputs[i])
            binding->data = value;
    }
}

/* kiln_options_copy() of what a session of @program is made with; KILN_ERROR_USAGE for values that
 * are out of range. */
static gboolean
copy_options(const KilnProgram *program, const KilnSessionOptions *options,
             KilnSessionOptions *copy, GError **error)
{
    static const KilnStructKind kind =
        KILN_STRUCT_KIND(KilnSessionOptions, KILN_SESSION_OPTIONS_INIT);
    if (!kiln_options_copy(&kind, options, copy, error))
        return FALSE;
    if (copy->threads < 0 || copy->threads > program->threads)
        return kiln_throw(error, KILN_ERROR_USAGE,
                          "threads: expected 0 to %d, as compiled, found %d", program->threads,
                          copy->threads);
    if ((uintptr_t)copy->arena % KILN_ALIGNMENT)
        return kiln_throw(error, KILN_ERROR_USAGE, "arena: expected an address aligned to %d bytes",
                          KILN_ALIGNMENT);
    return kiln_limit_check("time limit", copy->time_limit, error);
}

KilnSession *
kiln_session_new(KilnProgram *program, const KilnSessionOptions *given, GError **error)
{
    G_GNUC_UNUSED g_auto(KilnRunScope) scope = kiln_run_scope_enter(NULL, NULL);
    const KilnSessionOptions defaults = KILN_SESSION_OPTIONS_INIT;
    KilnSessionOptions options;
    if (!copy_options(program, given ? given : &defaults, &options, error))
        return NULL;
    g_autoptr(KilnSession) session = g_new0(KilnSession, 1);
    session->program = kiln_program_ref(program);
    session->object = program->object;
    session->texts = kiln_session_new_texts(program);
    session->threads = options.threads ? options.threads : program->threads;
    session->parallel_for = options.parallel_for ? options.parallel_for : program->parallel_for;
    session->pool = options.parallel_for ? options.pool : program->pool;
    session->profile = options.profile;
    session->poisons = options.poison;
    session->cancel = options.cancel;
    session->poll = options.poll;
    session->poll_data = options.poll_data;
    session->budget = kiln_budget_new(&(KilnLimits){ .ms = options.time_limit });
    session->budget_ms = options.time_limit;
    session->seeded = options.seeded;
    session->run_seed = options.seed;
    session->user_arena = options.arena;
    session->user_arena_bytes = options.arena_bytes;
    session->bindings = g_new0(KilnBinding, program->inputs.n + 1);
    session->data = g_new0(const void *, program->inputs.n + 1);
    session->outputs = g_new0(OutputSlot, program->outputs.n + 1);
    session->ranges = g_new0(KilnRange, (size_t)program->inputs.n + program->outputs.n + 1);
    kiln_session_items_init(session);
    bind_known(session);
    if (!program->open) {
        /* Made when the program was, and never replaced. */
        KilnSpecialisation *made = g_ptr_array_index(program->specialisations, 0);
        if (!take_specialisation(session, kiln_specialisation_ref(made), error))
            return NULL;
    }
    return g_steal_pointer(&session);
}

void
kiln_session_free(KilnSession *session)
{
    if (!session)
        return;
    kiln_session_drop(session);
    kiln_carries_clear(&session->carries);
    kiln_session_free_arena(session);
    for (unsigned i = 0; i < session->program->outputs.n; i++)
        kiln_free(session->outputs[i].own);
    g_free(session->bindings);
    g_free(session->ranges);
    g_free(session->data);
    g_free(session->outputs);
    if (session->listed)
        g_ptr_array_unref(session->listed);
    kiln_text_heap_free(session->texts);
    kiln_session_items_clear(session);
    kiln_program_unref(session->program);
    kiln_budget_unref(session->budget);
    g_free(session);
}

/* --- inputs and outputs --- */

static gboolean
check_address(const char *kind, const KilnTensorInfo *info, const void *data, int64_t bytes,
              GError **error)
{
    size_t unit = MAX(kiln_dtype_size(info->dtype), (size_t)1);
    if (data ? (uintptr_t)data % unit == 0 : bytes == 0)
        return TRUE;
    if (!data)
        return kiln_throw(error, KILN_ERROR_USAGE, "%s %s: expected an address, found NULL", kind,
                          info->name);
    return kiln_throw(error, KILN_ERROR_USAGE,
                      "%s %s: expected an address aligned to %zu bytes, found %p", kind, info->name,
                      unit, data);
}

static gboolean
throw_size(const char *kind, const KilnTensorInfo *info, size_t found, GError **error)
{
    return kiln_throw(error, KILN_ERROR_SHAPE,
                      "%s %s: expected %" G_GINT64_FORMAT " bytes, found %zu", kind, info->name,
                      info->bytes, found);
}

gboolean
kiln_session_bind_input_shaped(KilnSession *session, unsigned i, const void *data, int rank,
                               const int64_t *dims, GError **error)
{
    const KilnProgram *program = session->program;
    if (i >= program->inputs.n)
        return kiln_throw(error, KILN_ERROR_USAGE, "input %u: the program has %u", i,
                          program->inputs.n);
    const KilnType *declared = &program->inputs.types[i];
    const KilnTensorInfo *info = &program->inputs.info[i];
    if (rank < 0 || rank > KILN_MAX_RANK)
        return kiln_throw(error, KILN_ERROR_SHAPE, "input %s: expected rank 0 to %d, found %d",
                          info->name, KILN_MAX_RANK, rank);
    if (rank > 0 && !dims)
        return kiln_throw(error, KILN_ERROR_SHAPE, "input %s: expected %d dims, found NULL",
                          info->name, rank);
    if (program->values[i])
        return kiln_throw(error, KILN_ERROR_USAGE,
                          "input %s: its value was set when the program was compiled", info->name);
    KilnType found = kiln_type_make(declared->dtype, rank, dims);
    KilnBinding binding = { .rank = rank, .constness = program->constness[i] };
    memcpy(binding.dims, found.dims, sizeof binding.dims);
    if (!kiln_binding_fits(&binding, declared))
        return kiln_binding_throw(&binding, info->name, declared, error);
    if (!check_address("input", info, data, kiln_type_bytes(&found), error))
        return FALSE;
    session->data[i] = data ? data : nothing;
    session->ranges_changed = true;
    kiln_session_carry_bound(session, i);
    binding.data = program->value_inputs[i] ? kiln_session_key(session, i) : NULL;
    session->bindings[i] = binding;
    const KilnFolder *folder = session->made ? session->made->folder : NULL;
    session->constants_changed |= folder && folder->reads[i];
    if (session->made)
        kiln_session_resolve(session, KILN_SLOT_INPUT, i);
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
        return kiln_throw(error, KILN_ERROR_SHAPE,
                          "input %s: its shape is open: bind it with "
                          "kiln_session_bind_input_shaped()",
                          info->name);
    if ((size_t)info->bytes != bytes)
        return throw_size("input", info, bytes, error);
    return kiln_session_bind_input_shaped(session, i, data, info->rank, info->dims, error);
}

gboolean
kiln_session_bind_output(KilnSession *session, unsigned i, void *data, size_t bytes, GError **error)
{
    const KilnProgram *program = session->program;
    if (i >= program->outputs.n)
        return kiln_throw(error, KILN_ERROR_USAGE, "output %u: the program has %u", i,
                          program->outputs.n);
    const KilnTensorInfo *info = &program->outputs.info[i];
    if (data && info->bytes >= 0 && (size_t)info->bytes != bytes)
        return throw_size("output", info, bytes, error);
    if (!check_address("output", info, data, 0, error))
        return FALSE;
    OutputSlot old = session->outputs[i];
    session->outputs[i].moved |= data != old.user;
    session->outputs[i].user = data;
    session->outputs[i].user_bytes = bytes;
    if (session->made && !kiln_session_make_output(session, i, error)) {
        session->outputs[i] = old;
        return FALSE;
    }
    session->outputs_changed = session->ranges_changed = true;
    if (session->made)
        kiln_session_resolve(session, KILN_SLOT_OUTPUT, i);
    return TRUE;
}

/* --- running --- */

/* What is bound must not overlap. Looked at in a run, for bindings may overlap while they change.
 */
static gboolean
check_ranges(KilnSession *session, GError **error)
{
    const KilnSpecialisation *made = session->made;
    size_t n = 0;
    for (unsigned i = 0; i < made->inputs.n; i++)
        session->ranges[n++] = (KilnRange){ .kind = "input",
                                            .name = made->inputs.info[i].name,
                                            .start = session->data[i],
                                            .bytes = (size_t)MAX(made->inputs.info[i].bytes, 0) };
    for (unsigned i = 0; i < made->outputs.n; i++) {
        if (session->outputs[i].user)
            session->ranges[n++] = (KilnRange){ .kind = "output",
                                                .name = made->outputs.info[i].name,
                                                .start = session->outputs[i].user,
                                                .bytes = session->outputs[i].user_bytes,
                                                .written = true };
    }
    if (session->user_arena)
        session->ranges[n++] = (KilnRange){ .kind = "the caller's",
                                            .name = "arena",
                                            .start = session->user_arena,
                                            .bytes = (size_t)made->arena_bytes,
                                            .written = true };
    session->ranges_changed = !kiln_ranges_check(session->ranges, n, error);
    return !session->ranges_changed;
}

/* What is bound where the shape came with the inputs. */
static gboolean
check_outputs(KilnSession *session, const KilnSpecialisation *made, GError **error)
{
    for (unsigned i = 0; i < made->outputs.n; i++) {
        const OutputSlot *output = &session->outputs[i];
        const KilnTensorInfo *info = &made->outputs.info[i];
        if (!kiln_session_check_rank(session, made, i, error))
            return FALSE;
        if (kiln_instance_decides_output(made, i)) /* looked at when its size is known */
            continue;
        if (output->user && output->user_bytes != (size_t)info->bytes)
            return throw_size("output", info, output->user_bytes, error);
    }
    session->outputs_changed = false;
    return TRUE;
}

void
kiln_session_refill(KilnSession *session, bool anew)
{
    fill_calls(session);
    if (session->entries && anew)
        kiln_session_forget_times(session);
    if (session->entries)
        kiln_session_state_entries(session, anew);
    if (session->poison) {
        kiln_poison_free(session->poison);
        session->poison = kiln_poison_new(session->made->plan);
    }
    kiln_session_resolve(session, -1, UINT32_MAX);
}

/* The instance stands at other shapes: memory grows where it is too small, and all addresses are
 * new. */
static gboolean
retake(KilnSession *session, GError **error)
{
    const KilnSpecialisation *made = session->made;
    const size_t bytes = session->arena_bytes;
    if (!check_outputs(session, made, error) ||
        !kiln_session_make_arena(session, (size_t)made->arena_bytes, error) ||
        !make_outputs(session, error))
        return FALSE;
    session->settled &= session->arena_bytes == bytes && kiln_instance_keeps(made);
    session->constants_changed |= !kiln_instance_same_constants(made);
    session->fills = 0; /* addresses of constants are looked up again */
    kiln_session_refill(session, true);
    return TRUE;
}

static gboolean
move_instance(KilnSession *session, GError **error)
{
    g_autoptr(KilnBudget) budget = kiln_budget_new(&session->program->limits);
    KilnBudget *before = kiln_budget_enter(budget);
    gboolean good = kiln_instance_move(session->made, session->bindings, error);
    kiln_budget_leave(before);
    return good;
}

/* Shapes that the open program refuses may fit one of their own, or get its error. */
static gboolean
specialise(KilnSession *session, GError **error)
{
    if (session->made && kiln_instance_takes(session->made, session->bindings)) {
        g_autoptr(GError) why = NULL;
        if (move_instance(session, &why) && retake(session, &why))
            return TRUE;
        kiln_session_drop(session);
        if (!g_error_matches(why, KILN_ERROR, KILN_ERROR_SHAPE) &&
            !g_error_matches(why, KILN_ERROR, KILN_ERROR_UNSUPPORTED) &&
            !g_error_matches(why, KILN_ERROR, KILN_ERROR_INVALID)) {
            g_propagate_error(error, g_steal_pointer(&why));
            return FALSE;
        }
    }
    KilnSpecialisation *made =
        kiln_program_specialise(session->program, session->bindings, &session->carries, error);
    if (!made)
        return FALSE;
    if (!check_outputs(session, made, error)) {
        kiln_specialisation_unref(made);
        return FALSE;
    }
    return take_specialisation(session, made, error);
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
    if (kiln_session_lacks_texts(session, instr, error))
        return FALSE;
    if (instr->kind == KILN_INSTR_refuse) /* the text names the node, the label its branch */
        return kiln_throw(error, KILN_ERROR_RUN, "%s: %s", kiln_instr_label(instr), message);
    g_autofree char *title = kiln_instr_title(instr);
    return kiln_throw(error, KILN_ERROR_RUN, "%s (%s): %s", kiln_instr_label(instr), title,
                      message);
}

const char *
kiln_call_run(const KilnCall *calls, unsigned i, void *const *data, void *scratch)
{
    KilnKernelArgs args = calls[i].args;
    args.data = data;
    if (scratch)
        args.scratch = scratch;
    return calls[i].run(&args);
}

static gboolean
run_object(const KilnSession *session, GError **error)
{
    const KilnFrame frame = { .calls = session->calls,
                              .arena = session->arena,
                              .inputs = session->data,
                              .outputs = session->outputs_at,
                              .states = (void *const *)session->states,
                              .folded = (const void *const *)session->folded_at };
    unsigned at = 0;
    const char *message = session->object->run(&frame, &at);
    if (message == kiln_flow_failed)
        return kiln_flows_throw(session->flows, at, error);
    return !message || throw_run(session, at, message, error);
}

bool
kiln_session_cancelled(const KilnSession *session)
{
    return (session->cancel && g_atomic_int_get(session->cancel)) ||
           (session->poll && session->poll(session->poll_data));
}

gboolean
kiln_session_call(const KilnSession *session, uint32_t c, GError **error)
{
    if (kiln_session_cancelled(session))
        return kiln_throw(error, KILN_ERROR_CANCELLED, "cancelled before %s",
                          kiln_instr_label(session->made->calls[c].instr));
    if (!kiln_budget_check_time(error)) {
        kiln_prefix_error(error, "before %s: ", kiln_instr_label(session->made->calls[c].instr));
        return FALSE;
    }
    const char *message = session->calls[c].run(&session->calls[c].args);
    if (message == kiln_flow_failed)
        return kiln_flows_throw(session->flows, c, error);
    return !message || throw_run(session, c, message, error);
}

/* The calls that need not be made: their results are in the arena. Memory of the caller may have
 * changed since, and poison would be kept. */
static const bool *
settled_calls(const KilnSession *session)
{
    bool keeps = session->settled && !session->user_arena && !session->poison;
    return keeps ? kiln_instance_settled(session->made) : NULL;
}

/* Makes the calls from @from to @end - 1. */
static gboolean
make_calls(const KilnSession *session, uint32_t from, uint32_t end, GError **error)
{
    const bool *skips = settled_calls(session);
    for (uint32_t c = from; c < end; c++) {
        if (!(skips && skips[c]) && !kiln_session_call(session, c, error))
            return FALSE;
    }
    return TRUE;
}

/* The entry function of an object makes all calls without a look at what ends a run. */
gboolean
kiln_session_calls(KilnSession *session, GError **error)
{
    if (session->object && !session->cancel && !session->poll && !kiln_limits_current().ms)
        return run_object(session, error);
    if (kiln_instance_definitions(session->made))
        return kiln_session_stages(session, make_calls, error);
    return make_calls(session, 0, session->made->n_calls, error);
}

static gboolean
profile_calls(const KilnSession *session, uint32_t from, uint32_t end, GError **error)
{
    const bool *skips = settled_calls(session);
    for (uint32_t c = from; c < end; c++) {
        if (skips && skips[c])
            continue;
        double start = now_ms();
        gboolean good = kiln_session_call(session, c, error);
        session->entries[c]->ms += now_ms() - start;
        session->entries[c]->runs++;
        session->entries[c]->calls++;
        if (!good)
            return FALSE;
    }
    return TRUE;
}

gboolean
kiln_session_calls_profiled(KilnSession *session, GError **error)
{
    if (kiln_instance_definitions(session->made))
        return kiln_session_stages(session, profile_calls, error);
    return profile_calls(session, 0, session->made->n_calls, error);
}

/* Values that shapes depend on may change in place, so an open program looks at every run. */
static bool
must_specialise(const KilnSession *session)
{
    const KilnProgram *program = session->program;
    return program->open &&
           !(session->made && kiln_specialisation_fits(program, session->made, session->bindings));
}

gboolean
kiln_session_run(KilnSession *session, GError **error)
{
    kiln_budget_restart(session->budget);
    G_GNUC_UNUSED g_auto(KilnRunScope) scope =
        kiln_run_scope_enter_within(session->parallel_for, session->pool, session->budget);
    session->ran = false;
    if (!kiln_session_carry_begin(session, error))
        return FALSE;
    for (unsigned i = 0; i < session->program->inputs.n; i++) {
        if (!session->data[i])
            return kiln_throw(error, KILN_ERROR_USAGE, "input %s is not bound",
                              session->program->inputs.info[i].name);
    }
    if (session->has_items && !kiln_session_begin_items(session, error))
        return FALSE;
    if (must_specialise(session)) {
        if (!specialise(session, error))
            return FALSE;
    } else if (session->outputs_changed && !check_outputs(session, session->made, error)) {
        return FALSE;
    }
    if ((session->outputs_taken && !kiln_session_renew_outputs(session, error)) ||
        (session->ranges_changed && !check_ranges(session, error)) ||
        !kiln_session_carry_ready(session, error))
        return FALSE;
    if (!kiln_session_begin_texts(session, error))
        return FALSE;
    bool folded = kiln_session_has_folded(session);
    if (folded && !kiln_session_pin_folded(session, error))
        return FALSE;
    if (session->draws && !session->seeded)
        session->run_seed = kiln_random_fresh();
    session->ran = session->poison    ? kiln_session_calls_poisoned(session, error)
                   : session->profile ? kiln_session_calls_profiled(session, error)
                                      : kiln_session_calls(session, error);
    session->settled = session->ran;
    if (folded)
        kiln_cache_entry_unpin(session->entry);
    if (session->lost) /* half of the instance has other shapes */
        kiln_session_drop(session);
    session->lost = false;
    for (unsigned i = 0; session->ran && i < session->made->outputs.n; i++)
        session->outputs[i].moved = session->outputs[i].taken = false;
    if (session->ran)
        kiln_session_carry_end(session);
    return session->ran;
}
