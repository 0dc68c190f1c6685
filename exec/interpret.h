/* SPDX-License-Identifier: Apache-2.0 */
/* A simple executor of IR functions: for tests, goldens and constant folding. It looks up a kernel
 * per instruction and shares nothing with the runtime's binding, so that each can be checked
 * against the other. */
#ifndef KILN_EXEC_INTERPRET_H
#define KILN_EXEC_INTERPRET_H

#include "graph/base/alloc.h"
#include "ir/target.h"

typedef struct {
    const KilnTensor *const *inputs; /* one per input of the function, of its type */
    KilnTensor **outputs;            /* one per output: new tensors, set where the run succeeds */
    KilnTensor **weights; /* NULL, or one per weight: new tensors of the mutable ones' last values,
                             NULL for const ones */
    KilnRecycler *recycler; /* of big buffers; may be NULL */
    int threads;            /* 0 means 1 */
    bool apart;    /* the threads may take a chain of instructions (exec/chains.h) each; not where
                      planned or poisoned */
    uint64_t seed; /* of random operators that have none */
    bool poison;   /* fills what is not written yet, and what is dead, with 0xFF: NaN, -1 */
    bool planned;  /* one arena as the memory plan says; else a heap buffer per alloc */
} KilnInterpretation;

/** Runs @function with the kernels of @target. KILN_ERROR_UNSUPPORTED names an instruction without
 * kernel, KILN_ERROR_SHAPE or KILN_ERROR_TYPE an input that does not fit, KILN_ERROR_RUN data that
 * a kernel refuses. A tensor of a blocked layout has its physical dims as shape. */
gboolean kiln_ir_interpret(const KilnIRFunction *function, const KilnTarget *target,
                           const KilnInterpretation *run, GError **error);

/** The type of a tensor that holds the bytes of a value of @type: plain, with the physical dims
 * where the layout is blocked. KILN_ERROR_UNSUPPORTED, naming @name, where these are too many. */
gboolean kiln_payload_type(const KilnType *type, const char *name, KilnType *out, GError **error);

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
 * computed first. @outputs: one per result of the entry. @watch, if any, sees what every function
 * of it computes. */
gboolean kiln_module_watch(const KilnModule *module, const KilnTarget *target,
                           const KilnTensor *const *inputs, const KilnWatch *watch,
                           KilnTensor **outputs, GError **error);

#endif
