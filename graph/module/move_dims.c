/* SPDX-License-Identifier: Apache-2.0 */
/* Gives a module a table of dims of its own, and other expressions in the place of names. */
#include "graph/module/move_dims.h"

#include "graph/dim/dim_small.h"
#include "graph/module.h"
#include "graph/module/folding.h"

typedef struct {
    KilnModule *module;
    KilnDimTable *table;
    KilnDimReplace replace;
    void *data;
} Move;

static const KilnDim *
moved(const Move *move, const KilnDim *dim)
{
    return kiln_dim_replace(move->table, dim, move->replace, move->data);
}

static void
move_type(const Move *move, KilnType *type)
{
    for (int d = 0; d < type->rank; d++) {
        if (type->open[d])
            kiln_type_set_dim(type, d, moved(move, type->open[d]));
    }
    if (!type->contents || type->dtype == KILN_DTYPE_map)
        return;
    KilnType element = *kiln_type_element(type);
    move_type(move, &element);
    *type = kiln_type_of_items(move->module->arena, type->dtype, &element);
}

/* Elements that all became numbers are no expressions any more. */
static void
move_extents(const Move *move, KilnValue *value)
{
    const KilnExtents *from = value->extents;
    KilnArena *arena = move->module->arena;
    KilnExtents *to = kiln_arena_alloc(arena, sizeof *to + from->n * sizeof to->v[0]);
    KilnKnown *known = kiln_arena_alloc(arena, sizeof *known + from->n * sizeof known->v[0]);
    bool some = false, numbers = !kiln_dtype_is_float(value->type.dtype);
    known->n = to->n = from->n;
    to->under = from->under;
    for (uint32_t i = 0; i < from->n; i++) {
        to->v[i] = moved(move, from->v[i]);
        some |= to->v[i] != NULL;
        numbers &= kiln_dim_is_number(to->v[i], &known->v[i]);
    }
    value->extents = some && !numbers ? to : NULL;
    if (numbers)
        value->known = known;
}

static void
move_value(const Move *move, KilnValue *value)
{
    move_type(move, &value->type);
    if (value->extents)
        move_extents(move, value);
}

static void
move_attrs(const Move *move, KilnNode *node)
{
    const KilnOpInfo *info = kiln_op_info(node->op);
    for (uint32_t i = 0; i < info->n_attrs; i++) {
        if (info->attrs[i].kind != KILN_ATTR_INTS)
            continue;
        KilnInts *list = (KilnInts *)((char *)node->attrs + info->attrs[i].offset);
        for (uint32_t k = 0; list->open && k < list->n; k++) {
            list->open[k] = moved(move, list->open[k]);
            if (kiln_dim_is_number(list->open[k], &list->v[k]))
                list->open[k] = NULL;
        }
    }
}

static void
move_function(const Move *move, KilnFunction *function)
{
    for (guint i = 0; i < function->arguments->len; i++)
        move_value(move, &kiln_function_argument(function, i)->value);
    kiln_foreach_node (node, function) {
        for (uint32_t r = 0; r < node->n_results; r++)
            move_value(move, &node->results[r]);
        move_attrs(move, node);
    }
    kiln_function_touch(function);
}

static void
move_regions(const Move *move, KilnFunction *function)
{
    move_function(move, function);
    kiln_foreach_node (node, function) {
        kiln_foreach_region (region, node)
            move_regions(move, region);
    }
}

void
kiln_function_replace_dims(KilnFunction *function, KilnDimReplace replace, void *data)
{
    KilnModule *module = function->module;
    const Move move = { module, module->dims, replace, data };
    move_regions(&move, function);
}

void
kiln_module_move_dims(KilnModule *module, KilnDimTable *table, KilnDimReplace replace, void *data)
{
    const Move move = { module, table, replace, data };
    if (kiln_dim_table_assumes_small(module->dims))
        kiln_dim_table_assume_small(table);
    for (guint i = 0; i < module->all_functions->len; i++)
        move_function(&move, g_ptr_array_index(module->all_functions, i));
    const GPtrArray *inputs = kiln_module_inputs(module);
    for (guint i = 0; module->folding && i < inputs->len; i++)
        move_value(&move, &((KilnArgument *)g_ptr_array_index(inputs, i))->value);
    for (guint i = 0; i < module->declarations->len; i++) {
        KilnDeclaration *declaration = g_ptr_array_index(module->declarations, i);
        for (uint32_t k = 0; k < declaration->n_operands; k++)
            move_type(&move, &declaration->operands[k]);
        for (uint32_t k = 0; k < declaration->n_results; k++)
            move_type(&move, &declaration->results[k]);
    }
    kiln_dim_table_unref(module->dims);
    module->dims = kiln_dim_table_ref(table);
}
