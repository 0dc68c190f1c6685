/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KILN_GRAPH_OP_BOUNDS_H
#define KILN_GRAPH_OP_BOUNDS_H
#define KILN_FAMILY bounds
#define KILN_FAMILY_ROWS "graph/ops/bounds.def"
#include "graph/op/declare.h"
#endif
