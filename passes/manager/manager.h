/* SPDX-License-Identifier: Apache-2.0 */
/* The pass manager runs the passes of a pipeline, at either level. */
#ifndef KILN_PASSES_MANAGER_MANAGER_H
#define KILN_PASSES_MANAGER_MANAGER_H

#include "passes/context/options.h"
#include "passes/context/report.h"
#include "passes/pass.h"
#include "passes/pipeline/pipeline.h"

/** The widest class among the passes of @pipeline that changed something. Sets @n_rounding to the
 * number of changes in @report that round. */
KilnNumerics kiln_pass_report_numerics(const KilnPassReport *report,
                                       const KilnPassPipeline *pipeline, uint32_t *n_rounding);

/** Runs the graph list over every function of @module: callees first, subgraphs before the
 * functions around them. Call it before lowering only: it removes constants that no graph reads,
 * even if IR functions refer to them. @report accumulates over calls (graph, then ir) and may be
 * NULL. */
gboolean kiln_pipeline_run_graph(const KilnPassPipeline *pipeline, KilnModule *module,
                                 const KilnPassOptions *options, KilnPassReport *report,
                                 GError **error);
/** Runs the ir list over every function. Continues the numbers of entries and applications of the
 * graph level. */
gboolean kiln_pipeline_run_ir(const KilnPassPipeline *pipeline, KilnIRModule *module,
                              const KilnPassOptions *options, KilnPassReport *report,
                              GError **error);

#endif
