/* SPDX-License-Identifier: Apache-2.0 */
#include "passes/query/quant_product.h"

#include "graph/op/conv.h"
#include "graph/op/matmul.h"
#include "graph/op/quantize.h"
#include "passes/query/movement.h"
#include "passes/query/quant_range.h"

#include <float.h>
#include <math.h>

bool
kiln_op_is_product(KilnOp op)
{
    return op == KILN_OP_conv || op == KILN_OP_conv_transpose || op == KILN_OP_matmul ||
           op == KILN_OP_gemm;
}

KilnValue *
kiln_quant_source(const KilnValue *value)
{
    const KilnNode *node = kiln_value_def_of(value, KILN_OP_dequantize_linear);
    KilnValue *x = node && value->type.dtype == KILN_DTYPE_f32 ? node->operands[0].value : NULL;
    return x && x->type.quant ? x : NULL;
}

KilnValue *
kiln_quant_source_of_view(const KilnMatch *match, const KilnValue *value)
{
    const KilnNode *view = value->def;
    if (!view || !kiln_op_only_reshapes(view->op) || view->function != match->root->function)
        return kiln_quant_source(value);
    KilnValue *source = kiln_quant_source(view->operands[0].value);
    if (!source || source->type.quant->axis >= 0)
        return NULL;
    KilnValue *operands[] = { source, kiln_node_operand(view, 1) };
    return kiln_match_build(match, view->op, view->attrs, operands, view->n_operands);
}

KilnQuantBlocks
kiln_quant_blocks(const KilnNode *dequantize)
{
    const KilnAttrs_dequantize_linear *attrs = kiln_attrs(dequantize, dequantize_linear);
    return (KilnQuantBlocks){ attrs->axis, attrs->block_size };
}

bool
kiln_product_is_plain(const KilnNode *op)
{
    if (op->op != KILN_OP_gemm)
        return true;
    const KilnAttrs_gemm *gemm = kiln_attrs(op, gemm);
    return !gemm->transA && gemm->alpha == 1 && (gemm->beta == 1 || !kiln_node_operand(op, 2));
}

bool
kiln_product_turns_right(const KilnNode *op)
{
    return op->op == KILN_OP_gemm && kiln_attrs(op, gemm)->transB;
}

double
kiln_quant_most_steps(const KilnType *type)
{
    double values = ldexp(1, 8 * (int)kiln_dtype_size(type->dtype));
    double low = kiln_dtype_is_signed(type->dtype) ? -values / 2 : 0, most = 0;
    for (uint32_t i = 0; i < type->quant->n; i++)
        most = MAX(most, MAX(low + values - 1 - type->quant->zero_points[i],
                             type->quant->zero_points[i] - low));
    return most;
}

double
kiln_quant_terms(const KilnNode *op)
{
    const KilnType *x = &op->operands[0].value->type, *w = &op->operands[1].value->type;
    int64_t elements = kiln_type_elements(w), least, most;
    if (op->op == KILN_OP_matmul && x->rank < 1)
        return 0;
    if (op->op == KILN_OP_matmul) { /* at most */
        kiln_type_dim_range(x, x->rank - 1, &least, &most);
        return (double)most;
    }
    if (elements <= 0 || w->rank < 2)
        return 0;
    if (op->op == KILN_OP_gemm)
        return (double)w->dims[kiln_product_turns_right(op) ? 1 : 0];
    /* Each weight of an output channel counts once, but for a transposed convolution, whose weights
     * have its input channels in front. */
    return (double)elements / (double)w->dims[op->op == KILN_OP_conv ? 0 : 1];
}

bool
kiln_quant_products_survive_f32(const KilnType *x, const KilnType *w)
{
    if (!kiln_quant_survives_f32(x) || !kiln_quant_survives_f32(w))
        return false;
    for (uint32_t i = 0; i < w->quant->n; i++) {
        if (!(x->quant->scales[0] * w->quant->scales[i] <= FLT_MAX / 0x1p31f))
            return false;
    }
    return true;
}
