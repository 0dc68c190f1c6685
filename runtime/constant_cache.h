/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of the constant cache. It holds results of fold functions, found by the digest of
 * their inputs, and packed weights, found by the digest of their own bytes.
 *
 * An entry holds the results of one call of the fold functions. Sessions and programs own
 * references to it; it dies with the last one. The cache may free its buffers earlier to keep to
 * its capacity. So a run pins the entry while it reads the buffers, and has lost buffers made
 * again. A pin of buffers that are there is one atomic operation. */
#ifndef KILN_RUNTIME_CONSTANT_CACHE_H
#define KILN_RUNTIME_CONSTANT_CACHE_H

#include "graph/tensor.h"
#include "kiln.h"
#include "runtime/digest/digest.h"

#include <stdatomic.h>

/** One folded tensor, or the packed weights of one call. */
typedef struct {
    uint64_t index; /* given at the first allocation, never given again */
    GBytes *bytes;  /* 64-byte aligned; empty if only packed weights of it are read; NULL while
                       evicted */
    KilnType type;  /* static; the physical dims of a blocked layout */
    int64_t strides[KILN_MAX_RANK]; /* elements */
    bool spare;                     /* packed weights in the kernel's spare form */
} KilnCachedBuffer;

typedef struct KilnFillAttempt KilnFillAttempt;

typedef struct {
    KilnConstantCache *cache; /* borrowed: owners of the entry refer to it */
    KilnDigest key;
    atomic_uint pins;    /* runs that read the buffers; KILN_CACHE_GONE: no buffers */
    atomic_ullong fills; /* times the buffers were made; a new count means new buffers */
    atomic_ullong used;  /* the cache's clock at the last pin */
    uint32_t n_buffers;
    KilnCachedBuffer *buffers; /* read only while pinned */
    /* The lock of the cache guards these. */
    unsigned references;
    int64_t bytes; /* that the buffers occupy */
    KilnFillAttempt *attempt;
} KilnCacheEntry;

enum {
    KILN_CACHE_GONE = 1u << 31
};

/** The content of a buffer of an entry. */
typedef struct {
    KilnTensor *tensor;
    bool spare;
} KilnCacheFilled;

/** Makes the tensors of an entry: sets all of @out, or fails. */
typedef gboolean (*KilnCacheFill)(void *data, KilnCacheFilled *out, GError **error);

/** The entry of @key with its @n_buffers buffers, pinned, with a new reference. If they are
 * missing, @fill makes them: once for all threads that ask. The others wait and get the same result
 * or error. After an error the next call tries again. */
KilnCacheEntry *kiln_constant_cache_acquire(KilnConstantCache *cache, const KilnDigest *key,
                                            uint32_t n_buffers, KilnCacheFill fill, void *data,
                                            GError **error);
/** Pins an entry that the caller has a reference to. False if its buffers are gone. Takes no lock.
 */
bool kiln_cache_entry_pin(KilnCacheEntry *entry);
void kiln_cache_entry_unpin(KilnCacheEntry *entry);
KilnCacheEntry *kiln_cache_entry_ref(KilnCacheEntry *entry);
void kiln_cache_entry_unref(KilnCacheEntry *entry);

/** Takes @bytes over. Returns @bytes, or equal bytes of another live program of this cache. */
GBytes *kiln_constant_cache_share(KilnConstantCache *cache, GBytes *bytes);

#endif
