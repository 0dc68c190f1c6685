/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KILN_GRAPH_ONNX_CONTRIB_NCHWC_H
#define KILN_GRAPH_ONNX_CONTRIB_NCHWC_H

#include "graph/onnx/convert.h"

/** How many channels stand side by side in the filters of the model: 8 or 16. 0 and an error if
 * neither is likely. */
int64_t kiln_onnx_nchwc_block(KilnOnnxCall *call, GError **error);

#endif
