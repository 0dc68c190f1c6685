/* SPDX-License-Identifier: Apache-2.0 */
/* Options for models of strangers: limits, and what is refused. */
#ifndef KILN_TOOLS_LIMITS_H
#define KILN_TOOLS_LIMITS_H

#include "graph/base/budget.h"
#include "tools/command.h"

/** Adds --untrusted and the limits to what @context parses. */
void kiln_limits_add(GOptionContext *context, KilnOptions *options);
/** The limits that the options set, those of --untrusted where they set none. */
gboolean kiln_limits_parse(const KilnOptions *options, KilnLimits *out, GError **error);
/** With --untrusted: plug-ins, and pipeline files that came with one of @operands, are
 * KILN_ERROR_USAGE. Before anything is opened. */
gboolean kiln_limits_check_files(const KilnOptions *options, char **operands, GError **error);
/** What a model is loaded with. */
KilnModelOptions kiln_limits_model_options(const KilnOptions *options);

#endif
