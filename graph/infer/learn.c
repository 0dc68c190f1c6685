/* SPDX-License-Identifier: Apache-2.0 */
/* Shape functions of classical machine learning: graph/ops/learn.def says what the operands are. */
#include "graph/op/learn.h"

#include "graph/graph.h"
#include "graph/infer/common.h"
#include "graph/infer/tree_operands.h"

enum {
    KILN_TREE_OPERANDS,
    REALS = KILN_SET(f32) | KILN_SET(f64),
    /* of label_encoder: */
    KEYS = 1,
    VALUES,
    OTHERWISE
};

/* Checks that operands @i and @like are equally long lists, where @i has @more elements. */
static gboolean
same_length(const KilnInfer *in, uint32_t i, uint32_t like, int64_t more, GError **error)
{
    const int64_t length = kiln_infer_type(in, like)->rank == 1 ? kiln_infer_type(in, like)->dims[0]
                                                                : KILN_DIM_UNKNOWN;
    return kiln_infer_require_dim(in, i, 0, length < 0 ? length : length + more, error);
}

KILN_INFER(tree_ensemble)
{
    static const KilnDTypeSet sets[] = { REALS,         KILN_SET(i32), KILN_SET(i32),
                                         REALS,         KILN_SET(i32), KILN_SET(bool),
                                         KILN_SET(i32), KILN_SET(i32), REALS };
    const KilnAttrs_tree_ensemble *attrs = kiln_attrs(in->node, tree_ensemble);
    const KilnType *x = kiln_infer_type(in, X);
    if (!kiln_infer_one_of("aggregate", attrs->aggregate, "SUM MIN MAX", error))
        return FALSE;
    if (attrs->n_targets < 1 || attrs->n_targets > G_MAXINT32)
        return kiln_throw(error, KILN_ERROR_INVALID,
                          "n_targets: expected 1 to 2147483647, found %" G_GINT64_FORMAT,
                          attrs->n_targets);
    for (uint32_t i = X; i <= WEIGHTS; i++) {
        if (!kiln_infer_require(in, i, sets[i], error) ||
            !kiln_infer_require_rank(in, i, i == X ? 2 : 1, i == X ? 2 : 1, error))
            return FALSE;
    }
    if (!kiln_infer_require_like(in, SPLITS, X, error) ||
        !kiln_infer_require_like(in, WEIGHTS, X, error) ||
        !same_length(in, SPLITS, FEATURES, 0, error) ||
        !same_length(in, CHILDREN, FEATURES, 0, error) ||
        !same_length(in, MISSING, FEATURES, 0, error) ||
        !same_length(in, STARTS, FEATURES, 1, error) ||
        !same_length(in, WEIGHTS, TARGETS, 0, error))
        return FALSE;
    in->out[0] = kiln_infer_unknown(x->dtype, 2);
    if (x->rank == 2)
        kiln_dim_copy(&in->out[0], 0, x, 0);
    kiln_dim_set(&in->out[0], 1, attrs->n_targets);
    return TRUE;
}

KILN_INFER(squared_distance)
{
    const KilnType *x = kiln_infer_type(in, 0), *y = kiln_infer_type(in, 1);
    for (uint32_t i = 0; i < 2; i++) {
        if (!kiln_infer_require(in, i, KILN_SET_FLOATS, error) ||
            !kiln_infer_require_rank(in, i, 2, 2, error))
            return FALSE;
    }
    if (!kiln_infer_require_like(in, 1, 0, error) ||
        (x->rank == 2 && !kiln_infer_require_dim(in, 1, 1, x->dims[1], error)))
        return FALSE;
    in->out[0] = kiln_infer_unknown(x->dtype, 2);
    if (x->rank == 2)
        kiln_dim_copy(&in->out[0], 0, x, 0);
    if (y->rank == 2)
        kiln_dim_copy(&in->out[0], 1, y, 0);
    return TRUE;
}

KILN_INFER(pairwise_coupling)
{
    const KilnType *x = kiln_infer_type(in, 0);
    const int64_t classes = kiln_attrs(in->node, pairwise_coupling)->classes;
    if (classes < 2 || classes > G_MAXUINT16)
        return kiln_throw(error, KILN_ERROR_INVALID,
                          "classes: expected 2 to 65535, found %" G_GINT64_FORMAT, classes);
    if (!kiln_infer_require(in, 0, KILN_SET_FLOATS, error) ||
        !kiln_infer_require_rank(in, 0, 2, 2, error) ||
        !kiln_infer_require_dim(in, 0, 1, classes * (classes - 1) / 2, error))
        return FALSE;
    in->out[0] = kiln_infer_unknown(x->dtype, 2);
    if (x->rank == 2)
        kiln_dim_copy(&in->out[0], 0, x, 0);
    kiln_dim_set(&in->out[0], 1, classes);
    return TRUE;
}

KILN_INFER(label_encoder)
{
    const KilnType *values = kiln_infer_type(in, VALUES);
    const KilnDTypeSet labels = KILN_SET_NUMBERS | KILN_SET(string);
    if (!kiln_infer_require(in, 0, labels, error) || !kiln_infer_require_like(in, KEYS, 0, error) ||
        !kiln_infer_require(in, VALUES, labels, error) ||
        !kiln_infer_require_like(in, OTHERWISE, VALUES, error) ||
        !kiln_infer_require_rank(in, KEYS, 1, 1, error) ||
        !kiln_infer_require_rank(in, VALUES, 1, 1, error) ||
        !same_length(in, VALUES, KEYS, 0, error) ||
        !kiln_infer_require_scalar(in, OTHERWISE, error))
        return FALSE;
    in->out[0] = kiln_infer_plain(kiln_infer_type(in, 0));
    in->out[0].dtype = values->dtype;
    return TRUE;
}
