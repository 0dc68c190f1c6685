/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KILN_GRAPH_OP_QPRODUCT_H
#define KILN_GRAPH_OP_QPRODUCT_H
#define KILN_FAMILY qproduct
#define KILN_FAMILY_ROWS "graph/ops/qproduct.def"
#include "graph/op/declare.h"
#endif
