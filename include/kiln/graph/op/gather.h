/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KILN_GRAPH_OP_GATHER_H
#define KILN_GRAPH_OP_GATHER_H
#define KILN_FAMILY gather
#define KILN_FAMILY_ROWS "graph/ops/gather.def"
#include "graph/op/declare.h"
#endif
