/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KILN_GRAPH_OP_ITEMS_H
#define KILN_GRAPH_OP_ITEMS_H
#define KILN_FAMILY items
#define KILN_FAMILY_ROWS "graph/ops/items.def"
#include "graph/op/declare.h"
#endif
