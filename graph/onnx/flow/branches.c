/* SPDX-License-Identifier: Apache-2.0 */
/* If and Loop: subgraphs become functions, and the results' types are found from theirs. What is
 * decided by what is known already is decided here: the types of all that follows depend on it. */
#include "graph/function.h"
#include "graph/module.h"
#include "graph/module/flow.h"
#include "graph/node.h"
#include "graph/onnx/convert.h"
#include "graph/onnx/flow/flow.h"
#include "graph/onnx/model.h"
#include "graph/onnx/scope.h"
#include "graph/onnx/tensor.h"
#include "graph/op/flow.h"
#include "graph/op/items.h"
#include "graph/op/structure.h"

/* The type of result @i of a subgraph. */
static const KilnType *
result_type(const KilnFunction *region, uint32_t i)
{
    return &kiln_node_operand(kiln_function_return(region), i)->type;
}

static uint32_t
n_results(const KilnFunction *region)
{
    return kiln_function_return(region)->n_operands;
}

KilnType *
kiln_onnx_flow_types(KilnOnnxCall *call, uint32_t n)
{
    KilnType *types = kiln_arena_new0(call->import->module->arena, KilnType, n + 1);
    call->types = types;
    return types;
}

gboolean
kiln_onnx_check_count(const KilnOnnxCall *call, const char *what, uint32_t expected, uint32_t found,
                      GError **error)
{
    return expected == found || kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                                                "%s: expected %u, found %u", what, expected, found);
}

/* A subgraph that passes on what Kiln has no type for cannot be typed. */
gboolean
kiln_onnx_check_region(const KilnOnnxCall *call, const KilnFunction *region, GError **error)
{
    KilnNode *node = kiln_function_return(region);
    for (uint32_t i = 0; i < node->n_operands; i++) {
        KilnValue *value = kiln_node_operand(node, i);
        if (kiln_onnx_doubt(call->import, value) & KILN_ONNX_OTHER)
            return kiln_onnx_unsupported(call, error, "its types are not supported");
    }
    return TRUE;
}

gboolean
kiln_onnx_check_one(const KilnOnnxCall *call, const char *what, const KilnValue *value,
                    KilnDType dtype, GError **error)
{
    if (!value)
        return TRUE;
    const KilnType *type = &value->type;
    const int64_t n = kiln_type_is_static(type) ? kiln_type_elements(type) : 1;
    if (type->dtype == dtype && n == 1)
        return TRUE;
    if (kiln_onnx_doubt(call->import, value))
        return kiln_onnx_unsupported(call, error, "%s: its type is not known", what);
    g_autofree char *found = kiln_type_to_string(type);
    return kiln_onnx_throw(call, type->dtype == dtype ? KILN_ERROR_SHAPE : KILN_ERROR_TYPE, error,
                           "%s: expected one %s, found %s", what, kiln_dtype_name(dtype), found);
}

gboolean
kiln_onnx_check_argument(const KilnOnnxCall *call, const KilnFunction *body, uint32_t i,
                         const KilnType *type, bool ranked, GError **error)
{
    const KilnValue *argument = &kiln_function_argument(body, i)->value;
    const KilnType *stated = &argument->type;
    const bool same_rank =
        !ranked || stated->rank < 0 || type->rank < 0 || stated->rank == type->rank;
    if (stated->dtype == type->dtype && same_rank)
        return TRUE;
    if (kiln_onnx_doubt(call->import, argument))
        return kiln_onnx_unsupported(call, error, "input %u of the body: its type is not known", i);
    g_autofree char *expected = kiln_type_to_string(type);
    g_autofree char *found = kiln_type_to_string(stated);
    return kiln_onnx_throw(call, same_rank ? KILN_ERROR_TYPE : KILN_ERROR_SHAPE, error,
                           "input %u of the body: expected %s, found %s", i, expected, found);
}

/* --- If --- */

/* The graph of a branch, which has to be there whether it is taken or not. */
static gboolean
check_branch(KilnOnnxCall *call, const char *name, GError **error)
{
    const KilnOnnxAttr *attr = kiln_onnx_take(call, name);
    if (!attr || !attr->graph)
        return kiln_onnx_throw(call, KILN_ERROR_INVALID, error, "attribute '%s' is no graph", name);
    g_autofree char *what = g_strdup_printf("results of %s", name);
    return kiln_onnx_check_count(call, what, (uint32_t)call->node->proto->n_output,
                                 attr->graph->outputs->len, error);
}

/* A branch that the condition decides on: its nodes stand where the `if` would. */
static gboolean
take_branch(KilnOnnxCall *call, const char *name, GError **error)
{
    call->n_results = (uint32_t)call->node->proto->n_output;
    if (kiln_onnx_import_inline(call, name, error))
        return TRUE;
    kiln_prefix_error(error, "%s (If): %s: ", call->label, name);
    return FALSE;
}

/* A branch that may be taken or not. What does not fit in it is kept in @refusal: then there is no
 * branch yet, for its results' types are those of the other one. */
static gboolean
import_branch(KilnOnnxCall *call, const char *name, KilnFunction **out, char **refusal,
              GError **error)
{
    GError *failure = NULL;
    *out = kiln_onnx_import_region(call, name, NULL, 0, &failure);
    if (*out)
        return kiln_onnx_check_region(call, *out, error);
    if (!kiln_error_is_mismatch(failure)) {
        g_propagate_error(error, failure);
        return FALSE;
    }
    *refusal = g_strdup(failure->message);
    g_error_free(failure);
    return TRUE;
}

/* Stands for a branch whose types do not fit. */
static KilnFunction *
refused_branch(KilnOnnxCall *call, const char *name, const KilnFunction *other, const char *why,
               GError **error)
{
    uint32_t n = n_results(other);
    g_autofree KilnType *types = g_new0(KilnType, n + 1);
    for (uint32_t i = 0; i < n; i++)
        types[i] = *result_type(other, i);
    KilnFunction *region = kiln_function_new_region(call->import->module, name);
    g_ptr_array_add(call->regions, region);
    return kiln_region_refuse(region, types, n, why, error) ? region : NULL;
}

static gboolean
import_branches(KilnOnnxCall *call, KilnAttrs_if *attrs, GError **error)
{
    g_autofree char *then_why = NULL;
    g_autofree char *else_why = NULL;
    if (!import_branch(call, "then_branch", &attrs->then_branch, &then_why, error) ||
        !import_branch(call, "else_branch", &attrs->else_branch, &else_why, error))
        return FALSE;
    if (then_why && else_why)
        return kiln_onnx_throw(call, KILN_ERROR_SHAPE, error, "neither branch can run: %s; %s",
                               then_why, else_why);
    if (then_why)
        attrs->then_branch =
            refused_branch(call, "then_branch", attrs->else_branch, then_why, error);
    if (else_why)
        attrs->else_branch =
            refused_branch(call, "else_branch", attrs->then_branch, else_why, error);
    return attrs->then_branch && attrs->else_branch;
}

gboolean
kiln_onnx_convert_if(KilnOnnxCall *call, GError **error)
{
    KilnAttrs_if *attrs = kiln_onnx_attrs(call, if);
    KilnValue *condition = kiln_onnx_need(call, 0, error);
    if (!condition || !kiln_onnx_check_one(call, "condition", condition, KILN_DTYPE_bool, error) ||
        !check_branch(call, "then_branch", error) || !check_branch(call, "else_branch", error))
        return FALSE;
    bool taken;
    if (kiln_value_known_flag(condition, &taken))
        return take_branch(call, taken ? "then_branch" : "else_branch", error);
    if (!import_branches(call, attrs, error))
        return FALSE;
    uint32_t n = n_results(attrs->then_branch);
    call->n_results = n;
    KilnType *types = kiln_onnx_flow_types(call, n);
    for (uint32_t i = 0; i < n; i++) {
        const KilnType *a = result_type(attrs->then_branch, i);
        const KilnType *b = result_type(attrs->else_branch, i);
        if (a->dtype != b->dtype)
            return kiln_onnx_throw(call, KILN_ERROR_TYPE, error,
                                   "result %u is %s in one branch and %s in the other", i,
                                   kiln_dtype_name(a->dtype), kiln_dtype_name(b->dtype));
        types[i] = kiln_type_join(call->import->module->arena, a, b);
    }
    return TRUE;
}

/* --- Loop --- */

gboolean
kiln_onnx_stacked(const KilnOnnxCall *call, const KilnType *element, int64_t axis, int64_t length,
                  const KilnDim *open_length, KilnType *out, GError **error)
{
    *out = *element;
    if (element->rank < 0)
        return TRUE;
    int rank = element->rank + 1;
    if (rank > KILN_MAX_RANK)
        return kiln_onnx_throw(call, KILN_ERROR_SHAPE, error,
                               "expected values of a rank below %d to stack, found rank %d",
                               KILN_MAX_RANK, element->rank);
    if (axis < -rank || axis >= rank)
        return kiln_onnx_throw(call, KILN_ERROR_SHAPE, error,
                               "expected an axis of rank %d to stack a result along, found axis "
                               "%" G_GINT64_FORMAT,
                               rank, axis);
    int at = (int)(axis < 0 ? axis + rank : axis);
    for (int i = rank - 1; i > at; i--) {
        out->dims[i] = out->dims[i - 1];
        out->open[i] = out->open[i - 1];
    }
    out->rank = rank;
    out->dims[at] = length;
    out->open[at] = open_length;
    return TRUE;
}

KilnType
kiln_onnx_element(const KilnType *whole, int64_t axis)
{
    KilnType type = *whole;
    if (whole->rank < 0)
        return type;
    type.rank--;
    for (int i = kiln_type_axis(whole, axis); i < type.rank; i++) {
        type.dims[i] = whole->dims[i + 1];
        type.open[i] = whole->open[i + 1];
    }
    return type;
}

/* The type that the model states for output @i of the body; false where it states none. */
static bool
is_declared(const KilnOnnxCall *call, const KilnOnnxGraph *graph, uint32_t i, KilnType *out)
{
    const KilnOnnxImport *import = call->import;
    const Onnx__ValueInfoProto *info = g_ptr_array_index(graph->outputs, i);
    return kiln_onnx_type_load(info->type, import->dim_names, import->module, out) ==
               KILN_ONNX_TYPE_TENSOR &&
           out->rank >= 0;
}

/* Types of what the body gives for results @first … @n - 1. Where the model does not state one the
 * body is imported: once, for there may be another such loop in it. */
static KilnType *
body_types(KilnOnnxCall *call, const KilnOnnxGraph *graph, uint32_t first, uint32_t n,
           GError **error)
{
    KilnType *types = kiln_arena_new0(call->import->module->arena, KilnType, n + 1);
    KilnFunction *body = NULL;
    for (uint32_t i = first; i < n; i++) {
        if (is_declared(call, graph, i + 1, &types[i]))
            continue;
        if (!body && !(body = kiln_onnx_import_region(call, "body", NULL, 0, error)))
            return NULL;
        types[i] = *result_type(body, i + 1);
    }
    if (body)
        kiln_function_clear(body);
    return types;
}

/* No iteration: what is carried is as it began, and what is stacked is empty. */
static gboolean
skip_loop(KilnOnnxCall *call, uint32_t carried, GError **error)
{
    const KilnOnnxAttr *attr = kiln_onnx_take(call, "body");
    uint32_t n = (uint32_t)call->node->proto->n_output;
    if (!attr || !attr->graph)
        return kiln_onnx_throw(call, KILN_ERROR_INVALID, error, "attribute 'body' is no graph");
    if (!kiln_onnx_check_count(call, "results of the body", n + 1, attr->graph->outputs->len,
                               error) ||
        (n < carried && !kiln_onnx_check_count(call, "results", carried, n, error)))
        return FALSE;
    const KilnType *elements = body_types(call, attr->graph, carried, n, error);
    if (!elements)
        return FALSE;
    call->n_results = n;
    for (uint32_t i = 0; i < n; i++) {
        KilnType type;
        KilnValue *value = NULL;
        if (i < carried) {
            value = kiln_onnx_build1(call, KILN_OP_identity, NULL, call->operands[i + 2], error);
        } else {
            if (!kiln_onnx_stacked(call, &elements[i], 0, 0, NULL, &type, error))
                return FALSE;
            if (!kiln_loop_idle_type(&type, &type))
                return kiln_onnx_unsupported(call, error, "the rank of result %u is not known", i);
            value = kiln_build_constant(call->function, NULL, call->base,
                                        kiln_tensor_new_splat(&type, 0));
            value->made_up = true;
        }
        if (!kiln_onnx_set_result(call, i, value))
            return FALSE;
    }
    return TRUE;
}

/* What says how often the body runs is one number or flag. */
static gboolean
check_loop(const KilnOnnxCall *call, const KilnFunction *body, const KilnType *arguments,
           uint32_t carried, GError **error)
{
    const KilnValue *again = kiln_function_return(body)->operands[0].value;
    for (uint32_t i = 0; i < carried; i++) {
        if (!kiln_onnx_check_argument(call, body, i + 2, &arguments[i + 2], false, error))
            return FALSE;
    }
    return kiln_onnx_check_one(call, "input 0 of the body, the iteration",
                               &kiln_function_argument(body, 0)->value, KILN_DTYPE_i64, error) &&
           kiln_onnx_check_one(call, "input 1 of the body, the condition",
                               &kiln_function_argument(body, 1)->value, KILN_DTYPE_bool, error) &&
           kiln_onnx_check_one(call, "output 0 of the body, the condition", again, KILN_DTYPE_bool,
                               error);
}

/* A type of which all values of the element type of @type are, or all such sequences. */
static KilnType
any_like(const KilnOnnxCall *call, const KilnType *type)
{
    if (!type->contents || type->dtype == KILN_DTYPE_map)
        return type->contents ? *type : kiln_type_unranked(type->dtype);
    const KilnType element = any_like(call, kiln_type_element(type));
    return kiln_type_of_items(call->import->module->arena, type->dtype, &element);
}

/* Carried value @i begins as an optional, and the body gives its element, which operators that take
 * an optional take, too: the body gives an optional of it. */
static gboolean
wrap_carried(const KilnOnnxCall *call, KilnFunction *body, uint32_t i, GError **error)
{
    const KilnType *start = &call->operands[i + 2]->type;
    KilnNode *last = kiln_function_return(body);
    KilnValue *value = last->operands[i + 1].value;
    if (start->dtype != KILN_DTYPE_optional || value->type.dtype != kiln_type_element(start)->dtype)
        return TRUE;
    KilnValue *wrapped = kiln_build(body, last, KILN_OP_optional, NULL, &value, 1, error);
    if (!wrapped)
        return FALSE;
    const char *name = value->name; /* that of the result */
    kiln_value_rename(body, value, kiln_function_unique_name(body, name));
    kiln_value_rename(body, wrapped, name);
    kiln_node_set_operand(last, i + 1, wrapped);
    return TRUE;
}

/* The loop, some of whose results are optionals where the model has their elements. */
static gboolean
build_unwrapped(KilnOnnxCall *call, const KilnType *types, const bool *wrapped, GError **error)
{
    g_autofree char *base = g_strdup_printf("%s.carried", call->base);
    KilnNode *node = kiln_node_new(call->function,
                                   &(KilnNodeSpec){ .op = KILN_OP_loop,
                                                    .name = call->label,
                                                    .operands = call->operands,
                                                    .n_operands = call->n_operands,
                                                    .n_results = call->n_results,
                                                    .attrs = call->attrs,
                                                    .result_name = base,
                                                    .types = types },
                                   error);
    for (uint32_t i = 0; node && i < call->n_results; i++) {
        KilnValue *value = &node->results[i];
        if (wrapped[i])
            value = kiln_onnx_build1(call, KILN_OP_optional_get_element, NULL, value, error);
        if (!kiln_onnx_set_result(call, i, value))
            return FALSE;
    }
    return node != NULL;
}

/* The types of the results of a loop, from what begins and from what the body gives. */
static gboolean
set_loop_types(KilnOnnxCall *call, KilnFunction *body, uint32_t carried, GError **error)
{
    KilnType *types = kiln_onnx_flow_types(call, call->n_results);
    g_autofree bool *wrapped = g_new0(bool, call->n_results + 1);
    bool any = false;
    for (uint32_t i = 0; i < call->n_results; i++) {
        const KilnType *inner = result_type(body, i + 1);
        if (i >= carried) {
            if (!kiln_onnx_stacked(call, inner, 0, KILN_DIM_UNKNOWN, NULL, &types[i], error))
                return FALSE;
            continue;
        }
        const KilnType *start = &call->operands[i + 2]->type;
        wrapped[i] = start->dtype == KILN_DTYPE_optional && inner->dtype != start->dtype;
        if (!wrap_carried(call, body, i, error))
            return FALSE;
        any |= wrapped[i];
        inner = result_type(body, i + 1);
        if (start->dtype != inner->dtype)
            return kiln_onnx_throw(call, KILN_ERROR_TYPE, error,
                                   "carried value %u begins as %s and becomes %s", i,
                                   kiln_dtype_name(start->dtype), kiln_dtype_name(inner->dtype));
        /* no iteration leaves it as it began */
        types[i] = kiln_type_join(call->import->module->arena, start, inner);
    }
    return !any || build_unwrapped(call, types, wrapped, error);
}

/* Operands (M, condition, carried…); body (i, condition, carried…) gives (condition, carried…,
 * scanned…). What is carried may change its shape from one iteration to the next: its type in the
 * body is what the model declares there. */
gboolean
kiln_onnx_convert_loop(KilnOnnxCall *call, GError **error)
{
    uint32_t carried =
        call->node->proto->n_input < 2 ? 0 : (uint32_t)call->node->proto->n_input - 2;
    g_autofree KilnType *arguments = g_new0(KilnType, carried + 2);
    arguments[0] = kiln_type_scalar(KILN_DTYPE_i64);
    arguments[1] = kiln_type_scalar(KILN_DTYPE_bool);
    for (uint32_t i = 0; i < carried; i++) {
        KilnValue *value = kiln_onnx_need(call, i + 2, error);
        if (!value)
            return FALSE;
        arguments[i + 2] = any_like(call, &value->type);
    }
    if (!kiln_onnx_check_one(call, "trip count", kiln_onnx_operand(call, 0), KILN_DTYPE_i64,
                             error) ||
        !kiln_onnx_check_one(call, "condition", kiln_onnx_operand(call, 1), KILN_DTYPE_bool, error))
        return FALSE;
    if (kiln_loop_is_idle(kiln_onnx_operand(call, 0), kiln_onnx_operand(call, 1)))
        return skip_loop(call, carried, error);
    KilnFunction *body = kiln_onnx_import_region(call, "body", arguments, carried + 2, error);
    if (!body || !kiln_onnx_check_region(call, body, error) ||
        !kiln_onnx_check_count(call, "inputs of the body", carried + 2, body->arguments->len,
                               error) ||
        !kiln_onnx_check_count(call, "results of the body",
                               (uint32_t)call->node->proto->n_output + 1, n_results(body), error) ||
        !check_loop(call, body, arguments, carried, error))
        return FALSE;
    kiln_onnx_attrs(call, loop)->body = body;
    call->n_operands = carried + 2; /* with absent ones at the end */
    call->n_results = (uint32_t)call->node->proto->n_output;
    if (call->n_results < carried)
        return kiln_onnx_check_count(call, "results", carried, call->n_results, error);
    return set_loop_types(call, body, carried, error);
}
