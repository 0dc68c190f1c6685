/* SPDX-License-Identifier: Apache-2.0 */
/* Computes results of fold functions ahead of the runs of a specialisation. The pass constant-fold
 * took these functions out of the entry.
 *
 * Values have the numbers of graph/module/folding.h: the program's inputs first, then the results
 * of each call. Calls with operands that are known at compile time are made then. Their results and
 * the given inputs become weights of the functions that read them. The other calls are left to the
 * first run. Their results that the entry reads lie in the constant cache. Weights that come with
 * the first run, as inputs or such results, are packed then, and lie there too. */
#ifndef KILN_RUNTIME_FOLD_CALLS_H
#define KILN_RUNTIME_FOLD_CALLS_H

#include "graph/base/budget.h"
#include "ir/target.h"
#include "runtime/constant_cache.h"
#include "runtime/digest/digest.h"
#include "runtime/kiln-constants.h"

#include <pthread.h>

enum {
    KILN_KEPT_CONSTANTS = 8 /* entries that an open program keeps, of its last numbers */
};

/** A call of a fold function. */
typedef struct {
    KilnIRFunction *function;
    GArray *operands; /* uint32_t: the number that each input of the function takes */
    uint32_t first_result;
} KilnFoldCall;

/** Calls that are made together, and their results that others read. */
typedef struct {
    GArray *calls;   /* KilnFoldCall, in order */
    GArray *results; /* uint32_t: numbers, growing */
    KilnType *types; /* of the results, as they lie in memory */
} KilnFoldGroup;

/** How threads share packing when a program is bound and at its first run. */
enum {
    KILN_PACK_SLICE = 64 * 1024,  /* bytes that a thread packs at a time */
    KILN_PACK_ALONE = 512 * 1024, /* one thread packs fewer, before others wake up */
};

/** The source of a packed operand. */
typedef struct {
    bool there;
    uint32_t number; /* an input of the program or a result */
    GBytes *weight;  /* replaces `number`: known at compile time; owned */
    int64_t offset;  /* bytes */
} KilnPackSource;

/** Operands of a call that the first run packs. */
typedef struct {
    const KilnInstr *instr;
    const KilnKernel *kernel;
    uint32_t form;
    size_t bytes;
    KilnPackSource *sources; /* per operand; owned */
} KilnLatePacking;

typedef struct {
    const KilnTarget *target;
    const char *directory; /* of folded tensors on disk; NULL: none */
    int threads;
    KilnLimits limits;     /* of the work of the first run */
    GBytes *const *values; /* per input of the program: known value or NULL */
} KilnFoldOptions;

typedef struct KilnFolder {
    KilnIRModule *ir;        /* borrowed */
    struct KilnFolder *open; /* whose copy for some numbers it is (runtime/open/constants.h),
                                borrowed; NULL: it is none */
    GPtrArray *functions;    /* KilnIRFunction* of such a copy, owned; else NULL */
    KilnFoldOptions options;
    uint32_t n_inputs, n_values;
    const char **input_names;
    KilnType *input_types;
    GArray *entry;        /* uint32_t: the number that each input of the entry takes */
    KilnFoldGroup left;   /* for the first run: results are buffers of the cache entry */
    GArray *packings;     /* KilnLatePacking: the buffers behind those */
    bool *plain;          /* per result of `left`: a kernel reads it unpacked */
    bool *reads;          /* per input of the program: a call of `left` or a packing reads it */
    pthread_mutex_t lock; /* guards the fields below */
    bool has_code;
    KilnDigest code;        /* of the calls of `left` */
    KilnCacheEntry *latest; /* kept for the next session; NULL: none yet */
    GPtrArray *kept; /* KilnCacheEntry*: the same of copies, the latest at the end; NULL: none
                        yet */
} KilnFolder;

/** Makes the calls that are possible now. Known values become weights of @ir's functions. NULL and
 * @error on failure. */
KilnFolder *kiln_folder_new(KilnIRModule *ir, const KilnFoldOptions *options, GError **error);
void kiln_folder_free(KilnFolder *folder);
/** Updates the table of @folder's module. The finished calls and their functions disappear. Known
 * inputs become arguments that nothing takes. The folder keeps its own numbers. */
void kiln_folder_write_table(const KilnFolder *folder);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KilnFolder, kiln_folder_free)

/** Makes the first run pack; call it before any run. Takes over the content of @packing. Its buffer
 * in the entry has the number behind the results of `left` and earlier packings. */
void kiln_folder_add_packing(KilnFolder *folder, const KilnLatePacking *packing);
GArray *kiln_late_packings_new(void);
/** Adds to @digest all that decides about packings, except values of the first run. */
void kiln_folder_digest_packings(const KilnFolder *folder, KilnDigest *digest);
/** Makes the packings for @values, by number. Sets one element of @out for each. */
gboolean kiln_folder_pack(const KilnFolder *folder, KilnTensor *const *values, KilnCacheFilled *out,
                          GError **error);
/** The number of buffers of an entry. */
static inline uint32_t
kiln_folder_n_buffers(const KilnFolder *folder)
{
    return folder->left.results->len + folder->packings->len;
}

/** The results of the calls in `left` and their packings for the program's inputs @data, pinned and
 * referenced. They come from @cache, from disk, or are made now; @runs counts the last case. */
KilnCacheEntry *kiln_folder_acquire(KilnFolder *folder, KilnConstantCache *cache,
                                    const void *const *data, atomic_ullong *runs, GError **error);
/** A digest of all that decides what an entry holds, but for the bytes of the inputs. */
bool kiln_folder_code(KilnFolder *folder, KilnDigest *out, GError **error);
/** Drops the entry that is kept for the next session. */
void kiln_folder_forget(KilnFolder *folder);
/** Counts a reader for each constant that a call of `left` reads. */
void kiln_folder_count_readers(const KilnFolder *folder, uint32_t *readers);
/** The index of the buffer of value @number in the cache entry. An input of the entry must take
 * @number, and it is no input of the program. */
uint32_t kiln_folder_buffer(const KilnFolder *folder, uint32_t number);

#endif
