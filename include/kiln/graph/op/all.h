/* SPDX-License-Identifier: Apache-2.0 */
/* The ids and attributes of every operator: for tables of all of them. A source that names
 * some operators includes the headers of their families instead: it is compiled again more rarely.
 */
#ifndef KILN_GRAPH_OP_ALL_H
#define KILN_GRAPH_OP_ALL_H
#include "graph/op/structure.h"
#include "graph/op/math.h"
#include "graph/op/activation.h"
#include "graph/op/cast.h"
#include "graph/op/additive.h"
#include "graph/op/multiplicative.h"
#include "graph/op/logic.h"
#include "graph/op/bounds.h"
#include "graph/op/reduce.h"
#include "graph/op/softmax.h"
#include "graph/op/conv.h"
#include "graph/op/pool.h"
#include "graph/op/norm.h"
#include "graph/op/matmul.h"
#include "graph/op/recurrent.h"
#include "graph/op/reshape.h"
#include "graph/op/transpose.h"
#include "graph/op/concat.h"
#include "graph/op/slice.h"
#include "graph/op/expand.h"
#include "graph/op/gather.h"
#include "graph/op/generate.h"
#include "graph/op/resize.h"
#include "graph/op/signal.h"
#include "graph/op/learn.h"
#include "graph/op/text.h"
#include "graph/op/quantize.h"
#include "graph/op/qproduct.h"
#include "graph/op/random.h"
#include "graph/op/flow.h"
#include "graph/op/offload.h"
#include "graph/op/layout.h"
#endif
