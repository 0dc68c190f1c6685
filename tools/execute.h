/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a model on tensors, for `kiln run` and `kiln verify`. */
#ifndef KILN_TOOLS_EXECUTE_H
#define KILN_TOOLS_EXECUTE_H

#include "graph/tensor.h"
#include "kiln.h"
#include "runtime/model.h"
#include "runtime/program.h"
#include "runtime/session.h"

/** A program, a session, and the tensors bound to it. */
typedef struct {
    KilnProgram *program;
    KilnSession *session;
    GPtrArray *views; /* GBytes*: aligned payloads of the inputs */
    double run_ms;    /* milliseconds of a run, the mean */
} KilnExecution;

void kiln_execution_clear(KilnExecution *execution);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(KilnExecution, kiln_execution_clear)

/** Compiles @model, unless the execution has a program already. Opens a session with the options
 * @session; NULL is the default. */
gboolean kiln_execution_open(KilnExecution *execution, KilnModel *model,
                             const KilnCompileOptions *options, const KilnSessionOptions *session,
                             GError **error);
/** Binds @tensor to input @i. KILN_ERROR_TYPE if its element type is not the input's. */
gboolean kiln_execution_bind(KilnExecution *execution, unsigned i, const KilnTensor *tensor,
                             GError **error);
/** Runs @n times and stores the mean time in run_ms. */
gboolean kiln_execution_run(KilnExecution *execution, unsigned n, GError **error);
/** Returns output @i as a new tensor. */
KilnTensor *kiln_execution_output(KilnExecution *execution, unsigned i, GError **error);
/** Returns all outputs, KilnTensor*. */
GPtrArray *kiln_execution_outputs(KilnExecution *execution, GError **error);

/** Writes tensor i of @tensors to path i of @paths, all files or none. @names: of the tensors. */
gboolean kiln_tensors_write(const GPtrArray *paths, const KilnInfoList *names,
                            const GPtrArray *tensors, GError **error);
/** The ending of the file for a value of @dtype: "npy" or "pb". NumPy has no sequences, optionals
 * and maps. */
const char *kiln_tensor_ending(KilnDType dtype, bool npy);

#endif
