/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KILN_GRAPH_OP_QUANTIZE_H
#define KILN_GRAPH_OP_QUANTIZE_H
#define KILN_FAMILY quantize
#define KILN_FAMILY_ROWS "graph/ops/quantize.def"
#include "graph/op/declare.h"
#endif
