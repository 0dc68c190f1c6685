/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KILN_GRAPH_OP_RESIZE_H
#define KILN_GRAPH_OP_RESIZE_H
#define KILN_FAMILY resize
#define KILN_FAMILY_ROWS "graph/ops/resize.def"
#include "graph/op/declare.h"
#endif
