/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KILN_GRAPH_OP_LOGIC_H
#define KILN_GRAPH_OP_LOGIC_H
#define KILN_FAMILY logic
#define KILN_FAMILY_ROWS "graph/ops/logic.def"
#include "graph/op/declare.h"
#endif
