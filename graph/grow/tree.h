/* SPDX-License-Identifier: Apache-2.0 */
/* A sorted map with the interface of GLib's GTree. It grows from the reserve where the system has
 * no memory. */
#ifndef KILN_GRAPH_GROW_TREE_H
#define KILN_GRAPH_GROW_TREE_H

#include <glib.h>

typedef struct KilnTree KilnTree;
typedef struct KilnTreeNode KilnTreeNode;

/** Nothing is freed with the tree but its nodes: the last two arguments are NULL. */
KilnTree *kiln_tree_new_full(GCompareDataFunc compare, gpointer data, GDestroyNotify free_key,
                             GDestroyNotify free_value);
void kiln_tree_unref(KilnTree *tree);
gint kiln_tree_nnodes(KilnTree *tree);
/** A key that is there stays, and gets @value. */
void kiln_tree_insert(KilnTree *tree, gpointer key, gpointer value);
gboolean kiln_tree_remove(KilnTree *tree, gconstpointer key);
/** The node of the least key that is not below @key; NULL: there is none. */
KilnTreeNode *kiln_tree_lower_bound(KilnTree *tree, gconstpointer key);
KilnTreeNode *kiln_tree_node_first(KilnTree *tree);
KilnTreeNode *kiln_tree_node_last(KilnTree *tree);
KilnTreeNode *kiln_tree_node_previous(KilnTreeNode *node);
gpointer kiln_tree_node_key(KilnTreeNode *node);

#endif
