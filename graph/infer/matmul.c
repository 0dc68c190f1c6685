/* SPDX-License-Identifier: Apache-2.0 */
/* Shape functions of matrix products: matmul as numpy's, gemm, determinants. */
#include "graph/infer/common.h"
#include "graph/op/matmul.h"

static const KilnDTypeSet product_types =
    KILN_SET_FLOATS | KILN_SET_INDICES | KILN_SET(u32) | KILN_SET(u64) | KILN_SET_QUANTIZED;

/* --- matmul --- */

/* The dims in front of the matrix (or of nothing, for a vector). */
static KilnType
batch_of(const KilnType *type)
{
    KilnType batch = kiln_infer_plain(type);
    batch.rank = MAX(type->rank - 2, 0);
    return batch;
}

gboolean
kiln_infer_matmul_shape(const KilnInfer *in, uint32_t a, uint32_t b, KilnType *out, GError **error)
{
    const KilnType *left = kiln_infer_type(in, a), *right = kiln_infer_type(in, b);
    if (!kiln_infer_require_rank(in, a, 1, KILN_MAX_RANK, error) ||
        !kiln_infer_require_rank(in, b, 1, KILN_MAX_RANK, error))
        return FALSE;
    if (left->rank < 0 || right->rank < 0) {
        *out = kiln_type_unranked(out->dtype);
        return TRUE;
    }
    int inner = right->rank == 1 ? 0 : right->rank - 2;
    if (!kiln_infer_require_dim(in, b, inner, left->dims[left->rank - 1], error))
        return FALSE;
    KilnType batch_left = batch_of(left), batch_right = batch_of(right);
    if (!kiln_infer_broadcast_shapes(&batch_left, &batch_right, out, error))
        return FALSE;
    if (!kiln_infer_check_rank(out->rank + (left->rank > 1) + (right->rank > 1), error))
        return FALSE;
    if (left->rank > 1)
        kiln_dim_copy(out, out->rank++, left, left->rank - 2);
    if (right->rank > 1)
        kiln_dim_copy(out, out->rank++, right, right->rank - 1);
    return TRUE;
}

KILN_INFER(matmul)
{
    const KilnType *a = kiln_infer_type(in, 0);
    const KilnType *b = kiln_infer_type(in, 1);
    if (!kiln_infer_require(in, 0, product_types, error) ||
        !kiln_infer_require(in, 1, product_types, error) ||
        !kiln_infer_check_quantized_product(in, b->rank > 1 ? b->rank - 1 : -1, error) ||
        (!a->quant && !kiln_infer_require_like(in, 1, 0, error)))
        return FALSE;
    in->out[0].dtype = a->dtype;
    return kiln_infer_matmul_shape(in, 0, 1, &in->out[0], error);
}

/* --- gemm --- */

static gboolean
check_quantized_gemm(const KilnInfer *in, const KilnAttrs_gemm *attrs, GError **error)
{
    if (!kiln_infer_check_quantized_product(in, attrs->transB ? 0 : 1, error))
        return FALSE;
    bool scaled = attrs->alpha != 1 || (attrs->beta != 1 && kiln_infer_type(in, 2));
    if (!kiln_infer_type(in, 0)->quant || !scaled)
        return TRUE;
    return kiln_throw(error, KILN_ERROR_TYPE,
                      "alpha and beta: expected 1 with quantized operands, found %g and %g",
                      (double)attrs->alpha, (double)attrs->beta);
}

KILN_INFER(gemm)
{
    const KilnType *a = kiln_infer_type(in, 0), *b = kiln_infer_type(in, 1);
    const KilnAttrs_gemm *attrs = kiln_attrs(in->node, gemm);
    for (uint32_t i = 0; i < 3; i++) {
        if (!kiln_infer_require(in, i, product_types, error) ||
            (!a->quant && !kiln_infer_require_like(in, i, 0, error)))
            return FALSE;
    }
    if (!kiln_infer_require_rank(in, 0, 2, 2, error) ||
        !kiln_infer_require_rank(in, 1, 2, 2, error) || !check_quantized_gemm(in, attrs, error))
        return FALSE;
    KilnType out = kiln_infer_unknown(a->dtype, 2);
    if (a->rank == 2)
        kiln_dim_copy(&out, 0, a, attrs->transA ? 1 : 0);
    if (b->rank == 2)
        kiln_dim_copy(&out, 1, b, attrs->transB ? 0 : 1);
    if (a->rank == 2 && !kiln_infer_require_dim(in, 1, attrs->transB ? 1 : 0,
                                                a->dims[attrs->transA ? 0 : 1], error))
        return FALSE;
    in->out[0] = out;
    return kiln_infer_require_broadcast_to(in, 2, &out, error);
}

/* --- determinant --- */

KILN_INFER(det)
{
    const KilnType *x = kiln_infer_type(in, 0);
    if (!kiln_infer_require(in, 0, KILN_SET_FLOATS, error) ||
        !kiln_infer_require_rank(in, 0, 2, KILN_MAX_RANK, error))
        return FALSE;
    if (x->rank >= 2 && !kiln_infer_require_dim(in, 0, x->rank - 1, x->dims[x->rank - 2], error))
        return FALSE;
    in->out[0] = kiln_infer_plain(x);
    in->out[0].rank = x->rank < 0 ? x->rank : x->rank - 2;
    return TRUE;
}
