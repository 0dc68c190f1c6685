/* SPDX-License-Identifier: Apache-2.0 */
/* One sweep over ranges in the order of their addresses, which remembers how far the ranges so far
 * reach. */
#include "runtime/session.h"

#include "graph/error.h"

#include <stdlib.h>

static int
by_address(const void *a, const void *b)
{
    const KilnRange *x = a, *y = b;
    return x->start < y->start ? -1 : x->start > y->start;
}

static const char *
end_of(const KilnRange *range)
{
    return range->start + range->bytes;
}

static gboolean
refuse(const KilnRange *a, const KilnRange *b, GError **error)
{
    const KilnRange *writer = a->written ? a : b, *other = a->written ? b : a;
    return kiln_throw(error, KILN_ERROR_USAGE,
                      "%s %s: expected memory of its own, found %zu bytes at %p, which overlap "
                      "%s %s, %zu bytes at %p",
                      writer->kind, writer->name, writer->bytes, (const void *)writer->start,
                      other->kind, other->name, other->bytes, (const void *)other->start);
}

gboolean
kiln_ranges_check(KilnRange *ranges, size_t n, GError **error)
{
    qsort(ranges, n, sizeof *ranges, by_address);
    const KilnRange *furthest = NULL, *furthest_written = NULL;
    for (size_t i = 0; i < n; i++) {
        const KilnRange *range = &ranges[i];
        if (range->bytes == 0)
            continue;
        const KilnRange *before = range->written ? furthest : furthest_written;
        if (before && end_of(before) > range->start)
            return refuse(before, range, error);
        if (!furthest || end_of(range) > end_of(furthest))
            furthest = range;
        if (range->written && (!furthest_written || end_of(range) > end_of(furthest_written)))
            furthest_written = range;
    }
    return TRUE;
}
