/* SPDX-License-Identifier: Apache-2.0 */
/* SequenceMap, optionals of what is none, and CastMap. */
#include "graph/function.h"
#include "graph/module.h"
#include "graph/node.h"
#include "graph/onnx/convert.h"
#include "graph/onnx/import.h"
#include "graph/onnx/model.h"
#include "graph/onnx/tensor.h"
#include "graph/op/flow.h"
#include "graph/op/items.h"
#include "graph/op/structure.h"

#include <string.h>

/* --- SequenceMap ---
 *
 * %z = SequenceMap(%x, %a) body(e, a) { … r }    =>
 *
 *     %z = loop(sequence_length(%x), _, sequence_empty()) body(i, c, s) {
 *            … of sequence_at(%x, i), and %a if that is no sequence …
 *            return c, sequence_insert(s, r) } */

typedef struct {
    KilnOnnxCall *call;
    const KilnOnnxGraph *graph;
    KilnFunction *body;
    KilnValue *i, *condition; /* arguments of the body */
    KilnValue **values;       /* what the graph gets, then what it gives */
} Map;

static gboolean
add_argument(const Map *map, const char *name, const KilnType *type, KilnValue **out,
             GError **error)
{
    const char *unique = kiln_function_unique_name(map->body, name);
    KilnArgument *argument = kiln_function_add_argument(map->body, unique, type, error);
    if (argument)
        *out = &argument->value;
    return argument != NULL;
}

/* What the graph gets for operand @k in an iteration. */
static gboolean
take_operand(const Map *map, uint32_t k, GError **error)
{
    KilnValue *value = kiln_onnx_need(map->call, k, error);
    if (!value)
        return FALSE;
    KilnValue *operands[] = { value, map->i };
    if (value->type.dtype == KILN_DTYPE_sequence)
        value = kiln_build(map->body, NULL, KILN_OP_sequence_at, NULL, operands, 2, error);
    else if (k == 0)
        return kiln_onnx_throw(map->call, KILN_ERROR_TYPE, error,
                               "operand 0: expected a sequence, found %s",
                               kiln_dtype_name(value->type.dtype));
    map->values[k] = value;
    return value != NULL;
}

/* Result @r of the graph goes into a sequence that the loop carries from @empty on. */
static gboolean
put_result(const Map *map, uint32_t r, KilnValue **out, GError **error)
{
    KilnValue *argument, *result = *out;
    KilnType element = kiln_type_unranked(result->type.dtype);
    const KilnType type =
        kiln_type_of_items(map->call->import->module->arena, KILN_DTYPE_sequence, &element);
    g_autofree char *name = g_strdup_printf("%s_%u", map->call->base, r);
    if (kiln_dtype_is_item(result->type.dtype))
        return kiln_onnx_unsupported(map->call, error, "result %u of the body is no tensor", r);
    if (!add_argument(map, name, &type, &argument, error))
        return FALSE;
    KilnValue *operands[] = { argument, result };
    *out = kiln_build(map->body, NULL, KILN_OP_sequence_insert, NULL, operands, 2, error);
    return *out != NULL;
}

static gboolean
fill_body(const Map *map, KilnDType *dtypes, GError **error)
{
    KilnOnnxCall *call = map->call;
    const uint32_t n = call->n_results;
    for (uint32_t k = 0; k < call->n_operands; k++) {
        if (!take_operand(map, k, error))
            return FALSE;
    }
    g_autofree KilnValue **results = g_new0(KilnValue *, n + 1);
    if (!kiln_onnx_import_into(call->import, call->scope, map->graph, map->body, map->values,
                               results + 1, error))
        return FALSE;
    results[0] = kiln_build(map->body, NULL, KILN_OP_identity, NULL, &map->condition, 1, error);
    if (!results[0])
        return FALSE;
    for (uint32_t r = 0; r < n; r++) {
        dtypes[r] = results[1 + r]->type.dtype;
        if (!put_result(map, r, &results[1 + r], error))
            return FALSE;
    }
    return kiln_function_set_results(map->body, results, NULL, n + 1, error);
}

static gboolean
begin_body(Map *map, GError **error)
{
    const KilnType i = kiln_type_scalar(KILN_DTYPE_i64), flag = kiln_type_scalar(KILN_DTYPE_bool);
    map->body = kiln_function_new_region(map->call->import->module, "body");
    g_ptr_array_add(map->call->regions, map->body);
    return add_argument(map, "i", &i, &map->i, error) &&
           add_argument(map, "going_on", &flag, &map->condition, error);
}

/* The loop around the body: its operands and the types of its results. */
static gboolean
finish_map(const Map *map, const KilnDType *dtypes, GError **error)
{
    KilnOnnxCall *call = map->call;
    const uint32_t n = call->n_results;
    KilnArena *arena = call->import->module->arena;
    KilnType *types = kiln_arena_new0(arena, KilnType, n + 1);
    g_autofree KilnValue **operands = g_new0(KilnValue *, n + 2);
    operands[0] = kiln_onnx_build1(call, KILN_OP_sequence_length, NULL, call->operands[0], error);
    if (!operands[0])
        return FALSE;
    for (uint32_t r = 0; r < n; r++) {
        const KilnAttrs_sequence_empty attrs = { .dtype = dtypes[r] };
        const KilnType element = kiln_type_unranked(dtypes[r]);
        types[r] = kiln_type_of_items(arena, KILN_DTYPE_sequence, &element);
        operands[2 + r] = kiln_onnx_build(call, KILN_OP_sequence_empty, &attrs, NULL, 0, error);
        if (!operands[2 + r])
            return FALSE;
    }
    const KilnAttrs_loop attrs = { .body = map->body };
    KilnNode *node = kiln_node_new(call->function,
                                   &(KilnNodeSpec){ .op = KILN_OP_loop,
                                                    .operands = operands,
                                                    .n_operands = n + 2,
                                                    .n_results = n,
                                                    .attrs = &attrs,
                                                    .result_name = call->base,
                                                    .types = types },
                                   error);
    for (uint32_t r = 0; node && r < n; r++)
        kiln_onnx_set_result(call, r, &node->results[r]);
    return node != NULL;
}

gboolean
kiln_onnx_convert_sequence_map(KilnOnnxCall *call, GError **error)
{
    const KilnOnnxAttr *attr = kiln_onnx_take(call, "body");
    Map map = { .call = call, .graph = attr->graph };
    if (!attr->graph)
        return kiln_onnx_throw(call, KILN_ERROR_INVALID, error, "attribute 'body' is no graph");
    if (attr->graph->inputs->len != call->n_operands ||
        attr->graph->outputs->len != call->n_results)
        return kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                               "body: expected %u inputs and %u outputs, found %u and %u",
                               call->n_operands, call->n_results, attr->graph->inputs->len,
                               attr->graph->outputs->len);
    g_autofree KilnValue **values = g_new0(KilnValue *, call->n_operands + 1);
    g_autofree KilnDType *dtypes = g_new0(KilnDType, call->n_results + 1);
    map.values = values;
    return begin_body(&map, error) && fill_body(&map, dtypes, error) &&
           finish_map(&map, dtypes, error);
}

/* --- optionals --- */

static bool
is_optional(const KilnValue *value)
{
    return value && value->type.dtype == KILN_DTYPE_optional;
}

gboolean
kiln_onnx_convert_optional(KilnOnnxCall *call, GError **error)
{
    const KilnOnnxAttr *attr = kiln_onnx_take(call, "type");
    KilnModule *module = call->import->module;
    if (kiln_onnx_operand(call, 0))
        return TRUE;
    if (!attr || !attr->proto->tp)
        return kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                               "expected an operand, or the attribute 'type'");
    KilnType type;
    if (kiln_onnx_type_load(attr->proto->tp, call->import->dim_names, module, &type) !=
            KILN_ONNX_TYPE_TENSOR ||
        type.dtype == KILN_DTYPE_optional) {
        g_autofree char *trouble = kiln_onnx_type_trouble(attr->proto->tp);
        return kiln_onnx_unsupported(call, error, "attribute 'type': %s is not supported", trouble);
    }
    KilnType *types = kiln_arena_new0(module->arena, KilnType, 1);
    for (int d = 0; d < type.rank; d++)
        type.open[d] = NULL;
    *types = kiln_type_of_items(module->arena, KILN_DTYPE_optional, &type);
    call->op = KILN_OP_optional_none;
    call->attrs = NULL;
    call->types = types;
    call->n_operands = 0;
    return TRUE;
}

gboolean
kiln_onnx_convert_optional_has_element(KilnOnnxCall *call, GError **error)
{
    (void)error;
    const KilnValue *value = kiln_onnx_operand(call, 0);
    if (is_optional(value))
        return TRUE;
    return kiln_onnx_set_result(call, 0,
                                kiln_onnx_scalar(call, "has", KILN_DTYPE_bool, value ? 1.0 : 0.0));
}

gboolean
kiln_onnx_convert_optional_get_element(KilnOnnxCall *call, GError **error)
{
    KilnValue *value = kiln_onnx_need(call, 0, error);
    if (!value || is_optional(value))
        return value != NULL;
    return kiln_onnx_set_inlined(call, &value, 1, error);
}

/* --- maps --- */

gboolean
kiln_onnx_convert_cast_map(KilnOnnxCall *call, GError **error)
{
    static const struct {
        const char *text;
        KilnDType dtype;
    } types[] = { { "TO_FLOAT", KILN_DTYPE_f32 },
                  { "TO_STRING", KILN_DTYPE_string },
                  { "TO_INT64", KILN_DTYPE_i64 } };
    KilnAttrs_cast_map *attrs = kiln_onnx_attrs(call, cast_map);
    const char *to = "TO_FLOAT", *form = "DENSE";
    int64_t most = 1;
    size_t i = 0;
    if (!kiln_onnx_take_text(call, "cast_to", &to, error) ||
        !kiln_onnx_take_text(call, "map_form", &form, error) ||
        !kiln_onnx_take_int(call, "max_map", &most, error))
        return FALSE;
    while (i < G_N_ELEMENTS(types) && strcmp(types[i].text, to) != 0)
        i++;
    if (i == G_N_ELEMENTS(types))
        return kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                               "cast_to: expected TO_FLOAT, TO_STRING or TO_INT64, found '%s'", to);
    bool sparse = strcmp(form, "SPARSE") == 0;
    if (!sparse && strcmp(form, "DENSE") != 0)
        return kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                               "map_form: expected DENSE or SPARSE, found '%s'", form);
    if (sparse && most < 1)
        return kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                               "max_map: expected 1 or more, found %" G_GINT64_FORMAT, most);
    attrs->to = types[i].dtype;
    attrs->max_map = sparse ? most : 0;
    return TRUE;
}
