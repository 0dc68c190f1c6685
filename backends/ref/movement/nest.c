/* SPDX-License-Identifier: Apache-2.0 */
/* Copies through a nest of loops. */
#include "backends/ref/movement/nest.h"

#include <string.h>

static void
copy_run(const RefNest *nest, void *to, const void *from, size_t size)
{
    int inner = nest->rank - 1;
    int64_t n = nest->extents[inner];
    if (nest->to[inner] == 1 && nest->from[inner] == 1) {
        memcpy(to, from, (size_t)n * size);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        memcpy(ref_at_out(to, i * nest->to[inner], size), ref_at(from, i * nest->from[inner], size),
               size);
}

static void
copy_level(const RefNest *nest, int level, void *to, const void *from, size_t size)
{
    if (level == nest->rank - 1) {
        copy_run(nest, to, from, size);
        return;
    }
    for (int64_t i = 0; i < nest->extents[level]; i++)
        copy_level(nest, level + 1, ref_at_out(to, i * nest->to[level], size),
                   ref_at(from, i * nest->from[level], size), size);
}

void
kiln_ref_nest_copy(const RefNest *nest, void *to, const void *from, size_t size)
{
    if (ref_count(nest->extents, 0, nest->rank) == 0)
        return; /* empty buffers may have no address at all */
    if (nest->rank == 0)
        memcpy(to, from, size);
    else
        copy_level(nest, 0, to, from, size);
}
