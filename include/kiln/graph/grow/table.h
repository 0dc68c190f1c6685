/* SPDX-License-Identifier: Apache-2.0 */
/* A hash table with the interface of GLib's GHashTable. Without memory from the system it grows
 * from the reserve. A walk visits keys in the order in which they were added. */
#ifndef KILN_GRAPH_GROW_TABLE_H
#define KILN_GRAPH_GROW_TABLE_H

#include <glib.h>

typedef struct KilnTable KilnTable;

/** @hash NULL: keys are compared as pointers. */
KilnTable *kiln_table_new(GHashFunc hash, GEqualFunc equal);
KilnTable *kiln_table_new_full(GHashFunc hash, GEqualFunc equal, GDestroyNotify free_key,
                               GDestroyNotify free_value);
void kiln_table_unref(KilnTable *table);
guint kiln_table_size(KilnTable *table);
gpointer kiln_table_lookup(KilnTable *table, gconstpointer key);
gboolean kiln_table_lookup_extended(KilnTable *table, gconstpointer key, gpointer *out_key,
                                    gpointer *out_value);
gboolean kiln_table_contains(KilnTable *table, gconstpointer key);
/** TRUE if @key is new. Otherwise the old key stays, and @key is freed. */
gboolean kiln_table_insert(KilnTable *table, gpointer key, gpointer value);
/** TRUE if @key is new. Otherwise @key takes the place of the old key, which is freed. */
gboolean kiln_table_replace(KilnTable *table, gpointer key, gpointer value);
/** For sets: replaces @key by itself. */
gboolean kiln_table_add(KilnTable *table, gpointer key);
gboolean kiln_table_remove(KilnTable *table, gconstpointer key);
void kiln_table_remove_all(KilnTable *table);
guint kiln_table_foreach_remove(KilnTable *table, GHRFunc is_gone, gpointer data);

typedef struct {
    KilnTable *table;
    guint at;
} KilnTableIter;

/** Starts a walk. Nothing may be added or removed during a walk. */
void kiln_table_iter_init(KilnTableIter *iter, KilnTable *table);
gboolean kiln_table_iter_next(KilnTableIter *iter, gpointer *key, gpointer *value);
/** Replaces the value that was returned last. */
void kiln_table_iter_replace(KilnTableIter *iter, gpointer value);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(KilnTable, kiln_table_unref)

#endif
