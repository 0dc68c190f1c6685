/* SPDX-License-Identifier: Apache-2.0 */
/* A treap: sorted by key, and a heap by a number that is drawn for each node, which keeps it flat.
 * The numbers are the same in every process. */
#include "graph/grow/tree.h"

#include "graph/grow/reserve.h"

#include <stdint.h>

struct KilnTreeNode {
    KilnTree *tree;
    gpointer key, value;
    KilnTreeNode *lower, *upper;
    uint32_t rank; /* not below those of the two */
};

struct KilnTree {
    KilnTreeNode *root;
    GCompareDataFunc compare;
    gpointer data;
    gint n;
    uint32_t drawn;
};

KilnTree *
kiln_tree_new_full(GCompareDataFunc compare, gpointer data, GDestroyNotify free_key,
                   GDestroyNotify free_value)
{
    g_assert(!free_key && !free_value);
    (void)free_key;
    (void)free_value;
    KilnTree *tree = kiln_take_zeros(1, sizeof *tree, "a tree");
    tree->compare = compare;
    tree->data = data;
    return tree;
}

static void
free_nodes(KilnTreeNode *node)
{
    while (node) {
        free_nodes(node->lower);
        KilnTreeNode *upper = node->upper;
        g_free(node);
        node = upper;
    }
}

void
kiln_tree_unref(KilnTree *tree)
{
    free_nodes(tree->root);
    g_free(tree);
}

gint
kiln_tree_nnodes(KilnTree *tree)
{
    return tree->n;
}

/* The link to the node of @key, or to where it belongs. */
static KilnTreeNode **
find(KilnTree *tree, gconstpointer key)
{
    KilnTreeNode **link = &tree->root;
    while (*link) {
        gint order = tree->compare(key, (*link)->key, tree->data);
        if (order == 0)
            break;
        link = order < 0 ? &(*link)->lower : &(*link)->upper;
    }
    return link;
}

/* A tree of the nodes below @key and one of those above it, of which there is none equal. */
static void
split(KilnTree *tree, KilnTreeNode *node, gconstpointer key, KilnTreeNode **lower,
      KilnTreeNode **upper)
{
    while (node) {
        if (tree->compare(key, node->key, tree->data) < 0) {
            *upper = node;
            upper = &node->lower;
            node = node->lower;
        } else {
            *lower = node;
            lower = &node->upper;
            node = node->upper;
        }
    }
    *lower = *upper = NULL;
}

void
kiln_tree_insert(KilnTree *tree, gpointer key, gpointer value)
{
    KilnTreeNode *there = *find(tree, key);
    if (there) {
        there->value = value;
        return;
    }
    KilnTreeNode *fresh = kiln_take_zeros(1, sizeof *fresh, "a tree");
    tree->drawn = tree->drawn * 1664525 + 1013904223;
    *fresh = (KilnTreeNode){ .tree = tree, .key = key, .value = value, .rank = tree->drawn };
    KilnTreeNode **link = &tree->root;
    while (*link && (*link)->rank >= fresh->rank)
        link = tree->compare(key, (*link)->key, tree->data) < 0 ? &(*link)->lower : &(*link)->upper;
    split(tree, *link, key, &fresh->lower, &fresh->upper);
    *link = fresh;
    tree->n++;
}

gboolean
kiln_tree_remove(KilnTree *tree, gconstpointer key)
{
    KilnTreeNode **link = find(tree, key);
    KilnTreeNode *node = *link;
    if (!node)
        return FALSE;
    KilnTreeNode *lower = node->lower, *upper = node->upper;
    while (lower && upper) { /* zips both together in its place */
        if (lower->rank >= upper->rank) {
            *link = lower;
            link = &lower->upper;
            lower = lower->upper;
        } else {
            *link = upper;
            link = &upper->lower;
            upper = upper->lower;
        }
    }
    *link = lower ? lower : upper;
    g_free(node);
    tree->n--;
    return TRUE;
}

KilnTreeNode *
kiln_tree_lower_bound(KilnTree *tree, gconstpointer key)
{
    KilnTreeNode *least = NULL;
    for (KilnTreeNode *node = tree->root; node;) {
        bool below = tree->compare(node->key, key, tree->data) < 0;
        least = below ? least : node;
        node = below ? node->upper : node->lower;
    }
    return least;
}

KilnTreeNode *
kiln_tree_node_first(KilnTree *tree)
{
    KilnTreeNode *node = tree->root;
    while (node && node->lower)
        node = node->lower;
    return node;
}

KilnTreeNode *
kiln_tree_node_last(KilnTree *tree)
{
    KilnTreeNode *node = tree->root;
    while (node && node->upper)
        node = node->upper;
    return node;
}

KilnTreeNode *
kiln_tree_node_previous(KilnTreeNode *node)
{
    KilnTree *tree = node->tree;
    KilnTreeNode *greatest = NULL;
    for (KilnTreeNode *at = tree->root; at;) {
        bool below = tree->compare(at->key, node->key, tree->data) < 0;
        greatest = below ? at : greatest;
        at = below ? at->upper : at->lower;
    }
    return greatest;
}

gpointer
kiln_tree_node_key(KilnTreeNode *node)
{
    return node->key;
}
