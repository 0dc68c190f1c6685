/* SPDX-License-Identifier: Apache-2.0 */
/* Test cases of ONNX whose expected data is wrong. */
#ifndef KILN_TOOLS_SUSPECT_H
#define KILN_TOOLS_SUSPECT_H

/** Why the expected data of the case is not to be trusted; NULL for every other case. A case is
 * known by the last component of its name. */
const char *kiln_suspect_reason(const char *name);

#endif
