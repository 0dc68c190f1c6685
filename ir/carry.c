/* SPDX-License-Identifier: Apache-2.0 */
/*     %v = view @y {rows=4, pitch=64*past+64*t} : f32[1,4,past,64]
 *     copy @out %v, @in @x
 *     %w = view @y {offset=64*past, rows=4, pitch=64*past+64*t} : f32[1,4,t,64]
 *     transpose @out %w, …
 *     attention …, @in @y
 *
 * becomes, with a state @s : f32[1,4,room,64],
 *
 *     %y = view @s {rows=4, pitch=64*room} : f32[1,4,past+t,64]
 *     %w = view %y {offset=64*past, …} : f32[1,4,t,64]
 *     transpose @out %w, …
 *     attention …, @in %y
 */
#include "ir/carry.h"

#include "graph/binding.h"
#include "ir/open.h"

#include <string.h>

enum {
    ROOM_MORE = 7 /* elements more than the output has at the binding of the function */
};

int
kiln_append_axis(const KilnType *output, const KilnType *input)
{
    int axis = -1;
    if (output->dtype != input->dtype || output->rank != input->rank || output->layout ||
        input->layout || !kiln_quant_equal(output->quant, input->quant))
        return -1;
    for (int d = 0; d < output->rank; d++) {
        if (kiln_type_equal_dims(output, d, input, d))
            continue;
        if (axis >= 0 || !kiln_size_at_most(kiln_type_size(input, d), kiln_type_size(output, d)))
            return -1;
        axis = d;
    }
    return axis;
}

/* @extent elements of the axis of each row of @whole, from the start of the row on. */
static KilnRegion
front_of(const KilnType *whole, int axis, KilnSize extent)
{
    KilnSize rows = kiln_type_product(whole, 0, axis);
    KilnSize inner = kiln_size_mul(kiln_type_product(whole, axis + 1, whole->rank),
                                   kiln_size_make((int64_t)kiln_dtype_size(whole->dtype)));
    return kiln_region_of_sizes(kiln_size_make(0), rows, kiln_size_mul(extent, inner),
                                kiln_size_mul(kiln_type_size(whole, axis), inner));
}

static bool
is_whole_copy(const KilnInstr *instr, KilnBuffer *output, const KilnRegion *front)
{
    KilnBuffer *to = instr->operands[0].buffer;
    KilnRegion region = kiln_buffer_region(to);
    return instr->kind == KILN_INSTR_copy && kiln_buffer_origin(to) == output &&
           kiln_region_equal(&region, front);
}

static bool
is_concat(const KilnInstr *instr, const KilnBuffer *output, int axis)
{
    return instr->kind == KILN_INSTR_concat && instr->operands[0].buffer == output &&
           kiln_type_axis(&output->type, kiln_instr_attrs(instr, concat)->axis) == axis;
}

/* What puts all of @input at the front of @output: a copy, or a concat of it with others. NULL
 * where nothing does. */
static KilnInstr *
find_front(KilnBuffer *output, KilnBuffer *input, int axis)
{
    KilnRegion front = front_of(&output->type, axis, kiln_type_size(&input->type, axis));
    kiln_foreach_buffer_use (use, input) {
        bool first = use->index == 1;
        if (first &&
            (is_whole_copy(use->user, output, &front) || is_concat(use->user, output, axis)))
            return use->user;
    }
    return NULL;
}

/* The operands of @concat behind the first one are copied to where they lie in the result. */
static void
copy_others(KilnInstr *concat, int axis)
{
    KilnBuffer *output = concat->operands[0].buffer;
    KilnSize at = kiln_type_size(&concat->operands[1].buffer->type, axis);
    KilnSize one = kiln_size_mul(kiln_type_product(&output->type, axis + 1, output->type.rank),
                                 kiln_size_make((int64_t)kiln_dtype_size(output->type.dtype)));
    for (uint32_t i = 2; i < concat->n_operands; i++) {
        KilnBuffer *source = concat->operands[i].buffer;
        KilnSize extent = kiln_type_size(&source->type, axis);
        KilnRegion row = front_of(&output->type, axis, extent);
        KilnRegion part = kiln_region_of_sizes(kiln_size_mul(at, one), kiln_region_rows(&row),
                                               kiln_region_run(&row), kiln_region_pitch(&row));
        KilnBuffer *operands[] = { kiln_ir_view_part(concat->function, source->name, output, &part,
                                                     &source->type, concat),
                                   source };
        KilnInstr *copy =
            kiln_instr_new(concat->function, KILN_INSTR_copy, operands, 2, NULL, concat, NULL);
        copy->name = concat->name;
        at = kiln_size_add(at, extent);
    }
}

static const KilnDim *
new_name(KilnIRFunction *function, const char *of)
{
    KilnOpen *open = function->open;
    g_autofree char *text = g_strconcat("room of ", of, NULL);
    KilnDimBinding binding = { open->binding->n + 1, g_new0(KilnBoundName, open->binding->n + 1) };
    memcpy(binding.names, open->binding->names, open->binding->n * sizeof *binding.names);
    binding.names[open->binding->n].name = text;
    open->binding = kiln_dim_binding_copy(function->arena, &binding);
    g_free(binding.names);
    return kiln_dim_name(function->module->dims, text);
}

/* Readers and writers of @buffer work on @instead. */
static void
replace(KilnBuffer *buffer, KilnBuffer *instead)
{
    kiln_foreach_buffer_use_safe (use, buffer)
        kiln_instr_set_operand(use->user, use->index, instead);
}

static KilnBuffer *
view_front(KilnBuffer *state, const KilnBuffer *like, int axis, KilnInstr *before)
{
    KilnRegion part = front_of(&state->type, axis, kiln_type_size(&like->type, axis));
    return kiln_ir_view_part(state->function, like->name, state, &part, &like->type, before);
}

bool
kiln_ir_append_in_place(KilnIRFunction *function, KilnBuffer *output, KilnBuffer *input,
                        KilnAppend *out)
{
    int axis = kiln_append_axis(&output->type, &input->type);
    KilnInstr *front = axis < 0 ? NULL : find_front(output, input, axis);
    if (!front || !function->open)
        return false;
    KilnType type = output->type;
    const KilnDim *room = new_name(function, output->name);
    KilnDimBinding *binding = function->open->binding;
    type.dims[axis] += ROOM_MORE;
    type.open[axis] = room;
    binding->names[binding->n - 1].number = type.dims[axis];
    KilnBuffer *state = kiln_ir_add_buffer(function, KILN_BUFFER_WEIGHT, output->name, &type);
    if (front->kind == KILN_INSTR_concat)
        copy_others(front, axis);
    kiln_instr_remove(front);
    replace(output, view_front(state, output, axis, function->first));
    replace(input, view_front(state, input, axis, function->first));
    *out = (KilnAppend){ state, room, axis, kiln_type_size(&output->type, axis) };
    return true;
}
