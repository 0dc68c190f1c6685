/* SPDX-License-Identifier: Apache-2.0 */
#include "ir/flow_names.h"

#include "graph/dim/dim_defined.h"
#include "ir/open.h"

typedef struct {
    KilnDimTable *table;
    GHashTable *seen; /* names; looked up only */
    GPtrArray *out;   /* KilnDim* */
} Search;

/* Looks at all names: it never says that one is found. */
static bool
see_name(void *data, const char *name)
{
    Search *search = data;
    const KilnDim *dim = kiln_dim_name(search->table, name);
    if (g_hash_table_add(search->seen, (gpointer)dim))
        g_ptr_array_add(search->out, (gpointer)dim);
    return false;
}

static void
see_dim(Search *search, const KilnDim *dim)
{
    if (dim)
        kiln_dim_any_name(dim, see_name, search);
}

static void
see_buffer(Search *search, const KilnBuffer *buffer)
{
    for (int d = 0; d < buffer->type.rank; d++)
        see_dim(search, buffer->type.open[d]);
    if (!buffer->view_open)
        return;
    see_dim(search, buffer->view_open->offset);
    see_dim(search, buffer->view_open->rows);
    see_dim(search, buffer->view_open->pitch);
}

static void
see_list(void *data, const KilnInts *list)
{
    for (uint32_t k = 0; k < list->n; k++)
        see_dim(data, list->open[k]);
}

/* What a `define` of @function defines is not needed from outside. */
static void
leave_defined(Search *search, const KilnIRFunction *function)
{
    kiln_foreach_instr (instr, function) {
        if (instr->kind != KILN_INSTR_define)
            continue;
        const KilnInts *values = &kiln_instr_attrs(instr, define)->values;
        for (uint32_t i = 0; values->open && i < values->n; i++)
            g_hash_table_add(search->seen, (gpointer)values->open[i]);
    }
}

GPtrArray *
kiln_flow_needed_names(const KilnIRFunction *function)
{
    Search search = { function->module->dims, g_hash_table_new(NULL, NULL), g_ptr_array_new() };
    leave_defined(&search, function);
    for (guint i = 0; i < function->buffers->len; i++) {
        const KilnBuffer *buffer = g_ptr_array_index(function->buffers, i);
        if (buffer)
            see_buffer(&search, buffer);
    }
    kiln_foreach_instr (instr, function)
        kiln_open_visit_lists(instr, see_list, &search);
    for (guint i = 0; function->open && i < function->open->rules->len; i++) {
        const KilnOpenRule *rule = &g_array_index(function->open->rules, KilnOpenRule, i);
        see_dim(&search, rule->a);
        see_dim(&search, rule->b);
    }
    g_hash_table_unref(search.seen);
    return search.out;
}
