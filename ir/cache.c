/* SPDX-License-Identifier: Apache-2.0 */
#include "ir/cache.h"

/* The last reference went. Somebody may have asked for the entry since and put another in place. */
static void
forget(KilnShared *shared)
{
    KilnCached *entry = (KilnCached *)shared;
    KilnCache *cache = entry->cache;
    char *key = entry->key;
    pthread_mutex_lock(&cache->lock);
    if (cache->entries && g_hash_table_lookup(cache->entries, key) == entry)
        g_hash_table_remove(cache->entries, key);
    if (cache->entries && !g_hash_table_size(cache->entries))
        g_clear_pointer(&cache->entries, g_hash_table_unref);
    pthread_mutex_unlock(&cache->lock);
    entry->destroy(shared);
    g_free(key);
}

/* Under the lock: a new reference to what lies under @key, unless its last one is on its way out.
 */
static KilnCached *
find(const KilnCache *cache, const char *key)
{
    KilnCached *entry = cache->entries ? g_hash_table_lookup(cache->entries, key) : NULL;
    int references = entry ? atomic_load(&entry->shared.references) : 0;
    while (references &&
           !atomic_compare_exchange_weak(&entry->shared.references, &references, references + 1))
        ;
    return references ? entry : NULL;
}

/* Under the lock. */
static void
remember(KilnCache *cache, KilnCached *entry, const char *key)
{
    if (!cache->entries)
        cache->entries = g_hash_table_new(g_str_hash, g_str_equal);
    entry->cache = cache;
    entry->key = g_strdup(key);
    entry->destroy = entry->shared.destroy;
    entry->shared.destroy = forget;
    g_hash_table_replace(cache->entries, entry->key, entry);
    cache->n_made++;
}

KilnCached *
kiln_cache_get(KilnCache *cache, const char *key, KilnMakeFn make, void *data, GError **error)
{
    pthread_mutex_lock(&cache->lock);
    KilnCached *entry = find(cache, key);
    if (!entry && (entry = make(data, error)))
        remember(cache, entry, key);
    pthread_mutex_unlock(&cache->lock);
    return entry;
}

uint64_t
kiln_cache_made(KilnCache *cache)
{
    pthread_mutex_lock(&cache->lock);
    uint64_t n = cache->n_made;
    pthread_mutex_unlock(&cache->lock);
    return n;
}
