/* SPDX-License-Identifier: Apache-2.0 */
/* Branches, loops, scans and bodies of vendors, evaluated as ONNX describes them. */
#include "exec/eval_flow.h"

#include "graph/base/alloc.h"
#include "graph/base/budget.h"
#include "graph/function.h"
#include "graph/module/flow.h"
#include "graph/node.h"
#include "graph/op/flow.h"
#include "graph/op/offload.h"
#include "graph/op/structure.h"

#include <string.h>

/* --- regions --- */

/* New handles on what @region returns. @n is how many results its node expects. */
static gboolean
run_region(KilnEvaluation *evaluation, const KilnFunction *region, KilnTensor **results, uint32_t n,
           GError **error)
{
    const KilnNode *last = kiln_function_return(region);
    if (!last || last->n_operands != n)
        return kiln_throw(error, KILN_ERROR_INVALID, "expected a subgraph of %u results", n);
    if (!kiln_evaluation_nodes(evaluation, region, error))
        return FALSE;
    for (uint32_t i = 0; i < n; i++)
        results[i] = kiln_tensor_copy(kiln_evaluation_tensor(evaluation, last->operands[i].value));
    kiln_evaluation_release_operands(evaluation, last);
    return TRUE;
}

/* The results of @region become those of @node. */
static gboolean
run_once(KilnEvaluation *evaluation, const KilnNode *node, const KilnFunction *region,
         GError **error)
{
    g_autofree KilnTensor **results = g_new0(KilnTensor *, node->n_results + 1);
    if (!run_region(evaluation, region, results, node->n_results, error)) {
        kiln_region_prefix_error(error, node, region);
        return FALSE;
    }
    for (uint32_t r = 0; r < node->n_results; r++)
        kiln_evaluation_set(evaluation, &node->results[r], results[r]);
    return TRUE;
}

/* The one element of @tensor, of @dtype. */
static gboolean
read_scalar(const KilnNode *node, const char *what, const KilnTensor *tensor, KilnDType dtype,
            int64_t *out, GError **error)
{
    g_autoptr(GBytes) bytes = kiln_tensor_view(tensor, error);
    if (!bytes)
        return FALSE;
    if (tensor->type.dtype != dtype || kiln_type_elements(&tensor->type) != 1) {
        const bool other = tensor->type.dtype != dtype;
        g_autofree char *found = kiln_type_to_string(&tensor->type);
        return kiln_throw(error, other ? KILN_ERROR_TYPE : KILN_ERROR_SHAPE,
                          "%s (%s): %s: expected one element of %s, found %s",
                          kiln_node_label(node), kiln_op_info(node->op)->name, what,
                          kiln_dtype_name(dtype), found);
    }
    const void *data = g_bytes_get_data(bytes, NULL);
    if (dtype == KILN_DTYPE_bool)
        *out = *(const uint8_t *)data != 0;
    else
        memcpy(out, data, sizeof *out);
    return TRUE;
}

static gboolean
evaluate_if(KilnEvaluation *evaluation, const KilnNode *node, GError **error)
{
    const KilnAttrs_if *attrs = kiln_attrs(node, if);
    const KilnTensor *condition = kiln_evaluation_tensor(evaluation, kiln_node_operand(node, 0));
    int64_t flag;
    if (!read_scalar(node, "condition", condition, KILN_DTYPE_bool, &flag, error))
        return FALSE;
    kiln_evaluation_release_operands(evaluation, node);
    kiln_evaluation_release_region(evaluation, node->function,
                                   flag ? attrs->else_branch : attrs->then_branch);
    return run_once(evaluation, node, flag ? attrs->then_branch : attrs->else_branch, error);
}

/* A `vendor.graph` or a `custom_op`. */
static gboolean
evaluate_body(KilnEvaluation *evaluation, const KilnNode *node, const KilnFunction *body,
              GError **error)
{
    guint n = body->arguments->len; /* none where the body reads the operands from around it */
    if (n && n != node->n_operands)
        return kiln_throw(error, KILN_ERROR_INVALID, "%s: expected %u operands, found %u",
                          kiln_node_label(node), n, node->n_operands);
    for (uint32_t i = 0; i < n; i++) {
        const KilnTensor *tensor = kiln_evaluation_tensor(evaluation, kiln_node_operand(node, i));
        kiln_evaluation_set(evaluation, &kiln_function_argument(body, i)->value,
                            kiln_tensor_copy(tensor));
    }
    kiln_evaluation_release_operands(evaluation, node);
    return run_once(evaluation, node, body, error);
}

/* --- tensors along an axis --- */

/* A tensor as @outer × @n × @inner bytes: @n slices across an axis. */
typedef struct {
    size_t outer, n, inner;
} Slices;

static Slices
slices_of(const KilnType *type, int axis)
{
    Slices slices = { 1, (size_t)type->dims[axis], kiln_dtype_size(type->dtype) };
    for (int d = 0; d < type->rank; d++) {
        if (d < axis)
            slices.outer *= (size_t)type->dims[d];
        else if (d > axis)
            slices.inner *= (size_t)type->dims[d];
    }
    return slices;
}

/* Slice @k of the tensor of @type in @bytes. */
static KilnTensor *
take_slice(const KilnType *type, GBytes *bytes, int axis, int64_t k, GError **error)
{
    const Slices slices = slices_of(type, axis);
    KilnType part = kiln_type_make(type->dtype, type->rank - 1, type->dims);
    for (int d = axis; d < part.rank; d++)
        part.dims[d] = type->dims[d + 1];
    void *out;
    g_autoptr(GBytes) copy = kiln_bytes_new(slices.outer, slices.inner, &out, error);
    if (!copy)
        return NULL;
    const char *from = (const char *)g_bytes_get_data(bytes, NULL) + (size_t)k * slices.inner;
    for (size_t o = 0; slices.inner && o < slices.outer; o++)
        memcpy((char *)out + o * slices.inner, from + o * slices.n * slices.inner, slices.inner);
    return kiln_tensor_new_data(&part, copy, error);
}

/* @type with a dim @n at @axis. */
static KilnType
stacked_type(const KilnType *type, int axis, int64_t n)
{
    int64_t dims[KILN_MAX_RANK];
    for (int d = 0; d <= type->rank; d++)
        dims[d] = d == axis ? n : type->dims[d - (d > axis)];
    return kiln_type_make(type->dtype, type->rank + 1, dims);
}

/* Stacks @parts (KilnTensor*, of one type, at least one) along a new @axis, the last first if
 * @reverse. Frees each after it was read. */
static KilnTensor *
stack_parts(GPtrArray *parts, int axis, bool reverse, GError **error)
{
    const KilnType type =
        stacked_type(&((const KilnTensor *)parts->pdata[0])->type, axis, (int64_t)parts->len);
    const int64_t size = kiln_type_bytes(&type);
    if (size < 0)
        return kiln_throw_null(error, KILN_ERROR_LIMIT, "what is stacked is too big");
    const Slices slices = slices_of(&type, axis);
    void *out;
    g_autoptr(GBytes) bytes = kiln_bytes_new((size_t)size, 1, &out, error);
    for (guint i = 0; bytes && i < parts->len; i++) {
        g_autoptr(GBytes) part = kiln_tensor_view(parts->pdata[i], error);
        if (!part)
            return NULL;
        const char *from = g_bytes_get_data(part, NULL);
        char *to = (char *)out + (reverse ? slices.n - 1 - i : i) * slices.inner;
        for (size_t o = 0; slices.inner && o < slices.outer; o++)
            memcpy(to + o * slices.n * slices.inner, from + o * slices.inner, slices.inner);
        g_clear_pointer((KilnTensor **)&parts->pdata[i], kiln_tensor_free);
    }
    return bytes ? kiln_tensor_new_data(&type, bytes, error) : NULL;
}

/* --- iterations --- */

/* A `loop` or a `scan` that runs. Its body takes what is special to each, and what is carried. It
 * returns a condition (`loop`), what is carried, and what is stacked. */
typedef struct {
    KilnEvaluation *evaluation;
    const KilnNode *node;
    const KilnFunction *body;
    uint32_t n_carried, n_stacked, n_conditions;
    KilnTensor **carried; /* owned */
    GPtrArray **stacks;   /* of KilnTensor*, one per iteration */
} Loop;

static void
free_tensor(gpointer tensor)
{
    kiln_tensor_free(tensor);
}

/* Operands from number @first on are what is carried. */
static gboolean
loop_begin(Loop *loop, uint32_t first, GError **error)
{
    KilnEvaluation *evaluation = loop->evaluation;
    const KilnNode *node = loop->node, *last = kiln_function_return(loop->body);
    if (!last || last->n_operands != loop->n_conditions + node->n_results ||
        node->n_results < loop->n_carried)
        return kiln_throw(error, KILN_ERROR_INVALID, "%s (%s): expected a subgraph of %u results",
                          kiln_node_label(node), kiln_op_info(node->op)->name,
                          loop->n_conditions + node->n_results);
    loop->n_stacked = node->n_results - loop->n_carried;
    loop->carried = g_new0(KilnTensor *, loop->n_carried + 1);
    loop->stacks = g_new0(GPtrArray *, loop->n_stacked + 1);
    for (uint32_t i = 0; i < loop->n_stacked; i++)
        loop->stacks[i] = g_ptr_array_new_with_free_func(free_tensor);
    for (uint32_t i = 0; i < loop->n_carried; i++) {
        const KilnTensor *tensor =
            kiln_evaluation_tensor(evaluation, kiln_node_operand(node, first + i));
        if (!tensor)
            return kiln_throw(error, KILN_ERROR_INVALID, "%s (%s): operand %u is missing",
                              kiln_node_label(node), kiln_op_info(node->op)->name, first + i);
        loop->carried[i] = kiln_tensor_copy(tensor);
    }
    kiln_evaluation_release_operands(evaluation, node);
    if (!evaluation->lowered)
        evaluation->lowered = kiln_lowered_nodes_new();
    return TRUE;
}

static void
loop_clear(Loop *loop)
{
    for (uint32_t i = 0; loop->carried && i < loop->n_carried; i++)
        kiln_tensor_free(loop->carried[i]);
    for (uint32_t i = 0; loop->stacks && i < loop->n_stacked; i++)
        g_ptr_array_unref(loop->stacks[i]);
    g_free(loop->carried);
    g_free(loop->stacks);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Loop, loop_clear)

/* Argument @i of the body becomes @tensor, which is taken over; NULL fails. */
static gboolean
pass_argument(const Loop *loop, uint32_t i, KilnTensor *tensor, GError **error)
{
    if (!tensor)
        return FALSE;
    const KilnValue *argument = &kiln_function_argument(loop->body, i)->value;
    gboolean good = kiln_evaluation_check(argument, tensor, error);
    kiln_evaluation_set(loop->evaluation, argument, tensor);
    return good;
}

/* The same for what is carried. The body alone holds it then. */
static gboolean
pass_carried(Loop *loop, uint32_t first, GError **error)
{
    for (uint32_t i = 0; i < loop->n_carried; i++) {
        if (!pass_argument(loop, first + i, g_steal_pointer(&loop->carried[i]), error))
            return FALSE;
    }
    return TRUE;
}

/* Keeps @part, which is taken over, for stack @i. All parts of a stack have one type. */
static gboolean
add_part(const Loop *loop, uint32_t i, KilnTensor *part, GError **error)
{
    GPtrArray *stack = loop->stacks[i];
    g_ptr_array_add(stack, part);
    const KilnType *first = &((const KilnTensor *)stack->pdata[0])->type;
    if (part->type.rank == KILN_MAX_RANK)
        return kiln_throw(error, KILN_ERROR_UNSUPPORTED, "result %u has rank %d, and is stacked",
                          loop->n_conditions + loop->n_carried + i, KILN_MAX_RANK);
    if (kiln_type_equal(first, &part->type))
        return TRUE;
    g_autofree char *expected = kiln_type_to_string(first);
    g_autofree char *found = kiln_type_to_string(&part->type);
    return kiln_throw(error, KILN_ERROR_SHAPE, "result %u: expected %s as before, found %s",
                      loop->n_conditions + loop->n_carried + i, expected, found);
}

/* Runs the nodes of the body. Only iterations that the watch asks for are seen. */
static gboolean
run_watched(const Loop *loop, int64_t iteration, KilnTensor **results, uint32_t n, GError **error)
{
    KilnEvaluation *evaluation = loop->evaluation;
    KilnIterations *only = evaluation->watch ? evaluation->watch->only : NULL;
    const uint32_t depth = evaluation->depth;
    const bool hidden = only && depth < only->n && only->numbers[depth] != iteration;
    evaluation->depth++;
    evaluation->hidden += hidden;
    if (only && depth + 1 == only->n && !evaluation->hidden)
        only->found = true;
    const gboolean good = run_region(evaluation, loop->body, results, n, error);
    evaluation->depth--;
    evaluation->hidden -= hidden;
    return good;
}

/* Runs the body, whose arguments are set. A body of a loop also says if there is @goes_on. */
static gboolean
run_body(Loop *loop, int64_t iteration, bool *goes_on, GError **error)
{
    const uint32_t n = loop->n_conditions + loop->node->n_results;
    g_autofree KilnTensor **results = g_new0(KilnTensor *, n + 1);
    if (!kiln_checkpoint(error) || !run_watched(loop, iteration, results, n, error))
        return FALSE;
    gboolean good = TRUE;
    uint32_t i = 0;
    for (; i < loop->n_conditions; i++) {
        int64_t flag = 0;
        good = read_scalar(kiln_function_return(loop->body), "condition", results[i],
                           KILN_DTYPE_bool, &flag, error);
        *goes_on = flag != 0;
        kiln_tensor_free(results[i]);
    }
    for (; i < loop->n_conditions + loop->n_carried; i++)
        loop->carried[i - loop->n_conditions] = results[i];
    for (uint32_t s = 0; s < loop->n_stacked; s++, i++) {
        if (good)
            good = add_part(loop, s, results[i], error);
        else
            kiln_tensor_free(results[i]);
    }
    return good;
}

static gboolean
fail_iteration(const Loop *loop, int64_t i, GError **error)
{
    kiln_prefix_error(error, "iteration %" G_GINT64_FORMAT ": ", i);
    kiln_region_prefix_error(error, loop->node, loop->body);
    return FALSE;
}

/* --- results --- */

/* A KilnDimLookup: the numbers of names are in the dims of the inputs. */
static bool
look_up(void *data, const char *name, int64_t *out)
{
    const KilnEvaluation *evaluation = data;
    const KilnFunction *function = evaluation->function;
    for (guint i = 0; i < function->arguments->len; i++) {
        const KilnType *type = &kiln_function_argument(function, i)->value.type;
        for (int d = 0; d < type->rank && d < evaluation->inputs[i]->type.rank; d++) {
            if (g_strcmp0(kiln_type_dim_name(type, d), name) != 0)
                continue;
            *out = evaluation->inputs[i]->type.dims[d];
            return true;
        }
    }
    return false;
}

/* Dim @d of @type; false where nobody knows it. */
static bool
find_dim(const Loop *loop, const KilnType *type, int d, int64_t *out)
{
    *out = d < type->rank ? type->dims[d] : -1;
    return *out >= 0 || (d < type->rank && type->open[d] &&
                         kiln_dim_evaluate(type->open[d], look_up, loop->evaluation, out, NULL));
}

/* The rank of a stacked result; -1: not known. */
static int
stacked_rank(const Loop *loop, uint32_t s)
{
    const KilnNode *last = kiln_function_return(loop->body);
    const uint32_t r = loop->n_carried + s;
    const KilnType *part = &last->operands[loop->n_conditions + r].value->type;
    const KilnType *whole = &loop->node->results[r].type;
    const GPtrArray *stack = loop->stacks[s];
    if (stack->len)
        return ((const KilnTensor *)stack->pdata[0])->type.rank + 1;
    return whole->rank >= 0 ? whole->rank : part->rank >= 0 ? part->rank + 1 : -1;
}

/* What no iteration gave: other dims are 0 where types do not say them. */
static KilnTensor *
empty_stack(const Loop *loop, uint32_t s, int rank, int axis)
{
    const KilnNode *last = kiln_function_return(loop->body);
    const uint32_t r = loop->n_carried + s;
    const KilnType *part = &last->operands[loop->n_conditions + r].value->type;
    const KilnType *whole = &loop->node->results[r].type;
    int64_t dims[KILN_MAX_RANK] = { 0 };
    for (int d = 0; d < rank; d++) {
        int64_t dim;
        if (d != axis &&
            (find_dim(loop, whole, d, &dim) || find_dim(loop, part, d - (d > axis), &dim)))
            dims[d] = dim;
    }
    const KilnType type = kiln_type_make(whole->dtype, rank, dims);
    return kiln_tensor_new_splat(&type, 0);
}

/* Stack @s becomes a result of the node, along @axis. */
static gboolean
set_stacked(const Loop *loop, uint32_t s, int64_t axis, bool reverse, GError **error)
{
    const KilnNode *node = loop->node;
    const char *op = kiln_op_info(node->op)->name;
    const int rank = stacked_rank(loop, s);
    const uint32_t r = loop->n_carried + s;
    if (rank < 1 || rank > KILN_MAX_RANK)
        return kiln_throw(error, KILN_ERROR_UNSUPPORTED,
                          "%s (%s): the rank of result %u is not known", kiln_node_label(node), op,
                          r);
    if (axis < -rank || axis >= rank)
        return kiln_throw(error, KILN_ERROR_SHAPE,
                          "%s (%s): axis %" G_GINT64_FORMAT " of result %u of rank %d",
                          kiln_node_label(node), op, axis, r, rank);
    const int at = (int)(axis < 0 ? axis + rank : axis);
    KilnTensor *stacked = loop->stacks[s]->len ? stack_parts(loop->stacks[s], at, reverse, error)
                                               : empty_stack(loop, s, rank, at);
    if (!stacked) {
        kiln_prefix_error(error, "%s (%s): result %u: ", kiln_node_label(node), op, r);
        return FALSE;
    }
    kiln_evaluation_set(loop->evaluation, &node->results[r], stacked);
    return TRUE;
}

/* The body runs no more. @scan: NULL for a loop. */
static gboolean
loop_end(Loop *loop, const KilnAttrs_scan *scan, GError **error)
{
    kiln_evaluation_release_region(loop->evaluation, loop->node->function, loop->body);
    for (uint32_t i = 0; i < loop->n_carried; i++)
        kiln_evaluation_set(loop->evaluation, &loop->node->results[i],
                            g_steal_pointer(&loop->carried[i]));
    for (uint32_t s = 0; s < loop->n_stacked; s++) {
        const int64_t axis = scan ? kiln_ints_at(scan->scan_output_axes, s, 0) : 0;
        const bool reverse = scan && kiln_ints_at(scan->scan_output_directions, s, 0) == 1;
        if (!set_stacked(loop, s, axis, reverse, error))
            return FALSE;
    }
    return TRUE;
}

/* --- loops --- */

/* One number for an argument of the body. It may be a vector of one element. */
static KilnTensor *
number_for(const KilnFunction *body, uint32_t i, KilnDType dtype, int64_t number)
{
    const KilnType *wanted = &kiln_function_argument(body, i)->value.type;
    const bool vector = wanted->rank > 0 && kiln_type_elements(wanted) == 1;
    const KilnType type =
        vector ? kiln_type_make(dtype, wanted->rank, wanted->dims) : kiln_type_scalar(dtype);
    return kiln_tensor_new_splat(&type, (double)number);
}

/* Reads operand @i of the loop; @out keeps its value where it is absent. */
static gboolean
read_operand(const Loop *loop, uint32_t i, const char *what, KilnDType dtype, int64_t *out,
             GError **error)
{
    const KilnTensor *tensor =
        kiln_evaluation_tensor(loop->evaluation, kiln_node_operand(loop->node, i));
    return !tensor || read_scalar(loop->node, what, tensor, dtype, out, error);
}

/* Without a first condition, those of the body do not count. */
static gboolean
evaluate_loop(KilnEvaluation *evaluation, const KilnNode *node, GError **error)
{
    g_auto(Loop) loop = { .evaluation = evaluation,
                          .node = node,
                          .body = kiln_attrs(node, loop)->body,
                          .n_carried = node->n_operands < 2 ? 0 : node->n_operands - 2,
                          .n_conditions = 1 };
    const bool conditional = kiln_node_operand(node, 1) != NULL;
    int64_t trips = INT64_MAX, condition = 1;
    if (loop.body->arguments->len != loop.n_carried + 2)
        return kiln_throw(error, KILN_ERROR_INVALID, "%s (loop): expected a body of %u arguments",
                          kiln_node_label(node), loop.n_carried + 2);
    if (!read_operand(&loop, 0, "trip count", KILN_DTYPE_i64, &trips, error) ||
        !read_operand(&loop, 1, "condition", KILN_DTYPE_bool, &condition, error) ||
        !loop_begin(&loop, 2, error))
        return FALSE;
    bool goes_on = condition != 0;
    for (int64_t i = 0; goes_on && i < trips; i++) {
        if (!pass_argument(&loop, 0, number_for(loop.body, 0, KILN_DTYPE_i64, i), error) ||
            !pass_argument(&loop, 1, number_for(loop.body, 1, KILN_DTYPE_bool, 1), error) ||
            !pass_carried(&loop, 2, error) || !run_body(&loop, i, &goes_on, error))
            return fail_iteration(&loop, i, error);
        goes_on |= !conditional;
    }
    return loop_end(&loop, NULL, error);
}

/* --- scans --- */

/* What is scanned. */
typedef struct {
    KilnTensor *tensor;
    GBytes *bytes; /* of all its elements */
    int axis;
    bool reverse;
} Scanned;

static void
scanned_free(Scanned *scanned, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        kiln_tensor_free(scanned[i].tensor);
        g_clear_pointer(&scanned[i].bytes, g_bytes_unref);
    }
    g_free(scanned);
}

static gboolean
scanned_begin(Scanned *scanned, const Loop *loop, uint32_t i, GError **error)
{
    const KilnAttrs_scan *attrs = kiln_attrs(loop->node, scan);
    const uint32_t operand = loop->n_carried + i;
    const KilnTensor *tensor =
        kiln_evaluation_tensor(loop->evaluation, kiln_node_operand(loop->node, operand));
    const int64_t axis = kiln_ints_at(attrs->scan_input_axes, i, 0);
    if (!tensor)
        return kiln_throw(error, KILN_ERROR_INVALID, "%s (scan): operand %u is missing",
                          kiln_node_label(loop->node), operand);
    scanned->axis = kiln_type_axis(&tensor->type, axis);
    if (scanned->axis < 0)
        return kiln_throw(error, KILN_ERROR_SHAPE,
                          "%s (scan): axis %" G_GINT64_FORMAT " of operand %u of rank %d",
                          kiln_node_label(loop->node), axis, operand, tensor->type.rank);
    scanned->reverse = kiln_ints_at(attrs->scan_input_directions, i, 0) == 1;
    scanned->tensor = kiln_tensor_copy(tensor);
    scanned->bytes = kiln_tensor_view(tensor, error);
    return scanned->bytes != NULL;
}

/* All operands that are scanned have one length. */
static gboolean
begin_scan(Loop *loop, Scanned *scanned, uint32_t n, int64_t *out_length, GError **error)
{
    for (uint32_t i = 0; i < n; i++) {
        if (!scanned_begin(&scanned[i], loop, i, error))
            return FALSE;
        const int64_t length = scanned[i].tensor->type.dims[scanned[i].axis];
        if (i == 0)
            *out_length = length;
        if (length != *out_length)
            return kiln_throw(error, KILN_ERROR_SHAPE,
                              "%s (scan): operand %u: expected length %" G_GINT64_FORMAT
                              ", found %" G_GINT64_FORMAT,
                              kiln_node_label(loop->node), loop->n_carried + i, *out_length,
                              length);
    }
    return loop_begin(loop, 0, error);
}

static gboolean
run_scan(Loop *loop, const Scanned *scanned, uint32_t n, int64_t length, GError **error)
{
    for (int64_t k = 0; k < length; k++) {
        gboolean good = pass_carried(loop, 0, error);
        for (uint32_t i = 0; good && i < n; i++) {
            const Scanned *from = &scanned[i];
            KilnTensor *slice = take_slice(&from->tensor->type, from->bytes, from->axis,
                                           from->reverse ? length - 1 - k : k, error);
            good = pass_argument(loop, loop->n_carried + i, slice, error);
        }
        if (!good || !run_body(loop, k, NULL, error))
            return fail_iteration(loop, k, error);
    }
    return TRUE;
}

static gboolean
evaluate_scan(KilnEvaluation *evaluation, const KilnNode *node, GError **error)
{
    const KilnAttrs_scan *attrs = kiln_attrs(node, scan);
    if (attrs->num_scan_inputs < 1 || attrs->num_scan_inputs > node->n_operands ||
        attrs->body->arguments->len != node->n_operands)
        return kiln_throw(error, KILN_ERROR_INVALID,
                          "%s (scan): %" G_GINT64_FORMAT
                          " of %u operands are scanned, and the body "
                          "has %u arguments",
                          kiln_node_label(node), attrs->num_scan_inputs, node->n_operands,
                          attrs->body->arguments->len);
    const uint32_t n = (uint32_t)attrs->num_scan_inputs;
    g_auto(Loop) loop = { .evaluation = evaluation,
                          .node = node,
                          .body = attrs->body,
                          .n_carried = node->n_operands - n };
    Scanned *scanned = g_new0(Scanned, n);
    int64_t length = 0;
    gboolean good =
        begin_scan(&loop, scanned, n, &length, error) && run_scan(&loop, scanned, n, length, error);
    scanned_free(scanned, n);
    return good && loop_end(&loop, attrs, error);
}

/* --- nodes --- */

gboolean
kiln_evaluation_flow(KilnEvaluation *evaluation, const KilnNode *node, GError **error)
{
    switch (node->op) {
    case KILN_OP_if:
        return evaluate_if(evaluation, node, error);
    case KILN_OP_loop:
        return evaluate_loop(evaluation, node, error);
    case KILN_OP_scan:
        return evaluate_scan(evaluation, node, error);
    case KILN_OP_vendor_graph:
        return evaluate_body(evaluation, node, kiln_attrs(node, vendor_graph)->body, error);
    case KILN_OP_custom_op:
        return evaluate_body(evaluation, node, kiln_attrs(node, custom_op)->body, error);
    default:
        return kiln_throw(error, KILN_ERROR_UNSUPPORTED, "%s (%s): subgraphs are not evaluated",
                          kiln_node_label(node), kiln_op_info(node->op)->name);
    }
}
