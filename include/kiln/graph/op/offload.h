/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KILN_GRAPH_OP_OFFLOAD_H
#define KILN_GRAPH_OP_OFFLOAD_H
#define KILN_FAMILY offload
#define KILN_FAMILY_ROWS "graph/ops/offload.def"
#include "graph/op/declare.h"
#endif
