/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KILN_GRAPH_OP_SLICE_H
#define KILN_GRAPH_OP_SLICE_H
#define KILN_FAMILY slice
#define KILN_FAMILY_ROWS "graph/ops/slice.def"
#include "graph/op/declare.h"
#endif
