/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KILN_GRAPH_OP_POOL_H
#define KILN_GRAPH_OP_POOL_H
#define KILN_FAMILY pool
#define KILN_FAMILY_ROWS "graph/ops/pool.def"
#include "graph/op/declare.h"
#endif
