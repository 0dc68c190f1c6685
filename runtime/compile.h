/* SPDX-License-Identifier: Apache-2.0 */
/* The steps from a model to optimized code. kiln_program_compile() takes them all, `kiln opt` stops
 * between them. */
#ifndef KILN_RUNTIME_COMPILE_H
#define KILN_RUNTIME_COMPILE_H

#include "ir/ir.h"
#include "passes/context/options.h"
#include "passes/context/report.h"
#include "passes/pipeline/pipeline.h"
#include "runtime/model.h"
#include "runtime/specialise.h"

/** The graph module of @model for @bindings (NULL: as the model says), optimized. Where data
 * decides dims, nothing is computed ahead of the runs: inputs that are constant are taken as others
 * are. */
KilnModule *kiln_compile_graph(const KilnModel *model, const KilnBinding *bindings,
                               const KilnPassPipeline *pipeline, const KilnPassOptions *options,
                               KilnPassReport *report, GError **error);
/** Lowers @module, which it takes over, and optimizes the result. */
KilnIRModule *kiln_compile_ir(KilnModule *module, const KilnPassPipeline *pipeline,
                              const KilnPassOptions *options, KilnPassReport *report,
                              GError **error);
/** An IR level model, parsed anew and optimized. */
KilnIRModule *kiln_compile_ir_text(const KilnModel *model, const KilnPassPipeline *pipeline,
                                   const KilnPassOptions *options, KilnPassReport *report,
                                   GError **error);

#endif
