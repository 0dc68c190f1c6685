/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the tolerance of a case of `kiln verify` from its data.json. */
#ifndef KILN_TOOLS_TOLERANCE_H
#define KILN_TOOLS_TOLERANCE_H

/** Reads the members "rtol" and "atol" of the object in the file at @path. A missing member leaves
 * its value unchanged. */
gboolean kiln_tolerance_read(const char *path, double *rtol, double *atol, GError **error);

#endif
