/* SPDX-License-Identifier: Apache-2.0 */
/* Results of functions for random inputs, to check that a pass kept their meaning. */
#ifndef KILN_PASSES_MANAGER_RESULTS_H
#define KILN_PASSES_MANAGER_RESULTS_H

#include "exec/eval.h"
#include "graph/arena.h"
#include "graph/binding.h"
#include "passes/manager/numerics.h"
#include "passes/pass.h"

typedef struct {
    GPtrArray *names;   /* char*: of results, and of weights that a run may write */
    GPtrArray *tensors; /* KilnTensor* */
    KilnErrorTerms terms;
} KilnResults;

/** Makes an empty set of results. */
KilnResults *kiln_results_new(KilnErrorTerms terms);
/** Takes @tensor over. */
void kiln_results_add(KilnResults *results, const char *name, KilnTensor *tensor);
void kiln_results_free(KilnResults *results);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KilnResults, kiln_results_free)

/** Random inputs, one KilnTensor* per argument, seeded by @seed and name. @binding: see below. Here
 * and below, the entry of a folded module takes one per input of the module. */
GPtrArray *kiln_random_inputs(const KilnFunction *function, const KilnDimBinding *binding,
                              uint64_t seed, GError **error);
GPtrArray *kiln_ir_random_inputs(const KilnIRFunction *function, uint64_t seed, GError **error);
/** The numbers that @inputs give to the names that open dims of @function have. Lives in @arena and
 * the function. */
KilnDimBinding kiln_results_numbers(KilnArena *arena, const KilnFunction *function,
                                    const GPtrArray *inputs);
/** Evaluates @function on @inputs, at either level. */
KilnResults *kiln_results_on(const KilnFunction *function, const KilnTarget *target,
                             const GPtrArray *inputs, GError **error);
KilnResults *kiln_ir_results_on(const KilnIRFunction *function, const KilnTarget *target,
                                const GPtrArray *inputs, bool planned, GError **error);

/** Evaluates @function node by node on @target with inputs seeded by name. @binding may be NULL.
 * kiln_random_dim() binds the names that it lacks. */
KilnResults *kiln_results_of_graph(const KilnFunction *function, const KilnTarget *target,
                                   const KilnDimBinding *binding, GError **error);
/** The same without @binding, and on @inputs unless NULL. @watch sees all values on the way. */
KilnResults *kiln_results_watched(const KilnFunction *function, const KilnTarget *target,
                                  const GPtrArray *inputs, const KilnWatch *watch, GError **error);
/** Runs @function on @target and poisons memory that is not written yet. Each alloc has its own
 * heap buffer, or, if @planned, its place in the arena of the memory plan. */
KilnResults *kiln_results_of_ir(const KilnIRFunction *function, const KilnTarget *target,
                                bool planned, GError **error);
/** Borrowed; NULL if there is none of that name. */
const KilnTensor *kiln_results_find(const KilnResults *results, const char *name);
/** Fails with KILN_ERROR_MISMATCH if a result of @before is missing or differs in @after. A
 * weight of @before that is const in @after is not missing. */
gboolean kiln_results_compare(const KilnResults *before, const KilnResults *after,
                              KilnNumerics numerics, GError **error);

#endif
