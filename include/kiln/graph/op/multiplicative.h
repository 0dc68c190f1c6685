/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KILN_GRAPH_OP_MULTIPLICATIVE_H
#define KILN_GRAPH_OP_MULTIPLICATIVE_H
#define KILN_FAMILY multiplicative
#define KILN_FAMILY_ROWS "graph/ops/multiplicative.def"
#include "graph/op/declare.h"
#endif
