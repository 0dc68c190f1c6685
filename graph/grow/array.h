/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays of values and of bytes, with the interfaces of GLib's GArray and GByteArray. Without
 * memory from the system they grow from the reserve (graph/grow/reserve.h). Large arrays of bytes
 * lose their content instead, and are empty then. */
#ifndef KILN_GRAPH_GROW_ARRAY_H
#define KILN_GRAPH_GROW_ARRAY_H

#include <glib.h>
#include <stddef.h>

typedef struct KilnArray {
    gchar *data;
    guint len;
    guint size;  /* of an element */
    size_t room; /* bytes */
    gboolean clear;
    GDestroyNotify clear_func; /* NULL: none */
} KilnArray;

/** @zero_terminated must be FALSE: no array ends with a zero element. */
KilnArray *kiln_array_new(gboolean zero_terminated, gboolean clear, guint size);
KilnArray *kiln_array_copy(KilnArray *array);
void kiln_array_unref(KilnArray *array);
gchar *kiln_array_free(KilnArray *array, gboolean data);
void kiln_array_set_clear_func(KilnArray *array, GDestroyNotify clear_func);
KilnArray *kiln_array_append_vals(KilnArray *array, gconstpointer values, guint n);
KilnArray *kiln_array_insert_vals(KilnArray *array, guint at, gconstpointer values, guint n);
KilnArray *kiln_array_set_size(KilnArray *array, guint len);
KilnArray *kiln_array_remove_index(KilnArray *array, guint at);
KilnArray *kiln_array_remove_range(KilnArray *array, guint at, guint n);
void kiln_array_sort(KilnArray *array, GCompareFunc compare);
void kiln_array_sort_with_data(KilnArray *array, GCompareDataFunc compare, gpointer data);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(KilnArray, kiln_array_unref)

typedef struct KilnByteArray {
    guint8 *data;
    size_t len; /* weights may have more than 4 GiB */
    size_t room;
} KilnByteArray;

KilnByteArray *kiln_byte_array_new(void);
void kiln_byte_array_unref(KilnByteArray *array);
KilnByteArray *kiln_byte_array_append(KilnByteArray *array, const guint8 *bytes, size_t n);
/** Sets the size of a small array, which is never lost. */
KilnByteArray *kiln_byte_array_set_size(KilnByteArray *array, size_t len);
GBytes *kiln_byte_array_free_to_bytes(KilnByteArray *array);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(KilnByteArray, kiln_byte_array_unref)

#endif
