/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KILN_GRAPH_OP_LAYOUT_H
#define KILN_GRAPH_OP_LAYOUT_H
#define KILN_FAMILY layout
#define KILN_FAMILY_ROWS "graph/ops/layout.def"
#include "graph/op/declare.h"
#endif
