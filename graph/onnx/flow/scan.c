/* SPDX-License-Identifier: Apache-2.0 */
/* Scan from opset 9 on: the body becomes a function, whose types give those of the results. */
#include "graph/function.h"
#include "graph/module.h"
#include "graph/module/scan.h"
#include "graph/node.h"
#include "graph/onnx/convert.h"
#include "graph/onnx/flow/flow.h"
#include "graph/onnx/model.h"
#include "graph/op/flow.h"

/* The types of the body's arguments, and the length that is scanned. */
static gboolean
scan_arguments(KilnOnnxCall *call, uint32_t n_results, KilnType *arguments, int64_t *out_length,
               const KilnDim **out_open, GError **error)
{
    const KilnAttrs_scan *attrs = kiln_onnx_attrs(call, scan);
    g_autofree const KilnType **types = g_new0(const KilnType *, (gsize)call->n_operands + 1);
    *out_length = KILN_DIM_UNKNOWN;
    *out_open = NULL;
    for (uint32_t i = 0; i < call->n_operands; i++) {
        const KilnValue *value = kiln_onnx_need(call, i, error);
        if (!value)
            return FALSE;
        types[i] = &value->type;
        arguments[i] = value->type;
    }
    if (!kiln_scan_check(attrs, types, call->n_operands, n_results, error)) {
        kiln_prefix_error(error, "%s (Scan): ", call->label);
        return FALSE;
    }
    uint32_t states = call->n_operands - (uint32_t)attrs->num_scan_inputs;
    for (uint32_t i = states; i < call->n_operands; i++) {
        int64_t axis = kiln_ints_at(attrs->scan_input_axes, i - states, 0);
        arguments[i] = kiln_onnx_element(types[i], axis);
        if (types[i]->rank > 0 && *out_length < 0) {
            int at = kiln_type_axis(types[i], axis);
            *out_length = types[i]->dims[at];
            *out_open = *out_open ? *out_open : types[i]->open[at];
        }
    }
    if (*out_length >= 0)
        *out_open = NULL;
    return TRUE;
}

gboolean
kiln_onnx_convert_scan(KilnOnnxCall *call, GError **error)
{
    if (!kiln_onnx_read_attrs(call, error))
        return FALSE;
    KilnAttrs_scan *attrs = kiln_onnx_attrs(call, scan);
    uint32_t n = call->n_operands, outputs = (uint32_t)call->node->proto->n_output;
    g_autofree KilnType *arguments = g_new0(KilnType, n + 1);
    int64_t length;
    const KilnDim *open_length;
    if (!scan_arguments(call, outputs, arguments, &length, &open_length, error))
        return FALSE;
    uint32_t states = n - (uint32_t)attrs->num_scan_inputs;
    KilnFunction *body = kiln_onnx_import_region(call, "body", arguments, n, error);
    if (!body || !kiln_onnx_check_region(call, body, error) ||
        !kiln_onnx_check_count(call, "inputs of the body", n, body->arguments->len, error) ||
        !kiln_onnx_check_count(call, "results of the body", outputs,
                               kiln_function_return(body)->n_operands, error))
        return FALSE;
    for (uint32_t i = 0; i < n; i++) {
        if (!kiln_onnx_check_argument(call, body, i, &arguments[i], i >= states, error))
            return FALSE;
    }
    attrs->body = body;
    call->n_results = kiln_function_return(body)->n_operands;
    KilnType *types = kiln_onnx_flow_types(call, call->n_results);
    for (uint32_t i = 0; i < call->n_results; i++) {
        types[i] = kiln_function_return(body)->operands[i].value->type;
        if (i < states)
            continue;
        int64_t axis = kiln_ints_at(attrs->scan_output_axes, i - states, 0);
        if (!kiln_onnx_stacked(call, &types[i], axis, length, open_length, &types[i], error))
            return FALSE;
    }
    return TRUE;
}
