/* SPDX-License-Identifier: Apache-2.0 */
/* Pages become read-only when they are full: a page is the unit of protection, hence the sharing of
 * mappings by small blocks. */
#include "runtime/sealed.h"

#include "graph/base/alloc.h"

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
    Mapping *small;  /* has room for more; NULL: none has */
    GPtrArray *full; /* Mapping*, with a block that may be being written */
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
    void *start = kiln_map("weights", whole, error);
    if (!start)
        return NULL;
    Mapping *mapping = g_new0(Mapping, 1);
    atomic_init(&mapping->references, 1);
    mapping->start = start;
    mapping->size = whole;
    return mapping;
}

static void
seal(void *data)
{
    Mapping *mapping = data;
    /* Where the system has no more mappings to split, weights stay writable: they are as right. */
    mprotect(mapping->start, mapping->size, PROT_READ);
    mapping_unref(mapping);
}

KilnSealer *
kiln_sealer_new(void)
{
    KilnSealer *sealer = g_new0(KilnSealer, 1);
    sealer->full = g_ptr_array_new_with_free_func(seal);
    return sealer;
}

void
kiln_sealer_seal(KilnSealer *sealer)
{
    g_ptr_array_set_size(sealer->full, 0);
}

void
kiln_sealer_free(KilnSealer *sealer)
{
    if (!sealer)
        return;
    g_clear_pointer(&sealer->small, seal);
    g_ptr_array_unref(sealer->full);
    g_free(sealer);
}

/* A mapping with room for @size bytes; NULL where there is no memory. */
static Mapping *
mapping_for(KilnSealer *sealer, size_t size, GError **error)
{
    Mapping *small = sealer->small;
    if (size <= SMALL && small && small->size - small->used >= size)
        return small;
    Mapping *made = mapping_new(size > SMALL ? size : CHUNK, error);
    if (!made)
        return NULL;
    if (size > SMALL) {
        g_ptr_array_add(sealer->full, made);
        return made;
    }
    if (small)
        g_ptr_array_add(sealer->full, small);
    return sealer->small = made;
}

GBytes *
kiln_sealer_alloc(KilnSealer *sealer, size_t size, void **out, GError **error)
{
    size_t wanted = kiln_align_up(MAX(size, (size_t)1));
    Mapping *mapping = mapping_for(sealer, wanted, error);
    if (!mapping)
        return NULL;
    *out = mapping->start + mapping->used;
    mapping->used += wanted;
    atomic_fetch_add(&mapping->references, 1);
    return g_bytes_new_with_free_func(*out, size, mapping_unref, mapping);
}
