/* SPDX-License-Identifier: Apache-2.0 */
/* The constant cache: one lock for the tables, atomic counters for what runs do with entries. */
#include "runtime/constant_cache.h"

#include "runtime/options.h"

#include <pthread.h>

/* A call of the fold functions that is going on. It outlives the entry's interest in it until all
 * who wait have read how it ended. */
struct KilnFillAttempt {
    unsigned references; /* who fills, and who waits */
    bool done;
    GError *error;
};

/* Bytes that several programs may read. Each reader has a GBytes of its own around them, so that
 * the last to go is known under the lock. */
typedef struct {
    KilnDigest digest;
    GBytes *bytes;
    unsigned references;
    KilnConstantCache *cache;
} SharedWeight;

struct KilnConstantCache {
    atomic_int references;
    pthread_mutex_t lock;  /* guards what is below and has no atomic type */
    pthread_cond_t filled; /* an attempt is done */
    GHashTable *entries;   /* by key; walked for the least recently used only */
    GHashTable *weights;   /* by digest; looked up only */
    atomic_llong capacity;
    atomic_llong bytes;  /* of all buffers that are there */
    atomic_ullong clock; /* grows with every lookup */
    uint64_t next_index;
    KilnConstantCacheStats stats;
};

/* --- life --- */

static guint
hash_digest(gconstpointer key)
{
    return (guint)((const KilnDigest *)key)->low;
}

static gboolean
equal_digests(gconstpointer a, gconstpointer b)
{
    return kiln_digest_equal(a, b);
}

KilnConstantCache *
kiln_constant_cache_new(int64_t capacity)
{
    KilnConstantCache *cache = g_new0(KilnConstantCache, 1);
    atomic_init(&cache->references, 1);
    atomic_init(&cache->capacity, capacity < 0 ? INT64_MAX : capacity);
    pthread_mutex_init(&cache->lock, NULL);
    pthread_cond_init(&cache->filled, NULL);
    cache->entries = g_hash_table_new(hash_digest, equal_digests);
    cache->weights = g_hash_table_new(hash_digest, equal_digests);
    return cache;
}

KilnConstantCache *
kiln_constant_cache_ref(KilnConstantCache *cache)
{
    atomic_fetch_add(&cache->references, 1);
    return cache;
}

void
kiln_constant_cache_unref(KilnConstantCache *cache)
{
    if (!cache || atomic_fetch_sub(&cache->references, 1) != 1)
        return;
    /* Entries and weights are gone: who has them has the cache too. */
    g_hash_table_unref(cache->entries);
    g_hash_table_unref(cache->weights);
    pthread_cond_destroy(&cache->filled);
    pthread_mutex_destroy(&cache->lock);
    g_free(cache);
}

/* --- capacity --- */

static void
drop_buffers(KilnCacheEntry *entry)
{
    for (uint32_t i = 0; i < entry->n_buffers; i++)
        g_clear_pointer(&entry->buffers[i].bytes, g_bytes_unref);
    atomic_fetch_sub(&entry->cache->bytes, entry->bytes);
    entry->bytes = 0;
}

/* The entry that no run reads and that was read longest ago; NULL where all are read or gone. */
static KilnCacheEntry *
least_recently_used(const KilnConstantCache *cache)
{
    KilnCacheEntry *oldest = NULL;
    GHashTableIter iter;
    gpointer value;
    g_hash_table_iter_init(&iter, cache->entries);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        KilnCacheEntry *entry = value;
        if (atomic_load(&entry->pins) == 0 &&
            (!oldest || atomic_load(&entry->used) < atomic_load(&oldest->used)))
            oldest = entry;
    }
    return oldest;
}

static void
trim(KilnConstantCache *cache)
{
    while (atomic_load(&cache->bytes) > atomic_load(&cache->capacity)) {
        KilnCacheEntry *entry = least_recently_used(cache);
        if (!entry)
            return;
        unsigned unpinned = 0;
        if (!atomic_compare_exchange_strong(&entry->pins, &unpinned, KILN_CACHE_GONE))
            continue; /* a run was faster */
        drop_buffers(entry);
        cache->stats.evictions++;
    }
}

void
kiln_constant_cache_set_capacity(KilnConstantCache *cache, int64_t capacity)
{
    pthread_mutex_lock(&cache->lock);
    atomic_store(&cache->capacity, capacity < 0 ? INT64_MAX : capacity);
    trim(cache);
    pthread_mutex_unlock(&cache->lock);
}

/* --- pins and references --- */

bool
kiln_cache_entry_pin(KilnCacheEntry *entry)
{
    unsigned pins = atomic_load(&entry->pins);
    do {
        if (pins & KILN_CACHE_GONE)
            return false;
    } while (!atomic_compare_exchange_weak(&entry->pins, &pins, pins + 1));
    atomic_store(&entry->used, atomic_load(&entry->cache->clock));
    return true;
}

void
kiln_cache_entry_unpin(KilnCacheEntry *entry)
{
    KilnConstantCache *cache = entry->cache;
    if (atomic_fetch_sub(&entry->pins, 1) != 1 ||
        atomic_load(&cache->bytes) <= atomic_load(&cache->capacity))
        return;
    pthread_mutex_lock(&cache->lock);
    trim(cache);
    pthread_mutex_unlock(&cache->lock);
}

KilnCacheEntry *
kiln_cache_entry_ref(KilnCacheEntry *entry)
{
    pthread_mutex_lock(&entry->cache->lock);
    entry->references++;
    pthread_mutex_unlock(&entry->cache->lock);
    return entry;
}

/* With the lock held. */
static void
unref_entry(KilnCacheEntry *entry)
{
    if (--entry->references)
        return;
    g_hash_table_remove(entry->cache->entries, &entry->key);
    drop_buffers(entry);
    g_free(entry->buffers);
    g_free(entry);
}

void
kiln_cache_entry_unref(KilnCacheEntry *entry)
{
    KilnConstantCache *cache = entry->cache;
    pthread_mutex_lock(&cache->lock);
    unref_entry(entry);
    pthread_mutex_unlock(&cache->lock);
}

/* --- filling --- */

static void
attempt_unref(KilnFillAttempt *attempt)
{
    if (--attempt->references)
        return;
    g_clear_error(&attempt->error);
    g_free(attempt);
}

static void
set_buffer(KilnConstantCache *cache, KilnCachedBuffer *buffer, const KilnCacheFilled *filled)
{
    const KilnTensor *tensor = filled->tensor;
    buffer->spare = filled->spare;
    if (!buffer->index)
        buffer->index = ++cache->next_index;
    buffer->bytes = g_bytes_ref(tensor->bytes);
    buffer->type = tensor->type;
    int64_t stride = 1;
    for (int i = tensor->type.rank; i-- > 0;) {
        buffer->strides[i] = stride;
        stride *= tensor->type.dims[i];
    }
}

/* Puts what was made into the entry, pinned for who made it and for all who wait. */
static void
install(KilnCacheEntry *entry, const KilnCacheFilled *filled)
{
    KilnConstantCache *cache = entry->cache;
    for (uint32_t i = 0; i < entry->n_buffers; i++) {
        set_buffer(cache, &entry->buffers[i], &filled[i]);
        entry->bytes += (int64_t)g_bytes_get_size(filled[i].tensor->bytes);
    }
    int64_t bytes = atomic_fetch_add(&cache->bytes, entry->bytes) + entry->bytes;
    cache->stats.peak_bytes = MAX(cache->stats.peak_bytes, bytes);
    cache->stats.fills++;
    atomic_fetch_add(&entry->fills, 1);
    atomic_store(&entry->used, atomic_load(&cache->clock));
    atomic_store(&entry->pins, entry->attempt->references);
}

/* Leaves the lock while @fill works. */
static bool
fill_now(KilnCacheEntry *entry, KilnCacheFill fill, void *data, GError **error)
{
    KilnConstantCache *cache = entry->cache;
    KilnFillAttempt *attempt = g_new0(KilnFillAttempt, 1);
    attempt->references = 1;
    entry->attempt = attempt;
    pthread_mutex_unlock(&cache->lock);

    g_autofree KilnCacheFilled *filled = g_new0(KilnCacheFilled, entry->n_buffers + 1);
    GError *failure = NULL;
    bool good = fill(data, filled, &failure);

    pthread_mutex_lock(&cache->lock);
    if (good) {
        install(entry, filled);
    } else {
        cache->stats.failures++;
        attempt->error = g_error_copy(failure);
        g_propagate_error(error, failure);
    }
    entry->attempt = NULL;
    attempt->done = true;
    attempt_unref(attempt);
    pthread_cond_broadcast(&cache->filled);
    for (uint32_t i = 0; i < entry->n_buffers; i++)
        kiln_tensor_free(filled[i].tensor);
    trim(cache);
    return good;
}

static bool
wait_for(KilnCacheEntry *entry, GError **error)
{
    KilnFillAttempt *attempt = entry->attempt;
    attempt->references++;
    while (!attempt->done)
        pthread_cond_wait(&entry->cache->filled, &entry->cache->lock);
    bool good = !attempt->error;
    if (!good)
        g_propagate_error(error, g_error_copy(attempt->error));
    attempt_unref(attempt);
    return good;
}

static KilnCacheEntry *
find_or_add(KilnConstantCache *cache, const KilnDigest *key, uint32_t n_buffers)
{
    KilnCacheEntry *entry = g_hash_table_lookup(cache->entries, key);
    if (!entry) {
        entry = g_new0(KilnCacheEntry, 1);
        entry->cache = cache;
        entry->key = *key;
        entry->n_buffers = n_buffers;
        entry->buffers = g_new0(KilnCachedBuffer, n_buffers + 1);
        atomic_init(&entry->pins, KILN_CACHE_GONE);
        g_hash_table_insert(cache->entries, &entry->key, entry);
    }
    entry->references++;
    return entry;
}

KilnCacheEntry *
kiln_constant_cache_acquire(KilnConstantCache *cache, const KilnDigest *key, uint32_t n_buffers,
                            KilnCacheFill fill, void *data, GError **error)
{
    pthread_mutex_lock(&cache->lock);
    atomic_fetch_add(&cache->clock, 1);
    KilnCacheEntry *entry = find_or_add(cache, key, n_buffers);
    bool good = true;
    if (kiln_cache_entry_pin(entry)) {
        cache->stats.hits++;
    } else if (entry->attempt) {
        cache->stats.hits++;
        good = wait_for(entry, error);
    } else {
        good = fill_now(entry, fill, data, error);
    }
    if (!good)
        unref_entry(entry);
    pthread_mutex_unlock(&cache->lock);
    return good ? entry : NULL;
}

/* --- weights --- */

static void
release_weight(gpointer data)
{
    SharedWeight *weight = data;
    KilnConstantCache *cache = weight->cache;
    pthread_mutex_lock(&cache->lock);
    bool last = --weight->references == 0;
    if (last) {
        g_hash_table_remove(cache->weights, &weight->digest);
        cache->stats.weight_bytes -= (int64_t)g_bytes_get_size(weight->bytes);
    }
    pthread_mutex_unlock(&cache->lock);
    if (last) {
        g_bytes_unref(weight->bytes);
        g_free(weight);
    }
    kiln_constant_cache_unref(cache);
}

enum {
    SAMPLES = 32,
    SAMPLE_BYTES = 512,
};

/* What weights are found by: their size and a few of their bytes, all of them where there are few.
 * Reading all of the others would take as long as packing them, and most are like no other. */
static KilnDigest
sample_digest(const char *data, size_t size)
{
    KilnDigest digest = kiln_digest(&size, sizeof size);
    if (size <= SAMPLES * SAMPLE_BYTES) {
        kiln_digest_add(&digest, data, size);
        return digest;
    }
    for (size_t i = 0; i < SAMPLES; i++)
        kiln_digest_add(&digest, data + (size - SAMPLE_BYTES) / (SAMPLES - 1) * i, SAMPLE_BYTES);
    return digest;
}

GBytes *
kiln_constant_cache_share(KilnConstantCache *cache, GBytes *bytes)
{
    size_t size;
    const void *data = g_bytes_get_data(bytes, &size);
    if (!size)
        return bytes;
    KilnDigest digest = sample_digest(data, size);
    pthread_mutex_lock(&cache->lock);
    SharedWeight *weight = g_hash_table_lookup(cache->weights, &digest);
    bool found = weight != NULL;
    if (!found) {
        weight = g_new0(SharedWeight, 1);
        *weight = (SharedWeight){ .digest = digest, .bytes = bytes, .cache = cache };
        g_hash_table_insert(cache->weights, &weight->digest, weight);
        cache->stats.weight_bytes += (int64_t)size;
    }
    weight->references++;
    kiln_constant_cache_ref(cache);
    pthread_mutex_unlock(&cache->lock);
    GBytes *own =
        g_bytes_new_with_free_func(g_bytes_get_data(weight->bytes, NULL),
                                   g_bytes_get_size(weight->bytes), release_weight, weight);
    if (!found)
        return own;
    if (!g_bytes_equal(own, bytes)) { /* where no sample was taken */
        g_bytes_unref(own);
        return bytes;
    }
    pthread_mutex_lock(&cache->lock);
    cache->stats.shared_weights++;
    pthread_mutex_unlock(&cache->lock);
    g_bytes_unref(bytes);
    return own;
}

/* --- what it holds --- */

gboolean
kiln_constant_cache_stats(KilnConstantCache *cache, KilnConstantCacheStats *out, GError **error)
{
    static const KilnStructKind kind =
        KILN_STRUCT_KIND(KilnConstantCacheStats, KILN_CONSTANT_CACHE_STATS_INIT);
    pthread_mutex_lock(&cache->lock);
    KilnConstantCacheStats stats = cache->stats;
    stats.bytes = atomic_load(&cache->bytes);
    int64_t capacity = atomic_load(&cache->capacity);
    stats.capacity = capacity == INT64_MAX ? -1 : capacity;
    stats.entries = g_hash_table_size(cache->entries);
    pthread_mutex_unlock(&cache->lock);
    return kiln_report_copy(&kind, &stats, out, error);
}
