/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KILN_GRAPH_ONNX_CONTRIB_BITS_H
#define KILN_GRAPH_ONNX_CONTRIB_BITS_H

#include "graph/graph.h"
#include "graph/onnx/steps.h"

/** The numbers of @bits (2, 4 or 8) in the bytes of @x, the lowest bits of a byte first, or the
 * highest where @high. They take the place of the bytes in the last dim, which must be known. */
KilnValue *kiln_onnx_step_unpack(const KilnOnnxSteps *s, KilnValue *x, int64_t bits, bool high);

#endif
