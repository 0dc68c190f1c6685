/* SPDX-License-Identifier: Apache-2.0 */
/* The shape function of each operator, as the rows of graph/ops/ name it. */
#include "graph/infer/infer.h"

#include "graph/op/all.h"

#define ATTR(...)
#define OP_AS(id, text, onnx, since, lo, hi, lo_out, hi_out, traits, shapes, infer, attrs)         \
    gboolean kiln_infer_##infer(KilnInfer *in, GError **error);
#include "graph/ops/all.def"

static const KilnInferFn functions[KILN_OP_END] = {
#define ATTR(...)
#define OP_AS(id, text, onnx, since, lo, hi, lo_out, hi_out, traits, shapes, infer, attrs)         \
    [KILN_OP_##id] = kiln_infer_##infer,
#include "graph/ops/all.def"
};

KilnInferFn
kiln_infer_function(KilnOp op)
{
    return functions[op];
}
