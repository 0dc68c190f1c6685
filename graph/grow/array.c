/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays of values and of bytes. */
#include "graph/grow/array.h"

#include "graph/grow/reserve.h"
#include "graph/grow/sort.h"

#include <stdbool.h>
#include <string.h>

enum {
    LEAST_ROOM = 16 /* bytes */
};

static const char an_array[] = "an array";

/* The room to grow to from @room, for @needed bytes. Room that doubles is moved seldom; a large
 * piece gets no more than it needs. */
static size_t
more_room(size_t room, size_t needed)
{
    return MAX(MAX(2 * room, needed), (size_t)LEAST_ROOM);
}

/* @data with room for @needed bytes, in *@room. */
static void *
grow(void *data, size_t *room, size_t needed)
{
    if (needed <= *room)
        return data;
    *room = more_room(*room, needed);
    return kiln_take_more(data, *room, an_array);
}

/* @len + @n, as GLib counts: more than that no array holds. */
static guint
sum(guint len, guint n)
{
    if (n > G_MAXUINT - len)
        g_error("an array of %u elements has no room for %u more", len, n);
    return len + n;
}

static gchar *
element(const KilnArray *array, guint at)
{
    return array->data + (size_t)at * array->size;
}

KilnArray *
kiln_array_new(gboolean zero_terminated, gboolean clear, guint size)
{
    g_assert(!zero_terminated);
    (void)zero_terminated;
    KilnArray *array = kiln_take_zeros(1, sizeof *array, an_array);
    array->size = size;
    array->clear = clear;
    return array;
}

KilnArray *
kiln_array_copy(KilnArray *array)
{
    KilnArray *copy = kiln_array_new(FALSE, array->clear, array->size);
    copy->clear_func = array->clear_func;
    return kiln_array_append_vals(copy, array->data, array->len);
}

void
kiln_array_unref(KilnArray *array)
{
    kiln_array_free(array, TRUE);
}

gchar *
kiln_array_free(KilnArray *array, gboolean data)
{
    gchar *left = data ? NULL : array->data;
    if (data) {
        kiln_array_remove_range(array, 0, array->len);
        g_free(array->data);
    }
    g_free(array);
    return left;
}

void
kiln_array_set_clear_func(KilnArray *array, GDestroyNotify clear_func)
{
    array->clear_func = clear_func;
}

KilnArray *
kiln_array_insert_vals(KilnArray *array, guint at, gconstpointer values, guint n)
{
    if (!n)
        return array;
    if (at > array->len)
        kiln_array_set_size(array, at);
    guint len = sum(array->len, n);
    array->data = grow(array->data, &array->room, (size_t)len * array->size);
    gchar *to = element(array, at);
    if (at < array->len)
        memmove(element(array, at + n), to, (size_t)(array->len - at) * array->size);
    memcpy(to, values, (size_t)n * array->size);
    array->len = len;
    return array;
}

KilnArray *
kiln_array_append_vals(KilnArray *array, gconstpointer values, guint n)
{
    return kiln_array_insert_vals(array, array->len, values, n);
}

KilnArray *
kiln_array_set_size(KilnArray *array, guint len)
{
    if (len > array->len) {
        array->data = grow(array->data, &array->room, (size_t)len * array->size);
        if (array->clear)
            memset(element(array, array->len), 0, (size_t)(len - array->len) * array->size);
        array->len = len;
    } else if (len < array->len) {
        kiln_array_remove_range(array, len, array->len - len);
    }
    return array;
}

KilnArray *
kiln_array_remove_index(KilnArray *array, guint at)
{
    return kiln_array_remove_range(array, at, 1);
}

KilnArray *
kiln_array_remove_range(KilnArray *array, guint at, guint n)
{
    if (!n)
        return array;
    for (guint i = at; array->clear_func && i < at + n; i++)
        array->clear_func(element(array, i));
    memmove(element(array, at), element(array, at + n),
            (size_t)(array->len - at - n) * array->size);
    array->len -= n;
    return array;
}

void
kiln_array_sort(KilnArray *array, GCompareFunc compare)
{
    kiln_sort_plain(array->data, array->len, array->size, compare);
}

void
kiln_array_sort_with_data(KilnArray *array, GCompareDataFunc compare, gpointer data)
{
    kiln_sort(array->data, array->len, array->size, compare, data);
}

/* --- bytes --- */

KilnByteArray *
kiln_byte_array_new(void)
{
    return kiln_take_zeros(1, sizeof(KilnByteArray), an_array);
}

void
kiln_byte_array_unref(KilnByteArray *array)
{
    g_free(array->data);
    g_free(array);
}

/* Makes room for @n bytes more. False: there is none, and the content is lost. */
static bool
make_room(KilnByteArray *array, size_t n)
{
    size_t needed = array->len + n;
    if (needed <= array->room)
        return true;
    size_t room = more_room(array->room, needed);
    guint8 *data = kiln_take_more_or_lose(array->data, room, an_array);
    if (!data) {
        g_free(array->data);
        *array = (KilnByteArray){ 0 };
        return false;
    }
    array->data = data;
    array->room = room;
    return true;
}

KilnByteArray *
kiln_byte_array_append(KilnByteArray *array, const guint8 *bytes, size_t n)
{
    if (!n || !make_room(array, n))
        return array;
    memcpy(array->data + array->len, bytes, n);
    array->len += n;
    return array;
}

KilnByteArray *
kiln_byte_array_set_size(KilnByteArray *array, size_t len)
{
    array->data = grow(array->data, &array->room, len);
    array->len = len;
    return array;
}

GBytes *
kiln_byte_array_free_to_bytes(KilnByteArray *array)
{
    GBytes *bytes = g_bytes_new_take(array->data, array->len);
    g_free(array);
    return bytes;
}
