/* SPDX-License-Identifier: Apache-2.0 */
/* Which opset an exported model needs. Readers are many years apart: opset 17 is understood by
 * nearly all, 21 is what the forms of graph/ops come from. */
#include "graph/onnx/export.h"
#include "graph/onnx/opset.h"

#include "graph/op/expand.h"
#include "graph/op/gather.h"
#include "graph/op/generate.h"
#include "graph/op/logic.h"
#include "graph/op/math.h"
#include "graph/op/pool.h"
#include "graph/op/qproduct.h"
#include "graph/op/quantize.h"
#include "graph/op/resize.h"
#include "graph/op/slice.h"

enum {
    LOW = 17
};

/* Attributes that opsets 18 to 21 added to forms that are otherwise those of opset 17; `value`
 * NULL: any value but the default. */
static const struct {
    KilnOp op;
    const char *attr;
    const char *value;
} later[] = {
    { KILN_OP_average_pool, "dilations", NULL },
    { KILN_OP_lp_pool, "ceil_mode", NULL },
    { KILN_OP_lp_pool, "dilations", NULL },
    { KILN_OP_pad, "mode", "wrap" },
    { KILN_OP_resize, "antialias", NULL },
    { KILN_OP_resize, "axes", NULL },
    { KILN_OP_resize, "coordinate_transformation_mode", "half_pixel_symmetric" },
    { KILN_OP_resize, "keep_aspect_ratio_policy", NULL },
    { KILN_OP_scatter_elements, "reduction", "max" },
    { KILN_OP_scatter_elements, "reduction", "min" },
    { KILN_OP_scatter_nd, "reduction", "max" },
    { KILN_OP_scatter_nd, "reduction", "min" },
};

static bool
has_later_attr(const KilnNode *node)
{
    const KilnOpInfo *info = kiln_op_info(node->op);
    for (size_t i = 0; i < G_N_ELEMENTS(later); i++) {
        if (later[i].op != node->op)
            continue;
        const KilnAttrInfo *attr = kiln_attr_find(info->attrs, info->n_attrs, later[i].attr);
        const void *field = (const char *)node->attrs + attr->offset;
        if (later[i].value ? g_strcmp0(*(const char *const *)field, later[i].value) == 0
                           : !kiln_attr_is_default(attr, node->attrs))
            return true;
    }
    return false;
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

/* Element types that opsets 18 to 21 admitted where the form is that of opset 17. */
enum {
    RESULT = -1,
    FLOATS_16 = 1u << KILN_DTYPE_f16 | 1u << KILN_DTYPE_bf16,
    INTEGERS_16 = 1u << KILN_DTYPE_i16 | 1u << KILN_DTYPE_u16,
};

static const struct {
    KilnOp op;
    int operand;
    uint32_t dtypes;
} later_types[] = {
    { KILN_OP_constant_of_shape, RESULT, 1u << KILN_DTYPE_bf16 },
    { KILN_OP_dequantize_linear, 0, INTEGERS_16 },
    { KILN_OP_dequantize_linear, 1, FLOATS_16 },
    { KILN_OP_equal, 0, 1u << KILN_DTYPE_string },
    { KILN_OP_is_inf, 0, FLOATS_16 },
    { KILN_OP_qlinear_matmul, 1, FLOATS_16 },
    { KILN_OP_quantize_linear, 0, FLOATS_16 },
    { KILN_OP_quantize_linear, 1, FLOATS_16 | 1u << KILN_DTYPE_i32 },
    { KILN_OP_quantize_linear, 2, INTEGERS_16 },
};

static bool
has_later_type(const KilnNode *node)
{
    for (size_t i = 0; i < G_N_ELEMENTS(later_types); i++) {
        if (later_types[i].op != node->op)
            continue;
        const int operand = later_types[i].operand;
        const KilnValue *value =
            operand == RESULT ? &node->results[0] : kiln_node_operand(node, (uint32_t)operand);
        if (value && later_types[i].dtypes >> value->type.dtype & 1)
            return true;
    }
    return false;
}

/* Operands that came with opsets 18 to 21. */
static bool
has_later_operand(const KilnNode *node)
{
    return (node->op == KILN_OP_pad && kiln_node_operand(node, 3)) || splits_unevenly(node);
}

int
kiln_onnx_export_opset(const KilnFunction *function)
{
    kiln_foreach_node (node, function) {
        const KilnOpInfo *info = kiln_op_info(node->op);
        /* The same row in both opsets: the same form, but for what is tested one by one. */
        if (*info->onnx &&
            (kiln_onnx_row(info->onnx, LOW) != kiln_onnx_row(info->onnx, KILN_ONNX_LATEST) ||
             has_later_attr(node) || has_later_type(node) || has_later_operand(node)))
            return KILN_ONNX_LATEST;
        kiln_foreach_region (region, node) {
            if (kiln_onnx_export_opset(region) > LOW)
                return KILN_ONNX_LATEST;
        }
    }
    return LOW;
}
