/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes that remain, side by side again. Rewriting leaves nodes that were removed between those
 * that stay and puts new ones at the end of the arena, so that a walk over a function jumps about
 * in more memory than caches hold. Here nodes, results and operands move to new arenas in list
 * order, numbered from 0 again, so that tables by id are walked in order too; what is made next
 * lies in the memory of the old ones. What moved leaves its new place behind: a node in its field
 * `function`, a result in `def`, a use in `user`. */
#include "graph/module/changes.h"
#include "graph/module/sweep.h"
#include "graph/node.h"

enum {
    SMALL = 4096 /* nodes: what caches hold anyway */
};

static KilnNode *
moved(const KilnNode *old)
{
    return (KilnNode *)old->function;
}

static KilnValue *
moved_value(KilnValue *old)
{
    return old && old->def ? (KilnValue *)old->def : old;
}

static KilnUse *
moved_use(const KilnUse *old)
{
    return old ? (KilnUse *)old->user : NULL;
}

/* A copy of @old that still points to old values and uses. */
static KilnNode *
move_node(KilnModule *module, KilnNode *old)
{
    KilnNode *node = kiln_arena_copy(module->nodes, old, sizeof *old);
    node->results =
        kiln_arena_copy(module->values, old->results, old->n_results * sizeof *old->results);
    node->operands =
        kiln_arena_copy(module->uses, old->operands, old->n_operands * sizeof *old->operands);
    for (uint32_t i = 0; i < old->n_results; i++)
        old->results[i].def = (KilnNode *)&node->results[i];
    for (uint32_t i = 0; i < old->n_operands; i++)
        old->operands[i].user = (KilnNode *)&node->operands[i];
    return node;
}

static void
move_nodes(KilnFunction *function)
{
    KilnNode *previous = NULL;
    kiln_foreach_ordered (old, function) {
        KilnNode *node = move_node(function->module, old);
        node->previous = previous;
        if (previous)
            previous->next = node;
        else
            function->first = node;
        previous = node;
        old->function = (KilnFunction *)node;
    }
    function->last = previous;
}

static void
rejoin_value(KilnValue *value)
{
    value->first_use = moved_use(value->first_use);
    value->last_use = moved_use(value->last_use);
}

static void
rejoin_node(KilnNode *node)
{
    for (uint32_t i = 0; i < node->n_results; i++) {
        node->results[i].def = node;
        rejoin_value(&node->results[i]);
    }
    for (uint32_t i = 0; i < node->n_operands; i++) {
        KilnUse *use = &node->operands[i];
        use->value = moved_value(use->value);
        use->user = node;
        use->previous = moved_use(use->previous);
        use->next = moved_use(use->next);
    }
}

static void
rejoin_tables(KilnFunction *function)
{
    /* Values of entries alone change: the order of the walk cannot be seen. */
    GHashTableIter iter;
    gpointer value;
    g_hash_table_iter_init(&iter, function->names);
    while (g_hash_table_iter_next(&iter, NULL, &value))
        g_hash_table_iter_replace(&iter, moved_value(value));
    KilnNodeOrder *order = &function->order;
    for (uint32_t i = 0; i < order->n; i++) {
        KilnOrderEntry *entry = &order->entries[i];
        entry->node = moved(entry->node);
        entry->node->id = entry->id = order->at[i] = i;
    }
    function->next_id = order->n;
    for (guint i = 0; function->doubtful && i < function->doubtful->len; i++)
        g_ptr_array_index(function->doubtful, i) = moved(g_ptr_array_index(function->doubtful, i));
}

/* Old uses that rejoin_node() asks for their places. */
static void
prefetch_neighbours(const KilnNode *node)
{
    for (uint32_t i = 0; i < node->n_operands && i < KILN_AHEAD_OPERANDS; i++) {
        __builtin_prefetch(node->operands[i].previous);
        __builtin_prefetch(node->operands[i].next);
    }
    if (node->n_results) {
        __builtin_prefetch(node->results[0].first_use);
        __builtin_prefetch(node->results[0].last_use);
    }
}

/* Of what died there is no doubt any more. */
static void
drop_removed(GPtrArray *doubtful)
{
    guint n = 0;
    for (guint i = 0; doubtful && i < doubtful->len; i++) {
        KilnNode *node = g_ptr_array_index(doubtful, i);
        if (kiln_node_is_linked(node))
            g_ptr_array_index(doubtful, n++) = node;
    }
    if (doubtful)
        g_ptr_array_set_size(doubtful, (int)n);
}

static void
compact_function(KilnFunction *function)
{
    const KilnChanges *changes = &function->changes;
    bool clean = changes->known && changes->nodes->len == 0 && changes->values->len == 0;
    kiln_changes_forget(function); /* notes go by address */
    if (clean)
        kiln_changes_begin(function);
    drop_removed(function->doubtful);
    move_nodes(function);
    for (guint i = 0; i < function->arguments->len; i++)
        rejoin_value(&kiln_function_argument(function, i)->value);
    rejoin_tables(function);
    const KilnNodeOrder *order = &function->order;
    for (uint32_t i = 0; i < order->n; i++) {
        if (order->n - i > KILN_AHEAD_DEFS)
            prefetch_neighbours(order->entries[i + KILN_AHEAD_DEFS].node);
        rejoin_node(kiln_order_visit(order, i, 1));
    }
}

static KilnArena *
renew(KilnArena *old, KilnArena *arena)
{
    kiln_arena_take_spare(arena, old);
    return arena;
}

/* Readers of a value may be in subgraphs: all functions would have to move before any is rejoined.
 * Models that have subgraphs are small. */
bool
kiln_module_compact(KilnModule *module)
{
    if (module->made_nodes < SMALL || module->made_nodes / 2 < module->n_nodes ||
        module->all_functions->len > module->functions->len)
        return false;
    KilnArena *nodes = module->nodes, *values = module->values, *uses = module->uses;
    module->nodes = renew(nodes, kiln_arena_new_by_lines());
    module->values = renew(values, kiln_arena_new_by_lines());
    module->uses = renew(uses, kiln_arena_new());
    for (guint i = 0; i < module->functions->len; i++)
        compact_function(g_ptr_array_index(module->functions, i));
    kiln_arena_replace(module->nodes, nodes);
    kiln_arena_replace(module->values, values);
    kiln_arena_replace(module->uses, uses);
    module->made_nodes = module->n_nodes;
    return true;
}

void
kiln_module_trim(KilnModule *module)
{
    kiln_arena_trim(module->nodes);
    kiln_arena_trim(module->values);
    kiln_arena_trim(module->uses);
}
