/* SPDX-License-Identifier: Apache-2.0 */
/* Bounds by numerics class. */
#include "passes/manager/numerics.h"

#include "graph/base/item.h"
#include "graph/base/names.h"
#include "graph/base/number.h"
#include "graph/binding.h"
#include "graph/texts.h"
#include "ir/stack.h"

#include <math.h>
#include <string.h>

const char *
kiln_numerics_name(KilnNumerics numerics)
{
    static const char *const names[] = { "E", "Z", "U", "QT", "QS", "L" };
    return names[numerics];
}

/* --- terms --- */

static double
count(const KilnType *type)
{
    int64_t n = type ? kiln_type_elements(type) : 1;
    return n > 0 ? (double)n : 1;
}

static double
dim(const KilnType *type, int i)
{
    return type && i >= 0 && i < type->rank && type->dims[i] > 0 ? (double)type->dims[i] : 1;
}

/* Terms that one element of the result of @name sums: from the types of its first two operands and
 * of its result. Names are the same at both levels. */
static double
terms_of(const char *name, const KilnType *a, const KilnType *b, const KilnType *out)
{
    if (g_str_has_prefix(name, "conv") || strcmp(name, "qlinear_conv") == 0)
        return b ? count(b) / dim(b, 0) : 1;
    if (strstr(name, "matmul") || strcmp(name, "squared_distance") == 0)
        return a ? dim(a, a->rank - 1) : 1;
    if (strcmp(name, "tree_ensemble") == 0)
        return count(b); /* the trees */
    if (strcmp(name, "gemm") == 0)
        return MAX(dim(a, 0), dim(a, 1)) + 1;
    if (strcmp(name, "lstm") == 0 || strcmp(name, "gru") == 0 || strcmp(name, "rnn") == 0)
        return dim(a, 0) * (dim(b, 2) + (out ? dim(out, out->rank - 1) : 1));
    if (strstr(name, "norm") || strstr(name, "softmax") || strcmp(name, "einsum") == 0 ||
        strcmp(name, "attention") == 0 || strcmp(name, "cum_sum") == 0 ||
        strcmp(name, "cum_prod") == 0 || strcmp(name, "linear_attention") == 0 ||
        strcmp(name, "dft") == 0)
        return count(a);
    if (strstr(name, "reduce") || strstr(name, "pool") || strcmp(name, "col2im") == 0)
        return MAX(count(a) / count(out), 1);
    return 1;
}

static double
step_of(const KilnType *type)
{
    double step = 0;
    for (uint32_t i = 0; type && type->quant && i < type->quant->n; i++)
        step = MAX(step, (double)type->quant->scales[i]);
    return step;
}

static double
half_epsilon(const KilnType *type)
{
    bool half = type && kiln_dtype_is_half(type->dtype);
    return half && !type->quant ? kiln_float_format(type->dtype)->epsilon : 0;
}

KilnErrorTerms
kiln_error_terms_join(const KilnErrorTerms *a, const KilnErrorTerms *b)
{
    return (KilnErrorTerms){ MAX(a->terms, b->terms), MAX(a->step, b->step),
                             MAX(a->epsilon, b->epsilon) };
}

/* The scale of a quantize or dequantize that is a constant. */
static double
constant_step(const KilnConstant *constant)
{
    g_autoptr(GBytes) bytes =
        constant && kiln_dtype_is_float(constant->type.dtype) && !constant->type.quant
            ? kiln_tensor_view(constant->tensor, NULL)
            : NULL;
    double step = 0;
    for (int64_t i = 0; bytes && i < kiln_type_elements(&constant->type); i++)
        step =
            MAX(step, kiln_element_as_f64(constant->type.dtype, g_bytes_get_data(bytes, NULL), i));
    return step;
}

static bool
is_quantizer(const char *name)
{
    return strstr(name, "quantize") || g_str_has_prefix(name, "qlinear");
}

double
kiln_node_step(const KilnNode *node)
{
    bool quantizer = is_quantizer(kiln_op_info(node->op)->name);
    double most = 0;
    for (uint32_t i = 0; i < node->n_operands; i++) {
        const KilnValue *value = node->operands[i].value;
        double step = value ? step_of(&value->type) : 0;
        if (value && quantizer)
            step = MAX(step, constant_step(kiln_value_constant(value)));
        most = MAX(most, step);
    }
    return most;
}

/* The type of @value, or NULL, with the numbers that open dims have in the run. */
static const KilnType *
type_at(const KilnValue *value, const KilnDimBinding *binding, KilnType *out)
{
    if (!value)
        return NULL;
    *out = value->type.rank < 0 ? value->type : kiln_type_at_hints(&value->type);
    for (int d = 0; binding && d < value->type.rank; d++) {
        const KilnDim *open = value->type.open[d];
        int64_t number;
        if (open &&
            kiln_dim_evaluate(open, kiln_dim_binding_lookup, (void *)binding, &number, NULL))
            out->dims[d] = number;
    }
    return out;
}

double
kiln_node_terms(const KilnNode *node, const KilnDimBinding *binding)
{
    KilnType types[3];
    const KilnType *a = type_at(kiln_node_operand(node, 0), binding, &types[0]);
    const KilnType *b = type_at(kiln_node_operand(node, 1), binding, &types[1]);
    const KilnType *out = type_at(node->n_results ? &node->results[0] : NULL, binding, &types[2]);
    return terms_of(kiln_op_info(node->op)->name, a, b, out);
}

KilnErrorTerms
kiln_error_terms(const KilnFunction *function, const KilnDimBinding *binding)
{
    KilnErrorTerms terms = { .terms = 1 };
    kiln_foreach_node (node, function) {
        terms.terms += kiln_node_terms(node, binding);
        double step = kiln_node_step(node);
        terms.step = MAX(terms.step, step);
        if (node->op != KILN_OP_const && node->n_results) /* exact in any type that holds it */
            terms.epsilon = MAX(terms.epsilon, half_epsilon(&node->results[0].type));
        kiln_foreach_region (region, node) {
            KilnErrorTerms inner = kiln_error_terms(region, binding);
            inner.terms += terms.terms;
            terms = kiln_error_terms_join(&terms, &inner);
        }
    }
    return terms;
}

/* Terms of a stack: each step rounds, and reductions sum. */
static double
terms_of_steps(const KilnInstr *stack)
{
    KilnType space;
    double terms = stack->n_steps;
    for (uint32_t i = 0; i < stack->n_steps && kiln_stack_space(stack, &space); i++) {
        const KilnStackStep *step = &stack->steps[i];
        if (kiln_stack_reduces(step->kind))
            terms += terms_of(kiln_instr_info(step->kind)->name, &space, NULL,
                              &stack->operands[step->store].buffer->type);
    }
    return terms;
}

KilnErrorTerms
kiln_ir_error_terms(const KilnIRFunction *function)
{
    KilnErrorTerms terms = { .terms = 1 };
    kiln_foreach_instr (instr, function) {
        const char *name = kiln_instr_info(instr->kind)->name;
        const KilnType *types[3] = { NULL, NULL, NULL };
        for (uint32_t i = 0; i < instr->n_operands; i++) {
            const KilnBuffer *buffer = instr->operands[i].buffer;
            double step = buffer ? step_of(&buffer->type) : 0;
            if (buffer && buffer->constant && is_quantizer(name))
                step = MAX(step, constant_step(buffer->constant));
            terms.step = MAX(terms.step, step);
            if (i < 3)
                types[i] = buffer ? &buffer->type : NULL;
        }
        terms.terms += terms_of(name, types[1], types[2], types[0]) + terms_of_steps(instr);
        terms.epsilon = MAX(terms.epsilon, half_epsilon(types[0]));
    }
    return terms;
}

/* --- comparing --- */

typedef struct {
    KilnDType dtype;
    int64_t n;
    const void *a, *b;
} Pair;

/* How far apart the elements of a value may be. */
typedef struct {
    KilnNumerics numerics;
    const KilnErrorTerms *terms;
    double largest; /* magnitude of the tensor, or of all tensors of a sequence: each may be a part
                       of one that was computed */
} Measure;

static const KilnText *
text_at(const void *elements, int64_t i)
{
    return ((const KilnText *const *)elements)[i];
}

static bool
same_bits(const Pair *pair, int64_t i)
{
    if (pair->dtype == KILN_DTYPE_string)
        return kiln_text_equal(text_at(pair->a, i), text_at(pair->b, i));
    size_t size = kiln_dtype_size(pair->dtype);
    const char *a = (const char *)pair->a + (size_t)i * size;
    const char *b = (const char *)pair->b + (size_t)i * size;
    if (memcmp(a, b, size) == 0)
        return true;
    return kiln_dtype_is_float(pair->dtype) &&
           isnan(kiln_element_as_f64(pair->dtype, pair->a, i)) &&
           isnan(kiln_element_as_f64(pair->dtype, pair->b, i));
}

static double
largest(const Pair *pair)
{
    double most = 0;
    for (int64_t i = 0; kiln_dtype_is_float(pair->dtype) && i < pair->n; i++) {
        double a = fabs(kiln_element_as_f64(pair->dtype, pair->a, i));
        double b = fabs(kiln_element_as_f64(pair->dtype, pair->b, i));
        most = isfinite(a) ? MAX(most, a) : most;
        most = isfinite(b) ? MAX(most, b) : most;
    }
    return most;
}

/* By what roundings of floats move an element. */
static double
rounding_of(KilnDType dtype, const Measure *measure)
{
    if (!kiln_dtype_is_float(dtype))
        return 0;
    double epsilon = MAX(kiln_float_format(dtype)->epsilon, measure->terms->epsilon);
    return measure->terms->terms * epsilon * measure->largest;
}

static double
bound_of(KilnDType dtype, const Measure *measure)
{
    const KilnNumerics numerics = measure->numerics;
    if (numerics < KILN_NUMERICS_U)
        return 0;
    const bool steps = numerics == KILN_NUMERICS_QT || numerics == KILN_NUMERICS_QS;
    const double step = kiln_dtype_is_float(dtype)     ? measure->terms->step
                        : kiln_dtype_is_integer(dtype) ? 1
                                                       : 0;
    return rounding_of(dtype, measure) + (steps ? step : 0);
}

int64_t
kiln_numerics_ties(int64_t n)
{
    return 1 + n / 64;
}

/* How far apart two elements of equal kind are; infinite where one is finite and the other not, and
 * for strings. */
static double
difference(const Pair *pair, int64_t i)
{
    if (same_bits(pair, i))
        return 0;
    if (kiln_dtype_is_address(pair->dtype))
        return INFINITY;
    if (!kiln_dtype_is_float(pair->dtype) && kiln_dtype_size(pair->dtype) == 8) {
        int64_t a = kiln_element_as_i64(pair->dtype, pair->a, i);
        int64_t b = kiln_element_as_i64(pair->dtype, pair->b, i);
        return a > b ? (double)((uint64_t)a - (uint64_t)b) : (double)((uint64_t)b - (uint64_t)a);
    }
    double a = kiln_element_as_f64(pair->dtype, pair->a, i);
    double b = kiln_element_as_f64(pair->dtype, pair->b, i);
    if (!isfinite(a) || !isfinite(b))
        return a == b ? 0 : INFINITY;
    return fabs(a - b);
}

/* Elements that are within @bound, but not where roundings of floats leave them. */
static gboolean
compare_share(const Pair *pair, double bound, const Measure *measure, GError **error)
{
    const double rounding = rounding_of(pair->dtype, measure);
    int64_t n = 0;
    for (int64_t i = 0; i < pair->n; i++)
        n += difference(pair, i) > rounding;
    return n <= kiln_numerics_ties(pair->n) ||
           kiln_throw(error, KILN_ERROR_MISMATCH,
                      "%" G_GINT64_FORMAT " of %" G_GINT64_FORMAT
                      " elements are a step off (within %g each; class QT allows %" G_GINT64_FORMAT
                      " of them)",
                      n, pair->n, bound, kiln_numerics_ties(pair->n));
}

static void
print_element(KilnDType dtype, const void *elements, int64_t i, GString *out)
{
    if (dtype == KILN_DTYPE_string)
        kiln_text_print(kiln_text_of(text_at(elements, i)), out);
    else
        kiln_print_f64(out, kiln_element_as_f64(dtype, elements, i));
}

static gboolean
compare_elements(const Pair *pair, const Measure *measure, GError **error)
{
    const KilnNumerics numerics = measure->numerics;
    double bound = bound_of(pair->dtype, measure), worst = -1;
    int64_t at = 0, wrong = 0;
    for (int64_t i = 0; i < pair->n; i++) {
        bool fits = numerics == KILN_NUMERICS_E ? same_bits(pair, i) : difference(pair, i) <= bound;
        if (fits)
            continue;
        double d = difference(pair, i);
        wrong++;
        if (d > worst) {
            worst = d;
            at = i;
        }
    }
    if (!wrong)
        return numerics != KILN_NUMERICS_QT || compare_share(pair, bound, measure, error);
    g_autoptr(GString) expected = g_string_new(NULL);
    g_autoptr(GString) found = g_string_new(NULL);
    print_element(pair->dtype, pair->a, at, expected);
    print_element(pair->dtype, pair->b, at, found);
    return kiln_throw(
        error, KILN_ERROR_MISMATCH,
        "%" G_GINT64_FORMAT " of %" G_GINT64_FORMAT " elements differ; element %" G_GINT64_FORMAT
        ": expected %s, found %s (class %s allows %g)",
        wrong, pair->n, at, expected->str, found->str, kiln_numerics_name(numerics), bound);
}

/* --- comparing sequences, optionals and maps --- */

static gboolean
throw_types(const KilnType *expected, const KilnType *found, GError **error)
{
    g_autofree char *left = kiln_type_to_string(expected);
    g_autofree char *right = kiln_type_to_string(found);
    return kiln_throw(error, KILN_ERROR_MISMATCH, "expected %s, found %s", left, right);
}

/* The elements of two tensors of one type. */
static Pair
pair_of_items(const KilnItem *a, const KilnItem *b)
{
    const KilnType type = kiln_item_type(a);
    return (Pair){ type.dtype, kiln_type_elements(&type), kiln_item_data(a), kiln_item_data(b) };
}

static gboolean
check_lengths(const KilnItem *a, const KilnItem *b, GError **error)
{
    const size_t expected = kiln_item_length(a), found = kiln_item_length(b);
    const KilnItem *any = a ? a : b;
    const KilnDType dtype = kiln_item_dtype(any), other = b ? kiln_item_dtype(b) : dtype;
    if (dtype != other)
        return kiln_throw(error, KILN_ERROR_MISMATCH, "expected %s, found %s",
                          kiln_dtype_name(dtype), kiln_dtype_name(other));
    return expected == found ||
           kiln_throw(error, KILN_ERROR_MISMATCH, "expected %zu items, found %zu", expected, found);
}

/* Checks that @a and @b have tensors of one type at the same places. Adds to the largest magnitude
 * of *@measure. */
static gboolean
measure_items(const KilnItem *a, const KilnItem *b, Measure *measure, GError **error)
{
    if (!a && !b)
        return TRUE;
    if (a && b && !kiln_dtype_is_item(kiln_item_dtype(a))) {
        const KilnType expected = kiln_item_type(a);
        bool tensor = !kiln_dtype_is_item(kiln_item_dtype(b));
        const KilnType found = tensor ? kiln_item_type(b) : kiln_type_scalar(kiln_item_dtype(b));
        if (!kiln_type_equal(&expected, &found))
            return throw_types(&expected, &found, error);
        const Pair pair = pair_of_items(a, b);
        measure->largest = MAX(measure->largest, largest(&pair));
        return TRUE;
    }
    if (!check_lengths(a, b, error))
        return FALSE;
    for (size_t i = 0; i < kiln_item_length(a); i++) {
        if (!measure_items(kiln_item_get(a, i), kiln_item_get(b, i), measure, error)) {
            kiln_prefix_error(error, "item %zu: ", i);
            return FALSE;
        }
    }
    return TRUE;
}

/* The keys of a map are its item 0, and its values are item 1. */
static gboolean
compare_items(const KilnItem *a, const KilnItem *b, const Measure *measure, GError **error)
{
    if (a && !kiln_dtype_is_item(kiln_item_dtype(a))) {
        const Pair pair = pair_of_items(a, b);
        return compare_elements(&pair, measure, error);
    }
    for (size_t i = 0; i < kiln_item_length(a); i++) {
        if (!compare_items(kiln_item_get(a, i), kiln_item_get(b, i), measure, error)) {
            kiln_prefix_error(error, "item %zu: ", i);
            return FALSE;
        }
    }
    return TRUE;
}

/* --- comparing values --- */

gboolean
kiln_compare_numerics(const KilnTensor *before, const KilnTensor *after, KilnNumerics numerics,
                      const KilnErrorTerms *terms, GError **error)
{
    const KilnType *a = &before->type, *b = &after->type;
    Measure measure = { .numerics = numerics, .terms = terms };
    if (a->dtype != b->dtype || !kiln_type_same_shape(a, b))
        return throw_types(a, b, error);
    if (kiln_dtype_is_item(a->dtype)) {
        const KilnItem *expected = kiln_tensor_item(before), *found = kiln_tensor_item(after);
        return measure_items(expected, found, &measure, error) &&
               (numerics == KILN_NUMERICS_L || compare_items(expected, found, &measure, error));
    }
    if (numerics == KILN_NUMERICS_L || kiln_tensor_equal(before, after))
        return TRUE;
    g_autoptr(GBytes) left = kiln_tensor_view(before, error);
    g_autoptr(GBytes) right = left ? kiln_tensor_view(after, error) : NULL;
    if (!right)
        return FALSE;
    const Pair pair = { a->dtype, kiln_type_elements(a), g_bytes_get_data(left, NULL),
                        g_bytes_get_data(right, NULL) };
    measure.largest = largest(&pair);
    return compare_elements(&pair, &measure, error);
}

bool
kiln_numerics_bound(const KilnTensor *before, const KilnTensor *after, KilnNumerics numerics,
                    const KilnErrorTerms *terms, double *out, GError **error)
{
    g_autoptr(GBytes) left = kiln_tensor_view(before, error);
    g_autoptr(GBytes) right = left ? kiln_tensor_view(after, error) : NULL;
    if (!right)
        return false;
    const Pair pair = { before->type.dtype, kiln_type_elements(&before->type),
                        g_bytes_get_data(left, NULL), g_bytes_get_data(right, NULL) };
    const Measure measure = { numerics, terms, largest(&pair) };
    *out = bound_of(pair.dtype, &measure);
    return true;
}
