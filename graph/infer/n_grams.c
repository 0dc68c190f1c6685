/* SPDX-License-Identifier: Apache-2.0 */
/* The shape function of tf_idf_vectorizer: rows [N, C] or [C] become counts of n-grams. */
#include "graph/graph.h"
#include "graph/infer/common.h"
#include "graph/op/learn.h"

/* The n-grams of length k + 1 begin at ngram_counts[k] in the pool. *@out: how many there are. */
static gboolean
count_grams(const KilnAttrs_tf_idf_vectorizer *a, int64_t *out, GError **error)
{
    *out = 0;
    for (uint32_t k = 0; k < a->ngram_counts.n; k++) {
        const int64_t begin = a->ngram_counts.v[k];
        const int64_t end = kiln_ints_at(a->ngram_counts, k + 1, a->pool_int64s.n);
        if (begin < 0 || begin > end || end > a->pool_int64s.n || (k == 0 && begin) ||
            (end - begin) % (k + 1))
            return kiln_throw(error, KILN_ERROR_INVALID,
                              "ngram_counts: expected n-grams of %u items from 0 to %u, found "
                              "%" G_GINT64_FORMAT " to %" G_GINT64_FORMAT,
                              k + 1, a->pool_int64s.n, begin, end);
        *out += (end - begin) / (k + 1);
    }
    return TRUE;
}

static gboolean
check_lengths(const KilnAttrs_tf_idf_vectorizer *a, GError **error)
{
    if (!kiln_infer_one_of("mode", a->mode, "TF IDF TFIDF", error))
        return FALSE;
    if (a->min_gram_length >= 1 && a->min_gram_length <= a->max_gram_length &&
        a->max_gram_length <= a->ngram_counts.n && a->max_skip_count >= 0)
        return TRUE;
    return kiln_throw(error, KILN_ERROR_INVALID,
                      "expected lengths of 1 to %u and skips of 0 or more, found %" G_GINT64_FORMAT
                      " to %" G_GINT64_FORMAT " and %" G_GINT64_FORMAT,
                      a->ngram_counts.n, a->min_gram_length, a->max_gram_length, a->max_skip_count);
}

/* *@out: the columns of the result. */
static gboolean
check_indexes(const KilnAttrs_tf_idf_vectorizer *a, int64_t *out, GError **error)
{
    int64_t grams;
    if (!count_grams(a, &grams, error))
        return FALSE;
    if (a->ngram_indexes.n != grams || !grams || (a->weights.n && a->weights.n != grams))
        return kiln_throw(error, KILN_ERROR_INVALID,
                          "expected an index for each of %" G_GINT64_FORMAT
                          " n-grams, and as many weights or none, found %u and %u",
                          grams, a->ngram_indexes.n, a->weights.n);
    *out = 0;
    for (uint32_t i = 0; i < a->ngram_indexes.n; i++) {
        const int64_t index = a->ngram_indexes.v[i];
        if (index < 0 || index >= G_MAXINT32)
            return kiln_throw(error, KILN_ERROR_INVALID,
                              "ngram_indexes: expected 0 to 2147483646, found %" G_GINT64_FORMAT,
                              index);
        *out = MAX(*out, index + 1);
    }
    return TRUE;
}

KILN_INFER(tf_idf_vectorizer)
{
    const KilnType *x = kiln_infer_type(in, 0);
    const KilnAttrs_tf_idf_vectorizer *attrs = kiln_attrs(in->node, tf_idf_vectorizer);
    int64_t columns = 0;
    if (!kiln_infer_require(in, 0, KILN_SET_INDICES, error) ||
        !kiln_infer_require_rank(in, 0, 1, 2, error) || !check_lengths(attrs, error) ||
        !check_indexes(attrs, &columns, error))
        return FALSE;
    in->out[0] = kiln_infer_unknown(KILN_DTYPE_f32, x->rank);
    if (x->rank < 0)
        return TRUE;
    if (x->rank == 2)
        kiln_dim_copy(&in->out[0], 0, x, 0);
    kiln_dim_set(&in->out[0], x->rank - 1, columns);
    return TRUE;
}
