/* SPDX-License-Identifier: Apache-2.0 */
/* Analyses of functions. They are kept from pass to pass until a mask drops them. */
#ifndef KILN_PASSES_MANAGER_ANALYSIS_H
#define KILN_PASSES_MANAGER_ANALYSIS_H

#include "ir/plan.h"
#include "passes/context/options.h"
#include "passes/manager/unit.h"
#include "passes/pipeline/pipeline.h"

typedef struct KilnAnalyses KilnAnalyses;

KilnAnalyses *kiln_analyses_new(const KilnPassOptions *options);
void kiln_analyses_free(KilnAnalyses *analyses);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KilnAnalyses, kiln_analyses_free)

/** Computes the analyses in @required that the function of @unit lacks. */
void kiln_analyses_assure(KilnAnalyses *analyses, const KilnUnit *unit, uint32_t required);
/** Forgets all analyses of the function but @preserved. Its memory plan goes with liveness. */
void kiln_analyses_keep_only(KilnAnalyses *analyses, const KilnUnit *unit, uint32_t preserved);
/** Forgets functions that the module no longer has. Call it before their addresses are reused. */
void kiln_analyses_prune(KilnAnalyses *analyses, const KilnUnit *module);
/** True if @unit was found valid and has not changed since. */
bool kiln_analyses_is_verified(const KilnAnalyses *analyses, const KilnUnit *unit);
void kiln_analyses_set_verified(KilnAnalyses *analyses, const KilnUnit *unit);
/** True if @entry changed nothing when it last ran on @unit, and @unit has not changed since.
 * Another run would change nothing either. Always false at the IR level. */
bool kiln_analyses_is_settled(const KilnAnalyses *analyses, const KilnUnit *unit,
                              const KilnPipelineEntry *entry);
void kiln_analyses_set_settled(KilnAnalyses *analyses, const KilnUnit *unit,
                               const KilnPipelineEntry *entry);
/** NULL unless kiln_analyses_assure() computed it. */
const KilnMemoryPlan *kiln_analyses_liveness(const KilnAnalyses *analyses, const KilnUnit *unit);
/** The number of analyses computed so far, for tests of the masks. */
uint32_t kiln_analyses_computed(const KilnAnalyses *analyses);

#endif
