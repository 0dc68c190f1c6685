/* SPDX-License-Identifier: Apache-2.0 */
/* SVMClassifier and SVMRegressor of ai.onnx.ml, in f32: a kernel function of each row and each
 * support vector, then a product with coefficients. Without support vectors they are linear. */
#include "graph/base/alloc.h"
#include "graph/graph.h"
#include "graph/onnx/convert.h"
#include "graph/onnx/ml/ml.h"
#include "graph/onnx/steps.h"
#include "graph/op/bounds.h"
#include "graph/op/learn.h"
#include "graph/op/logic.h"
#include "graph/op/math.h"

#include <string.h>

typedef struct {
    KilnOnnxSteps s;
    KilnFloats coefficients, vectors, rho;
    const char *kernel;
    double gamma, coef0, degree;
    KilnOnnxMlTransform transform;
} Svm;

static gboolean
take_attrs(KilnOnnxCall *call, Svm *m, GError **error)
{
    static const char *const kernels[] = { "LINEAR", "POLY", "RBF", "SIGMOID" };
    KilnFloats params = { 0 };
    m->kernel = "LINEAR";
    if (!kiln_onnx_take_floats(call, "coefficients", &m->coefficients, error) ||
        !kiln_onnx_take_floats(call, "support_vectors", &m->vectors, error) ||
        !kiln_onnx_take_floats(call, "rho", &m->rho, error) ||
        !kiln_onnx_take_floats(call, "kernel_params", &params, error) ||
        !kiln_onnx_take_text(call, "kernel_type", &m->kernel, error) ||
        !kiln_onnx_ml_take_transform(call, &m->transform, error))
        return FALSE;
    if (params.n && !kiln_onnx_ml_check_length(call, "kernel_params", params.n, 3, error))
        return FALSE;
    m->gamma = params.n ? params.v[0] : 0;
    m->coef0 = params.n ? params.v[1] : 0;
    m->degree = params.n ? params.v[2] : 0;
    for (size_t i = 0; i < G_N_ELEMENTS(kernels); i++) {
        if (strcmp(m->kernel, kernels[i]) == 0)
            return TRUE;
    }
    return kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                           "attribute 'kernel_type': expected LINEAR, POLY, RBF or SIGMOID, found "
                           "\"%s\"",
                           m->kernel);
}

/* Checks that the list has numbers for each of @rows, and for each feature of @x. */
static gboolean
check_matrix(const Svm *m, const char *name, KilnFloats list, int64_t rows, const KilnValue *x,
             int64_t *out_columns)
{
    const int64_t known = x->type.dims[1];
    *out_columns = rows > 0 ? list.n / rows : 0;
    if (*out_columns > 0 && *out_columns * rows == list.n && (known < 0 || known == *out_columns))
        return TRUE;
    return kiln_onnx_throw(m->s.call, KILN_ERROR_INVALID, m->s.error,
                           "attribute '%s': expected numbers for %" G_GINT64_FORMAT
                           " rows of features, found %u",
                           name, rows, list.n);
}

/* The kernel function [N, @n] of @x and @n vectors. */
static KilnValue *
kernel_of(const Svm *m, KilnValue *x, const char *name, KilnFloats list, int64_t n)
{
    static const int64_t swap[] = { 1, 0 };
    const KilnOnnxSteps *s = &m->s;
    int64_t features;
    if (!check_matrix(m, name, list, n, x, &features))
        return NULL;
    KilnValue *vectors = kiln_onnx_ml_matrix(s, "vectors", list.v, n, features);
    if (strcmp(m->kernel, "RBF") == 0) {
        KilnValue *distance = kiln_onnx_step2(s, KILN_OP_squared_distance, NULL, x, vectors);
        return kiln_onnx_step1(s, KILN_OP_exp, NULL,
                               kiln_onnx_step_mul_number(s, distance, -m->gamma));
    }
    KilnValue *y = kiln_onnx_step_matmul(s, x, kiln_onnx_step_transpose(s, vectors, swap, 2));
    if (strcmp(m->kernel, "LINEAR") == 0)
        return y;
    y = kiln_onnx_step_add_number(s, kiln_onnx_step_mul_number(s, y, m->gamma), m->coef0);
    return strcmp(m->kernel, "POLY") == 0 ? kiln_onnx_step_pow_number(s, y, m->degree)
                                          : kiln_onnx_ml_tanh(s, y);
}

/* --- SVMRegressor --- */

gboolean
kiln_onnx_convert_svm_regressor(KilnOnnxCall *call, GError **error)
{
    Svm m = { .s = { call, error } };
    int64_t n = 0, one_class = 0;
    KilnValue *x = NULL, *y;
    if (!take_attrs(call, &m, error) || !kiln_onnx_take_int(call, "n_supports", &n, error) ||
        !kiln_onnx_take_int(call, "one_class", &one_class, error) ||
        !kiln_onnx_ml_check_length(call, "rho", m.rho.n, 1, error) ||
        (n > 0 && !kiln_onnx_ml_check_length(call, "coefficients", m.coefficients.n, n, error)))
        return FALSE;
    x = kiln_onnx_ml_rows(&m.s, KILN_DTYPE_f32);
    if (!x)
        return FALSE;
    if (n > 0) {
        y = kernel_of(&m, x, "support_vectors", m.vectors, n);
        y = kiln_onnx_step_matmul(
            &m.s, y, kiln_onnx_ml_matrix(&m.s, "coefficients", m.coefficients.v, n, 1));
    } else {
        m.kernel = "LINEAR";
        y = kernel_of(&m, x, "coefficients", m.coefficients, 1);
    }
    y = kiln_onnx_step_add_number(&m.s, y, m.rho.v[0]);
    if (one_class && y)
        y = kiln_onnx_step3(&m.s, KILN_OP_where, NULL,
                            kiln_onnx_step_number(&m.s, KILN_OP_greater, y, 0),
                            kiln_onnx_scalar(call, "inside", KILN_DTYPE_f32, 1),
                            kiln_onnx_scalar(call, "outside", KILN_DTYPE_f32, -1));
    else
        y = kiln_onnx_ml_transform(&m.s, m.transform, y);
    return kiln_onnx_set_result(call, 0, y);
}

/* --- SVMClassifier --- */

typedef struct {
    Svm m;
    KilnOnnxMlLabels labels;
    KilnInts counts; /* support vectors of each class */
    KilnFloats a, b; /* of the sigmoids that give probabilities */
    int64_t n, pairs, vectors;
} Classifier;

static gboolean
take_classes(Classifier *c)
{
    KilnOnnxCall *call = c->m.s.call;
    GError **error = c->m.s.error;
    bool there;
    if (!take_attrs(call, &c->m, error) ||
        !kiln_onnx_ml_take_labels(call, "classlabels_ints", &c->labels, error) ||
        !kiln_onnx_take_ints(call, "vectors_per_class", &c->counts, &there, error) ||
        !kiln_onnx_take_floats(call, "prob_a", &c->a, error) ||
        !kiln_onnx_take_floats(call, "prob_b", &c->b, error))
        return FALSE;
    c->n = c->labels.n;
    c->pairs = c->n * (c->n - 1) / 2;
    for (uint32_t i = 0; i < c->counts.n; i++) {
        if (c->counts.v[i] < 0 || c->counts.v[i] > c->m.vectors.n)
            return kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                                   "attribute 'vectors_per_class': expected 0 to %u, found "
                                   "%" G_GINT64_FORMAT,
                                   c->m.vectors.n, c->counts.v[i]);
        c->vectors += c->counts.v[i];
    }
    if (!c->vectors)
        return TRUE;
    if (c->n < 2 || c->n > G_MAXUINT16)
        return kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                               "attribute 'classlabels_ints': expected 2 to 65535 labels, found %u",
                               c->labels.n);
    return kiln_onnx_ml_check_length(call, "vectors_per_class", c->counts.n, c->n, error) &&
           kiln_onnx_ml_check_length(call, "rho", c->m.rho.n, c->pairs, error) &&
           kiln_onnx_ml_check_length(call, "prob_a", c->a.n, c->a.n ? c->pairs : 0, error) &&
           kiln_onnx_ml_check_length(call, "prob_b", c->b.n, c->a.n, error) &&
           kiln_onnx_ml_check_length(call, "coefficients", c->m.coefficients.n,
                                     (c->n - 1) * c->vectors, error);
}

/* @n zeros; free them with kiln_free(). */
static float *
zeros(const Classifier *c, int64_t n)
{
    float *numbers = kiln_alloc((size_t)n, sizeof *numbers, c->m.s.error);
    if (numbers)
        memset(numbers, 0, (size_t)n * sizeof *numbers);
    return numbers;
}

/* The coefficients of each pair [vectors, pairs]: of classes i < j, support vectors of i have those
 * of row j - 1, and those of j have row i. */
static void
set_coefficients(const Classifier *c, float *w)
{
    int64_t pair = 0, first_i = 0;
    for (int64_t i = 0; i < c->n; first_i += c->counts.v[i++]) {
        int64_t first_j = first_i + c->counts.v[i];
        for (int64_t j = i + 1; j < c->n; first_j += c->counts.v[j++], pair++) {
            const float *of_i = c->m.coefficients.v + (j - 1) * c->vectors;
            const float *of_j = c->m.coefficients.v + i * c->vectors;
            for (int64_t v = first_i; v < first_i + c->counts.v[i]; v++)
                w[v * c->pairs + pair] = of_i[v];
            for (int64_t v = first_j; v < first_j + c->counts.v[j]; v++)
                w[v * c->pairs + pair] = of_j[v];
        }
    }
}

/* The score of each pair [N, pairs]. */
static KilnValue *
pair_scores(const Classifier *c, KilnValue *kernel)
{
    const KilnOnnxSteps *s = &c->m.s;
    float *w = zeros(c, c->vectors * c->pairs);
    if (!w)
        return NULL;
    set_coefficients(c, w);
    KilnValue *y = kiln_onnx_ml_matrix(s, "coefficients", w, c->vectors, c->pairs);
    kiln_free(w);
    return kiln_onnx_step_add(s, kiln_onnx_step_matmul(s, kernel, y),
                              kiln_onnx_ml_floats(s, "rho", KILN_DTYPE_f32, c->m.rho));
}

/* The class that wins most pairs: a pair votes for its first class where its score is above 0. */
static KilnValue *
voted(const Classifier *c, KilnValue *scores)
{
    const KilnOnnxSteps *s = &c->m.s;
    float *w = zeros(c, (c->pairs + 1) * c->n);
    if (!w)
        return NULL;
    float *second = w + c->pairs * c->n; /* votes of each class if all pairs vote for the second */
    for (int64_t i = 0, pair = 0; i < c->n; i++) {
        for (int64_t j = i + 1; j < c->n; j++, pair++) {
            w[pair * c->n + i] = 1;
            w[pair * c->n + j] = -1;
            second[j] += 1;
        }
    }
    KilnValue *first = kiln_onnx_step_number(s, KILN_OP_greater, scores, 0);
    first = kiln_onnx_step_cast(s, first, KILN_DTYPE_f32);
    KilnValue *votes =
        kiln_onnx_step_matmul(s, first, kiln_onnx_ml_matrix(s, "votes", w, c->pairs, c->n));
    votes = kiln_onnx_step_add(s, votes, kiln_onnx_ml_matrix(s, "second", second, 1, c->n));
    kiln_free(w);
    return kiln_onnx_ml_largest(s, votes);
}

/* The probability of the first class of each pair, 1 / (1 + e^(a score + b)), then of classes. */
static KilnValue *
probabilities(const Classifier *c, KilnValue *scores)
{
    const KilnOnnxSteps *s = &c->m.s;
    KilnAttrs_pairwise_coupling attrs = { .classes = c->n };
    KilnValue *y =
        kiln_onnx_step_mul(s, scores, kiln_onnx_ml_floats(s, "prob_a", KILN_DTYPE_f32, c->a));
    y = kiln_onnx_step_add(s, y, kiln_onnx_ml_floats(s, "prob_b", KILN_DTYPE_f32, c->b));
    y = kiln_onnx_ml_transform(s, KILN_ONNX_ML_LOGISTIC, kiln_onnx_step_mul_number(s, y, -1));
    if (!y)
        return NULL;
    y = kiln_onnx_step3(s, KILN_OP_clip, NULL, y,
                        kiln_onnx_scalar(s->call, "least", KILN_DTYPE_f32, (double)1e-7f),
                        kiln_onnx_scalar(s->call, "most", KILN_DTYPE_f32, (double)(1 - 1e-7f)));
    return kiln_onnx_step1(s, KILN_OP_pairwise_coupling, &attrs, y);
}

/* Of a model with support vectors. Two classes without probabilities have the scores -s and s of
 * their pair, or s and -s where a transform follows: ONNX Runtime's order. */
static gboolean
convert_vectors(const Classifier *c, KilnValue *x, KilnValue **best, KilnValue **scores)
{
    const KilnOnnxSteps *s = &c->m.s;
    KilnValue *kernel = kernel_of(&c->m, x, "support_vectors", c->m.vectors, c->vectors);
    KilnValue *pairs = kernel ? pair_scores(c, kernel) : NULL;
    if (!pairs)
        return FALSE;
    *best = voted(c, pairs);
    if (c->a.n)
        *scores = probabilities(c, pairs);
    else if (c->n == 2)
        *scores = kiln_onnx_step_concat(s, kiln_onnx_step_mul_number(s, pairs, -1), pairs, 1);
    else
        *scores = pairs;
    return *best && *scores;
}

gboolean
kiln_onnx_convert_svm_classifier(KilnOnnxCall *call, GError **error)
{
    Classifier c = { .m.s = { call, error } };
    KilnValue *best = NULL, *scores = NULL;
    KilnValue *x = kiln_onnx_ml_rows(&c.m.s, KILN_DTYPE_f32);
    if (!x || !take_classes(&c))
        return FALSE;
    if (c.vectors) {
        if (!convert_vectors(&c, x, &best, &scores))
            return FALSE;
    } else {
        c.m.kernel = "LINEAR";
        if (!c.m.rho.n)
            return kiln_onnx_ml_check_length(call, "rho", 0, 1, error);
        scores = kernel_of(&c.m, x, "coefficients", c.m.coefficients, c.n);
        scores = kiln_onnx_step_add_number(&c.m.s, scores, c.m.rho.v[0]);
        best = kiln_onnx_ml_largest(&c.m.s, scores);
    }
    scores = kiln_onnx_ml_transform(&c.m.s, c.m.transform, scores);
    return kiln_onnx_set_result(call, 0, kiln_onnx_ml_label(&c.m.s, c.labels, best)) &&
           kiln_onnx_set_result(call, 1, scores);
}
