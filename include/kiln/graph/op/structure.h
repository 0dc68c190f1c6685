/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KILN_GRAPH_OP_STRUCTURE_H
#define KILN_GRAPH_OP_STRUCTURE_H
#define KILN_FAMILY structure
#define KILN_FAMILY_ROWS "graph/ops/structure.def"
#include "graph/op/declare.h"
#endif
