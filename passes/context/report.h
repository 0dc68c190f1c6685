/* SPDX-License-Identifier: Apache-2.0 */
/* Counters of a pipeline run. */
#ifndef KILN_PASSES_CONTEXT_REPORT_H
#define KILN_PASSES_CONTEXT_REPORT_H

#include "passes/pass.h"

/** The cost of a module. */
typedef struct {
    int64_t flops;          /* of one run; nodes of open types count 0 */
    int64_t constant_bytes; /* stored; splats and generated constants count 0 */
} KilnUnitCost;

/** Counters of one pass over a pipeline run, in order of first application. */
typedef struct {
    const char *id;
    KilnLevel level;
    uint32_t runs, changed;
    double ms;
    int64_t nodes_before, nodes_after; /* nodes or instructions, before and after all runs */
    int64_t delta;                     /* nodes that the runs themselves added; negative: removed */
    /* The same for the cost of the module; zeros unless the options set `measure`. */
    KilnUnitCost cost_before, cost_after, cost_delta;
    KilnNumerics numerics; /* widest class of runs that changed something, if options widen it */
    uint32_t last_changed; /* last application by an entry that changed something; 0: none */
    GPtrArray *rules;      /* KilnRuleStats*, in order of first mention */
} KilnPassStats;
typedef struct {
    char *name;
    uint32_t fired;
    uint32_t last_fired; /* last application by an entry in which it fired */
    GPtrArray *refusals; /* KilnRefusal*: guard, count */
} KilnRuleStats;
typedef struct {
    char *guard;
    uint32_t count;
    GPtrArray *subjects; /* char*, "%e (expand): 8000000 bytes", each once; NULL: none were named */
    GHashTable *seen;    /* the same strings as a set */
} KilnRefusal;

typedef struct {
    GPtrArray *passes;             /* KilnPassStats* */
    bool measured;                 /* costs are known */
    KilnUnitCost cost;             /* after the last application */
    uint32_t entries;              /* entries counted, against stop_after */
    uint32_t applications;         /* pass applications counted, against bisect_limit */
    char *last_application;        /* "12 cse @main" : the last one that ran */
    const KilnPassInfo *last_pass; /* its pass and options; both belong to the pipeline */
    const void *last_options;
} KilnPassReport;
KilnPassReport *kiln_pass_report_new(void);
void kiln_pass_report_free(KilnPassReport *report);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KilnPassReport, kiln_pass_report_free)

/** `{schema_version, passes[{name, level, runs, changed, ms, rules{rule: {fired, refused{guard: n},
 * refusals[{guard, what}]}}, nodes_before, nodes_after, delta, flops_before, flops_after,
 * flops_delta, constant_bytes_before, constant_bytes_after, constant_bytes_delta}]}`; the last six
 * only if the run measured them. */
char *kiln_pass_report_to_json(const KilnPassReport *report);

/** The counters of @pass, created at the first call. */
KilnPassStats *kiln_pass_report_stats(KilnPassReport *report, const KilnPassInfo *pass);

#endif
