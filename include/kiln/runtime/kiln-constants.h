/* SPDX-License-Identifier: Apache-2.0 */
/* Constants of the C interface: the cache of folded and packed constants, and constant inputs. Part
 * of kiln.h, which includes it. */
#ifndef KILN_RUNTIME_KILN_CONSTANTS_H
#define KILN_RUNTIME_KILN_CONSTANTS_H

#include "graph/kiln-types.h"

G_BEGIN_DECLS

/** Holds folded constants and packed weights of programs, found by their content. Programs and
 * sessions that share a cache hold one copy of equal bytes. Reference-counted and for any number of
 * threads. Each model has one for its programs. Pass another in KilnCompileOptions to share between
 * models, to limit the capacity, or to keep a program apart. */
typedef struct KilnConstantCache KilnConstantCache;

/** @capacity: bytes of folded constants, and of packed forms of them, that stay from one run to the
 * next. Less than 0: no limit; 0: none. A run computes the others again, with the same
 * results. Constants known when a program is compiled are part of it and do not count. */
KILN_API KilnConstantCache *kiln_constant_cache_new(int64_t capacity);
/** One owner more; returns @cache. */
KILN_API KilnConstantCache *kiln_constant_cache_ref(KilnConstantCache *cache);
/** One owner less; the last one frees it. Does nothing for NULL. */
KILN_API void kiln_constant_cache_unref(KilnConstantCache *cache);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KilnConstantCache, kiln_constant_cache_unref)
/** Evicts at once entries that do not fit and that no run reads, least recently used first. */
KILN_API void kiln_constant_cache_set_capacity(KilnConstantCache *cache, int64_t capacity);

/** Counts of a cache. */
typedef struct {
    size_t size;        /* sizeof(KilnConstantCacheStats): set by KILN_CONSTANT_CACHE_STATS_INIT */
    int64_t capacity;   /* -1: no limit */
    int64_t bytes;      /* of folded and packed constants in the cache now */
    int64_t peak_bytes; /* the most there were */
    uint64_t entries;   /* combinations of fold functions and inputs that programs refer to */
    uint64_t fills;     /* how often such a combination was computed, or read from disk */
    uint64_t hits;      /* how often one was found, or another thread was computing it */
    uint64_t evictions;
    uint64_t failures;       /* of fills */
    int64_t weight_bytes;    /* of packed weights and views, each counted once */
    uint64_t shared_weights; /* how often a program got one that was there already */
} KilnConstantCacheStats;
#define KILN_CONSTANT_CACHE_STATS_INIT KILN_STRUCT_INIT(KilnConstantCacheStats)
/** Fills @out. */
KILN_API gboolean kiln_constant_cache_stats(KilnConstantCache *cache, KilnConstantCacheStats *out,
                                            GError **error);

/** When the value of a constant input is known. */
typedef enum {
    KILN_CONSTANT_COMPILE, /* known when the program is compiled */
    KILN_CONSTANT_RUN,     /* known at the first run */
} KilnConstantWhen;

/** An input that is the same at every run. Values computed from constants alone are computed once,
 * ahead of the runs. Kernels pack constants once. */
typedef struct {
    const char *input;
    KilnConstantWhen when;
    GBytes *value; /* COMPILE: the row-major payload; the program keeps a reference, and the input
                      is not bound. NULL: it comes with the first run. RUN: not read */
} KilnConstantInput;

G_END_DECLS

#endif
