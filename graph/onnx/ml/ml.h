/* SPDX-License-Identifier: Apache-2.0 */
/* Steps that several converters of ai.onnx.ml take, beside those of graph/onnx/steps.h. */
#ifndef KILN_GRAPH_ONNX_ML_ML_H
#define KILN_GRAPH_ONNX_ML_ML_H

#include "graph/graph.h"
#include "graph/onnx/convert.h"
#include "graph/onnx/model.h"
#include "graph/onnx/steps.h"

/** Operand 0 as rows of features [N, F] of @dtype. A vector is one row. NULL and an error for other
 * ranks. */
KilnValue *kiln_onnx_ml_rows(const KilnOnnxSteps *s, KilnDType dtype);

/** The list of an attribute as a constant vector of @dtype. */
KilnValue *kiln_onnx_ml_floats(const KilnOnnxSteps *s, const char *suffix, KilnDType dtype,
                               KilnFloats list);
/** The same of an array of doubles. */
KilnValue *kiln_onnx_ml_doubles(const KilnOnnxSteps *s, const char *suffix, KilnDType dtype,
                                const GArray *list);
/** A constant matrix of f32. */
KilnValue *kiln_onnx_ml_matrix(const KilnOnnxSteps *s, const char *suffix, const float *data,
                               int64_t rows, int64_t columns);

/** Checks that the list of an attribute has @expected numbers. */
gboolean kiln_onnx_ml_check_length(const KilnOnnxCall *call, const char *name, size_t found,
                                   int64_t expected, GError **error);

/** The strings of an attribute as a constant vector. */
KilnValue *kiln_onnx_ml_texts(const KilnOnnxSteps *s, const char *suffix, const KilnOnnxAttr *attr);
/** One string as a constant scalar. */
KilnValue *kiln_onnx_ml_text(const KilnOnnxSteps *s, const char *suffix, const char *text);
/** The numbers below @n as a constant vector of i64. */
KilnValue *kiln_onnx_ml_numbers(const KilnOnnxSteps *s, const char *suffix, int64_t n);
/** The number of each element of @x in the list @keys, or @otherwise. */
KilnValue *kiln_onnx_ml_find(const KilnOnnxSteps *s, KilnValue *x, KilnValue *keys,
                             int64_t otherwise);

/** Labels of classes. */
typedef struct {
    uint32_t n;
    const int64_t *ints;
    const KilnOnnxAttr *texts; /* NULL: they are integers */
} KilnOnnxMlLabels;

/** Takes the labels of classes: integers, or strings. */
gboolean kiln_onnx_ml_take_labels(KilnOnnxCall *call, const char *ints, KilnOnnxMlLabels *out,
                                  GError **error);
/** The label of each row: @labels at @index [N]. */
KilnValue *kiln_onnx_ml_label(const KilnOnnxSteps *s, KilnOnnxMlLabels labels, KilnValue *index);
/** A row of @depth numbers for each index: the second of @values at the index, else the first. */
KilnValue *kiln_onnx_ml_one_hot(const KilnOnnxSteps *s, KilnValue *index, KilnValue *depth,
                                KilnValue *values);
/** The column of the largest number of each row, the first of equal ones: [N]. */
KilnValue *kiln_onnx_ml_largest(const KilnOnnxSteps *s, KilnValue *scores);
/** 1 for each row [N, 1] above @threshold, else 0: [N]. */
KilnValue *kiln_onnx_ml_above(const KilnOnnxSteps *s, KilnValue *scores, double threshold);

/** A reduction of the last dim, which stays as 1. */
KilnValue *kiln_onnx_ml_reduce(const KilnOnnxSteps *s, KilnOp op, KilnValue *x);

KilnValue *kiln_onnx_ml_tanh(const KilnOnnxSteps *s, KilnValue *x);

typedef enum {
    KILN_ONNX_ML_NONE,
    KILN_ONNX_ML_SOFTMAX,
    KILN_ONNX_ML_LOGISTIC,
    KILN_ONNX_ML_SOFTMAX_ZERO,
    KILN_ONNX_ML_PROBIT,
    KILN_ONNX_ML_N_TRANSFORMS
} KilnOnnxMlTransform;

/** Takes the attribute `post_transform`, a text. */
gboolean kiln_onnx_ml_take_transform(KilnOnnxCall *call, KilnOnnxMlTransform *out, GError **error);
/** What @transform makes of the scores of a row. */
KilnValue *kiln_onnx_ml_transform(const KilnOnnxSteps *s, KilnOnnxMlTransform transform,
                                  KilnValue *scores);

#endif
