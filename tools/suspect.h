/* SPDX-License-Identifier: Apache-2.0 */
/* Knows the test cases of ONNX whose expected data is wrong. */
#ifndef KILN_TOOLS_SUSPECT_H
#define KILN_TOOLS_SUSPECT_H

/** Returns why the expected data of the case is wrong, to be freed. NULL for every other case. The
 * last component of @name names the case. */
char *kiln_suspect_reason(const char *name);

#endif
