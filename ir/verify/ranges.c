/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of bytes as sorted lists of ranges. */
#include "ir/verify/verify_priv.h"

GArray *
kiln_ranges_new(void)
{
    return g_array_new(FALSE, FALSE, sizeof(KilnByteRange));
}

/* The first range of @list that ends at or behind @position. */
static guint
find(const GArray *list, int64_t position)
{
    guint low = 0, high = list->len;
    while (low < high) {
        guint middle = low + (high - low) / 2;
        if (g_array_index(list, KilnByteRange, middle).end < position)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static KilnByteRange
range_of(const KilnRegion *region, int64_t row)
{
    int64_t begin = region->offset + row * region->pitch;
    return (KilnByteRange){ begin, begin + region->run };
}

static void
add_range(GArray *list, KilnByteRange added)
{
    if (added.begin == added.end)
        return;
    guint from = find(list, added.begin), to = from;
    while (to < list->len && g_array_index(list, KilnByteRange, to).begin <= added.end) {
        KilnByteRange met = g_array_index(list, KilnByteRange, to++);
        added.begin = MIN(added.begin, met.begin);
        added.end = MAX(added.end, met.end);
    }
    if (to > from)
        g_array_remove_range(list, from, to - from);
    g_array_insert_val(list, from, added);
}

/* Behind all that is there, or over its end. */
static void
append(GArray *list, KilnByteRange added)
{
    KilnByteRange *last = list->len ? &g_array_index(list, KilnByteRange, list->len - 1) : NULL;
    if (last && added.begin <= last->end)
        last->end = MAX(last->end, added.end);
    else
        g_array_append_val(list, added);
}

/* Rows go in at once: each alone would move all that lie behind it. */
static void
add_rows(GArray *list, const KilnRegion *added)
{
    g_autoptr(GArray) old = g_array_copy(list);
    guint at = 0;
    g_array_set_size(list, 0);
    for (int64_t row = 0; row < added->rows; row++) {
        KilnByteRange next = range_of(added, row);
        while (at < old->len && g_array_index(old, KilnByteRange, at).begin <= next.begin)
            append(list, g_array_index(old, KilnByteRange, at++));
        append(list, next);
    }
    for (; at < old->len; at++)
        append(list, g_array_index(old, KilnByteRange, at));
}

void
kiln_ranges_add(GArray *list, const KilnRegion *added)
{
    if (added->rows > 1)
        add_rows(list, added);
    else
        add_range(list, range_of(added, 0));
}

static bool
covers(const GArray *list, KilnByteRange wanted)
{
    if (wanted.begin == wanted.end)
        return true;
    guint at = list ? find(list, wanted.begin + 1) : 0;
    return list && at < list->len && g_array_index(list, KilnByteRange, at).begin <= wanted.begin &&
           g_array_index(list, KilnByteRange, at).end >= wanted.end;
}

bool
kiln_ranges_cover(const GArray *list, const KilnRegion *wanted)
{
    for (int64_t row = 0; row < wanted->rows; row++) {
        if (!covers(list, range_of(wanted, row)))
            return false;
    }
    return true;
}
