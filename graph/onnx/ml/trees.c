/* SPDX-License-Identifier: Apache-2.0 */
/* TreeEnsemble and TreeEnsembleRegressor of ai.onnx.ml: scores by tree_ensemble, then base values
 * and the post_transform. */
#include "graph/onnx/ml/trees.h"

#include "graph/attr.h"
#include "graph/graph.h"
#include "graph/kiln-types.h"
#include "graph/onnx/convert.h"
#include "graph/onnx/ml/ml.h"
#include "graph/onnx/steps.h"

#include <math.h>
#include <string.h>

static const char *const aggregates[] = { "AVERAGE", "SUM", "MIN", "MAX" };

/* --- TreeEnsemble: leaves have numbers of their own --- */

typedef struct {
    KilnInts roots, features, yes, no, yes_leaf, no_leaf, missing, targets;
    KilnTreeNumbers modes, splits, weights, members;
} Lists;

static void
clear_lists(Lists *lists)
{
    kiln_trees_clear_numbers(&lists->modes);
    kiln_trees_clear_numbers(&lists->splits);
    kiln_trees_clear_numbers(&lists->weights);
    kiln_trees_clear_numbers(&lists->members);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Lists, clear_lists)

static gboolean
take_lists(KilnOnnxCall *call, Lists *l, GError **error)
{
    bool there;
    kiln_onnx_take(call, "nodes_hitrates"); /* how often nodes were reached in training */
    return kiln_trees_take_ints(call, "tree_roots", &l->roots, error) &&
           kiln_trees_take_ints(call, "nodes_featureids", &l->features, error) &&
           kiln_trees_take_ints(call, "nodes_truenodeids", &l->yes, error) &&
           kiln_trees_take_ints(call, "nodes_falsenodeids", &l->no, error) &&
           kiln_trees_take_ints(call, "nodes_trueleafs", &l->yes_leaf, error) &&
           kiln_trees_take_ints(call, "nodes_falseleafs", &l->no_leaf, error) &&
           kiln_trees_take_ints(call, "leaf_targetids", &l->targets, error) &&
           kiln_onnx_take_ints(call, "nodes_missing_value_tracks_true", &l->missing, &there,
                               error) &&
           kiln_trees_take_numbers(call, NULL, "nodes_modes", &l->modes, error) &&
           kiln_trees_take_numbers(call, NULL, "nodes_splits", &l->splits, error) &&
           kiln_trees_take_numbers(call, NULL, "leaf_weights", &l->weights, error) &&
           kiln_trees_take_numbers(call, NULL, "membership_values", &l->members, error);
}

static size_t
length_of(const KilnTreeNumbers *numbers)
{
    return numbers->v ? numbers->v->len : 0;
}

static gboolean
check_lists(const KilnOnnxCall *call, const Lists *l, GError **error)
{
    const int64_t n = l->features.n;
    const struct {
        const char *name;
        size_t length;
        int64_t expected;
    } rows[] = {
        { "nodes_truenodeids", l->yes.n, n },
        { "nodes_falsenodeids", l->no.n, n },
        { "nodes_trueleafs", l->yes_leaf.n, n },
        { "nodes_falseleafs", l->no_leaf.n, n },
        { "nodes_modes", length_of(&l->modes), n },
        { "nodes_splits", length_of(&l->splits), n },
        { "nodes_missing_value_tracks_true", l->missing.n, l->missing.n ? n : 0 },
        { "leaf_weights", length_of(&l->weights), l->targets.n },
    };
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        if (!kiln_onnx_ml_check_length(call, rows[i].name, rows[i].length, rows[i].expected, error))
            return FALSE;
    }
    return TRUE;
}

static char *
name_of(const void *data, int64_t i)
{
    (void)data;
    return g_strdup_printf("node %" G_GINT64_FORMAT, i);
}

/* Leaf k has the number of the node behind all tests, plus k. */
static gboolean
find_branch(const KilnOnnxCall *call, const Lists *l, int64_t i, bool yes, int64_t *out,
            GError **error)
{
    const bool leaf = (yes ? l->yes_leaf : l->no_leaf).v[i] != 0;
    const int64_t n = leaf ? l->targets.n : l->features.n, id = (yes ? l->yes : l->no).v[i];
    if (id < 0 || id >= n)
        return kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                               "attribute '%s': node %" G_GINT64_FORMAT
                               ": expected a %s from 0 to %" G_GINT64_FORMAT
                               " where the test is %s, found %" G_GINT64_FORMAT,
                               yes ? "nodes_truenodeids" : "nodes_falsenodeids", i,
                               leaf ? "leaf" : "node", n - 1, yes ? "true" : "false", id);
    *out = leaf ? l->features.n + id : id;
    return TRUE;
}

static int
ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* The next set of members: up to the next NaN. */
static gboolean
read_members(const KilnOnnxCall *call, const Lists *l, guint *next, KilnForest *forest,
             KilnForestNode *node, GError **error)
{
    g_autoptr(GArray) set = g_array_new(FALSE, FALSE, sizeof(double));
    const guint n = (guint)length_of(&l->members);
    if (*next >= n)
        return kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                               "attribute 'membership_values': expected a set for each node of "
                               "mode BRANCH_MEMBER, found fewer");
    for (; *next < n && !isnan(g_array_index(l->members.v, double, *next)); (*next)++) {
        const double member = g_array_index(l->members.v, double, *next);
        g_array_append_val(set, member);
    }
    (*next)++;
    g_array_sort(set, ascending);
    node->first = forest->members->len;
    for (guint i = 0; i < set->len; i++) {
        const double member = g_array_index(set, double, i);
        if (i && member == g_array_index(set, double, i - 1))
            continue;
        g_array_append_val(forest->members, member);
        node->n++;
    }
    return TRUE;
}

static gboolean
read_tests(const KilnOnnxCall *call, const Lists *l, KilnForest *forest, GError **error)
{
    guint set = 0;
    for (uint32_t i = 0; i < l->features.n; i++) {
        KilnForestNode *node = kiln_forest_node(forest, i);
        const double mode = g_array_index(l->modes.v, double, i);
        if (!(mode >= 0 && mode <= KILN_BRANCH_MEMBER))
            return kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                                   "attribute 'nodes_modes': node %u: expected a mode from 0 to 6, "
                                   "found %g",
                                   i, mode);
        node->mode = (KilnBranch)mode;
        node->feature = l->features.v[i];
        node->split = g_array_index(l->splits.v, double, i);
        node->missing = l->missing.n && l->missing.v[i] != 0;
        if (!find_branch(call, l, i, true, &node->yes, error) ||
            !find_branch(call, l, i, false, &node->no, error) ||
            (node->mode == KILN_BRANCH_MEMBER && !read_members(call, l, &set, forest, node, error)))
            return FALSE;
    }
    return TRUE;
}

static gboolean
read_forest(const KilnOnnxCall *call, const Lists *l, KilnForest *forest, GError **error)
{
    g_array_set_size(forest->nodes, l->features.n + l->targets.n);
    forest->name = name_of;
    forest->targets = "leaf_targetids";
    if (!read_tests(call, l, forest, error))
        return FALSE;
    for (uint32_t i = 0; i < l->targets.n; i++) {
        const KilnForestEntry entry = { l->features.n + i, l->targets.v[i],
                                        g_array_index(l->weights.v, double, i) };
        kiln_forest_node(forest, entry.node)->mode = KILN_BRANCH_LEAF;
        g_array_append_val(forest->entries, entry);
    }
    for (uint32_t i = 0; i < l->roots.n; i++) {
        const int64_t root = l->roots.v[i];
        if (root < 0 || root >= l->features.n)
            return kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                                   "attribute 'tree_roots': tree %u: expected a root from 0 to %u, "
                                   "found %" G_GINT64_FORMAT,
                                   i, l->features.n - 1, root);
        g_array_append_val(forest->roots, root);
    }
    kiln_forest_sort_entries(forest);
    return TRUE;
}

static gboolean
take_targets(KilnOnnxCall *call, KilnForest *forest, GError **error)
{
    forest->n_targets = 1;
    if (!kiln_onnx_take_int(call, "n_targets", &forest->n_targets, error))
        return FALSE;
    return (forest->n_targets >= 1 && forest->n_targets <= G_MAXINT32) ||
           kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                           "attribute 'n_targets': expected 1 to 2147483647, found "
                           "%" G_GINT64_FORMAT,
                           forest->n_targets);
}

static gboolean
take_numbered(KilnOnnxCall *call, const char *name, int64_t otherwise, int64_t n, int64_t *out,
              GError **error)
{
    *out = otherwise;
    if (!kiln_onnx_take_int(call, name, out, error))
        return FALSE;
    return (*out >= 0 && *out < n) ||
           kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                           "attribute '%s': expected 0 to %" G_GINT64_FORMAT
                           ", found %" G_GINT64_FORMAT,
                           name, n - 1, *out);
}

static KilnValue *
convert_ensemble(const KilnOnnxSteps *s, const Lists *l, KilnForest *forest)
{
    int64_t aggregate, transform;
    KilnOnnxCall *call = s->call;
    KilnValue *x = kiln_onnx_need(call, 0, s->error);
    if (!x || !take_targets(call, forest, s->error) ||
        !take_numbered(call, "aggregate_function", 1, G_N_ELEMENTS(aggregates), &aggregate,
                       s->error) ||
        !take_numbered(call, "post_transform", 0, KILN_ONNX_ML_N_TRANSFORMS, &transform,
                       s->error) ||
        !check_lists(call, l, s->error) || !read_forest(call, l, forest, s->error))
        return NULL;
    const KilnDType dtype = x->type.dtype;
    forest->aggregate = aggregates[aggregate];
    forest->dtype = kiln_trees_dtype(x, l->splits.wide || l->weights.wide || l->members.wide);
    x = kiln_onnx_ml_rows(s, forest->dtype);
    KilnValue *scores = x ? kiln_forest_build(s, forest, x) : NULL;
    scores = kiln_onnx_ml_transform(s, (KilnOnnxMlTransform)transform, scores);
    return kiln_onnx_step_cast(s, scores, dtype);
}

gboolean
kiln_onnx_convert_tree_ensemble(KilnOnnxCall *call, GError **error)
{
    const KilnOnnxSteps s = { call, error };
    g_auto(Lists) lists = { 0 };
    KilnForest forest = { 0 };
    if (!take_lists(call, &lists, error))
        return FALSE;
    kiln_forest_init(&forest);
    KilnValue *y = convert_ensemble(&s, &lists, &forest);
    kiln_forest_clear(&forest);
    return kiln_onnx_set_result(call, 0, y);
}

/* --- TreeEnsembleRegressor --- */

static gboolean
take_aggregate(KilnOnnxCall *call, const char **out, GError **error)
{
    *out = "SUM";
    if (!kiln_onnx_take_text(call, "aggregate_function", out, error))
        return FALSE;
    for (size_t i = 0; i < G_N_ELEMENTS(aggregates); i++) {
        if (strcmp(*out, aggregates[i]) == 0)
            return TRUE;
    }
    return kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                           "attribute 'aggregate_function': expected AVERAGE, SUM, MIN or MAX, "
                           "found \"%s\"",
                           *out);
}

static KilnValue *
convert_regressor(const KilnOnnxSteps *s, KilnForest *forest, const KilnTreeNumbers *base)
{
    KilnOnnxMlTransform transform = KILN_ONNX_ML_NONE;
    KilnOnnxCall *call = s->call;
    KilnValue *x = kiln_onnx_need(call, 0, s->error);
    bool wide = false;
    if (!x || !take_targets(call, forest, s->error) ||
        !take_aggregate(call, &forest->aggregate, s->error) ||
        !kiln_onnx_ml_take_transform(call, &transform, s->error) ||
        (base->v && !kiln_onnx_ml_check_length(call, "base_values", base->v->len, forest->n_targets,
                                               s->error)) ||
        !kiln_trees_read_ids(call, "target", forest, &wide, s->error))
        return NULL;
    forest->dtype = kiln_trees_dtype(x, wide || base->wide);
    x = kiln_onnx_ml_rows(s, forest->dtype);
    KilnValue *scores = x ? kiln_forest_build(s, forest, x) : NULL;
    if (base->v)
        scores =
            kiln_onnx_step_add(s, scores, kiln_onnx_ml_doubles(s, "base", forest->dtype, base->v));
    scores = kiln_onnx_ml_transform(s, transform, scores);
    return kiln_onnx_step_cast(s, scores, KILN_DTYPE_f32);
}

gboolean
kiln_onnx_convert_tree_ensemble_regressor(KilnOnnxCall *call, GError **error)
{
    const KilnOnnxSteps s = { call, error };
    g_auto(KilnTreeNumbers) base = { 0 };
    KilnForest forest = { 0 };
    if (!kiln_trees_take_numbers(call, "base_values", "base_values_as_tensor", &base, error))
        return FALSE;
    kiln_forest_init(&forest);
    KilnValue *y = convert_regressor(&s, &forest, &base);
    kiln_forest_clear(&forest);
    return kiln_onnx_set_result(call, 0, y);
}
