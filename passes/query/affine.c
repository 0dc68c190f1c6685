/* SPDX-License-Identifier: Apache-2.0 */
#include "passes/query/affine.h"

#include "graph/base/alloc.h"
#include "graph/base/number.h"
#include "graph/op/additive.h"
#include "graph/op/conv.h"
#include "graph/op/math.h"
#include "graph/op/matmul.h"
#include "graph/op/multiplicative.h"
#include "graph/op/norm.h"
#include "passes/query/literal.h"

#include <float.h>
#include <math.h>
#include <string.h>

bool
kiln_affine_init(KilnAffine *affine, int64_t n, GError **error)
{
    affine->n = n;
    affine->factor = kiln_alloc((size_t)n + 1, sizeof *affine->factor, error);
    affine->offset =
        affine->factor ? kiln_alloc((size_t)n + 1, sizeof *affine->offset, error) : NULL;
    affine->lost = affine->offset ? kiln_alloc((size_t)n + 1, sizeof *affine->lost, error) : NULL;
    for (int64_t c = 0; affine->lost && c < n; c++) {
        affine->factor[c] = 1;
        affine->offset[c] = 0;
        affine->lost[c] = 0;
    }
    return affine->lost;
}

void
kiln_affine_clear(KilnAffine *affine)
{
    kiln_free(affine->factor);
    kiln_free(affine->offset);
    kiln_free(affine->lost);
}

bool
kiln_affine_scales(const KilnAffine *affine)
{
    for (int64_t c = 0; c < affine->n; c++) {
        if (affine->factor[c] != 1)
            return true;
    }
    return false;
}

bool
kiln_affine_shifts(const KilnAffine *affine)
{
    for (int64_t c = 0; c < affine->n; c++) {
        if (affine->offset[c] != 0)
            return true;
    }
    return false;
}

bool
kiln_affine_keeps_bits(const KilnAffine *affine, KilnDType dtype)
{
    return kiln_literal_keeps_bits(dtype, affine->factor, affine->n) &&
           kiln_literal_keeps_bits(dtype, affine->offset, affine->n);
}

static bool
is_finite(double number, KilnDType dtype)
{
    uint8_t element[8];
    kiln_element_store_f64(dtype, element, 0, number);
    return isfinite(kiln_element_as_f64(dtype, element, 0));
}

bool
kiln_affine_fits(const KilnAffine *affine, KilnDType dtype)
{
    for (int64_t c = 0; c < affine->n; c++) {
        double factor = fabs(affine->factor[c]);
        if (!is_finite(factor, dtype) || !is_finite(affine->offset[c], dtype) ||
            (factor != 0 && factor < kiln_float_format(dtype)->smallest))
            return false;
    }
    return true;
}

/* --- what intermediate values lose --- */

enum {
    LOST_FACTOR = 16, /* kiln_affine_keeps_precision() */
};

bool
kiln_affine_keeps_precision(const KilnAffine *affine, const double *scale, const double *bias,
                            KilnDType dtype)
{
    double smallest = kiln_float_format(dtype)->smallest;
    for (int64_t c = 0; c < affine->n; c++) {
        double factor = fabs(affine->factor[c]), before = bias ? bias[c] : 0;
        double offset = fabs(before * affine->factor[c] + affine->offset[c]);
        double lost = fmax(affine->lost[c], fabs(before) * factor);
        double result = fmax(fmax(scale ? factor * scale[c] : 0, offset), smallest);
        if (!(lost <= LOST_FACTOR * result))
            return false;
    }
    return true;
}

bool
kiln_sum_keeps_precision(const double *bias, const double *term, const double *scale, int64_t n,
                         KilnDType dtype)
{
    double smallest = kiln_float_format(dtype)->smallest;
    for (int64_t c = 0; c < n; c++) {
        double x = fmax(fabs(scale[c]), smallest), first = bias ? fabs(bias[c]) : 0;
        bool good = false;
        if (bias && term)
            good = first <= LOST_FACTOR * fmax(x, fabs(bias[c] + term[c])) &&
                   (first == 0 || fabs(term[c]) <= LOST_FACTOR * fmax(x, first));
        else if (bias || term) /* the other may be its negative, but for x */
            good = fabs(bias ? bias[c] : term[c]) + x <= LOST_FACTOR * x;
        if (!good)
            return false;
    }
    return true;
}

/* A link has made the values of channel @i times @by, and then of this offset: a value that is no
 * finite number of @dtype loses all, one that is no normal number as much as the smallest. */
static void
note_loss(KilnAffine *affine, int64_t i, double by, KilnDType dtype)
{
    double offset = fabs(affine->offset[i]);
    bool finite = is_finite(affine->offset[i], dtype) && is_finite(affine->factor[i], dtype);
    double own = finite ? fmax(offset, kiln_float_format(dtype)->smallest) : INFINITY;
    affine->lost[i] = fmax(affine->lost[i] * fabs(by), own);
}

/* --- what is appended --- */

const KilnConstant *
kiln_affine_constant(const KilnValue *value)
{
    return value ? kiln_value_constant(kiln_literal_source(value)) : NULL;
}

/* x op c, or c op x where @left is false; values are of @dtype. */
static void
append(KilnAffine *affine, KilnOp op, bool left, const double *c, KilnDType dtype)
{
    for (int64_t i = 0; i < affine->n; i++) {
        double *factor = &affine->factor[i], *offset = &affine->offset[i], by = 1;
        switch (op) {
        case KILN_OP_add:
            *offset += c[i];
            break;
        case KILN_OP_sub:
            *factor = left ? *factor : -*factor;
            *offset = left ? *offset - c[i] : c[i] - *offset;
            break;
        case KILN_OP_mul:
            by = c[i];
            *factor *= c[i];
            *offset *= c[i];
            break;
        default:
            by = 1 / c[i];
            *factor /= c[i];
            *offset /= c[i];
            break;
        }
        note_loss(affine, i, by, dtype);
    }
}

static void
append_factor(KilnAffine *affine, double factor)
{
    for (int64_t i = 0; i < affine->n; i++) {
        affine->factor[i] *= factor;
        affine->offset[i] *= factor;
    }
}

/* The number that @literal holds per channel of @type; NULL where it varies along another dim. */
static double *
per_channel(const KilnValue *literal, const KilnType *type, int axis, GError **error)
{
    double number;
    literal = kiln_literal_source(literal);
    double *numbers = kiln_literal_along(literal, type, axis, error);
    if (numbers || *error || axis < 0 || type->dims[axis] < 0 ||
        !kiln_literal_uniform(literal, &number))
        return numbers;
    numbers = kiln_alloc((size_t)type->dims[axis] + 1, sizeof *numbers, error);
    for (int64_t c = 0; numbers && c < type->dims[axis]; c++)
        numbers[c] = number;
    return numbers;
}

/* What the single reader of @value, an arithmetic node with a literal, does to it. */
static bool
follow(KilnMatch *match, const KilnValue *value, int axis, KilnAffine *affine, KilnNode **link)
{
    if (value->n_uses != 1)
        return false;
    const KilnUse *use = value->first_use;
    KilnNode *node = use->user;
    bool negates = node->op == KILN_OP_neg, left = use->index == 0;
    bool arithmetic = node->op == KILN_OP_add || node->op == KILN_OP_sub ||
                      node->op == KILN_OP_mul || node->op == KILN_OP_div;
    const KilnValue *other = arithmetic ? node->operands[left].value : NULL;
    if (!negates && !kiln_affine_constant(other))
        return false;
    GUARD(real, !value->type.quant && !node->results[0].type.quant); /* stored integers round */
    GUARD(same_function, node->function == value->def->function);
    if (negates) {
        GUARD(channels_known, axis >= 0 && value->type.dims[axis] >= 0);
        append_factor(affine, -1);
        *link = node;
        return true;
    }
    GUARD(dividend, left || node->op != KILN_OP_div);
    GUARD(same_shape, kiln_type_equal(&node->results[0].type, &value->type));
    g_autofree double *numbers = per_channel(other, &value->type, axis, match->error);
    GUARD(per_channel, numbers != NULL);
    append(affine, node->op, left, numbers, value->type.dtype);
    *link = node;
    return true;
}

uint32_t
kiln_affine_chain(KilnMatch *match, const KilnValue *value, int axis, KilnAffine *affine,
                  KilnNode **end)
{
    uint32_t links = 0;
    for (KilnNode *link; follow(match, value, axis, affine, &link); links++) {
        value = &link->results[0];
        *end = link;
    }
    return *match->error ? 0 : links;
}

void
kiln_affine_replace_chain(KilnMatch *match, KilnNode *end, KilnValue *value)
{
    kiln_pass_note(match->context, match->rule, "%s (%s) by %s (%s)", kiln_node_label(end),
                   kiln_op_info(end->op)->name, value->name, kiln_op_info(value->def->op)->name);
    kiln_value_replace(&end->results[0], value);
    kiln_node_remove_if_dead(end);
}

gboolean
kiln_affine_fold_all(KilnFunction *function, bool (*is_root)(KilnOp op), const char *rule,
                     KilnRewriteFn fold, KilnPassContext *context, bool *changed, GError **error)
{
    g_autoptr(GPtrArray) roots = g_ptr_array_new();
    const KilnNodeOrder *order = kiln_function_order(function);
    for (uint32_t i = 0; i < order->n; i++) {
        if (is_root((KilnOp)order->ops[i]))
            g_ptr_array_add(roots, order->entries[i].node);
    }
    /* A fold removes its own root, links of its chain and literals: the other roots stay. */
    for (guint i = 0; i < roots->len; i++) {
        GError *why = NULL;
        KilnMatch match = {
            .context = context, .rule = rule, .error = &why, .root = g_ptr_array_index(roots, i)
        };
        *changed |= fold(&match);
        if (why) {
            g_propagate_error(error, why);
            return FALSE;
        }
    }
    return TRUE;
}

bool
kiln_batchnorm_infers(const KilnNode *bn)
{
    for (uint32_t i = 1; i < bn->n_results; i++) {
        if (bn->results[i].n_uses)
            return false;
    }
    return !kiln_attrs(bn, batch_normalization)->training_mode;
}

int
kiln_batchnorm_axis(const KilnNode *bn)
{
    const KilnType *type = &bn->results[0].type;
    return type->rank < 0 ? -1 : kiln_type_axis(type, kiln_attrs(bn, batch_normalization)->axis);
}

bool
kiln_affine_append_batchnorm(KilnAffine *affine, const KilnNode *bn, GError **error)
{
    const KilnConstant *statistics[4];
    for (uint32_t i = 0; i < 4; i++)
        statistics[i] = kiln_affine_constant(bn->operands[i + 1].value);
    return kiln_affine_append_statistics(
        affine, statistics, (double)kiln_attrs(bn, batch_normalization)->epsilon, error);
}

bool
kiln_affine_append_statistics(KilnAffine *affine, const KilnConstant *const statistics[4],
                              double epsilon, GError **error)
{
    g_autofree double *scale = kiln_numbers_of(statistics[0], error);
    g_autofree double *bias = scale ? kiln_numbers_of(statistics[1], error) : NULL;
    g_autofree double *mean = bias ? kiln_numbers_of(statistics[2], error) : NULL;
    g_autofree double *var = mean ? kiln_numbers_of(statistics[3], error) : NULL;
    for (int64_t c = 0; var && c < affine->n; c++) {
        double factor = scale[c] / sqrt(var[c] + epsilon);
        double centred = affine->offset[c] - mean[c];
        affine->lost[c] = fmax(affine->lost[c], fabs(centred)) * fabs(factor);
        affine->factor[c] *= factor;
        affine->offset[c] = centred * factor + bias[c];
    }
    return var;
}

bool
kiln_batchnorm_keeps_precision(const KilnAffine *affine, const KilnConstant *scale, KilnDType dtype,
                               GError **error)
{
    g_autofree double *spread = kiln_numbers_of(scale, error); /* of what is normalized */
    for (int64_t c = 0; spread && c < affine->n; c++)
        spread[c] = affine->factor[c] != 0 ? fabs(spread[c] / affine->factor[c]) : 0;
    if (!spread)
        return !*error;
    return kiln_affine_keeps_precision(affine, spread, NULL, dtype);
}

/* --- weights --- */

int
kiln_product_axis(const KilnNode *product)
{
    int rank = product->results[0].type.rank;
    if (product->op == KILN_OP_conv || product->op == KILN_OP_conv_transpose)
        return rank < 0 ? -1 : 1;
    return rank > 0 && product->operands[1].value->type.rank > 1 ? rank - 1 : -1;
}

/* Weights are rows of elements that belong to one channel. */
typedef struct {
    int64_t n, length;        /* rows, elements per row */
    int64_t columns;          /* rows after which channels repeat, or go on with the next group */
    int64_t inputs_per_group; /* how often they repeat */
} Rows;

/* conv: [O, I/g, …] is a row per output. conv_transpose: [I, O/g, …], where the I/g inputs of group
 * k have rows of the outputs k·O/g …. matmul: [K, N] are rows of one element, gemm's transposed
 * weights [N, K] a row per output. */
static Rows
rows_of(const KilnNode *product, const KilnType *weights)
{
    int64_t all = kiln_type_elements(weights), outputs;
    switch (product->op) {
    case KILN_OP_conv_transpose:
        outputs = weights->dims[1];
        int64_t rows = weights->dims[0] * outputs;
        return (Rows){ rows, rows ? all / rows : 0, outputs,
                       weights->dims[0] / kiln_attrs(product, conv_transpose)->group };
    case KILN_OP_gemm:
        if (!kiln_attrs(product, gemm)->transB)
            break;
        G_GNUC_FALLTHROUGH;
    case KILN_OP_conv:
        outputs = weights->dims[0];
        return (Rows){ outputs, outputs ? all / outputs : 0, outputs, 1 };
    default:
        break;
    }
    return (Rows){ all, 1, weights->dims[weights->rank - 1], all };
}

static int64_t
channel_of(const Rows *rows, int64_t row)
{
    return row / rows->columns / rows->inputs_per_group * rows->columns + row % rows->columns;
}

static double *read_bias(const KilnNode *product, const KilnAffine *affine, GError **error);

/* How large the products of @product are by channel, for inputs around 1: the sum of the absolute
 * weights. 1 where these are no literal. */
static double *
scale_of(const KilnNode *product, int64_t n, GError **error)
{
    g_autofree double *scale = kiln_alloc((size_t)n + 1, sizeof *scale, error);
    const KilnConstant *weights = kiln_affine_constant(product->operands[1].value);
    g_autofree double *numbers = scale && weights ? kiln_numbers_of(weights, error) : NULL;
    if (!scale || (weights && !numbers))
        return NULL;
    for (int64_t c = 0; c < n; c++)
        scale[c] = weights ? 0 : 1;
    Rows rows = weights ? rows_of(product, &weights->type) : (Rows){ 0 };
    for (int64_t row = 0; row < rows.n; row++) {
        double *sum = &scale[channel_of(&rows, row)];
        for (int64_t i = 0; i < rows.length; i++)
            *sum += fabs(numbers[row * rows.length + i]);
    }
    return g_steal_pointer(&scale);
}

bool
kiln_product_keeps_precision(const KilnNode *product, const KilnAffine *affine, GError **error)
{
    KilnDType dtype = product->results[0].type.dtype;
    bool has_bias = kiln_node_operand(product, 2) != NULL;
    g_autofree double *bias = has_bias ? read_bias(product, affine, error) : NULL;
    if (has_bias && !bias) /* no literal: nothing is merged with it */
        return !*error;
    if (kiln_affine_keeps_precision(affine, NULL, bias, dtype))
        return true;
    g_autofree double *scale = scale_of(product, affine->n, error);
    if (!scale) /* weights that cannot be read take nothing up */
        return !*error;
    return kiln_affine_keeps_precision(affine, scale, bias, dtype);
}

bool
kiln_product_takes_term(const KilnNode *product, const KilnValue *term, GError **error)
{
    const KilnType *type = &product->results[0].type;
    int axis = kiln_product_axis(product);
    if (axis < 0 || type->dims[axis] < 0)
        return false;
    const KilnValue *old = kiln_node_operand(product, 2);
    if (!old)
        return true;
    g_autofree double *scale = scale_of(product, type->dims[axis], error);
    term = kiln_literal_source(term);
    g_autofree double *bias = scale ? kiln_literal_read(kiln_literal_source(old), error) : NULL;
    g_autofree double *added = scale ? kiln_literal_along(term, type, axis, error) : NULL;
    return !*error && kiln_sum_keeps_precision(bias, added, scale, type->dims[axis], type->dtype);
}

/* What became of the products of one channel. */
typedef struct {
    bool finite;
    double largest; /* before rounding */
} Products;

static void
scale_f32(int64_t n, const uint8_t *restrict from, double factor, float *restrict to,
          Products *products)
{
    int wrong = 0;
    double largest = products->largest;
    for (int64_t i = 0; i < n; i++) {
        float element;
        memcpy(&element, from + i * (int64_t)sizeof element, sizeof element);
        double product = (double)element * factor;
        to[i] = (float)product;
        wrong |= !(fabsf(to[i]) <= FLT_MAX);
        largest = fabs(product) > largest ? fabs(product) : largest;
    }
    products->finite &= !wrong;
    products->largest = largest;
}

static void
scale_any(KilnDType from_dtype, int64_t n, const uint8_t *from, double factor, KilnDType dtype,
          uint8_t *to, Products *products)
{
    for (int64_t i = 0; i < n; i++) {
        double product = kiln_element_as_f64(from_dtype, from, i) * factor;
        kiln_element_store_f64(dtype, to, i, product);
        products->finite &= isfinite(kiln_element_as_f64(dtype, to, i));
        products->largest = fmax(products->largest, fabs(product));
    }
}

/* The payload of @tensor: in place where it has one, else made in @made. */
static const uint8_t *
payload(const KilnTensor *tensor, GBytes **made, GError **error)
{
    if (tensor->kind == KILN_TENSOR_DATA)
        return g_bytes_get_data(tensor->bytes, NULL);
    *made = kiln_tensor_view(tensor, error);
    return *made ? g_bytes_get_data(*made, NULL) : NULL;
}

/* What became of all weights. */
typedef struct {
    bool finite, normal;
} Quality;

/* Rounding is relative to the largest weight of a channel, so that this one must stay a normal
 * number. Weights that are a cast of 16 bits are scaled in the type that they are cast to. */
static KilnTensor *
scaled_weights(const KilnNode *product, const KilnAffine *affine, Quality *quality, GError **error)
{
    const KilnTensor *weights = kiln_affine_constant(product->operands[1].value)->tensor;
    const KilnType *from_type = &weights->type;
    KilnType type = *from_type;
    type.dtype = product->operands[1].value->type.dtype;
    g_autoptr(GBytes) made = NULL;
    const uint8_t *old = payload(weights, &made, error);
    size_t size = (size_t)kiln_type_bytes(&type), element = kiln_dtype_size(type.dtype);
    size_t from_element = kiln_dtype_size(from_type->dtype);
    void *scaled;
    g_autoptr(GBytes) bytes = old || !size ? kiln_bytes_new(1, size, &scaled, error) : NULL;
    if (!bytes)
        return NULL;
    g_autofree Products *products = g_new0(Products, (size_t)affine->n + 1);
    for (int64_t c = 0; c < affine->n; c++)
        products[c].finite = true;
    Rows rows = rows_of(product, &type);
    for (int64_t row = 0; row < rows.n && size; row++) {
        int64_t c = channel_of(&rows, row);
        const uint8_t *from = old + (size_t)(row * rows.length) * from_element;
        uint8_t *to = scaled + (size_t)(row * rows.length) * element;
        if (from_type->dtype == KILN_DTYPE_f32)
            scale_f32(rows.length, from, affine->factor[c], (float *)(void *)to, &products[c]);
        else
            scale_any(from_type->dtype, rows.length, from, affine->factor[c], type.dtype, to,
                      &products[c]);
    }
    for (int64_t c = 0; c < affine->n; c++) {
        quality->finite &= products[c].finite && isfinite(affine->factor[c]);
        quality->normal &= products[c].largest == 0 ||
                           products[c].largest >= kiln_float_format(type.dtype)->smallest;
    }
    kiln_tensor_drop_pages(weights); /* what reads them now reads the scaled ones */
    return kiln_tensor_compact(kiln_tensor_new_data(&type, bytes, error));
}

/* --- bias --- */

/* The bias per channel; NULL without an error where it is no literal of that form. */
static double *
read_bias(const KilnNode *product, const KilnAffine *affine, GError **error)
{
    const KilnValue *bias = kiln_literal_source(kiln_node_operand(product, 2));
    if (product->op != KILN_OP_gemm)
        return kiln_literal_read(bias, error);
    double *numbers = kiln_literal_along(bias, &product->results[0].type, 1, error);
    double beta = (double)kiln_attrs(product, gemm)->beta;
    for (int64_t c = 0; numbers && c < affine->n; c++)
        numbers[c] *= beta;
    return numbers;
}

/* Turns @bias into what follows; what becomes of it in @dtype is cleared in @quality. */
static void
shift_bias(double *bias, const KilnAffine *affine, KilnDType dtype, Quality *quality)
{
    for (int64_t c = 0; c < affine->n; c++) {
        bias[c] = bias[c] * affine->factor[c] + affine->offset[c];
        quality->finite &= is_finite(bias[c], dtype);
    }
}

/* --- what weights and bias of 16 bits hold --- */

/* Most weights do not hold their products: the first of these ends the search. */
static bool
weights_keep_bits(const KilnNode *product, const KilnAffine *affine, GError **error)
{
    const KilnConstant *weights = kiln_value_constant(product->operands[1].value);
    if (!weights || !kiln_dtype_is_half(weights->type.dtype))
        return true;
    g_autoptr(GBytes) made = NULL;
    const uint8_t *elements = payload(weights->tensor, &made, error);
    Rows rows = rows_of(product, &weights->type);
    for (int64_t row = 0; elements && row < rows.n; row++) {
        double factor = affine->factor[channel_of(&rows, row)];
        for (int64_t i = row * rows.length; i < (row + 1) * rows.length; i++) {
            double scaled = kiln_element_as_f64(weights->type.dtype, elements, i) * factor;
            if (!kiln_literal_keeps_bits(weights->type.dtype, &scaled, 1))
                return false;
        }
    }
    return !*error;
}

bool
kiln_product_keeps_bits(const KilnNode *product, const KilnAffine *affine, GError **error)
{
    KilnDType dtype = product->results[0].type.dtype;
    if (!kiln_dtype_is_half(dtype))
        return true;
    bool has_bias = kiln_node_operand(product, 2) != NULL;
    g_autofree double *bias = has_bias ? read_bias(product, affine, error) : NULL;
    for (int64_t c = 0; c < affine->n; c++) {
        double shifted = (bias ? bias[c] * affine->factor[c] : 0) + affine->offset[c];
        if (!kiln_literal_keeps_bits(dtype, &shifted, 1))
            return false;
    }
    return !*error && (!kiln_affine_scales(affine) || weights_keep_bits(product, affine, error));
}

/* --- the new node --- */

typedef struct {
    KilnTensor *weights; /* NULL: the old ones */
    double *bias;        /* NULL: none, or the old one */
} Absorbed;

static void
absorbed_clear(Absorbed *absorbed)
{
    kiln_tensor_free(absorbed->weights);
    g_free(absorbed->bias);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Absorbed, absorbed_clear)

static KilnNode *
build(const KilnNode *product, Absorbed *absorbed, KilnNode *end, GError **error)
{
    KilnFunction *function = end->function;
    KilnValue *operands[] = { product->operands[0].value, product->operands[1].value,
                              kiln_node_operand(product, 2) };
    if (absorbed->weights)
        operands[1] = kiln_build_constant(function, end, kiln_affine_constant(operands[1])->name,
                                          g_steal_pointer(&absorbed->weights));
    const KilnType *type = &end->results[0].type;
    if (absorbed->bias) {
        KilnType vector = kiln_type_make(type->dtype, 1, &type->dims[kiln_product_axis(product)]);
        g_autofree char *name = g_strdup_printf("%s_bias", kiln_node_label(product));
        operands[2] = kiln_literal_build(function, end, name, &vector, absorbed->bias, error);
        if (!operands[2])
            return NULL;
    }
    bool to_gemm = product->op == KILN_OP_matmul && operands[2];
    KilnAttrs_gemm gemm = { .alpha = 1, .beta = 1 };
    if (product->op == KILN_OP_gemm) {
        gemm = *kiln_attrs(product, gemm);
        gemm.beta = absorbed->bias ? 1 : gemm.beta;
    }
    KilnNodeSpec spec = { .op = to_gemm ? KILN_OP_gemm : product->op,
                          .name = product->name,
                          .operands = operands,
                          .n_operands = operands[2] ? 3 : 2,
                          .attrs = to_gemm || product->op == KILN_OP_gemm ? &gemm : product->attrs,
                          .types = type,
                          .before = end };
    return kiln_node_new(function, &spec, error);
}

/* Scaled, weights that are a cast of 16 bits take the bytes of what they are cast to. Convolutions
 * pack weights, which pays once these are constant; products of matrices read the 16 bits. */
static bool
may_widen(const KilnNode *product, const KilnPassContext *context)
{
    bool conv = product->op == KILN_OP_conv || product->op == KILN_OP_conv_transpose;
    return conv && !kiln_pass_prefers_memory(context);
}

bool
kiln_affine_absorb(KilnMatch *match, const KilnNode *product, const KilnAffine *affine,
                   KilnNode *end, KilnNode **out)
{
    const KilnType *type = &product->results[0].type;
    const KilnValue *weights = product->operands[1].value;
    const KilnValue *bias = kiln_node_operand(product, 2);
    bool scales = kiln_affine_scales(affine), shifts = kiln_affine_shifts(affine);
    GUARD(float_type, kiln_dtype_is_float(type->dtype) && !type->quant);
    GUARD(plain, !type->layout && !weights->type.layout);
    GUARD(weights_literal, !scales || kiln_affine_constant(weights));
    GUARD(stays_narrow,
          !scales || kiln_value_constant(weights) || may_widen(product, match->context));
    g_auto(Absorbed) absorbed = { 0 };
    Quality quality = { .finite = true, .normal = true };
    if (scales) {
        absorbed.weights = scaled_weights(product, affine, &quality, match->error);
        if (!absorbed.weights)
            return false;
        GUARD(normal, quality.normal);
    }
    if (bias && (scales || shifts)) {
        absorbed.bias = read_bias(product, affine, match->error);
        GUARD(bias_literal, absorbed.bias != NULL);
    } else if (shifts) {
        absorbed.bias = kiln_alloc((size_t)affine->n + 1, sizeof *absorbed.bias, match->error);
        if (!absorbed.bias)
            return false;
        memset(absorbed.bias, 0, (size_t)affine->n * sizeof *absorbed.bias);
    }
    if (absorbed.bias)
        shift_bias(absorbed.bias, affine, type->dtype, &quality);
    GUARD(finite, quality.finite);
    *out = build(product, &absorbed, end, match->error);
    return *out;
}

KilnValue *
kiln_add_number(KilnNode *before, KilnValue *x, int64_t number, GError **error)
{
    const KilnType type = kiln_type_scalar(x->type.dtype);
    KilnTensor *term = kiln_tensor_new_splat(&type, (double)number);
    KilnValue *operands[] = { x, kiln_build_constant(before->function, before, "number", term) };
    return kiln_build(before->function, before, KILN_OP_add, NULL, operands, 2, error);
}
