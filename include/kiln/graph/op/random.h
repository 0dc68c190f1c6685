/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KILN_GRAPH_OP_RANDOM_H
#define KILN_GRAPH_OP_RANDOM_H
#define KILN_FAMILY random
#define KILN_FAMILY_ROWS "graph/ops/random.def"
#include "graph/op/declare.h"
#endif
