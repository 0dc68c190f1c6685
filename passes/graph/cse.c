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
#include "graph/op/bounds.h"
#include "graph/op/offload.h"
#include "graph/op/random.h"
#include "passes/fold/constness.h"
#include "passes/pass.h"
#include "passes/query/literal.h"

#define OPTIONS(OPTION, CHOICE) OPTION(BOOL, constants, true)
PASS_OPTIONS(cse, OPTIONS);

static const char rule[] = "merge-equal";

static bool
may_merge(const KilnNode *node, KilnMode mode)
{
    const uint32_t apart = KILN_TRAIT_STATE | KILN_TRAIT_SIDE_EFFECT | KILN_TRAIT_REGION;
    return !(kiln_op_info(node->op)->traits & apart) && node->op != KILN_OP_vendor_executable &&
           !kiln_node_draws(node) && (node->op != KILN_OP_dropout || mode == KILN_MODE_INFER);
}

/* Swapping the operands of max or sum with more than two could change which NaN or zero wins. */
static bool
commutes(const KilnNode *node)
{
    return kiln_op_has(node->op, KILN_TRAIT_COMMUTATIVE) && node->n_operands == 2 &&
           node->op != KILN_OP_max && node->op != KILN_OP_min;
}

/* A value by where it comes from, never by address: equal whatever the layout of memory. Mixed
 * well, since sums of neighbouring ids would fall on few buckets. */
static uint32_t
value_hash(const KilnValue *value)
{
    if (!value)
        return 0;
    uint32_t index = value->index;
    uint32_t hash = value->def ? value->def->id * 2 + 2 : index * 2 + 1;
    hash += value->def ? index * 2654435761u : 0;
    hash = (hash ^ hash >> 16) * 2146121005u;
    hash = (hash ^ hash >> 15) * 2221713035u;
    return hash ^ hash >> 16;
}

static uint32_t
node_hash(const KilnNode *node)
{
    const KilnOpInfo *info = kiln_op_info(node->op);
    if (node->op == KILN_OP_const)
        return kiln_constant_hash(kiln_attrs(node, const)->value);
    uint32_t hash =
        kiln_attrs_hash(info->attrs, info->n_attrs, node->attrs) * 31 + (uint32_t)node->op;
    if (commutes(node))
        return hash * 31 +
               (value_hash(node->operands[0].value) + value_hash(node->operands[1].value));
    for (uint32_t i = 0; i < node->n_operands; i++)
        hash = hash * 31 + value_hash(node->operands[i].value);
    return hash;
}

static bool
operands_equal(const KilnNode *a, const KilnNode *b)
{
    bool straight = true;
    for (uint32_t i = 0; i < a->n_operands; i++)
        straight &= a->operands[i].value == b->operands[i].value;
    if (straight || !commutes(a))
        return straight;
    return a->operands[0].value == b->operands[1].value &&
           a->operands[1].value == b->operands[0].value;
}

static bool
node_equal(const KilnNode *a, const KilnNode *b)
{
    const KilnOpInfo *info = kiln_op_info(a->op);
    if (a->op == KILN_OP_const && b->op == KILN_OP_const)
        return kiln_constant_same(kiln_attrs(a, const)->value, kiln_attrs(b, const)->value);
    if (a->op != b->op || a->n_operands != b->n_operands || a->n_results != b->n_results ||
        !operands_equal(a, b) || !kiln_attrs_equal(info->attrs, info->n_attrs, a->attrs, b->attrs))
        return FALSE;
    for (uint32_t i = 0; i < a->n_results; i++) {
        if (!kiln_type_equal(&a->results[i].type, &b->results[i].type))
            return FALSE;
    }
    return TRUE;
}

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
    return a->hash == b->hash && node_equal(a->node, b->node);
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
    if (!may_merge(node, kiln_pass_mode(sweep->context)) ||
        (node->op == KILN_OP_const && !sweep->constants))
        return NULL;
    Seen own = { node, node_hash(node) };
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
