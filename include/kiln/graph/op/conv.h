/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KILN_GRAPH_OP_CONV_H
#define KILN_GRAPH_OP_CONV_H
#define KILN_FAMILY conv
#define KILN_FAMILY_ROWS "graph/ops/conv.def"
#include "graph/op/declare.h"
#endif
