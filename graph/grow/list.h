/* SPDX-License-Identifier: Apache-2.0 */
/* A list of pointers, with the interface of GLib's GPtrArray. It grows from the reserve if the
 * system has no memory. */
#ifndef KILN_GRAPH_GROW_LIST_H
#define KILN_GRAPH_GROW_LIST_H

#include <glib.h>

typedef struct KilnList {
    gpointer *pdata;
    guint len;
    guint room;
    GDestroyNotify free_func; /* NULL: none */
} KilnList;

KilnList *kiln_list_new(void);
KilnList *kiln_list_new_with_free_func(GDestroyNotify free_func);
void kiln_list_unref(KilnList *list);
/** Frees @list. @elements: frees its elements too; else returns the array of them. */
gpointer *kiln_list_free(KilnList *list, gboolean elements);
void kiln_list_set_free_func(KilnList *list, GDestroyNotify free_func);

void kiln_list_reserve(KilnList *list, guint more);
void kiln_list_set_size(KilnList *list, gint len);
void kiln_list_insert(KilnList *list, gint at, gpointer element);
void kiln_list_extend(KilnList *list, KilnList *from, GCopyFunc copy, gpointer data);
gpointer kiln_list_remove_index(KilnList *list, guint at);
gpointer kiln_list_steal_index(KilnList *list, guint at);
KilnList *kiln_list_remove_range(KilnList *list, guint at, guint n);
gboolean kiln_list_remove(KilnList *list, gpointer element);
gboolean kiln_list_find(KilnList *list, gconstpointer element, guint *at);
gboolean kiln_list_find_with_equal_func(KilnList *list, gconstpointer element, GEqualFunc equal,
                                        guint *at);
/** Stable; @compare gets pointers to elements. */
void kiln_list_sort(KilnList *list, GCompareFunc compare);
void kiln_list_sort_with_data(KilnList *list, GCompareDataFunc compare, gpointer data);

static inline void
kiln_list_add(KilnList *list, gpointer element)
{
    if (G_UNLIKELY(list->len == list->room))
        kiln_list_reserve(list, 1);
    list->pdata[list->len++] = element;
}

G_DEFINE_AUTOPTR_CLEANUP_FUNC(KilnList, kiln_list_unref)

#endif
