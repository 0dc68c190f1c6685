/* SPDX-License-Identifier: Apache-2.0 */
/* The tolerance of a case that `kiln verify` runs: its data.json. */
#ifndef KILN_TOOLS_TOLERANCE_H
#define KILN_TOOLS_TOLERANCE_H

#include "graph/error.h"

/** Reads the members "rtol" and "atol" of the object in the file at @path; what is not there stays
 * as it is. */
gboolean kiln_tolerance_read(const char *path, double *rtol, double *atol, GError **error);

#endif
