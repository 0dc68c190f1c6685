/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/specialise_slice.h"

#include "graph/dim/dim_defined.h"
#include "graph/module/by_name.h"
#include "graph/module/define.h"
#include "graph/module/flow.h"
#include "graph/module/folding.h"
#include "graph/node.h"
#include "graph/op/flow.h"
#include "passes/fold/constness.h"

#include <string.h>

/* In the order of their calls: a GArray of KilnCallee. */
GArray *
kiln_callees_list(const KilnModule *module)
{
    const KilnFolding *folding = module->folding;
    GArray *list = g_array_new(FALSE, FALSE, sizeof(KilnCallee));
    for (guint i = 0; folding && i < folding->folds->len; i++) {
        const KilnFold *fold = g_ptr_array_index(folding->folds, i);
        KilnCallee callee = { kiln_module_find_function(module, fold->function), fold->operands,
                              fold->first_result, fold->n_results };
        g_array_append_val(list, callee);
    }
    KilnCallee entry = { kiln_module_entry(module),
                         folding ? (const uint32_t *)folding->entry->data : NULL, 0, 0 };
    g_array_append_val(list, entry);
    return list;
}

/* Of all values, by number. */
static uint32_t
count_values(const KilnModule *module)
{
    return module->folding ? kiln_folding_n_values(module->folding)
                           : kiln_module_inputs(module)->len;
}

uint32_t
kiln_callee_number(const KilnCallee *callee, guint argument)
{
    return callee->numbers ? callee->numbers[argument] : argument;
}

static void
add_operands(GPtrArray *work, const KilnNode *node)
{
    for (uint32_t i = 0; i < node->n_operands; i++)
        g_ptr_array_add(work, node->operands[i].value);
}

static void
mark_backwards(KilnShapeSlice *slice, const KilnValue *from, bool arguments)
{
    g_autoptr(GPtrArray) work = g_ptr_array_new();
    g_ptr_array_add(work, (gpointer)from);
    while (work->len) {
        const KilnValue *value = g_ptr_array_remove_index(work, work->len - 1);
        if (!value || value->known || kiln_dtype_is_item(value->type.dtype))
            continue;
        if (!value->def) {
            if (arguments && ((const KilnArgument *)value)->function == slice->function)
                slice->arguments[value->index] = true;
            continue;
        }
        KilnNode *node = value->def;
        if (kiln_op_reads_type_only(node->op) || !g_hash_table_add(slice->nodes, node))
            continue;
        add_operands(work, node);
        kiln_foreach_region (region, node)
            add_operands(work, kiln_function_return(region));
    }
}

/* --- what data decides --- */

enum {
    KEY_FLOATS = 16 /* elements of a list that may state scales */
};

/* Whether programs are made for each value of @argument: of lists that state shapes, not of data.
 */
static bool
is_key(const KilnType *type)
{
    int64_t n = kiln_type_elements(type);
    return type->rank <= 1 && n <= (kiln_dtype_is_float(type->dtype) ? KEY_FLOATS : KILN_KNOWN_MAX);
}

/* Only the entry and its subgraphs have names that a run finds, and only where no constant is
 * computed by the first run. */
bool
kiln_live_may_be(const KilnFunction *function)
{
    const KilnModule *module = function->module;
    return kiln_function_root(function) == kiln_module_entry(module) && !module->folding;
}

/* An argument of a subgraph, such as the number of an iteration. */
static bool
is_inner_argument(const KilnValue *value)
{
    return !value->def && ((const KilnArgument *)value)->function->owner;
}

static bool
is_same_name(void *name, const char *other)
{
    return strcmp(name, other) == 0;
}

/* No input of @stated has dim @name: a run finds its number. */
static bool
is_found_by_run(void *stated, const char *name)
{
    const GPtrArray *inputs = kiln_module_inputs(stated);
    for (guint i = 0; i < inputs->len; i++) {
        const KilnType *type = &((const KilnArgument *)g_ptr_array_index(inputs, i))->value.type;
        for (int d = 0; d < type->rank; d++) {
            if (type->open[d] && kiln_dim_any_name(type->open[d], is_same_name, (void *)name))
                return false;
        }
    }
    return true;
}

/* A run finds out a dim of @type. */
static bool
has_live_dim(const KilnType *type, const KilnModule *stated)
{
    for (int d = 0; d < type->rank; d++) {
        if (type->open[d] && kiln_dim_any_name(type->open[d], is_found_by_run, (void *)stated))
            return true;
    }
    return false;
}

/* Whether data computes @value: then names are given to its elements in a run. */
static bool
is_live(const KilnValue *value, const KilnFunction *function, const KilnModule *stated)
{
    g_autoptr(GHashTable) seen = g_hash_table_new(NULL, NULL);
    g_autoptr(GPtrArray) work = g_ptr_array_new();
    if (!kiln_live_may_be(function))
        return false;
    g_ptr_array_add(work, (gpointer)value);
    while (work->len) {
        const KilnValue *at = g_ptr_array_remove_index(work, work->len - 1);
        if (!at || at->known || kiln_value_constant(at) || !g_hash_table_add(seen, (gpointer)at))
            continue;
        if (kiln_dtype_is_item(at->type.dtype))
            return true;
        if (!at->def && (is_inner_argument(at) || !is_key(&at->type)))
            return true;
        if (!at->def)
            continue;
        if (kiln_op_reads_type_only(at->def->op)) {
            if (has_live_dim(&at->def->operands[0].value->type, stated))
                return true;
            continue;
        }
        if (kiln_op_counts(at->def->op) || kiln_op_is_define(at->def->op) ||
            kiln_op_is_flow(at->def->op))
            return true;
        if (kiln_op_measures(at->def->op) && !kiln_value_constant(at->def->operands[0].value))
            return true;
        add_operands(work, at->def);
    }
    return false;
}

/* Both branches of @node give values of the same ranks, as far as the model says. */
static bool
has_ranks(const KilnNode *node)
{
    bool has = true;
    for (uint32_t r = 0; r < node->n_results; r++)
        has &= node->results[r].type.rank >= 0;
    return has;
}

/* Operand @i of @node, which decides its shape, gets names in a run. */
bool
kiln_live_operand(const KilnNode *node, uint32_t i, const KilnModule *stated)
{
    const KilnValue *value = node->operands[i].value;
    if (!value || value->known || kiln_value_constant(value))
        return false;
    if (node->op == KILN_OP_if) /* of one rank: not where a program for each value follows */
        return has_ranks(node) ? kiln_live_may_be(node->function)
                               : is_live(value, node->function, stated);
    return kiln_node_is(node, "compress")
               ? kiln_live_may_be(node->function)
               : kiln_op_defines_operand(node->op, i) && is_live(value, node->function, stated);
}

void
kiln_shape_slice_add_shapes(KilnShapeSlice *slice, const KilnFunction *function)
{
    kiln_foreach_node (node, function) {
        uint32_t operands = kiln_op_info(node->op)->shape_operands;
        for (uint32_t i = 0; i < node->n_operands && i < 32; i++) {
            if ((operands >> i & 1) && !kiln_live_operand(node, i, slice->stated))
                mark_backwards(slice, node->operands[i].value, true);
        }
        kiln_foreach_region (region, node)
            kiln_shape_slice_add_shapes(slice, region);
    }
}

void
kiln_live_add_node(KilnNode *node, const KilnModule *stated, GHashTable *live)
{
    uint32_t operands = kiln_op_info(node->op)->shape_operands;
    for (uint32_t i = 0; i < node->n_operands && i < 32; i++) {
        if ((operands >> i & 1) && kiln_live_operand(node, i, stated))
            g_hash_table_add(live, node);
    }
    kiln_foreach_region (region, node)
        kiln_live_add(region, stated, live);
}

void
kiln_live_add(const KilnFunction *function, const KilnModule *stated, GHashTable *live)
{
    kiln_foreach_node (node, function)
        kiln_live_add_node(node, stated, live);
}

/* Loops and branches come after what shapes hang on: the values of inputs that decide how often one
 * runs, or which of them, are none that a program is specialised for. */
void
kiln_shape_slice_add_loops(KilnShapeSlice *slice, const KilnFunction *function)
{
    kiln_foreach_node (node, function) {
        uint32_t n = node->op == KILN_OP_loop ? 2 : node->op == KILN_OP_if ? 1 : 0;
        for (uint32_t i = 0; i < n; i++)
            mark_backwards(slice, kiln_node_operand(node, i), false);
        kiln_foreach_region (region, node)
            kiln_shape_slice_add_loops(slice, region);
    }
}

/* Results that others need to be known are walked back from, too: @wanted, by number. */
void
kiln_shape_slice_init(KilnShapeSlice *slice, const KilnCallee *callee, const KilnModule *stated,
                      const bool *wanted)
{
    const KilnFunction *function = callee->function;
    const KilnNode *results = kiln_function_return(function);
    slice->function = function;
    slice->stated = stated;
    slice->nodes = g_hash_table_new(NULL, NULL);
    slice->arguments = g_new0(bool, function->arguments->len + 1);
    kiln_shape_slice_add_shapes(slice, function);
    for (uint32_t r = 0; r < callee->n_results; r++) {
        if (wanted[callee->first_result + r])
            mark_backwards(slice, results->operands[r].value, true);
    }
    kiln_shape_slice_add_loops(slice, function);
}

void
kiln_shape_slice_clear(KilnShapeSlice *slice)
{
    g_hash_table_unref(slice->nodes);
    g_free(slice->arguments);
}

/* What shapes and branches of any function hang on, by number: whoever makes a value is looked at
 * behind those that take it. */
bool *
kiln_callees_wanted(const KilnModule *module, const GArray *callees)
{
    bool *wanted = g_new0(bool, count_values(module) + 1);
    for (guint c = callees->len; c-- > 0;) {
        const KilnCallee *callee = &g_array_index(callees, KilnCallee, c);
        KilnShapeSlice slice;
        kiln_shape_slice_init(&slice, callee, module, wanted);
        for (guint i = 0; i < callee->function->arguments->len; i++)
            wanted[kiln_callee_number(callee, i)] |= slice.arguments[i];
        kiln_shape_slice_clear(&slice);
    }
    return wanted;
}
