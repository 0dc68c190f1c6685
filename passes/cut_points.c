/* SPDX-License-Identifier: Apache-2.0 */
#include "passes/cut_points.h"

#include "graph/number.h"
#include "passes/quant_range.h"

#include <math.h>

/* --- ties --- */

/* What a quantize_linear reads. */
typedef struct {
    KilnTensor *tensor; /* NULL where it is not known */
    double terms;       /* roundings in one element of it */
} Real;

static double
largest(const KilnTensor *tensor, const void *data)
{
    double most = 0;
    for (int64_t i = 0; i < kiln_type_elements(&tensor->type); i++) {
        double x = fabs(kiln_element_as_f64(tensor->type.dtype, data, i));
        most = isfinite(x) ? MAX(most, x) : most;
    }
    return most;
}

/* The grid of element @i of a tensor of @type. */
static KilnGrid
grid_at(const KilnType *type, int64_t i)
{
    const int axis = type->quant->axis;
    if (axis < 0)
        return kiln_quant_grid(type, 0);
    for (int d = type->rank - 1; d > axis; d--)
        i /= type->dims[d];
    return kiln_quant_grid(type, (uint32_t)(i % type->dims[axis]));
}

/* The stored number nearest to @real may be the one above or the one below, when @real is off by
 * @slack. */
static bool
is_tie(const KilnGrid *grid, double real, double slack)
{
    double steps = real / (double)grid->scale;
    double beside = fabs(steps - floor(steps) - 0.5);
    return beside <= slack / (double)grid->scale + 0x1p-22 * fabs(steps);
}

/* @is with the elements of @was where they are a step apart and @real is at a tie. NULL where there
 * is nothing to tell ties by. */
static KilnTensor *
without_ties(const KilnTensor *was, const KilnTensor *is, const KilnQuant *quant, const Real *real)
{
    KilnType type = is->type;
    type.quant = quant;
    if (!real->tensor || !quant || !kiln_quant_is_regular(&type) ||
        !kiln_type_same_shape(&type, &real->tensor->type) ||
        !kiln_type_same_shape(&type, &was->type) || was->type.dtype != type.dtype)
        return NULL;
    g_autoptr(GBytes) before = kiln_tensor_view(was, NULL), after = kiln_tensor_view(is, NULL);
    g_autoptr(GBytes) reals = kiln_tensor_view(real->tensor, NULL);
    if (!before || !after || !reals)
        return NULL;
    const void *data = g_bytes_get_data(reals, NULL);
    const KilnDType dtype = real->tensor->type.dtype;
    const double slack =
        real->terms * kiln_float_format(dtype)->epsilon * largest(real->tensor, data);
    gsize size;
    const void *found = g_bytes_get_data(after, &size);
    g_autofree char *bytes = g_memdup2(found, size);
    for (int64_t i = 0; i < kiln_type_elements(&type); i++) {
        const int64_t a = kiln_element_as_i64(type.dtype, g_bytes_get_data(before, NULL), i);
        const int64_t b = kiln_element_as_i64(type.dtype, found, i);
        const KilnGrid grid = grid_at(&type, i);
        if (ABS(a - b) == 1 && is_tie(&grid, kiln_element_as_f64(dtype, data, i), slack))
            kiln_element_store_f64(type.dtype, bytes, i, (double)a);
    }
    return kiln_tensor_new_copy(&is->type, bytes, NULL);
}

/* --- recording --- */

typedef struct {
    KilnTensor *tensor;
    double step; /* of quantized data that it was computed of */
    Real real;
} Value;

static void
value_free(gpointer data)
{
    Value *value = data;
    kiln_tensor_free(value->tensor);
    kiln_tensor_free(value->real.tensor);
    g_free(value);
}

KilnRecord *
kiln_record_new(KilnResults *results)
{
    KilnRecord *record = g_new0(KilnRecord, 1);
    record->results = results;
    record->roundings = 1;
    record->values = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, value_free);
    return record;
}

void
kiln_record_free(KilnRecord *record)
{
    if (!record)
        return;
    kiln_results_free(record->results);
    g_hash_table_unref(record->values);
    g_free(record);
}

/* Where @value stands, what it is called, and of what type it is; NULL for what is not computed. */
static char *
key_of(const KilnValue *value)
{
    if (value->def->op == KILN_OP_const)
        return NULL;
    g_autofree char *type = kiln_type_to_string(&value->type);
    GString *key = g_string_new(value->name);
    g_string_append_printf(key, " : %s", type);
    const KilnFunction *function = value->def->function;
    for (; function->owner; function = function->owner->function)
        g_string_append_printf(key, " in %s", kiln_node_label(function->owner));
    g_string_append_printf(key, " in @%s", function->name);
    return g_string_free(key, FALSE);
}

/* What the quantize_linear that makes @value reads; NULL where it is none, or reads no float that
 * is computed. */
static const KilnValue *
real_of(const KilnValue *value)
{
    if (value->def->op != KILN_OP_quantize_linear)
        return NULL;
    const KilnValue *real = value->def->operands[0].value;
    return real->def && kiln_dtype_is_float(real->type.dtype) ? real : NULL;
}

/* Its own roundings, and those of what it reads. */
static double
terms_of_real(const KilnValue *real)
{
    double terms = kiln_node_terms(real->def) + 4;
    for (uint32_t i = 0; i < real->def->n_operands; i++) {
        const KilnValue *operand = real->def->operands[i].value;
        terms += operand && operand->def ? kiln_node_terms(operand->def) : 0;
    }
    return terms;
}

static gboolean
note_value(const KilnValue *value, KilnTensor **io_tensor, void *data, GError **error)
{
    (void)error;
    GHashTable *values = data;
    char *key = key_of(value);
    if (!key)
        return TRUE;
    Value *noted = g_new(Value, 1);
    *noted = (Value){ kiln_tensor_copy(*io_tensor), kiln_node_step(value->def), { NULL, 0 } };
    const KilnValue *real = real_of(value);
    g_autofree char *of = real ? key_of(real) : NULL;
    const Value *read = of ? g_hash_table_lookup(values, of) : NULL;
    if (read)
        noted->real = (Real){ kiln_tensor_copy(read->tensor), terms_of_real(real) };
    g_hash_table_replace(values, key, noted);
    return TRUE;
}

KilnRecord *
kiln_record_graph(const KilnFunction *function, const KilnTarget *target, const GPtrArray *inputs,
                  GError **error)
{
    KilnRecord *record = kiln_record_new(NULL);
    record->inputs = inputs;
    const KilnWatch watch = { note_value, record->values };
    record->results = kiln_results_watched(function, target, inputs, &watch, error);
    if (record->results)
        return record;
    kiln_record_free(record);
    return NULL;
}

/* --- cutting --- */

typedef struct {
    const KilnRecord *before;
    KilnNumerics numerics;
    double terms;
    GHashTable *wrong; /* KilnValue*: out of its bound, and what is computed of such */
    GHashTable *reals; /* KilnValue* → KilnTensor*: what is quantized */
} Cut;

/* What is computed of a wrong value. Arguments of regions and of what is folded are bound out of
 * sight: there any wrong value counts. */
static bool
is_of_wrong(const Cut *cut, const KilnNode *node)
{
    if (!g_hash_table_size(cut->wrong))
        return false;
    if (kiln_op_has(node->op, KILN_TRAIT_REGION))
        return true;
    for (uint32_t i = 0; i < node->n_operands; i++) {
        const KilnValue *value = node->operands[i].value;
        if (value && (!value->def || g_hash_table_contains(cut->wrong, value)))
            return true;
    }
    return false;
}

static bool
is_quantized(const KilnValue *value)
{
    kiln_foreach_use (use, value) {
        if (use->user->op == KILN_OP_quantize_linear)
            return true;
    }
    return false;
}

/* Within the bound of the class, ties aside. */
static bool
fits(const Cut *cut, const Value *was, const KilnValue *value, const KilnTensor *is)
{
    KilnErrorTerms terms = { .terms = cut->terms,
                             .step = MAX(was->step, kiln_node_step(value->def)) };
    if (kiln_compare_numerics(was->tensor, is, cut->numerics, &terms, NULL))
        return true;
    if (cut->numerics != KILN_NUMERICS_QT)
        return false;
    const KilnValue *real = real_of(value);
    Real now = { real ? g_hash_table_lookup(cut->reals, real) : NULL,
                 real ? terms_of_real(real) : 0 };
    for (int i = 0; i < 2; i++) {
        KilnTensor *others =
            without_ties(was->tensor, is, value->type.quant, i ? &now : &was->real);
        bool good =
            others && kiln_compare_numerics(was->tensor, others, cut->numerics, &terms, NULL);
        kiln_tensor_free(others);
        if (good)
            return true;
    }
    return false;
}

static void
tensor_free(gpointer tensor)
{
    kiln_tensor_free(tensor);
}

static gboolean
cut_value(const KilnValue *value, KilnTensor **io_tensor, void *data, GError **error)
{
    (void)error;
    const Cut *cut = data;
    g_autofree char *key = key_of(value);
    const Value *was = key ? g_hash_table_lookup(cut->before->values, key) : NULL;
    bool wrong = is_of_wrong(cut, value->def);
    if (was && !wrong)
        wrong = !fits(cut, was, value, *io_tensor);
    if (wrong)
        g_hash_table_add(cut->wrong, (gpointer)value);
    else if (was)
        *io_tensor = kiln_tensor_copy(was->tensor);
    if (kiln_dtype_is_float(value->type.dtype) && is_quantized(value))
        g_hash_table_replace(cut->reals, (gpointer)value, kiln_tensor_copy(*io_tensor));
    return TRUE;
}

gboolean
kiln_record_compare_cut(const KilnRecord *before, const KilnFunction *function,
                        const KilnTarget *target, KilnNumerics numerics, GError **error)
{
    g_autoptr(GHashTable) wrong = g_hash_table_new(NULL, NULL);
    g_autoptr(GHashTable) reals = g_hash_table_new_full(NULL, NULL, NULL, tensor_free);
    Cut cut = { .before = before,
                .numerics = numerics,
                .terms = MAX(before->results->terms.terms, kiln_error_terms(function).terms) *
                         before->roundings,
                .wrong = wrong,
                .reals = reals };
    const KilnWatch watch = { cut_value, &cut };
    g_autoptr(KilnResults) results =
        kiln_results_watched(function, target, before->inputs, &watch, error);
    if (results)
        results->terms.terms = cut.terms;
    return results && kiln_results_compare(before->results, results, numerics, error);
}
