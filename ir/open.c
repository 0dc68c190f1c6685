/* SPDX-License-Identifier: Apache-2.0 */
#include "ir/open.h"

#include "graph/dim/dim_defined.h"
#include "ir/open_priv.h"
#include "ir/define.h"
#include "ir/stack.h"

#include <string.h>

/* --- the binding of a function --- */

void
kiln_open_begin(KilnIRFunction *function, const KilnDimBinding *binding)
{
    KilnOpen *open = g_new0(KilnOpen, 1);
    open->binding = kiln_dim_binding_copy(function->arena, binding);
    open->rules = g_array_new(FALSE, FALSE, sizeof(KilnOpenRule));
    open->settled = g_ptr_array_new();
    open->kept = g_ptr_array_new();
    function->open = open;
}

void
kiln_open_free(KilnOpen *open)
{
    if (!open)
        return;
    g_array_unref(open->rules);
    g_ptr_array_unref(open->settled);
    g_ptr_array_unref(open->kept);
    kiln_open_free_regions(open);
    g_free(open);
}

void
kiln_open_require_equal(KilnIRFunction *function, KilnSize a, KilnSize b, const char *what)
{
    KilnDimTable *table = function->module->dims;
    if (kiln_size_equal(a, b))
        return;
    KilnOpenRule rule = { a.dim ? a.dim : kiln_dim_number(table, a.n),
                          b.dim ? b.dim : kiln_dim_number(table, b.n),
                          kiln_arena_strdup(function->arena, what) };
    g_array_append_val(function->open->rules, rule);
}

/* --- copies --- */

typedef struct {
    const KilnIRFunction *from;
    KilnIRFunction *to;
    KilnBuffer **buffers; /* of the copy, by id in the original */
} Copy;

static void
copy_list(Copy *copy, const GPtrArray *list)
{
    for (guint i = 0; i < list->len; i++) {
        const KilnBuffer *from = g_ptr_array_index(list, i);
        KilnBuffer *to = kiln_ir_add_buffer(copy->to, from->kind, from->name, &from->type);
        to->is_const = from->is_const;
        to->unpacked = from->unpacked;
        to->constant = from->constant;
        copy->buffers[from->id] = to;
    }
}

static void
copy_view(Copy *copy, const KilnBuffer *from)
{
    KilnBuffer *to = kiln_ir_view(copy->to, from->name, copy->buffers[from->base->id],
                                  from->view_offset, &from->type, NULL);
    to->view_rows = from->view_rows;
    to->view_pitch = from->view_pitch;
    to->view_open = from->view_open
                        ? kiln_arena_copy(copy->to->arena, from->view_open, sizeof *from->view_open)
                        : NULL;
    copy->buffers[from->id] = to;
}

static uint32_t
count_results(const KilnInstr *instr)
{
    uint32_t n = 0;
    while (n < instr->n_operands && instr->operands[n].access == KILN_ACCESS_OUT)
        n++;
    return n;
}

static void
copy_compute(Copy *copy, const KilnInstr *from)
{
    uint32_t n = from->n_operands;
    g_autofree KilnBuffer **operands = g_new0(KilnBuffer *, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        const KilnBuffer *buffer = from->operands[i].buffer;
        operands[i] = buffer ? copy->buffers[buffer->id] : NULL;
    }
    KilnInstr *to;
    if (from->kind == KILN_INSTR_call)
        to = kiln_instr_new_call(copy->to, from->callee, operands, n, count_results(from), NULL);
    else if (from->kind == KILN_INSTR_stack)
        to = kiln_instr_new_stack(copy->to, operands, n, count_results(from), from->steps,
                                  from->n_steps, NULL);
    else if (kiln_instr_states_access(from->kind))
        to = kiln_instr_new_stated(copy->to, from->kind, operands, n, count_results(from),
                                   from->attrs, NULL);
    else
        to = kiln_instr_new(copy->to, from->kind, operands, n, from->attrs, NULL, NULL);
    to->name = kiln_arena_strdup(copy->to->arena, from->name);
}

static void
copy_instr(Copy *copy, const KilnInstr *from)
{
    const KilnBuffer *buffer = from->operands[0].buffer;
    switch (from->kind) {
    case KILN_INSTR_alloc:
        copy->buffers[buffer->id] = kiln_ir_alloc(copy->to, buffer->name, &buffer->type, NULL);
        copy->buffers[buffer->id]->offset = buffer->offset;
        break;
    case KILN_INSTR_dealloc:
        kiln_ir_dealloc(copy->buffers[buffer->id], NULL);
        break;
    case KILN_INSTR_view:
        copy_view(copy, buffer);
        break;
    default:
        copy_compute(copy, from);
        break;
    }
}

/* A copy has an instruction for each of the original. */
static void
copy_settled(const Copy *copy)
{
    const KilnOpen *from = copy->from->open;
    KilnOpen *to = copy->to->open;
    const KilnInstr *instr = copy->from->first;
    KilnInstr *twin = copy->to->first;
    for (guint next = 0; next < from->settled->len; instr = instr->next, twin = twin->next) {
        if (instr != g_ptr_array_index(from->settled, next))
            continue;
        g_ptr_array_add(to->settled, twin);
        next++;
    }
    for (guint i = 0; i < from->kept->len; i++) {
        const KilnBuffer *buffer = g_ptr_array_index(from->kept, i);
        g_ptr_array_add(to->kept, copy->buffers[buffer->id]);
    }
}

KilnIRFunction *
kiln_ir_function_copy(const KilnIRFunction *function)
{
    Copy copy = { function, kiln_ir_function_new(function->module, function->name),
                  g_new0(KilnBuffer *, function->buffers->len + 1) };
    copy.to->siblings = function->siblings;
    copy_list(&copy, function->weights);
    copy_list(&copy, function->inputs);
    copy_list(&copy, function->outputs);
    kiln_foreach_instr (instr, function)
        copy_instr(&copy, instr);
    copy.to->arena_bytes = function->arena_bytes;
    if (function->open) {
        kiln_open_begin(copy.to, function->open->binding);
        g_array_append_vals(copy.to->open->rules, function->open->rules->data,
                            function->open->rules->len);
        copy_settled(&copy);
    }
    g_free(copy.buffers);
    return copy.to;
}

/* --- fields --- */

typedef struct {
    int64_t *field;
    uint32_t dim; /* index of its expression */
} Field;

/* The place of a view as the function states it: what has no expression is one number for all
 * bindings. */
typedef struct {
    int64_t offset, rows, pitch;
} Place;

struct KilnOpenFields {
    KilnIRFunction *function;
    GHashTable *indices;  /* KilnDim* → index + 1; looked up only */
    GPtrArray *dims;      /* KilnDim* */
    int64_t *numbers;     /* per expression */
    int64_t *next;        /* the same at the binding that is moved to */
    GArray *fields;       /* Field */
    GPtrArray *buffers;   /* KilnBuffer* with an open type or place */
    GArray *places;       /* Place, per buffer of these */
    KilnDefines *defines; /* NULL: all names come with the inputs, and what follows is NULL */
    uint32_t *dim_stages; /* per expression: the stage of a run that knows it */
    uint32_t *buffer_stages, *rule_stages;
};

static uint32_t
index_of(KilnOpenFields *fields, const KilnDim *dim)
{
    guint index = GPOINTER_TO_UINT(g_hash_table_lookup(fields->indices, dim));
    if (!index) {
        g_ptr_array_add(fields->dims, (gpointer)dim);
        index = fields->dims->len;
        g_hash_table_insert(fields->indices, (gpointer)dim, GUINT_TO_POINTER(index));
    }
    return index - 1;
}

static void
add_field(KilnOpenFields *fields, int64_t *number, const KilnDim *dim)
{
    if (!dim)
        return;
    Field field = { number, index_of(fields, dim) };
    g_array_append_val(fields->fields, field);
}

static void
add_buffer(KilnOpenFields *fields, KilnBuffer *buffer)
{
    const KilnViewOpen *open = buffer->view_open;
    bool of_view = buffer->kind == KILN_BUFFER_VIEW && kiln_type_is_open(&buffer->base->type);
    Place place = { buffer->view_offset, buffer->view_rows, buffer->view_pitch };
    if (open || of_view || kiln_type_is_open(&buffer->type)) {
        g_ptr_array_add(fields->buffers, buffer);
        g_array_append_val(fields->places, place);
    }
    for (int d = 0; d < buffer->type.rank; d++)
        add_field(fields, &buffer->type.dims[d], buffer->type.open[d]);
    if (!open)
        return;
    add_field(fields, &buffer->view_offset, open->offset);
    add_field(fields, &buffer->view_rows, open->rows);
    add_field(fields, &buffer->view_pitch, open->pitch);
}

void
kiln_open_visit_lists(const KilnInstr *instr, void (*visit)(void *data, const KilnInts *list),
                      void *data)
{
    const KilnInstrInfo *info = kiln_instr_info(instr->kind);
    for (uint32_t i = 0; i < info->n_attrs; i++) {
        if (info->attrs[i].kind != KILN_ATTR_INTS)
            continue;
        const KilnInts *list =
            (const KilnInts *)((const char *)instr->attrs + info->attrs[i].offset);
        if (list->open)
            visit(data, list);
    }
}

static void
add_list(void *data, const KilnInts *list)
{
    for (uint32_t i = 0; i < list->n; i++)
        add_field(data, &list->v[i], list->open[i]);
}

static void
find_stages(KilnOpenFields *fields)
{
    const KilnDefines *defines = fields->defines;
    const GArray *rules = fields->function->open->rules;
    fields->dim_stages = g_new(uint32_t, (gsize)fields->dims->len + 1);
    fields->buffer_stages = g_new(uint32_t, (gsize)fields->buffers->len + 1);
    fields->rule_stages = g_new(uint32_t, (gsize)rules->len + 1);
    for (guint i = 0; i < fields->dims->len; i++)
        fields->dim_stages[i] = kiln_defines_stage(defines, g_ptr_array_index(fields->dims, i));
    for (guint i = 0; i < fields->buffers->len; i++)
        fields->buffer_stages[i] =
            kiln_defines_stage_of_buffer(defines, g_ptr_array_index(fields->buffers, i));
    for (guint i = 0; i < rules->len; i++) {
        const KilnOpenRule *rule = &g_array_index(rules, KilnOpenRule, i);
        fields->rule_stages[i] =
            MAX(kiln_defines_stage(defines, rule->a), kiln_defines_stage(defines, rule->b));
    }
}

static bool
comes_later(const uint32_t *stages, guint i, uint32_t stage)
{
    return stages && stages[i] > stage;
}

KilnOpenFields *
kiln_open_fields_new(KilnIRFunction *function)
{
    KilnOpenFields *fields = g_new0(KilnOpenFields, 1);
    fields->function = function;
    fields->indices = g_hash_table_new(NULL, NULL);
    fields->dims = g_ptr_array_new();
    fields->fields = g_array_new(FALSE, FALSE, sizeof(Field));
    fields->buffers = g_ptr_array_new();
    fields->places = g_array_new(FALSE, FALSE, sizeof(Place));
    for (guint i = 0; i < function->buffers->len; i++) {
        KilnBuffer *buffer = g_ptr_array_index(function->buffers, i);
        if (buffer)
            add_buffer(fields, buffer);
    }
    kiln_foreach_instr (instr, function)
        kiln_open_visit_lists(instr, add_list, fields);
    fields->numbers = g_new0(int64_t, fields->dims->len + 1);
    fields->next = g_new0(int64_t, fields->dims->len + 1);
    for (guint i = 0; i < fields->fields->len; i++) {
        const Field *field = &g_array_index(fields->fields, Field, i);
        fields->numbers[field->dim] = *field->field;
    }
    fields->defines = kiln_defines_new(function);
    if (fields->defines)
        find_stages(fields);
    return fields;
}

void
kiln_open_fields_free(KilnOpenFields *fields)
{
    if (!fields)
        return;
    g_hash_table_unref(fields->indices);
    g_ptr_array_unref(fields->dims);
    g_array_unref(fields->fields);
    g_ptr_array_unref(fields->buffers);
    g_array_unref(fields->places);
    kiln_defines_free(fields->defines);
    g_free(fields->dim_stages);
    g_free(fields->buffer_stages);
    g_free(fields->rule_stages);
    g_free(fields->numbers);
    g_free(fields->next);
    g_free(fields);
}

/* --- moving --- */

static uint64_t
bit_of(uint32_t index)
{
    return (uint64_t)1 << MIN(index, (uint32_t)KILN_OPEN_MASK - 1);
}

static bool
is_name(void *name, const char *other)
{
    return strcmp(name, other) == 0;
}

/* Whether no input of @entry has the dim @name: a run decides it. */
static bool
is_inner(void *entry, const char *name)
{
    const KilnIRFunction *function = entry;
    for (guint i = 0; i < function->inputs->len; i++) {
        const KilnType *type = &((const KilnBuffer *)g_ptr_array_index(function->inputs, i))->type;
        for (int d = 0; d < type->rank; d++) {
            if (type->open[d] && kiln_dim_any_name(type->open[d], is_name, (void *)name))
                return false;
        }
    }
    return true;
}

/* Only the numbers of a run keep it, and not those that a function is looked at with. Names that
 * results of branches and loops bring have a stage. Functions of loops have names of their own, for
 * what is carried. The entry is the last function. */
static bool
is_of_data(const KilnOpenFields *fields, guint i)
{
    const KilnOpenRule *rule = &g_array_index(fields->function->open->rules, KilnOpenRule, i);
    const GPtrArray *all = fields->function->siblings;
    void *entry = all && all->len ? g_ptr_array_index(all, all->len - 1) : NULL;
    return (fields->rule_stages && fields->rule_stages[i] > 0) || kiln_dim_hangs_on_data(rule->a) ||
           kiln_dim_hangs_on_data(rule->b) ||
           (entry && (kiln_dim_any_name(rule->a, is_inner, entry) ||
                      kiln_dim_any_name(rule->b, is_inner, entry)));
}

static gboolean
check_rules(const KilnOpenFields *fields, const KilnDimBinding *binding, uint32_t stage,
            GError **error)
{
    const GArray *rules = fields->function->open->rules;
    for (guint i = 0; i < rules->len; i++) {
        const KilnOpenRule *rule = &g_array_index(rules, KilnOpenRule, i);
        int64_t a, b;
        if (comes_later(fields->rule_stages, i, stage) ||
            (stage == UINT32_MAX && is_of_data(fields, i)))
            continue;
        if (!kiln_dim_evaluate(rule->a, kiln_dim_binding_lookup, (void *)binding, &a, error) ||
            !kiln_dim_evaluate(rule->b, kiln_dim_binding_lookup, (void *)binding, &b, error))
            return FALSE;
        if (a == b)
            continue;
        g_autofree char *left = kiln_dim_to_string(rule->a);
        g_autofree char *right = kiln_dim_to_string(rule->b);
        return kiln_throw(error, KILN_ERROR_SHAPE,
                          "%s: expected %s = %s, found %" G_GINT64_FORMAT " and %" G_GINT64_FORMAT,
                          rule->what, left, right, a, b);
    }
    return TRUE;
}

/* Whether a view lies inside its base, from the first byte to the last. */
static bool
is_inside(const KilnBuffer *view)
{
    const KilnBuffer *base = view->base;
    int64_t unit = (int64_t)kiln_dtype_size(base->type.dtype), rows = view->view_rows, begin, end;
    int64_t bytes = kiln_type_bytes(&view->type), whole = kiln_type_bytes(&base->type), pitch;
    if (rows < 1 || bytes % rows || view->view_offset < 0 ||
        __builtin_mul_overflow(view->view_offset, unit, &begin) ||
        __builtin_mul_overflow(view->view_pitch, unit, &pitch) ||
        (rows > 1 && pitch < bytes / rows) || __builtin_mul_overflow(rows - 1, pitch, &end) ||
        __builtin_add_overflow(begin, end, &end) ||
        __builtin_add_overflow(end, bytes / rows, &end) || end > whole)
        return false;
    if (base->kind != KILN_BUFFER_VIEW || base->view_rows == 1)
        return true;
    KilnRegion region = kiln_buffer_region(base), part = kiln_view_part(view);
    return kiln_region_part(&region, &part, &region);
}

static void
restore_places(const KilnOpenFields *fields)
{
    for (guint i = 0; i < fields->buffers->len; i++) {
        KilnBuffer *buffer = g_ptr_array_index(fields->buffers, i);
        const Place *place = &g_array_index(fields->places, Place, i);
        buffer->view_offset = place->offset;
        buffer->view_rows = place->rows;
        buffer->view_pitch = place->pitch;
    }
}

/* One row has no pitch. An empty view lies anywhere: it begins where its base does. */
static void
settle_view(KilnBuffer *view)
{
    if (kiln_type_elements(&view->type) == 0) {
        view->view_offset = 0;
        view->view_rows = 1;
    }
    if (view->view_rows == 1)
        view->view_pitch = 0;
}

static gboolean
check_buffers(const KilnOpenFields *fields, uint32_t stage, GError **error)
{
    for (guint i = 0; i < fields->buffers->len; i++) {
        KilnBuffer *buffer = g_ptr_array_index(fields->buffers, i);
        bool is_view = buffer->kind == KILN_BUFFER_VIEW;
        if (comes_later(fields->buffer_stages, i, stage))
            continue;
        if (is_view)
            settle_view(buffer);
        if (kiln_type_bytes(&buffer->type) >= 0 && (!is_view || is_inside(buffer)))
            continue;
        g_autofree char *type = kiln_type_to_string(&buffer->type);
        return kiln_throw(error, KILN_ERROR_SHAPE, "%s: %s has no place for these shapes",
                          buffer->name, type);
    }
    return TRUE;
}

gboolean
kiln_open_move(KilnOpenFields *fields, const KilnDimBinding *binding, uint64_t *out_changed,
               GError **error)
{
    return kiln_open_move_stage(fields, binding, UINT32_MAX, out_changed, error);
}

gboolean
kiln_open_move_stage(KilnOpenFields *fields, const KilnDimBinding *binding, uint32_t stage,
                     uint64_t *out_changed, GError **error)
{
    uint64_t changed = 0;
    for (guint i = 0; i < fields->dims->len; i++) {
        const KilnDim *dim = g_ptr_array_index(fields->dims, i);
        fields->next[i] = fields->numbers[i];
        if (comes_later(fields->dim_stages, i, stage))
            continue;
        if (!kiln_dim_evaluate(dim, kiln_dim_binding_lookup, (void *)binding, &fields->next[i],
                               error))
            return FALSE;
        if (fields->next[i] != fields->numbers[i])
            changed |= bit_of(i);
    }
    if (!check_rules(fields, binding, stage, error))
        return FALSE;
    memcpy(fields->numbers, fields->next, fields->dims->len * sizeof *fields->numbers);
    if (changed)
        restore_places(fields);
    for (guint i = 0; changed && i < fields->fields->len; i++) {
        const Field *field = &g_array_index(fields->fields, Field, i);
        *field->field = fields->numbers[field->dim];
    }
    *out_changed = changed;
    return (!changed && !fields->defines) || check_buffers(fields, stage, error);
}

const KilnDefines *
kiln_open_defines(const KilnOpenFields *fields)
{
    return fields->defines;
}

typedef struct {
    const KilnOpenFields *fields;
    uint64_t mask;
} Masking;

static void
mask_dim(Masking *masking, const KilnDim *dim)
{
    guint index = dim ? GPOINTER_TO_UINT(g_hash_table_lookup(masking->fields->indices, dim)) : 0;
    if (index)
        masking->mask |= bit_of(index - 1);
}

static void
mask_list(void *data, const KilnInts *list)
{
    for (uint32_t i = 0; i < list->n; i++)
        mask_dim(data, list->open[i]);
}

uint64_t
kiln_open_mask(const KilnOpenFields *fields, const KilnInstr *instr)
{
    Masking masking = { fields, 0 };
    for (uint32_t i = 0; i < instr->n_operands; i++) {
        for (const KilnBuffer *at = instr->operands[i].buffer; at;
             at = at->kind == KILN_BUFFER_VIEW ? at->base : NULL) {
            for (int d = 0; d < at->type.rank; d++)
                mask_dim(&masking, at->type.open[d]);
            if (!at->view_open)
                continue;
            mask_dim(&masking, at->view_open->offset);
            mask_dim(&masking, at->view_open->rows);
            mask_dim(&masking, at->view_open->pitch);
        }
    }
    kiln_open_visit_lists(instr, mask_list, &masking);
    return masking.mask;
}

static void
strip_list(void *data, const KilnInts *list)
{
    (void)data;
    ((KilnInts *)list)->open = NULL;
}

void
kiln_open_strip(KilnOpenFields *fields)
{
    for (guint i = 0; i < fields->buffers->len; i++) {
        KilnBuffer *buffer = g_ptr_array_index(fields->buffers, i);
        memset(buffer->type.open, 0, sizeof buffer->type.open);
        buffer->view_open = NULL;
    }
    kiln_foreach_instr (instr, fields->function)
        kiln_open_visit_lists(instr, strip_list, NULL);
}

KilnIRFunction *
kiln_open_copy_at(const KilnIRFunction *function, const KilnDimBinding *binding, GError **error)
{
    return kiln_open_copy_stage(function, binding, UINT32_MAX, error);
}

KilnIRFunction *
kiln_open_copy_stage(const KilnIRFunction *function, const KilnDimBinding *binding, uint32_t stage,
                     GError **error)
{
    g_autoptr(KilnIRFunction) copy = kiln_ir_function_copy(function);
    g_autoptr(KilnOpenFields) fields = kiln_open_fields_new(copy);
    uint64_t changed;
    kiln_memory_plan_forget(copy);
    kiln_open_strip(fields);
    return kiln_open_move_stage(fields, binding, stage, &changed, error) ? g_steal_pointer(&copy)
                                                                         : NULL;
}

gboolean
kiln_open_verify_at(const KilnIRFunction *function, const KilnDimBinding *binding, GError **error)
{
    g_autoptr(KilnIRFunction) copy = kiln_open_copy_at(function, binding, error);
    return copy && kiln_ir_verify(copy, error);
}
