/* SPDX-License-Identifier: Apache-2.0 */
/* Where folding keeps what it computes until it is known which of it becomes a constant: buffers of
 * values, freed with the last reader of the value. Constants of the module are made of the final
 * ones only (kiln_constant_pool_take()), and not by the rules that compute: see docs/constants.md.
 *
 * A buffer is a tensor: of DATA, or of a kind that takes no storage. Its element type may be wider
 * than that of the value. */
#ifndef KILN_PASSES_FOLD_CONSTANT_POOL_H
#define KILN_PASSES_FOLD_CONSTANT_POOL_H

#include "graph/base/alloc.h"
#include "graph/module.h"

typedef struct KilnConstantPool KilnConstantPool;

/** @recycler: where big buffers come from and go to; it outlives the pool. NULL: the system. */
KilnConstantPool *kiln_constant_pool_new(KilnModule *module, KilnRecycler *recycler);
/** Frees the buffers that are attached to values; what kiln_constant_pool_allocate() gave and
 * nothing stored is its caller's. */
void kiln_constant_pool_free(KilnConstantPool *pool);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KilnConstantPool, kiln_constant_pool_free)

/** The buffer of @value: what was stored for it, or its literal, which the first call reads into
 * the pool and later calls find there. Integers that are known of a value count as its literal.
 * NULL where there is none, and for sparse literals and texts, which are not dense. Borrowed. */
const KilnTensor *kiln_constant_pool_get(KilnConstantPool *pool, const KilnValue *value);
/** Its elements in row-major order, aligned; made by the first call where they are generated. NULL
 * and @error where memory is short. Borrowed until @value is released. */
const void *kiln_constant_pool_array(KilnConstantPool *pool, const KilnValue *value,
                                     GError **error);
/** A new buffer of @type, static and plain, whose elements are to be written to *@out_array;
 * @widest: of f64, i64 or u64 instead of its element type. The caller's, to be stored or freed with
 * kiln_tensor_free(). */
KilnTensor *kiln_constant_pool_allocate(KilnConstantPool *pool, const KilnType *type, bool widest,
                                        void **out_array, GError **error);
/** True where kiln_constant_pool_store() gave @value a buffer that is still there. */
bool kiln_constant_pool_has(const KilnConstantPool *pool, const KilnValue *value);
/** Attaches @buffer, which is taken over, to @value: it is freed once as many readers are released
 * as the value has uses. */
void kiln_constant_pool_store(KilnConstantPool *pool, const KilnValue *value, KilnTensor *buffer);
/** A reader of @value needs it no more. True where it was the last one. */
bool kiln_constant_pool_release(KilnConstantPool *pool, const KilnValue *value);
/** No reader needs the buffer of @value; nothing where it has none. */
void kiln_constant_pool_drop(KilnConstantPool *pool, const KilnValue *value);
/** The buffer stored for @value, detached, as a tensor for a constant: of the value's element type,
 * rounded once where the buffer is wider. NULL and @error where memory is short. */
KilnTensor *kiln_constant_pool_take(KilnConstantPool *pool, const KilnValue *value, GError **error);

/** Where kernels that compute for @pool get big buffers from. */
KilnRecycler *kiln_constant_pool_recycler(KilnConstantPool *pool);

/** Around a rule that computes: it must not make constants of the module (asserted). */
void kiln_constant_pool_enter_rule(KilnConstantPool *pool);
void kiln_constant_pool_leave_rule(KilnConstantPool *pool);

/** Bytes of buffers now, and the most at any time; literals of the module do not count. */
int64_t kiln_constant_pool_live(const KilnConstantPool *pool);
int64_t kiln_constant_pool_peak(const KilnConstantPool *pool);

/** f64, i64 or u64 for @dtype; bool and texts stay what they are. */
KilnDType kiln_dtype_widest(KilnDType dtype);
/** @tensor with elements of @dtype: floats rounded, integers wrapped. NULL and @error where memory
 * is short. */
KilnTensor *kiln_tensor_convert(const KilnTensor *tensor, KilnDType dtype, GError **error);

#endif
