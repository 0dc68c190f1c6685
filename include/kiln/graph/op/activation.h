/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KILN_GRAPH_OP_ACTIVATION_H
#define KILN_GRAPH_OP_ACTIVATION_H
#define KILN_FAMILY activation
#define KILN_FAMILY_ROWS "graph/ops/activation.def"
#include "graph/op/declare.h"
#endif
