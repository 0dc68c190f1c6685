/* SPDX-License-Identifier: Apache-2.0 */
/* Operators of plug-ins and of the program itself: models use those that are registered when they
 * are loaded. Installed beside kiln.h, which includes it. */
#ifndef KILN_RUNTIME_KILN_OPERATORS_H
#define KILN_RUNTIME_KILN_OPERATORS_H

#include "graph/kiln-types.h"

G_BEGIN_DECLS

/** An operator of a plug-in: graph/kiln-op.h. */
typedef struct KilnOpDescription KilnOpDescription;

/** Registers @op for models that are loaded from now on, in all threads. @op and
 * all that it points to must live as long as the process. The same description again changes
 * nothing. Errors: USAGE where the description is incomplete, or where Kiln or another plug-in has
 * that operator in one of its opsets. */
KILN_API gboolean kiln_op_register(const KilnOpDescription *op, GError **error);
/** Registers all operators of a plug-in, or none. The file stays loaded. Loading it again changes
 * nothing. kiln_pipeline_load_plugin() and pipeline files do the same with their plug-ins. Errors:
 * those above; PIPELINE where the file is no such plug-in, or was built for another version. */
KILN_API gboolean kiln_op_load_plugin(const char *path, GError **error);

G_END_DECLS

#endif
