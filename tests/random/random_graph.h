/* SPDX-License-Identifier: Apache-2.0 */
/* Random typed graphs for property tests: the same seed gives the same module on every machine. */
#ifndef KILN_TESTS_RANDOM_RANDOM_GRAPH_H
#define KILN_TESTS_RANDOM_RANDOM_GRAPH_H

#include "graph/module.h"

/** A module of one function whose nodes, shapes, constants and results come from @seed; the caller
 * frees it. */
KilnModule *random_graph(uint64_t seed);
/** The same, of real numbers, with what a vendor library takes: convolutions, pools, products,
 * recurrent layers, on tensors of a few thousand elements. */
KilnModule *random_vendor_graph(uint64_t seed);
/** The same of quantized values of several types among reals of one shape, which some operators of
 * either kind, conversions and concats go between; and its text, to be freed. */
KilnModule *random_quantized_graph(uint64_t seed);
char *random_quantized_text(uint64_t seed);
/** The same as quantizers of ONNX models write it: float operators between dequantize_linear and
 * quantize_linear, with scales that differ from neighbour to neighbour. */
KilnModule *random_qdq_graph(uint64_t seed);

#endif
