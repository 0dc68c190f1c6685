/* SPDX-License-Identifier: Apache-2.0 */
/* Loops that converters build: a node `loop`, whose body is made step by step.
 *
 *     KilnOnnxLoop loop = { .trips = …, .condition = …, .start = start, .types = types, .n = n,
 *                           .n_stacked = m };
 *     kiln_onnx_loop_begin(&loop, call, error)     loop.inside: the carried values in the body
 *     … steps of &loop.call …
 *     kiln_onnx_loop_end(&loop, again, next, error)     the values behind the loop */
#ifndef KILN_GRAPH_ONNX_FLOW_LOOPS_H
#define KILN_GRAPH_ONNX_FLOW_LOOPS_H

#include "graph/graph.h"
#include "graph/onnx/convert.h"

typedef struct {
    KilnValue *trips, *condition; /* an i64 and a bool: how often at most, and whether at all */
    KilnValue *const *start;      /* what is carried, before the loop */
    const KilnType *types;        /* of what is carried, in the body */
    uint32_t n;                   /* how many */
    uint32_t n_stacked; /* values of each iteration that are stacked, along a new first dim */
    KilnOnnxCall *outer;
    KilnOnnxCall call;  /* for nodes of the body */
    KilnValue **inside; /* what is carried, in the body; in the module's arena */
} KilnOnnxLoop;

gboolean kiln_onnx_loop_begin(KilnOnnxLoop *loop, KilnOnnxCall *call, GError **error);
/** Ends the body: it goes on where @again, and carries the first @n of @next then. The others are
 * stacked. Returns what is carried and the stacks behind the loop: results of one node, one behind
 * the other. NULL: it failed. */
KilnValue *kiln_onnx_loop_end(const KilnOnnxLoop *loop, KilnValue *again, KilnValue *const *next,
                              GError **error);
/** The type of @value, but dim @dim may be any number. -1: no dim may. */
KilnType kiln_onnx_loop_type(const KilnValue *value, int dim);

#endif
