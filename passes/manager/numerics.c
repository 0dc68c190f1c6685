/* SPDX-License-Identifier: Apache-2.0 */
/* Bounds by numerics class. */
#include "passes/manager/numerics.h"

#include "graph/base/number.h"
#include "graph/binding.h"
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

static bool
same_bits(const Pair *pair, int64_t i)
{
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
    for (int64_t i = 0; i < pair->n; i++) {
        double a = fabs(kiln_element_as_f64(pair->dtype, pair->a, i));
        double b = fabs(kiln_element_as_f64(pair->dtype, pair->b, i));
        most = isfinite(a) ? MAX(most, a) : most;
        most = isfinite(b) ? MAX(most, b) : most;
    }
    return most;
}

/* By what roundings of floats move an element. */
static double
rounding_of(const Pair *pair, const KilnErrorTerms *terms)
{
    if (!kiln_dtype_is_float(pair->dtype))
        return 0;
    double epsilon = MAX(kiln_float_format(pair->dtype)->epsilon, terms->epsilon);
    return terms->terms * epsilon * largest(pair);
}

static double
bound_of(const Pair *pair, KilnNumerics numerics, const KilnErrorTerms *terms)
{
    if (numerics < KILN_NUMERICS_U)
        return 0;
    const bool steps = numerics == KILN_NUMERICS_QT || numerics == KILN_NUMERICS_QS;
    const double step = kiln_dtype_is_float(pair->dtype)     ? terms->step
                        : kiln_dtype_is_integer(pair->dtype) ? 1
                                                             : 0;
    return rounding_of(pair, terms) + (steps ? step : 0);
}

int64_t
kiln_numerics_ties(int64_t n)
{
    return 1 + n / 64;
}

/* How far apart two elements of equal kind are; infinite where one is finite and the other not. */
static double
difference(const Pair *pair, int64_t i)
{
    if (same_bits(pair, i))
        return 0;
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
compare_share(const Pair *pair, double bound, const KilnErrorTerms *terms, GError **error)
{
    const double rounding = rounding_of(pair, terms);
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

static gboolean
compare_elements(const Pair *pair, KilnNumerics numerics, const KilnErrorTerms *terms,
                 GError **error)
{
    double bound = bound_of(pair, numerics, terms), worst = -1;
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
        return numerics != KILN_NUMERICS_QT || compare_share(pair, bound, terms, error);
    g_autoptr(GString) expected = g_string_new(NULL);
    g_autoptr(GString) found = g_string_new(NULL);
    kiln_print_f64(expected, kiln_element_as_f64(pair->dtype, pair->a, at));
    kiln_print_f64(found, kiln_element_as_f64(pair->dtype, pair->b, at));
    return kiln_throw(
        error, KILN_ERROR_MISMATCH,
        "%" G_GINT64_FORMAT " of %" G_GINT64_FORMAT " elements differ; element %" G_GINT64_FORMAT
        ": expected %s, found %s (class %s allows %g)",
        wrong, pair->n, at, expected->str, found->str, kiln_numerics_name(numerics), bound);
}

gboolean
kiln_compare_numerics(const KilnTensor *before, const KilnTensor *after, KilnNumerics numerics,
                      const KilnErrorTerms *terms, GError **error)
{
    const KilnType *a = &before->type, *b = &after->type;
    if (a->dtype != b->dtype || !kiln_type_same_shape(a, b)) {
        g_autofree char *expected = kiln_type_to_string(a);
        g_autofree char *found = kiln_type_to_string(b);
        return kiln_throw(error, KILN_ERROR_MISMATCH, "expected %s, found %s", expected, found);
    }
    if (numerics == KILN_NUMERICS_L || kiln_tensor_equal(before, after))
        return TRUE;
    g_autoptr(GBytes) left = kiln_tensor_view(before, error);
    g_autoptr(GBytes) right = left ? kiln_tensor_view(after, error) : NULL;
    if (!right)
        return FALSE;
    Pair pair = { a->dtype, kiln_type_elements(a), g_bytes_get_data(left, NULL),
                  g_bytes_get_data(right, NULL) };
    return compare_elements(&pair, numerics, terms, error);
}

bool
kiln_numerics_bound(const KilnTensor *before, const KilnTensor *after, KilnNumerics numerics,
                    const KilnErrorTerms *terms, double *out, GError **error)
{
    g_autoptr(GBytes) left = kiln_tensor_view(before, error);
    g_autoptr(GBytes) right = left ? kiln_tensor_view(after, error) : NULL;
    if (!right)
        return false;
    Pair pair = { before->type.dtype, kiln_type_elements(&before->type),
                  g_bytes_get_data(left, NULL), g_bytes_get_data(right, NULL) };
    *out = bound_of(&pair, numerics, terms);
    return true;
}
