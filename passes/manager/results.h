/* SPDX-License-Identifier: Apache-2.0 */
/* What a function computes from random inputs: the evidence that a pass left its meaning alone. */
#ifndef KILN_PASSES_MANAGER_RESULTS_H
#define KILN_PASSES_MANAGER_RESULTS_H

#include "exec/eval.h"
#include "exec/interpret.h"
#include "passes/manager/numerics.h"

typedef struct {
    GPtrArray *names;   /* char*: of results, and of weights that a run may write */
    GPtrArray *tensors; /* KilnTensor* */
    KilnErrorTerms terms;
} KilnResults;

/** None yet. */
KilnResults *kiln_results_new(KilnErrorTerms terms);
/** @tensor is taken over. */
void kiln_results_add(KilnResults *results, const char *name, KilnTensor *tensor);
void kiln_results_free(KilnResults *results);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KilnResults, kiln_results_free)

/** Random inputs, one KilnTensor* per argument, seeded by @seed and name. @dims: see below. For the
 * entry of a module that is folded, here and below: per input of the module. */
GPtrArray *kiln_random_inputs(const KilnFunction *function, const char *dims, uint64_t seed,
                              GError **error);
GPtrArray *kiln_ir_random_inputs(const KilnIRFunction *function, uint64_t seed, GError **error);
/** Evaluates @function on @inputs, at either level. */
KilnResults *kiln_results_on(const KilnFunction *function, const KilnTarget *target,
                             const GPtrArray *inputs, GError **error);
KilnResults *kiln_ir_results_on(const KilnIRFunction *function, const KilnTarget *target,
                                const GPtrArray *inputs, bool planned, GError **error);

/** Evaluates @function node by node on @target with inputs seeded by name. @dims ("N=3, M=2") binds
 * named dims; what it does not name, and NULL, is bound by kiln_random_dim(). */
KilnResults *kiln_results_of_graph(const KilnFunction *function, const KilnTarget *target,
                                   const char *dims, GError **error);
/** The same without @dims, on @inputs where they are given, and @watch sees what is computed on the
 * way. */
KilnResults *kiln_results_watched(const KilnFunction *function, const KilnTarget *target,
                                  const GPtrArray *inputs, const KilnWatch *watch, GError **error);
/** Runs @function on @target with memory that is not written yet poisoned: a heap buffer per alloc,
 * or, where @planned, the arena of its memory plan. */
KilnResults *kiln_results_of_ir(const KilnIRFunction *function, const KilnTarget *target,
                                bool planned, GError **error);
/** Borrowed; NULL where there is none of that name. */
const KilnTensor *kiln_results_find(const KilnResults *results, const char *name);
/** Fails with KILN_ERROR_MISMATCH where a result of @before is missing or differs in @after. A
 * weight of @before that is const in @after is not missing. */
gboolean kiln_results_compare(const KilnResults *before, const KilnResults *after,
                              KilnNumerics numerics, GError **error);

#endif
