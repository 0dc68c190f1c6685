/* SPDX-License-Identifier: Apache-2.0 */
/* Options for models of strangers: limits, and files that are refused. */
#ifndef KILN_TOOLS_LIMITS_H
#define KILN_TOOLS_LIMITS_H

#include "graph/base/budget.h"
#include "runtime/kiln-limits.h"
#include "tools/command.h"

/** Adds --untrusted and the options of limits to @context. */
void kiln_limits_add(GOptionContext *context, KilnOptions *options);
/** Stores the limits of the options. --untrusted sets defaults for the others. */
gboolean kiln_limits_parse(const KilnOptions *options, KilnLimits *out, GError **error);
/** With --untrusted, refuses plug-ins and pipeline files that came with one of @operands:
 * KILN_ERROR_USAGE. Call it before any file is opened. */
gboolean kiln_limits_check_files(const KilnOptions *options, char **operands, GError **error);
/** Returns the options for loading a model. */
KilnModelOptions kiln_limits_model_options(const KilnOptions *options);

#endif
