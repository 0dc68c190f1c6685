/* SPDX-License-Identifier: Apache-2.0 */
/* Test cases of ONNX whose expected data is wrong. */
#ifndef KILN_TOOLS_SUSPECT_H
#define KILN_TOOLS_SUSPECT_H

/** Why the expected data of the case is not to be trusted, to be freed; NULL for every other case.
 * A case is known by the last component of its name. */
char *kiln_suspect_reason(const char *name);

#endif
