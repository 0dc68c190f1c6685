/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/open/instance.h"

#include "graph/arena.h"
#include "graph/base/alloc.h"
#include "graph/base/number.h"
#include "graph/base/shared.h"
#include "graph/binding.h"
#include "graph/dim.h"
#include "graph/error.h"
#include "graph/kiln-types.h"
#include "graph/type.h"
#include "ir/carry.h"
#include "ir/compiled.h"
#include "ir/ir.h"
#include "ir/kernel.h"
#include "ir/life.h"
#include "ir/open.h"
#include "ir/plan/settle.h"
#include "ir/plan.h"
#include "ir/plan/place.h"
#include "ir/plan/plan_open.h"
#include "ir/verify/verify_priv.h"
#include "kiln.h"
#include "runtime/fold_calls.h"
#include "runtime/model.h"
#include "runtime/open/carry.h"
#include "runtime/open/constants.h"
#include "runtime/open/regions.h"
#include "runtime/open/define.h"

#include <string.h>

/* A buffer whose bytes stay from run to run, and where it lay. */
typedef struct {
    uint32_t life;
    int64_t offset;
} KeptPlace;

struct KilnInstance {
    KilnTemplate *origin;
    KilnIRFunction *function; /* a copy of the open one */
    KilnOpenFields *fields;
    KilnDimBinding next; /* numbers of the names that it moves to */
    KilnBindOptions options;
    KilnBinder binder;
    uint64_t *masks;                 /* per call: what it depends on */
    const KilnDeclaration **regions; /* per call: the region that is compiled for the numbers;
                                        NULL: it has none */
    uint32_t *scratch_life;          /* per call: its life among those of the plan */
    KilnFirstFit *fit;
    KilnBuffer **states; /* per carried value; NULL: it has none */
    KilnArena *arena;    /* of checks */
    bool moved;          /* the last move succeeded */
    bool stands;         /* kernels, places and weights are those of the last move */
    bool *settled;       /* per call; NULL: none is */
    uint64_t settled_mask;
    KeptPlace *kept; /* of settled results */
    guint n_kept;
    bool same_constants;          /* of the first run: the last move found those of before */
    bool keeps;                   /* settled results are valid after the last move */
    KilnDefinitions *definitions; /* NULL: data decides no dim */
};

static void
free_instance(KilnInstance *instance)
{
    kiln_definitions_free(instance->definitions);
    kiln_first_fit_free(instance->fit);
    kiln_open_fields_free(instance->fields);
    kiln_ir_function_free(instance->function);
    g_free(instance->next.names);
    g_free(instance->binder.written);
    g_free(instance->binder.read_plain);
    g_free(instance->binder.aligned);
    g_free(instance->binder.place);
    g_free(instance->states);
    g_free(instance->masks);
    g_free(instance->regions);
    g_free(instance->scratch_life);
    g_free(instance->settled);
    g_free(instance->kept);
    if (instance->arena)
        kiln_arena_free(instance->arena);
    kiln_template_unref(instance->origin);
    g_free(instance);
}

/* --- making --- */

static void
make_calls(KilnSpecialisation *out, KilnInstance *instance)
{
    uint32_t n = instance->origin->n_calls;
    out->calls = g_new0(KilnBoundCall, (gsize)n + 1);
    instance->masks = g_new0(uint64_t, (gsize)n + 1);
    instance->regions = g_new0(const KilnDeclaration *, (gsize)n + 1);
    kiln_foreach_instr (instr, instance->function) {
        if (kiln_instr_is_bookkeeping(instr))
            continue;
        KilnBoundCall *call = &out->calls[out->n_calls];
        call->instr = instr;
        call->first_slot = out->n_slots;
        out->n_slots += instr->n_operands;
        instance->masks[out->n_calls] = kiln_open_mask(instance->fields, instr);
        if (kiln_open_calls_region(instr)) {
            instance->masks[out->n_calls] = UINT64_MAX; /* its body may have any name */
            instance->regions[out->n_calls] = instr->declaration;
        }
        out->n_calls++;
    }
    out->slots = g_new0(KilnSlot, (gsize)out->n_slots + 1);
}

/* Each call has a life for its scratch, which may be empty. */
static void
make_plan(KilnSpecialisation *out, KilnInstance *instance)
{
    g_autofree int64_t *one = g_new(int64_t, (gsize)out->n_calls + 1);
    g_autofree uint32_t *life_of = g_new0(uint32_t, (gsize)instance->function->next_id + 1);
    for (uint32_t c = 0; c < out->n_calls; c++)
        one[c] = 1;
    out->plan = kiln_liveness_of(instance->function, one, 0);
    for (uint32_t i = 0; i < out->plan->n_lives; i++) {
        if (out->plan->lives[i].scratch_of)
            life_of[out->plan->lives[i].scratch_of->id] = i;
    }
    instance->scratch_life = g_new0(uint32_t, (gsize)out->n_calls + 1);
    for (uint32_t c = 0; c < out->n_calls; c++)
        instance->scratch_life[c] = life_of[out->calls[c].instr->id];
    instance->fit = kiln_first_fit_new(out->plan->lives, out->plan->n_lives);
}

/* The masks are those of the calls, which must be made. */
static void
make_settled(const KilnSpecialisation *out, KilnInstance *instance)
{
    const KilnOpen *open = instance->function->open;
    if (!open->settled->len)
        return;
    instance->settled = g_new0(bool, (gsize)out->n_calls + 1);
    for (uint32_t c = 0, next = 0; c < out->n_calls && next < open->settled->len; c++) {
        if (out->calls[c].instr != g_ptr_array_index(open->settled, next))
            continue;
        instance->settled[c] = true;
        instance->settled_mask |= instance->masks[c];
        next++;
    }
    instance->kept = g_new0(KeptPlace, (gsize)open->kept->len + 1);
    for (uint32_t i = 0; i < out->plan->n_lives; i++) {
        const KilnBuffer *buffer = out->plan->lives[i].buffer;
        if (buffer && kiln_open_keeps(instance->function, buffer))
            instance->kept[instance->n_kept++] = (KeptPlace){ i, -1 };
    }
}

static void
make_binder(KilnSpecialisation *out, KilnInstance *instance)
{
    gsize n = (gsize)instance->function->buffers->len + 1;
    KilnBinder binder = { out,
                          &instance->options,
                          g_new0(bool, n),
                          g_new0(bool, n),
                          g_new0(bool, n),
                          g_new0(uint32_t, n) };
    const GPtrArray *weights = instance->function->weights;
    uint32_t n_weights = 0, n_states = 0;
    instance->binder = binder;
    kiln_bind_find_written(&instance->binder);
    kiln_bind_list(&instance->binder, instance->function->inputs, &out->inputs);
    kiln_bind_list(&instance->binder, instance->function->outputs, &out->outputs);
    if (instance->origin->folder) { /* the program's inputs are not those of the function */
        kiln_info_list_clear(&out->inputs);
        kiln_info_list_init(&out->inputs, instance->origin->n_inputs, instance->origin->input_names,
                            instance->origin->input_types);
    }
    for (unsigned i = 0; i < MIN(out->outputs.n, instance->options.outputs->n); i++)
        out->outputs.info[i].name = instance->options.outputs->info[i].name;
    for (guint i = 0; i < weights->len; i++) {
        const KilnBuffer *weight = g_ptr_array_index(weights, i);
        binder.place[weight->id] = binder.written[weight->id] ? n_states++ : n_weights++;
    }
    out->weights = g_new0(GBytes *, (gsize)weights->len + 1);
    out->states = g_new0(GBytes *, (gsize)weights->len + 1);
    out->n_weights = n_weights;
    out->n_states = n_states;
}

static void
find_states(KilnInstance *instance)
{
    const KilnTemplate *origin = instance->origin;
    instance->states = g_new0(KilnBuffer *, (gsize)origin->pairs.n + 1);
    for (unsigned k = 0; k < origin->pairs.n; k++) {
        const KilnBuffer *state = origin->appends[k].state;
        if (state)
            instance->states[k] = kiln_ir_find_buffer(instance->function, state->name);
    }
}

static KilnSpecialisation *
make(KilnTemplate *origin, const KilnBindOptions *options)
{
    KilnSpecialisation *out = g_new0(KilnSpecialisation, 1);
    KilnInstance *instance = g_new0(KilnInstance, 1);
    atomic_init(&out->references, 1);
    out->instance = instance;
    out->free_instance = free_instance;
    instance->origin = kiln_template_ref(origin);
    instance->function = kiln_ir_function_copy(origin->function);
    if (options->memory_limit)
        kiln_open_unsettle(instance->function);
    instance->fields = kiln_open_fields_new(instance->function);
    instance->next.n = origin->binding->n;
    instance->next.names =
        g_memdup2(origin->binding->names, origin->binding->n * sizeof *origin->binding->names);
    instance->options = *options;
    instance->options.keeps_constants = true;
    instance->options.progress = NULL;
    instance->arena = kiln_arena_new();
    out->function = instance->function;
    out->bodies = origin->bodies;
    make_calls(out, instance);
    make_plan(out, instance);
    instance->definitions = kiln_definitions_new(out, instance->fields, &instance->next);
    kiln_open_strip(instance->fields);
    make_settled(out, instance);
    make_binder(out, instance);
    find_states(instance);
    return out;
}

/* --- moving --- */

/* What changed, and which stage of a run knows it (ir/define.h). */
typedef struct {
    uint64_t mask;
    uint32_t stage;
} Change;

static bool
is_touched(const KilnInstance *instance, uint32_t c, Change change)
{
    if (instance->definitions && instance->definitions->stages[c] != change.stage)
        return false;
    return !instance->stands || instance->masks[c] & change.mask;
}

/* Gives call @c the region for the numbers that it moves to. */
static gboolean
choose_region(KilnSpecialisation *out, uint32_t c, GError **error)
{
    const KilnInstance *instance = out->instance;
    const KilnBindOptions *options = &instance->options;
    if (!instance->regions[c])
        return TRUE;
    KilnCompiled *compiled =
        kiln_regions_get(kiln_template_regions(instance->origin), instance->regions[c],
                         &instance->next, options->target, options->threads, error);
    if (!compiled)
        return FALSE;
    kiln_open_set_region((KilnInstr *)out->calls[c].instr, compiled);
    kiln_shared_unref(&compiled->shared);
    return TRUE;
}

/* Chooses the kernels of calls whose numbers changed, and the forms of their weights. */
static gboolean
choose_kernels(KilnSpecialisation *out, Change changed, GError **error)
{
    KilnInstance *instance = out->instance;
    for (uint32_t c = 0; c < out->n_calls; c++) {
        KilnBoundCall *call = &out->calls[c];
        if (!is_touched(instance, c, changed))
            continue;
        const KilnPackedForm form = call->kernel ? kiln_template_form(call) : (KilnPackedForm){ 0 };
        size_t bytes = call->packed_bytes;
        if (!choose_region(out, c, error) ||
            !kiln_instr_verify_types(call->instr, &instance->arena, error) ||
            !kiln_bind_kernel(&instance->binder, call, error))
            return FALSE;
        if (!kiln_bind_packed(call, error))
            return FALSE;
        const KilnPackedForm now = kiln_template_form(call);
        bool keeps = form.kernel == now.kernel && form.form == now.form && call->packed_bytes &&
                     kiln_template_suits(call, call->fitted);
        if (!keeps) {
            g_clear_pointer(&call->packed, g_bytes_unref);
            call->fitted = false;
        } else if (call->packed) {
            call->packed_bytes = bytes; /* fitted ones are smaller than the kernel says */
        }
    }
    return TRUE;
}

/* Kernels prepare, and say how much scratch they want with the weights that they got. */
static gboolean
prepare_calls(KilnSpecialisation *out, Change changed, GError **error)
{
    KilnInstance *instance = out->instance;
    for (uint32_t c = 0; c < out->n_calls; c++) {
        KilnBoundCall *call = &out->calls[c];
        if (!is_touched(instance, c, changed))
            continue;
        if (!kiln_bind_prepare(call, error))
            return FALSE;
        size_t bytes = kiln_kernel_scratch(call->kernel, call->instr, call->form, call->fitted,
                                           instance->options.threads);
        bytes = MIN(bytes, (size_t)INT64_MAX / 2);
        out->plan->lives[instance->scratch_life[c]].size = (int64_t)kiln_align_up(bytes);
    }
    return TRUE;
}

/* Within the bounds of all names each buffer has one place, and the arena one size. */
static bool
place_within_bounds(KilnSpecialisation *out)
{
    const KilnInstance *instance = out->instance;
    const KilnOpenPlan *most = instance->origin->most;
    int64_t limit = instance->options.memory_limit;
    if (!most || (limit && most->plan->arena > limit))
        return false;
    for (uint32_t i = 0; i < out->plan->n_lives; i++) {
        if (out->plan->lives[i].size > most->plan->lives[i].size)
            return false; /* of scratch: that of smaller shapes may be bigger */
    }
    for (uint32_t i = 0; i < out->plan->n_lives; i++)
        out->plan->lives[i].offset = most->plan->lives[i].offset;
    out->plan->arena = most->plan->arena;
    return true;
}

/* The bytes of life @i: those of the bounds where data decides them, so that it need not move. */
static int64_t
size_of_life(const KilnInstance *instance, const KilnLife *life, uint32_t i)
{
    const KilnDefinitions *definitions = instance->definitions;
    uint32_t at = definitions ? definitions->life_dims[i] : 0;
    if (!life->buffer)
        return life->size;
    if (!at)
        return kiln_buffer_bytes_planned(life->buffer);
    int64_t bytes = kiln_definitions_most(definitions, &instance->next,
                                          g_array_index(definitions->sizes, KilnSize, at - 1));
    return bytes > INT64_MAX - KILN_ALIGNMENT ? INT64_MAX : (int64_t)kiln_align_up((size_t)bytes);
}

/* Places the lives that begin behind step @step; those before stay. */
static void
place_behind(KilnSpecialisation *out, int64_t step)
{
    KilnInstance *instance = out->instance;
    KilnMemoryPlan *plan = out->plan;
    if (step >= 0)
        plan->arena = MAX(plan->arena, kiln_first_fit_place_behind(instance->fit, step));
    else if (!place_within_bounds(out))
        plan->arena = kiln_first_fit_place(instance->fit);
    for (uint32_t i = 0; instance->definitions && i < plan->n_lives; i++)
        instance->definitions->room[i] = plan->lives[i].size;
}

/* True where what changed behind step @step fits into the places that it has. */
static bool
has_room(const KilnInstance *instance, const KilnMemoryPlan *plan, int64_t step)
{
    bool fits = step >= 0;
    for (uint32_t i = 0; i < plan->n_lives && fits; i++)
        fits = plan->lives[i].size <= instance->definitions->room[i];
    return fits;
}

/* @step: the last one that has run; -1 before the first. */
static gboolean
place(KilnSpecialisation *out, int64_t step, GError **error)
{
    KilnInstance *instance = out->instance;
    KilnMemoryPlan *plan = out->plan;
    plan->sum = 0;
    for (uint32_t i = 0; i < plan->n_lives; i++) {
        KilnLife *life = &plan->lives[i];
        life->size = size_of_life(instance, life, i);
        plan->sum = kiln_add_capped(plan->sum, life->size);
    }
    if (plan->sum == INT64_MAX)
        return kiln_throw(error, KILN_ERROR_MEMORY, "@%s: its buffers exceed 2^63 bytes",
                          out->function->name);
    if (!has_room(instance, plan, step))
        place_behind(out, step);
    out->arena_bytes = plan->arena;
    instance->function->arena_bytes = plan->arena;
    for (uint32_t i = 0; i < plan->n_lives; i++) {
        KilnBuffer *buffer = plan->lives[i].buffer;
        if (buffer)
            buffer->offset = plan->lives[i].offset;
    }
    if (!instance->options.memory_limit || plan->arena <= instance->options.memory_limit)
        return TRUE;
    g_autoptr(KilnMemoryExcess) excess =
        kiln_memory_excess(out->function, plan, instance->options.memory_limit);
    return !excess || kiln_memory_excess_throw(excess, plan, error);
}

/* Calls of later stages have no kernel yet. */
static bool
packs(const KilnBoundCall *call, uint32_t i)
{
    return call->packed_bytes && kiln_kernel_packs(call->kernel, call->instr, i);
}

static void
fill_slots(KilnSpecialisation *out)
{
    const KilnInstance *instance = out->instance;
    if (out->folder)
        g_array_set_size(out->folder->packings, 0);
    for (uint32_t c = 0; c < out->n_calls; c++) {
        KilnBoundCall *call = &out->calls[c];
        const KilnLife *scratch = &out->plan->lives[instance->scratch_life[c]];
        call->scratch_offset = scratch->size ? scratch->offset : -1;
        for (uint32_t i = 0; i < call->instr->n_operands; i++) {
            KilnSlot *slot = &out->slots[call->first_slot + i];
            *slot = kiln_bind_slot(&instance->binder, call->instr->operands[i].buffer);
        }
        if (call->late)
            kiln_bind_add_packing(out, call);
        for (uint32_t i = 0; i < call->instr->n_operands; i++) {
            if (packs(call, i))
                out->slots[call->first_slot + i].kind = KILN_SLOT_NONE;
        }
    }
    if (out->folder)
        kiln_bind_note_plain(out);
}

/* Weights that come with the first run are packed then. */
static void
number_late(KilnSpecialisation *out)
{
    uint32_t n = 0;
    for (uint32_t c = 0; out->folder && c < out->n_calls; c++) {
        KilnBoundCall *call = &out->calls[c];
        call->late = call->packed_bytes && kiln_bind_comes_late(call) ? ++n : 0;
    }
}

/* Fold functions for the numbers that it moves to. */
static gboolean
move_folder(KilnSpecialisation *out, GError **error)
{
    const KilnInstance *instance = out->instance;
    if (!instance->origin->folder)
        return TRUE;
    KilnFolder *folder = kiln_folder_at(instance->origin->folder, &instance->next, error);
    if (folder)
        out->folder = folder;
    return folder != NULL;
}

static void
state_folded_inputs(KilnSpecialisation *out)
{
    for (unsigned i = 0; i < out->inputs.n; i++) {
        const KilnType *type = &out->folder->input_types[i];
        memcpy(out->inputs.types[i].dims, type->dims, sizeof type->dims);
        out->inputs.info[i].bytes = kiln_type_bytes(type);
    }
}

static void
state_shapes(KilnInfoList *list, const GPtrArray *buffers)
{
    for (guint i = 0; i < buffers->len; i++) {
        const KilnType *type = &((const KilnBuffer *)g_ptr_array_index(buffers, i))->type;
        KilnTensorInfo *info = &list->info[i];
        memcpy(list->types[i].dims, type->dims, sizeof type->dims);
        info->bytes = kiln_type_bytes(type);
    }
}

/* States get room for what this run appends. */
static gboolean
reserve(KilnInstance *instance, GError **error)
{
    const KilnTemplate *origin = instance->origin;
    for (unsigned k = 0; k < origin->pairs.n; k++) {
        const KilnAppend *append = &origin->appends[k];
        KilnCarry *carry = &instance->options.carries->v[k];
        int64_t dims[KILN_MAX_RANK], extent = append->extent.n, least, most = 0;
        const KilnDim *dim = append->extent.dim;
        if (!append->state)
            continue;
        for (int d = 0; d < append->state->type.rank; d++) {
            const KilnDim *open = d == append->axis ? dim : append->state->type.open[d];
            dims[d] = append->state->type.dims[d];
            if (open &&
                !kiln_dim_evaluate(open, kiln_dim_binding_lookup, &instance->next, &dims[d], error))
                return FALSE;
        }
        extent = dims[append->axis];
        if (dim)
            kiln_dim_range(dim, &least, &most);
        carry->value.rank = append->state->type.rank;
        if (!kiln_carry_reserve(carry, dims, extent, most < KILN_DIM_MOST ? most : 0, error))
            return FALSE;
        for (uint32_t i = 0; i < instance->next.n; i++) {
            if (strcmp(instance->next.names[i].name, kiln_dim_as_name(append->room)) == 0)
                instance->next.names[i].number = carry->room;
        }
    }
    return TRUE;
}

/* Whether settled results have the values and the places of the last move. */
static void
see_to_kept(KilnSpecialisation *out, uint64_t changed)
{
    KilnInstance *instance = out->instance;
    instance->keeps = instance->stands && !(instance->settled_mask & changed);
    for (guint i = 0; i < instance->n_kept; i++) {
        KeptPlace *place = &instance->kept[i];
        const int64_t offset = out->plan->lives[place->life].offset;
        instance->keeps &= place->offset == offset;
        place->offset = offset;
    }
}

/* Makes the calls ready whose numbers changed. @step: the last one that has run, or -1. */
static gboolean
make_ready(KilnSpecialisation *out, Change changed, int64_t step, GError **error)
{
    KilnInstance *instance = out->instance;
    gsize n = instance->function->buffers->len;
    if (!choose_kernels(out, changed, error))
        return FALSE;
    number_late(out);
    memset(instance->binder.read_plain, 0, n * sizeof(bool));
    memset(instance->binder.aligned, 0, n * sizeof(bool));
    for (uint32_t c = 0; c < out->n_calls; c++) {
        if (out->calls[c].kernel)
            kiln_bind_note_reads(&instance->binder, &out->calls[c]);
    }
    for (unsigned k = 0; k < instance->origin->pairs.n; k++) {
        if (instance->states[k])
            instance->binder.read_plain[instance->states[k]->id] = false;
    }
    if (out->folder)
        state_folded_inputs(out);
    else
        state_shapes(&out->inputs, instance->function->inputs);
    state_shapes(&out->outputs, instance->function->outputs);
    if (!kiln_template_weights(instance->origin, &instance->binder, error) ||
        !prepare_calls(out, changed, error) || !place(out, step, error) ||
        !kiln_bind_check_limits(&instance->binder, error))
        return FALSE;
    fill_slots(out);
    return TRUE;
}

static gboolean
move(KilnSpecialisation *out, GError **error)
{
    KilnInstance *instance = out->instance;
    KilnDefinitions *definitions = instance->definitions;
    Change changed = { 0 };
    if (definitions)
        kiln_definitions_bound(definitions, &instance->next);
    if (!reserve(instance, error) ||
        !kiln_open_move_stage(instance->fields, &instance->next, 0, &changed.mask, error))
        return FALSE;
    KilnFolder *before = out->folder;
    gboolean good = move_folder(out, error) && make_ready(out, changed, -1, error);
    instance->same_constants = good && before && kiln_folder_is_same(before, out->folder);
    if (before != out->folder)
        kiln_folder_free(before);
    if (!good)
        return FALSE;
    if (definitions) /* a run that failed may have left stages as they were */
        definitions->changed |= changed.mask;
    see_to_kept(out, changed.mask);
    return TRUE;
}

/* Of a failed move some calls keep what they had, and others do not. */
static gboolean
move_or_fall(KilnSpecialisation *out, GError **error)
{
    KilnInstance *instance = out->instance;
    gboolean good = move(out, error);
    instance->moved = good;
    /* Where data decides dims, calls are ready behind the last definition. */
    instance->stands = good && (instance->stands || !instance->definitions);
    return good;
}

const KilnDefinitions *
kiln_instance_definitions(const KilnSpecialisation *made)
{
    return made->instance ? made->instance->definitions : NULL;
}

bool
kiln_instance_decides_output(const KilnSpecialisation *made, unsigned i)
{
    const KilnDefinitions *definitions = kiln_instance_definitions(made);
    return definitions && definitions->outputs[i].dim;
}

int64_t
kiln_instance_output_room(const KilnSpecialisation *made, unsigned i)
{
    if (!kiln_instance_decides_output(made, i))
        return made->outputs.info[i].bytes;
    const KilnInstance *instance = made->instance;
    return kiln_definitions_most(instance->definitions, &instance->next,
                                 instance->definitions->outputs[i]);
}

static gboolean
define(KilnSpecialisation *made, uint32_t k, const int64_t *numbers, bool *out_changed,
       GError **error)
{
    KilnInstance *instance = made->instance;
    KilnDefinitions *definitions = instance->definitions;
    Change change = { 0, k + 1 };
    const bool last = k + 1 == definitions->n;
    if (!kiln_definitions_set(definitions, k, &instance->next, numbers, out_changed, error))
        return FALSE;
    *out_changed |= definitions->changed || !instance->stands;
    if (!*out_changed)
        return TRUE;
    if (!kiln_open_move_stage(instance->fields, &instance->next, k + 1, &change.mask, error))
        return FALSE;
    change.mask |= definitions->changed;
    if (!make_ready(made, change, definitions->items[k].call - 1, error))
        return FALSE;
    definitions->changed = last ? 0 : change.mask;
    instance->stands |= last;
    return TRUE;
}

gboolean
kiln_instance_define(KilnSpecialisation *made, uint32_t k, const int64_t *numbers,
                     bool *out_changed, GError **error)
{
    gboolean good = define(made, k, numbers, out_changed, error);
    made->instance->stands &= good;
    return good;
}

/* Values that shapes depend on are literals of the open program. */
static bool
has_values(const KilnSpecialisation *made, const KilnBinding *bindings)
{
    bool same = true;
    for (unsigned i = 0; i < made->inputs.n && same; i++) {
        size_t size = 0;
        const void *value = made->values[i] ? g_bytes_get_data(made->values[i], &size) : NULL;
        same = !size || memcmp(value, bindings[i].data, size) == 0;
    }
    return same;
}

bool
kiln_instance_takes(KilnSpecialisation *made, const KilnBinding *bindings)
{
    KilnInstance *instance = made->instance;
    return instance && kiln_template_read(instance->origin, bindings, &instance->next, NULL) &&
           has_values(made, bindings);
}

gboolean
kiln_instance_move(KilnSpecialisation *made, const KilnBinding *bindings, GError **error)
{
    for (unsigned i = 0; i < made->inputs.n; i++) {
        made->bindings[i] = bindings[i];
        made->bindings[i].data = NULL;
    }
    return move_or_fall(made, error);
}

KilnSpecialisation *
kiln_instance_new(KilnTemplate *origin, const KilnBindOptions *options, const KilnBinding *bindings,
                  GError **error)
{
    g_autoptr(KilnSpecialisation) out = make(origin, options);
    unsigned n = out->inputs.n;
    out->bindings = g_new0(KilnBinding, (gsize)n + 1);
    out->values = g_new0(GBytes *, (gsize)n + 1);
    for (unsigned i = 0; i < n; i++)
        out->values[i] = origin->values[i] ? g_bytes_ref(origin->values[i]) : NULL;
    if (!kiln_template_read(origin, bindings, &out->instance->next, error))
        return NULL;
    if (!has_values(out, bindings))
        return kiln_throw_null(error, KILN_ERROR_SHAPE,
                               "%s: the values of inputs do not fit the open program",
                               origin->function->name);
    return kiln_instance_move(out, bindings, error) ? g_steal_pointer(&out) : NULL;
}

KilnSpecialisation *
kiln_instance_new_body(KilnTemplate *origin, const KilnBindOptions *options)
{
    static const KilnInfoList none = { 0 };
    KilnBindOptions own = *options;
    own.outputs = &none;
    own.carries = NULL;
    own.stored = NULL;
    own.folder = NULL;
    return make(origin, &own);
}

gboolean
kiln_instance_move_names(KilnSpecialisation *made, const uint32_t *at, const int64_t *numbers,
                         uint32_t n, bool *out_changed, GError **error)
{
    KilnInstance *instance = made->instance;
    *out_changed = !instance->moved;
    for (uint32_t i = 0; i < n; i++) {
        int64_t *number = &instance->next.names[at[i]].number;
        *out_changed |= *number != numbers[i];
        *number = numbers[i];
    }
    return !*out_changed || move_or_fall(made, error);
}

const KilnBindOptions *
kiln_instance_options(const KilnSpecialisation *made)
{
    return &made->instance->options;
}

uint32_t
kiln_instance_state(const KilnSpecialisation *made, unsigned k)
{
    const KilnInstance *instance = made->instance;
    bool has = instance && k < instance->origin->pairs.n && instance->states[k];
    return has ? instance->binder.place[instance->states[k]->id] : UINT32_MAX;
}

const bool *
kiln_instance_settled(const KilnSpecialisation *made)
{
    return made->instance ? made->instance->settled : NULL;
}

bool
kiln_instance_same_constants(const KilnSpecialisation *made)
{
    return made->instance->same_constants;
}

bool
kiln_instance_keeps(const KilnSpecialisation *made)
{
    return made->instance->keeps;
}
