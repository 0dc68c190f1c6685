/* SPDX-License-Identifier: Apache-2.0 */
/* The table of a function's nodes in list order. Walking the list reads every node, of which a big
 * function has more than caches hold; so the table is patched: what was unlinked leaves a hole,
 * what was linked waits for its place, and the next who asks gets both merged in one sweep over the
 * table alone. */
#include "graph/order.h"

#include <string.h>

enum {
    WAITING = UINT32_MAX,   /* linked, not in the table yet */
    IN_RUN = UINT32_MAX - 1 /* the same, while tables are merged */
};

/* Nodes linked side by side, and the entry that they stand before. */
typedef struct {
    uint32_t before;
    KilnNode *first;
} Run;

void
kiln_order_clear(KilnNodeOrder *order)
{
    g_free(order->entries);
    g_free(order->ops);
    g_free(order->spare);
    g_free(order->spare_ops);
    g_free(order->at);
    g_clear_pointer(&order->waiting, g_ptr_array_unref);
    *order = (KilnNodeOrder){ 0 };
}

static void
place(KilnNodeOrder *order, uint32_t id, uint32_t at)
{
    if (id >= order->at_room) {
        order->at_room = id + 1 + id / 2;
        order->at = g_renew(uint32_t, order->at, order->at_room);
    }
    order->at[id] = at;
}

void
kiln_order_link(KilnNode *node)
{
    KilnNodeOrder *order = &node->function->order;
    if (!order->waiting)
        return; /* nobody asked yet */
    order->valid = false;
    place(order, node->id, WAITING);
    g_ptr_array_add(order->waiting, node);
}

void
kiln_order_unlink(KilnNode *node)
{
    KilnNodeOrder *order = &node->function->order;
    if (!order->waiting)
        return;
    order->valid = false;
    uint32_t at = order->at[node->id];
    if (at != WAITING)
        order->entries[at].node = NULL;
    order->at[node->id] = WAITING;
}

static uint32_t
op_of_def(const KilnValue *value, uint32_t i)
{
    uint32_t op = value && value->def ? value->def->op : KILN_ORDER_NO_OP;
    return op << i * KILN_ORDER_OP_BITS;
}

void
kiln_order_relink(const KilnUse *use)
{
    KilnNodeOrder *order = &use->user->function->order;
    if (!order->waiting || use->index >= KILN_ORDER_DEFS || use->user->id >= order->at_room)
        return;
    uint32_t at = order->at[use->user->id];
    if (at >= order->n || order->entries[at].node != use->user)
        return;
    uint32_t *defs = &order->entries[at].defs;
    *defs &= ~((uint32_t)KILN_ORDER_NO_OP << use->index * KILN_ORDER_OP_BITS);
    *defs |= op_of_def(use->value, use->index);
}

/* --- merging --- */

static bool
is_waiting(const KilnNodeOrder *order, const KilnNode *node)
{
    return order->at[node->id] == WAITING && kiln_node_is_linked(node);
}

static int
compare_runs(const void *a, const void *b)
{
    const Run *one = a, *other = b;
    return one->before < other->before ? -1 : one->before > other->before;
}

/* What waits, in runs by where it belongs. */
static GArray *
take_runs(KilnNodeOrder *order)
{
    GArray *runs = g_array_new(FALSE, FALSE, sizeof(Run));
    for (guint i = 0; i < order->waiting->len; i++) {
        KilnNode *node = g_ptr_array_index(order->waiting, i);
        if (!is_waiting(order, node))
            continue;
        while (node->previous && is_waiting(order, node->previous))
            node = node->previous;
        Run run = { order->n, node };
        for (; node && is_waiting(order, node); node = node->next)
            order->at[node->id] = IN_RUN;
        if (node)
            run.before = order->at[node->id];
        g_array_append_val(runs, run);
    }
    g_ptr_array_set_size(order->waiting, 0);
    g_array_sort(runs, compare_runs);
    return runs;
}

static void
append(KilnNodeOrder *order, KilnOrderEntry entry, KilnOp op)
{
    place(order, entry.id, order->n);
    order->ops[order->n] = op;
    order->entries[order->n++] = entry;
    order->n_of_op[op]++;
}

static KilnOrderEntry
entry_of(KilnNode *node)
{
    KilnOrderEntry entry = { .node = node, .id = node->id };
    for (uint32_t i = 0; i < KILN_ORDER_DEFS; i++)
        entry.defs |= op_of_def(kiln_node_operand(node, i), i);
    return entry;
}

/* An empty table with room for @n; the old one is spare until the next time. */
static void
start_anew(KilnNodeOrder *order, uint32_t n)
{
    KilnOrderEntry *entries = order->entries;
    KilnOp *ops = order->ops;
    order->entries = order->spare;
    order->spare = entries;
    order->ops = order->spare_ops;
    order->spare_ops = ops;
    if (order->room < n || !order->entries) {
        uint32_t room = n + n / 4 + 16;
        order->entries = g_renew(KilnOrderEntry, order->entries, room);
        order->spare = g_renew(KilnOrderEntry, order->spare, room);
        order->ops = g_renew(KilnOp, order->ops, room);
        order->spare_ops = g_renew(KilnOp, order->spare_ops, room);
        order->room = room;
    }
    order->n = 0;
    memset(order->n_of_op, 0, sizeof order->n_of_op);
}

static void
merge(KilnNodeOrder *order, uint32_t n_nodes)
{
    g_autoptr(GArray) runs = take_runs(order);
    uint32_t n = order->n;
    start_anew(order, MAX(n_nodes, n));
    guint r = 0;
    for (uint32_t i = 0; i <= n; i++) {
        for (; r < runs->len && g_array_index(runs, Run, r).before == i; r++) {
            KilnNode *node = g_array_index(runs, Run, r).first;
            for (; node && order->at[node->id] == IN_RUN; node = node->next)
                append(order, entry_of(node), node->op);
        }
        if (i < n && order->spare[i].node)
            append(order, order->spare[i], order->spare_ops[i]);
    }
}

static void
walk(KilnNodeOrder *order, const KilnFunction *function)
{
    if (!order->waiting)
        order->waiting = g_ptr_array_new();
    g_ptr_array_set_size(order->waiting, 0);
    start_anew(order, function->n_nodes);
    place(order, function->next_id, WAITING);
    for (uint32_t id = 0; id < function->next_id; id++)
        order->at[id] = WAITING;
    kiln_foreach_node (node, function)
        append(order, entry_of(node), node->op);
}

const KilnNodeOrder *
kiln_function_order(KilnFunction *function)
{
    KilnNodeOrder *order = &function->order;
    if (order->valid)
        return order;
    if (order->waiting)
        merge(order, function->n_nodes);
    else
        walk(order, function);
    order->valid = true;
    return order;
}

void
kiln_function_renumber(KilnFunction *function)
{
    function->next_id = 0;
    kiln_foreach_node (node, function)
        node->id = function->next_id++;
    kiln_order_clear(&function->order); /* it goes by ids */
}
