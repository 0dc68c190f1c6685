/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KILN_GRAPH_OP_MATMUL_H
#define KILN_GRAPH_OP_MATMUL_H
#define KILN_FAMILY matmul
#define KILN_FAMILY_ROWS "graph/ops/matmul.def"
#include "graph/op/declare.h"
#endif
