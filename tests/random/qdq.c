/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/random/qdq.h"

#include "backends/ref/ref.h"
#include "exec/eval.h"
#include "graph/base/number.h"
#include "graph/function.h"
#include "graph/module.h"
#include "graph/node.h"
#include "graph/op/quantize.h"
#include "kiln.h"
#include "passes/manager/results.h"
#include "passes/manager/ties.h"
#include "tests/random/given.h"

#include <math.h>

/* --- programs --- */

static KilnResults *
run(const Given *given, const char *pipeline, const char *target, bool offload, GError **error)
{
    g_autoptr(KilnPipeline) passes = kiln_pipeline_load(pipeline, error);
    g_autoptr(KilnModel) model = passes ? given_load(given->module, error) : NULL;
    return model ? given_run_under(given, WAY_INPUT, model, passes, target, offload, error) : NULL;
}

/* --- comparing --- */

typedef struct {
    uint64_t elements; /* that differ: integers at all, floats by more than class U allows */
    double steps;      /* how far they are apart in all: integers, or that much of floats */
} Distance;

/* @most: the largest magnitude that floats were added up to. */
static void
add_distance(const KilnTensor *a, const KilnTensor *b, double terms, double most, Distance *out)
{
    g_autoptr(GBytes) left = kiln_tensor_view(a, NULL), right = kiln_tensor_view(b, NULL);
    const KilnDType dtype = a->type.dtype;
    const bool is_float = kiln_dtype_is_float(dtype);
    const double bound = is_float ? terms * kiln_float_format(dtype)->epsilon * most : 0;
    for (int64_t i = 0; i < kiln_type_elements(&a->type); i++) {
        const double x = kiln_element_as_f64(dtype, g_bytes_get_data(left, NULL), i);
        const double y = kiln_element_as_f64(dtype, g_bytes_get_data(right, NULL), i);
        if (fabs(x - y) <= bound || (isnan(x) && isnan(y)))
            continue;
        out->elements++;
        out->steps += fabs(x - y) / MAX(is_float ? most / 255 : 1, 1e-30);
    }
}

/* A model, and what its reference meets on the way to each result. */
typedef struct {
    Subject *subject;
    GArray *most; /* double, per result */
} Model;

static Distance
distance(const Model *model, const KilnResults *a, const KilnResults *b)
{
    Distance out = { 0, 0 };
    for (guint i = 0; i < a->tensors->len; i++)
        add_distance(g_ptr_array_index(a->tensors, i),
                     kiln_results_find(b, g_ptr_array_index(a->names, i)), a->terms.terms,
                     g_array_index(model->most, double, i), &out);
    return out;
}

static gboolean
keep(const KilnValue *value, KilnTensor **io_tensor, void *data, GError **error)
{
    (void)error;
    g_hash_table_replace(data, (gpointer)value, kiln_tensor_copy(*io_tensor));
    return TRUE;
}

/* The largest magnitude among the floats from which @value is computed, back to what was stored:
 * where terms cancel, it is much larger than that of the result. */
static double
most_behind(GHashTable *tensors, const KilnValue *value)
{
    KilnTensor *tensor = g_hash_table_lookup(tensors, value);
    if (!tensor || !kiln_dtype_is_float(value->type.dtype))
        return 0;
    double most = kiln_real_make(value, NULL, tensor).most;
    const KilnNode *node = value->def;
    for (uint32_t i = 0; i < node->n_operands && node->op != KILN_OP_dequantize_linear; i++)
        most =
            MAX(most, node->operands[i].value ? most_behind(tensors, node->operands[i].value) : 0);
    return most;
}

static void
tensor_free(gpointer tensor)
{
    kiln_tensor_free(tensor);
}

static gboolean
measure(Model *model, GError **error)
{
    const KilnFunction *function = kiln_module_entry(model->subject->module);
    g_autoptr(GHashTable) tensors = g_hash_table_new_full(NULL, NULL, NULL, tensor_free);
    const KilnWatch watch = { .see = keep, .data = tensors };
    g_autoptr(KilnResults) results =
        kiln_results_watched(function, kiln_ref_target(), model->subject->inputs, &watch, error);
    const KilnNode *values = kiln_function_return(function);
    for (uint32_t i = 0; results && i < values->n_operands; i++) {
        const double most = most_behind(tensors, values->operands[i].value);
        g_array_append_val(model->most, most);
    }
    return results != NULL;
}

/* --- ties --- */

/* An element that is stored one higher or lower. */
typedef struct {
    const KilnValue *value;
    int64_t element;
    double real; /* in steps */
    int by;
} Tie;

typedef struct {
    GArray *flipped;             /* Tie: what is stored otherwise */
    GArray *found;               /* Tie: in the order of the graph; NULL: not looked for */
    GHashTable *reals;           /* KilnValue* → KilnTensor* */
    const KilnResults *observed; /* what a program stores, by observed_name(); NULL: not known */
} Search;

/* A scale or zero point of element @i of a value of @type: one for all, or one per channel of axis
 * 1. */
static double
parameter(const KilnValue *literal, const KilnType *type, int64_t i)
{
    const KilnTensor *tensor = kiln_value_constant(literal)->tensor;
    g_autoptr(GBytes) bytes = kiln_tensor_view(tensor, NULL);
    for (int d = type->rank - 1; d > 1; d--)
        i /= type->dims[d];
    i = kiln_type_elements(&tensor->type) == 1 ? 0 : i % type->dims[1];
    return kiln_element_as_f64(tensor->type.dtype, g_bytes_get_data(bytes, NULL), i);
}

/* Ties of what @value stores. */
static void
find_ties(Search *search, const KilnValue *value, const KilnTensor *stored)
{
    const KilnValue *real = kiln_real_quantized(value);
    KilnTensor *tensor = real ? g_hash_table_lookup(search->reals, real) : NULL;
    if (!tensor)
        return;
    g_autoptr(GBytes) bytes = kiln_tensor_view(tensor, NULL);
    g_autoptr(GBytes) data = kiln_tensor_view(stored, NULL);
    const KilnReal whole = kiln_real_make(real, NULL, tensor);
    const KilnType *type = &stored->type;
    const double least = type->dtype == KILN_DTYPE_i8 ? -128 : 0;
    for (int64_t i = 0; i < kiln_type_elements(type); i++) {
        const double scale = parameter(value->def->operands[1].value, type, i);
        const double zero = parameter(value->def->operands[2].value, type, i);
        const double was = kiln_element_as_f64(type->dtype, g_bytes_get_data(data, NULL), i);
        const double x =
            kiln_element_as_f64(tensor->type.dtype, g_bytes_get_data(bytes, NULL), i) / scale;
        const Tie tie = { value, i, x, x > was - zero ? 1 : -1 };
        const bool inside = was + tie.by >= least && was + tie.by <= least + 255;
        if (inside && kiln_is_tie(x, kiln_real_slack(&whole, scale)))
            g_array_append_val(search->found, tie);
    }
}

static KilnTensor *
with_flips(const Search *search, const KilnValue *value, KilnTensor *stored)
{
    g_autofree char *bytes = NULL;
    for (guint i = 0; i < search->flipped->len; i++) {
        const Tie *tie = &g_array_index(search->flipped, Tie, i);
        if (tie->value != value)
            continue;
        if (!bytes) {
            g_autoptr(GBytes) view = kiln_tensor_view(stored, NULL);
            bytes = g_memdup2(g_bytes_get_data(view, NULL), g_bytes_get_size(view));
        }
        double was = kiln_element_as_f64(stored->type.dtype, bytes, tie->element);
        kiln_element_store_f64(stored->type.dtype, bytes, tie->element, was + tie->by);
    }
    return bytes ? kiln_tensor_new_copy(&stored->type, bytes, NULL) : NULL;
}

/* Results beside those of the graph: what is stored. */
static char *
observed_name(const KilnValue *value)
{
    return g_strdup_printf("stored_%s", value->name);
}

/* What the program stored in place of what the reference does; each element that differs must be a
 * tie, from @first on among those found. */
static gboolean
take_observed(Search *search, const KilnValue *value, guint first, KilnTensor **io_tensor,
              GError **error)
{
    g_autofree char *name = observed_name(value);
    const KilnTensor *stored = kiln_results_find(search->observed, name);
    g_autoptr(GBytes) before = kiln_tensor_view(*io_tensor, error);
    g_autoptr(GBytes) after = before ? kiln_tensor_view(stored, error) : NULL;
    const KilnDType dtype = stored->type.dtype;
    guint at = first;
    for (int64_t i = 0; after && i < kiln_type_elements(&stored->type); i++) {
        const int64_t a = kiln_element_as_i64(dtype, g_bytes_get_data(before, NULL), i);
        const int64_t b = kiln_element_as_i64(dtype, g_bytes_get_data(after, NULL), i);
        if (a == b)
            continue;
        while (at < search->found->len && g_array_index(search->found, Tie, at).element < i)
            at++;
        const Tie *tie = at < search->found->len ? &g_array_index(search->found, Tie, at) : NULL;
        if (!tie || tie->element != i || tie->by != b - a)
            return kiln_throw(error, KILN_ERROR_MISMATCH,
                              "%s, element %" G_GINT64_FORMAT ": expected %" G_GINT64_FORMAT
                              ", found %" G_GINT64_FORMAT ", which is no tie",
                              value->name, i, a, b);
        g_array_append_val(search->flipped, *tie);
    }
    *io_tensor = kiln_tensor_copy(stored);
    return after != NULL;
}

static gboolean
see(const KilnValue *value, KilnTensor **io_tensor, void *data, GError **error)
{
    Search *search = data;
    const guint n_ties = search->found ? search->found->len : 0;
    if (kiln_dtype_is_float(value->type.dtype) && search->found)
        g_hash_table_replace(search->reals, (gpointer)value, kiln_tensor_copy(*io_tensor));
    if (value->def->op != KILN_OP_quantize_linear)
        return TRUE;
    if (search->found)
        find_ties(search, value, *io_tensor);
    if (search->observed)
        return take_observed(search, value, n_ties, io_tensor, error);
    KilnTensor *otherwise = with_flips(search, value, *io_tensor);
    if (otherwise)
        *io_tensor = otherwise;
    return TRUE;
}

/* How far results are from @found where these ties are rounded the other way, and the ties that
 * there are then. */
static gboolean
try(const Model *model, const KilnResults *found, GArray *flipped, GArray *ties, Distance *out,
    GError **error)
{
    g_autoptr(GHashTable) reals = g_hash_table_new_full(NULL, NULL, NULL, tensor_free);
    Search search = { flipped, ties, reals, NULL };
    const KilnWatch watch = { .see = see, .data = &search };
    g_autoptr(KilnResults) results =
        kiln_results_watched(kiln_module_entry(model->subject->module), kiln_ref_target(),
                             model->subject->inputs, &watch, error);
    *out = results ? distance(model, results, found) : (Distance){ 0, 0 };
    return results != NULL;
}

/* The tie at @at, and where @alike all those of one value that lie at the same number: what rounds
 * one of them otherwise does so with all. */
static void
flip(GArray *flipped, const GArray *ties, guint at, bool alike)
{
    const Tie *one = &g_array_index(ties, Tie, at);
    for (guint i = at; i < (alike ? ties->len : at + 1); i++) {
        const Tie *tie = &g_array_index(ties, Tie, i);
        if (tie->value == one->value && tie->real == one->real && tie->by == one->by)
            g_array_append_val(flipped, *tie);
    }
}

/* The first tie from @from on that brings results together when it is rounded the other way; its
 * place, or that behind the last. */
static gboolean
flip_one(const Model *model, const KilnResults *found, GArray *flipped, const GArray *ties,
         guint *io_from, Distance *io_left, GError **error)
{
    for (; *io_from < ties->len; (*io_from)++) {
        for (int alike = 1; alike >= 0; alike--) {
            Distance left;
            const guint before = flipped->len;
            flip(flipped, ties, *io_from, alike);
            if (!try(model, found, flipped, NULL, &left, error))
                return FALSE;
            if (left.steps < io_left->steps) {
                *io_left = left;
                return TRUE;
            }
            g_array_set_size(flipped, before);
        }
    }
    return TRUE;
}

/* What the same pipeline stores where all that is stored is a result, too: judged one by one, on
 * what it stored before. */
static gboolean
observe(const Model *model, bool offload, GArray *flipped, GError **error)
{
    const Subject *subject = model->subject;
    g_autoptr(KilnModule) module = kiln_module_clone(subject->module);
    KilnFunction *function = kiln_module_entry(module);
    const KilnNode *results = kiln_function_return(function);
    g_autoptr(GPtrArray) values = g_ptr_array_new();
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    for (uint32_t i = 0; i < results->n_operands; i++) {
        g_ptr_array_add(values, results->operands[i].value);
        g_ptr_array_add(names, g_strdup(g_ptr_array_index(function->result_names, i)));
    }
    kiln_foreach_node (node, function) {
        if (node->op != KILN_OP_quantize_linear)
            continue;
        g_ptr_array_add(values, &node->results[0]);
        g_ptr_array_add(names, observed_name(&node->results[0]));
    }
    if (!kiln_function_set_results(function, (KilnValue *const *)values->pdata,
                                   (const char *const *)names->pdata, values->len, error))
        return FALSE;
    const Subject seen = { .module = module, .inputs = subject->inputs };
    g_auto(Given) given = { 0 };
    given_init(&given, &seen, 0, false);
    g_autoptr(KilnResults) observed = run(&given, "default", "cpu", offload, error);
    g_autoptr(GHashTable) reals = g_hash_table_new_full(NULL, NULL, NULL, tensor_free);
    g_autoptr(GArray) ties = g_array_new(FALSE, FALSE, sizeof(Tie));
    Search search = { flipped, ties, reals, observed };
    const KilnWatch watch = { .see = see, .data = &search };
    g_autoptr(KilnResults) expected =
        observed ? kiln_results_watched(kiln_module_entry(subject->module), kiln_ref_target(),
                                        subject->inputs, &watch, error)
                 : NULL;
    if (!expected)
        return FALSE;
    const uint64_t left = distance(model, expected, observed).elements;
    return left == 0 ||
           kiln_throw(error, KILN_ERROR_MISMATCH,
                      "%" G_GUINT64_FORMAT " elements differ behind all that is stored", left);
}

/* Rounds ties the other way until @found comes out, those first that were observed; how many, in
 * @out. */
static gboolean
explain(const Model *model, const KilnResults *found, bool offload, uint64_t *out, GError **error)
{
    g_autoptr(GArray) flipped = g_array_new(FALSE, FALSE, sizeof(Tie));
    Distance left;
    if (!observe(model, offload, flipped, error))
        return FALSE;
    for (guint from = 0;; from++) {
        g_autoptr(GArray) ties = g_array_new(FALSE, FALSE, sizeof(Tie));
        if (!try(model, found, flipped, ties, &left, error))
            return FALSE;
        *out = flipped->len;
        if (left.elements == 0)
            return TRUE;
        if (!flip_one(model, found, flipped, ties, &from, &left, error))
            return FALSE;
        if (flipped->len == *out)
            return kiln_throw(error, KILN_ERROR_MISMATCH,
                              "%" G_GUINT64_FORMAT " elements differ by more than ties (%u ties, "
                              "%" G_GUINT64_FORMAT " rounded the other way)",
                              left.elements, ties->len, *out);
    }
}

/* --- the property --- */

gboolean
qdq_agrees(Subject *subject, QdqSeen *seen, bool *fired, GError **error)
{
    QdqSeen nobody = { 0 };
    g_auto(Given) given = { 0 };
    given_init(&given, subject, 0, false);
    seen = seen ? seen : &nobody;
    seen->graphs++;
    g_autoptr(KilnResults) expected = run(&given, "none", "ref", false, error);
    if (!expected)
        return FALSE;
    expected->terms = subject->expected->terms;
    g_autoptr(GArray) most = g_array_new(FALSE, FALSE, sizeof(double));
    Model model = { subject, most };
    if (!measure(&model, error))
        return FALSE;
    if (distance(&model, expected, subject->expected).elements)
        return kiln_throw(error, KILN_ERROR_MISMATCH, "a program of the reference differs from it");
    for (int offload = 0; offload < 2; offload++) {
        g_autoptr(KilnResults) found = run(&given, "default", "cpu", offload, error);
        if (!found)
            return FALSE;
        uint64_t different = distance(&model, expected, found).elements, ties = 0;
        for (guint i = 0; i < found->tensors->len; i++)
            seen->elements += (uint64_t)kiln_type_elements(
                &((const KilnTensor *)g_ptr_array_index(found->tensors, i))->type);
        seen->different += different;
        if (!different)
            continue;
        *fired = true;
        seen->touched++;
        if (!explain(&model, found, offload, &ties, error)) {
            g_prefix_error(error, "default%s: ", offload ? "" : " without the vendor");
            return FALSE;
        }
        seen->ties += ties;
    }
    return TRUE;
}
