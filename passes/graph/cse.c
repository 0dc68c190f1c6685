/* SPDX-License-Identifier: Apache-2.0 */
/* cse: of several nodes that compute the same, readers of the later ones read the first.
 *
 *      x   x              x            x                        x
 *      |   |              |            |\                       |\
 *     exp exp     =>     exp          exp if …             =>   exp if …
 *      |   |             / \           |  { exp x … }           |  { … }  reads the one outside
 *      a   b            a   b
 *
 * Equal are op, attributes, operands and result types; two operands of a commutative op in either
 * order; constants by their elements. A subgraph may read what was computed around it before its
 * node, never what another subgraph computes; one that is offloaded sees only itself, for what it
 * reads must be handed to it.
 *
 * requires nothing, preserves nothing; class E. Never merged: random and stateful ops (dropout too
 * in training mode), side effects, ops with subgraphs, and operators that Kiln does not know. Nodes
 * are listed in topological order, so that one forward sweep finds all there is; what dies is left
 * to dce. */
#include "graph/module/sweep.h"
#include "graph/op/offload.h"
#include "graph/op/random.h"
#include "passes/fold/constness.h"
#include "passes/pass.h"
#include "passes/query/equal_nodes.h"

#define OPTIONS(OPTION, CHOICE) OPTION(BOOL, constants, true)
PASS_OPTIONS(cse, OPTIONS);

static const char rule[] = "merge-equal";

/* A node in a table. Its hash is computed once: most of the time goes into reading for it. */
typedef struct {
    KilnNode *node;
    uint32_t hash;
} Seen;

static guint
seen_hash(gconstpointer data)
{
    return ((const Seen *)data)->hash;
}

static gboolean
seen_equal(gconstpointer left, gconstpointer right)
{
    const Seen *a = left, *b = right;
    return a->hash == b->hash && kiln_node_equal(a->node, b->node);
}

static bool
has_readers(const KilnNode *node)
{
    for (uint32_t i = 0; i < node->n_results; i++) {
        if (node->results[i].n_uses)
            return true;
    }
    return false;
}

typedef struct {
    KilnPassContext *context;
    KilnArena *arena; /* of the tables' entries */
    GHashTable *seen; /* Seen*: nodes that the one being visited may be replaced by */
    bool constants;   /* of `const` nodes, too */
    bool changed;
} Sweep;

/* The entry of @node where nothing seen so far equals it, so that others may be replaced by it from
 * now on; else NULL. */
static Seen *
add_new(Sweep *sweep, KilnNode *node)
{
    if (!kiln_node_is_pure(node) || (node->op == KILN_OP_const && !sweep->constants))
        return NULL;
    Seen own = { node, kiln_node_hash(node) };
    const Seen *known = g_hash_table_lookup(sweep->seen, &own);
    if (!known) {
        Seen *entry = kiln_arena_copy(sweep->arena, &own, sizeof own);
        g_hash_table_add(sweep->seen, entry);
        return entry;
    }
    KilnNode *first = known->node;
    if (!has_readers(node))
        return NULL; /* merged before, not yet removed */
    for (uint32_t i = 0; i < node->n_results; i++)
        kiln_value_replace(&node->results[i], &first->results[i]);
    kiln_pass_note(sweep->context, rule, "%s equals %s", kiln_node_label(node),
                   kiln_node_label(first));
    sweep->changed = true;
    return NULL;
}

static void sweep_function(Sweep *sweep, KilnFunction *function);

static void
sweep_regions(Sweep *sweep, const KilnNode *node)
{
    kiln_foreach_region (region, node) {
        GHashTable *around = sweep->seen;
        g_autoptr(GHashTable) own = g_hash_table_new(seen_hash, seen_equal);
        sweep->seen = node->op == KILN_OP_vendor_graph ? own : around;
        sweep_function(sweep, region);
        sweep->seen = around;
    }
}

static void
sweep_function(Sweep *sweep, KilnFunction *function)
{
    g_autoptr(GPtrArray) added = g_ptr_array_new();
    kiln_foreach_ordered (node, function) {
        Seen *entry = add_new(sweep, node);
        if (entry && function->owner)
            g_ptr_array_add(added, entry);
        if (kiln_op_has(node->op, KILN_TRAIT_REGION))
            sweep_regions(sweep, node);
    }
    for (guint i = 0; i < added->len; i++)
        g_hash_table_remove(sweep->seen, g_ptr_array_index(added, i));
}

GRAPH_PASS(cse);

gboolean
kiln_pass_cse(KilnFunction *function, KilnPassContext *context, bool *changed, GError **error)
{
    (void)error;
    *changed = false;
    if (function->owner)
        return TRUE; /* swept with the function around it */
    g_autoptr(GHashTable) seen = g_hash_table_new(seen_hash, seen_equal);
    g_autoptr(KilnArena) arena = kiln_arena_new();
    const Options *options = kiln_pass_options(context);
    Sweep sweep = { context, arena, seen, options->constants, false };
    sweep_function(&sweep, function);
    *changed = sweep.changed;
    return TRUE;
}
