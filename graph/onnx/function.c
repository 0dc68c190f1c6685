/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of the model's own functions (FunctionProto). A call is replaced by the nodes of its
 * function, so that passes see operators alone. Functions may call others, but never themselves. */
#include "graph/base/budget.h"
#include "graph/onnx/convert.h"
#include "graph/onnx/import.h"
#include "graph/onnx/model.h"
#include "graph/onnx/scope.h"

#include <string.h>

static bool
has_attr(const KilnOnnxFunction *function, const char *name)
{
    for (guint i = 0; i < function->attrs->len; i++) {
        if (strcmp(g_ptr_array_index(function->attrs, i), name) == 0)
            return true;
    }
    for (guint i = 0; i < function->defaults->len; i++) {
        if (strcmp(g_array_index(function->defaults, KilnOnnxAttr, i).proto->name, name) == 0)
            return true;
    }
    return false;
}

static gboolean
check_call(const KilnOnnxCall *call, const KilnOnnxFunction *function, GError **error)
{
    const KilnOnnxGraph *graph = function->graph;
    for (const KilnOnnxFrame *frame = call->scope->frame; frame; frame = frame->caller) {
        if (frame->function == function)
            return kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                                   "the function calls itself, expected an end");
    }
    if (call->n_operands > graph->inputs->len)
        return kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                               "the function has %u inputs: expected at most as many operands, "
                               "found %u",
                               graph->inputs->len, call->n_operands);
    if (call->n_results > graph->outputs->len)
        return kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                               "the function has %u outputs: expected at most as many results, "
                               "found %u",
                               graph->outputs->len, call->n_results);
    for (size_t i = 0; i < call->node->n_attrs; i++) {
        const char *name = call->node->attrs[i].proto->name;
        if (!has_attr(function, name))
            return kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                                   "the attribute '%s' is not one of the function", name);
    }
    return TRUE;
}

/* A function without nodes costs time, too: calls count as nodes. */
static gboolean
count_call(const KilnOnnxCall *call, GError **error)
{
    KilnOnnxImport *import = call->import;
    import->n_calls++;
    return kiln_checkpoint(error) &&
           kiln_budget_check_nodes((size_t)import->module->n_nodes + import->n_calls, call->label,
                                   error);
}

gboolean
kiln_onnx_inline_call(KilnOnnxCall *call, const KilnOnnxFunction *function, GError **error)
{
    const KilnOnnxGraph *graph = function->graph;
    if (!check_call(call, function, error) || !count_call(call, error))
        return FALSE;
    KilnOnnxFrame frame = { .caller = call->scope->frame,
                            .function = function,
                            .call = call->node,
                            .prefix = kiln_arena_printf(call->import->module->arena, "%s/",
                                                        call->label) };
    g_autofree KilnValue **operands = g_new0(KilnValue *, graph->inputs->len + 1);
    g_autofree KilnValue **results = g_new0(KilnValue *, graph->outputs->len + 1);
    for (uint32_t i = 0; i < call->n_operands; i++)
        operands[i] = call->operands[i];
    return kiln_onnx_import_body(call->scope, &frame, operands, results, error) &&
           kiln_onnx_set_inlined(call, results, call->n_results, error);
}
