/* SPDX-License-Identifier: Apache-2.0 */
/* A simple executor of IR functions: for tests, goldens and constant folding. It looks up a kernel
 * per instruction and shares nothing with the runtime's binding, so that each can be checked
 * against the other. */
#ifndef KILN_EXEC_INTERPRET_H
#define KILN_EXEC_INTERPRET_H

#include "graph/base/alloc.h"
#include "ir/target.h"

/** Evaluates a graph function, as kiln_graph_evaluate() of exec/eval.h does. */
typedef gboolean (*KilnEvaluateFn)(const KilnFunction *function, const KilnTarget *target,
                                   const KilnTensor *const *inputs, KilnTensor **outputs,
                                   GError **error);

typedef struct {
    const KilnTensor *const *inputs; /* one per input of the function, of its type */
    KilnTensor **outputs;            /* one per output: new tensors, set if the run succeeds */
    KilnTensor **weights; /* NULL, or one per weight: new tensors of the mutable ones' last values,
                             NULL for const ones */
    KilnRecycler *recycler; /* of big buffers; may be NULL */
    int threads;            /* 0 means 1 */
    bool apart; /* each thread may run a chain of instructions (exec/chains.h); not if planned or
                   poisoned */
    KilnEvaluateFn evaluate; /* runs the region of a call; NULL: there must be no call */
    uint64_t seed;           /* of random operators without a seed */
    bool poison;             /* fills unwritten and dead bytes with 0xFF: NaN, -1 */
    bool planned;            /* one arena as the memory plan says; else a heap buffer per alloc */
} KilnInterpretation;

/** Runs @function with the kernels of @target. KILN_ERROR_UNSUPPORTED names an instruction without
 * kernel, KILN_ERROR_SHAPE or KILN_ERROR_TYPE an input that does not fit, KILN_ERROR_RUN data that
 * a kernel refuses. A tensor of a blocked layout has its physical dims as shape. */
gboolean kiln_ir_interpret(const KilnIRFunction *function, const KilnTarget *target,
                           const KilnInterpretation *run, GError **error);

/** The type of a tensor that holds the bytes of a value of @type: plain, with the physical dims if
 * the layout is blocked. KILN_ERROR_UNSUPPORTED, naming @name, if these are too many. */
gboolean kiln_payload_type(const KilnType *type, const char *name, KilnType *out, GError **error);

#endif
