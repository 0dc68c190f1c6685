/* SPDX-License-Identifier: Apache-2.0 */
/* Branches and loops in the interpreter. Each iteration interprets a copy of the body at the dims
 * that it is given. Nothing is shared with the runtime. */
#ifndef KILN_EXEC_INTERPRET_FLOW_H
#define KILN_EXEC_INTERPRET_FLOW_H

#include "graph/tensor.h"
#include "ir/flow.h"
#include "ir/ir.h"

/** Interprets @function on @inputs, a tensor each. @outputs: new tensors. */
typedef gboolean (*KilnInterpretFn)(void *data, const KilnIRFunction *function,
                                    KilnTensor *const *inputs, KilnTensor **outputs, uint64_t seed,
                                    GError **error);

/** What runs a branch or loop of an interpretation. */
typedef struct {
    KilnFlowRunner runner; /* first */
    KilnInterpretFn interpret;
    void *data;
    GPtrArray *held;  /* memory of held results, to be freed with kiln_free() */
    GPtrArray *bytes; /* GBytes: what results refer to */
    GError *error;    /* why it failed */
} KilnFlowInterpreter;

void kiln_flow_interpreter_init(KilnFlowInterpreter *self, KilnInterpretFn interpret, void *data,
                                GPtrArray *held, GPtrArray *bytes);

#endif
