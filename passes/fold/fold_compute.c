/* SPDX-License-Identifier: Apache-2.0 */
#include "passes/fold/fold_compute.h"

#include "graph/base/budget.h"
#include "graph/node.h"
#include "graph/op/concat.h"
#include "graph/op/generate.h"
#include "passes/fold/constant_rules.h"
#include "passes/fold/constness.h"

#include <string.h>

/* --- operands --- */

bool
kiln_fold_is_readable(const KilnValue *value)
{
    const KilnConstant *constant = kiln_value_constant(value);
    /* What is quantized is a number only with its parameters. */
    return !constant || (!constant->type.quant && kiln_tensor_is_readable(constant->tensor));
}

/* The operands of a node; those of no buffer whose types alone are read, as zeros. */
typedef struct {
    const KilnTensor **tensors;
    KilnTensor *zeros; /* in there too; such operators have one operand */
} Operands;

static void
operands_clear(Operands *operands)
{
    g_clear_pointer(&operands->tensors, g_free);
    g_clear_pointer(&operands->zeros, kiln_tensor_free);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Operands, operands_clear)

/* False where one has no buffer. */
static bool
find_operands(KilnFoldWorker *worker, const KilnNode *node, Operands *out)
{
    out->tensors = g_new0(const KilnTensor *, node->n_operands + 1);
    for (uint32_t i = 0; i < node->n_operands; i++) {
        const KilnValue *value = node->operands[i].value;
        if (!value)
            continue;
        if (kiln_fold_is_readable(value))
            out->tensors[i] = kiln_constant_pool_get(worker->pool, value);
        if (!out->tensors[i] && kiln_op_reads_type_only(node->op) &&
            kiln_type_is_static(&value->type)) {
            KilnType plain = kiln_type_make(value->type.dtype, value->type.rank, value->type.dims);
            out->tensors[i] = out->zeros = kiln_tensor_new_splat(&plain, 0);
        }
        if (!out->tensors[i])
            return false;
    }
    return true;
}

static void
free_tensors(KilnTensor **tensors, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        g_clear_pointer(&tensors[i], kiln_tensor_free);
}

/* --- evaluating --- */

/* Operands of the element types that the node has (@widest false), or of the widest; what is so
 * already is shared. False where memory is short. */
static bool
convert_operands(const KilnNode *node, const KilnTensor *const *operands, bool widest,
                 KilnTensor **converted, GError **error)
{
    for (uint32_t i = 0; i < node->n_operands; i++) {
        if (!operands[i])
            continue;
        KilnDType dtype = node->operands[i].value->type.dtype;
        if (widest && !kiln_op_is_shape_operand(node->op, i))
            dtype = kiln_dtype_widest(dtype);
        converted[i] = operands[i]->type.dtype == dtype
                           ? kiln_tensor_copy(operands[i])
                           : kiln_tensor_convert(operands[i], dtype, error);
        if (!converted[i])
            return false;
    }
    return true;
}

static bool
run(KilnFoldWorker *worker, const KilnNode *node, KilnTensor *const *operands, bool infer,
    KilnTensor **results, GError **error)
{
    const KilnEvaluateOptions options = { .threads = worker->threads,
                                          .infer_types = infer,
                                          .recycler = kiln_constant_pool_recycler(worker->pool),
                                          .lowered = worker->lowered };
    return kiln_target_evaluate_with(worker->target, node, (const KilnTensor *const *)operands,
                                     &options, results, error);
}

/* In the widest element types, where kernels for them give results of the widest. */
static bool
run_wide(KilnFoldWorker *worker, const KilnNode *node, const KilnTensor *const *operands,
         KilnTensor **results, GError **error)
{
    g_autofree KilnTensor **wide = g_new0(KilnTensor *, node->n_operands + 1);
    bool good = convert_operands(node, operands, true, wide, error) &&
                run(worker, node, wide, true, results, error);
    free_tensors(wide, node->n_operands);
    for (uint32_t i = 0; good && i < node->n_results; i++)
        good = results[i]->type.dtype == kiln_dtype_widest(node->results[i].type.dtype);
    if (!good)
        free_tensors(results, node->n_results);
    return good;
}

static bool
run_strict(KilnFoldWorker *worker, const KilnNode *node, const KilnTensor *const *operands,
           bool infer, KilnTensor **results, GError **error)
{
    g_autofree KilnTensor **narrow = g_new0(KilnTensor *, node->n_operands + 1);
    bool good = convert_operands(node, operands, false, narrow, error) &&
                run(worker, node, narrow, infer, results, error);
    free_tensors(narrow, node->n_operands);
    return good;
}

static void
store_results(KilnFoldWorker *worker, const KilnNode *node, KilnTensor **results)
{
    for (uint32_t i = 0; i < node->n_results; i++) {
        KilnTensor *tensor = g_steal_pointer(&results[i]);
        /* What blocks are filled up with is stored: a splat has no more than the elements. */
        tensor = node->results[i].type.layout ? tensor : kiln_tensor_compact(tensor);
        worker->equal_found |= tensor->kind == KILN_TENSOR_SPLAT;
        kiln_constant_pool_store(worker->pool, &node->results[i], tensor);
    }
}

static KilnFoldOutcome
evaluate(KilnFoldWorker *worker, const KilnNode *node, const KilnTensor *const *operands)
{
    g_autofree KilnTensor **results = g_new0(KilnTensor *, node->n_results + 1);
    g_autoptr(GError) why = NULL;
    bool done = worker->wide && run_wide(worker, node, operands, results, NULL);
    if (!done && !run_strict(worker, node, operands, false, results, &why)) {
        if (!kiln_budget_check_time(&worker->failure))
            return KILN_FOLD_LACKS;
        /* What would take too long, or more memory than is left, stays for a run. */
        if (!g_error_matches(why, KILN_ERROR, KILN_ERROR_MEMORY))
            return KILN_FOLD_REFUSED;
        worker->failure = g_steal_pointer(&why);
        return KILN_FOLD_LACKS;
    }
    worker->ran = true;
    store_results(worker, node, results);
    for (uint32_t i = 0; i < node->n_operands; i++) {
        if (operands[i])
            kiln_tensor_drop_pages(operands[i]);
    }
    return KILN_FOLD_STORED;
}

/* --- results that take no storage --- */

/* One element of each operand, computed once, for equal elements. */
static bool
evaluate_element(KilnFoldWorker *worker, const KilnNode *node, const KilnTensor *const *operands,
                 uint8_t element[8], KilnDType *dtype)
{
    const int64_t ones[KILN_MAX_RANK] = { 1, 1, 1, 1, 1, 1, 1, 1 };
    g_autofree KilnTensor **single = g_new0(KilnTensor *, node->n_operands + 1);
    bool good = worker->target != NULL;
    for (uint32_t i = 0; good && i < node->n_operands; i++) {
        uint8_t bits[8];
        if (!operands[i])
            continue;
        KilnType type = kiln_type_make(operands[i]->type.dtype, operands[i]->type.rank, ones);
        good = kiln_tensor_is_splat(operands[i], 1, bits);
        single[i] = good ? kiln_tensor_new_splat_bits(&type, bits) : NULL;
    }
    KilnTensor *result = NULL;
    const KilnTensor *const *alone = (const KilnTensor *const *)single;
    good = good && ((worker->wide && run_wide(worker, node, alone, &result, NULL)) ||
                    run_strict(worker, node, alone, true, &result, NULL));
    good = good && kiln_tensor_is_splat(result, 1, element);
    worker->ran |= good;
    if (good)
        *dtype = result->type.dtype;
    kiln_tensor_free(result);
    free_tensors(single, node->n_operands);
    return good;
}

/* The element that all of @operands have. */
static bool
join_elements(const KilnTensor *const *operands, uint32_t n, uint8_t element[8], KilnDType *dtype)
{
    for (uint32_t i = 0; i < n; i++) {
        uint8_t other[8] = { 0 };
        if (!operands[i] || !kiln_tensor_is_splat(operands[i], 1, other) ||
            (i && memcmp(element, other, sizeof other) != 0))
            return false;
        memcpy(element, other, sizeof other);
    }
    *dtype = operands[0]->type.dtype;
    return true;
}

/* Where @node gives equal elements (the plan says so). */
static bool
store_splats(KilnFoldWorker *worker, const KilnNode *node, const KilnTensor *const *operands)
{
    uint8_t element[8] = { 0 };
    KilnDType dtype;
    if (node->op == KILN_OP_constant_of_shape) /* its rule needs no kernel */
        return false;
    if (kiln_op_has(node->op, KILN_TRAIT_REDUCES))
        return worker->target && evaluate(worker, node, operands) == KILN_FOLD_STORED;
    if (kiln_op_only_moves(node->op) || node->op == KILN_OP_concat) {
        uint32_t n = node->op == KILN_OP_concat ? node->n_operands : 1;
        if (!join_elements(operands, n, element, &dtype))
            return false;
    } else if (!evaluate_element(worker, node, operands, element, &dtype)) {
        return false;
    }
    for (uint32_t i = 0; i < node->n_results; i++) {
        const KilnType *type = &node->results[i].type;
        KilnType plain = kiln_type_make(dtype, type->rank, type->dims);
        kiln_constant_pool_store(worker->pool, &node->results[i],
                                 kiln_tensor_new_splat_bits(&plain, element));
    }
    return true;
}

/* What has a rule of its own. */
static bool
apply_rule(KilnFoldWorker *worker, const KilnNode *node)
{
    KilnConstantRuleFn rule = kiln_constant_rule(node->op);
    if (!rule || node->results[0].type.layout)
        return false;
    kiln_constant_pool_enter_rule(worker->pool);
    KilnRuleOutcome outcome = rule(worker->pool, node, &worker->failure);
    kiln_constant_pool_leave_rule(worker->pool);
    return outcome == KILN_RULE_STORES;
}

/* Its extents hang on data: a kernel cannot be asked for it alone. */
static bool
result_is_open(const KilnNode *node)
{
    for (uint32_t i = 0; i < node->n_results; i++) {
        if (kiln_type_bytes(&node->results[i].type) < 0)
            return true;
    }
    return false;
}

bool
kiln_fold_takes_kernel(const KilnFoldPlan *plan, const KilnNode *node)
{
    bool shares = kiln_op_has(node->op, KILN_TRAIT_VIEW) && kiln_constant_rule(node->op) &&
                  !node->results[0].type.layout;
    return !kiln_node_is_known(node) && !plan->nodes[node->id].splat && !shares &&
           !result_is_open(node);
}

static bool
store_known(KilnFoldWorker *worker, const KilnNode *node)
{
    if (!kiln_node_is_known(node))
        return false;
    for (uint32_t i = 0; i < node->n_results; i++)
        kiln_constant_pool_store(worker->pool, &node->results[i],
                                 kiln_value_known_tensor(&node->results[i]));
    return true;
}

static KilnFoldOutcome
compute_from_operands(KilnFoldWorker *worker, const KilnNode *node, bool may_run)
{
    g_auto(Operands) operands = { 0 };
    if (!find_operands(worker, node, &operands))
        return KILN_FOLD_LACKS;
    if (worker->plan->nodes[node->id].splat && store_splats(worker, node, operands.tensors))
        return KILN_FOLD_STORED;
    if (apply_rule(worker, node))
        return KILN_FOLD_STORED;
    if (worker->failure || !may_run || !worker->target || result_is_open(node))
        return KILN_FOLD_LACKS;
    return evaluate(worker, node, operands.tensors);
}

/* Shape inference knows integers as a run computes them. Where chains are computed in the widest
 * types, only those that decide a shape stay so. */
static bool
stays_known(const KilnFoldWorker *worker, const KilnNode *node)
{
    return !worker->wide || worker->plan->nodes[node->id].decides_shape;
}

KilnFoldOutcome
kiln_fold_compute(KilnFoldWorker *worker, const KilnNode *node, bool may_run)
{
    if (kiln_node_is_known(node) && stays_known(worker, node) && store_known(worker, node))
        return KILN_FOLD_STORED;
    KilnFoldOutcome outcome = compute_from_operands(worker, node, may_run);
    bool stored = outcome == KILN_FOLD_STORED || (!worker->failure && store_known(worker, node));
    return stored ? KILN_FOLD_STORED : outcome;
}
