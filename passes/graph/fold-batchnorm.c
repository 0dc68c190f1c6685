/* SPDX-License-Identifier: Apache-2.0 */
/* fold-batchnorm: a batch normalization in inference mode disappears into the convolution that
 * feeds it.
 *
 *     x   w, b                          x   w', b'
 *      \  /                              \  /
 *      conv                =>            conv         A     = scale / sqrt(var + epsilon)
 *       |   scale, bias, mean, var        |           w'[c] = w[c] · A[c]
 *     batch_normalization                             b'[c] = (b[c] - mean[c]) · A[c] + bias[c]
 *       |
 *
 * and one that multiplies by 1 and adds 0 disappears alone. requires nothing, preserves nothing;
 * class U: the products of weights and scale are rounded once to the element type, from double. The
 * convolution must have no other reader; weights and statistics must be literal, and nothing may
 * overflow. Constants are never changed in place: others may read them. */
#include "passes/rule.h"

#include "graph/alloc.h"
#include "graph/number.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* y[c] = x[c] · factor[c] + offset[c] */
typedef struct {
    int64_t channels;
    double *factor, *offset;
} Affine;

static void
affine_clear(Affine *affine)
{
    g_free(affine->factor);
    g_free(affine->offset);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Affine, affine_clear)

static double *
read_literal(const KilnValue *value, int64_t n, GError **error)
{
    const KilnTensor *tensor = kiln_value_constant(value)->tensor;
    g_autoptr(GBytes) bytes = kiln_tensor_view(tensor, error);
    if (!bytes)
        return NULL;
    double *numbers = g_new(double, (size_t)n + 1);
    for (int64_t i = 0; i < n; i++)
        numbers[i] = kiln_element_as_f64(tensor->type.dtype, g_bytes_get_data(bytes, NULL), i);
    return numbers;
}

static bool
affine_of(const KilnNode *bn, Affine *out, GError **error)
{
    int64_t channels = kiln_type_elements(&bn->operands[1].value->type);
    double epsilon = (double)kiln_attrs(bn, batch_normalization)->epsilon;
    g_autofree double *scale = read_literal(bn->operands[1].value, channels, error);
    g_autofree double *bias = scale ? read_literal(bn->operands[2].value, channels, error) : NULL;
    g_autofree double *mean = bias ? read_literal(bn->operands[3].value, channels, error) : NULL;
    g_autofree double *var = mean ? read_literal(bn->operands[4].value, channels, error) : NULL;
    if (!var)
        return false;
    out->channels = channels;
    out->factor = g_new(double, (size_t)channels + 1);
    out->offset = g_new(double, (size_t)channels + 1);
    for (int64_t c = 0; c < channels; c++) {
        out->factor[c] = scale[c] / sqrt(var[c] + epsilon);
        out->offset[c] = bias[c] - mean[c] * out->factor[c];
    }
    return true;
}

/* --- the new constants --- */

/* Weights are rows of elements that belong to one output channel. Inference has seen to it that
 * there are as many of them as statistics, whatever is known of the data. */
typedef struct {
    int64_t n, length;        /* rows, elements per row */
    int64_t columns;          /* conv_transpose: rows per input channel; conv: all */
    int64_t inputs_per_group; /* conv_transpose; conv: 1 */
} Rows;

/* conv: [O, I/g, …] is a row per output. conv_transpose: [I, O/g, …], where the I/g inputs of group
 * k have rows of the outputs k·O/g …. */
static Rows
rows_of(const KilnNode *conv, const KilnType *weights)
{
    int64_t inner = 1;
    for (int d = 2; d < weights->rank; d++)
        inner *= weights->dims[d];
    if (conv->op == KILN_OP_conv)
        return (Rows){ weights->dims[0], inner * weights->dims[1], weights->dims[0], 1 };
    return (Rows){ weights->dims[0] * weights->dims[1], inner, weights->dims[1],
                   weights->dims[0] / kiln_attrs(conv, conv_transpose)->group };
}

static int64_t
channel_of(const Rows *rows, int64_t row)
{
    return row / rows->columns / rows->inputs_per_group * rows->columns + row % rows->columns;
}

/* @n elements of @from, wherever they lie, times @factor in @to; false where one is no finite
 * number (any more): infinity times 0 is none. */
static bool
scale_f32(int64_t n, const uint8_t *restrict from, double factor, float *restrict to)
{
    int wrong = 0;
    for (int64_t i = 0; i < n; i++) {
        float element;
        memcpy(&element, from + i * (int64_t)sizeof element, sizeof element);
        to[i] = (float)((double)element * factor);
        wrong |= !(fabsf(to[i]) <= FLT_MAX);
    }
    return !wrong;
}

static bool
scale_any(KilnDType dtype, int64_t n, const uint8_t *from, double factor, uint8_t *to)
{
    bool finite = true;
    for (int64_t i = 0; i < n; i++) {
        kiln_element_store_f64(dtype, to, i, kiln_element_as_f64(dtype, from, i) * factor);
        finite &= isfinite(kiln_element_as_f64(dtype, to, i));
    }
    return finite;
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

static KilnTensor *
scaled_weights(const KilnNode *conv, const Affine *affine, bool *finite, GError **error)
{
    const KilnTensor *weights = kiln_value_constant(conv->operands[1].value)->tensor;
    const KilnType *type = &weights->type;
    g_autoptr(GBytes) made = NULL;
    const uint8_t *old = payload(weights, &made, error);
    size_t size = (size_t)kiln_type_bytes(type), element = kiln_dtype_size(type->dtype);
    uint8_t *scaled = old || !size ? kiln_alloc(1, size, error) : NULL;
    if (!scaled)
        return NULL;
    Rows rows = rows_of(conv, type);
    size_t row_bytes = (size_t)rows.length * element;
    for (int64_t row = 0; row < rows.n && size; row++) {
        double factor = affine->factor[channel_of(&rows, row)];
        const uint8_t *from = old + (size_t)row * row_bytes;
        uint8_t *to = scaled + (size_t)row * row_bytes;
        *finite &= type->dtype == KILN_DTYPE_f32
                       ? scale_f32(rows.length, from, factor, (float *)(void *)to)
                       : scale_any(type->dtype, rows.length, from, factor, to);
    }
    kiln_tensor_drop_pages(weights); /* what reads them now reads the scaled ones */
    g_autoptr(GBytes) bytes = kiln_bytes_take(scaled, size);
    return kiln_tensor_new_data(type, bytes, error);
}

static KilnTensor *
new_bias(const KilnNode *conv, const Affine *affine, bool *finite, GError **error)
{
    const KilnValue *old = kiln_node_operand(conv, 2);
    g_autofree double *bias = old ? read_literal(old, affine->channels, error) : NULL;
    if (old && !bias)
        return NULL;
    KilnDType dtype = conv->results[0].type.dtype;
    KilnType type = kiln_type_make(dtype, 1, &affine->channels);
    size_t size = (size_t)kiln_type_bytes(&type);
    void *data = kiln_alloc(1, size, error);
    if (!data)
        return NULL;
    for (int64_t c = 0; c < affine->channels; c++) {
        kiln_element_store_f64(dtype, data, c,
                               (bias ? bias[c] : 0) * affine->factor[c] + affine->offset[c]);
        *finite &= isfinite(kiln_element_as_f64(dtype, data, c));
    }
    g_autoptr(GBytes) bytes = kiln_bytes_take(data, size);
    return kiln_tensor_new_data(&type, bytes, error);
}

/* --- the rules --- */

static bool
inference_only(const KilnNode *bn)
{
    for (uint32_t i = 1; i < bn->n_results; i++) {
        if (bn->results[i].n_uses)
            return false;
    }
    return !kiln_attrs(bn, batch_normalization)->training_mode;
}

static bool
plain_statistics(const KilnNode *bn)
{
    for (uint32_t i = 1; i <= 4; i++) {
        const KilnType *type = &bn->operands[i].value->type;
        if (!kiln_dtype_is_float(type->dtype) || type->quant)
            return false;
    }
    return true;
}

static bool
fold_into(KilnMatch *match, KilnPassContext *context, const char *rule, GError **error)
{
    KilnNode *bn = kiln_match_root(match), *conv = kiln_match_node(match, "conv");
    KilnFunction *function = kiln_match_function(match);
    const KilnType *type = &conv->results[0].type;
    GUARD(inference, kiln_pass_mode(context) == KILN_MODE_INFER && inference_only(bn));
    const KilnType *stored = &kiln_value_constant(conv->operands[1].value)->type;
    GUARD(float_type, kiln_dtype_is_float(type->dtype) && !type->quant);
    GUARD(plain, !type->layout && !stored->layout);
    GUARD(plain_statistics, plain_statistics(bn));
    GUARD(bias_literal,
          !kiln_node_operand(conv, 2) || kiln_value_constant(conv->operands[2].value));
    g_auto(Affine) affine = { 0 };
    if (!affine_of(bn, &affine, error))
        return false;
    bool finite = true;
    g_autoptr(KilnTensor) weights = scaled_weights(conv, &affine, &finite, error);
    g_autoptr(KilnTensor) bias = weights ? new_bias(conv, &affine, &finite, error) : NULL;
    if (!bias)
        return false;
    GUARD(finite, finite);
    g_autofree char *bias_name = g_strdup_printf("%s_bias", kiln_node_label(conv));
    KilnValue *operands[] = {
        conv->operands[0].value,
        kiln_build_constant(function, bn, kiln_value_constant(conv->operands[1].value)->name,
                            g_steal_pointer(&weights)),
        kiln_build_constant(function, bn, bias_name, g_steal_pointer(&bias)),
    };
    KilnNodeSpec spec = { .op = conv->op,
                          .name = conv->name,
                          .operands = operands,
                          .n_operands = 3,
                          .attrs = conv->attrs,
                          .types = &bn->results[0].type,
                          .before = bn };
    KilnNode *folded = kiln_node_new(function, &spec, error);
    return folded && kiln_match_replace(match, context, rule, &folded->results[0]);
}

static bool
drop_identity(KilnMatch *match, KilnPassContext *context, const char *rule, GError **error)
{
    KilnNode *bn = kiln_match_root(match);
    KilnValue *x = kiln_match_value(match, "x");
    GUARD(inference, kiln_pass_mode(context) == KILN_MODE_INFER && inference_only(bn));
    GUARD(plain_statistics, plain_statistics(bn));
    g_auto(Affine) affine = { 0 };
    if (!affine_of(bn, &affine, error))
        return false;
    for (int64_t c = 0; c < affine.channels; c++)
        GUARD(changes_nothing, affine.factor[c] == 1 && affine.offset[c] == 0);
    return kiln_match_replace(match, context, rule, x);
}

static const KilnRule rules[] = {
    RULE("batchnorm-identity", U, "(batch_normalization ?x $ $ $ $)", drop_identity),
    RULE("batchnorm-into-conv", U,
         "(batch_normalization (conv|conv_transpose#conv! ?x $w ...) $ $ $ $)", fold_into),
};

const KilnRule *
kiln_pass_rules_fold_batchnorm(uint32_t *n)
{
    *n = G_N_ELEMENTS(rules);
    return rules;
}

gboolean
kiln_pass_fold_batchnorm(KilnFunction *function, KilnPassContext *context, bool *changed,
                         GError **error)
{
    return kiln_rules_run(rules, G_N_ELEMENTS(rules), function, KILN_SWEEP_FORWARD, context,
                          changed, error);
}
