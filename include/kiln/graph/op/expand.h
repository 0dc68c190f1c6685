/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KILN_GRAPH_OP_EXPAND_H
#define KILN_GRAPH_OP_EXPAND_H
#define KILN_FAMILY expand
#define KILN_FAMILY_ROWS "graph/ops/expand.def"
#include "graph/op/declare.h"
#endif
