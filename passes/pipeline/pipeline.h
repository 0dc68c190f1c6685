/* SPDX-License-Identifier: Apache-2.0 */
/* Pipelines: lists of passes with their options, read from files and texts or built in C. */
#ifndef KILN_PASSES_PIPELINE_PIPELINE_H
#define KILN_PASSES_PIPELINE_PIPELINE_H

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
/** The same into a new pipeline with registered passes, which the text may name. On failure the
 * pipeline is only good for freeing. */
gboolean kiln_pipeline_read_yaml(KilnPassPipeline *pipeline, const char *text, size_t length,
                                 const char *name, GError **error);
gboolean kiln_pipeline_read_file(KilnPassPipeline *pipeline, const char *path, GError **error);
gboolean kiln_pipeline_read_inline(KilnPassPipeline *pipeline, const char *text, GError **error);
/** The text of a pipeline that ships with Kiln, or NULL. The names of all of them, "a, b", which
 * the caller frees with g_free(). */
const char *kiln_pipeline_shipped(const char *name);
char *kiln_pipeline_shipped_names(void);
/** YAML that loads back to the same pipeline (includes and anchors resolved). */
void kiln_pass_pipeline_print(const KilnPassPipeline *pipeline, GString *out);
/** Appends an entry with defaults; NULL for an unknown id. Pipelines can be built in C. */
KilnPipelineEntry *kiln_pass_pipeline_add(KilnPassPipeline *pipeline, const char *pass_id,
                                          GError **error);

/** Makes a pass known to this pipeline, beside the built-in ones: for plug-ins, and for programs
 * with passes of their own. @info is borrowed. Fails where the id is taken or the row is
 * incomplete. */
gboolean kiln_pass_pipeline_register(KilnPassPipeline *pipeline, const KilnPassInfo *info,
                                     GError **error);
/** Registers every pass of a table of include/kiln/passes/kiln-pass.h, or none. Messages name @from
 * as the owner. */
typedef struct KilnPassPlugin KilnPassPlugin;
gboolean kiln_pass_pipeline_register_table(KilnPassPipeline *pipeline, const char *from,
                                           const KilnPassPlugin *table, GError **error);
/** Loads a plug-in written against include/kiln/passes/kiln-pass.h and registers its passes. */
gboolean kiln_pass_pipeline_load_plugin(KilnPassPipeline *pipeline, const char *path,
                                        GError **error);
/** A built-in pass or one of this pipeline's; NULL where there is none of that id. */
const KilnPassInfo *kiln_pass_pipeline_find(const KilnPassPipeline *pipeline, const char *id);

/** " (did you mean 'x'?)", or "" where no pass that @pipeline knows has an id like @id. */
char *kiln_suggest_pass(const KilnPassPipeline *pipeline, const char *id);

#endif
