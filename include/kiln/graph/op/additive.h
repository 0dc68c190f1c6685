/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KILN_GRAPH_OP_ADDITIVE_H
#define KILN_GRAPH_OP_ADDITIVE_H
#define KILN_FAMILY additive
#define KILN_FAMILY_ROWS "graph/ops/additive.def"
#include "graph/op/declare.h"
#endif
