/* SPDX-License-Identifier: Apache-2.0 */
/* Results do not take the place of what they were made of. */
#ifndef KILN_TOOLS_OVERWRITE_H
#define KILN_TOOLS_OVERWRITE_H

#include "runtime/model.h"
#include "tools/command.h"

/** What a command reads beside its options' pipelines, and writes. */
typedef struct {
    const KilnModel *model;
    const char *path;           /* that @model was read from */
    const char *const *inputs;  /* other files, NULL-terminated; NULL: none */
    const char *const *outputs; /* NULL-terminated */
} KilnFiles;

/** KILN_ERROR_USAGE where an output, or the trace that @options ask for, is, by whatever path, link
 * or symbolic link, the model's file, one of those that its constants lie in, a pipeline, another
 * input or another output. */
gboolean kiln_check_overwrite(const KilnOptions *options, const KilnFiles *files, GError **error);

#endif
