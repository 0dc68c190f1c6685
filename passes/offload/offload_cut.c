/* SPDX-License-Identifier: Apache-2.0 */
/* The choice is a minimum cut. Nodes on the side of the source are the vendor's, on that of the
 * sink Kiln's; the edges that go from the first to the second cost what is then to be paid:
 *
 *     source ──own──▶ node ──vendor──▶ sink          who computes it
 *     product ──what it costs alone──▶ tail          the tail of a vendor's product by itself
 *     tail ──∞──▶ product                            the vendor takes no tail without its product
 *     def ──reorder──▶ (value) ──∞──▶ reader …       out of the vendor's layout, once for all
 *     reader … ──∞──▶ (value) ──reorder──▶ def       and into it
 *
 * Flow is found by Dinic's algorithm. After PHASES phases, of which models need a few, what is
 * reached by then is taken: no edge without limit is cut by that either. Every layout of the
 * vendor's is tried. */
#include "passes/offload/offload_cost.h"

#include "graph/node.h"

enum {
    SOURCE,
    SINK,
    N_ENDS,
    PHASES = 64,
};
static const int64_t infinite = INT64_MAX / 8;
/* Picoseconds, 17 s: whatever sizes a model states, sums over it stay finite. */
static const int64_t longest = INT64_C(1) << 44;

typedef struct {
    uint32_t to, next; /* the next edge out of the same vertex; 0: none. Edge i ^ 1 leads back */
    int64_t room;
} Edge;

typedef struct {
    GArray *edges;   /* Edge, from 2 on */
    GArray *first;   /* uint32_t per vertex */
    uint32_t *level; /* distance from the source, 0: not reached */
    uint32_t *next;  /* the edge to go on with */
    uint32_t *path;  /* edges */
    int64_t sent;
} Flow;

static uint32_t
add_vertex(Flow *flow)
{
    uint32_t none = 0;
    g_array_append_val(flow->first, none);
    return flow->first->len - 1;
}

static void
add_edge(Flow *flow, uint32_t from, uint32_t to, int64_t room)
{
    uint32_t *first = (uint32_t *)(void *)flow->first->data;
    Edge there = { to, first[from], room }, back = { from, first[to], 0 };
    first[from] = flow->edges->len;
    g_array_append_val(flow->edges, there);
    first[to] = flow->edges->len;
    g_array_append_val(flow->edges, back);
}

static Edge *
edge_at(const Flow *flow, uint32_t i)
{
    return &g_array_index(flow->edges, Edge, i);
}

/* Distances over edges with room. True where the sink is reached. */
static bool
find_levels(Flow *flow, uint32_t *queue)
{
    const uint32_t *first = (const uint32_t *)(const void *)flow->first->data;
    for (guint v = 0; v < flow->first->len; v++) {
        flow->level[v] = 0;
        flow->next[v] = first[v];
    }
    uint32_t begin = 0, end = 0;
    flow->level[SOURCE] = 1;
    queue[end++] = SOURCE;
    while (begin < end) {
        uint32_t v = queue[begin++];
        for (uint32_t e = first[v]; e; e = edge_at(flow, e)->next) {
            uint32_t to = edge_at(flow, e)->to;
            if (edge_at(flow, e)->room > 0 && !flow->level[to]) {
                flow->level[to] = flow->level[v] + 1;
                queue[end++] = to;
            }
        }
    }
    return flow->level[SINK] != 0;
}

/* Sends what the @n edges of the path have room for. Where to go on from: behind the first that is
 * full now. */
static uint32_t
send(Flow *flow, uint32_t n)
{
    int64_t room = infinite;
    for (uint32_t i = 0; i < n; i++)
        room = MIN(room, edge_at(flow, flow->path[i])->room);
    uint32_t full = n;
    flow->sent += room;
    for (uint32_t i = n; i-- > 0;) {
        edge_at(flow, flow->path[i])->room -= room;
        edge_at(flow, flow->path[i] ^ 1)->room += room;
        if (edge_at(flow, flow->path[i])->room == 0)
            full = i;
    }
    return full;
}

/* Paths from level to level until there is none: a walk with its way back in flow->path. */
static void
send_all(Flow *flow)
{
    uint32_t n = 0, v = SOURCE;
    for (;;) {
        if (v == SINK) {
            n = send(flow, n);
            v = edge_at(flow, flow->path[n] ^ 1)->to;
            continue;
        }
        uint32_t e = flow->next[v];
        while (e && !(edge_at(flow, e)->room > 0 &&
                      flow->level[edge_at(flow, e)->to] == flow->level[v] + 1))
            e = edge_at(flow, e)->next;
        flow->next[v] = e;
        if (e) {
            flow->path[n++] = e;
            v = edge_at(flow, e)->to;
        } else if (n > 0) {
            flow->level[v] = 0; /* no way on from here */
            v = edge_at(flow, flow->path[--n] ^ 1)->to;
        } else {
            return;
        }
    }
}

/* --- the function as a flow --- */

typedef struct {
    const KilnFunction *function;
    const KilnVendorRole *roles;
    const KilnOffloadCosts *costs;
    const bool *layouted;
    const KilnNode *const *tails; /* by node id: the product that each is a tail of */
    uint32_t layout;
    uint32_t *vertices; /* per node id; 0: not the vendor's in any case */
    Flow flow;
} Cut;

static int64_t
picoseconds(double us)
{
    return us > 0 ? (int64_t)MIN(us * 1e6, (double)longest) : 0;
}

static uint32_t
vertex_of(const Cut *cut, const KilnNode *node)
{
    return node && node->function == cut->function ? cut->vertices[node->id] : 0;
}

/* The latest node among those that @node reads, which decides on whose side it stands. */
static const KilnNode *
leader_of(const Cut *cut, const KilnNode *node)
{
    const KilnNode *leader = NULL;
    for (uint32_t i = 0; i < node->n_operands; i++) {
        const KilnValue *value = node->operands[i].value;
        const KilnNode *def = value ? value->def : NULL;
        if (vertex_of(cut, def) && (!leader || vertex_of(cut, def) > vertex_of(cut, leader)))
            leader = def;
    }
    return leader;
}

static void
add_node(Cut *cut, const KilnNode *node)
{
    Flow *flow = &cut->flow;
    uint32_t v = cut->vertices[node->id];
    const KilnNode *product = cut->tails[node->id];
    bool fused = vertex_of(cut, product) != 0;
    double own = kiln_own_us(cut->costs, node, product != NULL);
    add_edge(flow, SOURCE, v, picoseconds(own));
    add_edge(flow, v, SINK, picoseconds(cut->costs->vendor->node_us(node, cut->layout)));
    if (fused)
        add_edge(flow, vertex_of(cut, product), v,
                 picoseconds(kiln_own_us(cut->costs, node, false) - own));
    if (cut->roles[node->id] == KILN_VENDOR_ANCHOR)
        return;
    const KilnNode *leader = leader_of(cut, node);
    add_edge(flow, v, leader ? vertex_of(cut, leader) : SINK, infinite);
}

/* What it costs to bring @value over. @def: the vertex of what computes it; SINK where that is
 * never the vendor's. */
static void
add_value(Cut *cut, const KilnValue *value, uint32_t def)
{
    Flow *flow = &cut->flow;
    int64_t us = picoseconds(cut->costs->vendor->reorder_us(&value->type, cut->layout));
    uint32_t in = 0, out = 0;
    bool leaves = false;
    kiln_foreach_use (use, value) {
        uint32_t reader = vertex_of(cut, use->user);
        if (reader && cut->layouted[use->user->id]) {
            in = in ? in : add_vertex(flow);
            add_edge(flow, reader, in, infinite);
        }
        if (def == SINK)
            continue;
        if (!reader || !cut->layouted[use->user->id]) {
            leaves = true;
        } else {
            out = out ? out : add_vertex(flow);
            add_edge(flow, out, reader, infinite);
        }
    }
    if (in)
        add_edge(flow, in, def, us);
    if (def != SINK && leaves)
        add_edge(flow, def, SINK, us);
    else if (out)
        add_edge(flow, def, out, us);
}

/* Values around the function. Nodes read them one after the other, and each counts once. */
static void
add_captured(Cut *cut)
{
    g_autoptr(GHashTable) seen = g_hash_table_new(NULL, NULL);
    kiln_foreach_node (node, cut->function) {
        for (uint32_t i = 0; i < node->n_operands; i++) {
            KilnValue *value = node->operands[i].value;
            if (value && !kiln_value_constant(value) &&
                kiln_value_function(value) != cut->function && g_hash_table_add(seen, value))
                add_value(cut, value, SINK);
        }
    }
}

static void
add_values(Cut *cut)
{
    if (cut->function->owner)
        add_captured(cut);
    for (guint i = 0; i < cut->function->arguments->len; i++) {
        KilnArgument *argument = g_ptr_array_index(cut->function->arguments, i);
        if (argument->constness != KILN_CONSTNESS_COMPILE)
            add_value(cut, &argument->value, SINK);
    }
    kiln_foreach_node (node, cut->function) {
        uint32_t def = cut->layouted[node->id] ? cut->vertices[node->id] : SINK;
        for (uint32_t r = 0; node->op != KILN_OP_const && r < node->n_results; r++)
            add_value(cut, &node->results[r], def);
    }
}

/* What the cut costs, and who is the vendor's by it. */
static int64_t
solve(Cut *cut, bool *vendors)
{
    Flow *flow = &cut->flow;
    guint n = flow->first->len;
    flow->level = g_new(uint32_t, n);
    flow->next = g_new(uint32_t, n);
    flow->path = g_new(uint32_t, n);
    g_autofree uint32_t *queue = g_new(uint32_t, n);
    bool more = find_levels(flow, queue);
    for (int phase = 0; more && phase < PHASES; phase++) {
        send_all(flow);
        more = find_levels(flow, queue);
    }
    kiln_foreach_node (node, cut->function)
        vendors[node->id] = cut->vertices[node->id] && flow->level[cut->vertices[node->id]];
    g_free(flow->level);
    g_free(flow->next);
    g_free(flow->path);
    return more ? infinite : flow->sent;
}

static int64_t
cut_in_layout(const Cut *like, uint32_t layout, bool *vendors)
{
    Cut cut = *like;
    Edge unused[2] = { { 0, 0, 0 }, { 0, 0, 0 } };
    cut.layout = layout;
    cut.flow.edges = g_array_new(FALSE, FALSE, sizeof(Edge));
    cut.flow.first = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    g_array_append_vals(cut.flow.edges, unused, 2);
    for (int i = 0; i < N_ENDS; i++)
        add_vertex(&cut.flow);
    kiln_foreach_node (node, cut.function) {
        if (cut.vertices[node->id])
            add_vertex(&cut.flow);
    }
    kiln_foreach_node (node, cut.function) {
        if (cut.vertices[node->id])
            add_node(&cut, node);
    }
    add_values(&cut);
    int64_t us = solve(&cut, vendors);
    g_array_unref(cut.flow.edges);
    g_array_unref(cut.flow.first);
    return us;
}

bool *
kiln_offload_cut(const KilnFunction *function, const KilnVendorRole *roles,
                 const KilnOffloadCosts *costs)
{
    gsize n = (gsize)function->next_id + 1;
    g_autofree uint32_t *vertices = g_new0(uint32_t, n);
    g_autofree bool *layouted = g_new0(bool, n);
    g_autofree const KilnNode **tails = kiln_find_tails(function);
    uint32_t next = N_ENDS;
    kiln_foreach_node (node, function) {
        if (roles[node->id] != KILN_VENDOR_NONE)
            vertices[node->id] = next++;
        layouted[node->id] = kiln_is_layouted(costs->vendor, node, roles[node->id], layouted);
    }
    Cut cut = { .function = function,
                .roles = roles,
                .costs = costs,
                .layouted = layouted,
                .tails = tails,
                .vertices = vertices };
    bool *best = g_new0(bool, n);
    int64_t least = INT64_MAX;
    for (uint32_t layout = 0; layout < costs->vendor->n_layouts; layout++) {
        bool *vendors = g_new0(bool, n);
        int64_t us = cut_in_layout(&cut, layout, vendors);
        bool better = us < least;
        least = MIN(least, us);
        g_free(better ? best : vendors);
        best = better ? vendors : best;
    }
    return best;
}
