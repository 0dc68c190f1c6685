/* SPDX-License-Identifier: Apache-2.0 */
/* Evaluates graphs node by node: for folding, for checks of passes, and for tests. */
#ifndef KILN_EXEC_EVAL_H
#define KILN_EXEC_EVAL_H

#include "graph/base/alloc.h"
#include "ir/target.h"

/** True if @target has kernels for the instructions that @node lowers to (types must be static).
 * @reason, if not NULL, says what is missing. */
bool kiln_target_supports(const KilnTarget *target, const KilnNode *node, char **reason);

/** Lowered nodes, to evaluate others with the same attributes and types. For one thread at a
 * time. */
typedef struct KilnLoweredNodes KilnLoweredNodes;
KilnLoweredNodes *kiln_lowered_nodes_new(void);
void kiln_lowered_nodes_free(KilnLoweredNodes *lowered);

typedef struct {
    int threads;            /* 0 means 1; never changes a bit */
    bool infer_types;       /* infers the results' types from @operands, whatever the node states */
    KilnRecycler *recycler; /* of big buffers; may be NULL */
    KilnLoweredNodes *lowered; /* earlier; may be NULL */
} KilnEvaluateOptions;

/** Evaluates one node of a graph on @target: lowers it alone and runs it in buffers of its own.
 * @operands: one tensor per operand (NULL: absent). Returns n_results new tensors in @results. */
gboolean kiln_target_evaluate(const KilnTarget *target, const KilnNode *node,
                              const KilnTensor *const *operands, KilnTensor **results,
                              GError **error);
/** The same with options. */
gboolean kiln_target_evaluate_with(const KilnTarget *target, const KilnNode *node,
                                   const KilnTensor *const *operands,
                                   const KilnEvaluateOptions *options, KilnTensor **results,
                                   GError **error);

/** Evaluates a graph function node by node, each lowered alone. It shares no lowering of the whole
 * function, views or buffers with the IR, so it can check them. Types are inferred again from
 * @inputs, one per argument. @outputs: new tensors, one per result. Follows branches, loops,
 * scans and bodies of vendors. Each iteration is a kiln_checkpoint(). A scan output without an
 * iteration is empty; dims that types do not say are 0. */
gboolean kiln_graph_evaluate(const KilnFunction *function, const KilnTarget *target,
                             const KilnTensor *const *inputs, KilnTensor **outputs, GError **error);

/** Sees a value right after its node was evaluated. May put another tensor in its place, which is
 * taken over. FALSE and @error stop the evaluation. */
typedef gboolean (*KilnValueFn)(const KilnValue *value, KilnTensor **io_tensor, void *data,
                                GError **error);
/** One iteration of each loop or scan: number d is that of those which d others surround. What lies
 * deeper than @n numbers say has all its iterations. */
typedef struct {
    const int64_t *numbers; /* from 0 on */
    uint32_t n;
    bool found; /* set where a loop has run the iteration of the last number */
} KilnIterations;
/** A function that sees values. */
typedef struct {
    KilnValueFn see;
    void *data;
    KilnIterations *only; /* NULL: every iteration */
} KilnWatch;
/** The same. @watch (or NULL) sees each result of each node, in order, also in regions, and in each
 * iteration that it asks for. @outputs: NULL if they are not wanted. */
gboolean kiln_graph_watch(const KilnFunction *function, const KilnTarget *target,
                          const KilnTensor *const *inputs, const KilnWatch *watch,
                          KilnTensor **outputs, GError **error);

/** Computes the folded tensors of @module, then evaluates its entry on @inputs, one per
 * kiln_module_inputs(). @outputs: one per result of the entry. @watch (or NULL) sees the values of
 * every function. */
gboolean kiln_module_watch(const KilnModule *module, const KilnTarget *target,
                           const KilnTensor *const *inputs, const KilnWatch *watch,
                           KilnTensor **outputs, GError **error);

#endif
