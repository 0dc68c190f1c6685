/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/open/define.h"

#include "graph/dim/dim_defined.h"
#include "graph/error.h"
#include "graph/module/define.h"
#include "ir/define.h"

#include <string.h>

/* --- making --- */

static uint32_t
place_of(const KilnDimBinding *binding, const char *name)
{
    uint32_t i = 0;
    while (i < binding->n && strcmp(binding->names[i].name, name) != 0)
        i++;
    return i;
}

/* The numbers that @instr reads, where they are a constant; NULL where a run computes them. */
static GBytes *
constant_of(const KilnInstr *instr)
{
    KilnBuffer *buffer = instr->operands[0].buffer, *origin = kiln_buffer_origin(buffer);
    if (origin->kind != KILN_BUFFER_WEIGHT || !origin->is_const || !origin->constant)
        return NULL;
    g_autoptr(GBytes) all = kiln_tensor_view(origin->constant->tensor, NULL);
    return all ? g_bytes_new_from_bytes(all, (gsize)kiln_buffer_origin_offset(buffer),
                                        (gsize)kiln_type_bytes(&buffer->type))
               : NULL;
}

/* False where the function does not stand at a number for each name. */
static bool
read_definition(const KilnInstr *instr, const KilnDimBinding *binding, KilnDefinition *out)
{
    const KilnInstrAttrs_define *attrs = kiln_instr_attrs(instr, define);
    out->n = attrs->values.n;
    out->constant = constant_of(instr);
    out->names = g_new0(KilnDefinedName, (gsize)out->n + 1);
    for (uint32_t i = 0; i < out->n; i++) {
        const char *name = kiln_dim_as_name(kiln_ints_open(attrs->values, i));
        KilnDefinedName *to = &out->names[i];
        to->name = name ? place_of(binding, name) : binding->n;
        to->most = kiln_size_open(attrs->most.v[i], kiln_ints_open(attrs->most, i));
        to->most.lost |= !to->most.dim && to->most.n < 0;
        if (to->name == binding->n)
            return false;
    }
    return true;
}

static KilnSize
size_of(const KilnDefines *defines, const KilnType *type)
{
    KilnSize size = kiln_type_size_bytes(type);
    return size.dim && kiln_defines_stage(defines, size.dim) ? size : kiln_size_make(size.n);
}

static void
find_sizes(KilnDefinitions *self, const KilnSpecialisation *made, const KilnDefines *defines)
{
    const KilnMemoryPlan *plan = made->plan;
    const GPtrArray *outputs = made->function->outputs;
    self->sizes = g_array_new(FALSE, FALSE, sizeof(KilnSize));
    self->life_dims = g_new0(uint32_t, (gsize)plan->n_lives + 1);
    self->room = g_new0(int64_t, (gsize)plan->n_lives + 1);
    self->outputs = g_new0(KilnSize, (gsize)outputs->len + 1);
    for (uint32_t i = 0; i < plan->n_lives; i++) {
        const KilnBuffer *buffer = plan->lives[i].buffer;
        KilnSize size = buffer ? size_of(defines, &buffer->type) : kiln_size_make(0);
        if (!size.dim)
            continue;
        g_array_append_val(self->sizes, size);
        self->life_dims[i] = self->sizes->len;
    }
    for (guint i = 0; i < outputs->len; i++)
        self->outputs[i] =
            size_of(defines, &((const KilnBuffer *)g_ptr_array_index(outputs, i))->type);
}

KilnDefinitions *
kiln_definitions_new(const KilnSpecialisation *made, const KilnOpenFields *fields,
                     const KilnDimBinding *binding)
{
    const KilnDefines *defines = kiln_open_defines(fields);
    if (!defines)
        return NULL;
    KilnDefinitions *self = g_new0(KilnDefinitions, 1);
    self->items = g_new0(KilnDefinition, (gsize)defines->instrs->len + 1);
    self->stages = g_new0(uint32_t, (gsize)made->n_calls + 1);
    bool good = true;
    for (uint32_t c = 0; c < made->n_calls; c++) {
        const KilnInstr *instr = made->calls[c].instr;
        self->stages[c] = kiln_defines_stage_of_instr(defines, instr);
        if (instr->kind != KILN_INSTR_define)
            continue;
        KilnDefinition *item = &self->items[self->n++];
        item->call = c;
        self->stages[c] = self->n;
        good &= read_definition(instr, binding, item);
    }
    if (!good)
        g_clear_pointer(&self, kiln_definitions_free);
    else
        find_sizes(self, made, defines);
    return self;
}

void
kiln_definitions_free(KilnDefinitions *self)
{
    if (!self)
        return;
    for (uint32_t k = 0; k < self->n; k++) {
        g_free(self->items[k].names);
        g_clear_pointer(&self->items[k].constant, g_bytes_unref);
    }
    g_free(self->items);
    g_free(self->stages);
    g_free(self->life_dims);
    if (self->sizes)
        g_array_unref(self->sizes);
    g_free(self->room);
    g_free(self->outputs);
    g_free(self);
}

/* --- bounds --- */

typedef struct {
    const KilnDefinitions *definitions;
    const KilnDimBinding *binding;
} Bounds;

/* A KilnDimBounds: what comes with the inputs is a number. */
static bool
bounds_of(void *data, const char *name, int64_t *lo, int64_t *hi)
{
    const Bounds *bounds = data;
    uint32_t at = place_of(bounds->binding, name);
    if (at == bounds->binding->n)
        return false;
    *lo = *hi = bounds->binding->names[at].number;
    for (uint32_t k = 0; k < bounds->definitions->n; k++) {
        const KilnDefinition *item = &bounds->definitions->items[k];
        for (uint32_t i = 0; i < item->n; i++) {
            if (item->names[i].name != at || item->names[i].bound < 0)
                continue;
            *lo = 0;
            *hi = item->names[i].bound;
        }
    }
    return true;
}

int64_t
kiln_definitions_most(const KilnDefinitions *self, const KilnDimBinding *binding, KilnSize size)
{
    Bounds bounds = { self, binding };
    int64_t lo, hi = size.n;
    if (size.dim)
        kiln_dim_range_at(size.dim, bounds_of, &bounds, &lo, &hi);
    return hi;
}

static void
bound_name(const KilnDefinitions *self, const KilnDimBinding *binding, KilnDefinedName *name)
{
    name->bound = name->most.lost ? -1 : kiln_definitions_most(self, binding, name->most);
}

/* Finds the bounds of the names of definitions from @k on. */
static void
bound_from(KilnDefinitions *self, uint32_t k, const KilnDimBinding *binding)
{
    for (; k < self->n; k++) {
        for (uint32_t i = 0; i < self->items[k].n; i++)
            bound_name(self, binding, &self->items[k].names[i]);
    }
}

void
kiln_definitions_bound(KilnDefinitions *self, const KilnDimBinding *binding)
{
    bound_from(self, 0, binding);
}

static gboolean
check_number(const KilnDefinedName *name, const KilnDimBinding *binding, int64_t number,
             GError **error)
{
    const int64_t most = name->bound >= 0 ? name->bound : KILN_DIM_MOST;
    return (number >= 0 && number <= most) ||
           kiln_throw(error, KILN_ERROR_RUN,
                      "dim %s: expected 0..%" G_GINT64_FORMAT ", found %" G_GINT64_FORMAT,
                      binding->names[name->name].name, most, number);
}

/* Writes @numbers to the names of @item. The bound of a name may hang on the one before it. */
static gboolean
write_numbers(const KilnDefinitions *self, KilnDefinition *item, KilnDimBinding *binding,
              const int64_t *numbers, GError **error)
{
    for (uint32_t i = 0; i < item->n; i++) {
        bound_name(self, binding, &item->names[i]);
        if (!check_number(&item->names[i], binding, numbers[i], error))
            return FALSE;
        binding->names[item->names[i].name].number = numbers[i];
    }
    return TRUE;
}

gboolean
kiln_definitions_set(KilnDefinitions *self, uint32_t k, KilnDimBinding *binding,
                     const int64_t *numbers, bool *out_changed, GError **error)
{
    KilnDefinition *item = &self->items[k];
    int64_t before[KILN_DEFINED_MAX];
    *out_changed = false;
    for (uint32_t i = 0; i < item->n; i++) {
        before[i] = binding->names[item->names[i].name].number;
        *out_changed |= before[i] != numbers[i];
    }
    gboolean good = write_numbers(self, item, binding, numbers, error);
    for (uint32_t i = 0; !good && i < item->n; i++)
        binding->names[item->names[i].name].number = before[i];
    bound_from(self, good ? k + 1 : k, binding);
    *out_changed &= good;
    return good;
}
