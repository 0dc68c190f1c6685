/* SPDX-License-Identifier: Apache-2.0 */
/* Imports of ai.onnx.ml beside trees: what operators become, and what is refused. */
#include "graph/kiln-types.h"
#include "tests/unit/onnx_builder.h"

#include <string.h>

static const float ones[] = { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 };

#define SOME(name, n) onnx_floats((name), (n), ones)

/* The graph of one node, which the caller adds. */
static GByteArray *
graph_of(int dtype, const char *dims)
{
    GByteArray *graph = onnx_graph_new("g");
    onnx_input(graph, "x", dtype, dims);
    return graph;
}

/* @op of x with attributes up to NULL. */
#define NODE(graph, op, outputs, ...)                                                              \
    onnx_node((graph), "ai.onnx.ml:" op, "x", (outputs), __VA_ARGS__, NULL)

/* Takes @graph over. */
static char *
imported(GByteArray *graph)
{
    onnx_output(graph, "y", ONNX_F32, NULL);
    return onnx_imported(onnx_model(graph, 9, 18));
}

static void
expect_refused(GByteArray *graph, const char *message)
{
    onnx_output(graph, "y", ONNX_F32, NULL);
    onnx_expect_error(graph, 18, KILN_ERROR_INVALID, message);
}

Test(onnx_ml, features_are_chains)
{
    GByteArray *graph = graph_of(ONNX_I64, "N,3");
    NODE(graph, "Scaler", "y", SOME("scale", 3), SOME("offset", 1));
    g_autofree char *scaled = imported(graph);
    cr_expect(strstr(scaled, "%y = mul(%y.sub, %y.scale) : f32[N,3]"), "%s", scaled);
    graph = graph_of(ONNX_F32, "N,3");
    NODE(graph, "Normalizer", "y", onnx_text("norm", "L2"));
    g_autofree char *normal = imported(graph);
    cr_expect(strstr(normal, "reduce_l2(%x, "), "%s", normal);
    graph = graph_of(ONNX_I32, "N,3");
    NODE(graph, "Binarizer", "y", onnx_float("threshold", -0.5f));
    g_autofree char *binary = imported(graph);
    cr_expect(strstr(binary, "cast(%y.greater) {to=i32}"), "%s", binary);
}

Test(onnx_ml, lists_of_features_that_do_not_fit)
{
    GByteArray *graph = graph_of(ONNX_F32, "N,3");
    NODE(graph, "Scaler", "y", SOME("scale", 2), SOME("offset", 1));
    expect_refused(graph, "y (Scaler): attribute 'scale': expected one number, or one for each of "
                          "3 features, found 2");
    graph = graph_of(ONNX_F32, "N,3");
    NODE(graph, "Imputer", "y", SOME("imputed_value_floats", 2));
    expect_refused(graph, "attribute 'imputed_value_floats': expected one number");
    graph = graph_of(ONNX_I64, "N,3");
    NODE(graph, "Imputer", "y", SOME("imputed_value_floats", 3));
    expect_refused(graph, "attribute 'imputed_value_int64s': expected one number, or one for each "
                          "of 3 features, found 0");
    graph = graph_of(ONNX_F32, "N,3");
    NODE(graph, "Normalizer", "y", onnx_text("norm", "L3"));
    expect_refused(graph, "attribute 'norm': expected MAX, L1 or L2, found \"L3\"");
    graph = graph_of(ONNX_F32, "N,3");
    NODE(graph, "FeatureVectorizer", "y", ONNX_INTS("inputdimensions", 4));
    onnx_output(graph, "y", ONNX_F32, NULL);
    onnx_expect_error(graph, 18, KILN_ERROR_SHAPE,
                      "operand 0: expected 4 columns, as 'inputdimensions' says, found 3");
}

Test(onnx_ml, linear_models)
{
    GByteArray *graph = graph_of(ONNX_F32, "N,3");
    NODE(graph, "LinearRegressor", "y", SOME("coefficients", 5), onnx_int("targets", 2));
    expect_refused(graph, "attribute 'coefficients': expected a number for each of 2 targets and 3 "
                          "features, found 5");
    graph = graph_of(ONNX_F32, "N,3");
    NODE(graph, "LinearRegressor", "y", SOME("coefficients", 6), onnx_int("targets", 2),
         SOME("intercepts", 3));
    expect_refused(graph, "attribute 'intercepts': expected 2 elements, found 3");
    graph = graph_of(ONNX_F32, "N,3");
    NODE(graph, "LinearClassifier", "y,z", SOME("coefficients", 3));
    expect_refused(graph, "expected labels in 'classlabels_ints' or 'classlabels_strings', found "
                          "none");
    graph = graph_of(ONNX_F32, "N,3");
    NODE(graph, "LinearClassifier", "y,z", SOME("coefficients", 3), SOME("intercepts", 1),
         ONNX_INTS("classlabels_ints", 3, 7));
    g_autofree char *found = imported(graph);
    cr_expect(strstr(found, "%y = gather(%y.labels, "), "%s", found);
}

Test(onnx_ml, support_vectors)
{
    GByteArray *graph = graph_of(ONNX_F32, "N,3");
    NODE(graph, "SVMRegressor", "y", SOME("coefficients", 2), SOME("support_vectors", 6),
         SOME("rho", 1), onnx_int("n_supports", 2), SOME("kernel_params", 3),
         onnx_text("kernel_type", "RBF"));
    g_autofree char *found = imported(graph);
    cr_expect(strstr(found, "squared_distance(%x, %y.vectors) : f32[N,2]"), "%s", found);
    graph = graph_of(ONNX_F32, "N,3");
    NODE(graph, "SVMRegressor", "y", SOME("coefficients", 2), SOME("support_vectors", 5),
         SOME("rho", 1), onnx_int("n_supports", 2));
    expect_refused(graph, "attribute 'support_vectors': expected numbers for 2 rows of features, "
                          "found 5");
    graph = graph_of(ONNX_F32, "N,3");
    NODE(graph, "SVMRegressor", "y", SOME("coefficients", 2), SOME("rho", 1),
         onnx_text("kernel_type", "CUBIC"));
    expect_refused(graph, "expected LINEAR, POLY, RBF or SIGMOID, found \"CUBIC\"");
    graph = graph_of(ONNX_F32, "N,3");
    NODE(graph, "SVMClassifier", "y,z", SOME("coefficients", 2), SOME("support_vectors", 6),
         SOME("rho", 2), ONNX_INTS("vectors_per_class", 1, 1), ONNX_INTS("classlabels_ints", 0, 1));
    expect_refused(graph, "attribute 'rho': expected 1 elements, found 2");
    graph = graph_of(ONNX_F32, "N,3");
    NODE(graph, "SVMClassifier", "y,z", SOME("coefficients", 2), SOME("support_vectors", 6),
         SOME("rho", 1), ONNX_INTS("vectors_per_class", 1, -1),
         ONNX_INTS("classlabels_ints", 0, 1));
    expect_refused(graph, "attribute 'vectors_per_class': expected 0 to 6, found -1");
}

Test(onnx_ml, keys_and_values)
{
    GByteArray *graph = graph_of(ONNX_I64, "N,3");
    NODE(graph, "LabelEncoder", "y", ONNX_INTS("keys_int64s", 1, 2), SOME("values_floats", 2));
    g_autofree char *found = imported(graph);
    cr_expect(strstr(found, "%y = label_encoder(%x, %y.keys, %y.values, %y.default) : f32[N,3]"),
              "%s", found);
    graph = graph_of(ONNX_I64, "N,3");
    NODE(graph, "LabelEncoder", "y", ONNX_INTS("keys_int64s", 1, 2), SOME("keys_floats", 2),
         SOME("values_floats", 2));
    expect_refused(graph, "expected one of 'keys_int64s', 'keys_floats', 'keys_strings' and "
                          "'keys_tensor', found 2 of them");
    graph = graph_of(ONNX_I64, "N,3");
    NODE(graph, "OneHotEncoder", "y", onnx_int("zeros", 1));
    expect_refused(graph, "expected categories in one of 'cats_int64s' and 'cats_strings', found "
                          "none");
}

/* One bad attribute each, beside good ones. */
Test(onnx_ml, bad_attributes_of_features)
{
    GByteArray *graph = graph_of(ONNX_F32, "N,3");
    NODE(graph, "Scaler", "y", SOME("scale", 3), SOME("offset", 4));
    expect_refused(graph, "attribute 'offset': expected one number, or one for each of 3 features, "
                          "found 4");
    graph = graph_of(ONNX_F32, "N,3");
    NODE(graph, "Scaler", "y", SOME("scale", 3));
    expect_refused(graph, "attribute 'offset': expected one number, or one for each of 3 features, "
                          "found 0");
    graph = graph_of(ONNX_F32, "N,3");
    NODE(graph, "FeatureVectorizer", "y", ONNX_INTS("inputdimensions", 3, 3));
    expect_refused(graph, "attribute 'inputdimensions': expected 1 elements, found 2");
    graph = graph_of(ONNX_F32, "N,3");
    NODE(graph, "Binarizer", "y", onnx_text("threshold", "0"));
    expect_refused(graph, "attribute 'threshold'");
    graph = graph_of(ONNX_F32, "N,3");
    NODE(graph, "Imputer", "y", SOME("imputed_value_floats", 3),
         onnx_text("replaced_value_float", "nan"));
    expect_refused(graph, "attribute 'replaced_value_float'");
}

Test(onnx_ml, bad_attributes_of_linear_models)
{
    GByteArray *graph = graph_of(ONNX_F32, "N,3");
    NODE(graph, "LinearRegressor", "y", SOME("coefficients", 3), onnx_int("targets", 0));
    expect_refused(graph, "attribute 'targets': expected 1 to 2147483647, found 0");
    graph = graph_of(ONNX_F32, "N,3");
    NODE(graph, "LinearRegressor", "y", SOME("coefficients", 3),
         onnx_text("post_transform", "SOFTPLUS"));
    expect_refused(graph, "attribute 'post_transform': expected NONE, SOFTMAX, LOGISTIC, "
                          "SOFTMAX_ZERO or PROBIT, found \"SOFTPLUS\"");
    graph = graph_of(ONNX_F32, "N,3");
    NODE(graph, "LinearClassifier", "y,z", SOME("coefficients", 8), SOME("intercepts", 3),
         ONNX_INTS("classlabels_ints", 0, 1, 2));
    expect_refused(graph, "attribute 'coefficients': expected a number for each of 3 targets and 3 "
                          "features, found 8");
    graph = graph_of(ONNX_F32, "N,3");
    NODE(graph, "LinearClassifier", "y,z", SOME("coefficients", 9), SOME("intercepts", 2),
         ONNX_INTS("classlabels_ints", 0, 1, 2));
    expect_refused(graph, "attribute 'intercepts': expected 3 elements, found 2");
    graph = graph_of(ONNX_F32, "N,3");
    NODE(graph, "LinearClassifier", "y,z", SOME("coefficients", 6),
         ONNX_INTS("classlabels_ints", 0, 1),
         onnx_texts("classlabels_strings", 2, (const char *const[]){ "a", "b" }));
    expect_refused(graph,
                   "attributes 'classlabels_ints' and 'classlabels_strings': expected one of "
                   "them, found both");
}

#define SVM(graph, ...)                                                                            \
    NODE((graph), "SVMClassifier", "y,z", SOME("support_vectors", 6),                              \
         ONNX_INTS("vectors_per_class", 1, 1), __VA_ARGS__)

Test(onnx_ml, bad_attributes_of_support_vectors)
{
    GByteArray *graph = graph_of(ONNX_F32, "N,3");
    NODE(graph, "SVMRegressor", "y", SOME("coefficients", 2), SOME("support_vectors", 6),
         SOME("rho", 1), onnx_int("n_supports", 2), SOME("kernel_params", 2));
    expect_refused(graph, "attribute 'kernel_params': expected 3 elements, found 2");
    graph = graph_of(ONNX_F32, "N,3");
    NODE(graph, "SVMRegressor", "y", SOME("coefficients", 3), SOME("support_vectors", 6),
         SOME("rho", 1), onnx_int("n_supports", 2));
    expect_refused(graph, "attribute 'coefficients': expected 2 elements, found 3");
    graph = graph_of(ONNX_F32, "N,3");
    NODE(graph, "SVMRegressor", "y", SOME("coefficients", 3));
    expect_refused(graph, "lacks the attribute 'rho'");
    graph = graph_of(ONNX_F32, "N,3");
    SVM(graph, SOME("coefficients", 2), SOME("rho", 1), ONNX_INTS("classlabels_ints", 4));
    expect_refused(graph, "attribute 'classlabels_ints': expected 2 to 65535 labels, found 1");
    graph = graph_of(ONNX_F32, "N,3");
    SVM(graph, SOME("coefficients", 2), SOME("rho", 1), ONNX_INTS("classlabels_ints", 0, 1, 2));
    expect_refused(graph, "attribute 'vectors_per_class': expected 3 elements, found 2");
    graph = graph_of(ONNX_F32, "N,3");
    SVM(graph, SOME("coefficients", 3), SOME("rho", 1), ONNX_INTS("classlabels_ints", 0, 1));
    expect_refused(graph, "attribute 'coefficients': expected 2 elements, found 3");
    graph = graph_of(ONNX_F32, "N,3");
    SVM(graph, SOME("coefficients", 2), SOME("rho", 1), ONNX_INTS("classlabels_ints", 0, 1),
        SOME("prob_a", 2), SOME("prob_b", 2));
    expect_refused(graph, "attribute 'prob_a': expected 1 elements, found 2");
    graph = graph_of(ONNX_F32, "N,3");
    SVM(graph, SOME("coefficients", 2), SOME("rho", 1), ONNX_INTS("classlabels_ints", 0, 1),
        SOME("prob_a", 1));
    expect_refused(graph, "attribute 'prob_b': expected 1 elements, found 0");
}

Test(onnx_ml, bad_attributes_of_labels)
{
    GByteArray *graph = graph_of(ONNX_I64, "N,3");
    NODE(graph, "LabelEncoder", "y", ONNX_INTS("keys_int64s", 1, 2), SOME("values_floats", 3));
    expect_refused(graph, "attribute 'values_*': expected 2 elements, one for each key, found 3");
    graph = graph_of(ONNX_I64, "N,3");
    NODE(graph, "LabelEncoder", "y", ONNX_INTS("keys_int64s", 1, 2));
    expect_refused(graph, "expected one of 'values_int64s', 'values_floats', 'values_strings' and "
                          "'values_tensor', found 0 of them");
    graph = graph_of(ONNX_I64, "N,3");
    NODE(graph, "LabelEncoder", "y", onnx_int("keys_tensor", 1), SOME("values_floats", 1));
    expect_refused(graph, "attribute 'keys_tensor'");
}

Test(onnx_ml, strings_are_labels)
{
    GByteArray *graph = graph_of(ONNX_I64, "N,3");
    NODE(graph, "LabelEncoder", "y", ONNX_INTS("keys_int64s", 1),
         onnx_texts("values_strings", 1, (const char *const[]){ "a" }));
    g_autofree char *found = imported(graph);
    cr_expect(strstr(found, "%y.default = const @y.default : string[]"), "%s", found);
    cr_expect(strstr(found, "%y = label_encoder(%x, %y.keys, %y.values, %y.default) : string[N,3]"),
              "%s", found);
    graph = graph_of(ONNX_STRING, "C");
    onnx_node(graph, "TfIdfVectorizer", "x", "y", onnx_int("max_gram_length", 1),
              onnx_int("min_gram_length", 1), onnx_int("max_skip_count", 0),
              onnx_text("mode", "TF"), ONNX_INTS("ngram_counts", 0),
              ONNX_INTS("ngram_indexes", 0, 1, 2),
              onnx_texts("pool_strings", 3, (const char *const[]){ "a", "b", "a" }), NULL);
    g_autofree char *grams = imported(graph);
    cr_expect(strstr(grams, "pool_int64s=[2,1,2]"), "%s", grams);
    graph = graph_of(ONNX_F32, "N,3");
    NODE(graph, "LinearClassifier", "y,z", SOME("coefficients", 6),
         onnx_texts("classlabels_strings", 2, (const char *const[]){ "a", "b" }));
    g_autofree char *labels = imported(graph);
    cr_expect(strstr(labels, "%y = gather(%y.labels, "), "%s", labels);
    cr_expect(strstr(labels, ": string[N]"), "%s", labels);
    graph = graph_of(ONNX_STRING, "N,3");
    NODE(graph, "CategoryMapper", "y", ONNX_INTS("cats_int64s", 5, 7),
         onnx_texts("cats_strings", 2, (const char *const[]){ "a", "b" }));
    g_autofree char *mapped = imported(graph);
    cr_expect(strstr(mapped, "label_encoder(%x, %y.texts, %y.integers, %y.default) : i64[N,3]"),
              "%s", mapped);
    graph = graph_of(ONNX_STRING, "N,3");
    NODE(graph, "CategoryMapper", "y", ONNX_INTS("cats_int64s", 5),
         onnx_texts("cats_strings", 2, (const char *const[]){ "a", "b" }));
    expect_refused(graph,
                   "expected as many elements of 'cats_int64s' as of 'cats_strings', found 1 "
                   "and 2");
}
