/* SPDX-License-Identifier: Apache-2.0 */
/* Quantized types as ONNX has them: parameters are operands of QuantizeLinear and DequantizeLinear,
 * and what computes on quantized types stands between the two. First operators are wrapped, while
 * types still say how; then all types become plain, and conversions get their operands. */
#include "graph/base/number.h"
#include "graph/node.h"
#include "graph/onnx/export.h"
#include "graph/op/additive.h"
#include "graph/op/cast.h"
#include "graph/op/expand.h"
#include "graph/op/gather.h"
#include "graph/op/quantize.h"
#include "graph/op/structure.h"

/* --- looking --- */

static bool
is_quantized(const KilnNode *node)
{
    bool found = node->op == KILN_OP_lookup_table || node->op == KILN_OP_storage_cast;
    for (uint32_t i = 0; i < node->n_results; i++)
        found |= node->results[i].type.quant != NULL;
    for (uint32_t i = 0; i < node->n_operands; i++)
        found |= node->operands[i].value && node->operands[i].value->type.quant;
    return found;
}

bool
kiln_onnx_has_quantized(const KilnFunction *function)
{
    for (guint i = 0; i < function->arguments->len; i++) {
        if (kiln_function_argument(function, i)->value.type.quant)
            return true;
    }
    kiln_foreach_node (node, function) {
        if (is_quantized(node))
            return true;
        kiln_foreach_region (region, node) {
            if (kiln_onnx_has_quantized(region))
                return true;
        }
    }
    return false;
}

/* --- building --- */

static KilnValue *
scalar(KilnNode *before, KilnDType dtype, double value, const KilnQuant *quant, GError **error)
{
    KilnType plain = kiln_type_scalar(dtype), type = plain;
    type.quant = quant;
    KilnAttrs_const attrs = { .value = kiln_module_add_constant(
                                  before->function->module, "number",
                                  kiln_tensor_new_splat(&plain, value), &type) };
    return kiln_build_typed(before, KILN_OP_const, &attrs, NULL, 0, &type, error);
}

static gboolean
replace(KilnNode *node, KilnValue *value)
{
    if (!value)
        return FALSE;
    kiln_value_replace(&node->results[0], value);
    kiln_node_remove(node);
    return TRUE;
}

/* --- wrapping --- */

static KilnValue *
dequantized(KilnNode *before, KilnValue *x, GError **error)
{
    KilnType type = x->type;
    type.dtype = KILN_DTYPE_f32;
    type.quant = NULL;
    return kiln_build_typed(before, KILN_OP_dequantize_linear, NULL, &x, 1, &type, error);
}

/* quantize(op(dequantize(…))); @op is identity for a rescale. */
static gboolean
wrap(KilnNode *node, KilnOp op, GError **error)
{
    g_autofree KilnValue **operands = g_new0(KilnValue *, node->n_operands);
    for (uint32_t i = 0; i < node->n_operands; i++) {
        operands[i] = node->operands[i].value;
        if (operands[i] && operands[i]->type.quant &&
            !(operands[i] = dequantized(node, operands[i], error)))
            return FALSE;
    }
    if (node->n_results > 1 && node->results[1].n_uses)
        return kiln_onnx_throw_export(node, "ONNX has no quantized form with several results",
                                      error);
    KilnValue *reals = operands[0];
    if (op != KILN_OP_identity)
        reals = kiln_build_typed(node, op, node->attrs, operands, node->n_operands, NULL, error);
    return reals && replace(node, kiln_build_typed(node, KILN_OP_quantize_linear, NULL, &reals, 1,
                                                   &node->results[0].type, error));
}

/* A pad of quantized data without a value pads with the zero point, one of plain data with 0. */
static gboolean
state_padding(KilnNode *node, GError **error)
{
    const KilnType *x = &node->operands[0].value->type;
    if (!x->quant || x->quant->axis >= 0 || !x->quant->zero_points[0] || kiln_node_operand(node, 2))
        return TRUE;
    KilnValue *operands[] = { node->operands[0].value, node->operands[1].value,
                              scalar(node, x->dtype, x->quant->zero_points[0], x->quant, error),
                              kiln_node_operand(node, 3) };
    return operands[2] &&
           replace(node, kiln_build_typed(node, KILN_OP_pad, node->attrs, operands,
                                          operands[3] ? 4 : 3, &node->results[0].type, error));
}

static gboolean
wrap_all(KilnFunction *function, GError **error)
{
    for (KilnNode *node = function->first, *next; node; node = next) {
        next = node->next;
        kiln_foreach_region (region, node) {
            if (!wrap_all(region, error))
                return FALSE;
        }
        const KilnValue *first = kiln_node_operand(node, 0);
        bool computes = first && first->type.quant && kiln_op_has(node->op, KILN_TRAIT_QUANTIZED);
        gboolean good = computes ? wrap(node, node->op, error)
                        : node->op == KILN_OP_rescale_quantized
                            ? wrap(node, KILN_OP_identity, error)
                        : node->op == KILN_OP_pad ? state_padding(node, error)
                                                  : TRUE;
        if (!good)
            return FALSE;
    }
    return TRUE;
}

/* --- plain types --- */

typedef void (*VisitFn)(KilnNode *node, GHashTable *quants);

static void
visit_all(KilnFunction *function, VisitFn visit, GHashTable *quants)
{
    kiln_foreach_node (node, function) {
        visit(node, quants);
        kiln_foreach_region (region, node)
            visit_all(region, visit, quants);
    }
}

/* The parameters of a conversion without operands for them. */
static void
remember(KilnNode *node, GHashTable *quants)
{
    if (kiln_node_operand(node, 1))
        return;
    if (node->op == KILN_OP_quantize_linear)
        g_hash_table_insert(quants, node, (gpointer)node->results[0].type.quant);
    if (node->op == KILN_OP_dequantize_linear)
        g_hash_table_insert(quants, node, (gpointer)node->operands[0].value->type.quant);
}

static void
forget_types(KilnNode *node, GHashTable *quants)
{
    (void)quants;
    for (uint32_t i = 0; i < node->n_results; i++)
        node->results[i].type.quant = NULL;
    if (node->op == KILN_OP_const)
        kiln_attrs(node, const)->value->type.quant = NULL;
    kiln_foreach_region (region, node) {
        for (guint k = 0; k < region->arguments->len; k++)
            kiln_function_argument(region, k)->value.type.quant = NULL;
    }
}

/* The scales (@zero: zero points) of @quant as a constant. */
static KilnValue *
parameters(KilnNode *before, const KilnQuant *quant, KilnDType dtype, GError **error)
{
    bool zero = dtype != KILN_DTYPE_f32;
    KilnType type = kiln_type_make(dtype, quant->axis < 0 ? 0 : 1, (int64_t[]){ quant->n });
    g_autofree char *data = g_malloc0(quant->n * sizeof(double) + 1);
    for (uint32_t i = 0; i < quant->n; i++)
        kiln_element_store_f64(dtype, data, i,
                               zero ? (double)quant->zero_points[i] : (double)quant->scales[i]);
    g_autoptr(GBytes) bytes = g_bytes_new(data, quant->n * kiln_dtype_size(dtype));
    KilnTensor *tensor = kiln_tensor_new_data(&type, bytes, error);
    return tensor ? kiln_build_constant(before->function, before, zero ? "zero_point" : "scale",
                                        tensor)
                  : NULL;
}

/* @x as @dtype; scales are f32, and so is what they scale. */
static KilnValue *
cast(KilnNode *before, KilnValue *x, KilnDType dtype, GError **error)
{
    KilnAttrs_cast attrs = kiln_cast_to(dtype);
    if (!x || x->type.dtype == dtype)
        return x;
    return kiln_build_typed(before, KILN_OP_cast, &attrs, &x, 1, NULL, error);
}

static gboolean
state_parameters(KilnNode *node, const KilnQuant *quant, GError **error)
{
    bool quantizes = node->op == KILN_OP_quantize_linear;
    KilnType stored = quantizes ? node->results[0].type : node->operands[0].value->type;
    bool zeros = stored.dtype == KILN_DTYPE_i32; /* for which ONNX has no zero points */
    for (uint32_t i = 0; i < quant->n; i++)
        zeros &= quant->zero_points[i] == 0;
    KilnAttrs_quantize_linear to = { .axis = MAX(quant->axis, 0), .saturate = true };
    KilnAttrs_dequantize_linear from = { .axis = to.axis };
    if (quant->axis < 0) {
        to.axis = 1;
        from.axis = 1;
    }
    KilnValue *x = node->operands[0].value;
    KilnValue *operands[] = { quantizes ? cast(node, x, KILN_DTYPE_f32, error) : x,
                              parameters(node, quant, KILN_DTYPE_f32, error),
                              zeros ? NULL : parameters(node, quant, stored.dtype, error) };
    if (!operands[0] || !operands[1])
        return FALSE;
    KilnValue *value = kiln_build_typed(node, node->op, quantizes ? (const void *)&to : &from,
                                        operands, operands[2] ? 3 : 2, NULL, error);
    if (!quantizes)
        value = cast(node, value, node->results[0].type.dtype, error);
    return replace(node, value);
}

/* gather(table, cast(x) - lowest) */
static gboolean
state_look_up(KilnNode *node, GError **error)
{
    KilnValue *x = node->operands[0].value, *table = node->operands[1].value;
    KilnValue *index = cast(node, x, KILN_DTYPE_i32, error);
    KilnAttrs_gather attrs = { .axis = 0 };
    if (index && x->type.dtype == KILN_DTYPE_i8) {
        KilnValue *offset = scalar(node, KILN_DTYPE_i32, 128, NULL, error);
        index = offset ? kiln_build_typed(node, KILN_OP_add, NULL, (KilnValue *[]){ index, offset },
                                          2, NULL, error)
                       : NULL;
    }
    return index &&
           replace(node, kiln_build_typed(node, KILN_OP_gather, &attrs,
                                          (KilnValue *[]){ table, index }, 2, NULL, error));
}

static gboolean
state_all(KilnFunction *function, GHashTable *quants, GError **error)
{
    for (KilnNode *node = function->first, *next; node; node = next) {
        next = node->next;
        kiln_foreach_region (region, node) {
            if (!state_all(region, quants, error))
                return FALSE;
        }
        const KilnQuant *quant = g_hash_table_lookup(quants, node);
        gboolean good = quant                              ? state_parameters(node, quant, error)
                        : node->op == KILN_OP_lookup_table ? state_look_up(node, error)
                        : node->op == KILN_OP_storage_cast ? replace(node, node->operands[0].value)
                                                           : TRUE;
        if (!good)
            return FALSE;
    }
    return TRUE;
}

gboolean
kiln_onnx_state_quantization(KilnFunction *function, GError **error)
{
    if (!wrap_all(function, error))
        return FALSE;
    g_autoptr(GHashTable) quants = g_hash_table_new(NULL, NULL);
    visit_all(function, remember, quants);
    visit_all(function, forget_types, quants);
    for (guint i = 0; i < function->arguments->len; i++)
        kiln_function_argument(function, i)->value.type.quant = NULL;
    return state_all(function, quants, error);
}
