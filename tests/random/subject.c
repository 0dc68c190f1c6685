/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/random/subject.h"

#include "backends/ref/ref.h"
#include "graph/base/number.h"
#include "graph/module.h"
#include "passes/manager/numerics.h"

#include <math.h>

gboolean
subject_init(Subject *subject, const KilnModule *module, GError **error)
{
    *subject = (Subject){ .module = module, .most = -1 };
    if (!kiln_module_verify(module, error))
        return FALSE;
    const KilnFunction *function = kiln_module_entry(module);
    subject->inputs = kiln_random_inputs(function, NULL, 1, error);
    subject->expected = subject->inputs
                            ? kiln_results_on(function, kiln_ref_target(), subject->inputs, error)
                            : NULL;
    return subject->expected != NULL;
}

void
subject_clear(Subject *subject)
{
    g_clear_pointer(&subject->expected, kiln_results_free);
    g_clear_pointer(&subject->inputs, g_ptr_array_unref);
}

static double
largest(const KilnTensor *tensor)
{
    double most = 0;
    g_autoptr(GBytes) bytes = kiln_tensor_view(tensor, NULL);
    for (int64_t i = 0; bytes && i < kiln_type_elements(&tensor->type); i++) {
        double x = fabs(kiln_element_as_f64(tensor->type.dtype, g_bytes_get_data(bytes, NULL), i));
        most = x <= most ? most : isfinite(x) ? x : INFINITY;
    }
    return most;
}

double
subject_largest(Subject *subject)
{
    if (subject->most >= 0)
        return subject->most;
    subject->most = INFINITY;
    g_autoptr(KilnModule) clone = kiln_module_clone(subject->module);
    KilnFunction *function = kiln_module_entry(clone);
    g_autoptr(GPtrArray) values = g_ptr_array_new();
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    for (guint i = 0; i < function->arguments->len; i++)
        g_ptr_array_add(values, &kiln_function_argument(function, i)->value);
    kiln_foreach_node (node, function) {
        for (uint32_t r = 0; r < node->n_results; r++)
            g_ptr_array_add(values, &node->results[r]);
    }
    for (guint i = 0; i < values->len; i++)
        g_ptr_array_add(names, g_strdup_printf("value %u", i));
    if (!kiln_function_set_results(function, (KilnValue *const *)values->pdata,
                                   (const char *const *)names->pdata, values->len, NULL))
        return subject->most;
    g_autoptr(KilnResults) results =
        kiln_results_on(function, kiln_ref_target(), subject->inputs, NULL);
    double most = 0;
    for (guint i = 0; results && i < results->tensors->len; i++)
        most = MAX(most, largest(g_ptr_array_index(results->tensors, i)));
    return subject->most = results ? most : INFINITY;
}

gboolean
subject_compare(Subject *subject, const KilnResults *after, KilnNumerics numerics, GError **error)
{
    const KilnResults *before = subject->expected;
    if (numerics == KILN_NUMERICS_E)
        return kiln_results_compare(before, after, numerics, error);
    double most = subject_largest(subject);
    /* Sums may overflow on the way in one order and not in another. */
    if (!(most * before->terms.terms < FLT_MAX) ||
        (numerics >= KILN_NUMERICS_QT && before->terms.step > 0))
        numerics = KILN_NUMERICS_L;
    for (guint i = 0; i < before->tensors->len; i++) {
        const char *name = g_ptr_array_index(before->names, i);
        const KilnTensor *a = g_ptr_array_index(before->tensors, i);
        const KilnTensor *b = kiln_results_find(after, name);
        if (!b)
            return kiln_throw(error, KILN_ERROR_MISMATCH, "%s is gone", name);
        double own = MAX(largest(a), largest(b));
        KilnErrorTerms terms = kiln_error_terms_join(&before->terms, &after->terms);
        terms.terms *= own > 0 && isfinite(own) ? most / own : 1;
        if (!kiln_compare_numerics(a, b, numerics, &terms, error)) {
            g_prefix_error(error, "%s: ", name);
            return FALSE;
        }
    }
    return TRUE;
}
