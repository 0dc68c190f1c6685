/* SPDX-License-Identifier: Apache-2.0 */
/* Running functions on random inputs. */
#include "passes/manager/results.h"

#include "exec/eval.h"
#include "exec/interpret.h"
#include "exec/random_input.h"
#include "graph/arena.h"
#include "graph/binding.h"
#include "graph/module/folding.h"

#include <string.h>

enum {
    SEED = 1
};

static void
tensor_free(gpointer tensor)
{
    kiln_tensor_free(tensor);
}

KilnResults *
kiln_results_new(KilnErrorTerms terms)
{
    KilnResults *results = g_new0(KilnResults, 1);
    results->names = g_ptr_array_new_with_free_func(g_free);
    results->tensors = g_ptr_array_new_with_free_func(tensor_free);
    results->terms = terms;
    return results;
}

void
kiln_results_free(KilnResults *results)
{
    if (!results)
        return;
    g_ptr_array_unref(results->names);
    g_ptr_array_unref(results->tensors);
    g_free(results);
}

void
kiln_results_add(KilnResults *results, const char *name, KilnTensor *tensor)
{
    g_ptr_array_add(results->names, g_strdup(name));
    g_ptr_array_add(results->tensors, tensor);
}

/* --- graphs --- */

/* Then what it computes of the model's inputs is compared, not what it does with folded tensors. */
static bool
is_folded_entry(const KilnFunction *function)
{
    return function->module->folding && function == kiln_module_entry(function->module);
}

GPtrArray *
kiln_random_inputs(const KilnFunction *function, const KilnDimBinding *binding, uint64_t seed,
                   GError **error)
{
    g_autoptr(GPtrArray) inputs = g_ptr_array_new_with_free_func(tensor_free);
    bool whole = is_folded_entry(function);
    const GPtrArray *arguments = whole ? kiln_module_inputs(function->module) : function->arguments;
    for (guint i = 0; i < arguments->len; i++) {
        const KilnArgument *argument = g_ptr_array_index(arguments, i);
        KilnType type = kiln_random_type(&argument->value.type, binding);
        KilnDomain domain = whole ? kiln_module_input_domain(function->module, i, binding)
                                  : kiln_argument_domain(argument, binding);
        KilnTensor *tensor = kiln_random_tensor(&type, &domain, argument->value.name, seed, error);
        if (!tensor)
            return NULL;
        g_ptr_array_add(inputs, tensor);
    }
    return g_steal_pointer(&inputs);
}

KilnDimBinding
kiln_results_numbers(KilnArena *arena, const KilnFunction *function, const GPtrArray *inputs)
{
    bool whole = is_folded_entry(function);
    const GPtrArray *arguments = whole ? kiln_module_inputs(function->module) : function->arguments;
    KilnDimBinding numbers = { 0, kiln_arena_new0(arena, KilnBoundName,
                                                  (size_t)inputs->len * KILN_MAX_RANK + 1) };
    for (guint i = 0; i < inputs->len; i++) {
        const KilnType *type = &((const KilnArgument *)g_ptr_array_index(arguments, i))->value.type;
        const KilnTensor *tensor = g_ptr_array_index(inputs, i);
        for (int d = 0; d < type->rank && d < tensor->type.rank; d++) {
            const char *name = kiln_type_dim_name(type, d);
            if (name)
                numbers.names[numbers.n++] = (KilnBoundName){ name, tensor->type.dims[d] };
        }
    }
    return numbers;
}

static KilnResults *
watched_on(const KilnFunction *function, const KilnTarget *target, const GPtrArray *inputs,
           const KilnWatch *watch, GError **error)
{
    guint n = function->result_names->len;
    g_autofree KilnTensor **outputs = g_new0(KilnTensor *, n + 1);
    const KilnTensor *const *tensors = (const KilnTensor *const *)inputs->pdata;
    if (!(is_folded_entry(function)
              ? kiln_module_watch(function->module, target, tensors, watch, outputs, error)
              : kiln_graph_watch(function, target, tensors, watch, outputs, error)))
        return NULL;
    g_autoptr(KilnArena) arena = kiln_arena_new();
    const KilnDimBinding numbers = kiln_results_numbers(arena, function, inputs);
    KilnResults *results = kiln_results_new(kiln_error_terms(function, &numbers));
    for (guint i = 0; i < n; i++)
        kiln_results_add(results, g_ptr_array_index(function->result_names, i), outputs[i]);
    return results;
}

KilnResults *
kiln_results_on(const KilnFunction *function, const KilnTarget *target, const GPtrArray *inputs,
                GError **error)
{
    return watched_on(function, target, inputs, NULL, error);
}

KilnResults *
kiln_results_watched(const KilnFunction *function, const KilnTarget *target,
                     const GPtrArray *inputs, const KilnWatch *watch, GError **error)
{
    g_autoptr(GPtrArray) seeded = inputs ? NULL : kiln_random_inputs(function, NULL, SEED, error);
    inputs = inputs ? inputs : seeded;
    return inputs ? watched_on(function, target, inputs, watch, error) : NULL;
}

KilnResults *
kiln_results_of_graph(const KilnFunction *function, const KilnTarget *target,
                      const KilnDimBinding *binding, GError **error)
{
    g_autoptr(GPtrArray) inputs = kiln_random_inputs(function, binding, SEED, error);
    return inputs ? kiln_results_on(function, target, inputs, error) : NULL;
}

/* --- IR --- */

GPtrArray *
kiln_ir_random_inputs(const KilnIRFunction *function, uint64_t seed, GError **error)
{
    g_autoptr(GPtrArray) inputs = g_ptr_array_new_with_free_func(tensor_free);
    for (guint i = 0; i < function->inputs->len; i++) {
        const KilnBuffer *input = g_ptr_array_index(function->inputs, i);
        KilnDomain domain = kiln_ir_input_domain(input);
        KilnTensor *tensor = kiln_random_tensor(&input->type, &domain, input->name, seed, error);
        if (!tensor)
            return NULL;
        g_ptr_array_add(inputs, tensor);
    }
    return g_steal_pointer(&inputs);
}

KilnResults *
kiln_results_of_ir(const KilnIRFunction *function, const KilnTarget *target, bool planned,
                   GError **error)
{
    g_autoptr(GPtrArray) inputs = kiln_ir_random_inputs(function, SEED, error);
    return inputs ? kiln_ir_results_on(function, target, inputs, planned, error) : NULL;
}

/* As the graph names it, where there is one: no two buffers have one name, but a result may have
 * that of an argument. */
static const char *
result_name(const KilnIRFunction *function, guint i)
{
    const KilnFunction *graph = kiln_module_find_function(function->module, function->name);
    if (graph && graph->result_names->len == function->outputs->len)
        return g_ptr_array_index(graph->result_names, i);
    return ((const KilnBuffer *)g_ptr_array_index(function->outputs, i))->name;
}

KilnResults *
kiln_ir_results_on(const KilnIRFunction *function, const KilnTarget *target,
                   const GPtrArray *inputs, bool planned, GError **error)
{
    g_autofree KilnTensor **outputs = g_new0(KilnTensor *, function->outputs->len + 1);
    g_autofree KilnTensor **weights = g_new0(KilnTensor *, function->weights->len + 1);
    KilnInterpretation run = { .evaluate = kiln_graph_evaluate,
                               .inputs = (const KilnTensor *const *)inputs->pdata,
                               .outputs = outputs,
                               .weights = weights,
                               .poison = true,
                               .planned = planned };
    if (!kiln_ir_interpret(function, target, &run, error))
        return NULL;
    KilnResults *results = kiln_results_new(kiln_ir_error_terms(function));
    for (guint i = 0; i < function->outputs->len; i++)
        kiln_results_add(results, result_name(function, i), outputs[i]);
    for (guint i = 0; i < function->weights->len; i++) {
        const KilnBuffer *buffer = g_ptr_array_index(function->weights, i);
        g_autofree char *name = g_strconcat("weight ", buffer->name, NULL);
        if (weights[i])
            kiln_results_add(results, name, weights[i]);
    }
    return results;
}

/* --- comparing --- */

const KilnTensor *
kiln_results_find(const KilnResults *results, const char *name)
{
    for (guint i = 0; i < results->names->len; i++) {
        if (strcmp(g_ptr_array_index(results->names, i), name) == 0)
            return g_ptr_array_index(results->tensors, i);
    }
    return NULL;
}

gboolean
kiln_results_compare(const KilnResults *before, const KilnResults *after, KilnNumerics numerics,
                     GError **error)
{
    KilnErrorTerms terms = kiln_error_terms_join(&before->terms, &after->terms);
    for (guint i = 0; i < before->names->len; i++) {
        const char *name = g_ptr_array_index(before->names, i);
        const KilnTensor *found = kiln_results_find(after, name);
        if (!found && g_str_has_prefix(name, "weight "))
            continue;
        if (!found)
            return kiln_throw(error, KILN_ERROR_MISMATCH, "result %s is gone", name);
        if (!kiln_compare_numerics(g_ptr_array_index(before->tensors, i), found, numerics, &terms,
                                   error)) {
            kiln_prefix_error(error, "result %s: ", name);
            return FALSE;
        }
    }
    return TRUE;
}
