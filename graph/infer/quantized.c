/* SPDX-License-Identifier: Apache-2.0 */
/* What quantized operands mean for the types of results, for all ops alike:
 *
 *  - QUANT ops compute on the reals that their operands stand for. Operands have parameters of
 * their own; element type and quantization of the result are stated, since nothing tells them.
 * Where nothing is stated, those that the shape function found count, if it found any.
 *  - KEEPS ops move elements as they are: the quantization of operand 0 stays. Per axis it follows
 *    its axis, which the shape function finds; where it cannot, the op is refused.
 *  - Others take quantized operands only where their elements do not matter. */
#include "graph/infer/common.h"
#include "graph/module/layout.h"
#include "graph/op/conv.h"
#include "graph/op/expand.h"
#include "graph/op/gather.h"
#include "graph/op/generate.h"
#include "graph/op/logic.h"
#include "graph/op/matmul.h"
#include "graph/op/quantize.h"
#include "graph/op/slice.h"

/* --- which ops --- */

/* Ops whose results have nothing to do with how operands are quantized, or whose shape function
 * sees to it. */
static bool
is_exempt(KilnOp op)
{
    switch (op) {
    case KILN_OP_quantize_linear:
    case KILN_OP_dequantize_linear:
    case KILN_OP_rescale_quantized:
    case KILN_OP_storage_cast:
    case KILN_OP_lookup_table:
    case KILN_OP_shape:
    case KILN_OP_size:
        return true;
    default:
        return kiln_infer_function(op) == kiln_infer_given ||
               kiln_infer_function(op) == kiln_infer_plugin ||
               kiln_infer_function(op) == kiln_infer_none;
    }
}

/* The first quantized operand; false where there is none. */
static bool
find_quantized(const KilnInfer *in, uint32_t *out)
{
    for (uint32_t i = 0; i < in->node->n_operands; i++) {
        const KilnType *type = kiln_infer_type(in, i);
        if (type && type->quant) {
            *out = i;
            return true;
        }
    }
    return false;
}

/* --- ops on reals --- */

static gboolean
throw_result(const KilnType *found, const char *expected, GError **error)
{
    g_autofree char *text = kiln_type_to_string(found);
    return kiln_throw(error, KILN_ERROR_TYPE, "result 0: expected %s, found %s", expected, text);
}

/* One scale per index of an axis is for elements that stay apart, and for weights (and their
 * bias), whose shape function checks the axis. */
static gboolean
check_per_tensor(const KilnInfer *in, GError **error)
{
    KilnOp op = in->node->op;
    bool product = op == KILN_OP_conv || op == KILN_OP_conv_transpose || op == KILN_OP_matmul ||
                   op == KILN_OP_gemm;
    if (kiln_op_has(op, KILN_TRAIT_ELEMENTWISE))
        return TRUE;
    for (uint32_t i = 0; i < (product ? 1 : in->node->n_operands); i++) {
        const KilnType *type = kiln_infer_type(in, i);
        if (type && type->quant && type->quant->axis >= 0)
            return kiln_infer_throw_type(in, i, "quantization with one scale", error);
    }
    if (in->out[0].quant->axis >= 0)
        return throw_result(&in->out[0], "quantization with one scale", error);
    return TRUE;
}

static gboolean
take_stated(KilnInfer *in, GError **error)
{
    KilnType *out = &in->out[0];
    if (in->given && !in->given[0].quant)
        return throw_result(&in->given[0], "a quantized type", error);
    if (in->given) {
        out->dtype = in->given[0].dtype;
        out->quant = in->given[0].quant;
    }
    if (!out->quant)
        return kiln_throw(error, KILN_ERROR_INVALID,
                          "%s of quantized operands needs a stated result type",
                          kiln_op_info(in->node->op)->name);
    for (uint32_t r = 0; r < in->node->n_results; r++)
        kiln_known_forget(in, r); /* of the stored integers, not of what they stand for */
    return check_per_tensor(in, error);
}

/* --- ops that move elements --- */

/* An operand whose elements become elements of the result beside those of operand @like. */
static gboolean
require_same_quant(const KilnInfer *in, uint32_t i, uint32_t like, GError **error)
{
    const KilnType *type = kiln_infer_type(in, i), *other = kiln_infer_type(in, like);
    if (!type || !other || kiln_quant_equal(type->quant, other->quant))
        return TRUE;
    g_autofree char *text = kiln_type_to_string(other);
    g_autofree char *expected = g_strdup_printf("the quantization of operand %u, %s,", like, text);
    return kiln_infer_throw_type(in, i, expected, error);
}

static gboolean
check_scatter(const KilnInfer *in, const char *reduction, GError **error)
{
    const KilnType *x = kiln_infer_type(in, 0);
    if (x->quant && x->quant->axis >= 0)
        return kiln_infer_throw_type(in, 0, "quantization with one scale", error);
    return kiln_infer_one_of("reduction, of quantized operands,", reduction, "none", error) &&
           require_same_quant(in, 2, 0, error);
}

static gboolean
check_moved(const KilnInfer *in, uint32_t data, GError **error)
{
    const KilnQuant *quant = kiln_infer_type(in, data) ? kiln_infer_type(in, data)->quant : NULL;
    switch (in->node->op) {
    case KILN_OP_where:
        return require_same_quant(in, 2, 1, error);
    case KILN_OP_pad:
        return require_same_quant(in, 2, 0, error);
    case KILN_OP_scatter_elements:
        return check_scatter(in, kiln_attrs(in->node, scatter_elements)->reduction, error);
    case KILN_OP_scatter_nd:
        return check_scatter(in, kiln_attrs(in->node, scatter_nd)->reduction, error);
    case KILN_OP_trilu: /* writes zeros */
        for (uint32_t i = 0; quant && i < quant->n; i++) {
            if (quant->zero_points[i])
                return kiln_infer_throw_type(in, 0, "a zero point of 0", error);
        }
        return TRUE;
    default:
        return TRUE;
    }
}

static gboolean
keep_quant(KilnInfer *in, GError **error)
{
    uint32_t data = in->node->op == KILN_OP_where ? 1 : 0;
    const KilnType *x = kiln_infer_type(in, data);
    if (!check_moved(in, data, error))
        return FALSE;
    uint32_t n = in->node->op == KILN_OP_split ? in->node->n_results : 1;
    for (uint32_t r = 0; r < n; r++) {
        if (x->quant && x->quant->axis < 0)
            in->out[r].quant = x->quant;
        else if (x->quant && !in->out[r].quant)
            return kiln_infer_throw_type(
                in, data, "quantization with one scale, or along an axis that stays", error);
    }
    return TRUE;
}

/* --- all ops --- */

static gboolean
see_to_quantization(KilnInfer *in, GError **error)
{
    KilnOp op = in->node->op;
    uint32_t first;
    if (!find_quantized(in, &first) || is_exempt(op))
        return TRUE;
    if (kiln_op_has(op, KILN_TRAIT_QUANTIZED)) /* of quantized data, not of parameters beside it */
        return first > 0 || take_stated(in, error);
    if (kiln_op_has(op, KILN_TRAIT_KEEPS_QUANTIZATION))
        return keep_quant(in, error);
    return kiln_infer_throw_type(in, first, "a type that is not quantized", error);
}

/* Results lie as the operands do where the operator means the same there; element-wise shape
 * functions have seen to it. */
static void
see_to_layout(KilnInfer *in)
{
    const KilnType *first = kiln_infer_type(in, 0);
    if (!in->node->n_results || !first || !first->layout || in->out[0].layout)
        return;
    KilnType laid = in->out[0];
    laid.layout = first->layout;
    for (uint32_t i = 1; i < in->node->n_operands; i++) {
        const KilnType *type = kiln_infer_type(in, i);
        if (type && kiln_layout_follows(in->node, i, &laid) &&
            g_strcmp0(type->layout, first->layout) != 0)
            return;
    }
    if (!kiln_layout_carries(in->node, &laid))
        return;
    for (uint32_t r = 0; r < in->node->n_results; r++)
        in->out[r].layout = first->layout;
}

/* Whoever is behind this counts elements and bytes without asking whether they can be counted. */
static gboolean
check_sizes(const KilnInfer *in, GError **error)
{
    for (uint32_t r = 0; r < in->node->n_results; r++) {
        const KilnType *type = &in->out[r];
        if (type->layout || !kiln_type_is_static(type) || kiln_type_bytes(type) >= 0)
            continue;
        g_autofree char *text = kiln_type_to_string(type);
        return kiln_throw(error, KILN_ERROR_SHAPE,
                          "result %u: expected less than 2^63 bytes, found %s", r, text);
    }
    return TRUE;
}

/* True for operators whose operands may be sequences, optionals and maps. */
static bool
takes_items(KilnOp op)
{
    return op == KILN_OP_return || (op >= KILN_OPS_structure && op <= KILN_OPS_LAST_structure) ||
           (op >= KILN_OPS_items && op <= KILN_OPS_LAST_items) ||
           kiln_op_has(op, KILN_TRAIT_REGION);
}

static gboolean
check_items(const KilnInfer *in, GError **error)
{
    if (takes_items(in->node->op))
        return TRUE;
    for (uint32_t i = 0; i < in->node->n_operands; i++) {
        const KilnType *type = kiln_infer_type(in, i);
        if (type && kiln_dtype_is_item(type->dtype))
            return kiln_infer_throw_type(in, i, "a tensor", error);
    }
    return TRUE;
}

gboolean
kiln_infer_run(KilnInfer *in, GError **error)
{
    if (!check_items(in, error))
        return FALSE;
    if (!kiln_infer_function(in->node->op)(in, error) || !see_to_quantization(in, error))
        return FALSE;
    see_to_layout(in);
    if (!check_sizes(in, error))
        return FALSE;
    kiln_infer_extents(in);
    /* What is stored is no number that shapes or folding may go by. */
    for (uint32_t r = 0; r < in->node->n_results; r++) {
        if (in->out[r].quant) {
            kiln_known_forget(in, r);
            if (in->extents)
                in->extents[r] = NULL;
        }
    }
    return TRUE;
}

/* --- for shape functions --- */

const KilnQuant *
kiln_infer_moved_quant(const KilnInfer *in, uint32_t i)
{
    const KilnType *type = kiln_infer_type(in, i);
    return type && type->quant && type->quant->axis < 0 ? type->quant : NULL;
}

const KilnQuant *
kiln_infer_quant_along(const KilnInfer *in, int axis)
{
    const KilnType *x = kiln_infer_type(in, 0);
    if (!x->quant || x->quant->axis < 0)
        return x->quant;
    if (axis < 0)
        return NULL;
    KilnQuant *quant = kiln_arena_copy(in->arena, x->quant, sizeof *quant);
    quant->axis = axis;
    return quant;
}

static gboolean
check_weights(const KilnInfer *in, uint32_t w, int axis, GError **error)
{
    const KilnType *weights = kiln_infer_type(in, w);
    if (!weights->quant)
        return kiln_infer_throw_type(in, w, "a quantized type", error);
    if (weights->quant->axis < 0 || weights->quant->axis == axis)
        return TRUE;
    g_autofree char *expected =
        axis < 0 ? g_strdup("quantization with one scale")
                 : g_strdup_printf("quantization with one scale, or along axis %d", axis);
    return kiln_infer_throw_type(in, w, expected, error);
}

/* A bias counts in the steps of the sums that it is added to. */
static gboolean
check_bias(const KilnInfer *in, GError **error)
{
    const KilnType *bias = kiln_infer_type(in, 2);
    if (!bias)
        return TRUE;
    const KilnQuant *x = kiln_infer_type(in, 0)->quant, *w = kiln_infer_type(in, 1)->quant;
    const KilnQuant *b = bias->quant;
    bool fits = bias->dtype == KILN_DTYPE_i32 && b && b->n == w->n &&
                (b->axis < 0) == (w->axis < 0) &&
                (b->axis < 0 || bias->rank < 0 || b->axis == bias->rank - 1);
    for (uint32_t i = 0; fits && i < b->n; i++) {
        float scale = x->scales[0] * w->scales[i];
        fits = b->scales[i] == scale && b->zero_points[i] == 0;
    }
    return fits || kiln_infer_throw_type(in, 2,
                                         "i32 whose scale is the product of those of operands 0 "
                                         "and 1 and whose zero point is 0",
                                         error);
}

gboolean
kiln_infer_check_quantized_product(const KilnInfer *in, int axis, GError **error)
{
    const KilnType *x = kiln_infer_type(in, 0);
    if (!x->quant && !kiln_infer_type(in, 1)->quant)
        return TRUE;
    if (!x->quant || x->quant->axis >= 0)
        return kiln_infer_throw_type(in, 0, "a quantized type with one scale", error);
    return check_weights(in, 1, axis, error) && check_bias(in, error);
}

/* --- typed conversions --- */

static gboolean
require_given(const KilnInfer *in, GError **error)
{
    if (in->given)
        return TRUE;
    return kiln_throw(error, KILN_ERROR_INVALID, "%s needs a stated result type",
                      kiln_op_info(in->node->op)->name);
}

KILN_INFER(rescale_quantized)
{
    const KilnType *x = kiln_infer_type(in, 0);
    if (!require_given(in, error))
        return FALSE;
    if (!x->quant)
        return kiln_infer_throw_type(in, 0, "a quantized type", error);
    if (!in->given[0].quant)
        return throw_result(&in->given[0], "a quantized type", error);
    in->out[0] = *x;
    in->out[0].dtype = in->given[0].dtype;
    in->out[0].quant = in->given[0].quant;
    return TRUE;
}

KILN_INFER(storage_cast)
{
    const KilnType *x = kiln_infer_type(in, 0);
    if (!require_given(in, error))
        return FALSE;
    if (x->dtype != in->given[0].dtype)
        return kiln_infer_throw_type(in, 0, kiln_dtype_name(in->given[0].dtype), error);
    in->out[0] = *x;
    in->out[0].quant = in->given[0].quant;
    return TRUE;
}

/* Element i of the table is for the i-th value of x's element type, from the lowest on. */
KILN_INFER(lookup_table)
{
    const KilnType *x = kiln_infer_type(in, 0), *table = kiln_infer_type(in, 1);
    if (!kiln_infer_require(in, 0, KILN_SET_BYTES, error) ||
        !kiln_infer_require_rank(in, 1, 1, 1, error) ||
        !kiln_infer_require_dim(in, 1, 0, 256, error))
        return FALSE;
    if (table->quant && table->quant->axis >= 0)
        return kiln_infer_throw_type(in, 1, "quantization with one scale", error);
    in->out[0] = *x;
    in->out[0].dtype = table->dtype;
    in->out[0].quant = table->quant;
    return TRUE;
}

gboolean
kiln_infer_typed_quantize(KilnInfer *in, GError **error)
{
    if (!require_given(in, error))
        return FALSE;
    if (!in->given[0].quant)
        return throw_result(&in->given[0], "a quantized type", error);
    in->out[0] = *kiln_infer_type(in, 0);
    in->out[0].dtype = in->given[0].dtype;
    in->out[0].quant = in->given[0].quant;
    return TRUE;
}

gboolean
kiln_infer_typed_dequantize(KilnInfer *in, GError **error)
{
    const KilnType *x = kiln_infer_type(in, 0);
    if (!x->quant)
        return kiln_infer_throw_type(in, 0, "a quantized type", error);
    KilnDType to = in->given ? in->given[0].dtype : KILN_DTYPE_f32;
    in->out[0] = *x;
    in->out[0].dtype = to;
    in->out[0].quant = NULL;
    return kiln_dtype_is_float(to) || throw_result(&in->out[0], "floats", error);
}
