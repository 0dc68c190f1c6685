/* SPDX-License-Identifier: Apache-2.0 */
/* Executing golden cases on the reference backend, and comparing what came out. */
#include "tests/golden/golden.h"

#include "backends/ref/ref.h"
#include "ir/interpret.h"
#include "ir/random_input.h"
#include "passes/numerics.h"

#include <string.h>

enum {
    SEED = 1
};

static void
tensor_free(gpointer tensor)
{
    kiln_tensor_free(tensor);
}

static void
results_free(gpointer data)
{
    GoldenResults *results = data;
    g_free(results->function);
    g_ptr_array_unref(results->names);
    g_ptr_array_unref(results->tensors);
    g_free(results);
}

static GoldenResults *
results_new(const char *function, KilnErrorTerms terms)
{
    GoldenResults *results = g_new0(GoldenResults, 1);
    results->function = g_strdup(function);
    results->names = g_ptr_array_new_with_free_func(g_free);
    results->tensors = g_ptr_array_new_with_free_func(tensor_free);
    results->terms = terms.terms;
    results->step = terms.step;
    return results;
}

static void
add_result(GoldenResults *results, const char *name, KilnTensor *tensor)
{
    g_ptr_array_add(results->names, g_strdup(name));
    g_ptr_array_add(results->tensors, tensor);
}

/* --- graphs --- */

/* "N=3, M=2" */
static int64_t
dim_named(const char *dims, const char *name)
{
    g_auto(GStrv) parts = g_strsplit(dims ? dims : "", ",", -1);
    for (int i = 0; parts[i]; i++) {
        char *value = strchr(parts[i], '=');
        if (!value)
            continue;
        *value++ = '\0';
        if (strcmp(g_strstrip(parts[i]), name) == 0)
            return g_ascii_strtoll(value, NULL, 10);
    }
    return kiln_random_dim(name);
}

static KilnType
bind_dims(const KilnType *type, const char *dims)
{
    KilnType bound = *type;
    for (int i = 0; i < type->rank; i++) {
        if (type->dims[i] < 0 && type->dim_names[i])
            bound.dims[i] = dim_named(dims, type->dim_names[i]);
    }
    return kiln_random_type(&bound);
}

static gboolean
run_graph(const KilnFunction *function, const char *dims, GPtrArray *out, GError **error)
{
    g_autoptr(GPtrArray) inputs = g_ptr_array_new_with_free_func(tensor_free);
    for (guint i = 0; i < function->arguments->len; i++) {
        const KilnArgument *argument = kiln_function_argument(function, i);
        KilnType type = bind_dims(&argument->value.type, dims);
        KilnDomain domain = kiln_argument_domain(argument);
        KilnTensor *tensor = kiln_random_tensor(&type, &domain, argument->value.name, SEED, error);
        if (!tensor)
            return FALSE;
        g_ptr_array_add(inputs, tensor);
    }
    guint n = function->result_names->len;
    g_autofree KilnTensor **outputs = g_new0(KilnTensor *, n + 1);
    if (!kiln_graph_evaluate(function, kiln_ref_target(), (const KilnTensor *const *)inputs->pdata,
                             outputs, error))
        return FALSE;
    GoldenResults *results = results_new(function->name, kiln_error_terms(function));
    for (guint i = 0; i < n; i++)
        add_result(results, g_ptr_array_index(function->result_names, i), outputs[i]);
    g_ptr_array_add(out, results);
    return TRUE;
}

/* --- IR --- */

static gboolean
run_ir(KilnIRFunction *function, bool planned, GPtrArray *out, GError **error)
{
    g_autoptr(GPtrArray) inputs = g_ptr_array_new_with_free_func(tensor_free);
    for (guint i = 0; i < function->inputs->len; i++) {
        const KilnBuffer *input = g_ptr_array_index(function->inputs, i);
        KilnDomain domain = kiln_ir_input_domain(input);
        KilnTensor *tensor = kiln_random_tensor(&input->type, &domain, input->name, SEED, error);
        if (!tensor)
            return FALSE;
        g_ptr_array_add(inputs, tensor);
    }
    if (planned) {
        g_autoptr(KilnMemoryPlan) plan = kiln_memory_plan(function, kiln_ref_target(), 1, error);
        if (!plan)
            return FALSE;
    }
    g_autofree KilnTensor **outputs = g_new0(KilnTensor *, function->outputs->len + 1);
    g_autofree KilnTensor **weights = g_new0(KilnTensor *, function->weights->len + 1);
    KilnInterpretation run = { .inputs = (const KilnTensor *const *)inputs->pdata,
                               .outputs = outputs,
                               .weights = weights,
                               .poison = true,
                               .planned = planned };
    if (!kiln_ir_interpret(function, kiln_ref_target(), &run, error))
        return FALSE;
    GoldenResults *results = results_new(function->name, kiln_ir_error_terms(function));
    for (guint i = 0; i < function->outputs->len; i++) {
        const KilnBuffer *buffer = g_ptr_array_index(function->outputs, i);
        add_result(results, buffer->name, outputs[i]);
    }
    for (guint i = 0; i < function->weights->len; i++) {
        const KilnBuffer *buffer = g_ptr_array_index(function->weights, i);
        if (weights[i])
            add_result(results, buffer->name, weights[i]);
    }
    g_ptr_array_add(out, results);
    return TRUE;
}

GPtrArray *
golden_execute(KilnIRModule *ir, const char *dims, bool planned, GError **error)
{
    g_autoptr(GPtrArray) out = g_ptr_array_new_with_free_func(results_free);
    for (guint i = 0; i < ir->module->functions->len; i++) {
        if (!run_graph(g_ptr_array_index(ir->module->functions, i), dims, out, error))
            return NULL;
    }
    for (guint i = 0; i < ir->functions->len; i++) {
        if (!run_ir(g_ptr_array_index(ir->functions, i), planned, out, error))
            return NULL;
    }
    return g_steal_pointer(&out);
}

/* --- comparing --- */

static const KilnTensor *
result_named(const GoldenResults *results, const char *name)
{
    for (guint i = 0; i < results->names->len; i++) {
        if (strcmp(g_ptr_array_index(results->names, i), name) == 0)
            return g_ptr_array_index(results->tensors, i);
    }
    return NULL;
}

static gboolean
compare_results(const GoldenResults *before, const GoldenResults *after, KilnNumerics numerics,
                GError **error)
{
    KilnErrorTerms terms = { MAX(before->terms, after->terms), MAX(before->step, after->step) };
    for (guint i = 0; i < before->names->len; i++) {
        const char *name = g_ptr_array_index(before->names, i);
        const KilnTensor *expected = g_ptr_array_index(before->tensors, i);
        const KilnTensor *found = result_named(after, name);
        /* A weight that became const is no longer reported: it has not changed. */
        if (!found)
            continue;
        if (!kiln_compare_numerics(expected, found, numerics, &terms, error)) {
            g_prefix_error(error, "result %s of @%s: ", name, before->function);
            return FALSE;
        }
    }
    return TRUE;
}

gboolean
golden_compare(const GPtrArray *before, const GPtrArray *after, KilnNumerics numerics,
               GError **error)
{
    for (guint i = 0; i < before->len; i++) {
        const GoldenResults *expected = g_ptr_array_index(before, i), *found = NULL;
        for (guint k = 0; k < after->len && !found; k++) {
            const GoldenResults *candidate = g_ptr_array_index(after, k);
            found = strcmp(candidate->function, expected->function) == 0 ? candidate : NULL;
        }
        if (!found)
            return kiln_throw(error, KILN_ERROR_MISMATCH, "function @%s is gone",
                              expected->function);
        if (!compare_results(expected, found, numerics, error))
            return FALSE;
    }
    return TRUE;
}
