/* SPDX-License-Identifier: Apache-2.0 */
/* The shape function of each operator, as the rows of ops.def name it. */
#include "graph/infer/infer.h"

static const KilnInferFn functions[KILN_N_OPS] = {
#define ATTR(...)
#define OP_AS(id, text, onnx, since, lo, hi, lo_out, hi_out, traits, shapes, infer, attrs)         \
    [KILN_OP_##id] = kiln_infer_##infer,
#include "graph/ops.def"
};

KilnInferFn
kiln_infer_function(KilnOp op)
{
    return functions[op];
}
