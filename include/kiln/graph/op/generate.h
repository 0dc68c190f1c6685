/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KILN_GRAPH_OP_GENERATE_H
#define KILN_GRAPH_OP_GENERATE_H
#define KILN_FAMILY generate
#define KILN_FAMILY_ROWS "graph/ops/generate.def"
#include "graph/op/declare.h"
#endif
