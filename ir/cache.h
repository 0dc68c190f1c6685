/* SPDX-License-Identifier: Apache-2.0 */
/* What was compiled in this process, by its content. An entry goes with the last reference to it.
 */
#ifndef KILN_IR_CACHE_H
#define KILN_IR_CACHE_H

#include "graph/base/shared.h"

#include <glib.h>
#include <pthread.h>
#include <stdint.h>

typedef struct {
    pthread_mutex_t lock; /* guards what is below; held while something is made */
    GHashTable *entries; /* key, the entry's own → KilnCached, without a reference; NULL: empty */
    uint64_t n_made;
} KilnCache;
#define KILN_CACHE_INIT                                                                            \
    {                                                                                              \
        PTHREAD_MUTEX_INITIALIZER, NULL, 0                                                         \
    }

/** What lies in a cache begins with it. Who makes it sets @shared. */
typedef struct {
    KilnShared shared;
    /* of the cache */
    KilnCache *cache;
    char *key;
    void (*destroy)(KilnShared *self); /* the maker's, behind the cache's */
} KilnCached;

/** NULL with an error. */
typedef KilnCached *(*KilnMakeFn)(void *data, GError **error);

/** A new reference to what lies in @cache under @key, or to what @make makes of @data and is put
 * there: one thing is made at a time, and who asks for the same one waits and finds it. What is
 * made may ask other caches, in one order. NULL and an error where it cannot be made. */
KilnCached *kiln_cache_get(KilnCache *cache, const char *key, KilnMakeFn make, void *data,
                           GError **error);
/** How often something was made: for tests. */
uint64_t kiln_cache_made(KilnCache *cache);

#endif
