/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KILN_GRAPH_OP_NORM_H
#define KILN_GRAPH_OP_NORM_H
#define KILN_FAMILY norm
#define KILN_FAMILY_ROWS "graph/ops/norm.def"
#include "graph/op/declare.h"
#endif
