/* SPDX-License-Identifier: Apache-2.0 */
/* Counts references to objects that modules share. The graph level does not know their type; one
 * example is the code that a vendor compiled for a declaration. KilnShared is their first member.
 */
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
