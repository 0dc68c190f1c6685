/* SPDX-License-Identifier: Apache-2.0 */
/* What `kiln verify` knows of a case beside its data: its tolerance, from its data.json, and the
 * test cases of ONNX whose expected data is wrong. */
#ifndef KILN_TOOLS_TOLERANCE_H
#define KILN_TOOLS_TOLERANCE_H

/** Reads the members "rtol" and "atol" of the object in the file at @path. A missing member leaves
 * its value unchanged. */
gboolean kiln_tolerance_read(const char *path, double *rtol, double *atol, GError **error);

/** Returns why the expected data of the case is wrong, to be freed. NULL for every other case. The
 * last component of @name names the case. */
char *kiln_suspect_reason(const char *name);

#endif
