/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KILN_GRAPH_OP_FLOW_H
#define KILN_GRAPH_OP_FLOW_H
#define KILN_FAMILY flow
#define KILN_FAMILY_ROWS "graph/ops/flow.def"
#include "graph/op/declare.h"
#endif
