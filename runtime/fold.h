/* SPDX-License-Identifier: Apache-2.0 */
/* What a specialisation computes ahead of its runs: the calls of the fold functions that the pass
 * constant-fold took out of the entry.
 *
 * Values have the numbers of graph/folding.h: the program's inputs first, then the results of each
 * call. Calls whose operands are known when the program is compiled are made then, and what they
 * give, like the inputs whose values are given, becomes weights of the functions that read it. The
 * others are left to the first run, and what the entry reads of their results lies in the constant
 * cache. */
#ifndef KILN_RUNTIME_FOLD_H
#define KILN_RUNTIME_FOLD_H

#include "runtime/constant_cache.h"

#include "graph/budget.h"
#include "graph/folding.h"
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
    GArray *entry;        /* uint32_t: the number that each input of the entry takes */
    KilnFoldGroup left;   /* to the first run: results are the buffers of the cache entry */
    bool *reads;          /* per input of the program: a call that is left reads it */
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

/** The results of the calls that are left for the program's inputs @data, pinned and referenced:
 * from @cache, from disk, or made now, which @runs counts. */
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
