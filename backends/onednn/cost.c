/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/onednn/cost.h"

#include "backends/onednn/costs.h"
#include "backends/onednn/costs_avx2.h"

enum {
    PLAIN_CHANNELS = 4, /* first layers read pictures as they are */
};

static double
padded(int64_t channels, int64_t block)
{
    return (double)((channels + block - 1) / block * block);
}

/* Channels of a group. */
static double
channels_of(const KilnOnednnWork *w, int64_t channels, bool blocked)
{
    int64_t own = channels / (w->groups > 0 ? w->groups : 1);
    return blocked ? padded(own, w->block) : (double)own;
}

static void
conv_terms(const KilnOnednnWork *w, bool blocked, double terms[KILN_ONEDNN_TERMS])
{
    double taps = (double)w->taps, written = (double)w->written, groups = (double)w->groups;
    double in = channels_of(w, w->in, blocked && w->in > PLAIN_CHANNELS);
    double out = channels_of(w, w->out, true);
    terms[0] = groups * written * out * in * taps;                  /* products */
    terms[1] = 4 * groups * (in * (double)w->read + out * written); /* bytes of activations */
    terms[2] = 4 * groups * in * out * taps;                        /* of weights */
    terms[3] = groups * written * out * taps; /* sums that are taken up again */
    terms[4] = 1;
}

static void
depthwise_terms(const KilnOnednnWork *w, bool blocked, double terms[KILN_ONEDNN_TERMS])
{
    double channels = blocked ? padded(w->out, w->block) : (double)w->out;
    double products = channels * (double)w->written * (double)w->taps;
    terms[0] = products;
    terms[1] = 4 * channels * (double)(w->read + w->written);
    terms[2] =
        channels == padded(w->out, w->block) ? 0 : products; /* channels beside the last block */
    terms[3] = (double)w->written;
    terms[4] = 1;
}

static void
pool_terms(const KilnOnednnWork *w, double terms[KILN_ONEDNN_TERMS])
{
    double channels = padded(w->in, w->block);
    terms[0] = channels * (double)w->written * (double)w->taps;
    terms[1] = 4 * channels * (double)(w->read + w->written);
    terms[2] = 1;
}

static void
matmul_terms(const KilnOnednnWork *w, double terms[KILN_ONEDNN_TERMS])
{
    double rows = (double)w->written * (double)w->groups;
    terms[0] = rows * (double)w->in * padded(w->out, w->block);
    terms[1] = 4 * rows * (double)(w->in + w->out);
    terms[2] = 4 * (double)w->groups * (double)w->in * (double)w->out;
    terms[3] = 1;
}

static void
reorder_terms(const KilnOnednnWork *w, double terms[KILN_ONEDNN_TERMS])
{
    double bytes = 4 * (double)w->in * (double)w->read;
    terms[0] = bytes;
    terms[1] = w->in % w->block ? bytes : 0;
    terms[2] = 1;
}

static void
rows_terms(const KilnOnednnWork *w, double terms[KILN_ONEDNN_TERMS])
{
    terms[0] = (double)w->in * (double)w->written;
    terms[1] = (double)w->written;
    terms[2] = 1;
}

static void
lstm_terms(const KilnOnednnWork *w, double terms[KILN_ONEDNN_TERMS])
{
    double gates = 4 * (double)w->groups * (double)w->written * padded(w->out, w->block);
    terms[0] = gates * (double)w->in;
    terms[1] = gates * (double)w->out;
    terms[2] = (double)w->groups;
    terms[3] = 1;
}

static void
value_terms(const KilnOnednnWork *w, bool blocked, double terms[KILN_ONEDNN_TERMS])
{
    double channels = blocked ? padded(w->out, w->block) : (double)w->out;
    terms[0] = 4 * channels * (double)w->written;
    terms[1] = blocked ? 0 : (double)w->written; /* short runs */
    terms[2] = 1;
}

static void
tail_terms(const KilnOnednnWork *w, bool blocked, double terms[KILN_ONEDNN_TERMS])
{
    double channels = blocked ? padded(w->out, w->block) : (double)w->out;
    double numbers = channels * (double)w->written;
    terms[0] = numbers * (double)w->taps;
    terms[1] = 4 * numbers * (double)w->groups;
}

static void
far_terms(const KilnOnednnWork *w, double terms[KILN_ONEDNN_TERMS])
{
    terms[0] = 4 * (double)w->in * (double)w->out * (double)w->taps;
}

void
kiln_onednn_terms(KilnOnednnCostKind kind, const KilnOnednnWork *work, bool blocked,
                  double terms[KILN_ONEDNN_TERMS])
{
    for (int i = 0; i < KILN_ONEDNN_TERMS; i++)
        terms[i] = 0;
    switch (kind) {
    case KILN_ONEDNN_COST_window:
    case KILN_ONEDNN_COST_pointwise:
    case KILN_ONEDNN_COST_transposed:
        conv_terms(work, blocked, terms);
        break;
    case KILN_ONEDNN_COST_depthwise:
        depthwise_terms(work, blocked, terms);
        break;
    case KILN_ONEDNN_COST_pool:
    case KILN_ONEDNN_COST_global_pool:
        pool_terms(work, terms);
        break;
    case KILN_ONEDNN_COST_matmul:
        matmul_terms(work, terms);
        break;
    case KILN_ONEDNN_COST_softmax:
    case KILN_ONEDNN_COST_layer_normalization:
    case KILN_ONEDNN_COST_reduction:
        rows_terms(work, terms);
        break;
    case KILN_ONEDNN_COST_lstm:
        lstm_terms(work, terms);
        break;
    case KILN_ONEDNN_COST_concat:
    case KILN_ONEDNN_COST_pass:
        value_terms(work, blocked, terms);
        break;
    case KILN_ONEDNN_COST_tail:
        tail_terms(work, blocked, terms);
        break;
    case KILN_ONEDNN_COST_far_weights:
        far_terms(work, terms);
        break;
    default:
        reorder_terms(work, terms);
    }
}

double
kiln_onednn_cost(KilnOnednnCostKind kind, const KilnOnednnWork *work, bool blocked)
{
    static const double wide[KILN_ONEDNN_N_COSTS][2][KILN_ONEDNN_TERMS] = KILN_ONEDNN_COSTS;
    static const double narrow[KILN_ONEDNN_N_COSTS][2][KILN_ONEDNN_TERMS] = KILN_ONEDNN_COSTS_AVX2;
    const double *costs = (work->block == 16 ? wide : narrow)[kind][blocked];
    double terms[KILN_ONEDNN_TERMS], us = 0;
    kiln_onednn_terms(kind, work, blocked, terms);
    for (int i = 0; i < KILN_ONEDNN_TERMS; i++)
        us += terms[i] * costs[i];
    return us;
}
