/* SPDX-License-Identifier: Apache-2.0 */
/* Something that modules share and the graph level knows nothing of, such as what a vendor compiled
 * for a declaration: counted references and a way to free it. The first member of what it stands
 * for. */
#ifndef KILN_GRAPH_BASE_SHARED_H
#define KILN_GRAPH_BASE_SHARED_H

#include <stdatomic.h>
#include <stddef.h>

typedef struct KilnShared KilnShared;
struct KilnShared {
    atomic_int references; /* 1 when made */
    void (*destroy)(KilnShared *self);
};

static inline KilnShared *
kiln_shared_ref(KilnShared *shared)
{
    if (shared)
        atomic_fetch_add(&shared->references, 1);
    return shared;
}

static inline void
kiln_shared_unref(KilnShared *shared)
{
    if (shared && atomic_fetch_sub(&shared->references, 1) == 1)
        shared->destroy(shared);
}

#endif
