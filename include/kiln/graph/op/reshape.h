/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KILN_GRAPH_OP_RESHAPE_H
#define KILN_GRAPH_OP_RESHAPE_H
#define KILN_FAMILY reshape
#define KILN_FAMILY_ROWS "graph/ops/reshape.def"
#include "graph/op/declare.h"
#endif
