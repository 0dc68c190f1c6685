/* SPDX-License-Identifier: Apache-2.0 */
/* Evaluating functions and modules node by node. */
#include "exec/eval.h"
#include "exec/eval_flow.h"

#include "graph/attr.h"
#include "graph/error.h"
#include "graph/function.h"
#include "graph/graph.h"
#include "graph/module.h"
#include "graph/module/folding.h"
#include "graph/node.h"
#include "graph/op.h"
#include "graph/op/flow.h"
#include "graph/op/offload.h"
#include "graph/op/structure.h"
#include "graph/tensor.h"
#include "graph/type.h"
#include "ir/target.h"

/* --- values --- */

const KilnTensor *
kiln_evaluation_tensor(const KilnEvaluation *evaluation, const KilnValue *value)
{
    return value ? g_hash_table_lookup(evaluation->values, value) : NULL;
}

void
kiln_evaluation_set(KilnEvaluation *evaluation, const KilnValue *value, KilnTensor *tensor)
{
    g_hash_table_remove(evaluation->reads, value); /* the reads of an earlier iteration */
    g_hash_table_insert(evaluation->values, (gpointer)value, tensor);
}

/* The function of @value is @at or around it, and no loop is between them. */
static bool
is_read_once(const KilnFunction *at, const KilnValue *value)
{
    const KilnFunction *home = kiln_value_function(value);
    while (at != home) {
        const KilnNode *owner = at->owner;
        if (!owner || owner->op == KILN_OP_loop || owner->op == KILN_OP_scan)
            return false;
        at = owner->function;
    }
    return true;
}

/* Code of @at has read @value for the last time. The tensor goes with the last reader. */
static void
release(KilnEvaluation *evaluation, const KilnFunction *at, KilnValue *value)
{
    if (!value || !is_read_once(at, value))
        return;
    gsize n = GPOINTER_TO_SIZE(g_hash_table_lookup(evaluation->reads, value)) + 1;
    g_hash_table_insert(evaluation->reads, value, GSIZE_TO_POINTER(n));
    if (n == value->n_uses)
        g_hash_table_remove(evaluation->values, value);
}

void
kiln_evaluation_release_operands(KilnEvaluation *evaluation, const KilnNode *node)
{
    for (uint32_t i = 0; i < node->n_operands; i++)
        release(evaluation, node->function, node->operands[i].value);
}

void
kiln_evaluation_release_region(KilnEvaluation *evaluation, const KilnFunction *at,
                               const KilnFunction *region)
{
    kiln_foreach_node (inner, region) {
        for (uint32_t i = 0; i < inner->n_operands; i++)
            release(evaluation, at, inner->operands[i].value);
        kiln_foreach_region (deeper, inner)
            kiln_evaluation_release_region(evaluation, at, deeper);
    }
}

/* @node is not evaluated: nothing reads its results. */
static void
pass_over(KilnEvaluation *evaluation, const KilnNode *node)
{
    kiln_evaluation_release_operands(evaluation, node);
    kiln_foreach_region (region, node)
        kiln_evaluation_release_region(evaluation, node->function, region);
}

/* --- nodes --- */

/* The body of the declaration. It runs apart, for equal regions share one. */
static const KilnFunction *
executable_body(const KilnNode *node, GError **error)
{
    const char *callee = kiln_attrs(node, vendor_executable)->callee;
    const KilnDeclaration *declaration =
        kiln_module_find_declaration(node->function->module, callee);
    if (declaration && declaration->body)
        return declaration->body;
    kiln_throw(error, KILN_ERROR_UNSUPPORTED, "%s: @%s has no body to run", kiln_node_label(node),
               callee);
    return NULL;
}

static gboolean
evaluate_node(KilnEvaluation *evaluation, const KilnNode *node, GError **error)
{
    if (kiln_op_has(node->op, KILN_TRAIT_REGION))
        return kiln_evaluation_flow(evaluation, node, error);
    const KilnEvaluateOptions options = { .lowered = evaluation->lowered };
    const bool executable = node->op == KILN_OP_vendor_executable;
    const KilnFunction *body = executable ? executable_body(node, error) : NULL;
    if (executable && !body)
        return FALSE;
    g_autofree const KilnTensor **operands = g_new0(const KilnTensor *, node->n_operands + 1);
    g_autofree KilnTensor **results = g_new0(KilnTensor *, node->n_results + 1);
    for (uint32_t i = 0; i < node->n_operands; i++)
        operands[i] = kiln_evaluation_tensor(evaluation, kiln_node_operand(node, i));
    if (body ? !kiln_graph_evaluate(body, evaluation->target, operands, results, error)
             : !kiln_target_evaluate_with(evaluation->target, node, operands, &options, results,
                                          error))
        return FALSE;
    for (uint32_t r = 0; r < node->n_results; r++)
        kiln_evaluation_set(evaluation, &node->results[r], results[r]);
    kiln_evaluation_release_operands(evaluation, node);
    return TRUE;
}

static gboolean
show_results(KilnEvaluation *evaluation, const KilnNode *node, GError **error)
{
    const KilnWatch *watch = evaluation->watch;
    for (uint32_t r = 0; r < node->n_results; r++) {
        KilnTensor *tensor = g_hash_table_lookup(evaluation->values, &node->results[r]);
        KilnTensor *shown = tensor;
        if (!watch->see(&node->results[r], &shown, watch->data, error))
            return FALSE;
        if (shown != tensor)
            kiln_evaluation_set(evaluation, &node->results[r], shown);
    }
    return TRUE;
}

gboolean
kiln_evaluation_nodes(KilnEvaluation *evaluation, const KilnFunction *function, GError **error)
{
    kiln_foreach_node (node, function) {
        if (node->op == KILN_OP_return)
            continue;
        if (kiln_node_is_dead(node)) {
            pass_over(evaluation, node);
            continue;
        }
        if (!evaluate_node(evaluation, node, error))
            return FALSE;
        if (evaluation->watch && !evaluation->hidden && !show_results(evaluation, node, error))
            return FALSE;
        for (uint32_t r = 0; r < node->n_results; r++) {
            if (node->results[r].n_uses == 0)
                g_hash_table_remove(evaluation->values, &node->results[r]);
        }
    }
    return TRUE;
}

gboolean
kiln_evaluation_check(const KilnValue *argument, const KilnTensor *tensor, GError **error)
{
    const KilnType *type = &argument->type, *found = &tensor->type;
    bool fits = type->rank < 0 || type->layout || type->rank == found->rank;
    for (int d = 0; fits && !type->layout && d < type->rank; d++)
        fits = type->dims[d] < 0 || type->dims[d] == found->dims[d];
    if (fits && type->dtype == found->dtype)
        return TRUE;
    g_autofree char *expected_text = kiln_type_to_string(type);
    g_autofree char *found_text = kiln_type_to_string(found);
    return kiln_throw(error, fits ? KILN_ERROR_TYPE : KILN_ERROR_SHAPE, "%s: expected %s, found %s",
                      argument->name, expected_text, found_text);
}

/* --- functions --- */

/* @outputs may be NULL: somebody has seen the values. */
static gboolean
evaluate_function(KilnEvaluation *evaluation, KilnTensor **outputs, GError **error)
{
    const KilnFunction *function = evaluation->function;
    const KilnTensor *const *inputs = evaluation->inputs;
    const KilnNode *results = kiln_function_return(function);
    if (!results)
        return kiln_throw(error, KILN_ERROR_INVALID, "@%s: it returns nothing", function->name);
    evaluation->reads = g_hash_table_new(NULL, NULL);
    evaluation->values = g_hash_table_new_full(NULL, NULL, NULL, (GDestroyNotify)kiln_tensor_free);
    gboolean good = TRUE;
    for (guint i = 0; good && i < function->arguments->len; i++) {
        const KilnValue *argument = &kiln_function_argument(function, i)->value;
        good = kiln_evaluation_check(argument, inputs[i], error);
        if (good)
            kiln_evaluation_set(evaluation, argument, kiln_tensor_copy(inputs[i]));
    }
    good = good && kiln_evaluation_nodes(evaluation, function, error);
    for (uint32_t i = 0; good && outputs && i < results->n_operands; i++)
        outputs[i] =
            kiln_tensor_copy(kiln_evaluation_tensor(evaluation, results->operands[i].value));
    g_hash_table_unref(evaluation->values);
    g_hash_table_unref(evaluation->reads);
    kiln_lowered_nodes_free(evaluation->lowered);
    return good;
}

gboolean
kiln_graph_evaluate(const KilnFunction *function, const KilnTarget *target,
                    const KilnTensor *const *inputs, KilnTensor **outputs, GError **error)
{
    return kiln_graph_watch(function, target, inputs, NULL, outputs, error);
}

gboolean
kiln_graph_watch(const KilnFunction *function, const KilnTarget *target,
                 const KilnTensor *const *inputs, const KilnWatch *watch, KilnTensor **outputs,
                 GError **error)
{
    KilnEvaluation evaluation = {
        .target = target, .function = function, .inputs = inputs, .watch = watch
    };
    return evaluate_function(&evaluation, outputs, error);
}

/* --- modules --- */

typedef struct {
    const KilnTarget *target;
    const KilnWatch *watch;
    KilnTensor **values; /* by number */
} ModuleEvaluation;

/* Evaluates @function on the values that @takes numbers. */
static gboolean
evaluate_call(const ModuleEvaluation *run, const KilnFunction *function, const uint32_t *takes,
              KilnTensor **outputs, GError **error)
{
    g_autofree const KilnTensor **inputs = g_new0(const KilnTensor *, function->arguments->len + 1);
    for (guint i = 0; i < function->arguments->len; i++)
        inputs[i] = run->values[takes[i]];
    return kiln_graph_watch(function, run->target, inputs, run->watch, outputs, error);
}

gboolean
kiln_module_watch(const KilnModule *module, const KilnTarget *target,
                  const KilnTensor *const *inputs, const KilnWatch *watch, KilnTensor **outputs,
                  GError **error)
{
    const KilnFolding *folding = module->folding;
    const KilnFunction *entry = kiln_module_entry(module);
    if (!folding)
        return kiln_graph_watch(entry, target, inputs, watch, outputs, error);
    uint32_t n = kiln_folding_n_values(folding);
    g_autofree KilnTensor **values = g_new0(KilnTensor *, n + 1);
    const ModuleEvaluation run = { target, watch, values };
    for (guint i = 0; i < folding->signature->len; i++)
        values[i] = kiln_tensor_copy(inputs[i]);
    gboolean good = TRUE;
    for (guint i = 0; good && i < folding->folds->len; i++) {
        const KilnFold *fold = g_ptr_array_index(folding->folds, i);
        good = evaluate_call(&run, kiln_module_find_function(module, fold->function),
                             fold->operands, values + fold->first_result, error);
    }
    good =
        good && evaluate_call(&run, entry, (const uint32_t *)folding->entry->data, outputs, error);
    for (uint32_t i = 0; i < n; i++)
        kiln_tensor_free(values[i]);
    return good;
}
