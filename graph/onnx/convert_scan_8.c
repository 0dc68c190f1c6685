/* SPDX-License-Identifier: Apache-2.0 */
/* Scan of opset 8: all operands and results have a batch axis in front, and batches may have
 * lengths of their own. A scan over batches runs a scan of the later form:
 *
 *     Scan(lengths, s, x)    =>    scan(lengths, s, x) body(length, s_i, x_i) {
 *                                    scan(s_i, x_i, places) body(a, p, place) {
 *                                      if (place < length) then { body(a, p) } else { a, zeros }
 *                                    }
 *                                  }
 *
 * Without lengths the inner scan has the model's body. Behind its length a batch keeps its states,
 * and its stacked results are zeros. What is scanned backwards begins at the end of the batch. */
#include "graph/function.h"
#include "graph/module.h"
#include "graph/module/flow.h"
#include "graph/module/scan.h"
#include "graph/node.h"
#include "graph/onnx/convert_flow.h"
#include "graph/onnx/import.h"
#include "graph/op/additive.h"
#include "graph/op/flow.h"
#include "graph/op/gather.h"
#include "graph/op/generate.h"
#include "graph/op/logic.h"
#include "graph/op/structure.h"

typedef struct {
    KilnOnnxCall *call;
    const KilnOnnxGraph *graph;
    KilnInts directions;
    uint32_t states, scanned, n; /* n: both */
    uint32_t outputs;
    KilnFunction *batch; /* the body of the outer scan */
    KilnValue **given;   /* its arguments: states, then what is scanned */
    KilnValue *length;   /* the same; NULL: all batches are full */
} Scan;

static void
scan_clear(Scan *scan)
{
    g_free(scan->given);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Scan, scan_clear)

static bool
is_backward(const Scan *scan, uint32_t i)
{
    return kiln_ints_at(scan->directions, i, 0) == 1;
}

static KilnFunction *
region_new(const Scan *scan, const char *name)
{
    KilnFunction *region = kiln_function_new_region(scan->call->import->module, name);
    g_ptr_array_add(scan->call->regions, region);
    return region;
}

static KilnValue *
add_argument(KilnFunction *region, const char *what, uint32_t i, const KilnType *type)
{
    g_autofree char *name = g_strdup_printf("%s%u", what, i);
    return &kiln_function_add_argument(region, name, type, NULL)->value; /* no name is taken */
}

static KilnValue *
scalar(KilnFunction *region, const char *name, int64_t number)
{
    const KilnType type = kiln_type_scalar(KILN_DTYPE_i64);
    return kiln_build_constant(region, NULL, name, kiln_tensor_new_splat(&type, (double)number));
}

static KilnValue *
build(KilnFunction *region, KilnOp op, KilnValue *a, KilnValue *b, GError **error)
{
    return a && b ? kiln_build(region, NULL, op, NULL, (KilnValue *[]){ a, b }, 2, error) : NULL;
}

/* --- attributes and operands --- */

static gboolean
read_attrs(Scan *scan, GError **error)
{
    KilnOnnxCall *call = scan->call;
    int64_t scanned = 0;
    bool ignored;
    const KilnOnnxAttr *body = kiln_onnx_take(call, "body");
    if (!body || !body->graph)
        return kiln_onnx_throw(call, KILN_ERROR_INVALID, error, "attribute 'body' is no graph");
    if (!kiln_onnx_take_int(call, "num_scan_inputs", &scanned, error) ||
        !kiln_onnx_take_ints(call, "directions", &scan->directions, &ignored, error) ||
        !kiln_onnx_check_taken(call, error))
        return FALSE;
    call->attrs_read = true;
    if (call->n_operands < 1 || scanned < 1 || scanned > call->n_operands - 1)
        return kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                               "num_scan_inputs: expected 1 to the number of operands behind "
                               "sequence_lens, found %" G_GINT64_FORMAT " of %u operands",
                               scanned, call->n_operands);
    scan->graph = body->graph;
    scan->n = call->n_operands - 1;
    scan->scanned = (uint32_t)scanned;
    scan->states = scan->n - scan->scanned;
    scan->outputs = (uint32_t)call->node->proto->n_output;
    return kiln_onnx_check_count(call, "inputs of the body", scan->n, body->graph->inputs->len,
                                 error) &&
           kiln_onnx_check_count(call, "results of the body", scan->outputs,
                                 body->graph->outputs->len, error);
}

static gboolean
check_lengths(const Scan *scan, GError **error)
{
    const KilnValue *lengths = kiln_onnx_operand(scan->call, 0);
    if (!lengths || (lengths->type.dtype == KILN_DTYPE_i64 && lengths->type.rank == 1))
        return TRUE;
    g_autofree char *found = kiln_type_to_string(&lengths->type);
    return kiln_onnx_throw(scan->call, KILN_ERROR_TYPE, error,
                           "sequence_lens: expected a list of i64, found %s", found);
}

static gboolean
check_scan(const Scan *scan, const KilnAttrs_scan *attrs, KilnValue *const *operands, uint32_t n,
           GError **error)
{
    g_autofree const KilnType **types = g_new0(const KilnType *, (gsize)n + 1);
    for (uint32_t i = 0; i < n; i++)
        types[i] = &operands[i]->type;
    if (kiln_scan_check(attrs, types, n, scan->outputs, error))
        return TRUE;
    kiln_prefix_error(error, "%s (Scan): ", scan->call->label);
    return FALSE;
}

/* The outer scan takes all operands, without states. */
static gboolean
set_operands(Scan *scan, KilnAttrs_scan *attrs, GError **error)
{
    KilnOnnxCall *call = scan->call;
    for (uint32_t i = 1; i <= scan->n; i++) {
        const KilnValue *value = kiln_onnx_need(call, i, error);
        if (!value)
            return FALSE;
        if (value->type.rank < 0)
            return kiln_onnx_unsupported(call, error, "the rank of operand %u is not known", i);
    }
    bool lengths = call->operands[0] != NULL;
    for (uint32_t i = 0; !lengths && i < scan->n; i++)
        call->operands[i] = call->operands[i + 1];
    call->n_operands = scan->n + lengths;
    attrs->num_scan_inputs = call->n_operands;
    if (!check_scan(scan, attrs, call->operands, call->n_operands, error))
        return FALSE;
    scan->batch = region_new(scan, "batch");
    scan->given = g_new0(KilnValue *, scan->n + 1);
    for (uint32_t i = 0; i < call->n_operands; i++) {
        const KilnType type = kiln_onnx_element(&call->operands[i]->type, 0);
        uint32_t k = i - lengths;
        if (lengths && i == 0)
            scan->length = add_argument(scan->batch, "length", 0, &type);
        else
            scan->given[k] = add_argument(scan->batch, k < scan->states ? "state" : "scanned",
                                          k < scan->states ? k : k - scan->states, &type);
    }
    return TRUE;
}

/* --- batches with lengths --- */

/* An element of what is scanned backwards: that many places in front of the end of the batch. */
static KilnValue *
backward_element(const Scan *scan, KilnFunction *then, KilnValue *whole, KilnValue *place,
                 GError **error)
{
    KilnValue *left = build(then, KILN_OP_sub, scan->length, place, error);
    KilnValue *at = build(then, KILN_OP_sub, left, scalar(then, "one", 1), error);
    return build(then, KILN_OP_gather, whole, at, error);
}

/* The model's body on @elements; those that are NULL are scanned backwards. */
static KilnFunction *
make_then(const Scan *scan, KilnValue **elements, KilnValue *place, GError **error)
{
    KilnFunction *then = region_new(scan, "then_branch");
    for (uint32_t i = 0; i < scan->n; i++) {
        if (!elements[i])
            elements[i] = backward_element(scan, then, scan->given[i], place, error);
        if (!elements[i])
            return NULL;
    }
    KilnOnnxScope scope = *scan->call->scope;
    g_autofree KilnValue **results = g_new0(KilnValue *, scan->outputs + 1);
    scope.function = then;
    return kiln_onnx_import_contents(scan->call->import, &scope, scan->graph, elements, results,
                                     error) &&
                   kiln_function_set_results(then, results, NULL, scan->outputs, error) &&
                   kiln_onnx_check_region(scan->call, then, error)
               ? then
               : NULL;
}

/* The states as they were, and zeros. */
static KilnFunction *
make_else(const Scan *scan, KilnValue *const *elements, const KilnFunction *then, GError **error)
{
    KilnFunction *otherwise = region_new(scan, "else_branch");
    g_autofree KilnValue **results = g_new0(KilnValue *, scan->outputs + 1);
    for (uint32_t r = 0; r < scan->outputs; r++) {
        const KilnType *type = &kiln_function_return(then)->operands[r].value->type;
        results[r] = elements[r];
        if (r < scan->states)
            continue;
        if (!kiln_type_is_static(type) || type->dtype == KILN_DTYPE_string) {
            g_autofree char *found = kiln_type_to_string(type);
            kiln_onnx_unsupported(
                scan->call, error,
                "sequence_lens: expected numbers of a known shape as result %u of "
                "the body, found %s",
                r, found);
            return NULL;
        }
        results[r] =
            kiln_build_constant(otherwise, NULL, "padding", kiln_tensor_new_splat(type, 0));
    }
    return kiln_function_set_results(otherwise, results, NULL, scan->outputs, error) ? otherwise
                                                                                     : NULL;
}

/* The `if` of a step that may lie behind the end of the batch. */
static KilnNode *
make_choice(const Scan *scan, KilnFunction *step, KilnValue **elements, KilnValue *place,
            GError **error)
{
    KilnValue *inside = build(step, KILN_OP_less, place, scan->length, error);
    KilnAttrs_if attrs = { .then_branch = NULL };
    if (!inside || !(attrs.then_branch = make_then(scan, elements, place, error)) ||
        !(attrs.else_branch = make_else(scan, elements, attrs.then_branch, error)))
        return NULL;
    g_autofree KilnType *types = g_new0(KilnType, scan->outputs + 1);
    for (uint32_t r = 0; r < scan->outputs; r++) {
        types[r] = kiln_function_return(attrs.then_branch)->operands[r].value->type;
        if (r >= scan->states)
            continue;
        if (types[r].dtype != elements[r]->type.dtype) {
            kiln_onnx_throw(
                scan->call, KILN_ERROR_TYPE, error, "state %u begins as %s and becomes %s", r,
                kiln_dtype_name(elements[r]->type.dtype), kiln_dtype_name(types[r].dtype));
            return NULL;
        }
        types[r] = kiln_type_join(&elements[r]->type, &types[r]);
    }
    const KilnNodeSpec spec = { .op = KILN_OP_if,
                                .attrs = &attrs,
                                .operands = &inside,
                                .n_operands = 1,
                                .n_results = scan->outputs,
                                .result_name = "chosen",
                                .types = types };
    return kiln_node_new(step, &spec, error);
}

/* The body of the inner scan where batches have lengths. It takes the states, what is scanned
 * forward, and the place. */
static KilnFunction *
make_step(const Scan *scan, GError **error)
{
    KilnFunction *step = region_new(scan, "step");
    g_autofree KilnValue **elements = g_new0(KilnValue *, scan->n + 1);
    const KilnType number = kiln_type_scalar(KILN_DTYPE_i64);
    for (uint32_t i = 0; i < scan->n; i++) {
        const KilnType *type = &scan->given[i]->type;
        if (i < scan->states) {
            elements[i] = add_argument(step, "before", i, type);
        } else if (!is_backward(scan, i - scan->states)) {
            const KilnType part = kiln_onnx_element(type, 0);
            elements[i] = add_argument(step, "element", i - scan->states, &part);
        }
    }
    KilnValue *place = add_argument(step, "place", 0, &number);
    KilnNode *choice = make_choice(scan, step, elements, place, error);
    g_autofree KilnValue **results = g_new0(KilnValue *, scan->outputs + 1);
    for (uint32_t r = 0; choice && r < scan->outputs; r++)
        results[r] = kiln_node_result(choice, r);
    return choice && kiln_function_set_results(step, results, NULL, scan->outputs, error) ? step
                                                                                          : NULL;
}

/* 0, 1, … for each place of a batch. */
static KilnValue *
make_places(const Scan *scan, GError **error)
{
    KilnFunction *batch = scan->batch;
    KilnValue *whole = scan->given[scan->states];
    KilnValue *shape = kiln_build(batch, NULL, KILN_OP_shape, NULL, &whole, 1, error);
    KilnValue *zero = scalar(batch, "first", 0), *one = scalar(batch, "one", 1);
    KilnValue *n = build(batch, KILN_OP_gather, shape, zero, error);
    return n ? kiln_build(batch, NULL, KILN_OP_range, NULL, (KilnValue *[]){ zero, n, one }, 3,
                          error)
             : NULL;
}

/* --- the inner scan --- */

static KilnFunction *
import_body(const Scan *scan, GError **error)
{
    if (scan->length)
        return make_step(scan, error);
    g_autofree KilnType *types = g_new0(KilnType, scan->n + 1);
    for (uint32_t i = 0; i < scan->n; i++)
        types[i] =
            i < scan->states ? scan->given[i]->type : kiln_onnx_element(&scan->given[i]->type, 0);
    KilnFunction *body = kiln_onnx_import_region(scan->call, "body", types, scan->n, error);
    if (!body || !kiln_onnx_check_region(scan->call, body, error))
        return NULL;
    for (uint32_t i = 0; i < scan->n; i++) {
        if (!kiln_onnx_check_argument(scan->call, body, i, &types[i], i >= scan->states, error))
            return NULL;
    }
    return body;
}

/* The operands of the inner scan. *@out_n of them. NULL fails. */
static KilnValue **
inner_operands(const Scan *scan, uint32_t *out_n, GError **error)
{
    g_autofree KilnValue **operands = g_new0(KilnValue *, scan->n + 2);
    *out_n = 0;
    for (uint32_t i = 0; i < scan->n; i++) {
        bool backward = i >= scan->states && is_backward(scan, i - scan->states);
        if (!scan->length || !backward)
            operands[(*out_n)++] = scan->given[i];
    }
    if (!scan->length)
        return g_steal_pointer(&operands);
    operands[*out_n] = make_places(scan, error);
    return operands[(*out_n)++] ? g_steal_pointer(&operands) : NULL;
}

static KilnNode *
make_inner(const Scan *scan, GError **error)
{
    uint32_t n;
    const KilnType *whole = &scan->given[scan->states]->type;
    KilnAttrs_scan attrs = { .num_scan_inputs = scan->scanned };
    /* before the body is imported, which expects what is scanned to have its axis */
    attrs.scan_input_directions = scan->directions;
    if (!check_scan(scan, &attrs, scan->given, scan->n, error))
        return NULL;
    if (scan->length)
        attrs.scan_input_directions = (KilnInts){ 0 };
    g_autofree KilnValue **operands = inner_operands(scan, &n, error);
    if (!operands || !(attrs.body = import_body(scan, error)))
        return NULL;
    attrs.num_scan_inputs = n - scan->states;
    g_autofree KilnType *types = g_new0(KilnType, scan->outputs + 1);
    for (uint32_t r = 0; r < scan->outputs; r++) {
        types[r] = kiln_function_return(attrs.body)->operands[r].value->type;
        if (r >= scan->states && !kiln_onnx_stacked(scan->call, &types[r], 0, whole->dims[0],
                                                    whole->open[0], &types[r], error))
            return NULL;
    }
    const KilnNodeSpec spec = { .op = KILN_OP_scan,
                                .attrs = &attrs,
                                .operands = operands,
                                .n_operands = n,
                                .n_results = scan->outputs,
                                .result_name = "of_batch",
                                .types = types };
    return kiln_node_new(scan->batch, &spec, error);
}

gboolean
kiln_onnx_convert_scan_8(KilnOnnxCall *call, GError **error)
{
    g_auto(Scan) scan = { .call = call };
    KilnAttrs_scan *attrs = kiln_onnx_attrs(call, scan);
    if (!read_attrs(&scan, error) || !check_lengths(&scan, error) ||
        !set_operands(&scan, attrs, error))
        return FALSE;
    KilnNode *inner = make_inner(&scan, error);
    if (!inner)
        return FALSE;
    const KilnType *whole = &call->operands[call->n_operands - 1]->type;
    g_autofree KilnValue **results = g_new0(KilnValue *, scan.outputs + 1);
    KilnType *types = kiln_onnx_flow_types(call, scan.outputs);
    for (uint32_t r = 0; r < scan.outputs; r++) {
        results[r] = kiln_node_result(inner, r);
        if (!kiln_onnx_stacked(call, &results[r]->type, 0, whole->dims[0], whole->open[0],
                               &types[r], error))
            return FALSE;
    }
    attrs->body = scan.batch;
    call->n_results = scan.outputs;
    return kiln_function_set_results(scan.batch, results, NULL, scan.outputs, error);
}
