/* SPDX-License-Identifier: Apache-2.0 */
/* Texts that grow, with the interface of GLib's GString, and copies of texts. They come from the
 * reserve if the system has no memory. A large text loses its content instead, and is empty then
 * (graph/grow/reserve.h). An appended text must not lie in the text itself. */
#ifndef KILN_GRAPH_GROW_STRING_H
#define KILN_GRAPH_GROW_STRING_H

#include <glib.h>
#include <stdarg.h>

typedef struct KilnString {
    gchar *str; /* ends with a zero byte */
    gsize len;
    gsize allocated_len;
} KilnString;

KilnString *kiln_string_new(const gchar *text);
KilnString *kiln_string_new_len(const gchar *text, gssize length);
KilnString *kiln_string_sized_new(gsize room);
/** Frees @string. @text: frees its text too; else returns the text. */
gchar *kiln_string_free(KilnString *string, gboolean text);
GBytes *kiln_string_free_to_bytes(KilnString *string);
KilnString *kiln_string_append(KilnString *string, const gchar *text);
KilnString *kiln_string_append_len(KilnString *string, const gchar *text, gssize length);
KilnString *kiln_string_append_c(KilnString *string, gchar c);
void kiln_string_append_printf(KilnString *string, const gchar *format, ...) G_GNUC_PRINTF(2, 3);
void kiln_string_append_vprintf(KilnString *string, const gchar *format, va_list args)
    G_GNUC_PRINTF(2, 0);
void kiln_string_printf(KilnString *string, const gchar *format, ...) G_GNUC_PRINTF(2, 3);
KilnString *kiln_string_assign(KilnString *string, const gchar *text);
KilnString *kiln_string_insert(KilnString *string, gssize at, const gchar *text);
KilnString *kiln_string_insert_len(KilnString *string, gssize at, const gchar *text, gssize length);
KilnString *kiln_string_erase(KilnString *string, gssize at, gssize length);
KilnString *kiln_string_truncate(KilnString *string, gsize length);
guint kiln_string_replace(KilnString *string, const gchar *find, const gchar *by, guint limit);

static inline void
kiln_string_autoptr_free(KilnString *string)
{
    kiln_string_free(string, TRUE);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KilnString, kiln_string_autoptr_free)

/* --- pieces of memory with the interfaces of g_malloc() and g_strdup() --- */

gpointer kiln_malloc(gsize size) G_GNUC_MALLOC;
gpointer kiln_malloc0(gsize size) G_GNUC_MALLOC;
gpointer kiln_malloc_n(gsize count, gsize size) G_GNUC_MALLOC;
gpointer kiln_malloc0_n(gsize count, gsize size) G_GNUC_MALLOC;
gpointer kiln_realloc_n(gpointer memory, gsize count, gsize size);
gpointer kiln_memdup(gconstpointer memory, gsize size);
gchar *kiln_strdup(const gchar *text) G_GNUC_MALLOC;
gchar *kiln_strndup(const gchar *text, gsize n) G_GNUC_MALLOC;
gchar *kiln_strdup_vprintf(const gchar *format, va_list args) G_GNUC_PRINTF(1, 0) G_GNUC_MALLOC;
gchar *kiln_strdup_printf(const gchar *format, ...) G_GNUC_PRINTF(1, 2) G_GNUC_MALLOC;
gchar *kiln_strconcat(const gchar *first, ...) G_GNUC_NULL_TERMINATED G_GNUC_MALLOC;
/** Free these with g_strfreev(). */
gchar **kiln_strdupv(gchar **texts);
gchar **kiln_strsplit(const gchar *text, const gchar *delimiter, gint limit);
/** A copy of @text, @length bytes or to its end. U+FFFD replaces bytes that are not UTF-8. */
gchar *kiln_utf8_make_valid(const gchar *text, gssize length) G_GNUC_MALLOC;
GBytes *kiln_bytes_copy(gconstpointer data, gsize size);

#endif
