/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KILN_GRAPH_OP_TEXT_H
#define KILN_GRAPH_OP_TEXT_H
#define KILN_FAMILY text
#define KILN_FAMILY_ROWS "graph/ops/text.def"
#include "graph/op/declare.h"
#endif
