/* SPDX-License-Identifier: Apache-2.0 */
/* Evaluates graphs node by node: for folding, for checks of passes, and for tests. */
#ifndef KILN_EXEC_EVAL_H
#define KILN_EXEC_EVAL_H

#include "graph/base/alloc.h"
#include "ir/target.h"

/** True where @target has a kernel for the instructions that @node lowers to (types must be
 * static). @reason, if not NULL, says what is missing. */
bool kiln_target_supports(const KilnTarget *target, const KilnNode *node, char **reason);

/** Nodes that were lowered, for evaluating others with the same attributes and types. For one
 * thread at a time. */
typedef struct KilnLoweredNodes KilnLoweredNodes;
KilnLoweredNodes *kiln_lowered_nodes_new(void);
void kiln_lowered_nodes_free(KilnLoweredNodes *lowered);

typedef struct {
    int threads;               /* 0 means 1; never changes a bit */
    bool infer_types;          /* of the results from @operands, whatever the node states */
    KilnRecycler *recycler;    /* of big buffers; may be NULL */
    KilnLoweredNodes *lowered; /* before; may be NULL */
} KilnEvaluateOptions;

/** Evaluates one node of a graph on @target: lowers it alone and runs it in buffers of its own.
 *  @operands: one tensor per operand (NULL: absent). Returns n_results new tensors in @results. */
gboolean kiln_target_evaluate(const KilnTarget *target, const KilnNode *node,
                              const KilnTensor *const *operands, KilnTensor **results,
                              GError **error);
/** The same with options. */
gboolean kiln_target_evaluate_with(const KilnTarget *target, const KilnNode *node,
                                   const KilnTensor *const *operands,
                                   const KilnEvaluateOptions *options, KilnTensor **results,
                                   GError **error);

/** Evaluates a graph function node by node, each lowered alone: shares no whole-function lowering,
 * views or buffers with the IR of the function, so that it can tell whether they are right. Types
 * are inferred again from @inputs, one per argument. @outputs: new tensors, one per result. `if`
 * and `vendor.graph` are followed; other subgraphs are KILN_ERROR_UNSUPPORTED. */
gboolean kiln_graph_evaluate(const KilnFunction *function, const KilnTarget *target,
                             const KilnTensor *const *inputs, KilnTensor **outputs, GError **error);

/** Sees a value of a node right after it was evaluated, and may put another tensor in its place,
 * which is taken over; FALSE and @error stop the evaluation. */
typedef gboolean (*KilnValueFn)(const KilnValue *value, KilnTensor **io_tensor, void *data,
                                GError **error);
/** Who sees values. */
typedef struct {
    KilnValueFn see;
    void *data;
} KilnWatch;
/** The same, and @watch, if any, sees each result of each node, in order, those of regions too.
 * @outputs: NULL where these are not wanted. */
gboolean kiln_graph_watch(const KilnFunction *function, const KilnTarget *target,
                          const KilnTensor *const *inputs, const KilnWatch *watch,
                          KilnTensor **outputs, GError **error);

/** Evaluates the entry of @module on @inputs, one per kiln_module_inputs(), with what is folded
 * computed first. @outputs: one per result of the entry. */
gboolean kiln_module_evaluate(const KilnModule *module, const KilnTarget *target,
                              const KilnTensor *const *inputs, KilnTensor **outputs,
                              GError **error);
/** The same, and @watch, if any, sees what every function of it computes. */
gboolean kiln_module_watch(const KilnModule *module, const KilnTarget *target,
                           const KilnTensor *const *inputs, const KilnWatch *watch,
                           KilnTensor **outputs, GError **error);

#endif
