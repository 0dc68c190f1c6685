/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KILN_GRAPH_OP_MATH_H
#define KILN_GRAPH_OP_MATH_H
#define KILN_FAMILY math
#define KILN_FAMILY_ROWS "graph/ops/math.def"
#include "graph/op/declare.h"
#endif
