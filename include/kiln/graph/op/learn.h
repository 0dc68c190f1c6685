/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KILN_GRAPH_OP_LEARN_H
#define KILN_GRAPH_OP_LEARN_H
#define KILN_FAMILY learn
#define KILN_FAMILY_ROWS "graph/ops/learn.def"
#include "graph/op/declare.h"
#endif
