/* SPDX-License-Identifier: Apache-2.0 */
/* Random typed graphs for property tests. A seed gives the same module on every machine. */
#ifndef KILN_TESTS_RANDOM_RANDOM_GRAPH_H
#define KILN_TESTS_RANDOM_RANDOM_GRAPH_H

#include "graph/module.h"

/** Returns a module of one function. Its nodes, shapes, constants and results come from @seed. The
 * caller frees it. */
KilnModule *random_graph(uint64_t seed);
/** The same on real numbers, with operators that a vendor library runs: convolutions, pools,
 * products, recurrent layers, on tensors of a few thousand elements. */
KilnModule *random_vendor_graph(uint64_t seed);
/** The same with quantized values of several types among reals of one shape. Operators of either
 * kind, conversions and concats connect them. The second function returns its text, to be freed. */
KilnModule *random_quantized_graph(uint64_t seed);
char *random_quantized_text(uint64_t seed);
/** The same in the form of quantizers of ONNX models: float operators between dequantize_linear and
 * quantize_linear. Neighbours have different scales. */
KilnModule *random_qdq_graph(uint64_t seed);
/** Nests of branches, loops and scans around operators on f32, f64, i64 and bool. No run of them
 * fails. */
KilnModule *random_flow_graph(uint64_t seed);

#endif
