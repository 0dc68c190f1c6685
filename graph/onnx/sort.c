/* SPDX-License-Identifier: Apache-2.0 */
/* Sorts the nodes of graphs. ONNX asks for topological order, but some tools write files without
 * it.
 *
 * The walk is depth first: before a node is placed, the nodes that compute its operands are placed.
 * A sorted graph keeps its order, and so do the parts of a graph that are sorted already. The time
 * is linear in the number of operands, times the depth of nested graphs. */
#include "graph/onnx/import.h"

#include <stdlib.h>

enum {
    NEW,
    OPEN,
    PLACED,
};

typedef struct {
    const KilnOnnxGraph *graph;
    GHashTable *makers; /* name of a value → index of its node + 1 */
    GArray *reads;      /* uint32_t: what the nodes read, as indices of nodes */
    GArray *first;      /* uint32_t: where the reads of each node begin; one more at the end */
    GArray *order;      /* uint32_t: indices of placed nodes */
} Sort;

/* --- what nodes read --- */

static void add_reads(const KilnOnnxNode *node, GHashTable *names);

/* Adds the names that @graph reads from the graphs around it. */
static void
add_captures(const KilnOnnxGraph *graph, GHashTable *names)
{
    g_autoptr(GHashTable) inner = g_hash_table_new(g_str_hash, g_str_equal);
    for (guint i = 0; i < graph->outputs->len; i++) {
        const Onnx__ValueInfoProto *output = g_ptr_array_index(graph->outputs, i);
        g_hash_table_add(inner, output->name);
    }
    for (guint i = 0; i < graph->nodes->len; i++)
        add_reads(&g_array_index(graph->nodes, KilnOnnxNode, i), inner);
    for (guint i = 0; i < graph->inputs->len; i++) {
        const Onnx__ValueInfoProto *input = g_ptr_array_index(graph->inputs, i);
        g_hash_table_remove(inner, input->name);
    }
    for (guint i = 0; i < graph->initializers->len; i++) {
        const char *name = g_array_index(graph->initializers, KilnOnnxTensor, i).proto->name;
        if (name)
            g_hash_table_remove(inner, name);
    }
    for (guint i = 0; i < graph->nodes->len; i++) {
        const Onnx__NodeProto *proto = g_array_index(graph->nodes, KilnOnnxNode, i).proto;
        for (size_t k = 0; k < proto->n_output; k++)
            g_hash_table_remove(inner, proto->output[k]);
    }
    GHashTableIter iter;
    gpointer name;
    g_hash_table_iter_init(&iter, inner);
    while (g_hash_table_iter_next(&iter, &name, NULL)) /* into a set: the order is lost anyway */
        g_hash_table_add(names, name);
}

static void
add_reads(const KilnOnnxNode *node, GHashTable *names)
{
    for (size_t i = 0; i < node->proto->n_input; i++)
        g_hash_table_add(names, node->proto->input[i]);
    for (size_t i = 0; i < node->n_attrs; i++) {
        if (node->attrs[i].graph)
            add_captures(node->attrs[i].graph, names);
    }
}

static void
add_read(Sort *sort, const char *name)
{
    uint32_t maker = GPOINTER_TO_UINT(g_hash_table_lookup(sort->makers, name));
    if (maker)
        g_array_append_val(sort->reads, *(&(uint32_t){ maker - 1 }));
}

static int
compare_indices(gconstpointer a, gconstpointer b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Captured names come from a set: their makers are put in the order of the file. */
static void
add_captured_reads(Sort *sort, const KilnOnnxGraph *region)
{
    g_autoptr(GHashTable) names = g_hash_table_new(g_str_hash, g_str_equal);
    add_captures(region, names);
    guint start = sort->reads->len;
    GHashTableIter iter;
    gpointer name;
    g_hash_table_iter_init(&iter, names);
    while (g_hash_table_iter_next(&iter, &name, NULL))
        add_read(sort, name);
    if (sort->reads->len > start)
        qsort((uint32_t *)(void *)sort->reads->data + start, sort->reads->len - start,
              sizeof(uint32_t), compare_indices);
}

static void
list_reads(Sort *sort)
{
    const GArray *nodes = sort->graph->nodes;
    for (guint i = 0; i < nodes->len; i++) {
        const KilnOnnxNode *node = &g_array_index(nodes, KilnOnnxNode, i);
        for (size_t k = 0; k < node->proto->n_output; k++) {
            char *name = node->proto->output[k];
            if (*name && !g_hash_table_contains(sort->makers, name))
                g_hash_table_insert(sort->makers, name, GUINT_TO_POINTER(i + 1));
        }
    }
    for (guint i = 0; i < nodes->len; i++) {
        const KilnOnnxNode *node = &g_array_index(nodes, KilnOnnxNode, i);
        g_array_append_val(sort->first, sort->reads->len);
        for (size_t k = 0; k < node->proto->n_input; k++)
            add_read(sort, node->proto->input[k]);
        for (size_t k = 0; k < node->n_attrs; k++) {
            if (node->attrs[k].graph)
                add_captured_reads(sort, node->attrs[k].graph);
        }
    }
    g_array_append_val(sort->first, sort->reads->len);
}

/* --- the walk --- */

/* Places @root and what it needs. @state: one of NEW, OPEN, PLACED for each node. @next: the read
 * of each open node that is looked at next. Returns false where the nodes are in a cycle. */
static bool
place(Sort *sort, uint32_t root, uint8_t *state, uint32_t *next, GArray *stack)
{
    if (state[root] != NEW)
        return true;
    g_array_append_val(stack, root);
    state[root] = OPEN;
    while (stack->len) {
        uint32_t node = g_array_index(stack, uint32_t, stack->len - 1);
        uint32_t read = g_array_index(sort->first, uint32_t, node) + next[node];
        if (read == g_array_index(sort->first, uint32_t, node + 1)) {
            state[node] = PLACED;
            g_array_append_val(sort->order, node);
            g_array_set_size(stack, stack->len - 1);
            continue;
        }
        next[node]++;
        uint32_t maker = g_array_index(sort->reads, uint32_t, read);
        if (state[maker] == OPEN)
            return false;
        if (state[maker] == NEW) {
            state[maker] = OPEN;
            g_array_append_val(stack, maker);
        }
    }
    return true;
}

static bool
place_all(Sort *sort)
{
    guint n = sort->graph->nodes->len;
    g_autofree uint8_t *state = g_new0(uint8_t, n + 1);
    g_autofree uint32_t *next = g_new0(uint32_t, n + 1);
    g_autoptr(GArray) stack = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    for (uint32_t i = 0; i < n; i++) {
        if (!place(sort, i, state, next, stack))
            return false;
    }
    return true;
}

/* Brings the nodes into the order that was found. Returns how many have moved. */
static guint
rearrange(Sort *sort)
{
    GArray *nodes = sort->graph->nodes;
    g_autofree KilnOnnxNode *old = g_memdup2(nodes->data, nodes->len * (gsize)sizeof(KilnOnnxNode));
    guint moved = 0;
    for (guint i = 0; i < nodes->len; i++) {
        uint32_t from = g_array_index(sort->order, uint32_t, i);
        g_array_index(nodes, KilnOnnxNode, i) = old[from];
        moved += from != i;
    }
    return moved;
}

static void
sort_graph(KilnOnnxGraph *graph, KilnModule *module)
{
    Sort sort = { .graph = graph,
                  .makers = g_hash_table_new(g_str_hash, g_str_equal),
                  .reads = g_array_new(FALSE, FALSE, sizeof(uint32_t)),
                  .first = g_array_new(FALSE, FALSE, sizeof(uint32_t)),
                  .order = g_array_new(FALSE, FALSE, sizeof(uint32_t)) };
    list_reads(&sort);
    guint moved = place_all(&sort) ? rearrange(&sort) : 0;
    if (moved)
        kiln_module_add_note(module,
                             "graph '%s': nodes stood before what they read: %u of %u were moved",
                             graph->name, moved, graph->nodes->len);
    g_hash_table_unref(sort.makers);
    g_array_unref(sort.reads);
    g_array_unref(sort.first);
    g_array_unref(sort.order);
}

void
kiln_onnx_sort(KilnOnnxGraph *graph, KilnModule *module)
{
    sort_graph(graph, module);
    for (guint i = 0; i < graph->nodes->len; i++) {
        const KilnOnnxNode *node = &g_array_index(graph->nodes, KilnOnnxNode, i);
        for (size_t k = 0; k < node->n_attrs; k++) {
            if (node->attrs[k].graph)
                kiln_onnx_sort(node->attrs[k].graph, module);
        }
    }
}
