/* SPDX-License-Identifier: Apache-2.0 */
/* Running a model on tensors: what `kiln run` and `kiln verify` share. */
#ifndef KILN_TOOLS_EXECUTE_H
#define KILN_TOOLS_EXECUTE_H

#include "kiln.h"
#include "runtime/model.h"
#include "runtime/program.h"
#include "runtime/session.h"
#include "tools/command.h"

/** A program, a session, and the tensors that are bound to it. */
typedef struct {
    KilnProgram *program;
    KilnSession *session;
    GPtrArray *views; /* GBytes*: aligned payloads of the inputs */
    double run_ms;    /* of one run: the mean */
} KilnExecution;

void kiln_execution_clear(KilnExecution *execution);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(KilnExecution, kiln_execution_clear)

/** Compiles @model, unless the execution has a program already, and opens a session; @session is
 * its options, NULL: the default. */
gboolean kiln_execution_open(KilnExecution *execution, KilnModel *model,
                             const KilnCompileOptions *options, const KilnSessionOptions *session,
                             GError **error);
/** Binds @tensor to input @i; its element type must be the input's (KILN_ERROR_TYPE). */
gboolean kiln_execution_bind(KilnExecution *execution, unsigned i, const KilnTensor *tensor,
                             GError **error);
/** Runs @n times and stores the time of one in run_ms. */
gboolean kiln_execution_run(KilnExecution *execution, unsigned n, GError **error);
/** Output @i as a tensor of its own. */
KilnTensor *kiln_execution_output(KilnExecution *execution, unsigned i, GError **error);
/** All of them, KilnTensor*. */
GPtrArray *kiln_execution_outputs(KilnExecution *execution, GError **error);

#endif
