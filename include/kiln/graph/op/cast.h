/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KILN_GRAPH_OP_CAST_H
#define KILN_GRAPH_OP_CAST_H
#define KILN_FAMILY cast
#define KILN_FAMILY_ROWS "graph/ops/cast.def"
#include "graph/op/declare.h"
#endif
