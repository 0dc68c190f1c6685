/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers of values that folding computes, freed with the last reader of the value. Only final
 * values become constants of the module (kiln_constant_pool_take()). Rules make none: see
 * docs/constants.md.
 *
 * A buffer is a tensor of DATA, or of a kind without storage. Its element type may be wider than
 * that of the value. */
#ifndef KILN_PASSES_FOLD_CONSTANT_POOL_H
#define KILN_PASSES_FOLD_CONSTANT_POOL_H

#include "graph/base/alloc.h"
#include "graph/module.h"

typedef struct KilnConstantPool KilnConstantPool;

/** @recycler keeps the pages of big buffers and outlives the pool. NULL: the system does. */
KilnConstantPool *kiln_constant_pool_new(KilnModule *module, KilnRecycler *recycler);
/** Frees the buffers that are attached to values. The caller of kiln_constant_pool_allocate() owns
 * a buffer until it is stored. */
void kiln_constant_pool_free(KilnConstantPool *pool);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KilnConstantPool, kiln_constant_pool_free)

/** The buffer of @value: the stored one, or its literal, which the first call reads into the pool.
 * Known integers of a value count as its literal. NULL if there is none, and for sparse literals
 * and texts, which are not dense. Borrowed. */
const KilnTensor *kiln_constant_pool_get(KilnConstantPool *pool, const KilnValue *value);
/** The elements of @value in row-major order, aligned. The first call makes generated elements.
 * NULL and @error if memory is short. Borrowed until @value is released. */
const void *kiln_constant_pool_array(KilnConstantPool *pool, const KilnValue *value,
                                     GError **error);
/** Makes a buffer of @type (static, plain); the caller writes its elements to *@out_array. @widest:
 * they are f64, i64 or u64 instead. The caller stores the buffer, or frees it with
 * kiln_tensor_free(). */
KilnTensor *kiln_constant_pool_allocate(KilnConstantPool *pool, const KilnType *type, bool widest,
                                        void **out_array, GError **error);
/** True if the buffer that kiln_constant_pool_store() gave to @value is still there. */
bool kiln_constant_pool_has(const KilnConstantPool *pool, const KilnValue *value);
/** Attaches @buffer to @value and takes it over. The last of the value's uses that is released
 * frees it. */
void kiln_constant_pool_store(KilnConstantPool *pool, const KilnValue *value, KilnTensor *buffer);
/** Releases one reader of @value. True if it was the last one. */
bool kiln_constant_pool_release(KilnConstantPool *pool, const KilnValue *value);
/** Drops the buffer of @value, if any. No reader may need it. */
void kiln_constant_pool_drop(KilnConstantPool *pool, const KilnValue *value);
/** Detaches the buffer of @value and returns it as a tensor for a constant. It has the value's
 * element type: a wider buffer is rounded once. NULL and @error if memory is short. */
KilnTensor *kiln_constant_pool_take(KilnConstantPool *pool, const KilnValue *value, GError **error);

/** The source of big buffers for kernels that compute for @pool. */
KilnRecycler *kiln_constant_pool_recycler(KilnConstantPool *pool);

/** Surround a rule that computes. It must not make constants of the module (asserted). */
void kiln_constant_pool_enter_rule(KilnConstantPool *pool);
void kiln_constant_pool_leave_rule(KilnConstantPool *pool);

/** Bytes of buffers now, and at their peak. Literals of the module do not count. */
int64_t kiln_constant_pool_live(const KilnConstantPool *pool);
int64_t kiln_constant_pool_peak(const KilnConstantPool *pool);

/** f64, i64 or u64 for @dtype; bool and texts stay the same. */
KilnDType kiln_dtype_widest(KilnDType dtype);
/** @tensor with elements of @dtype: floats rounded, integers wrapped. NULL and @error if memory is
 * short. */
KilnTensor *kiln_tensor_convert(const KilnTensor *tensor, KilnDType dtype, GError **error);

#endif
