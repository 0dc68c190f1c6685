/* SPDX-License-Identifier: Apache-2.0 */
/* The converters that opsets.def names: each brings one ONNX node into the form of graph/ops. */
#ifndef KILN_GRAPH_ONNX_CONVERTERS_H
#define KILN_GRAPH_ONNX_CONVERTERS_H

#include <glib.h>

typedef struct KilnOnnxCall KilnOnnxCall; /* graph/onnx/convert.h */
typedef gboolean (*KilnOnnxConvert)(KilnOnnxCall *call, GError **error);

#define ROW(...)
#define CONVERT(name) gboolean kiln_onnx_convert_##name(KilnOnnxCall *call, GError **error);
#include "graph/onnx/opsets.def"

#endif
