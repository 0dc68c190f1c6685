/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/onnx/contrib/contrib.h"

#include "graph/module.h"
#include "graph/onnx/steps.h"

void *
kiln_onnx_defaults(const KilnOnnxCall *call, KilnOp op)
{
    return kiln_op_attrs_new(op, call->function->module->arena);
}

KilnValue *
kiln_onnx_plus(KilnOnnxCall *call, KilnValue *a, KilnValue *b, GError **error)
{
    return b ? kiln_onnx_step_add(&(KilnOnnxSteps){ call, error }, a, b) : a;
}

KilnValue *
kiln_onnx_times(KilnOnnxCall *call, KilnValue *a, KilnValue *b, GError **error)
{
    return kiln_onnx_step_mul(&(KilnOnnxSteps){ call, error }, a, b);
}

KilnValue *
kiln_onnx_product(KilnOnnxCall *call, KilnValue *a, KilnValue *b, GError **error)
{
    return kiln_onnx_step_matmul(&(KilnOnnxSteps){ call, error }, a, b);
}

KilnValue *
kiln_onnx_permuted(KilnOnnxCall *call, KilnValue *x, const int64_t *perm, uint32_t n,
                   GError **error)
{
    return kiln_onnx_step_transpose(&(KilnOnnxSteps){ call, error }, x, perm, n);
}

/* The dims of a value of rank @rank whose channels come last, with the channels second. */
static void
channels_second(int rank, int64_t *perm)
{
    for (int d = 0; d < rank; d++)
        perm[d] = d == 0 ? 0 : d == 1 ? rank - 1 : d - 1;
}

KilnValue *
kiln_onnx_channels_second(KilnOnnxCall *call, KilnValue *x, GError **error)
{
    int64_t perm[KILN_MAX_RANK];
    if (x->type.rank < 2) {
        kiln_onnx_unsupported(call, error, "channels that are last in an operand of rank %d",
                              x->type.rank);
        return NULL;
    }
    channels_second(x->type.rank, perm);
    return kiln_onnx_permuted(call, x, perm, (uint32_t)x->type.rank, error);
}

KilnValue *
kiln_onnx_channels_last(KilnOnnxCall *call, KilnValue *x, GError **error)
{
    int64_t perm[KILN_MAX_RANK], back[KILN_MAX_RANK];
    int rank = x ? x->type.rank : 0;
    channels_second(rank, perm);
    for (int d = 0; d < rank; d++)
        back[perm[d]] = d;
    return kiln_onnx_permuted(call, x, back, (uint32_t)rank, error);
}
