/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of the constant cache: what fold functions made, found by the digest of what they were
 * made from, and packed weights, found by the digest of their own bytes.
 *
 * An entry is what one call of the fold functions gave. Sessions and programs hold references on
 * it, and it goes with the last one. Its buffers may go before that, when the cache has to keep to
 * its capacity: a run therefore pins the entry while it reads the buffers, and has them made again
 * where they are gone. Pinning what is there is one atomic operation. */
#ifndef KILN_RUNTIME_CONSTANT_CACHE_H
#define KILN_RUNTIME_CONSTANT_CACHE_H

#include "runtime/digest/digest.h"
#include "kiln.h"

#include "graph/tensor.h"

#include <stdatomic.h>

/** One folded tensor, or the packed weights of one call. */
typedef struct {
    uint64_t index; /* given when the buffer is first allocated, never given twice */
    GBytes *bytes;  /* 64-byte aligned; empty where only what is packed of it is read; NULL while
                       evicted */
    KilnType type;  /* static; of a blocked layout the physical dims */
    int64_t strides[KILN_MAX_RANK]; /* elements */
    bool spare;                     /* packed weights: as the kernel's spare form has them */
} KilnCachedBuffer;

typedef struct KilnFillAttempt KilnFillAttempt;

typedef struct {
    KilnConstantCache *cache; /* borrowed: who refers to the entry refers to the cache */
    KilnDigest key;
    atomic_uint pins;    /* runs that read the buffers; KILN_CACHE_GONE: there are none to read */
    atomic_ullong fills; /* how often the buffers were made: others than before where it differs */
    atomic_ullong used;  /* the cache's clock at the last pin */
    uint32_t n_buffers;
    KilnCachedBuffer *buffers; /* to be read while pinned */
    /* The lock of the cache guards these. */
    unsigned references;
    int64_t bytes; /* that the buffers occupy */
    KilnFillAttempt *attempt;
} KilnCacheEntry;

enum {
    KILN_CACHE_GONE = 1u << 31
};

/** What a buffer of an entry is made of. */
typedef struct {
    KilnTensor *tensor;
    bool spare;
} KilnCacheFilled;

/** Makes the tensors of an entry: sets all of @out, or fails. */
typedef gboolean (*KilnCacheFill)(void *data, KilnCacheFilled *out, GError **error);

/** The entry of @key with its @n_buffers buffers, pinned, and a reference on it. Where they are not
 * there @fill makes them: once, however many threads ask together; the others wait, and get the
 * result or the error. After an error the next call tries again. */
KilnCacheEntry *kiln_constant_cache_acquire(KilnConstantCache *cache, const KilnDigest *key,
                                            uint32_t n_buffers, KilnCacheFill fill, void *data,
                                            GError **error);
/** Pins an entry that the caller has a reference on; false where its buffers are gone. Takes no
 * lock. */
bool kiln_cache_entry_pin(KilnCacheEntry *entry);
void kiln_cache_entry_unpin(KilnCacheEntry *entry);
KilnCacheEntry *kiln_cache_entry_ref(KilnCacheEntry *entry);
void kiln_cache_entry_unref(KilnCacheEntry *entry);

/** @bytes, or equal bytes that a living program of this cache has already. Takes @bytes over. */
GBytes *kiln_constant_cache_share(KilnConstantCache *cache, GBytes *bytes);

#endif
