/* SPDX-License-Identifier: Apache-2.0 */
/* Which opset an exported model needs. Readers are many years apart: opset 17 is understood by
 * nearly all, 21 is what the forms of graph/ops come from. Newer ones are for what nothing else
 * says. */
#include "graph/onnx/export.h"
#include "graph/onnx/opset.h"

#include "graph/op/activation.h"
#include "graph/op/conv.h"
#include "graph/op/expand.h"
#include "graph/op/gather.h"
#include "graph/op/generate.h"
#include "graph/op/logic.h"
#include "graph/op/math.h"
#include "graph/op/matmul.h"
#include "graph/op/multiplicative.h"
#include "graph/op/norm.h"
#include "graph/op/pool.h"
#include "graph/op/qproduct.h"
#include "graph/op/quantize.h"
#include "graph/op/random.h"
#include "graph/op/recurrent.h"
#include "graph/op/reduce.h"
#include "graph/op/resize.h"
#include "graph/op/slice.h"
#include "graph/op/transpose.h"

enum {
    LOW = 17,
    HIGH = 21,
};

/* Attributes that later opsets added to forms that are otherwise those of opset 17; `value` NULL:
 * any value but the default. */
static const struct {
    KilnOp op;
    const char *attr;
    const char *value;
    int opset;
} later[] = {
    { KILN_OP_average_pool, "dilations", NULL, HIGH },
    { KILN_OP_dequantize_linear, "block_size", NULL, HIGH },
    { KILN_OP_lp_pool, "ceil_mode", NULL, HIGH },
    { KILN_OP_lp_pool, "dilations", NULL, HIGH },
    { KILN_OP_pad, "mode", "wrap", HIGH },
    { KILN_OP_quantize_linear, "block_size", NULL, HIGH },
    { KILN_OP_resize, "antialias", NULL, HIGH },
    { KILN_OP_resize, "axes", NULL, HIGH },
    { KILN_OP_resize, "coordinate_transformation_mode", "half_pixel_symmetric", HIGH },
    { KILN_OP_resize, "keep_aspect_ratio_policy", NULL, HIGH },
    { KILN_OP_scatter_elements, "reduction", "max", HIGH },
    { KILN_OP_scatter_elements, "reduction", "min", HIGH },
    { KILN_OP_scatter_nd, "reduction", "max", HIGH },
    { KILN_OP_scatter_nd, "reduction", "min", HIGH },
    { KILN_OP_space_to_depth, "mode", NULL, 28 },
};

static int
opset_of_attrs(const KilnNode *node)
{
    const KilnOpInfo *info = kiln_op_info(node->op);
    int opset = LOW;
    for (size_t i = 0; i < G_N_ELEMENTS(later); i++) {
        if (later[i].op != node->op)
            continue;
        const KilnAttrInfo *attr = kiln_attr_find(info->attrs, info->n_attrs, later[i].attr);
        const void *field = (const char *)node->attrs + attr->offset;
        if (later[i].value ? g_strcmp0(*(const char *const *)field, later[i].value) == 0
                           : !kiln_attr_is_default(attr, node->attrs))
            opset = MAX(opset, later[i].opset);
    }
    return opset;
}

/* Split by count needed no count before opset 18, but equal lengths. */
static bool
splits_unevenly(const KilnNode *node)
{
    if (node->op != KILN_OP_split || kiln_node_operand(node, 1))
        return false;
    const KilnType *type = &kiln_node_operand(node, 0)->type;
    int axis = type->rank < 0 ? -1 : kiln_type_axis(type, kiln_attrs(node, split)->axis);
    return axis < 0 || type->dims[axis] < 0 || type->dims[axis] % node->n_results != 0;
}

/* Element types that later opsets admitted where the form is that of opset 17. */
enum {
    RESULT = -1,
    BF16 = 1u << KILN_DTYPE_bf16,
    FLOATS_16 = 1u << KILN_DTYPE_f16 | BF16,
    INTEGERS_16 = 1u << KILN_DTYPE_i16 | 1u << KILN_DTYPE_u16,
    SIGNED =
        1u << KILN_DTYPE_i8 | 1u << KILN_DTYPE_i16 | 1u << KILN_DTYPE_i32 | 1u << KILN_DTYPE_i64,
};

static const struct {
    KilnOp op;
    int operand;
    uint32_t dtypes;
    int opset;
} later_types[] = {
    { KILN_OP_constant_of_shape, RESULT, BF16, HIGH },
    { KILN_OP_dequantize_linear, 0, INTEGERS_16, HIGH },
    { KILN_OP_dequantize_linear, 1, FLOATS_16, HIGH },
    { KILN_OP_equal, 0, 1u << KILN_DTYPE_string, HIGH },
    { KILN_OP_is_inf, 0, FLOATS_16, HIGH },
    { KILN_OP_qlinear_matmul, 1, FLOATS_16, HIGH },
    { KILN_OP_quantize_linear, 0, FLOATS_16, HIGH },
    { KILN_OP_quantize_linear, 1, FLOATS_16 | 1u << KILN_DTYPE_i32, HIGH },
    { KILN_OP_quantize_linear, 2, INTEGERS_16, HIGH },
    { KILN_OP_acos, 0, BF16, 22 },
    { KILN_OP_acosh, 0, BF16, 22 },
    { KILN_OP_asin, 0, BF16, 22 },
    { KILN_OP_asinh, 0, BF16, 22 },
    { KILN_OP_atan, 0, BF16, 22 },
    { KILN_OP_atanh, 0, BF16, 22 },
    { KILN_OP_average_pool, 0, BF16, 22 },
    { KILN_OP_conv, 0, BF16, 22 },
    { KILN_OP_conv_transpose, 0, BF16, 22 },
    { KILN_OP_cos, 0, BF16, 22 },
    { KILN_OP_cosh, 0, BF16, 22 },
    { KILN_OP_deform_conv, 0, BF16, 22 },
    { KILN_OP_det, 0, BF16, 22 },
    { KILN_OP_elu, 0, BF16, 22 },
    { KILN_OP_global_average_pool, 0, BF16, 22 },
    { KILN_OP_global_lp_pool, 0, BF16, 22 },
    { KILN_OP_global_max_pool, 0, BF16, 22 },
    { KILN_OP_grid_sample, 0, BF16, 22 },
    { KILN_OP_gru, 0, BF16, 22 },
    { KILN_OP_hard_sigmoid, 0, BF16, 22 },
    { KILN_OP_hard_swish, 0, BF16, 22 },
    { KILN_OP_instance_normalization, 0, BF16, 22 },
    { KILN_OP_lp_normalization, 0, BF16, 22 },
    { KILN_OP_lp_pool, 0, BF16, 22 },
    { KILN_OP_lstm, 0, BF16, 22 },
    { KILN_OP_max_pool, 0, BF16, 22 },
    { KILN_OP_max_roi_pool, 0, BF16, 22 },
    { KILN_OP_max_unpool, 0, BF16, 22 },
    { KILN_OP_mish, 0, BF16, 22 },
    { KILN_OP_rnn, 0, BF16, 22 },
    { KILN_OP_roi_align, 0, BF16, 22 },
    { KILN_OP_round, 0, BF16, 22 },
    { KILN_OP_selu, 0, BF16, 22 },
    { KILN_OP_sin, 0, BF16, 22 },
    { KILN_OP_sinh, 0, BF16, 22 },
    { KILN_OP_softplus, 0, BF16, 22 },
    { KILN_OP_softsign, 0, BF16, 22 },
    { KILN_OP_tan, 0, BF16, 22 },
    { KILN_OP_thresholded_relu, 0, BF16, 22 },
    { KILN_OP_eye_like, RESULT, BF16, 22 },
    { KILN_OP_random_normal, RESULT, BF16, 22 },
    { KILN_OP_random_uniform, RESULT, BF16, 22 },
    { KILN_OP_top_k, 0, BF16, 24 },
    { KILN_OP_range, 0, FLOATS_16, 27 },
    { KILN_OP_bit_shift, 0, SIGNED, 28 },
    { KILN_OP_celu, 0, FLOATS_16 | 1u << KILN_DTYPE_f64, 28 },
    { KILN_OP_compress, 0, BF16, 28 },
    { KILN_OP_einsum, 0, BF16, 28 },
    { KILN_OP_one_hot, 2, BF16, 28 },
    { KILN_OP_reverse_sequence, 0, BF16, 28 },
};

/* The first opset whose operators take @dtype at all. */
static int
opset_of_dtype(KilnDType dtype)
{
    switch (dtype) {
    case KILN_DTYPE_f8e4m3fn:
    case KILN_DTYPE_f8e4m3fnuz:
    case KILN_DTYPE_f8e5m2:
    case KILN_DTYPE_f8e5m2fnuz:
    case KILN_DTYPE_i4:
    case KILN_DTYPE_u4:
        return HIGH;
    case KILN_DTYPE_f4e2m1:
        return 23;
    case KILN_DTYPE_f8e8m0:
        return 24;
    case KILN_DTYPE_i2:
    case KILN_DTYPE_u2:
        return 25;
    case KILN_DTYPE_f6e2m3:
    case KILN_DTYPE_f6e3m2:
        return 28;
    default:
        return LOW;
    }
}

static int
opset_of_types(const KilnNode *node)
{
    int opset = LOW;
    for (uint32_t i = 0; i < node->n_operands; i++) {
        const KilnValue *value = node->operands[i].value;
        if (value)
            opset = MAX(opset, opset_of_dtype(value->type.dtype));
    }
    for (uint32_t r = 0; r < node->n_results; r++)
        opset = MAX(opset, opset_of_dtype(node->results[r].type.dtype));
    for (size_t i = 0; i < G_N_ELEMENTS(later_types); i++) {
        if (later_types[i].op != node->op)
            continue;
        const int operand = later_types[i].operand;
        const KilnValue *value =
            operand == RESULT ? &node->results[0] : kiln_node_operand(node, (uint32_t)operand);
        if (value && later_types[i].dtypes >> value->type.dtype & 1)
            opset = MAX(opset, later_types[i].opset);
    }
    return opset;
}

/* What depends on more than one attribute or type. */
static int
opset_of_node(const KilnNode *node)
{
    const KilnValue *x = kiln_node_operand(node, 0), *scale = kiln_node_operand(node, 1);
    switch (node->op) {
    case KILN_OP_pad:
        return kiln_node_operand(node, 3) ? HIGH : LOW; /* axes */
    case KILN_OP_split:
        return splits_unevenly(node) ? HIGH : LOW;
    case KILN_OP_quantize_linear:
        return x && scale && x->type.dtype != scale->type.dtype ? 23 : LOW;
    case KILN_OP_mod: /* of floats: the remainder whose sign is that of the divisor */
        return kiln_dtype_is_float(x->type.dtype) && !kiln_attrs(node, mod)->fmod ? 28 : LOW;
    default:
        return LOW;
    }
}

int
kiln_onnx_export_opset(const KilnFunction *function)
{
    int opset = LOW;
    kiln_foreach_node (node, function) {
        const KilnOpInfo *info = kiln_op_info(node->op);
        /* The same row in both opsets: the same form, but for what is tested one by one. */
        if (*info->onnx && kiln_onnx_row(info->onnx, LOW) != kiln_onnx_row(info->onnx, HIGH))
            opset = MAX(opset, HIGH);
        if (*info->onnx) {
            opset = MAX(opset, kiln_onnx_first_opset(info->onnx));
            opset = MAX(opset,
                        MAX(opset_of_attrs(node), MAX(opset_of_types(node), opset_of_node(node))));
        }
        kiln_foreach_region (region, node)
            opset = MAX(opset, kiln_onnx_export_opset(region));
    }
    return opset;
}
