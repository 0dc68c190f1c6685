/* SPDX-License-Identifier: Apache-2.0 */
/* Pipelines of kiln.h, and their sources. */
#ifndef KILN_RUNTIME_PIPELINE_H
#define KILN_RUNTIME_PIPELINE_H

#include "kiln.h"
#include "passes/pipeline/pipeline.h"

#include <stdatomic.h>
#include <stdbool.h>

/** The source of a pipeline, and the plug-ins whose passes it may name. */
typedef struct {
    const char *name;           /* a shipped pipeline or a file; NULL: `text` */
    const char *text;           /* the inline form */
    const char *const *plugins; /* files, then NULL; may be NULL */
} KilnPipelineSource;
/** kiln_pipeline_load() or kiln_pipeline_parse(), with plug-ins loaded before. */
KilnPipeline *kiln_pipeline_open(const KilnPipelineSource *source, GError **error);

struct KilnPipeline {
    atomic_int references;
    KilnPassPipeline *passes;
    atomic_bool used;
};

#endif
