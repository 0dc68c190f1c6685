/* SPDX-License-Identifier: Apache-2.0 */
/* What a vendor lacks inside its region: the body of a `custom_op` as kernels of a target behind
 * one function, which a vendor runs as a step among its own.
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

/** Immutable, shared by all that have an equal body. References are those of @shared. */
typedef struct KilnCustom KilnCustom;

/** The layouts of a vendor: tag of layout @layout for a rank, NULL where that has none. */
typedef const char *(*KilnTagFn)(uint32_t layout, int rank);

/** Which operands and results of a custom_op lie in a layout: set of KilnValue of @body. NULL where
 * an operator of it means something else there: all lie plain then. The caller's. */
GHashTable *kiln_custom_laid(const KilnFunction *body, KilnTagFn tag, uint32_t layout);

/** Kernels of @target for @body, which reads nothing around it and whose types are static, to run
 * on
 * @threads or fewer. @tag: in layout @layout, as kiln_custom_laid() says; NULL: plain. From a cache
 * of the process. Thread-safe. A new reference; NULL and KILN_ERROR_UNSUPPORTED where the target
 * lacks something. */
KilnCustom *kiln_custom_get(const KilnFunction *body, KilnTagFn tag, uint32_t layout,
                            const KilnTarget *target, int threads, GError **error);
KilnShared *kiln_custom_shared(KilnCustom *custom);

/** As operand @i lies: results come first. */
const KilnType *kiln_custom_type(const KilnCustom *custom, uint32_t i);
/** Of intermediates and of kernels: what a run needs. */
size_t kiln_custom_scratch(const KilnCustom *custom);
/** Runs it on @data, one address per operand, results first. Returns NULL or why the data cannot be
 * computed, as kernels do. Allocates nothing; @scratch is 64-byte aligned and this run's alone. */
const char *kiln_custom_run(const KilnCustom *custom, void *const *data, void *scratch,
                            int threads);
/** The kernels, in order: "cpu:channel_shuffle, ref:slice". */
void kiln_custom_describe(const KilnCustom *custom, GString *out);
/** How often one was made by this process: for tests. */
uint64_t kiln_custom_made(void);

#endif
