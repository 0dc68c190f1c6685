/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KILN_GRAPH_OP_REDUCE_H
#define KILN_GRAPH_OP_REDUCE_H
#define KILN_FAMILY reduce
#define KILN_FAMILY_ROWS "graph/ops/reduce.def"
#include "graph/op/declare.h"
#endif
