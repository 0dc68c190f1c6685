/* SPDX-License-Identifier: Apache-2.0 */
/* Runs operators that a vendor lacks inside the vendor's region. The body of a `custom_op` becomes
 * kernels of a target behind one function. The vendor runs this function as one of its steps.
 *
 *     %y = custom_op @c0(%a) body(%x: …) {           run(custom, {y, a}, scratch, threads)
 *       %s = channel_shuffle(%x) {group=2}      =>       cpu:channel_shuffle
 *       %z = slice(%s) …                                 cpu:copy …
 *       return %z
 *     }
 */
#ifndef KILN_EXEC_CUSTOM_H
#define KILN_EXEC_CUSTOM_H

#include "graph/base/shared.h"
#include "ir/target.h"

/** Immutable. Equal bodies share one object. kiln_custom_shared() gives its reference count. */
typedef struct KilnCustom KilnCustom;

/** The vendor's tag of layout @layout for values of @rank; NULL: the layout has none. */
typedef const char *(*KilnTagFn)(uint32_t layout, int rank);

/** The operands and results of a custom_op that lie in @layout: a set of KilnValue of @body, to be
 * freed. NULL if an operator of @body means something else in that layout: then all lie plain. */
GHashTable *kiln_custom_laid(const KilnFunction *body, KilnTagFn tag, uint32_t layout);

/** Gets kernels of @target for @body, for @threads threads or fewer. @body reads no outer value and
 * has static types. Its values lie in @layout as kiln_custom_laid() says; @tag NULL: plain. Uses a
 * cache of the process. Thread-safe. Returns a new reference. Fails with KILN_ERROR_UNSUPPORTED if
 * the target lacks something. */
KilnCustom *kiln_custom_get(const KilnFunction *body, KilnTagFn tag, uint32_t layout,
                            const KilnTarget *target, int threads, GError **error);
KilnShared *kiln_custom_shared(KilnCustom *custom);

/** The type and layout of operand @i. Results come first. */
const KilnType *kiln_custom_type(const KilnCustom *custom, uint32_t i);
/** Bytes of scratch for one run: intermediates and kernels. */
size_t kiln_custom_scratch(const KilnCustom *custom);
/** Runs on @data, one address per operand, results first. Returns NULL, or the reason that the data
 * cannot be computed, as kernels do. Allocates nothing. @scratch is 64-byte aligned, and only this
 * run uses it. */
const char *kiln_custom_run(const KilnCustom *custom, void *const *data, void *scratch,
                            int threads);
/** The kernels, in order: "cpu:channel_shuffle, ref:slice". */
void kiln_custom_describe(const KilnCustom *custom, GString *out);
/** For tests: how many objects this process has made. */
uint64_t kiln_custom_made(void);

#endif
