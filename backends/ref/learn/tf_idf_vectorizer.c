/* SPDX-License-Identifier: Apache-2.0 */
/* tf_idf_vectorizer: how often each n-gram of the pool is in a row, with 0 to max_skip_count items
 * between its neighbours, the same number between all of them. An n-gram of one item has no
 * neighbours and is counted once. */
#include "backends/ref/kernel.h"

/* The n-grams of one length. */
typedef struct {
    const KilnInstrAttrs_tf_idf_vectorizer *attrs;
    int64_t length;
    int64_t first; /* the number of the first of them in the pool */
    const int64_t *items;
    int64_t n;
} Grams;

static bool
is_at(const KilnKernelArgs *args, const int64_t *gram, int64_t length, int64_t at, int64_t step)
{
    for (int64_t i = 0; i < length; i++) {
        if (ref_load_int(ref_type(args, 1)->dtype, args->data[1], at + i * step) != gram[i])
            return false;
    }
    return true;
}

/* How often @gram is in the @columns items from @row on. */
static int64_t
count(const KilnKernelArgs *args, const Grams *g, const int64_t *gram, int64_t row, int64_t columns)
{
    const int64_t skips = g->length == 1 ? 0 : g->attrs->max_skip_count;
    int64_t found = 0;
    for (int64_t step = 1; step - 1 <= skips; step++) {
        if (g->length > 1 && step > (columns - 1) / (g->length - 1))
            break;
        for (int64_t at = 0; at + (g->length - 1) * step < columns; at++)
            found += is_at(args, gram, g->length, row + at, step);
    }
    return found;
}

static void
add_grams(const KilnKernelArgs *args, const Grams *g, int64_t row, int64_t columns, float *out)
{
    for (int64_t k = 0; k < g->n; k++) {
        const int64_t id = g->first + k;
        const int64_t found = count(args, g, g->items + k * g->length, row, columns);
        const float weight = id < g->attrs->weights.n ? g->attrs->weights.v[id] : 1;
        float *to = out + g->attrs->ngram_indexes.v[id];
        if (g->attrs->mode[0] == 'I')
            *to += found ? weight : 0;
        else
            *to += (float)found * (g->attrs->mode[2] ? weight : 1); /* TFIDF, or TF */
    }
}

const char *
kiln_ref_tf_idf_vectorizer(const KilnKernelArgs *args)
{
    const KilnInstrAttrs_tf_idf_vectorizer *attrs =
        kiln_instr_attrs(args->instr, tf_idf_vectorizer);
    const KilnType *out = ref_type(args, 0), *x = ref_type(args, 1);
    const int64_t columns = x->dims[x->rank - 1], width = out->dims[out->rank - 1];
    const int64_t rows = x->rank == 2 ? x->dims[0] : 1;
    memset(args->data[0], 0, (size_t)(rows * width) * sizeof(float));
    for (int64_t row = 0; row < rows; row++) {
        Grams g = { .attrs = attrs };
        for (uint32_t k = 0; k < attrs->ngram_counts.n; k++, g.first += g.n) {
            const int64_t begin = attrs->ngram_counts.v[k];
            const int64_t end =
                k + 1 < attrs->ngram_counts.n ? attrs->ngram_counts.v[k + 1] : attrs->pool_int64s.n;
            g.length = k + 1;
            g.items = attrs->pool_int64s.v + begin;
            g.n = (end - begin) / g.length;
            if (g.length >= attrs->min_gram_length && g.length <= attrs->max_gram_length)
                add_grams(args, &g, row * columns, columns, (float *)args->data[0] + row * width);
        }
    }
    return NULL;
}
