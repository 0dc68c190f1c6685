/* SPDX-License-Identifier: Apache-2.0 */
/* What a specialisation computes ahead of its runs: the calls of the fold functions that the pass
 * constant-fold took out of the entry.
 *
 * Values have the numbers of graph/module/folding.h: the program's inputs first, then the results
 * of each call. Calls whose operands are known when the program is compiled are made then, and what
 * they give, like the inputs whose values are given, becomes weights of the functions that read it.
 * The others are left to the first run, and what the entry reads of their results lies in the
 * constant cache. So do the packed weights of calls whose weights come with the first run: of
 * inputs, or of those results. */
#ifndef KILN_RUNTIME_FOLD_CALLS_H
#define KILN_RUNTIME_FOLD_CALLS_H

#include "runtime/constant_cache.h"

#include "graph/base/budget.h"
#include "graph/module/folding.h"
#include "ir/target.h"

#include <pthread.h>

/** A call of a fold function. */
typedef struct {
    KilnIRFunction *function;
    GArray *operands; /* uint32_t: the number that each input of the function takes */
    uint32_t first_result;
} KilnFoldCall;

/** Calls that are made together, and what others read of what they give. */
typedef struct {
    GArray *calls;   /* KilnFoldCall, in order */
    GArray *results; /* uint32_t: numbers, growing */
    KilnType *types; /* of the results, as they lie in memory */
} KilnFoldGroup;

/** How packing is shared among threads, when a program is bound and at its first run. */
enum {
    KILN_PACK_SLICE = 64 * 1024,  /* bytes that a thread packs at a time */
    KILN_PACK_ALONE = 512 * 1024, /* fewer are packed by one thread, before others are awake */
};

/** Where an operand that is packed comes from. */
typedef struct {
    bool there;
    uint32_t number; /* an input of the program or a result */
    GBytes *weight;  /* in place of it: known since the program was compiled; owned */
    int64_t offset;  /* bytes */
} KilnPackSource;

/** Operands of a call that are packed at the first run. */
typedef struct {
    const KilnInstr *instr;
    const KilnKernel *kernel;
    size_t bytes;
    KilnPackSource *sources; /* per operand; owned */
} KilnLatePacking;

typedef struct {
    const KilnTarget *target;
    const char *directory; /* where folded tensors are kept on disk; NULL: nowhere */
    int threads;
    KilnLimits limits;     /* of what is computed at the first run */
    GBytes *const *values; /* per input of the program: known while compiling; NULL: not */
} KilnFoldOptions;

typedef struct {
    KilnIRModule *ir; /* borrowed */
    KilnFoldOptions options;
    uint32_t n_inputs, n_values;
    const char **input_names;
    KilnType *input_types;
    GArray *entry;      /* uint32_t: the number that each input of the entry takes */
    KilnFoldGroup left; /* to the first run: results are the buffers of the cache entry */
    GArray *packings;   /* KilnLatePacking: the buffers behind those */
    bool *plain;        /* per result of `left`: a kernel reads it as it is */
    bool *reads;        /* per input of the program: a call that is left, or a packing, reads it */
    pthread_mutex_t lock; /* guards what is below */
    bool has_code;
    KilnDigest code;        /* of the calls that are left */
    KilnCacheEntry *latest; /* kept for the next session; NULL: none yet */
} KilnFolder;

/** Makes the calls that can be made and turns what is known into weights of @ir's functions. NULL
 * and @error where that fails. */
KilnFolder *kiln_folder_new(KilnIRModule *ir, const KilnFoldOptions *options, GError **error);
void kiln_folder_free(KilnFolder *folder);
/** Makes the table of @folder's module say what is left: the calls that were made are gone from it,
 * like their functions, and inputs that are known are arguments that nothing takes. The folder
 * keeps its own numbers. */
void kiln_folder_write_table(const KilnFolder *folder);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KilnFolder, kiln_folder_free)

/** Has the first run pack: before any run. Takes what @packing owns over. The number of the buffer
 * among those of the entry is that of the results of `left` and of packings before. */
void kiln_folder_add_packing(KilnFolder *folder, const KilnLatePacking *packing);
GArray *kiln_late_packings_new(void);
/** Adds what decides about packings besides values of the first run. */
void kiln_folder_digest_packings(const KilnFolder *folder, KilnDigest *digest);
/** Makes the packings for @values, by number; sets one of @out for each. */
gboolean kiln_folder_pack(const KilnFolder *folder, KilnTensor *const *values, KilnCacheFilled *out,
                          GError **error);
/** Buffers of an entry. */
static inline uint32_t
kiln_folder_n_buffers(const KilnFolder *folder)
{
    return folder->left.results->len + folder->packings->len;
}

/** The results of the calls that are left, and what is packed of them, for the program's inputs
 * @data, pinned and referenced: from @cache, from disk, or made now, which @runs counts. */
KilnCacheEntry *kiln_folder_acquire(KilnFolder *folder, KilnConstantCache *cache,
                                    const void *const *data, atomic_ullong *runs, GError **error);
/** Lets go of what is kept for the next session. */
void kiln_folder_forget(KilnFolder *folder);
/** Counts a reader for each constant that a call that is left reads. */
void kiln_folder_count_readers(const KilnFolder *folder, uint32_t *readers);
/** Which buffer of the cache entry value @number is: for numbers that an input of the entry takes
 * and that are no input of the program. */
uint32_t kiln_folder_buffer(const KilnFolder *folder, uint32_t number);

#endif
