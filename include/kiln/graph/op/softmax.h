/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KILN_GRAPH_OP_SOFTMAX_H
#define KILN_GRAPH_OP_SOFTMAX_H
#define KILN_FAMILY softmax
#define KILN_FAMILY_ROWS "graph/ops/softmax.def"
#include "graph/op/declare.h"
#endif
