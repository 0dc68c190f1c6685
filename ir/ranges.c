/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of bytes as sorted lists of ranges. */
#include "ir/ranges.h"

KilnByteRange
kiln_buffer_range(const KilnBuffer *buffer)
{
    int64_t begin = kiln_buffer_origin_offset(buffer);
    return (KilnByteRange){ begin, begin + kiln_type_bytes(&buffer->type) };
}

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

void
kiln_ranges_add(GArray *list, KilnByteRange added)
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

bool
kiln_ranges_cover(const GArray *list, KilnByteRange wanted)
{
    if (wanted.begin == wanted.end)
        return true;
    guint at = list ? find(list, wanted.begin + 1) : 0;
    return list && at < list->len && g_array_index(list, KilnByteRange, at).begin <= wanted.begin &&
           g_array_index(list, KilnByteRange, at).end >= wanted.end;
}
