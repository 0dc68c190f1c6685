/* SPDX-License-Identifier: Apache-2.0 */
/* Building, rewriting and unlinking instructions and buffers; uses are kept exact at every step. */
#include "graph/module.h"
#include "ir/changes.h"
#include "ir/open.h"
#include "ir/plugin.h"
#include "ir/stack.h"

#include <string.h>

/* --- functions --- */

KilnIRFunction *
kiln_ir_function_new(KilnModule *module, const char *name)
{
    KilnIRFunction *function = g_new0(KilnIRFunction, 1);
    function->arena = kiln_arena_new();
    function->instr_arena = kiln_arena_new_by_lines();
    function->buffer_arena = kiln_arena_new_by_lines();
    function->name = kiln_arena_strdup(function->arena, name);
    function->module = module;
    function->buffers = g_ptr_array_new();
    function->weights = g_ptr_array_new();
    function->inputs = g_ptr_array_new();
    function->outputs = g_ptr_array_new();
    function->names = g_hash_table_new(g_str_hash, g_str_equal);
    function->name_counters = g_hash_table_new(g_str_hash, g_str_equal);
    function->arena_bytes = -1;
    function->is_placed = true;
    return function;
}

void
kiln_ir_function_free(KilnIRFunction *function)
{
    if (!function)
        return;
    g_ptr_array_unref(function->buffers);
    g_ptr_array_unref(function->weights);
    g_ptr_array_unref(function->inputs);
    g_ptr_array_unref(function->outputs);
    g_hash_table_unref(function->names);
    g_hash_table_unref(function->name_counters);
    kiln_ir_changes_clear(&function->changes);
    kiln_open_free(function->open);
    kiln_arena_free(function->arena);
    kiln_arena_free(function->instr_arena);
    kiln_arena_free(function->buffer_arena);
    g_free(function);
}

static void
function_free(gpointer data)
{
    kiln_ir_function_free(data);
}

KilnIRModule *
kiln_ir_module_new(KilnModule *module)
{
    KilnIRModule *ir = g_new0(KilnIRModule, 1);
    ir->module = module;
    ir->functions = g_ptr_array_new_with_free_func(function_free);
    return ir;
}

void
kiln_ir_module_free(KilnIRModule *ir)
{
    if (!ir)
        return;
    g_ptr_array_unref(ir->functions);
    kiln_module_free(ir->module);
    g_free(ir);
}

KilnIRFunction *
kiln_ir_module_find_function(const KilnIRModule *ir, const char *name)
{
    for (guint i = 0; i < ir->functions->len; i++) {
        KilnIRFunction *function = g_ptr_array_index(ir->functions, i);
        if (strcmp(function->name, name) == 0)
            return function;
    }
    return NULL;
}

/* --- uses --- */

static void
use_link(KilnBufferUse *use, KilnBuffer *buffer)
{
    use->buffer = buffer;
    use->next = NULL;
    use->previous = buffer ? buffer->last_use : NULL;
    if (!buffer)
        return;
    if (buffer->last_use)
        buffer->last_use->next = use;
    else
        buffer->first_use = use;
    buffer->last_use = use;
    buffer->n_uses++;
    kiln_ir_changes_add_buffer(buffer, false);
}

static void
use_unlink(KilnBufferUse *use)
{
    KilnBuffer *buffer = use->buffer;
    if (!buffer)
        return;
    if (use->previous)
        use->previous->next = use->next;
    else
        buffer->first_use = use->next;
    if (use->next)
        use->next->previous = use->previous;
    else
        buffer->last_use = use->previous;
    buffer->n_uses--;
    use->buffer = NULL;
    use->previous = use->next = NULL;
    kiln_ir_changes_add_buffer(buffer, false);
}

/* --- the list of instructions --- */

static void
instr_link(KilnInstr *instr, KilnInstr *before)
{
    KilnIRFunction *function = instr->function;
    KilnInstr *after = before ? before->previous : function->last;
    instr->previous = after;
    instr->next = before;
    if (after)
        after->next = instr;
    else
        function->first = instr;
    if (before)
        before->previous = instr;
    else
        function->last = instr;
    function->n_instrs++;
    function->stamp++;
    kiln_ir_place_link(instr);
}

static void
instr_unlink(KilnInstr *instr)
{
    KilnIRFunction *function = instr->function;
    if (instr->previous)
        instr->previous->next = instr->next;
    else
        function->first = instr->next;
    if (instr->next)
        instr->next->previous = instr->previous;
    else
        function->last = instr->previous;
    instr->previous = instr->next = NULL;
    function->n_instrs--;
    function->stamp++;
    kiln_ir_changes_add_instr(instr, false);
}

/* --- buffers --- */

/* A counter per base keeps making n names of one base linear. */
static const char *
unique_name(KilnIRFunction *function, const char *base)
{
    if (!g_hash_table_contains(function->names, base))
        return kiln_arena_strdup(function->arena, base);
    gsize next = GPOINTER_TO_SIZE(g_hash_table_lookup(function->name_counters, base));
    g_autofree char *name = NULL;
    do {
        g_free(name);
        name = g_strdup_printf("%s_%zu", base, ++next);
    } while (g_hash_table_contains(function->names, name));
    g_hash_table_insert(function->name_counters, kiln_arena_strdup(function->arena, base),
                        GSIZE_TO_POINTER(next));
    return kiln_arena_strdup(function->arena, name);
}

/* The dims of elements of sequences are facts of the graph level: instructions ask the items. */
static KilnType
buffer_type(KilnArena *arena, const KilnType *type)
{
    if (!type->contents || type->dtype == KILN_DTYPE_map)
        return kiln_type_copy(arena, type);
    const KilnType *stated = kiln_type_element(type);
    const KilnType element =
        stated->contents ? buffer_type(arena, stated) : kiln_type_unranked(stated->dtype);
    return kiln_type_of_items(arena, type->dtype, &element);
}

static KilnBuffer *
buffer_new(KilnIRFunction *function, KilnBufferKind kind, const char *name, const KilnType *type)
{
    KilnBuffer *buffer = kiln_arena_new0(function->buffer_arena, KilnBuffer, 1);
    buffer->kind = kind;
    buffer->id = function->buffers->len;
    buffer->name = unique_name(function, name);
    buffer->type = buffer_type(function->arena, type);
    buffer->offset = -1;
    buffer->function = function;
    g_ptr_array_add(function->buffers, buffer);
    g_hash_table_insert(function->names, (char *)buffer->name, buffer);
    function->stamp++;
    kiln_ir_changes_add_buffer(buffer, true);
    return buffer;
}

KilnBuffer *
kiln_ir_add_buffer(KilnIRFunction *function, KilnBufferKind kind, const char *name,
                   const KilnType *type)
{
    KilnBuffer *buffer = buffer_new(function, kind, name, type);
    GPtrArray *list = kind == KILN_BUFFER_WEIGHT  ? function->weights
                      : kind == KILN_BUFFER_INPUT ? function->inputs
                                                  : function->outputs;
    g_ptr_array_add(list, buffer);
    return buffer;
}

KilnBuffer *
kiln_ir_add_weight(KilnIRFunction *function, KilnConstant *constant)
{
    KilnBuffer *buffer =
        kiln_ir_add_buffer(function, KILN_BUFFER_WEIGHT, constant->name, &constant->type);
    buffer->constant = constant;
    buffer->is_const = true;
    return buffer;
}

/* Under a name that is free among the module's constants and the function's buffers, so that the
 * weight has the same one. */
KilnBuffer *
kiln_ir_add_constant(KilnIRFunction *function, const char *base, KilnTensor *tensor,
                     const KilnType *type)
{
    KilnModule *module = function->module;
    g_autofree char *name = g_strdup(base);
    for (unsigned i = 1;
         kiln_ir_find_buffer(function, name) || kiln_module_find_constant(module, name); i++) {
        g_free(name);
        name = g_strdup_printf("%s_%u", base, i);
    }
    return kiln_ir_add_weight(function, kiln_module_add_constant(module, name, tensor, type));
}

KilnBuffer *
kiln_ir_find_buffer(const KilnIRFunction *function, const char *name)
{
    return g_hash_table_lookup(function->names, name);
}

void
kiln_ir_remove_buffer(KilnBuffer *buffer)
{
    KilnIRFunction *function = buffer->function;
    g_assert(buffer->n_uses == 0);
    GPtrArray *list = buffer->kind == KILN_BUFFER_WEIGHT   ? function->weights
                      : buffer->kind == KILN_BUFFER_INPUT  ? function->inputs
                      : buffer->kind == KILN_BUFFER_OUTPUT ? function->outputs
                                                           : NULL;
    if (list)
        g_ptr_array_remove(list, buffer);
    g_hash_table_remove(function->names, buffer->name);
    function->buffers->pdata[buffer->id] = NULL;
    function->stamp++;
    kiln_ir_changes_add_buffer(buffer, false);
}

void
kiln_ir_make_weight(KilnBuffer *input, KilnConstant *constant)
{
    KilnIRFunction *function = input->function;
    g_assert(input->kind == KILN_BUFFER_INPUT);
    g_ptr_array_remove(function->inputs, input);
    g_ptr_array_add(function->weights, input);
    input->kind = KILN_BUFFER_WEIGHT;
    input->constant = constant;
    input->is_const = true;
    function->stamp++;
    kiln_ir_changes_add_buffer(input, true);
}

void
kiln_ir_fix_input(KilnBuffer *input)
{
    g_assert(input->kind == KILN_BUFFER_INPUT);
    input->is_const = true;
    input->function->stamp++;
    kiln_ir_changes_add_buffer(input, true);
}

bool
kiln_ir_takes_fixed(const KilnIRModule *ir)
{
    const KilnIRFunction *entry = g_ptr_array_index(ir->functions, ir->functions->len - 1);
    for (guint i = 0; i < entry->inputs->len; i++) {
        if (((const KilnBuffer *)g_ptr_array_index(entry->inputs, i))->is_const)
            return true;
    }
    return false;
}

void
kiln_ir_make_const(KilnBuffer *weight)
{
    weight->is_const = true;
    weight->function->stamp++;
    kiln_ir_changes_add_buffer(weight, true);
}

/* --- instructions --- */

static KilnInstr *
instr_new(KilnIRFunction *function, KilnInstrKind kind, KilnBuffer *const *operands, uint32_t n)
{
    KilnInstr *instr = kiln_arena_new0(function->instr_arena, KilnInstr, 1);
    instr->kind = kind;
    instr->id = function->next_id++;
    instr->function = function;
    instr->n_operands = n;
    instr->operands = kiln_arena_new0(function->arena, KilnBufferUse, n);
    for (uint32_t i = 0; i < n; i++) {
        KilnBufferUse *use = &instr->operands[i];
        bool optional;
        use->user = instr;
        use->index = i;
        kiln_instr_access(kind, i, &use->access, &optional);
        use_link(use, operands[i]);
    }
    kiln_ir_changes_add_instr(instr, true);
    return instr;
}

KilnBuffer *
kiln_ir_alloc(KilnIRFunction *function, const char *name, const KilnType *type, KilnInstr *before)
{
    KilnBuffer *buffer = buffer_new(function, KILN_BUFFER_ALLOC, name, type);
    buffer->def = instr_new(function, KILN_INSTR_alloc, &buffer, 1);
    instr_link(buffer->def, before);
    return buffer;
}

KilnInstr *
kiln_ir_dealloc(KilnBuffer *buffer, KilnInstr *before)
{
    KilnInstr *instr = instr_new(buffer->function, KILN_INSTR_dealloc, &buffer, 1);
    instr_link(instr, before);
    return instr;
}

KilnBuffer *
kiln_ir_view(KilnIRFunction *function, const char *name, KilnBuffer *base, int64_t element_offset,
             const KilnType *type, KilnInstr *before)
{
    KilnBuffer *buffer = buffer_new(function, KILN_BUFFER_VIEW, name, type);
    buffer->base = base;
    buffer->view_offset = element_offset;
    buffer->view_rows = 1;
    buffer->def = instr_new(function, KILN_INSTR_view, (KilnBuffer *[]){ buffer, base }, 2);
    instr_link(buffer->def, before);
    return buffer;
}

KilnBuffer *
kiln_ir_view_part(KilnIRFunction *function, const char *name, KilnBuffer *base,
                  const KilnRegion *part, const KilnType *type, KilnInstr *before)
{
    KilnBuffer *buffer = kiln_ir_view(function, name, base, 0, type, before);
    kiln_view_set_part(buffer, part);
    return buffer;
}

static gboolean
check_arity(KilnInstrKind kind, KilnBuffer *const *operands, uint32_t n, GError **error)
{
    const KilnInstrInfo *info = kiln_instr_info(kind);
    if ((info->flags & KILN_INSTR_BOOKKEEPING) || kiln_instr_states_access(kind))
        return kiln_throw(error, KILN_ERROR_INVALID, "%s has a builder of its own", info->name);
    KilnAccess access;
    bool optional;
    uint32_t i = 0;
    for (; i < n; i++) {
        if (!kiln_instr_access(kind, i, &access, &optional))
            return kiln_throw(error, KILN_ERROR_INVALID, "%s: expected %u operands, found %u",
                              info->name, i, n);
        if (!operands[i] && !optional)
            return kiln_throw(error, KILN_ERROR_INVALID, "%s: operand %u is required, found none",
                              info->name, i);
    }
    if (kiln_instr_access(kind, i, &access, &optional) && !optional)
        return kiln_throw(error, KILN_ERROR_INVALID,
                          "%s: operand %u is required, found %u operands", info->name, i, n);
    return TRUE;
}

KilnInstr *
kiln_instr_new(KilnIRFunction *function, KilnInstrKind kind, KilnBuffer *const *operands,
               uint32_t n_operands, const void *attrs, KilnInstr *before, GError **error)
{
    const KilnInstrInfo *info = kiln_instr_info(kind);
    if (!check_arity(kind, operands, n_operands, error))
        return NULL;
    KilnInstr *instr = instr_new(function, kind, operands, n_operands);
    instr->attrs = kiln_instr_attrs_new(kind, function->arena);
    if (attrs)
        kiln_attrs_copy(info->attrs, info->n_attrs, instr->attrs, attrs, function->arena);
    instr_link(instr, before);
    return instr;
}

/* The first @n_out operands are results, the others are read. */
static KilnInstr *
instr_new_stated(KilnIRFunction *function, KilnInstrKind kind, KilnBuffer *const *operands,
                 uint32_t n_operands, uint32_t n_out)
{
    KilnInstr *instr = instr_new(function, kind, operands, n_operands);
    for (uint32_t i = 0; i < n_operands; i++)
        instr->operands[i].access = i < n_out ? KILN_ACCESS_OUT : KILN_ACCESS_IN;
    return instr;
}

KilnInstr *
kiln_instr_new_call(KilnIRFunction *function, const char *callee, KilnBuffer *const *operands,
                    uint32_t n_operands, uint32_t n_out, KilnInstr *before)
{
    KilnInstr *instr = instr_new_stated(function, KILN_INSTR_call, operands, n_operands, n_out);
    instr->callee = kiln_arena_strdup(function->arena, callee);
    instr->declaration = kiln_module_find_declaration(function->module, callee);
    instr_link(instr, before);
    return instr;
}

KilnInstr *
kiln_instr_new_stated(KilnIRFunction *function, KilnInstrKind kind, KilnBuffer *const *operands,
                      uint32_t n_operands, uint32_t n_out, const void *attrs, KilnInstr *before)
{
    const KilnInstrInfo *info = kiln_instr_info(kind);
    KilnInstr *instr = instr_new_stated(function, kind, operands, n_operands, n_out);
    instr->attrs = kiln_instr_attrs_new(kind, function->arena);
    if (attrs)
        kiln_attrs_copy(info->attrs, info->n_attrs, instr->attrs, attrs, function->arena);
    instr_link(instr, before);
    return instr;
}

static void
copy_step(KilnArena *arena, KilnStackStep *step)
{
    const KilnInstrInfo *info = kiln_instr_info(step->kind);
    const void *attrs = step->attrs;
    step->attrs = kiln_instr_attrs_new(step->kind, arena);
    if (attrs)
        kiln_attrs_copy(info->attrs, info->n_attrs, step->attrs, attrs, arena);
    KilnType type = kiln_type_unranked(step->dtype);
    type.quant = step->quant;
    step->quant = kiln_type_copy(arena, &type).quant;
}

KilnInstr *
kiln_instr_new_stack(KilnIRFunction *function, KilnBuffer *const *operands, uint32_t n_operands,
                     uint32_t n_out, const KilnStackStep *steps, uint32_t n_steps,
                     KilnInstr *before)
{
    g_assert(n_operands <= KILN_STACK_OPERANDS_MAX && n_steps <= KILN_STACK_STEPS_MAX);
    KilnInstr *instr = instr_new_stated(function, KILN_INSTR_stack, operands, n_operands, n_out);
    instr->n_steps = n_steps;
    instr->steps = kiln_arena_copy(function->arena, steps, n_steps * sizeof *steps);
    for (uint32_t i = 0; i < n_steps; i++)
        copy_step(function->arena, &instr->steps[i]);
    instr_link(instr, before);
    return instr;
}

void
kiln_instr_set_operand(KilnInstr *instr, uint32_t i, KilnBuffer *buffer)
{
    use_unlink(&instr->operands[i]);
    use_link(&instr->operands[i], buffer);
    if (instr->kind == KILN_INSTR_view && i == 1)
        instr->operands[0].buffer->base = buffer;
    kiln_instr_touch(instr);
}

void
kiln_instr_touch(KilnInstr *instr)
{
    instr->function->stamp++;
    kiln_ir_changes_add_instr(instr, true);
}

void
kiln_ir_touch(KilnIRFunction *function)
{
    function->stamp++;
    kiln_ir_changes_forget(function);
}

void
kiln_instr_remove(KilnInstr *instr)
{
    bool defines = instr->kind == KILN_INSTR_alloc || instr->kind == KILN_INSTR_view;
    KilnBuffer *defined = defines ? instr->operands[0].buffer : NULL;
    for (uint32_t i = 0; i < instr->n_operands; i++)
        use_unlink(&instr->operands[i]);
    if (defined)
        kiln_ir_remove_buffer(defined);
    instr_unlink(instr);
}

void
kiln_instr_move(KilnInstr *instr, KilnInstr *before)
{
    if (instr == before || instr->next == before)
        return;
    instr_unlink(instr);
    instr_link(instr, before);
}

/* --- questions --- */

static KilnSize
in_bytes(int64_t n, const KilnDim *dim, int64_t unit)
{
    return kiln_size_mul(kiln_size_open(n, dim), kiln_size_make(unit));
}

KilnRegion
kiln_view_part(const KilnBuffer *view)
{
    int64_t unit = (int64_t)kiln_dtype_size(view->base->type.dtype);
    int64_t bytes = kiln_type_bytes(&view->type), rows = MAX(view->view_rows, 1);
    const KilnViewOpen *open = view->view_open;
    KilnSize size = kiln_type_size_bytes(&view->type);
    if (!open && !size.dim && !size.lost)
        return kiln_region_make(view->view_offset * unit, rows, bytes / rows,
                                view->view_pitch * unit);
    KilnSize all_rows = kiln_size_open(rows, open ? open->rows : NULL);
    return kiln_region_of_sizes(in_bytes(view->view_offset, open ? open->offset : NULL, unit),
                                all_rows, kiln_size_divide(size, all_rows),
                                in_bytes(view->view_pitch, open ? open->pitch : NULL, unit));
}

bool
kiln_view_set_part(KilnBuffer *view, const KilnRegion *part)
{
    KilnSize unit = kiln_size_make((int64_t)kiln_dtype_size(view->base->type.dtype));
    KilnSize offset = kiln_size_divide(kiln_region_offset(part), unit);
    KilnSize rows = kiln_region_rows(part), pitch = kiln_size_make(0);
    if (part->rows > 1)
        pitch = kiln_size_divide(kiln_region_pitch(part), unit);
    view->view_offset = offset.n;
    view->view_rows = rows.n;
    view->view_pitch = pitch.n;
    view->view_open = NULL;
    if (offset.dim || rows.dim || pitch.dim) {
        view->view_open = kiln_arena_new0(view->function->arena, KilnViewOpen, 1);
        *view->view_open = (KilnViewOpen){ offset.dim, rows.dim, pitch.dim };
    }
    return !offset.lost && !rows.lost && !pitch.lost;
}

static KilnRegion
whole_region(const KilnType *type)
{
    KilnSize bytes = kiln_type_size_bytes(type);
    return kiln_region_of_sizes(kiln_size_make(0), kiln_size_make(1), bytes, bytes);
}

KilnRegion
kiln_buffer_region(const KilnBuffer *buffer)
{
    enum {
        AT_ONCE = 8
    };
    const KilnBuffer *views[AT_ONCE], *at = buffer;
    size_t depth = 0;
    for (; at->kind == KILN_BUFFER_VIEW; at = at->base)
        depth++;
    KilnRegion region = whole_region(&at->type);
    /* From the origin up, some views at a time: texts may nest any number. */
    while (depth > 0) {
        const size_t n = MIN(depth, AT_ONCE);
        at = buffer;
        for (size_t above = depth - n; above > 0; above--)
            at = at->base;
        for (size_t i = 0; i < n; i++, at = at->base)
            views[i] = at;
        for (size_t i = n; i > 0; i--) {
            const KilnRegion part = kiln_view_part(views[i - 1]);
            kiln_region_part(&region, &part, &region);
        }
        depth -= n;
    }
    return region;
}

bool
kiln_buffer_meets(KilnBuffer *a, KilnBuffer *b)
{
    if (kiln_buffer_origin(a) != kiln_buffer_origin(b))
        return false;
    KilnRegion x = kiln_buffer_region(a), y = kiln_buffer_region(b);
    return kiln_region_meet(&x, &y);
}

bool
kiln_buffer_coincides(KilnBuffer *a, KilnBuffer *b)
{
    if (kiln_buffer_origin(a) != kiln_buffer_origin(b))
        return false;
    KilnRegion x = kiln_buffer_region(a), y = kiln_buffer_region(b);
    return kiln_region_equal(&x, &y);
}

int64_t
kiln_buffer_origin_offset(const KilnBuffer *buffer)
{
    return kiln_buffer_region(buffer).offset;
}

bool
kiln_buffer_is_whole(KilnBuffer *buffer)
{
    KilnRegion region = kiln_buffer_region(buffer);
    KilnRegion whole = whole_region(&kiln_buffer_origin(buffer)->type);
    return kiln_region_equal(&region, &whole);
}

/* Every step that reads operand @in comes before the one that writes @out, or is that one.
 * Reductions read behind all other steps, and write one element for many that they read. */
static bool
is_read_before(const KilnInstr *stack, uint32_t out, uint32_t in)
{
    bool written = false;
    if (kiln_stack_is_reduced(stack, out))
        return false;
    for (uint32_t i = 0; i < stack->n_steps; i++) {
        const KilnStackStep *step = &stack->steps[i];
        const bool late = written || kiln_stack_reduces(step->kind);
        for (uint32_t k = 0; k < step->n_sources && late; k++) {
            if (step->sources[k].kind == KILN_STACK_OPERAND && step->sources[k].index == in)
                return false;
        }
        written |= step->store == (int32_t)out;
    }
    return written;
}

bool
kiln_instr_may_share(const KilnInstr *instr, uint32_t out, uint32_t in)
{
    const KilnBuffer *to = kiln_instr_operand(instr, out), *from = kiln_instr_operand(instr, in);
    if (!to || !from || in >= KILN_SHARE_OPERANDS ||
        instr->operands[out].access != KILN_ACCESS_OUT ||
        instr->operands[in].access != KILN_ACCESS_IN)
        return false;
    if (instr->kind == KILN_INSTR_stack)
        return kiln_dtype_size(to->type.dtype) == kiln_dtype_size(from->type.dtype) &&
               g_strcmp0(to->type.layout, from->type.layout) == 0 &&
               kiln_type_same_elements(&to->type, &from->type) && is_read_before(instr, out, in);
    bool allowed = instr->kind == KILN_INSTR_plugin_op
                       ? kiln_plugin_may_share(instr, out, in)
                       : out == 0 && (kiln_instr_info(instr->kind)->aliases >> in & 1);
    /* What stored integers stand for does not matter: element i is read before it is written. */
    return allowed && to->type.dtype == from->type.dtype &&
           kiln_type_same_shape(&to->type, &from->type) &&
           g_strcmp0(to->type.layout, from->type.layout) == 0;
}

const char *
kiln_instr_label(const KilnInstr *instr)
{
    if (instr->name)
        return instr->name;
    for (uint32_t i = 0; i < instr->n_operands; i++) {
        if (instr->operands[i].access != KILN_ACCESS_IN && instr->operands[i].buffer)
            return instr->operands[i].buffer->name;
    }
    return kiln_instr_info(instr->kind)->name;
}

int64_t *
kiln_instr_stream(const KilnInstr *instr)
{
    switch (instr->kind) {
    case KILN_INSTR_random_normal:
        return kiln_instr_attrs(instr, random_normal)->seed
                   ? NULL
                   : &kiln_instr_attrs(instr, random_normal)->stream;
    case KILN_INSTR_random_uniform:
        return kiln_instr_attrs(instr, random_uniform)->seed
                   ? NULL
                   : &kiln_instr_attrs(instr, random_uniform)->stream;
    default:
        return NULL;
    }
}

void
kiln_memory_plan_forget(KilnIRFunction *function)
{
    if (function->arena_bytes < 0)
        return;
    for (guint i = 0; i < function->buffers->len; i++) {
        KilnBuffer *buffer = g_ptr_array_index(function->buffers, i);
        if (buffer && buffer->kind == KILN_BUFFER_ALLOC)
            buffer->offset = -1;
    }
    function->arena_bytes = -1;
    function->stamp++;
}
