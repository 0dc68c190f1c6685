/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KILN_GRAPH_OP_RECURRENT_H
#define KILN_GRAPH_OP_RECURRENT_H
#define KILN_FAMILY recurrent
#define KILN_FAMILY_ROWS "graph/ops/recurrent.def"
#include "graph/op/declare.h"
#endif
