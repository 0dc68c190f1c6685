/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KILN_GRAPH_OP_SIGNAL_H
#define KILN_GRAPH_OP_SIGNAL_H
#define KILN_FAMILY signal
#define KILN_FAMILY_ROWS "graph/ops/signal.def"
#include "graph/op/declare.h"
#endif
