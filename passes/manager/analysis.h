/* SPDX-License-Identifier: Apache-2.0 */
/* Analyses of functions, kept from pass to pass until a mask says that they were lost. */
#ifndef KILN_PASSES_MANAGER_ANALYSIS_H
#define KILN_PASSES_MANAGER_ANALYSIS_H

#include "passes/context/options.h"
#include "passes/manager/unit.h"
#include "passes/pipeline/pipeline.h"

typedef struct KilnAnalyses KilnAnalyses;

KilnAnalyses *kiln_analyses_new(const KilnPassOptions *options);
void kiln_analyses_free(KilnAnalyses *analyses);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KilnAnalyses, kiln_analyses_free)

/** Computes what @required names and @unit's function lacks. */
void kiln_analyses_assure(KilnAnalyses *analyses, const KilnUnit *unit, uint32_t required);
/** Forgets all but @preserved of the function; its memory plan, if it has one, goes with liveness.
 */
void kiln_analyses_keep_only(KilnAnalyses *analyses, const KilnUnit *unit, uint32_t preserved);
/** Forgets functions that the module no longer has, before their addresses are used again. */
void kiln_analyses_prune(KilnAnalyses *analyses, const KilnUnit *module);
/** Whether @unit was found valid and nothing touched it since. */
bool kiln_analyses_is_verified(const KilnAnalyses *analyses, const KilnUnit *unit);
void kiln_analyses_set_verified(KilnAnalyses *analyses, const KilnUnit *unit);
/** Whether nothing of @unit, a function of a graph, was touched since @entry ran on it to no
 * effect: to run it again would have none. Functions of the IR do not tell. */
bool kiln_analyses_is_settled(const KilnAnalyses *analyses, const KilnUnit *unit,
                              const KilnPipelineEntry *entry);
void kiln_analyses_set_settled(KilnAnalyses *analyses, const KilnUnit *unit,
                               const KilnPipelineEntry *entry);
/** NULL unless assured. */
const KilnMemoryPlan *kiln_analyses_liveness(const KilnAnalyses *analyses, const KilnUnit *unit);
/** How often something was computed: for tests of the masks. */
uint32_t kiln_analyses_computed(const KilnAnalyses *analyses);

#endif
