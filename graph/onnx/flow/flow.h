/* SPDX-License-Identifier: Apache-2.0 */
/* What the converters of branches, loops and scans share. */
#ifndef KILN_GRAPH_ONNX_FLOW_FLOW_H
#define KILN_GRAPH_ONNX_FLOW_FLOW_H

#include "graph/graph.h"
#include "graph/onnx/convert.h"

/** Room for the types of @n results of the call, which has them from now on. */
KilnType *kiln_onnx_flow_types(KilnOnnxCall *call, uint32_t n);
/** Throws where @found is not @expected; @what is counted. */
gboolean kiln_onnx_check_count(const KilnOnnxCall *call, const char *what, uint32_t expected,
                               uint32_t found, GError **error);
/** Refuses a subgraph that passes on what Kiln has no type for. */
gboolean kiln_onnx_check_region(const KilnOnnxCall *call, const KilnFunction *region,
                                GError **error);
/** Checks that @value, if it is there, is one element of @dtype; @what is it? */
gboolean kiln_onnx_check_one(const KilnOnnxCall *call, const char *what, const KilnValue *value,
                             KilnDType dtype, GError **error);
/** Checks that argument @i of @body, whose type the model may state, takes a value of @type; of its
 * rank, too, where it is @ranked. */
gboolean kiln_onnx_check_argument(const KilnOnnxCall *call, const KilnFunction *body, uint32_t i,
                                  const KilnType *type, bool ranked, GError **error);
/** The type of @length values of type @element, stacked along a new @axis. */
gboolean kiln_onnx_stacked(const KilnOnnxCall *call, const KilnType *element, int64_t axis,
                           int64_t length, const KilnDim *open_length, KilnType *out,
                           GError **error);
/** The type of an element of @whole along @axis, which it has if its rank is known. */
KilnType kiln_onnx_element(const KilnType *whole, int64_t axis);

#endif
