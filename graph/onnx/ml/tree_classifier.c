/* SPDX-License-Identifier: Apache-2.0 */
/* TreeEnsembleClassifier of ai.onnx.ml: scores by tree_ensemble, then base values, the best label
 * and the post_transform.
 *
 * Two classes have one score s where all weights name the same class, and there is no base value,
 * or one and weights of the first class. The second class wins where s is above 0.5 if no weight is
 * negative, and above 0 otherwise. If the weights name the first class, the scores of both are
 * sigmoids of -s and s where the transform is LOGISTIC. Otherwise they are 1 - s and s if no weight
 * is negative, else -s and s. ONNX does not say so; models rely on what ONNX Runtime does. */
#include "graph/graph.h"
#include "graph/kiln-types.h"
#include "graph/onnx/convert.h"
#include "graph/onnx/ml/forest.h"
#include "graph/onnx/ml/ml.h"
#include "graph/onnx/ml/trees.h"
#include "graph/onnx/steps.h"

typedef struct {
    KilnOnnxSteps s;
    KilnForest *forest;
    KilnOnnxMlLabels labels;
    KilnTreeNumbers base;
    KilnOnnxMlTransform transform;
    bool one;      /* two classes have one score */
    bool first;    /* and it is called that of the first class */
    bool positive; /* no weight is negative */
} Classifier;

static void
look_at_weights(Classifier *c)
{
    const GArray *entries = c->forest->entries;
    const KilnForestEntry *list = (const KilnForestEntry *)(const void *)entries->data;
    c->positive = true;
    c->first = entries->len && list[0].target == 0;
    c->one = c->labels.n == 2 && entries->len && (!c->base.v || (c->first && c->base.v->len == 1));
    for (guint e = 0; e < entries->len; e++) {
        c->positive &= list[e].weight >= 0;
        c->one &= list[e].target == list[0].target;
    }
    c->forest->n_targets = c->one && c->first ? 1 : c->labels.n;
}

/* A base value for each class, or for the one score. */
static KilnValue *
add_base(const Classifier *c, KilnValue *scores)
{
    const int64_t expected = c->one ? 1 : c->labels.n;
    if (!c->base.v)
        return scores;
    if (!kiln_onnx_ml_check_length(c->s.call, "base_values", c->base.v->len, expected, c->s.error))
        return NULL;
    return kiln_onnx_step_add(&c->s, scores,
                              kiln_onnx_ml_doubles(&c->s, "base", c->forest->dtype, c->base.v));
}

/* The scores of both classes from their one score. */
static KilnValue *
both(const Classifier *c, KilnValue *score)
{
    const bool logistic = c->transform == KILN_ONNX_ML_LOGISTIC;
    KilnValue *other = kiln_onnx_step_mul_number(&c->s, score, -1);
    if (c->positive && !logistic)
        other = kiln_onnx_step_add_number(&c->s, other, 1);
    KilnValue *scores = kiln_onnx_step_concat(&c->s, other, score, 1);
    return logistic ? kiln_onnx_ml_transform(&c->s, c->transform, scores) : scores;
}

/* The number of the best class of each row. */
static KilnValue *
best_of(const Classifier *c, KilnValue *scores)
{
    if (!c->one)
        return kiln_onnx_ml_largest(&c->s, scores);
    if (!c->first && scores)
        scores = kiln_onnx_step_slice(&c->s, scores, 1, 1, 2, 1);
    return kiln_onnx_ml_above(&c->s, scores, c->positive ? 0.5 : 0);
}

static gboolean
convert(Classifier *c, KilnValue *x)
{
    const KilnOnnxSteps *s = &c->s;
    bool wide = false;
    if (!kiln_trees_read_ids(s->call, "class", c->forest, &wide, s->error))
        return FALSE;
    look_at_weights(c);
    c->forest->aggregate = "SUM";
    c->forest->dtype = kiln_trees_dtype(x, wide || c->base.wide);
    x = kiln_onnx_ml_rows(s, c->forest->dtype);
    KilnValue *scores = x ? kiln_forest_build(s, c->forest, x) : NULL;
    scores = scores ? add_base(c, scores) : NULL;
    KilnValue *best = best_of(c, scores);
    scores = c->one && c->first ? both(c, scores) : kiln_onnx_ml_transform(s, c->transform, scores);
    return kiln_onnx_set_result(s->call, 0, kiln_onnx_ml_label(s, c->labels, best)) &&
           kiln_onnx_set_result(s->call, 1, kiln_onnx_step_cast(s, scores, KILN_DTYPE_f32));
}

gboolean
kiln_onnx_convert_tree_ensemble_classifier(KilnOnnxCall *call, GError **error)
{
    KilnForest forest = { 0 };
    Classifier c = { .s = { call, error }, .forest = &forest };
    KilnValue *x = kiln_onnx_need(call, 0, error);
    if (!x || !kiln_onnx_ml_take_labels(call, "classlabels_int64s", &c.labels, error) ||
        !kiln_onnx_ml_take_transform(call, &c.transform, error))
        return FALSE;
    kiln_forest_init(&forest);
    const gboolean good =
        kiln_trees_take_numbers(call, "base_values", "base_values_as_tensor", &c.base, error) &&
        convert(&c, x);
    kiln_forest_clear(&forest);
    kiln_trees_clear_numbers(&c.base);
    return good;
}
