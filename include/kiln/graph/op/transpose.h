/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KILN_GRAPH_OP_TRANSPOSE_H
#define KILN_GRAPH_OP_TRANSPOSE_H
#define KILN_FAMILY transpose
#define KILN_FAMILY_ROWS "graph/ops/transpose.def"
#include "graph/op/declare.h"
#endif
