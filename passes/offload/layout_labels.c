/* SPDX-License-Identifier: Apache-2.0 */
#include "passes/offload/layout_labels.h"

#include "graph/module/layout.h"
#include "graph/module/outline.h"
#include "graph/node.h"
#include "graph/op/concat.h"
#include "graph/op/offload.h"
#include "graph/op/slice.h"
#include "ir/vendor.h"
#include "passes/offload/offload_cost.h"

/* What a region does with its edges in each layout. */
typedef struct {
    double us;
    bool *operands, *results; /* lie in it */
} Edges;

struct KilnLayouts {
    const KilnFunction *function;
    const KilnTarget *target;
    const KilnVendor *vendor; /* the target's */
    KilnCarriesFn carries;
    void *data;
    int *label;        /* by node id */
    Edges **edges;     /* by node id: per layout of the vendor; NULL: no region */
    uint32_t *carried; /* by node id: bit per layout that the node carries */
    uint32_t n_ids;
    uint32_t *first_value; /* by node id: the row of its first result; arguments come first */
    GHashTable *captured;  /* values around the function → their rows, which come last */
    uint32_t *readers;     /* a row per value: how many want it in each way; see tally() */
    uint32_t n_ways;       /* plain and the vendor's */
};

/* --- nodes --- */

static bool
lies_plain(const KilnNode *node)
{
    for (uint32_t i = 0; i < node->n_operands; i++) {
        const KilnValue *value = node->operands[i].value;
        if (value && (value->type.layout || !kiln_type_is_static(&value->type)))
            return false;
    }
    for (uint32_t r = 0; r < node->n_results; r++) {
        if (node->results[r].type.layout || !kiln_type_is_static(&node->results[r].type))
            return false;
    }
    return true;
}

/* By a node of a subgraph, which is not asked for a layout. */
static bool
is_captured(const KilnValue *value)
{
    kiln_foreach_use (use, value) {
        if (use->user->function != value->def->function)
            return true;
    }
    return false;
}

static Edges *
edges_new(const KilnLayouts *layouts, const KilnNode *node)
{
    const KilnVendor *vendor = layouts->vendor;
    const KilnFunction *body = kiln_attrs(node, vendor_graph)->body;
    const KilnNode *results = kiln_function_return(body);
    Edges *edges = g_new0(Edges, vendor->n_layouts);
    for (uint32_t k = 0; k < vendor->n_layouts; k++) {
        edges[k].us = vendor->layout_us(body, k);
        edges[k].operands = g_new0(bool, node->n_operands + 1);
        edges[k].results = g_new0(bool, node->n_results + 1);
        for (uint32_t i = 0; i < node->n_operands; i++) {
            const KilnValue *inner = &kiln_function_argument(body, i)->value;
            edges[k].operands[i] = !kiln_value_constant(node->operands[i].value) &&
                                   vendor->layout_tag(k, inner->type.rank) &&
                                   vendor->lies_in(body, inner, k);
        }
        for (uint32_t r = 0; r < node->n_results; r++) {
            const KilnValue *inner = kiln_node_operand(results, r);
            edges[k].results[r] = !is_captured(&node->results[r]) &&
                                  vendor->layout_tag(k, inner->type.rank) &&
                                  vendor->lies_in(body, inner, k);
        }
    }
    return edges;
}

static uint32_t
find_carried(const KilnLayouts *layouts, const KilnNode *node)
{
    uint32_t carried = 0;
    if (!node->n_results || kiln_op_has(node->op, KILN_TRAIT_REGION))
        return 0;
    for (uint32_t r = 0; r < node->n_results; r++) {
        if (is_captured(&node->results[r]))
            return 0;
    }
    for (uint32_t k = 0; k < layouts->vendor->n_layouts; k++) {
        KilnType laid = node->results[0].type;
        laid.layout = layouts->vendor->layout_tag(k, laid.rank);
        if (laid.layout && layouts->carries(node, &laid, layouts->data))
            carried |= 1u << k;
    }
    return carried;
}

static int
fastest(const KilnLayouts *layouts, const Edges *edges)
{
    int best = 0;
    for (uint32_t k = 1; k < layouts->vendor->n_layouts; k++) {
        if (edges[k].us < edges[best].us)
            best = (int)k;
    }
    return best;
}

static void count_readers(KilnLayouts *layouts);

KilnLayouts *
kiln_layouts_new(const KilnFunction *function, const KilnTarget *target, KilnCarriesFn carries,
                 void *data)
{
    KilnLayouts *layouts = g_new0(KilnLayouts, 1);
    *layouts = (KilnLayouts){ .function = function,
                              .target = target,
                              .vendor = target->vendor,
                              .carries = carries,
                              .data = data,
                              .n_ids = function->next_id };
    layouts->label = g_new0(int, (gsize)layouts->n_ids + 1);
    layouts->edges = g_new0(Edges *, (gsize)layouts->n_ids + 1);
    layouts->carried = g_new0(uint32_t, (gsize)layouts->n_ids + 1);
    kiln_foreach_node (node, function) {
        layouts->label[node->id] = KILN_LABEL_KEPT;
        if (!lies_plain(node))
            continue;
        if (node->op == KILN_OP_vendor_graph) {
            if (!kiln_region_is_closed(node))
                continue;
            layouts->edges[node->id] = edges_new(layouts, node);
            layouts->label[node->id] = fastest(layouts, layouts->edges[node->id]);
        } else {
            layouts->carried[node->id] = find_carried(layouts, node);
        }
    }
    count_readers(layouts);
    return layouts;
}

void
kiln_layouts_free(KilnLayouts *layouts)
{
    for (uint32_t id = 0; id < layouts->n_ids; id++) {
        for (uint32_t k = 0; layouts->edges[id] && k < layouts->vendor->n_layouts; k++) {
            g_free(layouts->edges[id][k].operands);
            g_free(layouts->edges[id][k].results);
        }
        g_free(layouts->edges[id]);
    }
    g_free(layouts->label);
    g_free(layouts->edges);
    g_free(layouts->carried);
    g_free(layouts->first_value);
    g_hash_table_unref(layouts->captured);
    g_free(layouts->readers);
    g_free(layouts);
}

bool
kiln_layouts_is_region(const KilnLayouts *layouts, const KilnNode *node)
{
    return node->function == layouts->function && layouts->edges[node->id];
}

int
kiln_layouts_label(const KilnLayouts *layouts, const KilnNode *node)
{
    return node->function == layouts->function ? layouts->label[node->id] : KILN_LABEL_KEPT;
}

bool
kiln_layouts_may_be(const KilnLayouts *layouts, const KilnNode *node, int label)
{
    if (label == KILN_LABEL_KEPT)
        return !layouts->edges[node->id];
    return layouts->edges[node->id] || layouts->carried[node->id] >> label & 1;
}

/* --- values --- */

const char *
kiln_layouts_wanted(const KilnLayouts *layouts, const KilnNode *node, uint32_t i)
{
    const KilnValue *value = node->operands[i].value;
    int label = kiln_layouts_label(layouts, node);
    if (label == KILN_LABEL_KEPT)
        return value->type.layout;
    bool laid = layouts->edges[node->id] ? layouts->edges[node->id][label].operands[i]
                                         : kiln_layout_follows(node, i, &node->results[0].type);
    return laid ? layouts->vendor->layout_tag((uint32_t)label, value->type.rank) : NULL;
}

/* As the definition of @value gives it, if a region does not reorder it on the way out. */
static const char *
given(const KilnLayouts *layouts, const KilnValue *value)
{
    const KilnNode *def = value->def;
    int label = def ? kiln_layouts_label(layouts, def) : KILN_LABEL_KEPT;
    if (label == KILN_LABEL_KEPT)
        return value->type.layout;
    bool laid = !layouts->edges[def->id] || layouts->edges[def->id][label].results[value->index];
    return laid ? layouts->vendor->layout_tag((uint32_t)label, value->type.rank) : NULL;
}

/* --- readers --- */

/* Readers of @value by the way in which they want it, first those that are no regions, then those
 * that are. A value may have as many readers as there are nodes: nobody goes over them again. */
static uint32_t *
tally(const KilnLayouts *layouts, const KilnValue *value, bool regions)
{
    uint32_t row;
    if (kiln_value_function(value) != layouts->function)
        row = GPOINTER_TO_UINT(g_hash_table_lookup(layouts->captured, value));
    else
        row = value->index + (value->def ? layouts->first_value[value->def->id] : 0);
    return layouts->readers + (2 * (gsize)row + regions) * layouts->n_ways;
}

static uint32_t
way_of(const KilnLayouts *layouts, const char *tag, int rank)
{
    for (uint32_t k = 0; tag && k < layouts->vendor->n_layouts; k++) {
        if (g_strcmp0(layouts->vendor->layout_tag(k, rank), tag) == 0)
            return k + 1;
    }
    return 0;
}

/* Operand @i of @node, as its label says now: -1 takes back what 1 counted. */
static void
count_reader(const KilnLayouts *layouts, const KilnNode *node, uint32_t i, int by)
{
    const KilnValue *value = node->operands[i].value;
    uint32_t *readers = tally(layouts, value, kiln_layouts_is_region(layouts, node));
    readers[way_of(layouts, kiln_layouts_wanted(layouts, node, i), value->type.rank)] +=
        (uint32_t)by;
}

static void
count_uses(const KilnLayouts *layouts, const KilnValue *value)
{
    kiln_foreach_use (use, value)
        count_reader(layouts, use->user, use->index, 1);
}

/* Gives rows from @n on to values around the function. How many rows there are then. */
static gsize
add_captured(KilnLayouts *layouts, gsize n)
{
    layouts->captured = g_hash_table_new(NULL, NULL);
    kiln_foreach_node (node, layouts->function) {
        for (uint32_t i = 0; i < node->n_operands; i++) {
            KilnValue *value = node->operands[i].value;
            if (value && kiln_value_function(value) != layouts->function &&
                !g_hash_table_contains(layouts->captured, value))
                g_hash_table_insert(layouts->captured, value, GUINT_TO_POINTER(n++));
        }
    }
    return n;
}

static void
count_readers(KilnLayouts *layouts)
{
    const KilnFunction *function = layouts->function;
    gsize n = function->arguments->len;
    layouts->n_ways = layouts->vendor->n_layouts + 1;
    layouts->first_value = g_new0(uint32_t, (gsize)layouts->n_ids + 1);
    kiln_foreach_node (node, function) {
        layouts->first_value[node->id] = (uint32_t)n;
        n += node->n_results;
    }
    n = add_captured(layouts, n);
    layouts->readers = g_new0(uint32_t, 2 * (n + 1) * layouts->n_ways);
    for (guint i = 0; i < function->arguments->len; i++)
        count_uses(layouts, &kiln_function_argument(function, i)->value);
    kiln_foreach_node (node, function) {
        for (uint32_t r = 0; r < node->n_results; r++)
            count_uses(layouts, &node->results[r]);
    }
    GHashTableIter iter;
    gpointer value;
    g_hash_table_iter_init(&iter, layouts->captured);
    while (g_hash_table_iter_next(&iter, &value, NULL)) /* sums, in whatever order */
        count_uses(layouts, value);
}

static void
set_label(KilnLayouts *layouts, const KilnNode *node, int label)
{
    for (uint32_t i = 0; i < node->n_operands; i++) {
        if (node->operands[i].value)
            count_reader(layouts, node, i, -1);
    }
    layouts->label[node->id] = label;
    for (uint32_t i = 0; i < node->n_operands; i++) {
        if (node->operands[i].value)
            count_reader(layouts, node, i, 1);
    }
}

/* Reorders between @value, lying as @held, and its readers: one in each region, and one for all
 * others that want it in one way. */
static uint32_t
count_reorders(const KilnLayouts *layouts, const KilnValue *value, const char *held)
{
    const uint32_t *others = tally(layouts, value, false), *regions = tally(layouts, value, true);
    uint32_t n = 0, as_held = way_of(layouts, held, value->type.rank);
    for (uint32_t way = 0; way < layouts->n_ways; way++)
        n += way == as_held ? 0 : regions[way] + (others[way] > 0);
    return n;
}

const char *
kiln_layouts_held(const KilnLayouts *layouts, const KilnValue *value)
{
    const char *as_given = given(layouts, value);
    if (!as_given || !value->def || !kiln_layouts_is_region(layouts, value->def))
        return as_given;
    uint32_t plain = 1 + count_reorders(layouts, value, NULL);
    return count_reorders(layouts, value, as_given) < plain ? as_given : NULL;
}

/* --- costs --- */

static double
value_us(const KilnLayouts *layouts, const KilnValue *value)
{
    /* A constant's is folded; in a layout already it is so for all who touch it. */
    if (kiln_value_constant(value) || value->type.layout)
        return 0;
    const char *as_given = given(layouts, value), *held = kiln_layouts_held(layouts, value);
    uint32_t n = count_reorders(layouts, value, held) + (g_strcmp0(as_given, held) != 0);
    return n ? n * kiln_reorder_us(layouts->target, &value->type) : 0;
}

/* Loops outside of the outermost one that cuts @part out of @whole go around once: the part is one
 * piece of memory. */
static bool
is_one_piece(const KilnType *part, const KilnType *whole)
{
    KilnLayout inner, outer;
    if (!kiln_layout_of(part, &inner) || !kiln_layout_of(whole, &outer))
        return false;
    int loop = 0;
    while (loop < inner.rank && inner.extent[loop] == 1)
        loop++;
    for (loop++; loop < inner.rank; loop++) {
        if (inner.extent[loop] != outer.extent[loop])
            return false;
    }
    return true;
}

/* What a slice, a split or a concat copies: nothing where the parts are pieces of memory. */
static double
copies_us(const KilnLayouts *layouts, const KilnNode *node)
{
    bool joins = node->op == KILN_OP_concat;
    int label = layouts->label[node->id];
    double us = 0;
    if (!joins && node->op != KILN_OP_slice && node->op != KILN_OP_split)
        return 0;
    for (uint32_t i = 0; i < (joins ? node->n_operands : node->n_results); i++) {
        KilnType operand = node->operands[joins ? i : 0].value->type;
        KilnType result = node->results[joins ? 0 : i].type;
        if (label != KILN_LABEL_KEPT)
            operand.layout = result.layout =
                layouts->vendor->layout_tag((uint32_t)label, result.rank);
        const KilnType *part = joins ? &operand : &result;
        if (!is_one_piece(part, joins ? &result : &operand))
            us += kiln_reorder_us(layouts->target, part);
    }
    return us;
}

static double
node_us(const KilnLayouts *layouts, const KilnNode *node)
{
    if (layouts->edges[node->id])
        return layouts->edges[node->id][layouts->label[node->id]].us;
    return copies_us(layouts, node);
}

/* Of the values of @nodes, and of these themselves; the same sum in whatever order. */
static double
sum_us(const KilnLayouts *layouts, const GPtrArray *nodes)
{
    g_autoptr(GHashTable) seen = g_hash_table_new(NULL, NULL);
    double us = 0;
    for (guint n = 0; n < nodes->len; n++) {
        const KilnNode *node = g_ptr_array_index(nodes, n);
        us += node_us(layouts, node);
        for (uint32_t i = 0; i < node->n_operands; i++) {
            KilnValue *value = node->operands[i].value;
            if (value && g_hash_table_add(seen, value))
                us += value_us(layouts, value);
        }
        for (uint32_t r = 0; r < node->n_results; r++) {
            if (g_hash_table_add(seen, (gpointer)&node->results[r]))
                us += value_us(layouts, &node->results[r]);
        }
    }
    return us;
}

double
kiln_layouts_change(KilnLayouts *layouts, const GPtrArray *nodes, int label)
{
    double before = sum_us(layouts, nodes);
    g_autofree int *kept = g_new(int, nodes->len + 1);
    for (guint n = 0; n < nodes->len; n++) {
        const KilnNode *node = g_ptr_array_index(nodes, n);
        kept[n] = layouts->label[node->id];
        set_label(layouts, node, label);
    }
    double after = sum_us(layouts, nodes);
    for (guint n = 0; n < nodes->len; n++)
        set_label(layouts, g_ptr_array_index(nodes, n), kept[n]);
    return after - before;
}

void
kiln_layouts_set(KilnLayouts *layouts, const GPtrArray *nodes, int label)
{
    for (guint n = 0; n < nodes->len; n++)
        set_label(layouts, g_ptr_array_index(nodes, n), label);
}

/* --- groups --- */

static void
add_node(const KilnLayouts *layouts, KilnNode *node, int label, bool regions, GHashTable *seen,
         GPtrArray *out)
{
    if (node->function == layouts->function && kiln_layouts_is_region(layouts, node) == regions &&
        kiln_layouts_may_be(layouts, node, label) && g_hash_table_add(seen, node))
        g_ptr_array_add(out, node);
}

/* Adds what touches @value and may have @label, regions or carriers, where that was not done. */
static void
add_touching(const KilnLayouts *layouts, const KilnValue *value, int label, bool regions,
             GHashTable *seen, GPtrArray *out)
{
    if (!g_hash_table_add(seen, (gpointer)value))
        return;
    if (value->def)
        add_node(layouts, value->def, label, regions, seen, out);
    kiln_foreach_use (use, value)
        add_node(layouts, use->user, label, regions, seen, out);
}

static void
add_neighbours(const KilnLayouts *layouts, const KilnNode *node, int label, bool regions,
               GHashTable *seen, GPtrArray *out)
{
    for (uint32_t i = 0; i < node->n_operands; i++) {
        const KilnValue *value = node->operands[i].value;
        if (value && !kiln_value_constant(value))
            add_touching(layouts, value, label, regions, seen, out);
    }
    for (uint32_t r = 0; r < node->n_results; r++)
        add_touching(layouts, &node->results[r], label, regions, seen, out);
}

GPtrArray *
kiln_layouts_groups(const KilnLayouts *layouts, int label)
{
    GPtrArray *groups = g_ptr_array_new_with_free_func((GDestroyNotify)g_ptr_array_unref);
    g_autoptr(GHashTable) seen = g_hash_table_new(NULL, NULL);
    kiln_foreach_node (node, layouts->function) {
        g_autoptr(GPtrArray) group = g_ptr_array_new();
        add_node(layouts, node, label, false, seen, group);
        for (guint n = 0; n < group->len; n++)
            add_neighbours(layouts, g_ptr_array_index(group, n), label, false, seen, group);
        if (group->len)
            g_ptr_array_add(groups, g_steal_pointer(&group));
    }
    return groups;
}

GPtrArray *
kiln_layouts_with_regions(const KilnLayouts *layouts, const GPtrArray *nodes, int label)
{
    GPtrArray *all = g_ptr_array_new();
    g_autoptr(GHashTable) seen = g_hash_table_new(NULL, NULL);
    for (guint n = 0; n < nodes->len; n++)
        g_ptr_array_add(all, g_ptr_array_index(nodes, n));
    for (guint n = 0; n < nodes->len; n++)
        add_neighbours(layouts, g_ptr_array_index(nodes, n), label, true, seen, all);
    return all;
}
