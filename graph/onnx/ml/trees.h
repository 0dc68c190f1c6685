/* SPDX-License-Identifier: Apache-2.0 */
/* What the operators of trees share: lists of the node's attributes, and the older form of trees,
 * whose nodes and leaves have ids. Private to the folder. */
#ifndef KILN_GRAPH_ONNX_ML_TREES_H
#define KILN_GRAPH_ONNX_ML_TREES_H

#include "graph/attr.h"
#include "graph/graph.h"
#include "graph/kiln-types.h"
#include "graph/onnx/convert.h"
#include "graph/onnx/ml/forest.h"

/** Numbers that are floats, or a tensor of f16, f32 or f64. */
typedef struct {
    GArray *v; /* double; NULL: the node has none */
    bool wide; /* they are f64 */
} KilnTreeNumbers;

/** Takes the attribute @name, or the tensor @tensor. Either name may be NULL. */
gboolean kiln_trees_take_numbers(KilnOnnxCall *call, const char *name, const char *tensor,
                                 KilnTreeNumbers *out, GError **error);
void kiln_trees_clear_numbers(KilnTreeNumbers *numbers);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(KilnTreeNumbers, kiln_trees_clear_numbers)

/** Takes integers, which must be there. */
gboolean kiln_trees_take_ints(KilnOnnxCall *call, const char *name, KilnInts *out, GError **error);

/** The element type in which @x is compared and weights are summed: f64 where @x or the numbers
 * are, else f32. */
KilnDType kiln_trees_dtype(const KilnValue *x, bool wide);

/** Reads trees of the older form. Their weights are attributes that begin with @prefix, "class" or
 * "target". *@out_wide: some numbers are f64. */
gboolean kiln_trees_read_ids(KilnOnnxCall *call, const char *prefix, KilnForest *forest,
                             bool *out_wide, GError **error);

#endif
