/* SPDX-License-Identifier: Apache-2.0 */
/* Branches and loops in the interpreter. Each iteration interprets a copy of the body at the dims
 * that it is given. Nothing is shared with the runtime. */
#ifndef KILN_EXEC_INTERPRET_FLOW_H
#define KILN_EXEC_INTERPRET_FLOW_H

#include "exec/interpret.h"
#include "ir/flow.h"

/** What runs a branch or loop of an interpretation. */
typedef struct {
    KilnFlowRunner runner; /* first */
    const KilnTarget *target;
    const KilnInterpretation *run;
    GPtrArray *held; /* memory of held results, to be freed with kiln_free() */
    GError *error;   /* why it failed */
} KilnFlowInterpreter;

void kiln_flow_interpreter_init(KilnFlowInterpreter *self, const KilnTarget *target,
                                const KilnInterpretation *run, GPtrArray *held);

#endif
