/* SPDX-License-Identifier: Apache-2.0 */
/* Pipelines of the C interface: which passes compiling runs. Part of kiln.h, which includes it. */
#ifndef KILN_RUNTIME_KILN_PIPELINE_H
#define KILN_RUNTIME_KILN_PIPELINE_H

#include "graph/kiln-types.h"

G_BEGIN_DECLS

/** The passes that optimize a model. */
typedef struct KilnPipeline KilnPipeline;

/** A pipeline that ships with Kiln ("default", "none", "debug") or a file. KILN_ERROR_PIPELINE says
 * where it is wrong. */
KILN_API KilnPipeline *kiln_pipeline_load(const char *name_or_path, GError **error);
/** The inline form: "dce,cse,constant-fold{evaluate=compile},dse". */
KILN_API KilnPipeline *kiln_pipeline_parse(const char *text, GError **error);
/** An empty pipeline to build in C. Each pass goes to its level, in the order of the calls. */
KILN_API KilnPipeline *kiln_pipeline_new(void);
/** Appends "id" or "id{option=value}", or several separated by commas. Fails once the pipeline
 * was used. */
KILN_API gboolean kiln_pipeline_add(KilnPipeline *pipeline, const char *pass, GError **error);
/** Loads passes from a plug-in, to be named in kiln_pipeline_add(). A plug-in is a shared object
 * written against include/kiln/passes/kiln-pass.h. The pipeline closes it. Operators of a plug-in
 * are registered, too, and stay. Fails once the pipeline was used. */
KILN_API gboolean kiln_pipeline_load_plugin(KilnPipeline *pipeline, const char *path,
                                            GError **error);
/** A table of passes. */
typedef struct KilnPassPlugin KilnPassPlugin;
/** The same from the program itself. The table (include/kiln/passes/kiln-pass.h) must live as long
 * as the pipeline. Registers all of its passes, or none. */
KILN_API gboolean kiln_pipeline_register_passes(KilnPipeline *pipeline, const KilnPassPlugin *table,
                                                GError **error);
/** YAML that loads back to the same pipeline; free with g_free(). */
KILN_API char *kiln_pipeline_to_string(const KilnPipeline *pipeline);
/** One owner more; returns @pipeline. */
KILN_API KilnPipeline *kiln_pipeline_ref(KilnPipeline *pipeline);
/** One owner less; the last one frees it. Does nothing for NULL. */
KILN_API void kiln_pipeline_unref(KilnPipeline *pipeline);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KilnPipeline, kiln_pipeline_unref)

G_END_DECLS

#endif
