/* SPDX-License-Identifier: Apache-2.0 */
/* A cache of objects that this process compiled, by content. An entry dies with its last reference.
 */
#ifndef KILN_IR_CACHE_H
#define KILN_IR_CACHE_H

#include "graph/base/shared.h"

#include <glib.h>
#include <pthread.h>
#include <stdint.h>

typedef struct {
    pthread_mutex_t lock; /* guards the fields below; held during kiln_cache_get() */
    GHashTable *entries;  /* key (of the entry) → KilnCached, no reference; NULL: empty */
    uint64_t n_made;
} KilnCache;
#define KILN_CACHE_INIT                                                                            \
    {                                                                                              \
        PTHREAD_MUTEX_INITIALIZER, NULL, 0                                                         \
    }

/** The first member of every cached object. Its maker sets @shared. */
typedef struct {
    KilnShared shared;
    /* of the cache */
    KilnCache *cache;
    char *key;
    void (*destroy)(KilnShared *self); /* of the maker; the cache's runs first */
} KilnCached;

/** Makes an object. NULL with an error. */
typedef KilnCached *(*KilnMakeFn)(void *data, GError **error);

/** Returns a new reference to the object under @key in @cache. If there is none, @make makes it
 * from @data. Only one object is made at a time; other callers wait and find it. @make may use
 * other caches, in one fixed order. NULL and an error if it cannot be made. */
KilnCached *kiln_cache_get(KilnCache *cache, const char *key, KilnMakeFn make, void *data,
                           GError **error);
/** For tests: how many objects were made. */
uint64_t kiln_cache_made(KilnCache *cache);

#endif
