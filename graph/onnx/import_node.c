/* SPDX-License-Identifier: Apache-2.0 */
/* One ONNX node: operands by name, the row of opsets.def, its converter, results by name. What
 * cannot be had becomes `unknown`, so that one look at the module lists everything that Kiln lacks.
 */
#include "graph/function.h"
#include "graph/node.h"
#include "graph/onnx/convert.h"
#include "graph/onnx/import.h"
#include "graph/onnx/model.h"
#include "graph/onnx/opset.h"
#include "graph/onnx/tensor.h"
#include "graph/op/structure.h"
#include "graph/plugin/plugin.h"

#include <string.h>

/* --- operands --- */

static bool
is_defined_later(const KilnOnnxScope *scope, const char *name)
{
    for (; scope; scope = kiln_onnx_around(scope)) {
        for (guint i = 0; i < scope->graph->nodes->len; i++) {
            const KilnOnnxNode *node = &g_array_index(scope->graph->nodes, KilnOnnxNode, i);
            for (size_t k = 0; k < node->proto->n_output; k++) {
                if (strcmp(node->proto->output[k], name) == 0)
                    return true;
            }
        }
    }
    return false;
}

static gboolean
resolve_operands(KilnOnnxCall *call, GError **error)
{
    const Onnx__NodeProto *proto = call->node->proto;
    for (size_t i = 0; i < proto->n_input; i++) {
        const char *name = proto->input[i];
        call->operands[i] = *name ? kiln_onnx_lookup(call->scope, name) : NULL;
        if (*name && !call->operands[i] && !kiln_onnx_is_left_out(call->scope, name))
            return kiln_onnx_throw(call, KILN_ERROR_INVALID, error, "reads '%s', which %s", name,
                                   is_defined_later(call->scope, name)
                                       ? "is computed later: the nodes are in a cycle"
                                       : "nothing computes");
    }
    while (call->n_operands && !call->operands[call->n_operands - 1])
        call->n_operands--;
    return TRUE;
}

static KilnOnnxDoubt
operands_doubt(const KilnOnnxCall *call)
{
    unsigned doubt = 0;
    for (uint32_t i = 0; i < call->n_operands; i++)
        doubt |= call->operands[i] ? (unsigned)kiln_onnx_doubt(call->import, call->operands[i]) : 0;
    return (KilnOnnxDoubt)doubt;
}

/* --- results --- */

static KilnOnnxTypeKind
declared_type(const KilnOnnxCall *call, uint32_t i, KilnType *out)
{
    const char *name = call->node->proto->output[i];
    const Onnx__TypeProto *proto = g_hash_table_lookup(call->scope->types, name);
    return kiln_onnx_type_load(proto, call->import->dim_names, call->import->module, out);
}

static bool
contradicts(const KilnType *declared, const KilnType *inferred)
{
    if (declared->dtype != inferred->dtype)
        return true;
    for (int i = 0; inferred->rank == declared->rank && i < declared->rank; i++) {
        if (declared->dims[i] >= 0 && inferred->dims[i] >= 0 &&
            declared->dims[i] != inferred->dims[i])
            return true;
    }
    return inferred->rank >= 0 && inferred->rank != declared->rank;
}

/* Takes the numbers that the model declares where inference has none; a declaration that is wrong
 * elsewhere (left over from before someone edited the model) is not believed at all. Names of dims
 * are left: models give one name to dims that differ, and equal names mean equal dims here. */
static void
merge_declared(const KilnOnnxCall *call, uint32_t i, KilnValue *value)
{
    KilnType declared, type = value->type;
    if (declared_type(call, i, &declared) != KILN_ONNX_TYPE_TENSOR || declared.rank < 0 ||
        contradicts(&declared, &type))
        return;
    for (int d = 0; d < declared.rank; d++) {
        if (type.rank < 0 || (type.dims[d] < 0 && !type.open[d])) {
            type.dims[d] = declared.dims[d];
            type.open[d] = NULL;
        }
    }
    type.rank = declared.rank;
    value->type = kiln_type_copy(call->import->module->arena, &type);
}

static gboolean
define_results(KilnOnnxCall *call, KilnValue *const *values, KilnOnnxDoubt doubt, GError **error)
{
    const Onnx__NodeProto *proto = call->node->proto;
    for (uint32_t i = 0; i < call->n_results; i++) {
        KilnValue *value = values[i];
        if (!value && !*proto->output[i])
            continue;
        if (!value)
            return kiln_onnx_throw(call, KILN_ERROR_INVALID, error, "has no result %u", i);
        if (doubt)
            kiln_onnx_set_doubt(call->import, value, doubt);
        if (*proto->output[i]) {
            merge_declared(call, i, value);
            if (!kiln_onnx_define(call->scope, proto->output[i], value, error))
                return FALSE;
        } else {
            value->made_up = true;
        }
    }
    return TRUE;
}

/* --- known operators --- */

static gboolean
check_required(const KilnOnnxCall *call, const KilnOnnxRow *row, GError **error)
{
    if (!*row->required)
        return TRUE;
    g_auto(GStrv) names = g_strsplit(row->required, " ", -1);
    for (char **name = names; *name; name++) {
        bool found = false;
        for (size_t i = 0; i < call->node->n_attrs && !found; i++)
            found = strcmp(call->node->attrs[i].proto->name, *name) == 0;
        if (!found)
            return kiln_onnx_throw(call, KILN_ERROR_INVALID, error, "lacks the attribute '%s'",
                                   *name);
    }
    return TRUE;
}

static const char *
first_output(const KilnOnnxCall *call)
{
    const Onnx__NodeProto *proto = call->node->proto;
    return call->n_results && *proto->output[0] ? kiln_onnx_shown(call->scope, proto->output[0])
                                                : NULL;
}

static KilnNode *
make_node(KilnOnnxCall *call, KilnOp op, const void *attrs, const KilnType *types, GError **error)
{
    const char *name = call->node->proto->name;
    return kiln_node_new(call->function,
                         &(KilnNodeSpec){ .op = op,
                                          .name = name && *name ? call->label : NULL,
                                          .operands = call->operands,
                                          .n_operands = call->n_operands,
                                          .n_results = call->n_results,
                                          .attrs = attrs,
                                          .result_name = first_output(call),
                                          .types = types },
                         error);
}

static bool
is_operand(const KilnOnnxCall *call, const KilnValue *value)
{
    const Onnx__NodeProto *proto = call->node->proto;
    for (size_t i = 0; i < proto->n_input; i++) {
        if (*proto->input[i] && kiln_onnx_lookup(call->scope, proto->input[i]) == value)
            return true;
    }
    return false;
}

/* An operand that is a result, too, keeps its name: the result is a copy. */
static gboolean
copy_operands(KilnOnnxCall *call, GError **error)
{
    for (uint32_t i = 0; i < call->n_results; i++) {
        KilnValue *value = call->results[i];
        if (!value || !is_operand(call, value))
            continue;
        call->results[i] = kiln_onnx_build1(call, KILN_OP_identity, NULL, value, error);
        if (!call->results[i])
            return FALSE;
    }
    return TRUE;
}

static gboolean
convert(KilnOnnxCall *call, const KilnOnnxRow *row, GError **error)
{
    call->op = row->op;
    call->attrs = kiln_op_attrs_new(row->op, call->import->module->arena);
    if (!check_required(call, row, error) || (row->convert && !row->convert(call, error)) ||
        !kiln_onnx_read_attrs(call, error) || !kiln_onnx_check_taken(call, error))
        return FALSE;
    if (call->results)
        return copy_operands(call, error);
    bool counted = kiln_op_has(call->op, KILN_TRAIT_REGION); /* by the arguments of its body */
    while (!counted && call->n_operands && !call->operands[call->n_operands - 1])
        call->n_operands--;
    KilnNode *node = make_node(call, call->op, call->attrs, call->types, error);
    if (!node)
        return FALSE;
    call->results = g_new0(KilnValue *, node->n_results + 1);
    for (uint32_t i = 0; i < node->n_results; i++)
        call->results[i] = &node->results[i];
    return TRUE;
}

/* Takes back what a converter built before it failed. */
static void
undo(KilnOnnxCall *call, KilnNode *last)
{
    for (guint i = 0; i < call->regions->len; i++)
        kiln_function_clear(g_ptr_array_index(call->regions, i));
    while (call->function->last != last)
        kiln_node_remove(call->function->last);
    g_clear_pointer(&call->results, g_free);
}

/* --- unknown operators --- */

static gboolean
import_unknown(KilnOnnxCall *call, const char *reason, bool untyped, GError **error)
{
    const Onnx__NodeProto *proto = call->node->proto;
    KilnAttrs_unknown attrs = { .op_type = proto->op_type,
                                .domain = proto->domain ? proto->domain : "",
                                .opset = kiln_onnx_scope_opset(call->scope, proto->domain),
                                .reason = reason,
                                .untyped = untyped };
    g_autofree KilnType *types = g_new0(KilnType, call->n_results + 1);
    g_autofree KilnOnnxTypeKind *kinds = g_new0(KilnOnnxTypeKind, call->n_results + 1);
    types[0] = kiln_type_unranked(KILN_DTYPE_f32);
    for (uint32_t i = 0; i < call->n_results; i++) {
        types[i] = kiln_type_unranked(KILN_DTYPE_f32);
        kinds[i] = declared_type(call, i, &types[i]);
    }
    KilnNode *node = make_node(call, KILN_OP_unknown, &attrs, types, error);
    if (!node)
        return FALSE;
    g_autofree KilnValue **values = g_new0(KilnValue *, node->n_results + 1);
    for (uint32_t i = 0; i < node->n_results; i++)
        values[i] = &node->results[i];
    if (!define_results(call, values, (KilnOnnxDoubt)0, error))
        return FALSE;
    for (uint32_t i = 0; i < call->n_results; i++) {
        if (kinds[i] == KILN_ONNX_TYPE_TENSOR)
            continue;
        kiln_onnx_set_doubt(call->import, values[i],
                            kinds[i] == KILN_ONNX_TYPE_OTHER ? KILN_ONNX_OTHER : KILN_ONNX_GUESSED);
    }
    return TRUE;
}

/* --- the node --- */

/* The declared type of what @name means in @scope; NULL where the model has none. */
static const Onnx__TypeProto *
declared_anywhere(const KilnOnnxScope *scope, const char *name)
{
    for (; scope; scope = kiln_onnx_around(scope)) {
        const Onnx__TypeProto *type = g_hash_table_lookup(scope->types, name);
        for (guint i = 0; i < scope->graph->inputs->len && !type; i++) {
            const Onnx__ValueInfoProto *info = g_ptr_array_index(scope->graph->inputs, i);
            type = strcmp(info->name, name) == 0 ? info->type : NULL;
        }
        if (type || g_hash_table_contains(scope->values, name))
            return type;
    }
    return NULL;
}

/* Says which operand or result has a type that Kiln lacks; NULL: none. */
static char *
type_reason(const KilnOnnxCall *call)
{
    const Onnx__NodeProto *proto = call->node->proto;
    KilnType type;
    for (uint32_t i = 0; i < call->n_operands; i++) {
        if (!call->operands[i] ||
            !((unsigned)kiln_onnx_doubt(call->import, call->operands[i]) & KILN_ONNX_OTHER))
            continue;
        const Onnx__TypeProto *declared = declared_anywhere(call->scope, proto->input[i]);
        g_autofree char *trouble = declared ? kiln_onnx_type_trouble(declared) : NULL;
        return g_strdup_printf("operand %u: %s is not supported", i,
                               trouble ? trouble : "its type");
    }
    for (uint32_t i = 0; i < call->n_results; i++) {
        if (declared_type(call, i, &type) != KILN_ONNX_TYPE_OTHER)
            continue;
        g_autofree char *trouble =
            kiln_onnx_type_trouble(g_hash_table_lookup(call->scope->types, proto->output[i]));
        return g_strdup_printf("result %u: %s is not supported", i, trouble);
    }
    return NULL;
}

static bool
is_default_domain(const char *domain)
{
    return !domain || !*domain || strcmp(domain, "ai.onnx") == 0;
}

/* Says why @call has no row of its opset. The operator has rows of others. */
static char *
opset_reason(const KilnOnnxCall *call)
{
    int first = kiln_onnx_first_opset(call->node->proto->op_type);
    bool newer = call->opset > KILN_ONNX_LATEST;
    return g_strdup_printf("opset %d is %s than those that are known for it: %d to %d", call->opset,
                           newer ? "newer" : "older", first, KILN_ONNX_LATEST);
}

/* Where Kiln has no row, a plug-in may have registered the operator. */
static void
find_plugin_row(const KilnOnnxCall *call, const KilnOnnxRow **out, char **reason)
{
    const Onnx__NodeProto *proto = call->node->proto;
    if (*out)
        return;
    *out = kiln_onnx_plugin_row(proto->domain, proto->op_type, call->opset);
    g_autofree char *opsets = *out ? NULL : kiln_plugin_opsets(proto->domain, proto->op_type);
    if (opsets)
        *reason = g_strdup_printf("the model imports opset %d: %s", call->opset, opsets);
}

/* Finds the row of the operator. *@out is NULL if there is none to use. *@reason says why, if it is
 * more than that the operator is unknown. */
static gboolean
find_row(const KilnOnnxCall *call, const KilnOnnxRow **out, char **reason, GError **error)
{
    const Onnx__NodeProto *proto = call->node->proto;
    *out = kiln_onnx_domain_row(proto->domain, proto->op_type);
    if (!is_default_domain(proto->domain)) {
        find_plugin_row(call, out, reason);
        return TRUE;
    }
    if (kiln_onnx_scope_opset(call->scope, "") <= 0 &&
        call->import->model->metadata.ir_version >= 3)
        return kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                               "is an operator of ONNX, but the model imports no version of these");
    if (call->opset <= KILN_ONNX_LATEST || call->import->newer_opsets)
        *out = kiln_onnx_row(proto->op_type, call->opset);
    if (!*out && kiln_onnx_first_opset(proto->op_type))
        *reason = opset_reason(call);
    else
        find_plugin_row(call, out, reason);
    return TRUE;
}

/* A graph that the caller of a function hands to it, which a node of the function names. */
static const char *
handed_graph(const KilnOnnxCall *call)
{
    for (size_t i = 0; call->scope->frame && i < call->node->n_attrs; i++) {
        const char *name = call->node->attrs[i].proto->ref_attr_name;
        if (name && *name)
            return name;
    }
    return NULL;
}

static gboolean
import_call(KilnOnnxCall *call, GError **error)
{
    const KilnOnnxFunction *function = kiln_onnx_model_function(call->import->model, call->node);
    const char *graph = handed_graph(call);
    const KilnOnnxRow *row;
    g_autofree char *refusal = NULL;
    if (graph) {
        refusal = g_strdup_printf("attribute '%s' of the function is a graph", graph);
        return resolve_operands(call, error) && import_unknown(call, refusal, false, error);
    }
    if (function)
        return resolve_operands(call, error) && kiln_onnx_inline_call(call, function, error) &&
               define_results(call, call->results, (KilnOnnxDoubt)0, error);
    if (!find_row(call, &row, &refusal, error) || !resolve_operands(call, error))
        return FALSE;
    KilnOnnxDoubt doubt = operands_doubt(call);
    if (!row)
        return import_unknown(call, refusal, false, error);
    refusal = type_reason(call);
    if (refusal)
        return import_unknown(call, refusal, false, error);
    g_autoptr(GError) failure = NULL;
    KilnNode *last = call->function->last;
    uint32_t n_operands = call->n_operands, n_results = call->n_results;
    if (convert(call, row, &failure))
        return define_results(call, call->results, doubt, error);
    undo(call, last);
    bool unsupported = g_error_matches(failure, KILN_ERROR, KILN_ERROR_UNSUPPORTED);
    if (!unsupported && !doubt) {
        g_propagate_error(error, g_steal_pointer(&failure));
        return FALSE;
    }
    call->n_operands = n_operands;
    call->n_results = n_results;
    /* The reason stands beside the node's name wherever it is shown. */
    g_autofree char *prefix = g_strdup_printf("%s (%s): ", call->label, call->node->proto->op_type);
    bool named = g_str_has_prefix(failure->message, prefix);
    const char *reason = failure->message + (named ? strlen(prefix) : 0);
    return resolve_operands(call, error) && import_unknown(call, reason, !unsupported, error);
}

static const char *
label_of(const KilnOnnxScope *scope, const KilnOnnxNode *node)
{
    const Onnx__NodeProto *proto = node->proto;
    if (proto->name && *proto->name)
        return kiln_onnx_shown(scope, proto->name);
    for (size_t i = 0; i < proto->n_output; i++) {
        if (*proto->output[i])
            return kiln_onnx_shown(scope, proto->output[i]);
    }
    return kiln_onnx_shown(
        scope, kiln_arena_printf(scope->import->module->arena, "node at byte %zu", node->offset));
}

gboolean
kiln_onnx_import_node(KilnOnnxScope *scope, const KilnOnnxNode *node, GError **error)
{
    const Onnx__NodeProto *proto = node->proto;
    node = kiln_onnx_resolve(scope, node);
    KilnOnnxCall call = { .import = scope->import,
                          .scope = scope,
                          .function = scope->function,
                          .node = node,
                          .label = label_of(scope, node) };
    call.base = call.label;
    call.opset = (int)CLAMP(kiln_onnx_scope_opset(scope, proto->domain), 1, G_MAXINT);
    call.n_operands = (uint32_t)proto->n_input;
    call.n_results = (uint32_t)proto->n_output;
    while (call.n_results && !*proto->output[call.n_results - 1])
        call.n_results--;
    for (size_t i = 0; i < proto->n_output; i++) {
        if (*proto->output[i] && g_hash_table_contains(scope->values, proto->output[i]))
            return kiln_onnx_throw(&call, KILN_ERROR_INVALID, error,
                                   "computes '%s', which is there already", proto->output[i]);
        kiln_onnx_free_name(scope->function, kiln_onnx_shown(scope, proto->output[i]));
    }
    g_autofree KilnValue **operands = g_new0(KilnValue *, proto->n_input + KILN_ONNX_SPARE);
    g_autofree bool *taken = g_new0(bool, node->n_attrs + 1);
    g_autoptr(GPtrArray) regions = g_ptr_array_new();
    call.operands = operands;
    call.taken = taken;
    call.regions = regions;
    gboolean good = import_call(&call, error);
    g_free(call.results);
    return good;
}
