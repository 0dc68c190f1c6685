/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/onnx/flow/loops.h"

#include "graph/function.h"
#include "graph/module.h"
#include "graph/module/flow.h"
#include "graph/node.h"
#include "graph/onnx/flow/flow.h"
#include "graph/op/flow.h"

static KilnValue *
add_argument(KilnFunction *body, const char *name, const KilnType *type, GError **error)
{
    const char *unique = kiln_function_unique_name(body, name);
    KilnArgument *argument = kiln_function_add_argument(body, unique, type, error);
    return argument ? &argument->value : NULL;
}

KilnType
kiln_onnx_loop_type(const KilnValue *value, int dim)
{
    KilnType type = value->type;
    if (dim >= 0) {
        type.dims[dim] = KILN_DIM_UNKNOWN;
        type.open[dim] = NULL;
    }
    return type;
}

gboolean
kiln_onnx_loop_begin(KilnOnnxLoop *loop, KilnOnnxCall *call, GError **error)
{
    const KilnType i = kiln_type_scalar(KILN_DTYPE_i64), flag = kiln_type_scalar(KILN_DTYPE_bool);
    KilnModule *module = call->import->module;
    KilnFunction *body = kiln_function_new_region(module, "body");
    loop->outer = call;
    loop->call = *call;
    loop->call.function = body;
    loop->inside = kiln_arena_new0(module->arena, KilnValue *, loop->n + 1);
    g_ptr_array_add(call->regions, body);
    if (!add_argument(body, "i", &i, error) || !add_argument(body, "going_on", &flag, error))
        return FALSE;
    for (uint32_t k = 0; k < loop->n; k++) {
        loop->inside[k] = add_argument(body, "carried", &loop->types[k], error);
        if (!loop->inside[k])
            return FALSE;
    }
    return TRUE;
}

/* The types of the results: carried values have those of the body and of the start, stacks have one
 * more dim. */
static gboolean
result_types(const KilnOnnxLoop *loop, KilnValue *const *next, KilnType *types, GError **error)
{
    KilnArena *arena = loop->call.function->module->arena;
    for (uint32_t k = 0; k < loop->n + loop->n_stacked; k++) {
        if (!next[k])
            return FALSE;
        if (k >= loop->n) {
            if (!kiln_onnx_stacked(loop->outer, &next[k]->type, 0, KILN_DIM_UNKNOWN, NULL,
                                   &types[k], error))
                return FALSE;
            continue;
        }
        types[k] = kiln_type_join(arena, &loop->types[k], &next[k]->type);
        types[k] = kiln_type_join(arena, &types[k], &loop->start[k]->type);
    }
    return TRUE;
}

KilnValue *
kiln_onnx_loop_end(const KilnOnnxLoop *loop, KilnValue *again, KilnValue *const *next,
                   GError **error)
{
    const uint32_t n = loop->n, n_all = n + loop->n_stacked;
    KilnFunction *body = loop->call.function;
    g_autofree KilnValue **results = g_new0(KilnValue *, n_all + 1);
    g_autofree KilnValue **operands = g_new0(KilnValue *, n + 2);
    g_autofree KilnType *types = g_new0(KilnType, n_all + 1);
    if (!again || !result_types(loop, next, types, error))
        return NULL;
    results[0] = again;
    operands[0] = loop->trips;
    operands[1] = loop->condition;
    for (uint32_t k = 0; k < n_all; k++)
        results[k + 1] = next[k];
    for (uint32_t k = 0; k < n; k++)
        operands[k + 2] = loop->start[k];
    if (!kiln_function_set_results(body, results, NULL, n_all + 1, error))
        return NULL;
    const KilnAttrs_loop attrs = { .body = body };
    KilnNode *node = kiln_node_new(loop->outer->function,
                                   &(KilnNodeSpec){ .op = KILN_OP_loop,
                                                    .operands = operands,
                                                    .n_operands = n + 2,
                                                    .n_results = n_all,
                                                    .attrs = &attrs,
                                                    .result_name = loop->outer->base,
                                                    .types = types },
                                   error);
    for (uint32_t k = 0; node && k < n_all; k++)
        node->results[k].made_up = true;
    return node ? node->results : NULL;
}
