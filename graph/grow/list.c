/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of pointers. */
#include "graph/grow/list.h"

#include "graph/grow/reserve.h"
#include "graph/grow/sort.h"

#include <string.h>

enum {
    LEAST_ROOM = 4
};

static const char a_list[] = "a list";

KilnList *
kiln_list_new(void)
{
    return kiln_take_zeros(1, sizeof(KilnList), a_list);
}

KilnList *
kiln_list_new_with_free_func(GDestroyNotify free_func)
{
    KilnList *list = kiln_list_new();
    list->free_func = free_func;
    return list;
}

void
kiln_list_reserve(KilnList *list, guint more)
{
    size_t needed = (size_t)list->len + more;
    if (needed <= list->room)
        return;
    if (needed > G_MAXUINT / 2)
        g_error("a list of %u elements has no room for %u more", list->len, more);
    size_t room = MAX(list->room, (guint)LEAST_ROOM);
    while (room < needed)
        room *= 2;
    list->pdata = kiln_take_more(list->pdata, room * sizeof *list->pdata, a_list);
    list->room = (guint)room;
}

static void
drop(KilnList *list, guint from, guint to)
{
    for (guint i = from; list->free_func && i < to; i++)
        list->free_func(list->pdata[i]);
}

void
kiln_list_unref(KilnList *list)
{
    kiln_list_free(list, TRUE);
}

gpointer *
kiln_list_free(KilnList *list, gboolean elements)
{
    gpointer *left = elements ? NULL : list->pdata;
    if (elements) {
        drop(list, 0, list->len);
        g_free(list->pdata);
    }
    g_free(list);
    return left;
}

void
kiln_list_set_free_func(KilnList *list, GDestroyNotify free_func)
{
    list->free_func = free_func;
}

void
kiln_list_set_size(KilnList *list, gint len)
{
    guint to = (guint)len;
    if (to > list->len) {
        kiln_list_reserve(list, to - list->len);
        memset(list->pdata + list->len, 0, (to - list->len) * sizeof *list->pdata);
        list->len = to;
    } else if (to < list->len) {
        kiln_list_remove_range(list, to, list->len - to);
    }
}

void
kiln_list_insert(KilnList *list, gint at, gpointer element)
{
    guint to = at < 0 ? list->len : (guint)at;
    kiln_list_reserve(list, 1);
    memmove(list->pdata + to + 1, list->pdata + to, (list->len - to) * sizeof *list->pdata);
    list->pdata[to] = element;
    list->len++;
}

void
kiln_list_extend(KilnList *list, KilnList *from, GCopyFunc copy, gpointer data)
{
    guint n = from->len;
    kiln_list_reserve(list, n);
    for (guint i = 0; i < n; i++)
        list->pdata[list->len + i] = copy ? copy(from->pdata[i], data) : from->pdata[i];
    list->len += n;
}

gpointer
kiln_list_steal_index(KilnList *list, guint at)
{
    gpointer element = list->pdata[at];
    list->len--;
    memmove(list->pdata + at, list->pdata + at + 1, (list->len - at) * sizeof *list->pdata);
    return element;
}

gpointer
kiln_list_remove_index(KilnList *list, guint at)
{
    gpointer element = kiln_list_steal_index(list, at);
    if (list->free_func)
        list->free_func(element);
    return element;
}

KilnList *
kiln_list_remove_range(KilnList *list, guint at, guint n)
{
    if (!n)
        return list;
    drop(list, at, at + n);
    memmove(list->pdata + at, list->pdata + at + n, (list->len - at - n) * sizeof *list->pdata);
    list->len -= n;
    return list;
}

gboolean
kiln_list_remove(KilnList *list, gpointer element)
{
    guint at;
    if (!kiln_list_find(list, element, &at))
        return FALSE;
    kiln_list_remove_index(list, at);
    return TRUE;
}

gboolean
kiln_list_find_with_equal_func(KilnList *list, gconstpointer element, GEqualFunc equal, guint *at)
{
    for (guint i = 0; i < list->len; i++) {
        if (equal ? !equal(list->pdata[i], element) : list->pdata[i] != element)
            continue;
        if (at)
            *at = i;
        return TRUE;
    }
    return FALSE;
}

gboolean
kiln_list_find(KilnList *list, gconstpointer element, guint *at)
{
    return kiln_list_find_with_equal_func(list, element, NULL, at);
}

void
kiln_list_sort_with_data(KilnList *list, GCompareDataFunc compare, gpointer data)
{
    kiln_sort(list->pdata, list->len, sizeof *list->pdata, compare, data);
}

void
kiln_list_sort(KilnList *list, GCompareFunc compare)
{
    kiln_sort_plain(list->pdata, list->len, sizeof *list->pdata, compare);
}
