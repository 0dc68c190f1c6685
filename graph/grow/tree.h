/* SPDX-License-Identifier: Apache-2.0 */
/* A sorted map with the interface of GLib's GTree. Without memory from the system it grows from the
 * reserve (graph/grow/reserve.h). */
#ifndef KILN_GRAPH_GROW_TREE_H
#define KILN_GRAPH_GROW_TREE_H

#include <glib.h>

typedef struct KilnTree KilnTree;
typedef struct KilnTreeNode KilnTreeNode;

/** @free_key and @free_value must be NULL: the tree frees only its nodes. */
KilnTree *kiln_tree_new_full(GCompareDataFunc compare, gpointer data, GDestroyNotify free_key,
                             GDestroyNotify free_value);
void kiln_tree_unref(KilnTree *tree);
gint kiln_tree_nnodes(KilnTree *tree);
/** A key that is present stays and gets @value. */
void kiln_tree_insert(KilnTree *tree, gpointer key, gpointer value);
gboolean kiln_tree_remove(KilnTree *tree, gconstpointer key);
/** The node of the least key that is not below @key; NULL if there is none. */
KilnTreeNode *kiln_tree_lower_bound(KilnTree *tree, gconstpointer key);
KilnTreeNode *kiln_tree_node_first(KilnTree *tree);
KilnTreeNode *kiln_tree_node_last(KilnTree *tree);
KilnTreeNode *kiln_tree_node_previous(KilnTreeNode *node);
gpointer kiln_tree_node_key(KilnTreeNode *node);

#endif
