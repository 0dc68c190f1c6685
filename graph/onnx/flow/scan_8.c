/* SPDX-License-Identifier: Apache-2.0 */
/* Scan of opset 8: all operands and results have a batch axis in front, and batches may have
 * lengths of their own. A scan over batches runs a scan of the later form:
 *
 *     Scan(lengths, s, x)    =>    scan(lengths, s, x) body(length, s_i, x_i) {
 *                                    scan(s_i, length, x_i) body(a, left, p) {
 *                                      if (left > 0) then { body(a, p) } else { a, zeros }
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
#include "graph/onnx/convert.h"
#include "graph/onnx/flow/flow.h"
#include "graph/onnx/import.h"
#include "graph/onnx/model.h"
#include "graph/onnx/scope.h"
#include "graph/onnx/steps.h"
#include "graph/op/flow.h"
#include "graph/op/logic.h"

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

/* The call, for nodes of @region. */
static KilnOnnxCall
inside(const Scan *scan, KilnFunction *region)
{
    KilnOnnxCall call = *scan->call;
    call.function = region;
    return call;
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

/* The model's body on @elements; those that are NULL are scanned backwards, and are @place of what
 * is scanned. */
static KilnFunction *
make_then(const Scan *scan, KilnValue **elements, KilnValue *place, GError **error)
{
    KilnFunction *then = region_new(scan, "then_branch");
    KilnOnnxCall call = inside(scan, then);
    const KilnOnnxSteps steps = { &call, error };
    for (uint32_t i = 0; i < scan->n; i++) {
        if (!elements[i])
            elements[i] = kiln_onnx_step_gather(&steps, scan->given[i], place, 0);
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

/* The `if` of a step that may lie behind the end of the batch: @place is below 0 there. */
static KilnNode *
make_choice(const Scan *scan, KilnFunction *step, KilnValue **elements, KilnValue *place,
            GError **error)
{
    KilnOnnxCall call = inside(scan, step);
    const KilnOnnxSteps steps = { &call, error };
    KilnValue *goes_on = kiln_onnx_step_number(&steps, KILN_OP_greater_or_equal, place, 0);
    KilnAttrs_if attrs = { .then_branch = NULL };
    if (!goes_on || !(attrs.then_branch = make_then(scan, elements, place, error)) ||
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
        types[r] = kiln_type_join(step->module->arena, &elements[r]->type, &types[r]);
    }
    const KilnNodeSpec spec = { .op = KILN_OP_if,
                                .attrs = &attrs,
                                .operands = &goes_on,
                                .n_operands = 1,
                                .n_results = scan->outputs,
                                .result_name = "chosen",
                                .types = types };
    return kiln_node_new(step, &spec, error);
}

static bool
all_backward(const Scan *scan)
{
    uint32_t i = 0;
    while (i < scan->scanned && is_backward(scan, i))
        i++;
    return i == scan->scanned;
}

/* True where the inner scan of a batch with a length takes operand @i as it is. It scans one
 * operand at least. */
static bool
is_taken(const Scan *scan, uint32_t i)
{
    return i < scan->states || !is_backward(scan, i - scan->states) ||
           (i == scan->states && all_backward(scan));
}

/* The body of the inner scan where batches have lengths. It takes and gives the number of steps
 * that are left behind the states. */
static KilnFunction *
make_step(const Scan *scan, GError **error)
{
    KilnFunction *step = region_new(scan, "step");
    KilnOnnxCall call = inside(scan, step);
    const KilnOnnxSteps steps = { &call, error };
    g_autofree KilnValue **elements = g_new0(KilnValue *, scan->n + 1);
    g_autofree KilnValue **results = g_new0(KilnValue *, scan->outputs + 2);
    for (uint32_t i = 0; i < scan->states; i++)
        elements[i] = add_argument(step, "before", i, &scan->given[i]->type);
    KilnValue *left = add_argument(step, "left", 0, &scan->length->type);
    for (uint32_t i = scan->states; i < scan->n; i++) {
        const KilnType part = kiln_onnx_element(&scan->given[i]->type, 0);
        KilnValue *element =
            is_taken(scan, i) ? add_argument(step, "element", i - scan->states, &part) : NULL;
        elements[i] = is_backward(scan, i - scan->states) ? NULL : element;
    }
    KilnValue *next = kiln_onnx_step_sub_number(&steps, left, 1);
    KilnNode *choice = next ? make_choice(scan, step, elements, next, error) : NULL;
    if (!choice)
        return NULL;
    for (uint32_t r = 0; r < scan->outputs; r++)
        results[r + (r >= scan->states)] = kiln_node_result(choice, r);
    results[scan->states] = next;
    return kiln_function_set_results(step, results, NULL, scan->outputs + 1, error) ? step : NULL;
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

/* The operands of the inner scan; returns how many there are. */
static uint32_t
inner_operands(const Scan *scan, KilnValue **operands)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < scan->n; i++) {
        if (scan->length && i == scan->states)
            operands[n++] = scan->length;
        if (!scan->length || is_taken(scan, i))
            operands[n++] = scan->given[i];
    }
    return n;
}

static KilnNode *
make_inner(const Scan *scan, GError **error)
{
    const KilnType *whole = &scan->given[scan->states]->type;
    KilnAttrs_scan attrs = { .num_scan_inputs = scan->scanned,
                             .scan_input_directions = scan->directions };
    /* before the body is imported: what is scanned must have its axis */
    if (!check_scan(scan, &attrs, scan->given, scan->n, error) ||
        !(attrs.body = import_body(scan, error)))
        return NULL;
    const uint32_t more = scan->length ? 1 : 0, n_results = scan->outputs + more;
    g_autofree KilnValue **operands = g_new0(KilnValue *, scan->n + 2);
    const uint32_t n = inner_operands(scan, operands);
    attrs.num_scan_inputs = n - scan->states - more;
    if (scan->length)
        attrs.scan_input_directions = (KilnInts){ 0 };
    g_autofree KilnType *types = g_new0(KilnType, n_results + 1);
    for (uint32_t r = 0; r < n_results; r++) {
        types[r] = kiln_function_return(attrs.body)->operands[r].value->type;
        if (r >= scan->states + more && !kiln_onnx_stacked(scan->call, &types[r], 0, whole->dims[0],
                                                           whole->open[0], &types[r], error))
            return NULL;
    }
    const KilnNodeSpec spec = { .op = KILN_OP_scan,
                                .attrs = &attrs,
                                .operands = operands,
                                .n_operands = n,
                                .n_results = n_results,
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
        results[r] = kiln_node_result(inner, r + (scan.length && r >= scan.states));
        if (!kiln_onnx_stacked(call, &results[r]->type, 0, whole->dims[0], whole->open[0],
                               &types[r], error))
            return FALSE;
    }
    attrs->body = scan.batch;
    call->n_results = scan.outputs;
    return kiln_function_set_results(scan.batch, results, NULL, scan.outputs, error);
}
