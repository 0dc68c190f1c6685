/* SPDX-License-Identifier: Apache-2.0 */
/* What converters share: errors, helper nodes and constants. */
#include "graph/onnx/convert.h"

#include "graph/function.h"
#include "graph/module.h"
#include "graph/node.h"
#include "graph/onnx/import.h"
#include "graph/op/structure.h"

#include <stdarg.h>

gboolean
kiln_onnx_throw(const KilnOnnxCall *call, KilnError code, GError **error, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_autofree char *text = g_strdup_vprintf(format, args);
    va_end(args);
    return kiln_throw(error, code, "%s (%s): %s", call->label, call->node->proto->op_type, text);
}

void
kiln_onnx_set_operand(KilnOnnxCall *call, uint32_t i, KilnValue *value)
{
    /* The room is KILN_ONNX_SPARE beyond what the node had. */
    g_assert(i < call->node->proto->n_input + KILN_ONNX_SPARE);
    while (call->n_operands <= i)
        call->operands[call->n_operands++] = NULL;
    call->operands[i] = value;
}

bool
kiln_onnx_result_read(const KilnOnnxCall *call, uint32_t i)
{
    const Onnx__NodeProto *proto = call->node->proto;
    return i < call->n_results && *proto->output[i] &&
           kiln_onnx_is_read(call->scope, proto->output[i]);
}

KilnValue *
kiln_onnx_helper(KilnOnnxCall *call, const char *suffix, KilnTensor *tensor)
{
    g_autofree char *name = g_strdup_printf("%s.%s", call->base, suffix);
    KilnValue *value = kiln_build_constant(call->function, NULL, name, tensor);
    value->made_up = true;
    return value;
}

KilnValue *
kiln_onnx_ints(KilnOnnxCall *call, const char *suffix, const int64_t *values, uint32_t n)
{
    KilnType type = kiln_type_make(KILN_DTYPE_i64, 1, (int64_t[]){ n });
    g_autoptr(GBytes) bytes = g_bytes_new(values, n * sizeof *values);
    return kiln_onnx_helper(call, suffix, kiln_tensor_new_data(&type, bytes, NULL));
}

KilnValue *
kiln_onnx_scalar(KilnOnnxCall *call, const char *suffix, KilnDType dtype, double value)
{
    KilnType type = kiln_type_scalar(dtype);
    return kiln_onnx_helper(call, suffix, kiln_tensor_new_splat(&type, value));
}

KilnValue *
kiln_onnx_build(KilnOnnxCall *call, KilnOp op, const void *attrs, KilnValue *const *operands,
                uint32_t n_operands, GError **error)
{
    g_autofree char *name = g_strdup_printf("%s.%s", call->base, kiln_op_info(op)->name);
    KilnNode *node = kiln_node_new(call->function,
                                   &(KilnNodeSpec){ .op = op,
                                                    .operands = operands,
                                                    .n_operands = n_operands,
                                                    .attrs = attrs,
                                                    .result_name = name },
                                   error);
    if (!node)
        return NULL;
    node->results[0].made_up = true;
    return &node->results[0];
}

gboolean
kiln_onnx_set_result(KilnOnnxCall *call, uint32_t i, KilnValue *value)
{
    if (!call->results)
        call->results = g_new0(KilnValue *, MAX(call->n_results, i + 1) + 1);
    call->results[i] = value;
    return value != NULL;
}

KilnValue *
kiln_onnx_need(const KilnOnnxCall *call, uint32_t i, GError **error)
{
    KilnValue *value = kiln_onnx_operand(call, i);
    if (!value)
        kiln_onnx_throw(call, KILN_ERROR_INVALID, error, "lacks operand %u", i);
    return value;
}

KilnFunction *
kiln_onnx_import_region(KilnOnnxCall *call, const char *attr_name, const KilnType *argument_types,
                        uint32_t n, GError **error)
{
    const KilnOnnxAttr *attr = kiln_onnx_take(call, attr_name);
    if (!attr || !attr->graph) {
        kiln_onnx_throw(call, KILN_ERROR_INVALID, error, "attribute '%s' is no graph", attr_name);
        return NULL;
    }
    const char *name = *attr->graph->name ? attr->graph->name : attr_name;
    KilnFunction *region = kiln_function_new_region(call->import->module, name);
    g_ptr_array_add(call->regions, region);
    bool good = kiln_onnx_import_graph(call->import, call->scope, attr->graph, region,
                                       argument_types, n, error);
    if (!good)
        kiln_function_clear(region); /* which may read values around it */
    return good ? region : NULL;
}

/* A result is called what the call's graph calls it: what has a name already is passed on. */
static gboolean
set_inline_result(KilnOnnxCall *call, uint32_t i, KilnValue *value, GError **error)
{
    if (!value->def || !value->made_up)
        value = kiln_onnx_build1(call, KILN_OP_identity, NULL, value, error);
    return kiln_onnx_set_result(call, i, value);
}

gboolean
kiln_onnx_set_inlined(KilnOnnxCall *call, KilnValue *const *values, uint32_t n, GError **error)
{
    for (uint32_t i = 0; i < n; i++) {
        KilnOnnxDoubt doubt = kiln_onnx_doubt(call->import, values[i]);
        if (!set_inline_result(call, i, values[i], error))
            return FALSE;
        if (doubt)
            kiln_onnx_set_doubt(call->import, call->results[i], doubt);
    }
    return TRUE;
}

KilnValue *
kiln_onnx_apply_graph(KilnOnnxCall *call, const char *attr_name, KilnValue *x, GError **error)
{
    const KilnOnnxAttr *attr = kiln_onnx_take(call, attr_name);
    KilnValue *result;
    if (!attr)
        return x;
    if (!attr->graph || attr->graph->inputs->len != 1 || attr->graph->outputs->len != 1) {
        kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                        "attribute '%s': expected a graph with one input and one output",
                        attr_name);
        return NULL;
    }
    return kiln_onnx_import_contents(call->import, call->scope, attr->graph, &x, &result, error)
               ? result
               : NULL;
}

gboolean
kiln_onnx_import_inline(KilnOnnxCall *call, const char *attr_name, GError **error)
{
    const KilnOnnxGraph *graph = kiln_onnx_take(call, attr_name)->graph;
    g_autofree KilnValue **values = g_new0(KilnValue *, graph->outputs->len + 1);
    return kiln_onnx_import_contents(call->import, call->scope, graph, NULL, values, error) &&
           kiln_onnx_set_inlined(call, values, graph->outputs->len, error);
}
