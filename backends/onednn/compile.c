/* SPDX-License-Identifier: Apache-2.0 */
/* From a lowered body to a list of primitives with places for all they touch. */

#include "backends/onednn/finite.h"
#include "backends/onednn/region.h"
#include "exec/custom.h"
#include "graph/base/alloc.h"
#include "graph/base/shared.h"
#include "ir/life.h"
#include "ir/plan/place.h"

/* --- instructions --- */

static bool
build_instr(Builder *builder, const KilnInstr *instr)
{
    switch (instr->kind) {
    case KILN_INSTR_alloc:
    case KILN_INSTR_dealloc:
        return true;
    case KILN_INSTR_copy:
        return kiln_onednn_build_copy(builder, instr);
    case KILN_INSTR_pack:
    case KILN_INSTR_unpack:
        return kiln_onednn_build_relayout(builder, instr);
    case KILN_INSTR_conv:
        return kiln_onednn_build_conv(builder, instr);
    case KILN_INSTR_conv_transpose:
        return kiln_onednn_build_conv_transpose(builder, instr);
    case KILN_INSTR_matmul:
    case KILN_INSTR_gemm:
        return kiln_onednn_build_product(builder, instr);
    case KILN_INSTR_max_pool:
    case KILN_INSTR_average_pool:
    case KILN_INSTR_global_average_pool:
    case KILN_INSTR_global_max_pool:
        return kiln_onednn_build_pool(builder, instr);
    case KILN_INSTR_softmax:
    case KILN_INSTR_layer_normalization:
    case KILN_INSTR_reduce_max:
    case KILN_INSTR_reduce_mean:
    case KILN_INSTR_reduce_min:
    case KILN_INSTR_reduce_sum:
        return kiln_onednn_build_rows(builder, instr);
    case KILN_INSTR_lstm:
        return kiln_onednn_build_lstm(builder, instr);
    case KILN_INSTR_concat:
        return kiln_onednn_build_concat(builder, instr);
    case KILN_INSTR_call:
        return kiln_onednn_build_custom(builder, instr);
    default:
        return kiln_onednn_build_elementwise(builder, instr);
    }
}

/* The layout at the edges, if one has one: the first of activations, for weights may lie in one
 * that is called the same. Else the one that is faster. */
static Layout
choose_layout(const KilnIRFunction *function, const bool *constant)
{
    const GPtrArray *edges[] = { function->inputs, function->outputs };
    for (size_t e = 0; e < G_N_ELEMENTS(edges); e++) {
        for (guint i = 0; i < edges[e]->len; i++) {
            const KilnBuffer *buffer = g_ptr_array_index(edges[e], i);
            Layout layout = kiln_onednn_layout_of_tag(&buffer->type);
            bool weight = edges[e] == function->inputs && constant[i];
            if (layout != LAYOUT_PLAIN && !weight)
                return layout;
        }
    }
    double blocked = kiln_onednn_region_us(function, constant, LAYOUT_BLOCKED);
    return blocked < kiln_onednn_region_us(function, constant, LAYOUT_CHANNELS_LAST)
               ? LAYOUT_BLOCKED
               : LAYOUT_CHANNELS_LAST;
}

static void
enter_operands(Builder *builder)
{
    const KilnIRFunction *function = builder->function;
    for (guint i = 0; i < function->inputs->len; i++) {
        const KilnBuffer *buffer = g_ptr_array_index(function->inputs, i);
        if (builder->constant[i])
            continue;
        Slot slot = { .md = kiln_onednn_edge(&buffer->type),
                      .place = SLOT_OPERAND,
                      .index = builder->n_out + i,
                      .first = -1 };
        g_array_append_val(builder->region->slots, slot);
        kiln_onednn_enter(builder, buffer, builder->region->slots->len - 1);
        builder->computed[buffer->id] = true;
    }
}

/* Results that lie elsewhere, or otherwise, are brought where the caller wants them. */
static bool
finish_outputs(Builder *builder, const KilnInstr **out_refused)
{
    const GPtrArray *outputs = builder->function->outputs;
    for (guint i = 0; i < outputs->len; i++) {
        const KilnBuffer *buffer = g_ptr_array_index(outputs, i);
        if (!builder->values[buffer->id])
            return kiln_throw(builder->error, KILN_ERROR_UNSUPPORTED, "%s is not computed",
                              buffer->name);
        uint32_t from = kiln_onednn_slot(builder, buffer);
        const Slot *slot = &g_array_index(builder->region->slots, Slot, from);
        if (slot->place == SLOT_OPERAND && slot->index == i)
            continue;
        dnnl_memory_desc_t md = kiln_onednn_edge(&buffer->type);
        uint32_t to = kiln_onednn_result(builder, buffer, &md);
        if (!kiln_onednn_reorder(builder, from, to, "reorder of a result")) {
            *out_refused = kiln_onednn_writer(buffer);
            return false;
        }
    }
    return true;
}

/* --- places --- */

static void
place_packed(Region *region)
{
    size_t offset = kiln_align_up(region->measured->len * sizeof(float));
    for (guint i = 0; i < region->packs->len; i++) {
        const Pack *pack = &g_array_index(region->packs, Pack, i);
        Slot *slot = &g_array_index(region->slots, Slot, pack->slot);
        slot->offset = offset;
        offset += kiln_align_up(dnnl_memory_desc_get_size(&slot->md));
    }
    region->packed_bytes = offset;
}

static void
place_workspace(Region *region)
{
    g_autofree KilnLife *lives = g_new0(KilnLife, region->slots->len + 1);
    g_autofree Slot **of = g_new0(Slot *, region->slots->len + 1);
    uint32_t n = 0;
    for (guint i = 0; i < region->slots->len; i++) {
        Slot *slot = &g_array_index(region->slots, Slot, i);
        if (slot->place != SLOT_WORKSPACE || slot->first < 0)
            continue;
        lives[n].first = slot->first;
        lives[n].last = slot->last;
        lives[n].size = (int64_t)kiln_align_up(dnnl_memory_desc_get_size(&slot->md));
        of[n++] = slot;
    }
    region->workspace_bytes = (size_t)kiln_place(lives, n, KILN_PLACE_WORK, NULL);
    for (uint32_t i = 0; i < n; i++)
        of[i]->offset = (size_t)lives[i].offset;
}

/* All that the packed weights follow from, beside the constants themselves. */
static GBytes *
describe_packing(const Region *region)
{
    GByteArray *out = g_byte_array_new();
    for (guint i = 0; i < region->measured->len; i++) {
        const Measured *constant = &g_array_index(region->measured, Measured, i);
        const uint64_t what[] = { constant->operand, constant->floats };
        g_byte_array_append(out, (const guint8 *)what, sizeof what);
    }
    for (guint i = 0; i < region->packs->len; i++) {
        const Pack *pack = &g_array_index(region->packs, Pack, i);
        const Slot *slot = &g_array_index(region->slots, Slot, pack->slot);
        const int64_t what[] = { pack->operand, pack->gate, pack->twice, (int64_t)slot->offset };
        g_byte_array_append(out, (const guint8 *)what, sizeof what);
        g_byte_array_append(out, (const guint8 *)&pack->from, sizeof pack->from);
        g_byte_array_append(out, (const guint8 *)&slot->md, sizeof slot->md);
    }
    return g_byte_array_free_to_bytes(out);
}

/* --- what the rest of Kiln sees --- */

enum {
    STEP_BYTES = 64 * 1024 /* code and memory of a step, about */
};

static const Region *
region_of(const KilnInstr *instr)
{
    return (const Region *)kiln_call_compiled(instr);
}

static size_t
workspace_bytes(const KilnInstr *instr, uint32_t form, int threads)
{
    (void)form;
    (void)threads; /* as compiled */
    return region_of(instr)->workspace_bytes;
}

static size_t
packed_bytes(const KilnInstr *instr, uint32_t form)
{
    (void)form;
    return region_of(instr)->packed_bytes;
}

static bool
packs_operand(const KilnInstr *instr, uint32_t i)
{
    return region_of(instr)->packed_operand[i];
}

static void
region_free(KilnShared *shared)
{
    Region *region = (Region *)shared;
    kiln_onednn_contexts_free(region);
    for (guint i = 0; i < region->steps->len; i++) {
        const Step *step = &g_array_index(region->steps, Step, i);
        if (step->primitive)
            dnnl_primitive_destroy(step->primitive);
        if (step->pd)
            dnnl_primitive_desc_destroy(step->pd);
        kiln_shared_unref(kiln_custom_shared(step->custom));
    }
    pthread_mutex_destroy(&region->making);
    for (guint i = 0; i < region->packs->len; i++) {
        const Pack *pack = &g_array_index(region->packs, Pack, i);
        kiln_free(pack->literal);
    }
    g_array_unref(region->slots);
    g_array_unref(region->steps);
    g_array_unref(region->args);
    g_array_unref(region->packs);
    g_array_unref(region->guards);
    g_array_unref(region->bounds);
    g_array_unref(region->measured);
    g_string_free(region->description, TRUE);
    g_clear_pointer(&region->compiled.packing, g_bytes_unref);
    for (uint32_t i = 0; i < region->n_operands; i++)
        g_free(region->packed_tags[i]);
    g_free(region->packed_tags);
    g_free(region->packed_operand);
    g_free((char *)region->compiled.kernel.name);
    g_free(region);
}

static Region *
region_new(uint32_t n_operands)
{
    Region *region = g_new0(Region, 1);
    atomic_init(&region->compiled.shared.references, 1);
    region->compiled.shared.destroy = region_free;
    pthread_mutex_init(&region->making, NULL);
    region->slots = g_array_new(FALSE, FALSE, sizeof(Slot));
    region->steps = g_array_new(FALSE, FALSE, sizeof(Step));
    region->args = g_array_new(FALSE, FALSE, sizeof(StepArg));
    region->packs = g_array_new(FALSE, FALSE, sizeof(Pack));
    region->guards = g_array_new(FALSE, FALSE, sizeof(Guard));
    region->bounds = g_array_new(FALSE, FALSE, sizeof(float));
    region->measured = g_array_new(FALSE, FALSE, sizeof(Measured));
    region->description = g_string_new(NULL);
    region->packed_operand = g_new0(bool, n_operands + 1);
    region->packed_tags = g_new0(char *, n_operands + 1);
    region->n_operands = n_operands;
    region->compiled.kernel = (KilnKernel){ .instr = KILN_INSTR_call,
                                            .run = kiln_onednn_run,
                                            .scratch_bytes = workspace_bytes,
                                            .packed_bytes = packed_bytes,
                                            .pack = kiln_onednn_pack,
                                            .packs_operand = packs_operand };
    return region;
}

static bool
is_small(const KilnIRFunction *function)
{
    KilnCost sum = { 0, 0 };
    kiln_foreach_instr (instr, function) {
        KilnCost cost = kiln_instr_cost(instr);
        sum.flops += cost.flops;
        sum.bytes = MAX(sum.bytes, cost.bytes);
    }
    return !kiln_cost_is_parallel(&sum);
}

/* By itself not worth a team of threads: squeezed activations. Big weights come from memory, of
 * which two threads get more than one. */
static bool
is_small_step(const Builder *builder, const KilnInstr *instr)
{
    enum {
        BIG_WEIGHTS = 128 * 1024
    };
    KilnCost cost = kiln_instr_cost(instr);
    int64_t weights = 0;
    for (uint32_t i = 0; i < instr->n_operands; i++) {
        const KilnBuffer *buffer = instr->operands[i].buffer;
        if (buffer && kiln_onednn_is_constant(builder, buffer))
            weights += kiln_type_bytes(&buffer->type);
    }
    return !kiln_cost_is_parallel(&cost) && weights < BIG_WEIGHTS;
}

/* Of what was built from step @step on: an instruction, what it absorbed, and what was left to it.
 * @guarded: by instruction id. */
static void
guard(Builder *builder, guint step, bool *guarded)
{
    g_autoptr(GPtrArray) built = g_ptr_array_new();
    kiln_foreach_instr (instr, builder->function) {
        if (!builder->done[instr->id] || guarded[instr->id])
            continue;
        guarded[instr->id] = true;
        kiln_onednn_add_guards(builder, instr, step);
        g_ptr_array_add(built, instr);
    }
    for (guint i = 0; i < built->len; i++) {
        const KilnInstr *instr = g_ptr_array_index(built, i);
        for (uint32_t k = 0; k < instr->n_operands; k++) {
            const KilnBuffer *buffer = instr->operands[k].buffer;
            if (buffer && instr->operands[k].access == KILN_ACCESS_OUT)
                builder->computed[buffer->id] = true;
        }
    }
}

static bool
build_all(Builder *builder, const KilnInstr **out_refused)
{
    g_autofree bool *guarded = g_new0(bool, builder->function->next_id + 1);
    enter_operands(builder);
    kiln_foreach_instr (instr, builder->function) {
        if (builder->done[instr->id])
            continue;
        builder->done[instr->id] = true;
        kiln_onednn_set_small(builder, is_small_step(builder, instr));
        guint step = builder->region->steps->len;
        if (!build_instr(builder, instr)) {
            *out_refused = instr;
            return false;
        }
        guard(builder, step, guarded);
    }
    kiln_onednn_finish_guards(builder);
    kiln_onednn_note_constants(builder);
    return finish_outputs(builder, out_refused);
}

/* The library counts in ints: more makes it divide by zero. */
static bool
is_small_enough(const KilnType *type)
{
    return kiln_type_bytes(type) <= INT32_MAX;
}

/* A region may hand on what it does not compute with. Constants may lie in any layout. */
static bool
check_types(const KilnIRFunction *function, const bool *constant, GError **error)
{
    guint input = 0; /* they come in their order */
    for (guint i = 0; i < function->buffers->len; i++) {
        const KilnBuffer *buffer = g_ptr_array_index(function->buffers, i);
        bool weight = buffer->kind == KILN_BUFFER_INPUT && constant[input++];
        KilnType plain = buffer->type;
        if (weight || kiln_onednn_layout_of_tag(&plain) != LAYOUT_PLAIN)
            plain.layout = NULL;
        if (kiln_onednn_is_float(&plain) && is_small_enough(&plain))
            continue;
        g_autofree char *type = kiln_type_to_string(&buffer->type);
        return kiln_throw(error, KILN_ERROR_UNSUPPORTED,
                          "%s: expected plain f32 of less than 2 GB, found %s", buffer->name, type);
    }
    return true;
}

static guint
fast_steps(const Region *region)
{
    guint n = 0;
    for (guint i = 0; i < region->steps->len; i++)
        n += g_array_index(region->steps, Step, i).when != RUN_CAREFUL;
    return n;
}

KilnCompiled *
kiln_onednn_compile(const KilnIRFunction *function, const KilnTarget *target, const bool *constant,
                    int threads, const KilnInstr **out_refused, GError **error)
{
    if (!kiln_onednn_engine())
        return kiln_throw_null(error, KILN_ERROR_UNSUPPORTED, "oneDNN has no engine");
    if (!check_types(function, constant, error))
        return NULL;
    uint32_t n_out = function->outputs->len;
    Region *region = region_new(n_out + function->inputs->len);
    guint n = function->buffers->len;
    Builder builder = { .region = region,
                        .function = function,
                        .target = target,
                        .threads = threads,
                        .constant = constant,
                        .joins = g_new0(Join, n + 1),
                        .values = g_new0(GArray *, n + 1),
                        .laid = g_new0(const KilnBuffer *, n + 1),
                        .done = g_new0(bool, function->next_id + 1),
                        .computed = g_new0(bool, n + 1),
                        .scaling = g_new0(const KilnInstr *, n + 1),
                        .n_out = n_out,
                        .layout = choose_layout(function, constant),
                        .error = error };
    region->small = is_small(function);
    int before = kiln_onednn_set_threads(region->small ? 1 : threads);
    kiln_onednn_find_joins(&builder);
    bool good = build_all(&builder, out_refused);
    kiln_onednn_set_threads(before);
    for (guint i = 0; i < n; i++) {
        if (builder.values[i])
            g_array_unref(builder.values[i]);
    }
    g_free(builder.joins);
    g_free(builder.values);
    g_free(builder.laid);
    g_free(builder.done);
    g_free(builder.computed);
    g_free(builder.scaling);
    if (!good) {
        region_free(&region->compiled.shared);
        return NULL;
    }
    place_packed(region);
    place_workspace(region);
    region->compiled.packing = describe_packing(region);
    region->compiled.bytes = (size_t)region->steps->len * STEP_BYTES;
    region->compiled.kernel.name = g_strdup_printf("onednn:%u steps", fast_steps(region));
    return &region->compiled;
}
