/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KILN_GRAPH_OP_CONCAT_H
#define KILN_GRAPH_OP_CONCAT_H
#define KILN_FAMILY concat
#define KILN_FAMILY_ROWS "graph/ops/concat.def"
#include "graph/op/declare.h"
#endif
