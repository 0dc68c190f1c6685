/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KILN_GRAPH_OP_PLUGIN_H
#define KILN_GRAPH_OP_PLUGIN_H
#define KILN_FAMILY plugin
#define KILN_FAMILY_ROWS "graph/ops/plugin.def"
#include "graph/op/declare.h"
#endif
