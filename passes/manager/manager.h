/* SPDX-License-Identifier: Apache-2.0 */
/* Pipelines and the pass manager. */
#ifndef KILN_PASSES_MANAGER_MANAGER_H
#define KILN_PASSES_MANAGER_MANAGER_H

#include "passes/pass.h"

/** How often an entry runs. */
typedef enum {
    KILN_ONE_PASS,
    KILN_UNTIL_FIXED_POINT,
} KilnConvergence;

/** One entry of a pipeline: a pass, or a group of entries iterated together. */
typedef struct KilnPipelineEntry KilnPipelineEntry;
struct KilnPipelineEntry {
    const KilnPassInfo *pass; /* NULL: a group */
    GPtrArray *group;         /* KilnPipelineEntry*; NULL: a pass */
    KilnConvergence convergence;
    uint32_t max_iterations; /* default 64 */
    bool dce_before;         /* graph only; default true */
    uint32_t modes;          /* bit per KilnMode; default both */
    void *options; /* of KilnOptionTable.size bytes, with defaults filled in; NULL where the pass
                      has none */
    char *where;   /* "file:line:column" it came from, for messages; NULL: built in C */
};

typedef struct {
    KilnArena *arena;
    uint32_t flags;
    GPtrArray *graph; /* KilnPipelineEntry* */
    GPtrArray *ir;
    GPtrArray *plugins; /* GModule*, closed with the pipeline */
    GPtrArray *extra;   /* const KilnPassInfo*: passes beside the built-in ones, borrowed */
} KilnPassPipeline;

KilnPassPipeline *kiln_pass_pipeline_new(void);
void kiln_pass_pipeline_free(KilnPassPipeline *pipeline);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KilnPassPipeline, kiln_pass_pipeline_free)
/** From a YAML file, from its text, or from the inline form 'a,b{x=1},c' (each pass goes to its
 * level's list; flags stay unset). Errors are KILN_ERROR_PIPELINE with file:line:column. */
KilnPassPipeline *kiln_pass_pipeline_load(const char *path, GError **error);
KilnPassPipeline *kiln_pass_pipeline_parse_yaml(const char *text, size_t length, const char *name,
                                                GError **error);
KilnPassPipeline *kiln_pass_pipeline_parse_inline(const char *text, GError **error);
/** The same into a new pipeline that passes were registered with, so that the text may name them.
 * On failure the pipeline is only good for freeing. */
gboolean kiln_pipeline_read_yaml(KilnPassPipeline *pipeline, const char *text, size_t length,
                                 const char *name, GError **error);
gboolean kiln_pipeline_read_file(KilnPassPipeline *pipeline, const char *path, GError **error);
gboolean kiln_pipeline_read_inline(KilnPassPipeline *pipeline, const char *text, GError **error);
/** The text of a pipeline that ships with Kiln, or NULL; the names of all of them, "a, b", which
 * the caller frees with g_free(). */
const char *kiln_pipeline_shipped(const char *name);
char *kiln_pipeline_shipped_names(void);
/** YAML that loads back to the same pipeline (includes and anchors resolved). */
void kiln_pass_pipeline_print(const KilnPassPipeline *pipeline, GString *out);
/** Appends an entry with defaults; NULL for an unknown id. Pipelines can be built in C. */
KilnPipelineEntry *kiln_pass_pipeline_add(KilnPassPipeline *pipeline, const char *pass_id,
                                          GError **error);

/** Makes a pass known to this pipeline, beside the built-in ones: what plug-ins and programs that
 * bring passes of their own use. @info is borrowed. Fails where the id is taken or the row is not
 * whole. */
gboolean kiln_pass_pipeline_register(KilnPassPipeline *pipeline, const KilnPassInfo *info,
                                     GError **error);
/** Every pass of a table of include/kiln/passes/kiln-pass.h, or none; @from says in messages whose
 * they are. */
typedef struct KilnPassPlugin KilnPassPlugin;
gboolean kiln_pass_pipeline_register_table(KilnPassPipeline *pipeline, const char *from,
                                           const KilnPassPlugin *table, GError **error);
/** Loads a plug-in written against include/kiln/passes/kiln-pass.h and registers its passes. */
gboolean kiln_pass_pipeline_load_plugin(KilnPassPipeline *pipeline, const char *path,
                                        GError **error);
/** A built-in pass or one of this pipeline's; NULL where there is none of that id. */
const KilnPassInfo *kiln_pass_pipeline_find(const KilnPassPipeline *pipeline, const char *id);

/** Called with text to show (a dump, a note), whole lines; silent where NULL. */
typedef void (*KilnTextFn)(const char *text, void *data);

typedef struct {
    const KilnTarget *target;       /* may be NULL for graph passes that evaluate nothing */
    const KilnTarget *check_target; /* what --check runs on (`ref`); NULL: `target` */
    KilnMode mode;
    int threads;
    bool prefer_memory; /* nothing is made faster that makes weights grow */
    bool one_algorithm; /* nothing is made faster that computes other bits of a literal operand than
                           of any other */
    bool verify;        /* after every pass; on by default in KILN_PASS_OPTIONS_INIT */
    bool check_changed; /* hash before and after, fail a pass that lies */
    bool check_numerics; /* --check: run before and after on seeded inputs and compare by class */
    bool log_rewrites;   /* send one line per rewrite to `log` */
    bool measure;        /* operations and constant bytes around each pass, for the report */
    const char *const *skip; /* pass ids, NULL-terminated; NULL: none */
    const char *const *only;
    int64_t stop_after;             /* entries; -1: all */
    int64_t bisect_limit;           /* pass applications, DCE included; -1: all */
    const char *const *print_after; /* pass ids or "all" */
    bool print_changed;             /* dump only after applications that changed something */
    const char *dump_dir;           /* a file per application; NULL: none */
    const char *disabled_guard;     /* for tests of tests: "rule/guard" that always holds */
    KilnTextFn dump, log;           /* may be NULL */
    void *data;
    gboolean (*progress)(double fraction, const char *what,
                         void *data); /* FALSE cancels; may be NULL */
} KilnPassOptions;

#define KILN_PASS_OPTIONS_INIT                                                                     \
    {                                                                                              \
        .threads = 1, .verify = true, .stop_after = -1, .bisect_limit = -1                         \
    }

/** What a module costs. */
typedef struct {
    int64_t flops;          /* of one run; nodes whose types are open count as none */
    int64_t constant_bytes; /* stored ones: splats and generated constants have none */
} KilnUnitCost;

/** Counters of one pass over a pipeline run, in order of first application. */
typedef struct {
    const char *id;
    KilnLevel level;
    uint32_t runs, changed;
    double ms;
    int64_t nodes_before,
        nodes_after; /* of the first and last run: nodes or instructions of the module */
    int64_t delta;   /* nodes that the runs themselves added; negative: removed */
    /* The same of what the module costs; zeros unless the options say `measure`. */
    KilnUnitCost cost_before, cost_after, cost_delta;
    KilnNumerics numerics; /* of those that changed something, where options widen the pass's class
                            */
    uint32_t last_changed; /* the last application that an entry asked for and that changed
                              something; 0: none */
    GPtrArray *rules;      /* KilnRuleStats*, in order of first mention */
} KilnPassStats;
typedef struct {
    char *name;
    uint32_t fired;
    uint32_t last_fired; /* the last application that an entry asked for and that it fired in */
    GPtrArray *refusals; /* KilnRefusal*: guard, count */
} KilnRuleStats;
typedef struct {
    char *guard;
    uint32_t count;
    GPtrArray *subjects; /* char*, "%e (expand): 8000000 bytes", each once; NULL: none were named */
    GHashTable *seen;    /* the same, looked up */
} KilnRefusal;

typedef struct {
    GPtrArray *passes;             /* KilnPassStats* */
    bool measured;                 /* costs are known */
    KilnUnitCost cost;             /* after the last application */
    uint32_t entries;              /* entries counted, against stop_after */
    uint32_t applications;         /* pass applications counted, against bisect_limit */
    char *last_application;        /* "12 cse @main" : the last one that ran */
    const KilnPassInfo *last_pass; /* of it, and the options that it ran with; the pipeline's */
    const void *last_options;
} KilnPassReport;
KilnPassReport *kiln_pass_report_new(void);
void kiln_pass_report_free(KilnPassReport *report);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KilnPassReport, kiln_pass_report_free)

/** `{schema_version, passes[{name, level, runs, changed, ms, rules{rule: {fired, refused{guard:
 * n}, refusals[{guard, what}]}}, nodes_before, nodes_after, delta, flops_before, flops_after,
 * flops_delta, constant_bytes_before, constant_bytes_after, constant_bytes_delta}]}`; the last six
 * where the run measured them. */
char *kiln_pass_report_to_json(const KilnPassReport *report);

/** The widest class of the passes of @pipeline that changed something, and how many changes of
 * @report round. */
KilnNumerics kiln_pass_report_numerics(const KilnPassReport *report,
                                       const KilnPassPipeline *pipeline, uint32_t *n_rounding);

/** Runs the graph list over every function of @module, callees first, subgraphs before the
 * functions around them. Before lowering only: constants that no graph reads any more are removed,
 * whatever IR functions of the module refer to. @report accumulates over calls (graph, then ir);
 * may be NULL. */
gboolean kiln_pipeline_run_graph(const KilnPassPipeline *pipeline, KilnModule *module,
                                 const KilnPassOptions *options, KilnPassReport *report,
                                 GError **error);
/** Runs the ir list over every function. Counting of entries and applications goes on where the
 * graph level stopped. */
gboolean kiln_pipeline_run_ir(const KilnPassPipeline *pipeline, KilnIRModule *module,
                              const KilnPassOptions *options, KilnPassReport *report,
                              GError **error);

/** 64-bit content hash of a function: ops, attributes, operands, types, names; not addresses. Equal
 * text, equal hash. */
uint64_t kiln_function_hash(const KilnFunction *function);

#endif
