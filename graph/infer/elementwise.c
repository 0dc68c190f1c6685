/* SPDX-License-Identifier: Apache-2.0 */
/* Shape functions of element-wise ops: one operand's shape, or several broadcast as numpy does.
 * Results keep the layout of their operands; quantization stays where elements keep their meaning.
 */
#include "graph/graph.h"
#include "graph/infer/common.h"
#include "graph/op/activation.h"
#include "graph/op/additive.h"
#include "graph/op/bounds.h"
#include "graph/op/cast.h"
#include "graph/op/gather.h"
#include "graph/op/generate.h"
#include "graph/op/layout.h"
#include "graph/op/logic.h"
#include "graph/op/math.h"
#include "graph/op/norm.h"
#include "graph/op/reduce.h"
#include "graph/op/structure.h"
#include "graph/op/transpose.h"

/* --- one operand --- */

static KilnDTypeSet
same_types(KilnOp op)
{
    switch (op) {
    case KILN_OP_identity:
        return KILN_SET_ANY | KILN_SET_ITEMS;
    case KILN_OP_scatter_elements:
    case KILN_OP_scatter_nd:
    case KILN_OP_trilu:
    case KILN_OP_reverse_sequence:
        return KILN_SET_ANY;
    case KILN_OP_abs:
    case KILN_OP_erf:
    case KILN_OP_shrink:
    case KILN_OP_sign:
        return KILN_SET_NUMBERS;
    case KILN_OP_neg:
    case KILN_OP_relu:
        return KILN_SET_FLOATS | KILN_SET_SIGNED | KILN_SET_QUANTIZED;
    case KILN_OP_cum_prod:
    case KILN_OP_cum_sum:
        return KILN_SET_FLOATS | KILN_SET_INDICES | KILN_SET(u32) | KILN_SET(u64);
    case KILN_OP_bitwise_not:
        return KILN_SET_INTEGERS;
    case KILN_OP_not:
        return KILN_SET(bool);
    default:
        return KILN_SET_FLOATS | KILN_SET_QUANTIZED;
    }
}

static gboolean
check_gelu(const KilnInfer *in, GError **error)
{
    return kiln_infer_one_of("approximate", kiln_attrs(in->node, gelu)->approximate, "none tanh",
                             error);
}

/* Glow's regression: operand 1 is what operand 0 is trained towards. */
static gboolean
check_regression(const KilnInfer *in, GError **error)
{
    const KilnType *x = kiln_infer_type(in, 0);
    const KilnType *expected = kiln_infer_type(in, 1);
    if (!kiln_infer_require_like(in, 1, 0, error))
        return FALSE;
    if (x->rank < 0 || expected->rank < 0)
        return TRUE;
    if (!kiln_infer_require_rank(in, 1, x->rank, x->rank, error))
        return FALSE;
    for (int d = 0; d < x->rank; d++) {
        if (!kiln_infer_require_dim(in, 1, d, x->dims[d], error))
            return FALSE;
    }
    return TRUE;
}

static gboolean
check_same(const KilnInfer *in, GError **error)
{
    switch (in->node->op) {
    case KILN_OP_gelu:
        return check_gelu(in, error);
    case KILN_OP_regression:
        return check_regression(in, error);
    case KILN_OP_cum_prod:
    case KILN_OP_cum_sum:
        return kiln_infer_check_cum_sum(in, error);
    case KILN_OP_instance_normalization:
        return kiln_infer_check_instance_normalization(in, error);
    case KILN_OP_group_normalization:
        return kiln_infer_check_group_normalization(in, error);
    case KILN_OP_lrn:
        return kiln_infer_check_lrn(in, error);
    case KILN_OP_mean_variance_normalization:
        return kiln_infer_check_mean_variance_normalization(in, error);
    case KILN_OP_scatter_elements:
        return kiln_infer_check_scatter_elements(in, error);
    case KILN_OP_scatter_nd:
        return kiln_infer_check_scatter_nd(in, error);
    case KILN_OP_trilu:
        return kiln_infer_check_trilu(in, error);
    case KILN_OP_reverse_sequence:
        return kiln_infer_check_reverse_sequence(in, error);
    default:
        return TRUE;
    }
}

KILN_INFER(same)
{
    if (!kiln_infer_require(in, 0, same_types(in->node->op), error) || !check_same(in, error))
        return FALSE;
    in->out[0] = *kiln_infer_type(in, 0);
    if (in->node->op == KILN_OP_identity)
        kiln_known_copy(in, 0, 0);
    else if (in->node->n_operands == 1)
        kiln_known_elementwise(in);
    return TRUE;
}

static const KilnDTypeSet floats_of_8 =
    KILN_SET(f8e4m3fn) | KILN_SET(f8e4m3fnuz) | KILN_SET(f8e5m2) | KILN_SET(f8e5m2fnuz);

KILN_INFER(to_bool)
{
    if (!kiln_infer_require(in, 0, KILN_SET_FLOATS | floats_of_8, error))
        return FALSE;
    in->out[0] = *kiln_infer_type(in, 0);
    in->out[0].dtype = KILN_DTYPE_bool;
    in->out[0].quant = NULL;
    return TRUE;
}

KILN_INFER(cast)
{
    const KilnAttrs_cast *attrs = kiln_attrs(in->node, cast);
    if (!kiln_infer_one_of("round_mode", attrs->round_mode, "up down nearest", error))
        return FALSE;
    in->out[0] = *kiln_infer_type(in, 0);
    in->out[0].dtype = attrs->to;
    in->out[0].quant = NULL;
    kiln_known_elementwise(in);
    return TRUE;
}

/* The same bits as elements of another type. */
KILN_INFER(bit_cast)
{
    const KilnType *x = kiln_infer_type(in, 0);
    const KilnDType to = kiln_attrs(in->node, bit_cast)->to;
    if (!kiln_infer_require(in, 0, KILN_SET_ANY & ~KILN_SET(string), error))
        return FALSE;
    if (to == KILN_DTYPE_string || kiln_dtype_bits(to) != kiln_dtype_bits(x->dtype))
        return kiln_throw(error, KILN_ERROR_TYPE, "to: expected a type as wide as %s, found %s",
                          kiln_dtype_name(x->dtype), kiln_dtype_name(to));
    in->out[0] = kiln_infer_plain(x);
    in->out[0].dtype = to;
    return TRUE;
}

/* --- several operands --- */

static KilnDTypeSet
broadcast_types(KilnOp op)
{
    switch (op) {
    case KILN_OP_sum:
    case KILN_OP_mean:
        return KILN_SET_FLOATS | KILN_SET_QUANTIZED;
    case KILN_OP_bit_shift:
    case KILN_OP_bitwise_and:
    case KILN_OP_bitwise_or:
    case KILN_OP_bitwise_xor:
        return KILN_SET_INTEGERS;
    case KILN_OP_and:
    case KILN_OP_or:
    case KILN_OP_xor:
        return KILN_SET(bool);
    case KILN_OP_equal:
        return KILN_SET_ANY;
    default:
        return KILN_SET_NUMBERS;
    }
}

static gboolean
check_broadcast(const KilnInfer *in, GError **error)
{
    if (!kiln_infer_require_present(in, error) ||
        !kiln_infer_require(in, 0, broadcast_types(in->node->op), error) ||
        !kiln_infer_require_alike(in, error))
        return FALSE;
    if (in->node->op == KILN_OP_bit_shift)
        return kiln_infer_one_of("direction", kiln_attrs(in->node, bit_shift)->direction,
                                 "LEFT RIGHT", error);
    return TRUE;
}

/* One quantization that all operands from @first on share, so that choosing among their elements
 * keeps it; else NULL. */
static const KilnQuant *
shared_quant(const KilnInfer *in, uint32_t first)
{
    KilnType model = kiln_type_scalar(KILN_DTYPE_i8);
    model.quant = kiln_infer_moved_quant(in, first);
    for (uint32_t i = first + 1; i < in->node->n_operands; i++) {
        KilnType other = kiln_type_scalar(KILN_DTYPE_i8);
        other.quant = kiln_infer_moved_quant(in, i);
        if (!kiln_type_equal(&model, &other))
            return NULL;
    }
    return model.quant;
}

KILN_INFER(broadcast)
{
    if (!check_broadcast(in, error))
        return FALSE;
    in->out[0].dtype = kiln_infer_type(in, 0)->dtype;
    if (!kiln_infer_broadcast_operands(in, 0, &in->out[0], error))
        return FALSE;
    if (in->node->op == KILN_OP_max || in->node->op == KILN_OP_min)
        in->out[0].quant = shared_quant(in, 0);
    kiln_known_elementwise(in);
    return TRUE;
}

KILN_INFER(compare)
{
    if (!check_broadcast(in, error))
        return FALSE;
    in->out[0].dtype = KILN_DTYPE_bool;
    if (!kiln_infer_broadcast_operands(in, 0, &in->out[0], error))
        return FALSE;
    kiln_known_elementwise(in);
    return TRUE;
}

KILN_INFER(pow)
{
    if (!kiln_infer_require(in, 0, KILN_SET_FLOATS | KILN_SET_INDICES, error) ||
        !kiln_infer_require(in, 1, KILN_SET_NUMBERS, error))
        return FALSE;
    in->out[0].dtype = kiln_infer_type(in, 0)->dtype;
    return kiln_infer_broadcast_operands(in, 0, &in->out[0], error);
}

KILN_INFER(prelu)
{
    const KilnType *x = kiln_infer_type(in, 0);
    KilnDTypeSet types = KILN_SET_FLOATS | KILN_SET_INDICES | KILN_SET(u32) | KILN_SET(u64);
    if (!kiln_infer_require(in, 0, types | KILN_SET_QUANTIZED, error) ||
        !kiln_infer_require_alike(in, error) || !kiln_infer_require_broadcast_to(in, 1, x, error))
        return FALSE;
    in->out[0] = kiln_infer_plain(x);
    in->out[0].layout = x->layout;
    return TRUE;
}

/* The bounds of quantized data are reals. */
static gboolean
check_bounds(const KilnInfer *in, GError **error)
{
    bool quantized = kiln_infer_type(in, 0)->quant;
    for (uint32_t i = 1; i < 3; i++) {
        if (!kiln_infer_require_scalar(in, i, error) ||
            (quantized && !kiln_infer_require(in, i, KILN_SET(f32), error)))
            return FALSE;
    }
    return quantized || kiln_infer_require_alike(in, error);
}

KILN_INFER(clip)
{
    if (!kiln_infer_require(in, 0, KILN_SET_NUMBERS, error) || !check_bounds(in, error))
        return FALSE;
    in->out[0] = *kiln_infer_type(in, 0);
    kiln_known_elementwise(in);
    return TRUE;
}

KILN_INFER(where)
{
    if (!kiln_infer_require(in, 0, KILN_SET(bool), error) ||
        !kiln_infer_require_like(in, 2, 1, error))
        return FALSE;
    in->out[0].dtype = kiln_infer_type(in, 1)->dtype;
    if (!kiln_infer_broadcast_operands(in, 0, &in->out[0], error))
        return FALSE;
    in->out[0].quant = shared_quant(in, 1);
    kiln_known_elementwise(in);
    return TRUE;
}

KILN_INFER(dropout)
{
    const KilnType *x = kiln_infer_type(in, 0);
    if (!kiln_infer_require(in, 0, KILN_SET_FLOATS | floats_of_8 | KILN_SET_QUANTIZED, error) ||
        !kiln_infer_require(in, 1, KILN_SET_FLOATS | floats_of_8, error) ||
        !kiln_infer_require_scalar(in, 1, error) ||
        !kiln_infer_require(in, 2, KILN_SET(bool), error) ||
        !kiln_infer_require_scalar(in, 2, error))
        return FALSE;
    in->out[0] = *x;
    if (in->node->n_results > 1) {
        in->out[1] = kiln_infer_plain(x);
        in->out[1].dtype = KILN_DTYPE_bool;
        in->out[1].layout = x->layout;
    }
    return TRUE;
}
