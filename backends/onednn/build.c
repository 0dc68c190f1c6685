/* SPDX-License-Identifier: Apache-2.0 */
/* Slots, reorders and steps: what operators are built of. */
#include "backends/onednn/region.h"

#include "graph/base/alloc.h"

#include <limits.h>
#include <string.h>

/* --- layouts --- */

bool
kiln_onednn_is_float(const KilnType *type)
{
    return type->dtype == KILN_DTYPE_f32 && kiln_type_is_static(type) && !type->quant &&
           !type->layout && kiln_type_elements(type) > 0;
}

dnnl_memory_desc_t
kiln_onednn_plain(const KilnType *type)
{
    dnnl_dims_t dims = { 1 }, strides;
    int rank = MAX(type->rank, 1);
    for (int i = 0; i < type->rank; i++)
        dims[i] = type->dims[i];
    int64_t stride = 1;
    for (int i = rank; i-- > 0;) {
        strides[i] = stride;
        stride *= MAX(dims[i], 1);
    }
    dnnl_memory_desc_t md;
    memset(&md, 0, sizeof md);
    dnnl_memory_desc_init_by_strides(&md, rank, dims, dnnl_f32, strides);
    return md;
}

dnnl_memory_desc_t
kiln_onednn_md(const KilnType *type, Layout layout)
{
    static const dnnl_format_tag_t tags[][6] = {
        { [3] = dnnl_nwc, [4] = dnnl_nhwc, [5] = dnnl_ndhwc },
        { [3] = dnnl_nCw16c, [4] = dnnl_nChw16c, [5] = dnnl_nCdhw16c },
        { [3] = dnnl_nCw8c, [4] = dnnl_nChw8c, [5] = dnnl_nCdhw8c },
    };
    int row = layout == LAYOUT_CHANNELS_LAST ? 0 : kiln_onednn_block() == 16 ? 1 : 2;
    dnnl_memory_desc_t md = kiln_onednn_plain(type);
    if (layout == LAYOUT_PLAIN || type->rank < 3 || type->rank > 5)
        return md;
    dnnl_dims_t dims;
    memcpy(dims, md.dims, sizeof dims);
    memset(&md, 0, sizeof md);
    dnnl_memory_desc_init_by_tag(&md, type->rank, dims, dnnl_f32, tags[row][type->rank]);
    return md;
}

dnnl_memory_desc_t
kiln_onednn_edge(const KilnType *type)
{
    return kiln_onednn_md(type, kiln_onednn_layout_of_tag(type));
}

/* --- slots --- */

const dnnl_memory_desc_t *
kiln_onednn_slot_md(const Builder *builder, uint32_t slot)
{
    return &g_array_index(builder->region->slots, Slot, slot).md;
}

static uint32_t
add_slot(const Builder *builder, SlotPlace place, const dnnl_memory_desc_t *md)
{
    Slot slot = { .md = *md, .place = place, .first = -1, .last = -1 };
    g_array_append_val(builder->region->slots, slot);
    return builder->region->slots->len - 1;
}

void
kiln_onednn_enter(Builder *builder, const KilnBuffer *buffer, uint32_t slot)
{
    GArray **slots = &builder->values[buffer->id];
    if (!*slots)
        *slots = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    g_array_append_val(*slots, slot);
}

bool
kiln_onednn_is_constant(const Builder *builder, const KilnBuffer *buffer)
{
    if (buffer->kind == KILN_BUFFER_WEIGHT)
        return buffer->constant && buffer->is_const;
    if (builder->laid[buffer->id])
        return true;
    for (guint i = 0; buffer->kind == KILN_BUFFER_INPUT && i < builder->function->inputs->len;
         i++) {
        if (g_ptr_array_index(builder->function->inputs, i) == buffer)
            return builder->constant[i];
    }
    return false;
}

bool
kiln_onednn_is_available(const Builder *builder, const KilnBuffer *buffer)
{
    return builder->values[buffer->id] || kiln_onednn_is_constant(builder, buffer);
}

uint32_t
kiln_onednn_slot(const Builder *builder, const KilnBuffer *buffer)
{
    return g_array_index(builder->values[buffer->id], uint32_t, 0);
}

/* A slot with what lies in @buffer, in weights as @from, as @md. A convolution and a transposed one
 * read the same weights differently, and may want them in the same layout. */
static uint32_t
find_slot(const Builder *builder, const KilnBuffer *buffer, const dnnl_memory_desc_t *from,
          const dnnl_memory_desc_t *md)
{
    const GArray *slots = builder->values[buffer->id];
    for (guint i = 0; slots && i < slots->len; i++) {
        uint32_t number = g_array_index(slots, uint32_t, i);
        const Slot *slot = &g_array_index(builder->region->slots, Slot, number);
        bool same = slot->from.ndims == 0 || dnnl_memory_desc_equal(&slot->from, from);
        if (same && dnnl_memory_desc_equal(&slot->md, md))
            return number;
    }
    return UINT32_MAX;
}

/* Which operand of the call @buffer is, an input of the region. */
static uint32_t
input_index(const Builder *builder, const KilnBuffer *buffer)
{
    uint32_t i = 0;
    while (g_ptr_array_index(builder->function->inputs, i) != buffer)
        i++;
    return builder->n_out + i;
}

/* Operand @i is packed as @md: that has a tag if it is the only way, and not as it lies. */
static void
note_packed(Region *region, uint32_t i, const KilnType *type, const dnnl_memory_desc_t *from,
            const dnnl_memory_desc_t *md)
{
    bool again = region->packed_operand[i];
    g_clear_pointer(&region->packed_tags[i], g_free);
    if (!again && !dnnl_memory_desc_equal(from, md))
        region->packed_tags[i] = kiln_onednn_tag(type, from, md);
    region->packed_operand[i] = true;
}

/* Operand @buffer of the call, or a literal of the region, which lies there as @from, goes into
 * @slot of the packed weights. */
static bool
pack(Builder *builder, const KilnBuffer *buffer, const dnnl_memory_desc_t *from, uint32_t slot)
{
    Pack step = { .from = *from, .operand = UINT32_MAX, .slot = slot };
    if (buffer->kind == KILN_BUFFER_WEIGHT) {
        step.literal =
            kiln_alloc_for("a constant", 1, (size_t)kiln_type_bytes(&buffer->type), builder->error);
        if (!step.literal ||
            !kiln_tensor_write(buffer->constant->tensor, step.literal, builder->error)) {
            kiln_free(step.literal);
            return false;
        }
    } else {
        step.operand = input_index(builder, buffer);
        note_packed(builder->region, step.operand, &buffer->type, from,
                    kiln_onednn_slot_md(builder, slot));
    }
    g_array_append_val(builder->region->packs, step);
    return true;
}

bool
kiln_onednn_set_small(Builder *builder, bool small)
{
    bool before = builder->small;
    builder->small = small;
    kiln_onednn_set_threads(small || builder->region->small ? 1 : builder->threads);
    return before;
}

bool
kiln_onednn_reorder(Builder *builder, uint32_t from, uint32_t to, const char *what)
{
    dnnl_primitive_desc_t pd = NULL;
    const dnnl_memory_desc_t *md = kiln_onednn_slot_md(builder, to);
    KilnCost cost = { 0, 2 * (int64_t)dnnl_memory_desc_get_size(md) };
    bool before = kiln_onednn_set_small(builder, !kiln_cost_is_parallel(&cost));
    RunKind when = builder->when;
    builder->when = RUN_ANY;
    dnnl_status_t status = kiln_onednn_reorder_pd(kiln_onednn_slot_md(builder, from), md, &pd);
    StepArg args[] = { { DNNL_ARG_FROM, from }, { DNNL_ARG_TO, to } };
    const char *name = kiln_onednn_check(status, what, builder->error)
                           ? kiln_onednn_implementation(pd, what, builder->error)
                           : NULL;
    bool good = name && kiln_onednn_add(builder, pd, args, 2, what, name);
    builder->when = when;
    kiln_onednn_set_small(builder, before);
    return good;
}

/* A constant that is packed already, as the operand that it is. */
static uint32_t
add_laid(Builder *builder, const KilnBuffer *buffer, const dnnl_memory_desc_t *from,
         const dnnl_memory_desc_t *md)
{
    const KilnBuffer *laid = builder->laid[buffer->id];
    g_autofree char *tag = kiln_onednn_tag(&buffer->type, from, md);
    if (g_strcmp0(tag, laid->type.layout) != 0) {
        kiln_throw(builder->error, KILN_ERROR_UNSUPPORTED, "%s: expected layout %s, found %s",
                   laid->name, tag ? tag : "of the library", laid->type.layout);
        return UINT32_MAX;
    }
    uint32_t slot = add_slot(builder, SLOT_OPERAND, md);
    g_array_index(builder->region->slots, Slot, slot).index = input_index(builder, laid);
    g_array_index(builder->region->slots, Slot, slot).from = *from;
    kiln_onednn_enter(builder, buffer, slot);
    return slot;
}

uint32_t
kiln_onednn_packed(Builder *builder, const KilnBuffer *buffer, const dnnl_memory_desc_t *from,
                   const dnnl_memory_desc_t *md)
{
    uint32_t slot = find_slot(builder, buffer, from, md);
    if (slot != UINT32_MAX)
        return slot;
    if (builder->laid[buffer->id])
        return add_laid(builder, buffer, from, md);
    slot = add_slot(builder, SLOT_PACKED, md);
    g_array_index(builder->region->slots, Slot, slot).from = *from;
    kiln_onednn_enter(builder, buffer, slot);
    return pack(builder, buffer, from, slot) ? slot : UINT32_MAX;
}

uint32_t
kiln_onednn_packed_gates(Builder *builder, const KilnBuffer *buffer, int64_t gate, bool twice,
                         const dnnl_memory_desc_t *from, const dnnl_memory_desc_t *md)
{
    Region *region = builder->region;
    guint before = region->packs->len;
    uint32_t slot = kiln_onednn_packed(builder, buffer, from, md);
    if (region->packs->len == before)
        return slot;
    Pack *made = &g_array_index(region->packs, Pack, before);
    made->gate = gate;
    made->twice = twice;
    if (made->operand != UINT32_MAX) /* no tag says in which order gates are */
        g_clear_pointer(&region->packed_tags[made->operand], g_free);
    return slot;
}

uint32_t
kiln_onednn_alias(Builder *builder, uint32_t slot, const dnnl_memory_desc_t *md)
{
    if (slot == UINT32_MAX || dnnl_memory_desc_equal(kiln_onednn_slot_md(builder, slot), md))
        return slot;
    uint32_t alias = add_slot(builder, SLOT_ALIAS, md);
    g_array_index(builder->region->slots, Slot, alias).index = slot;
    return alias;
}

uint32_t
kiln_onednn_slot_as(Builder *builder, const KilnBuffer *buffer, const dnnl_memory_desc_t *md)
{
    if (kiln_onednn_is_constant(builder, buffer)) {
        dnnl_memory_desc_t plain = kiln_onednn_plain(&buffer->type), from = plain;
        /* One shape may stand for another with more dims, or fewer: the bytes are the same. */
        if (md->ndims != plain.ndims)
            dnnl_memory_desc_reshape(&from, &plain, md->ndims, md->dims);
        return kiln_onednn_packed(builder, buffer, &from, md);
    }
    uint32_t slot = find_slot(builder, buffer, md, md);
    if (slot != UINT32_MAX)
        return slot;
    uint32_t from = kiln_onednn_slot(builder, buffer);
    slot = add_slot(builder, SLOT_WORKSPACE, md);
    if (!kiln_onednn_reorder(builder, from, slot, "reorder"))
        return UINT32_MAX;
    kiln_onednn_enter(builder, buffer, slot);
    return slot;
}

/* The result of the call that @buffer is, or that it is packed to, if that lies as @md; else
 * UINT32_MAX. */
static uint32_t
output_of(const Builder *builder, const KilnBuffer *buffer, const dnnl_memory_desc_t *md)
{
    const GPtrArray *outputs = builder->function->outputs;
    kiln_foreach_buffer_use (use, buffer) {
        const KilnInstr *user = use->user;
        bool packed = user->kind == KILN_INSTR_pack && use->access == KILN_ACCESS_IN;
        const KilnBuffer *result = packed ? kiln_instr_operand(user, 0) : buffer;
        dnnl_memory_desc_t edge = kiln_onednn_edge(&result->type);
        for (guint i = 0; i < outputs->len; i++) {
            if (g_ptr_array_index(outputs, i) == result && dnnl_memory_desc_equal(&edge, md))
                return i;
        }
    }
    return UINT32_MAX;
}

/* A place for @buffer: that of the result which it is. */
static uint32_t
add_result_slot(const Builder *builder, const KilnBuffer *buffer, const dnnl_memory_desc_t *md)
{
    uint32_t output = output_of(builder, buffer, md);
    uint32_t slot = add_slot(builder, output == UINT32_MAX ? SLOT_WORKSPACE : SLOT_OPERAND, md);
    if (output != UINT32_MAX)
        g_array_index(builder->region->slots, Slot, slot).index = output;
    return slot;
}

uint32_t
kiln_onednn_part(Builder *builder, const KilnBuffer *buffer)
{
    const Join *join = &builder->joins[buffer->id];
    const KilnBuffer *whole = join->concat->operands[0].buffer;
    dnnl_memory_desc_t md = kiln_onednn_md(&whole->type, LAYOUT_BLOCKED);
    dnnl_memory_desc_t part = kiln_onednn_md(&buffer->type, LAYOUT_BLOCKED);
    uint32_t root = find_slot(builder, whole, &md, &md);
    if (root == UINT32_MAX) {
        root = add_result_slot(builder, whole, &md);
        kiln_onednn_enter(builder, whole, root);
    }
    uint32_t slot = add_slot(builder, SLOT_ALIAS, &part);
    Slot *made = &g_array_index(builder->region->slots, Slot, slot);
    made->index = root;
    made->offset =
        dnnl_memory_desc_get_size(&md) / (size_t)whole->type.dims[1] * (size_t)join->channel;
    kiln_onednn_enter(builder, buffer, slot);
    return slot;
}

uint32_t
kiln_onednn_result(Builder *builder, const KilnBuffer *buffer, const dnnl_memory_desc_t *md)
{
    dnnl_memory_desc_t blocked = kiln_onednn_md(&buffer->type, LAYOUT_BLOCKED);
    if (builder->joins[buffer->id].concat && dnnl_memory_desc_equal(&blocked, md))
        return kiln_onednn_part(builder, buffer);
    uint32_t slot = add_result_slot(builder, buffer, md);
    kiln_onednn_enter(builder, buffer, slot);
    return slot;
}

uint32_t
kiln_onednn_unread(Builder *builder, const dnnl_memory_desc_t *md)
{
    return add_slot(builder, SLOT_WORKSPACE, md);
}

bool
kiln_onednn_scalar(const KilnBuffer *buffer, float *out)
{
    float value;
    if (buffer->kind != KILN_BUFFER_WEIGHT || !buffer->constant || !buffer->is_const ||
        kiln_type_elements(&buffer->type) != 1 ||
        !kiln_tensor_write(buffer->constant->tensor, &value, NULL))
        return false;
    *out = value;
    return true;
}

/* --- steps --- */

static void
touch(Builder *builder, uint32_t index)
{
    Slot *slot = &g_array_index(builder->region->slots, Slot, index);
    while (slot->place == SLOT_ALIAS)
        slot = &g_array_index(builder->region->slots, Slot, slot->index);
    if (slot->first < 0)
        slot->first = builder->step;
    slot->last = builder->step;
}

void
kiln_onednn_keep(Builder *builder, uint32_t index, int64_t step)
{
    Slot *slot = &g_array_index(builder->region->slots, Slot, index);
    while (slot->place == SLOT_ALIAS)
        slot = &g_array_index(builder->region->slots, Slot, slot->index);
    slot->last = MAX(slot->last, step);
}

static void
add_arg(Builder *builder, Step *step, int arg, uint32_t slot)
{
    StepArg added = { arg, slot };
    touch(builder, slot);
    g_array_append_val(builder->region->args, added);
    step->n_args++;
}

/* @step, whose arguments were added, with @scratch. */
static void
add_step(Builder *builder, Step *step, const dnnl_memory_desc_t *scratch, const char *what,
         const char *implementation)
{
    Region *region = builder->region;
    size_t size = dnnl_memory_desc_get_size(scratch);
    if (size)
        add_arg(builder, step, DNNL_ARG_SCRATCHPAD, add_slot(builder, SLOT_WORKSPACE, scratch));
    step->when = builder->when;
    g_array_append_vals(region->steps, step, 1);
    builder->step++;
    if (step->when == RUN_CAREFUL)
        return;
    g_string_append_printf(region->description, "%s: %s", what, implementation);
    if (size > 65536)
        g_string_append_printf(region->description, ", %zu KiB of scratch", size / 1024);
    g_string_append_c(region->description, '\n');
}

bool
kiln_onednn_add(Builder *builder, dnnl_primitive_desc_t pd, const StepArg *args, uint32_t n,
                const char *what, const char *implementation)
{
    Step step = { .pd = pd, .first_arg = builder->region->args->len, .small = builder->small };
    dnnl_memory_desc_t scratch = *dnnl_primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0);
    for (uint32_t i = 0; i < n; i++)
        add_arg(builder, &step, args[i].arg, args[i].slot);
    add_step(builder, &step, &scratch, what, implementation);
    return true;
}

void
kiln_onednn_add_custom(Builder *builder, KilnCustom *custom, const uint32_t *slots, uint32_t n)
{
    Step step = { .custom = custom, .first_arg = builder->region->args->len };
    dnnl_memory_desc_t scratch;
    memset(&scratch, 0, sizeof scratch);
    dnnl_memory_desc_init_by_tag(&scratch, 1, (dnnl_dims_t){ (int64_t)kiln_custom_scratch(custom) },
                                 dnnl_u8, dnnl_a);
    for (uint32_t i = 0; i < n; i++)
        add_arg(builder, &step, DNNL_ARG_MULTIPLE_SRC + (int)i, slots[i]);
    g_autoptr(GString) kernels = g_string_new(NULL);
    kiln_custom_describe(custom, kernels);
    add_step(builder, &step, &scratch, "custom_op", kernels->str);
}
