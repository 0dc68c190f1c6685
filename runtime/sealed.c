/* SPDX-License-Identifier: Apache-2.0 */
/* Pages become read-only when they are full: a page is the unit of protection, hence the sharing of
 * mappings by small blocks. */
#include "runtime/sealed.h"

#include "graph/alloc.h"

#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    CHUNK = 256 * 1024, /* bytes of a mapping for small blocks */
    SMALL = CHUNK / 4
};

/* A mapping; it goes with the last block in it. */
typedef struct {
    atomic_int references; /* of blocks, and of the sealer while it fills it */
    char *start;
    size_t size, used;
} Mapping;

struct KilnSealer {
    Mapping *small; /* has room for more */
    Mapping *big;   /* of one block, which is being written */
    Mapping *last;  /* the one of the two that the last block is in */
    void *block;
    size_t size;
};

static void
mapping_unref(void *data)
{
    Mapping *mapping = data;
    if (atomic_fetch_sub(&mapping->references, 1) != 1)
        return;
    munmap(mapping->start, mapping->size);
    g_free(mapping);
}

static Mapping *
mapping_new(size_t size, GError **error)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t whole = size > SIZE_MAX - page ? SIZE_MAX : (size + page - 1) / page * page;
    void *start = kiln_map(whole, error);
    if (!start)
        return NULL;
    Mapping *mapping = g_new0(Mapping, 1);
    atomic_init(&mapping->references, 1);
    mapping->start = start;
    mapping->size = whole;
    return mapping;
}

static void
seal(Mapping **mapping)
{
    if (!*mapping)
        return;
    /* Where the system has no more mappings to split, weights stay writable: they are as right. */
    mprotect((*mapping)->start, (*mapping)->size, PROT_READ);
    g_clear_pointer(mapping, mapping_unref);
}

KilnSealer *
kiln_sealer_new(void)
{
    return g_new0(KilnSealer, 1);
}

void
kiln_sealer_free(KilnSealer *sealer)
{
    if (!sealer)
        return;
    seal(&sealer->small);
    seal(&sealer->big);
    g_free(sealer);
}

void *
kiln_sealer_alloc(KilnSealer *sealer, size_t size, GError **error)
{
    size_t wanted = kiln_align_up(MAX(size, (size_t)1));
    bool big = wanted > SMALL;
    Mapping **to = big ? &sealer->big : &sealer->small;
    seal(&sealer->big);
    if (!*to || (*to)->size - (*to)->used < wanted) {
        seal(to);
        if (!(*to = mapping_new(big ? wanted : CHUNK, error)))
            return NULL;
    }
    sealer->last = *to;
    sealer->block = (*to)->start + (*to)->used;
    sealer->size = size;
    (*to)->used += wanted;
    return sealer->block;
}

GBytes *
kiln_sealer_take(KilnSealer *sealer)
{
    atomic_fetch_add(&sealer->last->references, 1);
    return g_bytes_new_with_free_func(sealer->block, sealer->size, mapping_unref, sealer->last);
}
