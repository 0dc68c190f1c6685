/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that the results of a command do not overwrite its inputs. */
#ifndef KILN_TOOLS_OVERWRITE_H
#define KILN_TOOLS_OVERWRITE_H

#include "runtime/model.h"
#include "tools/command.h"

/** The files that a command reads, beside the pipelines of its options, and writes. */
typedef struct {
    const KilnModel *model;
    const char *path;           /* the file that @model was read from */
    const char *const *inputs;  /* other files, NULL-terminated; NULL: none */
    const char *const *outputs; /* NULL-terminated */
} KilnFiles;

/** Checks the outputs and the trace of @options. KILN_ERROR_USAGE if one is, by any path or link,
 * the model's file, a file of its constants, a pipeline, another input or another output. */
gboolean kiln_check_overwrite(const KilnOptions *options, const KilnFiles *files, GError **error);

#endif
