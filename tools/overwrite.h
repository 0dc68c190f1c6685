/* SPDX-License-Identifier: Apache-2.0 */
/* Results do not take the place of what they were made of. */
#ifndef KILN_TOOLS_OVERWRITE_H
#define KILN_TOOLS_OVERWRITE_H

#include "tools/command.h"

/** KILN_ERROR_USAGE where one of @outputs (NULL-terminated), or the trace that @options ask for,
 * is, by whatever path, link or symbolic link, the file at @path that @model was read from, one of
 * those that its constants lie in, or another output. */
gboolean kiln_check_overwrite(const KilnOptions *options, const KilnModel *model, const char *path,
                              const char *const *outputs, GError **error);

#endif
